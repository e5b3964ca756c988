import Routing
import Testing

private let challenge = Array("Digest realm=\"a\", nonce=\"1\"".utf8)
private let another = Array("Digest realm=\"a\", nonce=\"2\"".utf8)

struct LogInRow: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let steps: [LogInStep]

    init(_ name: String, _ steps: [(LogIn.Event, LogIn.Action)]) {
        testDescription = name
        self.steps = steps.map { LogInStep(event: $0.0, action: $0.1) }
    }
}

struct LogInStep: Sendable {
    let event: LogIn.Event
    let action: LogIn.Action
}

@Suite("RFC 9110 §11 Logging in to origins") struct LogInTests {
    private static let learning: [(LogIn.Event, LogIn.Action)] = [
        (.sending, .sendAsItIs), (.challenged(challenge, proves: false), .askAgain),
        (.sending, .sendWithCredentials(challenge: challenge)),
    ]

    static let rows = [
        LogInRow(
            "nothing is added before a challenge", [(.sending, .sendAsItIs), (.answered(proves: false), .passOn)]),
        LogInRow(
            "a connection that breaks teaches nothing",
            [(.sending, .sendAsItIs), (.broke(proves: false), .nothing), (.sending, .sendAsItIs)]),
        LogInRow(
            "a challenge is answered, and then all requests carry the credentials",
            learning + [
                (.answered(proves: true), .passOn), (.sending, .sendWithCredentials(challenge: challenge)),
                (.answered(proves: true), .passOn), (.broke(proves: true), .nothing),
                (.sending, .sendWithCredentials(challenge: challenge)),
            ]),
        LogInRow(
            "the others wait while one proves the credentials",
            learning + [
                (.sending, .wait), (.challenged(another, proves: false), .askAgain),
                (.answered(proves: false), .passOn), (.broke(proves: false), .nothing), (.sending, .wait),
            ]),
        LogInRow(
            "the next one proves them where the first got no answer",
            learning + [(.broke(proves: true), .nothing), (.sending, .sendWithCredentials(challenge: challenge))]),
        LogInRow(
            "credentials that are refused are given up; the client sees the refusal",
            learning + [
                (.challenged(another, proves: true), .passOn), (.sending, .sendAsItIs),
                (.challenged(another, proves: false), .passOn), (.answered(proves: false), .passOn),
                (.broke(proves: false), .nothing), (.sending, .sendAsItIs),
            ]),
        LogInRow(
            "the newest challenge is answered",
            [
                (.sending, .sendAsItIs), (.sending, .sendAsItIs), (.challenged(challenge, proves: false), .askAgain),
                (.challenged(another, proves: false), .askAgain), (.answered(proves: false), .passOn),
                (.broke(proves: false), .nothing), (.sending, .sendWithCredentials(challenge: another)),
            ]),
        LogInRow(
            "a request that was under way when the credentials became known is sent again with them",
            learning + [
                (.answered(proves: true), .passOn), (.challenged(another, proves: false), .askAgain),
                (.sending, .sendWithCredentials(challenge: challenge)),
            ]),
        LogInRow(
            "a new challenge, after the old one has run out, is answered once",
            learning + [
                (.answered(proves: true), .passOn), (.challenged(another, proves: true), .askAgain),
                (.sending, .sendWithCredentials(challenge: another)), (.challenged(challenge, proves: true), .passOn),
                (.sending, .sendAsItIs),
            ]),
    ]

    @Test(arguments: rows) func `each event leads to the action that follows it`(_ row: LogInRow) {
        var logIn = LogIn()
        for step in row.steps {
            let action = logIn.on(step.event)
            #expect(action == step.action, "after \(step.event)")
        }
    }

    @Test(arguments: [
        LogIn.Event.sending, .challenged(challenge, proves: false), .answered(proves: false), .broke(proves: false),
    ])
    func `a desk without credentials adds nothing and asks nothing again`(_ event: LogIn.Event) {
        let desk = CredentialDesk()
        let first = desk.on(event, at: Endpoint(host: "a.example", port: 80))
        let second = desk.on(.sending, at: Endpoint(host: "a.example", port: 80))
        #expect(desk.isEmpty)
        #expect(first != .askAgain && first != .wait)
        #expect(second == .sendAsItIs)
    }

    @Test func `the challenge of one endpoint is not used for another`() {
        let (known, other) = (Endpoint(host: "a.example", port: 80), Endpoint(host: "a.example", port: 81))
        let desk = CredentialDesk(for: [known])
        let learnt = desk.on(.challenged(challenge, proves: false), at: known)
        #expect(learnt == .askAgain)
        let there = desk.on(.sending, at: known)
        #expect(there == .sendWithCredentials(challenge: challenge))
        let elsewhere = desk.on(.sending, at: other)
        #expect(elsewhere == .sendAsItIs)
    }
}
