import Access
import Foundation
import Limiting
import Message
import Passwords
import Rules
import Server
import Settings
import Testing

/// What `limits.rules` does to requests, hits of the short way among them.
@Suite("limits.rules: requests, places and rates of clients") struct LimitScenarios {
    private static func rule(
        _ name: String, per scope: LimitScope = .client, shares: String? = nil, _ terms: LimitTerms,
        _ set: (inout RuleConditions) -> Void = { _ in }
    ) -> LimitRule {
        var conditions = RuleConditions()
        set(&conditions)
        return LimitRule(name: name, conditions, per: scope, terms, shares: shares)
    }

    private func with(
        _ rules: LimitRule..., also change: @escaping (inout Configuration, Scenario.Files) throws -> Void = { _, _ in }
    ) -> (inout Configuration, Scenario.Files) throws -> Void {
        { configuration, files in
            configuration.limitPlan = LimitPlan(rules)
            configuration.access.connectPorts = [1...65535]
            try change(&configuration, files)
        }
    }

    private static let stored = "Cache-Control: max-age=600"
    /// None comes back while a test runs.
    private static func few(_ count: UInt64) -> LimitTerms { LimitTerms(requests: TokenRate(count, per: .day)) }

    // MARK: requests per time

    @Test func `hits and misses count alike, and the refusal says when to come again`() throws {
        try scenario(with(Self.rule("each", Self.few(5)))) { s in
            s.origin.expects("GET /a").replies(200, Self.stored, body: "a")
            let client = try s.client()
            for _ in 1...5 { #expect(try client.get("/a").text == "a") }
            #expect(s.count(.hitsByEarlierDecision) >= 1)
            for _ in 1...3 {
                let refused = try client.get("/a")
                #expect(refused.status == 429)
                let seconds = try #require(refused["Retry-After"].flatMap { Int($0) })
                #expect((17_000...17_280).contains(seconds), "a fifth of a day")
                #expect(
                    refused["Proxy-Status"]
                        == #"larder; error=http_request_denied; details="limit each for client 127.0.0.1: 5/d requests, at most 5 at once""#
                )
                #expect(refused.text.contains("limit each for client 127.0.0.1"))
                #expect(refused["Connection"] == nil, "the connection goes on")
            }
            let bucket = try s.stats()["limits"]?.elements?.first
            #expect(bucket?["subject"] == .string("client 127.0.0.1") && bucket?["refused"] == .integer(3))
        }
    }

    @Test func `who waits as long as Retry-After says is served`() throws {
        try scenario(with(Self.rule("each", LimitTerms(requests: TokenRate(1, per: .second))))) { s in
            s.origin.expects("GET /a").replies(200, Self.stored, body: "a")
            let client = try s.client()
            #expect(try client.get("/a").status == 200)
            let refused = try client.get("/a")
            #expect(refused.status == 429 && refused["Retry-After"] == "1")
            // What is refused takes no token, so asking again and again does not prolong the wait.
            try s.eventually("the token is back") { try client.get("/a").status == 200 }
        }
    }

    @Test func `each address has its own bucket, and all have one`() throws {
        try scenario(with(Self.rule("each", Self.few(2)), Self.rule("line", per: .all, Self.few(3)))) { s in
            s.origin.expects("GET /a").replies(200, Self.stored, body: "a")
            let (one, two) = (try s.client(), try s.client(from: 0x7F00_0002))
            #expect(try [one.get("/a").status, one.get("/a").status, one.get("/a").status] == [200, 200, 429])
            #expect(try two.get("/a").status == 200)
            // What the first one was refused was not counted for all.
            let shared = try two.get("/a")
            #expect(shared.status == 503 && shared["Retry-After"] != nil, "\(shared)")
            #expect(shared["Proxy-Status"]?.contains("limit line for all clients together") == true)
        }
    }

    @Test func `a limit of users follows the user from connection to connection`() throws {
        func credentials(_ name: String) -> String {
            "Proxy-Authorization: Basic \(Data("\(name):secret".utf8).base64EncodedString())"
        }
        try scenario(
            with(
                Self.rule("user", per: .user, Self.few(3)),
                also: { configuration, files in
                    let lines = try ["ann", "bob"].map { "\($0):\(try hash(password: Array("secret".utf8)))\n" }
                    configuration.access.authentication.basic.usersFile = try files.write("users", lines.joined())
                })
        ) { s in
            s.origin.expects("GET /a").replies(200, Self.stored, body: "a")
            let first = try s.client()
            for _ in 1...2 { #expect(try first.get("/a", credentials("ann")).status == 200) }
            let second = try s.client(from: 0x7F00_0002)
            #expect(try second.get("/a", credentials("ann")).status == 200)
            #expect(try second.get("/a", credentials("ann")).status == 429)
            #expect(try first.get("/a", credentials("ann")).status == 429, "the short way of the first connection, too")
            #expect(try first.get("/a", credentials("bob")).status == 200)
            #expect(try first.get("/a").status == 407, "who has no name is asked for it, and counted nowhere")
        }
    }

    @Test func `a rule for a path holds behind hits of other paths, and two rules may share a bucket`() throws {
        try scenario(
            with(
                Self.rule("big", Self.few(2)) { $0.paths = [PathPattern("/big/*")!] },
                Self.rule("huge", shares: "big", Self.few(2)) { $0.paths = [PathPattern("/huge/*")!] })
        ) { s in
            let client = try s.client()
            for path in ["/a", "/big/a", "/huge/a"] {
                s.origin.expects("GET \(path)").replies(200, Self.stored, body: "a")
            }
            for _ in 1...5 { #expect(try client.get("/a").status == 200) }
            #expect(s.count(.hitsByEarlierDecision) >= 1)
            #expect(try [client.get("/big/a").status, client.get("/a").status] == [200, 200])
            #expect(try [client.get("/huge/a").status, client.get("/a").status] == [200, 200])
            for path in ["/big/a", "/huge/a"] {
                #expect(try client.get(path).status == 429, "\(path)")
                #expect(try client.get("/a").status == 200)
            }
        }
    }

    @Test func `requests that the rules deny count as well`() throws {
        try scenario(
            with(
                Self.rule("each", Self.few(2)),
                also: { configuration, _ in
                    configuration.access.rules = [AccessRule(effect: .deny(reason: nil), number: 1)]
                })
        ) { s in
            let client = try s.client()
            #expect(
                try [client.get("/a").status, client.get("/a").status, client.get("/a").status] == [403, 403, 429])
        }
    }

    @Test func `CONNECT counts, and is refused like anything else`() throws {
        try scenario(with(Self.rule("each", Self.few(1)))) { s in
            let tunnel = try s.tunnel(to: s.origin.authority)
            let refused = try s.client().request("CONNECT", s.origin.authority)
            #expect(refused.status == 429 && refused["Retry-After"] != nil)
            withExtendedLifetime(tunnel) {}
        }
    }

    @Test func `a reload takes limits away and brings others, on connections that are open`() throws {
        try scenario(with(Self.rule("each", Self.few(2)))) { s in
            s.origin.expects("GET /a").replies(200, Self.stored, body: "a")
            let client = try s.client()
            for _ in 1...2 { #expect(try client.get("/a").status == 200) }
            #expect(try client.get("/a").status == 429)
            try s.adopt { _, _ in }
            try s.eventually("the limit is gone") { try client.get("/a").status == 200 }
            for _ in 1...5 { #expect(try client.get("/a").status == 200) }
            try s.adopt(with(Self.rule("new", Self.few(1))))
            try s.eventually("the new limit holds") { try client.get("/a").status == 429 }
        }
    }

    // MARK: places

    @Test func `a place is free again when the answer ends, and when the client leaves`() throws {
        try scenario(with(Self.rule("each", LimitTerms(concurrent: 2)))) { s in
            let (asked, go) = (Gate("the origin was asked"), Gate("the origin may answer"))
            let askedAgain = Gate("the origin was asked for what nobody waits for")
            s.origin.expects("GET /slow").opens(asked).waits(for: go).replies(200, body: "slow")
            s.origin.expects("GET /leaves").opens(askedAgain).hangs()
            let (one, two, three) = (try s.client(), try s.client(), try s.client())
            try one.ask("GET", "/slow")
            try asked.wait()
            try two.ask("GET", "/leaves")
            try askedAgain.wait()
            try s.eventually("two are under way") { try underWay(s) == 2 }
            let refused = try three.get("/a")
            #expect(refused.status == 429 && refused["Retry-After"] == "1")
            #expect(refused.cacheStatus.contains("detail=concurrency-reached"))
            two.wire.reset()
            try s.eventually("one is under way") { try underWay(s) == 1 }
            s.origin.expects("GET /a").replies(200, body: "a")
            #expect(try three.get("/a").text == "a")
            go.open()
            #expect(try one.response().text == "slow")
            try s.eventually("none is under way") { try underWay(s) == 0 }
        }
    }

    private func underWay(_ s: Scenario) throws -> Int64 {
        let counts = try s.stats()["limits"]?.elements?.compactMap { $0["under_way"]?.integer } ?? []
        return counts.reduce(0, +)
    }

    @Test func `a tunnel has its place until it ends`() throws {
        try scenario(with(Self.rule("each", LimitTerms(concurrent: 1)))) { s in
            let tunnel = try s.tunnel(to: s.origin.authority)
            #expect(try s.client().request("CONNECT", s.origin.authority).status == 429)
            #expect(try s.client().get("/a").status == 429)
            tunnel.wire.reset()
            try s.eventually("the tunnel has ended") { try underWay(s) == 0 }
            s.origin.expects("GET /a").replies(200, body: "a")
            #expect(try s.client().get("/a").status == 200)
        }
    }

    @Test func `a hit that its client reads slowly has a place`() throws {
        try scenario(with(Self.rule("each", LimitTerms(concurrent: 1)))) { s in
            let body = String(repeating: "x", count: 8 << 20)
            s.origin.expects("GET /a").replies(200, Self.stored, body: body)
            let slow = try s.client(receiveBuffer: 4096)
            for _ in 1...2 { #expect(try slow.get("/a").body.count == body.utf8.count) }
            let before = s.count(.hitsByEarlierDecision)
            try slow.ask("GET", "/a")
            _ = try slow.head()
            try s.expect(.hitsByEarlierDecision, before + 1)
            try s.eventually("the hit has its place") { try underWay(s) == 1 }
            #expect(try s.client().get("/a").status == 429)
            slow.wire.reset()
            try s.eventually("the place is free") { try underWay(s) == 0 }
        }
    }

    // MARK: connections

    @Test func `connections beyond the limit are closed at once, those of others are not`() throws {
        try scenario(with(Self.rule("each", LimitTerms(connections: 2)))) { s in
            s.origin.expects("GET /a").replies(200, Self.stored, body: "a")
            let (one, two) = (try s.client(), try s.client())
            for client in [one, two] { #expect(try client.get("/a").text == "a") }
            try s.client().expectClosed()
            #expect(try s.client(from: 0x7F00_0002).get("/a").text == "a")
            one.wire.reset()
            try s.eventually("there is room") {
                do { return try s.client().get("/a").text == "a" } catch { return false }
            }
            #expect(try s.stat(.closes, "too-many-of-client") >= 1)
        }
    }

    @Test func `behind a load balancer they are those of the client that it names`() throws {
        func header(_ client: String) -> String { "PROXY TCP4 \(client) 192.0.2.1 1234 80\r\n" }
        try scenario(
            with(
                Self.rule("each", LimitTerms(connections: 1)),
                also: { configuration, _ in
                    configuration.trustLoopback()
                    configuration.access.namedClients = [try #require(AddressRange("192.0.2.0/24"))]
                })
        ) { s in
            s.origin.expects("GET /a").replies(200, Self.stored, body: "a")
            let (one, two, third) = (try s.client(), try s.client(), try s.client())
            try one.send(header("192.0.2.7"))
            #expect(try one.get("/a").text == "a")
            try two.send(header("192.0.2.8"))
            #expect(try two.get("/a").text == "a")
            try third.send(header("192.0.2.7"))
            try third.expectClosed()
            try s.eventually("it is counted") { try s.stat(.closes, "too-many-of-client") == 1 }
            one.wire.reset()
            try s.eventually("there is room") {
                let again = try s.client()
                try again.send(header("192.0.2.7"))
                do { return try again.get("/a").text == "a" } catch { return false }
            }
        }
    }

    @Test func `a connection that became a tunnel still counts`() throws {
        try scenario(with(Self.rule("each", LimitTerms(connections: 1)))) { s in
            let tunnel = try s.tunnel(to: s.origin.authority)
            try s.client().expectClosed()
            tunnel.wire.reset()
            s.origin.expects("GET /a").replies(200, Self.stored, body: "a")
            try s.eventually("there is room") {
                do { return try s.client().get("/a").text == "a" } catch { return false }
            }
        }
    }

    // MARK: rates towards clients

    /// One MB per second: 300 kB take 0.3 s, of which a flow may be 0.1 s ahead, and one piece of 50 kB goes out before its time is over. The
    /// clock of a worker stands still within a turn, so some time is left over.
    private static let rate = LimitTerms(bandwidth: 1_000_000)
    private static let body = String(repeating: "0123456789", count: 30_000)
    private static let timeMin = Duration.milliseconds(120)

    private func timed<Result>(_ work: () throws -> Result) rethrows -> (Result, Duration) {
        let clock = ContinuousClock()
        let start = clock.now
        let result = try work()
        return (result, clock.now - start)
    }

    @Test func `a hit and a miss come at the rate`() throws {
        try scenario(with(Self.rule("each", Self.rate))) { s in
            s.origin.expects("GET /a").replies(200, Self.stored, body: Self.body)
            let client = try s.client()
            for _ in 1...3 {
                let (answer, time) = try timed { try client.get("/a") }
                #expect(answer.text == Self.body && time >= Self.timeMin, "\(time)")
            }
            s.origin.expects("GET /chunks").sends(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n493e0\r\n\(Self.body)\r\n0\r\n\r\n")
            let (answer, time) = try timed { try client.get("/chunks") }
            #expect(answer.text == Self.body && time >= Self.timeMin, "\(time)")
            let bucket = try s.stats()["limits"]?.elements?.first
            #expect(bucket?["bytes"] == .integer(1_200_000))
        }
    }

    @Test func `short hits pay for their bytes`() throws {
        try scenario(with(Self.rule("each", Self.rate))) { s in
            let piece = String(repeating: "x", count: 10_000)
            s.origin.expects("GET /a").replies(200, Self.stored, body: piece)
            let client = try s.client()
            let (_, time) = try timed { () throws -> Void in
                for _ in 1...30 { #expect(try client.get("/a").text == piece) }
            }
            #expect(time >= Self.timeMin, "\(time)")
            #expect(s.count(.hitsByEarlierDecision) > 0)
        }
    }

    @Test func `two clients of a shared rate have half of it each`() throws {
        try scenario(with(Self.rule("line", per: .all, Self.rate))) { s in
            s.origin.expects("GET /a").replies(200, Self.stored, body: Self.body)
            let (one, two) = (try s.client(), try s.client(from: 0x7F00_0002))
            _ = try one.get("/a")
            let (_, time) = try timed {
                try one.ask("GET", "/a")
                try two.ask("GET", "/a")
                #expect(try one.response().text == Self.body && two.response().text == Self.body)
            }
            #expect(time >= .milliseconds(400), "\(time)")
        }
    }

    @Test func `a tunnel comes at the rate, and its bytes count when it ends`() throws {
        try scenario(with(Self.rule("each", Self.rate))) { s in
            let client = try s.tunnel(to: s.origin.authority)
            s.origin.expects("GET /a").replies(200, body: Self.body)
            let (answer, time) = try timed {
                try client.send("GET /a HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n")
                return try client.response()
            }
            #expect(answer.text == Self.body && time >= Self.timeMin, "\(time)")
        }
    }

    @Test func `a rate that is lower than the time limits suggest is no time-out`() throws {
        try scenario(
            with(
                Self.rule("each", LimitTerms(bandwidth: 1 << 10)),
                also: { configuration, _ in
                    configuration.timeouts.idle = .milliseconds(100)
                    configuration.timeouts.clientIdle = .milliseconds(100)
                })
        ) { s in
            s.origin.expects("GET /a").replies(200, Self.stored, body: String(repeating: "x", count: 1000))
            let client = try s.client()
            #expect(try client.get("/a").body.count == 1000)
            try s.expect(.timeouts, 0)
        }
    }

    @Test func `a client that leaves while its answer is held back leaves nothing behind`() throws {
        try scenario(with(Self.rule("each", LimitTerms(concurrent: 5, bandwidth: 1 << 10)))) { s in
            s.origin.expects("GET /a").replies(200, Self.stored, body: Self.body)
            let client = try s.client()
            try client.ask("GET", "/a")
            _ = try client.head()
            client.wire.reset()
            try s.eventually("the place is free") { try underWay(s) == 0 }
        }
    }

    // MARK: figures

    @Test func `each rule counts what it refuses and delays, by its figures`() throws {
        let terms: [(name: String, terms: LimitTerms)] = [
            ("rate", Self.few(1)), ("places", LimitTerms(concurrent: 1)), ("size", LimitTerms(requestBody: 3)),
            ("spent", LimitTerms(budget: ByteBudget(1, every: .day))), ("line", LimitTerms(bandwidth: 1_000_000)),
        ]
        let rules = terms.map { name, terms in
            Self.rule(name, terms) { $0.paths = [PathPattern("/\(name)*")!] }
        }
        try scenario({ configuration, files in
            configuration.limitPlan = LimitPlan(
                rules + [
                    Self.rule("unused", Self.few(9)) { $0.paths = [PathPattern("/unused")!] },
                    Self.rule("shared", shares: "rate", Self.few(1)) { $0.paths = [PathPattern("/shared")!] },
                    Self.rule("doors", LimitTerms(connections: 3)),
                ])
        }) { s in
            let client = try s.client()
            for path in ["/rate", "/spent"] {
                s.origin.expects("GET \(path)").replies(200, Self.stored, body: "abc")
                #expect(try [client.get(path).status, client.get(path).status] == [200, 429], "\(path)")
            }
            #expect(try client.get("/shared").status == 429)
            #expect(try s.client().request("POST", "/size", body: "four").status == 413)
            s.origin.expects("GET /line").replies(200, Self.stored, body: Self.body)
            #expect(try client.get("/line").text == Self.body)
            let (asked, go) = (Gate("asked"), Gate("go"))
            s.origin.expects("GET /places").opens(asked).waits(for: go).replies(200, body: "abc")
            let other = try s.client()
            try other.ask("GET", "/places")
            try asked.wait()
            #expect(try client.get("/places/more").status == 429)
            try s.eventually("the connection that was closed is gone") {
                try rule("doors", s, "connections") == 2
            }
            let third = try s.client()
            #expect(try third.get("/rate").status == 429)
            try s.client().expectClosed()

            #expect(try rule("places", s, "under_way") == 1)
            go.open()
            #expect(try other.response().text == "abc")
            for (name, member, value) in [
                ("rate", "refused_requests", 3), ("rate", "buckets", 1), ("spent", "refused_budget", 1),
                ("spent", "bytes", 3), ("size", "refused_size", 1), ("line", "delayed", 1),
                ("line", "bytes", Int64(Self.body.utf8.count)), ("places", "refused_concurrent", 1),
                ("doors", "refused_connections", 1), ("doors", "connections", 3), ("unused", "buckets", 0),
            ] as [(String, String, Int64)] {
                #expect(try rule(name, s, member) == value, "\(name): \(member)")
            }
            #expect(try s.stats()["limit_rules"]?.elements?.count == 7, "a rule with the buckets of another has none")
            withExtendedLifetime(third) {}
        }
    }

    /// A member of the figures of a rule.
    private func rule(_ name: String, _ s: Scenario, _ member: String) throws -> Int64? {
        try s.stats()["limit_rules"]?.elements?.first { $0["name"]?.text == name }?[member]?.integer
    }

    // MARK: explain

    @Test func `explain shows the limits of a request and their state`() throws {
        try scenario(with(Self.rule("each", LimitTerms(requests: TokenRate(2, per: .day), concurrent: 3)))) { s in
            s.origin.expects("GET /a").replies(200, Self.stored, body: "a")
            func explained() throws -> (Explanation.Decision, String?) {
                let answer = try s.proxy.explain(ExplainQuestion(target: s.origin.url("/a")))
                return (answer.decision, answer.sections.first { $0.name == "limits" }?.lines.first?.value)
            }
            #expect(
                try explained().1 == "client 127.0.0.1: 2 of 2 requests left, 2/d come back, 0 of 3 under way")
            let client = try s.client()
            for _ in 1...2 { try client.get("/a") }
            let (decision, text) = try explained()
            #expect(decision == .refuse && text?.contains("0 of 2 requests left") == true, "\(text ?? "")")
        }
    }
}
