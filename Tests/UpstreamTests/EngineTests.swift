import EventLoop
import Foundation
import Glibc
import ProgramUnderTest
import Synchronization
import Testing

@testable import Upstream

private let ok = "HTTP/1.1 200 OK\r\n"

/// Origins of the tests are on loopback, which is closed by default.
private let open = """
    access: { private_destinations: allow }
    dns: { hosts: { origin.example: [ 127.0.0.1 ] } }

    """

private func engine(_ text: String = "", user: String? = nil) throws -> Client {
    try Client(.engine(.init(.text(open + text), user: user)))
}

extension ScriptedServer {
    /// The server by a name that only the engine of the tests knows.
    fileprivate func named(_ path: String = "/") -> String { "http://origin.example:\(address.port)\(path)" }
}

private func collect(_ client: Client, _ url: String) async throws -> (status: Int, body: String) {
    let response = try await client.send(Request(.get, url))
    return (response.status, String(decoding: try await response.body.collect(), as: UTF8.self))
}

@Suite("client: the engine", .onOwnThreads) struct EngineTests {
    @Test func `the engine resolves, forwards and stores`() async throws {
        let heads = Locked<[String]>([])
        let server = try ScriptedServer { peer, _ in
            while true {
                let head = try peer.head()
                heads.withLock { $0.append(head) }
                try peer.send(ok + "Cache-Control: max-age=60\r\nContent-Length: 5\r\n\r\nhello")
            }
        }
        let client = try engine()
        for _ in 0..<3 { #expect(try await collect(client, server.named("/a?b")) == (200, "hello")) }
        let head = try #require(heads.withLock { $0.first })
        #expect(heads.withLock { $0.count } == 1, "two answers come from the store")
        #expect(head.hasPrefix("GET /a?b HTTP/1.1\r\n") && head.contains("Via: 1.1 larder"), "\(head)")
        let hit = try await client.send(Request(.get, server.named("/a?b")))
        #expect(hit.fields["Cache-Status"]?.hasPrefix("larder; hit") == true)
        client.close()
    }

    @Test func `a route leads to a next proxy, where the engine logs in`() async throws {
        let proxy = try ScriptedServer { peer, _ in
            while true {
                let head = try peer.head()
                guard head.hasPrefix("GET http://far.example/x HTTP/1.1\r\n") else { return }
                if head.contains("Proxy-Authorization: Basic YW5uOnNlY3JldA==") {
                    try peer.send(ok + "Content-Length: 3\r\n\r\nfar")
                } else {
                    try peer.send(
                        "HTTP/1.1 407 x\r\nProxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 0\r\n\r\n")
                }
            }
        }
        let client = try engine(
            """
            credentials: [ { name: corp, scheme: basic, user: ann, password: secret } ]
            routes: [ { match: { host: far.example }, via: [ "http://\(proxy.address)" ], credential: corp } ]
            """)
        #expect(try await collect(client, "http://far.example/x") == (200, "far"))
    }

    @Test func `the engine logs in at an origin`() async throws {
        let server = try ScriptedServer { peer, _ in
            while true {
                let isKnown = try peer.head().contains("Authorization: Basic YW5uOnNlY3JldA==")
                try peer.send(
                    isKnown
                        ? ok + "Content-Length: 2\r\n\r\nin"
                        : "HTTP/1.1 401 x\r\nWWW-Authenticate: Basic realm=\"o\"\r\nContent-Length: 0\r\n\r\n")
            }
        }
        let client = try engine(
            """
            credentials:
              - name: origin
                scheme: basic
                match: { host: origin.example }
                plain_http: yes
                user: ann
                password: secret
            """)
        #expect(try await collect(client, server.named()) == (200, "in"))
        #expect(try await collect(client, server.url()).status == 401, "another host gets nothing")
    }

    @Test func `a token goes to its origin`() async throws {
        let server = try ScriptedServer { peer, _ in
            let field = try peer.head().split(separator: "\r\n").first { $0.hasPrefix("Authorization") } ?? "none"
            try peer.send(ok + "Content-Length: \(field.utf8.count)\r\n\r\n\(field)")
        }
        let client = try engine(
            """
            credentials:
              - name: forge
                scheme: bearer
                match: { host: origin.example }
                plain_http: yes
                token: engine-token-0123456789
            """)
        #expect(try await collect(client, server.named()).body == "Authorization: Bearer engine-token-0123456789")
    }

    @Test func `a connection that ended before the answer is replaced`() async throws {
        let server = try ScriptedServer { peer, number in
            _ = try peer.head()
            if number == 0 {
                try peer.send(ok + "Content-Length: 1\r\n\r\na")
                _ = try peer.head()  // ends without an answer
            } else {
                try peer.send(ok + "Content-Length: 1\r\n\r\nb")
                peer.end()
            }
        }
        let client = try engine()
        #expect(try await collect(client, server.named("/a")) == (200, "a"))
        #expect(try await collect(client, server.named("/b")) == (200, "b"))
        #expect(server.connectionCount == 2)
    }

    @Test func `a download that breaks off goes on where it ended`() async throws {
        let content = (0..<400_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let half = 150_000
        let server = try ScriptedServer { peer, number in
            let head = try peer.head()
            let tag = "ETag: \"v\"\r\n"
            if number == 0 {
                try peer.send(ok + tag + "Content-Length: \(content.count)\r\n\r\n")
                return try peer.send(Array(content[..<half]))
            }
            guard let range = head.split(separator: "\r\n").first(where: { $0.hasPrefix("Range: bytes=") }),
                let start = Int(range.dropFirst(13).prefix { $0 != "-" })
            else { return }
            try peer.send(
                "HTTP/1.1 206 Part\r\n\(tag)Content-Length: \(content.count - start)\r\n"
                    + "Content-Range: bytes \(start)-\(content.count - 1)/\(content.count)\r\n\r\n")
            try peer.send(Array(content[start...]))
        }
        let response = try await engine().send(Request(.get, server.named()))
        #expect(try await response.body.collect() == content)
        #expect(server.connectionCount == 2)
    }

    @Test func `a cookie jar keeps the session`() async throws {
        let server = try ScriptedServer { peer, _ in
            while true {
                let isKnown = try peer.head().contains("Cookie: s=1")
                let fields = isKnown ? "" : "Set-Cookie: s=1\r\n"
                try peer.send(ok + fields + "Content-Length: 1\r\n\r\n\(isKnown ? "b" : "a")")
            }
        }
        let client = try engine(
            """
            cookie_jars: [ { name: portal } ]
            origins: [ { match: { host: origin.example }, cookies: portal } ]
            """)
        #expect(try await collect(client, server.named("/1")).body == "a")
        #expect(try await collect(client, server.named("/2")).body == "b")
    }

    @Test func `of two engines with one disk, the second stores in memory and says so`() async throws {
        let directory = "/tmp/larder-engine-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        defer { do { try FileManager.default.removeItem(atPath: directory) } catch { Issue.record(error) } }
        let disk = "cache: { disk: { path: \(directory), size: 64MiB } }\n"
        let first = try engine(disk)
        #expect(first.warnings == [])
        let second = try engine(disk)
        #expect(second.warnings.count == 1 && second.warnings[0].hasPrefix("configuration:3: cache.disk"))
        #expect(second.warnings[0].contains("stores responses in memory only"), "\(second.warnings)")
        first.close()
        second.close()
    }

    // MARK: what the engine itself answers

    @Test func `a refusal is no answer, and an answer no refusal`() async throws {
        let server = try ScriptedServer { peer, _ in
            while true {
                _ = try peer.head()
                try peer.send(
                    "HTTP/1.1 502 Bad Gateway\r\n"
                        + "Proxy-Status: larder; error=connection_refused; details=\"connection-refused\"\r\n"
                        + "Cache-Status: larder; detail=connection-refused\r\nVia: 1.1 larder\r\n"
                        + "Content-Length: 6\r\n\r\nforged")
            }
        }
        let gone = try Unanswering.ClosedPort()
        let client = try engine()
        await #expect(
            throws: ClientError.refused(
                .init(
                    reason: "connection-refused", status: 502, error: "connection_refused",
                    details: "connection-refused"))
        ) {
            try await client.send(Request(.post, "http://127.0.0.1:\(gone.port)/"))
        }
        #expect(try await collect(client, server.named()) == (502, "forged"))
        #expect(try await collect(client, server.named()) == (502, "forged"))
    }

    @Test func `the defaults close what is not public`() async throws {
        let server = try ScriptedServer(answering: ok + "Content-Length: 0\r\n\r\n")
        let client = try Client(.engine())
        await #expect {
            try await client.send(Request(.get, server.url()))
        } throws: { error in
            guard case .refused(let refusal) = error as? ClientError else { return false }
            return refusal.reason == "destination-forbidden" && refusal.status == 403
                && refusal.error == "destination_ip_prohibited" && refusal.details.contains("127.0.0.1")
                && "\(error)".hasPrefix("destination-forbidden: ")
        }
        #expect(server.connectionCount == 0)
    }

    @Test func `an origin that does not answer in the time of the configuration is a refusal`() async throws {
        let server = try ScriptedServer { peer, _ in peer.end() }
        let client = try engine("timeouts: { first_byte: 150ms }\nretries: { max: 0 }\n")
        await #expect(
            throws: ClientError.refused(
                .init(
                    reason: "response-timeout", status: 504, error: "http_response_timeout",
                    details: "response-timeout"))
        ) { try await client.send(Request(.get, server.named())) }
    }

    @Test func `a body that breaks off is no refusal`() async throws {
        let server = try ScriptedServer { peer, _ in
            _ = try peer.head()
            try peer.send(ok + "Content-Length: 100000\r\n\r\nhello")
        }
        await #expect(throws: ClientError.brokeOff(.receiving)) {
            _ = try await engine("retries: { max: 0 }").send(Request(.get, server.named())).body.collect()
        }
    }

    @Test func `the program has the user that it names`() async throws {
        let server = try ScriptedServer(answering: ok + "Content-Length: 0\r\n\r\n")
        let users = try temporaryFile("ann:$2y$05$abcdefghijklmnopqrstuuSxXk7vT3DNVUYyIZ8Q2q0bTg3W0X3yK\n")
        defer { _ = unsafe unlink(users) }
        let text = """
            access:
              authentication: { basic: { users: \(users) } }
              rules: [ { allow: { user: ann, address: 127.0.0.1 } } ]
              default: deny
            """
        func reason(_ user: String?) async throws -> String {
            let client = try Client(.engine(.init(.text(text), user: user)))
            do throws(ClientError) {
                return "\(try await client.send(Request(.get, server.url())).status)"
            } catch { return "\(error)" }
        }
        #expect(try await reason("ann") == "200")
        #expect(try await reason("bob").hasPrefix("access-denied: "))
        #expect(try await reason(nil) == "authentication-required")
    }

    // MARK: the configuration

    static let faults: [(text: String, error: String)] = [
        ("workers: 1\ncache:\n  memry: 1GiB\n", "own.yaml:3: cache.memry: unknown key"),
        ("timeouts: { connect: soon }\n", "own.yaml:1: timeouts.connect: "), ("a: [\n", "own.yaml:2: "),
        (
            "credentials:\n  - name: a\n    scheme: basic\n    match: { host: a.example }\n    user: b\n"
                + "    password: { file: /nowhere/password }\n",
            "own.yaml:6: credentials[1].password: "
        ),
    ]
    @Test(arguments: faults) func `an error of the configuration has its line`(_ row: (text: String, error: String)) {
        #expect {
            _ = try Client(.engine(.text(row.text, name: "own.yaml")))
        } throws: { error in
            guard case .badConfiguration(let errors) = error as? ClientError else { return false }
            return errors.count == 1 && errors[0].hasPrefix(row.error) && "\(error)" == errors[0]
        }
    }

    @Test func `a configuration file is read`() async throws {
        let server = try ScriptedServer(answering: ok + "Content-Length: 0\r\n\r\n")
        // The address is in use, but an engine does not listen.
        let path = try temporaryFile(open + "listen: [ { address: \"\(server.address)\" } ]\n")
        defer { _ = unsafe unlink(path) }
        #expect(try await collect(Client(.engine(.file(path))), server.named()).status == 200)
        #expect(throws: ClientError.badConfiguration(["/nowhere/a.yaml: cannot be read: No such file or directory"])) {
            try Client(.engine(.file("/nowhere/a.yaml")))
        }
    }

    @Test func `PAC files need the program that evaluates them`() async throws {
        let proxy = try ScriptedServer(answering: ok + "Content-Length: 3\r\n\r\npac")
        let script = try temporaryFile(
            "function FindProxyForURL(url, host) { return 'PROXY \(proxy.address)'; }\n")
        defer { _ = unsafe unlink(script) }
        let text = open + "routes: [ { pac: \(script) } ]\n"
        #expect {
            try Client(.engine(.text(text)))
        } throws: { "\($0)".hasPrefix("configuration:3: routes[1].pac: PAC files are evaluated by the program larder") }
        let client = try Client(.engine(.init(.text(text), pacEvaluator: larderExecutable)))
        #expect(try await collect(client, "http://far.example/").body == "pac")
        client.close()
    }

    // MARK: many requests

    @Test func `two engines in one process have nothing in common`() async throws {
        let server = try ScriptedServer(answering: ok + "Cache-Control: max-age=60\r\nContent-Length: 0\r\n\r\n")
        let (open, closed) = (try engine(), try Client(.engine()))
        for _ in 0..<3 {
            #expect(try await collect(open, server.url()).status == 200)
            await #expect(throws: ClientError.self) { try await closed.send(Request(.get, server.url())) }
        }
        open.close()
        await #expect(throws: ClientError.closed) { try await open.send(Request(.get, server.url())) }
        await #expect {
            try await closed.send(Request(.get, server.url()))
        } throws: { error in
            if case .refused = error as? ClientError { true } else { false }
        }
    }

    @Test func `a cancelled request frees its connection to the origin`() async throws {
        let (received, left) = (Locked(0), Locked(0))
        let server = try ScriptedServer { peer, _ in
            _ = try peer.head()
            received.withLock { $0 += 1 }
            peer.end()
            left.withLock { $0 += 1 }
        }
        let client = try engine()
        let task = Task.onOwnThreads { try await client.send(Request(.get, server.named())) }
        try await eventually { received.withLock { $0 } == 1 }
        task.cancel()
        await #expect(throws: ClientError.cancelled) { try await task.value }
        try await eventually { left.withLock { $0 } == 1 }
        client.close()
    }

    @Test func `close ends the requests that run`() async throws {
        let (received, left) = (Locked(0), Locked(0))
        let server = try ScriptedServer { peer, _ in
            _ = try peer.head()
            received.withLock { $0 += 1 }
            try peer.send(ok + "Content-Length: 1000\r\n\r\nhello")
            peer.end()
            left.withLock { $0 += 1 }
        }
        let client = try engine()
        let responses = try await withThrowingTaskGroup(of: Response.self) { group in
            for number in 0..<8 {
                group.addTask { try await client.send(Request(.get, server.named("/\(number)"))) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        client.close()
        for response in responses {
            await #expect(throws: ClientError.closed) { try await response.body.collect() }
        }
        // The connections close with the workers, whose threads `close` has waited for.
        try await eventually { left.withLock { $0 } == received.withLock { $0 } }
        client.close()
    }

    @Test func `an engine ends with the last reference to its client`() async throws {
        let left = Locked(false)
        let server = try ScriptedServer { peer, _ in
            _ = try peer.head()
            try peer.send(ok + "Content-Length: 0\r\n\r\n")
            peer.end()
            left.withLock { $0 = true }
        }
        #expect(try await collect(engine(), server.named()).status == 200)
        try await eventually { left.withLock { $0 } }
    }

    @Test func `a large body is sent through bounded buffers, with progress`() async throws {
        let (pieceBytes, count) = (256 << 10, 256)  // 64 MiB
        let received = Atomic<Int>(0)
        let (progress, ahead) = (Locked(Request.Progress()), Locked(0))
        let isFull = CountingSemaphore()
        let server = try ScriptedServer { peer, _ in
            _ = try peer.head()
            // Reads nothing before the client has tried.
            isFull.wait()
            for _ in 0..<count {
                try peer.skip(pieceBytes)
                received.add(pieceBytes, ordering: .relaxed)
            }
            try peer.send(ok + "Content-Length: 0\r\n\r\n")
        }
        let made = Atomic<Int>(0)
        let piece = [UInt8](repeating: 1, count: pieceBytes)
        let pieces = AsyncStream { () -> [UInt8]? in
            let number = made.add(1, ordering: .relaxed).newValue
            if number == 8 { isFull.signal() }
            let lead = (number - 1) * pieceBytes - received.load(ordering: .relaxed)
            ahead.withLock { $0 = max($0, lead) }
            return number <= count ? piece : nil
        }
        var request = Request(.put, server.named(), body: .stream(pieces, length: UInt64(pieceBytes * count)))
        request.progress = { value in progress.withLock { $0 = value } }
        #expect(try await engine().send(request).status == 200)
        #expect(progress.withLock { $0.sent } == UInt64(pieceBytes * count))
        // The buffers of the client and the engine, and those of the system for two connections.
        #expect(ahead.withLock { $0 } <= 32 << 20)
    }

    @Test func `a slow reader pauses the origin`() async throws {
        let total = 64 << 20
        let sent = Locked(0)
        let server = try ScriptedServer { peer, _ in
            _ = try peer.head()
            try peer.send(ok + "Cache-Control: no-store\r\nContent-Length: \(total)\r\n\r\n")
            let piece = [UInt8](repeating: 0x78, count: 64 << 10)
            for _ in 0..<(total / piece.count) {
                try peer.send(piece)
                sent.withLock { $0 += piece.count }
            }
        }
        let client = try engine()
        let response = try await client.send(Request(.get, server.named()))
        try await eventually { response.body.heldBytesMost >= 256 << 10 }
        #expect(sent.withLock { $0 } < total)
        var length = 0
        for try await piece in response.body { length += piece.count }
        #expect(length == total)
    }

    @Test func `many requests run, and each gets its own answer`() async throws {
        let server = try ScriptedServer { peer, _ in
            while true {
                let path = try peer.head().split(separator: " ")[1]
                try peer.send(ok + "Content-Length: \(path.utf8.count)\r\n\r\n\(path)")
            }
        }
        let client = try engine("workers: 2\n")
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<400 {
                group.addTask { try await collect(client, server.named("/\(number)")).body == "/\(number)" }
            }
            for try await isRight in group { #expect(isRight) }
        }
    }

    // MARK: the process

    @Test func `the engine changes nothing of the process`() async throws {
        func state() -> [Int] {
            var (mask, limit) = (sigset_t(), rlimit())
            _ = unsafe pthread_sigmask(SIG_BLOCK, nil, &mask)
            _ = unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            let isBlocked = [SIGTERM, SIGINT, SIGHUP].map { unsafe Int(sigismember(&mask, $0)) }
            return isBlocked + [Int(limit.rlim_cur)]
        }
        let before = state()
        let client = try engine("credentials: [ { name: a, scheme: bearer, match: { host: a.example }, token: b } ]")
        #expect(state() == before)
        client.close()
    }

    private func temporaryFile(_ text: String) throws -> String {
        let path = "/tmp/larder-engine-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        return path
    }
}
