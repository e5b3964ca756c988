package import Access
import Rules

/// What learning is told about one request when it is over, or about a tunnel when it opens and when it ends.
package struct Observation: Sendable, Equatable {
    /// What the access rules saw of it, with the identity of the client.
    package var request: AccessRequest
    package var verdict: Verdict
    /// CONNECT: Larder opened the tunnel (TLS interception), and the requests inside are observed one by one.
    package var isOpened: Bool
    /// The end of a tunnel that was observed before: only its bytes are new.
    package var isEndOfTunnel: Bool
    /// The content of the request; of a tunnel, the bytes from the client.
    package var requestBytes: UInt64
    /// The content of the response as it was sent; of a tunnel, the bytes to the client.
    package var responseBytes: UInt64
    /// The name of the credential that Larder sent to the origin. Nil: none.
    package var credential: String?
    /// The addresses of the rule that allowed the request, where that rule names addresses: without them, it would be denied.
    package var addresses: [AddressRange]

    package enum Verdict: Sendable, Equatable {
        case allowed
        /// The rules deny it, and learning with `--allow` let it through.
        case permitted
        /// - Parameter rule: the number of the rule. Nil: no rule, but the default.
        case denied(DenialReason, rule: Int?)
    }

    package init(
        _ request: AccessRequest, _ verdict: Verdict, isOpened: Bool = false, isEndOfTunnel: Bool = false,
        requestBytes: UInt64 = 0, responseBytes: UInt64 = 0, credential: String? = nil, addresses: [AddressRange] = []
    ) {
        self.request = request
        self.verdict = verdict
        self.isOpened = isOpened
        self.isEndOfTunnel = isEndOfTunnel
        self.requestBytes = requestBytes
        self.responseBytes = responseBytes
        self.credential = credential
        self.addresses = addresses
    }
}

/// Which requests belong to a job. Without a client, a user and a listener, all do.
package struct JobScope: Sendable, Hashable {
    package var client: AddressRange?
    package var user: String?
    /// The name of a listener.
    package var listener: String?

    package init(client: AddressRange? = nil, user: String? = nil, listener: String? = nil) {
        self.client = client
        self.user = user
        self.listener = listener
    }

    package var isEverybody: Bool { client == nil && user == nil && listener == nil }

    package func covers(_ request: AccessRequest) -> Bool {
        if let client, request.client.map(client.contains) != true { return false }
        if let user, request.identity?.name != user { return false }
        if let listener, request.listener != listener { return false }
        return true
    }

    /// `client 10.2.0.17`, `user builder`, `listener jobs`, `every client`.
    package var text: String {
        let parts = [
            client.map { "client \($0)" }, user.map { "user \($0)" }, listener.map { "listener \($0)" },
        ].compactMap(\.self)
        return parts.isEmpty ? "every client" : parts.joined(separator: ", ")
    }
}

/// The name of a job: 1 to 64 letters, digits, `.`, `-` and `_`, beginning with a letter or a digit. It is the name of a file as well.
package func isJobName(_ name: String) -> Bool {
    func isAlphanumeric(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
    }
    guard (1...64).contains(name.utf8.count), let first = name.utf8.first, isAlphanumeric(first) else { return false }
    return name.utf8.allSatisfy { isAlphanumeric($0) || ".-_".utf8.contains($0) }
}
