import Compression
import Foundation
import Server
import Testing

/// Compresses well, and is longer than what is compressed at all.
private let text = String(repeating: "All work and no play makes Jack a dull boy.\n", count: 200)
private let zipped = gzip(Array(text.utf8))

@Suite(
    "Content codings: one stored copy serves clients that accept it and clients that do not (RFC 9110 §8.4, §12.5.3)")
struct ContentCodingScenarios {
    private static let fields = [
        "Cache-Control: max-age=60", "Content-Type: text/plain", "Content-Encoding: gzip", "Vary: Accept-Encoding",
        "ETag: \"a\"", "Accept-Ranges: bytes", "Repr-Digest: sha-256=:AAAA:", "Content-MD5: AAAA",
    ]

    private func withStored(
        _ fields: [String] = Self.fields, _ body: [UInt8] = zipped, cache: String = "rules: []",
        _ play: (Scenario, ScriptedClient) throws -> Void
    ) throws {
        try scenario(cache: cache) { s in
            s.origin.expects("GET /a").replies(200, fields, body)
            let client = try s.client()
            try client.get("/a", "Accept-Encoding: gzip")
            try play(s, client)
        }
    }

    /// What the client says it accepts (nil: nothing), and whether it gets the stored gzip.
    static let accepted: [(field: String?, isStored: Bool)] = [
        ("gzip", true), ("gzip, deflate", true), ("gzip;q=0.5, identity;q=0.1", true), ("*", true), ("x-gzip", true),
        (nil, false), ("", false), ("identity", false), ("gzip;q=0", false), ("*;q=0, identity", false),
        ("gzip;q=0.5, identity", false),
    ]

    @Test(arguments: accepted)
    func `clients that accept gzip get it, and the others get it inflated`(_ row: (field: String?, isStored: Bool))
        throws
    {
        try withStored { _, client in
            try client.ask("GET", "/a", row.field.map { ["Accept-Encoding: \($0)"] } ?? [])
            let answer = try client.response()
            #expect(answer.isWhole)
            #expect(answer.body == (row.isStored ? zipped : Array(text.utf8)))
            #expect(answer.cacheStatus.hasPrefix("larder; hit"))
            #expect(answer["Vary"] == "Accept-Encoding")
            #expect(answer["Content-Encoding"] == (row.isStored ? "gzip" : nil))
            #expect(answer["ETag"] == (row.isStored ? "\"a\"" : "W/\"a\""))
            #expect(answer["Content-Length"] == (row.isStored ? "\(zipped.count)" : nil))
            #expect(answer["Transfer-Encoding"] == (row.isStored ? nil : "chunked"))
            for name in ["Accept-Ranges", "Repr-Digest", "Content-MD5"] {
                #expect((answer[name] != nil) == row.isStored, "\(name)")
            }
        }
    }

    @Test func `an HTTP/1.0 client gets a body inflated up to the end of the connection`() throws {
        try withStored { s, _ in
            let client = try s.client()
            try client.ask("GET", "/a", version: "1.0")
            let answer = try client.response()
            #expect(answer.text == text)
            #expect(answer["Transfer-Encoding"] == nil)
            #expect(answer["Content-Length"] == nil)
            try client.expectClosed()
        }
    }

    /// Requests for what was inflated before, without `Accept-Encoding`.
    static let requests: [(method: String, fields: [String], status: Int, isText: Bool)] = [
        ("GET", ["If-None-Match: W/\"a\""], 304, false), ("GET", ["If-None-Match: \"a\""], 304, false),
        ("GET", ["If-None-Match: W/\"b\""], 200, true), ("HEAD", [], 200, false),
        ("HEAD", ["If-None-Match: W/\"a\""], 304, false), ("GET", ["Range: bytes=0-9"], 200, true),
        ("GET", ["Range: bytes=0-9", "If-Range: W/\"a\""], 200, true),
        ("GET", ["Range: bytes=0-9", "If-Range: \"a\""], 200, true), ("GET", ["Range: bytes=100000-"], 200, true),
        ("GET", ["Range: bytes=0-1,5-6"], 200, true),
    ]

    @Test(arguments: requests)
    func `conditions, HEAD and ranges are answered for an inflated body`(
        _ row: (method: String, fields: [String], status: Int, isText: Bool)
    ) throws {
        try withStored { _, client in
            try client.ask(row.method, "/a", ["Accept-Encoding: identity;q=1, gzip;q=0"] + row.fields)
            let answer = try client.response(to: row.method)
            #expect(answer.status == row.status)
            #expect(answer.text == (row.isText ? text : ""))
            #expect(answer["ETag"] == "W/\"a\"")
            #expect(answer["Content-Range"] == nil)
            #expect(answer["Content-Encoding"] == nil)
            #expect(answer["Content-Length"] == nil)
            // The connection goes on where the answer said it ends.
            #expect(try client.get("/a").text == text)
        }
    }

    @Test func `a client that accepts gzip gets a range of the stored bytes`() throws {
        try withStored { _, client in
            let answer = try client.get("/a", "Accept-Encoding: gzip", "Range: bytes=0-1")
            #expect(answer.status == 206)
            #expect(answer.body == Array(zipped[0..<2]))
            #expect(answer["ETag"] == "\"a\"")
            #expect(answer["Content-Encoding"] == "gzip")
        }
    }

    static let holders = [["Accept-Encoding: gzip"], ["Accept-Encoding: identity"], []]

    @Test(arguments: holders)
    func `missing bytes of a stored gzip body are requested as gzip, whatever the client accepts`(fields: [String])
        throws
    {
        try scenario { s in
            let text = String(repeating: "pantry ", count: 30)
            let stored = gzip(Array(text.utf8))
            let common = [
                "Cache-Control: max-age=60", "ETag: \"g\"", "Vary: Accept-Encoding", "Content-Encoding: gzip",
            ]
            let last = stored.count - 1
            s.origin.expects("GET /a", "Range: bytes=9-", "Accept-Encoding: gzip").replies(
                206, common + ["Content-Type: text/plain", "Content-Range: bytes 9-\(last)/\(stored.count)"],
                Array(stored[9...]))
            #expect(try s.client().get("/a", "Range: bytes=9-", "Accept-Encoding: gzip").status == 206)
            s.origin.expects("GET /a", "Range: bytes=0-8", "If-Range: \"g\"", "Accept-Encoding: gzip").replies(
                206, common + ["Content-Range: bytes 0-8/\(stored.count)"], Array(stored[..<9]))
            let client = try s.client()
            try client.ask("GET", "/a", fields)
            let answer = try client.response()
            #expect(answer.status == 200)
            #expect(answer.isWhole)
            #expect(answer["Content-Encoding"] == nil ? answer.text == text : answer.body == stored)
        }
    }

    @Test func `missing bytes of an uncompressed variant are requested uncompressed`() throws {
        try scenario { s in
            let fields = [
                "Cache-Control: max-age=60", "ETag: \"p\"", "Vary: Accept-Encoding", "Content-Type: text/plain",
            ]
            s.origin.expects("GET /a", "Range: bytes=2-5").replies(
                206, fields + ["Content-Range: bytes 2-5/6"], Array("cdef".utf8))
            #expect(try s.client().get("/a", "Range: bytes=2-5", "Accept-Encoding: br;q=1, gzip;q=0.8").text == "cdef")
            s.origin.expects("GET /a", "Range: bytes=0-1", "If-Range: \"p\"", "Accept-Encoding: identity").replies(
                206, fields + ["Content-Range: bytes 0-1/6"], Array("ab".utf8))
            let answer = try s.client().get("/a", "Accept-Encoding: gzip, br;q=0.5")
            #expect(answer.text == "abcdef")
        }
    }

    @Test func `with no-transform from the origin another variant is requested (RFC 9110 §7.7)`() throws {
        let fields = Self.fields.map { $0.replacingOccurrences(of: "max-age=60", with: "max-age=60, no-transform") }
        try withStored(fields) { s, client in
            s.origin.expects("GET /a", "!Accept-Encoding").replies(
                200, "Cache-Control: max-age=60", "Vary: Accept-Encoding", "ETag: \"b\"", body: text)
            let answer = try client.get("/a")
            #expect(answer.text == text)
            #expect(answer["ETag"] == "\"b\"")
            #expect(try client.get("/a", "Accept-Encoding: gzip").body == zipped)
        }
    }

    @Test func `with no-transform from the client the origin chooses the coding`() throws {
        try withStored { s, client in
            s.origin.expects("GET /a", "Cache-Control: no-transform").replies(
                200, "Cache-Control: max-age=60", "Vary: Accept-Encoding", body: text)
            let answer = try client.get("/a", "Cache-Control: no-transform")
            #expect(answer.text == text)
        }
    }

    @Test func `the Accept-Encoding values of three browsers share one variant`() throws {
        try withStored { s, client in
            for list in ["gzip, deflate, br, zstd", "gzip, deflate, br", "gzip,deflate"] {
                let answer = try client.get("/a", "Accept-Encoding: \(list)")
                #expect(answer.status == 200, "\(list)")
                #expect(answer.body == zipped, "\(list)")
            }
            #expect(s.origin.requests.count == 1)
        }
    }

    // MARK: what grows, breaks, expands

    @Test func `a body is inflated while it arrives`() throws {
        try scenario { s in
            let rest = Gate("the first half is read")
            let half = zipped.count / 2
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 200 OK\r\n" + Self.fields.joined(separator: "\r\n")
                    + "\r\nContent-Length: \(zipped.count)\r\n\r\n"
            ).sends(Array(zipped[..<half])).waits(for: rest).sends(Array(zipped[half...]))
            let leader = try s.client()
            try leader.ask("GET", "/a", ["Accept-Encoding: gzip"])
            _ = try leader.head()
            let client = try s.client()
            try client.ask("GET", "/a")
            var answer = SeenMessage(head: try client.head())
            #expect(answer["Transfer-Encoding"] == "chunked")
            let first = try client.reader.line()
            #expect(Int(first ?? "", radix: 16) ?? 0 > 0, "\(first ?? "")")
            let count = Int(first ?? "", radix: 16) ?? 0
            let start = try client.reader.bytes(count + 2)
            rest.open()
            try client.reader.body(of: &answer, untilClose: false)
            #expect(answer.isWhole)
            #expect(String(decoding: start.dropLast(2) + answer.body, as: UTF8.self) == text)
            #expect(try leader.reader.bytes(zipped.count) == zipped)
        }
    }

    /// Whether a gzip transfer that breaks off in the middle can be taken up again.
    @Test(arguments: [true, false], ["1.1", "1.0"])
    func `a client that gets an inflated body sees whether it is complete`(
        _ isResumed: Bool, _ version: String
    ) throws {
        try scenario { s in
            let (go, half) = (Gate("both read"), zipped.count / 2)
            let head = Self.fields.filter { isResumed || !$0.hasPrefix("ETag") }.joined(separator: "\r\n")
            s.origin.expects("GET /a").sends("HTTP/1.1 200 OK\r\n\(head)\r\nContent-Length: \(zipped.count)\r\n\r\n")
                .sends(Array(zipped[..<half])).waits(for: go).closes()
            if isResumed {
                s.origin.expects("GET /a", "Range: bytes=\(half)-").replies(
                    206,
                    [
                        "Content-Encoding: gzip", "ETag: \"a\"",
                        "Content-Range: bytes \(half)-\(zipped.count - 1)/\(zipped.count)",
                    ],
                    Array(zipped[half...]))
            }
            let (leader, client) = (try s.client(), try s.client())
            try leader.ask("GET", "/a", ["Accept-Encoding: gzip"])
            _ = try leader.head()
            try client.ask("GET", "/a", version: version)
            var answer = SeenMessage(head: try client.head())
            go.open()
            do { try client.reader.body(of: &answer, untilClose: true) } catch { answer.isWhole = false }
            #expect(answer.isWhole == isResumed)
            if isResumed { #expect(answer.text == text) }
        }
    }

    /// What is stored as gzip, and none or not all of it.
    enum Corrupt: String, CaseIterable, Sendable {
        case none, cutShort, wrongChecksum, brokenInside, emptyMember

        var body: [UInt8] {
            switch self {
            case .none: Array(text.utf8)
            case .cutShort: Array(zipped.dropLast(9))
            case .wrongChecksum: zipped.dropLast(8) + [UInt8](repeating: 7, count: 8)
            case .brokenInside: zipped[..<40] + [UInt8](repeating: 0xFF, count: 60)
            case .emptyMember: Array(zipped[..<10])
            }
        }
    }

    @Test(arguments: Corrupt.allCases, ["1.1", "1.0"])
    func `if the stored gzip is invalid, a client without gzip gets a variant from the origin`(
        _ how: Corrupt, _ version: String
    ) throws {
        for vary in [true, false] {
            try withStored(Self.fields.filter { vary || !$0.hasPrefix("Vary") }, how.body) { s, _ in
                let client = try s.client()
                // Where nothing of it can be made, no head has gone out, and the origin is asked after all.
                let isHidden = how == .none || how == .emptyMember
                if !isHidden {
                    try client.ask("GET", "/a", version: version)
                    do {
                        let answer = try client.response()
                        #expect(answer.status == 200 && !answer.isWhole)
                    } catch {
                        // A body that the end of the connection ends breaks off by a reset.
                        #expect("\(error)".contains("reset") && version == "1.0", "\(error)")
                    }
                }
                // A client that accepts the stored coding gets it.
                #expect(try s.client().get("/a", "Accept-Encoding: gzip").body == how.body)
                s.origin.expects("GET /a", "!Accept-Encoding").replies(
                    200, Self.fields.filter { !$0.hasPrefix("Content-Encoding") && (vary || !$0.hasPrefix("Vary")) },
                    Array(text.utf8))
                let another = try s.client()
                try another.ask("GET", "/a", version: version)
                let answer = try another.response()
                #expect(answer.status == 200)
                #expect(answer.text == text)
                #expect(answer.cacheStatus.hasPrefix("larder; fwd=vary-miss; fwd-status=200"), "\(answer)")
                // The next such client hits.
                let next = try s.client().get("/a")
                #expect(next.text == text)
                #expect(next.cacheStatus.hasPrefix("larder; hit"))
                guard vary else { return }
                #expect(try s.client().get("/a", "Accept-Encoding: gzip").body == how.body)
            }
        }
    }

    @Test func `invalid gzip that the origin sends to this client is passed on unchanged`() throws {
        try scenario { s in
            for _ in 0..<2 {
                s.origin.expects("GET /a", "!Accept-Encoding").replies(200, Self.fields, Array(text.utf8))
                let answer = try s.client().get("/a")
                #expect(answer.status == 200)
                #expect(answer.text == text)
                #expect(answer["Content-Encoding"] == "gzip")
            }
            #expect(try s.client().get("/a", "Accept-Encoding: gzip").text == text)
        }
    }

    @Test func `if the origin must not be asked, invalid gzip gives 504`() throws {
        try withStored(Self.fields, Array(text.utf8)) { _, client in
            let answer = try client.get("/a", "Cache-Control: only-if-cached")
            #expect(answer.status == 504)
        }
    }

    @Test func `the mark of invalid gzip survives a restart`() throws {
        try scenario(cache: "disk: { path: DIRECTORY/store, size: 100MiB, sync: 100ms }") { s in
            s.origin.expects("GET /a").replies(200, Self.fields, Corrupt.cutShort.body)
            try s.client().get("/a", "Accept-Encoding: gzip")
            let broken = try s.client().get("/a")
            #expect(!broken.isWhole)
            try s.leaveToDisk()
            try s.restart()
            s.origin.expects("GET /a", "!Accept-Encoding").replies(
                200, Self.fields.filter { !$0.hasPrefix("Content-Encoding") }, Array(text.utf8))
            #expect(try s.client().get("/a").text == text)
            #expect(try s.client().get("/a", "Accept-Encoding: gzip").body == Corrupt.cutShort.body)
        }
    }

    /// 200 MiB of zeros.
    private static let bomb = (0..<4).flatMap { _ in gzip([UInt8](repeating: 0, count: 50 << 20)) }

    @Test func `a decompression bomb with a slow reader takes no memory and delays no other client`() throws {
        try withStored(Self.fields, Self.bomb) { s, _ in
            let before = residentBytes()
            let client = try s.client(receiveBuffer: 4096)
            try client.ask("GET", "/a")
            var count = 0
            while count < 1 << 20 { count += try client.wire.read(max: 4096).count }
            // AddressSanitizer keeps what was freed, by all tests.
            if !isSanitized { #expect(residentBytes() < before + 16 << 20) }
            #expect(try s.client().get("/a", "Accept-Encoding: gzip").body == Self.bomb)
        }
    }

    @Test func `a decompression bomb ends visibly at its bound`() throws {
        try withStored(Self.fields, Self.bomb) { s, client in
            try client.ask("GET", "/a")
            var (count, last) = (0, [UInt8]())
            while case let bytes = try client.wire.read(max: 1 << 20), !bytes.isEmpty {
                count += bytes.count
                last = (last + bytes).suffix(5)
            }
            #expect((64 << 20..<70 << 20).contains(count), "\(count)")
            #expect(String(decoding: last, as: UTF8.self) != "0\r\n\r\n")
        }
    }

    // MARK: compressing

    private static let plain = [
        "Cache-Control: max-age=60", "Content-Type: text/plain", "ETag: \"a\"", "Accept-Ranges: bytes",
    ]

    @Test func `on-the-fly compresses for each client that accepts gzip`() throws {
        try withStored(Self.plain, Array(text.utf8), cache: "rules: [ { compress: on-the-fly } ]") { _, client in
            for _ in 0..<2 {
                let answer = try client.get("/a", "Accept-Encoding: gzip, br")
                #expect(answer["Content-Encoding"] == "gzip")
                #expect(answer["Transfer-Encoding"] == "chunked")
                #expect(answer["Vary"] == "Accept-Encoding")
                #expect(answer["ETag"] == "W/\"a\"")
                #expect(answer["Accept-Ranges"] == nil)
                #expect(answer.body.count < text.utf8.count / 4)
                #expect(try inflated(answer.body) == Array(text.utf8))
            }
            let plain = try client.get("/a")
            #expect(plain.text == text)
            #expect(plain["ETag"] == "\"a\"")
            #expect(plain["Vary"] == "Accept-Encoding")
            #expect(try client.get("/a", "Accept-Encoding: gzip", "If-None-Match: W/\"a\"").status == 304)
            #expect(try client.get("/a", "Accept-Encoding: gzip", "Range: bytes=0-2").text == "All")
            #expect(try client.request("HEAD", "/a", "Accept-Encoding: gzip")["Content-Encoding"] == "gzip")
        }
    }

    @Test func `once serves the stored body until there is a copy, then the copy with its length`() throws {
        try withStored(Self.plain, Array(text.utf8), cache: "rules: [ { compress: once } ]") { s, client in
            var answer = try client.get("/a", "Accept-Encoding: gzip")
            if answer["Content-Encoding"] == nil { #expect(answer.text == text) }
            try s.eventually("the copy is made") {
                answer = try client.get("/a", "Accept-Encoding: gzip")
                return answer["Content-Encoding"] == "gzip"
            }
            #expect(answer["Content-Length"] == "\(answer.body.count)")
            #expect(answer["ETag"] == "W/\"a\"")
            #expect(try inflated(answer.body) == Array(text.utf8))
            #expect(try client.get("/a").text == text)
        }
    }

    /// What is not compressed, whatever the rule says.
    static let untouched: [(what: String, cache: String, fields: [String], body: String)] = [
        ("no rule", "rules: []", plain, text),
        ("short", "rules: [ { compress: on-the-fly } ]", plain, "short"),
        (
            "no-transform", "rules: [ { compress: on-the-fly } ]",
            ["Cache-Control: max-age=60, no-transform", "Content-Type: text/plain"], text
        ),
        (
            "another type", "rules: [ { compress: on-the-fly } ]",
            ["Cache-Control: max-age=60", "Content-Type: image/png"], text
        ),
        ("no type", "rules: [ { compress: on-the-fly } ]", ["Cache-Control: max-age=60"], text),
        (
            "a type that is not named", "compression: { types: [ text/css ] }\nrules: [ { compress: on-the-fly } ]",
            plain, text
        ),
        ("below size_min", "compression: { size_min: 1MiB }\nrules: [ { compress: on-the-fly } ]", plain, text),
        ("another coding", "rules: [ { compress: on-the-fly } ]", plain + ["Content-Encoding: br"], text),
    ]

    @Test(arguments: untouched)
    func `bodies that are not worth compressing are left unchanged`(
        _ row: (what: String, cache: String, fields: [String], body: String)
    ) throws {
        try withStored(row.fields, Array(row.body.utf8), cache: row.cache) { _, client in
            let answer = try client.get("/a", "Accept-Encoding: gzip")
            #expect(answer.text == row.body)
            #expect(answer["Content-Length"] == "\(row.body.utf8.count)")
            #expect(answer.cacheStatus.hasPrefix("larder; hit"))
        }
    }

    private func inflated(_ bytes: [UInt8]) throws -> [UInt8] {
        var inflator = Inflator(outputMax: 1 << 20)
        var output: [UInt8] = []
        try inflator.decompress(bytes, into: &output)
        try inflator.finish()
        return output
    }
}

/// VmRSS of this process, which Larder and the origin are part of.
private let isSanitized = unsafe dlsym(nil, "__asan_init") != nil

private func residentBytes() -> Int {
    guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8),
        let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmRSS:") }),
        let kibibytes = line.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
    else { return .max }
    return kibibytes << 10
}
