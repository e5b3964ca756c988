import EventLoop
import Foundation
import Glibc
import ProgramUnderTest
import Testing

@Suite("A fleet: owners of what is large", .enabled(if: Fleet.isInstalled, "packages curl, redis-server"))
struct FleetPeersTests {
    /// Longer than what Redis takes.
    static let long = 3_000_000

    /// How often a node has got something from another one.
    private func answers(_ fleet: Fleet, _ node: Int) async throws -> Int {
        try await fleet.nodes[node].statistic("owners", "hits") + fleet.nodes[node].statistic("owners", "fetched")
    }

    @Test func `a response is fetched from the origin once for all nodes`() async throws {
        let disk = Fleet.Plan(cache: "memory: 64MiB, disk: { path: DIRECTORY, size: 256MiB }")
        try await Fleet.withPeers([disk, disk, disk]) { (fleet: Fleet) async throws -> Void in
            for path in ["/\(Self.long)/a", "/300/short", "/12000000/longer?etag=y"] {
                try await eventually("\(path) was asked for once", within: .seconds(120)) {
                    let own = fleet.origin.fresh(path)
                    for node in fleet.nodes + fleet.nodes { try await fleet.get(own, node) }
                    // A node that was busy for 50 ms is not waited for.
                    return fleet.origin.asked(own).count == 1
                }
            }
            var seen = 0
            for node in fleet.nodes.indices { seen += try await answers(fleet, node) }
            #expect(seen >= 2)
            let bytes =
                try await fleet.nodes[0].statistic("owners", "bytes_read")
                + fleet.nodes[1].statistic("owners", "bytes_read")
            #expect(bytes > 1_000_000, "two nodes do not own everything: \(bytes)")
            let stats = try await fleet.nodes[0].command("stats")
            #expect(stats.out.contains("Owners in the fleet"), "\(stats)")
        }
    }

    @Test func `all nodes name the same owner`() async throws {
        try await Fleet.withPeers { (fleet: Fleet) async throws -> Void in
            var owners: Set<Int> = []
            for number in 0..<20 {
                let owner = try await fleet.owner(of: "/1/\(number)")
                owners.insert(owner)
                for node in fleet.nodes.dropFirst() {
                    #expect(try await fleet.owner(of: "/1/\(number)", saidBy: node) == owner)
                }
            }
            #expect(owners.count == 3)
        }
    }

    @Test func `clients of all nodes at once make one request to the origin, and get the bytes as they come`()
        async throws
    {
        try await Fleet.withPeers { (fleet: Fleet) async throws -> Void in
            try await eventually("all shared one request", within: .seconds(180)) {
                let path = fleet.origin.fresh("/\(Self.long)/s?wait=300&pause=5&etag=y")
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for node in fleet.nodes {
                        for _ in 0..<6 { group.addTask { try await fleet.get(path, node) } }
                    }
                    try await group.waitForAll()
                }
                return fleet.origin.asked(path).count == 1
            }
        }
    }

    @Test func `an origin says nothing in the name of a node, and the owner is heard`() async throws {
        try await Fleet.withPeers { (fleet: Fleet) async throws -> Void in
            try await eventually("it came from the owner", within: .seconds(120)) {
                let path = try await fleet.fresh("/\(Self.long)/f?etag=y&forges=y", ownedBy: 1)
                let before = try await answers(fleet, 0)
                for node in [fleet.nodes[0], fleet.nodes[0], fleet.nodes[1]] {
                    let heads = "\(try await fleet.get(path, node).heads)".lowercased()
                    #expect(!heads.contains("forged") && !heads.contains("larder-"), "\(heads)")
                    #expect(heads.contains("proxy-status: mine") && heads.contains("cache-status: larder"), "\(heads)")
                }
                return try await answers(fleet, 0) > before
            }
        }
    }

    @Test func `ranges and validation go through the owner`() async throws {
        try await Fleet.withPeers { (fleet: Fleet) async throws -> Void in
            try await eventually("a range came from the owner", within: .seconds(120)) {
                let path = try await fleet.fresh("/\(Self.long)/r?etag=y", ownedBy: 1)
                let whole = FleetOrigin.body(path, 1)
                try await fleet.get(path, fleet.nodes[1])
                let part = try await fleet.place.curl("-r", "2000000-2499999", fleet.url(path), through: fleet.nodes[0])
                #expect(part.status == 206 && part.body == Array(whole[2_000_000...2_499_999]), "\(part.heads)")
                let end = try await fleet.place.curl("-r", "-1000", fleet.url(path), through: fleet.nodes[2])
                #expect(end.status == 206 && end.body == Array(whole.suffix(1000)), "\(end.heads)")
                return fleet.origin.asked(path).count == 1
            }
            try await eventually("the owner answered for what it has validated", within: .seconds(120)) {
                let path = try await fleet.fresh("/200/v?etag=y&cc=max-age=0", ownedBy: 1)
                for node in [fleet.nodes[0], fleet.nodes[1], fleet.nodes[0]] { try await fleet.get(path, node) }
                return fleet.origin.asked(path).dropFirst().allSatisfy { $0.contains("If-None-Match") }
            }
        }
    }

    @Test func `only the owner keeps it on its disk`() async throws {
        let disk = Fleet.Plan(cache: "memory: 64MiB, disk: { path: DIRECTORY, size: 256MiB }")
        try await Fleet.withPeers([disk, disk]) { (fleet: Fleet) async throws -> Void in
            try await eventually("the other node asked the owner", within: .seconds(120)) {
                let path = try await fleet.fresh("/2000000/d", ownedBy: 0)
                let before = try await answers(fleet, 1)
                try await fleet.get(path, fleet.nodes[1])
                return try await answers(fleet, 1) > before
            }
            try await eventually("it is on the disk of the owner", within: .seconds(60)) {
                try await fleet.nodes[0].statistic("store", "stored") >= 1
            }
            let again = fleet.origin.fresh("/100/x")
            try await fleet.get(again, fleet.nodes[1])
            let entries = try await fleet.place.run(
                Larder.executable, ["list", "--config", fleet.nodes[1].configuration, "--json"])
            #expect(
                !entries.out.contains("\"storage\":\"permanent\"") || !entries.out.contains("/2000000/d"),
                "\(entries.out)")
        }
    }

    // MARK: a node that fails

    @Test func `clients notice nothing when the owner is killed in the middle of a body`() async throws {
        try await Fleet.withPeers { (fleet: Fleet) async throws -> Void in
            let paths = try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<4 {
                    group.addTask { try await fleet.fresh("/6000000/k?etag=y&pause=20", ownedBy: 2) }
                }
                return try await group.reduce(into: [String]()) { $0.append($1) }
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for path in paths {
                    for node in fleet.nodes.prefix(2) { group.addTask { try await fleet.get(path, node) } }
                }
                try await eventually("all are under way", within: .seconds(60)) {
                    paths.allSatisfy { !fleet.origin.asked($0).isEmpty }
                }
                fleet.nodes[2].child.signal(SIGKILL)
                try await group.waitForAll()
            }
            // And when it stays away.
            for number in 0..<12 {
                let path = fleet.origin.fresh("/100000/gone\(number)")
                for node in fleet.nodes.prefix(2) { try await fleet.get(path, node) }
            }
            let stats = try await fleet.nodes[0].command("stats", "--json")
            #expect(stats.out.contains("\"fleet_owners\""), "\(stats)")
        }
    }

    @Test func `a node that does not answer is waited for for 50 ms, and the origin is asked as well`() async throws {
        try await Fleet.withPeers { (fleet: Fleet) async throws -> Void in
            // A connection that is open.
            try await eventually("the owner has been asked", within: .seconds(60)) {
                let first = try await fleet.fresh("/\(Self.long)/first", ownedBy: 2)
                try await fleet.get(first, fleet.nodes[0])
                return try await answers(fleet, 0) > 0
            }
            let paths = try await [
                fleet.fresh("/\(Self.long)/h", ownedBy: 2), fleet.fresh("/\(Self.long)/i", ownedBy: 2),
            ]
            fleet.nodes[2].child.signal(SIGSTOP)
            defer { fleet.nodes[2].child.signal(SIGCONT) }
            for path in paths { try await fleet.get(path, fleet.nodes[0]) }
            let stats = fleet.nodes[0]
            #expect(
                try await stats.statistic("owners", "hedges") + stats.statistic("owners", "unreachable")
                    + stats.statistic("owners", "broken") >= 1)
            fleet.nodes[2].child.signal(SIGCONT)
            for path in paths { try await fleet.get(path, fleet.nodes[0]) }
            try await fleet.get(fleet.origin.fresh("/100/later"), fleet.nodes[0])
        }
    }

    @Test func `an owner that is back looks into the store of the node that stood in`() async throws {
        try await Fleet.withPeers { (fleet: Fleet) async throws -> Void in
            let path = try await fleet.fresh("/\(Self.long)/j", ownedBy: 2)
            await fleet.nodes[2].child.stop()
            try await fleet.get(path, fleet.nodes[0])
            try await fleet.get(path, fleet.nodes[1])
            let asked = fleet.origin.asked(path).count
            let back = try await fleet.restarted(2)
            try await fleet.awaitFollowing(back)
            try await eventually("it knows the others", within: .seconds(60)) {
                try await back.statistic("owners", "members") == 3
            }
            let reply = try await fleet.get(path, back)
            #expect(fleet.origin.asked(path).count == asked, "\(reply.heads)")
            #expect(reply.cacheStatus.contains("detail=peer-hit"), "\(reply.heads)")
        }
    }

    @Test func `a node with another secret is not answered, and its clients are`() async throws {
        try await Workplace.with { place in
            let redis = try await RedisServer.start(in: place)
            let peers = try await Fleet.Peers.make(2, in: place)
            let secret = try place.write("other-secret", "\(String(repeating: "fedcba9876543210", count: 4))\n".utf8)
            let other = Fleet.Plan(fleet: "redis: { url: \"redis://127.0.0.1:PORT/0\" }, secret_file: \(secret)")
            try await Fleet.with([peers.plan(0), peers.plan(1, other)], in: place, redis) {
                (fleet: Fleet) async throws -> Void in
                try await eventually("it was refused", within: .seconds(60)) {
                    let path = fleet.origin.fresh("/\(Self.long)/o")
                    for node in fleet.nodes { try await fleet.get(path, node) }
                    let refused = try await fleet.nodes[0].statistic("owners", "refused_secret")
                    let told = try await fleet.nodes[1].statistic("owners", "misconfigured")
                    return refused > 0 && told > 0
                }
                try await eventually("the log says why", within: .seconds(60)) {
                    let path = fleet.origin.fresh("/\(Self.long)/p")
                    for node in fleet.nodes { try await fleet.get(path, node) }
                    return fleet.nodes[1].child.errors.contains("it has another fleet.secret_file")
                }
            }
        }
    }

    @Test func `a node whose certificate is not from the authority is not asked`() async throws {
        try await Workplace.with { place in
            let redis = try await RedisServer.start(in: place)
            let peers = try await Fleet.Peers.make(2, in: place)
            let stranger = try await TestAuthority.make("stranger", in: place)
            try await stranger.issue("strange", for: "IP:127.0.0.1")
            var plan = peers.plan(1)
            plan.node = plan.node.replacingOccurrences(of: "node.crt", with: "strange.crt")
                .replacingOccurrences(of: "node.key", with: "strange.key")
            try await Fleet.with([peers.plan(0), plan], in: place, redis) { (fleet: Fleet) async throws -> Void in
                try await eventually("both notice", within: .seconds(60)) {
                    let path = fleet.origin.fresh("/\(Self.long)/c")
                    for node in fleet.nodes { try await fleet.get(path, node) }
                    let failed = try await fleet.nodes[0].statistic("owners", "unreachable")
                    return failed > 0
                }
                #expect(try await fleet.nodes[0].statistic("owners", "served") == 0)
                #expect(try await fleet.nodes[1].statistic("owners", "served") == 0)
            }
        }
    }

    @Test func `a new certificate is used, and one that cannot be read leaves the old one in use`() async throws {
        try await Fleet.withPeers([Fleet.Plan(), Fleet.Plan()]) { (fleet: Fleet) async throws -> Void in
            let peers = try #require(fleet.peers)
            let said = "the certificate of this node, fleet.node.peer.certificate, was read again"
            try fleet.place.write("node.crt", "no certificate\n".utf8)
            for node in fleet.nodes {
                try await eventually("the node complains", within: .seconds(60)) {
                    node.child.errors.contains("what this node has shown to others before stays in use")
                }
                #expect(!node.child.errors.contains(said))
            }
            func works() async throws {
                try await eventually("the other node was asked", within: .seconds(60)) {
                    let path = try await fleet.fresh("/\(Self.long)/t", ownedBy: 1)
                    let before = try await answers(fleet, 0)
                    try await fleet.get(path, fleet.nodes[0])
                    return try await answers(fleet, 0) > before
                }
            }
            try await works()
            try await peers.authority.issue("node", for: "IP:127.0.0.1")
            for node in fleet.nodes {
                try await eventually("the node reads it", within: .seconds(60)) { node.child.errors.contains(said) }
            }
            try await works()
        }
    }

    @Test func `larder doctor --server asks each node`() async throws {
        try await Workplace.with { place in
            let redis = try await RedisServer.start(in: place)
            let peers = try await Fleet.Peers.make(4, in: place)
            let secret = try place.write("other-secret", "\(String(repeating: "fedcba9876543210", count: 4))\n".utf8)
            let other = Fleet.Plan(fleet: "redis: { url: \"redis://127.0.0.1:PORT/0\" }, secret_file: \(secret)")
            let stranger = try await TestAuthority.make("stranger", in: place)
            try await stranger.issue("strange", for: "IP:127.0.0.1")
            var strange = peers.plan(2)
            strange.node = strange.node.replacingOccurrences(of: "node.crt", with: "strange.crt")
                .replacingOccurrences(of: "node.key", with: "strange.key")
            // There is no fourth node.
            try await Fleet.with([peers.plan(0), peers.plan(1, other), strange], in: place, redis) {
                (fleet: Fleet) async throws -> Void in
                let output = try await fleet.nodes[0].command("doctor", "--server", "--json")
                let json = try JSONSerialization.jsonObject(with: Data(output.out.utf8)) as? [String: Any]
                let rows = try #require(json?["checks"] as? [[String: String]], "\(output)")
                func check(_ index: Int) throws -> [String: String] {
                    try #require(rows.first { $0["name"] == "owner 127.0.0.1:\(peers.ports[index])" }, "\(rows)")
                }
                // Certificates of tests are valid for two days.
                let own = try check(0)
                #expect(own["state"] == "warning" && own["text"]?.hasPrefix("it answers") == true, "\(own)")
                #expect(try check(1)["text"] == "it has another secret")
                #expect(try check(2)["text"]?.hasPrefix("TLS: ") == true, "\(rows)")
                let absent = try check(3)
                #expect(absent["state"] == "wrong" && absent["mend"]?.hasPrefix("start that node") == true, "\(absent)")
                #expect(output.status == 1)
            }
        }
    }

    // MARK: other nodes

    @Test func `a reload changes who the nodes are, and says what it does not change`() async throws {
        try await Fleet.withPeers { (fleet: Fleet) async throws -> Void in
            let peers = try #require(fleet.peers)
            let third = ", \"127.0.0.1:\(peers.ports[2])\""
            func reload(_ node: Larder, _ change: (String) -> String) throws {
                let file = URL(fileURLWithPath: node.configuration)
                let text = try String(contentsOf: file, encoding: .utf8)
                #expect(change(text) != text)
                try change(text).write(to: file, atomically: true, encoding: .utf8)
                node.child.signal(SIGHUP)
            }
            func awaitMembers(_ count: Int, _ node: Larder) async throws {
                try await eventually("there are \(count) nodes; it said: \(node.child.errors)", within: .seconds(60)) {
                    try await node.statistic("owners", "members") == count
                }
            }
            let (first, second) = (fleet.nodes[0], fleet.nodes[1])
            let long = try await fleet.fresh("/12000000/u?pause=20", ownedBy: 2)
            async let underWay = fleet.get(long, first)
            try await eventually("it is under way", within: .seconds(60)) { !fleet.origin.asked(long).isEmpty }
            for node in [first, second] {
                try reload(node) { $0.replacingOccurrences(of: third, with: "") }
                try await awaitMembers(2, node)
            }
            // What was begun goes on.
            _ = try await underWay
            for number in 0..<20 {
                let owner = try await fleet.owner(of: "/1/\(number)")
                #expect(owner != 2)
                #expect(try await fleet.owner(of: "/1/\(number)", saidBy: second) == owner)
            }
            let served = try await fleet.nodes[2].statistic("owners", "served")
            for number in 0..<6 { try await fleet.get(fleet.origin.fresh("/100/\(number)"), first) }
            #expect(try await fleet.nodes[2].statistic("owners", "served") == served)
            // The third one is there again, and it has been there all the time.
            let other = "\"127.0.0.1:\(peers.ports[1])\""
            try reload(first) {
                $0.replacingOccurrences(of: other, with: other + third)
                    .replacingOccurrences(of: "name: node-1", with: "name: node-one")
            }
            try await awaitMembers(3, first)
            try await eventually("the third one is asked", within: .seconds(60)) {
                try await fleet.get(try await fleet.fresh("/100/again", ownedBy: 2), first)
                return try await fleet.nodes[2].statistic("owners", "served") > served
            }
            let said = first.child.errors
            #expect(said.contains("fleet.node.name changed, which takes effect at the next start"), "\(said)")
            #expect(!said.contains("fleet.peers changed, which takes effect"), "\(said)")
            // To end it takes a restart.
            try reload(second) {
                $0.replacing(/, peers: \[[^\]]*\]/, with: "").replacing(/, peer: \{[^}]*\}/, with: "")
            }
            try await eventually("it says so", within: .seconds(60)) {
                second.child.errors.contains("fleet.peers changed, which takes effect at the next start")
            }
            try await awaitMembers(2, second)
        }
    }

    // MARK: what must not happen

    @Test func `the listener for nodes serves nobody else`() async throws {
        try await Fleet.withPeers { (fleet: Fleet) async throws -> Void in
            let peers = try #require(fleet.peers)
            let path = fleet.origin.fresh("/100/n")
            let place = "https://127.0.0.1:\(peers.ports[0])"
            let authority = ["--proxy-cacert", peers.authority.certificate]
            let own = ["--proxy-cert", fleet.place.path("node.crt"), "--proxy-key", fleet.place.path("node.key")]
            let rows: [(words: [String], says: String)] = [
                (authority, "certificate required"),
                (authority + own, "403"),
                (
                    authority + own + ["--proxy-header", "Larder-Peer: 2 \(String(repeating: "0", count: 32)) node=x"],
                    "403"
                ),
                (authority + own + ["-H", "Larder-Peer: 3"], "403"),
            ]
            for row in rows {
                let output = try await fleet.place.run(
                    "curl", ["-sS", "-v", "-o", "/dev/null", "-x", place] + row.words + [fleet.url(path)])
                let said = output.out + output.err
                #expect(said.contains(row.says), "\(row.words): \(said)")
            }
            #expect(fleet.origin.asked(path).isEmpty)
            // Nor does a client of the proxy reach it.
            let through = try await fleet.place.curl(
                "-k", "https://127.0.0.1:\(peers.ports[0])/", through: fleet.nodes[0])
            #expect(through.exit != 0, "\(through)")
        }
    }

    @Test func `what is personal, or cannot be stored, is not asked for`() async throws {
        try await Fleet.withPeers { (fleet: Fleet) async throws -> Void in
            let node = fleet.nodes[0]
            let path = try await fleet.fresh("/100/p", ownedBy: 1)
            let before = try await node.statistic("owners", "asked")
            for words in [["-H", "Authorization: Bearer x"], ["-H", "Cache-Control: no-store"], ["-I"]] {
                _ = try await fleet.place.curl(words + [fleet.url(path)], through: node)
            }
            #expect(try await node.statistic("owners", "asked") == before)
            // The owner is asked once, and after that the origin alone.
            try await eventually("the node has learned that the response cannot be stored", within: .seconds(60)) {
                let path = try await fleet.fresh("/100/q?cc=no-store", ownedBy: 1)
                let answered = try await answers(fleet, 0)
                try await fleet.get(path, node)
                guard try await answers(fleet, 0) > answered else { return false }
                let asked = try await node.statistic("owners", "asked")
                for _ in 0..<3 { try await fleet.get(path, node) }
                #expect(try await node.statistic("owners", "asked") == asked)
                return true
            }
        }
    }

    @Test func `after a purge no node has the old response from another one`() async throws {
        try await Fleet.withPeers { (fleet: Fleet) async throws -> Void in
            for _ in 0..<5 {
                try await eventually("it was applied everywhere at once", within: .seconds(120)) {
                    let path = fleet.origin.fresh("/\(Self.long)/u")
                    for node in fleet.nodes { try await fleet.get(path, node) }
                    fleet.origin.bump(path)
                    let said = try await fleet.purge(0, [fleet.url(path)])
                    guard said.contains("applied on 3 of 3 nodes") else { return false }
                    for node in fleet.nodes.reversed() { try await fleet.get(path, node) }
                    return true
                }
            }
        }
    }

    @Test func `after an unsafe request its node does not have the old response from the owner`() async throws {
        try await Fleet.withPeers { (fleet: Fleet) async throws -> Void in
            for owner in 0..<3 {
                let path = try await fleet.fresh("/\(Self.long)/w", ownedBy: owner)
                for node in fleet.nodes { try await fleet.get(path, node) }
                let post = try await fleet.place.curl("-d", "x", fleet.url(path), through: fleet.nodes[0])
                #expect(post.status == 204 && fleet.origin.version(path) == 2, "\(post)")
                try await fleet.get(path, fleet.nodes[0])
                try await fleet.get(path, fleet.nodes[0])
            }
        }
    }

    @Test func `the rules of the owner are for the client, not for the node that asks`() async throws {
        var strict = Fleet.Plan()
        // Only one of the clients may reach it, whichever node asks.
        strict.access = """
            access:
              clients: [ 127.0.0.0/8 ]
              rules:
                - allow: { client: [ 127.0.0.2 ], address: [ 127.0.0.1 ], port: [ 1-65535 ] }
            """
        try await Fleet.withPeers([strict, strict, strict]) { (fleet: Fleet) async throws -> Void in
            try await eventually("the owner answered for the client", within: .seconds(60)) {
                let path = try await fleet.fresh("/\(Self.long)/x", ownedBy: 1)
                let refused = try await fleet.place.curl(fleet.url(path), through: fleet.nodes[0])
                #expect(refused.status == 403, "\(refused)")
                let before = try await answers(fleet, 0)
                try await fleet.get(path, fleet.nodes[0], ["--interface", "127.0.0.2"])
                return try await answers(fleet, 0) > before
            }
        }
    }

    @Test func `a name whose addresses are the nodes`() async throws {
        try await Workplace.with { place in
            let redis = try await RedisServer.start(in: place)
            let authority = try await TestAuthority.make("fleet-authority", in: place)
            try await authority.issue("node", for: "DNS:caches.test")
            let port = FreePort.take()
            let plans = (1...3).map { number in
                var plan = Fleet.Plan()
                plan.fleet += ", peers: \"caches.test:\(port)\""
                plan.node =
                    "peer: { address: 127.0.0.\(number):\(port), certificate: \(place.path("node.crt")), key: \(place.path("node.key")), ca: \(authority.certificate) }"
                plan.more = "dns: { hosts: { caches.test: [ 127.0.0.1, 127.0.0.2, 127.0.0.3 ] } }"
                return plan
            }
            try await Fleet.with(plans, in: place, redis) { (fleet: Fleet) async throws -> Void in
                for node in fleet.nodes {
                    try await eventually("it knows the others; it said: \(node.child.errors)", within: .seconds(60)) {
                        try await node.statistic("owners", "members") == 3
                    }
                }
                try await eventually("one was asked", within: .seconds(60)) {
                    let path = fleet.origin.fresh("/\(Self.long)/z")
                    for node in fleet.nodes { try await fleet.get(path, node) }
                    return fleet.origin.asked(path).count == 1
                }
            }
        }
    }
}
