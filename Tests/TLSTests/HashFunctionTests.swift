import Testing

@testable import TLS

@Suite("Hash functions of authentication")
struct HashFunctionTests {
    /// Of "abc": RFC 1320 §A.5, RFC 1321 §A.5, FIPS 180-4.
    static let rows: [(HashFunction, String)] = [
        (.md4, "a448017aaf21d8525fc10ae87aa6729d"), (.md5, "900150983cd24fb0d6963f7d28e17f72"),
        (.sha1, "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (.sha512_256, "53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23"),
    ]
    @Test(arguments: rows) func `give the digests of their standards`(_ function: HashFunction, _ expected: String) {
        #expect(Digest.hash(function, Array("abc".utf8)).map(hex) == expected)
        #expect(Digest.hash(function, [])?.count == expected.count / 2)
    }

    @Test func `MD4 of nothing and of 80 digits (RFC 1320 §A.5)`() {
        #expect(Digest.hash(.md4, []).map(hex) == "31d6cfe0d16ae931b73c59d7e0c089c0")
        let digits = String(repeating: "1234567890", count: 8)
        #expect(Digest.hash(.md4, Array(digits.utf8)).map(hex) == "e33b4ddc9c38f2199c3e7b164fcc0536")
    }

    @Test func `without the legacy module there is no MD4, and the other functions are not affected`() {
        let missing = LegacyAlgorithms(searchPath: "/nonexistent")
        #expect(Digest.hash(.md4, [], legacy: missing) == nil)
        #expect(Digest.hash(.md5, [], legacy: missing) != nil)
    }

    /// RFC 2202 §2 and §3, RFC 4231 §4.3.
    static let codes: [(HashFunction, String)] = [
        (.md5, "750c783e6ab0b503eaa86e310a5db738"), (.sha1, "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
        (.sha256, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
    ]
    @Test(arguments: codes) func `HMAC gives the codes of its test vectors`(
        _ function: HashFunction, _ expected: String
    ) {
        let code = Digest.hmac(function, key: Array("Jefe".utf8), Array("what do ya want for nothing?".utf8))
        #expect(code.map(hex) == expected)
    }

    /// Python's hmac gives the same.
    @Test func `an HMAC may have an empty key and an empty message`() {
        #expect(Digest.hmac(.md5, key: [], []).map(hex) == "74e6f7298a9c2d168935f58c001bad88")
    }

    private func hex(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
