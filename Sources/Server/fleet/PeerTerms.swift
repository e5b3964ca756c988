package import Settings
package import TLS
import EventLoop

/// What a node needs to ask others, and to be asked: `fleet.peers` and `fleet.node.peer`, with the files that they name read.
package struct PeerTerms: Sendable {
    let peers: FleetPeersSetting
    package let listener: FleetListenerSettings
    package let tls: PeerTLS

    package init(peers: FleetPeersSetting, listener: FleetListenerSettings, tls: PeerTLS) {
        precondition(listener.address != nil && listener.tls != nil, "the settings are checked")
        self.peers = peers
        self.listener = listener
        self.tls = tls
    }

    /// The listener for other nodes.
    var listenerSettings: ListenerSettings {
        guard let address = listener.address else { preconditionFailure("the settings are checked") }
        var settings = ListenerSettings(address)
        settings.writtenName = "peers"
        settings.tls = listener.tls
        settings.protocols = [.http1]
        return settings
    }
}

/// What a node shows to others, as server and as client. It is replaced when its files change; connections that exist go on.
package final class PeerTLS: Sendable {
    let server: ListenerTLS
    private let present: Locked<TLSClientContext>

    package init(server: TLSServerContext, client: TLSClientContext) {
        self.server = ListenerTLS(server)
        present = Locked(client)
    }

    var client: TLSClientContext { present.withLock { $0 } }

    package func replace(server: TLSServerContext, client: TLSClientContext) {
        self.server.replace(by: server)
        present.withLock { $0 = client }
    }
}
