import Settings
import Testing
import Transaction

/// Longer bodies in memory are in a file, whose pages go to the socket without a copy (`PageArena`).
@Suite("Hits of longer bodies: sent without a copy") struct FileSendingScenarios {
    /// Lines of ten bytes, so that a byte in a wrong place is seen.
    private static func text(_ mark: String, _ bytes: Int) -> String {
        (0..<bytes / 10).map { "\(mark)\(String($0 + 10_000_000))\n" }.joined()
    }

    private static let stored = "Cache-Control: max-age=600"

    @Test(arguments: [98_310, 200_000, 262_140, 262_150, 3_000_000])
    func `the client gets the body, again and again`(_ bytes: Int) throws {
        let body = Self.text("a", bytes)
        try scenario { s in
            s.origin.expects("GET /a").replies(200, Self.stored, body: body)
            let client = try s.client()
            for _ in 1...4 { #expect(try client.get("/a").text == body) }
            #expect(try s.client(receiveBuffer: 4096).get("/a").text == body)
            #expect(try client.request("HEAD", "/a").body.isEmpty)
            try s.expect(.hits, 5)
        }
    }

    @Test func `a range, several ranges, and a body that came in chunks`() throws {
        let body = Self.text("a", 1_000_000)
        let bytes = Array(body.utf8)
        try scenario { s in
            s.origin.expects("GET /a").replies(200, Self.stored, "ETag: \"a\"", body: body)
            let size = String(bytes.count, radix: 16)
            s.origin.expects("GET /b").sends(
                "HTTP/1.1 200 OK\r\n\(Self.stored)\r\nTransfer-Encoding: chunked\r\n\r\n\(size)\r\n\(body)\r\n0\r\n\r\n"
            )
            let client = try s.client()
            for path in ["/a", "/b"] {
                #expect(try client.get(path).body == bytes)
                let part = try client.get(path, "Range: bytes=100001-700000")
                #expect(part.status == 206 && part.body == Array(bytes[100_001...700_000]))
                #expect(try client.get(path, "Range: bytes=900000-").body == Array(bytes[900_000...]))
            }
            let parts = try client.get("/a", "Range: bytes=0-99999,500000-699999").body
            #expect(parts.count > 300_000 && parts.count < 301_000)
            #expect(parts.windows(of: 100_000).contains(Array(bytes[..<100_000])))
        }
    }

    @Test func `requests that follow at once are answered in order`() throws {
        let body = Self.text("a", 600_000)
        try scenario { s in
            s.origin.expects("GET /a").replies(200, Self.stored, body: body)
            s.origin.expects("GET /b").replies(200, Self.stored, body: "short")
            let client = try s.client()
            #expect(try client.get("/a").text == body)
            #expect(try client.get("/b").text == "short")
            let requests = ["/a", "/b", "/a", "/a", "/b"]
            try client.send(
                requests.map { "GET \(s.origin.url($0)) HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n" }.joined())
            for path in requests { #expect(try client.response().text == (path == "/a" ? body : "short")) }
        }
    }

    /// More than is sent in one turn of the loop: most of the answers begin in a later one.
    @Test func `a hundred clients that ask at once get all of it, and what they ask for next`() throws {
        let body = Self.text("a", 400_000)
        try scenario { s in
            s.origin.expects("GET /a").replies(200, Self.stored, body: body)
            s.origin.expects("GET /b").replies(200, Self.stored, body: "short")
            #expect(try s.client().get("/a").text == body)
            #expect(try s.client().get("/b").text == "short")
            let clients = try (1...100).map { _ in try s.client() }
            let head = "HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n"
            for client in clients {
                try client.send("GET \(s.origin.url("/a")) \(head)GET \(s.origin.url("/b")) \(head)")
            }
            for client in clients {
                #expect(try client.response().text == body)
                #expect(try client.response().text == "short")
            }
            try s.expect(.hits, 200)
        }
    }

    /// The kernel reads the pages until the client has acknowledged them, so they must not be used again before.
    @Test func `a client that reads late gets what was sent to it, whatever was stored since`() throws {
        let first = Self.text("a", 200_000)
        try scenario { s in
            s.origin.expects("GET /a").replies(200, Self.stored, body: first)
            let client = try s.client()
            #expect(try client.get("/a").text == first)
            let late = try (1...4).map { _ in try s.client() }
            for client in late {
                try client.send("GET \(s.origin.url("/a")) HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n")
            }
            try s.eventually("all of it is on its way") {
                s.count(.hits) == 4 && s.proxy.transfers().isEmpty && s.count(.bytesFromCache) == 4 * 200_000
            }
            for mark in ["b", "c", "d"] {
                let next = Self.text(mark, 200_000)
                s.origin.expects("GET /a").replies(200, Self.stored, body: next)
                #expect(try client.get("/a", "Cache-Control: no-cache").text == next)
            }
            for client in late { #expect(try client.response().text == first) }
        }
    }

    // MARK: from the disk

    private static let disk = "disk: { path: DIRECTORY/disk, size: 200MiB, sync: 100ms }"

    @Test(arguments: [262_144, 262_150, 700_000, 1 << 20])
    func `a body on the disk is sent from there while it is not worth the memory`(_ bytes: Int) throws {
        let body = Array(Self.text("a", bytes + 10).utf8.prefix(bytes))
        try scenario(cache: Self.disk) { s in
            s.origin.expects("GET /a").replies(200, [Self.stored], body)
            try s.client().get("/a")
            for _ in 1...4 {
                try s.leaveToDisk()
                // Verified in pieces, and then from its file, in pieces as well.
                let answer = try s.client().get("/a")
                #expect(answer.body == body && answer.cacheStatus.hasPrefix("larder; hit"))
                #expect(try s.client(receiveBuffer: 4096).get("/a").body == body)
                #expect(s.tier.memory.statistics.usedBytes < 200_000)
                let part = try s.client().get("/a", "Range: bytes=65537-\(bytes - 2)")
                #expect(part.status == 206 && part.body == Array(body[65_537..<(bytes - 1)]))
            }
        }
    }

    @Test func `a slow client gets all of a body that is removed meanwhile`() throws {
        let bytes = 1 << 20
        let body = Array(Self.text("a", bytes + 10).utf8.prefix(bytes))
        try scenario(cache: Self.disk) { s in
            s.origin.expects("GET /a").replies(200, [Self.stored], body)
            s.origin.expects("POST /a").replies(204)
            try s.client().get("/a")
            try s.leaveToDisk()
            #expect(try s.client().get("/a").body == body)
            let slow = try s.client(receiveBuffer: 4096)
            let sent = s.count(.bytesToClients)
            try slow.send("GET \(s.origin.url("/a")) HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n")
            try s.eventually("some of it is on its way") { s.count(.bytesToClients) > sent + 1000 }
            #expect(try s.client().request("POST", "/a").status == 204)
            #expect(try slow.response().body == body)
        }
    }
}

extension [UInt8] {
    /// The pieces of this length that begin at a line of the body of a part.
    fileprivate func windows(of count: Int) -> [[UInt8]] {
        indices.filter { $0 + count <= self.count && ($0 == 0 || self[$0 - 1] == 0x0A) && self[$0] == 0x61 }.prefix(2)
            .map { Array(self[$0..<$0 + count]) }
    }
}
