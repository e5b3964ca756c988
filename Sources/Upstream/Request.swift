import Requesting

/// A request, as a program describes it.
public struct Request: Sendable {
    /// A method (RFC 9110 §9). Any token but CONNECT can be sent.
    public struct Method: Sendable, Hashable, ExpressibleByStringLiteral {
        public var text: String

        public init(_ text: String) { self.text = text }
        public init(stringLiteral text: String) { self.text = text }

        public static let get = Method("GET")
        public static let head = Method("HEAD")
        public static let post = Method("POST")
        public static let put = Method("PUT")
        public static let delete = Method("DELETE")
        public static let patch = Method("PATCH")
        public static let options = Method("OPTIONS")
    }

    /// Which of the requests that wait begins first. No priority starves.
    public enum Priority: Sendable, Hashable, CaseIterable { case high, normal, low }

    /// What is waited for, and how long. Nil: without a limit.
    public struct TimeLimits: Sendable, Hashable {
        /// Finding the address, connecting, and the TLS handshake.
        public var connect: Duration? = .seconds(10)
        /// From the last byte of the request that was sent to the head of the answer.
        public var answer: Duration? = .seconds(180)
        /// Between two pieces of the body. The time in which the program does not read does not count.
        public var silence: Duration? = .seconds(60)
        /// From `send` to the end of the body.
        public var whole: Duration?

        public init() {}
    }

    /// How far a request and its answer are.
    public struct Progress: Sendable, Hashable {
        /// Bytes of the request's body that were sent.
        public var sent: UInt64 = 0
        /// The length of the request's body. Nil if it is not known.
        public var toSend: UInt64?
        /// Bytes of the answer's body that have arrived, before any decoding.
        public var received: UInt64 = 0
        /// The length of the answer's body. Nil if it is not known.
        public var toReceive: UInt64?
    }

    public var method: Method
    /// An absolute `http` or `https` URL.
    public var url: String
    public var fields: FieldLines
    public var body: RequestBody
    public var timeLimits = TimeLimits()
    /// How many redirects are followed. Zero: the redirect is the answer.
    public var redirectsMax = 0
    /// Asks for gzip, and decodes it. `Content-Encoding` and `Content-Length` of the response stay as the server sent them.
    public var decodesGzip = false
    /// Is called on the client's own thread whenever bytes of a body have moved. It must return soon.
    public var progress: (@Sendable (Progress) -> Void)?
    public var priority = Priority.normal

    public init(_ method: Method = .get, _ url: String, fields: FieldLines = [:], body: RequestBody = .none) {
        self.method = method
        self.url = url
        self.fields = fields
        self.body = body
    }
}

extension Request.Priority {
    var form: RequestQueue.Priority {
        switch self {
        case .high: .high
        case .normal: .normal
        case .low: .low
        }
    }
}
