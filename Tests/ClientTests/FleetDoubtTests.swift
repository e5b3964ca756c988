import EventLoop
import Foundation
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
}
