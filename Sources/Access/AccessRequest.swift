package import Message

/// What the rules look at: who asks for what. Made once per request.
package struct AccessRequest: Sendable, Equatable {
    /// Nil for a client on a Unix socket: no `client` condition holds for it.
    package var client: IPAddress?
    /// The authenticated user; nil where there is none.
    package var user: String?
    package var method: Method
    /// The method as sent, for conditions on methods that `Method` does not name.
    package var methodText: String
    package var scheme: Scheme
    package var destination: DestinationHost
    package var port: UInt16
    /// CONNECT: bytes we can not see will follow.
    package var isTunnel: Bool

    package init(
        client: IPAddress?, user: String? = nil, method: Method, methodText: String? = nil, scheme: Scheme = .http,
        destination: DestinationHost, port: UInt16, isTunnel: Bool
    ) {
        self.client = client
        self.user = user
        self.method = method
        self.methodText = methodText ?? "\(method.text)"
        self.scheme = scheme
        self.destination = destination
        self.port = port
        self.isTunnel = isTunnel
    }

    /// Lower case, canonical: an address in any spelling becomes its usual text.
    package var host: String { destination.description }
}
