import Message
import Rules

extension Endpoint {
    /// Reads `host:port`, with an IPv6 address in brackets (RFC 3986 §3.2).
    ///
    /// - Parameter defaultPort: the port of a text without one. Nil: the port must be there.
    /// - Returns: nil unless the text is such an address, with a port from 1 to 65535.
    package init?(authority: ArraySlice<UInt8>, defaultPort: UInt16? = nil) {
        var host = authority
        var port = defaultPort
        // The colons of an IPv6 address are in brackets.
        if let colon = authority.lastIndex(of: UInt8(ascii: ":")),
            !authority[colon...].contains(UInt8(ascii: "]"))
        {
            let digits = authority[(colon + 1)...]
            guard !digits.isEmpty, digits.count <= 5, digits.allSatisfy({ (0x30...0x39).contains($0) }) else {
                return nil
            }
            port = UInt16(String(decoding: digits, as: UTF8.self))
            host = authority[..<colon]
        }
        guard let port, port > 0, let destination = DestinationHost(host) else { return nil }
        self.init(host: destination.description, port: port)
    }
}

extension NextProxy {
    /// `scheme://[user[:password]@]host:port`, with user and password percent-encoded (RFC 3986 §3.2). A slash may follow.
    ///
    /// - Returns: nil unless the text is such a URL. The port must be there: programs disagree on the default.
    package init?(url text: String) {
        guard let (scheme, rest) = NextProxy.split(url: text), let kind = Kind(rawValue: scheme) else { return nil }
        var authority = Array(rest.utf8)[...]
        if authority.last == UInt8(ascii: "/") { authority.removeLast() }
        var logIn: ProxyLogIn?
        if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
            let parts = authority[..<at].split(
                separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
            guard let user = percentDecoded(parts[0]), let password = percentDecoded(parts.count > 1 ? parts[1] : []),
                let both = ProxyLogIn(user: user, password: password)
            else { return nil }
            logIn = both
            authority = authority[(at + 1)...]
        }
        guard let endpoint = Endpoint(authority: authority) else { return nil }
        self.init(endpoint, kind, logIn: logIn)
    }

    /// The scheme in lower case, and what follows `://`.
    package static func split(url text: String) -> (scheme: String, rest: String)? {
        guard let colon = text.firstIndex(of: ":"), text[colon...].hasPrefix("://") else { return nil }
        return (text[..<colon].lowercased(), String(text[colon...].dropFirst(3)))
    }
}

/// Returns nil if a percent sign is not followed by two hexadecimal digits (RFC 3986 §2.1).
private func percentDecoded(_ text: ArraySlice<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    var index = text.startIndex
    while index < text.endIndex {
        guard text[index] == UInt8(ascii: "%") else {
            bytes.append(text[index])
            index += 1
            continue
        }
        guard index + 2 < text.endIndex,
            let byte = UInt8(String(decoding: text[index + 1...index + 2], as: UTF8.self), radix: 16)
        else { return nil }
        bytes.append(byte)
        index += 3
    }
    return bytes
}
