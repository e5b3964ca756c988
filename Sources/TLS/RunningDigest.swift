import COpenSSL
import CSodium

/// A digest that is computed while the bytes arrive.
@safe package struct RunningDigest: ~Copyable {
    package enum Algorithm: Sendable, CaseIterable {
        case sha256, sha512
        /// BLAKE2b with 32 bytes (RFC 7693), which OpenSSL 3.0 does not compute.
        case blake2b256
    }

    @safe private enum Context {
        case openSSL(OpaquePointer)
        /// The state of libsodium, whose alignment Swift cannot say in a type.
        case blake2b(OpaquePointer)
    }

    private static let blake2bBytes = 32
    /// libsodium chooses its fastest code when it is initialised.
    private static let isSodiumReady = sodium_init() >= 0

    private let context: Context

    package init(_ algorithm: Algorithm) {
        context =
            switch algorithm {
            case .sha256: unsafe .openSSL(RunningDigest.openSSL(EVP_sha256()))
            case .sha512: unsafe .openSSL(RunningDigest.openSSL(EVP_sha512()))
            case .blake2b256: unsafe .blake2b(RunningDigest.blake2b())
            }
    }

    deinit {
        switch context {
        case .openSSL(let context): unsafe EVP_MD_CTX_free(context)
        case .blake2b(let state): unsafe UnsafeMutableRawPointer(state).deallocate()
        }
    }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard unsafe !bytes.isEmpty else { return }
        let isDone =
            switch context {
            case .openSSL(let context): unsafe EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) == 1
            case .blake2b(let state):
                unsafe crypto_generichash_blake2b_update(
                    state, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), UInt64(bytes.count)) == 0
            }
        precondition(isDone, "a digest goes on until it is finished")
    }

    /// The digest of all bytes. Nothing can be added afterwards.
    package consuming func finish() -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        let isDone: Bool
        switch context {
        case .openSSL(let context): isDone = unsafe EVP_DigestFinal_ex(context, &digest, &count) == 1
        case .blake2b(let state):
            isDone = unsafe crypto_generichash_blake2b_final(state, &digest, Self.blake2bBytes) == 0
            count = UInt32(Self.blake2bBytes)
        }
        precondition(isDone, "a digest is finished once")
        return Array(digest[..<Int(count)])
    }

    private static func openSSL(_ kind: OpaquePointer?) -> OpaquePointer {
        guard let context = unsafe EVP_MD_CTX_new() else { preconditionFailure("OpenSSL has no memory for a digest") }
        let status = unsafe EVP_DigestInit_ex(context, kind, nil)
        precondition(status == 1, "OpenSSL could not begin a digest")
        return unsafe context
    }

    private static func blake2b() -> OpaquePointer {
        precondition(isSodiumReady, "libsodium could not be initialised")
        let state = OpaquePointer(
            UnsafeMutableRawPointer.allocate(byteCount: crypto_generichash_blake2b_statebytes(), alignment: 64))
        let status = unsafe crypto_generichash_blake2b_init(state, nil, 0, blake2bBytes)
        precondition(status == 0, "libsodium could not begin a digest")
        return unsafe state
    }
}
