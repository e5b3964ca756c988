import Message

/// Another proxy on the way to an origin.
package struct NextProxy: Hashable, Sendable {
    package enum Kind: String, CaseIterable, Sendable {
        /// An HTTP proxy: requests in plain text are sent to it in absolute-form, and everything else passes through a tunnel that CONNECT
        /// opens (RFC 9112 §3.2.2, §3.2.3).
        case http
        /// The same, over TLS to the proxy itself.
        case https
        /// SOCKS version 5 (RFC 1928). Everything passes through a tunnel. The proxy resolves the names.
        case socks5
    }
    package let kind: Kind
    package let endpoint: Endpoint
    /// The user and the password of its URL, which are sent unasked. Nil if the URL has none.
    package let logIn: ProxyLogIn?
    /// The name of the credential that Larder proves itself with. A proxy that has one has no `logIn`.
    package let credential: String?

    package init(_ endpoint: Endpoint, _ kind: Kind = .http, logIn: ProxyLogIn? = nil, credential: String? = nil) {
        precondition(logIn == nil || credential == nil, "a proxy gets one proof")
        self.kind = kind
        self.endpoint = endpoint
        self.logIn = logIn
        self.credential = credential
    }

    /// Whether requests in plain text need a tunnel, too.
    package var tunnelsEverything: Bool { kind == .socks5 }

    /// The same proxy, which gets this credential.
    package func proving(_ credential: String) -> NextProxy { NextProxy(endpoint, kind, credential: credential) }

    /// Where the credential is proven.
    package var place: LogInPlace { .proxy(kind, endpoint) }
}

extension NextProxy: CustomStringConvertible {
    /// `http://proxy.example:3128`, without the user.
    package var description: String { "\(kind.rawValue)://\(endpoint)" }
}

/// What Larder proves itself with to a next proxy. Its description never shows the password.
package struct ProxyLogIn: Hashable, Sendable, CustomStringConvertible {
    package let user: [UInt8]
    package let password: [UInt8]

    /// - Returns: nil if the user has a colon or either has a control character: neither can be sent (RFC 7617 §2). Also if one is longer than
    ///   255 bytes, or empty, where SOCKS has no room for it (RFC 1929 §2).
    package init?(user: [UInt8], password: [UInt8]) {
        guard (1...255).contains(user.count), password.count <= 255, !user.contains(UInt8(ascii: ":")),
            !(user + password).contains(where: { $0 < 0x20 || $0 == 0x7F })
        else { return nil }
        self.user = user
        self.password = password
    }

    /// The value of `Proxy-Authorization` (RFC 7617 §2).
    package var basic: [UInt8] { Array("Basic ".utf8) + encodeBase64(user + [UInt8(ascii: ":")] + password) }

    package var description: String { "user \(String(decoding: user, as: UTF8.self))" }
}
