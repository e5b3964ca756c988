import Foundation
import Server
import Storage
import Testing

/// Bytes by which each tells where it stands.
private func content(_ count: Int, version: UInt8 = 0) -> [UInt8] {
    (0..<UInt64(count)).map { offset in
        let mixed = (offset &+ 1) &* 0x9E37_79B9_7F4A_7C15
        return UInt8(truncatingIfNeeded: ((mixed ^ mixed >> 29) &* 0xBF58_476D_1CE4_E5B9) >> 56) &+ version
    }
}

private let disk = "disk: { path: DIRECTORY/disk, size: 200MiB, sync: 100ms }"
private let cacheable = ["Cache-Control: max-age=600", "ETag: \"a\""]
/// Stored in one piece, by several blocks, and in a segment of its own.
private let lengths = [0, 1, 1000, 65_536, 65_537, 300_000, 1 << 20, 1 << 20 + 1, 3_000_000]

@Suite("The disk tier: stored responses survive a restart")
struct DiskScenarios {
    @Test(arguments: lengths) func `a response of any length is a hit after a restart`(_ length: Int) throws {
        try scenario(cache: disk) { s in
            let body = content(length)
            s.origin.expects("GET /a").replies(200, cacheable + ["Content-Type: text/x", "X-Own: y"], body)
            #expect(try s.client().get("/a").body == body)
            try s.restart()
            let answer = try s.client().get("/a")
            #expect(answer.status == 200 && answer.isWhole && answer.body == body)
            #expect(answer.cacheStatus.hasPrefix("larder; hit; ttl="))
            #expect(answer.head.all("X-Own") == ["y"] && answer.head.all("Content-Length") == ["\(length)"])
            // And again, by what is in memory now.
            #expect(try s.client().get("/a").body == body)
        }
    }

    /// Memory takes responses up to an eighth of its size.
    @Test(arguments: [130_000, 131_073, 300_000, 700_000, 1 << 20], [true, false])
    func `a small memory keeps no response from the disk`(_ length: Int, hasLength: Bool) throws {
        try scenario(cache: "memory: 1MiB\n\(disk)") { s in
            let body = content(length)
            if hasLength {
                s.origin.expects("GET /a").replies(200, cacheable, body)
            } else {
                let head = "HTTP/1.1 200 OK\r\n\(cacheable.joined(separator: "\r\n"))\r\n\r\n"
                s.origin.expects("GET /a").sends(Array(head.utf8) + body).closes()
            }
            #expect(try s.client().get("/a").body == body)
            #expect(try s.client().get("/a").body == body)
            try s.restart()
            let answer = try s.client().get("/a")
            #expect(answer.body == body && answer.cacheStatus.hasPrefix("larder; hit; ttl="))
        }
    }

    @Test(arguments: lengths) func `a response that memory evicted is a hit on the disk`(_ length: Int) throws {
        try scenario(cache: disk) { s in
            let body = content(length)
            s.origin.expects("GET /a").replies(200, cacheable, body)
            try s.client().get("/a")
            for _ in 0..<4 {
                try s.leaveToDisk()
                let client = try s.client()
                for _ in 0..<5 { #expect(try client.get("/a").body == body) }
                #expect(try client.request("HEAD", "/a").head.all("Content-Length") == ["\(length)"])
            }
        }
    }

    @Test func `a response of unknown length is a hit after a restart`() throws {
        try scenario(cache: disk) { s in
            for length in [10, 2_000_000] {
                let body = content(length)
                let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\n\r\n"
                s.origin.expects("GET /\(length)").sends(Array(head.utf8) + body).closes()
                #expect(try s.client().get("/\(length)").body == body)
                try s.leaveToDisk()
                let answer = try s.client().get("/\(length)")
                #expect(answer.cacheStatus.hasPrefix("larder; hit"))
                #expect(answer.body == body && answer.head.all("Content-Length") == ["\(length)"])
            }
        }
    }

    @Test(arguments: [300_000, 3_000_000])
    func `ranges of a response on the disk are answered from the disk`(_ length: Int) throws {
        try scenario(cache: disk) { s in
            let body = content(length)
            s.origin.expects("GET /a").replies(200, cacheable, body)
            try s.client().get("/a")
            for (first, last) in [(0, 0), (65_535, 65_536), (100_000, 250_000), (length - 1, length - 1)] {
                try s.leaveToDisk()
                let answer = try s.client().get("/a", "Range: bytes=\(first)-\(last)")
                #expect(answer.status == 206 && answer.body == Array(body[first...last]))
            }
            let parts = try s.client().get("/a", "Range: bytes=5-6,200000-200001")
            #expect(parts.status == 206 && parts.text.contains("bytes 200000-200001/\(length)"))
        }
    }

    @Test func `each variant is found by its secondary key`() throws {
        try scenario(cache: disk) { s in
            for language in ["de", "en", "fr"] {
                s.origin.expects("GET /a", "Accept-Language: \(language)")
                    .replies(200, "Cache-Control: max-age=60", "Vary: Accept-Language", body: language)
                try s.client().get("/a", "Accept-Language: \(language)")
            }
            try s.restart()
            for language in ["fr", "de", "en"] {
                let answer = try s.client().get("/a", "Accept-Language: \(language)")
                #expect(answer.text == language && answer.cacheStatus.hasPrefix("larder; hit"))
            }
            s.origin.expects("GET /a").replies(200, "Vary: Accept-Language", body: "it")
            #expect(try s.client().get("/a", "Accept-Language: it").text == "it")
        }
    }

    @Test func `a variant in memory does not hide another that is on the disk alone`() throws {
        try scenario(cache: disk) { s in
            for language in ["de", "en"] {
                s.origin.expects("GET /a", "Accept-Language: \(language)")
                    .replies(200, "Cache-Control: max-age=60", "Vary: Accept-Language", body: language)
                try s.client().get("/a", "Accept-Language: \(language)")
                try s.leaveToDisk()
            }
            s.origin.expects("GET /a", "Accept-Language: fr")
                .replies(200, "Cache-Control: max-age=60", "Vary: Accept-Language", body: "fr")
            try s.client().get("/a", "Accept-Language: fr")
            for language in ["de", "en", "fr"] {
                #expect(try s.client().get("/a", "Accept-Language: \(language)").text == language)
            }
        }
    }

    @Test(arguments: [1000, (1 << 20) + 1]) func `a variant that a 304 names is on the disk, or says that it is not`(
        _ length: Int
    ) throws {
        try scenario(cache: disk) { s in
            let fields = ["Cache-Control: max-age=60", "Vary: X-V", "ETag: \"e\""]
            let body = [UInt8](repeating: 0x78, count: length)
            s.origin.expects("GET /a", "X-V: 1").replies(200, fields, body)
            #expect(try s.client().get("/a", "X-V: 1").cacheStatus.contains("; stored"))
            s.origin.expects("GET /a", "X-V: 2", "If-None-Match: \"e\"").replies(304, fields, [])
            let second = try s.client().get("/a", "X-V: 2")
            #expect(second.body == body)
            let isStored = second.cacheStatus.contains("; stored")
            #expect(isStored || second.cacheStatus.contains("detail=memory-only"), "\(second.cacheStatus)")
            #expect(isStored == (length == 1000))
            try s.restart()
            if !isStored { s.origin.expects("GET /a", "X-V: 2").replies(304, fields, []) }
            let third = try s.client().get("/a", "X-V: 2")
            #expect(
                third.body == body && third.cacheStatus.hasPrefix("larder; hit") == isStored, "\(third.cacheStatus)")
        }
    }

    @Test func `parts of a short body are in memory until it is whole`() throws {
        try scenario(cache: disk) { s in
            let fields = ["Cache-Control: max-age=60", "ETag: \"e\""]
            s.origin.expects("GET /a", "Range: bytes=0-4").replies(
                206, fields + ["Content-Range: bytes 0-4/10"], Array("01234".utf8))
            let first = try s.client().get("/a", "Range: bytes=0-4")
            #expect(first.cacheStatus.hasSuffix("detail=memory-only") && !first.cacheStatus.contains("stored"))
            s.origin.expects("GET /a", "Range: bytes=5-9").replies(
                206, fields + ["Content-Range: bytes 5-9/10"], Array("56789".utf8))
            #expect(try s.client().get("/a").text == "0123456789")
            try s.restart()
            let whole = try s.client().get("/a")
            #expect(whole.text == "0123456789" && whole.cacheStatus.hasPrefix("larder; hit"))
        }
    }

    @Test func `a replaced response does not come back, even after a restart`() throws {
        try scenario(cache: disk) { s in
            for version in ["one", "two", "three"] {
                s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=600", body: version)
                #expect(try s.client().get("/a", "Cache-Control: no-cache").text == version)
            }
            try s.restart()
            #expect(try s.client().get("/a").text == "three")
            #expect(s.tier.backStore?.statistics.objectCount == 1)
        }
    }

    @Test func `a 304 renews the response on the disk`() throws {
        try scenario(cache: disk) { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=0", "ETag: \"a\"", "X-N: 1", body: "text")
            try s.client().get("/a")
            try s.leaveToDisk()
            s.origin.expects("GET /a", "If-None-Match: \"a\"")
                .replies(304, "Cache-Control: max-age=600", "ETag: \"a\"", "X-N: 2")
            #expect(try s.client().get("/a").head.all("X-N") == ["2"])
            try s.restart()
            let answer = try s.client().get("/a")
            #expect(answer.text == "text" && answer.head.all("X-N") == ["2"])
            #expect(answer.cacheStatus.hasPrefix("larder; hit"))
        }
    }

    @Test(arguments: ["no-store", "private, max-age=600"])
    func `what a 304 takes out of the store does not reach the disk when its missing bytes have come`(_ said: String)
        throws
    {
        try scenario(cache: disk) { s in
            let part = cacheable + ["Content-Range: bytes 2-5/10"]
            s.origin.expects("GET /a", "Range: bytes=2-5").replies(206, part, Array("2345".utf8))
            try s.client().get("/a", "Range: bytes=2-5")
            s.origin.expects("GET /a", "If-None-Match: \"a\"").replies(304, "Cache-Control: \(said)", "ETag: \"a\"")
            for (range, bytes) in [("0-1", "01"), ("6-9", "6789")] {
                s.origin.expects("GET /a", "Range: bytes=\(range)", "If-Range: \"a\"")
                    .replies(206, cacheable + ["Content-Range: bytes \(range)/10"], Array(bytes.utf8))
            }
            #expect(try s.client().get("/a", "Cache-Control: no-cache").text == "0123456789")
            try s.restart()
            s.origin.expects("GET /a").replies(200, cacheable, Array("for another".utf8))
            #expect(try s.client().get("/a").text == "for another")
        }
    }

    @Test func `an unsafe request invalidates a response that is on the disk alone (RFC 9111 §4.4)`() throws {
        try scenario(cache: disk) { s in
            s.origin.expects("GET /a").replies(200, cacheable, content(10))
            try s.client().get("/a")
            try s.leaveToDisk()
            s.origin.expects("POST /a").replies(200, body: "")
            _ = try s.client().request("POST", "/a", body: "x")
            s.origin.expects("GET /a").replies(200, cacheable, content(11))
            #expect(try s.client().get("/a").body == content(11))
            try s.restart()
            #expect(try s.client().get("/a").body == content(11))
        }
    }

    @Test func `a response with storage session never reaches the disk`() throws {
        try scenario(
            cache: "\(disk)\nrules: [ { match: { path: /session/* }, storage: session } ]"
        ) { s in
            for path in ["/session/a", "/a"] { s.origin.expects("GET \(path)").replies(200, cacheable, content(5)) }
            for path in ["/session/a", "/a"] { try s.client().get(path) }
            s.origin.expects("GET /session/large").replies(200, cacheable, content(2_000_000))
            try s.client().get("/session/large")
            #expect(s.tier.backStore?.flush() == true)
            #expect(s.tier.backStore?.statistics.objectCount == 1)
            try s.restart()
            s.origin.expects("GET /session/a").replies(200, cacheable, content(5))
            try s.client().get("/session/a")
            #expect(try s.client().get("/a").cacheStatus.hasPrefix("larder; hit"))
        }
    }

    @Test func `with admission second-hit a response reaches the disk at the second request`() throws {
        try scenario(
            cache: "\(disk)\nrules: [ { match: { path: /* }, admission: second-hit } ]"
        ) { s in
            s.origin.expects("GET /a").replies(200, cacheable, content(5))
            try s.client().get("/a")
            #expect(s.tier.backStore?.flush() == true)
            #expect(s.tier.backStore?.statistics.objectCount == 0)
            try s.client().get("/a")
            #expect(s.tier.backStore?.flush() == true)
            #expect(s.tier.backStore?.statistics.objectCount == 1)
        }
    }

    @Test func `each zone has its own disk`() throws {
        try scenario(
            cache: """
                \(disk)
                zones: [ { name: other, memory: 8MiB, disk: { path: DIRECTORY/other, size: 100MiB } } ]
                rules: [ { match: { path: /other/* }, zone: other } ]
                """
        ) { s in
            for path in ["/other/a", "/a"] { s.origin.expects("GET \(path)").replies(200, cacheable, Array(path.utf8)) }
            for path in ["/other/a", "/a"] { try s.client().get(path) }
            try s.restart()
            for path in ["/other/a", "/a"] { #expect(try s.client().get(path).text == path) }
            #expect(s.proxy.shared.zones.current.map { $0.tier.backStore?.statistics.objectCount } == [1, 1])
        }
    }

    @Test func `a renamed zone has the responses in its directory`() throws {
        func cache(_ name: String) -> String {
            """
            memory: 8MiB
            zones: [ { name: \(name), memory: 8MiB, disk: { path: DIRECTORY/zone, size: 100MiB } } ]
            rules: [ { zone: \(name) } ]
            """
        }
        try scenario(cache: cache("old")) { s in
            s.origin.expects("GET /a").replies(200, cacheable, Array("a".utf8))
            try s.client().get("/a")
            try s.adopt(cache: cache("new"))
            let answer = try s.client().get("/a")
            #expect(answer.text == "a" && answer.cacheStatus.hasPrefix("larder; hit"))
        }
    }
}

@Suite("The disk tier: large bodies are written while they arrive")
struct LargeBodyScenarios {
    private static func head(_ length: Int) -> [UInt8] {
        Array("HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nETag: \"a\"\r\nContent-Length: \(length)\r\n\r\n".utf8)
    }

    @Test func `other clients read any part of a large body while it arrives`() throws {
        try scenario(cache: disk) { s in
            let body = content(3_000_000)
            let gate = Gate()
            s.origin.expects("GET /a").sends(Self.head(body.count) + body[..<1_500_000]).waits(for: gate)
                .sends(Array(body[1_500_000...]))
            let first = try s.client()
            try first.ask("GET", "/a")
            _ = try first.head()
            let part = try s.client().get("/a", "Range: bytes=1000000-1000009")
            #expect(part.body == Array(body[1_000_000..<1_000_010]))
            let second = try s.client()
            try second.ask("GET", "/a")
            gate.open()
            #expect(try second.response().body == body)
            #expect(try s.client().get("/a").cacheStatus.hasPrefix("larder; hit"))
        }
    }

    @Test func `a download that a restart interrupted goes on where it stopped`() throws {
        try scenario(cache: disk) { s in
            let body = content(3_000_000)
            s.origin.expects("GET /a").sends(Self.head(body.count) + body[..<2_000_000]).hangs()
            let first = try s.client()
            try first.ask("GET", "/a")
            try s.eventually("all that came is on the disk") {
                s.tier.backStore?.flush() == true && s.count(.bytesFromOrigins) >= 2_000_000
            }
            try s.restart()
            // Whole blocks were kept.
            let kept = 2_000_000 / 65_536 * 65_536
            s.origin.expects("GET /a", "Range: bytes=\(kept)-2999999", "If-Range: \"a\"").replies(
                206, ["ETag: \"a\"", "Content-Range: bytes \(kept)-2999999/3000000"], Array(body[kept...]))
            let answer = try s.client().get("/a")
            #expect(answer.status == 200 && answer.isWhole && answer.body == body)
            #expect(try s.client().get("/a").cacheStatus.hasPrefix("larder; hit"))
        }
    }

    @Test func `ranges of a large object are kept in blocks, and the rest is fetched`() throws {
        try scenario(cache: disk) { s in
            let body = content(3_000_000)
            s.origin.expects("GET /a", "Range: bytes=131072-262143").replies(
                206, cacheable + ["Content-Range: bytes 131072-262143/3000000"], Array(body[131_072..<262_144]))
            try s.client().get("/a", "Range: bytes=131072-262143")
            try s.restart()
            let part = try s.client().get("/a", "Range: bytes=140000-200000")
            #expect(part.body == Array(body[140_000...200_000]) && part.cacheStatus.hasPrefix("larder; hit"))
            for range in [0..<131_072, 262_144..<3_000_000] {
                s.origin.expects("GET /a", "Range: bytes=\(range.lowerBound)-\(range.upperBound - 1)").replies(
                    206, ["ETag: \"a\"", "Content-Range: bytes \(range.lowerBound)-\(range.upperBound - 1)/3000000"],
                    Array(body[range]))
            }
            #expect(try s.client().get("/a").body == body)
        }
    }

    @Test func `a slow disk pauses the origin and loses nothing`() throws {
        try scenario(cache: "memory: 8MiB\n\(disk)") { s in
            let body = content(24_000_000)
            s.origin.expects("GET /a").sends(Self.head(body.count) + body)
            #expect(try s.client().get("/a").body == body)
            try s.leaveToDisk()
            #expect(try s.client().get("/a").body == body)
        }
    }
}

@Suite("The disk tier: damage")
struct DiskDamageScenarios {
    /// Flips a bit in every file of the store's segments, in the middle of what was stored.
    private static func flip(in directory: URL, _ pattern: [UInt8]) throws {
        let files = try #require(FileManager.default.enumerator(at: directory, includingPropertiesForKeys: nil))
        var flipped = 0
        for case let file as URL in files where file.pathExtension == "seg" {
            var data = try Data(contentsOf: file)
            guard let found = data.range(of: Data(pattern)) else { continue }
            data[found.lowerBound + pattern.count / 2] ^= 0x10
            let handle = try FileHandle(forWritingTo: file)
            try handle.seek(toOffset: UInt64(found.lowerBound))
            try handle.write(contentsOf: data[found])
            try handle.close()
            flipped += 1
        }
        #expect(flipped > 0)
    }

    @Test(arguments: [1000, 300_000]) func `a flipped bit drops the object, and it is fetched anew`(_ length: Int)
        throws
    {
        try scenario(cache: disk) { s in
            let body = content(length)
            s.origin.expects("GET /a").replies(200, cacheable, body)
            try s.client().get("/a")
            try s.leaveToDisk()
            try Self.flip(in: s.directory, Array(body[500..<600]))
            s.origin.expects("GET /a").replies(200, cacheable, body)
            let answer = try s.client().get("/a")
            #expect(answer.body == body && answer.cacheStatus.contains("fwd=uri-miss"))
            #expect(s.tier.backStore?.statistics.damagedObjects == 1)
            try s.leaveToDisk()
            #expect(try s.client().get("/a").cacheStatus.hasPrefix("larder; hit"))
        }
    }

    @Test(arguments: [1000, 200_000]) func `a body that is lost during its validation is fetched again`(
        _ length: Int
    )
        throws
    {
        try scenario(cache: disk) { s in
            let body = content(length)
            let (isAsked, mayAnswer) = (Gate(), Gate())
            s.origin.expects("GET /a").replies(200, ["Cache-Control: max-age=0", "ETag: \"a\""], body)
            s.origin.expects("GET /b").replies(200, cacheable, content(length + 1))
            for path in ["/a", "/b"] { try s.client().get(path) }
            try s.leaveToDisk()
            s.origin.expects("GET /a", "If-None-Match: \"a\"").opens(isAsked).waits(for: mayAnswer)
                .replies(304, cacheable, [])
            let client = try s.client()
            try client.ask("GET", "/a")
            try isAsked.wait()
            try Self.flip(in: s.directory, Array(body[500..<600]))
            // What the worker holds of the disk is another body from here on.
            #expect(try s.client().get("/b").body == content(length + 1))
            s.origin.expects("GET /a").replies(200, cacheable, body)
            mayAnswer.open()
            let answer = try client.response()
            #expect(answer.status == 200 && answer.body == body)
            #expect(answer.cacheStatus.contains("fwd=uri-miss"))
        }
    }

    @Test(arguments: [200_000, 900_000]) func `a range is served even if another part is damaged`(_ length: Int)
        throws
    {
        try scenario(cache: disk) { s in
            let body = content(length)
            s.origin.expects("GET /a").replies(200, cacheable, body)
            try s.client().get("/a")
            try s.leaveToDisk()
            try Self.flip(in: s.directory, Array(body[150_000..<150_100]))
            // At the third use the whole body is worth the memory.
            for first in [65_500, 196_608] {
                let part = try s.client().get("/a", "Range: bytes=\(first)-\(first + 99)")
                #expect(part.status == 206 && part.body == Array(body[first..<first + 100]))
                #expect(part.cacheStatus.hasPrefix("larder; hit"))
            }
            s.origin.expects("GET /a").replies(200, cacheable, body)
            #expect(try s.client().get("/a").body == body)
        }
    }

    @Test func `a damaged block of a large body is fetched again, even while the body is sent`() throws {
        try scenario(cache: disk) { s in
            let body = content(3_000_000)
            s.origin.expects("GET /a").replies(200, cacheable, body)
            try s.client().get("/a")
            try s.leaveToDisk()
            try Self.flip(in: s.directory, Array(body[1_000_000..<1_000_100]))
            let block = 1_000_000 / 65_536 * 65_536
            s.origin.expects("GET /a", "Range: bytes=\(block)-\(block + 65_535)", "If-Range: \"a\"").replies(
                206, ["ETag: \"a\"", "Content-Range: bytes \(block)-\(block + 65_535)/3000000"],
                Array(body[block..<block + 65_536]))
            #expect(try s.client().get("/a").body == body)
            try s.leaveToDisk()
            #expect(try s.client().get("/a").body == body)
        }
    }

    private static let damagedBlock = 655_360..<720_896

    /// A body of which only the first four blocks are checked before the head of its answer is sent.
    private static func store(_ s: Scenario, _ body: [UInt8], isChunked: Bool = false) throws {
        if isChunked {
            s.origin.expects("GET /a").sends(
                Array(
                    "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nETag: \"a\"\r\nTransfer-Encoding: chunked\r\n\r\n\(String(body.count, radix: 16))\r\n"
                        .utf8)
                    + body + Array("\r\n0\r\n\r\n".utf8))
        } else {
            s.origin.expects("GET /a").replies(200, cacheable, body)
        }
        try s.client().get("/a")
        try s.leaveToDisk()
        try flip(in: s.directory, Array(body[700_000..<700_100]))
    }

    private static func expectRest(_ s: Scenario) -> Expectation {
        s.origin.expects("GET /a", "Range: bytes=655360-720895", "If-Range: \"a\"")
    }

    private static func giveRest(of body: [UInt8], _ asked: Expectation) {
        asked.replies(206, ["ETag: \"a\"", "Content-Range: bytes 655360-720895/900000"], Array(body[damagedBlock]))
    }

    @Test(arguments: [false, true])
    func `a damaged block is fetched while the body is sent, and the response is stored again`(_ isChunked: Bool) throws
    {
        try scenario(cache: disk) { s in
            let body = content(900_000)
            try Self.store(s, body, isChunked: isChunked)
            Self.giveRest(of: body, Self.expectRest(s))
            let answer = try s.client().get("/a")
            #expect(answer.isWhole && answer.body == body && answer.cacheStatus.hasPrefix("larder; hit"))
            #expect(s.tier.backStore?.statistics.damagedObjects == 1)
            try s.leaveToDisk()
            let again = try s.client().get("/a")
            #expect(again.body == body && again.cacheStatus.hasPrefix("larder; hit"))
        }
    }
    @Test func `all who are being sent a damaged body go on with what is fetched once`() throws {
        try scenario(cache: disk) { s in
            let body = content(900_000)
            try Self.store(s, body)
            Self.giveRest(of: body, Self.expectRest(s))
            // It gets stuck before the damaged block where the buffers of the kernel are small, and else meets it first.
            let slow = try s.client(receiveBuffer: 4096)
            try slow.ask("GET", "/a")
            try s.eventually("the slow client is being sent the body") { s.count(.hits) == 1 }
            #expect(try s.client().get("/a").body == body)
            let answer = try slow.response()
            #expect(answer.isWhole && answer.body == body && answer.cacheStatus.hasPrefix("larder; hit"))
        }
    }

    @Test func `what memory evicts while its damaged block is fetched still reaches the client whole`() throws {
        try scenario(cache: disk) { s in
            let body = content(900_000)
            let (isAsked, mayAnswer) = (Gate(), Gate())
            try Self.store(s, body)
            Self.giveRest(of: body, Self.expectRest(s).opens(isAsked).waits(for: mayAnswer))
            let client = try s.client()
            try client.ask("GET", "/a")
            try isAsked.wait()
            s.tier.clearMemory()
            mayAnswer.open()
            let answer = try client.response()
            #expect(answer.isWhole && answer.body == body)
        }
    }

    @Test func `a body ends at its damaged block if the origin has another version`() throws {
        try scenario(cache: disk) { s in
            let body = content(900_000)
            try Self.store(s, body)
            Self.expectRest(s).replies(200, ["ETag: \"b\""], content(900_001))
            let answer = try s.client().get("/a")
            #expect(!answer.isWhole && answer.body == Array(body[..<Self.damagedBlock.lowerBound]))
        }
    }

    @Test func `a body without a strong validator ends at its damaged block`() throws {
        try scenario(cache: disk) { s in
            let body = content(900_000)
            s.origin.expects("GET /a").replies(200, ["Cache-Control: max-age=600", "ETag: W/\"a\""], body)
            try s.client().get("/a")
            try s.leaveToDisk()
            try Self.flip(in: s.directory, Array(body[700_000..<700_100]))
            let answer = try s.client().get("/a")
            #expect(
                !answer.isWhole && body.starts(with: answer.body) && answer.body.count < Self.damagedBlock.upperBound)
            s.origin.expects("GET /a").replies(200, cacheable, body)
            #expect(try s.client().get("/a").body == body)
        }
    }

    @Test func `a damaged head drops the object`() throws {
        try scenario(cache: disk) { s in
            s.origin.expects("GET /a").replies(200, cacheable + ["X-Marker: some-marker-or-other"], content(10))
            try s.client().get("/a")
            try s.leaveToDisk()
            try Self.flip(in: s.directory, Array("some-marker-or-other".utf8))
            s.origin.expects("GET /a").replies(200, cacheable, content(11))
            #expect(try s.client().get("/a").body == content(11))
            // The key of a head that cannot be read has to be looked up first, on a thread of the store.
            try s.eventually("the damage is counted") { s.tier.backStore?.statistics.damagedObjects == 1 }
        }
    }
}
