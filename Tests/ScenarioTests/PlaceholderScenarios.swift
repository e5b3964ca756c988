import Access
import Authentication
import Credentials
import Foundation
import JSON
import Message
import Routing
import Rules
import Server
import Settings
import Testing

/// As long as the placeholders that are made for it.
private let secret = "ghp_R3alS3cretR3alS3cretR3alS3cretR3al01"

extension Scenario {
    /// A credential for the scripted origin, and a placeholder for it.
    func placeholder(
        requires: Bool = false, plainHTTP: Bool = true, lifetime: Seconds? = nil,
        _ change: (inout PlaceholderPlaces) -> Void = { _ in }, limit: (inout RuleConditions) -> Void = { _ in },
        also configure: (inout Configuration) -> Void = { _ in }
    ) throws -> String {
        var places = PlaceholderPlaces()
        places.isRequired = requires
        change(&places)
        try adopt(
            credentials: credential(
                "forge", .placeholder(places), secrets: [.token: .text(Secret(secret))], plainHTTP: plainHTTP, limit),
            also: configure)
        return try issue(lifetime: lifetime)
    }

    fileprivate func issue(_ name: String = "forge", job: String? = nil, lifetime: Seconds? = nil) throws -> String {
        let made = try proxy.shared.placeholders.issue(
            name, like: Secret(secret), prefix: nil, job: job, lifetime: lifetime,
            now: Moment(uptime: .zero, wallTime: WallTime(secondsSinceEpoch: 0)))
        return String(decoding: made.text, as: UTF8.self)
    }

    fileprivate func refusals() throws -> Int64 { try stat(.origins, "placeholders_misplaced") }
}

private func expectMisplaced(_ answer: SeenMessage, _ sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(answer.status == 403, "\(answer)", sourceLocation: sourceLocation)
    #expect(
        answer["Proxy-Status"]?.contains("http_request_denied") == true
            && answer.text.contains("credential-misplaced"), "\(answer)", sourceLocation: sourceLocation)
}

@Suite("Placeholders")
struct PlaceholderScenarios {
    @Test func `at its host a placeholder becomes the secret, and elsewhere nothing goes out`() throws {
        try scenario { s in
            let text = try s.placeholder()
            s.origin.expects("GET /a", "Authorization: Bearer \(secret)", "Accept-Encoding: identity").replies(
                200, body: "in")
            let client = try s.client()
            #expect(try client.get("/a", "Authorization: Bearer \(text)", "Accept-Encoding: gzip").text == "in")
            expectMisplaced(try client.get("/b", "User-Agent: \(text)"))
            expectMisplaced(try client.get("/b?x=\(text)"))
            expectMisplaced(try client.get("/b", "Authorization: Bearer \(text)", "X-Other: \(text)"))
            expectMisplaced(try client.get("http://localhost:\(s.origin.port)/b", "Authorization: Bearer \(text)"))
            expectMisplaced(try client.request("TRACE", "/b", "Authorization: Bearer \(text)"))
            #expect(try s.refusals() == 5)
            #expect(try s.stat(.origins, "placeholders_replaced") == 1)
            // A text that was never issued is nobody's placeholder.
            s.origin.expects("GET /c", "Authorization: Bearer ghp_other").replies(200, body: "own")
            #expect(try client.get("/c", "Authorization: Bearer ghp_other").text == "own")
        }
    }

    @Test func `Basic is taken apart and put together again, as git sends it`() throws {
        try scenario { s in
            let text = try s.placeholder()
            let sent = String(decoding: encodeBase64(Array("x-access-token:\(secret)".utf8)), as: UTF8.self)
            let own = String(decoding: encodeBase64(Array("x-access-token:\(text)".utf8)), as: UTF8.self)
            s.origin.expects("GET /r.git/info/refs?service=git-upload-pack", "Authorization: Basic \(sent)")
                .replies(200, body: "you sent \(sent)")
            #expect(
                try s.client().get("/r.git/info/refs?service=git-upload-pack", "Authorization: Basic \(own)").text
                    == "you sent \(own)")
        }
    }

    @Test func `fields, members of the query and segments of the path are replaced where they are listed`() throws {
        try scenario { s in
            let text = try s.placeholder {
                $0.fields = ["X-Api-Key"]
                $0.query = ["key"]
                $0.path = true
            }
            s.origin.expects("GET /a", "x-api-key: \(secret)").replies(200, body: "field")
            s.origin.expects("GET /b?a=1&key=\(secret)").replies(200, body: "query")
            s.origin.expects("GET /\(secret)/c").replies(200, body: "path")
            let client = try s.client()
            #expect(try client.get("/a", "x-api-key: \(text)").text == "field")
            #expect(try client.get("/b?a=1&key=\(text)").text == "query")
            #expect(try client.get("/\(text)/c").text == "path")
        }
    }

    @Test func `the method and the path of the credential count, in every spelling`() throws {
        try scenario { s in
            let text = try s.placeholder(limit: {
                $0.methods = ["GET"]
                $0.paths = [PathPattern("/repos/*")!]
            })
            s.origin.expects("GET /repos/a", "Authorization: Bearer \(secret)").replies(200, body: "in")
            let client = try s.client()
            #expect(try client.get("/repos/a", "Authorization: Bearer \(text)").text == "in")
            for path in ["/admin", "/repos/../admin", "/repos/%2e%2e/admin"] {
                expectMisplaced(try client.get(path, "Authorization: Bearer \(text)"))
            }
            expectMisplaced(try client.request("DELETE", "/repos/a", "Authorization: Bearer \(text)"))
        }
    }

    @Test func `over http nothing is replaced unless the rule allows it`() throws {
        try scenario { s in
            let text = try s.placeholder(plainHTTP: false)
            expectMisplaced(try s.client().get("/a", "Authorization: Bearer \(text)"))
        }
    }

    @Test func `a revoked or expired placeholder is refused by name`() throws {
        try scenario { s in
            let expired = try s.placeholder(lifetime: Seconds(1))
            let answer = try s.client().get("/a", "Authorization: Bearer \(expired)")
            expectMisplaced(answer)
            #expect(answer.text.contains("has expired"))
            let revoked = try s.issue(job: "nightly")
            #expect(
                s.proxy.shared.placeholders.revoke(
                    .job("nightly"), now: Moment(uptime: .zero, wallTime: WallTime(secondsSinceEpoch: 1))
                ).count == 1)
            let other = try s.client().get("/a", "Authorization: Bearer \(revoked)")
            expectMisplaced(other)
            #expect(other.text.contains("was revoked"))
        }
    }

    @Test func `a credential of the client's own is refused where a placeholder is required`() throws {
        try scenario { s in
            let text = try s.placeholder(requires: true)
            let client = try s.client()
            expectMisplaced(try client.get("/a", "Authorization: Bearer attacker"))
            expectMisplaced(try client.get("/a", "Cookie: session=attacker"))
            expectMisplaced(try client.get("/a?access_token=attacker"))
            for target in [
                "/a?x=1;token=attacker", "/a?token[]=attacker", "/a?token%00x=attacker", "/a;jsessionid=own",
            ] {
                expectMisplaced(try client.get(target))
            }
            for name in [
                "X-Authorization", "X-Api-Token", "X-Session-Token", "X-Access-Key", "X-Client-Secret",
            ] {
                expectMisplaced(try client.get("/a", "\(name): attacker"))
            }
            s.origin.expects("GET /a", "!Authorization").replies(200, body: "open")
            #expect(try client.get("/a").text == "open")
            s.origin.expects("GET /b", "Authorization: Bearer \(secret)").replies(200, body: "in")
            #expect(try client.get("/b", "Authorization: Bearer \(text)").text == "in")
        }
    }

    @Test func `what is stored is for requests with a placeholder of that credential alone, and shows none`() throws {
        try scenario { s in
            let text = try s.placeholder()
            s.origin.expects("GET /a", "Authorization: Bearer \(secret)")
                .replies(200, "Cache-Control: max-age=60", "X-Echo: \(secret)", body: "<\(secret)>")
            s.origin.expects("GET /a", "!Authorization").replies(200, body: "open")
            let stars = String(repeating: "*", count: secret.utf8.count)
            let client = try s.client()
            let first = try client.get("/a", "Authorization: Bearer \(text)")
            #expect(first.text == "<\(stars)>" && first["X-Echo"] == stars)
            let other = try s.issue(job: "another")
            let second = try client.get("/a", "Authorization: token \(other)")
            #expect(second.cacheStatus.contains("hit") && second.text == "<\(stars)>")
            #expect(try client.get("/a").text == "open")
        }
    }

    @Test(arguments: [1, 7, 40, 1000]) func `an echo of the secret shows the placeholder, however it is cut`(size: Int)
        throws
    {
        try scenario { s in
            let text = try s.placeholder()
            let body = Array("a \(secret) b {\"t\":\"\(secret)\"} \(secret.prefix(20))".utf8)
            var chunks = ""
            var rest = body[...]
            while !rest.isEmpty {
                let piece = rest.prefix(size)
                rest = rest.dropFirst(size)
                chunks += "\(String(piece.count, radix: 16))\r\n\(String(decoding: piece, as: UTF8.self))\r\n"
            }
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nCache-Control: no-store\r\n\r\n\(chunks)0\r\nX-Trailer: \(secret)\r\n\r\n"
            )
            let answer = try s.client().get("/a", "Authorization: Bearer \(text)")
            #expect(answer.isWhole)
            #expect(answer.text == String(decoding: body, as: UTF8.self).replacing(secret, with: text))
        }
    }

    @Test func `an echo with a length, until the end of the connection, in an error, and in an interim head`() throws {
        try scenario { s in
            let text = try s.placeholder()
            s.origin.expects("GET /a").replies(200, "Cache-Control: no-store", body: "<\(secret)>")
            s.origin.expects("GET /b").sends(
                "HTTP/1.1 200 OK\r\nConnection: close\r\nCache-Control: no-store\r\n\r\n<\(secret)"
            ).closes()
            s.origin.expects("GET /c").replies(500, "Cache-Control: no-store", body: secret)
            s.origin.expects("GET /d").sends(
                "HTTP/1.1 103 Early Hints\r\nLink: <\(secret)>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            let client = try s.client()
            #expect(try client.get("/a", "Authorization: Bearer \(text)").text == "<\(text)>")
            #expect(try client.get("/b", "Authorization: Bearer \(text)").text == "<\(text)")
            let other = try s.client()
            #expect(try other.get("/c", "Authorization: Bearer \(text)").text == text)
            let hint = try other.get("/d", "Authorization: Bearer \(text)")
            #expect(hint.status == 103 && hint["Link"]?.contains("R3al") == false)
        }
    }

    @Test func `ranges are not asked for, because a part of the secret would not be seen`() throws {
        try scenario { s in
            let text = try s.placeholder()
            s.origin.expects("GET /a", "!Range", "!If-Range").replies(
                200, "Cache-Control: no-store", body: "<\(secret)>")
            let answer = try s.client().get(
                "/a", "Authorization: Bearer \(text)", "Range: bytes=0-5", "If-Range: \"x\"")
            #expect(answer.status == 200 && answer.text == "<\(text)>")
        }
    }

    @Test func `an answer that is compressed all the same is not passed on`() throws {
        try scenario { s in
            let text = try s.placeholder()
            s.origin.expects("GET /a").replies(200, "Content-Encoding: gzip", body: "x")
            let answer = try s.client().get("/a", "Authorization: Bearer \(text)")
            #expect(answer.status == 502 && answer.text.contains("credential-hidden"), "\(answer)")
        }
    }

    @Test func `a body with the placeholder is not sent to its end`() throws {
        try scenario { s in
            let text = try s.placeholder()
            let gate = Gate()
            s.origin.expects("POST /a").opens(gate).readsBody()
            let client = try s.client()
            try client.ask("POST", "/a", ["Transfer-Encoding: chunked"])
            try client.send("5\r\nhello\r\n")
            try gate.wait()
            let pieces = [text.prefix(10), text.dropFirst(10)]
            for piece in pieces { try client.send("\(String(piece.utf8.count, radix: 16))\r\n\(piece)\r\n") }
            try client.send("0\r\n\r\n")
            expectMisplaced(try client.response())
            try s.eventually("the body breaks off at the origin") {
                s.origin.requests.map(\.message.isWhole) == [false]
            }
        }
    }

    @Test func `members of bodies are replaced where they are listed`() throws {
        try scenario { s in
            let text = try s.placeholder {
                $0.json = [["auth", "token"]]
                $0.form = ["client_secret"]
            }
            s.origin.expects("POST /j").replies(200, body: "json")
            s.origin.expects("POST /f").replies(200, body: "form")
            s.origin.expects("POST /n").replies(200, body: "none")
            let client = try s.client()
            let json = "{\"a\": 1, \"auth\": {\"token\": \"\(text)\"}}"
            #expect(try client.request("POST", "/j", "Content-Type: application/json", body: json).text == "json")
            try client.ask(
                "POST", "/f",
                [
                    "Content-Type: application/x-www-form-urlencoded", "Expect: 100-continue",
                    "Content-Length: \(text.utf8.count + 18)",
                ])
            #expect(try client.head().startLine == "HTTP/1.1 100 Continue")
            try client.send("a=b&client_secret=\(text)")
            #expect(try client.response().text == "form")
            #expect(try client.request("POST", "/n", "Content-Type: application/json", body: "{}").text == "none")
            let bodies = s.origin.requests.map(\.message.text)
            #expect(bodies == [json.replacing(text, with: secret), "a=b&client_secret=\(secret)", "{}"])
            expectMisplaced(
                try client.request("POST", "/x", "Content-Type: application/json", body: "{\"x\": \"\(text)\"}"))
        }
    }

    @Test func `where a placeholder is required, a listed member of a body holds no other credential`() throws {
        try scenario { s in
            let text = try s.placeholder(requires: true) {
                $0.json = [["token"]]
                $0.form = ["refresh_token"]
            }
            s.origin.expects("POST /j").replies(200, body: "json")
            s.origin.expects("POST /h", "Authorization: Bearer \(secret)").replies(200, body: "head")
            let client = try s.client()
            let json = "Content-Type: application/json"
            let bearer = "Authorization: Bearer \(text)"
            #expect(try client.request("POST", "/j", json, body: "{\"token\": \"\(text)\"}").text == "json")
            #expect(try client.request("POST", "/h", json, bearer, body: "{\"a\": 1}").text == "head")
            for body in [
                "{\"token\": \"own\"}", "{\"token\": \"\(text)\", \"token\": \"own\"}", "{\"token\": \"own\",}",
            ] {
                expectMisplaced(try client.request("POST", "/x", json, body: body))
            }
            expectMisplaced(try client.request("POST", "/x", json, bearer, body: "{\"token\": \"own\"}"))
            expectMisplaced(try client.request("POST", "/x", json, "Content-Encoding: gzip", body: "x"))
            expectMisplaced(
                try client.request(
                    "POST", "/x", "Content-Type: application/x-www-form-urlencoded", body: "a=1&refresh%5Ftoken=own"))
            #expect(s.origin.requests.count == 2)
        }
    }

    private func post(_ client: ScriptedClient, _ path: String, _ fields: [String], _ body: String) throws
        -> SeenMessage
    {
        try client.ask("POST", path, fields, body: body)
        return try client.response(to: "POST")
    }

    @Test func `where a placeholder is required, a body is examined in each reading that a server may take`() throws {
        try scenario { s in
            let text = try s.placeholder(requires: true) {
                $0.json = [["token"]]
                $0.form = ["client_secret"]
            }
            let client = try s.client()
            let (json, form) = ("Content-Type: application/json", "Content-Type: application/x-www-form-urlencoded")
            let refused: [(fields: [String], body: String)] = [
                ([json], "{\"token\": 123}"), ([json], "{\"token\": [\"own\"]}"),
                ([json], "{\"token\": {\"value\": \"own\"}}"), ([json], "{\"x\\ud800\": 1, \"token\": \"own\"}"),
                ([form], "a=b;client_secret=own"), ([form], "client_secret[]=own"), ([form], "client_secret%00=own"),
                ([], "{\"token\": \"own\"}"), ([], "client_secret=own"),
                (["Content-Type: text/json"], "{\"token\": \"own\"}"),
                (["Content-Type: application/vnd.api+json"], "{\"token\": \"own\"}"),
                (["Content-Type: application/octet-stream"], "{\"token\": \"own\"}"),
                (["Content-Type: text/plain"], "client_secret=own"), ([json, form], "client_secret=own"),
                ([form, json], "{\"token\": \"own\"}"), (["Content-Type: text/plain", "Content-Encoding: gzip"], "x"),
            ]
            for (fields, body) in refused {
                expectMisplaced(try post(client, "/x", fields, body))
            }
            let parts = try post(client, "/x", ["Content-Type: multipart/form-data; boundary=x"], "x")
            expectMisplaced(parts)
            #expect(parts.text.contains("send application/json or a form"), "\(parts)")
            let bearer = "Authorization: Bearer \(text)"
            s.origin.expects("POST /p", "Authorization: Bearer \(secret)").replies(200, body: "text")
            s.origin.expects("POST /q", "Authorization: Bearer \(secret)").replies(200, body: "bytes")
            #expect(try post(client, "/p", ["Content-Type: text/plain", bearer], "a note").text == "text")
            #expect(
                try post(client, "/q", ["Content-Type: image/png", bearer], "\u{1}PNG").text == "bytes")
            #expect(s.origin.requests.map(\.message.text) == ["a note", "\u{1}PNG"])
        }
    }

    @Test func `where a placeholder is required, a body whose beginning shows that it has no members may be long`()
        throws
    {
        try scenario { s in
            let text = try s.placeholder(requires: true) { $0.json = [["token"]] }
            s.origin.expects("POST /a", "Authorization: Bearer \(secret)").replies(200, body: "long")
            s.origin.expects("POST /b").replies(200, body: "chunks")
            let client = try s.client()
            let type = "Content-Type: application/octet-stream"
            let long = String(repeating: "x", count: 2 << 20)
            #expect(
                try post(client, "/a", [type, "Authorization: Bearer \(text)"], long).text == "long")
            try client.ask("POST", "/b", [type, "Transfer-Encoding: chunked"])
            try client.send("2\r\n \n\r\n")
            try client.send("\(String(long.utf8.count, radix: 16))\r\n\(long)\r\n0\r\n\r\n")
            #expect(try client.response().text == "chunks")
            #expect(s.origin.requests.map(\.message.text.utf8.count) == [2 << 20, 2 << 20 + 2])
            try client.ask("POST", "/c", [type, "Content-Length: \(2 << 20)"])
            try client.send("{\(long.prefix(1 << 20))")
            expectMisplaced(try client.response())
        }
    }

    @Test func `where a placeholder is required, a body is examined also where it gets no secret`() throws {
        try scenario { s in
            _ = try s.placeholder(requires: true, plainHTTP: false) {
                $0.json = [["token"]]
            } limit: {
                $0.paths = [PathPattern("/api/*")!]
            }
            s.origin.expects("POST /other").replies(200, body: "other")
            let client = try s.client()
            let json = "Content-Type: application/json"
            for path in ["/api/x", "/%61pi/x"] {
                expectMisplaced(try client.request("POST", path, json, body: "{\"token\": \"own\"}"))
            }
            #expect(try client.request("POST", "/other", json, body: "{\"token\": \"own\"}").text == "other")
        }
    }

    @Test func `the members of each credential for a request are examined, not of the first alone`() throws {
        try scenario { s in
            let credentials = ["forge", "other"].map { name in
                var places = PlaceholderPlaces()
                places.isRequired = true
                places.json = [[name]]
                return s.credential(name, .placeholder(places), secrets: [.token: .text(Secret(secret))])
            }
            try s.adopt(credentials: credentials[0], credentials[1])
            let text = try s.issue()
            let json = "Content-Type: application/json"
            let client = try s.client()
            for body in ["{\"other\": 1}", "{\"forge\": \"\(text)\", \"other\": \"own\"}"] {
                expectMisplaced(try client.request("POST", "/x", json, body: body))
            }
            s.origin.expects("POST /a", "!Proxy-Authorization").replies(200, body: "in")
            let own = "Proxy-Authorization: Basic \(String(decoding: encodeBase64(Array("a:b".utf8)), as: UTF8.self))"
            #expect(try client.request("POST", "/a", json, own, body: "{\"forge\": \"\(text)\"}").text == "in")
        }
    }

    @Test(arguments: [true, false])
    func `rules that look at credentials are asked again when the body shows one`(namesAddress: Bool) throws {
        try scenario { s in
            var denied = RuleConditions()
            denied.methods = ["POST"]
            denied.details.ownCredentials = ["forge"]
            if namesAddress { denied.addresses = [AddressRange("127.0.0.0/8")!] }
            let rules = [
                AccessRule(effect: .deny(reason: nil), conditions: denied, number: 1),
                AccessRule(effect: .allow, number: 2),
            ]
            let text = try s.placeholder {
                $0.json = [["token"]]
                $0.query = ["token"]
            } also: {
                $0.access.rules = rules
            }
            s.origin.expects("POST /a").replies(200, body: "none")
            s.origin.expects("PUT /b").replies(200, body: "other method")
            let client = try s.client()
            let json = "Content-Type: application/json"
            #expect(try client.request("POST", "/a", json, body: "{}").text == "none")
            #expect(
                try client.request("PUT", "/b", json, body: "{\"token\": \"\(text)\"}").text == "other method")
            for (path, body) in [("/c", "{\"token\": \"\(text)\"}"), ("/c?token=\(text)", "{}")] {
                let answer = try client.request("POST", path, json, body: body)
                #expect(answer.status == 403 && answer["Larder-Deny"]?.contains("rule") == true, "\(answer)")
            }
            #expect(s.origin.requests.count == 2)
        }
    }

    @Test func `a request that only looks at the store is refused as well`() throws {
        try scenario { s in
            let text = try s.placeholder()
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "x")
            let client = try s.client()
            try client.get("/a")
            expectMisplaced(try client.get("/a", "User-Agent: \(text)"))
        }
    }

    @Test func `requests that follow each other on one connection are each examined`() throws {
        try scenario { s in
            let text = try s.placeholder()
            s.origin.expects("GET /a", "Authorization: Bearer \(secret)").replies(200, body: "1")
            s.origin.expects("GET /c", "Authorization: Bearer \(secret)").replies(200, body: "3")
            let client = try s.client()
            try client.ask("GET", "/a", ["Authorization: Bearer \(text)"])
            try client.ask("GET", "/b", ["Referer: http://x/?\(text)"])
            try client.ask("GET", "/c", ["Authorization: Bearer \(text)"])
            #expect(try client.response().text == "1")
            expectMisplaced(try client.response())
            #expect(try client.response().text == "3")
        }
    }

    /// Tokens for an API, and those with which the API's token endpoint gives out new ones (RFC 6749 §6). Returns placeholders of both.
    private func renewing(_ s: Scenario) throws -> (access: String, refresh: String) {
        var places = PlaceholderPlaces()
        places.form = ["refresh_token"]
        places.renewals = [
            PlaceholderRenewal(member: ["refresh_token"], credential: "refresh"),
            PlaceholderRenewal(member: ["access_token"], credential: "forge"),
        ]
        try s.adopt(
            credentials: s.credential(
                "refresh", .placeholder(places), secrets: [.token: .text(Secret(secret))],
                { $0.paths = [PathPattern("/token")!] }),
            s.credential("forge", .placeholder(PlaceholderPlaces()), secrets: [.token: .text(Secret(secret))]))
        return (try s.issue(), try s.issue("refresh"))
    }

    private func refresh(_ client: ScriptedClient, _ text: String) throws -> SeenMessage {
        try client.request(
            "POST", "/token", "Content-Type: application/x-www-form-urlencoded",
            body: "grant_type=refresh_token&refresh_token=\(text)")
    }

    @Test(arguments: [true, false]) func `an answer with new secrets shows placeholders`(isChunked: Bool) throws {
        try scenario { s in
            let old = try renewing(s)
            let (access, refresh) = (
                "ghp_N3wS3cretN3wS3cretN3wS3cretN3wS3cr02", "ghp_N3xtS3cretN3xtS3cretN3xtS3cretN3xt03"
            )
            let others = #""also":"\#(access)","was":"\#(secret)""#
            let json = #"{"access_token":"\#(access)","refresh_token":"\#(refresh)",\#(others)}"#
            let framing =
                isChunked
                ? "Transfer-Encoding: chunked\r\n\r\n18\r\n\(json.prefix(24))\r\n"
                    + "\(String(json.utf8.count - 24, radix: 16))\r\n\(json.dropFirst(24))\r\n0\r\n\r\n"
                : "Content-Length: \(json.utf8.count)\r\n\r\n\(json)"
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nCache-Control: max-age=60\r\n"
            s.origin.expects("POST /token").sends(head + framing)
            s.origin.expects("POST /token").sends(head + framing)
            s.origin.expects("GET /a", "Authorization: Bearer \(access)").replies(200, body: "in")
            s.origin.expects("GET /b", "Authorization: Bearer \(access)").replies(200, body: "as well")
            let client = try s.client()
            let answer = try self.refresh(client, old.refresh)
            #expect(answer.isWhole && answer.status == 200, "\(answer)")
            #expect(!answer.text.contains("S3cret") && answer.text.utf8.count == json.utf8.count, "\(answer.text)")
            let value = try JSONValue(parsing: Array(answer.text.utf8))
            guard case .object(let members) = value else { throw WireError("no object: \(answer.text)") }
            let shown = members.compactMap(\.value.text)
            #expect(shown.count == 4 && shown[0] == shown[2] && shown.allSatisfy { $0.hasPrefix("ghp_") })
            #expect(Set(shown + [old.access, old.refresh]).count == 4 && shown[3] == old.refresh)
            // The old placeholder and the new one stand for the new secret.
            #expect(try client.get("/a", "Authorization: Bearer \(shown[0])").text == "in")
            #expect(try client.get("/b", "Authorization: Bearer \(old.access)").text == "as well")
            #expect(try self.refresh(client, shown[1]).status == 200)
            let bodies = s.origin.requests.map(\.message.text).filter { $0.hasPrefix("grant_type") }
            #expect(bodies.map { $0.hasSuffix(secret) } == [true, false] && bodies[1].hasSuffix(refresh))
            #expect(try s.stat(.origins, "placeholders_renewed") == 2)
        }
    }

    @Test func `an answer without end is broken off, and renews nothing`() throws {
        try scenario { s in
            let text = try renewing(s).refresh
            let token = "ghp_N3wS3cretN3wS3cretN3wS3cretN3wS3cr02"
            let gone = Gate("the origin was left")
            s.origin.expects("POST /token").sends(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "1d\r\n{\"access_token\":\"\(token.prefix(12))\r\n1c\r\n\(token.dropFirst(12))\r\n"
            ).streams("1000\r\n\(String(repeating: "S3cretS3cretS3cr", count: 256))\r\n", untilGone: gone)
            let client = try s.client()
            try client.ask(
                "POST", "/token", ["Content-Type: application/x-www-form-urlencoded"],
                body: "grant_type=refresh_token&refresh_token=\(text)")
            try gone.wait()
            let answer = try client.response(to: "POST")
            #expect(!answer.isWhole && !answer.text.contains("S3cre"), "\(answer.head)")
            #expect(try s.stat(.origins, "placeholders_renewed") == 0)
        }
    }

    @Test func `an answer in which a new secret could not be seen is not passed on`() throws {
        try scenario { s in
            let text = try renewing(s).refresh
            s.origin.expects("POST /token").replies(200, "Content-Type: text/plain", body: "ghp_N3wS3cret")
            s.origin.expects("POST /token").replies(
                200, "Content-Type: application/json", body: #"{"refresh_token":"N3w S3cret"}"#)
            s.origin.expects("POST /token").replies(400, "Content-Type: text/plain", body: "error=\(secret)")
            s.origin.expects("POST /token").replies(204)
            let plain = try refresh(s.client(), text)
            #expect(plain.status == 502 && plain.text.contains("credential-hidden"), "\(plain)")
            let unusable = try refresh(s.client(), text)
            #expect(unusable.status == 502 && unusable.text.contains("credential-hidden"), "\(unusable)")
            let client = try s.client()
            #expect(try refresh(client, text).text == "error=\(text)")
            #expect(try refresh(client, text).status == 204)
        }
    }
}
