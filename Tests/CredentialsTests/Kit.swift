import Credentials
import TLS

/// The hash functions of OpenSSL.
struct OpenSSLHashing: Hashing {
    func hash(_ algorithm: HashAlgorithm, _ bytes: [UInt8]) throws(HashUnavailable) -> [UInt8] {
        guard let digest = Digest.hash(Self.function(algorithm), bytes) else { throw HashUnavailable(algorithm) }
        return digest
    }

    func hmac(_ algorithm: HashAlgorithm, key: [UInt8], _ bytes: [UInt8]) throws(HashUnavailable) -> [UInt8] {
        guard let code = Digest.hmac(Self.function(algorithm), key: key, bytes) else {
            throw HashUnavailable(algorithm)
        }
        return code
    }

    private static func function(_ algorithm: HashAlgorithm) -> HashFunction {
        switch algorithm {
        case .md4: .md4
        case .md5: .md5
        case .sha1: .sha1
        case .sha256: .sha256
        case .sha512_256: .sha512_256
        }
    }
}

/// An installation without MD4.
struct HashingWithoutMD4: Hashing {
    func hash(_ algorithm: HashAlgorithm, _ bytes: [UInt8]) throws(HashUnavailable) -> [UInt8] {
        guard algorithm != .md4 else { throw HashUnavailable(.md4) }
        return try OpenSSLHashing().hash(algorithm, bytes)
    }

    func hmac(_ algorithm: HashAlgorithm, key: [UInt8], _ bytes: [UInt8]) throws(HashUnavailable) -> [UInt8] {
        try OpenSSLHashing().hmac(algorithm, key: key, bytes)
    }
}

func text(_ bytes: some Collection<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }

func challenges(_ lines: String...) -> [Challenge] { parseChallenges(lines.map { Array($0.utf8)[...] }) }

extension Challenge {
    /// `scheme{name=value|name=value}` or `scheme<token68>`.
    var shown: String {
        switch content {
        case .token68(let token): "\(text(scheme))<\(text(token))>"
        case .parameters(let parameters):
            "\(text(scheme)){\(parameters.map { "\(text($0.name))=\(text($0.value))" }.joined(separator: "|"))}"
        }
    }
}

func hexText(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}

func bytes(hex text: String) -> [UInt8] {
    let digits = text.filter { !$0.isWhitespace }.compactMap(\.hexDigitValue)
    return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
}
