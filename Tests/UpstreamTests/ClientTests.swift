import Compression
import EventLoop
import Glibc
import Testing
import Upstream

private let ok = "HTTP/1.1 200 OK\r\n"

private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

@Suite("client: answers", .onOwnThreads) struct ClientAnswerTests {
    static let answers: [(answer: String, method: Request.Method, status: Int, body: String)] = [
        (ok + "Content-Length: 5\r\n\r\nhello", .get, 200, "hello"),
        (ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nT: v\r\n\r\n", .get, 200, "hello"),
        (ok + "\r\nuntil close", .get, 200, "until close"),
        (ok + "Content-Length: 5\r\n\r\n", .head, 200, ""), ("HTTP/1.1 204 No Content\r\n\r\n", .get, 204, ""),
        ("HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n", .get, 304, ""),
        (
            "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 1\r\n\r\nx", .get, 404,
            "x"
        ),
    ]
    @Test(arguments: answers) func `an answer arrives whole`(
        _ row: (answer: String, method: Request.Method, status: Int, body: String)
    ) async throws {
        let server = try ScriptedServer(answering: row.answer, closes: row.body == "until close")
        // Many tests run at once: the second request may have to wait for a thread of the test for longer than usual.
        var options = Client.Options()
        options.idleTime = .seconds(600)
        let client = try Client(.direct(), options)
        for _ in 0..<2 {
            let response = try await client.send(Request(row.method, server.url()))
            #expect(response.status == row.status)
            #expect(text(try await response.body.collect()) == row.body)
        }
        #expect(server.connectionCount == (row.body == "until close" ? 2 : 1), "connections are used again")
    }

    @Test func `fields keep their order, and names ignore case`() async throws {
        let server = try ScriptedServer(answering: ok + "Content-Length: 0\r\nA: 1\r\nb: 2\r\nA: 3\r\n\r\n")
        let response = try await Client(.direct()).send(Request(.get, server.url()))
        #expect(response.fields.lines.map(\.name) == ["Content-Length", "A", "b", "A"])
        #expect(response.fields["B"] == "2" && response.fields.all("a") == ["1", "3"] && response.fields["c"] == nil)
    }

    static let faults: [(answer: String, error: ClientError)] = [
        ("SSH-2.0-x\r\n and more\r\n", .notHTTP(reason: "bad-status-line")), ("", .brokeOff(.waiting)),
        ("HTTP/1.1 200 O", .brokeOff(.waiting)),
        ("HTTP/1.1 101 Switching\r\n\r\n", .notHTTP(reason: "unexpected-upgrade")),
        (ok + "Content-Length: 9\r\n\r\nhello", .brokeOff(.receiving)),
        (ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", .brokeOff(.receiving)),
        (ok + "Transfer-Encoding: chunked\r\n\r\nx\r\n", .notHTTP(reason: "bad-chunk-size")),
    ]
    @Test(arguments: faults) func `a broken answer is an error`(_ row: (answer: String, error: ClientError))
        async throws
    {
        let server = try ScriptedServer(answering: row.answer, closes: true)
        await #expect(throws: row.error) {
            _ = try await Client(.direct()).send(Request(.get, server.url())).body.collect()
        }
    }

    @Test func `nobody listens`() async throws {
        // Bound and not listening, so that no other test gets the port.
        let held = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        defer { close(held) }
        var local = sockaddr_in()
        local.sin_family = sa_family_t(AF_INET)
        local.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let isBound = unsafe withUnsafePointer(to: &local) {
            unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(held, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(isBound == 0)
        let address = "\(try Sockets.localAddress(held))"
        await #expect(throws: ClientError.cannotConnect(place: address, code: ECONNREFUSED)) {
            try await Client(.direct()).send(Request(.get, "http://\(address)/"))
        }
    }

    @Test func `a request that cannot be sent is refused`() async throws {
        let client = try Client(.direct())
        await #expect(throws: ClientError.badRequest("\"/x\" is not an absolute URL")) {
            try await client.send(Request(.get, "/x"))
        }
        await #expect(throws: ClientError.badRequest("Host is set by the client")) {
            try await client.send(Request(.get, "http://a/", fields: ["Host": "b"]))
        }
    }

    @Test func `a connection that the server closed while it was idle costs nothing`() async throws {
        let server = try ScriptedServer { peer, number in
            _ = try peer.head()
            try peer.send(ok + "Content-Length: 1\r\n\r\n\(number)")
            // The second request has been sent when the connection ends.
            if number == 0 { _ = try peer.head() } else { peer.end() }
        }
        let client = try Client(.direct())
        for expected in ["0", "1"] {
            #expect(text(try await client.send(Request(.get, server.url())).body.collect()) == expected)
        }
    }

    @Test func `a POST is not sent twice`() async throws {
        let server = try ScriptedServer { peer, _ in
            _ = try peer.head()
            try peer.send(ok + "Content-Length: 0\r\n\r\n")
            _ = try peer.head()
        }
        let client = try Client(.direct())
        _ = try await client.send(Request(.post, server.url())).body.collect()
        await #expect(throws: ClientError.brokeOff(.waiting)) {
            try await client.send(Request(.post, server.url()))
        }
        #expect(server.connectionCount == 1)
    }

    @Test func `gzip is decoded if it is asked for`() async throws {
        let plain = [UInt8](repeating: 0x61, count: 300_000)
        let packed = gzip(plain)
        let head = ok + "Content-Encoding: gzip\r\nContent-Length: \(packed.count)\r\n\r\n"
        let server = try ScriptedServer { peer, _ in
            while true {
                let request = try peer.head()
                guard request.contains("Accept-Encoding: gzip") || request.contains("GET /raw") else { return }
                try peer.send(Array(head.utf8) + packed)
            }
        }
        let client = try Client(.direct())
        var request = Request(.get, server.url())
        request.decodesGzip = true
        #expect(try await client.send(request).body.collect() == plain)
        #expect(try await client.send(Request(.get, server.url("/raw"))).body.collect() == packed)
        await #expect(throws: ClientError.bodyTooLarge(limit: 1000)) {
            try await client.send(request).body.collect(upTo: 1000)
        }
    }

    @Test(arguments: ["nonsense", "\u{1F}"]) func `what is not gzip is not decoded`(_ body: String) async throws {
        let server = try ScriptedServer(
            answering: ok + "Content-Encoding: gzip\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
        var request = Request(.get, server.url())
        request.decodesGzip = true
        await #expect(throws: ClientError.undecodable) {
            try await Client(.direct()).send(request).body.collect()
        }
    }

    @Test func `redirects are followed as far as the request allows`() async throws {
        let server = try ScriptedServer { peer, _ in
            while true {
                let line = try peer.head().prefix { $0 != "\r\n" }
                switch line.split(separator: " ")[1] {
                case "/1": try peer.send("HTTP/1.1 302 Found\r\nLocation: /2\r\nContent-Length: 3\r\n\r\nsee")
                case "/2": try peer.send("HTTP/1.1 302 Found\r\nLocation: /3\r\nContent-Length: 0\r\n\r\n")
                default: try peer.send(ok + "Content-Length: \(line.utf8.count)\r\n\r\n\(line)")
                }
            }
        }
        let client = try Client(.direct())
        var request = Request(.post, server.url("/1"), body: .text("x"))
        #expect(try await client.send(Request(.get, server.url("/1"))).status == 302)
        request.redirectsMax = 1
        await #expect(throws: ClientError.tooManyRedirects(limit: 1)) {
            try await client.send(Request(.get, server.url("/1")).following(1))
        }
        let response = try await client.send(Request(.get, server.url("/1")).following(2))
        #expect(response.status == 200 && response.url == server.url("/3"))
        #expect(text(try await response.body.collect()) == "GET /3 HTTP/1.1")
    }
}

extension Request {
    fileprivate func following(_ count: Int) -> Request {
        var request = self
        request.redirectsMax = count
        return request
    }
}

@Suite("client: ways", .onOwnThreads) struct ClientWayTests {
    /// A server that answers with the head of the request.
    private func echo(on address: SocketAddress = SocketAddress(v4: 0x7F00_0001, port: 0)) throws -> ScriptedServer {
        try ScriptedServer(on: address) { peer, _ in
            while true {
                let head = try peer.head()
                try peer.send(ok + "Content-Length: \(head.utf8.count)\r\n\r\n\(head)")
            }
        }
    }

    @Test func `a proxy gets the whole URL and its password`() async throws {
        let proxy = try echo()
        let client = try Client(.proxy(host: "127.0.0.1", port: proxy.address.port, user: "ann", password: "secret"))
        for url in ["http://example.org/a", "https://example.org/a"] {
            #expect(
                text(try await client.send(Request(.get, url)).body.collect())
                    == "GET \(url) HTTP/1.1\r\nHost: example.org\r\nProxy-Authorization: Basic YW5uOnNlY3JldA==")
        }
        #expect(proxy.connectionCount == 1)
    }

    @Test func `a server behind a Unix socket gets the path`() async throws {
        let path = "/tmp/larder-upstream-\(getpid())-\(UInt32.random(in: 0 ... .max)).sock"
        let server = try echo(on: SocketAddress(unixPath: path))
        defer { _ = unsafe unlink(path) }
        let client = try Client(.unixSocket(path))
        #expect(
            text(try await client.send(Request(.get, "http://larder/stats")).body.collect())
                == "GET /stats HTTP/1.1\r\nHost: larder")
        #expect(server.connectionCount == 1)
        await #expect(throws: ClientError.cannotConnect(place: "unix:\(path)x", code: ENOENT)) {
            try await Client(.unixSocket(path + "x")).send(Request(.get, "http://larder/"))
        }
    }

    static let tunnels: [(answer: String, error: ClientError)] = [
        ("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno", .noTunnel(status: 403)),
        ("nonsense and more\r\n\r\n", .notHTTP(reason: "bad-status-line")), ("HTTP/1.1 2", .brokeOff(.connecting)),
    ]
    @Test(arguments: tunnels) func `a tunnel may be refused`(_ row: (answer: String, error: ClientError)) async throws {
        let seen = Locked("")
        let proxy = try ScriptedServer { peer, _ in
            let head = try peer.head()
            seen.withLock { $0 = head }
            try peer.send(row.answer)
        }
        let client = try Client(
            .proxy(
                host: "127.0.0.1", port: proxy.address.port, user: "a", password: "b", https: .tunnel(authorities: nil))
        )
        await #expect(throws: row.error) { try await client.send(Request(.get, "https://example.org/x")) }
        #expect(
            seen.withLock { $0 }
                == "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\nProxy-Authorization: Basic YTpi")
    }

    @Test func `a connection can be opened before it is needed`() async throws {
        let server = try echo()
        let client = try Client(.direct())
        try await client.connect(server.url())
        try await eventually { server.connectionCount == 1 }
        #expect(try await client.send(Request(.get, server.url())).status == 200)
        #expect(server.connectionCount == 1)
    }
}
