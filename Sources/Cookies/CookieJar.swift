package import Message

/// The cookies that Larder keeps for some requests (RFC 6265 §5.3 and §5.4, with what all browsers do beyond it).
///
/// A value: whoever shares it locks it, and says what time it is.
package struct CookieJar: Sendable {
    private var byDomain: [String: [Cookie]] = [:]
    package private(set) var count = 0
    /// Counts what happens to cookies, so that their order is known without a clock.
    private var clock: UInt64 = 0
    /// The count at the last change that is worth saving. Grows with each of them.
    package private(set) var changedAt: UInt64 = 0

    package init() {}

    private mutating func tick() -> UInt64 {
        clock += 1
        return clock
    }

    // MARK: storing

    /// Takes a cookie of a response. One that has expired removes the one that is there.
    ///
    /// - Parameter isPublicSuffix: whether anybody can have a name below the domain.
    /// - Returns: the cookie.
    @discardableResult
    package mutating func set(
        _ line: SetCookie, from origin: CookieOrigin, now: WallTime, isPublicSuffix: (String) -> Bool
    ) throws(CookieRejection) -> Cookie {
        let cookie = try line.cookie(from: origin, now: now, isPublicSuffix: isPublicSuffix)
        guard cookie.isSecure || origin.isSecure || !hidesSecure(cookie) else { throw .insecure }
        guard !cookie.isExpired(at: now) else {
            if remove(cookie) { changedAt = tick() }
            return cookie
        }
        store(cookie, now)
        return cookie
    }

    /// Whether the cookie would take the place of one with `Secure` (draft-ietf-httpbis-rfc6265bis §5.7, step 16), or be sent before it.
    private func hidesSecure(_ cookie: Cookie) -> Bool {
        byDomain.values.joined().contains { other in
            other.isSecure && other.name == cookie.name
                && (other.domain == cookie.domain || isBelow(other.domain, cookie.domain)
                    || isBelow(cookie.domain, other.domain))
                && pathMatches(cookie.path, other.path)
        }
    }

    private mutating func store(_ cookie: Cookie, _ now: WallTime) {
        var cookie = cookie
        var others = byDomain[cookie.domain] ?? []
        if let index = others.firstIndex(where: { $0.isSame(as: cookie) }) {
            let old = others[index]
            cookie.createdAt = old.createdAt
            cookie.usedAt = old.usedAt
            cookie.changedAt = old.changedAt
            guard cookie != old else { return }
            cookie.changedAt = tick()
            others[index] = cookie
        } else {
            let time = tick()
            (cookie.createdAt, cookie.usedAt, cookie.changedAt) = (time, time, time)
            others.append(cookie)
            count += 1
        }
        changedAt = clock
        byDomain[cookie.domain] = others
        makeRoom(in: cookie.domain, now)
    }

    /// Returns false if there is no such cookie.
    private mutating func remove(_ cookie: Cookie) -> Bool {
        guard let index = byDomain[cookie.domain]?.firstIndex(where: { $0.isSame(as: cookie) }) else { return false }
        byDomain[cookie.domain]?.remove(at: index)
        if byDomain[cookie.domain]?.isEmpty == true { byDomain[cookie.domain] = nil }
        count -= 1
        return true
    }

    /// Evicts what has expired, and then what was used least recently; cookies without `Secure` first, so that nobody on an insecure
    /// connection can displace the others.
    private mutating func makeRoom(in domain: String, _ now: WallTime) {
        while let cookies = byDomain[domain], cookies.count > CookieLimits.perDomainMax,
            let victim = victim(cookies, now)
        {
            _ = remove(victim)
        }
        while count > CookieLimits.countMax, let victim = victim(byDomain.values.joined(), now) { _ = remove(victim) }
    }

    private func victim(_ cookies: some Sequence<Cookie>, _ now: WallTime) -> Cookie? {
        cookies.min { a, b in
            let (aStays, bStays) = (!a.isExpired(at: now), !b.isExpired(at: now))
            if aStays != bStays { return bStays }
            if a.isSecure != b.isSecure { return b.isSecure }
            return a.usedAt < b.usedAt
        }
    }

    package mutating func removeAll() {
        byDomain = [:]
        count = 0
        changedAt = tick()
    }

    // MARK: sending

    /// The cookies for a request in the order in which they are sent: longer paths first, then older ones (RFC 6265 §5.4).
    package func cookies(for origin: CookieOrigin, now: WallTime) -> [Cookie] {
        origin.domains.flatMap { byDomain[String($0)] ?? [] }
            .filter { $0.isFor(origin) && !$0.isExpired(at: now) }
            .sorted { ($1.path.count, $0.createdAt) < ($0.path.count, $1.createdAt) }
    }

    /// The value of `Cookie`.
    package struct Field: Equatable, Sendable {
        package let value: [UInt8]
        /// How many cookies of the jar are in it.
        package let count: Int
    }

    /// The field `Cookie` of a request. Nil: the request has none. The cookies in it count as used.
    ///
    /// - Parameter lines: cookies that the client sends, which stand first. Where names are the same, the client's counts.
    package mutating func field(
        for origin: CookieOrigin, beside lines: [ArraySlice<UInt8>] = [], now: WallTime
    ) -> Field? {
        var value = lines.map(trimOWS).filter { !$0.isEmpty }.reduce(into: [UInt8]()) { append($1, to: &$0) }
        let taken = Set(value.split(separator: UInt8(ascii: ";")).map(cookieName))
        var sent = 0
        for cookie in cookies(for: origin, now: now) where !taken.contains(cookie.name) {
            let pair = cookie.pair
            guard value.count + pair.count + 2 <= CookieLimits.fieldBytesMax else { break }
            append(pair[...], to: &value)
            sent += 1
            touch(cookie)
        }
        return value.isEmpty ? nil : Field(value: value, count: sent)
    }

    private mutating func touch(_ cookie: Cookie) {
        let time = tick()
        guard let index = byDomain[cookie.domain]?.firstIndex(where: { $0.isSame(as: cookie) }) else { return }
        byDomain[cookie.domain]?[index].usedAt = time
    }

    // MARK: the file

    /// The cookies that a file keeps, in the order in which they were made. Session cookies are among them.
    package func cookies(now: WallTime) -> [Cookie] {
        byDomain.values.joined().filter { !$0.isExpired(at: now) }.sorted { $0.createdAt < $1.createdAt }
    }

    /// Takes over the cookies of a file that somebody else has written. They replace those of the jar, except what has changed since the jar
    /// was saved: the file does not know it yet. Of a file that has more than a jar can hold, the last ones count.
    ///
    /// - Parameter saved: `changedAt` when the jar was saved. Nil: it never was.
    package mutating func replace(with cookies: [Cookie], savedAt saved: UInt64?, now: WallTime) {
        let before = byDomain
        let unsaved = self.cookies(now: now).filter { $0.changedAt > saved ?? 0 }
        let changed = changedAt
        byDomain = [:]
        count = 0
        for var cookie in cookies.suffix(CookieLimits.countMax) where !cookie.isExpired(at: now) {
            let old = before[cookie.domain]?.first { $0.isSame(as: cookie) }
            let time = tick()
            (cookie.createdAt, cookie.usedAt) = (old?.createdAt ?? time, old?.usedAt ?? time)
            // Nothing to save: this is what the file has.
            cookie.changedAt = 0
            insert(cookie, now)
        }
        for cookie in unsaved { insert(cookie, now) }
        changedAt = changed
    }

    /// Puts a cookie as it is into the place of the same one.
    private mutating func insert(_ cookie: Cookie, _ now: WallTime) {
        _ = remove(cookie)
        byDomain[cookie.domain, default: []].append(cookie)
        count += 1
        makeRoom(in: cookie.domain, now)
    }
}

private func append(_ pair: ArraySlice<UInt8>, to value: inout [UInt8]) {
    if !value.isEmpty { value += [UInt8(ascii: ";"), 0x20] }
    value += pair
}

/// The name in one pair of the field `Cookie`.
private func cookieName(_ pair: ArraySlice<UInt8>) -> [UInt8] {
    guard let equals = pair.firstIndex(of: UInt8(ascii: "=")) else { return [] }
    return Array(trimOWS(pair[..<equals]))
}
