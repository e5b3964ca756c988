import Access
import Foundation
import Message
import Rules
import Server
import Settings
import Testing

@Suite("Access: conditions on the details of a request, reports and redirects")
struct RuleScenarios {
    private static func access(_ configuration: inout Configuration, _ rules: [AccessRule]) {
        configuration.access.rules = rules.enumerated().map { index, rule in
            var rule = rule
            rule.number = index + 1
            return rule
        }
        configuration.access.writtenDefault = .allow
    }

    private static func rule(
        _ effect: AccessRule.Effect = .deny(reason: nil), _ set: (inout RuleConditions) -> Void
    ) -> AccessRule {
        var conditions = RuleConditions()
        set(&conditions)
        return AccessRule(effect: effect, conditions: conditions, number: 1)
    }

    static let rows: [(set: @Sendable (inout DetailConditions) -> Void, denied: [String], allowed: [String])] = [
        (
            { $0.queries = ["token"] }, ["GET /a?token=1", "GET /a?x&%74oken=1", "GET /a?%2574oken"], ["GET /a?x=token"]
        ),
        (
            { $0.userAgents = [TextPattern("badbot")].compactMap(\.self) },
            ["GET /a|User-Agent: my BadBot/1"], ["GET /a|User-Agent: other", "GET /a"]
        ),
        (
            { $0.contentTypes = [MediaTypePattern("application/json")].compactMap(\.self) },
            ["POST /a|Content-Type: application/json|Content-Length: 0"],
            ["POST /a|Content-Type: text/plain|Content-Length: 0"]
        ),
        (
            { $0.bodyLength = 5...UInt64.max },
            ["POST /a|Content-Length: 5||12345", "POST /a|Transfer-Encoding: chunked||0"],
            ["POST /a|Content-Length: 4||1234", "GET /a"]
        ),
        ({ $0.credentials = [.client] }, ["GET /a|Authorization: Basic YTpi"], ["GET /a"]),
        ({ $0.upgrades = ["websocket"] }, ["GET /a|Connection: upgrade|Upgrade: websocket"], ["GET /a"]),
    ]
    @Test(arguments: rows.indices) func `a deny rule with a condition on a detail`(_ index: Int) throws {
        let row = Self.rows[index]
        try scenario({ configuration, _ in
            Self.access(&configuration, [Self.rule { row.set(&$0.details) }])
        }) { s in
            func ask(_ text: String) throws -> Int {
                let parts = text.components(separatedBy: "||")
                let lines = parts[0].components(separatedBy: "|")
                let words = lines[0].split(separator: " ")
                let client = try s.client()
                let fields = (lines.dropFirst() + ["Host: 127.0.0.1:\(s.origin.port)"]).joined(separator: "\r\n")
                let body = parts.count > 1 ? (parts[1] == "0" ? "0\r\n\r\n" : parts[1]) : ""
                try client.send(
                    "\(words[0]) http://127.0.0.1:\(s.origin.port)\(words[1]) HTTP/1.1\r\n\(fields)\r\n\r\n\(body)")
                return try client.response(to: String(words[0])).status
            }
            for request in row.denied {
                let status = try ask(request)
                #expect(status == 403, "\(request)")
            }
            for request in row.allowed {
                let words = request.components(separatedBy: "|")[0]
                s.origin.expects(words).replies(200, "Cache-Control: no-store")
                let status = try ask(request)
                #expect(status == 200, "\(request)")
            }
        }
    }

    @Test func `hits are asked about one by one where a detail decides`() throws {
        try scenario({ configuration, _ in
            Self.access(&configuration, [Self.rule { $0.details.queries = ["token"] }])
        }) { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=600")
            let client = try s.client()
            for _ in 0..<3 { #expect(try client.get("/a").status == 200) }
            #expect(try client.get("/a?token=1").status == 403)
            #expect(try client.get("/a").status == 200)
            #expect(s.count(.hitsByEarlierDecision) == 0)
        }
    }

    @Test func `a rule that only reports is counted, and decides nothing`() throws {
        try scenario({ configuration, _ in
            var report = Self.rule { $0.paths = [PathPattern("/a")].compactMap(\.self) }
            report.isReport = true
            Self.access(&configuration, [report])
        }) { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=600")
            s.origin.expects("GET /b").replies(200, "Cache-Control: max-age=600")
            let client = try s.client()
            for _ in 0..<3 { #expect(try client.get("/a").status == 200) }
            #expect(try client.get("/b").status == 200)
            #expect(s.count(.reported) == 3)
        }
    }

    @Test func `a redirect rule sends reads to its page, and denies the rest`() throws {
        try scenario({ configuration, _ in
            Self.access(&configuration, [Self.rule(.redirect(to: "https://help.example/why?x=1")) { _ in }])
        }) { s in
            let client = try s.client()
            for method in ["GET", "HEAD"] {
                let answer = try client.request(method, "/a")
                #expect(answer.status == 302 && answer["Location"] == "https://help.example/why?x=1", "\(answer)")
                #expect(answer["Cache-Control"] == "no-store")
                #expect(answer["Larder-Deny"]?.hasPrefix("reason=rule; rule=1") == true, "\(answer)")
            }
            let posted = try client.request("POST", "/a", body: "x")
            #expect(posted.status == 403 && posted["Location"] == nil)
            #expect(posted.text.contains("https://help.example/why?x=1"), "\(posted)")
            let other = try s.client()
            try other.ask("CONNECT", "a.example:443")
            let tunnel = try other.response(to: "CONNECT")
            #expect(tunnel.status == 403 && tunnel.head.startLine.contains("https://help.example/why?x=1"), "\(tunnel)")
            #expect(s.count(.refused) == 4)
        }
    }

    @Test func `a verdict with a time is asked for each request`() throws {
        try scenario({ configuration, _ in
            let always = TimeWindow("00:00-24:00")
            Self.access(&configuration, [Self.rule(.allow) { $0.details.times = [always].compactMap(\.self) }])
            configuration.access.writtenDefault = .deny
        }) { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=600")
            let client = try s.client()
            for _ in 0..<3 { #expect(try client.get("/a").status == 200) }
            #expect(s.count(.hits) == 2 && s.count(.hitsByEarlierDecision) == 0)
        }
    }
}
