import EventLoop
import Foundation
import Glibc
import ProgramUnderTest
import TLS
import Testing

/// A client of two nodes that has the address 127.0.0.1, or another one of this machine.
extension Fleet {
    /// Asks for a short body that is stored on each node.
    func ask(_ index: Int, bytes: Int = 10_000, as address: String = "127.0.0.1") async throws -> Workplace.Reply {
        try await place.curl("--interface", address, url("/\(bytes)/c?cc=max-age=600"), through: nodes[index])
    }

    /// Asks until a request is refused.
    ///
    /// - Returns: how many were not.
    func askUntilRefused(
        _ index: Int, bytes: Int = 10_000, as address: String = "127.0.0.1", atMost most: Int = 100
    ) async throws -> Int {
        for count in 0..<most {
            let reply = try await ask(index, bytes: bytes, as: address)
            if reply.status == 429 { return count }
            #expect(reply.status == 200, "\(reply)")
        }
        return most
    }

    /// A member of the buckets in `limits` of `larder stats --json`, of one subject.
    func limit(_ name: String, of node: Larder, as address: String = "127.0.0.1") async throws -> Int {
        let output = try await node.command("stats", "--json")
        let all = try JSONSerialization.jsonObject(with: Data(output.out.utf8)) as? [String: Any]
        let buckets = try #require(all?["limits"] as? [[String: Any]], "\(output)")
        return buckets.first { $0["subject"] as? String == "client \(address)" }?[name] as? Int ?? 0
    }

    func awaitSpent(_ bytes: Int, of node: Larder) async throws {
        var last = -1
        try await eventually("\(bytes) bytes are spent and not \(last); \(node.child.errors)", within: .seconds(60)) {
            last = try await limit("spent", of: node)
            return last == bytes
        }
    }

    func awaitAlone(_ isAlone: Bool, _ node: Larder) async throws {
        try await eventually("the node is alone: \(isAlone); \(node.child.errors)", within: .seconds(60)) {
            try await figure("limits_alone", of: node) == (isAlone ? 1 : 0)
        }
    }

    /// Waits until a node knows of the others.
    func awaitNodes(_ count: Int) async throws {
        for node in nodes {
            try await eventually("it knows \(count) nodes", within: .seconds(60)) {
                try await figure("nodes", of: node) == count
            }
        }
    }

    /// Waits until `larder explain` says this of the limits.
    func awaitExplained(_ text: String, _ index: Int) async throws {
        var last = ""
        try await eventually("explain says \(text) and not \(last)", within: .seconds(60)) {
            last = try await nodes[index].command("explain", url("/100/c")).out
            return last.contains(text)
        }
    }
}

@Suite("A fleet: budgets", .enabled(if: Fleet.isInstalled, "packages curl, redis-server"))
struct FleetBudgetTests {
    static func plan(_ bytes: Int, file: Bool = false) -> Fleet.Plan {
        var plan = Fleet.Plan()
        plan.more =
            "limits: { rules: [ { name: quota, budget: { bytes: \(bytes), every: total } } ]\(file ? ", budgets_file: DIRECTORY.budgets" : "") }"
        return plan
    }

    @Test func `a budget holds for all nodes together`() async throws {
        try await Fleet.with([Self.plan(100_000), Self.plan(100_000), Self.plan(100_000)]) {
            (fleet: Fleet) async throws -> Void in
            for index in [0, 1, 2] {
                for _ in 0..<3 { #expect(try await fleet.ask(index).status == 200) }
            }
            for node in fleet.nodes { try await fleet.awaitSpent(90_000, of: node) }
            #expect(try await fleet.ask(1).status == 200)
            for node in fleet.nodes { try await fleet.awaitSpent(100_000, of: node) }
            for index in [0, 1, 2] {
                let refused = try await fleet.ask(index)
                #expect(refused.status == 429 && refused.text.contains("100000 bytes in all"), "\(refused)")
            }
            // Whoever reads Redis learns neither user nor address, and no key stays for ever.
            let names = try await fleet.redis.names("u")
            #expect(names.count == 1 && names[0].wholeMatch(of: /larder:1:u:[0-9a-f]{32}/) != nil)
            #expect(try await fleet.redis.ask("--raw", "HKEYS", names[0]).contains("node-1"))
            for name in names + ["larder:1:news"] where try await fleet.redis.ask("EXISTS", name) == "1" {
                let seconds = try await fleet.redis.ask("TTL", name)
                #expect(Int(seconds).map { $0 > 0 } == true, "\(name): \(seconds)")
            }
        }
    }

    @Test func `a client that has spent its budget on one node has nothing on another that does not know it`()
        async throws
    {
        try await Fleet.with([Self.plan(50_000), Self.plan(50_000)]) { (fleet: Fleet) async throws -> Void in
            #expect(try await fleet.askUntilRefused(0) == 5)
            // The other one asks when the client comes.
            try await eventually("the other node knows it") { try await fleet.ask(1, bytes: 1).status == 429 }
        }
    }

    @Test func `without Redis each node has its share, and all is delivered to an emptied one`() async throws {
        try await Fleet.with([Self.plan(400_000), Self.plan(400_000)]) { (fleet: Fleet) async throws -> Void in
            try await fleet.awaitNodes(2)
            for _ in 0..<10 { #expect(try await fleet.ask(0).status == 200) }
            _ = try await fleet.ask(1, bytes: 0)
            for node in fleet.nodes { try await fleet.awaitSpent(100_000, of: node) }
            try await fleet.redis.end()
            for node in fleet.nodes { try await fleet.awaitAlone(true, node) }
            // 300,000 are left.
            for index in [0, 1] { #expect(try await fleet.askUntilRefused(index) == 15) }
            // A budget that is not known yet is divided as well. Its first request makes the node look.
            _ = try await fleet.ask(0, bytes: 0, as: "127.0.0.2")
            try await eventually("the rest is kept for the other node", within: .seconds(30)) {
                try await fleet.limit("spent", of: fleet.nodes[0], as: "127.0.0.2") == 200_000
            }
            #expect(try await fleet.askUntilRefused(0, as: "127.0.0.2") == 20)
            // What comes back has nothing: the nodes remember.
            _ = try await fleet.redis.again()
            for node in fleet.nodes {
                try await fleet.awaitAlone(false, node)
                try await fleet.awaitSpent(400_000, of: node)
            }
            for index in [0, 1] { #expect(try await fleet.ask(index).status == 429) }
            _ = try await fleet.ask(1, as: "127.0.0.2")
            try await eventually("the rest of the other budget", within: .seconds(30)) {
                try await fleet.limit("spent", of: fleet.nodes[1], as: "127.0.0.2") >= 200_000
            }
        }
    }

    @Test func `emptying Redis gives nobody a fresh budget`() async throws {
        try await Fleet.with([Self.plan(100_000), Self.plan(100_000)]) { (fleet: Fleet) async throws -> Void in
            for index in [0, 1] { for _ in 0..<4 { #expect(try await fleet.ask(index).status == 200) } }
            for node in fleet.nodes { try await fleet.awaitSpent(80_000, of: node) }
            // One node is gone: the other one remembers what it has used.
            await fleet.nodes[0].child.stop()
            try await fleet.redis.ask("FLUSHALL")
            try await eventually("it is there again", within: .seconds(30)) {
                guard let name = try await fleet.redis.names("u").first else { return false }
                return try await fleet.redis.ask("HLEN", name) == "2"
            }
            #expect(try await fleet.askUntilRefused(1) == 2)
            let back = try await fleet.restarted(0)
            try await fleet.awaitFollowing(back)
            let fleet = Fleet(place: fleet.place, redis: fleet.redis, origin: fleet.origin, nodes: [back], plans: [])
            try await eventually("the node that is back knows it") { try await fleet.ask(0, bytes: 1).status == 429 }
        }
    }

    @Test(arguments: [true, false]) func `what a node has used counts once after it has started again`(
        _ hasFile: Bool
    ) async throws {
        let plan = Self.plan(1_000_000, file: hasFile)
        try await Fleet.with([plan, plan]) { (fleet: Fleet) async throws -> Void in
            for index in [0, 1] { for _ in 0..<3 { #expect(try await fleet.ask(index).status == 200) } }
            for node in fleet.nodes { try await fleet.awaitSpent(60_000, of: node) }
            await fleet.nodes[0].child.stop()
            let back = try await fleet.restarted(0)
            try await fleet.awaitFollowing(back)
            let both = Fleet(
                place: fleet.place, redis: fleet.redis, origin: fleet.origin, nodes: [back, fleet.nodes[1]], plans: [])
            #expect(try await both.ask(0).status == 200)
            for node in both.nodes { try await both.awaitSpent(70_000, of: node) }
        }
    }

    @Test func `a reset on one node reaches all`() async throws {
        try await Fleet.with([Self.plan(50_000), Self.plan(50_000)]) { (fleet: Fleet) async throws -> Void in
            for words in [["--client", "127.0.0.1"], []] {
                #expect(try await fleet.askUntilRefused(0) <= 5)
                try await eventually("the other node knows it") { try await fleet.ask(1, bytes: 1).status == 429 }
                let reset = try await fleet.place.run(
                    Larder.executable,
                    ["budget", "reset", "quota"] + words + ["--config", fleet.nodes[1].configuration]
                )
                #expect(reset.status == 0 && reset.out == "reset 1 budget of the limit quota\n", "\(reset)")
                for node in fleet.nodes { try await fleet.awaitSpent(0, of: node) }
                for index in [0, 1] { #expect(try await fleet.ask(index).status == 200) }
                for node in fleet.nodes { try await fleet.awaitSpent(20_000, of: node) }
            }
        }
    }

    @Test func `a reset while Redis is away, by a node that does not know the budget, is in force when it is back`()
        async throws
    {
        try await Fleet.with([Self.plan(50_000), Self.plan(50_000)]) { (fleet: Fleet) async throws -> Void in
            #expect(try await fleet.askUntilRefused(0) == 5)
            try await fleet.awaitSpent(50_000, of: fleet.nodes[0])
            try await fleet.redis.end()
            for node in fleet.nodes { try await fleet.awaitAlone(true, node) }
            let reset = try await fleet.nodes[1].command("budget", "reset", "quota", "--client", "127.0.0.1")
            #expect(reset.status == 0, "\(reset)")
            #expect(try await fleet.ask(0).status == 429)
            _ = try await fleet.redis.again()
            // A node looks at a budget that nobody has used for ten seconds when it is used again.
            try await eventually("the reset has come", within: .seconds(60)) { try await fleet.ask(0).status == 200 }
        }
    }

    @Test func `what somebody writes into Redis who has no secret changes no budget`() async throws {
        try await Fleet.with([Self.plan(50_000), Self.plan(50_000)]) { (fleet: Fleet) async throws -> Void in
            #expect(try await fleet.askUntilRefused(0) == 5)
            try await eventually("it is in Redis") { try await fleet.redis.names("u").count == 1 }
            let name = try await fleet.redis.names("u")[0]
            // All that was used: what a node tells at first may be less.
            let own = try await eventually("all is in Redis", within: .seconds(60)) {
                let value = try await fleet.redis.ask("--raw", "HGET", name, "node-1")
                return value.contains(" 50000 ") ? value : nil
            }
            for (field, value) in [
                ("node-2", own), ("node-3", "0 999999 00"), ("#", own), ("node-1", "0 0 "), ("x", "\u{1F600}"),
            ] {
                try await fleet.redis.ask("HSET", name, field, value)
            }
            try await fleet.redis.ask("XADD", "larder:1:news", "*", "n", "nonsense")
            try await eventually("they are refused", within: .seconds(60)) {
                #expect(try await fleet.ask(0, bytes: 1).status == 429)
                return try await fleet.figure("news_refused", of: fleet.nodes[0]) >= 5
            }
            try await fleet.awaitSpent(50_000, of: fleet.nodes[0])
            try await eventually("its own part is right again", within: .seconds(60)) {
                // The node looks at budgets that are used.
                #expect(try await fleet.ask(0, bytes: 1).status == 429)
                return try await fleet.redis.ask("--raw", "HGET", name, "node-1") == own
            }
        }
    }
}

@Suite("A fleet: rates and places", .enabled(if: Fleet.isInstalled, "packages curl, redis-server"))
struct FleetRateTests {
    static func plan(_ rule: String) -> Fleet.Plan {
        var plan = Fleet.Plan()
        plan.more = "limits: { rules: [ { name: each, \(rule) } ] }"
        return plan
    }

    @Test func `a rate holds for all nodes together, and each has its share without Redis`() async throws {
        let plan = Self.plan("requests: 20/d")
        try await Fleet.with([plan, plan]) { (fleet: Fleet) async throws -> Void in
            try await fleet.awaitNodes(2)
            #expect(try await fleet.ask(1).status == 200)
            for _ in 0..<12 { #expect(try await fleet.ask(0).status == 200) }
            for index in [0, 1] { try await fleet.awaitExplained("7 of 20 requests left", index) }
            #expect(try await fleet.askUntilRefused(1) == 7)
            try await fleet.awaitExplained("0 of 20 requests left", 0)
            let refused = try await fleet.ask(0)
            #expect(refused.status == 429 && refused.fields["retry-after"] != nil, "\(refused)")
            // Whoever has not been there before has the whole rate on one node, and nothing on the other.
            #expect(try await fleet.askUntilRefused(0, as: "127.0.0.2") == 20)
            try await eventually("the other node knows it") {
                try await fleet.ask(1, as: "127.0.0.2").status == 429
            }
            try await fleet.redis.end()
            for node in fleet.nodes { try await fleet.awaitAlone(true, node) }
            for index in [0, 1] { #expect(try await fleet.askUntilRefused(index, as: "127.0.0.3") == 10) }
        }
    }

    @Test func `what others let through counts once, also for a bucket that was left alone meanwhile`() async throws {
        let plan = Self.plan("requests: 20/d")
        try await Fleet.with([plan, plan]) { (fleet: Fleet) async throws -> Void in
            #expect(try await fleet.ask(0).status == 200)
            for _ in 0..<5 { #expect(try await fleet.ask(1).status == 200) }
            try await fleet.awaitExplained("14 of 20 requests left", 0)
            // After 10 to 15 seconds a node looks at a bucket no more.
            try await Task.sleep(for: .seconds(17))
            let told = try await fleet.figure("news_heard", of: fleet.nodes[1])
            #expect(try await fleet.ask(0).status == 200)
            try await fleet.awaitFigure("news_heard", of: fleet.nodes[1], atLeast: told + 1)
            for index in [0, 1] { try await fleet.awaitExplained("13 of 20 requests left", index) }
        }
    }

    @Test func `a bucket that was forgotten is told of again`() async throws {
        let plan = Self.plan("requests: 20/s")
        try await Fleet.with([plan, plan]) { (fleet: Fleet) async throws -> Void in
            #expect(try await fleet.ask(0).status == 200)
            try await fleet.awaitFigure("news_heard", of: fleet.nodes[1], atLeast: 1)
            try await Task.sleep(for: .seconds(17))
            let told = try await fleet.figure("news_heard", of: fleet.nodes[1])
            #expect(try await fleet.ask(0).status == 200)
            try await fleet.awaitFigure("news_heard", of: fleet.nodes[1], atLeast: told + 1)
        }
    }

    @Test func `a rule with fleet: no counts on each node alone`() async throws {
        let plan = Self.plan("requests: 5/d, fleet: no")
        try await Fleet.with([plan, plan]) { (fleet: Fleet) async throws -> Void in
            for index in [0, 1] { #expect(try await fleet.askUntilRefused(index) == 5) }
            #expect(try await fleet.redis.ask("EXISTS", "larder:1:news") == "0")
            for index in [0, 1] { #expect(try await fleet.figure("news_sent", of: fleet.nodes[index]) == 0) }
        }
    }

    @Test(arguments: ["concurrent: 2", "connections: 2"])
    func `places that are taken on one node are taken on the others`(
        _ rule: String
    ) async throws {
        let plan = Self.plan(rule)
        try await Fleet.with([plan, plan]) { (fleet: Fleet) async throws -> Void in
            var slow: [Child] = []
            for number in 0..<2 {
                slow.append(
                    try await fleet.place.start(
                        "curl",
                        [
                            "-q", "-s", "--limit-rate", "1k", "-o", "/dev/null", "-x", fleet.nodes[0].url,
                            fleet.url("/20000000/slow\(number)"),
                        ]))
            }
            let figure = rule.hasPrefix("connections") ? "connections" : "under_way"
            try await eventually("both are under way", within: .seconds(30)) {
                try await fleet.limit(figure, of: fleet.nodes[0]) == 2
            }
            try await eventually("the other node knows it", within: .seconds(30)) {
                let reply = try await fleet.ask(1)
                return reply.status == 429 || reply.exit == 52 || reply.exit == 56
            }
            for child in slow { await child.stop() }
            try await eventually("they are free again", within: .seconds(30)) {
                try await fleet.ask(1).status == 200
            }
        }
    }

    @Test func `bytes of one node are paid for on the others`() async throws {
        let plan = Self.plan("bandwidth: 1MiB/s")
        try await Fleet.with([plan, plan]) { (fleet: Fleet) async throws -> Void in
            let origin = fleet.url("/4000000/b?cc=max-age=600")
            for node in fleet.nodes { _ = try await fleet.place.curl(origin, through: node) }
            let start = ContinuousClock.now
            async let one = fleet.place.curl(origin, through: fleet.nodes[0])
            async let other = fleet.place.curl(origin, through: fleet.nodes[1])
            let replies = try await [one, other]
            #expect(replies.allSatisfy { $0.status == 200 && $0.body.count == 4_000_000 })
            // Together 7.6 MiB, where each alone takes 3.8 s.
            #expect(ContinuousClock.now - start > .seconds(6), "\(ContinuousClock.now - start)")
        }
    }
}

@Suite("A fleet: log-ins", .enabled(if: Fleet.isInstalled, "packages curl, redis-server"))
struct FleetAttemptTests {
    /// ann's password is sesame, for Basic and for Digest.
    private static func with(lifetime: String = "5m", _ body: (Fleet) async throws -> Void) async throws {
        try await Workplace.with { place in
            let word = try place.write("word", "sesame\n".utf8)
            for words in [[place.path("users"), "ann"], ["--digest", place.path("digests"), "ann"]] {
                let made = try await place.run(Larder.executable, ["passwd"] + words, input: word)
                try #require(made.status == 0, "\(made)")
            }
            var plan = Fleet.Plan()
            plan.access = """
                access:
                  authentication: { basic: { users: \(place.path("users")) }, digest: { users: \(place.path("digests")), nonce_lifetime: \(lifetime) } }
                  rules: [ allow: { address: [ 127.0.0.1 ], port: [ 1-65535 ], user: [ ann ] } ]
                """
            let redis = try await RedisServer.start(in: place)
            try await Fleet.with([plan, plan], in: place, redis, body)
        }
    }

    /// What a client does with one challenge of the first node.
    private struct Client {
        let fleet: Fleet
        let url: String
        let realm: String
        let nonce: String
        let opaque: String

        init(_ fleet: Fleet) async throws {
            self.fleet = fleet
            url = fleet.url("/100/n")
            let challenge = try await fleet.place.curl(url, through: fleet.nodes[0])
            #expect(challenge.status == 407, "\(challenge)")
            let line = try #require(
                challenge.heads.split(separator: "\r\n").first {
                    $0.contains("Digest") && $0.contains("SHA-256")
                })
            func value(_ name: String) throws -> String {
                let start = try #require(line.firstRange(of: "\(name)=\""), "\(line)")
                return String(line[start.upperBound...].prefix { $0 != "\"" })
            }
            (realm, nonce, opaque) = (try value("realm"), try value("nonce"), try value("opaque"))
        }

        func ask(_ index: Int, count: Int) async throws -> Workplace.Reply {
            func hash(_ text: String) -> String {
                Digest.sha256(Array(text.utf8)).map { String(format: "%02x", $0) }.joined()
            }
            let nc = String(format: "%08x", count)
            let proof = hash("\(hash("ann:\(realm):sesame")):\(nonce):\(nc):abc:auth:\(hash("GET:\(url)"))")
            let credentials =
                "Digest username=\"ann\", realm=\"\(realm)\", nonce=\"\(nonce)\", uri=\"\(url)\", algorithm=SHA-256, qop=auth, nc=\(nc), cnonce=\"abc\", response=\"\(proof)\", opaque=\"\(opaque)\""
            return try await fleet.place.curl(
                "-H", "Proxy-Authorization: \(credentials)", url, through: fleet.nodes[index])
        }
    }

    @Test func `a nonce is valid on no node any longer when its lifetime is over`() async throws {
        // The shortest that there is.
        try await Self.with(lifetime: "10s") { fleet in
            let client = try await Client(fleet)
            // A count is used once: a digest that is used again is stale as well.
            var count = 0
            for index in [0, 1] {
                try await eventually("the nonce is stale", within: .seconds(60)) {
                    count += 1
                    let reply = try await client.ask(index, count: count)
                    return reply.status == 407 && reply.heads.contains("stale=true")
                }
            }
        }
    }

    @Test func `a nonce of one node is valid on another, and no digest is accepted twice`() async throws {
        try await Self.with { fleet in
            let client = try await Client(fleet)
            func ask(_ index: Int, count: Int) async throws -> Workplace.Reply {
                try await client.ask(index, count: count)
            }
            let other = try await ask(1, count: 1)
            #expect(other.status == 200, "\(other)")
            #expect(try await ask(0, count: 2).status == 200)
            // A count that one node has used is used on the other one as soon as it was told.
            try await eventually("it was told", within: .seconds(30)) {
                try await fleet.figure("news_heard", of: fleet.nodes[0]) >= 1
            }
            let replay = try await ask(0, count: 1)
            #expect(replay.status == 407 && replay.heads.contains("stale=true"), "\(replay)")
            #expect(try await ask(0, count: 3).status == 200)
            #expect(try await ask(1, count: 4).status == 200)
        }
    }

    @Test func `failed log-ins on one node hold back on the other one, and Redis learns no name`() async throws {
        try await Self.with { fleet in
            func ask(_ index: Int, _ password: String) async throws -> Workplace.Reply {
                try await fleet.place.curl(
                    "--proxy-basic", "-U", "ann:\(password)", fleet.url("/100/f"), through: fleet.nodes[index])
            }
            #expect(try await ask(1, "sesame").status == 200)
            // An address may fail ten times within ten seconds. A machine may be too slow for that.
            try await eventually("the right password is refused where nobody has guessed", within: .seconds(120)) {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<10 { group.addTask { _ = try await ask(0, "guess\(number)") } }
                    try await group.waitForAll()
                }
                let heard = try await fleet.figure("news_heard", of: fleet.nodes[1])
                _ = try? await eventually("news", within: .seconds(1)) {
                    try await fleet.figure("news_heard", of: fleet.nodes[1]) > heard
                }
                return try await ask(1, "sesame").status != 200
            }
            let entries = try await fleet.redis.ask("--raw", "XRANGE", "larder:1:news", "-", "+")
            #expect(!entries.contains("ann") && !entries.contains("127.0.0.1"))
            try await eventually("the wait is over", within: .seconds(30)) { try await ask(1, "sesame").status == 200 }
        }
    }
}

@Suite("A fleet: limits while the Redis fails", .enabled(if: Fleet.isInstalled, "packages curl, redis-server"))
struct FleetCountingFailureTests {
    static let plan: Fleet.Plan = {
        var plan = Fleet.Plan()
        plan.more =
            "limits: { rules: [ { name: each, requests: 1000000/s, concurrent: 1000, budget: { bytes: 1GiB, every: hour } } ] }"
        return plan
    }()

    /// Every request is answered, and soon.
    private func serves(_ fleet: Fleet) async throws {
        for index in fleet.nodes.indices {
            for _ in 0..<5 {
                let start = ContinuousClock.now
                let reply = try await fleet.ask(index, bytes: 1_000)
                #expect(reply.status == 200 && ContinuousClock.now - start < .seconds(5), "\(reply)")
            }
        }
    }

    @Test func `full, read-only, hanging, with values of other types: nobody notices, and the nodes count on`()
        async throws
    {
        try await Fleet.with([Self.plan, Self.plan]) { (fleet: Fleet) async throws -> Void in
            try await serves(fleet)
            for node in fleet.nodes { try await fleet.awaitSpent(10_000, of: node) }
            let budget = try #require(try await fleet.redis.names("u").first)

            try await fleet.redis.ask("CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", "1")
            try await serves(fleet)
            try await fleet.awaitAlone(true, fleet.nodes[0])
            try await fleet.redis.ask("CONFIG", "SET", "maxmemory", "0")
            try await serves(fleet)
            for node in fleet.nodes {
                try await fleet.awaitAlone(false, node)
                try await fleet.awaitSpent(30_000, of: node)
            }

            for name in [budget, "larder:1:news"] {
                try await fleet.redis.ask("DEL", name)
                try await fleet.redis.ask("SET", name, "nonsense")
            }
            try await serves(fleet)
            for node in fleet.nodes { try await fleet.awaitAlone(true, node) }
            for name in [budget, "larder:1:news"] { try await fleet.redis.ask("DEL", name) }
            try await serves(fleet)
            for node in fleet.nodes {
                try await fleet.awaitAlone(false, node)
                try await fleet.awaitSpent(50_000, of: node)
            }

            fleet.redis.child.signal(SIGSTOP)
            try await serves(fleet)
            for node in fleet.nodes { try await fleet.awaitAlone(true, node) }
            try await serves(fleet)
            fleet.redis.child.signal(SIGCONT)
            for node in fleet.nodes {
                try await fleet.awaitAlone(false, node)
                try await fleet.awaitSpent(70_000, of: node)
            }
        }
    }

    @Test func `it became a replica that takes no writes, and is one no more`() async throws {
        try await Workplace.with { place in
            let redis = try await RedisServer.start(in: place)
            let main = try await RedisServer.start(in: place)
            try await Fleet.with([Self.plan, Self.plan], in: place, redis) { (fleet: Fleet) async throws -> Void in
                try await serves(fleet)
                try await redis.ask("REPLICAOF", "127.0.0.1", "\(main.port)")
                try await serves(fleet)
                for node in fleet.nodes { try await fleet.awaitAlone(true, node) }
                try await redis.ask("REPLICAOF", "NO", "ONE")
                try await serves(fleet)
                for node in fleet.nodes {
                    try await fleet.awaitAlone(false, node)
                    try await fleet.awaitSpent(30_000, of: node)
                }
            }
        }
    }

    @Test func `a node with another secret counts for itself`() async throws {
        try await Workplace.with { place in
            let redis = try await RedisServer.start(in: place)
            try place.write("other", "\(String(repeating: "f", count: 64))\n".utf8)
            var own = FleetRateTests.plan("requests: 10/d, budget: { bytes: 1GiB, every: total }")
            let node = own
            own.fleet = "redis: { url: \"redis://127.0.0.1:PORT\" }, secret_file: \(place.path("other"))"
            try await Fleet.with([node, own], in: place, redis) { (fleet: Fleet) async throws -> Void in
                #expect(try await fleet.askUntilRefused(0) == 10)
                try await fleet.awaitFigure("news_refused", of: fleet.nodes[1], atLeast: 1)
                #expect(try await fleet.askUntilRefused(1) == 10)
                try await fleet.awaitSpent(100_000, of: fleet.nodes[1])
                try await eventually("each secret has a name of its own for the budget", within: .seconds(60)) {
                    try await redis.names("u").count == 2
                }
            }
        }
    }
}
