import Server
import Testing

/// Bodies that go out with their heads: short ones that came with their head or are in memory. The longest of them has 4 KiB.
@Suite("Short bodies go out with their head")
struct ShortBodyScenarios {
    /// How a body of that many bytes comes to the client.
    private static let lengths = [0, 1, 4095, 4096, 4097, 20_000]

    private static func content(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
    }

    @Test(arguments: lengths) func `a response that is passed on arrives whole, and both connections go on`(
        _ length: Int
    ) throws {
        try scenario { s in
            let client = try s.client()
            for name in ["/a", "/b"] {
                s.origin.expects("GET \(name)").replies(200, ["Cache-Control: no-store"], Self.content(length))
                let answer = try client.get(name)
                #expect(answer.isWhole && answer.body == Self.content(length))
            }
            try s.expect(.passed, 2)
            #expect(s.count(.originConnectionsOpened) == 1)
            #expect(try s.logLines().filter { $0.contains("\"bytes\":\(length),") }.count == 2)
        }
    }

    @Test(arguments: lengths) func `so do one that is stored, and one that is validated`(_ length: Int) throws {
        try scenario { s in
            let fields = ["Cache-Control: max-age=0", "ETag: \"a\""]
            let client = try s.client()
            s.origin.expects("GET /a").replies(200, fields, Self.content(length))
            #expect(try client.get("/a").body == Self.content(length))
            #expect(s.count(.bytesFromCache) == 0)
            s.origin.expects("GET /a", "If-None-Match: \"a\"").replies(304, fields, [])
            let validated = try client.get("/a")
            #expect(validated.cacheStatus.contains("fwd-status=304"))
            #expect(validated.isWhole && validated.body == Self.content(length))
            try s.expect(.bytesFromCache, UInt64(length))
        }
    }

    @Test func `bytes behind the message reach no client, and the origin is not asked on that connection again`() throws
    {
        try scenario { s in
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n\r\n")
            s.origin.expects("GET /b").replies(200, "Cache-Control: no-store", body: "next")
            let client = try s.client()
            #expect(try client.get("/a").text == "hello")
            #expect(try client.get("/b").text == "next")
            #expect(s.count(.originConnectionsOpened) == 2)
        }
    }

    @Test func `a body of which a byte is missing is awaited`() throws {
        try scenario { s in
            let rest = Gate("the client has the beginning")
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 5\r\n\r\nhell"
            ).waits(for: rest).sends("o")
            let client = try s.client()
            try client.ask("GET", "/a")
            #expect(try client.head().startLine == "HTTP/1.1 200 OK")
            rest.open()
            #expect(try client.reader.bytes(5) == Array("hello".utf8))
        }
    }

    @Test func `a client that reads nothing of many answers gets all of them in the end`() throws {
        try scenario { s in
            let client = try s.client(receiveBuffer: 4096)
            let count = 400
            for number in 0..<count {
                s.origin.expects("GET /\(number)").replies(200, ["Cache-Control: no-store"], Self.content(4000))
            }
            try client.send(
                (0..<count).map { "GET \(s.origin.url("/\($0)")) HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n" }
                    .joined())
            for _ in 0..<count { #expect(try client.response().body == Self.content(4000)) }
        }
    }
}
