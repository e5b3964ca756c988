import Credentials
import Testing

@Suite("RFC 4559 §6 A log-in that belongs to a connection")
struct ConnectionLogInTests {
    typealias Event = ConnectionLogIn.Event
    typealias Action = ConnectionLogIn.Action

    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let steps: [(event: Event, action: Action)]

        init(_ name: String, _ steps: [(Event, Action)]) {
            testDescription = name
            self.steps = steps.map { (event: $0.0, action: $0.1) }
        }
    }

    static let first: [(Event, Action)] = [(.asked, .makeToken(received: nil)), (.made([1]), .send([1]))]
    static let negotiate: [(Event, Action)] = first + [(.accepted(token: [9]), .accepted(proof: [9]))]
    static let ntlm: [(Event, Action)] =
        first + [
            (.continued([2]), .makeToken(received: [2])), (.made([3]), .send([3])),
            (.accepted(token: nil), .accepted(proof: nil)),
        ]
    static let rows = [
        Row("one leg, as Negotiate has it", negotiate),
        Row("two legs, as NTLM has them", ntlm),
        Row(
            "later requests need no token", ntlm + [(.accepted(token: nil), .passOn), (.accepted(token: [1]), .passOn)]),
        Row("nobody asks", [(.accepted(token: nil), .passOn)]),
        Row("asked after the first token", first + [(.asked, .fail(.refused))]),
        Row(
            "asked after the last token",
            first + [
                (.continued([2]), .makeToken(received: [2])), (.made([3]), .send([3])), (.asked, .fail(.refused)),
            ]),
        Row("asked again once it was accepted: once more", ntlm + ntlm),
        Row("asked again twice", ntlm + ntlm + [(.asked, .fail(.refused))]),
        Row("asked again, and refused", negotiate + first + [(.asked, .fail(.refused))]),
        Row("no ticket", [(.asked, .makeToken(received: nil)), (.failed(isRefusal: false), .fail(.noToken))]),
        Row("a wrong password", [(.asked, .makeToken(received: nil)), (.failed(isRefusal: true), .fail(.refused))]),
        Row(
            "a bad token of the peer",
            first + [(.continued([2]), .makeToken(received: [2])), (.failed(isRefusal: false), .fail(.noToken))]),
        Row(
            "nothing is left to say, and the peer waits",
            first + [(.continued([2]), .makeToken(received: [2])), (.made([]), .fail(.outOfOrder))]),
        Row("a token before one was sent", [(.continued([2]), .fail(.outOfOrder))]),
        Row("a token after the end", ntlm + [(.continued([2]), .fail(.outOfOrder))]),
        Row("the connection ends between two legs", first + [(.broke, .fail(.connectionEnded))]),
        Row(
            "the connection ends while a token is made",
            [(.asked, .makeToken(received: nil)), (.broke, .fail(.connectionEnded))]),
        Row("the connection ends before it was asked", [(.broke, .passOn)]),
        Row("the connection ends once it was accepted", ntlm + [(.broke, .passOn)]),
        Row("the last token of the peer proves nothing", negotiate + [(.disproved, .fail(.unproven))]),
    ]

    @Test(arguments: rows) func `events lead to actions`(_ row: Row) {
        var logIn = ConnectionLogIn()
        for (index, step) in row.steps.enumerated() {
            #expect(logIn.on(step.event) == step.action, "step \(index) of \(row.testDescription): \(step.event)")
        }
    }

    @Test func `a peer that goes on for ever is left`() {
        var logIn = ConnectionLogIn()
        var action = logIn.on(.asked)
        for leg in 1...ConnectionLogIn.legsMax {
            #expect(action == .makeToken(received: leg == 1 ? nil : [2]))
            #expect(logIn.on(.made([1])) == .send([1]))
            action = logIn.on(.continued([2]))
        }
        #expect(logIn.on(.made([1])) == .fail(.tooManyLegs))
    }

    @Test func `a second log-in on the connection has as many legs as the first`() {
        var logIn = ConnectionLogIn()
        for step in Self.ntlm { _ = logIn.on(step.0) }
        _ = logIn.on(.asked)
        for _ in 1..<ConnectionLogIn.legsMax {
            #expect(logIn.on(.made([1])) == .send([1]))
            _ = logIn.on(.continued([2]))
        }
        #expect(logIn.on(.made([1])) == .send([1]))
    }

    /// What leaves the connection without a log-in, although nothing may have failed.
    static let notLoggedIn = [
        Row("nobody asks", [(.accepted(token: nil), .passOn)]),
        Row("the connection ends", ntlm + [(.broke, .passOn)]),
        Row("asked again twice", ntlm + ntlm + [(.asked, .fail(.refused))]),
        Row("a token after the end", ntlm + [(.continued([2]), .fail(.outOfOrder))]),
    ]
    @Test(arguments: notLoggedIn) func `only what was accepted, and has not ended, is logged in`(_ row: Row) {
        var logIn = ConnectionLogIn()
        for step in row.steps { #expect(logIn.on(step.event) == step.action) }
        #expect(!logIn.isAccepted && logIn.withholdsBodies)
    }

    @Test func `bodies wait until the connection is logged in, and again when it is asked again`() {
        var logIn = ConnectionLogIn()
        #expect(logIn.withholdsBodies)
        for step in Self.ntlm {
            #expect(logIn.withholdsBodies && !logIn.isAccepted)
            _ = logIn.on(step.0)
        }
        #expect(!logIn.withholdsBodies && logIn.isAccepted)
        _ = logIn.on(.asked)
        #expect(logIn.withholdsBodies && !logIn.isAccepted)
    }
}
