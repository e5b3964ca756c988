import Server
import Testing

@Suite("RFC 9110 §7.6 Message forwarding")
struct ForwardingTests {
    @Test func `hop-by-hop fields and those that Connection names are dropped in both directions`() throws {
        try scenario { s in
            s.origin.expects(
                "GET /a", "X-End: 1", "!Connection", "!Keep-Alive", "!X-Hop", "!TE", "!Proxy-Connection",
                "!Proxy-Authorization", "!Upgrade"
            )
            .replies(200, "Connection: X-Secret", "X-Secret: 1", "Keep-Alive: timeout=9", "X-End: 2", body: "a")
            let answer = try s.client().get(
                "/a", "Connection: X-Hop, keep-alive", "X-Hop: 1", "Keep-Alive: 5", "TE: trailers", "Upgrade: h2c",
                "Proxy-Connection: keep-alive", "Proxy-Authorization: Basic eDp5", "X-End: 1")
            #expect(answer["X-End"] == "2")
            #expect(answer["X-Secret"] == nil)
            #expect(answer["Keep-Alive"] == nil)
            #expect(answer.text == "a")
        }
    }

    @Test func `Via is added in both directions, behind the received members`() throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(200, "Via: 1.1 cdn", body: "a")
            let answer = try s.client().get("/a", "Via: 1.0 fred")
            #expect(answer.head.all("Via") == ["1.1 cdn", "1.1 larder"])
            let seen = s.origin.requests[0].message.head.all("Via")
            #expect(seen.first == "1.0 fred")
            #expect(seen.last?.hasPrefix("1.1 larder (") == true)
        }
    }

    @Test func `a request that has passed through before is refused with 508`() throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: no-store")
            let client = try s.client()
            try client.get("/a")
            let via = try #require(s.origin.requests.first?["Via"])
            let answer = try client.get("/a", "Via: \(via)")
            #expect(answer.status == 508)
            #expect(answer["Proxy-Status"]?.contains("error=proxy_loop_detected") == true)
        }
    }

    @Test func `the Host field is that of the target, whatever the client sent`() throws {
        try scenario { s in
            s.origin.expects("GET /a?q", "Host: \(s.origin.authority)").replies(200)
            let answer = try s.client().get("/a?q", "Host: elsewhere.example")
            #expect(answer.status == 200)
            #expect(s.origin.requests.first?.message.head.all("Host").count == 1)
        }
    }

    @Test func `order and spelling of fields are kept`() throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(200, "x-LOWER: 1", "ETag: \"a\"", "X-lOwEr: 2", body: "a")
            let answer = try s.client().get("/a", "accept: */*", "X-B: 1", "x-A: 2", "X-b: 3")
            #expect(answer.head.lines.filter { $0.lowercased().hasPrefix("x-") } == ["x-LOWER: 1", "X-lOwEr: 2"])
            let names = try #require(s.origin.requests.first?.message.head.names)
            #expect(names.filter { !["Host", "Via"].contains($0) } == ["accept", "X-B", "x-A", "X-b"])
        }
    }

    static let maxForwards: [(method: String, value: String, forwarded: String?)] = [
        ("TRACE", "0", nil), ("OPTIONS", "0", nil), ("TRACE", "1", "0"), ("OPTIONS", "10", "9"), ("GET", "0", "0"),
        ("OPTIONS", "18446744073709551616", "18446744073709551615"),
    ]
    @Test(arguments: maxForwards)
    func `Max-Forwards is decremented for TRACE and OPTIONS alone`(
        _ row: (method: String, value: String, forwarded: String?)
    ) throws {
        try scenario { s in
            if let forwarded = row.forwarded {
                s.origin.expects("\(row.method) /a", "Max-Forwards: \(forwarded)").replies(200)
            }
            let answer = try s.client().request(row.method, "/a", "Max-Forwards: \(row.value)", "Cookie: secret")
            #expect(answer.status == 200)
            if row.forwarded == nil && row.method == "TRACE" {
                #expect(answer.text.hasPrefix("TRACE http://"))
                #expect(!answer.text.contains("secret"))
            }
        }
    }

    @Test func `an HTTP/1.0 client gets the body until the end of the connection`() throws {
        try scenario { s in
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
            let client = try s.client()
            try client.ask("GET", "/a", version: "1.0")
            let answer = try client.response()
            #expect(answer["Transfer-Encoding"] == nil)
            #expect(answer.text == "abc")
            try client.expectClosed()
        }
    }

    @Test func `an HTTP/1.0 origin ends its body with its connection, and the client's connection stays open`() throws {
        try scenario { s in
            s.origin.expects("GET /a").sends("HTTP/1.0 200 OK\r\n\r\nabc").closes()
            s.origin.expects("GET /b").replies(200, body: "b")
            let client = try s.client()
            #expect(try client.get("/a").text == "abc")
            #expect(try client.get("/b").text == "b")
        }
    }

    @Test func `pipelined requests are answered in order`() throws {
        try scenario { s in
            let gate = Gate("the second answer")
            s.origin.expects("GET /1").waits(for: gate).replies(200, body: "one")
            s.origin.expects("GET /2").opens(gate).replies(200, body: "two")
            s.origin.expects("POST /3").replies(200, body: "three")
            gate.open()
            let client = try s.client()
            try client.ask("GET", "/1")
            try client.ask("GET", "/2")
            try client.ask("POST", "/3", body: "x")
            #expect(try client.response().text == "one")
            #expect(try client.response().text == "two")
            #expect(try client.response().text == "three")
        }
    }

    @Test func `requests of one connection whose targets are nearly the same get answers of their own`() throws {
        try scenario { s in
            let client = try s.client()
            let origin = "http://127.0.0.1:\(s.origin.port)"
            for path in ["/", "/a", "/a?b"] {
                s.origin.expects("GET \(path)").replies(200, "Cache-Control: max-age=60", body: path)
            }
            let targets: [(target: String, body: String)] = [
                ("\(origin)/", "/"), ("\(origin)/a", "/a"), ("\(origin)/a?b", "/a?b"), (origin, "/"),
                ("\(origin)/a", "/a"), ("HTTP://127.0.0.1:\(s.origin.port)/a", "/a"), ("\(origin)/a?b", "/a?b"),
                ("http://127.0.0.1:0\(s.origin.port)/a", "/a"), ("\(origin)/", "/"),
            ]
            for (target, _) in targets {
                try client.send("GET \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(s.origin.port)\r\n\r\n")
            }
            for (target, body) in targets { #expect(try client.response().text == body, "\(target)") }
            try client.send("GET http://u@127.0.0.1:\(s.origin.port)/a HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try client.response().status == 400)
        }
    }

    @Test func `a 204 never has a length, whatever the origin sends (RFC 9110 §8.6)`() throws {
        try scenario { s in
            for method in ["GET", "HEAD"] {
                s.origin.expects("\(method) /204").replies(204, "Content-Length: 5", "Cache-Control: no-store")
                let answer = try s.client().request(method, "/204")
                #expect(answer.status == 204)
                #expect(answer["Content-Length"] == nil)
            }
        }
    }

    @Test func `204 and 304 have no body, and the connection stays open`() throws {
        try scenario { s in
            s.origin.expects("GET /204").replies(204)
            s.origin.expects("GET /304", "If-None-Match: \"a\"").replies(304, "ETag: \"a\"")
            s.origin.expects("HEAD /h").replies(200, "Content-Length: 5")
            let client = try s.client()
            #expect(try client.get("/204").status == 204)
            #expect(try client.get("/304", "If-None-Match: \"a\"").status == 304)
            #expect(try client.request("HEAD", "/h")["Content-Length"] == "5", "RFC 9110 §9.3.2")
        }
    }

    @Test func `trailers of a chunked body are passed on`() throws {
        try scenario { s in
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nX-Sum: 7\r\n\r\n")
            let answer = try s.client().get("/a")
            #expect(answer.text == "abcdefg")
            #expect(answer.trailers == ["X-Sum: 7"])
        }
    }

    @Test func `Expect 100-continue is forwarded end to end`() throws {
        try scenario { s in
            s.origin.expects("POST /a", "Expect: 100-continue").replies(100).readsBody().replies(201, body: "made")
            let client = try s.client()
            try client.ask("POST", "/a", ["Expect: 100-continue", "Content-Length: 4"])
            #expect(try client.response().status == 100)
            try client.send("body")
            #expect(try client.response().status == 201)
            #expect(s.origin.requests.first?.message.text == "body")
        }
    }

    @Test func `103 is forwarded with its fields`() throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(103, "Link: </x>; rel=preload").replies(200, body: "a")
            let client = try s.client()
            try client.ask("GET", "/a")
            let early = try client.response()
            #expect(early.status == 103)
            #expect(early["Link"] == "</x>; rel=preload")
            #expect(try client.response().text == "a")
        }
    }

    @Test func `a final answer during the upload reaches the client at once`() throws {
        try scenario { s in
            s.origin.expects("POST /a").replies(413, "Connection: close", body: "too much").readsBody()
            let client = try s.client()
            try client.ask("POST", "/a", ["Content-Length: 1000"])
            try client.send("begin")
            #expect(try client.response().status == 413)
            client.wire.reset()
        }
    }

    @Test func `request bodies arrive complete, by length and chunked`() throws {
        try scenario { s in
            s.origin.expects("POST /length", "Content-Length: 5").replies(200)
            s.origin.expects("PUT /chunked", "Transfer-Encoding: chunked", "!Content-Length").replies(200)
            let client = try s.client()
            #expect(try client.request("POST", "/length", body: "hello").status == 200)
            try client.ask("PUT", "/chunked", ["Transfer-Encoding: chunked"])
            try client.send("2\r\nhe\r\n3\r\nl")
            try client.send("lo\r\n0\r\n\r\n")
            #expect(try client.response().status == 200)
            #expect(s.origin.requests.map(\.message.text) == ["hello", "hello"])
        }
    }

    @Test func `an idempotent request on a dead pooled connection is sent again`() throws {
        try scenario({ configuration, _ in configuration.workers = .count(1) }) { s in
            s.origin.expects("GET /1").replies(200, "Cache-Control: no-store", body: "1")
            s.origin.expects("GET /2").closes()
            s.origin.expects("GET /2").replies(200, "Cache-Control: no-store", body: "2")
            let client = try s.client()
            try client.get("/1")
            #expect(try client.get("/2").text == "2")
            try s.expect(.originRetries, 1)
        }
    }

    @Test func `POST is not sent twice`() throws {
        try scenario({ configuration, _ in configuration.workers = .count(1) }) { s in
            s.origin.expects("GET /1").replies(200, "Cache-Control: no-store", body: "1")
            s.origin.expects("POST /2").closes()
            let client = try s.client()
            try client.get("/1")
            #expect(try client.request("POST", "/2", body: "x").status == 502)
            try s.expect(.originRetries, 0)
        }
    }

    @Test func `a large upload and a large download at once arrive complete, with a slow reader`() throws {
        let size = 20 << 20
        try scenario { s in
            var pattern = Array(UInt8.min...UInt8.max) + [7]
            while pattern.count < size { pattern += pattern }
            let body = Array(pattern.prefix(size))
            s.origin.expects("POST /up").replies(200, body: "ok")
            s.origin.expects("GET /down").replies(200, ["Cache-Control: no-store"], body)
            let slow = try s.client(receiveBuffer: 16 << 10)
            try slow.ask("GET", "/down")
            let head = try slow.head()
            #expect(head["Content-Length"] == "\(size)")
            let up = try s.client()
            try up.ask("POST", "/up", ["Content-Length: \(size)"])
            var received: [UInt8] = []
            for start in stride(from: 0, to: size, by: 1 << 20) {
                try up.wire.write(Array(body[start..<start + (1 << 20)]))
                received += try slow.reader.bytes(1 << 20)
            }
            #expect(try up.response().text == "ok")
            #expect(received == body)
            #expect(s.origin.requests.last { $0.message.head.startLine.hasPrefix("POST") }?.message.body == body)
        }
    }
}
