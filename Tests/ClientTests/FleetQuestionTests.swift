import EventLoop
import Foundation
import ProgramUnderTest
import Testing

/// What one node makes of the answers of another: refusals, late ones, and none.
@Suite("A fleet: what nodes answer each other", .enabled(if: Fleet.isInstalled, "packages curl, redis-server"))
struct FleetQuestionTests {
    static let working = "HTTP/1.1 102 Processing\r\nLarder-Peer: 2 working\r\n\r\n"

    /// Blocks until it is so, or a minute has passed.
    private static func waits(_ holds: () -> Bool) {
        _ = try? ProgramUnderTest.eventually("it is so", within: 60) { holds() ? true : nil }
    }

    @Test func `a refusal of the owner keeps the connection for the next question`() async throws {
        var open = Fleet.Plan()
        open.more = "workers: 1\n"
        var strict = open
        strict.access = """
            access:
              clients: [ 127.0.0.0/8 ]
              rules: [ allow: { client: [ 127.0.0.9 ], address: [ 127.0.0.1 ], port: [ 1-65535 ] } ]
            """
        try await Fleet.withPeers([open, strict]) { (fleet: Fleet) async throws -> Void in
            let node = fleet.nodes[0]
            // No connection to the origin is used again, as it closes each.
            try await eventually("the second of two questions used the connection of the first", within: .seconds(90)) {
                let refused = try await node.statistic("owners", "unanswered")
                let reused = try await node.statistic("origins", "reused")
                for _ in 0..<2 {
                    let path = try await fleet.fresh("/100/refused", ownedBy: 1)
                    try await fleet.get(path, node)
                    #expect(fleet.origin.asked(path).count == 1)
                }
                guard try await node.statistic("owners", "unanswered") == refused + 2 else { return false }
                return try await node.statistic("origins", "reused") > reused
            }
        }
    }

    @Test func `what a late node says of its work does not stop the origin`() async throws {
        try await Fleet.withScriptedNode { head, connection, origin in
            // The origin is asked as well before the node says a word. Then the node ends.
            guard let path = origin.path(in: head) else { return false }
            Self.waits { !origin.asked(path).isEmpty }
            connection.send(Self.working)
            return false
        } _: { (fleet: Fleet, node: ScriptedNode) async throws -> Void in
            let path = try await fleet.fresh("/100/late?hold=yes", ownedBy: 1)
            async let reply = fleet.get(path, fleet.nodes[0])
            try await eventually("the node has ended its connection", within: .seconds(60)) {
                try await fleet.nodes[0].statistic("owners", "broken") == 1
            }
            fleet.origin.gate.open()
            _ = try await reply
            #expect(node.heads.count == 1)
            #expect(fleet.origin.asked(path).count == 1, "\(fleet.origin.asked(path))")
        }
    }

    @Test func `to wait for a connection to a node is no failure of the node`() async throws {
        let released = Locked<Set<String>>([])
        var plan = Fleet.Plan()
        plan.more = "limits: { origin_connections_max: 1 }"
        try await Fleet.withScriptedNode(plan) { head, connection, origin in
            guard let path = origin.path(in: head), connection.send(Self.working) else { return false }
            if path.hasPrefix("/100/held") { Self.waits { released.withLock { $0.contains(path) } } }
            return connection.answer("2 fetched", FleetOrigin.body(path, 1))
        } _: { (fleet: Fleet, node: ScriptedNode) async throws -> Void in
            let larder = fleet.nodes[0]
            func figures() async throws -> [Int] {
                var figures: [Int] = []
                for name in ["hedges", "broken", "unreachable", "passed_over"] {
                    figures.append(try await larder.statistic("owners", name))
                }
                return figures
            }
            var before: [Int] = []
            // A node that was busy for 50 ms is not waited for, and then its connection is free.
            try await eventually("a question was answered late, and others waited", within: .seconds(120)) {
                before = try await figures()
                let held = try await fleet.fresh("/100/held", ownedBy: 1)
                async let reply = fleet.get(held, larder)
                try await eventually("the node is asked", within: .seconds(60)) {
                    node.heads.contains { $0.contains("\(held) HTTP/") }
                }
                var others: [String] = []
                for _ in 0..<4 {
                    others.append(try await fleet.fresh("/100/other", ownedBy: 1))
                    try await fleet.get(others[others.count - 1], larder)
                }
                let after = try await figures()
                _ = released.withLock { $0.insert(held) }
                _ = try await reply
                guard after[0] == before[0] else { return false }
                #expect(after == before, "hedges, broken, unreachable, passed_over")
                #expect(others.allSatisfy { fleet.origin.asked($0).count == 1 })
                return true
            }
            let asked = node.heads.count
            try await eventually("the node is asked again", within: .seconds(60)) {
                try await fleet.get(try await fleet.fresh("/100/later", ownedBy: 1), larder)
                return node.heads.count > asked
            }
        }
    }

    // MARK: bodies that break off

    /// A body breaks off behind its beginning. Where the node had the response stored, it is the node that fails; otherwise the origin may have.
    @Test(arguments: [("2 hit", true), ("2 fetched", false)])
    func `a body that breaks off counts against the node that had it`(_ row: (verdict: String, isFailure: Bool))
        async throws
    {
        try await Fleet.withScriptedNode { head, connection, origin in
            guard let path = origin.path(in: head) else { return false }
            connection.answer(row.verdict, Array(FleetOrigin.body(path, 1).prefix(2000)), of: 100_000)
            return false
        } _: { (fleet: Fleet, node: ScriptedNode) async throws -> Void in
            let larder = fleet.nodes[0]
            /// Three requests at once, so that their bodies break off within seconds even where the machine is busy.
            func askThree() async throws {
                try await withThrowingTaskGroup { group in
                    for _ in 0..<3 {
                        let path = try await fleet.fresh("/100000/broken", ownedBy: 1)
                        group.addTask {
                            let reply = try await fleet.place.curl(fleet.url(path), through: larder)
                            // A node that was busy for 50 ms is not waited for: the origin is asked as well.
                            guard fleet.origin.asked(path).isEmpty else { return }
                            let length = reply.body.count
                            #expect(reply.exit != 0 && length <= 2000, "\(reply.exit), \(length) bytes")
                            // What came of it is not served as the whole.
                            let again = try await fleet.place.curl(fleet.url(path), through: larder)
                            #expect(again.exit != 0 || again.body == FleetOrigin.body(path, 1), "\(again.heads)")
                        }
                    }
                    try await group.waitForAll()
                }
            }
            let warning = "the bodies that it has stored break off"
            try await eventually("three bodies have broken off", within: .seconds(150)) {
                try await askThree()
                guard try await larder.statistic("owners", "broken_off") >= 3 else { return false }
                // Three failures count together if they are within ten seconds.
                return !row.isFailure || larder.child.errors.contains(warning)
            }
            if row.isFailure {
                try await eventually("the node is passed over", within: .seconds(60)) {
                    try await askThree()
                    return try await larder.statistic("owners", "passed_over") > 0
                }
            } else {
                #expect(!larder.child.errors.contains(warning))
            }
        }
    }

    // MARK: another version

    /// A node asks itself what it has asked another one, in its own words and in those of another version.
    @Test func `a question of another version is refused, and the connection goes on`() async throws {
        let question = Locked<String?>(nil)
        try await Fleet.withScriptedNode { head, connection, origin in
            question.withLock { $0 = head }
            return connection.send(
                "HTTP/1.1 403 Forbidden\r\nLarder-Peer: 2 refused absent\r\nContent-Length: 0\r\n\r\n")
        } _: { (fleet: Fleet, _: ScriptedNode) async throws -> Void in
            let peers = try #require(fleet.peers)
            try await fleet.get(try await fleet.fresh("/100/asked", ownedBy: 1), fleet.nodes[0])
            let asked = try #require(question.withLock { $0 })
            let value = try #require(asked.firstMatch(of: /Larder-Peer: (2 [^\r]*)\r\n/)).1
            let values = ["3 \(value.dropFirst(2))", "1 \(value.dropFirst(2))", "2", "12 \(value.dropFirst(2))", "2 x"]
            let answers = try await blocking {
                let connection = try SecuredConnection.connect(peers.ports[0], of: peers)
                return (values + [String(value)]).map { other -> String in
                    connection.send(asked.replacingOccurrences(of: value, with: other))
                    let head = connection.readHead(behindInterim: true) ?? "nothing"
                    let length = head.firstMatch(of: /Content-Length: ([0-9]+)/).flatMap { Int($0.1) } ?? 0
                    return head + String(decoding: connection.readBody(length), as: UTF8.self)
                }
            }
            for (value, answer) in zip(values, answers) {
                let says = value.hasPrefix("2 ") ? "malformed" : "version"
                #expect(answer.hasPrefix("HTTP/1.1 403 "), "\(value): \(answer)")
                #expect(answer.contains("\r\nLarder-Peer: 2 refused \(says)\r\n"), "\(value): \(answer)")
            }
            #expect(answers.last?.hasPrefix("HTTP/1.1 200 ") == true, "\(answers.last ?? "")")
            #expect(try await fleet.nodes[0].statistic("owners", "refused_secret") == values.count)
            #expect(try await fleet.nodes[0].statistic("owners", "served") == 1)
        }
    }

    static let laterAnswers = [
        "HTTP/1.1 403 Forbidden\r\nLarder-Peer: 3 refused version\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 403 Forbidden\r\nLarder-Peer: 2 refused version\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nLarder-Peer: 3 hit\r\nCache-Control: max-age=60\r\nContent-Length: 5\r\n\r\nwrong",
        "HTTP/1.1 102 Processing\r\nLarder-Peer: 3 working\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong",
    ]

    @Test(arguments: laterAnswers)
    func `of a node that speaks another version nothing is used, and the log says why`(_ answer: String) async throws {
        try await Fleet.withScriptedNode { _, connection, _ in
            connection.send(answer)
        } _: { (fleet: Fleet, node: ScriptedNode) async throws -> Void in
            let larder = fleet.nodes[0]
            try await eventually("it is not asked for a while", within: .seconds(60)) {
                let path = try await fleet.fresh("/100/version", ownedBy: 1)
                try await fleet.get(path, larder)
                // Twice, if the refusal comes when the node is late and the origin is being asked already.
                #expect(!fleet.origin.asked(path).isEmpty)
                // On a busy machine it may be late at first, which has the same effect.
                guard try await larder.statistic("owners", "misconfigured") >= 1 else { return false }
                return try await larder.statistic("owners", "passed_over") > 0
            }
            try await eventually("the log says why", within: .seconds(60)) {
                try await fleet.get(try await fleet.fresh("/100/version", ownedBy: 1), larder)
                return larder.child.errors.contains("it speaks another version of the protocol between nodes")
            }
        }
    }
}
