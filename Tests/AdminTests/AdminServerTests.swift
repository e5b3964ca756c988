import Admin
import EventLoop
import Glibc
import Testing

import Provisioning
@testable import larder
import JSON

/// An admin server on a thread of its own, on a Unix socket and a port the kernel chose.
private final class RunningAdmin {
    let proxy = ScriptedProxy()
    let directory: String
    let port: UInt16
    private let inbox: Inbox
    private let stop: @Sendable () -> Void
    private var thread: ThreadHandle?

    var socketPath: String { "\(directory)/admin.sock" }

    init() throws {
        var template = Array("/tmp/larder-admin-XXXXXX".utf8CString)
        let made = unsafe template.withUnsafeMutableBufferPointer { unsafe mkdtemp($0.baseAddress!) != nil }
        try #require(made)
        directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        nonisolated(unsafe) let loop = try EventLoop()
        nonisolated(unsafe) let server = unsafe AdminServer(
            proxy: proxy, loop: loop, token: Array("a-token-of-some-length".utf8))
        port = try unsafe server.listen(SocketAddress(v4: 0x7F00_0001, port: 0)).port
        try unsafe server.listen(unixPath: "\(directory)/admin.sock")
        inbox = unsafe loop.inbox
        stop = {
            unsafe server.close()
            unsafe loop.stop()
        }
        thread = try startThread(name: "admin-test") { unsafe loop.run() }
    }

    /// Ends the loop and waits for its thread.
    func end() {
        inbox.post(stop)
        if let thread = thread.take() { thread.join() }
        _ = unsafe rmdir(directory)
    }

    /// Sends the pieces one after the other on one TCP connection and reads until the server closes.
    func exchange(_ pieces: [String]) throws -> String {
        let fd = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        let descriptor = Descriptor(adopting: fd)
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        _ = unsafe setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let address = SocketAddress(v4: 0x7F00_0001, port: port)
        try #require(
            unsafe address.withSockaddr { unsafe connect(fd, $0.assumingMemoryBound(to: sockaddr.self), $1) } == 0)
        Sockets.setNoDelay(fd)
        for piece in pieces {
            var bytes = Array(piece.utf8)
            // Refused before the end: the answer says why.
            if writeAll(&bytes, to: descriptor.rawValue) != nil { break }
        }
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while case .bytes(let count) = unsafe buffer.withUnsafeMutableBytes({ unsafe IO.receive(fd, into: $0) }) {
            answer += buffer[..<count]
        }
        return String(decoding: answer, as: UTF8.self)
    }
}

private func statuses(_ text: String) -> [Substring] {
    text.split(whereSeparator: \.isNewline).filter { $0.hasPrefix("HTTP/1.1 ") }.map { $0.dropFirst(9).prefix(3) }
}

@Suite("Admin server: over sockets")
struct AdminServerTests {
    @Test func `the command line's client reads and purges over the Unix socket`() throws {
        let admin = try RunningAdmin()
        defer { admin.end() }
        let client = AdminClient(paths: ["/nonexistent/admin.sock", admin.socketPath])
        #expect(try client.ask("GET", "/health") == .init(status: 200, body: Array("ok\n".utf8)))
        #expect(try JSONValue(parsing: client.ask("GET", "/stats").body)["requests"]?["hit"] == .integer(70))
        let purged = try client.ask("POST", "/purge", body: Array(#"{"host":"example.org"}"#.utf8))
        var selection = Selection()
        selection.host = "example.org"
        #expect(purged.status == 200)
        #expect(admin.proxy.purges.withLock { $0 } == [PurgeRequest(selection)])
    }

    @Test func `others are answered while a purge runs`() throws {
        let admin = try RunningAdmin()
        defer { admin.end() }
        let (hasBegun, mayEnd) = (CountingSemaphore(), CountingSemaphore())
        admin.proxy.whenPurging.withLock {
            $0 = {
                hasBegun.signal()
                _ = mayEnd.wait(timeout: .seconds(60))
            }
        }
        let status = Locked<UInt16?>(nil)
        let path = admin.socketPath
        let thread = try startThread(name: "purge") {
            let answer = try? AdminClient(paths: [path]).ask("POST", "/purge", body: Array(#"{"all":true}"#.utf8))
            status.withLock { $0 = answer?.status }
        }
        #expect(hasBegun.wait(timeout: .seconds(60)))
        #expect(try AdminClient(paths: [path]).ask("GET", "/health").status == 200)
        #expect(status.withLock { $0 } == nil)
        mayEnd.signal()
        thread.join()
        #expect(status.withLock { $0 } == 200)
    }

    @Test func `requests behind a purge on its connection are answered after it`() throws {
        let admin = try RunningAdmin()
        defer { admin.end() }
        let head = "Host: localhost\r\nAuthorization: Bearer a-token-of-some-length\r\n"
        let text = try admin.exchange([
            "POST /purge HTTP/1.1\r\n\(head)Content-Length: 7\r\n\r\nall=yesGET /nothing HTTP/1.1\r\n\(head)\r\n",
            "POST /purge HTTP/1.1\r\n\(head)Content-Length: 8\r\nConnection: close\r\n\r\nnonsense",
        ])
        #expect(statuses(text) == ["200", "404", "400"])
    }

    @Test func `purge and stats print for people and for scripts`() throws {
        let admin = try RunningAdmin()
        defer { admin.end() }
        let said = Locked<[String]>([])
        let console = Console(print: { line in said.withLock { $0.append(line) } }, error: { _ in })
        #expect(run(["purge", "http://a/", "--dry-run", "--socket", admin.socketPath], console) == 0)
        #expect(run(["purge", "--all", "--json", "--socket", admin.socketPath], console) == 0)
        #expect(run(["purge", "no-url", "--socket", admin.socketPath], console) == 2)
        #expect(run(["stats", "--socket", admin.socketPath], console) == 0)
        let lines = said.withLock { $0 }
        #expect(lines.count == 3)
        #expect(lines[0] == "would purge 3 responses, 4.0 KiB")
        #expect(lines[1] == #"{"records":3,"bytes":4096,"soft":false,"dry_run":false}"#)
        #expect(lines[2].hasPrefix("larder 1.2.3"))
    }

    @Test func `ls, du, top and explain print for people and for scripts`() throws {
        let admin = try RunningAdmin()
        defer { admin.end() }
        let said = Locked<[String]>([])
        let console = Console(print: { line in said.withLock { $0.append(line) } }, error: { _ in })
        func words(_ words: String...) -> [String] {
            said.withLock { $0 = [] }
            #expect(run(words + ["--socket", admin.socketPath], console) == 0)
            return said.withLock { $0 }
        }
        let listed = words("ls", "--json", "--host", "example.org", "--type", "text/*")
        #expect(try listed.map { try JSONValue(parsing: Array($0.utf8))["url"]?.text }.count == 3)
        #expect(admin.proxy.selections.withLock { $0.last?.type } == "text/*")
        #expect(words("ls").last?.hasSuffix(" http://example.net/c") == true)
        #expect(words("du").joined().contains("example.net"))
        #expect(words("top", "-n2", "--json").count == 2)
        #expect(
            words("explain", "http://example.org/") == ["access\n  rule                      1\n\nhit: it is fresh"])
        #expect(words("explain", "http://example.org/", "--json").first?.hasPrefix(#"{"decision":"hit""#) == true)
        #expect(run(["explain", "nonsense", "--socket", admin.socketPath], console) == 2)
    }

    @Test func `pieces go out in chunks, to a client of HTTP 1.0 until the end, and HEAD has none`() throws {
        let admin = try RunningAdmin()
        defer { admin.end() }
        let token = "Host: localhost\r\nAuthorization: Bearer a-token-of-some-length\r\n"
        let close = "\(token)Connection: close\r\n\r\n"
        let chunked = try admin.exchange(["GET /objects HTTP/1.1\r\n\(token)\r\n", "GET /health HTTP/1.1\r\n\(close)"])
        #expect(statuses(chunked) == ["200", "200"])
        #expect(chunked.contains("Transfer-Encoding: chunked\r\n") && chunked.contains("\r\n0\r\n\r\nHTTP/1.1 200"))
        #expect(chunked.split(separator: "\"url\"").count == 4)
        let old = try admin.exchange(["GET /objects HTTP/1.0\r\n\(token)Connection: keep-alive\r\n\r\n"])
        #expect(!old.contains("chunked") && old.hasSuffix("}\n") && old.split(separator: "\"url\"").count == 4)
        let head = try admin.exchange(["HEAD /objects HTTP/1.1\r\n\(close)"])
        #expect(head.hasSuffix("\r\n\r\n") && head.contains("chunked"))
    }

    @Test func `the socket is for its owner alone, and goes with the server`() throws {
        let admin = try RunningAdmin()
        var status = stat()
        #expect(unsafe stat(admin.socketPath, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o600)
        admin.end()
        #expect(!fileExists(admin.socketPath))
        #expect(throws: AdminClient.Failure.nobodyThere(paths: [admin.socketPath])) {
            try AdminClient(paths: [admin.socketPath]).ask("GET", "/health")
        }
    }

    private static let get = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    private static let last = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

    static let exchanges: [(pieces: [String], statuses: [Substring])] = [
        ([last], ["200"]), ([get + get + last], ["200", "200", "200"]), ([get, last], ["200", "200"]),
        (last.map { String($0) }, ["200"]), (["GET /health HTTP/1.0\r\n\r\n"], ["403"]),
        (["GET /health HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n"], ["200"]),
        (["GET http://localhost/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"], ["200"]),
        (["GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"], ["403"]),
        (["GET /health HTTP/1.1\r\n\r\n" + get], ["400"]), (["GET /health\r\n\r\n"], ["400"]),
        (["nonsense\r\n\r\n"], ["400"]),
        (["GET /h HTTP/1.1\r\nHost: localhost\r\nX: \(String(repeating: "x", count: 20_000))"], ["431"]),
        (["GET /\(String(repeating: "x", count: 9000)) HTTP/1.1\r\nHost: localhost\r\n\r\n"], ["414"]),
        (["POST /purge HTTP/1.1\r\nHost: localhost\r\nContent-Length: 65537\r\n\r\n"], ["413"]),
        (["POST /purge HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"], ["400"]),
        (["POST /purge HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nall" + last], ["401", "200"]),
        (
            [
                "POST /purge HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n",
                "all" + last,
            ],
            ["100", "401", "200"]
        ),
        (
            [
                "POST /purge HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a-token-of-some-length\r\n"
                    + "Transfer-Encoding: chunked\r\n\r\n3\r\nall\r\n", "4\r\n=yes\r\n0\r\n\r\n" + last,
            ], ["200", "200"]
        ),
    ]
    @Test(arguments: exchanges)
    func `requests are answered in order, and what is wrong ends the connection`(
        _ row: (pieces: [String], statuses: [Substring])
    ) throws {
        let admin = try RunningAdmin()
        defer { admin.end() }
        let answer = try admin.exchange(row.pieces)
        // Whether the client is told to go on depends on whether its body was there already.
        #expect(statuses(answer).filter { $0 != "100" } == row.statuses.filter { $0 != "100" }, "\(answer)")
    }

    static let codings: [(accepts: String, isCompressed: Bool)] = [
        ("gzip", true), ("br, GZIP;q=0.5", true), ("*", true), ("gzip;q=0", false), ("*, gzip;q=0", false),
        ("br", false),
    ]
    @Test(arguments: codings)
    func `a long answer is gzip where the client takes it`(_ row: (accepts: String, isCompressed: Bool)) throws {
        let admin = try RunningAdmin()
        defer { admin.end() }
        let answer = try admin.exchange([
            "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept-Encoding: \(row.accepts)\r\n\r\n"
        ])
        #expect(answer.contains("\r\nContent-Encoding: gzip\r\n") == row.isCompressed)
        #expect(answer.contains("# HELP") != row.isCompressed)
    }

    @Test func `HEAD has the length and no body`() throws {
        let admin = try RunningAdmin()
        defer { admin.end() }
        let answer = try admin.exchange(["HEAD /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"])
        #expect(answer.contains("\r\nContent-Length: 3\r\n"))
        #expect(answer.hasSuffix("\r\n\r\n"))
    }

    private enum Expected: Sendable { case body(String), brokenOff, notAnAnswer }
    private static let answers: [(text: String, expected: Expected)] = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", .body("ok")), ("HTTP/1.1 200 OK\r\n\r\nok", .body("ok")),
        ("HTTP/1.1 204 No Content\r\n\r\n", .body("")), ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", .brokenOff),
        ("HTTP/1.1 200 OK\r\nContent-Le", .brokenOff), ("SSH-2.0-x\r\n", .notAnAnswer), ("", .brokenOff),
    ]
    @Test(arguments: answers.indices) func `the client takes whole answers only`(_ row: Int) throws {
        let (text, expected) = Self.answers[row]
        let server = try OneAnswer(text)
        defer { server.end() }
        let client = AdminClient(paths: [server.path])
        let failure: AdminClient.Failure
        switch expected {
        case .body(let body): return #expect(try client.ask("GET", "/x").body == Array(body.utf8))
        case .brokenOff: failure = .brokenOff(path: server.path)
        case .notAnAnswer: failure = .notAnAnswer(path: server.path)
        }
        #expect(throws: failure) { try client.ask("GET", "/x") }
        #expect(throws: failure) { try client.lines("/x") { _ in } }
    }

    @Test func `a list that breaks off is not taken for a whole one`() throws {
        let server = try OneAnswer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na\n\r\n")
        defer { server.end() }
        var lines: [[UInt8]] = []
        #expect(throws: AdminClient.Failure.brokenOff(path: server.path)) {
            try AdminClient(paths: [server.path]).lines("/x") { lines.append(Array($0)) }
        }
        #expect(lines == [Array("a".utf8)])
    }
}

/// A Unix socket behind which each request gets the same bytes, and then the end of the connection.
private final class OneAnswer: Sendable {
    let path: String
    private let listener: CInt

    init(_ text: String) throws {
        path = "/tmp/larder-answer-\(getpid())-\(UInt64.random(in: 0 ... .max)).sock"
        let socket = try Sockets.listen(SocketAddress(unixPath: path), reusePort: false, backlog: 8)
        listener = socket.release()
        _ = try startThread(name: "answer") { [listener] in
            var entry = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
            while unsafe poll(&entry, 1, -1) > 0, entry.revents & Int16(POLLHUP) == 0 {
                guard case .accepted(let peer, _) = Sockets.accept(listener) else { continue }
                var input = pollfd(fd: peer.rawValue, events: Int16(POLLIN), revents: 0)
                _ = unsafe poll(&input, 1, -1)
                var request = [UInt8](repeating: 0, count: 4096)
                _ = unsafe request.withUnsafeMutableBytes { unsafe IO.receive(peer.rawValue, into: $0) }
                _ = unsafe Array(text.utf8).withUnsafeBytes { unsafe IO.send(peer.rawValue, $0) }
            }
            close(listener)
        }
    }

    func end() {
        _ = shutdown(listener, CInt(SHUT_RDWR))
        _ = unsafe unlink(path)
    }
}
