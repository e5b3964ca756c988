import Authentication
import Credentials
import FuzzSupport
import Message

/// The input is a value of `Proxy-Authorization`. One scheme reads it at most, what is read is as the grammar has it, and nobody is let in
/// with a secret that the input does not know.
@_cdecl("FuzzProxyAuthorization_main")
public func entry(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    unsafe fuzz(count, arguments) { start, count in
        let value = unsafe Array(input(start, count))
        let basic = BasicCredentials(fieldValue: value)
        switch DigestCredentials.read(value[...]) {
        case .otherScheme: break
        case .malformed: precondition(basic == nil, "a value has one scheme")
        case .credentials(let credentials):
            precondition(basic == nil, "a value has one scheme")
            precondition(credentials.count > 0, "a count begins with 1")
            precondition(!credentials.uri.isEmpty, "a digest is for a target")
            do {
                let secret = Secret("not known to the input")
                let isProven = try credentials.prove(secret, method: Array("GET".utf8), using: Sum())
                precondition(!isProven, "nobody guesses a secret")
                let isKnownBody = try credentials.prove(secret, method: [], body: .content(value), using: Sum())
                precondition(!isKnownBody, "nobody guesses a secret")
                _ = try credentials.information(secret, body: .content(value), next: value, using: Sum())
            } catch {
                preconditionFailure("the sum of bytes can always be computed")
            }
        }
        if let basic {
            precondition(!basic.user.utf8.contains(UInt8(ascii: ":")), "the name ends at the first colon")
        }
        return 0
    }
}

/// Not a digest, but quick.
private struct Sum: Hashing {
    func hash(_ algorithm: HashAlgorithm, _ bytes: [UInt8]) -> [UInt8] {
        var sum: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in bytes { sum = (sum ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return (0..<algorithm.byteCount).map { UInt8(truncatingIfNeeded: sum >> UInt64($0 % 8 * 8)) }
    }

    func hmac(_ algorithm: HashAlgorithm, key: [UInt8], _ bytes: [UInt8]) -> [UInt8] { hash(algorithm, key + bytes) }
}
