package import Credentials
import TLS

/// The hash functions of the schemes, by OpenSSL.
package struct OpenSSLHashing: Hashing {
    package init() {}

    package func hash(_ algorithm: HashAlgorithm, _ bytes: [UInt8]) throws(HashUnavailable) -> [UInt8] {
        guard let digest = Digest.hash(algorithm.function, bytes) else { throw HashUnavailable(algorithm) }
        return digest
    }

    package func hmac(_ algorithm: HashAlgorithm, key: [UInt8], _ bytes: [UInt8]) throws(HashUnavailable) -> [UInt8] {
        guard let code = Digest.hmac(algorithm.function, key: key, bytes) else { throw HashUnavailable(algorithm) }
        return code
    }
}

/// The hashes of Digest, computed in place by OpenSSL.
package struct OpenSSLRunningHash: RunningHash {
    private var state: HashState

    package init?(_ algorithm: HashAlgorithm) {
        guard let state = HashState(algorithm.function) else { return nil }
        self.state = state
    }

    package mutating func add(_ bytes: borrowing Span<UInt8>) { state.add(bytes) }

    package mutating func finish(into hash: inout HashBytes) { state.finish(into: &hash) }
}

extension HashAlgorithm {
    fileprivate var function: HashFunction {
        switch self {
        case .md4: .md4
        case .md5: .md5
        case .sha1: .sha1
        case .sha256: .sha256
        case .sha512_256: .sha512_256
        }
    }
}
