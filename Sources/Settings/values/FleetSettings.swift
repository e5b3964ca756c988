import Message

/// `fleet`: the nodes that share what they have, through a Redis.
package struct FleetSettings: Sendable, Equatable {
    /// Nil: this Larder is alone.
    package var redis: RedisURL?
    /// The file whose first line is the password of the user. Nil: the server asks for none.
    package var passwordFile: String?
    /// Nil: the authorities of `tls.ca_file`, or of the system.
    package var authorityFile: String?
    /// The file whose first line is what all nodes have, and nobody else.
    package var secretFile: String?
    /// The name of this node. Nil: the name of the machine.
    package var node: String?
    /// How the others ask this node. Nothing in it: they do not.
    package var peer = FleetListenerSettings()
    /// Nil: the nodes do not ask each other.
    package var peers: FleetPeersSetting?

    package init() {}

    /// Whether this Larder takes part and the nodes ask each other, so that it listens for them.
    package var asksPeers: Bool { redis != nil && secretFile != nil && peers != nil && peer.tls != nil }

    /// In bytes, as long as what it keys.
    package static let secretBytesMin = 32
    package static let nodesMax = 256
}

/// Where a Redis is: `rediss://user@redis.example.net:6379/0`.
package struct RedisURL: Sendable, Hashable, CustomStringConvertible {
    package let isSecured: Bool
    /// Nil: the default user.
    package let user: String?
    /// A name, or an address without brackets.
    package let host: String
    package let port: UInt16
    package let database: Int

    package static let defaultPort: UInt16 = 6379
    private static let databaseMax = 1_000_000

    /// Returns nil if the text is no such URL. A password in it is refused: a configuration is read by more people than may know it.
    package init?(_ text: String) {
        let rest: Substring
        if text.hasPrefix("redis://") {
            isSecured = false
            rest = text.dropFirst(8)
        } else if text.hasPrefix("rediss://") {
            isSecured = true
            rest = text.dropFirst(9)
        } else {
            return nil
        }
        let parts = rest.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        var authority = parts[0]
        if let at = authority.lastIndex(of: "@") {
            let name = authority[..<at]
            guard !name.isEmpty, name.utf8.count <= 255, name.utf8.allSatisfy({ isUnreserved($0) }) else { return nil }
            user = String(name)
            authority = authority[authority.index(after: at)...]
        } else {
            user = nil
        }
        let path = parts.count == 2 ? parts[1] : ""
        if path.isEmpty {
            database = 0
        } else {
            guard path.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(path),
                number <= RedisURL.databaseMax
            else { return nil }
            database = number
        }
        guard let (host, port) = RedisURL.place(authority.lowercased()) else { return nil }
        self.host = host
        self.port = port ?? RedisURL.defaultPort
    }

    /// `host`, `host:port` or `[address]:port`.
    static func place(_ text: String) -> (host: String, port: UInt16?)? {
        let host: Substring
        let rest: Substring
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { return nil }
            host = text[text.index(after: text.startIndex)..<end]
            rest = text[text.index(after: end)...]
            guard let address = IPAddress(strict: host.utf8), !address.isV4 else { return nil }
        } else {
            host = text.prefix { $0 != ":" }
            rest = text[host.endIndex...]
            guard (1...253).contains(host.utf8.count), host.utf8.allSatisfy(isUnreserved) else { return nil }
        }
        guard !rest.isEmpty else { return (String(host), nil) }
        guard rest.hasPrefix(":"), rest.dropFirst().utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let port = UInt16(rest.dropFirst()), port > 0
        else { return nil }
        return (String(host), port)
    }

    package var description: String {
        let name = user.map { "\($0)@" } ?? ""
        let place = host.contains(":") ? "[\(host)]" : host
        return "\(isSecured ? "rediss" : "redis")://\(name)\(place):\(port)/\(database)"
    }
}

/// RFC 3986 §2.3.
private func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        true
    case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): true
    default: false
    }
}
