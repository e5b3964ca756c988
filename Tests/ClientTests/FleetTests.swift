import EventLoop
import Foundation
import Glibc
import ProgramUnderTest
import Testing

@Suite("A fleet: what is shared", .enabled(if: Fleet.isInstalled, "packages curl, redis-server"))
struct FleetSharingTests {
    @Test func `a response of one node is a hit of another, to the byte`() async throws {
        try await Fleet.with { (fleet: Fleet) async throws -> Void in
            for count in [0, 100, 16 << 10, (16 << 10) + 1, 300_000, 1 << 20] {
                let shared = try await fleet.share("/\(count)/a")
                // The node keeps it, as if it had been its own.
                let again = try await fleet.get(shared.path, fleet.nodes[1])
                #expect(again.isHit && !fleet.isShared(again), "\(again)")
                #expect(fleet.origin.asked(shared.path).count == 1)
            }
            #expect(try await fleet.figure("hits", of: fleet.nodes[1]) >= 6)
            #expect(try await fleet.figure("refused", of: fleet.nodes[1]) == 0)
            let stats = try await fleet.nodes[1].command("stats")
            #expect(stats.out.contains("\nFleet\n") && stats.out.contains("node-2"), "\(stats)")
        }
    }

    @Test func `variants, HEAD, ranges and negative answers are shared as they are stored`() async throws {
        try await Fleet.with { (fleet: Fleet) async throws -> Void in
            // Both variants of one path.
            let german = ["-H", "X-Language: de"]
            let english = ["-H", "X-Language: en"]
            var both = false
            for _ in 0..<30 where !both {
                let path = fleet.origin.fresh("/20000/v?vary=X-Language")
                try await fleet.store(path, on: 0, german, value: "de")
                try await fleet.store(path, on: 0, english, value: "en")
                let one = try await fleet.get(path, fleet.nodes[1], german, value: "de")
                let other = try await fleet.get(path, fleet.nodes[1], english, value: "en")
                let third = try await fleet.get(path, fleet.nodes[1], ["-H", "X-Language: fr"], value: "fr")
                #expect(!third.isHit, "\(third)")
                // One look-up brings all variants.
                both = fleet.isShared(one) && other.isHit
            }
            #expect(both)

            let head = try await fleet.head("/300/h")
            #expect(head.fields["content-length"] == "300", "\(head)")

            var isPart = false
            for _ in 0..<30 where !isPart {
                let path = fleet.origin.fresh("/400000/r")
                try await fleet.store(path)
                let part = try await fleet.place.curl(
                    "-r", "1000-300999", fleet.url(path), through: fleet.nodes[1])
                let whole = FleetOrigin.body(path, 1)
                #expect(part.status == 206 && part.body == Array(whole[1000...300_999]), "\(part)")
                isPart = fleet.isShared(part)
            }
            #expect(isPart)

            let missing = try await fleet.share("/200/m?status=404&cc=max-age=600")
            #expect(missing.reply.status == 404, "\(missing.reply)")
        }
    }

    @Test func `what is long, private or for one credential stays on its node`() async throws {
        let plan = Fleet.Plan(
            cache:
                "memory: 64MiB, disk: { size: 0 }, rules: [ { match: { path: \"/*/session\" }, storage: session }, { match: { path: \"/*/own\" }, authorization: per-credential } ]"
        )
        try await Fleet.with([plan, plan]) { (fleet: Fleet) async throws -> Void in
            let rows: [(path: String, words: [String], isStored: Bool)] = [
                ("/\((1 << 20) + 1)/long", [], true), ("/100/private?cc=private,max-age=600", [], false),
                ("/100/none?cc=no-store", [], false), ("/100/session", [], true),
                ("/100/own", ["-H", "Authorization: Bearer abc"], true),
                ("/100/auth", ["-H", "Authorization: Bearer abc"], false),
            ]
            for row in rows {
                let path = fleet.origin.fresh(row.path)
                try await fleet.get(path, fleet.nodes[0], row.words)
                let again = try await fleet.get(path, fleet.nodes[0], row.words)
                #expect(again.isHit == row.isStored, "\(path): \(again)")
                let other = try await fleet.get(path, fleet.nodes[1], row.words)
                #expect(!other.isHit, "\(path): \(other)")
            }
            // Writes are in order: what was given before this one is there, if it was given at all.
            try await fleet.store("/100/last")
            #expect(try await fleet.redis.names().count == 1)
            #expect(try await fleet.redis.names("b").isEmpty)
        }
    }

    @Test func `a 304 refreshes what is shared, and another node can validate it`() async throws {
        try await Fleet.with { (fleet: Fleet) async throws -> Void in
            var isValidated = false
            for _ in 0..<30 where !isValidated {
                let path = fleet.origin.fresh("/20000/e?etag=y&cc=no-cache")
                try await fleet.store(path)
                try await fleet.store(path)
                #expect(fleet.origin.asked(path).last?.contains("If-None-Match") == true)
                let asked = fleet.origin.asked(path).count
                try await fleet.get(path, fleet.nodes[1])
                let requests = fleet.origin.asked(path)
                #expect(requests.count == asked + 1)
                isValidated = requests.last?.contains("If-None-Match") == true
            }
            #expect(isValidated)
        }
    }

    @Test func `an unsafe request removes what is shared`() async throws {
        try await Fleet.with { (fleet: Fleet) async throws -> Void in
            let path = fleet.origin.fresh("/100/u")
            try await fleet.store(path)
            #expect(try await fleet.redis.names().count == 1)
            let post = try await fleet.place.curl("-d", "x", fleet.url(path), through: fleet.nodes[0])
            #expect(post.status == 204, "\(post)")
            try await eventually("it is gone") { try await fleet.redis.names().isEmpty }
            let reply = try await fleet.get(path, fleet.nodes[1])
            #expect(!reply.isHit && fleet.origin.version(path) == 2, "\(reply)")
        }
    }
}

@Suite("A fleet: purges", .enabled(if: Fleet.isInstalled, "packages curl, redis-server"))
struct FleetPurgeTests {
    static let kinds = ["url", "prefix", "host", "tag", "type", "all"]

    private func words(_ kind: String, _ url: String) -> [String] {
        switch kind {
        case "url": [url]
        case "prefix": ["--prefix", url]
        case "host": ["--host", "127.0.0.1"]
        case "tag": ["--tag", "t1"]
        case "type": ["--type", "text/x-fleet"]
        default: ["--all"]
        }
    }

    @Test func `when a purge returns it is in force on all nodes`() async throws {
        try await Fleet.with { (fleet: Fleet) async throws -> Void in
            for kind in Self.kinds {
                for soft in [false, true] {
                    try await eventually("\(kind) was applied everywhere at once", within: .seconds(120)) {
                        let path = fleet.origin.fresh("/20000/p?tag=t1&type=text/x-fleet")
                        try await fleet.store(path)
                        // The second node has it in memory, the third has never heard of it.
                        try await fleet.get(path, fleet.nodes[1])
                        fleet.origin.bump(path)
                        let said = try await fleet.purge(
                            0, words(kind, fleet.url(path)) + (soft ? ["--soft"] : []))
                        // Whoever was too busy is not counted.
                        guard said.contains("applied on 3 of 3 nodes") else { return false }
                        for node in [fleet.nodes[1], fleet.nodes[2], fleet.nodes[0]] {
                            try await fleet.get(path, node)
                        }
                        return true
                    }
                }
            }
            #expect(try await fleet.figure("purges_sent", of: fleet.nodes[0]) >= 12)
            for node in fleet.nodes {
                #expect(try await fleet.figure("purges_applied", of: node) >= 12)
                #expect(try await fleet.figure("stale_marks", of: node) == 0)
            }
        }
    }

    @Test func `what was written before a purge is not used after it, and what was not meant is`() async throws {
        try await Fleet.with { (fleet: Fleet) async throws -> Void in
            try await eventually("a record was refused because of a purge", within: .seconds(60)) {
                let path = fleet.origin.fresh("/100/w")
                try await fleet.store(path)
                fleet.origin.bump(path)
                let before = try await fleet.figure("purged", of: fleet.nodes[2])
                let said = try await fleet.purge(1, [fleet.url(path)])
                guard said.contains("applied on 3 of 3 nodes") else { return false }
                try await fleet.get(path, fleet.nodes[2])
                return try await fleet.figure("purged", of: fleet.nodes[2]) > before
            }
            var isKept = false
            for _ in 0..<30 where !isKept {
                let path = fleet.origin.fresh("/100/kept")
                try await fleet.store(path)
                _ = try await fleet.purge(1, [fleet.url("/100/another")])
                isKept = fleet.isShared(try await fleet.get(path, fleet.nodes[2]))
            }
            #expect(isKept)
        }
    }

    @Test func `a purge while the Redis is away waits, and is applied when it is back`() async throws {
        try await Fleet.with { (fleet: Fleet) async throws -> Void in
            let path = fleet.origin.fresh("/100/d")
            for node in fleet.nodes { try await fleet.get(path, node) }
            try await fleet.redis.end()
            for node in fleet.nodes {
                try await eventually("the node has noticed", within: .seconds(60)) {
                    try await fleet.figure("connected", of: node) == 0
                }
            }
            fleet.origin.bump(path)
            let said = try await fleet.purge(0, [fleet.url(path)])
            #expect(
                said.contains("on this node; the others follow when the Redis of the fleet takes purges again"),
                "\(said)")
            #expect(try await fleet.figure("purges_waiting", of: fleet.nodes[0]) == 1)
            try await fleet.get(path, fleet.nodes[0])
            _ = try await fleet.redis.again()
            try await fleet.awaitFigure("purges_sent", of: fleet.nodes[0], atLeast: 1)
            for node in fleet.nodes.dropFirst() {
                // Another server: what it has lost may have been purges.
                try await fleet.awaitFigure("stale_marks", of: node, atLeast: 1)
                try await fleet.awaitFollowing(node)
                try await eventually("the purge reached the node", within: .seconds(60)) {
                    try await fleet.get(path, node, versions: 1...2).body == FleetOrigin.body(path, 2)
                }
            }
        }
    }

    // MARK: nodes that were away

    static let disk = Fleet.Plan(cache: "memory: 64MiB, disk: { path: DIRECTORY, size: 256MiB }")

    /// A node with a disk has a response, and ends. Then the version is raised, and something happens.
    private func whileAway(
        _ happens: (Fleet, String) async throws -> Void, _ then: (Fleet, Larder, String) async throws -> Void
    ) async throws {
        try await Fleet.with([Fleet.Plan(), Self.disk]) { (fleet: Fleet) async throws -> Void in
            let path = fleet.origin.fresh("/30000/o")
            let away = fleet.nodes[1]
            // A node that has never seen an entry cannot tell whether some were removed.
            _ = try await fleet.purge(0, [fleet.url("/1/first")])
            try await fleet.awaitFigure("purges_applied", of: away, atLeast: 1)
            try await fleet.get(path, away)
            try await eventually("it is on the disk", within: .seconds(60)) {
                try await away.statistic("store", "stored") >= 1
            }
            await away.child.stop()
            #expect(away.child.exitStatus == 0, "\(away.child.errors)")
            fleet.origin.bump(path)
            try await happens(fleet, path)
            let back = try await fleet.restarted(1)
            try await fleet.awaitFollowing(back)
            try await then(fleet, back, path)
        }
    }

    @Test func `a node that was down during a purge applies it when it is back`() async throws {
        try await whileAway({ fleet, path in
            _ = try await fleet.purge(0, [fleet.url(path)])
        }) { fleet, back, path in
            try await fleet.awaitFigure("purges_applied", of: back, atLeast: 1)
            try await fleet.get(path, back)
            #expect(try await fleet.figure("stale_marks", of: back) == 0)
        }
    }

    @Test func `a node that was down while nothing happened keeps what it has`() async throws {
        try await whileAway({ fleet, path in
            _ = try await fleet.purge(0, [fleet.url("/1/other")])
        }) { fleet, back, path in
            try await fleet.awaitFigure("purges_applied", of: back, atLeast: 1)
            #expect(try await fleet.get(path, back, versions: 1...1).isHit)
            #expect(try await fleet.figure("stale_marks", of: back) == 0)
        }
    }

    @Test(arguments: ["entries-trimmed", "other-data", "entries-deleted"])
    func `a node that cannot know what was purged validates everything`(_ reason: String) async throws {
        try await whileAway({ fleet, path in
            _ = try await fleet.purge(0, [fleet.url(path)])
            switch reason {
            case "entries-trimmed": try await fleet.redis.ask("XTRIM", "larder:1:purges", "MAXLEN", "0")
            case "entries-deleted":
                let entries = try await fleet.redis.ask("--raw", "XREVRANGE", "larder:1:purges", "+", "-")
                let id = try #require(entries.split(separator: "\n").first)
                try await fleet.redis.ask("XDEL", "larder:1:purges", String(id))
            default: try await fleet.redis.ask("FLUSHALL")
            }
        }) { fleet, back, path in
            try await fleet.awaitFigure("stale_marks", of: back, atLeast: 1)
            try await eventually("the mark is in force") {
                try await fleet.get(path, back, versions: 1...2).body == FleetOrigin.body(path, 2)
            }
            #expect(back.child.errors.contains("everything stored is marked as stale"), "\(back.child.errors)")
            #expect(back.child.errors.contains(reason), "\(back.child.errors)")
        }
    }

    @Test func `a node that runs marks everything as stale when the Redis was emptied`() async throws {
        try await Fleet.with { (fleet: Fleet) async throws -> Void in
            let path = fleet.origin.fresh("/100/f")
            for node in fleet.nodes { try await fleet.get(path, node) }
            try await eventually("the nodes know each other", within: .seconds(60)) {
                try await fleet.purge(0, ["--host", "nobody.example"]).contains("on 3 of 3 nodes")
            }
            fleet.origin.bump(path)
            try await fleet.redis.ask("FLUSHALL")
            // The list of nodes is gone as well.
            let said = try await fleet.purge(0, ["--host", "nobody.example"])
            #expect(said.contains("of 3 nodes"), "\(said)")
            for node in fleet.nodes {
                try await fleet.awaitFigure("stale_marks", of: node, atLeast: 1)
                try await eventually("the mark is in force") {
                    try await fleet.get(path, node, versions: 1...2).body == FleetOrigin.body(path, 2)
                }
            }
            try await fleet.share("/100/after")
            // What has ended stays known.
            await fleet.nodes[2].child.stop()
            try await fleet.redis.ask("DEL", "larder:1:nodes")
            let after = try await fleet.purge(0, ["--host", "nobody.example"])
            #expect(after.contains("applied on 2 of 3 nodes") && after.contains("  node-3: not "), "\(after)")
        }
    }

    @Test func `two nodes with one name are told so`() async throws {
        try await Workplace.with { place in
            let redis = try await RedisServer.start(in: place)
            try await Fleet.with([Fleet.Plan(), Fleet.Plan()], in: place, redis) {
                (fleet: Fleet) async throws -> Void in
                let text = textOfFile(place.path("node-2.yaml")).replacingOccurrences(
                    of: "name: node-2", with: "name: node-1"
                )
                .replacingOccurrences(of: "node-2.sock", with: "third.sock")
                _ = try await Larder.start(
                    in: place,
                    text: text.replacing(/127\.0\.0\.1:[0-9]+, socket/, with: "127.0.0.1:\(FreePort.take()), socket"),
                    adminPort: 0, file: "third.yaml")
                try await eventually("it is said", within: .seconds(60)) {
                    fleet.nodes[0].child.errors.contains("another node has the name node-1")
                }
            }
        }
    }
}
