import EventLoop
import Foundation
import Glibc
import ProgramUnderTest
import Testing

/// Several proxies that share one Redis, and their origin.
struct Fleet: Sendable {
    let place: Workplace
    let redis: RedisServer
    let origin: FleetOrigin
    let nodes: [Larder]
    let plans: [Plan]
    /// Nil: the nodes do not ask each other.
    private(set) var peers: Peers?

    /// How a node is started.
    struct Plan: Sendable {
        /// `fleet` of the configuration without the name of the node. PORT is that of the Redis.
        var fleet = "redis: { url: \"redis://127.0.0.1:PORT/0\" }, secret_file: SECRET"
        /// `cache` of the configuration. DIRECTORY is one of the node.
        var cache = "memory: 64MiB, disk: { size: 0 }"
        /// Members of `node` and `fleet` behind the name, for nodes that ask each other. Set by `peers`.
        var node = ""
        /// More of the configuration. DIRECTORY is one of the node.
        var more = ""
        /// Rules of access.
        var access = Larder.openLoopback
    }

    /// Nodes that ask each other for what they own.
    struct Peers: Sendable {
        let authority: TestAuthority
        let ports: [UInt16]

        static func make(_ count: Int, in place: Workplace) async throws -> Peers {
            let authority = try await TestAuthority.make("fleet-authority", in: place)
            try await authority.issue("node", for: "IP:127.0.0.1,DNS:localhost")
            return Peers(authority: authority, ports: (0..<count).map { _ in FreePort.take() })
        }

        /// The plan of a node, with its part in the fleet.
        func plan(_ index: Int, _ plan: Plan = Plan()) -> Plan {
            var own = plan
            let all = ports.map { "\"127.0.0.1:\($0)\"" }.joined(separator: ", ")
            own.node = "peer: { address: 127.0.0.1:\(ports[index]), \(tls) }"
            own.fleet += ", peers: [ \(all) ]"
            return own
        }

        var tls: String {
            let place = authority.place
            return
                "certificate: \(place.path("node.crt")), key: \(place.path("node.key")), ca: \(authority.certificate)"
        }
    }

    /// Nodes that ask each other.
    static func withPeers(
        _ plans: [Plan] = [Plan(), Plan(), Plan()], _ body: (Fleet) async throws -> Void
    ) async throws {
        try await Workplace.with { place in
            let redis = try await RedisServer.start(in: place)
            let peers = try await Peers.make(plans.count, in: place)
            try await with(plans.enumerated().map { peers.plan($0.offset, $0.element) }, in: place, redis) {
                (fleet: Fleet) async throws -> Void in
                try await body(fleet.asking(peers))
            }
        }
    }

    func asking(_ peers: Peers) -> Fleet {
        var fleet = self
        fleet.peers = peers
        return fleet
    }

    /// The number of the node that owns a path, as a node says it.
    func owner(of path: String, saidBy node: Larder? = nil) async throws -> Int {
        let output = try await (node ?? nodes[0]).command("explain", url(path), "--client", "127.0.0.2")
        let match = try #require(output.out.firstMatch(of: /owner +127\.0\.0\.1:([0-9]+)/), "\(output)")
        let port = try #require(UInt16(match.1))
        return try #require(peers?.ports.firstIndex(of: port))
    }

    /// A path with the same keys that nobody has asked for, and that a certain node owns.
    func fresh(_ path: String, ownedBy index: Int) async throws -> String {
        for _ in 0..<200 {
            let own = origin.fresh(path)
            if try await owner(of: own) == index { return own }
        }
        throw Missing(description: "no path is owned by node \(index)")
    }

    static let isInstalled = installed("curl") != nil && RedisServer.isInstalled

    static func with(
        _ plans: [Plan] = [Plan(), Plan(), Plan()], redis words: [String] = [], _ body: (Fleet) async throws -> Void
    ) async throws {
        try await Workplace.with { place in
            let redis = try await RedisServer.start(in: place, words)
            try await with(plans, in: place, redis, body)
        }
    }

    static func with(
        _ plans: [Plan] = [Plan(), Plan(), Plan()], in place: Workplace, _ redis: RedisServer, awaits: Bool = true,
        _ body: (Fleet) async throws -> Void
    ) async throws {
        try place.write("secret", "\(String(repeating: "0123456789abcdef", count: 4))\n".utf8)
        let content = FleetOrigin()
        try await ScriptedOrigin.with({ content.answer($0, $1) }) { origin in
            content.url.withLock { $0 = origin.url }
            var nodes: [Larder] = []
            for (index, plan) in plans.enumerated() { nodes.append(try await start(plan, index, in: place, redis)) }
            let fleet = Fleet(place: place, redis: redis, origin: content, nodes: nodes, plans: plans)
            if awaits { for node in nodes { try await fleet.awaitFollowing(node) } }
            try await body(fleet)
        }
    }

    private static func start(
        _ plan: Plan, _ index: Int, in place: Workplace, _ redis: RedisServer
    ) async throws -> Larder {
        let name = "node-\(index + 1)"
        let adminPort = FreePort.take()
        let fleet = plan.fleet.replacingOccurrences(of: "PORT", with: "\(redis.port)")
            .replacingOccurrences(of: "SECRET", with: place.path("secret"))
        let cache = plan.cache.replacingOccurrences(of: "DIRECTORY", with: place.path(name))
        let text = """
            listen: [ { address: 127.0.0.1:0 } ]
            admin: { address: 127.0.0.1:\(adminPort), socket: \(place.path("\(name).sock")) }
            cache: { \(cache) }
            fleet: { \(fleet), node: { name: \(name)\(plan.node.isEmpty ? "" : ", \(plan.node)") } }
            log: { access: \(place.path("\(name).jsonl")), level: info }
            \(plan.access)
            \(plan.more.replacingOccurrences(of: "DIRECTORY", with: place.path(name)))

            """
        return try await Larder.start(in: place, text: text, adminPort: adminPort, file: "\(name).yaml")
    }

    /// Starts a node again that has ended.
    func restarted(_ index: Int) async throws -> Larder {
        let node = try await Fleet.start(plans[index], index, in: place, redis)
        return node
    }

    // MARK: what nodes say

    /// A member of `fleet` of `larder stats --json`.
    func figure(_ name: String, of node: Larder) async throws -> Int {
        let value = try await figures(of: node)[name]
        if let flag = value as? Bool { return flag ? 1 : 0 }
        return try #require(value as? Int, "no \(name)")
    }

    func figures(of node: Larder) async throws -> [String: Any] {
        let output = try await node.command("stats", "--json")
        let all = try #require(
            try JSONSerialization.jsonObject(with: Data(output.out.utf8)) as? [String: Any], "\(output)")
        return try #require(all["fleet"] as? [String: Any])
    }

    func awaitFollowing(_ node: Larder) async throws {
        try await eventually("the node follows; it said: \(node.child.errors)", within: .seconds(60)) {
            try await figure("following", of: node) == 1
        }
    }

    /// Waits for a figure of a node.
    func awaitFigure(_ name: String, of node: Larder, atLeast count: Int) async throws {
        try await eventually("\(name) is \(count); it said: \(node.child.errors)", within: .seconds(60)) {
            try await figure(name, of: node) >= count
        }
    }

    // MARK: requests

    /// Asks a node, and compares the body with that of the origin.
    ///
    /// - Parameter versions: those that the body may have. Nil: the present one.
    @discardableResult
    func get(
        _ path: String, _ node: Larder, _ words: [String] = [], value: String = "", versions: ClosedRange<Int>? = nil
    ) async throws -> Workplace.Reply {
        let allowed = versions ?? origin.version(path)...origin.version(path)
        let reply = try await place.curl(words + [url(path)], through: node)
        #expect(reply.exit == 0, "\(path): \(reply)")
        let isRight = allowed.contains { FleetOrigin.body(path, $0, value) == reply.body }
        #expect(isRight, "\(path): a wrong body of \(reply.body.count) bytes: \(reply.heads) \(reply.text.prefix(100))")
        return reply
    }

    func url(_ path: String) -> String { origin.url.withLock { $0 } + path }

    /// The answer of the second node to HEAD for what the first one has stored.
    func head(_ path: String) async throws -> Workplace.Reply {
        for _ in 0..<30 {
            let own = origin.fresh(path)
            try await store(own)
            let reply = try await place.curl("-I", url(own), through: nodes[1])
            #expect(reply.status == 200, "\(reply)")
            if isShared(reply) { return reply }
        }
        throw Missing(description: "HEAD of \(path) was never shared")
    }

    func isShared(_ reply: Workplace.Reply) -> Bool { reply.isHit && reply.cacheStatus.contains("detail=shared") }

    /// Has one node store a response and another one ask for it, with a new path each time, until it came from the first one: a look-up that takes
    /// longer than 20 ms is a miss, and machines may be busy.
    @discardableResult
    func share(
        _ path: String, from one: Int = 0, to other: Int = 1, _ words: [String] = [], value: String = "",
        asking: [String]? = nil
    ) async throws -> (path: String, reply: Workplace.Reply) {
        var last: Workplace.Reply?
        return try await eventually(
            "\(path) is shared: \(last.map { "\($0)" } ?? "") \(nodes[other].child.errors)", within: .seconds(90)
        ) {
            let own = origin.fresh(path)
            guard try await offer(own, on: one, words, value: value) else { return nil }
            let reply = try await get(own, nodes[other], asking ?? words, value: value)
            last = reply
            return isShared(reply) ? (own, reply) : nil
        }
    }

    /// Has a node store a response, and waits until it is in the Redis.
    func store(_ path: String, on index: Int = 0, _ words: [String] = [], value: String = "") async throws {
        let isThere = try await offer(path, on: index, words, value: value)
        #expect(isThere, "\(path): \(nodes[index].child.errors)")
    }

    /// Has a node store a response. Returns whether it is in the Redis.
    private func offer(_ path: String, on index: Int, _ words: [String], value: String) async throws -> Bool {
        let node = nodes[index]
        func counts() async throws -> (written: Int, lost: Int) {
            let figures = try await figures(of: node)
            func count(_ name: String) -> Int { figures[name] as? Int ?? 0 }
            return (count("writes"), count("writes_dropped") + count("writes_refused"))
        }
        let before = try await counts()
        try await get(path, node, words, value: value)
        return try await eventually("\(path) is written: \(node.child.errors)", within: .seconds(60)) {
            let now = try await counts()
            if now.written > before.written { return true }
            return now.lost > before.lost ? false : nil
        }
    }

    /// Purges on a node.
    /// - Returns: what the command prints.
    func purge(_ index: Int, _ words: [String]) async throws -> String {
        let node = nodes[index]
        let output = try await place.run(Larder.executable, ["purge"] + words + ["--config", node.configuration])
        let counts = output.out.firstMatch(of: /applied on ([0-9]+) of ([0-9]+) nodes/)
        #expect(output.status == (counts.map { $0.1 == $0.2 } == true ? 0 : 1), "\(output)")
        return output.out
    }
}

/// An origin whose bodies say what they are: `/LENGTH/NAME?KEYS` has a body of that length, with the path and a version that the test raises.
///
/// | key | means |
/// |---|---|
/// | `cc` | Cache-Control; `,` is written as it is |
/// | `status` | another status |
/// | `vary` | the name of a field. Its value is in the body |
/// | `etag` | there is an entity tag, and requests with it get 304 |
/// | `tag` | Surrogate-Key |
/// | `type` | Content-Type |
/// | `wait` | milliseconds before the head |
/// | `refuse` | unsafe requests are refused with 409, and change nothing |
/// | `hold` | the head comes when the test opens the gate |
/// | `pause` | milliseconds behind each 64 KiB |
final class FleetOrigin: Sendable {
    let url = Locked("")
    private let versions = Locked<[String: Int]>([:])
    private let serial = Locked(0)
    /// The heads of all requests.
    let heads = Locked<[String]>([])
    let gate = Gate()

    /// The paths that are answered with 503.
    let failing = Locked<Set<String>>([])

    func version(_ path: String) -> Int { versions.withLock { $0[path] ?? 1 } }
    func bump(_ path: String) { versions.withLock { $0[path, default: 1] += 1 } }

    /// A path with the same keys that nobody has asked for.
    func fresh(_ path: String) -> String {
        let number = serial.withLock {
            $0 += 1
            return $0
        }
        return path + (path.contains("?") ? "&" : "?") + "n=\(number)"
    }

    func asked(_ path: String) -> [String] { heads.withLock { $0.filter { $0.contains("\(path) HTTP/") } } }

    /// What a request is for. Nil: another origin's, or no request.
    func path(in head: String) -> String? {
        let words = head.prefix { !$0.isNewline }.split(separator: " ").map(String.init)
        guard words.count == 3 else { return nil }
        let base = url.withLock { $0 }
        if words[1].hasPrefix("/") { return words[1] }
        return words[1].hasPrefix(base) ? String(words[1].dropFirst(base.count)) : nil
    }

    static func body(_ path: String, _ version: Int, _ value: String = "") -> [UInt8] {
        let count = path.split(separator: "/").first.flatMap { Int($0) } ?? 0
        let line = Array("\(path) version=\(version) value=\(value)\n".utf8)
        var body: [UInt8] = []
        body.reserveCapacity(count + line.count)
        var number = 0
        while body.count < count {
            body += line
            body += Array("\(number)\n".utf8)
            number += 1
        }
        return Array(body.prefix(count))
    }

    func answer(_ head: String, _ connection: ScriptedConnection) {
        heads.withLock { $0.append(head) }
        let lines = head.components(separatedBy: "\r\n")
        let words = lines[0].split(separator: " ").map(String.init)
        guard let path = path(in: head) else { return }
        var keys: [String: String] = [:]
        for pair in path.split(separator: "?").dropFirst().joined().split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1).map(String.init)
            keys[parts[0]] = parts.count == 2 ? parts[1] : ""
        }
        func field(_ name: String) -> String {
            lines.first { $0.lowercased().hasPrefix(name.lowercased() + ": ") }
                .map { String($0.dropFirst(name.count + 2)) } ?? ""
        }
        guard words[0] == "GET" || words[0] == "HEAD" else {
            guard keys["refuse"] == nil else {
                connection.send("HTTP/1.1 409 Conflict\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
                return
            }
            bump(path)
            connection.send("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
            return
        }
        if keys["hold"] != nil { gate.wait() }
        if let wait = keys["wait"].flatMap({ UInt32($0) }) { usleep(wait * 1000) }
        guard !failing.withLock({ $0.contains(path) }) else {
            connection.send("HTTP/1.1 503 X\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            return
        }
        let version = version(path)
        let tag = "\"\(path.utf8.reduce(0) { ($0 &* 31 &+ Int($1)) & 0xFFFFFF })-\(version)\""
        var fields =
            "Date: \(ScriptedOrigin.now)\r\nConnection: close\r\nCache-Control: \(keys["cc"] ?? "max-age=600")\r\n"
        if keys["etag"] != nil { fields += "ETag: \(tag)\r\n" }
        if let name = keys["vary"] { fields += "Vary: \(name)\r\n" }
        if let tag = keys["tag"] { fields += "Surrogate-Key: \(tag)\r\n" }
        if keys["forges"] != nil {
            fields +=
                "Larder-Deny: reason=forged\r\nLarder-Peer: 1 forged\r\nProxy-Status: larder; error=forged, mine\r\n"
            fields += "Cache-Status: first; hit, larder; forged, Larder-2; forged\r\n"
        }
        fields += "Content-Type: \(keys["type"] ?? "text/plain")\r\n"
        if keys["etag"] != nil, field("If-None-Match") == tag {
            connection.send("HTTP/1.1 304 Not Modified\r\n\(fields)\r\n")
            return
        }
        let whole = FleetOrigin.body(path, version, keys["vary"].map(field) ?? "")
        var body = whole[...]
        var status = keys["status"] ?? "200"
        if keys["etag"] != nil, let range = field("Range").wholeMatch(of: /bytes=([0-9]+)-([0-9]*)/),
            let first = Int(range.1), first < whole.count, ["", tag].contains(field("If-Range"))
        {
            let last = min(Int(range.2) ?? whole.count - 1, whole.count - 1)
            body = whole[first...last]
            status = "206"
            fields += "Content-Range: bytes \(first)-\(last)/\(whole.count)\r\n"
        }
        connection.send("HTTP/1.1 \(status) X\r\n\(fields)Content-Length: \(body.count)\r\n\r\n")
        guard words[0] == "GET" else { return }
        guard let pause = keys["pause"].flatMap({ UInt32($0) }) else {
            connection.send(Array(body))
            return
        }
        while !body.isEmpty, connection.send(Array(body.prefix(65_536))) {
            body = body.dropFirst(65_536)
            usleep(pause * 1000)
        }
    }
}

extension ScriptedOrigin {
    /// The time as `Date` has it.
    static var now: String {
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(identifier: "GMT")
        format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return format.string(from: Date())
    }
}
