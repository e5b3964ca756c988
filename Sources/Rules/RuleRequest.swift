package import Message

/// What rules compare of a request. Made once for each request, for the rules of access and of the cache.
package struct RuleRequest: Sendable, Equatable {
    /// Nil for a client on a Unix socket: no `client` condition holds for it.
    package var client: IPAddress?
    /// Who the client proved to be; nil if it did not have to prove anything, or has not yet.
    package var identity: Identity?
    package var method: Method
    /// The method as sent, for conditions on methods that `Method` does not name.
    package var methodText: String
    package var scheme: Scheme
    package var destination: DestinationHost
    package var port: UInt16
    /// CONNECT: bytes that Larder cannot see will follow.
    package var isTunnel: Bool
    /// As sent, without the query. Nil where there is none (CONNECT, `OPTIONS *`): no `path` condition holds for it.
    package private(set) var path: ArraySlice<UInt8>?
    /// What an origin may take `path` for. Nil if that is clear, or if there is no path.
    package private(set) var pathReadings: PathReadings?
    /// As sent, without the "?". Empty where there is none; nil where there is no path.
    package private(set) var query: ArraySlice<UInt8>?
    /// What the client named in the first bytes of the tunnel, or of the tunnel in which the request came.
    package var serverName: ServerName
    /// The name of the listener that the client connected to. Nil: it has none, and no `listener` condition holds.
    package var listener: String?
    /// Nil: nobody has read them. Then a deny rule that asks for one may hold, and an allow rule does not.
    package var details: RequestDetails?

    /// - Parameter pathAndQuery: as in `RequestTarget.pathRange`; the query is cut off, and nothing is taken for "/".
    package init(
        client: IPAddress?, identity: Identity? = nil, method: Method, methodText: String? = nil,
        scheme: Scheme = .http,
        destination: DestinationHost, port: UInt16, isTunnel: Bool, pathAndQuery: ArraySlice<UInt8>? = nil
    ) {
        self.client = client
        self.identity = identity
        self.method = method
        self.methodText = methodText ?? "\(method.text)"
        self.scheme = scheme
        self.destination = destination
        self.port = port
        self.isTunnel = isTunnel
        serverName = isTunnel ? .unread : .absent
        setPath(pathAndQuery)
    }

    /// The request for another resource of the same origin.
    package func with(pathAndQuery: ArraySlice<UInt8>) -> RuleRequest {
        var result = self
        result.setPath(pathAndQuery)
        return result
    }

    /// The request with another method and port, to the same host.
    package func with(method text: String, port: UInt16) -> RuleRequest {
        var result = self
        result.method = Method.allCases.first { "\($0.text)" == text } ?? .other
        result.methodText = text
        result.isTunnel = result.method == .connect
        if result.isTunnel != isTunnel { result.serverName = result.isTunnel ? .unread : .absent }
        result.port = port
        if result.isTunnel { result.setPath(nil) }
        return result
    }

    private mutating func setPath(_ pathAndQuery: ArraySlice<UInt8>?) {
        path = isTunnel ? nil : pathAndQuery.flatMap(Self.path)
        pathReadings = path.flatMap(PathReadings.init)
        query = path.flatMap { _ in pathAndQuery?.drop { $0 != UInt8(ascii: "?") }.dropFirst() }
    }

    private static func path(_ pathAndQuery: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        let path = pathAndQuery.prefix { $0 != UInt8(ascii: "?") }
        if path.isEmpty { return [UInt8(ascii: "/")] }
        return path.first == UInt8(ascii: "/") ? path : nil
    }

    /// Lower case, canonical: an address in any spelling becomes its usual text.
    package var host: String { destination.description }
}

/// The server name of a ClientHello (SNI, RFC 6066 §3), as rules compare it.
package enum ServerName: Sendable, Equatable {
    /// The tunnel's first bytes have not been read: no condition on the name holds yet.
    case unread
    /// There is no TLS that Larder sees, or no name in it: no condition on the name holds.
    case absent
    case host(DestinationHost)
}
