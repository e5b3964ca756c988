package import JSON

/// The keys with which the tokens of an issuer are verified (RFC 7517 §5).
package struct JSONWebKeySet: Sendable, Equatable {
    package let keys: [JSONWebKey]

    /// The longest text that is read, in bytes.
    package static let bytesMax = 256 << 10
    /// The most keys in a set.
    package static let countMax = 128
    /// The most keys that are tried for one token. More than one fit only if keys have no name, or share one.
    package static let candidatesMax = 8

    package init(_ keys: [JSONWebKey] = []) { self.keys = keys }

    /// Reads a set. Keys for other purposes are left out; a key that is damaged makes the whole set useless, so that nobody looks for it in
    /// vain.
    ///
    /// - Parameter allowsShared: whether keys of HS256 count. They are secrets, and what everybody can fetch is none.
    package init(parsing text: [UInt8], allowsShared: Bool) throws(KeySetFault) {
        guard text.count <= JSONWebKeySet.bytesMax else { throw KeySetFault(.tooLong) }
        let value: JSONValue
        do throws(JSONError) { value = try JSONValue(parsing: text) } catch { throw KeySetFault(.json(error)) }
        guard let elements = value["keys"]?.elements else { throw KeySetFault(.noKeys) }
        guard elements.count <= JSONWebKeySet.countMax else { throw KeySetFault(.tooMany) }
        var keys: [JSONWebKey] = []
        for (index, element) in elements.enumerated() {
            do throws(KeySetFault.Problem) {
                guard let key = try JSONWebKey(element) else { continue }
                if key.family == .shared, !allowsShared { throw .sharedFromURL }
                keys.append(key)
            } catch {
                throw KeySetFault(error, key: index + 1)
            }
        }
        guard !keys.isEmpty else { throw KeySetFault(.noUsableKey) }
        self.keys = keys
    }

    /// The keys that a token may be signed with.
    ///
    /// - Parameter identifier: `kid` of the token. With it, only keys of that name count; without it, all do.
    package func candidates(for algorithm: SignatureAlgorithm, identifier: String?) -> [JSONWebKey] {
        let fitting = keys.lazy.filter { key in
            key.serves(algorithm) && (identifier == nil || key.identifier == identifier)
        }
        return Array(fitting.prefix(JSONWebKeySet.candidatesMax))
    }

    /// Whether any key has the name.
    package func hasKey(named identifier: String) -> Bool { keys.contains { $0.identifier == identifier } }
}

/// Why a text is no usable set of keys. Never shows any of it but names of members.
package struct KeySetFault: Error, Sendable, Equatable {
    package enum Problem: Error, Sendable, Equatable {
        case tooLong, noKeys, tooMany, noUsableKey
        case json(JSONError)
        case missing(String)
        case wrongType(String)
        case notBase64URL(String)
        case modulusLength, exponent, coordinateLength, sharedLength, algorithmOfOtherKind, sharedFromURL
    }

    package let problem: Problem
    /// The number of the key in `keys`, from 1. Nil: the set itself.
    package let key: Int?

    package init(_ problem: Problem, key: Int? = nil) {
        self.problem = problem
        self.key = key
    }

    package var text: String { key.map { "key \($0): \(explanation)" } ?? explanation }

    private var explanation: String {
        switch problem {
        case .tooLong: "it is longer than \(JSONWebKeySet.bytesMax) bytes"
        case .noKeys: "it is no JWK Set: it has no list \"keys\""
        case .tooMany: "it has more than \(JSONWebKeySet.countMax) keys"
        case .noUsableKey: "it has no key that verifies signatures: RSA, EC, Ed25519 or oct"
        case .json(let error): "it is no JSON: \(error.text)"
        case .missing(let name): "\(name) is missing"
        case .wrongType(let name): "\(name) has the wrong type"
        case .notBase64URL(let name): "\(name) is not base64url without padding"
        case .modulusLength: "an RSA key needs 2048 to 8192 bits"
        case .exponent: "e is no usable exponent"
        case .coordinateLength: "x or y does not have the length of the curve"
        case .sharedLength: "k needs 32 to 1024 bytes"
        case .algorithmOfOtherKind: "alg belongs to another kty or crv"
        case .sharedFromURL: "a shared key (oct) cannot come from a URL: it would be no secret"
        }
    }
}
