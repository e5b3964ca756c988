import Message
import Testing

@testable import Credentials

@Suite("[MS-NLMP] NTLMv2: the answer to a challenge")
struct NTLMTests {
    /// The CHALLENGE_MESSAGE of §4.2.4.3.
    static let challenge = bytes(
        hex: """
            4e544c4d53535000 02000000 0c000c0038000000 33828ae2 0123456789abcdef 0000000000000000
            2400240044000000 06007017 0000000f 530065007200760065007200
            02000c0044006f006d00610069006e00 01000c00530065007200760065007200 00000000
            """)
    static let clientChallenge = [UInt8](repeating: 0xAA, count: 8)
    static let user = NTLMCredential(user: "User", domain: "Domain", password: Secret("Password"))
    static let hashing = NTLMHashing(OpenSSLHashing())

    /// A challenge with other attributes.
    static func challenge(_ pairs: [(NTLMTargetInfo.ID, String)], flags: String = "33828ae2") throws -> NTLMChallenge {
        var info = NTLMTargetInfo()
        for (id, value) in pairs { info[id] = bytes(hex: value) }
        let head = bytes(
            hex: "4e544c4d53535000 02000000 0000000000000000 \(flags) 0123456789abcdef 0000000000000000")
        let length = littleEndian(UInt16(info.bytes.count))
        return try NTLMChallenge(
            head + length + length + bytes(hex: "38000000 0000000000000000") + info.bytes)
    }

    static func authenticate(
        _ challenge: NTLMChallenge, _ user: NTLMCredential = user, endPoint: [UInt8]? = nil,
        at time: WallTime = WallTime(secondsSinceEpoch: -11_644_473_600)
    ) throws -> AuthenticateMessage {
        let message = try user.authenticate(
            challenge, .init(host: "o.test", endPoint: endPoint), clientChallenge: clientChallenge, at: time,
            using: OpenSSLHashing())
        return try #require(AuthenticateMessage(message))
    }

    @Test func `NTOWFv2 of §4.2.4.1.1`() throws {
        #expect(hexText(try Self.user.responseKey(Self.hashing).bytes) == "0c868a403bfd7a93a3001ef22ef02e3f")
    }

    @Test func `the answers of §4.2.4.2`() throws {
        let challenge = try NTLMChallenge(Self.challenge)
        let answer = try NTLMv2Answer(
            key: Self.user.responseKey(Self.hashing), serverChallenge: challenge.serverChallenge,
            clientChallenge: Self.clientChallenge, time: [UInt8](repeating: 0, count: 8),
            try #require(challenge.targetInfo), Self.hashing)
        #expect(
            hexText(answer.ntlm) == """
                68cd0ab851e51c96aabc927bebef6a1c01010000000000000000000000000000aaaaaaaaaaaaaaaa00000000\
                02000c0044006f006d00610069006e0001000c005300650072007600650072000000000000000000
                """)
        #expect(hexText(answer.lanManager) == "86c35097ac9cec102554764a57cccc19aaaaaaaaaaaaaaaa")
        #expect(hexText(answer.sessionBaseKey.bytes) == "8de40ccadbc14a82f15cb0ad0de95ca3")
    }

    @Test func `the first message offers Unicode, NTLM and session security, and names nobody`() {
        #expect(
            hexText(NTLMCredential.negotiate) == "4e544c4d53535000" + "01000000" + "058208a2"
                + String(repeating: "0", count: 32) + "0a0000000000000f")
    }

    @Test func `the third message names domain and user, and has no session key`() throws {
        let message = try Self.authenticate(try NTLMChallenge(Self.challenge))
        #expect(message.domain == "Domain" && message.user == "User")
        #expect(message.workstation.isEmpty && message.sessionKey.isEmpty)
        // Of what the server offered, without its demand for a key exchange.
        #expect(message.flags == 0xA288_8201)
        #expect(hexText(message.version) == "0a0000000000000f")
        #expect(message.lanManager == bytes(hex: "86c35097ac9cec102554764a57cccc19aaaaaaaaaaaaaaaa"))
    }

    static let users: [(user: String, domain: String?, expected: [String])] = [
        (#"Domain\User"#, nil, ["User", "Domain"]), ("User", nil, ["User", ""]), (#"a\b\c"#, nil, [#"b\c"#, "a"]),
        ("user@example.org", nil, ["user@example.org", ""]), (#"a\b"#, "d", [#"a\b"#, "d"]),
        (#"\b"#, nil, ["b", ""]), ("b", "", ["b", ""]),
    ]
    @Test(arguments: users) func `a user may name the domain`(
        _ row: (user: String, domain: String?, expected: [String])
    ) {
        let credential = NTLMCredential(user: row.user, domain: row.domain, password: Secret(""))
        #expect([credential.user, credential.domain] == row.expected)
    }

    /// NTOWFv2 is the same for names that differ only as Windows compares them. The values are computed with Python.
    @Test func `the user counts without regard to case, the domain with it`() throws {
        func key(_ user: String, _ domain: String, _ password: String = "Password") throws -> String {
            let credential = NTLMCredential(user: user, domain: domain, password: Secret(password))
            return hexText(try credential.responseKey(Self.hashing).bytes)
        }
        #expect(try key("uSER", "Domain") == key("User", "Domain"))
        #expect(try key("User", "DOMAIN") != key("User", "Domain"))
        #expect(try key("jörg", "d") == key("JÖRG", "d"))
        // One character for one: "ß" is no "SS", and what lies beyond 16 bits has no capitals.
        #expect(try key("ß", "d") != key("SS", "d"))
        #expect(try key("\u{10428}", "d") != key("\u{10400}", "d"))
        #expect(try key("é", "", "pässwörd€😀") == "d5a922181129f1381eb425284be64982")
    }

    @Test func `a password that is not UTF-8, a name without end and a missing MD4 are faults`() throws {
        let challenge = try NTLMChallenge(Self.challenge)
        #expect(throws: NTLMFault.passwordIsNotUTF8) {
            try Self.authenticate(challenge, NTLMCredential(user: "u", password: Secret([0xFF])))
        }
        #expect(throws: NTLMFault.nameTooLong) {
            try Self.authenticate(
                challenge, NTLMCredential(user: String(repeating: "u", count: 1025), password: Secret("")))
        }
        #expect(throws: NTLMFault.hashUnavailable(.md4)) {
            try Self.user.authenticate(
                challenge, .init(host: "o.test", endPoint: nil), clientChallenge: Self.clientChallenge,
                at: WallTime(secondsSinceEpoch: 0), using: HashingWithoutMD4())
        }
    }
}
