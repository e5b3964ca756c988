import Foundation
import ProgramUnderTest
import Testing

/// RFC 9111 §4.4 in a fleet: a response that an unsafe request has made invalid is served by no node.
@Suite("A fleet: unsafe requests", .enabled(if: Fleet.isInstalled, "packages curl, redis-server"))
struct FleetInvalidationTests {
    private static let disk = Fleet.Plan(cache: "memory: 64MiB, disk: { path: DIRECTORY, size: 256MiB }")

    /// The entries that the stream of purges has had.
    private func entries(_ fleet: Fleet) async throws -> Int {
        let reply = try await fleet.redis.ask("--raw", "XINFO", "STREAM", "larder:1:purges")
        let words = reply.split(separator: "\n").map(String.init)
        let place = try #require(words.firstIndex(of: "entries-added"), "\(reply)")
        return try #require(Int(words[place + 1]))
    }

    private func sum(_ name: String, _ fleet: Fleet) async throws -> Int {
        var sum = 0
        for node in fleet.nodes { sum += try await fleet.figure(name, of: node) }
        return sum
    }

    private func post(_ path: String, _ fleet: Fleet, through index: Int = 0) async throws {
        let before = fleet.origin.version(path)
        let reply = try await fleet.place.curl("-d", "x", fleet.url(path), through: fleet.nodes[index])
        #expect(reply.status == 204 && fleet.origin.version(path) == before + 1, "\(reply)")
    }

    /// Each node has the response, and answers with it.
    private func spread(_ path: String, _ fleet: Fleet) async throws {
        for node in fleet.nodes {
            try await eventually("it has the response", within: .seconds(60)) {
                try await fleet.get(path, node).isHit
            }
        }
    }

    /// No node serves the version from before, not even once.
    private func awaitNews(_ path: String, _ fleet: Fleet, applied: Int) async throws {
        try await eventually("the others have applied it", within: .seconds(60)) {
            try await sum("invalidations_applied", fleet) == applied
        }
        for node in fleet.nodes + fleet.nodes { try await fleet.get(path, node) }
    }

    static let plans: [(name: String, plan: Fleet.Plan)] = [("memory", Fleet.Plan()), ("disk", disk)]

    @Test(arguments: plans) func `no node serves what was there before`(_ row: (name: String, plan: Fleet.Plan))
        async throws
    {
        try await Fleet.with([row.plan, row.plan, row.plan]) { (fleet: Fleet) async throws -> Void in
            for (count, length) in [(1, 100), (2, 3_000_000)] {
                let path = fleet.origin.fresh("/\(length)/u")
                try await spread(path, fleet)
                try await post(path, fleet)
                try await awaitNews(path, fleet, applied: 2 * count)
            }
            // Nobody tells on what it was told.
            #expect(try await entries(fleet) == 2)
            #expect(try await sum("invalidations_sent", fleet) == 2)
            #expect(try await sum("invalidations_dropped", fleet) == 0)
        }
    }

    /// The node that the unsafe request goes through has nothing of it, and Redis takes none so long.
    @Test func `a long response that only others have, with owners`() async throws {
        try await Fleet.withPeers([Self.disk, Fleet.Plan(), Self.disk]) { (fleet: Fleet) async throws -> Void in
            let path = try await fleet.fresh("/3000000/u", ownedBy: 2)
            for node in fleet.nodes.dropFirst() { try await fleet.get(path, node) }
            try await post(path, fleet)
            try await awaitNews(path, fleet, applied: 2)
        }
    }

    @Test func `a node that was down learns of it when it is back`() async throws {
        try await Fleet.with([Self.disk, Self.disk]) { (fleet: Fleet) async throws -> Void in
            // Who has reached the end of an empty stream cannot know whether it has missed something.
            let first = fleet.origin.fresh("/100/u")
            try await spread(first, fleet)
            try await post(first, fleet)
            try await awaitNews(first, fleet, applied: 1)
            let path = fleet.origin.fresh("/100/u")
            try await spread(path, fleet)
            await fleet.nodes[1].child.stop()
            try await post(path, fleet)
            try await fleet.awaitFigure("invalidations_sent", of: fleet.nodes[0], atLeast: 2)
            let back = try await fleet.restarted(1)
            try await fleet.awaitFigure("invalidations_applied", of: back, atLeast: 1)
            try await fleet.get(path, back)
        }
    }

    /// It writes behind the node that has removed the response from Redis. Without `fleet.peers` no node asks another one for news.
    @Test func `what a slow node writes to Redis afterwards is not used`() async throws {
        try await Fleet.with { (fleet: Fleet) async throws -> Void in
            // A look-up that takes longer than 20 ms finds nothing.
            try await eventually("a node has found what was written late", within: .seconds(120)) {
                let names = Set(try await fleet.redis.names())
                let path = fleet.origin.fresh("/100/u")
                try await fleet.store(path, on: 1)
                let name = try #require(try await fleet.redis.names().first { !names.contains($0) })
                try await fleet.redis.ask("COPY", name, "written-late", "REPLACE")
                let applied = try await sum("invalidations_applied", fleet)
                try await post(path, fleet)
                try await eventually("the others have applied it", within: .seconds(60)) {
                    try await sum("invalidations_applied", fleet) == applied + 2
                }
                let refused = try await sum("purged", fleet)
                for node in [fleet.nodes[0], fleet.nodes[2]] {
                    try await fleet.redis.ask("COPY", "written-late", name, "REPLACE")
                    try await fleet.get(path, node)
                }
                return try await sum("purged", fleet) == refused + 2
            }
        }
    }

    // MARK: bounds

    @Test func `many unsafe requests cost the fleet few entries`() async throws {
        try await Fleet.with([Fleet.Plan(), Fleet.Plan()]) { (fleet: Fleet) async throws -> Void in
            let node = fleet.nodes[0]
            let began = ContinuousClock.now
            func flood(_ words: [String]) async throws {
                let output = try await fleet.place.run(
                    "curl", ["-s", "-o", "/dev/null", "-x", node.url, "-d", "x"] + words)
                #expect(output.status == 0, "\(output)")
            }
            // One URL again and again, and more URLs than may wait.
            try await flood(Array(repeating: fleet.url("/1/same"), count: 300))
            try await flood(["\(fleet.url("/1/many"))-[1-2000]"])
            try await fleet.awaitFigure("invalidations_dropped", of: node, atLeast: 1)
            // Nothing was stored of them, so an entry goes every ten seconds.
            let seconds = Int((ContinuousClock.now - began) / .seconds(1))
            let count = try await entries(fleet)
            #expect(count <= 2 + seconds / 10, "\(count) entries in \(seconds) s")
            // They do not stand in the way of what was stored.
            let path = fleet.origin.fresh("/100/u")
            try await spread(path, fleet)
            try await post(path, fleet)
            try await eventually("the other node has applied it", within: .seconds(60)) {
                try await fleet.get(path, fleet.nodes[1], versions: 1...2).text.contains("version=2")
            }
        }
    }

    @Test func `an error invalidates nothing, here and elsewhere`() async throws {
        try await Fleet.with([Fleet.Plan(), Fleet.Plan()]) { (fleet: Fleet) async throws -> Void in
            let path = fleet.origin.fresh("/100/u?refuse=yes")
            try await spread(path, fleet)
            let reply = try await fleet.place.curl("-d", "x", fleet.url(path), through: fleet.nodes[0])
            #expect(reply.status == 409, "\(reply)")
            // What was asked for later has come, so this would have come, too.
            let later = fleet.origin.fresh("/100/u")
            try await spread(later, fleet)
            try await post(later, fleet)
            try await awaitNews(later, fleet, applied: 1)
            #expect(try await fleet.get(path, fleet.nodes[1]).isHit)
        }
    }
}
