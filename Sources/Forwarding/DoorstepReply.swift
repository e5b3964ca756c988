package import Framing
package import Transaction

/// What a client is told that is refused before it has made a request: something that its own protocol has for that.
package enum DoorstepReply {
    package static func bytes(_ objection: DoorstepTerms.Objection, _ found: WireProtocol) -> [UInt8] {
        switch (found, objection) {
        // The alert `handshake_failure` in a record of its own (RFC 8446 §6), which every TLS client understands.
        case (.tls, _): [0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x28]
        // None of the methods is acceptable (RFC 1928 §3).
        case (.socks5, _): [0x05, 0xFF]
        case (.http2, _), (.proxyProtocol, .protocolNotOffered):
            Array("HTTP/1.1 505 HTTP Version Not Supported\r\nConnection: close\r\n\r\n".utf8)
        case (.http1, .tlsRequired): text("This listener is for TLS: write https:// in front of the proxy's address.")
        case (.http1, .proxyHeaderMissing):
            text("This listener takes connections of this client with a PROXY header alone.")
        case (.http1, _): text("HTTP is not offered on this listener.")
        case (.proxyProtocol, _): text("This listener takes no PROXY header of this client.")
        }
    }

    private static func text(_ sentence: String) -> [UInt8] {
        let body = sentence + "\n"
        return Array(
            ("HTTP/1.1 403 Forbidden\r\nProxy-Status: larder; error=http_request_denied\r\n"
                + "Content-Type: text/plain; charset=utf-8\r\nContent-Length: \(body.utf8.count)\r\n"
                + "Connection: close\r\n\r\n\(body)").utf8)
    }
}

extension SocksReply {
    /// What a SOCKS client is told of a refusal (RFC 1928 §6). Most have no code of their own.
    package init(_ refusal: Refusal) {
        self =
            switch refusal {
            case .accessDenied, .destinationForbidden, .tunnelPortForbidden, .authenticationRequired,
                .authenticationBusy, .loopDetected:
                .notAllowed
            case .destinationUnroutable: .networkUnreachable
            case .nameNotFound, .nameTimeout, .nameServersSilent, .connectionTimeout, .hostInvalid: .hostUnreachable
            case .connectionRefused: .connectionRefused
            default: .generalFailure
            }
    }
}
