import Authentication
import Credentials
import Message
import Rules
import Testing

@Suite("RFC 7616 Digest, as Larder asks for it")
struct DigestSchemeTests {
    static let lines: String = {
        var lines = ""
        for user in ["ann", "zoë"] {
            for (algorithm, name) in [(HashAlgorithm.md5, ""), (.sha256, "SHA-256:"), (.sha512_256, "SHA-512-256:")] {
                guard user == "ann" || algorithm == .sha256 else { continue }
                guard
                    let secret = try? digestSecret(
                        user: Array(user.utf8), realm: Array("larder".utf8), password: Array("secret".utf8), algorithm,
                        using: OpenSSLHashing())
                else { preconditionFailure("OpenSSL hashes") }
                lines += "\(user):larder:\(name)\(String(decoding: secret.bytes, as: UTF8.self))\n"
            }
        }
        return lines
    }()

    /// A scheme with a client, and what workers remember.
    struct Play {
        var scheme: DigestScheme
        var memory: VerifiedCredentials
        var session: DigestSession
        var now: Duration = .seconds(100)
        let client = ip("192.0.2.1")

        init(
            user: String = "ann", password: String = "secret", algorithm: String = "SHA-256", moreUsers: String = "",
            _ change: (inout DigestSettings) -> Void = { _ in }
        ) throws {
            var settings = DigestSettings()
            if algorithm == "MD5" { settings.md5 = .yes }
            change(&settings)
            let numbers = Numbers()
            scheme = DigestScheme(
                settings, DigestFile.parse(Array((DigestSchemeTests.lines + moreUsers).utf8), realm: "larder").file,
                GroupsFile.parse(Array("builders: ann".utf8)).file,
                AuthenticationTools(
                    hashing: OpenSSLHashing(), nonceHash: SipHash(key: (1, 2)), random: { numbers.next() }))
            memory = VerifiedCredentialsTests.make { $0.perSourceMax = 3 }
            let challenge = try #require(
                parseChallenges(scheme.challenges(at: now, after: nil).map { $0[...] }).compactMap(
                    DigestChallenge.init
                ).first { $0.algorithmName == Array(algorithm.utf8) })
            session = try DigestSession(challenge, user: user, password: Secret(password))
        }

        /// The algorithms of the challenges, in their order.
        var offered: [String] {
            scheme.challenges(at: .zero, after: nil).map {
                String(String(decoding: $0, as: UTF8.self).split(separator: "algorithm=")[1].prefix { $0 != "," })
            }
        }

        mutating func authorization(_ uri: String = "/a", method: String = "GET") throws -> [UInt8] {
            try session.authorization(
                for: DigestRequest(method: Array(method.utf8), uri: Array(uri.utf8)), clientNonce: Array("c".utf8),
                using: OpenSSLHashing()
            ).value
        }

        mutating func send(
            _ credentials: [UInt8], target: String = "http://example.org/a", method: String = "GET",
            body: DigestBody = .unknown
        ) -> AuthenticationStep? {
            scheme.examine(
                AuthenticationAttempt(
                    credentials: credentials, method: Array(method.utf8), target: Array(target.utf8), body: body,
                    client: client, now: now), &memory)
        }

        mutating func send(target: String = "http://example.org/a") throws -> String {
            DigestSchemeTests.shown(send(try authorization(), target: target))
        }
    }

    final class Numbers: @unchecked Sendable {
        private var last: UInt64 = 0
        func next() -> UInt64 {
            last += 1
            return last
        }
    }

    static func shown(_ step: AuthenticationStep?) -> String {
        switch step {
        case .known(let identity, _): "known \(identity.name) \(identity.groups)"
        case .refused(let failure): "refused \(failure)"
        case .ask, .more: "unexpected"
        case nil: "not mine"
        }
    }

    @Test(arguments: ["MD5", "SHA-256", "SHA-512-256"])
    func `who knows the password is let in, and learns that the proxy knows it too`(_ algorithm: String) throws {
        var play = try Play(algorithm: algorithm)
        for count in 1...3 {
            let sent = try play.session.authorization(
                for: DigestRequest(method: Array("GET".utf8), uri: Array("/a".utf8)), clientNonce: Array("c".utf8),
                using: OpenSSLHashing())
            guard case .known(let identity, .information(let value)?) = play.send(sent.value) else {
                Issue.record("not let in")
                return
            }
            #expect(identity == Identity(name: "ann", scheme: .digest, groups: ["builders"]))
            let information = try #require(AuthenticationInfo(value[...]))
            #expect(try sent.proof(in: information, using: OpenSSLHashing()) == .right)
            #expect(String(decoding: value, as: UTF8.self).contains("nc=0000000\(count)"))
        }
    }

    @Test func `the algorithms that users have are offered, the strongest first, each in a line of its own`() throws {
        func offered(_ change: (inout DigestSettings) -> Void) throws -> [String] { try Play(change).offered }
        #expect(try offered { _ in } == ["SHA-512-256", "SHA-256"])
        #expect(try offered { $0.md5 = .yes } == ["SHA-512-256", "SHA-256", "MD5"])
        #expect(try offered { $0.md5 = .no } == ["SHA-512-256", "SHA-256"])
    }

    static let ofMD5Alone: [(DigestSettings.MD5Offer, [String])] = [
        (.needed, ["SHA-512-256", "SHA-256", "MD5"]), (.yes, ["SHA-512-256", "SHA-256", "MD5"]),
        (.no, ["SHA-512-256", "SHA-256"]),
    ]
    @Test(arguments: ofMD5Alone) func `MD5 is offered while a user has no other hash, unless it is forbidden`(
        _ row: (offer: DigestSettings.MD5Offer, names: [String])
    ) throws {
        #expect(
            try Play(moreUsers: "bob:larder:829a1d865cd6c8803ec8a238a130f103\n", { $0.md5 = row.offer }).offered
                == row.names)
    }

    @Test func `a name beyond ASCII, and a name as a hash, are found`() throws {
        var play = try Play(user: "zoë")
        #expect(try play.send() == "known zoë []")
        var sender = try Play(user: "zoë")
        let plain = try sender.authorization()
        #expect(String(decoding: plain, as: UTF8.self).contains("userhash=true"))
        let extended = String(decoding: plain, as: UTF8.self).replacing(
            /username="[0-9a-f]*"/, with: "username*=utf-8'en'zo%C3%AB"
        ).replacing(", userhash=true", with: "")
        var other = try Play(user: "zoë")
        #expect(Self.shown(other.send(Array(extended.utf8))) == "known zoë []")
    }

    static let wrong: [(user: String, password: String)] = [("ann", "guess"), ("eve", "secret"), ("", "secret")]
    @Test(arguments: wrong) func `a wrong password and an unknown user get the same answer, and are counted`(
        _ row: (user: String, password: String)
    ) throws {
        var play = try Play(user: row.user, password: row.password)
        for _ in 0..<3 { #expect(try play.send() == "refused wrong") }
        #expect(try play.send() == "refused tooManyFailures")
        #expect(play.memory.wait(of: play.client, as: nil, now: play.now) == .seconds(10))
    }

    @Test func `a user without a hash of the algorithm is no user of it`() throws {
        var play = try Play(user: "zoë", algorithm: "MD5")
        #expect(try play.send() == "refused wrong")
    }

    @Test func `no digest is accepted twice, and they may arrive in any order`() throws {
        var play = try Play()
        let sent = try (0..<4).map { _ in try play.authorization() }
        for index in [2, 0, 3, 1] { #expect(Self.shown(play.send(sent[index])).hasPrefix("known")) }
        for index in 0..<4 { #expect(Self.shown(play.send(sent[index])) == "refused stale") }
    }

    @Test func `an old nonce is stale if the password is right, and a wrong password is wrong`() throws {
        var play = try Play { $0.nonceLifetime = .seconds(60) }
        var guessing = try Play(password: "guess") { $0.nonceLifetime = .seconds(60) }
        #expect(try play.send().hasPrefix("known"))
        play.now += .seconds(60)
        guessing.now = play.now
        #expect(try play.send() == "refused stale")
        #expect(try guessing.send() == "refused wrong")
        let again = try #require(
            parseChallenges(play.scheme.challenges(at: play.now, after: .stale).map { $0[...] }).compactMap(
                DigestChallenge.init
            ).first { $0.algorithmName == Array("SHA-256".utf8) })
        #expect(again.isStale && play.session.renew(again) == .sendAgain)
        #expect(try play.send().hasPrefix("known"))
    }

    @Test func `a nonce of another process is stale`() throws {
        var play = try Play()
        var settings = DigestSettings()
        settings.realm = "larder"
        play.scheme = DigestScheme(
            settings, DigestFile.parse(Array(Self.lines.utf8), realm: "larder").file, GroupsFile(),
            AuthenticationTools(hashing: OpenSSLHashing(), nonceHash: SipHash(key: (3, 4)), random: { 1 }))
        let sent = String(decoding: try play.authorization(), as: UTF8.self)
        // It has another opaque, too: a client that kept the old one gets new challenges.
        #expect(Self.shown(play.send(Array(sent.utf8))) == "refused missing")
        let withoutOpaque = sent.replacing(/, opaque="[0-9a-f]*"/, with: "")
        #expect(Self.shown(play.send(Array(withoutOpaque.utf8))) == "refused stale")
    }

    @Test func `a client gets the next nonce in the last quarter of the life of the present one`() throws {
        var play = try Play { $0.nonceLifetime = .seconds(100) }
        for (age, hasNext) in [(0, false), (74, false), (75, true), (99, false), (149, false), (150, true)] {
            play.now = .seconds(100 + age)
            guard case .known(_, .information(let value)?) = play.send(try play.authorization()) else {
                Issue.record("not let in after \(age) seconds")
                return
            }
            #expect(String(decoding: value, as: UTF8.self).contains("nextnonce=") == hasNext)
            if hasNext {
                let information = try #require(AuthenticationInfo(value[...]))
                play.session.learn(from: information)
            }
        }
        play.now = .seconds(100 + 249)
        #expect(try play.send().hasPrefix("known"))
        play.now = .seconds(100 + 250)
        #expect(try play.send() == "refused stale")
    }

    static let targets: [(target: String, uri: String, isAccepted: Bool)] = [
        ("http://example.org/a?b", "/a?b", true), ("http://example.org/a?b", "http://example.org/a?b", true),
        ("http://example.org", "/", true), ("http://example.org?b", "/?b", true),
        ("http://example.org", "http://example.org", true), ("http://example.org/a", "/b", false),
        ("http://example.org/a", "/a?b", false), ("http://example.org/a?b", "/a", false),
        ("http://example.org/a", "http://example.com/a", false), ("http://example.org/a", "example.org", false),
        ("http://example.org/a", "*", false), ("example.org:443", "example.org:443", true),
        ("example.org:443", "EXAMPLE.org:443", true), ("example.org:443", "example.com:443", false),
        ("example.org:443", "/", false), ("/a", "/a", true), ("/a", "/A", false), ("*", "*", true),
        ("http://example.org/http://h/b", "/b", false),
        ("http://example.org/%C3%BC?%FF", "/ü?\u{FF}", false), ("http://example.org/%C3%BC?q", "/ü?q", true),
        ("http://example.org/%C3%BC", "http://example.org/ü", true), ("/%C3%BC", "/ü", true),
        ("/%c3%bc", "/ü", false), ("/%C3%BC", "/%C3%BC", true), ("http://example.org/u", "/ü", false),
    ]
    @Test(arguments: targets) func `the digest is for the target of the request (§3.4.6)`(
        _ row: (target: String, uri: String, isAccepted: Bool)
    ) throws {
        var play = try Play()
        let step = play.send(try play.authorization(row.uri), target: row.target)
        #expect(Self.shown(step).hasPrefix(row.isAccepted ? "known" : "refused missing"))
    }

    @Test func `the digest is for the method of the request`() throws {
        var play = try Play()
        #expect(Self.shown(play.send(try play.authorization(), method: "PUT")) == "refused wrong")
    }

    @Test func `what was not offered is not accepted, and is no failure`() throws {
        var play = try Play()
        let sent = String(decoding: try play.authorization(), as: UTF8.self)
        for other in [
            sent.replacing("realm=\"larder\"", with: "realm=\"other\""),
            sent.replacing("SHA-256", with: "SHA-256-sess"),
            sent.replacing("qop=auth", with: "qop=auth-int"), sent.replacing(/opaque="./, with: "opaque=\"x"),
            "Digest", "Digest nonsense",
        ] {
            #expect(Self.shown(play.send(Array(other.utf8))) == "refused missing", "\(other)")
        }
        #expect(Self.shown(play.send(Array("Basic YTpi".utf8))) == "not mine")
        #expect(try play.send().hasPrefix("known"))
    }
}

@Suite("RFC 7616 Digest with auth-int")
struct DigestIntegrityTests {
    /// A client that uses `auth-int` because nothing else is offered to it.
    private static func play() throws -> DigestSchemeTests.Play {
        var play = try DigestSchemeTests.Play { $0.protection = .authInt }
        let offered = String(decoding: play.scheme.challenges(at: play.now, after: nil)[1], as: UTF8.self)
        #expect(offered.contains("qop=\"auth, auth-int\""))
        let challenge = try #require(
            parseChallenges([Array(offered.replacing("auth, auth-int", with: "auth-int").utf8)[...]]).first.flatMap {
                DigestChallenge($0)
            })
        play.session = try DigestSession(challenge, user: "ann", password: Secret("secret"))
        return play
    }

    private static func authorization(
        _ play: inout DigestSchemeTests.Play, _ body: DigestBody
    ) throws -> [UInt8] {
        try play.session.authorization(
            for: DigestRequest(method: Array("POST".utf8), uri: Array("/a".utf8), body: body),
            clientNonce: Array("c".utf8), using: OpenSSLHashing()
        ).value
    }

    static let rows: [(sent: DigestBody, seen: DigestBody, result: String)] = [
        (.empty, .empty, "known"), (.content([1, 2, 3]), .content([1, 2, 3]), "known"), (.content([]), .empty, "known"),
        (.content([1, 2, 3]), .content([1, 2, 4]), "refused wrong"), (.content([1, 2, 3]), .empty, "refused wrong"),
        (.empty, .content([1]), "refused wrong"), (.content([1, 2, 3]), .unknown, "refused bodyNotCovered"),
        (.empty, .unknown, "refused bodyNotCovered"),
    ]
    @Test(arguments: rows) func `a digest covers the body, and proves nothing without it`(
        _ row: (sent: DigestBody, seen: DigestBody, result: String)
    ) throws {
        var play = try Self.play()
        let sent = try Self.authorization(&play, row.sent)
        #expect(DigestSchemeTests.shown(play.send(sent, method: "POST", body: row.seen)).hasPrefix(row.result))
    }

    @Test func `an answer has no proof, and the next nonce when it is time`() throws {
        var play = try Self.play()
        for (age, hasNext) in [(0, false), (250, true)] {
            play.now = .seconds(100 + age)
            let sent = try Self.authorization(&play, .content([1]))
            guard case .known(_, let reply) = play.send(sent, method: "POST", body: .content([1])) else {
                Issue.record("not let in")
                return
            }
            guard hasNext else {
                #expect(reply == nil)
                continue
            }
            guard case .information(let value)? = reply else {
                Issue.record("no nonce")
                return
            }
            let information = try #require(AuthenticationInfo(value[...]))
            #expect(information.nextNonce != nil && !String(decoding: value, as: UTF8.self).contains("rspauth"))
        }
    }

    @Test func `who covers too long a body is offered auth alone`() throws {
        let play = try Self.play()
        let offered = play.scheme.challenges(at: play.now, after: .bodyNotCovered)
        #expect(offered.allSatisfy { String(decoding: $0, as: UTF8.self).contains("qop=\"auth\"") })
    }
}

@Suite("Nonces of Digest")
struct NonceTests {
    static func nonces(_ lifetime: Duration = .seconds(100), key: UInt64 = 1) -> DigestNonces {
        DigestNonces(SipHash(key: (key, 2)), lifetime: lifetime) { 7 }
    }

    @Test func `a nonce is valid for its lifetime, for every worker with the key, and for nobody else`() {
        let text = Self.nonces().make(at: .seconds(50))
        guard case .valid(let nonce, isOld: false) = Self.nonces().read(text, at: .seconds(50)) else {
            Issue.record("not valid")
            return
        }
        #expect(nonce.issued == 50_000)
        #expect(Self.nonces().read(text, at: .milliseconds(149_999)) == .valid(nonce, isOld: true))
        #expect(Self.nonces().read(text, at: .seconds(150)) == .stale)
        #expect(Self.nonces().read(text, at: .seconds(49)) == .stale)
        #expect(Self.nonces(key: 3).read(text, at: .seconds(50)) == .stale)
    }

    /// Three nodes: their monotonic clocks differ, and the last one's time of day is half a minute behind.
    static let offsets: [Duration] = [.seconds(1_000_000), .seconds(999_000), .seconds(998_970)]
    static let clocks: [Duration] = [.seconds(50), .seconds(1_050), .seconds(1_050)]
    @Test func `a nonce of one node of a fleet is valid on the others, whose clocks differ a little`() {
        let nodes = Self.offsets.map { offset in
            DigestNonces(SipHash(key: (1, 2)), lifetime: .seconds(100), clockOffset: { offset }) { 7 }
        }
        let text = nodes[0].make(at: Self.clocks[0])
        for (node, clock) in zip(nodes, Self.clocks) {
            guard case .valid(_, isOld: false) = node.read(text, at: clock) else {
                Issue.record("not valid")
                return
            }
            #expect(node.read(text, at: clock + .seconds(130)) == .stale)
        }
        #expect(nodes[2].read(text, at: Self.clocks[2] - .seconds(31)) == .stale, "more than a minute ahead")
    }

    @Test func `no digit of a nonce can be changed`() {
        let text = Self.nonces().make(at: .seconds(50))
        for index in text.indices {
            var changed = text
            changed[index] = changed[index] == 0x30 ? 0x31 : 0x30
            #expect(Self.nonces().read(changed, at: .seconds(50)) == .stale)
        }
        for other in [[], Array(text.dropLast()), text + [0x30], text.dropLast() + [0x67]] {
            #expect(Self.nonces().read(Array(other), at: .seconds(50)) == .stale)
        }
    }

    private static func nonce(_ second: Int) -> DigestNonce {
        let nonces = DigestNonces(SipHash(key: (1, 2)), lifetime: .seconds(1000)) { UInt64(second) }
        guard case .valid(let nonce, _) = nonces.read(nonces.make(at: .seconds(second)), at: .seconds(second)) else {
            preconditionFailure("a new nonce is valid")
        }
        return nonce
    }

    static let windows: [(used: [UInt32], next: UInt32, isAccepted: Bool)] = [
        ([], 1, true), ([], .max, true), ([1], 1, false), ([1], 2, true), ([2], 1, true), ([2, 1], 1, false),
        ([200], 73, true), ([200], 72, false), ([200, 73], 73, false), ([1, 128], 1, false), ([1, 129], 1, false),
        ([5, 4_000_000_000], 6, false), ([5, 4_000_000_000], 3_999_999_999, true), ([.max], .max, false),
    ]
    @Test(arguments: windows) func `of the last 128 counts each is accepted once`(
        _ row: (used: [UInt32], next: UInt32, isAccepted: Bool)
    ) {
        var counts = NonceCounts()
        for count in row.used { #expect(counts.use(count, of: Self.nonce(1), valid: 0...9_000_000) == true) }
        #expect(counts.use(row.next, of: Self.nonce(1), valid: 0...9_000_000) == row.isAccepted)
    }

    @Test(arguments: 0..<8) func `in whatever order, no count is accepted twice`(_ seed: UInt64) {
        var counts = NonceCounts()
        var seen: Set<UInt32> = []
        var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
        for _ in 0..<2000 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let count = UInt32(state >> 33) % 300 + 1
            guard counts.use(count, of: Self.nonce(1), valid: 0...9_000_000) else { continue }
            let isNew = seen.insert(count).inserted
            #expect(isNew)
        }
        #expect(!seen.isEmpty)
    }

    /// Counts that one node has used and tells, counts that the other has used, and one that is used next.
    static let told: [(there: [UInt32], here: [UInt32], next: UInt32, isAccepted: Bool)] = [
        ([1], [], 1, false), ([1], [], 2, true), ([1, 3, 5], [2, 4], 5, false), ([1, 3, 5], [2, 4], 4, false),
        ([1, 3, 5], [2, 4], 6, true), ([5], [200], 5, false), ([200], [5], 73, true), ([200], [5], 72, false),
        ([200], [], 200, false), ([.max], [1], 2, false), ([7], [7], 7, false),
    ]
    @Test(arguments: told) func `a count that another node has used is used`(
        _ row: (there: [UInt32], here: [UInt32], next: UInt32, isAccepted: Bool)
    ) {
        var (there, here) = (NonceCounts(), NonceCounts())
        there.share()
        for count in row.there { _ = there.use(count, of: Self.nonce(5), valid: 0...9_000_000) }
        for count in row.here { _ = here.use(count, of: Self.nonce(5), valid: 0...9_000_000) }
        let told = [there.takeUntold(10), there.takeUntold(10)]
        #expect(told.map(\.count) == [1, 0])
        for told in told[0] { here.count(told, valid: 0...9_000_000) }
        let isAccepted = here.use(row.next, of: Self.nonce(5), valid: 0...9_000_000)
        #expect(isAccepted == row.isAccepted)
    }

    @Test func `who is alone tells nothing, and what is too old is not told`() {
        var (alone, here) = (NonceCounts(), NonceCounts())
        _ = alone.use(1, of: Self.nonce(5), valid: 0...9_000_000)
        let told = alone.takeUntold(10)
        #expect(told.isEmpty)
        here.count(NonceCounts.Told(nonce: Self.nonce(5), highest: 1, used: 1), valid: 5_001...9_000_000)
        #expect(here.count == 0)
    }

    @Test func `the table is bounded, and what it forgets cannot be used again`() {
        var counts = NonceCounts(countMax: 3)
        for second in 1...5 { #expect(counts.use(1, of: Self.nonce(second), valid: 0...9_000_000) == true) }
        #expect(counts.count == 3)
        #expect(counts.use(2, of: Self.nonce(1), valid: 0...9_000_000) == false)
        #expect(counts.use(1, of: Self.nonce(2), valid: 0...9_000_000) == false)
        for second in 3...5 { #expect(counts.use(1, of: Self.nonce(second), valid: 0...9_000_000) == false) }
        #expect(counts.use(1, of: Self.nonce(6), valid: 0...9_000_000) == true)
    }

    @Test func `after the clock was set back, what was made until then counts as used`() {
        var counts = NonceCounts(countMax: 3)
        #expect(counts.use(1, of: Self.nonce(500), valid: 0...500_000) == true)
        // Forgotten, because it was no longer valid.
        #expect(counts.use(1, of: Self.nonce(5000), valid: 4_500_000...5_000_000) == true)
        #expect(counts.use(1, of: Self.nonce(500), valid: 100_000...600_000) == false, "somebody sends it again")
        #expect(counts.use(1, of: Self.nonce(600), valid: 100_000...600_000) == false)
        #expect(counts.use(1, of: Self.nonce(601), valid: 101_000...601_000) == true, "one that was made since then")
        // Those from before that are forgotten to make room are in the future: they do not keep others out.
        for second in 602...605 { #expect(counts.use(1, of: Self.nonce(second), valid: 105_000...605_000) == true) }
        // Clocks of nodes differ: that is no clock that was set back.
        #expect(counts.use(1, of: Self.nonce(606), valid: 46_000...546_000) == true)
    }

    @Test func `nonces that are no longer valid make room without harm to others`() {
        var counts = NonceCounts(countMax: 3)
        for second in 1...3 { #expect(counts.use(1, of: Self.nonce(second), valid: 0...9_000_000) == true) }
        #expect(counts.use(1, of: Self.nonce(90), valid: 64_000...9_000_000) == true)
        #expect(counts.count == 1)
        #expect(counts.use(1, of: Self.nonce(64), valid: 64_000...9_000_000) == true)
    }

    @Test func `a clock that is set back a little makes no used nonce new`() {
        var counts = NonceCounts()
        #expect(counts.use(1, of: Self.nonce(100), valid: 0...3_600_000) == true)
        #expect(counts.use(1, of: Self.nonce(3700), valid: 105_000...3_705_000) == true)
        #expect(counts.use(1, of: Self.nonce(100), valid: 75_000...3_675_000) == false)
    }
}
