import Credentials
import Routing
import Origins
import Testing

private func digest(_ nonce: String, stale: Bool = false) -> AnswerableChallenge {
    let line = "Digest realm=\"a\", nonce=\"\(nonce)\", qop=\"auth\", stale=\(stale)"
    return strongestChallenge(parseChallenges([Array(line.utf8)[...]]), among: [.digest])!
}

private let basic = AnswerableChallenge.basic(realm: [])

struct LogInRow: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let steps: [(LogIn.Event, LogIn.Action)]
    let logIn: LogIn

    init(
        _ name: String, _ steps: [(LogIn.Event, LogIn.Action)], by logIn: LogIn = LogIn(needsChallenge: true)
    ) {
        testDescription = name
        self.logIn = logIn
        self.steps = steps
    }
}

@Suite("RFC 9110 §11 Logging in to origins") struct LogInTests {
    private static let sending = LogIn.Event.sending(onlyOnce: false)
    private static let once = LogIn.Event.sending(onlyOnce: true)

    /// The first challenge was answered; nobody knows yet what comes of it.
    private static let learning: [(LogIn.Event, LogIn.Action)] = [
        (sending, .sendAsItIs), (.challenged(digest("1"), nil), .askAgain),
        (sending, .sendWithCredentials(digest("1"), number: 1)),
    ]
    private static let known = learning + [(.answered(1), .accepted)]

    static let rows = [
        LogInRow("nothing is added before a challenge", [(sending, .sendAsItIs), (.answered(nil), .passOn)]),
        LogInRow(
            "a connection that breaks teaches nothing",
            [(sending, .sendAsItIs), (.broke(nil), .nothing), (sending, .sendAsItIs)]),
        LogInRow(
            "a challenge that cannot be answered is for the client",
            [(sending, .sendAsItIs), (.challenged(nil, nil), .passOn), (sending, .sendAsItIs)]),
        LogInRow(
            "a challenge is answered, and then all requests carry the credentials",
            known + [
                (sending, .sendWithCredentials(digest("1"), number: 1)), (.answered(1), .passOn),
                (.broke(1), .nothing), (sending, .sendWithCredentials(digest("1"), number: 1)),
            ]),
        LogInRow(
            "the others wait while one tries the credentials",
            learning + [
                (sending, .wait), (.challenged(digest("2"), nil), .askAgain), (.answered(nil), .passOn),
                (.broke(nil), .nothing), (sending, .wait), (.answered(1), .accepted),
                (sending, .sendWithCredentials(digest("1"), number: 1)),
            ]),
        LogInRow(
            "the next one tries them where the first got no answer",
            learning + [(.broke(1), .nothing), (sending, .sendWithCredentials(digest("1"), number: 1))]),
        LogInRow(
            "refused credentials are tried again by the next request",
            learning + [(.challenged(digest("2"), 1), .refused), (sending, .sendAsItIs)]),
        LogInRow(
            "a challenge that came too late to be answered in time is not a refusal",
            learning + [
                (.challenged(digest("2", stale: true), 1), .askAgain),
                (sending, .sendWithCredentials(digest("2", stale: true), number: 2)), (.answered(2), .accepted),
            ]),
        LogInRow(
            "the newest challenge is answered",
            [
                (sending, .sendAsItIs), (sending, .sendAsItIs), (.challenged(digest("1"), nil), .askAgain),
                (.challenged(digest("2"), nil), .askAgain), (.answered(nil), .passOn), (.broke(nil), .nothing),
                (sending, .sendWithCredentials(digest("2"), number: 2)),
            ]),
        LogInRow(
            "a request that was under way when the credentials became known is sent again with them",
            known + [
                (.challenged(digest("2"), nil), .askAgain), (sending, .sendWithCredentials(digest("1"), number: 1)),
            ]),
        LogInRow(
            "a challenge that has expired is replaced, whether the server calls it stale or not",
            known + [
                (.challenged(digest("2"), 1), .askAgain), (sending, .sendWithCredentials(digest("2"), number: 2)),
                (.challenged(digest("3"), 2), .refused), (sending, .sendAsItIs),
            ]),
        LogInRow(
            "several requests that meet the end of a challenge try its successor once",
            known + [
                (sending, .sendWithCredentials(digest("1"), number: 1)),
                (sending, .sendWithCredentials(digest("1"), number: 1)), (.challenged(digest("2"), 1), .askAgain),
                (sending, .sendWithCredentials(digest("2"), number: 2)), (.challenged(digest("3"), 1), .askAgain),
                (sending, .wait), (.answered(1), .passOn), (.answered(2), .accepted),
            ]),
        LogInRow(
            "a request whose nonce was replaced by then answers its own challenge, without waiting",
            known + [
                (sending, .sendWithCredentials(digest("1"), number: 1)),
                (sending, .sendWithCredentials(digest("1"), number: 1)),
                (.challenged(digest("2", stale: true), 1), .askAgain),
                (.challenged(digest("3", stale: true), 1), .answerAlone),
                (sending, .sendWithCredentials(digest("2", stale: true), number: 2)),
                (.challenged(digest("4", stale: true), 1), .answerAlone), (.answered(1), .passOn),
                (.answered(2), .accepted), (.challenged(digest("5", stale: true), 1), .answerAlone),
            ]),
        LogInRow(
            "a password that is refused where it was accepted before is not sent again at once",
            [
                (sending, .sendAsItIs), (.challenged(basic, nil), .askAgain),
                (sending, .sendWithCredentials(basic, number: 1)), (.answered(1), .accepted),
                (sending, .sendWithCredentials(basic, number: 1)), (.challenged(basic, 1), .refused),
                (sending, .sendWithCredentials(basic, number: 1)),
            ], by: LogIn(needsChallenge: false)),
        LogInRow(
            "a request that can be sent only once carries what needs no challenge",
            [
                (once, .sendWithCredentials(nil, number: 0)), (sending, .sendAsItIs), (.answered(0), .accepted),
                (sending, .sendWithCredentials(nil, number: 0)),
            ], by: LogIn(needsChallenge: false)),
        LogInRow(
            "the same, refused",
            [(once, .sendWithCredentials(nil, number: 0)), (.challenged(basic, 0), .refused), (sending, .sendAsItIs)],
            by: LogIn(needsChallenge: false)),
        LogInRow("a digest cannot be sent before its challenge", [(once, .sendAsItIs)]),
        LogInRow(
            "what another worker has learnt need not be learnt again",
            [
                (.sending(onlyOnce: false, elsewhere: .init(answering: basic)), .sendWithCredentials(basic, number: 1)),
                (.answered(1), .passOn), (sending, .sendWithCredentials(basic, number: 1)),
                (.challenged(basic, 1), .refused), (.answered(1), .accepted),
            ], by: LogIn(needsChallenge: false)),
        LogInRow(
            "a request that was under way before that is sent again",
            [
                (sending, .sendAsItIs),
                (.sending(onlyOnce: false, elsewhere: .init(answering: nil)), .sendWithCredentials(nil, number: 1)),
                (.challenged(basic, nil), .askAgain), (sending, .sendWithCredentials(nil, number: 1)),
            ], by: LogIn(needsChallenge: false)),
        LogInRow(
            "what this worker knows itself comes first",
            known + [
                (
                    .sending(onlyOnce: false, elsewhere: .init(answering: basic)),
                    .sendWithCredentials(digest("1"), number: 1)
                )
            ]),
        LogInRow(
            "credentials that are sent unasked",
            [
                (sending, .sendWithCredentials(nil, number: 0)), (.answered(0), .passOn),
                (.challenged(basic, 0), .refused), (sending, .sendWithCredentials(nil, number: 0)),
                (.answered(0), .accepted), (.answered(0), .passOn),
            ], by: LogIn(needsChallenge: false, isUnasked: true)),
        LogInRow(
            "where the protocol has one challenge, the first one tries it unasked",
            [
                (sending, .sendWithCredentials(basic, number: 0)), (sending, .wait), (.answered(0), .accepted),
                (sending, .sendWithCredentials(basic, number: 0)), (.answered(0), .passOn),
            ], by: LogIn(to: basic)),
        LogInRow(
            "the same, refused: the next one tries it again",
            [
                (sending, .sendWithCredentials(basic, number: 0)), (.challenged(nil, 0), .refused),
                (sending, .sendWithCredentials(basic, number: 0)), (sending, .wait), (.broke(0), .nothing),
                (sending, .sendWithCredentials(basic, number: 0)),
            ], by: LogIn(to: basic)),
    ]

    @Test(arguments: rows) func `each event leads to the action that follows it`(_ row: LogInRow) {
        var logIn = row.logIn
        for (event, action) in row.steps { #expect(logIn.on(event) == action, "after \(event)") }
    }
}

@Suite("Refused and accepted credentials") struct CredentialLedgerTests {
    private let key = CredentialLedger.Key(
        credential: "a", at: .origin(Origin(.https, Endpoint(host: "a.example", port: 443))))

    @Test func `the third refusal in a row ends it, for this secret at this origin`() {
        var ledger = CredentialLedger()
        for count in 1...3 {
            #expect(ledger.standing(key, secretNumber: 1) == .unknown)
            #expect(ledger.refused(key, secretNumber: 1, now: .init(secondsSinceEpoch: 5)).refusals == count)
        }
        #expect(ledger.standing(key, secretNumber: 1) == .givenUp)
        #expect(ledger.standing(key, secretNumber: 2) == .unknown)
        let other = CredentialLedger.Key(
            credential: "a", at: .origin(Origin(.https, Endpoint(host: "b.example", port: 443))))
        #expect(ledger.standing(other, secretNumber: 1) == .unknown)
        #expect(ledger.refusals(of: "a").map(\.place) == [key.place] && ledger.refusals(of: "b").isEmpty)
        let anew = ledger.refused(key, secretNumber: 2, now: .init(secondsSinceEpoch: 6))
        #expect(anew.refusals == 1 && anew.since == .init(secondsSinceEpoch: 6))
    }

    @Test func `an origin and a proxy at the same host and port are two places`() {
        var ledger = CredentialLedger()
        let endpoint = Endpoint(host: "a.example", port: 3128)
        let proxy = CredentialLedger.Key(credential: "a", at: NextProxy(endpoint, .http).place)
        for _ in 1...3 { _ = ledger.refused(proxy, secretNumber: 1, now: .init(secondsSinceEpoch: 5)) }
        let origin = CredentialLedger.Key(credential: "a", at: .origin(Origin(.http, endpoint)))
        #expect(ledger.standing(proxy, secretNumber: 1) == .givenUp)
        #expect(ledger.standing(origin, secretNumber: 1) == .unknown)
        #expect(ledger.refusals(of: "a").map { "\($0.place)" } == ["http://a.example:3128"])
    }

    @Test func `a success begins the count anew`() {
        var ledger = CredentialLedger()
        for _ in 0..<4 {
            _ = ledger.refused(key, secretNumber: 1, now: .init(secondsSinceEpoch: 5))
            _ = ledger.refused(key, secretNumber: 1, now: .init(secondsSinceEpoch: 5))
            ledger.accepted(key, nil, secretNumber: 1)
        }
        #expect(ledger.standing(key, secretNumber: 1) == .unknown && ledger.refusals(of: "a").isEmpty)
    }

    @Test func `what was accepted is known for this secret, until it is refused or forgotten`() throws {
        let acceptance = try #require(LogIn.Acceptance(answering: basic))
        var ledger = CredentialLedger()
        ledger.accepted(key, acceptance, secretNumber: 1)
        #expect(ledger.standing(key, secretNumber: 1) == .accepted(acceptance))
        #expect(ledger.standing(key, secretNumber: 2) == .unknown && ledger.refusals(of: "a").isEmpty)
        _ = ledger.refused(key, secretNumber: 1, now: .init(secondsSinceEpoch: 5))
        #expect(ledger.standing(key, secretNumber: 1) == .unknown)
        ledger.accepted(key, acceptance, secretNumber: 1)
        ledger.clear(["b"])
        #expect(ledger.standing(key, secretNumber: 1) == .accepted(acceptance))
        ledger.clear(["a"])
        #expect(ledger.standing(key, secretNumber: 1) == .unknown)
        // A nonce is for one worker.
        #expect(LogIn.Acceptance(answering: digest("1")) == nil && LogIn.Acceptance(answering: nil) != nil)
    }

    @Test func `no number of origins that accept fills the memory`() throws {
        let acceptance = try #require(LogIn.Acceptance(answering: basic))
        var ledger = CredentialLedger()
        let keys = (0..<2000).map { index in
            CredentialLedger.Key(
                credential: "a", at: .origin(Origin(.https, Endpoint(host: "h\(index).example", port: 443))))
        }
        for key in keys { ledger.accepted(key, acceptance, secretNumber: 1) }
        #expect(keys.count { ledger.standing($0, secretNumber: 1) != .unknown } == 1024)
        #expect(ledger.standing(keys[1999], secretNumber: 1) == .accepted(acceptance))
    }

    @Test func `no number of origins fills the memory`() {
        var ledger = CredentialLedger()
        for index in 0..<2000 {
            let key = CredentialLedger.Key(
                credential: "a", at: .origin(Origin(.https, Endpoint(host: "h\(index).example", port: 443))))
            _ = ledger.refused(key, secretNumber: 1, now: .init(secondsSinceEpoch: Int64(index)))
        }
        let kept = ledger.refusals(of: "a")
        #expect(kept.count == 1024)
        #expect(kept.allSatisfy { $0.entry.since >= .init(secondsSinceEpoch: 976) })
    }
}
