import COpenSSL

/// A digest that is computed while the bytes arrive.
@safe package struct RunningDigest: ~Copyable {
    package enum Algorithm: Sendable { case sha256, sha512 }

    private let context: OpaquePointer

    package init(_ algorithm: Algorithm) {
        guard let context = unsafe EVP_MD_CTX_new() else { preconditionFailure("OpenSSL has no memory for a digest") }
        unsafe self.context = context
        let kind =
            switch algorithm {
            case .sha256: unsafe EVP_sha256()
            case .sha512: unsafe EVP_sha512()
            }
        let status = unsafe EVP_DigestInit_ex(context, kind, nil)
        precondition(status == 1, "OpenSSL could not begin a digest")
    }

    deinit { unsafe EVP_MD_CTX_free(context) }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard unsafe !bytes.isEmpty else { return }
        let status = unsafe EVP_DigestUpdate(context, bytes.baseAddress, bytes.count)
        precondition(status == 1, "OpenSSL could not go on with a digest")
    }

    /// The digest of all bytes. Nothing can be added afterwards.
    package consuming func finish() -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        let status = unsafe EVP_DigestFinal_ex(context, &digest, &count)
        precondition(status == 1, "OpenSSL could not end a digest")
        return Array(digest[..<Int(count)])
    }
}
