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
    /// Case, `-` and `_` do not matter, nor do percent-encodings, up to three around each other. Of `user[password]` and `auth.token` the last word
    /// counts as well.
    package static func kind(_ name: ArraySlice<UInt8>) -> Kind? { kind(name.span, 0..<name.count) }

    /// - Parameter range: where the name stands in the bytes.
    package static func kind(_ bytes: borrowing Span<UInt8>, _ range: Range<Int>) -> Kind? {
        guard range.count <= rawBytesMax else { return nil }
        for index in range where bytes[index] == 0x25 {
            var name = range.map { bytes[$0] }
            for _ in 0..<encodingsMax {
                guard let decoded = percentDecoded(name) else { break }
                name = decoded
            }
            return kind(decoded: name.span, 0..<name.count)
        }
        return kind(decoded: bytes, range)
    }

    private static func kind(decoded name: borrowing Span<UInt8>, _ range: Range<Int>) -> Kind? {
        if let kind = kind(ofWord: name, range) { return kind }
        var end = range.upperBound
        if end > range.lowerBound, name[end - 1] == 0x5D { end -= 1 }
        var start = end
        while start > range.lowerBound, name[start - 1] != 0x5B, name[start - 1] != 0x2E { start -= 1 }
        return start > range.lowerBound ? kind(ofWord: name, start..<end) : nil
    }

    private static let rawBytesMax = 512
    private static let encodingsMax = 3

    private static func kind(ofWord bytes: borrowing Span<UInt8>, _ range: Range<Int>) -> Kind? {
        var digest = emptyDigest
        for index in range {
            let byte = bytes[index]
            if byte == 0x2D || byte == 0x5F || byte == 0x20 || byte == 0x2B { continue }
            digest = extended(digest, by: asciiLowercased(byte))
        }
        return kinds[digest]
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
            } else {
                decoded.append(bytes[index])
                index += 1
            }
        }
        return decoded.count == bytes.count ? nil : decoded
    }

    // MARK: the list

    /// In lower case, without `-` and `_`.
    static let credentials: [String] = [
        "accesskey", "accesstoken", "apikey", "apitoken", "authkey", "authtoken", "authorization", "awsaccesskeyid",
        "bearertoken", "clientassertion", "clientsecret", "cookie", "deploytoken", "githubtoken", "gitlabtoken",
        "idtoken", "jobtoken", "jsessionid", "jwt", "oauthtoken", "passphrase", "passwd", "password", "phpsessid",
        "privatekey", "privatetoken", "proxyauthorization", "refreshtoken", "secretkey", "securitytoken",
        "sessiontoken", "sig", "signature", "subscriptionkey", "token", "vaulttoken", "xaccesstoken",
        "xamzsecuritytoken", "xamzsignature", "xapikey", "xauthkey", "xauthtoken", "xgithubtoken", "xgitlabtoken",
        "xgoogapikey", "xgoogsignature", "xmstoken", "xregistryauth", "xtoken", "xvaulttoken",
    ]
    static let others: [String] = [
        "assertion", "auth", "code", "codeverifier", "credential", "credentials", "hmac", "key", "oauthsignature",
        "oauthverifier", "otp", "pass", "pwd", "samlrequest", "samlresponse", "secret", "session", "sessionid", "sid",
        "ticket", "xamzcredential", "xgoogcredential",
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
    private static let emptyDigest: UInt64 = 0xCBF2_9CE4_8422_2325

    @inline(__always) private static func extended(_ digest: UInt64, by byte: UInt8) -> UInt64 {
        (digest ^ UInt64(byte)) &* 0x0000_0100_0000_01B3
    }
}
