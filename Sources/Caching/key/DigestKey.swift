import Message
import Rules

/// The key of a request whose address has the digest of its body: all addresses with that digest, on mirrors and in other directories, are one.
///
/// Only a body that the digest has proven is stored under such a key, so it does not matter which of the addresses it came from. Answers
/// without one, such as redirects and errors, say something of a single address and are not stored there.
package struct DigestKey: Sendable, Equatable {
    /// A URI has no fragment, so nothing else has this key.
    package let bytes: [UInt8]
    package let digest: ExpectedDigest

    /// Returns nil if the address has no digest. Nor if it has a query, which may be what gives access to it.
    ///
    /// - Parameters:
    ///   - uri: the normalised URI of the request.
    ///   - host: takes the place of host and port. Nil: each host has keys of its own.
    ///   - paths: patterns with the digits of the digest.
    init?(_ uri: [UInt8], host: String?, paths: [PathPattern], algorithm: DigestRule.Algorithm) {
        guard !uri.contains(UInt8(ascii: "?")), let colon = uri.firstIndex(of: UInt8(ascii: ":")),
            let slash = uri.dropFirst(colon + 3).firstIndex(of: UInt8(ascii: "/")),
            let digits = paths.lazy.compactMap({ $0.hexDigits(algorithm.hexCount, in: uri[slash...]) }).first
        else { return nil }
        digest = ExpectedDigest(algorithm, digits.map(asciiLowercased))
        let authority = host.map { Array($0.utf8) } ?? Array(uri[(colon + 3)..<slash])
        bytes =
            uri[..<(colon + 3)] + authority + Array("/\(algorithm.rawValue):".utf8) + digest.digits
            + Array("#digest".utf8)
    }
}

extension CacheRules {
    /// The key that a request shares with all whose address has the same digest. Nil if its address has a key of its own.
    ///
    /// - Parameter uri: the normalised URI of the request.
    package func digestKey(of uri: [UInt8], _ handling: CacheHandling) -> DigestKey? {
        guard let number = handling.keyRule, let key = rules[number - 1].key, key.sharesDigests,
            handling.authorization.letsAddressesShare, let digest = rules[number - 1].changes.digest,
            digest.source == .path
        else { return nil }
        return DigestKey(
            uri, host: key.digestHost ?? key.host, paths: rules[number - 1].conditions.paths,
            algorithm: digest.algorithm)
    }
}

extension AuthorizationUse {
    /// What is stored for one address may be served for another. Not if the origin decides for each request who may have it: one address
    /// may be open to the client, and another one not.
    package var letsAddressesShare: Bool { self == .standard || self == .public }
}
