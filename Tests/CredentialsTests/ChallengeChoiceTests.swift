import Credentials
import Testing

@Suite("RFC 9110 §11.4 Which challenge is answered")
struct ChallengeChoiceTests {
    static let all = Set(ChallengeScheme.allCases)
    static let everything =
        #"Basic realm=b, Digest realm=d, nonce=n, algorithm=MD5, Digest realm=d, nonce=n, algorithm=SHA-256, NTLM, Negotiate"#

    static let rows: [(line: String, allowed: Set<ChallengeScheme>, expected: String?)] = [
        (everything, all, "negotiate"), (everything, [.basic, .digest, .ntlm], "ntlm"),
        (everything, [.basic, .digest], "digest sha256"), (everything, [.basic], "basic b"), (everything, [], nil),
        ("Bearer, Basic realm=b", all, "basic b"), ("Bearer", all, nil),
        (
            "Digest realm=d,nonce=n,algorithm=SHA-256,Digest realm=d,nonce=n,algorithm=SHA-512-256", all,
            "digest sha512_256"
        ),
        ("Digest realm=d,nonce=n,algorithm=SHA-512-256-sess,Digest realm=d,nonce=n", all, "digest sha512_256"),
        // Between equals, the first.
        ("Basic realm=a, Basic realm=b", all, "basic a"),
        // What cannot be answered is not chosen.
        ("Basic realm=b, Digest realm=d, nonce=n, algorithm=SHA-1", all, "basic b"),
        ("Basic realm=b, Digest realm=d", all, "basic b"), ("Basic realm=b, Digest nonce=n", all, "basic b"),
        ("Basic realm=b, Digest realm=d, nonce=n, qop=auth-conf", all, "basic b"),
        ("Basic realm=b, Negotiate realm=a", all, "basic b"), ("Basic realm=b, NTLM abc=de", all, "basic b"),
        ("Basic realm=b, NTLM a", all, "basic b"), ("Basic YQ==", all, nil),
        ("Basic", all, "basic "), ("NTLM YQ==", all, "ntlm a"),
    ]
    @Test(arguments: rows) func `the strongest one that is allowed, wherever it stands`(
        _ row: (line: String, allowed: Set<ChallengeScheme>, expected: String?)
    ) {
        let choice = strongestChallenge(challenges(row.line), among: row.allowed)
        #expect(choice.map(Self.show) == row.expected)
    }

    static func show(_ choice: AnswerableChallenge) -> String {
        switch choice {
        case .basic(let realm): "basic \(text(realm))"
        case .digest(let digest): "digest \(digest.algorithm.hash)"
        case .ntlm(let message): message.map { "ntlm \(text($0))" } ?? "ntlm"
        case .negotiate(let message): message.map { "negotiate \(text($0))" } ?? "negotiate"
        }
    }

    @Test func `a challenge of Digest is read completely (RFC 7616 §3.3)`() throws {
        let line =
            #"Digest realm="r", nonce="n", opaque="o", algorithm=sha-256-SESS, qop="auth-int, x,auth", userhash=true, charset=utf-8, stale=TRUE, domain="/a  http://o.test/b""#
        let digest = try #require(DigestChallenge(challenges(line)[0]))
        #expect(digest.algorithm == DigestAlgorithm(.sha256, isSession: true))
        #expect(digest.algorithmName.map(text) == "sha-256-SESS")
        #expect(digest.protections == [.integrity, .authentication])
        #expect(digest.hashesUser && digest.isUTF8 && digest.isStale)
        #expect(digest.opaque.map(text) == "o")
        #expect(digest.domain.map(text) == ["/a", "http://o.test/b"])
        let plain = try #require(DigestChallenge(challenges("Digest realm=r, nonce=n, stale=false")[0]))
        #expect(plain.algorithm == DigestAlgorithm(.md5))
        #expect(plain.algorithmName == nil && plain.opaque == nil && plain.protections.isEmpty && plain.domain.isEmpty)
        #expect(!plain.hashesUser && !plain.isUTF8 && !plain.isStale)
    }
}
