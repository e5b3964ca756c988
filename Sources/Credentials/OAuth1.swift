package import Message

/// OAuth 1.0 (RFC 5849): every request is signed with two shared secrets. `PLAINTEXT` (§3.4.4) sends them, and is not supported.
package struct OAuth1: Sendable {
    package enum SignatureMethod: Sendable, CaseIterable {
        /// `HMAC-SHA1` (§3.4.2)
        case hmacSHA1
        /// `HMAC-SHA256`: the same with SHA-256. The RFC does not have it; servers of today do.
        case hmacSHA256
    }

    private let consumerKey: String
    private let consumerSecret: Secret
    private let token: String?
    private let tokenSecret: Secret
    private let method: SignatureMethod
    private let realm: String?

    /// - Parameters:
    ///   - token: nil for requests in the name of the client alone.
    ///   - realm: of the authorization field, if the server asks for one.
    package init(
        consumerKey: String, consumerSecret: Secret, token: String? = nil, tokenSecret: Secret = Secret(""),
        method: SignatureMethod = .hmacSHA1, realm: String? = nil
    ) throws(CredentialFault) {
        guard realm?.utf8.contains(where: isControl) != true else { throw .realmHasControlCharacter }
        self.consumerKey = consumerKey
        self.consumerSecret = consumerSecret
        self.token = token
        self.tokenSecret = tokenSecret
        self.method = method
        self.realm = realm
    }

    /// The value of `Authorization` for a request (§3.5.1).
    ///
    /// - Parameters:
    ///   - form: the body, if its type is application/x-www-form-urlencoded; nil for any other body (§3.4.1.3.1).
    ///   - nonce: fresh random text of letters and digits (§3.3).
    package func authorization(
        for requestMethod: [UInt8], _ target: TargetURI, form: [UInt8]? = nil, nonce: [UInt8], at time: WallTime,
        using hashing: some Hashing
    ) throws(HashUnavailable) -> [UInt8] {
        var values: [(name: StaticString, value: [UInt8])] = [("oauth_consumer_key", Array(consumerKey.utf8))]
        if let token { values.append(("oauth_token", Array(token.utf8))) }
        var seconds: [UInt8] = []
        appendDecimal(UInt64(max(0, time.secondsSinceEpoch)), to: &seconds)
        values += [
            ("oauth_signature_method", bytes(of: method.name)), ("oauth_timestamp", seconds), ("oauth_nonce", nonce),
        ]
        let covered = values.map { EncodedParameter(bytes(of: $0.name), $0.value) } + parseForm(form ?? [])
        values.append(("oauth_signature", try signature(of: requestMethod, target, covered, using: hashing)))
        var text = AuthorizationText(scheme: "OAuth")
        if let realm { text.add("realm", quoted: realm.utf8) }
        for (name, value) in values { text.add(name, quoted: percentEncoded(value)) }
        return text.bytes
    }

    /// - Parameter parameters: those of the protocol and of the form. Those of the query are added.
    func signature(
        of requestMethod: [UInt8], _ target: TargetURI, _ parameters: [EncodedParameter], using hashing: some Hashing
    ) throws(HashUnavailable) -> [UInt8] {
        let key = percentEncoded(consumerSecret.bytes) + [UInt8(ascii: "&")] + percentEncoded(tokenSecret.bytes)
        let base = oauth1BaseString(requestMethod, target, parameters)
        return encodeBase64(try hashing.hmac(method.hash, key: key, base))
    }
}

/// The signature base string (RFC 5849 §3.4.1.1): the method, the URI without its query, and all parameters in order.
func oauth1BaseString(_ method: [UInt8], _ target: TargetURI, _ parameters: [EncodedParameter]) -> [UInt8] {
    let path = target.pathAndQuery.prefix { $0 != UInt8(ascii: "?") }
    let query = target.pathAndQuery.dropFirst(path.count + 1)
    var base = bytes(of: target.scheme.text)
    base.append("://")
    base.append(contentsOf: target.host.utf8)
    if target.port != target.scheme.defaultPort {
        base.append(UInt8(ascii: ":"))
        appendDecimal(UInt64(target.port), to: &base)
    }
    base.append(contentsOf: path)
    let form = canonicalForm(parameters + parseForm(query))
    return Array([method, percentEncoded(base), percentEncoded(form)].joined(separator: [UInt8(ascii: "&")]))
}

extension OAuth1.SignatureMethod {
    fileprivate var name: StaticString {
        switch self {
        case .hmacSHA1: "HMAC-SHA1"
        case .hmacSHA256: "HMAC-SHA256"
        }
    }

    fileprivate var hash: HashAlgorithm {
        switch self {
        case .hmacSHA1: .sha1
        case .hmacSHA256: .sha256
        }
    }
}
