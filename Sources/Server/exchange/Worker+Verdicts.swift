import Access
import Accounts
import EventLoop
import Message
import Routing
import Rules

/// What exchanges and the doorsteps of tunnels ask the access rules.
extension Worker {
    /// The verdict where a rule depends on the destination's address. The request is allowed if at least one address is;
    /// `Opening` asks again for each address that it dials, so a forbidden address is never connected to.
    ///
    /// - Returns: the verdict, and the address that it is about; nil if the host has none.
    func decide(
        _ request: AccessRequest, amongst addresses: [SocketAddress], _ snapshot: Snapshot
    ) -> (verdict: Verdict, address: IPAddress?) {
        var last: (verdict: Verdict, address: IPAddress?) = (
            .deny(Denial(reason: .privateDestination, text: "the host has no address")), nil
        )
        for address in addresses.compactMap(IPAddress.init) {
            last = (decide(request, address: address, snapshot), address)
            switch last.verdict {
            case .allow, .needsServerName: return last
            case .deny, .needsAddress: break
            }
        }
        return last
    }

    /// Decides about a request, with the addresses of its host if the rules look at them.
    ///
    /// - Parameter done: is called with the verdict and the address that it is for, if any: within this call, or when a name server has answered.
    /// - Returns: the question that a name server was asked. Nil if `done` was called.
    func decide(
        _ request: OwnedRequest, _ snapshot: Snapshot,
        _ done: @escaping (Result<(verdict: Verdict, address: IPAddress?), NameFailure>) -> Void
    ) -> ResolverTicket? {
        let verdict = decide(request.access, address: nil, snapshot)
        guard verdict == .needsAddress else {
            done(.success((verdict, nil)))
            return nil
        }
        if let known = HostAddresses.known(of: request.host, worker: self) {
            done(known.map { decide(request.access, amongst: $0, snapshot) })
            return nil
        }
        return HostAddresses.ask(for: request, snapshot, worker: self) { [unowned self] result in
            done(result.map { decide(request.access, amongst: $0, snapshot) })
        }
    }

    /// Counts a request that report-only rules match, and notes their numbers for the access log. Asked only where there are such rules (`hasReports`).
    func noteReports(
        _ request: OwnedRequest, address: IPAddress?, _ snapshot: Snapshot, in account: inout Account
    ) {
        let numbers = snapshot.access.reports(for: request.access, address: address)
        guard !numbers.isEmpty else { return }
        // A request that is decided about once more is one request.
        if account.reported == .zero { counters.add(.reported) }
        var reported = SIMD4<UInt16>()
        for (place, number) in zip(reported.indices, numbers) { reported[place] = UInt16(exactly: number) ?? 0 }
        account.reported = reported
    }
}
