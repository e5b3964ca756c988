import Admin
import Fleet
import Foundation
import JSON
import Server
import Testing

@testable import larder

/// Three nodes: the one that is asked, one that is up and does not say all figures, and one that is silent.
private func fleetView(awaySince: Int64? = nil) throws -> FleetView {
    func report(_ name: String, _ release: String, _ figures: [NodeFigure: UInt64]) throws -> NodeReport {
        try #require(
            NodeReport(
                node: name, run: "1f", release: release, startedAt: 1_767_225_600, saidAt: 0, number: 1,
                figures: figures)
        )
    }
    let all = Dictionary(uniqueKeysWithValues: zip(NodeFigure.allCases, 1...).map { ($0, UInt64($1)) })
    var asked = all
    (asked[.requests], asked[.fromOrigin], asked[.isFollowing]) = (10, 4, 1)
    (asked[.isDraining], asked[.hasNamesake]) = (0, 0)
    return FleetView(
        node: "a", server: "redis://r:6379/0", awaySince: awaySince, failure: awaySince == nil ? nil : "it is refused",
        unreadable: 2,
        members: [
            FleetMember(try report("a", "1.0", asked), state: awaySince == nil ? .up : .alone, isAsked: true),
            FleetMember(
                try report("b", "0.9", [.requests: 30, .fromOrigin: 6, .sharedHits: 7]),
                state: awaySince == nil ? .up : .unknown, ageSeconds: 3),
            FleetMember(try report("c", "1.0", all), state: .silent, ageSeconds: 75),
        ])
}

@Suite("The figures of all nodes")
struct FleetViewTests {
    private func squeezed(_ text: String) -> [String] {
        text.split(separator: "\n").map {
            $0.split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ")
        }
    }

    @Test func `every figure that a node publishes has its row, in JSON and for Prometheus`() throws {
        let json = try JSONValue(parsing: try fleetView().json())
        let nodes = try #require(json["nodes"]?.elements)
        #expect(nodes.count == 3 && NodeRow.all.map(\.figure) == NodeFigure.allCases)
        let metrics = String(decoding: try fleetView().prometheus(), as: UTF8.self)
        for (row, count) in zip(NodeRow.all, 1...) {
            let value: JSONValue = row.unit == .flag ? .bool(true) : .integer(Int64(count))
            #expect(nodes[2][row.name] == value, "\(row.name)")
            #expect(metrics.contains("\n\(row.metric.fullName){node=\"c\"} \(count)\n"), "\(row.name)")
            #expect(row.help.hasSuffix(".") && !row.help.contains("|"), "\(row.help)")
        }
        #expect(Set(NodeRow.all.map(\.metric.fullName)).count == NodeRow.all.count)
        #expect(metrics.contains("\nlarder_node_up{node=\"b\"} 1\nlarder_node_up{node=\"c\"} 0\n"))
        #expect(metrics.contains("\nlarder_node_age_seconds{node=\"c\"} 75\n"))
        // What a node does not say is absent, and not zero.
        #expect(nodes[1]["disk_hits"] == nil && !metrics.contains("larder_node_disk_hits_total{node=\"b\"}"))
        #expect(nodes[0]["asked"] == .bool(true) && nodes[2]["state"] == .string("silent"))
        #expect(nodes[0]["started_at"] == .string("2026-01-01T00:00:00Z"))
        #expect(nodes[0]["hit_ratio"] == .double(0.6) && nodes[1]["hit_ratio"] == .double(0.8))
    }

    @Test func `the sum leaves out who is silent, and what cannot be added`() throws {
        let sum = try JSONValue(parsing: try fleetView().json())["sum"]
        #expect(sum?["requests"] == .integer(40) && sum?["from_origin"] == .integer(10))
        #expect(sum?["hit_ratio"] == .double(0.75) && sum?["uptime"] == nil && sum?["following"] == nil)
    }

    @Test func `the table has a line for each node, and says what is wrong`() throws {
        let lines = squeezed(fleetTable(try JSONValue(parsing: try fleetView().json())))
        #expect(lines.first == "The fleet at redis://r:6379/0, as a knows it")
        #expect(lines.contains { $0.hasPrefix("a 1.0 1 s connected 10 60.0 %") && $0.hasSuffix(" 26 B/s") }, "\(lines)")
        #expect(lines.contains("b 0.9 - connected 30 80.0 % - - 7 - 6 - - -"), "\(lines)")
        #expect(lines.contains { $0.hasPrefix("c 1.0 1 s silent for 1 min 15 s") }, "\(lines)")
        #expect(lines.contains { $0.hasPrefix("sum 40 75.0 %") }, "\(lines)")
        #expect(lines.contains { $0.hasPrefix("2 more in the register") }, "\(lines)")
        #expect(lines.contains { $0.hasPrefix("Two nodes have the name c:") }, "\(lines)")
        let away = squeezed(fleetTable(try JSONValue(parsing: try fleetView(awaySince: 1_767_225_600).json())))
        #expect(
            away.contains { $0.hasPrefix("a 1.0 1 s no Redis") }
                && away.contains { $0.hasPrefix("b 0.9 - unknown for 3 s") })
    }

    @Test func `the paths answer with the fleet, or say that there is none`() throws {
        #expect(ask("GET", "/stats", query: "fleet").status == 404)
        #expect(String(decoding: ask("GET", "/metrics", query: "fleet").body, as: UTF8.self).contains("in no fleet"))
        let proxy = ScriptedProxy()
        let view = try fleetView()
        proxy.fleet.withLock { $0 = view }
        #expect(ask("GET", "/stats", query: "fleet", proxy: proxy).body == view.json() + [0x0A])
        for query in ["fleet", "fleet="] {
            #expect(ask("GET", "/metrics", query: query, proxy: proxy).body == view.prometheus())
        }
        #expect(ask("GET", "/stats", proxy: proxy).body == sampleStatistics.json() + [0x0A])
    }

    @Test func `a Larder that is alone has no figures of a fleet in its metrics, a node has them with its name`() {
        #expect(!String(decoding: Statistics().prometheus(), as: UTF8.self).contains("larder_fleet_"))
        var statistics = Statistics()
        statistics.fleet.node = "cache-1"
        statistics.fleet.hits = 5
        let metrics = String(decoding: statistics.prometheus(), as: UTF8.self)
        #expect(metrics.contains("\nlarder_fleet_hits_total{node=\"cache-1\"} 5\n"))
        #expect(metrics.contains("\nlarder_fleet_info{node=\"cache-1\"} 1\n"))
    }

    @Test func `the page names no other members than there are`() throws {
        let json = try JSONValue(parsing: try fleetView(awaySince: 1).json())
        let page = String(decoding: ask("GET", "/fleet").body, as: UTF8.self)
        let script = try #require(page.range(of: "const sources").map { page[$0.lowerBound...] })
        var count = 0
        for match in script.matches(of: /\b(f|n|sum)\.([a-z_]+)/) where String(match.2) != "sum" {
            let (subject, member) = (String(match.1), String(match.2))
            count += 1
            let owner = subject == "f" ? json : subject == "n" ? json["nodes"]?.elements?.first : json["sum"]
            #expect(owner?[member] != nil, "\(subject).\(member)")
        }
        #expect(count > 20)
        for row in NodeRow.all where [.memoryHits, .diskHits, .sharedHits, .peerHits, .joined].contains(row.figure) {
            #expect(page.contains("\"\(row.name)\""), "\(row.name)")
        }
        // It loads nothing from elsewhere.
        #expect(page.matches(of: /https?:\/\/[^ '"]*/).allSatisfy { $0.output.hasPrefix("http://www.w3.org/") })
    }
}

@Suite("larder doctor --server: what the facts about a Redis mean")
struct RedisCheckTests {
    static let now: Int64 = 1_767_225_600

    static func facts(_ change: (inout RedisFacts) -> Void = { _ in }) -> RedisFacts {
        var facts = RedisFacts(url: "rediss://r:6379/0", isSecured: true)
        facts.addresses = ["192.0.2.1:6379"]
        facts.chainEnd = now + 90 * 86_400
        facts.info = [
            "redis_version": "7.0.15", "role": "master", "maxmemory": "67108864", "maxmemory_policy": "allkeys-lru",
            "used_memory": "1048576", "aof_enabled": "0", "rdb_last_bgsave_status": "ok",
        ]
        facts.pings = Array(repeating: 300, count: 20)
        facts.clockAhead = 5
        change(&facts)
        return facts
    }

    static func node(_ name: String, _ release: String = "1.0", ahead: Int64? = 0, namesake: UInt64 = 0) -> RedisFacts
        .Node?
    {
        NodeReport(
            node: name, run: "1f", release: release, startedAt: 0, saidAt: 0, number: 1,
            figures: [.hasNamesake: namesake]
        ).map { RedisFacts.Node(report: $0, clockAhead: ahead) }
    }

    struct Row: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let facts: RedisFacts
        let check: String
        let state: String
        let text: String

        init(
            _ name: String, _ check: String, _ state: String, _ text: String, _ change: (inout RedisFacts) -> Void
        ) {
            testDescription = name
            self.check = check
            self.state = state
            self.text = text
            facts = RedisCheckTests.facts(change)
        }
    }

    static let rows = [
        Row("as it should be", "redis", "ok", "rediss://r:6379/0 answers (192.0.2.1:6379)") { _ in },
        Row("no such name", "redis", "wrong", "cannot be resolved") { $0.failure = .name("no such name") },
        Row("refused", "redis", "wrong", "cannot be connected to") { $0.failure = .connection("refused") },
        Row("silence", "redis", "wrong", "does not answer within 2 seconds") { $0.failure = .silence },
        Row("nonsense", "redis", "wrong", "not of the protocol") { $0.failure = .nonsense("not of the protocol") },
        Row("closed", "redis", "wrong", "closes the connection") { $0.failure = .closed },
        Row("an unknown issuer", "redis TLS", "wrong", "issuer") { $0.failure = .tls("the issuer is not known") },
        Row("14 days", "redis TLS", "warning", "14 more days only") { $0.chainEnd = now + 14 * 86_400 + 1 },
        Row("15 days", "redis TLS", "ok", "15 more days") { $0.chainEnd = now + 15 * 86_400 },
        Row("a wrong password", "redis user", "wrong", "WRONGPASS") { $0.failure = .logIn("WRONGPASS no") },
        Row("a wrong database", "redis user", "wrong", "ERR index") { $0.failure = .database("ERR index") },
        Row("a command less", "redis commands", "wrong", "may not use: xadd") { $0.forbidden = ["xadd"] },
        Row("the doctor's command less", "redis commands", "warning", "pttl") { $0.forbidden = ["pttl"] },
        Row("full", "redis commands", "wrong", "commands are refused: OOM") { $0.refusals = ["set": "OOM command"] },
        Row("a cluster", "redis commands", "wrong", "commands are refused: MOVED") {
            $0.refusals = ["get": "MOVED 7 h:1"]
        },
        Row("a failed save", "redis commands", "wrong", "MISCONF") { $0.refusals = ["hset": "MISCONF Redis"] },
        Row("an unknown command", "redis commands", "wrong", "xinfo|stream: ERR unknown") {
            $0.refusals = ["xinfo|stream": "ERR unknown command"]
        },
        Row("no INFO", "redis version", "warning", "may not use INFO") { $0.info = [:] },
        Row("Redis 6", "redis version", "warning", "Redis 6.2.1") { $0.info["redis_version"] = "6.2.1" },
        Row("Valkey", "redis version", "ok", "Valkey 8.0.1") { $0.info["valkey_version"] = "8.0.1" },
        Row("KeyDB", "redis version", "ok", "KeyDB 6.3.4") {
            ($0.info["redis_version"], $0.info["executable"]) = ("6.3.4", "/usr/bin/keydb-server")
        },
        Row("no maxmemory", "redis memory", "warning", "no maxmemory") { $0.info["maxmemory"] = "0" },
        Row("a hidden maxmemory", "redis memory", "warning", "does not say") { $0.info["maxmemory"] = nil },
        Row("noeviction", "redis memory", "wrong", "noeviction") { $0.info["maxmemory_policy"] = "noeviction" },
        Row("volatile", "redis memory", "warning", "volatile-lru") { $0.info["maxmemory_policy"] = "volatile-lru" },
        Row("a replica", "redis role", "wrong", "a replica of r1") {
            ($0.info["role"], $0.info["master_host"]) = ("slave", "r1")
        },
        Row("appendonly", "redis files", "ok", "does not need it") { $0.info["aof_enabled"] = "1" },
        Row("a failed bgsave", "redis files", "warning", "may refuse writes") {
            $0.info["rdb_last_bgsave_status"] = "err"
        },
        Row("fast", "redis latency", "ok", "300 µs (median), 300 µs (worst of 20)") { _ in },
        Row("5 ms", "redis latency", "warning", "5.0 ms (median)") { $0.pings = Array(repeating: 5_000, count: 20) },
        Row("once 20 ms", "redis latency", "warning", "20.0 ms (worst") { $0.pings[19] = 20_000 },
        Row("20 ms", "redis latency", "wrong", "nothing is read") { $0.pings = Array(repeating: 20_000, count: 20) },
        Row("no node", "fleet nodes", "ok", "none is running") { _ in },
        Row("nodes", "fleet nodes", "ok", "a, b (1.0)") { $0.nodes = [node("b"), node("a")].compactMap { $0 } },
        Row("two releases", "fleet nodes", "warning", "b (0.9); a (1.0): more than one release") {
            $0.nodes = [node("a"), node("b", "0.9")].compactMap { $0 }
        },
        Row("another secret", "fleet nodes", "warning", "no figures that this secret opens: x") {
            $0.unreadable = ["x"]
        },
        Row("a namesake", "fleet names", "wrong", "two nodes have the name a") {
            $0.nodes = [node("a", namesake: 1)].compactMap { $0 }
        },
        Row("one clock", "fleet clocks", "ok", "2 compared") {
            $0.nodes = [node("a", ahead: -1_000)].compactMap { $0 }
        },
        Row("a clock ahead", "fleet clocks", "warning", "a by 1.1 s (ahead)") {
            $0.nodes = [node("a", ahead: 1_100)].compactMap { $0 }
        },
        Row("the clock of the Redis", "fleet clocks", "warning", "the Redis by 60.0 s (behind)") {
            $0.clockAhead = -60_000
        },
        Row("no clock", "fleet clocks", "ok", "none to compare") { $0.clockAhead = nil },
        Row("a clock at the end of time", "fleet clocks", "warning", "the Redis by 9223372036854776.0 s (ahead)") {
            $0.clockAhead = .max
        },
        Row("a clock at the beginning of time", "fleet clocks", "warning", "by 9223372036854776.0 s (behind)") {
            $0.clockAhead = .min
        },
        Row("memory that is no number", "redis memory", "warning", "no maxmemory") { $0.info["maxmemory"] = "nan" },
        Row("memory without end", "redis memory", "ok", " of ") {
            ($0.info["maxmemory"], $0.info["used_memory"]) = ("inf", "-1e308")
        },
    ]

    @Test(arguments: rows) func `each fact has its check`(_ row: Row) {
        let checks = redisChecks(row.facts, now: Self.now)
        let check = checks.first { $0.name == row.check }
        #expect(check?.state.rawValue == row.state && check?.text.contains(row.text) == true, "\(checks)")
        // Whoever reads that something is wrong reads what to do.
        #expect(checks.allSatisfy { $0.state != .wrong || $0.mend != nil }, "\(checks)")
        #expect(checks.allSatisfy { $0.name.count < 15 })
        #expect(row.facts.failure == nil || checks.last == check, "nothing follows a failure: \(checks)")
    }

    @Test func `the user's line in the manual has the commands that are tried, and no others`() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "docs/fleet.md")
        let text = try String(contentsOf: file, encoding: .utf8)
        let line = try #require(text.split(separator: "\n").first { $0.contains("user larder on") })
        let granted = line.split(separator: " ").filter { $0.hasPrefix("+") }.map { String($0.dropFirst()) }
        #expect(granted.sorted() == (RedisTrial.all.map(\.name) + RedisTrial.logIn).sorted())
        #expect(line.contains("-@all"))
    }
}
