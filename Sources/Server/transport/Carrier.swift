import EventLoop

/// Moves the bytes of a client with TLS to and from a plain socket, in front of what needs one: an opened tunnel, in which TLS begins once more.
///
/// The two ends of the pair are like two ends of a connection: when one closes, so does the other. The worker owns it until it ends.
final class Carrier {
    private var relay: TransportRelay!

    func cancel() { relay.cancel() }

    /// A plain connection in place of one with TLS. Others are returned as they are. Nil, and the client's connection is closed, if there are no
    /// descriptors left.
    static func unwrap(_ client: consuming SurrenderedConnection, worker: Worker) -> SurrenderedConnection? {
        guard client.transport.isSecured else { return client }
        guard var pair = SocketPair() else { return nil }
        let unread = client.unread
        let carrier = Carrier()
        let id = worker.carriers.insert(carrier)
        carrier.relay = TransportRelay(
            worker: worker, client: client.release(), origin: Transport(plain: pair.takeEnd()), toOrigin: [],
            toClient: [], idle: worker.snapshot.configuration.timeouts.tunnelIdle, brake: nil
        ) { [unowned worker] _ in
            guard worker.carriers.remove(id) != nil else { return }
            worker.stopIfDrained()
        }
        carrier.relay.start()
        return SurrenderedConnection(Transport(plain: pair.takeEnd()), unread: unread)
    }
}
