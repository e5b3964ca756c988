import Credentials
import Message
import Routing
import Origins
import Testing

@testable import LogIns

@Suite("Credential desk") struct CredentialDeskTests {
    private let key = CredentialLedger.Key(
        credential: "c", at: .origin(Origin(.http, Endpoint(host: "a.example", port: 80))))
    private let rule = CredentialRule(
        name: "c", .password(user: "u", schemes: [.digest], isUnasked: false), nil,
        secrets: [.password: .text(Secret("p"))])

    private func challenge(_ nonce: String) -> DigestChallenge {
        let text = "Digest realm=\"r\", nonce=\"\(nonce)\", qop=\"auth\", stale=true"
        guard let challenge = parseChallenges([Array(text.utf8)[...]]).first.flatMap({ DigestChallenge($0) }) else {
            preconditionFailure("a challenge")
        }
        return challenge
    }

    /// A request may have been allowed to go out under one nonce, and get its connection when the next one is in use.
    @Test func `a request that is late answers the newest challenge, and no count of a nonce is used twice`() throws {
        let desk = CredentialDesk()
        _ = desk.tell(.challenged(.digest(challenge("one")), nil), at: key, rule, secretNumber: 1)
        func send(_ number: Int) throws -> String {
            let request = DigestRequest(method: Array("GET".utf8), uri: Array("/".utf8), body: .empty)
            let (authorization, answered) = try desk.authorization(
                challenge(number == 1 ? "one" : "two"), number: number, for: request, at: key, user: "u",
                secret: Secret("p"))
            let value = String(decoding: authorization.value, as: UTF8.self)
            let parts = value.split(separator: ", ").filter { $0.hasPrefix("nonce=") || $0.hasPrefix("nc=") }
            return parts.joined(separator: " ") + " for \(answered)"
        }
        #expect(try send(1) == "nonce=\"one\" nc=00000001 for 1")
        #expect(try send(2) == "nonce=\"two\" nc=00000001 for 2")
        #expect(try send(1) == "nonce=\"two\" nc=00000002 for 2")
        #expect(try send(2) == "nonce=\"two\" nc=00000003 for 2")
    }
}
