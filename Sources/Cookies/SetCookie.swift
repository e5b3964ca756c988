package import Message

/// A `Set-Cookie` field as it was sent (RFC 6265 §5.2, with what draft-ietf-httpbis-rfc6265bis §5.6 adds). `CookieJar.set` judges it.
package struct SetCookie: Sendable, Equatable {
    package private(set) var name: [UInt8]
    package private(set) var value: [UInt8]
    /// In lower case, without a dot in front. Empty if there is none.
    package private(set) var domain: [UInt8] = []
    /// Nil: the default path of the request (RFC 6265 §5.1.4).
    package private(set) var path: [UInt8]?
    package private(set) var isSecure = false
    package private(set) var isHTTPOnly = false
    package private(set) var sameSite = Cookie.SameSite.unset
    private var expires: WallTime?
    private var maxAge: Seconds?

    /// - Parameter line: the value of one `Set-Cookie` line. A head bounds its length.
    package init(_ line: ArraySlice<UInt8>) throws(CookieRejection) {
        let parts = line.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
        let pair = parts.first ?? []
        if let equals = pair.firstIndex(of: UInt8(ascii: "=")) {
            name = Array(trimOWS(pair[..<equals]))
            value = Array(trimOWS(pair[(equals + 1)...]))
        } else {
            name = []
            value = Array(trimOWS(pair))
        }
        guard !(name.isEmpty && value.isEmpty) else { throw .empty }
        guard name.count + value.count <= CookieLimits.pairBytesMax else { throw .tooLong }
        guard !(name + value).contains(where: isControl), !line.contains(where: { isControl($0) && $0 != 0x09 }) else {
            throw .character
        }
        // Of several attributes with one name the last counts.
        for part in parts.dropFirst() { apply(part) }
        if let path, path.contains(where: isControl) { throw .character }
    }

    /// When the cookie ends. Nil: not by itself. `Max-Age` counts before `Expires`.
    package func expiry(now: WallTime) -> WallTime? {
        let latest = now + CookieLimits.lifetimeMax
        if let maxAge { return maxAge <= .zero ? .earliest : min(now + maxAge, latest) }
        return expires.map { min($0, latest) }
    }

    private mutating func apply(_ attribute: ArraySlice<UInt8>) {
        let equals = attribute.firstIndex(of: UInt8(ascii: "=")) ?? attribute.endIndex
        let name = trimOWS(attribute[..<equals])
        let value = trimOWS(attribute[equals...].dropFirst())
        guard value.count <= CookieLimits.attributeBytesMax else { return }
        if equalsIgnoringCase(name, "Expires".utf8) {
            if let date = parseCookieDate(value) { expires = date }
        } else if equalsIgnoringCase(name, "Max-Age".utf8) {
            if let seconds = deltaSeconds(value) { maxAge = seconds }
        } else if equalsIgnoringCase(name, "Domain".utf8) {
            domain = (value.first == UInt8(ascii: ".") ? value.dropFirst() : value).map(asciiLowercased)
        } else if equalsIgnoringCase(name, "Path".utf8) {
            path = value.first == UInt8(ascii: "/") ? Array(value) : nil
        } else if equalsIgnoringCase(name, "Secure".utf8) {
            isSecure = true
        } else if equalsIgnoringCase(name, "HttpOnly".utf8) {
            isHTTPOnly = true
        } else if equalsIgnoringCase(name, "SameSite".utf8) {
            sameSite =
                [Cookie.SameSite.none, .lax, .strict].first { equalsIgnoringCase(value, $0.rawValue.utf8) } ?? .unset
        }
    }
}

/// The value of `Max-Age`: digits, perhaps with "-" in front. Nil for anything else.
private func deltaSeconds(_ value: ArraySlice<UInt8>) -> Seconds? {
    let isNegative = value.first == UInt8(ascii: "-")
    let digits = isNegative ? value.dropFirst() : value
    guard !digits.isEmpty, digits.allSatisfy({ isDigit($0) }) else { return nil }
    // Saturating: a number of any length is one.
    let count = digits.reduce(Int64(0)) { min($0 * 10 + Int64($1 - 0x30), Seconds.deltaMax.count) }
    return Seconds(isNegative ? -count : count)
}

func isControl(_ byte: UInt8) -> Bool { byte < 0x20 || byte == 0x7F }

extension WallTime {
    /// Before every other time.
    package static var earliest: WallTime { WallTime(ticks: .min) }
}

extension SetCookie {
    /// The cookie for the jar (draft-ietf-httpbis-rfc6265bis §5.7, steps 5 to 20 that do not look at the jar).
    ///
    /// - Parameter isPublicSuffix: whether anybody can have a name below the domain.
    package func cookie(
        from origin: CookieOrigin, now: WallTime, isPublicSuffix: (String) -> Bool
    ) throws(CookieRejection) -> Cookie {
        let domain = String(decoding: domain, as: UTF8.self)
        let isHostOnly: Bool
        if domain.isEmpty || (domain == origin.host && (origin.isAddress || isPublicSuffix(domain))) {
            isHostOnly = true
        } else {
            guard !isPublicSuffix(domain) else { throw .publicSuffix }
            guard origin.matches(domain: domain) else { throw .domain }
            isHostOnly = false
        }
        guard !isSecure || origin.isSecure else { throw .insecure }
        let cookie = Cookie(
            name: name, value: value, domain: isHostOnly ? origin.host : domain, isHostOnly: isHostOnly,
            path: path ?? origin.defaultPath, isSecure: isSecure, isHTTPOnly: isHTTPOnly, sameSite: sameSite,
            expiry: expiry(now: now))
        guard cookie.keepsPromises, !hasPrefix("__Host-") || path == [UInt8(ascii: "/")] else { throw .prefix }
        return cookie
    }

    private func hasPrefix(_ prefix: StaticString) -> Bool {
        equalsIgnoringCase(name.prefix(prefix.utf8CodeUnitCount), prefix)
    }
}

extension Cookie {
    /// Whether it has what a prefix of its name promises (draft-ietf-httpbis-rfc6265bis §4.1.3). A value without a name must not look as if it
    /// had such a name.
    var keepsPromises: Bool {
        let visible = name.isEmpty ? value : name
        let isSecurePrefix = equalsIgnoringCase(visible.prefix(9), "__Secure-")
        let isHostPrefix = equalsIgnoringCase(visible.prefix(7), "__Host-")
        guard isSecurePrefix || isHostPrefix else { return true }
        guard !name.isEmpty, isSecure else { return false }
        return isSecurePrefix || (isHostOnly && path == [UInt8(ascii: "/")])
    }
}
