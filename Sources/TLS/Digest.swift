import COpenSSL

/// Cryptographic digests.
package enum Digest {
    /// SHA-256 (FIPS 180-4): 32 bytes.
    package static func sha256(_ bytes: some Collection<UInt8>) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        let message = Array(bytes)
        let status = unsafe EVP_Digest(message, message.count, &digest, nil, EVP_sha256(), nil)
        precondition(status == 1, "OpenSSL could not compute SHA-256")
        return digest
    }

    /// SHA-1 (FIPS 180-4): 20 bytes. For formats that demand it, and never for security.
    package static func sha1(_ bytes: some Collection<UInt8>) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 20)
        let message = Array(bytes)
        let status = unsafe EVP_Digest(message, message.count, &digest, nil, EVP_sha1(), nil)
        precondition(status == 1, "OpenSSL could not compute SHA-1")
        return digest
    }

    /// HMAC with SHA-256 (RFC 2104): 32 bytes.
    package static func hmacSHA256(key: [UInt8], _ bytes: some Collection<UInt8>) -> [UInt8] {
        var code = [UInt8](repeating: 0, count: 32)
        let message = Array(bytes)
        let result = unsafe EVP_Q_mac(
            nil, "HMAC", nil, "SHA256", nil, key, key.count, message, message.count, &code, code.count, nil)
        precondition(unsafe result != nil, "OpenSSL could not compute an HMAC")
        return code
    }

    /// Whether two secrets are equal. The time that it takes does not tell where they differ.
    package static func areEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool {
        guard a.count == b.count else { return false }
        var difference: UInt8 = 0
        for index in a.indices { difference |= a[index] ^ b[index] }
        return difference == 0
    }
}
