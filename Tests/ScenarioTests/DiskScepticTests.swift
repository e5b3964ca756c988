import Compression
import Foundation
import Server
import Storage
import Testing

/// Bytes by which each tells where it stands: with a period of a prime number of bytes, longer than a block.
private func content(_ count: Int, version: UInt8 = 0) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + period.count)
    let own = period.map { $0 &+ version }
    while bytes.count < count { bytes += own }
    return Array(bytes.prefix(count))
}

private let period = (0..<99_991).map { UInt8(truncatingIfNeeded: ($0 &* 2_654_435_761) >> 15) }

private let disk = "disk: { path: DIRECTORY/disk, size: 200MiB, sync: 100ms }"
private let cacheable = ["Cache-Control: max-age=600", "ETag: \"a\""]

private func head(_ length: Int, _ fields: String = "") -> [UInt8] {
    Array(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nETag: \"a\"\r\n\(fields)Content-Length: \(length)\r\n\r\n"
            .utf8)
}

extension Scenario {
    /// Nobody holds anything any more: all that was taken of the budget is given back.
    fileprivate func expectMemoryGivenBack(_ tier: Tiers? = nil) throws {
        let tier = tier ?? self.tier
        _ = tier.backStore?.flush()
        try eventually("the memory is given back, \(tier.memory.statistics.usedBytes) are used") {
            tier.memory.removeAll()
            return tier.memory.statistics.usedBytes == 0
        }
    }
}

@Suite("The disk tier: a disk that fails in the middle of a large body")
struct LostDiskScenarios {
    private static let zone = """
        memory: 64MiB
        zones: [ { name: big, memory: 8MiB, object_size_max: 150MiB, disk: { path: DIRECTORY/big, size: 200MiB } } ]
        rules: [ { match: { path: "/big/*" }, zone: big } ]
        """
    /// Without the zone: its disk is closed, as one that fails.
    private static let none = "memory: 64MiB"

    @Test func `the client that asked gets all of it, and memory stays within bounds`() throws {
        try scenario(cache: Self.zone) { s in
            let tier = s.proxy.shared.zones.current[1].tier
            let body = content(40_000_000)
            let gate = Gate()
            s.origin.expects("GET /big/a").sends(head(body.count) + body[..<5_000_000]).waits(for: gate)
                .sends(Array(body[5_000_000...]))
            let client = try s.client()
            try client.ask("GET", "/big/a")
            try s.eventually("a part of it came") { s.count(.bytesFromOrigins) >= 5_000_000 }
            try s.adopt(cache: Self.none)
            gate.open()
            let answer = try client.response()
            #expect(answer.isWhole && answer.body == body)
            try s.expectMemoryGivenBack(tier)
        }
    }

    @Test func `answers to ranges that memory cannot hold are passed on`() throws {
        try scenario(cache: "memory: 8MiB\n\(disk)") { s in
            s.tier.backStore?.close()
            let rest = Array(content(5_000_000)[1000...])
            let paths = ["/a", "/b", "/c"]
            for path in paths {
                s.origin.expects("GET \(path)", "Range: bytes=1000-").replies(
                    206, cacheable + ["Content-Range: bytes 1000-4999999/5000000"], rest)
            }
            let clients = try paths.map { path in
                let client = try s.client(receiveBuffer: 4096)
                try client.ask("GET", path, ["Range: bytes=1000-"])
                return client
            }
            for client in clients {
                let answer = try client.response()
                #expect(answer.isWhole && answer.body == rest)
            }
            try s.expectMemoryGivenBack()
        }
    }

    @Test func `a client that leaves ends the transfer and frees its memory`() throws {
        try scenario(cache: Self.zone) { s in
            let tier = s.proxy.shared.zones.current[1].tier
            let gone = Gate()
            let gate = Gate()
            let length = 100 << 20
            s.origin.expects("GET /big/a").sends(head(length) + content(5_000_000)).waits(for: gate)
                .streams(String(repeating: "x", count: 100_000), untilGone: gone)
            do {
                let client = try s.client(receiveBuffer: 4096)
                try client.ask("GET", "/big/a")
                try s.eventually("a part of it came") { s.count(.bytesFromOrigins) >= 5_000_000 }
                try s.adopt(cache: Self.none)
                gate.open()
                _ = try client.head()
            }
            try gone.wait()
            try s.expectMemoryGivenBack(tier)
        }
    }

    @Test func `the origin waits for a client that reads slowly`() throws {
        try scenario(cache: Self.zone) { s in
            let tier = s.proxy.shared.zones.current[1].tier
            let body = content(20_000_000)
            let gate = Gate()
            s.origin.expects("GET /big/a").sends(head(body.count) + body[..<3_000_000]).waits(for: gate)
                .sends(Array(body[3_000_000...]))
            let client = try s.client(receiveBuffer: 4096)
            try client.ask("GET", "/big/a")
            try s.eventually("a part of it came") { s.count(.bytesFromOrigins) >= 3_000_000 }
            try s.adopt(cache: Self.none)
            gate.open()
            let answer = try client.response()
            #expect(answer.isWhole && answer.body == body)
            try s.expectMemoryGivenBack(tier)
        }
    }
}

@Suite("The disk tier: changes while a large body arrives")
struct LargeBodyTroubles {
    /// Starts a transfer of which a part is there, and the client that asked.
    private func begin(_ s: Scenario, _ body: [UInt8], _ part: Int, _ gate: Gate) throws -> ScriptedClient {
        s.origin.expects("GET /a").sends(head(body.count) + body[..<part]).waits(for: gate).sends(Array(body[part...]))
        let client = try s.client()
        try client.ask("GET", "/a")
        try s.eventually("a part of it came") { s.count(.bytesFromOrigins) >= part }
        return client
    }

    @Test func `a client that is reading when a response is invalidated gets the rest, and no other client does`()
        throws
    {
        try scenario(cache: disk) { s in
            let (old, new) = (content(5_000_000), content(5_000_000, version: 1))
            let gate = Gate()
            let first = try begin(s, old, 2_000_000, gate)
            s.origin.expects("POST /a").replies(200, body: "")
            _ = try s.client().request("POST", "/a", body: "x")
            s.origin.expects("GET /a").replies(200, ["Cache-Control: max-age=600", "ETag: \"b\""], new)
            #expect(try s.client().get("/a").body == new)
            gate.open()
            #expect(try first.response().body == old)
            #expect(try s.client().get("/a").body == new)
            try s.leaveToDisk()
            #expect(try s.client().get("/a").body == new)
            try s.restart()
            #expect(try s.client().get("/a").body == new)
            #expect(s.tier.backStore?.statistics.objectCount == 1)
            try s.expectMemoryGivenBack()
        }
    }

    @Test func `a response that memory evicts while it arrives is still read by others`() throws {
        try scenario(cache: disk) { s in
            let body = content(6_000_000)
            let gate = Gate()
            let first = try begin(s, body, 3_000_000, gate)
            for _ in 0..<3 {
                try s.leaveToDisk()
                let part = try s.client().get("/a", "Range: bytes=1000000-2000000")
                #expect(part.status == 206 && part.body == Array(body[1_000_000...2_000_000]))
            }
            let second = try s.client()
            try second.ask("GET", "/a")
            gate.open()
            #expect(try first.response().body == body)
            #expect(try second.response().body == body)
            try s.leaveToDisk()
            let third = try s.client().get("/a")
            #expect(third.body == body && third.cacheStatus.hasPrefix("larder; hit"))
            try s.expectMemoryGivenBack()
        }
    }

    @Test func `many clients read a large body at once and at any pace, from memory and from the disk`() throws {
        try scenario(cache: "memory: 8MiB\n\(disk)") { s in
            let body = content(12_000_000)
            let gate = Gate()
            let first = try begin(s, body, 4_000_000, gate)
            let clients = try (0..<8).map { try s.client(receiveBuffer: $0 % 2 == 0 ? 4096 : nil) }
            for client in clients { try client.ask("GET", "/a") }
            gate.open()
            #expect(try first.response().body == body)
            for client in clients {
                let answer = try client.response()
                #expect(answer.isWhole && answer.body == body)
            }
            try s.expectMemoryGivenBack()
        }
    }

    @Test func `a large body is fetched to its end after its client has left`() throws {
        try scenario(cache: disk) { s in
            let body = content(5_000_000)
            let gate = Gate()
            do { _ = try begin(s, body, 2_000_000, gate) }
            gate.open()
            try s.expect(.stored, 1)
            try s.leaveToDisk()
            let answer = try s.client().get("/a")
            #expect(answer.body == body && answer.cacheStatus.hasPrefix("larder; hit"))
            try s.expectMemoryGivenBack()
        }
    }

    @Test func `a large body is served to HTTP/1.0, to HEAD and in several ranges`() throws {
        try scenario(cache: disk) { s in
            let body = content(3_000_000)
            s.origin.expects("GET /a").replies(200, cacheable, body)
            try s.client().get("/a")
            try s.leaveToDisk()
            let old = try s.client()
            try old.ask("GET", "/a", version: "1.0")
            #expect(try old.response().body == body)
            try s.leaveToDisk()
            let client = try s.client()
            #expect(try client.request("HEAD", "/a").head.all("Content-Length") == ["3000000"])
            #expect(try client.get("/a", "If-None-Match: \"a\"").status == 304)
            let parts = try client.get("/a", "Range: bytes=2900000-2999999,0-99999,-1")
            #expect(parts.status == 206)
            for range in [2_900_000..<3_000_000, 0..<100_000] {
                #expect(Data(parts.body).range(of: Data(body[range])) != nil)
            }
            #expect(try client.get("/a", "Range: bytes=3000000-").status == 416)
            #expect(try client.get("/a").body == body)
            try s.expectMemoryGivenBack()
        }
    }

    @Test func `a client that does not accept gzip gets a large gzip body inflated`() throws {
        try scenario(cache: disk) { s in
            // Hard to compress, so that it is large when it is.
            var seed: UInt64 = 1
            let plain: [UInt8] = (0..<4_000_000).map { _ in
                seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                return UInt8(truncatingIfNeeded: seed >> 57)
            }
            let zipped = gzip(plain)
            #expect(zipped.count > 2_000_000)
            s.origin.expects("GET /a").replies(
                200, cacheable + ["Content-Type: text/plain", "Content-Encoding: gzip", "Vary: Accept-Encoding"], zipped
            )
            #expect(try s.client().get("/a", "Accept-Encoding: gzip").body == zipped)
            for _ in 0..<2 {
                try s.leaveToDisk()
                let answer = try s.client().get("/a")
                #expect(answer.isWhole && answer.body == plain)
            }
            try s.expectMemoryGivenBack()
        }
    }

    @Test func `a 304 while a body arrives changes the head and not the body`() throws {
        try scenario(cache: disk) { s in
            let body = content(5_000_000)
            let gate = Gate()
            let first = try begin(s, body, 2_000_000, gate)
            s.origin.expects("GET /a", "If-None-Match: \"a\"").replies(
                304, "Cache-Control: max-age=600", "ETag: \"a\"", "X-N: 2")
            let second = try s.client()
            try second.ask("GET", "/a", ["Cache-Control: no-cache"])
            _ = try second.head()
            gate.open()
            #expect(try first.response().body == body)
            try s.expect(.stored, 1)
            try s.restart()
            let answer = try s.client().get("/a")
            #expect(answer.body == body && answer.cacheStatus.hasPrefix("larder; hit"))
            #expect(answer.head.all("X-N") == ["2"])
        }
    }

    @Test func `the response to a request with no-store is not kept, whatever its length`() throws {
        try scenario(cache: disk) { s in
            for length in [0, 65_536, 1 << 20, 1 << 20 + 1, 3_000_000] {
                s.origin.expects("GET /\(length)").replies(200, cacheable, content(length))
                #expect(try s.client().get("/\(length)", "Cache-Control: no-store").body == content(length))
            }
            #expect(s.tier.backStore?.flush() == true)
            #expect(s.tier.backStore?.statistics.objectCount == 0)
            try s.expectMemoryGivenBack()
        }
    }

    @Test func `a slow client gets the whole body even if it leaves the disk meanwhile`() throws {
        try scenario(cache: "disk: { path: DIRECTORY/disk, size: 64MiB, sync: 100ms }") { s in
            let body = content(250_000)
            // What is asked for once is read without coming into memory.
            for path in 0..<40 {
                s.origin.expects("GET /\(path)").replies(200, cacheable, body)
                try s.client().get("/\(path)")
            }
            try s.leaveToDisk()
            let client = try s.client(receiveBuffer: 2048)
            // One after the other, until the socket does not take all of one.
            var asked = 0
            var isBlocked = false
            while !isBlocked, asked < 30 {
                let before = s.count(.bytesToClients)
                try client.ask("GET", "/\(asked)", ["Accept-Language: de"])
                asked += 1
                var last: UInt64 = 0
                try s.eventually("it is out, or no more of it goes out") {
                    let sent = s.count(.bytesToClients) - before
                    defer { last = sent }
                    if sent > body.count { return true }
                    usleep(30_000)
                    isBlocked = sent > 0 && sent == last
                    return isBlocked
                }
            }
            #expect(isBlocked)
            // No worker has it in its buffer any more.
            for path in 30..<40 { try s.client().get("/\(path)") }
            // Others take the space, until the segments are reclaimed.
            let segments = s.directory.appendingPathComponent("disk/segments").path
            func names() throws -> Set<String> { Set(try FileManager.default.contentsOfDirectory(atPath: segments)) }
            let first = try names()
            for number in 0..<400 {
                if try names().isDisjoint(with: first) { break }
                s.origin.expects("GET /other\(number)").replies(200, cacheable, content(1_000_000))
                try s.client().get("/other\(number)")
            }
            #expect(try names().isDisjoint(with: first))
            // What began before that goes on.
            for _ in 0..<asked {
                let answer = try client.response()
                #expect(answer.isWhole && answer.body == body)
            }
        }
    }

    @Test(arguments: [0, 65_535, 65_536, 65_537, 1 << 20 - 1, 1 << 20, 1 << 20 + 1])
    func `all memory is freed, whatever the length of the body`(_ length: Int) throws {
        try scenario(cache: disk) { s in
            let body = content(length)
            s.origin.expects("GET /a").replies(200, cacheable, body)
            for _ in 0..<3 {
                #expect(try s.client().get("/a").body == body)
                #expect(try s.client().get("/a").body == body)
                try s.leaveToDisk()
            }
            #expect(try s.client().get("/a", "Range: bytes=-1").status == (length == 0 ? 200 : 206))
            try s.expectMemoryGivenBack()
        }
    }
}
