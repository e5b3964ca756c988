/// HMAC-SHA256 (RFC 2104, FIPS 180-4) with the secret that the nodes of a fleet share.
package protocol FleetHash: Sendable {
    /// The code of the bytes of `beginning` and `rest` together: large bodies are not copied behind what is said of them.
    ///
    /// - Returns: 32 bytes.
    func code(_ beginning: [UInt8], _ rest: borrowing Span<UInt8>) -> [UInt8]
}

/// What a code is for. The one secret has several uses, and a code that was made for one of them must not pass for another, so each use has a prefix
/// of its own.
enum CodePurpose: String {
    case key, record, part, purge, owner, node, peer, report, register
    case budget, bucket, resets, use, news, nonces, failures

    var prefix: [UInt8] { Array(rawValue.utf8) + [0] }
}

/// What a key is for that follows from the secret.
package enum FleetKeyUse: Sendable {
    /// The nonces of Digest.
    case nonces
    /// The names under which failed log-ins are counted.
    case failures
}

/// The bytes of a code.
let codeByteCount = 32

extension FleetHash {
    /// A key for a hash of 128 bits. All nodes of the fleet have the same one.
    package func key(for use: FleetKeyUse) -> [UInt8] {
        let purpose: CodePurpose =
            switch use {
            case .nonces: .nonces
            case .failures: .failures
            }
        return Array(code(for: purpose, []).prefix(16))
    }

    func code(for purpose: CodePurpose, _ bytes: [UInt8]) -> [UInt8] { code(for: purpose, bytes[...]) }

    /// - Parameter beginning: is covered as well, before the other bytes.
    func code(for purpose: CodePurpose, behind beginning: [UInt8] = [], _ bytes: ArraySlice<UInt8>) -> [UInt8] {
        let result = code(purpose.prefix + beginning, bytes.span)
        precondition(result.count == codeByteCount, "HMAC-SHA256 has 32 bytes")
        return result
    }
}

/// Whether two codes are equal. The time that the comparison takes does not tell where they differ.
func areEqualCodes(_ a: some Collection<UInt8>, _ b: some Collection<UInt8>) -> Bool {
    guard a.count == b.count else { return false }
    return zip(a, b).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
}
