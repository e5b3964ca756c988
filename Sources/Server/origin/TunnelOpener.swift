import EventLoop

/// Turns a client connection and an origin connection into a tunnel (RFC 9110 §9.3.6, §7.8).
enum TunnelOpener {
    /// - Parameters:
    ///   - greeting: the head that tells the client of the tunnel.
    ///   - early: bytes of the origin that came with its head.
    static func open(
        stream: ClientStream, worker: Worker, origin: consuming Descriptor, greeting: [UInt8], early: [UInt8],
        place: Occupancy.Place?, request: OwnedRequest
    ) {
        var account = Account()
        guard let client = stream.surrender(&account) else { return }
        let early = (client: client.unread, origin: early)
        var identifier: ObjectIdentifier?
        let relay = unsafe TunnelRelay(
            loop: worker.loop, pipes: worker.pipes, buffer: worker.readBuffer,
            a: client.release(), b: origin, initialAToB: early.client, initialBToA: greeting + early.origin,
            idle: worker.snapshot.configuration.timeouts.tunnelIdle
        ) { [unowned worker] _ in
            guard let id = identifier, let tunnel = worker.tunnels.removeValue(forKey: id) else { return }
            worker.counters.add(.tunnelsClosed)
            // Held until here: the tunnel is one of those that are bounded.
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
        worker.tunnels[ObjectIdentifier(relay)] = relay
        relay.start()
    }
}
