import COpenSSL

/// The hash functions that protocols of authentication name.
package enum HashFunction: Sendable, CaseIterable {
    /// RFC 1320: 16 bytes. OpenSSL has it in its module of legacy algorithms.
    case md4
    /// RFC 1321: 16 bytes.
    case md5
    /// FIPS 180-4: 20 bytes.
    case sha1
    /// FIPS 180-4: 32 bytes.
    case sha256, sha512_256

    fileprivate var cName: String {
        switch self {
        case .md4: "MD4"
        case .md5: "MD5"
        case .sha1: "SHA1"
        case .sha256: "SHA256"
        case .sha512_256: "SHA512-256"
        }
    }
}

extension Digest {
    /// Returns nil if this OpenSSL does not offer the function: its legacy module is not installed (MD4), or a policy forbids it (MD5).
    package static func hash(_ function: HashFunction, _ bytes: [UInt8]) -> [UInt8]? {
        hash(function, bytes, legacy: .shared)
    }

    /// HMAC (RFC 2104). Returns nil if this OpenSSL does not offer the function.
    package static func hmac(_ function: HashFunction, key: [UInt8], _ bytes: [UInt8]) -> [UInt8]? {
        var code = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count = 0
        let result = unsafe EVP_Q_mac(
            nil, "HMAC", nil, function.cName, nil, key, key.count, bytes, bytes.count, &code, code.count, &count)
        return unsafe result == nil ? nil : Array(code[..<count])
    }

    static func hash(_ function: HashFunction, _ bytes: [UInt8], legacy: LegacyAlgorithms) -> [UInt8]? {
        var library: OpaquePointer?
        if function == .md4 {
            guard let context = unsafe legacy.context else { return nil }
            unsafe library = context
        }
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count = 0
        let status = unsafe EVP_Q_digest(library, function.cName, nil, bytes, bytes.count, &digest, &count)
        return status == 1 ? Array(digest[..<count]) : nil
    }
}

/// OpenSSL's module of legacy algorithms beside the usual ones, in a library context of its own, so that TLS does not see them. It lives as
/// long as the process.
@safe struct LegacyAlgorithms: @unchecked Sendable {
    /// Loaded when it is used first.
    static let shared = LegacyAlgorithms(searchPath: nil)

    /// Nil if the module is not installed.
    let context: OpaquePointer?

    /// - Parameter searchPath: the directory of the modules; nil for that of this OpenSSL.
    init(searchPath: String?) {
        guard let context = unsafe OSSL_LIB_CTX_new() else {
            preconditionFailure("OpenSSL has no memory for a context")
        }
        if let searchPath { _ = unsafe OSSL_PROVIDER_set_default_search_path(context, searchPath) }
        let isLoaded =
            unsafe OSSL_PROVIDER_load(context, "legacy") != nil && OSSL_PROVIDER_load(context, "default") != nil
        guard isLoaded else {
            ERR_clear_error()
            unsafe OSSL_LIB_CTX_free(context)
            unsafe self.context = nil
            return
        }
        unsafe self.context = context
    }
}
