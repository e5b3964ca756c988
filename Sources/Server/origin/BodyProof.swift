import Caching
import Forwarding
import TLS

/// Compares the digest of a body with the one that it must have, while the body arrives.
///
/// The last bytes are withheld until the digest is known to be right, so that no client gets a whole body that is wrong.
final class BodyProof {
    let expected: ExpectedDigest
    /// The body has a content coding, and the digest may be that of the decoded bytes. Some servers mark compressed files like this as well.
    let isCoded: Bool
    /// The digest of the body is the expected one. False until it has been concluded.
    private(set) var isRight = false
    /// Nil once the digest has been concluded.
    private var digest: RunningDigest?
    private var held: [UInt8] = []

    /// So many bytes are withheld at most.
    static let heldBytesMax = 4096

    init(_ expected: ExpectedDigest, isCoded: Bool) {
        self.expected = expected
        self.isCoded = isCoded
        digest =
            switch expected.algorithm {
            case .sha256: RunningDigest(.sha256)
            case .sha512: RunningDigest(.sha512)
            case .blake2b256: RunningDigest(.blake2b256)
            }
        held.reserveCapacity(2 * BodyProof.heldBytesMax)
    }

    /// Adds bytes of the body. Passes on what is followed by enough bytes, in order: nothing, one piece, or two, of which the first is not the last.
    func take(_ bytes: UnsafeRawBufferPointer, _ pass: (UnsafeRawBufferPointer, _ isLast: Bool) -> Void) {
        unsafe digest?.update(bytes)
        let surplus = held.count + bytes.count - BodyProof.heldBytesMax
        guard surplus > 0 else {
            unsafe held.append(contentsOf: bytes)
            return
        }
        let old = Array(held.prefix(surplus))
        held.removeFirst(old.count)
        let passed = surplus - old.count
        unsafe held.append(contentsOf: bytes[passed...])
        if !old.isEmpty { unsafe old.withUnsafeBytes { unsafe pass($0, passed == 0) } }
        if passed > 0 { unsafe pass(UnsafeRawBufferPointer(rebasing: bytes[..<passed]), true) }
    }

    /// The digest of the whole body, in lower-case hexadecimal digits.
    func conclude() -> [UInt8] {
        guard let digest = digest.take() else { preconditionFailure("a body ends once") }
        let found = digest.finish().flatMap { [HeadWriter.hexDigit($0 >> 4), HeadWriter.hexDigit($0 & 15)] }
        isRight = found == expected.digits
        return found
    }

    /// Passes on the last bytes of a body that is right.
    func release(_ pass: (UnsafeRawBufferPointer) -> Void) {
        let rest = held
        held = []
        if !rest.isEmpty { unsafe rest.withUnsafeBytes { unsafe pass($0) } }
    }
}
