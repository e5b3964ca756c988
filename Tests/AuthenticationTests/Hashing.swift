import Credentials
import TLS

/// The hash functions of OpenSSL.
struct OpenSSLHashing: Hashing {
    func hash(_ algorithm: HashAlgorithm, _ bytes: [UInt8]) throws(HashUnavailable) -> [UInt8] {
        let function: HashFunction =
            switch algorithm {
            case .md4: .md4
            case .md5: .md5
            case .sha1: .sha1
            case .sha256: .sha256
            case .sha512_256: .sha512_256
            }
        guard let digest = Digest.hash(function, bytes) else { throw HashUnavailable(algorithm) }
        return digest
    }

    func hmac(_ algorithm: HashAlgorithm, key: [UInt8], _ bytes: [UInt8]) throws(HashUnavailable) -> [UInt8] {
        throw HashUnavailable(algorithm)
    }
}

/// The same, in parts.
struct OpenSSLRunningHash: RunningHash {
    private var state: HashState

    init?(_ algorithm: HashAlgorithm) {
        let function: HashFunction =
            switch algorithm {
            case .md4: .md4
            case .md5: .md5
            case .sha1: .sha1
            case .sha256: .sha256
            case .sha512_256: .sha512_256
            }
        guard let state = HashState(function) else { return nil }
        self.state = state
    }

    mutating func add(_ bytes: borrowing Span<UInt8>) { state.add(bytes) }

    mutating func finish(into hash: inout HashBytes) { state.finish(into: &hash) }
}
