import EventLoop

/// Joins a client connection and an origin connection into a tunnel (RFC 9110 §9.3.6, §7.8).
enum TunnelOpener {
    /// Takes the client's socket from its stream and starts a relay. If the client's socket cannot be given away, the client connection and
    /// `origin` are closed.
    ///
    /// The worker owns the relay until the relay ends. The log line and the counters follow then.
    ///
    /// - Parameters:
    ///   - greeting: the head that tells the client that the tunnel is open.
    ///   - early: bytes that the origin sent behind its head.
    ///   - place: the tunnel's place among those that `limits.tunnels_max` bounds. Held until the tunnel ends.
    static func open(
        stream: ClientStream, worker: Worker, origin: consuming Descriptor, greeting: [UInt8], early: [UInt8],
        place: Occupancy.Place?, request: OwnedRequest
    ) {
        var account = Account()
        guard let client = stream.surrender(&account) else { return }
        relay(
            client, account, worker: worker, origin: origin, greeting: greeting, early: early, place: place,
            request: request)
    }

    /// Starts a relay between the two sockets. `account` is that of the request, which is logged when the relay ends.
    static func relay(
        _ client: consuming SurrenderedSocket, _ account: Account, worker: Worker, origin: consuming Descriptor,
        greeting: [UInt8], early: [UInt8], place: Occupancy.Place?, request: OwnedRequest
    ) {
        var account = account
        let early = (client: client.unread, origin: early)
        var identifier: ObjectIdentifier?
        let relay = unsafe TunnelRelay(
            loop: worker.loop, pipes: worker.pipes, buffer: worker.readBuffer,
            a: client.release(), b: origin, initialAToB: early.client, initialBToA: greeting + early.origin,
            idle: worker.snapshot.configuration.timeouts.tunnelIdle
        ) { [unowned worker] _ in
            guard let id = identifier, let tunnel = worker.tunnels.removeValue(forKey: id) else { return }
            worker.counters.add(.tunnelsClosed)
            // This closure holds the place until here.
            _ = place
            let toOrigin = Int(clamping: tunnel.aToB)
            let toClient = Int(clamping: tunnel.bToA)
            worker.counters.add(.bytesTunnelledFromClients, toOrigin)
            worker.counters.add(.bytesTunnelledToClients, toClient)
            account.bodyBytes = toClient
            if worker.log.isOn { worker.log.append(account, request: request) }
            worker.stopIfDrained()
        }
        identifier = ObjectIdentifier(relay)
        precondition(worker.tunnels[ObjectIdentifier(relay)] == nil, "a tunnel is started once")
        worker.tunnels[ObjectIdentifier(relay)] = relay
        relay.start()
    }
}
