import EventLoop
import Foundation
import Glibc
import ProgramUnderTest
import Testing

/// Whose word an answer is, between nodes, and what is not served before the origin has given its word.
@Suite("A fleet: the word of the origin", .enabled(if: Fleet.isInstalled, "packages curl, redis-server"))
struct FleetDoubtTests {
    @Test func `what the owner has stale does not renew what another node has`() async throws {
        try await Fleet.withPeers([Fleet.Plan(), Fleet.Plan()]) { (fleet: Fleet) async throws -> Void in
            let path = try await fleet.fresh("/100/stale?etag=yes", ownedBy: 1)
            for node in fleet.nodes { try await fleet.get(path, node) }
            fleet.origin.bump(path)
            fleet.origin.failing.withLock { _ = $0.insert(path) }
            _ = try await fleet.purge(0, ["--soft", fleet.url(path)])
            // A soft purge lets the old response stand in while the origin fails.
            let meanwhile = try await fleet.get(path, fleet.nodes[0], versions: 1...1)
            #expect(meanwhile.cacheStatus.contains("detail=stale-on-error"), "\(meanwhile)")
            fleet.origin.failing.withLock { _ = $0.remove(path) }
            try await eventually("the owner's circuit and that of the origin are closed", within: .seconds(60)) {
                try await fleet.get(path, fleet.nodes[0], versions: 1...2).body == FleetOrigin.body(path, 2)
            }
            #expect(try await fleet.nodes[0].statistic("owners", "unanswered") >= 1)
        }
    }

    @Test func `what the owner has stale is passed on where nothing else is there, and not stored`() async throws {
        try await Fleet.withPeers([Fleet.Plan(), Fleet.Plan()]) { (fleet: Fleet) async throws -> Void in
            let path = try await fleet.fresh("/2000000/alone?etag=yes", ownedBy: 1)
            try await fleet.get(path, fleet.nodes[1])
            fleet.origin.failing.withLock { _ = $0.insert(path) }
            _ = try await fleet.purge(1, ["--soft", fleet.url(path)])
            for _ in 0..<2 {
                let reply = try await fleet.get(path, fleet.nodes[0])
                #expect(reply.cacheStatus.contains("detail=stale-elsewhere"), "\(reply)")
            }
        }
    }

    // MARK: disks of the past

    private static let disk = Fleet.Plan(cache: "memory: 64MiB, disk: { path: DIRECTORY, size: 256MiB }")

    /// A node with a disk has a response and ends. Its version is raised, and purged.
    private func whilePurged(
        _ plan: Fleet.Plan = disk, _ body: (Fleet, String) async throws -> Void
    ) async throws {
        try await Fleet.with([Fleet.Plan(), plan]) { (fleet: Fleet) async throws -> Void in
            let path = fleet.origin.fresh("/30000/old?etag=yes")
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
            _ = try await fleet.purge(0, [fleet.url(path)])
            try await body(fleet, path)
        }
    }

    @Test func `nothing of a disk is served before the node has read the stream`() async throws {
        try await whilePurged { fleet, path in
            // The server is there, and says nothing.
            fleet.redis.child.signal(SIGSTOP)
            let back = try await fleet.restarted(1)
            try await fleet.get(path, back)
            fleet.redis.child.signal(SIGCONT)
            try await fleet.awaitFigure("purges_applied", of: back, atLeast: 1)
            try await fleet.get(path, back)
            #expect(try await fleet.figure("stale_marks", of: back) == 0)
        }
    }

    @Test func `nor where the origin fails, or a rule takes what is stale`() async throws {
        var first = Self.disk
        first.cache += ", rules: [ { policy: [ cache-first, stale-on-error ] } ]"
        try await whilePurged(first) { fleet, path in
            fleet.redis.child.signal(SIGSTOP)
            let back = try await fleet.restarted(1)
            fleet.origin.failing.withLock { _ = $0.insert(path) }
            let reply = try await fleet.place.curl(fleet.url(path), through: back)
            #expect(reply.status == 503, "\(reply)")
            fleet.origin.failing.withLock { _ = $0.remove(path) }
            try await fleet.get(path, back)
            fleet.redis.child.signal(SIGCONT)
            try await fleet.awaitFollowing(back)
        }
    }

    @Test func `what was on a disk that a reload adds is validated`() async throws {
        try await whilePurged { fleet, path in
            // The disk of the node that is away becomes that of a zone of the other one.
            let node = fleet.nodes[0]
            let text = textOfFile(node.configuration)
            let zone =
                "zones: [ { name: added, memory: 8MiB, disk: { path: \(fleet.place.path("node-2")), size: 256MiB } } ], rules: [ { zone: added } ]"
            try fleet.place.write(
                "node-1.yaml",
                text.replacingOccurrences(of: "disk: { size: 0 }", with: "disk: { size: 0 }, \(zone)").utf8)
            node.child.signal(SIGHUP)
            try await eventually("the disk is marked: \(node.child.errors)", within: .seconds(60)) {
                node.child.errors.contains("everything stored in added is marked as stale")
            }
            try await fleet.get(path, node)
            #expect(try await fleet.figure("stale_marks", of: node) == 1)
        }
    }
}
