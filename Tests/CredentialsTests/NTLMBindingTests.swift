import Message
import Testing

@testable import Credentials

@Suite("[MS-NLMP] §3.1.5.1.2 What binds the answer to the server")
struct NTLMBindingTests {
    private static let timestamp = (NTLMTargetInfo.ID.timestamp, "0011223344556677")
    /// HTTP/o.test
    private static let targetName = "48005400540050002f006f002e007400650073007400"

    @Test func `if the server says the time, that time is used, and the message has an integrity code`() throws {
        let challenge = try NTLMTests.challenge([Self.timestamp])
        let message = try NTLMTests.authenticate(challenge)
        #expect(hexText(message.time) == Self.timestamp.1)
        #expect(message.info[.flags] == [2, 0, 0, 0])
        #expect(message.lanManager == [UInt8](repeating: 0, count: 24))
        var zeroed = message.bytes
        zeroed.replaceSubrange(72..<88, with: [UInt8](repeating: 0, count: 16))
        let key = try NTLMTests.user.responseKey(NTLMTests.hashing).bytes
        let proof = Array(message.ntlm.prefix(16))
        #expect(try NTLMTests.hashing.hmac(key, challenge.serverChallenge + message.ntlm.dropFirst(16)) == proof)
        let sessionKey = try NTLMTests.hashing.hmac(key, proof)
        #expect(
            try NTLMTests.hashing.hmac(sessionKey, NTLMCredential.negotiate + challenge.message + zeroed)
                == message.code)
    }

    @Test func `without it the time is the client's, and there is no code`() throws {
        // 2026-11-23T00:00:00Z and half a second.
        let time = WallTime(secondsSinceEpoch: 1_795_392_000) + TimeSpan(ticks: 512)
        let message = try NTLMTests.authenticate(try NTLMChallenge(NTLMTests.challenge), at: time)
        let value = message.time.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        #expect(value == (1_795_392_000 + 11_644_473_600) * 10_000_000 + 5_000_000)
        #expect(message.info[.flags] == nil)
        #expect(message.code == [UInt8](repeating: 0, count: 16))
        #expect(message.lanManager.suffix(8) == NTLMTests.clientChallenge[...])
    }

    @Test func `the flags of the server stay`() throws {
        let challenge = try NTLMTests.challenge([(.flags, "01000080"), Self.timestamp])
        let message = try NTLMTests.authenticate(challenge)
        #expect(message.info[.flags] == [3, 0, 0, 0x80])
        #expect(message.info.pairs.map(\.id) == [6, 7, 10, 9], "each attribute stands once, the server's first")
    }

    /// Python: hashlib.md5(bytes(16) + struct.pack("<I", 53) + b"tls-server-end-point:" + bytes(range(32))).
    @Test func `the certificate of the server is bound, in place of what the server names`() throws {
        let challenge = try NTLMTests.challenge([(.channelBindings, "00"), (.targetName, "6100"), Self.timestamp])
        let message = try NTLMTests.authenticate(challenge, endPoint: Array(0..<32))
        #expect(message.info[.channelBindings].map(hexText) == "8f1214c9c9cab8dc3bf866da9aba57a7")
        #expect(message.info[.targetName].map(hexText) == Self.targetName)
    }

    @Test func `without TLS the bindings are zeros`() throws {
        let message = try NTLMTests.authenticate(try NTLMTests.challenge([Self.timestamp]))
        #expect(message.info[.channelBindings] == [UInt8](repeating: 0, count: 16))
        #expect(message.info[.targetName].map(hexText) == Self.targetName)
    }

    @Test func `to a server that says nothing of itself, nothing is said`() throws {
        // Without NTLMSSP_NEGOTIATE_TARGET_INFO.
        let message = try NTLMTests.authenticate(try NTLMTests.challenge([Self.timestamp], flags: "05820822"))
        #expect(message.info.pairs.isEmpty)
        #expect(message.code == [UInt8](repeating: 0, count: 16))
        #expect(message.version == bytes(hex: "0a0000000000000f"))
    }

    @Test func `without its flag there is no version`() throws {
        let message = try NTLMTests.authenticate(try NTLMTests.challenge([], flags: "05820820"))
        #expect(message.version == [UInt8](repeating: 0, count: 8))
    }
}
