import Message
import Testing

@testable import Credentials

@Suite("RFC 4559 What carries the tokens of a log-in")
struct TokenCarrierTests {
    /// Scheme, tokens sent, content, several tokens are needed, and what carries the next one.
    static let rows: [(ChallengeScheme, Int, Bool, Bool, TokenCarrier)] = [
        (.ntlm, 0, false, false, .request), (.ntlm, 1, false, false, .request),
        (.ntlm, 0, true, false, .probe), (.ntlm, 1, true, false, .request),
        (.negotiate, 0, false, false, .request), (.negotiate, 0, true, false, .request),
        (.negotiate, 0, true, true, .probe), (.negotiate, 1, true, true, .probe),
        (.negotiate, 0, false, true, .request),
    ]

    @Test(arguments: rows) func `content goes with a token that can be the last one alone`(
        _ scheme: ChallengeScheme, sent: Int, hasContent: Bool, takesSeveral: Bool, carrier: TokenCarrier
    ) {
        #expect(
            TokenCarrier(scheme, tokensSent: sent, hasContent: hasContent, takesSeveral: takesSeveral) == carrier)
    }

    /// Scheme, the value of `Persistent-Auth`, and whether the connection stays logged in.
    static let persistence: [(ChallengeScheme, String?, Bool)] = [
        (.ntlm, nil, true), (.ntlm, "true", true), (.ntlm, "false", false), (.ntlm, "maybe", true),
        (.negotiate, nil, false), (.negotiate, "True", true), (.negotiate, "false", false), (.negotiate, "", false),
        (.negotiate, "truest", false),
    ]

    @Test(arguments: persistence) func `a connection stays logged in with NTLM, or if the origin says so`(
        _ scheme: ChallengeScheme, value: String?, stays: Bool
    ) {
        #expect(scheme.staysLoggedIn(value.map { Array($0.utf8)[...] }) == stays)
    }

    @Test func `the token of a scheme is found among challenges, decoded`() {
        func token(_ scheme: ChallengeScheme, _ lines: String...) -> [UInt8]? {
            scheme.token(in: parseChallenges(lines.map { Array($0.utf8)[...] }))
        }
        #expect(token(.ntlm, "Negotiate YWI=, NTLM Y2Q=") == Array("cd".utf8))
        #expect(token(.negotiate, "NTLM Y2Q=", "Negotiate YWI=") == Array("ab".utf8))
        #expect(token(.ntlm, "NTLM") == nil && token(.ntlm, "Negotiate YWI=") == nil && token(.ntlm) == nil)
    }
}
