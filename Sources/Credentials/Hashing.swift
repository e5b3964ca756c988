/// The hash functions of the schemes in this directory.
package enum HashAlgorithm: String, Sendable, CaseIterable {
    /// RFC 1320: 16 bytes. NTLM derives its keys with it.
    case md4
    /// RFC 1321: 16 bytes.
    case md5
    /// FIPS 180-4: 20 bytes.
    case sha1
    /// FIPS 180-4: 32 bytes.
    case sha256
    /// FIPS 180-4 §5.3.6.2: 32 bytes. It has initial values of its own, and is not a part of SHA-512.
    case sha512_256
}

/// The hash functions, which the core does not compute itself.
package protocol Hashing: Sendable {
    func hash(_ algorithm: HashAlgorithm, _ bytes: [UInt8]) throws(HashUnavailable) -> [UInt8]

    /// HMAC (RFC 2104).
    func hmac(_ algorithm: HashAlgorithm, key: [UInt8], _ bytes: [UInt8]) throws(HashUnavailable) -> [UInt8]
}

/// This installation does not compute the hash: the module for MD4 is missing, or a policy forbids MD5.
package struct HashUnavailable: Error, Equatable {
    package let algorithm: HashAlgorithm

    package init(_ algorithm: HashAlgorithm) { self.algorithm = algorithm }
}
