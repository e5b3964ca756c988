import Testing

@testable import Credentials

@Suite("[MS-NLMP] §2.2.1.2 CHALLENGE_MESSAGE")
struct NTLMChallengeTests {
    @Test func `the example of §4.2.4.3 is read`() throws {
        let challenge = try NTLMChallenge(NTLMTests.challenge)
        #expect(hexText(challenge.serverChallenge) == "0123456789abcdef")
        #expect(challenge.flags.rawValue == 0xE28A_8233)
        #expect(challenge.targetInfo?.pairs.map(\.id) == [2, 1])
        #expect(challenge.targetInfo?.bytes == Array(NTLMTests.challenge.suffix(36)))
    }

    /// A change of bytes from an offset on.
    static let damaged: [(String, offset: Int, bytes: String, NTLMFault)] = [
        ("signature", 0, "4f", .notAChallenge), ("kind", 8, "03", .notAChallenge), ("kind", 9, "01", .notAChallenge),
        ("no Unicode", 20, "32", .noUnicode), ("length of the attributes", 40, "2500", .outOfBounds),
        ("offset of the attributes", 44, "45000000", .outOfBounds), ("offset", 44, "ffffffff", .outOfBounds),
        ("offset", 47, "80", .outOfBounds), ("length of the attributes", 40, "2300", .malformedTargetInfo),
        ("length of the attributes", 40, "0000", .malformedTargetInfo),
        ("length of a pair", 70, "ffff", .malformedTargetInfo), ("length of a pair", 70, "1d00", .malformedTargetInfo),
        ("flags of twelve bytes", 68, "06", .malformedTargetInfo),
        ("time of twelve bytes", 68, "07", .malformedTargetInfo),
    ]
    @Test(arguments: damaged) func `a damaged message is refused`(
        _ row: (String, offset: Int, bytes: String, NTLMFault)
    ) {
        var message = NTLMTests.challenge
        let change = bytes(hex: row.bytes)
        message.replaceSubrange(row.offset..<row.offset + change.count, with: change)
        #expect(throws: row.3) { try NTLMChallenge(message) }
    }

    @Test func `no part of a message is a message`() {
        for count in 0..<NTLMTests.challenge.count {
            #expect(throws: count < 8 ? NTLMFault.notAChallenge : .outOfBounds, "\(count)") {
                try NTLMChallenge(Array(NTLMTests.challenge.prefix(count)))
            }
        }
    }

    @Test func `the size is bounded`() throws {
        let padding = [UInt8](repeating: 0, count: NTLMChallenge.bytesMax - NTLMTests.challenge.count)
        #expect(throws: Never.self) { try NTLMChallenge(NTLMTests.challenge + padding) }
        #expect(throws: NTLMFault.tooLong) { try NTLMChallenge(NTLMTests.challenge + padding + [0]) }
    }

    /// Old servers end their message before the attributes.
    @Test func `a message without attributes ends after the challenge`() throws {
        var message = Array(NTLMTests.challenge.prefix(32))
        message[22] = 0x0A
        #expect(try NTLMChallenge(message).targetInfo == nil)
    }

    @Test(arguments: 0..<200) func `any damage is a fault, or is answered`(_ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var message = NTLMTests.challenge
        for _ in 0..<Int.random(in: 1...4, using: &generator) {
            message[Int.random(in: 8..<message.count, using: &generator)] = .random(in: 0...255, using: &generator)
        }
        do {
            let challenge = try NTLMChallenge(message)
            #expect(try NTLMTests.authenticate(challenge).user == "User")
        } catch let fault as NTLMFault {
            #expect([.notAChallenge, .outOfBounds, .malformedTargetInfo, .noUnicode].contains(fault))
        }
    }
}

/// AUTHENTICATE_MESSAGE (§2.2.1.3) as a server reads it.
struct AuthenticateMessage {
    let bytes: [UInt8]
    let lanManager, ntlm, sessionKey: [UInt8]
    let domain, user, workstation: String
    let flags: UInt32
    let info: NTLMTargetInfo
    var version: [UInt8] { Array(bytes[64..<72]) }
    var code: [UInt8] { Array(bytes[72..<88]) }
    var time: [UInt8] { Array(ntlm[24..<32]) }

    init?(_ message: [UInt8]) {
        func number(_ offset: Int, _ count: Int) -> Int {
            message[offset..<offset + count].reversed().reduce(0) { $0 << 8 | Int($1) }
        }
        func field(_ place: Int) -> [UInt8]? {
            let (length, offset) = (number(place, 2), number(place + 4, 4))
            guard length == number(place + 2, 2), offset >= 88, offset + length <= message.count else { return nil }
            return Array(message[offset..<offset + length])
        }
        func name(_ place: Int) -> String? {
            field(place).map { bytes in
                let units = stride(from: 0, to: bytes.count, by: 2).map {
                    UInt16(bytes[$0]) | UInt16(bytes[$0 + 1]) << 8
                }
                return String(decoding: units, as: UTF16.self)
            }
        }
        guard message.count >= 88, message.starts(with: ntlmSignature), number(8, 4) == 3, let lanManager = field(12),
            let ntlm = field(20), let domain = name(28), let user = name(36), let workstation = name(44),
            let sessionKey = field(52), ntlm.count >= 48, let info = NTLMTargetInfo(Array(ntlm.dropFirst(44)))
        else { return nil }
        bytes = message
        (self.lanManager, self.ntlm, self.sessionKey) = (lanManager, ntlm, sessionKey)
        (self.domain, self.user, self.workstation) = (domain, user, workstation)
        flags = UInt32(number(60, 4))
        self.info = info
    }
}
