import Foundation
import Limiting
import Message
import Rules
import Server
import Settings
import Testing

/// `budget` of `limits.rules`, and `limits.budgets_file`. Weeks, because no test runs across the end of one unless it runs on a Sunday night.
@Suite("limits.rules: budgets of bytes") struct BudgetScenarios {
    private func with(
        _ budget: ByteBudget, per scope: LimitScope = .client, file: String? = nil
    ) -> (inout Configuration, Scenario.Files) throws -> Void {
        { configuration, files in
            configuration.limitPlan = LimitPlan([
                LimitRule(name: "week", RuleConditions(), per: scope, LimitTerms(budget: budget))
            ])
            configuration.budgetsFile = file.map { files.directory.appendingPathComponent($0).path }
            configuration.access.connectPorts = [1...65535]
        }
    }

    private static let stored = "Cache-Control: max-age=600"

    @Test func `hits and misses use a budget, and then it says when the window ends`() throws {
        try scenario(with(ByteBudget(25, every: .week))) { s in
            s.origin.expects("GET /a").replies(200, Self.stored, body: "0123456789")
            let client = try s.client()
            for _ in 1...3 { #expect(try client.get("/a").text == "0123456789") }
            let refused = try client.get("/a")
            #expect(refused.status == 429 && refused.cacheStatus.contains("detail=budget-spent"), "\(refused)")
            let seconds = try #require(refused["Retry-After"].flatMap { Int($0) })
            #expect((1...604_800).contains(seconds))
            #expect(
                refused["Proxy-Status"]?.contains("limit week for client 127.0.0.1: 25 bytes in one week") == true)
            #expect(try s.stats()["limits"]?.elements?.first?["spent"] == .integer(30))
            #expect(try s.client(from: 0x7F00_0002).get("/a").status == 200)
        }
    }

    @Test func `a response under way goes on when the budget ends`() throws {
        try scenario(with(ByteBudget(10, every: .week))) { s in
            let body = String(repeating: "x", count: 1_000_000)
            s.origin.expects("GET /a").replies(200, body: body)
            let client = try s.client()
            let answer = try client.get("/a")
            #expect(answer.isWhole && answer.body.count == body.utf8.count)
            #expect(try client.get("/a").status == 429)
        }
    }

    @Test func `uploads count where the budget says so`() throws {
        try scenario(with(ByteBudget(10, every: .week, counts: .upload))) { s in
            s.origin.expects("GET /a").replies(200, body: String(repeating: "x", count: 100))
            s.origin.expects("POST /b").replies(200, body: "done")
            let client = try s.client()
            #expect(try client.get("/a").status == 200)
            #expect(try client.request("POST", "/b", body: "0123456789").status == 200)
            #expect(try client.get("/a").status == 429)
        }
    }

    @Test func `a tunnel ends when the budget does`() throws {
        try scenario(with(ByteBudget(10, every: .week))) { s in
            let client = try s.tunnel(to: s.origin.authority)
            s.origin.expects("GET /a").replies(200, body: String(repeating: "x", count: 100))
            try client.send("GET /a HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n")
            _ = try client.response()
            try client.expectClosed()
            #expect(try s.client().get("/a").status == 429)
            let lines = try s.logLines()
            #expect(lines.contains { $0.contains("CONNECT") && $0.contains("budget-spent") }, "\(lines)")
        }
    }

    @Test func `a budget that all share is a 503`() throws {
        try scenario(with(ByteBudget(1, every: .week), per: .all)) { s in
            s.origin.expects("GET /a").replies(200, body: "a")
            // Bytes are counted when they have been sent: before the connection's next request, but not before another's.
            let (one, two) = (try s.client(), try s.client(from: 0x7F00_0002))
            #expect(try one.get("/a").status == 200)
            #expect(try one.get("/a").status == 503)
            #expect(try two.get("/a").status == 503)
        }
    }

    @Test func `a restart keeps what was used`() throws {
        try scenario(with(ByteBudget(10, every: .week), file: "budgets")) { s in
            s.origin.expects("GET /a").replies(200, body: "0123456789")
            let client = try s.client()
            #expect(try client.get("/a").status == 200)
            #expect(try client.get("/a").status == 429)
            try s.restart()
            #expect(try s.client().get("/a").status == 429)
            let path = s.directory.appendingPathComponent("budgets").path
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
            #expect(mode == 0o600)
            #expect(try String(contentsOfFile: path, encoding: .utf8).contains("week\tclient\t127.0.0.1\t"))
        }
    }

    @Test(arguments: ["", "larder budgets 1\nweek\tclient\t127.0", "\u{0}\u{1}"])
    func `a damaged file costs what it has, and nothing else`(_ text: String) throws {
        try scenario(with(ByteBudget(10, every: .week), file: "budgets")) { s in
            s.origin.expects("GET /a").replies(200, body: "0123456789")
            #expect(try s.client().get("/a").status == 200)
            try s.restart {
                try Data(text.utf8).write(to: s.directory.appendingPathComponent("budgets"))
            }
            s.origin.expects("GET /a").replies(200, body: "0123456789")
            #expect(try s.client().get("/a").status == 200)
            // The budget begins anew, and is kept again.
            try s.restart()
            #expect(try s.client().get("/a").status == 429)
        }
    }

    @Test func `a window that has ended is over`() throws {
        try scenario(with(ByteBudget(10, every: .hour), file: "budgets")) { s in
            try s.restart {
                let past = Int(Date().timeIntervalSince1970) - 10
                try Data("larder budgets 1\nweek\tclient\t127.0.0.1\t\(past)\t999\nend 1\n".utf8)
                    .write(to: s.directory.appendingPathComponent("budgets"))
            }
            s.origin.expects("GET /a").replies(200, body: "a")
            #expect(try s.client().get("/a").status == 200)
        }
    }

    @Test func `a budget in all ends for good, survives a restart, and is reset by its name`() throws {
        try scenario(with(ByteBudget(10, every: .total), file: "budgets")) { s in
            for _ in 1...4 { s.origin.expects("GET /a").replies(200, body: "0123456789") }
            // On one connection: bytes are counted when they have been sent.
            let first = try s.client()
            #expect(try first.get("/a").status == 200)
            let refused = try first.get("/a")
            #expect(refused.status == 429 && refused["Retry-After"] == nil, "\(refused)")
            #expect(
                refused["Proxy-Status"]?.contains("limit week for client 127.0.0.1: 10 bytes in all") == true,
                "\(refused)")
            try s.restart()
            #expect(try s.client().get("/a").status == 429)
            let (own, other) = (
                LimitSubject(client: IPAddress(v4: 0x7F00_0001)), LimitSubject(client: IPAddress(v4: 0x7F00_0002))
            )
            #expect(try s.proxy.resetBudgets(of: "week", other).count == 0)
            #expect(try s.client().get("/a").status == 429)
            let neighbour = try s.client(from: 0x7F00_0002)
            #expect(try neighbour.get("/a").status == 200)
            #expect(try neighbour.get("/a").status == 429)
            #expect(try s.proxy.resetBudgets(of: "week", own).count == 1)
            let again = try s.client()
            #expect(try again.get("/a").status == 200)
            #expect(try again.get("/a").status == 429)
            #expect(try s.proxy.resetBudgets(of: "week", nil).count == 2)
            // What was reset stays so.
            try s.restart()
            #expect(try s.client().get("/a").status == 200)
        }
    }

    @Test func `only a budget that is there is reset`() throws {
        try scenario({ configuration, _ in
            configuration.limitPlan = LimitPlan([
                LimitRule(name: "each", per: .user, LimitTerms(budget: ByteBudget(10, every: .day))),
                LimitRule(name: "others", shares: "each"),
                LimitRule(name: "rate", RuleConditions(), LimitTerms(requests: TokenRate(1, per: .second))),
            ])
        }) { s in
            #expect(throws: Proxy.BudgetRefusal.unknownRule(withBudget: ["each"])) {
                try s.proxy.resetBudgets(of: "rate", nil)
            }
            #expect(throws: Proxy.BudgetRefusal.unknownRule(withBudget: ["each"])) {
                try s.proxy.resetBudgets(of: "none", nil)
            }
            #expect(throws: Proxy.BudgetRefusal.shares("each")) { try s.proxy.resetBudgets(of: "others", nil) }
            #expect(throws: Proxy.BudgetRefusal.otherScope(.user)) { try s.proxy.resetBudgets(of: "each", .group("a")) }
            let unused = try s.proxy.resetBudgets(of: "each", .user("ann"))
            #expect(unused.count == 0)
        }
    }

    @Test func `a budget whose windows a reload changes begins anew`() throws {
        try scenario(with(ByteBudget(10, every: .total))) { s in
            for _ in 1...3 { s.origin.expects("GET /a").replies(200, body: "0123456789") }
            let client = try s.client()
            #expect(try client.get("/a").status == 200)
            #expect(try client.get("/a").status == 429)
            try s.adopt(with(ByteBudget(10, every: .week)))
            #expect(try client.get("/a").status == 200)
            #expect(try client.get("/a").status == 429)
            try s.adopt(with(ByteBudget(10, every: .total)))
            #expect(try client.get("/a").status == 200)
        }
    }
}
