import Compression
import Limiting
import Rules
import TLS
import Testing

@Suite("Bodies that a digest proves")
struct DigestScenarios {
    private static let rule =
        "rules: [ { match: { path: \"/sha256/{hex:64}\" }, ttl: 60s, digest: { from: path, algorithm: sha256 } } ]"

    private static func path(of body: String) -> String { path(of: Array(body.utf8)) }
    private static func path(of body: [UInt8]) -> String {
        let digits = Digest.sha256(body).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        return "/sha256/\(digits)"
    }

    private static let bodies = [
        "", "small", String(repeating: "0123456789abcdef", count: 256), String(repeating: "x", count: 100_000),
    ]

    @Test(arguments: bodies, [true, false]) func `a body that is right is stored and served`(
        _ body: String, hasLength: Bool
    ) throws {
        try scenario(cache: Self.rule) { s in
            let path = Self.path(of: body)
            if hasLength {
                s.origin.expects("GET \(path)").replies(200, body: body)
            } else {
                s.origin.expects("GET \(path)").sends("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n\(body)").closes()
            }
            let client = try s.client()
            let first = try client.get(path)
            #expect(first.text == body && first.isWhole)
            let second = try client.get(path)
            #expect(second.cacheStatus.hasPrefix("larder; hit") && second.text == body)
        }
    }

    @Test(arguments: ["", ", ranges: whole"]) func `whoever asks for parts has the whole fetched, proven and stored`(
        _ more: String
    ) throws {
        let body = String(repeating: "0123456789", count: 1000)
        try scenario(cache: Self.rule.replacingOccurrences(of: ", ttl", with: "\(more), ttl")) { s in
            let path = Self.path(of: body)
            s.origin.expects("GET \(path)", "Range: bytes=0-99").replies(
                206, "Content-Range: bytes 0-99/10000", body: String(body.prefix(100)))
            s.origin.expects("GET \(path)", "!Range", "!If-Range").replies(200, body: body)
            let client = try s.client()
            let part = try client.get(path, "Range: bytes=0-99", "If-Range: \"1\"")
            #expect(part.status == 206 && part.text == String(body.prefix(100)), "\(part)")
            #expect(part.cacheStatus.contains("detail=unproven"), "\(part)")
            try s.expect(.stored, 1)
            let next = try client.get(path, "Range: bytes=9990-")
            #expect(next.text == "0123456789" && next.cacheStatus.hasPrefix("larder; hit"), "\(next)")
            let whole = try client.get(path)
            #expect(whole.text == body && whole.cacheStatus.hasPrefix("larder; hit"), "\(whole)")
        }
    }

    @Test(arguments: [200, 206]) func `a whole that is wrong, or answered with a part, is asked for once`(_ status: Int)
        throws
    {
        let body = String(repeating: "0123456789", count: 1000)
        let (path, start) = (Self.path(of: body + "?"), Array(body.utf8.prefix(100)))
        try scenario(cache: Self.rule) { s in
            let part = ["Content-Range: bytes 0-99/10000"]
            let asked = Gate("the whole was asked for")
            s.origin.expects("GET \(path)", "Range: bytes=0-99").replies(206, part, start)
            s.origin.expects("GET \(path)", "!Range").opens(asked).replies(
                status, status == 200 ? [] : part, status == 200 ? Array(body.utf8) : start)
            if status == 206 { s.origin.expects("GET \(path)", "Range: bytes=0-99").replies(206, part, start) }
            let client = try s.client()
            #expect(try client.get(path, "Range: bytes=0-99").status == 206)
            try asked.wait()
            if status == 200 {
                try s.expect(.digestMismatches, 1)
            } else {
                #expect(try client.get(path, "Range: bytes=0-99").status == 206)
            }
            #expect(s.count(.stored) == 0)
        }
    }

    @Test(arguments: [true, false]) func `other parts wait for the whole that is being fetched`(
        _ isRight: Bool
    ) throws {
        let body = String(repeating: "0123456789", count: 1000)
        try scenario(cache: Self.rule) { s in
            let path = Self.path(of: isRight ? body : body + "?")
            let (asked, go, goOn) = (Gate("the whole was asked for"), Gate("the whole comes"), Gate("its end comes"))
            s.origin.expects("GET \(path)", "Range: bytes=0-0").replies(
                206, ["Content-Range: bytes 0-0/10000"], Array("0".utf8))
            s.origin.expects("GET \(path)", "!Range").opens(asked).waits(for: go).sends(
                "HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n\(body.prefix(6000))"
            ).waits(for: goOn).sends(String(body.suffix(4000)))
            let client = try s.client()
            #expect(try client.get(path, "Range: bytes=0-0").text == "0")
            try asked.wait()
            let others = try (0..<2).map { _ in try s.client() }
            for (half, other) in zip(["0-4999", "5000-9999"], others) {
                try other.ask("GET", path, ["Range: bytes=\(half)"])
            }
            try s.expect(.requests, 3)
            go.open()
            let heads = try others.map { try $0.head() }
            #expect(heads.allSatisfy { $0.startLine.contains(" 206 ") })
            goOn.open()
            let halves = others.map { (try? $0.reader.bytes(5000)) ?? [] }
            #expect(halves[0] == Array(body.utf8.prefix(5000)))
            // The last bytes of a wrong body are withheld.
            #expect(isRight ? halves[1] == Array(body.utf8.suffix(5000)) : halves[1].count < 5000)
        }
    }

    @Test(arguments: [true, false]) func `when the whole was wrong, parts come from one that is proven`(
        _ isMended: Bool
    ) throws {
        let (body, wrong) = (String(repeating: "0123456789", count: 100), String(repeating: "0123456788", count: 100))
        try scenario(cache: Self.rule) { s in
            let path = Self.path(of: body)
            // The origin is asked once more each time, past the caches on the way.
            s.origin.expects("GET \(path)", "!Range").replies(200, body: wrong)
            s.origin.expects("GET \(path)", "!Range", "Cache-Control: no-cache").replies(200, body: wrong)
            #expect(try s.client().get(path).status == 502)
            try s.expect(.digestMismatches, 2)
            for _ in 0..<(isMended ? 1 : 2) {
                s.origin.expects("GET \(path)", "!Range", "Cache-Control: no-cache").replies(
                    200, body: isMended ? body : wrong)
            }
            let end = try s.client().get(path, "Range: bytes=900-999")
            #expect(end.status == (isMended ? 206 : 502), "\(end)")
            if isMended { #expect(end.text == String(body.suffix(100))) }
            try s.expect(.digestMismatches, isMended ? 2 : 4)
            try s.expect(.stored, isMended ? 1 : 0)
        }
    }

    @Test(arguments: ["ranges: pass", "object_size_max: 9KiB", "policy: no-write"])
    func `no whole is asked for that would not be stored`(_ setting: String) throws {
        let body = String(repeating: "0123456789", count: 1000)
        try scenario(cache: Self.rule.replacingOccurrences(of: "ttl: 60s", with: setting)) { s in
            let path = Self.path(of: body)
            for _ in 0..<2 {
                s.origin.expects("GET \(path)", "Range: bytes=0-99").replies(
                    206, "Cache-Control: max-age=60", "Content-Range: bytes 0-99/10000", body: String(body.prefix(100)))
            }
            let client = try s.client()
            for _ in 0..<2 { #expect(try client.get(path, "Range: bytes=0-99").status == 206) }
        }
    }

    /// The client may get a beginning of it, and never all of it.
    @Test(arguments: bodies.dropFirst(), [true, false])
    func `a body that is wrong is neither stored nor served as a whole`(
        _ body: String, hasLength: Bool
    ) throws {
        try scenario(cache: Self.rule) { s in
            let path = Self.path(of: body + "?")
            // The client has the head of a response without a length, and of a long one, before the body ends.
            let isTakenBack = body.utf8.count <= 4096 && hasLength
            let gate = Gate()
            if isTakenBack {
                s.origin.expects("GET \(path)").replies(200, body: body)
                // The origin is asked once more, past the caches on the way.
                s.origin.expects("GET \(path)", "Cache-Control: no-cache").replies(200, body: body)
            } else {
                let framing = hasLength ? "Content-Length: \(body.utf8.count)" : "Connection: close"
                let half = body.utf8.count / 2
                s.origin.expects("GET \(path)").sends("HTTP/1.1 200 OK\r\n\(framing)\r\n\r\n\(body.prefix(half))")
                    .waits(for: gate).sends(String(body.dropFirst(half))).closes()
            }
            let first = try s.client()
            try first.ask("GET", path)
            var seen = SeenMessage(head: try first.head())
            gate.open()
            try first.reader.body(of: &seen, untilClose: true, hasBody: true)
            #expect(isTakenBack ? seen.status == 502 : !seen.isWhole, "\(seen.status) \(seen.isWhole)")
            if seen.status == 200 { #expect(seen.body.count <= max(0, body.utf8.count - 4096)) }
            #expect(try s.stat(.store, "digest-mismatches") == (isTakenBack ? 2 : 1))
            // The origin has the right one now.
            s.origin.expects("GET \(path)", "!Range", "!If-None-Match", "Cache-Control: no-cache").replies(
                200, body: body + "?")
            let client = try s.client()
            #expect(try client.get(path).text == body + "?")
            #expect(try client.get(path).cacheStatus.hasPrefix("larder; hit"))
        }
    }

    /// The answer has a strong tag, so that what is missing could be asked for.
    @Test(arguments: [100_000, 3 << 20], [true, false])
    func `nobody who waits for a wrong body gets the whole of it, nor what is missing by itself`(
        _ length: Int, isWrong: Bool
    ) throws {
        try scenario(cache: "{ disk: { path: DIRECTORY/disk, size: 200MiB, sync: 100ms }, \(Self.rule) }") { s in
            let body = String(repeating: "x", count: length)
            let path = Self.path(of: isWrong ? body + "?" : body)
            let (begun, end) = (Gate("begun"), Gate("end"))
            s.origin.expects("GET \(path)", "!Range").sends(
                "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: \(length)\r\n\r\n\(body.prefix(length / 2))"
            ).opens(begun).waits(for: end).sends(String(body.dropFirst(length / 2)))
            let clients = try (0..<4).map { _ in try s.client() }
            try clients[0].ask("GET", path)
            try begun.wait()
            // Its head says that the response is being stored.
            let first = SeenMessage(head: try clients[0].head())
            // One that joins, one that wants the end, and one that wants all of it as a range.
            try clients[1].ask("GET", path)
            if !isWrong { try clients[2].ask("GET", path, ["Range: bytes=-10"]) }
            try clients[3].ask("GET", path, ["Range: bytes=0-"])
            try s.expect(.requests, isWrong ? 3 : 4)
            end.open()
            for (number, client) in clients.enumerated() where !isWrong || number != 2 {
                var message = number == 0 ? first : SeenMessage(head: try client.head())
                try client.reader.body(of: &message, untilClose: true, hasBody: true)
                let wanted = number == 2 ? 10 : length
                #expect(
                    (message.status < 300 && message.body.count == wanted) == !isWrong, "\(number): \(message.status)")
            }
        }
    }

    @Test func `a cache on the way has a forged copy: the client gets the right body, from behind it`() throws {
        try scenario(cache: Self.rule) { s in
            let path = Self.path(of: "right")
            s.origin.expects("GET \(path)", "Cache-Control: max-age=5").replies(200, "Age: 100", body: "wrong")
            s.origin.expects("GET \(path)", "Cache-Control: no-cache", "Pragma: no-cache").replies(200, body: "right")
            let client = try s.client()
            let seen = try client.get(path, "Cache-Control: max-age=5")
            #expect(seen.status == 200 && seen.text == "right")
            #expect(try client.get(path).cacheStatus.hasPrefix("larder; hit"))
        }
    }

    /// What is withheld goes out with the bytes that follow it. Here its client is lost between the two: it had one byte of what was withheld left.
    @Test func `a client that is lost while it gets what was withheld ends its own answer alone`() throws {
        let limit = LimitPlan([LimitRule(name: "small", RuleConditions(), LimitTerms(responseBody: 4097))])
        try scenario(cache: Self.rule, { configuration, _ in configuration.limitPlan = limit }) { s in
            let path = Self.path(of: "something else")
            let (more, half) = (Gate(), String(repeating: "x", count: 8192))
            s.origin.expects("GET \(path)").sends(
                "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nTransfer-Encoding: chunked\r\n\r\n4001\r\n\(half)"
            ).waits(for: more).sends(half)
            let client = try s.client()
            try client.ask("GET", path)
            var answer = SeenMessage(head: try client.head())
            try s.eventually("the client is sent what is not withheld") { s.count(.bytesToClients) > 4096 }
            more.open()
            try client.reader.body(of: &answer, untilClose: false, hasBody: true)
            #expect(!answer.isWhole && answer.body.count <= 4097)
            s.origin.expects("GET /b").replies(200, body: "b")
            #expect(try s.client().get("/b").text == "b")
        }
    }

    @Test func `what no redirect vouches for is not stored where the digest is to come from one`() throws {
        try scenario(cache: "rules: [ { ttl: 60s, digest: { from: redirect, algorithm: sha256 } } ]") { s in
            let client = try s.client()
            for _ in 0..<2 {
                s.origin.expects("GET /a").replies(200, body: "body")
                #expect(try client.get("/a").text == "body")
            }
        }
    }

    @Test func `a body whose rest comes from another answer is proven as a whole`() throws {
        try scenario(cache: Self.rule) { s in
            let body = String(repeating: "y", count: 50_000)
            let path = Self.path(of: body)
            s.origin.expects("GET \(path)").sends(
                "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 50000\r\n\r\n" + body.prefix(30_000)
            ).closes()
            s.origin.expects("GET \(path)", "Range: bytes=30000-").replies(
                206, "ETag: \"1\"", "Content-Range: bytes 30000-49999/50000",
                body: String(repeating: "z", count: 20_000))
            let seen = try s.client().get(path)
            #expect(!seen.isWhole)
            #expect(try s.stat(.store, "digest-mismatches") == 1)
        }
    }

    private static let plain = Array(String(repeating: "0123456789", count: 3000).utf8) + Array("end".utf8)

    /// What the path promises, and what comes.
    private static let codedBodies: [(what: String, promised: [UInt8], sent: [UInt8], isRight: Bool)] = [
        ("compressed on the way", plain, gzip(plain), true),
        ("a compressed file that the server marks", gzip(plain), gzip(plain), true),
        ("no gzip at all", plain, plain, true),
        ("another file", plain, gzip(plain.reversed()), false),
        ("without the end of the stream", plain, gzip(plain).dropLast(8), false),
        ("in two members", plain, gzip(Array(plain.prefix(9000))) + gzip(Array(plain.dropFirst(9000))), true),
        ("with bytes behind the stream", plain, gzip(plain) + Array("more".utf8), false),
        ("a bit flipped", plain, gzip(plain).enumerated().map { $0 == 30 ? $1 ^ 1 : $1 }, false),
    ]

    @Test(arguments: codedBodies.indices) func `a gzip is right if its bytes or the decoded ones have the digest`(
        _ row: Int
    ) throws {
        let (what, promised, sent, isRight) = Self.codedBodies[row]
        try scenario(cache: Self.rule) { s in
            let path = Self.path(of: promised)
            let client = try s.client()
            func replies() {
                s.origin.expects("GET \(path)").replies(200, ["Content-Encoding: gzip", "Content-Type: a/b"], sent)
            }
            replies()
            if isRight {
                #expect(try client.get(path, "Accept-Encoding: gzip").body == sent, "\(what)")
                let second = try client.get(path, "Accept-Encoding: gzip")
                #expect(second.cacheStatus.hasPrefix("larder; hit") && second.body == sent, "\(what)")
            } else {
                replies()
                #expect(try client.get(path, "Accept-Encoding: gzip").status == 502, "\(what)")
                #expect(try s.stat(.store, "digest-mismatches") == 2)
            }
        }
    }

    @Test(arguments: ["zstd", "x-own"], ["", "/a.tar.zst"])
    func `another coding hides the bytes, unless the address names a compressed file`(
        _ coding: String, _ name: String
    ) throws {
        let rule = Self.rule.replacingOccurrences(of: "{hex:64}", with: "{hex:64}\(name)")
        try scenario(cache: rule) { s in
            let client = try s.client()
            let path = Self.path(of: "file") + name
            for _ in 0..<(name.isEmpty ? 2 : 1) {
                s.origin.expects("GET \(path)").replies(200, "Content-Encoding: \(coding)", body: "file")
            }
            let first = try client.get(path)
            #expect(first.text == "file" && first.cacheStatus.contains("; stored") == !name.isEmpty, "\(first)")
            #expect(try client.get(path).cacheStatus.hasPrefix("larder; hit") == !name.isEmpty)
        }
    }

    @Test func `what a content coding hides is passed on, and who asks meanwhile asks alone`() throws {
        try scenario(cache: Self.rule) { s in
            let path = Self.path(of: "plain")
            let (begun, end) = (Gate("begun"), Gate("end"))
            s.origin.expects("GET \(path)").sends(
                "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 4\r\n\r\nco"
            ).opens(begun).waits(for: end).sends("de")
            let first = try s.client()
            try first.ask("GET", path)
            try begun.wait()
            s.origin.expects("GET \(path)").replies(200, "Content-Encoding: br", body: "code")
            #expect(try s.client().get(path).cacheStatus.contains("detail=unproven"))
            end.open()
            #expect(try first.response().text == "code")
        }
    }

    @Test func `without digits in the path there is nothing to prove`() throws {
        try scenario(cache: "rules: [ { ttl: 60s, digest: { from: X-Digest, algorithm: sha256 } } ]") { s in
            s.origin.expects("GET /a").replies(200, "X-Digest: none", body: "body")
            let client = try s.client()
            try client.get("/a")
            #expect(try client.get("/a").cacheStatus.hasPrefix("larder; hit"))
        }
    }
}
