import Authentication
import Message
import Rules
import Testing

/// A scheme of two requests: the first one gets a second challenge, the second one names the client.
private struct TwoSteps: AuthenticationScheme {
    let name = AuthenticationSchemeName.basic
    func challenges(at now: Duration, after failure: AuthenticationFailure?) -> [[UInt8]] {
        [Array((failure == .stale ? "Steps again" : "Steps").utf8)]
    }

    func examine(_ attempt: AuthenticationAttempt, _ memory: inout VerifiedCredentials) -> AuthenticationStep? {
        switch attempt.credentials.map({ String(decoding: $0, as: UTF8.self) }) {
        case "Steps one": .more(challenge: Array("Steps two?".utf8))
        case "Steps two": .known(Identity(name: "carol", scheme: .basic, groups: ["staff"], scope: .connection))
        default: nil
        }
    }

    func conclude(
        _ question: AuthenticationQuestion, _ answer: AuthenticationAnswer, _ attempt: AuthenticationAttempt,
        _ memory: inout VerifiedCredentials
    ) -> AuthenticationStep { .refused(.wrong) }
}

@Suite("RFC 9110 §11 Authentication")
struct AuthenticatorTests {
    static let hash = "$2y$10$abcdefghijklmnopqrstuuKy2Qp0OYp0OYp0OYp0OYp0OYp0OYp0O"
    static let users = HtpasswdFile.parse(Array("alice:\(hash)\n".utf8)).file
    static let authenticator = Authenticator([Basic(realm: "larder", users: users), TwoSteps()])
    static let alice = BasicCredentials(user: "alice", password: Array("secret".utf8))
    static let eve = BasicCredentials(user: "eve", password: Array("secret".utf8))

    static func attempt(_ credentials: String?, second: Int = 100) -> AuthenticationAttempt {
        AuthenticationAttempt(
            credentials: credentials.map { Array($0.utf8) }, client: ip("192.0.2.1"), now: .seconds(second))
    }
    static let basicAlice = "Basic YWxpY2U6c2VjcmV0"
    static let basicEve = "Basic ZXZlOnNlY3JldA=="

    @Test func `a 407 offers every scheme in order`() {
        #expect(
            Self.authenticator.challenges(at: .zero).map { String(decoding: $0, as: UTF8.self) }
                == [#"Basic realm="larder", charset="UTF-8""#, "Steps"])
        #expect(
            Self.authenticator.challenges(at: .zero, after: .stale).map { String(decoding: $0, as: UTF8.self) }
                == [#"Basic realm="larder", charset="UTF-8""#, "Steps again"])
    }

    static let rows: [(credentials: String?, decision: String)] = [
        (nil, "refused(missing)"),
        ("", "refused(missing)"),
        ("Unknown scheme", "refused(missing)"),
        ("Basic ???", "refused(missing)"),
        (basicAlice, "ask alice"),
        (basicEve, "ask nobody"),
        ("Steps one", "more Steps two?"),
        ("Steps two", "known carol"),
    ]
    @Test(arguments: rows) func `the first scheme that finds something of its own decides`(
        _ row: (credentials: String?, decision: String)
    ) {
        var memory = VerifiedCredentialsTests.make()
        #expect(Self.text(Self.authenticator.examine(Self.attempt(row.credentials), &memory)) == row.decision)
    }

    static func text(_ decision: Authenticator.Decision) -> String {
        switch decision {
        case .known(let identity, _): "known \(identity.name)"
        case .refused(let failure): "refused(\(failure))"
        case .more(let challenge): "more \(String(decoding: challenge, as: UTF8.self))"
        case .ask(let pending):
            switch pending.question {
            case .password(let credentials, let hash): "ask \(hash == nil ? "nobody" : credentials.user)"
            case .signature: "ask signature"
            case .negotiation: "ask negotiation"
            case .directory: "ask directory"
            }
        }
    }

    static let answers: [(credentials: String, isRight: Bool, decision: String, next: String)] = [
        (basicAlice, true, "known alice", "known alice"),
        (basicAlice, false, "refused(wrong)", "refused(wrong)"),
        // Whatever the helper finds: a user who does not exist has no password.
        (basicEve, true, "refused(wrong)", "refused(wrong)"),
        (basicEve, false, "refused(wrong)", "refused(wrong)"),
    ]
    @Test(arguments: answers) func `the answer to a question decides, and is remembered`(
        _ row: (credentials: String, isRight: Bool, decision: String, next: String)
    ) throws {
        var memory = VerifiedCredentialsTests.make()
        let attempt = Self.attempt(row.credentials)
        guard case .ask(let pending) = Self.authenticator.examine(attempt, &memory) else {
            Issue.record("nothing was asked")
            return
        }
        let later = attempt.at(.seconds(101))
        let answer = AuthenticationAnswer.password(isRight: row.isRight)
        #expect(Self.text(Self.authenticator.conclude(pending, answer, later, &memory)) == row.decision)
        #expect(Self.text(Self.authenticator.examine(later, &memory)) == row.next)
    }

    @Test func `a client that fails too often waits`() {
        var memory = VerifiedCredentialsTests.make { $0.perSourceMax = 1 }
        memory.record(Self.eve, isValid: false, client: ip("192.0.2.1"), now: .seconds(100))
        #expect(
            Self.text(Self.authenticator.examine(Self.attempt(Self.basicAlice), &memory)) == "refused(tooManyFailures)")
    }

    @Test func `an identity has its scheme and its lifetime`() throws {
        var memory = VerifiedCredentialsTests.make()
        memory.record(
            Self.alice, storedAs: Self.hash, isValid: true, client: nil, now: .seconds(100))
        guard case .known(let alice, _) = Self.authenticator.examine(Self.attempt(Self.basicAlice), &memory),
            case .known(let carol, _) = Self.authenticator.examine(Self.attempt("Steps two"), &memory)
        else {
            Issue.record("not known")
            return
        }
        #expect(alice == Identity(name: "alice", scheme: .basic, expiry: .seconds(160), scope: .request))
        #expect(carol.groups == ["staff"] && carol.scope == .connection)
    }
}
