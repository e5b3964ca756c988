import TLS
import Testing

@Suite("Digests")
struct DigestTests {
    private func hex(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    @Test func `SHA-256 gives the digests of FIPS 180-4`() {
        #expect(
            hex(Digest.sha256(Array("abc".utf8))) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        #expect(hex(Digest.sha256([])) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    }

    /// RFC 4231 §4.3, §4.4 and §4.7: short keys, and one that is longer than a block.
    @Test(
        arguments: [
            (
                Array("Jefe".utf8), Array("what do ya want for nothing?".utf8),
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
            ),
            (
                [UInt8](repeating: 0xAA, count: 20), [UInt8](repeating: 0xDD, count: 50),
                "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"
            ),
            (
                [UInt8](repeating: 0xAA, count: 131),
                Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
            ),
        ]) func `a prepared key gives the codes of RFC 4231, wherever the message is divided`(
            _ key: [UInt8], _ message: [UInt8], _ code: String
        )
    {
        let key = HMACKey(key)
        for end in message.indices {
            let rest = message[end...]
            let own = key.code(Array(message[..<end]), rest.span)
            #expect(hex(own) == code)
        }
    }

    @Test func `HMAC gives the digest of RFC 4231 §4.3`() {
        let code = Digest.hmacSHA256(key: Array("Jefe".utf8), Array("what do ya want for nothing?".utf8))
        #expect(hex(code) == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
    }

    @Test(arguments: [0, 1, 55, 64, 1000]) func `a running digest is that of the whole, however it is divided`(
        _ length: Int
    ) {
        let message = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        for step in [1, 7, 64, 4096] {
            var digest = RunningDigest(.sha256)
            for start in stride(from: 0, to: length, by: step) {
                unsafe message[start..<min(start + step, length)].withUnsafeBytes { unsafe digest.update($0) }
            }
            #expect(digest.finish() == Digest.sha256(message))
        }
        #expect(hex(RunningDigest(.blake2b256).finish()).hasPrefix("0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787"))
        #expect(hex(RunningDigest(.sha512).finish()).hasPrefix("cf83e1357eefb8bdf1542850d66d8007"))
    }

    /// The values are those of Python's hashlib.
    @Test(arguments: [1, 7, 128, 1000]) func `BLAKE2b has 32 bytes (RFC 7693)`(_ step: Int) {
        let message = (0..<1000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        var digest = RunningDigest(.blake2b256)
        for start in stride(from: 0, to: message.count, by: step) {
            unsafe message[start..<min(start + step, message.count)].withUnsafeBytes { unsafe digest.update($0) }
        }
        #expect(hex(digest.finish()) == "6ac4bea923678eb024090384d6e767b5870f849057dc19b172d8d9f2df30bf8e")
    }

    @Test func `secrets are compared completely`() {
        #expect(Digest.areEqual([1, 2, 3], [1, 2, 3]))
        #expect(!Digest.areEqual([1, 2, 3], [1, 2, 4]))
        #expect(!Digest.areEqual([1, 2, 3], [1, 2]))
    }
}
