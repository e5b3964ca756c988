import FuzzSupport
import Message

@testable import Credentials

/// The input is a CHALLENGE_MESSAGE of a server. It is refused, or answered with a message whose fields lie within it.
@_cdecl("FuzzNTLM_main")
public func entry(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    unsafe fuzz(count, arguments) { start, count in
        let bytes = unsafe input(start, count)
        guard let challenge = try? NTLMChallenge(bytes) else { return 0 }
        if let info = challenge.targetInfo {
            precondition(NTLMTargetInfo(info.bytes) == info, "the attributes are written as they were read")
        }
        let credential = NTLMCredential(user: "d\\u", password: Secret("p"))
        let answer = try? credential.authenticate(
            challenge, .init(host: "a", endPoint: [1]), clientChallenge: [UInt8](repeating: 0xAA, count: 8),
            at: WallTime(secondsSinceEpoch: 0), using: SumHashing())
        guard let answer else { preconditionFailure("a challenge that is read is answered") }
        for place in stride(from: 12, to: 60, by: 8) {
            let length = Int(answer[place]) | Int(answer[place + 1]) << 8
            let offset = (0..<4).reduce(0) { $0 | Int(answer[place + 4 + $1]) << (8 * $1) }
            precondition(offset >= 88 && offset + length <= answer.count, "a field lies behind the head")
        }
        return 0
    }
}

/// No hash, but as long as one.
private struct SumHashing: Hashing {
    func hash(_ algorithm: HashAlgorithm, _ bytes: [UInt8]) throws(HashUnavailable) -> [UInt8] {
        [UInt8](repeating: bytes.reduce(0, &+), count: 16)
    }

    func hmac(_ algorithm: HashAlgorithm, key: [UInt8], _ bytes: [UInt8]) throws(HashUnavailable) -> [UInt8] {
        try hash(algorithm, key + bytes)
    }
}
