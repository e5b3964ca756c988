import Message

/// `algorithm` of Digest (RFC 7616 §3.3).
package struct DigestAlgorithm: Equatable, Sendable {
    package let hash: HashAlgorithm
    /// The key of the whole session takes part (`-sess`, §3.4.2).
    package let isSession: Bool

    package init(_ hash: HashAlgorithm, isSession: Bool = false) {
        self.hash = hash
        self.isSession = isSession
    }

    /// Returns nil for an algorithm that Larder does not know.
    package init?(_ name: some Collection<UInt8>) {
        let rows: [(StaticString, HashAlgorithm)] = [
            ("md5", .md5), ("sha-256", .sha256), ("sha-512-256", .sha512_256),
        ]
        let suffix = Array("-sess".utf8)
        let isSession = name.count > suffix.count && equalsIgnoringCase(name.suffix(suffix.count), suffix)
        let base = isSession ? name.dropLast(suffix.count) : name.dropLast(0)
        guard let row = rows.first(where: { equalsIgnoringCase(base, $0.0) }) else { return nil }
        self.init(row.1, isSession: isSession)
    }

    /// The stronger algorithm has the larger number.
    package var strength: Int {
        switch hash {
        case .md4, .md5: 0
        case .sha1: 1
        case .sha256: 2
        case .sha512_256: 3
        }
    }
}

/// Quality of protection (RFC 7616 §3.3): what a digest covers beside method and URI.
package enum DigestProtection: Equatable, Sendable {
    /// `auth`
    case authentication
    /// `auth-int`: the body of the message too.
    case integrity
}

/// A Digest challenge that Larder can answer (RFC 7616 §3.3).
package struct DigestChallenge: Equatable, Sendable {
    package let realm: [UInt8]
    package let nonce: [UInt8]
    package let opaque: [UInt8]?
    package let algorithm: DigestAlgorithm
    /// As the server wrote it. Nil if it named none, which means MD5.
    package let algorithmName: [UInt8]?
    /// What the server offers. Empty if it named none, as RFC 2069 did.
    package let protections: [DigestProtection]
    /// Nothing but `auth-int` is offered.
    package var needsBody: Bool { !protections.isEmpty && !protections.contains(.authentication) }
    /// The user goes out as a hash.
    package let hashesUser: Bool
    /// `charset=UTF-8`: the server understands names beyond ASCII.
    package let isUTF8: Bool
    /// The nonce was too old; user and password may be right.
    package let isStale: Bool
    /// The URI references of `domain`, as written.
    package let domain: [[UInt8]]

    /// Returns nil if realm or nonce are missing, or if Larder knows neither the algorithm nor any protection that is offered.
    package init?(_ challenge: Challenge) {
        guard let realm = challenge.value("realm"), let nonce = challenge.value("nonce") else { return nil }
        let name = challenge.value("algorithm")
        guard let algorithm = name.map(DigestAlgorithm.init) ?? DigestAlgorithm(.md5) else { return nil }
        let offered = challenge.value("qop")
        var protections: [DigestProtection] = []
        forEachListElement((offered ?? [])[...]) { word in
            if equalsIgnoringCase(word, "auth") { protections.append(.authentication) }
            if equalsIgnoringCase(word, "auth-int") { protections.append(.integrity) }
        }
        guard offered == nil || !protections.isEmpty else { return nil }
        func says(_ name: StaticString, _ value: StaticString) -> Bool {
            challenge.value(name).map { equalsIgnoringCase($0, value) } ?? false
        }
        self.realm = realm
        self.nonce = nonce
        opaque = challenge.value("opaque")
        self.algorithm = algorithm
        algorithmName = name
        self.protections = protections
        hashesUser = says("userhash", "true")
        isUTF8 = says("charset", "UTF-8")
        isStale = says("stale", "true")
        domain = (challenge.value("domain") ?? []).split(whereSeparator: isOWS).map(Array.init)
    }
}
