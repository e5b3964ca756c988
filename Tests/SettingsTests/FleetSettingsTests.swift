import Testing

@testable import Settings

@Suite("fleet: how a fleet is written") struct FleetSettingsTests {
    private func problems(_ text: String) throws -> [String] { try load("fleet: \(text)").errors.map { "\($0)" } }

    static let whole =
        "{ redis: { url: rediss://larder@r.example:7000/3, password_file: /p, ca_file: /c }, secret_file: /s, node: { name: a-1 } }"

    @Test func `everything`() throws {
        let fleet = try loaded("fleet: \(Self.whole)").fleet
        let url = try #require(fleet.redis)
        #expect(
            url.isSecured && url.user == "larder" && url.host == "r.example" && url.port == 7000 && url.database == 3)
        #expect(
            fleet.passwordFile == "/p" && fleet.authorityFile == "/c" && fleet.secretFile == "/s" && fleet.node == "a-1"
        )
    }

    @Test func `as little as possible, and none`() throws {
        let fleet = try loaded("fleet: { redis: { url: redis://r }, secret_file: /s }").fleet
        #expect(fleet.redis.map { "\($0)" } == "redis://r:6379/0" && fleet.node == nil && fleet.passwordFile == nil)
        #expect(try loaded("workers: 1").fleet == FleetSettings())
    }

    @Test func `a reload changes who the nodes are, and nothing else`() throws {
        func node(_ name: String, _ peers: String) throws -> Configuration {
            let peer = "peer: { address: \"127.0.0.1:3130\", certificate: /n, key: /k, ca: /c }"
            return try loaded(
                "fleet: { redis: { url: redis://r }, secret_file: /s, node: { name: \(name), \(peer) }, peers: \(peers) }"
            )
        }
        let before = try node("a", "[ \"a:1\", \"b:1\" ]")
        let alone = try loaded("fleet: { redis: { url: redis://r }, secret_file: /s, node: { name: a } }")
        for other in ["[ \"a:1\", \"b:1 weight=2\", \"c:1\" ]", "\"caches.test:1\""] {
            #expect(changesNeedingRestart(from: before, to: try node("a", other)) == [])
        }
        #expect(changesNeedingRestart(from: before, to: try node("b", "[ \"a:1\" ]")) == ["fleet.node.name"])
        #expect(changesNeedingRestart(from: before, to: alone).contains("fleet.peers"))
        #expect(changesNeedingRestart(from: alone, to: before).contains("fleet.peers"))
    }

    @Test func `responses outlive the process where a fleet keeps them`() throws {
        #expect(try loaded("cache: { disk: { size: 0 } }").cacheRules.defaultHandling.storage == .session)
        let text = "cache: { disk: { size: 0 } }\nfleet: { redis: { url: redis://r }, secret_file: /s }"
        #expect(try loaded(text).cacheRules.defaultHandling.storage == .permanent)
    }

    static let wrong: [(text: String, says: String)] = [
        ("{}", "fleet.redis.url"), ("{ secret_file: /s }", "fleet.redis.url: missing"),
        ("{ redis: { url: redis://r } }", "fleet.secret_file: missing"),
        ("{ redis: { url: redis://r } }", "openssl rand -hex 32"),
        ("{ redis: { url: redis://r, ca_file: /c }, secret_file: /s }", "the URL does not use TLS"),
        ("{ redis: { url: redis://u@r }, secret_file: /s }", "fleet.redis.password_file: missing"),
        ("{ redis: { url: \"redis://u:secret@r\" }, secret_file: /s }", "fleet.redis.password_file"),
        ("{ redis: { url: \"redis://:secret@r\" }, secret_file: /s }", "fleet.redis.password_file"),
        ("{ redis: { url: unix:/run/redis.sock }, secret_file: /s }", "name a loopback address"),
        ("{ redis: { url: /run/redis.sock }, secret_file: /s }", "name a loopback address"),
        ("{ redis: { url: http://r }, secret_file: /s }", "fleet.redis.url"),
        ("{ redis: { url: redis://r, passwort_file: /p }, secret_file: /s }", "did you mean"),
        ("{ redis: { url: redis://r }, secret_fiel: /s }", "did you mean fleet.secret_file?"),
        ("{ redis: { url: redis://r }, secret_file: /s, node: { name: \"a b\" } }", "fleet.node.name"),
        ("{ redis: { url: redis://r }, secret_file: /s, node: { name: \"\" } }", "fleet.node.name"),
        ("{ redis: { url: redis://r }, secret_file: /s, node: { peer: \"https://a:1\" } }", "peer"),
        ("{ redis: { url: redis://r }, secret_file: /s, peers: [ a ] }", "peers[1]"),
        ("{ redis: { url: redis://r }, secret_file: /s, peers: [] }", "found an empty list"),
        ("{ redis: { url: redis://r }, secret_file: /s, peers: [ \"a:1\" ] }", "fleet.node.peer.address: missing"),
        (
            "{ redis: { url: redis://r }, secret_file: /s, node: { peer: { address: 10.0.0.1:1 } } }",
            "fleet.peers: missing"
        ),
        (
            "{ redis: { url: redis://r }, secret_file: /s, peers: \"c:1\", node: { peer: { address: 10.0.0.1:1, certificate: /c, key: /k } } }",
            "fleet.node.peer.ca: missing"
        ),
        (
            "{ redis: { url: redis://r }, secret_file: /s, peers: \"c:1\", node: { peer: { address: 10.0.0.1:1, ca: /c, key: /k } } }",
            "fleet.node.peer.certificate: missing"
        ),
        (
            "{ redis: { url: redis://r }, secret_file: /s, peers: \"c:1\", node: { peer: { address: \"unix:/run/p\" } } }",
            "fleet.node.peer.address"
        ),
        (
            "{ redis: { url: redis://r }, secret_file: /s, peers: [ \"a:1\", \"A:1 weight=2\" ], node: { peer: { address: 10.0.0.1:1, certificate: /c, key: /k, ca: /a } } }",
            "a:1 is there twice"
        ),
    ]
    @Test(arguments: wrong) func `what is wrong is said`(_ row: (text: String, says: String)) throws {
        let problems = try problems(row.text)
        #expect(problems.contains { $0.contains(row.says) }, "\(problems)")
        #expect(!problems.contains { $0.contains("secret@") }, "no password is printed: \(problems)")
    }

    static let places: [(text: String, means: String?)] = [
        ("10.20.0.11:3130", "10.20.0.11:3130"), ("Cache-1.Internal:1", "cache-1.internal:1"),
        ("[2001:db8::1]:3130 weight=2", "[2001:db8::1]:3130 weight=2"), ("a:1 weight=1", "a:1"),
        ("a:1 weight=100", "a:1 weight=100"), ("a", nil), ("a:0", nil), ("a:1 weight=0", nil), ("a:1 weight=101", nil),
        ("a:1 weight=", nil), ("a:1 weight=+1", nil), ("a:1 weigth=1", nil), ("a:1 weight=1 x", nil), ("", nil),
        ("2001:db8::1:3130", nil), ("https://a:1", nil),
    ]
    @Test(arguments: places) func `a node`(_ row: (text: String, means: String?)) {
        let node = FleetNodeAddress(row.text)
        #expect(node.map { "\($0)" } == row.means)
        if let means = row.means { #expect(FleetNodeAddress(means) == node, "what is rendered means the same") }
    }

    @Test func `peers are nodes, or one name`() throws {
        func peers(_ text: String) throws -> FleetPeersSetting? {
            let node = "node: { peer: { address: 10.0.0.1:1, certificate: /c, key: /k, ca: /a } }"
            return try loaded("fleet: { redis: { url: redis://r }, secret_file: /s, \(node), peers: \(text) }").fleet
                .peers
        }
        let one = try #require(FleetNodeAddress("a:1"))
        let two = try #require(FleetNodeAddress("10.0.0.1:2 weight=3"))
        #expect(try peers("[ \"a:1\", \"10.0.0.1:2 weight=3\" ]") == .nodes([one, two]))
        #expect(try peers("\"a:1\"") == .name("a", port: 1))
        #expect(try peers("\"10.0.0.1:2 weight=3\"") == .nodes([two]))
    }

    static let urls: [(text: String, means: String?)] = [
        ("redis://r", "redis://r:6379/0"), ("redis://R.Example/", "redis://r.example:6379/0"),
        ("rediss://u@r:1/12", "rediss://u@r:1/12"), ("redis://127.0.0.1:7000", "redis://127.0.0.1:7000/0"),
        ("redis://[::1]:7000/1", "redis://[::1]:7000/1"), ("redis://[::1]", "redis://[::1]:6379/0"),
        ("redis://r:65535", "redis://r:65535/0"), ("redis://r/1000000", "redis://r:6379/1000000"),
        ("", nil), ("r", nil), ("redis:", nil), ("redis://", nil), ("redis:///0", nil), ("REDIS://r", nil),
        ("tcp://r", nil),
        ("redis://r:", nil), ("redis://r:0", nil), ("redis://r:65536", nil), ("redis://r:+1", nil),
        ("redis://r:1:2", nil),
        ("redis://::1", nil), ("redis://[r]", nil), ("redis://[127.0.0.1]", nil), ("redis://[::1", nil),
        ("redis://[::1]x", nil),
        ("redis://r/-1", nil), ("redis://r/1000001", nil), ("redis://r/a", nil), ("redis://r/0/1", nil),
        ("redis://r/0?x", nil),
        ("redis://@r", nil), ("redis://u:p@r", nil), ("redis://u%40@r", nil), ("redis://u v@r", nil),
        ("redis://é", nil),
        ("redis://r é", nil), ("redis://r/99999999999999999999", nil),
    ]
    @Test(arguments: urls) func `a URL`(_ row: (text: String, means: String?)) {
        let url = RedisURL(row.text)
        #expect(url.map { "\($0)" } == row.means)
        if let means = row.means { #expect(RedisURL(means) == url, "what is rendered means the same") }
    }
}
