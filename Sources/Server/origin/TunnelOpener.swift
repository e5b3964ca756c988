import Accounts
import EventLoop
import LimitTables
import Transaction
import Transport

/// Joins a client connection and an origin connection into a tunnel (RFC 9110 §9.3.6, §7.8).
enum TunnelOpener {
    /// Takes the client's connection from its stream and starts a relay.
    ///
    /// The worker owns the relay until the relay ends. The log line and the counters follow then.
    ///
    /// - Parameters:
    ///   - greeting: the head that tells the client that the tunnel is open.
    ///   - early: bytes that the origin sent behind its head.
    ///   - place: the tunnel's place among those that `limits.tunnels_max` bounds. Held until the tunnel ends, like what the request and
    ///     its connection hold of `limits.rules`.
    static func open(
        stream: ClientStream, worker: Worker, origin: consuming Transport, greeting: [UInt8], early: [UInt8],
        place: Occupancy.Place?, request: OwnedRequest
    ) {
        var account = Account()
        let (limits, connection) = (stream.limits, stream.clientPlace.connectionLimits)
        let client = stream.surrender(&account)
        relay(
            client, account, worker: worker, origin: origin, greeting: greeting, early: early, place: place,
            limits: limits, connection: connection, request: request)
    }

    /// Starts a relay between the two connections. `account` is that of the request, which is logged when the relay ends.
    ///
    /// - Parameters:
    ///   - clientEvent: the event that waited for the client's bytes until now, if any.
    ///   - gate: judges what the client sends first. Nil: all is passed on.
    static func relay(
        _ client: consuming SurrenderedConnection, _ account: Account, worker: Worker, origin: consuming Transport,
        greeting: [UInt8], early: [UInt8], place: Occupancy.Place?, limits: HeldLimits?, connection: ConnectionLimits?,
        request: OwnedRequest, clientEvent: consuming IOEvent = IOEvent(), gate: TunnelGate? = nil
    ) {
        let idle = worker.snapshot.configuration.timeouts.tunnelIdle
        let brake = worker.brake(forTunnelOf: request, limits)
        let toOrigin = client.unread
        worker.counters.add(.bytesToClients, greeting.count)
        let tunnel = Tunnel(request, request.provenTunnel(on: worker), startedAt: worker.loop.now)
        let snapshot = worker.snapshot
        if worker.learner != nil { worker.observe(account, request, snapshot) }
        let id = worker.tunnels.insert(tunnel)
        let meter = limits.map { TunnelMeter($0, worker) }
        let ended = { [unowned worker] (end: TunnelEnd) in
            guard let entry = worker.tunnels.remove(id), let tunnel = entry.relay else { return }
            worker.counters.add(.tunnelsClosed)
            // This closure holds the places until here.
            _ = (place, connection)
            var account = account
            let toOrigin = Int(clamping: tunnel.aToB)
            let toClient = Int(clamping: tunnel.bToA)
            worker.counters.add(.bytesTunnelledFromClients, toOrigin)
            worker.counters.add(.bytesTunnelledToClients, toClient)
            account.bodyBytes = toClient
            worker.observeEnd(ofTunnelOf: request, snapshot, toOrigin: toOrigin, toClient: toClient)
            meter?.stop(tunnel)
            if meter?.isCut == true { account.refusal = .budgetSpent }
            if let breaking = TunnelBreak(end) {
                account.isBroken = true
                account.tunnelBreak = breaking
            }
            gate?.conclude(&account)
            if entry.hasLostProof {
                account.isBroken = true
                account.closeReason = .identityEnded
            }
            if worker.log.isOn { worker.log.append(account, request: request) }
            worker.stopIfDrained()
        }
        let relay: any Relay
        // Bytes that are judged must be read.
        if client.transport.isSecured || origin.isSecured || gate != nil {
            clientEvent.clear()
            relay = TransportRelay(
                worker: worker, client: client.release(), origin: origin, greeting: greeting, toOrigin: toOrigin,
                toClient: early,
                idle: idle, brake: brake, gate: gate, finished: ended)
        } else {
            guard let a = client.release().surrender(), let b = origin.surrender() else {
                preconditionFailure("neither connection has TLS")
            }
            relay = unsafe TunnelRelay(
                loop: worker.loop, pipes: worker.pipes, buffer: worker.readBuffer, a: a, aReadable: clientEvent, b: b,
                greeting: greeting, initialAToB: toOrigin, initialBToA: early, idle: idle, brake: brake, finished: ended
            )
        }
        tunnel.relay = relay
        // Before the relay, which may end at once.
        if limits?.hasBudget == true { meter?.start(tunnel) }
        relay.start()
    }
}

extension TunnelBreak {
    /// Nil if neither side has failed.
    init?(_ end: TunnelEnd) {
        switch end {
        case .closed, .idle, .cancelled, .refused: return nil
        case .failed(.a, _): self = .clientReset
        case .failed(.b, _): self = .originReset
        }
    }
}

/// A tunnel that is open.
final class Tunnel {
    let request: OwnedRequest
    let startedAt: MonotonicTime
    fileprivate(set) var relay: (any Relay)!
    /// Who uses the tunnel. Nil: nobody had to prove anything.
    private let proof: ConnectionProof?
    /// It was closed because its client is no longer who it proved to be.
    private(set) var hasLostProof = false

    init(_ request: OwnedRequest, _ proof: ConnectionProof?, startedAt: MonotonicTime) {
        self.request = request
        self.proof = proof
        self.startedAt = startedAt
    }

    /// Closes the tunnel if its client is no longer who it proved to be.
    func reviewProof(on worker: Worker) {
        proof?.review(on: worker, of: request.client) { [weak self] in
            guard let self, !hasLostProof else { return }
            hasLostProof = true
            relay.cancel()
        }
    }

    func report(_ id: TransferID, on worker: Worker) -> TransferReport {
        let isConnect = request.head.method == .connect
        return TransferReport(
            id: id, requestID: worker.text(of: request.id), tunnelID: worker.text(of: request.tunnel),
            uri: isConnect ? Array(request.origin.endpoint.description.utf8) : request.uri,
            method: request.access.methodText, client: request.access.client.map { "\($0)" }, state: .open,
            age: worker.loop.now.duration(since: startedAt), received: relay.bToA, expected: nil, sent: relay.aToB,
            readers: 1,
            isStored: false)
    }
}

/// Moves bytes between a client and an origin, in both directions.
protocol Relay: AnyObject {
    /// Bytes that the origin accepted from the client.
    var aToB: UInt64 { get }
    /// Bytes that the client accepted from the origin, without the head that gives it the tunnel.
    var bToA: UInt64 { get }
    func start()
    func cancel()
}

extension TunnelRelay: Relay {}
