package import Access
package import Limiting

/// Why Larder answers a request with an error of its own. The response, the log, the counters and the manual use this list.
///
/// An error that an origin sends is not a refusal. Neither is a violation that a parser finds (`FramingError`).
package enum Refusal: UInt8, Error, CaseIterable, Sendable {
    // Caused by the client, or by the rules of this proxy
    case notAProxyRequest
    case hostInvalid
    case accessDenied
    case destinationForbidden
    case tunnelPortForbidden
    case authenticationRequired
    case authenticationBusy
    case authenticationUnavailable
    case directoryUnavailable
    case tooYoung
    case releaseUndated
    case loopDetected
    case onlyIfCached
    case credentialMisplaced
    case malformedRequestBody
    case lengthRequired
    case requestTimeout
    case misdirected
    case requestRateReached
    case concurrencyReached
    case budgetSpent
    case contentTooLarge
    case responseTooLarge
    // Caused by the origin, or by the connection to it (RFC 9209 §2.3)
    case nameNotFound
    case nameTimeout
    case nameServersSilent
    case connectionRefused
    case connectionTimeout
    case destinationUnroutable
    case connectionTerminated
    case responseTimeout
    case responseIncomplete
    case responseInvalid
    case originAsksForProxyLogIn
    case digestMismatch
    case redirectLoop
    case tooManyRedirects
    case tlsCertificate
    case tlsPin
    case tlsProtocol
    case clientCertificateRequired
    case clientCertificateRefused
    case originQueueFull
    case originUnavailable
    case nextProxyUnreachable
    case nextProxyRefused
    case nextProxyLogIn
    case nextProxyLogInIncomplete
    case nextProxyInvalid
    case routeUnknown
    case credentialRefused
    case credentialUnavailable
    case credentialLogInIncomplete
    case originUnproven
    case credentialHidden
    // Caused by Larder
    case tooManyRequests
    case tooManyTunnels
    case sharedLimitReached
    case overloaded
    case transferCancelled
    case internalError

    /// Who caused an error. `larder stats` and the log count errors of origins separately.
    package enum Cause: Sendable { case client, policy, origin, larder }

    /// Everything about one case.
    private struct Row {
        let name: StaticString
        let status: UInt16
        let proxyStatusError: StaticString
        let cause: Cause
        let explanation: StaticString

        init(
            _ name: StaticString, _ status: UInt16, _ proxyStatusError: StaticString, _ cause: Cause,
            _ explanation: StaticString
        ) {
            self.name = name
            self.status = status
            self.proxyStatusError = proxyStatusError
            self.cause = cause
            self.explanation = explanation
        }
    }

    /// The table of all refusals. Nothing else defines their names and meanings.
    private var row: Row {
        switch self {
        case .notAProxyRequest:
            Row(
                "not-a-proxy-request", 400, "http_request_error", .client,
                """
                This is a proxy, but the request names only a path, as if this were a web server. Enter this address as \
                the HTTP proxy in the settings of your client (or set http_proxy), then open the original URL.
                """)
        case .hostInvalid:
            Row(
                "host-invalid", 400, "http_request_error", .client,
                "The host in the URL is neither a valid name nor a valid IP address. Check the URL.")
        case .accessDenied:
            Row(
                "access-denied", 403, "http_request_denied", .policy,
                """
                The access rules of this proxy do not allow this request. If you need it, ask the administrator of \
                the proxy.
                """)
        case .destinationForbidden:
            Row(
                "destination-forbidden", 403, "destination_ip_prohibited", .policy,
                """
                This host has an address that the proxy must not connect to. If you need it, ask the administrator \
                of the proxy to allow the address.
                """)
        case .tunnelPortForbidden:
            Row(
                "tunnel-port-forbidden", 403, "http_request_denied", .policy,
                """
                This proxy does not open tunnels to that port. If you need it, ask the administrator of the proxy to \
                allow the port.
                """)
        case .authenticationRequired:
            Row(
                "authentication-required", 407, "http_request_denied", .policy,
                "This proxy requires a user name and a password. Enter them in the proxy settings of your client.")
        case .authenticationBusy:
            Row(
                "authentication-busy", 429, "http_request_denied", .policy,
                """
                The proxy cannot check this password now: too many checks are waiting, or this client has sent too \
                many wrong passwords, or others have with its name. Wait a moment, then try again.
                """)
        case .authenticationUnavailable:
            Row(
                "authentication-unavailable", 503, "proxy_internal_error", .policy,
                """
                The proxy cannot check who you are now: what it needs for that cannot be reached. Your credentials may \
                be right. Try again later, or tell the administrator of the proxy.
                """)
        case .directoryUnavailable:
            Row(
                "directory-unavailable", 503, "proxy_internal_error", .policy,
                """
                The proxy cannot check your password now: the directory of users does not answer. Your password may be \
                right. Try again later, or tell the administrator of the proxy.
                """)
        case .tooYoung:
            // 403, because no other request and no credentials change it. Nothing tells that to clients in a field: `Retry-After` has a meaning
            // for a 503, a 429 and redirects only (RFC 9110 §10.2.3).
            Row(
                "too-young", 403, "http_request_denied", .policy,
                """
                This proxy gives out releases only when they have reached an age, so that malicious ones are found before. Use an \
                older version for now. If you need this one, ask the administrator of the proxy for an exception.
                """)
        case .releaseUndated:
            Row(
                "release-undated", 403, "http_request_denied", .policy,
                """
                This proxy gives out releases only when they have reached an age, and the age of this one cannot be told. If you \
                need it, ask the administrator of the proxy for an exception.
                """)
        case .loopDetected:
            Row(
                "loop-detected", 508, "proxy_loop_detected", .client,
                """
                This request has already passed through this proxy. Another proxy, or the name of the host, leads \
                back here; one of them must change.
                """)
        case .onlyIfCached:
            Row(
                "only-if-cached", 504, "http_request_error", .client,
                """
                The cache holds no response that this request may get, and the request or a rule does not let the \
                proxy ask the origin.
                """)
        case .credentialMisplaced:
            Row(
                "credential-misplaced", 403, "http_request_denied", .policy,
                """
                This proxy replaces placeholders by credentials, and only where the administrator of the proxy has said so. Here \
                a placeholder stands in another place or goes to another host, it has ended, or the request has a credential \
                of its own.
                """)
        case .malformedRequestBody:
            Row(
                "malformed-request-body", 400, "http_request_error", .client,
                "The body of the request breaks the rules of HTTP/1.1. The client that sent it has a fault.")
        case .lengthRequired:
            Row(
                "length-required", 411, "http_request_error", .client,
                """
                The origin is asked in HTTP/1.0, where a request needs Content-Length, and this one does not say how long its \
                body is. The administrator of this proxy has set that for this origin.
                """)
        case .requestTimeout:
            Row(
                "request-timeout", 408, "http_request_error", .client,
                "The client took too long to send its request. Try again.")
        case .nameNotFound:
            Row(
                "name-not-found", 502, "dns_error", .origin,
                "The name of the host does not exist. Check the spelling of the URL.")
        case .nameTimeout:
            Row(
                "name-timeout", 504, "dns_timeout", .origin,
                "The name servers did not tell the address of the host in time. Try again.")
        case .nameServersSilent:
            Row(
                "name-servers-silent", 504, "dns_timeout", .origin,
                """
                The name servers have not told the address of the host lately, so the proxy does not ask them again for a \
                moment. Try again in a few seconds.
                """)
        case .connectionRefused:
            Row(
                "connection-refused", 502, "connection_refused", .origin,
                "The origin refused the connection: no server accepts connections on that port.")
        case .connectionTimeout:
            Row(
                "connection-timeout", 504, "connection_timeout", .origin,
                "The origin did not accept a connection in time. It may be down, or a firewall may be in the way.")
        case .destinationUnroutable:
            Row(
                "destination-unroutable", 502, "destination_ip_unroutable", .origin,
                "The proxy has no network route to the address of the origin.")
        case .connectionTerminated:
            Row(
                "connection-terminated", 502, "connection_terminated", .origin,
                "The origin closed the connection before it answered.")
        case .responseTimeout:
            Row(
                "response-timeout", 504, "http_response_timeout", .origin,
                "The origin took the request but did not answer in time.")
        case .responseIncomplete:
            Row(
                "response-incomplete", 502, "http_response_incomplete", .origin,
                "The origin broke off in the middle of its response.")
        case .responseInvalid:
            Row(
                "response-invalid", 502, "http_protocol_error", .origin,
                "The response of the origin is not valid HTTP.")
        case .originAsksForProxyLogIn:
            Row(
                "origin-asks-for-proxy-log-in", 502, "http_protocol_error", .origin,
                """
                The origin answered as if it were your proxy, and asked for the name and the password that you have for the proxy. \
                This proxy does not pass the question on.
                """)
        case .digestMismatch:
            Row(
                "digest-mismatch", 502, "http_protocol_error", .origin,
                "The content that the origin sent does not have the digest that it should have.")
        case .redirectLoop:
            Row(
                "redirect-loop", 502, "http_protocol_error", .origin,
                """
                This proxy follows redirects for you here, and they led back to an address where they had been before. Origins \
                that want to set a cookie first do that, for example.
                """)
        case .tooManyRedirects:
            Row(
                "too-many-redirects", 502, "http_protocol_error", .origin,
                """
                This proxy follows redirects for you here, and there were more of them than the administrator of the proxy \
                allows.
                """)
        case .tlsCertificate:
            Row(
                "tls-certificate", 502, "tls_certificate_error", .origin,
                "The proxy does not trust the certificate of the origin.")
        case .tlsPin:
            Row(
                "tls-pin", 502, "tls_certificate_error", .origin,
                """
                The certificate of the origin has another public key than those that the administrator of the proxy has pinned. \
                Either the origin has a new key, or somebody stands between it and the proxy.
                """)
        case .tlsProtocol:
            Row(
                "tls-protocol", 502, "tls_protocol_error", .origin,
                "The proxy and the origin could not agree on a secure connection.")
        case .clientCertificateRequired:
            Row(
                "client-certificate-required", 502, "tls_alert_received", .origin,
                """
                The origin wants a certificate of the client, and the proxy has none to show. Your client can show its own \
                only through a tunnel that the proxy does not open: ask the administrator of the proxy for that.
                """)
        case .clientCertificateRefused:
            Row(
                "client-certificate-refused", 502, "tls_alert_received", .origin,
                """
                The origin refused the certificate that the proxy has shown. The administrator of the proxy can look whether it \
                has expired, and whether it is the one that the origin expects.
                """)
        case .originQueueFull:
            Row(
                "origin-queue-full", 503, "connection_limit_reached", .origin,
                "Too many requests are already waiting for this origin. Wait a moment, then try again.")
        case .originUnavailable:
            Row(
                "origin-unavailable", 503, "destination_unavailable", .origin,
                """
                The origin has not accepted connections lately, so the proxy does not try again for a moment. Wait as long as \
                Retry-After says, then try again.
                """)
        case .nextProxyUnreachable:
            Row(
                "next-proxy-unreachable", 502, "destination_unavailable", .origin,
                """
                This proxy reaches the origin through another proxy, and that one does not work: it has no address, does not \
                accept connections, or does not speak the TLS that its URL promises. The administrator of this proxy finds its \
                name in the log.
                """)
        case .nextProxyRefused:
            Row(
                "next-proxy-refused", 502, "destination_unavailable", .origin,
                """
                This proxy reaches the origin through another proxy, and that one refused to open a connection to the origin. \
                The administrator of this proxy finds its answer in the log.
                """)
        case .nextProxyLogIn:
            Row(
                "next-proxy-log-in", 502, "proxy_configuration_error", .larder,
                """
                This proxy reaches the origin through another proxy, and that one does not accept the user and the password of \
                this proxy, or wants some that it does not have. The administrator of this proxy must mend them.
                """)
        case .nextProxyLogInIncomplete:
            Row(
                "next-proxy-log-in-incomplete", 502, "proxy_configuration_error", .larder,
                """
                This proxy reaches the origin through another proxy, and logging in there with NTLM or Negotiate did not come to \
                its end. The administrator of this proxy finds the reason in the log.
                """)
        case .nextProxyInvalid:
            Row(
                "next-proxy-invalid", 502, "http_protocol_error", .origin,
                """
                This proxy reaches the origin through another proxy, and the answer of that one is not what its URL promises, \
                HTTP or SOCKS.
                """)
        case .routeUnknown:
            Row(
                "route-unknown", 502, "proxy_configuration_error", .larder,
                """
                A PAC file says through which proxy this origin is reached, and it failed for this one. The administrator of this \
                proxy finds the reason in the log.
                """)
        case .credentialRefused:
            Row(
                "credential-refused", 502, "proxy_configuration_error", .larder,
                """
                This proxy logs in to the origin with credentials of its own, and the origin does not accept them for this \
                resource. The administrator of this proxy finds the credential's name in the log.
                """)
        case .credentialUnavailable:
            Row(
                "credential-unavailable", 502, "proxy_configuration_error", .larder,
                """
                This proxy logs in to the origin with credentials of its own, and cannot read them, or they would have to cover \
                a body that is longer than it keeps, or in a content coding. The administrator of this proxy finds the reason in \
                the log.
                """)
        case .credentialLogInIncomplete:
            Row(
                "credential-log-in-incomplete", 502, "proxy_configuration_error", .larder,
                """
                This proxy logs in to the origin with credentials of its own, with NTLM or Negotiate, and the log-in did not come \
                to its end. The administrator of this proxy finds the reason in the log.
                """)
        case .originUnproven:
            Row(
                "origin-unproven", 502, "http_protocol_error", .origin,
                """
                This proxy logs in to the origin with Negotiate, and the origin's part of that does not prove that it is the \
                server that it claims to be. Its response is not passed on.
                """)
        case .misdirected:
            Row(
                "misdirected", 421, "http_request_error", .client,
                "This connection leads to one origin, and the request names another one.")
        case .credentialHidden:
            Row(
                "credential-hidden", 502, "http_protocol_error", .origin,
                """
                The proxy cannot see whether the origin's response contains the credential that it has sent for you, or a new \
                one, and does not pass it on: it is compressed, too long, or of a type that the proxy does not read.
                """)
        case .tooManyRequests:
            Row(
                "too-many-requests", 503, "http_request_denied", .larder,
                "The proxy handles as many requests as it may at once. Try again in a moment.")
        case .tooManyTunnels:
            Row(
                "too-many-tunnels", 503, "http_request_denied", .larder,
                "The proxy has as many tunnels open as it may have at once. Try again in a moment.")
        case .requestRateReached:
            Row(
                "request-rate-reached", 429, "http_request_denied", .policy,
                """
                This client has sent as many requests as it may in this time. Wait as long as Retry-After says, then try again. \
                Downloads with fewer requests at once may help.
                """)
        case .concurrencyReached:
            Row(
                "concurrency-reached", 429, "http_request_denied", .policy,
                """
                This client has as many requests under way as it may at once. Try again when some of them have ended, or let the \
                client send fewer at once.
                """)
        case .budgetSpent:
            Row(
                "budget-spent", 429, "http_request_denied", .policy,
                """
                This client has used up the bytes that it may have in this hour, day or week. Wait as long as Retry-After says, then \
                try again, or ask the administrator of the proxy.
                """)
        case .contentTooLarge:
            Row(
                "content-too-large", 413, "http_request_error", .policy,
                "The request is longer than the administrator of this proxy allows here.")
        case .responseTooLarge:
            Row(
                "response-too-large", 502, "http_response_body_size", .policy,
                "The response is longer than the administrator of this proxy allows here.")
        case .sharedLimitReached:
            Row(
                "shared-limit-reached", 503, "http_request_denied", .larder,
                """
                All clients of this proxy together have what they may at once. Wait as long as Retry-After says, then try again.
                """)
        case .overloaded:
            Row(
                "overloaded", 503, "http_request_denied", .larder,
                "The proxy is about to run out of memory or descriptors. Try again in a moment.")
        case .transferCancelled:
            Row(
                "transfer-cancelled", 503, "http_request_denied", .larder,
                "The administrator of this proxy has ended this transfer.")
        case .internalError:
            Row(
                "internal-error", 500, "proxy_internal_error", .larder,
                "The proxy met an internal error. Please report it to its administrator.")
        }
    }

    /// The name in the log, in the counters and in `detail` of `Cache-Status`, in kebab-case.
    package var name: String { "\(row.name)" }

    /// The status code that the client gets (RFC 9110 §15).
    package var status: UInt16 { row.status }

    /// The `error` parameter of `Proxy-Status`, a type that RFC 9209 §2.3 registers.
    package var proxyStatusError: StaticString { row.proxyStatusError }

    package var cause: Cause { row.cause }

    /// Whether the origin or the connection to it failed. The request counts as failed then, and not as refused.
    package var isOfOrigin: Bool { row.cause == .origin }

    /// The value of `Retry-After` in seconds, for what is over by itself (RFC 9110 §10.2.3). Nil: none.
    package var retryAfter: Int? {
        switch self {
        case .originQueueFull, .tooManyRequests, .tooManyTunnels, .overloaded: 1
        // So long an address waits at most that failed to authenticate (`FailureCounts`).
        case .authenticationBusy: 10
        case .authenticationUnavailable, .directoryUnavailable: 5
        default: nil
        }
    }

    /// What happened and what to do, for the person who reads the error page.
    package var explanation: StaticString { row.explanation }
}

extension Refusal {
    /// A client's own limit is a 429, one that all share a 503: nothing that this client does differently would have helped.
    package init(_ excess: LimitExcess) {
        let isOwn = excess.bucket.subject.isOfClient
        switch excess.figure {
        case .requests: self = isOwn ? .requestRateReached : .sharedLimitReached
        case .concurrent: self = isOwn ? .concurrencyReached : .sharedLimitReached
        case .budget: self = isOwn ? .budgetSpent : .sharedLimitReached
        case .requestBody, .requestSize: self = .contentTooLarge
        case .responseBody: self = .responseTooLarge
        }
    }

    package init(_ denial: Denial) {
        switch denial.reason {
        case .privateDestination, .adminServer, .ownListener, .nextProxy: self = .destinationForbidden
        case .connectPort: self = .tunnelPortForbidden
        case .credential: self = .credentialMisplaced
        case .notAuthenticated: self = denial.asksForCredentials ? .authenticationRequired : .accessDenied
        case .rule, .noRule, .hostNotAllowed, .addressNotAllowed, .portNotAllowed, .methodNotAllowed, .pathNotAllowed,
            .requestNotAllowed, .userNotAllowed, .clientNotAllowed, .client, .notOpened:
            self = .accessDenied
        }
    }
}
