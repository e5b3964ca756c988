import Credentials
import Message
import Testing

@Suite("RFC 9110 §11.5 Protection spaces")
struct ProtectionSpaceTests {
    static let rows: [(challenge: String, target: String, inside: [String], outside: [String])] = [
        // RFC 7617 §2.2
        (
            "Basic realm=r", "http://o.test/docs/index.html",
            [
                "http://o.test/docs/", "http://o.test/docs/test.doc", "http://o.test:80/docs/a/b?c",
                "http://O.TEST/docs/x",
            ],
            [
                "http://o.test/other/", "http://o.test/docs", "http://o.test/", "http://o.test/docs/../other/a",
                "https://o.test/docs/", "http://o.test:8080/docs/", "http://p.test/docs/",
            ]
        ),
        ("Basic realm=r", "http://o.test", ["http://o.test/", "http://o.test/a/b"], ["https://o.test/"]),
        ("Basic realm=r", "http://o.test/a?b/c", ["http://o.test/", "http://o.test/d"], []),
        ("Basic realm=r", "http://o.test/a/../b/c", ["http://o.test/b/d"], ["http://o.test/a/"]),
        // RFC 7616 §3.3: without a domain, all of the origin.
        (
            "Digest realm=r, nonce=n", "https://o.test/a/b", ["https://o.test/c"],
            ["http://o.test/a/b", "https://p.test/"]
        ),
        (
            #"Digest realm=r, nonce=n, domain="/x ../y/z https://o.test:443/w https://p.test/""#, "https://o.test/a/b",
            ["https://o.test/x", "https://o.test/xy", "https://o.test/y/z/", "https://o.test/w"],
            ["https://o.test/a/b", "https://o.test/y", "https://p.test/", "https://o.test/x/../a"]
        ),
        // Credentials are for one origin.
        (
            #"Digest realm=r, nonce=n, domain="https://p.test/""#, "https://o.test/a", ["https://o.test/a"],
            ["https://p.test/", "https://o.test/b"]
        ),
        ("NTLM", "http://o.test/a", ["http://o.test/b"], ["http://o.test:81/b"]),
        ("Negotiate", "http://o.test/a", ["http://o.test/b"], ["http://p.test/b"]),
    ]
    @Test(arguments: rows) func `say where credentials go without being asked for`(
        _ row: (challenge: String, target: String, inside: [String], outside: [String])
    ) throws {
        let challenge = try #require(AnswerableChallenge(challenges(row.challenge)[0]))
        let space = ProtectionSpace(of: challenge, for: try #require(TargetURI(row.target.utf8)))
        for target in row.inside { #expect(space.contains(try #require(TargetURI(target.utf8))), "\(target)") }
        for target in row.outside { #expect(!space.contains(try #require(TargetURI(target.utf8))), "\(target)") }
    }

    @Test func `two realms of an origin are two spaces`() throws {
        let target = try #require(TargetURI("http://o.test/".utf8))
        func space(_ realm: String) -> ProtectionSpace {
            ProtectionSpace(of: .basic(realm: Array(realm.utf8)), for: target)
        }
        #expect(space("a") == space("a"))
        #expect(space("a") != space("b"))
    }
}
