import Foundation
import Glibc
import ProgramUnderTest
import Testing

extension Fleet {
    /// `larder stats --fleet --json` of a node, and its exit status.
    func view(from node: Larder) async throws -> (json: [String: Any], output: Workplace.Output) {
        let output = try await node.command("stats", "--fleet", "--json")
        let json = try JSONSerialization.jsonObject(with: Data(output.out.utf8)) as? [String: Any]
        return (try #require(json, "\(output)"), output)
    }

    /// The nodes by their names.
    func members(from node: Larder) async throws -> [String: [String: Any]] {
        let nodes = try #require(try await view(from: node).json["nodes"] as? [[String: Any]])
        return Dictionary(uniqueKeysWithValues: nodes.map { ($0["name"] as? String ?? "?", $0) })
    }

    func awaitStates(_ states: [String: String], from node: Larder) async throws {
        var last: [String: String?] = [:]
        try await eventually("\(states), but \(last)", within: .seconds(90)) {
            last = try await members(from: node).mapValues { $0["state"] as? String }
            return last == states.mapValues { Optional($0) }
        }
    }
}

@Suite("A fleet: seeing it", .enabled(if: Fleet.isInstalled, "packages curl, redis-server"))
struct FleetFiguresTests {
    static let all = ["node-1": "up", "node-2": "up", "node-3": "up"]

    @Test func `every node shows all nodes, with the figures that they have themselves`() async throws {
        let disk = Fleet.Plan(cache: "memory: 64MiB, disk: { path: DIRECTORY, size: 256MiB }")
        try await Fleet.with([disk, Fleet.Plan(), Fleet.Plan()]) { (fleet: Fleet) async throws -> Void in
            try await fleet.awaitStates(Self.all, from: fleet.nodes[2])
            let shared = try await fleet.share("/20000/a")
            try await fleet.get(shared.path, fleet.nodes[1])
            _ = try await fleet.purge(2, ["--host", "nobody.example"])
            for node in fleet.nodes { try await fleet.awaitFigure("purges_applied", of: node, atLeast: 1) }
            // What each says of itself.
            var own: [String: [String: Any]] = [:]
            for (index, node) in fleet.nodes.enumerated() {
                let name = "node-\(index + 1)"
                own[name] = try await fleet.members(from: node)[name]
                #expect(own[name]?["asked"] as? Bool == true && own[name]?["age_seconds"] as? Int == 0)
                let hits = try await node.statistic("requests", "hit")
                let misses = try await node.statistic("requests", "miss")
                #expect(own[name]?["requests"] as? Int == hits + misses, "\(own)")
                #expect(own[name]?["from_origin"] as? Int == misses)
                #expect(own[name]?["bytes_served"] as? Int == (try await node.statistic("bytes", "to_clients")))
                #expect(own[name]?["bytes_saved"] as? Int == (try await node.statistic("bytes", "saved")))
                #expect(own[name]?["memory_used"] as? Int == (try await node.statistic("memory", "used")))
                #expect(own[name]?["purges_applied"] as? Int == 1)
            }
            #expect((own["node-2"]?["shared_hits"] as? Int ?? 0) >= 1 && own["node-2"]?["peer_hits"] as? Int == 0)
            #expect((own["node-2"]?["memory_hits"] as? Int ?? 0) >= 1)
            #expect((own["node-2"]?["bytes_shared"] as? Int ?? 0) >= 20_000)
            #expect(own["node-3"]?["requests"] as? Int == 0 && own["node-3"]?["hit_ratio"] is NSNull)
            #expect(own["node-1"]?["disk_budget"] as? Int == 256 << 20 && own["node-2"]?["disk_budget"] as? Int == 0)
            // The others say the same of it, with the next beat.
            let counted = [
                "requests", "memory_hits", "disk_hits", "shared_hits", "from_origin", "bytes_served", "bytes_saved",
                "memory_responses", "purges_applied",
            ]
            for node in fleet.nodes {
                try await eventually("\(node.configuration) shows the figures", within: .seconds(60)) {
                    let members = try await fleet.members(from: node)
                    return own.allSatisfy { name, figures in
                        counted.allSatisfy { members[name]?[$0] as? Int == figures[$0] as? Int }
                    }
                }
            }
            let view = try await fleet.view(from: fleet.nodes[2]).json
            #expect(view["connected"] as? Bool == true && view["unreadable"] as? Int == 0)
            let sum = try #require(view["sum"] as? [String: Any])
            for name in counted {
                let parts = own.values.compactMap { $0[name] as? Int }
                #expect(sum[name] as? Int == parts.reduce(0, +), "\(name)")
            }
            let table = try await fleet.nodes[2].command("stats", "--fleet")
            #expect(table.status == 0 && table.err.isEmpty, "\(table)")
            for line in ["NODE ", "node-1  ", "node-2  ", "node-3  ", "sum  "] {
                #expect(table.out.contains("\n\(line)"), "\(line) in \(table.out)")
            }
            #expect(table.out.contains("as node-3 knows it"), "\(table)")
        }
    }

    @Test func `hits are counted by where they came from`() async throws {
        let disk = Fleet.Plan(cache: "memory: 64MiB, disk: { path: DIRECTORY, size: 256MiB }")
        try await Fleet.with([disk]) { (fleet: Fleet) async throws -> Void in
            let path = fleet.origin.fresh("/30000/a")
            // A node that has never seen an entry of the stream cannot tell whether some were removed while it was away.
            _ = try await fleet.purge(0, [fleet.url("/1/first")])
            try await fleet.awaitFigure("purges_applied", of: fleet.nodes[0], atLeast: 1)
            for isHit in [false, true, true] { #expect(try await fleet.get(path, fleet.nodes[0]).isHit == isHit) }
            let before = try #require(try await fleet.view(from: fleet.nodes[0]).json["sum"] as? [String: Any])
            #expect(before["memory_hits"] as? Int == 2 && before["disk_hits"] as? Int == 0, "\(before)")
            #expect(before["from_origin"] as? Int == 1 && before["requests"] as? Int == 3, "\(before)")
            await fleet.nodes[0].child.stop()
            let again = try await fleet.restarted(0)
            try await fleet.awaitFollowing(again)
            // The disk is asked before the Redis, which has it as well.
            for _ in 0..<3 { #expect(try await fleet.get(path, again).isHit) }
            let after = try #require(try await fleet.view(from: again).json["sum"] as? [String: Any])
            func count(_ name: String) -> Int { after[name] as? Int ?? -1 }
            #expect(count("disk_hits") >= 1 && count("shared_hits") == 0, "\(after)")
            #expect(count("memory_hits") + count("disk_hits") == 3 && count("from_origin") == 0, "\(after)")
            #expect(try await again.statistic("requests", "hits_from_disk") == count("disk_hits"))
        }
    }

    @Test func `what another node had is a hit from a peer, and not from an origin`() async throws {
        try await Fleet.withPeers { (fleet: Fleet) async throws -> Void in
            var last: [String: Any] = [:]
            try await eventually("the owner had the response: \(last)", within: .seconds(60)) {
                let path = try await fleet.fresh("/2000000/peer", ownedBy: 1)
                try await fleet.get(path, fleet.nodes[1])
                func own() async throws -> [String: Any] {
                    try #require(try await fleet.members(from: fleet.nodes[0])["node-1"])
                }
                let before = try await own()
                try await fleet.get(path, fleet.nodes[0])
                let after = try await own()
                func more(_ name: String) -> Int { (after[name] as? Int ?? 0) - (before[name] as? Int ?? 0) }
                #expect(more("requests") == 1 && more("peer_hits") + more("from_origin") == 1, "\(before) \(after)")
                last = after
                return more("peer_hits") == 1
            }
        }
    }

    @Test func `a node that died is silent, does not count for the sum, and is there again when it is back`()
        async throws
    {
        try await Fleet.with { (fleet: Fleet) async throws -> Void in
            try await fleet.get(fleet.origin.fresh("/100/a"), fleet.nodes[2])
            try await eventually("the others know it", within: .seconds(60)) {
                try await fleet.members(from: fleet.nodes[0])["node-3"]?["requests"] as? Int == 1
            }
            fleet.nodes[2].child.signal(SIGKILL)
            _ = try await fleet.nodes[2].child.end(within: .seconds(10))
            for node in fleet.nodes.prefix(2) {
                try await fleet.awaitStates(["node-1": "up", "node-2": "up", "node-3": "silent"], from: node)
            }
            let (view, output) = try await fleet.view(from: fleet.nodes[0])
            #expect(output.status == 0)
            let gone = try #require(try await fleet.members(from: fleet.nodes[0])["node-3"])
            #expect((gone["age_seconds"] as? Int ?? 0) >= 15 && gone["requests"] as? Int == 1, "\(gone)")
            #expect((view["sum"] as? [String: Any])?["requests"] as? Int == 0)
            let table = try await fleet.nodes[0].command("stats", "--fleet")
            #expect(table.out.contains("silent for "), "\(table)")
            _ = try await fleet.restarted(2)
            try await fleet.awaitStates(Self.all, from: fleet.nodes[0])
        }
    }

    @Test func `without the Redis a node shows itself and the last figures of the others, and says so`() async throws {
        try await Fleet.with { (fleet: Fleet) async throws -> Void in
            try await fleet.awaitStates(Self.all, from: fleet.nodes[0])
            try await fleet.redis.end()
            try await fleet.awaitStates(
                ["node-1": "alone", "node-2": "unknown", "node-3": "unknown"], from: fleet.nodes[0])
            let (view, output) = try await fleet.view(from: fleet.nodes[0])
            #expect(output.status == 1, "\(output)")
            #expect(output.err.contains("no connection to the Redis since 2"), "\(output)")
            #expect(view["connected"] as? Bool == false && view["away_since"] as? String != nil)
            #expect(view["failure"] as? String != nil, "\(view)")
            let table = try await fleet.nodes[0].command("stats", "--fleet")
            #expect(table.status == 1 && table.err.contains("last ones that are known"), "\(table)")
            #expect(table.out.contains("no Redis") && table.out.contains("unknown for "), "\(table)")
            _ = try await fleet.redis.again()
            try await fleet.awaitStates(Self.all, from: fleet.nodes[0])
            #expect(try await fleet.view(from: fleet.nodes[0]).output.status == 0)
        }
    }

    @Test func `who writes to the Redis without the secret cannot invent a node, nor change one`() async throws {
        try await Fleet.with([Fleet.Plan(), Fleet.Plan()]) { (fleet: Fleet) async throws -> Void in
            let both = ["node-1": "up", "node-2": "up"]
            try await fleet.awaitStates(both, from: fleet.nodes[0])
            let right = try await fleet.redis.ask("GET", "larder:1:node:node-2")
            let rows = [
                ("evil", right.replacingOccurrences(of: "node=node-2", with: "node=evil")), ("copy", right),
                ("empty", ""),
                ("noise", String(repeating: "x", count: 5000)),
            ]
            // The values of the register change, as those of nodes that live.
            func write(_ rows: [(String, String)]) async throws {
                let now = Int(Date().timeIntervalSince1970)
                for (name, value) in rows {
                    if name != "node-2" {
                        try await fleet.redis.ask("HSET", "larder:1:nodes", name, "\(now) 0-0 0badcafe 0.1.0")
                    }
                    try await fleet.redis.ask("SETEX", "larder:1:node:\(name)", "120", value)
                }
            }
            try await eventually("the names are seen, and not believed", within: .seconds(60)) {
                try await write(rows)
                return try await fleet.view(from: fleet.nodes[0]).json["unreadable"] as? Int == rows.count
            }
            #expect(try await fleet.members(from: fleet.nodes[0]).keys.sorted() == both.keys.sorted())
            let table = try await fleet.nodes[0].command("stats", "--fleet")
            #expect(table.out.contains("4 more in the register"), "\(table)")
            // More requests than there were.
            let changed = right.replacing(/[ ]requests=[0-9]+/, with: " requests=777")
            try await eventually("what was changed is seen, and not believed", within: .seconds(60)) {
                try await write(rows + [("node-2", changed)])
                let view = try await fleet.view(from: fleet.nodes[0]).json
                let counts = (view["nodes"] as? [[String: Any]])?.compactMap { $0["requests"] as? Int }
                #expect(counts == [0, 0], "\(view)")
                return view["unreadable"] as? Int == rows.count + 1
            }
            try await fleet.awaitStates(both, from: fleet.nodes[0])
        }
    }

    @Test func `two nodes with one name are shown`() async throws {
        try await Fleet.with([Fleet.Plan(), Fleet.Plan()]) { (fleet: Fleet) async throws -> Void in
            let text = textOfFile(fleet.place.path("node-2.yaml")).replacingOccurrences(
                of: "name: node-2", with: "name: node-1"
            ).replacingOccurrences(of: "node-2.sock", with: "third.sock")
                .replacing(/127\.0\.0\.1:[0-9]+, socket/, with: "127.0.0.1:\(FreePort.take()), socket")
            _ = try await Larder.start(in: fleet.place, text: text, adminPort: 0, file: "third.yaml")
            try await eventually("a third node shows it", within: .seconds(60)) {
                try await fleet.members(from: fleet.nodes[1])["node-1"]?["namesake"] as? Bool == true
            }
            let table = try await fleet.nodes[1].command("stats", "--fleet")
            #expect(table.out.contains("Two nodes have the name node-1"), "\(table)")
            let doctor = try await FleetDoctorTests.checks(fleet.nodes[1].configuration, in: fleet.place)
            #expect(doctor["fleet names"]?.state == "wrong", "\(doctor)")
        }
    }

    @Test func `the admin server shows the fleet over HTTP, and a Larder that is alone says so`() async throws {
        try await Fleet.with([Fleet.Plan()]) { (fleet: Fleet) async throws -> Void in
            let node = fleet.nodes[0]
            func ask(_ path: String) async throws -> Workplace.Reply {
                try await fleet.place.curl("http://127.0.0.1:\(node.adminPort)\(path)", through: nil)
            }
            let own = try await ask("/metrics").text
            #expect(own.contains("\nlarder_fleet_connected{node=\"node-1\"} 1\n"), "\(own)")
            #expect(own.contains("\nlarder_fleet_info{node=\"node-1\"} 1\n") && !own.contains("larder_node_"))
            let all = try await ask("/metrics?fleet").text
            #expect(all.contains("\nlarder_node_up{node=\"node-1\"} 1\n"), "\(all)")
            #expect(all.contains("\nlarder_node_requests_total{node=\"node-1\"} 0\n") && !all.contains("larder_fleet_"))
            let page = try await ask("/fleet")
            #expect(page.status == 200 && page.fields["content-security-policy"]?.contains("nonce-") == true, "\(page)")
            #expect(page.text.contains("<title>Larder: the fleet</title>"))
        }
        try await Workplace.with { place in
            let alone = try await Larder.start(in: place)
            let output = try await alone.command("stats", "--fleet")
            #expect(output.status == 1 && output.out.isEmpty, "\(output)")
            #expect(output.err.contains("this Larder is in no fleet"), "\(output)")
        }
    }
}

@Suite("A fleet: larder doctor --server", .enabled(if: Fleet.isInstalled, "packages curl, redis-server"))
struct FleetDoctorTests {
    struct Check {
        let state: String
        let text: String
        let mend: String
    }

    /// The checks of the fleet, by their names.
    static func checks(_ configuration: String, in place: Workplace) async throws -> [String: Check] {
        let output = try await place.run(
            Larder.executable, ["doctor", "--server", "--json", "--config", configuration], within: .seconds(60))
        let json = try JSONSerialization.jsonObject(with: Data(output.out.utf8)) as? [String: Any]
        let rows = try #require(json?["checks"] as? [[String: String]], "\(output)")
        #expect((output.status == 1) == rows.contains { $0["state"] == "wrong" }, "\(output)")
        let own = rows.filter { $0["name"]?.hasPrefix("redis") == true || $0["name"]?.hasPrefix("fleet") == true }
        return Dictionary(
            uniqueKeysWithValues: own.map {
                ($0["name"] ?? "", Check(state: $0["state"] ?? "", text: $0["text"] ?? "", mend: $0["mend"] ?? ""))
            })
    }

    /// Of a node that is not running.
    private func checks(
        _ redis: String, in place: Workplace, secret: String? = nil, mode: Int = 0o600
    ) async throws -> [String: Check] {
        let file = try place.write("secret", (secret ?? String(repeating: "0123456789abcdef", count: 4)).utf8)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file)
        let configuration = try place.write(
            "doctor.yaml",
            """
            listen: [ { address: 127.0.0.1:0 } ]
            cache: { memory: 64MiB, disk: { size: 0 } }
            fleet: { redis: { \(redis) }, secret_file: \(file), node: { name: doctored } }

            """.utf8)
        return try await Self.checks(configuration, in: place)
    }

    /// How fast the Redis answers depends on what else this machine does: `FleetViewTests` has the rows of that check.
    private static func isAsItShouldBe(_ name: String, _ check: Check) -> Bool {
        check.state == "ok" || name == "redis latency" && check.state == "warning"
    }

    static let good = ["--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"]

    @Test func `a Redis as docs/fleet.md says, seen with and without nodes`() async throws {
        try await Workplace.with { place in
            let redis = try await RedisServer.start(in: place, Self.good)
            let url = "url: \"redis://127.0.0.1:\(redis.port)/0\""
            let none = try await checks(url, in: place)
            #expect(none.allSatisfy(Self.isAsItShouldBe), "\(none)")
            #expect(none["fleet nodes"]?.text == "none is running" && none["redis TLS"] == nil, "\(none)")
            #expect(none["redis version"]?.text.contains("7.") == true && none["redis role"]?.text == "primary")
            #expect(none["redis memory"]?.text.contains("64.0 MiB, allkeys-lru") == true, "\(none)")
            // Nothing is left behind.
            #expect(try await redis.ask("--raw", "KEYS", "*").isEmpty)
            try await Fleet.with([Fleet.Plan(), Fleet.Plan()], in: place, redis) {
                (fleet: Fleet) async throws -> Void in
                try await fleet.awaitStates(["node-1": "up", "node-2": "up"], from: fleet.nodes[0])
                let some = try await checks(url, in: place)
                #expect(some["fleet nodes"]?.text == "node-1, node-2 (0.1.0)", "\(some)")
                // The clock of the Redis, and those of both nodes.
                #expect(some["fleet clocks"]?.text.hasPrefix("3 compared") == true, "\(some)")
                let other = try await checks(url, in: place, secret: String(repeating: "fedcba9876543210", count: 4))
                #expect(other["fleet nodes"]?.state == "warning", "\(other)")
                #expect(other["fleet nodes"]?.text.contains("node-1, node-2") == true, "\(other)")
            }
        }
    }

    @Test func `the settings of a Redis that is not made for a fleet`() async throws {
        try await Workplace.with { place in
            let redis = try await RedisServer.start(in: place)
            let url = "url: \"redis://127.0.0.1:\(redis.port)\""
            func memory() async throws -> Check? { try await checks(url, in: place)["redis memory"] }
            let unbounded = try #require(try await memory())
            #expect(unbounded.state == "warning" && unbounded.text.contains("no maxmemory"), "\(unbounded)")
            for (policy, state) in [("noeviction", "wrong"), ("volatile-lru", "warning"), ("allkeys-lfu", "ok")] {
                try await redis.ask("CONFIG", "SET", "maxmemory", "64mb", "maxmemory-policy", policy)
                let check = try #require(try await memory())
                #expect(check.state == state && check.text.contains(policy), "\(check)")
            }
            try await redis.ask("CONFIG", "SET", "appendonly", "yes")
            #expect(try await checks(url, in: place)["redis files"]?.text.contains("does not need it") == true)
            try await redis.ask(
                "CONFIG", "SET", "appendonly", "no", "maxmemory", "1kb", "maxmemory-policy", "noeviction")
            let full = try #require(try await checks(url, in: place)["redis commands"])
            #expect(full.state == "wrong" && full.text.contains("OOM") && full.mend.contains("maxmemory"), "\(full)")
            try await redis.ask("CONFIG", "SET", "maxmemory", "0")
            try await redis.ask("REPLICAOF", "127.0.0.1", "1")
            let replica = try await checks(url, in: place)
            #expect(replica["redis role"]?.state == "wrong", "\(replica)")
            #expect(replica["redis role"]?.mend.contains("primary") == true)
            #expect(replica["redis commands"]?.text.contains("READONLY") == true, "\(replica)")
        }
    }

    @Test func `a log-in that is refused, and commands that the user may not use`() async throws {
        try await Workplace.with { place in
            let redis = try await RedisServer.start(in: place, Self.good)
            let line = try FleetLogInTests.userLine().dropFirst(2).map { $0.hasPrefix(">") ? ">sesame" : $0 }
            try await redis.ask(["ACL", "SETUSER", "larder"] + line)
            let password = try place.write("password", "sesame\n".utf8)
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: password)
            let url = "url: \"redis://larder@127.0.0.1:\(redis.port)/3\", password_file: \(password)"
            let right = try await checks(url, in: place)
            #expect(right.allSatisfy(Self.isAsItShouldBe), "\(right)")
            #expect(right["redis commands"]?.text.hasPrefix("the user may use all") == true)
            // The doctor needs no command beside those of the line.
            let refused = try await redis.ask("ACL", "LOG")
            #expect(refused.isEmpty || refused == "(empty array)", "\(refused)")
            for command in ["xadd", "mget", "xinfo|stream"] {
                try await redis.ask("ACL", "SETUSER", "larder", "-\(command)")
                let lacking = try #require(try await checks(url, in: place)["redis commands"])
                #expect(lacking.state == "wrong" && lacking.text.contains(command), "\(lacking)")
                #expect(lacking.mend.contains("+\(command)"), "\(lacking)")
                try await redis.ask("ACL", "SETUSER", "larder", "+\(command)")
            }
            try await redis.ask("ACL", "SETUSER", "larder", "-pttl")
            #expect(try await checks(url, in: place)["redis commands"]?.state == "warning")
            try await redis.ask("ACL", "SETUSER", "larder", "+pttl", "-info")
            #expect(try await checks(url, in: place)["redis version"]?.state == "warning")
            try await redis.ask("ACL", "SETUSER", "larder", "+info", "<sesame", ">new")
            let old = try #require(try await checks(url, in: place)["redis user"])
            #expect(old.state == "wrong" && old.text.contains("WRONGPASS"), "\(old)")
            #expect(old.mend.contains("fleet.redis.password_file"))
            // Nobody without a password.
            try await redis.ask("CONFIG", "SET", "requirepass", "x")
            let missing = try #require(
                try await checks("url: \"redis://127.0.0.1:\(redis.port)\"", in: place)["redis user"])
            #expect(missing.state == "wrong" && missing.text.contains("NOAUTH"), "\(missing)")
        }
    }

    @Test func `the certificate of the Redis`() async throws {
        try await Workplace.with { place in
            let authority = try await TestAuthority.make("authority", in: place)
            let other = try await TestAuthority.make("other", in: place)
            let certificate = try await authority.issue("redis", for: "DNS:localhost,IP:127.0.0.1")
            let port = FreePort.take()
            _ = try await RedisServer.start(
                in: place, port: port,
                Self.good + [
                    "--port", "0", "--tls-port", "\(port)", "--tls-cert-file", certificate.certificate,
                    "--tls-key-file", certificate.key, "--tls-auth-clients", "no",
                ], access: ["--tls", "--cacert", authority.certificate])
            let url = "url: \"rediss://127.0.0.1:\(port)\""
            let right = try await checks("\(url), ca_file: \(authority.certificate)", in: place)
            #expect(right.values.allSatisfy { $0.state != "wrong" }, "\(right)")
            #expect(right["redis TLS"]?.text.contains("more days") == true, "\(right)")
            let wrong = try await checks("\(url), ca_file: \(other.certificate)", in: place)
            #expect(wrong["redis"]?.state == "ok" && wrong["redis user"] == nil, "\(wrong)")
            #expect(wrong["redis TLS"]?.state == "wrong", "\(wrong)")
            #expect(wrong["redis TLS"]?.mend.contains("fleet.redis.ca_file") == true)
            let plain = try await checks("url: \"redis://127.0.0.1:\(port)\"", in: place)
            #expect(
                plain["redis"]?.state == "wrong" && plain["redis"]?.mend.contains("rediss://") == true,
                "\(plain["redis"] as Any)")
        }
    }

    @Test func `a Redis that is not there, and files that are not as they should be`() async throws {
        try await Workplace.with { place in
            let gone = try await checks("url: \"redis://127.0.0.1:\(FreePort.take())\"", in: place)
            #expect(gone["redis"]?.state == "wrong" && gone["redis"]?.text.contains("connected") == true, "\(gone)")
            #expect(gone.count == 2, "\(gone)")
            let redis = try await RedisServer.start(in: place, Self.good)
            let url = "url: \"redis://127.0.0.1:\(redis.port)\""
            let open = try await checks(url, in: place, mode: 0o644)
            #expect(open["fleet secret"]?.state == "warning", "\(open)")
            #expect(open["fleet secret"]?.mend.hasPrefix("chmod 600") == true && open["redis user"]?.state == "ok")
            let short = try await checks(url, in: place, secret: "short")
            #expect(short["redis"]?.text.contains("5 bytes") == true && short["redis"]?.state == "wrong", "\(short)")
            // A port where nobody speaks the protocol of Redis.
            let larder = try await Larder.start(in: place)
            let speaker = try await checks("url: \"redis://127.0.0.1:\(larder.port)\"", in: place)
            #expect(speaker["redis"]?.state == "wrong", "\(speaker)")
        }
    }
}
