import Caching
import Compression
import Forwarding
import Message
import TLS
import Transaction

/// Compares the digest of a body with the one that it must have, while the body arrives.
///
/// The last bytes are withheld until the digest is known to be right, so that no client gets a whole body that is wrong.
///
/// A body that comes as gzip is right if its bytes have the digest, or if the decoded bytes have it: the first where a server marks compressed
/// files like this, the second where it compresses what it sends.
final class BodyProof: ContentFilter {
    let expected: ExpectedDigest
    /// The digests of the whole body: of its bytes, and of the decoded bytes if it is gzip. Empty before its end.
    private(set) var found: [ExpectedDigest] = []
    /// The digest of the body is the expected one. False before its end.
    var isRight: Bool { found.contains(expected) }
    /// Nil once the digest has been concluded.
    private var digest: RunningDigest?
    /// Nil if the body has no coding, or once the digest has been concluded.
    private var decodedDigest: DecodedDigest?
    private var held: [UInt8] = []

    /// So many bytes are withheld at most.
    static let heldBytesMax = 4096

    init(_ expected: ExpectedDigest, isGzip: Bool = false) {
        self.expected = expected
        digest = RunningDigest(expected.algorithm)
        decodedDigest = isGzip ? DecodedDigest(expected.algorithm) : nil
        held.reserveCapacity(2 * BodyProof.heldBytesMax)
    }

    /// Nil if the digest may be that of bytes which Larder cannot see: the body has another coding than gzip, and the address does not name a file
    /// that is compressed itself.
    convenience init?(_ expected: ExpectedDigest, of fields: Fields, at uri: some Collection<UInt8>) {
        switch StoredCoding(of: fields) {
        case .identity: self.init(expected)
        case .single(.gzip): self.init(expected, isGzip: true)
        case .single, .opaque:
            guard namesCompressedFile(uri) else { return nil }
            self.init(expected)
        }
    }

    /// Passes on what is followed by enough bytes.
    func take(_ piece: UnsafeRawBufferPointer, _ pass: (UnsafeRawBufferPointer) -> Bool) -> Bool {
        unsafe add(piece)
        let surplus = held.count + piece.count - BodyProof.heldBytesMax
        guard surplus > 0 else {
            unsafe held.append(contentsOf: piece)
            return true
        }
        let old = Array(held.prefix(surplus))
        held.removeFirst(old.count)
        let passed = surplus - old.count
        unsafe held.append(contentsOf: piece[passed...])
        if !old.isEmpty, unsafe !old.withUnsafeBytes({ unsafe pass($0) }) { return false }
        return unsafe passed == 0 || pass(UnsafeRawBufferPointer(rebasing: piece[..<passed]))
    }

    /// Adds bytes of the body to its digests, and passes nothing on.
    func add(_ bytes: UnsafeRawBufferPointer) {
        unsafe digest?.update(bytes)
        unsafe decodedDigest?.update(bytes)
    }

    /// Concludes the digests.
    func conclude() {
        guard let digest = digest.take() else { preconditionFailure("a body ends once") }
        let digests = [digest.finish(), decodedDigest.take()?.finish()].compactMap { $0 }
        found = digests.map { ExpectedDigest(expected.algorithm, hexadecimal($0)) }
    }

    /// Passes on the last bytes of a body that is right.
    func finish(_ pass: (UnsafeRawBufferPointer) -> Bool) -> Refusal? {
        conclude()
        guard isRight else { return .digestMismatch }
        let rest = held
        held = []
        if !rest.isEmpty { _ = unsafe rest.withUnsafeBytes { unsafe pass($0) } }
        return nil
    }
}

/// The digest of what a gzip stream decodes to. What the stream has beyond its bounds is not decoded (`InflateBounds`).
private struct DecodedDigest: ~Copyable {
    private var inflator: Inflator?
    private var digest: RunningDigest
    private var output: [UInt8] = []

    private static let roomBytes = 64 << 10

    init(_ algorithm: DigestRule.Algorithm) {
        inflator = Inflator()
        digest = RunningDigest(algorithm)
    }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        var rest = unsafe bytes
        var needsRoom = true
        while needsRoom, inflator != nil {
            output.removeAll(keepingCapacity: true)
            do throws(InflateError) {
                let step = unsafe try appendStep(to: &output, room: Self.roomBytes) { room throws(InflateError) in
                    unsafe try inflator!.step(rest, into: room)
                }
                unsafe output.withUnsafeBytes { unsafe digest.update($0) }
                unsafe rest = UnsafeRawBufferPointer(rebasing: rest[step.consumed...])
                needsRoom = step.needsRoom
            } catch {
                inflator = nil
            }
        }
    }

    /// Nil if the bytes were not gzip, or not all of it, or others follow: nothing would prove those.
    consuming func finish() -> [UInt8]? {
        guard let inflator = inflator.take(), inflator.isAtEndOfMember else { return nil }
        return digest.finish()
    }
}

extension RunningDigest {
    fileprivate init(_ algorithm: DigestRule.Algorithm) {
        let same: RunningDigest.Algorithm =
            switch algorithm {
            case .sha256: .sha256
            case .sha512: .sha512
            case .blake2b256: .blake2b256
            }
        self.init(same)
    }
}
