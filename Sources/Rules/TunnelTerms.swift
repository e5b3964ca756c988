/// What a client must send first in a tunnel whose bytes Larder passes on unread.
package struct TunnelTerms: Sendable, Equatable {
    package var protocols: Protocols
    /// Rules decide by the host: a ClientHello must name the host of the tunnel, and no other.
    package var namesHost: Bool

    package enum Protocols: Sendable, Equatable {
        /// Nothing is looked at.
        case any
        /// TLS, SSH, or a protocol in which the server speaks first. None of them can name another host behind the server, as HTTP can.
        case recognised
        case tls
    }

    package init(_ protocols: Protocols, namesHost: Bool) {
        self.protocols = protocols
        self.namesHost = namesHost
    }

    /// No rule says anything about what is in the tunnel.
    package static let anything = TunnelTerms(.any, namesHost: false)
}

/// `tunnel` of an allow rule.
package enum TunnelProtocols: String, CaseIterable, Sendable {
    case tls, any
}
