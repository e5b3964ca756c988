/// Why the connection of a client ended. The log, the counters and the manual use this list.
///
/// Every connection ends with exactly one of these reasons.
package enum CloseReason: UInt8, CaseIterable, Sendable {
    // The normal ends
    case clientClosed
    case closeRequested
    case idle
    case requestLimitReached
    case becameTunnel
    // Caused by the client
    case clientLeft
    case clientStalled
    case clientTooSlow
    case headTimeout
    case bodyTimeout
    case bodyTooSlow
    case malformedRequest
    case malformedBody
    case requestUnread
    case tunnelRefused
    case tlsNotOffered
    case tlsRequired
    case protocolNotOffered
    case proxyHeaderUntrusted
    case proxyHeaderMissing
    case proxyHeaderMalformed
    case proxyHandshakeFailed
    case clientCertificateRefused
    // In a tunnel whose first bytes are judged
    case malformedHello
    case helloTimeout
    case serverNameMismatch
    case serverNameMissing
    case tlsMissing
    // In a tunnel that is opened
    case protocolNotOpened
    case certificateRefused
    case handshakeFailed
    case identityEnded
    // Caused by the answer
    case endOfBody
    case answerIncomplete
    case answerDamaged
    case answerTooLong
    // Caused by Larder
    case tooManyClients
    case tooManyOfClient
    case overloaded
    case draining
    case stopped

    /// The name in the log and the counters: the case in kebab-case.
    package var name: String {
        var result = ""
        for character in "\(self)".unicodeScalars {
            if character.properties.isUppercase { result += "-" }
            result += character.properties.lowercaseMapping
        }
        return result
    }

    /// One sentence for the manual.
    package var explanation: StaticString {
        switch self {
        case .clientClosed: "The client closed the connection between two requests."
        case .closeRequested:
            "The client asked for one answer only: `Connection: close`, or HTTP/1.0 without keep-alive."
        case .idle: "No further request came for `timeouts.client_idle`."
        case .requestLimitReached: "The connection carried `limits.requests_per_connection_max` requests."
        case .becameTunnel: "CONNECT or a 101 turned the connection into a tunnel, which is counted on its own."
        case .clientLeft:
            "The client closed or reset the connection before it had its whole answer, or within a request."
        case .clientStalled: "The client did not take the bytes of its answer for `timeouts.idle`."
        case .clientTooSlow:
            "The client took the bytes of its answers more slowly than `limits.download_rate_min`; the connection was reset."
        case .headTimeout: "The head of a request was not whole after `timeouts.client_head`; the client got 408."
        case .bodyTimeout: "The client stopped in the middle of a request's body for `timeouts.client_idle`."
        case .bodyTooSlow:
            "The client sent a request's body more slowly than `limits.upload_rate_min`; it got 408 if no answer had begun."
        case .malformedRequest: "A request broke the rules of HTTP/1.1, so nothing behind it can be understood."
        case .malformedBody: "The body of a request was not framed as HTTP/1.1 says."
        case .requestUnread: "The answer was given before the whole request had been read."
        case .tunnelRefused: "CONNECT was refused: what follows on the connection is not HTTP."
        case .tlsNotOffered: "The client began a TLS handshake; this listener does not offer TLS."
        case .tlsRequired: "The client spoke in plain text; this listener demands TLS."
        case .protocolNotOffered:
            "The client spoke HTTP/2, or another protocol that this listener does not offer."
        case .proxyHeaderUntrusted:
            "The client sent a PROXY header, and is not among the addresses in `proxy_protocol` of the listener."
        case .proxyHeaderMissing:
            "The client is among the addresses in `proxy_protocol` of the listener, and sent no PROXY header."
        case .proxyHeaderMalformed: "A PROXY header broke the rules of its protocol, or its checksum was wrong."
        case .proxyHandshakeFailed:
            "The TLS handshake with a client of the proxy failed or took too long; `log.level: debug` says why."
        case .clientCertificateRefused:
            "A client of the proxy has shown no certificate, or one that the authority in `client_ca` did not issue, that has expired or is revoked."
        case .malformedHello:
            "In a tunnel the client began TLS with a message that is no ClientHello, or one of more than 16 KiB."
        case .helloTimeout:
            "In a tunnel the client did not send a whole ClientHello, or a request line where the tunnel is opened, within 5 seconds."
        case .serverNameMismatch:
            "In a tunnel the client asked for another host by SNI than by CONNECT; it got the alert `unrecognized_name`."
        case .serverNameMissing:
            "In a tunnel the client asked for no host by SNI, where the access rules decide by the host; it got the alert `missing_extension`."
        case .tlsMissing:
            "In a tunnel the client spoke another protocol than TLS, which the access rules do not allow there."
        case .protocolNotOpened:
            "In a tunnel to a host of `intercept.hosts` the client speaks a protocol that Larder does not, and the access rules look at what is inside."
        case .certificateRefused:
            "In a tunnel to a host of `intercept.hosts` the client did not accept Larder's certificate: it does not trust its authority."
        case .handshakeFailed:
            "In a tunnel to a host of `intercept.hosts` the TLS handshake with the client failed or took too long."
        case .identityEnded:
            "The log-in with which Larder had opened a tunnel, or the certificate of the client, holds no more: it has expired, or its user, token or entry was removed or changed. In the tunnel the request got 403."
        case .endOfBody: "Only the end of the connection tells an HTTP/1.0 client where its answer ends."
        case .answerIncomplete:
            "The answer broke off and could not be completed; the client learns it by the end of the connection."
        case .answerDamaged: "The stored response turned out to be damaged while it was being sent."
        case .answerTooLong:
            "The body of an answer, whose length was not known, became longer than `response_body` of a rule of `limits.rules` allows."
        case .tooManyClients: "`limits.clients_max` connections were open already."
        case .tooManyOfClient:
            "A rule of `limits.rules` allows so many connections, and the client, or all together, had them open already."
        case .overloaded:
            "Memory or descriptors were about to run out: the connection was idle, or came while Larder accepted no more."
        case .draining:
            "Larder was stopping: the answer under way was complete, or the client was idle, or it sent no request within a second."
        case .stopped: "Larder stopped before the answer was complete."
        }
    }
}
