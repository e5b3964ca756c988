import Message

/// What of a request a digest covers.
package struct DigestRequest: Sendable {
    package let method: [UInt8]
    /// The request-target as it is sent (RFC 7616 §3.4.6).
    package let uri: [UInt8]
    package let body: DigestBody

    package init(method: [UInt8], uri: [UInt8], body: DigestBody = .unknown) {
        self.method = method
        self.uri = uri
        self.body = body
    }
}

/// The body of a message, for `auth-int`.
package enum DigestBody: Equatable, Sendable {
    /// It has not been read to its end.
    case unknown
    case empty
    case content([UInt8])
    /// Its hash, by the hash function of the session.
    case hashed([UInt8])
}

/// Why a request cannot be authorised.
package enum DigestFailure: Error, Equatable, Sendable {
    case hashUnavailable(HashAlgorithm)
    /// The server demands `auth-int`, and the hash of the body is not known.
    case bodyIsNeeded
    /// The nonce was used 2³² − 1 times, and the server has not sent a new one.
    case nonceIsUsedUp
}

/// An authorization that was sent, with what checks the answer to it.
package struct DigestAuthorization: Sendable {
    /// The value of `Authorization` or `Proxy-Authorization`.
    package let value: [UInt8]
    let exchange: DigestExchange
    let algorithm: HashAlgorithm

    /// Whether the response proves that the server knows the password (`rspauth`, RFC 7616 §3.5).
    package enum Proof: Equatable, Sendable {
        /// The server does not claim to know it. Few servers do.
        case absent
        case right
        /// The proof is for another password, another request or another nonce.
        case wrong
        /// The proof covers the body of the response, whose hash is not known.
        case needsBody
    }

    /// - Parameter body: the body of the response.
    package func proof(
        in information: AuthenticationInfo, body: DigestBody = .unknown, using hashing: some Hashing
    ) throws(HashUnavailable) -> Proof {
        guard let claimed = information.responseProof else { return .absent }
        if let count = information.count, count != exchange.countText { return .wrong }
        if let nonce = information.clientNonce, nonce != exchange.clientNonce { return .wrong }
        let isIntegrity = information.protection == .integrity || exchange.protection == .integrity
        if isIntegrity, body == .unknown { return .needsBody }
        var exchange = exchange
        if exchange.protection != nil { exchange.protection = isIntegrity ? .integrity : .authentication }
        let expected = try exchange.response([], body, DigestHash(algorithm, hashing))
        return areEqualSecretly(expected, claimed.map(asciiLowercased)) ? .right : .wrong
    }
}

/// `Authentication-Info` or `Proxy-Authentication-Info` (RFC 7615, RFC 7616 §3.5).
package struct AuthenticationInfo: Equatable, Sendable {
    package let nextNonce: [UInt8]?
    let protection: DigestProtection?
    let responseProof: [UInt8]?
    let clientNonce: [UInt8]?
    let count: [UInt8]?

    /// Returns nil if the value is malformed.
    package init?(_ value: ArraySlice<UInt8>) {
        guard let parameters = parseAuthParameters(value) else { return nil }
        func parameter(_ name: StaticString) -> [UInt8]? {
            parameters.first { equalsIgnoringCase($0.name, name) }?.value
        }
        nextNonce = parameter("nextnonce")
        responseProof = parameter("rspauth")
        clientNonce = parameter("cnonce")
        count = parameter("nc")?.map(asciiLowercased)
        protection = parameter("qop").flatMap { name in
            [.authentication, .integrity].first { equalsIgnoringCase(name, $0.name) }
        }
    }
}

/// One request and its answer, as both sides compute them (RFC 7616 §3.4.1).
struct DigestExchange: Sendable {
    /// H(A1), in hexadecimal digits.
    let secret: Secret
    let nonce: [UInt8]
    let count: UInt32
    let clientNonce: [UInt8]
    let uri: [UInt8]
    /// Nil as in RFC 2069.
    var protection: DigestProtection?

    /// `nc`: eight hexadecimal digits.
    var countText: [UInt8] { hexadecimal((0..<4).map { UInt8(truncatingIfNeeded: count >> UInt32(24 - 8 * $0)) }) }

    /// - Parameters:
    ///   - method: empty in the answer of the server (§3.5).
    ///   - body: known if the protection is `auth-int`.
    func response(_ method: [UInt8], _ body: DigestBody, _ hash: DigestHash) throws(HashUnavailable) -> [UInt8] {
        var message = [method, uri]
        if protection == .integrity { message.append(try hash.ofBody(body)) }
        let covered = try hash(message)
        guard let protection else { return try hash([secret.bytes, nonce, covered]) }
        return try hash([secret.bytes, nonce, countText, clientNonce, protection.name, covered])
    }
}

extension DigestProtection {
    var name: [UInt8] {
        switch self {
        case .authentication: Array("auth".utf8)
        case .integrity: Array("auth-int".utf8)
        }
    }
}

/// H and KD of RFC 7616 §3.3: the hash of texts with colons between them, in hexadecimal digits.
struct DigestHash {
    private let algorithm: HashAlgorithm
    private let hashing: any Hashing

    init(_ algorithm: HashAlgorithm, _ hashing: some Hashing) {
        self.algorithm = algorithm
        self.hashing = hashing
    }

    func callAsFunction(_ parts: [[UInt8]]) throws(HashUnavailable) -> [UInt8] {
        hexadecimal(try hashing.hash(algorithm, Array(parts.joined(separator: [UInt8(ascii: ":")]))))
    }

    func ofBody(_ body: DigestBody) throws(HashUnavailable) -> [UInt8] {
        switch body {
        case .unknown: preconditionFailure("auth-int was chosen for a body that is known")
        case .empty: hexadecimal(try hashing.hash(algorithm, []))
        case .content(let bytes): hexadecimal(try hashing.hash(algorithm, bytes))
        case .hashed(let hash): hexadecimal(hash)
        }
    }
}
