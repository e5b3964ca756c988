/// Names under which secrets travel: of members of queries and forms, of parameters in a path, and of fields.
///
/// The one list of them. What is shown to people or written to a log has `***` in place of the values (`URIMasking`), and where a credential of
/// Larder's own is required, a request with one of a client's own is refused.
package enum SecretName {
    package enum Kind: Sendable, Equatable {
        /// Who sends the value proves with it who it is.
        case credential
        /// The value may be secret, or mean something else altogether: `code`, `key`.
        case sensitive
    }

    /// What a name says about its value. Nil: nothing.
    ///
    /// Case and bytes that are neither letters nor digits do not matter, nor do percent-encodings, up to three around each other. A name ends
    /// before a NUL, as some servers read it, or has it inside; either counts. Of `user[password]`, `token[0]` and `auth.token` each part in
    /// brackets, what stands in front of them, and the last word behind a point count as well. A name that is not in the list is one of a
    /// credential if its last words are (`X-Session-Token`, `myApiKey`).
    package static func kind(_ name: ArraySlice<UInt8>) -> Kind? { kind(name.span, 0..<name.count) }

    /// - Parameter range: where the name stands in the bytes.
    package static func kind(_ bytes: borrowing Span<UInt8>, _ range: Range<Int>) -> Kind? {
        for index in range where bytes[index] == 0x25 {
            let name = decoded(range.map { bytes[$0] })
            return kind(decoded: name.span, 0..<name.count)
        }
        return kind(decoded: bytes, range)
    }

    /// The names that servers may read in the name of a member of a query, a form or a JSON text, in a spelling that is the same for all that they
    /// take for the same: lower case, letters and digits alone. In some, what stands behind a NUL or in brackets is left out.
    ///
    /// - Parameter name: as it was sent, percent-encoded or not.
    package static func readings(_ name: [UInt8]) -> [[UInt8]] {
        let name = decoded(name)
        let whole = plain(name)
        let front = plain(Array(name.prefix { $0 != 0 }))
        let base = plain(Array(name.drop { $0 == 0x5B }.prefix { $0 != 0x5B && $0 != 0 }))
        return front == whole && base == whole ? [whole] : [whole, front, base]
    }

    /// A name without letters and digits stays as it is.
    private static func plain(_ name: [UInt8]) -> [UInt8] {
        let plain = name.filter(isAlphanumeric).map(asciiLowercased)
        return plain.isEmpty ? name : plain
    }

    private static func kind(decoded name: borrowing Span<UInt8>, _ range: Range<Int>) -> Kind? {
        var found = kind(ofName: name, range)
        // Each part between brackets, points and NULs, but of those with points the last alone: `token.type` is no token.
        var start = range.lowerBound
        for end in range where found != .credential {
            let byte = name[end]
            guard byte == 0x5B || byte == 0x5D || byte == 0x2E || byte == 0 else { continue }
            if byte != 0x2E, start < end { found = kind(ofName: name, start..<end) ?? found }
            start = end + 1
        }
        if found != .credential, start > range.lowerBound, start < range.upperBound {
            found = kind(ofName: name, start..<range.upperBound) ?? found
        }
        return found
    }

    private static let encodingsMax = 3

    private static func kind(ofName bytes: borrowing Span<UInt8>, _ range: Range<Int>) -> Kind? {
        var digest = emptyDigest
        for index in range where isAlphanumeric(bytes[index]) {
            digest = extended(digest, by: asciiLowercased(bytes[index]))
        }
        return kinds[digest] ?? SecretWords.kind(bytes, range)
    }

    private static func decoded(_ name: [UInt8]) -> [UInt8] {
        var name = name
        for _ in 0..<encodingsMax {
            guard let decoded = percentDecoded(name) else { break }
            name = decoded
        }
        return name
    }

    /// Nil if nothing is encoded.
    private static func percentDecoded(_ bytes: [UInt8]) -> [UInt8]? {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            if bytes[index] == 0x25, index + 2 < bytes.count, let high = hexValue(bytes[index + 1]),
                let low = hexValue(bytes[index + 2])
            {
                decoded.append(high << 4 | low)
                index += 3
            } else if bytes[index] == 0x25, index + 5 < bytes.count, bytes[index + 1] | 0x20 == 0x75,
                bytes[index + 2] == 0x30, bytes[index + 3] == 0x30, let high = hexValue(bytes[index + 4]),
                let low = hexValue(bytes[index + 5])
            {
                // `%u0074`, which JavaScript's escape() writes and some servers read.
                decoded.append(high << 4 | low)
                index += 6
            } else {
                decoded.append(bytes[index])
                index += 1
            }
        }
        return decoded.count == bytes.count ? nil : decoded
    }

    // MARK: the list

    /// Letters and digits alone, in lower case. Names whose words say it (`SecretWords`) need not stand here, unless they are also written as one word.
    static let credentials: [String] = [
        "accesskey", "accesskeyid", "accesstoken", "apikey", "apitoken", "assertion", "auth", "authentication",
        "authkey", "authtoken",
        "authorization", "awsaccesskeyid", "bearertoken", "clientassertion", "clientsecret", "cookie", "cookie2",
        "credential", "credentials", "deploytoken", "githubtoken", "gitlabtoken", "idtoken", "jobtoken", "jsessionid",
        "jwt", "oauthsignature", "oauthtoken", "pass", "passphrase", "passwd", "password", "phpsessid", "privatekey",
        "privatetoken", "proxyauthorization", "pwd", "refreshtoken", "samlresponse", "secret", "secretkey",
        "securitytoken", "sessiontoken", "sig", "signature", "subscriptionkey", "token", "vaulttoken", "xaccesstoken",
        "xamzcredential", "xamzsecuritytoken", "xamzsignature", "xapikey", "xauthkey", "xauthtoken", "xgithubtoken",
        "xgitlabtoken", "xgoogapikey", "xgoogcredential", "xgoogsignature", "xmstoken", "xregistryauth", "xtoken",
        "xvaulttoken",
    ]
    static let others: [String] = [
        "code", "codeverifier", "hmac", "key", "oauthverifier", "otp", "samlrequest", "session", "sessionid", "sid",
        "ticket",
    ]

    private static let kinds: [UInt64: Kind] = {
        var kinds: [UInt64: Kind] = [:]
        for (names, kind) in [(others, Kind.sensitive), (credentials, .credential)] {
            for name in names { kinds[name.utf8.reduce(emptyDigest) { extended($0, by: $1) }] = kind }
        }
        precondition(kinds.count == credentials.count + others.count, "two names have one digest")
        return kinds
    }()

    // FNV-1a: a name of a query is looked up with each line of the log, without an allocation.
    static let emptyDigest: UInt64 = 0xCBF2_9CE4_8422_2325

    @inline(__always) static func extended(_ digest: UInt64, by byte: UInt8) -> UInt64 {
        (digest ^ UInt64(byte)) &* 0x0000_0100_0000_01B3
    }
}

/// The words of a name, and what the last of them say about its value: `X-Client-Secret`, `Ocp-Apim-Subscription-Key`, `x-ops-authorization-1`.
///
/// A word ends at a byte that is neither a letter nor a digit, and before a capital letter behind a small one (`myApiKey`). Numbers are no words.
enum SecretWords {
    /// At the end of a name, or anywhere.
    private enum Meaning {
        /// A name with it is one of a credential, wherever it stands (`X-Ops-Authorization-1`).
        case anywhere
        /// At the end.
        case last
        /// At the end, unless a word in front says that it is a mark in a list or against forgery (`page_token`, `X-CSRF-Token`).
        case token
        /// At the end, behind a word that says for what it is (`X-Api-Key`).
        case key
        /// In front of `token`: no credential.
        case mark
        /// In front of `key`: a credential.
        case purpose
    }

    static func kind(_ bytes: borrowing Span<UInt8>, _ range: Range<Int>) -> SecretName.Kind? {
        var (last, before): (Meaning?, Meaning?) = (nil, nil)
        var words = 0
        var index = range.lowerBound
        while index < range.upperBound {
            guard isAlphanumeric(bytes[index]) else {
                index += 1
                continue
            }
            var digest = SecretName.emptyDigest
            var (isNumber, wasSmall) = (true, false)
            while index < range.upperBound, isAlphanumeric(bytes[index]) {
                let byte = bytes[index]
                let isCapital = (0x41...0x5A).contains(byte)
                if isCapital, wasSmall { break }
                wasSmall = (0x61...0x7A).contains(byte)
                if isCapital || wasSmall { isNumber = false }
                digest = SecretName.extended(digest, by: asciiLowercased(byte))
                index += 1
            }
            if isNumber { continue }
            let meaning = meanings[digest]
            if case .anywhere? = meaning { return .credential }
            (before, last) = (last, meaning)
            words += 1
        }
        // The list has the names of one word.
        guard words > 1 else { return nil }
        return isCredential(last, behind: before) ? .credential : nil
    }

    private static func isCredential(_ last: Meaning?, behind before: Meaning?) -> Bool {
        switch (last, before) {
        case (.token?, .mark?): false
        case (.last?, _), (.token?, _), (.key?, .purpose?), (.key?, .last?): true
        default: false
        }
    }

    private static let meanings: [UInt64: Meaning] = {
        let words: [(Meaning, [String])] = [
            (.anywhere, ["authorization"]),
            (
                .last,
                [
                    "accesskey", "accesstoken", "apikey", "apitoken", "auth", "authentication", "authtoken", "bearer",
                    "cookie", "credential", "credentials", "jwt", "passphrase", "passwd", "password", "pat", "pwd",
                    "secret", "sig", "signature",
                ]
            ),
            (.token, ["token"]),
            (.key, ["key"]),
            (
                .mark,
                [
                    "antiforgery", "continuation", "continue", "csrf", "cursor", "delta", "forgery", "idempotency",
                    "lock", "next", "page", "pagination", "prev", "previous", "resume", "skip", "start", "sync",
                    "verification", "xsrf",
                ]
            ),
            // Not `project` and `user`: such keys are names.
            (
                .purpose,
                [
                    "access", "api", "app", "application", "client", "deploy", "function", "functions", "master",
                    "private", "rapidapi", "session", "subscription",
                ]
            ),
        ]
        var meanings: [UInt64: Meaning] = [:]
        for (meaning, list) in words {
            for word in list {
                meanings[word.utf8.reduce(SecretName.emptyDigest) { SecretName.extended($0, by: $1) }] = meaning
            }
        }
        return meanings
    }()
}
