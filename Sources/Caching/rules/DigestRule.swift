package import Message
package import Rules

/// What proves that a body is the one that the request means.
package struct DigestRule: Sendable, Hashable {
    package enum Algorithm: String, CaseIterable, Sendable {
        case sha256, sha512
        /// BLAKE2b with 32 bytes (RFC 7693).
        case blake2b256 = "blake2b-256"

        /// The length of a digest in hexadecimal digits.
        package var hexCount: Int { self == .sha512 ? 128 : 64 }

        /// The name in the registry of RFC 9530 §5. Nil if it has none.
        fileprivate var name: String? {
            switch self {
            case .sha256: "sha-256"
            case .sha512: "sha-512"
            case .blake2b256: nil
            }
        }
    }

    package enum Source: Sendable, Hashable {
        /// The last `{hex:64}` or `{hex:128}` of the path, as the pattern of the rule has it, or several `{hex:n}` with as many digits.
        case path
        /// A field of the response: `Repr-Digest` and `Content-Digest` as RFC 9530 has them. Others, such as `Docker-Content-Digest`, have
        /// `sha256:` or nothing, and then hexadecimal digits or base64, with or without quotes.
        case field(String)
        /// The address that redirected the client here. What nobody redirected to is not stored.
        case redirect
        /// An index that has been read, as `release` says: of npm, or of a Python project. What no index promises is not proven.
        case index
    }

    package var source: Source
    package var algorithm: Algorithm

    package init(source: Source, algorithm: Algorithm) {
        self.source = source
        self.algorithm = algorithm
    }
}

/// The digest that a body must have.
package struct ExpectedDigest: Sendable, Hashable {
    package let algorithm: DigestRule.Algorithm
    /// Lower-case hexadecimal digits.
    package let digits: [UInt8]

    package init(_ algorithm: DigestRule.Algorithm, _ digits: [UInt8]) {
        self.algorithm = algorithm
        self.digits = digits
    }
}

extension DigestRule {
    /// The digest that the body of the response must have. Returns nil if neither path nor field tells.
    ///
    /// - Parameter conditions: those of the rule that matched.
    package func expected(path: ArraySlice<UInt8>, conditions: RuleConditions, response: Fields) -> ExpectedDigest? {
        digits(path: path, conditions: conditions, response: response).map { ExpectedDigest(algorithm, $0) }
    }

    private func digits(path: ArraySlice<UInt8>, conditions: RuleConditions, response: Fields) -> [UInt8]? {
        switch source {
        case .path:
            return conditions.paths.lazy.compactMap { $0.hexDigits(algorithm.hexCount, in: path) }.first.map {
                $0.map(asciiLowercased)
            }
        case .field(let name):
            let values = response.lines.filter { equalsIgnoringCase(response.name(of: $0), Array(name.utf8)) }
            guard values.count == 1 else { return nil }
            let value = response.value(of: values[0])
            let isDictionary = ["repr-digest", "content-digest"].contains { equalsIgnoringCase(name.utf8, $0) }
            return isDictionary ? hexDigits(inDictionary: value) : hexDigits(in: value)
        case .redirect, .index: return nil
        }
    }

    /// RFC 9530 §2, §3.
    private func hexDigits(inDictionary value: ArraySlice<UInt8>) -> [UInt8]? {
        guard let name = algorithm.name, let dictionary = parseStructuredDictionary(value),
            let entry = dictionary.entries.first(where: { $0.key.elementsEqual(name.utf8) }),
            case .item(.byteSequence(let bytes)) = entry.member.value
        else { return nil }
        return hexDigits(of: bytes)
    }

    private func hexDigits(of bytes: [UInt8]) -> [UInt8]? {
        guard bytes.count == algorithm.hexCount / 2 else { return nil }
        return hexadecimal(bytes)
    }

    private func hexDigits(in value: ArraySlice<UInt8>) -> [UInt8]? {
        var digits = trimOWS(value)
        if digits.count >= 2, digits.first == UInt8(ascii: "\""), digits.last == UInt8(ascii: "\"") {
            digits = digits.dropFirst().dropLast()
        }
        let prefix = Array("\(algorithm.rawValue):".utf8)
        if digits.starts(with: prefix) { digits = digits.dropFirst(prefix.count) }
        let isDigest = digits.count == algorithm.hexCount && digits.allSatisfy { hexValue($0) != nil }
        return isDigest ? digits.map(asciiLowercased) : decodeBase64(digits).flatMap(hexDigits)
    }
}
