import Access
import EventLoop
import Forwarding
import Interception
import Routing
import Rules
import Transaction
import Transport

/// CONNECT: a tunnel to the destination that the request names (RFC 9110 §9.3.6).
extension Exchange: LinkOpenerOwner {
    func tunnel() {
        if awaitsServerName {
            return TunnelDoorstep.hear(
                greeting: greeting(detail: "fwd=method"), stream: stream, worker: worker, snapshot: snapshot,
                request: request)
        }
        switch TunnelChoice(request, allowedBy: allowedBy, snapshot, worker) {
        case .open(let target):
            return TunnelDoorstep.open(
                target, greeting: greeting(detail: "detail=opened"), stream: stream, worker: worker,
                snapshot: snapshot, request: request)
        case .deny(let denial):
            note(denial)
            return refuse(.accessDenied)
        case .remain: break
        }
        guard takeTunnelPlace() else { return refuse(.tooManyTunnels) }
        let dialler = TunnelDialler(worker: worker, snapshot: snapshot, for: request, owner: self)
        waiting = .tunnel(dialler)
        if let failure = dialler.begin() { openingFailed(failure) }
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
        let terms = TunnelChoice.terms(request, allowedBy: allowedBy, snapshot)
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
