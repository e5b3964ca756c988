import Authentication
import Credentials
import Message
import Rules
import Testing

/// `ProvenDigest` reads and checks credentials in another way than `DigestScheme` does. Neither may let in what the other does not.
@Suite("RFC 7616 Digest: requests behind a proven one")
struct ProvenDigestTests {
    private typealias Play = DigestSchemeTests.Play

    /// A request with these credentials, in one piece of memory.
    private struct Request {
        var fields = Fields()
        let method, target: Range<Int>

        init(_ lines: [String], method: String = "GET", target: String = "http://example.org/a") {
            for line in lines { fields.append(.proxyAuthorization, line) }
            fields.append(.age, method)
            self.method = fields.section.lines[lines.count].valueRange
            fields.append(.date, target)
            self.target = fields.section.lines[lines.count + 1].valueRange
        }

        func claim(_ proven: ProvenDigest<OpenSSLRunningHash>, now: Duration) -> DigestClaim? {
            proven.claim(in: fields.section, method: method, target: target, fields.bytes.span, now: now)
        }
    }

    /// What requests behind one of this client are checked with.
    private func proven(_ play: inout Play) throws -> ProvenDigest<OpenSSLRunningHash> {
        let sent = try play.authorization()
        guard case .known(let identity, _) = play.send(sent) else {
            Issue.record("not let in")
            throw CancellationError()
        }
        return try #require(play.scheme.proven(sent[...], as: identity, now: play.now, OpenSSLRunningHash.self))
    }

    @Test(arguments: ["MD5", "SHA-256", "SHA-512-256"])
    func `they are let in, and their answers prove that the proxy knows the password`(_ algorithm: String) throws {
        var play = try Play(algorithm: algorithm)
        let proven = try proven(&play)
        #expect(proven.identity == Identity(name: "ann", scheme: .digest, groups: ["builders"]))
        for uri in ["/a", "/another?with=query", "/\(String(repeating: "x", count: 300))"] {
            let sent = try play.session.authorization(
                for: DigestRequest(method: Array("GET".utf8), uri: Array(uri.utf8)), clientNonce: Array("n\(uri)".utf8),
                using: OpenSSLHashing())
            let request = Request([String(decoding: sent.value, as: UTF8.self)], target: "http://example.org\(uri)")
            let claim = try #require(request.claim(proven, now: play.now))
            #expect(proven.use(claim, play.memory, now: play.now))
            var text: [UInt8] = []
            proven.addInformation(for: claim, request.fields.bytes.span, now: play.now, to: &text)
            let information = try #require(AuthenticationInfo(text[...]))
            #expect(try sent.proof(in: information, using: OpenSSLHashing()) == .right)
            #expect(information.nextNonce == nil)
        }
    }

    @Test func `a count is accepted once, by whoever sees it first`() throws {
        var play = try Play()
        let proven = try proven(&play)
        let (first, second) = (try play.authorization(), try play.authorization())
        let request = Request([String(decoding: first, as: UTF8.self)])
        let claim = try #require(request.claim(proven, now: play.now))
        #expect(proven.use(claim, play.memory, now: play.now))
        #expect(!proven.use(claim, play.memory, now: play.now))
        #expect(DigestSchemeTests.shown(play.send(first)) == "refused stale")
        #expect(DigestSchemeTests.shown(play.send(second)).hasPrefix("known"))
        let other = try #require(Request([String(decoding: second, as: UTF8.self)]).claim(proven, now: play.now))
        #expect(!proven.use(other, play.memory, now: play.now))
    }

    /// How credentials that are right are changed before they are sent.
    static let changes: [(name: String, change: @Sendable (String) -> String)] = [
        ("none", { $0 }),
        ("upper-case digits", { $0.replacing(/response="([0-9a-f]*)"/) { "response=\"\($0.1.uppercased())\"" } }),
        ("another user", { $0.replacing(/username="./, with: "username=\"x") }),
        ("another realm", { $0.replacing("larder", with: "x") }),
        ("another nonce", { $0.replacing(/, nonce="./, with: ", nonce=\"f") }),
        ("another opaque", { $0.replacing(/opaque="./, with: "opaque=\"x") }),
        ("auth-int", { $0.replacing("qop=auth", with: "qop=auth-int") }),
        ("another algorithm", { $0.replacing("SHA-256", with: "MD5") }),
        ("another target", { $0.replacing("uri=\"/a\"", with: "uri=\"/b\"") }),
        ("no target", { $0.replacing("uri=\"/a\"", with: "uri=\"\"") }),
        ("another client nonce", { $0.replacing("cnonce=\"c\"", with: "cnonce=\"d\"") }),
        ("no client nonce", { $0.replacing("cnonce=\"c\"", with: "cnonce=\"\"") }),
        ("a backslash", { $0.replacing("cnonce=\"c\"", with: "cnonce=\"\\c\"") }),
        ("another count", { $0.replacing("nc=00000002", with: "nc=00000003") }),
        ("the count 0", { $0.replacing("nc=00000002", with: "nc=00000000") }),
        ("a short count", { $0.replacing("nc=00000002", with: "nc=2") }),
        ("no number", { $0.replacing("nc=00000002", with: "nc=0000000z") }),
        ("the first digit", { $0.replacing(/response="(.)/) { "response=\"\($0.1 == "0" ? "1" : "0")" } }),
        ("the last digit", { $0.replacing(/([0-9a-f])", qop/) { "\($0.1 == "0" ? "1" : "0")\", qop" } }),
        ("a digit less", { $0.replacing(/response="./, with: "response=\"") }),
        ("a digit more", { $0.replacing("response=\"", with: "response=\"0") }),
        ("a parameter less", { $0.replacing(/, opaque="[0-9a-f]*"/, with: "") }),
        ("a parameter more", { $0 + ", x=y" }), ("twice the same", { $0 + ", nc=00000002" }),
        ("an end too early", { String($0.dropLast()) }), ("nothing", { _ in "" }),
        ("the scheme alone", { _ in "Digest" }), ("another scheme", { _ in "Basic YTpi" }),
        ("no quotes", { $0.replacing("cnonce=\"c\"", with: "cnonce=c") }),
    ]
    @Test(arguments: changes.indices) func `what is let in is what the scheme lets in`(_ index: Int) throws {
        let row = Self.changes[index]
        var play = try Play()
        let proven = try proven(&play)
        let sent = String(decoding: try play.authorization(), as: UTF8.self)
        let changed = row.change(sent)
        #expect(index == 0 || changed != sent, "\(row.name) changes nothing")
        let request = Request([changed])
        let isClaimed = request.claim(proven, now: play.now) != nil
        let isKnown = DigestSchemeTests.shown(play.send(Array(changed.utf8))).hasPrefix("known")
        // Some spellings have to be read in full.
        #expect(!isClaimed || isKnown, "\(row.name): \(changed)")
        #expect(isClaimed == ["none", "upper-case digits"].contains(row.name), "\(row.name)")
    }

    @Test func `the digest is for method and target, and one field has it`() throws {
        var play = try Play()
        let proven = try proven(&play)
        let sent = String(decoding: try play.authorization(), as: UTF8.self)
        #expect(Request([sent]).claim(proven, now: play.now) != nil)
        #expect(Request([sent], method: "HEAD").claim(proven, now: play.now) == nil)
        #expect(Request([sent], target: "http://example.org/b").claim(proven, now: play.now) == nil)
        #expect(Request([sent, sent]).claim(proven, now: play.now) == nil)
        #expect(Request([]).claim(proven, now: play.now) == nil)
        #expect(Request(["\(sent) "]).claim(proven, now: play.now) == nil)
    }

    @Test func `a nonce ends with its life, and the next one comes in its last quarter`() throws {
        var play = try Play { $0.nonceLifetime = .seconds(100) }
        let proven = try proven(&play)
        let request = Request([String(decoding: try play.authorization(), as: UTF8.self)])
        for (age, isLet, hasNext) in [(74, true, false), (75, true, true), (99, true, true), (100, false, false)] {
            let now = Duration.seconds(100 + age)
            guard let claim = request.claim(proven, now: now) else {
                #expect(!isLet)
                continue
            }
            #expect(isLet)
            var text: [UInt8] = []
            proven.addInformation(for: claim, request.fields.bytes.span, now: now, to: &text)
            #expect((AuthenticationInfo(text[...])?.nextNonce != nil) == hasNext, "\(age)")
        }
    }

    @Test func `nothing is kept of a user who is no user any more, and of somebody else`() throws {
        var play = try Play()
        let sent = try play.authorization()
        guard case .known(let identity, _) = play.send(sent) else {
            Issue.record("not let in")
            return
        }
        var settings = DigestSettings()
        settings.realm = "larder"
        let tools = AuthenticationTools(hashing: OpenSSLHashing(), nonceHash: SipHash(key: (1, 2)), random: { 1 })
        let empty = DigestScheme(settings, DigestFile(), GroupsFile(), tools)
        #expect(empty.proven(sent[...], as: identity, now: play.now, OpenSSLRunningHash.self) == nil)
        let other = Identity(name: "zoë", scheme: .digest)
        #expect(play.scheme.proven(sent[...], as: other, now: play.now, OpenSSLRunningHash.self) == nil)
    }
}
