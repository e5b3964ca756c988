import Message

/// The address of a directory (RFC 4516 §2, without names and filters): `ldaps://host`, `ldap://host:port`.
package struct DirectoryURL: Sendable, Hashable, CustomStringConvertible {
    /// Whether TLS begins with the first byte (`ldaps`).
    package let isSecured: Bool
    /// In lower case; of an IPv6 address without its brackets.
    package let host: String
    /// Nil: that of the scheme, 636 or 389.
    package let port: UInt16?

    /// - Returns: nil for anything else, a URL with a path, a user or a query among it.
    package init?(_ text: String) {
        let text = text.lowercased()
        guard let scheme = ["ldaps://", "ldap://"].first(where: text.hasPrefix) else { return nil }
        isSecured = scheme == "ldaps://"
        var rest = text.utf8.dropFirst(scheme.utf8.count)
        if rest.last == UInt8(ascii: "/") { rest = rest.dropLast() }
        let isBracketed = rest.first == UInt8(ascii: "[")
        let hostBytes: Substring.UTF8View
        if isBracketed {
            guard let end = rest.firstIndex(of: UInt8(ascii: "]")) else { return nil }
            hostBytes = rest[rest.index(after: rest.startIndex)..<end]
            guard let address = IPAddress(strict: hostBytes), !address.isV4 else { return nil }
            rest = rest[rest.index(after: end)...]
        } else {
            hostBytes = rest.prefix { $0 != UInt8(ascii: ":") }
            guard !hostBytes.isEmpty, hostBytes.count <= 253, hostBytes.allSatisfy(DirectoryURL.isHostByte) else {
                return nil
            }
            rest = rest.dropFirst(hostBytes.count)
        }
        host = String(Substring(hostBytes))
        guard !rest.isEmpty else {
            port = nil
            return
        }
        guard rest.first == UInt8(ascii: ":"), rest.dropFirst().allSatisfy({ (0x30...0x39).contains($0) }),
            let port = UInt16(Substring(rest.dropFirst())), port > 0
        else { return nil }
        self.port = port
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x61...0x7A, 0x30...0x39, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"): true
        default: false
        }
    }

    /// Whether the directory is on this machine, as its name says.
    package var isLoopback: Bool {
        host == "localhost" || IPAddress(strict: host.utf8).map { addressClass($0) == .loopback } ?? false
    }

    package var description: String {
        let place = host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host
        return (isSecured ? "ldaps://" : "ldap://") + place + (port.map { ":\($0)" } ?? "")
    }
}
