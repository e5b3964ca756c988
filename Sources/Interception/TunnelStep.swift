import Framing
package import Rules
package import Transaction

/// What becomes of a tunnel once the client has sent its first bytes.
///
/// The client has its 200 already, so a refusal can only be an alert of TLS (RFC 8446 §6), or the end of the connection.
package enum TunnelStep: Equatable, Sendable {
    /// Read on until so many bytes have arrived.
    case wait(needs: Int)
    /// Read requests as they are: the client speaks HTTP without TLS.
    case plain
    /// Do a TLS handshake with a certificate for this host, then read requests.
    case secure(DestinationHost)
    /// Pass on bytes unread, between the client and the origin.
    case tunnel
    /// Close the connection. Before that, send the alert if there is one.
    case refuse(CloseReason, alert: TLSAlert?)
}

/// Alerts that Larder sends before it has a TLS session (RFC 8446 §6.2, RFC 6066 §3, RFC 7301 §3.2).
package enum TLSAlert: UInt8, Sendable {
    case illegalParameter = 47
    case decodeError = 50
    case internalError = 80
    case missingExtension = 109
    case unrecognisedName = 112
    case noApplicationProtocol = 120

    /// The alert in a record of its own, as a server sends it in place of its first message.
    package var record: [UInt8] { [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, rawValue] }
}

/// A tunnel whose first bytes are judged, however the client asked for it.
package struct TunnelTarget: Equatable, Sendable {
    /// The host that the client named when it asked for the tunnel.
    package let host: DestinationHost
    package let terms: TunnelTerms
    package let use: Use

    package enum Use: Equatable, Sendable {
        /// The bytes are passed on unread, on the terms above.
        case pass
        /// The tunnel is opened (TLS interception).
        ///
        /// - Parameter mayRemain: no rule asks for anything inside the tunnel, so a tunnel that Larder cannot open may remain one, on the terms above.
        ///   Where this is false, a client could escape the rules by speaking something that Larder does not read.
        case open(mayRemain: Bool)
    }

    package init(host: DestinationHost, terms: TunnelTerms, use: Use) {
        self.host = host
        self.terms = terms
        self.use = use
    }

    /// Decides by the client's first bytes.
    package func step(after bytes: FirstBytes) -> TunnelStep {
        switch bytes {
        case .undecided(let needs): .wait(needs: needs)
        case .malformedHello: .refuse(.malformedHello, alert: .decodeError)
        case .longHello: .refuse(.malformedHello, alert: .decodeError)
        case .tls(let hello): use == .pass ? passed(hello) : opened(hello)
        case .http1: use == .pass ? passed(isRecognised: false) : .plain
        case .ssh: passed(isRecognised: true)
        case .other: passed(isRecognised: false)
        }
    }

    /// Whether the origin may speak before the client does: whether `stepWhenOriginSpeaks` can be anything but a refusal.
    package var hearsOrigin: Bool { use == .pass && terms.protocols != .tls }

    /// Decides when the origin has spoken first, as with SMTP: a server of TLS or of HTTP waits for its client.
    package var stepWhenOriginSpeaks: TunnelStep {
        hearsOrigin ? .tunnel : .refuse(.tlsMissing, alert: nil)
    }

    /// Decides when the time for the first bytes is over. Where the tunnel was to be opened, no origin is connected yet that could speak first: then
    /// a client that sends nothing may be waiting for it.
    package func stepAtTimeLimit(received count: Int) -> TunnelStep {
        if count == 0, use == .open(mayRemain: true), terms.protocols == .any { return .tunnel }
        return .refuse(.helloTimeout, alert: nil)
    }

    // MARK: a tunnel that is opened

    private func opened(_ hello: ClientHello) -> TunnelStep {
        if let name = hello.serverName, !isOwnName(name) {
            return .refuse(.serverNameMismatch, alert: .unrecognisedName)
        }
        // Without ALPN the client expects HTTP/1.1 (RFC 9110 §4.3.4 leaves it no other version).
        guard let protocols = hello.protocols, !protocols.contains(Array("http/1.1".utf8)) else { return .secure(host) }
        return mayRemain ? passed(hello) : .refuse(.protocolNotOpened, alert: .noApplicationProtocol)
    }

    private var mayRemain: Bool { use != .open(mayRemain: false) }

    // MARK: a tunnel that is passed on

    private func passed(_ hello: ClientHello) -> TunnelStep {
        guard terms.namesHost else { return .tunnel }
        // The server would read the name in here, and so does Larder, but no client sends such a hello.
        if hello.encryptedHello == .inner { return .refuse(.malformedHello, alert: .illegalParameter) }
        guard let name = hello.serverName else {
            // An address cannot be a server name (RFC 6066 §3), so none is sent for it.
            return host.address == nil ? .refuse(.serverNameMissing, alert: .missingExtension) : .tunnel
        }
        // If a hello is encrypted in this one, its name is hidden. The name outside is then that of the server which decrypts it
        // (RFC 9849 §6.1): if that is the host itself, nothing is hidden from the rules but which of its own names is meant.
        return isOwnName(name) ? .tunnel : .refuse(.serverNameMismatch, alert: .unrecognisedName)
    }

    /// - Parameter isRecognised: the protocol cannot ask for another host.
    private func passed(isRecognised: Bool) -> TunnelStep {
        guard mayRemain else { return .refuse(.protocolNotOpened, alert: nil) }
        switch terms.protocols {
        case .any: return .tunnel
        case .recognised: return isRecognised ? .tunnel : .refuse(.tlsMissing, alert: nil)
        case .tls: return .refuse(.tlsMissing, alert: nil)
        }
    }

    /// Whether SNI names the host of the tunnel: byte by byte but for case. A trailing dot is not allowed there (RFC 6066 §3).
    private func isOwnName(_ serverName: [UInt8]) -> Bool {
        serverName.last != UInt8(ascii: ".") && DestinationHost(serverName) == host
    }
}
