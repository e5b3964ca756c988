import Message

/// What a client sends as `Proxy-Authorization: Digest` (RFC 7616 §3.4), as the side that asked for it reads it.
///
/// Read strictly: nothing is repeated, and what §3.4 demands is there. RFC 2069, which has no `qop`, is not understood: its digests can be
/// sent again by whoever sees one.
package struct DigestCredentials: Sendable, Equatable {
    package enum User: Sendable, Equatable {
        /// UTF-8, or whatever the client's charset was.
        case name([UInt8])
        /// `userhash=true`: H(user:realm) in hexadecimal digits, in lower case (§3.4.4).
        case hashed([UInt8])
    }

    package let user: User
    package let realm: [UInt8]
    package let nonce: [UInt8]
    package let uri: [UInt8]
    package let algorithm: DigestAlgorithm
    package let protection: DigestProtection
    /// `nc`: how often the client has used the nonce. Never 0.
    package let count: UInt32
    package let opaque: [UInt8]?
    /// Digits in lower case.
    private let response: [UInt8]
    private let clientNonce: [UInt8]
    // As written: the digest covers these very bytes.
    private let countText: [UInt8]
    let protectionText: [UInt8]

    /// What a field value is.
    package enum Reading: Sendable, Equatable {
        case otherScheme
        case malformed
        case credentials(DigestCredentials)
    }

    package static func read(_ value: ArraySlice<UInt8>) -> Reading {
        let scheme = value.prefix(while: isTchar)
        guard equalsIgnoringCase(scheme, "digest") else { return .otherScheme }
        let rest = value[scheme.endIndex...]
        guard rest.first == 0x20, let parameters = parseAuthParameters(rest),
            let credentials = DigestCredentials(parameters)
        else { return .malformed }
        return .credentials(credentials)
    }

    private init?(_ parameters: [AuthParameter]) {
        func value(_ name: StaticString) -> [UInt8]? {
            parameters.first { equalsIgnoringCase($0.name, name) }?.value
        }
        guard let realm = value("realm"), let nonce = value("nonce"), let uri = value("uri"), !uri.isEmpty,
            let response = value("response"), let clientNonce = value("cnonce"), !clientNonce.isEmpty,
            let countText = value("nc"), let count = DigestCredentials.number(countText), count > 0,
            let protectionText = value("qop"),
            let protection = [DigestProtection.authentication, .integrity].first(where: {
                equalsIgnoringCase(protectionText, $0.name)
            }),
            let algorithm = value("algorithm").map(DigestAlgorithm.init) ?? DigestAlgorithm(.md5),
            let user = DigestCredentials.user(value("username"), value("username*"), value("userhash"))
        else { return nil }
        self.user = user
        self.realm = realm
        self.nonce = nonce
        self.uri = uri
        self.algorithm = algorithm
        self.protection = protection
        self.count = count
        self.response = response.map(asciiLowercased)
        self.clientNonce = clientNonce
        self.countText = countText
        self.protectionText = protectionText
        opaque = value("opaque")
    }

    /// Eight hexadecimal digits.
    private static func number(_ text: [UInt8]) -> UInt32? {
        guard text.count == 8 else { return nil }
        var number: UInt32 = 0
        for digit in text {
            guard let value = hexValue(digit) else { return nil }
            number = number << 4 | UInt32(value)
        }
        return number
    }

    /// - Parameter extended: `username*`, an `ext-value` of RFC 8187 in UTF-8, with or without a language.
    private static func user(_ plain: [UInt8]?, _ extended: [UInt8]?, _ hashing: [UInt8]?) -> User? {
        let isHashed = hashing.map { equalsIgnoringCase($0, "true") } ?? false
        switch (plain, extended, isHashed) {
        case (let name?, nil, false): return .name(name)
        case (let hash?, nil, true): return .hashed(hash.map(asciiLowercased))
        case (nil, let text?, false):
            let parts = text.split(separator: UInt8(ascii: "'"), omittingEmptySubsequences: false)
            guard parts.count == 3, equalsIgnoringCase(parts[0], "utf-8") else { return nil }
            return .name(percentDecode(parts[2]))
        case (nil, nil, _), (_?, _?, _), (nil, _?, true): return nil
        }
    }

    // MARK: the digests

    /// Whether the client knows the secret.
    ///
    /// How long it takes does not tell how much of the digest is right.
    ///
    /// - Parameters:
    ///   - secret: H(user:realm:password) in hexadecimal digits.
    ///   - method: that of the request.
    ///   - body: what `auth-int` covers. Where it is not known, a digest with `auth-int` proves nothing.
    package func prove(
        _ secret: Secret, method: [UInt8], body: DigestBody = .unknown, using hashing: some Hashing
    ) throws(HashUnavailable) -> Bool {
        if protection == .integrity, case .unknown = body { return false }
        return areEqualSecretly(try digest(secret, method, body, hashing), response)
    }

    /// The value of `Proxy-Authentication-Info` (§3.5): proof for the client that this side knows the secret.
    ///
    /// With `auth-int` the proof would cover the body of the response. Where that is not known, the value has the next nonce alone.
    ///
    /// - Parameters:
    ///   - body: that of the response, known if the protection is `auth-int`.
    ///   - next: the nonce that the client should use from now on.
    /// - Returns: empty if there is nothing to say.
    package func information(
        _ secret: Secret, body: DigestBody = .unknown, next: [UInt8]?, using hashing: some Hashing
    ) throws(HashUnavailable) -> [UInt8] {
        var text = AuthorizationText()
        if protection == .integrity, case .unknown = body {
            if let next { text.add("nextnonce", quoted: next) }
            return text.bytes
        }
        text.add("qop", protectionText)
        text.add("rspauth", quoted: try digest(secret, [], body, hashing))
        text.add("cnonce", quoted: clientNonce)
        text.add("nc", countText)
        if let next { text.add("nextnonce", quoted: next) }
        return text.bytes
    }

    private func digest(
        _ secret: Secret, _ method: [UInt8], _ body: DigestBody, _ hashing: some Hashing
    ) throws(HashUnavailable) -> [UInt8] {
        let hash = DigestHash(algorithm.hash, hashing)
        var message = [method, uri]
        if protection == .integrity { message.append(try hash.ofBody(body)) }
        let covered = try hash(message)
        return try hash([secret.bytes, nonce, countText, clientNonce, protectionText, covered])
    }
}

/// H(user:realm), as a client sends it with `userhash=true` (RFC 7616 §3.4.4).
package func digestUserHash(
    _ user: [UInt8], realm: [UInt8], _ algorithm: HashAlgorithm, using hashing: some Hashing
) throws(HashUnavailable) -> [UInt8] {
    try DigestHash(algorithm, hashing)([user, realm])
}

/// H(user:realm:password): what a server keeps in place of the password (RFC 7616 §3.4.2).
package func digestSecret(
    user: [UInt8], realm: [UInt8], password: [UInt8], _ algorithm: HashAlgorithm, using hashing: some Hashing
) throws(HashUnavailable) -> Secret {
    Secret(try DigestHash(algorithm, hashing)([user, realm, password]))
}

extension HashAlgorithm {
    /// The name in the registry of Digest algorithms (RFC 7616 §6.1). Nil for a hash that Digest does not use.
    package var digestName: StaticString? {
        switch self {
        case .md5: "MD5"
        case .sha256: "SHA-256"
        case .sha512_256: "SHA-512-256"
        case .md4, .sha1: nil
        }
    }

    /// Bytes of a hash.
    package var byteCount: Int {
        switch self {
        case .md4, .md5: 16
        case .sha1: 20
        case .sha256, .sha512_256: 32
        }
    }
}

/// A Digest challenge of `Proxy-Authenticate` (RFC 7616 §3.3).
package func digestChallengeText(
    realm: [UInt8], nonce: [UInt8], opaque: [UInt8], _ algorithm: HashAlgorithm,
    _ protections: [DigestProtection] = [.authentication], isStale: Bool
) -> [UInt8] {
    guard let name = algorithm.digestName else { preconditionFailure("Digest has no such algorithm") }
    var text = AuthorizationText(scheme: "Digest")
    text.add("realm", quoted: realm)
    text.add("nonce", quoted: nonce)
    text.add("opaque", quoted: opaque)
    text.add("algorithm", bytes(of: name))
    text.add("qop", quoted: Array(protections.map(\.name).joined(separator: Array(", ".utf8))))
    text.add("charset", Array("UTF-8".utf8))
    text.add("userhash", Array("true".utf8))
    if isStale { text.add("stale", Array("true".utf8)) }
    return text.bytes
}
