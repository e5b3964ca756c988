import Credentials
import Testing

@Suite("RFC 9110 §11.6.1 Challenges")
struct ChallengeTests {
    static let rows: [(lines: [String], expected: [String])] = [
        ([#"Basic realm="simple""#], ["basic{realm=simple}"]),
        // RFC 9110 §11.6.1
        (
            [#"Basic realm="simple", Newauth realm="apps", type=1, title="Login to \"apps\"""#],
            ["basic{realm=simple}", #"newauth{realm=apps|type=1|title=Login to "apps"}"#]
        ),
        (["Negotiate, Basic realm=x", "NTLM"], ["negotiate{}", "basic{realm=x}", "ntlm{}"]),
        (["Negotiate YQ==", "NTLM TlRMTVNTUAAC"], ["negotiate<YQ==>", "ntlm<TlRMTVNTUAAC>"]),
        // A comma in quotes separates nothing, and an escaped quote does not end them.
        (
            [#"Digest realm="a, Basic b", nonce="\",\\", Basic realm=c"#],
            [#"digest{realm=a, Basic b|nonce=",\}"#, "basic{realm=c}"]
        ),
        // Empty elements, white space around "=", tabs.
        ([#", ,Basic , realm = "a" ,, Digest\#tnonce\#t=\#tb,"#], ["basic{realm=a}", "digest{nonce=b}"]),
        (["BASIC REALM=A"], ["basic{realm=A}"]), (["Basic realm=\"\""], ["basic{realm=}"]),
        // One "=" behind a word makes a parameter only if a value follows.
        (["Negotiate a=", "Negotiate a==", "X a=b"], ["negotiate<a=>", "negotiate<a==>", "x{a=b}"]),
        ([""], []), ([",,"], []), ([], []),
    ]
    @Test(arguments: rows) func `challenges are separated from parameters`(
        _ row: (lines: [String], expected: [String])
    ) {
        #expect(parseChallenges(row.lines.map { Array($0.utf8)[...] }).map(\.shown) == row.expected)
    }

    static let malformed: [(lines: [String], expected: [String])] = [
        ([#"Basic realm="a" x, Digest nonce=b"#], ["digest{nonce=b}"]),
        ([#"Basic realm=a@b, charset=c, Digest nonce=b"#], ["digest{nonce=b}"]),
        (["Basic realm=a, realm=b, Digest nonce=b"], ["digest{nonce=b}"]),
        (["Basic realm=a, REALM=b"], []),
        (["realm=a, Digest nonce=b"], ["digest{nonce=b}"]), (["Negotiate YQ==, realm=a, NTLM"], ["ntlm{}"]),
        (["Negotiate Y!, NTLM"], ["ntlm{}"]), (["@, NTLM"], ["ntlm{}"]), (["Basic realm=a, @, NTLM"], ["ntlm{}"]),
        // A quoted string without an end reaches to the end of its line.
        ([#"NTLM, Basic realm="a, Digest nonce=b"#, "Negotiate"], ["ntlm{}", "negotiate{}"]),
        (["Basic realm=\"a\u{7}\", NTLM"], ["ntlm{}"]), ([#"Basic realm="a\"#], []),
        // Parameters do not go on in another line.
        (["Basic realm=a", "charset=b, NTLM"], ["basic{realm=a}", "ntlm{}"]),
    ]
    @Test(arguments: malformed) func `what is malformed costs its own challenge alone`(
        _ row: (lines: [String], expected: [String])
    ) {
        #expect(parseChallenges(row.lines.map { Array($0.utf8)[...] }).map(\.shown) == row.expected)
    }

    @Test func `the number of challenges and of parameters is bounded`() {
        #expect(challenges((0..<100).map { "X\($0)" }.joined(separator: ",")).count == challengeCountMax)
        func parameters(_ count: Int) -> String { (0..<count).map { "p\($0)=v" }.joined(separator: ",") }
        #expect(challenges("A \(parameters(challengeParameterCountMax)), B").map(\.shown).count == 2)
        #expect(challenges("A \(parameters(challengeParameterCountMax + 1)), B").map(\.shown) == ["b{}"])
    }

    @Test func `parameters are found by their names in any case`() {
        let challenge = challenges("Basic Realm=a")[0]
        #expect(challenge.value("realm") == Array("a".utf8))
        #expect(challenge.value("charset") == nil)
        #expect(challenges("Negotiate YQ==")[0].value("realm") == nil)
    }

    /// A hostile server writes anything. Nothing traps, and what was read is well formed.
    @Test(arguments: 0..<64) func `any bytes give challenges that are well formed`(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let alphabet = Array(#"Basic realm="a",\ Digest=,, "'@;\#tx"#.utf8) + [0, 0xFF]
        let line = (0..<200).map { _ in alphabet.randomElement(using: &generator) ?? 0 }
        for challenge in parseChallenges([line[...]]) {
            switch challenge.content {
            case .token68(let token): #expect(isToken68(token))
            case .parameters(let parameters): #expect(Set(parameters.map(\.name)).count == parameters.count)
            }
        }
    }
}

/// SplitMix64.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64
    init(seed: UInt64) { state = seed &+ 0x9E37_79B9_7F4A_7C15 }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}
