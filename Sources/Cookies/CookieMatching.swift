package import Rules

/// Who sends a request, or answers it, as far as cookies are concerned.
package struct CookieOrigin: Sendable, Equatable {
    /// A name in lower case, or an address without brackets.
    package let host: String
    package let isAddress: Bool
    /// The path of the target as it was sent, without its query. Begins with "/".
    package let path: [UInt8]
    /// What the origin may take `path` for. Nil if that is clear.
    private let readings: PathReadings?
    /// Nobody on the way can read or change the message: cookies with `Secure` are for such origins alone.
    package let isSecure: Bool

    /// - Parameter target: path and query. Empty and "*" stand for "/".
    package init(_ host: DestinationHost, target: ArraySlice<UInt8>, isSecure: Bool) {
        self.host = host.description
        isAddress = host.address != nil
        let path = target.prefix { $0 != UInt8(ascii: "?") }
        self.path = path.first == UInt8(ascii: "/") ? Array(path) : [UInt8(ascii: "/")]
        readings = PathReadings(self.path[...])
        self.isSecure = isSecure
    }

    /// Whether the path path-matches that of a cookie (RFC 6265 §5.1.4), whatever the origin takes it for: the client chooses how it is spelled.
    package func matches(path cookiePath: [UInt8]) -> Bool {
        guard pathMatches(path, cookiePath) else { return false }
        guard let readings, cookiePath != [UInt8(ascii: "/")] else { return true }
        return readings.all { pathMatches($0, cookiePath) }
    }

    /// The path of a cookie that names none: that of the request up to its last "/" (RFC 6265 §5.1.4).
    var defaultPath: [UInt8] {
        guard let last = path.lastIndex(of: UInt8(ascii: "/")), last > 0 else { return [UInt8(ascii: "/")] }
        return Array(path[..<last])
    }

    /// The host, and the domains above it, for which cookies of other hosts may be meant. The host stands first.
    var domains: [Substring] {
        guard !isAddress else { return [host[...]] }
        var domains = [host[...]]
        while let dot = domains[domains.count - 1].firstIndex(of: ".") {
            domains.append(domains[domains.count - 1][host.index(after: dot)...])
        }
        return domains
    }

    /// Whether the host domain-matches (RFC 6265 §5.1.3): it is the domain, or a name below it.
    ///
    /// - Parameter domain: in lower case.
    package func matches(domain: String) -> Bool { host == domain || (!isAddress && isBelow(host, domain)) }
}

/// Whether a name ends in "." and the domain.
func isBelow(_ name: String, _ domain: String) -> Bool {
    name.hasSuffix(domain) && name.utf8.dropLast(domain.utf8.count).last == UInt8(ascii: ".")
}

/// Whether a path path-matches the path of a cookie (RFC 6265 §5.1.4): it is the same, or goes on with a segment of its own.
package func pathMatches(_ path: [UInt8], _ cookiePath: [UInt8]) -> Bool {
    guard path.starts(with: cookiePath) else { return false }
    return path.count == cookiePath.count || cookiePath.last == UInt8(ascii: "/")
        || path[cookiePath.count] == UInt8(ascii: "/")
}
