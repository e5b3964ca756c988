package import Access

/// Why Larder answers a request itself with an error: the one list that the response, the log and the counters share.
///
/// What an origin answers is not here; neither is what a parser refuses (`FramingError` names that itself).
package enum Refusal: UInt8, Error, CaseIterable, Sendable {
    // The client's doing
    case notAProxyRequest
    case hostInvalid
    case accessDenied
    case destinationForbidden
    case tunnelPortForbidden
    case authenticationRequired
    case authenticationBusy
    case loopDetected
    case onlyIfCached
    case malformedRequestBody
    case requestTimeout
    // The next hop's doing (RFC 9209 §2.3)
    case nameNotFound
    case nameTimeout
    case connectionRefused
    case connectionTimeout
    case destinationUnroutable
    case connectionTerminated
    case responseTimeout
    case responseIncomplete
    case responseInvalid
    case tlsCertificate
    case tlsProtocol
    // Ours
    case originQueueFull
    case internalError

    /// The status code the client gets (RFC 9110 §15).
    package var status: UInt16 {
        switch self {
        case .notAProxyRequest, .hostInvalid, .malformedRequestBody: 400
        case .accessDenied, .destinationForbidden, .tunnelPortForbidden: 403
        case .authenticationRequired: 407
        case .requestTimeout: 408
        case .authenticationBusy: 429
        case .loopDetected: 508
        case .onlyIfCached, .connectionTimeout, .responseTimeout, .nameTimeout: 504
        case .nameNotFound, .connectionRefused, .destinationUnroutable, .connectionTerminated: 502
        case .responseIncomplete, .responseInvalid, .tlsCertificate, .tlsProtocol: 502
        case .originQueueFull: 503
        case .internalError: 500
        }
    }

    /// The `error` parameter of `Proxy-Status`, a type registered by RFC 9209 §2.3.
    package var proxyStatusError: StaticString {
        switch self {
        case .notAProxyRequest, .hostInvalid, .malformedRequestBody: "http_request_error"
        case .requestTimeout: "http_request_error"
        case .accessDenied, .tunnelPortForbidden, .authenticationRequired, .authenticationBusy: "http_request_denied"
        case .destinationForbidden: "destination_ip_prohibited"
        case .loopDetected: "proxy_loop_detected"
        case .onlyIfCached: "http_request_error"
        case .nameNotFound: "dns_error"
        case .nameTimeout: "dns_timeout"
        case .connectionRefused: "connection_refused"
        case .connectionTimeout: "connection_timeout"
        case .destinationUnroutable: "destination_ip_unroutable"
        case .connectionTerminated: "connection_terminated"
        case .responseTimeout: "http_response_timeout"
        case .responseIncomplete: "http_response_incomplete"
        case .responseInvalid: "http_protocol_error"
        case .tlsCertificate: "tls_certificate_error"
        case .tlsProtocol: "tls_protocol_error"
        case .originQueueFull: "connection_limit_reached"
        case .internalError: "proxy_internal_error"
        }
    }

    /// One sentence for the person who reads the error page.
    package var explanation: StaticString {
        switch self {
        case .notAProxyRequest:
            "This is a proxy: it wants the whole URI in the request line, as a client sends that was told of a proxy."
        case .hostInvalid: "The host of the request is neither a name nor an address."
        case .accessDenied: "The rules of this proxy do not allow this request."
        case .destinationForbidden: "The name leads to an address that this proxy may not connect to."
        case .tunnelPortForbidden: "This proxy opens no tunnel to that port."
        case .authenticationRequired: "This proxy wants to know who you are."
        case .authenticationBusy: "Too many credentials are being checked; try again in a moment."
        case .loopDetected: "This request has been here before: proxies forward it in a circle."
        case .onlyIfCached:
            "The response is not stored here in a form that may be used, and the request allows nothing else."
        case .malformedRequestBody: "The body of the request is not framed as HTTP/1.1 says."
        case .requestTimeout: "The request did not arrive in time."
        case .nameNotFound: "The name of the host is not known."
        case .nameTimeout: "The name servers did not answer in time."
        case .connectionRefused: "The origin refuses connections."
        case .connectionTimeout: "The origin did not accept a connection in time."
        case .destinationUnroutable: "There is no way to the address of the origin."
        case .connectionTerminated: "The origin closed the connection before it answered."
        case .responseTimeout: "The origin accepted the request but did not answer in time."
        case .responseIncomplete: "The origin broke off its answer."
        case .responseInvalid: "The origin's answer is not valid HTTP."
        case .tlsCertificate: "The origin's certificate is not to be trusted."
        case .tlsProtocol: "No secure connection to the origin could be agreed on."
        case .originQueueFull: "Too many requests wait for that origin already."
        case .internalError: "Larder met a fault of its own."
        }
    }

    /// The name in log and counters: kebab-case.
    package var name: String {
        var result = ""
        for character in "\(self)".unicodeScalars {
            if character.properties.isUppercase { result += "-" }
            result += character.properties.lowercaseMapping
        }
        return result
    }
}

extension Refusal {
    package init(_ denial: Denial) {
        switch denial.reason {
        case .privateDestination: self = .destinationForbidden
        case .connectPort: self = .tunnelPortForbidden
        case .rule, .noRule, .client: self = .accessDenied
        }
    }
}
