import Access
import EventLoop
import Interception
import Routing
import Transaction

/// CONNECT: a tunnel to the destination that the request names (RFC 9110 §9.3.6).
extension Exchange: LinkOpenerOwner {
    func tunnel() {
        switch opensTunnel() {
        case .open(let target, let interceptor):
            return TunnelDoorstep.open(
                target, stream: stream, worker: worker, snapshot: snapshot, interceptor: interceptor, request: request)
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
        case open(TunnelTarget, Interceptor)
    }

    /// Whether the tunnel is opened.
    private func opensTunnel() -> Use {
        guard let interceptor = snapshot.interceptor, let host = request.destination?.host else { return .remain }
        // With it, doctor tests whether clients trust the authority.
        if snapshot.isBuiltIn(request) {
            return interceptor.certifies(host)
                ? .open(TunnelTarget(host: host, mayRemainTunnel: true), interceptor) : .remain
        }
        let rule = snapshot.access.intercept(byRule: allowedBy)
        guard snapshot.interception.concerns(host, rule: rule) else { return .remain }
        let isRefused = worker.shared.leafRefusals.withLock {
            $0.contains(request.leafRefusalKey, now: worker.wallTime)
        }
        let question = InterceptionPolicy.Question(
            host: host, rule: rule, mayRemainTunnel: snapshot.access.mayRemainTunnel(request.access),
            isCertifiable: interceptor.certifies(host), isRefused: isRefused)
        switch snapshot.interception.decide(question) {
        case .remain: return .remain
        case .deny: return .deny
        case .open(let target): return .open(target, interceptor)
        }
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
        worker.counters.add(.tunnels)
        stream.account.status = 200
        stream.account.outcome = .tunnel
        TunnelOpener.open(
            stream: stream, worker: worker, origin: transport,
            greeting: stream.tunnelGreeting(
                Array("HTTP/1.1 200 Connection established\r\nCache-Status: larder; fwd=method\r\n\r\n".utf8)),
            early: early, place: tunnelPlace, request: request)
    }
}
