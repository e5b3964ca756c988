import Access
import EventLoop
import Message
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
