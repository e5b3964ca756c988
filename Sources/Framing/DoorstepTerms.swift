/// What a listener offers: which protocols clients may speak on it, told apart by their first bytes.
package struct DoorstepTerms: Equatable, Sendable {
    package var http1: Bool
    package var socks5: Bool
    package var tls: TLSUse

    package enum TLSUse: Sendable {
        /// There is no certificate.
        case none
        /// Clients may speak TLS or not.
        case offered
        /// What comes in plain text is refused.
        case required
    }

    package init(http1: Bool = true, socks5: Bool = true, tls: TLSUse = .none) {
        self.http1 = http1
        self.socks5 = socks5
        self.tls = tls
    }

    /// Where in a connection the bytes were read.
    package enum Stage: Equatable, Sendable {
        /// At its beginning.
        ///
        /// - Parameter isTrusted: the peer is one that has to send a PROXY header. Others may not.
        case beginning(isTrusted: Bool)
        case behindProxyHeader
        case insideTLS
    }

    package enum Step: Equatable, Sendable {
        /// More bytes are needed.
        case wait
        case http1, socks5, handshake, proxyHeader
        case refuse(Objection, WireProtocol)
    }

    /// Why a client is refused before it has made a request.
    package enum Objection: Sendable {
        case tlsNotOffered, tlsRequired, protocolNotOffered
        /// The peer is none of those that may speak for others.
        case proxyHeaderUntrusted
        /// The peer is one that has to say for whom it speaks.
        case proxyHeaderMissing
    }

    /// - Parameter bytes: everything that was read at this stage.
    package func step(after bytes: borrowing Span<UInt8>, at stage: Stage) -> Step {
        guard let found = recognise(bytes) else { return .wait }
        switch (found, stage) {
        case (.proxyProtocol, .beginning(isTrusted: true)): return .proxyHeader
        case (_, .beginning(isTrusted: true)): return .refuse(.proxyHeaderMissing, found)
        case (.proxyProtocol, .beginning(isTrusted: false)): return .refuse(.proxyHeaderUntrusted, found)
        case (.proxyProtocol, _), (.http2, _): return .refuse(.protocolNotOffered, found)
        case (.tls, .insideTLS): return .refuse(.protocolNotOffered, found)
        case (.tls, _): return tls == .none ? .refuse(.tlsNotOffered, found) : .handshake
        case (.http1, _), (.socks5, _):
            if tls == .required, stage != .insideTLS { return .refuse(.tlsRequired, found) }
            guard found == .http1 ? http1 : socks5 else { return .refuse(.protocolNotOffered, found) }
            return found == .http1 ? .http1 : .socks5
        }
    }
}
