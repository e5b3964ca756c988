import Access
import EventLoop
import Forwarding
import Interception
import Routing
import Rules
import Transaction

/// CONNECT: a tunnel to the destination that the request names (RFC 9110 §9.3.6).
extension Exchange: LinkOpenerOwner {
    func tunnel() {
        switch opensTunnel() {
        case .open(let target):
            return TunnelDoorstep.open(
                target, greeting: greeting(detail: "detail=opened"), stream: stream, worker: worker,
                snapshot: snapshot, request: request)
        case .deny:
            note(
                Denial(
                    rule: allowedBy, reason: .notOpened,
                    text:
                        "the rules need to see the requests to \(request.host), but the authority of intercept.ca may not certify that host"
                ))
            return refuse(.accessDenied)
        case .remain: break
        }
        guard takeTunnelPlace() else { return refuse(.tooManyTunnels) }
        let dialler = TunnelDialler(worker: worker, snapshot: snapshot, for: request, owner: self)
        waiting = .tunnel(dialler)
        if let failure = dialler.begin() { openingFailed(failure) }
    }

    private enum Use {
        case remain, deny
        case open(TunnelTarget)
    }

    /// Whether the tunnel is opened.
    private func opensTunnel() -> Use {
        guard let interceptor = snapshot.interceptor, let host = request.destination?.host else { return .remain }
        // With it, doctor tests whether clients trust the authority.
        if snapshot.isBuiltIn(request) {
            return interceptor.certifies(host)
                ? .open(TunnelTarget(host: host, terms: .anything, use: .open(mayRemain: true))) : .remain
        }
        let rule = snapshot.access.intercept(byRule: allowedBy)
        guard snapshot.interception.concerns(host, rule: rule) else { return .remain }
        let isRefused = worker.shared.leafRefusals.withLock {
            $0.contains(request.leafRefusalKey, now: worker.wallTime)
        }
        let question = InterceptionPolicy.Question(
            host: host, rule: rule, mayRemainTunnel: snapshot.access.mayRemainTunnel(request.access), terms: terms,
            isCertifiable: interceptor.certifies(host), isRefused: isRefused)
        switch snapshot.interception.decide(question) {
        case .remain: return .remain
        case .deny: return .deny
        case .open(let target): return .open(target)
        }
    }

    /// What the client must send first if the tunnel is not opened. The origin inside this process is no way around a rule.
    private var terms: TunnelTerms {
        snapshot.isBuiltIn(request) ? .anything : snapshot.access.tunnelTerms(request.access, allowedBy: allowedBy)
    }

    /// The answer that gives the client its tunnel.
    private func greeting(detail: StaticString) -> [UInt8] {
        var head: [UInt8] = []
        head.reserveCapacity(128)
        head.append("HTTP/1.1 200 Connection established\r\nCache-Status: larder; ")
        head.append(detail)
        head.append("\r\n\r\n")
        stream.authenticationReply?.insert(intoHeadAt: 0, of: &head)
        return stream.tunnelGreeting(head)
    }

    /// Takes a place among the tunnels. Returns false if `limits.tunnels_max` are open already.
    func takeTunnelPlace() -> Bool {
        precondition(tunnelPlace == nil, "an exchange opens one tunnel")
        tunnelPlace = worker.shared.tunnels.take(limit: snapshot.limits.tunnelsMax)
        return tunnelPlace != nil
    }

    private var awaitsTunnel: Bool { if case .tunnel = waiting { true } else { false } }

    func openingFailed(_ failure: OpeningFailure) {
        precondition(awaitsTunnel, "an opener that was cancelled calls nobody")
        waiting = .nothing
        let refusal = OpeningRefusal(failure)
        if let denial = refusal.denial { note(denial) }
        refuse(refusal.refusal)
    }

    func opened(_ transport: consuming Transport, at address: SocketAddress, early: [UInt8]) {
        precondition(awaitsTunnel, "an opener that was cancelled calls nobody")
        waiting = .nothing
        let greeting = greeting(detail: "fwd=method")
        let terms = terms
        if terms != .anything, let host = request.destination?.host {
            return TunnelDoorstep.judge(
                TunnelTarget(host: host, terms: terms, use: .pass), greeting: greeting, stream: stream, worker: worker,
                snapshot: snapshot, request: request, origin: transport, early: early, place: tunnelPlace)
        }
        worker.counters.add(.tunnels)
        stream.account.status = 200
        stream.account.outcome = .tunnel
        TunnelOpener.open(
            stream: stream, worker: worker, origin: transport, greeting: greeting, early: early, place: tunnelPlace,
            request: request)
    }
}
