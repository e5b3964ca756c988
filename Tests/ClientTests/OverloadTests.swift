import EventLoop
import Foundation
import Glibc
import ProgramUnderTest
import Testing

/// A real process whose memory is filled until it sheds load, and the connections of clients meanwhile.
@Suite("Overload: a process whose memory is nearly used up")
struct OverloadTests {
    private static let memoryMax = 192 << 20
    private static let piece = String(repeating: "x", count: 1 << 20)

    /// The time limit counts while the test waits for its turn (`Workplace.with`), which takes minutes on a busy machine.
    @Test(.enabled(if: !isSanitized, "sanitizers need memory of their own"), .timeLimit(.minutes(30)))
    func `idle connections go first, then new ones and misses are refused, and hits and bodies go on`() async throws {
        let mayEnd = Gate()
        try await ScriptedOrigin.with { head, connection in
            func answer(_ body: String) {
                connection.send(
                    "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
                )
            }
            guard head.contains("/slow") else { return answer(head.contains("/small") ? "small" : Self.piece) }
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234")
            mayEnd.wait()
            connection.send("56789")
        } _: { origin in
            defer { mayEnd.open() }
            try await Workplace.with { place in
                let text = Larder.configuration(
                    in: place, adminPort: FreePort.take(),
                    more: "workers: 1\nlimits: { memory_max: \(Self.memoryMax >> 20)MiB }")
                let larder = try await Larder.start(
                    in: place, text: text.replacing("memory: 64MiB", with: "memory: 1GiB"), adminPort: 0)
                try await play(larder, origin, mayEnd)
            }
        }
    }

    private func play(_ larder: Larder, _ origin: ScriptedOrigin, _ mayEnd: Gate) async throws {
        // The oldest at the front.
        let idle = (1...8).map { _ in
            let client = KeptConnection(larder.port)
            #expect(client.get("\(origin.url)/small")?.status == 200)
            return client
        }
        let slow = KeptConnection(larder.port)
        slow.ask("\(origin.url)/slow")
        let busy = BusyClient(larder.port, hit: "\(origin.url)/small", miss: "\(origin.url)/missing")
        defer { busy.stop() }
        try await eventually("hits are served") { busy.hits > 10 }

        // Strained.
        try await fill(larder, origin, percent: 88)
        try await eventually("the load is noticed: \(larder.child.errors)") {
            larder.child.errors.contains("load: strained")
        }
        try await eventually("all idle connections are closed", within: .seconds(60)) {
            // The youngest is asked first: whoever is closed when it is asked has been closed after all that are older.
            let isClosed = Array(idle.reversed().map(\.isClosed).reversed())
            #expect(isClosed == isClosed.sorted { $0 && !$1 }, "the oldest are closed first: \(isClosed)")
            return isClosed.allSatisfy { $0 }
        }
        #expect(!larder.child.errors.contains("load: overloaded"))
        #expect(KeptConnection(larder.port).get("\(origin.url)/new")?.status == 200, "newcomers are still served")
        #expect(try await larder.statistic("closes", "overloaded") >= idle.count)

        // Overloaded.
        try await fill(larder, origin, percent: 97)
        try await eventually("the load is noticed: \(larder.child.errors)") {
            larder.child.errors.contains("load: overloaded")
        }
        #expect(KeptConnection(larder.port).get("\(origin.url)/small") == nil, "newcomers are closed")
        let before = busy.hits
        busy.askForMiss()
        try await eventually("the miss is answered, and hits go on: \(busy.text)", within: .seconds(30)) {
            busy.isOver || busy.refusal != nil && busy.hits > before + 100
        }
        // A client that had to wait for a second for its processor is idle like any other.
        if busy.longestPause < .seconds(1) {
            #expect(!busy.isOver, "a connection in use goes on: \(busy.text)")
            #expect(busy.refusal?.status == 503, "\(busy.text)")
            #expect(busy.refusal?.head.contains("\r\nRetry-After: 1\r\n") == true, "\(busy.text)")
            #expect(try await larder.statistic("refusals", "overloaded") >= 1)
        }
        mayEnd.open()
        #expect(slow.answer()?.body == "0123456789", "what is under way goes on")
    }

    /// Stores bodies until the process has so much of its memory.
    private func fill(_ larder: Larder, _ origin: ScriptedOrigin, percent: Int) async throws {
        var client = KeptConnection(larder.port)
        var stored = 0
        for number in 0..<1000 {
            guard try memory(of: larder) < Self.memoryMax / 100 * percent else { return }
            let reply = client.get("\(origin.url)/fill-\(percent)-\(number)")
            if reply?.status == 503 { return }
            if reply == nil { client = KeptConnection(larder.port) } else { stored += 1 }
        }
        let held = try memory(of: larder)
        Issue.record("the memory does not fill: \(held) bytes with \(stored) bodies; \(larder.child.errors)")
    }

    /// The longer bodies are in shared memory.
    private func memory(of larder: Larder) throws -> Int {
        try larder.memory("RssAnon") + larder.memory("RssShmem")
    }
}

/// A connection to the proxy that is kept.
private final class KeptConnection: Sendable {
    struct Reply: Sendable {
        let head: String
        let body: String
        var status: Int { Int(head.split(separator: " ").dropFirst().first ?? "") ?? 0 }
    }
    private let connection: ScriptedConnection

    init(_ port: UInt16) {
        connection = ScriptedConnection(fd: connectLoopback(port))
        var limit = timeval(tv_sec: 60, tv_usec: 0)
        _ = unsafe setsockopt(
            connection.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { close(connection.fd) }

    var isClosed: Bool {
        var byte: UInt8 = 0
        let count = unsafe recv(connection.fd, &byte, 1, CInt(MSG_PEEK) | CInt(MSG_DONTWAIT))
        return count == 0 || count < 0 && errno != EAGAIN && errno != EINTR
    }

    func ask(_ url: String) {
        connection.send("GET \(url) HTTP/1.1\r\nHost: \(url.split(separator: "/")[1])\r\n\r\n")
    }

    /// Nil if the proxy has closed the connection.
    func answer() -> Reply? {
        connection.readHead().map { head in
            Reply(head: head, body: String(decoding: connection.readBody(after: head), as: UTF8.self))
        }
    }

    func get(_ url: String) -> Reply? {
        ask(url)
        return answer()
    }
}

/// A client that asks for a stored response again and again on one connection, on a thread of its own.
private final class BusyClient: Sendable {
    private struct State {
        var hits = 0
        var wantsMiss = false
        var refusal: KeptConnection.Reply?
        var longestPause = Duration.zero
        var mustStop = false
        /// The connection has ended, or an answer was wrong.
        var isOver = false
    }
    private let state = Locked(State())

    init(_ port: UInt16, hit: String, miss: String) {
        let connection = KeptConnection(port)
        let clock = ContinuousClock()
        Thread.detachNewThread { [state] in
            var last = clock.now
            while !state.withLock({ $0.mustStop }) {
                if state.withLock({ $0.wantsMiss && $0.refusal == nil }) {
                    let reply = connection.get(miss)
                    state.withLock { $0.refusal = reply }
                }
                let isServed = connection.get(hit)?.body == "small"
                let now = clock.now
                state.withLock {
                    $0.longestPause = max($0.longestPause, now - last)
                    $0.hits += isServed ? 1 : 0
                    $0.isOver = !isServed
                }
                guard isServed else { return }
                last = now
            }
        }
    }

    func stop() { state.withLock { $0.mustStop = true } }
    func askForMiss() { state.withLock { $0.wantsMiss = true } }

    var hits: Int { state.withLock { $0.hits } }
    var refusal: KeptConnection.Reply? { state.withLock { $0.refusal } }
    var longestPause: Duration { state.withLock { $0.longestPause } }
    var isOver: Bool { state.withLock { $0.isOver } }
    var text: String {
        state.withLock {
            "\($0.hits) hits, over: \($0.isOver), pause \($0.longestPause), \($0.refusal?.head ?? "none")"
        }
    }
}
