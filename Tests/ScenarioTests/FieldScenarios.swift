import Credentials
import Message
import Origins
import Rules
import Server
import Settings
import Testing

@Suite("Fields that are stored, and the clients that they reach")
struct FieldScenarios {
    /// Fields as they come, the qualified directive among them, and the names that are not stored.
    static let lists: [(cacheControl: String, left: [String])] = [
        ("max-age=60, private=\"X-Mine\"", ["X-Mine"]), ("max-age=60, no-cache=\"X-Mine\"", ["X-Mine"]),
        ("max-age=60, private=\"x-mine, X-Other\"", ["X-Mine", "X-Other"]),
        ("max-age=60, private=\"X-Mine\", no-cache=\"x-other\"", ["X-Mine", "X-Other"]),
        ("max-age=60, private=\"Set-Cookie\"", ["Set-Cookie"]), ("max-age=60, private=\"X-Absent\"", []),
    ]

    @Test(arguments: lists)
    func
        `private and no-cache with names: the first client gets all, later ones what is stored (RFC 9111 §5.2.2.4, §5.2.2.7)`(
            _ row: (cacheControl: String, left: [String])
        ) throws
    {
        try scenario { s in
            let cookie = row.left.contains("Set-Cookie") ? ["Set-Cookie: a=b"] : []
            let fields =
                [
                    "X-A: 1", "X-Mine: first", "x-a:  two  words ", "Cache-Control: \(row.cacheControl)", "X-Other: o",
                    "X-Mine: second",
                ]
                + cookie + ["X-A: \"quoted, \\\" text\"", "X-Empty:", "ETag: \"a\""]
            s.origin.expects("GET /a").replies(200, fields, Array("hello".utf8))
            let client = try s.client()
            let own = { (message: SeenMessage) in
                message.head.lines.filter { line in
                    ["x-", "set-cookie", "cache-control", "etag"].contains { line.lowercased().hasPrefix($0) }
                }
            }
            let expected = fields.map { $0.replacing("words ", with: "words") }
            #expect(own(try client.get("/a")) == expected)
            let later = try client.get("/a")
            #expect(later.cacheStatus.hasPrefix("larder; hit"))
            #expect(own(later) == expected.filter { line in !row.left.contains { line.hasPrefix("\($0):") } })
        }
    }

    @Test func `followers do not get the fields that are for the leader's client alone`() throws {
        try scenario { s in
            let (asked, answer) = (Gate("asked"), Gate("answer"))
            s.origin.expects("GET /a").opens(asked).waits(for: answer).replies(
                200, "Cache-Control: max-age=60, private=\"X-Mine\"", "X-Mine: secret", body: "hello")
            let (first, second) = (try s.client(), try s.client())
            try first.ask("GET", "/a")
            try asked.wait()
            try second.ask("GET", "/a")
            try s.expect(.requests, 2)
            answer.open()
            #expect(try first.response()["X-Mine"] == "secret")
            let shared = try second.response()
            #expect(shared["X-Mine"] == nil)
            #expect(shared.text == "hello")
        }
    }

    // MARK: trailers and interim responses

    @Test func `what a rule or a credential decides about in the head cannot follow in a trailer`() throws {
        let origin = try RecordingOrigin(answer: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        defer { origin.end() }
        try scenario({ configuration, _ in
            configuration.origins = [
                OriginRule(
                    .init(),
                    fields: [
                        FieldChange(.set, Array("X-Team".utf8), Array("build".utf8)),
                        FieldChange(.remove, Array("X-Gone".utf8)),
                    ], number: 1)
            ]
            var places = PlaceholderPlaces()
            places.fields = ["X-Vendor-Entry"]
            var conditions = RuleConditions()
            conditions.hosts = [.any]
            configuration.credentials = [
                CredentialRule(
                    name: "vendor", .placeholder(places), conditions, secrets: [.token: .text(Secret("t0ken"))],
                    allowsPlainHTTP: true)
            ]
        }) { s in
            let client = try s.client()
            let url = "http://127.0.0.1:\(origin.port)/a"
            try client.ask("POST", url, ["Transfer-Encoding: chunked", "X-Gone: a"])
            try client.send(
                "1\r\na\r\n0\r\nx-team: other\r\nX-Gone: b\r\nx-vendor-entry: mine\r\nX-Sum: 1\r\n\r\n")
            #expect(try client.response().status == 200)
            try s.eventually("the trailers have come") {
                String(decoding: origin.bytes, as: UTF8.self).hasSuffix("0\r\nX-Sum: 1\r\n\r\n")
            }
            let sent = String(decoding: origin.bytes, as: UTF8.self).lowercased()
            #expect(sent.contains("x-team: build") && !sent.contains("other"))
            #expect(!sent.contains("x-gone") && !sent.contains("x-vendor-entry"))
        }
    }

    @Test func `trailers reach the readers of the transfer and no later client (RFC 9110 §6.5.1)`() throws {
        try scenario { s in
            let rest = Gate("both read")
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nhello\r\n"
            ).waits(for: rest).sends("0\r\nX-Sum: 1\r\nx-two: b\r\nContent-Length: 9\r\n\r\n")
            let clients = try (0..<4).map { _ in try s.client() }
            for client in clients { try client.ask("GET", "/a") }
            var answers = try clients.map { SeenMessage(head: try $0.head()) }
            rest.open()
            for (index, client) in clients.enumerated() {
                try client.reader.body(of: &answers[index], untilClose: false)
                #expect(answers[index].trailers == ["X-Sum: 1", "x-two: b"])
                #expect(answers[index].text == "hello")
            }
            let later = try clients[0].get("/a")
            #expect(later.cacheStatus.hasPrefix("larder; hit"))
            #expect(later.trailers == [])
            #expect(later["X-Sum"] == nil)
            #expect(later["Content-Length"] == "5")
        }
    }

    static let storing = ["max-age=60", "no-store"]

    @Test(arguments: storing)
    func `102 and 103 reach the client with their fields, and are never stored (RFC 9110 §15.2)`(
        _ cacheControl: String
    ) throws {
        try scenario { s in
            let early =
                "HTTP/1.1 102 Processing\r\nX-Step: 1\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nLink: </b.css>; rel=preload\r\n\r\n"
            s.origin.expects("GET /a").sends(early).replies(
                200, "Cache-Control: \(cacheControl)", "X-Final: yes", body: "hello")
            if cacheControl == "no-store" {
                s.origin.expects("GET /a").replies(200, "Cache-Control: no-store", "X-Final: yes", body: "hello")
            }
            let client = try s.client()
            try client.ask("GET", "/a")
            let processing = try client.response()
            #expect(processing.status == 102)
            #expect(processing["X-Step"] == "1")
            let hints = try client.response()
            #expect(hints.status == 103)
            #expect(hints.head.all("Link") == ["</a.css>; rel=preload", "</b.css>; rel=preload"])
            #expect(try client.response().text == "hello")
            let later = try client.get("/a")
            #expect(later.status == 200)
            #expect(later["Link"] == nil)
            #expect(later["X-Final"] == "yes")
        }
    }

    @Test func `an HTTP/1.0 client gets no interim response`() throws {
        try scenario { s in
            s.origin.expects("GET /a").sends("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n").replies(
                200, "Cache-Control: max-age=60", body: "hello")
            let client = try s.client()
            try client.ask("GET", "/a", version: "1.0")
            #expect(try client.response().status == 200)
        }
    }

    // MARK: Set-Cookie

    static let cookies: [(cacheControl: String, isStored: Bool)] = [
        ("max-age=60", false), ("public", false), ("public, max-age=60", true), ("s-maxage=60", true),
        ("max-age=60, private", false), ("public, max-age=0", false), ("max-age=60, private=\"set-cookie\"", true),
    ]

    @Test(arguments: cookies)
    func `a response with Set-Cookie is shared only if the origin allows it, and never stripped`(
        _ row: (cacheControl: String, isStored: Bool)
    ) throws {
        try scenario { s in
            for value in 1...(row.isStored ? 1 : 2) {
                s.origin.expects("GET /a").replies(
                    200, "Cache-Control: \(row.cacheControl)", "Set-Cookie: id=\(value); Path=/", "Set-Cookie: b=2",
                    body: "hello")
            }
            let client = try s.client()
            #expect(try client.get("/a").head.all("Set-Cookie") == ["id=1; Path=/", "b=2"])
            let second = try client.get("/a")
            #expect(second.cacheStatus.hasPrefix("larder; hit") == row.isStored, "\(second.cacheStatus)")
            let isLeftOut = row.cacheControl.contains("set-cookie")
            #expect(second.head.all("Set-Cookie") == (isLeftOut ? [] : ["id=\(row.isStored ? 1 : 2); Path=/", "b=2"]))
        }
    }
}
