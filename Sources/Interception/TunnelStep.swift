import Framing
package import Rules
package import Transaction

/// What becomes of a tunnel to a host that is to be opened, once the client has sent its first bytes.
///
/// The client has its 200 already, so a refusal can only be an alert of TLS (RFC 8446 §6), or the end of the connection.
package enum TunnelStep: Equatable, Sendable {
    /// Read on until so many bytes have arrived.
    case wait(needs: Int)
    /// Read requests as they are: the client speaks HTTP without TLS.
    case plain
    /// Do a TLS handshake with a certificate for this host, then read requests.
    case secure(DestinationHost)
    /// Connect to the origin, and pass on bytes unread.
    case tunnel
    /// Close the connection. Before that, send the alert if there is one.
    case refuse(CloseReason, alert: TLSAlert?)
}

/// Alerts that Larder sends before it has a TLS session (RFC 8446 §6.2, RFC 6066 §3, RFC 7301 §3.2).
package enum TLSAlert: UInt8, Sendable {
    case decodeError = 50
    case internalError = 80
    case unrecognisedName = 112
    case noApplicationProtocol = 120

    /// The alert in a record of its own, as a server sends it in place of its first message.
    package var record: [UInt8] { [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, rawValue] }
}

/// A tunnel that is to be opened.
package struct TunnelTarget: Equatable, Sendable {
    /// The host that CONNECT named.
    package let host: DestinationHost
    /// No rule asks for anything inside the tunnel, so a tunnel that Larder cannot open may remain one.
    ///
    /// Where this is false, a client could escape the rules by speaking something that Larder does not read.
    package let mayRemainTunnel: Bool

    package init(host: DestinationHost, mayRemainTunnel: Bool) {
        self.host = host
        self.mayRemainTunnel = mayRemainTunnel
    }

    /// Decides by the first bytes.
    package func step(after bytes: FirstBytes) -> TunnelStep {
        switch bytes {
        case .undecided(let needs): .wait(needs: needs)
        case .http1: .plain
        case .other: mayRemainTunnel ? .tunnel : .refuse(.protocolNotOpened, alert: nil)
        case .malformedHello: .refuse(.malformedHello, alert: .decodeError)
        case .longHello: .refuse(.malformedHello, alert: .decodeError)
        case .tls(let hello): step(after: hello.serverName, hello.protocols)
        }
    }

    /// Decides when the time for the first bytes is over. Where the server speaks first, as with SSH or SMTP, a client sends nothing.
    package func stepAtTimeLimit(received count: Int) -> TunnelStep {
        count == 0 && mayRemainTunnel ? .tunnel : .refuse(.helloTimeout, alert: nil)
    }

    private func step(after serverName: [UInt8]?, _ protocols: [[UInt8]]?) -> TunnelStep {
        if let serverName, !isOwnName(serverName) { return .refuse(.serverNameMismatch, alert: .unrecognisedName) }
        // Without ALPN the client expects HTTP/1.1 (RFC 9110 §4.3.4 leaves it no other version).
        if let protocols, !protocols.contains(Array("http/1.1".utf8)) {
            return mayRemainTunnel ? .tunnel : .refuse(.protocolNotOpened, alert: .noApplicationProtocol)
        }
        return .secure(host)
    }

    /// Whether SNI names the host of CONNECT: byte by byte but for case. A trailing dot is not allowed there (RFC 6066 §3).
    private func isOwnName(_ serverName: [UInt8]) -> Bool {
        serverName.last != UInt8(ascii: ".") && DestinationHost(serverName) == host
    }
}
