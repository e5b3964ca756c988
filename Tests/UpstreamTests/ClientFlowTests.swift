import EventLoop
import Glibc
import ProgramUnderTest
import Synchronization
import Testing

@testable import Upstream

private let ok = "HTTP/1.1 200 OK\r\n"

@Suite("client: bodies", .onOwnThreads) struct ClientBodyTests {
    @Test func `a slow reader pauses the server, and memory stays bounded`() async throws {
        let total = 64 << 20
        let sent = Locked(0)
        let server = try ScriptedServer { peer, _ in
            _ = try peer.head()
            try peer.send(ok + "Content-Length: \(total)\r\n\r\n")
            let piece = [UInt8](repeating: 0x78, count: 64 << 10)
            for _ in 0..<(total / piece.count) {
                try peer.send(piece)
                sent.withLock { $0 += piece.count }
            }
        }
        var options = Client.Options()
        options.bufferBytes = 128 << 10
        let response = try await Client(.direct(), options).send(Request(.get, server.url()))
        // What the client holds and what fits into the sockets, and no more.
        try await eventually { response.body.heldBytesMost >= options.bufferBytes }
        #expect(sent.withLock { $0 } < total)
        var length = 0
        for try await piece in response.body { length += piece.count }
        #expect(length == total)
        #expect(response.body.heldBytesMost <= options.bufferBytes + 64 << 10)
    }

    @Test func `a large body is sent through a small buffer`() async throws {
        let (pieceBytes, count) = (256 << 10, 4096)  // 1 GiB
        let server = try ScriptedServer { peer, _ in
            let head = try peer.head()
            guard head.contains("Content-Length: \(pieceBytes * count)") else { return }
            try peer.skip(pieceBytes * count)
            try peer.send(ok + "Content-Length: 0\r\n\r\n")
        }
        let made = Atomic<Int>(0)
        let progress = Locked(Request.Progress())
        let most = Locked(0)
        let piece = [UInt8](repeating: 1, count: pieceBytes)
        let pieces = AsyncStream { () -> [UInt8]? in
            let number = made.add(1, ordering: .relaxed).newValue
            let sent = progress.withLock { Int($0.sent) }
            // What was made and not sent yet is what the client holds.
            most.withLock { $0 = max($0, (number - 1) * pieceBytes - sent) }
            return number <= count ? piece : nil
        }
        var request = Request(.put, server.url(), body: .stream(pieces, length: UInt64(pieceBytes * count)))
        request.progress = { value in progress.withLock { $0 = value } }
        #expect(try await Client(.direct()).send(request).status == 200)
        #expect(progress.withLock { $0.sent } == UInt64(pieceBytes * count))
        #expect(progress.withLock { $0.toSend } == UInt64(pieceBytes * count))
        #expect(most.withLock { $0 } <= 1 << 20)
    }

    @Test func `a body of unknown length is sent in chunks`() async throws {
        let server = try ScriptedServer { peer, _ in
            let head = try peer.head()
            guard head.contains("Transfer-Encoding: chunked") else { return }
            let body = try peer.bytes(20)
            try peer.send(Array((ok + "Content-Length: \(body.count)\r\n\r\n").utf8) + body)
        }
        let pieces = AsyncStream([UInt8].self) { stream in
            for text in ["ab", "", "cde"] { stream.yield(Array(text.utf8)) }
            stream.finish()
        }
        let response = try await Client(.direct()).send(Request(.post, server.url(), body: .stream(pieces)))
        #expect(try await response.body.collect() == Array("2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n".utf8))
    }

    @Test func `a file is sent as it is`() async throws {
        let path = "/tmp/larder-upload-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        let content = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let file = unsafe open(path, O_CREAT | O_WRONLY, 0o600)
        #expect(unsafe content.withUnsafeBytes { unsafe write(file, $0.baseAddress, $0.count) } == content.count)
        close(file)
        defer { _ = unsafe unlink(path) }
        let server = try ScriptedServer { peer, _ in
            _ = try peer.head()
            let body = try peer.bytes(content.count)
            try peer.send(Array((ok + "Content-Length: \(body.count)\r\n\r\n").utf8) + body)
        }
        let client = try Client(.direct())
        let response = try await client.send(Request(.put, server.url(), body: .file(path)))
        #expect(try await response.body.collect() == content)
        await #expect(throws: ClientError.bodyUnavailable("\(path)x: No such file or directory")) {
            try await client.send(Request(.put, server.url(), body: .file(path + "x")))
        }
        await #expect(throws: ClientError.bodyUnavailable("/tmp is not a file")) {
            try await client.send(Request(.put, server.url(), body: .file("/tmp")))
        }
    }

    private struct Broken: Error, CustomStringConvertible { var description: String { "the pen broke" } }

    static let lengths: [(length: UInt64, error: ClientError)] = [
        (4, .bodyUnavailable("it is longer than the 4 bytes that were announced")),
        (6, .bodyUnavailable("it is shorter than the 6 bytes that were announced")),
    ]
    @Test(arguments: lengths) func `a body has the length that was announced`(
        _ row: (length: UInt64, error: ClientError)
    ) async throws {
        let server = try ScriptedServer { peer, _ in peer.end() }
        let pieces = AsyncStream([UInt8].self) { stream in
            stream.yield(Array("hello".utf8))
            stream.finish()
        }
        await #expect(throws: row.error) {
            try await Client(.direct()).send(Request(.put, server.url(), body: .stream(pieces, length: row.length)))
        }
    }

    @Test func `an error of the sequence ends the request`() async throws {
        let server = try ScriptedServer { peer, _ in peer.end() }
        let pieces = AsyncThrowingStream([UInt8].self) { stream in
            stream.yield(Array("hello".utf8))
            stream.finish(throwing: Broken())
        }
        await #expect(throws: ClientError.bodyUnavailable("the pen broke")) {
            try await Client(.direct()).send(Request(.put, server.url(), body: .stream(pieces)))
        }
    }

    @Test func `an answer before the end of the request is an answer`() async throws {
        let server = try ScriptedServer { peer, _ in
            _ = try peer.head()
            try peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
            peer.end()
        }
        let client = try Client(.direct())
        let pieces = AsyncStream { [UInt8](repeating: 0, count: 64 << 10) }
        let response = try await client.send(Request(.put, server.url(), body: .stream(pieces)))
        #expect(response.status == 413)
        #expect(try await response.body.collect() == Array("no".utf8))
        #expect(try await client.send(Request(.get, server.url())).status == 413)
        #expect(server.connectionCount == 2, "half of a request is left on the connection")
    }

    @Test func `progress tells both lengths`() async throws {
        let server = try ScriptedServer(answering: ok + "Content-Length: 5\r\n\r\nhello")
        let last = Locked(Request.Progress())
        var request = Request(.get, server.url())
        request.progress = { value in last.withLock { $0 = value } }
        _ = try await Client(.direct()).send(request).body.collect()
        let progress = last.withLock { $0 }
        #expect(progress.received == 5 && progress.toReceive == 5 && progress.sent == 0 && progress.toSend == 0)
    }
}

@Suite("client: the end of requests", .onOwnThreads) struct ClientEndTests {
    /// A server that sends `text` and then nothing, and says when the client has left.
    private func silent(_ text: String, _ left: Locked<Bool>) throws -> ScriptedServer {
        try ScriptedServer { peer, _ in
            defer { left.withLock { $0 = true } }
            _ = try peer.head()
            try peer.send(text)
            peer.end()
        }
    }

    @Test(arguments: [
        "", "HTTP/1.1 100 Continue\r\n\r\nHTT", ok + "Content-Length: 9\r\n\r\n", ok + "Content-Length: 9\r\n\r\nhello",
    ])
    func `cancellation ends the transfer and its connection`(_ text: String) async throws {
        let left = Locked(false)
        let server = try silent(text, left)
        let client = try Client(.direct())
        let received = Locked(0)
        let task = Task.onOwnThreads {
            for try await piece in try await client.send(Request(.get, server.url())).body {
                received.withLock { $0 += piece.count }
            }
        }
        try await eventually {
            server.connectionCount == 1 && (!text.hasSuffix("hello") || received.withLock { $0 } == 5)
        }
        task.cancel()
        await #expect(throws: ClientError.cancelled) { try await task.value }
        try await eventually { left.withLock { $0 } }
    }

    @Test func `a request that waits can be cancelled`() async throws {
        let left = Locked(false)
        let server = try silent("", left)
        var options = Client.Options()
        options.requestsMax = 1
        let client = try Client(.direct(), options)
        let first = Task.onOwnThreads { try await client.send(Request(.get, server.url())) }
        try await eventually { server.connectionCount == 1 }
        let second = Task.onOwnThreads { try await client.send(Request(.get, server.url())) }
        second.cancel()
        await #expect(throws: ClientError.cancelled) { try await second.value }
        first.cancel()
        await #expect(throws: ClientError.cancelled) { try await first.value }
        #expect(server.connectionCount == 1)
    }

    @Test func `an answer that nobody wants ends its connection`() async throws {
        let left = Locked(false)
        let server = try silent(ok + "Content-Length: 9\r\n\r\nhello", left)
        let client = try Client(.direct())
        var response: Response? = try await client.send(Request(.get, server.url()))
        #expect(response?.status == 200)
        response = nil
        try await eventually { left.withLock { $0 } }
    }

    static let limits: [(text: String, set: @Sendable (inout Request.TimeLimits) -> Void, phase: ClientError.Phase)] = [
        ("", { $0.answer = .milliseconds(200) }, .waiting),
        (ok + "Content-Length: 9\r\n\r\nhello", { $0.silence = .milliseconds(200) }, .receiving),
        ("", { $0.whole = .milliseconds(200) }, .whole),
        (ok + "Content-Length: 9\r\n\r\nhello", { $0.whole = .milliseconds(200) }, .whole),
    ]
    @Test(arguments: limits) func `time limits end requests`(
        _ row: (text: String, set: @Sendable (inout Request.TimeLimits) -> Void, phase: ClientError.Phase)
    ) async throws {
        let left = Locked(false)
        let server = try silent(row.text, left)
        var request = Request(.get, server.url())
        row.set(&request.timeLimits)
        let client = try Client(.direct())
        await #expect(throws: ClientError.timedOut(row.phase)) {
            try await client.send(request).body.collect()
        }
        try await eventually { left.withLock { $0 } }
    }

    @Test func `the time of a slow reader is not that of the server`() async throws {
        let server = try ScriptedServer { peer, _ in
            _ = try peer.head()
            try peer.send(ok + "Content-Length: \(1 << 20)\r\n\r\n")
            try peer.send([UInt8](repeating: 0, count: 1 << 20))
        }
        var options = Client.Options()
        options.bufferBytes = 1024
        var request = Request(.get, server.url())
        request.timeLimits.silence = .milliseconds(150)
        let response = try await Client(.direct(), options).send(request)
        try await eventually { response.body.heldBytesMost > 0 }
        try await Task.sleep(for: .milliseconds(500))
        #expect(try await response.body.collect().count == 1 << 20)
    }

    @Test func `a client that closes ends its requests`() async throws {
        let left = Locked(false)
        let server = try silent("", left)
        let client = try Client(.direct())
        let task = Task.onOwnThreads { try await client.send(Request(.get, server.url())) }
        try await eventually { server.connectionCount == 1 }
        client.close()
        await #expect(throws: ClientError.closed) { try await task.value }
        await #expect(throws: ClientError.closed) { try await client.send(Request(.get, server.url())) }
        try await eventually { left.withLock { $0 } }
    }
}

@Suite("client: opening a connection", .onOwnThreads) struct ClientOpeningTests {
    @Test func `a name that cannot be has no address`() async throws {
        let host = String(repeating: "a", count: 64) + ".example"
        await #expect(throws: ClientError.unknownHost(host)) {
            try await Client(.direct()).send(Request(.get, "http://\(host)/"))
        }
    }

    @Test func `connecting has a limit of time`() async throws {
        let server = try Unanswering.FullListener()
        var request = Request(.get, "http://127.0.0.1:\(server.port)/")
        request.timeLimits.connect = .milliseconds(150)
        await #expect(throws: ClientError.timedOut(.connecting)) { try await Client(.direct()).send(request) }
    }

    /// The request after the cancelled one begins only if that one has given its place back.
    @Test func `a request that is cancelled while its connection opens gives its place back`() async throws {
        let full = try Unanswering.FullListener()
        let server = try ScriptedServer(answering: ok + "Content-Length: 0\r\n\r\n")
        var options = Client.Options()
        options.requestsMax = 1
        let client = try Client(.direct(), options)
        let port = full.port
        let task = Task.onOwnThreads {
            var request = Request(.get, "http://127.0.0.1:\(port)/")
            request.timeLimits.connect = nil
            return try await client.send(request)
        }
        try await eventually { client.submittedCount == 1 }
        let next = Task.onOwnThreads { try await client.send(Request(.get, server.url())).status }
        try await eventually { client.submittedCount == 2 }
        #expect(server.connectionCount == 0)
        task.cancel()
        await #expect(throws: ClientError.cancelled) { try await task.value }
        #expect(try await next.value == 200)
    }
}

@Suite("client: many requests", .onOwnThreads) struct ClientQueueTests {
    /// A server that keeps each request until it may answer.
    private final class Keeper: Sendable {
        let paths = Locked<[String]>([])
        let mayAnswer = CountingSemaphore()
        let running = Locked((now: 0, most: 0))

        func serve(_ peer: Peer) throws {
            while true {
                let path = try peer.head().split(separator: " ")[1]
                paths.withLock { $0.append(String(path)) }
                running.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
                mayAnswer.wait()
                running.withLock { $0.now -= 1 }
                try peer.send(ok + "Content-Length: 0\r\n\r\n")
            }
        }
    }

    @Test func `urgent requests overtake, and each priority keeps its order`() async throws {
        let keeper = Keeper()
        let server = try ScriptedServer { peer, _ in try keeper.serve(peer) }
        var options = Client.Options()
        options.requestsMax = 1
        let client = try Client(.direct(), options)
        let order: [(String, Request.Priority)] = [
            ("/first", .normal), ("/l1", .low), ("/n1", .normal), ("/l2", .low), ("/h1", .high), ("/n2", .normal),
            ("/h2", .high),
        ]
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, (path, priority)) in order.enumerated() {
                group.addTask {
                    var request = Request(.get, server.url(path))
                    request.priority = priority
                    _ = try await client.send(request).body.collect()
                }
                // The order in which tasks begin is not that in which they were made.
                try await eventually { client.submittedCount == index + 1 }
            }
            for _ in order { keeper.mayAnswer.signal() }
            try await group.waitForAll()
        }
        #expect(keeper.paths.withLock { $0 } == ["/first", "/h1", "/h2", "/n1", "/n2", "/l1", "/l2"])
    }

    @Test func `only so many requests run at a time, and only so many wait`() async throws {
        let keeper = Keeper()
        let server = try ScriptedServer { peer, _ in try keeper.serve(peer) }
        var options = Client.Options()
        options.requestsMax = 3
        options.waitingMax = 5
        let client = try Client(.direct(), options)
        let full = try await withThrowingTaskGroup(of: Bool.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    do throws(ClientError) {
                        _ = try await client.send(Request(.get, server.url())).body.collect()
                        return false
                    } catch {
                        guard error == .tooManyRequests(limit: 5) else { throw error }
                        return true
                    }
                }
            }
            try await eventually { client.submittedCount == 20 && keeper.running.withLock { $0.now } == 3 }
            for _ in 0..<20 { keeper.mayAnswer.signal() }
            var full = 0
            while let wasFull = try await group.next() { full += wasFull ? 1 : 0 }
            return full
        }
        #expect(full == 12)
        #expect(keeper.running.withLock { $0.most } == 3)
        #expect(server.connectionCount == 3)
    }
}
