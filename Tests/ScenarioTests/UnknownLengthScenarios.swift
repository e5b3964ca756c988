import Compression
import Foundation
import Server
import Storage
import Synchronization
import Testing

/// Bytes by which each tells where it stands.
private func content(_ count: Int) -> [UInt8] {
    (0..<UInt64(count)).map { offset in
        let mixed = (offset &+ 1) &* 0x9E37_79B9_7F4A_7C15
        return UInt8(truncatingIfNeeded: ((mixed ^ mixed >> 29) &* 0xBF58_476D_1CE4_E5B9) >> 56)
    }
}

/// How an origin frames a body whose length it does not announce.
enum UnannouncedFraming: CaseIterable {
    case chunked, untilClose

    fileprivate func head(_ fields: [String] = ["Cache-Control: max-age=600"]) -> [UInt8] {
        let lines = fields + (self == .chunked ? ["Transfer-Encoding: chunked"] : ["Connection: close"])
        return Array(("HTTP/1.1 200 OK\r\n" + lines.map { "\($0)\r\n" }.joined() + "\r\n").utf8)
    }

    /// In chunks of many lengths.
    fileprivate func framed(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        guard self == .chunked else { return Array(bytes) }
        var framed: [UInt8] = []
        var rest = bytes
        var length = 1
        while !rest.isEmpty {
            let chunk = rest.prefix(length)
            framed += Array("\(String(chunk.count, radix: 16))\r\n".utf8) + chunk + [13, 10]
            rest = rest.dropFirst(chunk.count)
            length = length * 7 % 100_003
        }
        return framed
    }

    fileprivate func end(_ trailers: String = "") -> [UInt8] {
        self == .chunked ? Array("0\r\n\(trailers)\r\n".utf8) : []
    }
}

extension Expectation {
    /// All of a response without a length; from `stop` on when the gate is open.
    fileprivate func sends(
        _ body: [UInt8], _ framing: UnannouncedFraming, stopsAt stop: Int? = nil, until gate: Gate? = nil
    ) {
        let stop = stop ?? body.count
        _ = sends(framing.head() + framing.framed(body[..<stop]))
        if let gate { _ = waits(for: gate) }
        _ = sends(framing.framed(body[stop...]) + framing.end())
        if framing == .untilClose { _ = closes() }
    }
}

private func gunzip(_ bytes: [UInt8]) throws -> [UInt8] {
    var inflator = Inflator(outputMax: 8 << 20)
    var output: [UInt8] = []
    try inflator.decompress(bytes, into: &output)
    try inflator.finish()
    return output
}

/// Work on a thread of its own, and what comes of it.
private final class Aside<Result: Sendable>: Sendable {
    private let result = Mutex<Swift.Result<Result, any Error>?>(nil)
    private let isDone = Gate("a client on its own thread is done")

    init(_ work: @escaping @Sendable () throws -> Result) {
        Thread.detachNewThread { [self] in
            let outcome = Swift.Result { try work() }
            result.withLock { $0 = outcome }
            isDone.open()
        }
    }

    func get() throws -> Result {
        try isDone.wait()
        return try result.withLock { $0! }.get()
    }
}

/// A client that one thread after another uses.
private struct Sent: @unchecked Sendable {
    let client: ScriptedClient
}

extension Scenario {
    /// The body under way has moved to the disk, and the origin's bytes have come.
    fileprivate func waitUntilMoved(_ bytes: Int) throws {
        try eventually("\(bytes) bytes have come, and go to the disk") { isMoved && count(.bytesFromOrigins) >= bytes }
    }

    fileprivate var isMoved: Bool {
        var isMoved = false
        tier.memory.forEach { isMoved = isMoved || $0.body.isLarge }
        return isMoved
    }

    /// Files of large responses that are on the disk.
    fileprivate var largeFiles: Int {
        let names = (try? FileManager.default.subpathsOfDirectory(atPath: directory.path + "/disk/large")) ?? []
        return names.count { $0.hasSuffix(".seg") }
    }

    /// Nothing is left of what was on its way.
    fileprivate func expectNothingStored() throws {
        try eventually("nothing is left on the disk") {
            _ = tier.backStore?.flush()
            return largeFiles == 0 && tier.backStore?.statistics.objectCount == 0
        }
        var records = 0
        tier.memory.forEach { _ in records += 1 }
        #expect(records == 0)
    }
}

@Suite("The disk tier: bodies of unknown length that outgrow memory")
struct UnknownLengthScenarios {
    private static let disk = "disk: { path: DIRECTORY/disk, size: 200MiB, sync: 100ms }"
    /// At most 1 MiB is stored in one piece; memory holds no more than 8 MiB of one response.
    private static let lengths = [1 << 20, 1 << 20 + 1, 17 << 16, 5_000_000, 9_000_000]

    @Test(arguments: UnannouncedFraming.allCases, lengths)
    func `they are hits with a length, also after a restart`(_ framing: UnannouncedFraming, _ length: Int) throws {
        try scenario(cache: Self.disk) { s in
            let body = content(length)
            s.origin.expects("GET /a").sends(body, framing)
            let answer = try s.client().get("/a")
            #expect(answer.isWhole && answer.body == body && answer["Content-Length"] == nil)
            let hit = try s.client().get("/a")
            #expect(hit.body == body && hit.head.all("Content-Length") == ["\(length)"])
            #expect(hit.cacheStatus.hasPrefix("larder; hit"))
            try s.leaveToDisk()
            #expect(s.tier.backStore?.statistics.largeCount == (length > 1 << 20 ? 1 : 0))
            #expect(try s.client().get("/a").body == body)
            try s.restart()
            let part = try s.client().get("/a", "Range: bytes=999999-1000009")
            #expect(part.status == 206 && part.body == Array(body[999_999...1_000_009]))
            let again = try s.client().get("/a")
            #expect(again.body == body && again.head.all("Content-Length") == ["\(length)"])
            #expect(again.cacheStatus.hasPrefix("larder; hit"))
            try s.expect(.storingFailed, 0)
            #expect(s.count(.storingRefused) == 0)
        }
    }

    @Test(arguments: UnannouncedFraming.allCases)
    func `others read them while they come, from the first byte on`(_ framing: UnannouncedFraming) throws {
        try scenario(cache: Self.disk) { s in
            let body = content(5_000_000)
            let gate = Gate("all have asked")
            s.origin.expects("GET /a").sends(body, framing, stopsAt: 3_000_000, until: gate)
            let early = try (0..<3).map { _ in try s.client() }
            for client in early { try client.ask("GET", "/a") }
            var answers = try early.map { SeenMessage(head: try $0.head()) }
            try s.waitUntilMoved(3_000_000)
            // Both workers have clients that come late.
            let late = try (0..<4).map { _ in try s.client() }
            for (number, client) in late.enumerated() {
                try client.ask("GET", "/a", number == 0 ? ["Range: bytes=2000000-2000009"] : [])
            }
            let old = try s.client()
            try old.ask("GET", "/a", version: "1.0")
            let head = try s.client().request("HEAD", "/a")
            #expect(head.status == 200 && head["Content-Length"] == nil)
            // What is there goes out before the rest comes.
            for client in late {
                let head = try client.head()
                #expect(head.startLine.contains(" 200 "), "without a length there are no ranges")
                #expect(head["Cache-Status"]?.contains("hit") == true)
                answers.append(SeenMessage(head: head))
            }
            gate.open()
            for (number, client) in (early + late).enumerated() {
                try client.reader.body(of: &answers[number], untilClose: true)
                #expect(answers[number].isWhole && answers[number].body == body, "client \(number)")
            }
            #expect(try old.response().body == body)
            try s.leaveToDisk()
            #expect(try s.client().get("/a").body == body)
        }
    }

    @Test(arguments: UnannouncedFraming.allCases)
    func `a slow reader holds up nobody, and gets all of it`(_ framing: UnannouncedFraming) throws {
        try scenario(cache: "memory: 8MiB\n\(Self.disk)") { s in
            let body = content(12_000_000)
            let gate = Gate("both have asked")
            s.origin.expects("GET /a").sends(body, framing, stopsAt: 500_000, until: gate)
            let slow = try s.client(receiveBuffer: 4096)
            try slow.ask("GET", "/a")
            let fast = try s.client()
            try fast.ask("GET", "/a")
            var answer = SeenMessage(head: try fast.head())
            gate.open()
            try fast.reader.body(of: &answer, untilClose: false)
            #expect(answer.isWhole && answer.body == body)
            try s.leaveToDisk()
            let late = try slow.response()
            #expect(late.isWhole && late.body == body)
        }
    }

    @Test func `trailers reach those who read it while it comes, and nobody later`() throws {
        try scenario(cache: Self.disk) { s in
            let body = content(3_000_000)
            let gate = Gate("both read")
            s.origin.expects("GET /a").sends(
                UnannouncedFraming.chunked.head() + UnannouncedFraming.chunked.framed(body[...])
            )
            .waits(for: gate).sends(UnannouncedFraming.chunked.end("X-Sum: 1\r\n"))
            let early = try s.client()
            try early.ask("GET", "/a")
            try s.waitUntilMoved(body.count)
            let late = try s.client()
            try late.ask("GET", "/a")
            var answers = try [early, late].map { SeenMessage(head: try $0.head()) }
            gate.open()
            for (number, client) in [early, late].enumerated() {
                try client.reader.body(of: &answers[number], untilClose: false)
                #expect(answers[number].trailers == ["X-Sum: 1"] && answers[number].body == body)
            }
            let later = try s.client().get("/a")
            #expect(later.trailers == [] && later.body == body && later["Content-Length"] == "3000000")
        }
    }

    @Test func `another coding is made of it while it comes`() throws {
        let plain = ["Cache-Control: max-age=600", "Content-Type: text/plain"]
        try scenario(cache: "\(Self.disk)\nrules: [ { compress: on-the-fly } ]") { s in
            let body = content(3_000_000)
            let framing = UnannouncedFraming.chunked
            let gate = Gate("both read")
            s.origin.expects("GET /a").sends(framing.head(plain) + framing.framed(body[..<2_000_000])).waits(for: gate)
                .sends(framing.framed(body[2_000_000...]) + framing.end())
            let early = try s.client()
            try early.ask("GET", "/a", ["Accept-Encoding: gzip"])
            var answers = [SeenMessage(head: try early.head())]
            try s.waitUntilMoved(2_000_000)
            let late = try s.client()
            try late.ask("GET", "/a", ["Accept-Encoding: gzip"])
            answers.append(SeenMessage(head: try late.head()))
            gate.open()
            for (number, client) in [early, late].enumerated() {
                try client.reader.body(of: &answers[number], untilClose: false)
                #expect(answers[number].isWhole && answers[number]["Content-Encoding"] == "gzip")
                #expect(try gunzip(answers[number].body) == body)
            }
            #expect(try s.client().get("/a").body == body)
        }
    }

    // MARK: breaking off

    /// How the connection of the origin ends before the body does. A body until close that ends by FIN is whole.
    enum Break: CaseIterable {
        case chunkedByClose, chunkedByReset, untilCloseByReset

        fileprivate var framing: UnannouncedFraming { self == .untilCloseByReset ? .untilClose : .chunked }
        fileprivate func apply(to expectation: Expectation) {
            if self == .chunkedByClose { expectation.closes() } else { expectation.resets() }
        }
    }

    @Test(arguments: Break.allCases) func `one that breaks off leaves nothing`(_ breaking: Break) throws {
        try scenario(cache: Self.disk) { s in
            let body = content(3_000_000)
            let framing = breaking.framing
            let gate = Gate("all has come")
            breaking.apply(
                to: s.origin.expects("GET /a").sends(framing.head() + framing.framed(body[...])).waits(for: gate))
            let clients = try (0..<4).map { _ in try s.client() }
            for client in clients { try client.ask("GET", "/a") }
            var answers = try clients.map { SeenMessage(head: try $0.head()) }
            // The end of the connection ends what this one gets.
            let old = try s.client()
            try old.ask("GET", "/a", version: "1.0")
            var oldAnswer = SeenMessage(head: try old.head())
            try s.waitUntilMoved(body.count)
            gate.open()
            for (number, client) in clients.enumerated() {
                #expect(answers[number].head.all("Transfer-Encoding") == ["chunked"])
                try client.reader.body(of: &answers[number], untilClose: false)
                #expect(!answers[number].isWhole, "client \(number)")
                #expect(answers[number].body == body, "all that came is sent")
            }
            let error = #expect(throws: WireError.self) { try old.reader.body(of: &oldAnswer, untilClose: true) }
            #expect(error?.description.contains("reset") == true, "a plain end would say that this was all")
            try s.expect(.storingFailed, 1)
            try s.expect(.stored, 0)
            try s.expectNothingStored()
            // Not even for a moment: after a crash at that moment, the part would be served as the whole.
            #expect(s.tier.backStore?.statistics.storedObjects == 0)
            s.origin.expects("GET /a").sends(body, framing)
            #expect(try s.client().get("/a").body == body)
        }
    }

    @Test func `one with a strong validator is resumed, and stored`() throws {
        try scenario(cache: Self.disk) { s in
            let body = content(5_000_000)
            let framing = UnannouncedFraming.chunked
            s.origin.expects("GET /a", "!Range").sends(
                framing.head(["Cache-Control: max-age=600", "ETag: \"a\""]) + framing.framed(body[..<3_000_000])
            ).closes()
            s.origin.expects("GET /a", "Range: bytes=3000000-", "If-Range: \"a\"").replies(
                206, ["ETag: \"a\"", "Content-Range: bytes 3000000-4999999/5000000"], Array(body[3_000_000...]))
            let answer = try s.client().get("/a")
            #expect(answer.isWhole && answer.body == body)
            try s.expect(.resumed, 1)
            try s.leaveToDisk()
            let hit = try s.client().get("/a")
            #expect(hit.body == body && hit.cacheStatus.hasPrefix("larder; hit"))
        }
    }

    @Test func `one that a restart broke leaves nothing`() throws {
        try scenario(cache: Self.disk) { s in
            let body = content(3_000_000)
            let framing = UnannouncedFraming.chunked
            s.origin.expects("GET /a").sends(framing.head() + framing.framed(body[...])).hangs()
            let client = try s.client()
            try client.ask("GET", "/a")
            try s.waitUntilMoved(body.count)
            try s.eventually("its file is there") { s.largeFiles == 1 }
            try s.restart()
            #expect(s.tier.backStore?.waitUntilLoaded() == true)
            try s.expectNothingStored()
            s.origin.expects("GET /a").sends(body, framing)
            #expect(try s.client().get("/a").body == body)
        }
    }

    @Test(arguments: [false, true])
    func `one that is invalidated or replaced on its way is not stored`(_ isReplaced: Bool) throws {
        try scenario(cache: Self.disk) { s in
            let body = content(4_000_000)
            let gate = Gate("it is gone")
            s.origin.expects("GET /a").sends(body, .chunked, stopsAt: 3_000_000, until: gate)
            let client = try s.client()
            try client.ask("GET", "/a")
            var answer = SeenMessage(head: try client.head())
            try s.waitUntilMoved(3_000_000)
            if isReplaced {
                s.origin.expects("GET /a", "Cache-Control: no-cache").replies(
                    200, "Cache-Control: max-age=600", body: "newer")
                #expect(try s.client().get("/a", "Cache-Control: no-cache").text == "newer")
            } else {
                s.origin.expects("POST /a").replies(200, body: "")
                _ = try s.client().request("POST", "/a", body: "x")
            }
            gate.open()
            try client.reader.body(of: &answer, untilClose: false)
            #expect(answer.isWhole && answer.body == body)
            try s.eventually("its file is gone") {
                _ = s.tier.backStore?.flush()
                return s.largeFiles == 0
            }
            if !isReplaced { s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=600", body: "newer") }
            #expect(try s.client().get("/a").text == "newer")
        }
    }

    // MARK: where it does not go to the disk

    /// On its way it turns out to be more than may be stored, or more than the disk has room for.
    @Test(arguments: [false, true], UnannouncedFraming.allCases)
    func `one that cannot be stored reaches all who read it`(
        _ isDiskFull: Bool, _ framing: UnannouncedFraming
    ) throws {
        let full = "object_size_max: 64MiB\ndisk: { path: DIRECTORY/disk, size: 16MiB, sync: 100ms }"
        try scenario(cache: isDiskFull ? full : "object_size_max: 2MiB\n\(Self.disk)") { s in
            let body = content(isDiskFull ? 20_000_000 : 6_000_000)
            let gate = Gate("all have asked")
            s.origin.expects("GET /a").sends(body, framing, stopsAt: 1_500_000, until: gate)
            // One has not read more than its buffers hold when the others go on.
            let clients = try (0..<3).map { try s.client(receiveBuffer: $0 == 0 ? 4096 : nil) }
            for client in clients { try client.ask("GET", "/a") }
            let heads = try clients.map { try $0.head() }
            try s.waitUntilMoved(1_500_000)
            let late = try s.client()
            try late.ask("GET", "/a")
            let lateHead = try late.head()
            gate.open()
            let readings = zip(clients + [late], heads + [lateHead]).map { client, head in
                let sent = Sent(client: client)
                return Aside {
                    var answer = SeenMessage(head: head)
                    try sent.client.reader.body(of: &answer, untilClose: false)
                    return answer
                }
            }
            for reading in readings {
                let answer = try reading.get()
                #expect(answer.isWhole && answer.body == body)
            }
            try s.expect(.storingRefused, 1)
            try s.expectNothingStored()
            #expect(s.tier.backStore?.isOn == true)
            s.origin.expects("GET /a").replies(200, body: "anew")
            #expect(try s.client().get("/a").text == "anew")
        }
    }

    @Test func `one for this process alone, or not admitted yet, stays in memory`() throws {
        let rules = """
            rules: [ { match: { path: /session }, storage: session }, { match: { path: /second }, admission: second-hit } ]
            """
        try scenario(cache: "\(Self.disk)\n\(rules)") { s in
            let body = content(3_000_000)
            for path in ["/session", "/second"] {
                s.origin.expects("GET \(path)").sends(body, .chunked)
                let client = try s.client()
                #expect(try client.get(path).body == body)
                #expect(try client.get(path).cacheStatus.hasPrefix("larder; hit"))
            }
            #expect(!s.isMoved)
        }
    }
}
