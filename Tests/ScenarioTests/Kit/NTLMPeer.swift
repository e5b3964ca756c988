import Credentials
import Foundation
import LogIns
import Message
import TLS

@testable import Server

/// What a scripted server says in a log-in with NTLM, and what it wants to hear ([MS-NLMP]).
enum NTLMPeer {
    /// The value of the field with the first message.
    static let beginning = "NTLM \(Data(NTLMCredential.negotiate).base64EncodedString())"
    /// The CHALLENGE_MESSAGE of §4.2.4.3, with the time of the server among its attributes.
    static let challenge = challengeMessage
    /// The value of the field with the second message.
    static let challengeValue = "NTLM \(Data(challenge).base64EncodedString())"

    /// Whether the value of a field is the third message, made for this host and channel.
    static func accepts(
        _ value: String?, of user: NTLMCredential, host: String, endPoint: [UInt8]? = nil
    ) throws -> Bool {
        guard let value, value.hasPrefix("NTLM "), let data = Data(base64Encoded: String(value.dropFirst(5))),
            data.count > 88
        else { return false }
        let message = Array(data)
        let field = Int(message[24]) | Int(message[25]) << 8
        guard message[20] >= 48, field + 40 <= message.count else { return false }
        // The client chooses eight bytes. All else follows.
        return message
            == (try user.authenticate(
                try NTLMChallenge(challenge), .init(host: host, endPoint: endPoint),
                clientChallenge: Array(message[field + 32..<field + 40]), at: WallTime(secondsSinceEpoch: 0),
                using: OpenSSLHashing()))
    }
}

private let challengeMessage: [UInt8] = {
    func text(_ text: String) -> [UInt8] { text.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] } }
    func pair(_ id: UInt8, _ value: [UInt8]) -> [UInt8] { [id, 0, UInt8(value.count), 0] + value }
    let info =
        pair(2, text("Domain")) + pair(1, text("Server"))
        + pair(7, [0x00, 0x90, 0xD3, 0x36, 0xB7, 0x34, 0xC3, 0x01]) + [0, 0, 0, 0]
    let length: [UInt8] = [UInt8(info.count), 0]
    return Array("NTLMSSP\0".utf8) + [2, 0, 0, 0, 12, 0, 12, 0, 56, 0, 0, 0, 0x33, 0x82, 0x8A, 0xE2]
        + [0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF] + [UInt8](repeating: 0, count: 8) + length + length
        + [68, 0, 0, 0, 6, 0, 0x70, 0x17, 0, 0, 0, 0x0F] + text("Server") + info
}()
