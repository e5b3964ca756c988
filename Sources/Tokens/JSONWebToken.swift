import JSON
import Message

/// A signed token in the compact serialisation (RFC 7519, RFC 7515 §3.1), read and not verified.
///
/// Of the header, `alg`, `kid`, `typ` and `crit` count. Keys and addresses of keys in it (`jwk`, `jku`, `x5c`, `x5u`) are never used: the token
/// would name its own judge.
package struct JSONWebToken: Sendable, Equatable {
    package let algorithm: SignatureAlgorithm
    /// `kid`.
    package let keyIdentifier: String?
    let claims: JSONValue
    /// What the signature covers (RFC 7515 §5.1).
    package let signingInput: [UInt8]
    package let signature: [UInt8]

    /// The longest token that is read, in bytes.
    package static let bytesMax = 8 << 10

    /// Whether a text has the form of such a token: three parts, the first of which begins like a JSON object.
    package static func isLike(_ text: some Collection<UInt8>) -> Bool {
        text.starts(with: Array("eyJ".utf8)) && text.reduce(0) { $1 == UInt8(ascii: ".") ? $0 + 1 : $0 } == 2
    }

    package init(_ text: [UInt8]) throws(TokenFault) {
        guard text.count <= JSONWebToken.bytesMax else { throw .tooLong }
        let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let header = JSONWebToken.object(parts[0]) else { throw .malformed }
        guard let signature = decodeBase64URL(parts[2]), let claims = JSONWebToken.object(parts[1]) else {
            throw .malformed
        }
        // What must be understood is not (RFC 7515 §4.1.11), whatever it is.
        guard header["crit"] == nil else { throw .criticalExtension }
        guard let name = header["alg"]?.text else { throw .malformed }
        guard let algorithm = SignatureAlgorithm(rawValue: name) else { throw .algorithm }
        if let type = header["typ"] {
            guard let text = type.text, JSONWebToken.isAccessToken(text) else { throw .type }
        }
        keyIdentifier = header["kid"]?.text
        guard header["kid"] == nil || keyIdentifier != nil else { throw .malformed }
        self.algorithm = algorithm
        self.claims = claims
        self.signature = signature
        signingInput = Array(text[..<parts[1].endIndex])
    }

    private static func object(_ part: some Collection<UInt8>) -> JSONValue? {
        guard let text = decodeBase64URL(part) else { return nil }
        do throws(JSONError) {
            let value = try JSONValue(parsing: text)
            return value.members == nil ? nil : value
        } catch {
            return nil
        }
    }

    /// `typ` says for what a token is (RFC 8725 §3.11). Those of other protocols must not be taken for access tokens (RFC 9068 §4).
    private static func isAccessToken(_ type: String) -> Bool {
        var name = type.lowercased()[...]
        if name.hasPrefix("application/") { name = name.dropFirst("application/".count) }
        return name == "jwt" || name == "at+jwt"
    }
}

/// Why a token is not accepted.
package enum TokenFault: Error, Sendable, Equatable, CaseIterable {
    case tooLong
    case malformed
    /// `alg` is `none`, or no algorithm that the configuration accepts.
    case algorithm
    case criticalExtension
    case type
    /// No key has the `kid` of the token, or none fits its `alg`.
    case unknownKey
    case signature
    /// An opaque token that nobody has.
    case unknown
    /// `exp` is missing: the token would be good for ever.
    case noExpiry
    case expired
    case notYetValid
    /// `iat` is in the future.
    case issuedInFuture
    case issuer
    case audience
    /// The claim with the name is missing, or its value is no name.
    case name
    case groups

    /// For a log. It shows nothing of the token.
    package var text: String {
        switch self {
        case .tooLong: "it is longer than \(JSONWebToken.bytesMax) bytes"
        case .malformed: "it is malformed"
        case .algorithm: "its algorithm is not accepted"
        case .criticalExtension: "it has a critical extension"
        case .type: "it is a token for something else (typ)"
        case .unknownKey: "no key fits its kid and alg"
        case .signature: "its signature is wrong"
        case .unknown: "it is unknown"
        case .noExpiry: "it has no exp"
        case .expired: "it has expired"
        case .notYetValid: "it is not valid yet (nbf)"
        case .issuedInFuture: "it was issued in the future (iat)"
        case .issuer: "it is from another issuer (iss)"
        case .audience: "it is for another audience (aud)"
        case .name: "it has no usable name"
        case .groups: "its groups cannot be used"
        }
    }
}
