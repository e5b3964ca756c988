/// Why there is no answer, or not all of it.
public enum ClientError: Error, Sendable, Hashable {
    /// What a request was doing when its time ran out, or when its connection ended.
    public enum Phase: String, Sendable, Hashable {
        /// Finding the address, connecting, and the TLS handshake.
        case connecting
        /// Sending the request, and waiting for the head of the answer.
        case waiting
        /// Receiving the body.
        case receiving
        /// All of it, with the wait for other requests of the client. Only of a time limit.
        case whole
    }

    /// The request cannot be sent as it is. The text says what is wrong.
    case badRequest(String)
    /// The name of the server has no address.
    case unknownHost(String)
    /// No address of the server accepts a connection.
    ///
    /// - Parameter code: the `errno` of the last attempt.
    case cannotConnect(place: String, code: Int32)
    /// The TLS connection could not be made, such as for a certificate that is not trusted.
    case insecure(host: String, reason: String)
    /// The proxy opens no tunnel to the server.
    case noTunnel(status: Int)
    case timedOut(Phase)
    /// What the server sent is not HTTP/1. The reason is one of those of `docs/troubleshooting.md`.
    case notHTTP(reason: String)
    /// The connection ended before the answer was complete.
    case brokeOff(Phase)
    case tooManyRedirects(limit: Int)
    /// As many requests as the client allows are waiting.
    case tooManyRequests(limit: Int)
    /// The body of the request is not available: its file cannot be read, its sequence threw an error, or its length is another than announced.
    case bodyUnavailable(String)
    /// The body of the answer is longer than the program wants.
    case bodyTooLarge(limit: Int)
    /// The body of the answer is not valid gzip, or expands too far.
    case undecodable
    /// The task was cancelled, or the answer was abandoned.
    case cancelled
    /// The client was closed.
    case closed
    /// The engine answers this itself: there is no answer of the server. Only with `.engine`.
    case refused(Refusal)
    /// The configuration of the engine has errors. Each names its file, line and key.
    case badConfiguration([String])
    /// The client cannot start. The text says why.
    case cannotStart(String)
}

extension ClientError {
    /// Why the engine answers a request itself: it may not be made, or no answer of the server can be had.
    public struct Refusal: Sendable, Hashable {
        /// The name of the reason in `docs/troubleshooting.md`, such as `name-not-found`.
        public var reason: String
        /// The status that a client of a proxy would get.
        public var status: Int
        /// The error type of RFC 9209, such as `dns_error`.
        public var error: String
        /// The text of the rule, or what else is known. Otherwise the reason.
        public var details: String
    }
}

extension ClientError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .badRequest(let reason): reason
        case .unknownHost(let host): "there is no host \(host)"
        case .cannotConnect(let place, let code): "\(place): \(systemText(code))"
        case .insecure(let host, let reason): "\(host): \(reason)"
        case .noTunnel(let status): "the proxy opens no tunnel: status \(status)"
        case .timedOut(.connecting): "the server did not accept the connection in time"
        case .timedOut(.waiting): "the server did not answer in time"
        case .timedOut(.receiving): "the body stopped arriving"
        case .timedOut(.whole): "the request took too long"
        case .notHTTP(let reason): "the answer is not HTTP: \(reason)"
        case .brokeOff: "the connection broke off"
        case .tooManyRedirects(let limit): "more than \(limit) redirects"
        case .tooManyRequests(let limit): "\(limit) requests are waiting already"
        case .bodyUnavailable(let reason): "the body of the request is not available: \(reason)"
        case .bodyTooLarge(let limit): "the body is longer than \(limit) bytes"
        case .undecodable: "the body is not valid gzip"
        case .cancelled: "the request was cancelled"
        case .closed: "the client is closed"
        case .refused(let refusal):
            refusal.details == refusal.reason ? refusal.reason : "\(refusal.reason): \(refusal.details)"
        case .badConfiguration(let errors): errors.joined(separator: "\n")
        case .cannotStart(let reason): reason
        }
    }
}
