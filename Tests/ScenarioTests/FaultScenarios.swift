import Server
import Testing

/// Ten bytes, so that offsets can be read off.
private let content = "0123456789"

@Suite("Faults at every step of a transfer that three read")
struct FaultScenarios {
    enum Outcome: Equatable { case whole, broken, status(Int) }

    /// What the store has afterwards.
    enum Afterwards { case whole, part, nothing }

    struct Row: CustomTestStringConvertible, Sendable {
        var what: String
        /// What the origin sends before the others join; nil: they join before the head.
        var before: String?
        var fault: @Sendable (Expectation) -> Void
        /// What comes of the questions for the rest, each with the `Range` it must have.
        var rests: [(range: String, then: @Sendable (Expectation) -> Void)] = []
        var outcome: Outcome
        var afterwards: Afterwards
        var testDescription: String { what }
    }

    private static let strong = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\n"
    private static let weak = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n"
    private static let length = "Content-Length: 10\r\n\r\n"
    private static let chunked = "Transfer-Encoding: chunked\r\n\r\n"

    private static func part(_ first: Int, tag: String = "a") -> @Sendable (Expectation) -> Void {
        {
            $0.replies(
                206, ["ETag: \"\(tag)\"", "Content-Range: bytes \(first)-9/10"], Array(content.utf8.dropFirst(first)))
        }
    }
    private static let closes: @Sendable (Expectation) -> Void = { $0.closes() }
    private static let resets: @Sendable (Expectation) -> Void = { $0.resets() }
    private static let hangs: @Sendable (Expectation) -> Void = { $0.hangs() }

    static let rows: [Row] = [
        // Before the head.
        Row(what: "closed before the head", fault: closes, outcome: .status(502), afterwards: .nothing),
        Row(what: "reset before the head", fault: resets, outcome: .status(502), afterwards: .nothing),
        Row(what: "silent before the head", fault: hangs, outcome: .status(504), afterwards: .nothing),
        // In the head.
        Row(
            what: "closed in the head", fault: { $0.sends("\(strong)Content-Le").closes() }, outcome: .status(502),
            afterwards: .nothing),
        Row(
            what: "silent in the head", fault: { $0.sends("\(strong)Content-Le").hangs() }, outcome: .status(504),
            afterwards: .nothing),
        Row(
            what: "a head that is none", fault: { $0.sends("\(strong)Content-Length: 1\r\n\(length)") },
            outcome: .status(502), afterwards: .nothing),
        Row(
            what: "closed after an interim response", fault: { $0.sends("HTTP/1.1 103 Hints\r\n\r\n").closes() },
            outcome: .status(502), afterwards: .nothing),
        // After the head.
        Row(
            what: "closed after the head", before: strong + length, fault: closes, rests: [("bytes=0-", part(0))],
            outcome: .whole, afterwards: .whole),
        Row(
            what: "closed after the head, no validator", before: weak + length, fault: closes, outcome: .broken,
            afterwards: .nothing),
        // In the middle.
        Row(
            what: "closed in the middle", before: strong + length + "0123", fault: closes,
            rests: [("bytes=4-", part(4))], outcome: .whole, afterwards: .whole),
        Row(
            what: "reset in the middle", before: strong + length + "0123", fault: resets,
            rests: [("bytes=4-", part(4))], outcome: .whole, afterwards: .whole),
        Row(
            what: "silent in the middle", before: strong + length + "0123", fault: hangs,
            rests: [("bytes=4-", part(4))], outcome: .whole, afterwards: .whole),
        Row(
            what: "closed in the middle, no validator", before: weak + length + "0123", fault: closes, outcome: .broken,
            afterwards: .nothing),
        Row(
            what: "silent in the middle, no validator", before: weak + length + "0123", fault: hangs, outcome: .broken,
            afterwards: .nothing),
        Row(
            what: "closed in a chunk", before: strong + chunked + "a\r\n0123", fault: closes,
            rests: [("bytes=4-", part(4))], outcome: .whole, afterwards: .whole),
        Row(
            what: "closed in a chunk, no validator", before: weak + chunked + "a\r\n0123", fault: closes,
            outcome: .broken, afterwards: .nothing),
        Row(
            what: "a chunk size that is none", before: strong + chunked + "4\r\n0123\r\n",
            fault: { $0.sends("zz\r\n") }, rests: [("bytes=4-", part(4))], outcome: .whole, afterwards: .whole),
        Row(
            what: "a chunk size that is none, no validator", before: weak + chunked + "4\r\n0123\r\n",
            fault: { $0.sends("-6\r\n456789") }, outcome: .broken, afterwards: .nothing),
        // At the last byte.
        Row(
            what: "closed at the last byte", before: strong + length + "012345678", fault: closes,
            rests: [("bytes=9-", part(9))], outcome: .whole, afterwards: .whole),
        Row(
            what: "closed at the last byte, no validator", before: weak + length + "012345678", fault: closes,
            outcome: .broken, afterwards: .nothing),
        Row(
            what: "closed before the last chunk, no validator", before: weak + chunked + "a\r\n\(content)\r\n",
            fault: closes, outcome: .broken, afterwards: .nothing),
        Row(
            what: "closed in the last chunk, no validator", before: weak + chunked + "a\r\n\(content)\r\n",
            fault: { $0.sends("0\r\n").closes() }, outcome: .broken, afterwards: .nothing),
        Row(
            what: "closed before the last chunk: that there is no more proves nothing",
            before: strong + chunked + "a\r\n\(content)\r\n", fault: closes,
            rests: [("bytes=10-", { $0.replies(416, "Content-Range: bytes */10") })], outcome: .broken,
            afterwards: .nothing),
        // In the answer for the rest.
        Row(
            what: "the rest breaks off as well", before: strong + length + "0123", fault: closes,
            rests: [
                (
                    "bytes=4-",
                    {
                        $0.sends(
                            "HTTP/1.1 206 Part\r\nETag: \"a\"\r\nContent-Range: bytes 4-9/10\r\nContent-Length: 6\r\n\r\n45"
                        ).resets()
                    }
                ), ("bytes=6-", part(6)),
            ],
            outcome: .whole, afterwards: .whole),
        Row(
            what: "the rest is silent", before: strong + length + "0123", fault: closes,
            rests: [("bytes=4-", hangs), ("bytes=4-", part(4))], outcome: .whole, afterwards: .whole),
        Row(
            what: "the rest is of another", before: strong + length + "0123", fault: closes,
            rests: [("bytes=4-", part(4, tag: "b"))], outcome: .broken, afterwards: .nothing),
        Row(
            what: "the whole of another comes", before: strong + length + "0123", fault: closes,
            rests: [("bytes=4-", { $0.replies(200, "ETag: \"b\"", body: "ABCDEFGHIJ") })], outcome: .broken,
            afterwards: .nothing),
        Row(
            what: "an error comes", before: strong + length + "0123", fault: closes,
            rests: [("bytes=4-", { $0.replies(404, body: "gone") })], outcome: .broken, afterwards: .nothing),
        Row(
            what: "the rest never comes", before: strong + length + "0123", fault: closes,
            rests: (0..<4).map { _ in ("bytes=4-", closes) }, outcome: .broken, afterwards: .part),
    ]

    @Test(arguments: rows) func `no reader takes a part for the whole`(_ row: Row) throws {
        try scenario({ configuration, _ in
            // Short only where the fault is silence: on a busy machine anything else may take as long.
            if row.what.contains("silent") {
                configuration.timeouts.firstByte = .milliseconds(300)
                configuration.timeouts.idle = .milliseconds(300)
            }
            // The followers' time limit must not pass before that of a silent origin.
            configuration.timeouts.collapse = .seconds(5)
        }) { s in
            let (asked, go) = (Gate("asked"), Gate("all have joined"))
            let first = s.origin.expects("GET /a", "!Range").opens(asked)
            if let before = row.before { first.sends(before) }
            row.fault(first.waits(for: go))
            for (range, then) in row.rests { then(s.origin.expects("GET /a", "Range: \(range)", "If-Range: \"a\"")) }
            let clients = try (0..<3).map { _ in try s.client() }
            try clients[0].ask("GET", "/a")
            try asked.wait()
            for client in clients.dropFirst() { try client.ask("GET", "/a") }
            try s.expect(.requests, 3)
            var heads: [SeenHead] = []
            if row.before != nil {
                heads = try clients.map { try $0.head() }
            } else {
                // A request is counted before it has joined the first one's fetch.
                try s.eventually("all have joined") { s.proxy.transfers().first?.readers == 3 }
            }
            go.open()
            for (index, client) in clients.enumerated() {
                #expect(try outcome(client, head: heads.isEmpty ? nil : heads[index]) == row.outcome, "client \(index)")
            }
            try expect(row.afterwards, s)
        }
    }

    private func outcome(_ client: ScriptedClient, head: SeenHead?) throws -> Outcome {
        var message = SeenMessage(head: try head ?? client.head())
        while message.status < 200 { message.head = try client.head() }
        do { try client.reader.body(of: &message, untilClose: true) } catch { message.isWhole = false }
        guard message.status == 200 else { return .status(message.status) }
        guard message.isWhole else {
            // What came is the beginning of it, and nothing else.
            #expect(content.hasPrefix(message.text), "\(message)")
            return .broken
        }
        #expect(message.text == content)
        return .whole
    }

    private func expect(_ afterwards: Afterwards, _ s: Scenario) throws {
        switch afterwards {
        case .whole: break
        case .nothing:
            s.origin.expects("GET /a", "!Range").replies(200, "Cache-Control: max-age=60", "ETag: \"c\"", body: content)
        case .part: FaultScenarios.part(4)(s.origin.expects("GET /a", "Range: bytes=4-9", "If-Range: \"a\""))
        }
        let later = try s.client().get("/a")
        #expect(later.text == content)
        #expect(later.isWhole)
        switch afterwards {
        case .whole: #expect(later.cacheStatus.hasPrefix("larder; hit"))
        case .part: #expect(later.cacheStatus.contains("fwd=partial"))
        case .nothing: #expect(later.cacheStatus.contains("fwd=uri-miss"))
        }
    }

    @Test func `readers see that the answer is incomplete if the origin is gone when the rest is requested`() throws {
        try scenario { s in
            let go = Gate("both have joined")
            s.origin.expects("GET /a").sends(Self.strong + Self.length + "0123").waits(for: go).closes()
            let clients = try (0..<2).map { _ in try s.client() }
            for client in clients { try client.ask("GET", "/a") }
            let heads = try clients.map { try $0.head() }
            s.origin.end()
            go.open()
            for (client, head) in zip(clients, heads) { #expect(try outcome(client, head: head) == .broken) }
            try s.expect(.keptPartial, 1)
        }
    }

    /// Bodies that only the end of the connection ends: a client of HTTP/1.0 must see that they broke off.
    @Test(arguments: ["max-age=60", "no-store"]) func `an HTTP/1.0 client sees that a chunked body broke off`(
        _ cacheControl: String
    ) throws {
        try scenario { s in
            let go = Gate("the head is read")
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 200 OK\r\nCache-Control: \(cacheControl)\r\n\(Self.chunked)4\r\n0123\r\n"
            ).waits(for: go).closes()
            let client = try s.client()
            try client.ask("GET", "/a", version: "1.0")
            let head = try client.head()
            #expect(head["Content-Length"] == nil)
            go.open()
            #expect(try outcome(client, head: head) == .broken)
        }
    }
}
