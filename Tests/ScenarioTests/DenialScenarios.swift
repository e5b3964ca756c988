import Access
import Foundation
import Message
import Passwords
import Server
import Settings
import Testing
import Transaction

@Suite("A denial says why")
struct DenialScenarios {
    /// Allows GET and HEAD at the origin; rule 2 denies everything else.
    private func withRules(
        reason: String? = "not on the list",
        _ configure: (inout Configuration, Scenario.Files) throws -> Void = { _, _ in },
        _ play: (Scenario) throws -> Void
    ) throws {
        try scenario(
            { configuration, files in
                var origin = AccessRule.Conditions()
                origin.hosts = [.address(IPAddress(v4: 0x7F00_0001))]
                origin.ports = [files.origin.port...files.origin.port]
                origin.methods = ["GET", "HEAD"]
                configuration.access.rules = [
                    AccessRule(effect: .allow, conditions: origin, number: 1),
                    AccessRule(effect: .deny(reason: reason), number: 2),
                ]
                try configure(&configuration, files)
            }, play)
    }

    private static let field =
        "reason=method-not-allowed; rule=2; nearest=1; hint=\"rule 1 allows this host, but only with GET, HEAD\""

    @Test(arguments: ["POST", "DELETE", "OPTIONS"], ["1.1", "1.0"])
    func `fields and page say the rule, the reason and what the nearest rule allows`(
        _ method: String, _ version: String
    ) throws {
        try withRules { s in
            let client = try s.client()
            try client.ask(method, "/a", ["Host: \(s.origin.authority)"], body: nil, version: version)
            let answer = try client.response(to: method)
            #expect(answer.head.startLine == "HTTP/1.1 403 Forbidden")
            #expect(answer["Larder-Deny"] == Self.field)
            #expect(
                answer["Proxy-Status"] == "larder; error=http_request_denied; details=\"not on the list\"")
            #expect(answer["Cache-Control"] == "no-store" && answer["Content-Length"] == "\(answer.body.count)")
            #expect(
                answer.text == """
                    larder: 403 Forbidden: access-denied
                    \(Refusal.accessDenied.explanation)
                    rule 2: not on the list
                    rule 1 allows this host, but only with GET, HEAD
                    \(s.origin.url("/a"))
                    Request ID: \(answer.requestID ?? "none")

                    """)
            #expect(s.origin.connectionCount == 0)
            #expect(try s.stat(.denials, "method-not-allowed") == 1)
            #expect(try s.stat(.refusals, "access-denied") == 1)
            let lines = try s.logLines()
            #expect(
                lines.contains {
                    $0.contains("\"reason\":\"access-denied\",\"denial\":\"method-not-allowed\",\"rule\":2")
                }, "\(lines)")
        }
    }

    @Test func `HEAD gets the head of the page alone, and the connection goes on`() throws {
        try withRules { s in
            s.origin.expects("GET /a").replies(200, body: "next")
            let client = try s.client()
            try client.ask("HEAD", "http://h.example/<a>")
            let answer = try client.response(to: "HEAD")
            #expect(answer.status == 403)
            #expect(answer["Larder-Deny"]?.hasPrefix("reason=host-not-allowed; rule=2; hint=") == true, "\(answer)")
            #expect(Int(answer["Content-Length"] ?? "") ?? 0 > 0)
            #expect(try client.get("/a").text == "next")
        }
    }

    @Test func `CONNECT says why in its reason phrase`() throws {
        try withRules(reason: nil) { s in
            let answer = try s.client().request("CONNECT", s.origin.authority)
            #expect(
                answer.head.startLine
                    == "HTTP/1.1 403 Forbidden: rule 2 denies CONNECT to \(s.origin.authority); rule 1 allows this host, but only with GET, HEAD"
            )
            #expect(answer["Larder-Deny"] == Self.field)
            #expect(answer.isWhole && answer["Content-Length"] == "\(answer.body.count)")
        }
    }

    @Test func `an upgrade that is denied gets the same answer`() throws {
        try withRules { s in
            let client = try s.client()
            try client.ask("POST", "/chat", ["Connection: Upgrade", "Upgrade: websocket"])
            #expect(try client.response()["Larder-Deny"] == Self.field)
            s.origin.expects("GET /a").replies(200, body: "next")
            #expect(try client.get("/a").text == "next")
        }
    }

    @Test func `a request with content is answered in full`() throws {
        try withRules { s in
            let answer = try s.client().request("POST", "/a", body: String(repeating: "x", count: 70_000))
            #expect(answer.status == 403 && answer.isWhole && answer["Larder-Deny"] == Self.field, "\(answer)")
        }
    }

    static let forms: [(accept: String, type: String, part: String)] = [
        ("text/html,application/xhtml+xml,*/*;q=0.8", "text/html; charset=utf-8", "<code>URI</code>"),
        ("application/json", "application/json", "\"reason\":\"method-not-allowed\",\"rule\":2,\"nearest_rule\":1,"),
        ("application/problem+json", "application/problem+json", "{\"status\":403,\"title\":\"Forbidden\","),
        ("*/*", "text/plain; charset=utf-8", "\nURI\n"),
    ]
    @Test(arguments: forms) func `the page has the form that the client prefers, and no bytes of the request act in it`(
        _ row: (accept: String, type: String, part: String)
    ) throws {
        try withRules { s in
            let client = try s.client()
            try client.ask("POST", "/<script>\"'&x", ["Accept: \(row.accept)"])
            let answer = try client.response()
            #expect(answer["Content-Type"] == row.type)
            let path = row.type.hasPrefix("text/html") ? "/&lt;script&gt;&quot;&#39;&amp;x" : "/<script>\"'&x"
            #expect(
                answer.text.contains(row.part.replacingOccurrences(of: "URI", with: s.origin.url(path))), "\(answer)")
            if row.type.hasPrefix("text/html") { #expect(!answer.text.contains("<script>")) }
            if row.type.hasSuffix("json") {
                let value = try JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any]
                #expect(value?["uri"] as? String == s.origin.url("/<script>\"'&x"))
                #expect(value?["detail"] as? String == "rule 2: not on the list")
            }
        }
    }

    @Test func `a method is echoed only where it can do no harm`() throws {
        try withRules(reason: nil) { s in
            let client = try s.client()
            try client.ask("X'`|~%", "/a", ["Accept: text/html"])
            let answer = try client.response()
            #expect(
                answer["Proxy-Status"]?.hasSuffix("details=\"rule 2 denies X'`|~% to \(s.origin.authority)\"") == true,
                "\(answer)")
            #expect(answer.text.contains("rule 2 denies X&#39;`|~% to"), "\(answer)")
        }
    }

    @Test func `in an opened tunnel the requests inside are told the same`() throws {
        try scenario({ configuration, files in
            try files.intercept("127.0.0.1", in: &configuration)
            var inside = AccessRule.Conditions()
            inside.methods = ["CONNECT", "GET"]
            configuration.access.rules = [AccessRule(effect: .allow, conditions: inside, number: 1)]
        }) { s in
            let client = try s.secureTunnel(to: s.origin.authority)
            for _ in 1...2 {
                try client.askInside("DELETE", "/a", host: s.origin.authority)
                let answer = try client.response()
                #expect(answer.status == 403)
                #expect(
                    answer["Larder-Deny"]
                        == "reason=method-not-allowed; nearest=1; hint=\"rule 1 allows this host, but only with CONNECT, GET\"",
                    "\(answer)")
            }
        }
    }

    @Test func `a client that must log in learns nothing of the rules before`() throws {
        try withRules({ configuration, files in
            configuration.access.authentication.basic.usersFile = try files.write(
                "users", "ann:\(try hash(password: Array("secret".utf8)))\n")
        }) { s in
            let client = try s.client()
            let stranger = try client.request("POST", "/a")
            #expect(stranger.status == 407 && stranger["Larder-Deny"] == nil, "\(stranger)")
            #expect(!stranger.text.contains("rule"), "\(stranger)")
            let credentials = Data("ann:secret".utf8).base64EncodedString()
            let known = try client.request("POST", "/a", "Proxy-Authorization: Basic \(credentials)")
            #expect(known["Larder-Deny"] == Self.field, "\(known)")
        }
    }

    @Test func `a private destination names the class of its address`() throws {
        try scenario({ configuration, _ in configuration.access.privateDestinations = .deny }) { s in
            let answer = try s.client().get("http://10.0.0.1/")
            #expect(answer["Larder-Deny"]?.hasPrefix("reason=private-destination; hint=") == true, "\(answer)")
            #expect(answer.text.contains("10.0.0.1 is not a public address (private-use)"), "\(answer)")
            #expect(try s.stat(.denials, "private-destination") == 1)
        }
    }

    @Test func `a client that is not admitted learns no rule`() throws {
        try withRules({ configuration, _ in
            configuration.access.namedClients = [AddressRange(IPAddress(v4: 0x7F00_0002))]
        }) { s in
            let answer = try s.client(from: 0x7F00_0003).request("POST", "/a")
            #expect(
                answer["Larder-Deny"] == "reason=client; hint=\"\(DenialReason.client.hint)\"", "\(answer)")
            #expect(!answer.text.contains("rule 1"), "\(answer)")
        }
    }
}
