import Compression
import Foundation
import Server
import Testing

@Suite("Indexes without releases that are too young")
struct ReleaseIndexScenarios {
    static func rule(_ age: String = "3d", kind: String = "npm-index", more: String = "") -> String {
        "rules: [ { match: { path: \"/{package}\" }, ttl: 1h, release: \(kind), min_age: { age: \(age)\(more) } } ]"
    }

    /// A time of RFC 3339, so many seconds from now.
    static func time(_ seconds: TimeInterval) -> String {
        ISO8601DateFormatter().string(from: Date(timeIntervalSinceNow: seconds))
    }

    /// When the young version was released: the same in all indexes, however long a test takes.
    private static let releaseTime = time(-3600)

    /// - Parameter padding: how many bytes of text it has in addition.
    private static func index(young: Bool = true, padding: Int = 0) -> String {
        let versions = #""1.0.0": { "x": 1.50 }\#(young ? #", "2.0.0": {}"# : "")"#
        let times = #""1.0.0": "2020-01-01T00:00:00.000Z"\#(young ? #", "2.0.0": "\#(releaseTime)""# : "")"#
        return
            #"{ "dist-tags": { "latest": "\#(young ? 2 : 1).0.0" }, "versions": { \#(versions) }, "time": { \#(times) }, "#
            + #""readme": "\#(String(repeating: "r", count: padding))" }"#
    }

    private static let fields = [
        "Content-Type: application/json", "ETag: \"origin\"", "Last-Modified: Mon, 01 Jun 2026 00:00:00 GMT",
        "Vary: Accept-Encoding, Accept",
    ]
    private static let accept = "Accept: application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*"

    /// The text without what npm is told of the versions that were removed.
    private static func withoutRestrictions(_ text: String) -> String {
        guard let start = text.range(of: ",\"policyRestrictions\":"),
            let end = text.range(of: "}}}", range: start.upperBound..<text.endIndex)
        else { return text }
        return String(text[..<start.lowerBound] + text[end.upperBound...])
    }

    private static func expectFiltered(_ answer: SeenMessage, padding: Int = 0) {
        #expect(answer.status == 200 && answer.isWhole, "\(answer)")
        #expect(withoutRestrictions(answer.text) == index(young: false, padding: padding))
        #expect(answer.text.contains("p 2.0.0 was published ") || answer.text.contains("q 2.0.0 was published "))
        #expect(answer["ETag"]?.hasPrefix("\"larder-") == true, "\(answer)")
        #expect(answer["Last-Modified"] == nil && answer["Content-Encoding"] == nil)
    }

    enum Framing: String, CaseIterable, Sendable { case length, chunked, gzip, slow }

    /// How it comes, how long it is, and whether there is a disk.
    static let ways = Framing.allCases.flatMap { framing in
        [0, 2 << 20].flatMap { padding in [false, true].map { (framing: framing, padding: padding, isDisk: $0) } }
    }

    @Test(arguments: ways) func `what is too young is gone, however the index comes`(
        _ way: (framing: Framing, padding: Int, isDisk: Bool)
    ) throws {
        let (framing, padding) = (way.framing, way.padding)
        let disk = way.isDisk ? "disk: { path: DIRECTORY/disk, size: 64MiB }\n" : ""
        try scenario(cache: disk + Self.rule(), { configuration, _ in configuration.cache.memory = 64 << 20 }) { s in
            let body = Array(Self.index(padding: padding).utf8)
            let asked = s.origin.expects(
                "GET /p", "Accept: application/json", "!Range", "!If-None-Match", "!If-Modified-Since")
            switch framing {
            case .length: asked.replies(200, Self.fields, body)
            case .gzip: asked.replies(200, Self.fields + ["Content-Encoding: gzip"], gzip(body))
            case .chunked:
                let size = String(body.count, radix: 16)
                asked.replies(
                    200, Self.fields + ["Transfer-Encoding: chunked"],
                    Array("\(size)\r\n".utf8) + body + Array("\r\n0\r\n\r\n".utf8))
            case .slow:
                let head = (["HTTP/1.1 200 OK"] + Self.fields + ["Content-Length: \(body.count)"]).joined(
                    separator: "\r\n")
                asked.sends(head + "\r\n\r\n").sends(Array(body.prefix(100))).sends(Array(body.dropFirst(100)))
            }
            let client = try s.client()
            let own = ["Accept-Encoding: gzip, deflate, br", Self.accept]
            let part = try client.get("/p", own[0], own[1], "If-None-Match: \"origin\"", "Range: bytes=0-10")
            #expect(part.status == 206 && part.text == String(Self.index(young: false).prefix(11)), "\(part)")
            let second = try client.get("/p", own[0], own[1])
            Self.expectFiltered(second, padding: padding)
            #expect(second.cacheStatus.hasPrefix("larder; hit"), "\(second.head)")
            let tag = try #require(second["ETag"])
            let confirmed = try client.get("/p", own[0], own[1], "If-None-Match: \(tag)")
            #expect(confirmed.status == 304 && confirmed["ETag"] == tag, "\(confirmed)")
            #expect(try client.get("/p", own[0], own[1], "If-None-Match: \"origin\"").status == 200)
            #expect(s.count(.releasesRemoved) >= 3)
        }
    }

    /// Spellings of /simple/p that some origin takes for it.
    static let spellings = [
        "//simple/p", "/simple//p", "/simple/%70", "/simple/./p", "/a/../simple/p",
        "/a/%2e%2e/simple/p",
        "/simple;a/p", "/simple%2fp", "/simple%5cp", "/%73imple/p",
    ]
    @Test(arguments: spellings) func `what is too young is gone, however the path is spelled`(_ path: String) throws {
        let simple = Self.rule().replacing("/{package}", with: "/simple/{package}")
        try scenario(cache: simple) { s in
            s.origin.expects("GET \(path)").replies(200, Self.fields, Array(Self.index().utf8))
            Self.expectFiltered(try s.client().get(path))
        }
    }

    static let unclear = [
        "/simple/p;v=1", "/simple/q%00p", "/simple/%2570",
        "/simple/" + String(repeating: "%70", count: 2000),
    ]
    @Test(arguments: unclear) func `a path that may mean one package or another is refused before the origin is asked`(
        _ path: String
    ) throws {
        let simple = Self.rule().replacing("/{package}", with: "/simple/{package}")
        try scenario(cache: simple) { s in
            let answer = try s.client().get(path)
            #expect(answer.status == 403 && answer.cacheStatus.contains("detail=release-undated"), "\(answer)")
            #expect(answer.text.contains("can be read in several ways"), "\(answer)")
        }
    }

    @Test func `an index from which nothing is removed is that of the origin`() throws {
        try scenario(cache: Self.rule()) { s in
            let body = Self.index(young: false) + "\n"
            s.origin.expects("GET /p").replies(200, Self.fields, Array(body.utf8))
            let client = try s.client()
            for _ in 0..<2 {
                let answer = try client.get("/p")
                #expect(answer.text == body && answer["ETag"] == "\"origin\"" && answer["Last-Modified"] != nil)
            }
            #expect(try client.get("/p", "If-None-Match: \"origin\"").status == 304)
        }
    }

    @Test func `a release comes back when it opens, and no client keeps the index without it`() throws {
        try scenario(cache: Self.rule()) { s in
            s.origin.expects("GET /p").replies(200, Self.fields, Array(Self.index().utf8))
            let client = try s.client()
            let before = try client.get("/p")
            Self.expectFiltered(before)
            try s.adopt(cache: Self.rule("30m"))
            let after = try client.get("/p", "If-None-Match: \(before["ETag"] ?? "")")
            #expect(after.status == 200 && after.text == Self.index() && after["ETag"] == "\"origin\"", "\(after)")
            // And it goes again with another rule, whatever tag the client has.
            try s.adopt(cache: Self.rule())
            Self.expectFiltered(try client.get("/p", "If-None-Match: \"origin\""))
        }
    }

    @Test func `a stored index is validated with the origin's tag, and answered with the own one`() throws {
        try scenario(cache: Self.rule().replacing("ttl: 1h", with: "policy: revalidate-always")) { s in
            s.origin.expects("GET /p").replies(200, Self.fields, Array(Self.index().utf8))
            s.origin.expects("GET /p", "If-None-Match: \"origin\"").replies(304, "ETag: \"origin\"")
            s.origin.expects("GET /p", "If-None-Match: \"origin\"").replies(304, "ETag: \"origin\"")
            let client = try s.client()
            let tag = try #require(try client.get("/p")["ETag"])
            Self.expectFiltered(try client.get("/p"))
            #expect(try client.get("/p", "If-None-Match: \(tag)").status == 304)
        }
    }

    @Test func `clients that wait for one fetch all get the index without it`() throws {
        try scenario(cache: Self.rule()) { s in
            let (asked, go) = (Gate("the origin was asked"), Gate("the origin answers"))
            s.origin.expects("GET /p").opens(asked).waits(for: go).replies(200, Self.fields, Array(Self.index().utf8))
            let clients = try (0..<3).map { _ in try s.client() }
            try clients[0].ask("GET", "/p")
            try asked.wait()
            for client in clients.dropFirst() { try client.ask("GET", "/p") }
            try s.eventually("the others wait") { s.count(.requests) == 3 }
            go.open()
            for client in clients { Self.expectFiltered(try client.response()) }
        }
    }

    @Test func `an index that breaks off is an error, and a client that leaves harms nobody`() throws {
        try scenario(cache: Self.rule()) { s in
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n"
            s.origin.expects("GET /p").sends(head + Self.index()).closes()
            #expect(try s.client().get("/p").status == 502)
            let go = Gate("the body goes on")
            let body = Self.index(padding: 4000)
            s.origin.expects("GET /q").sends(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n{"
            ).waits(for: go).sends(String(body.dropFirst()))
            do {
                let leaving = try s.client()
                try leaving.ask("GET", "/q")
                // Before the head has come, a fetch that nobody waits for is given up.
                try s.eventually("the body has begun") { s.proxy.transfers().contains { $0.received > 0 } }
                leaving.wire.reset()
            }
            go.open()
            try s.eventually("it is stored") { s.count(.stored) == 1 }
            Self.expectFiltered(try s.client().get("/q"), padding: 4000)
        }
    }

    /// The type and text of an index that cannot be filtered, and the status for a client where what has no date is refused.
    static let unread: [(type: String, text: String, refused: Int)] = [
        ("application/json", "{", 403), ("application/json; charset=utf-8", "{\"versions\":{},\"versions\":{}}", 403),
        ("application/vnd.npm.install-v1+json", "[]", 403), ("text/html", "<html>", 200),
    ]
    @Test(arguments: unread, [false, true]) func `an index that cannot be read passes or not, as what has no date`(
        _ row: (type: String, text: String, refused: Int), isRefused: Bool
    ) throws {
        try scenario(cache: Self.rule(more: isRefused ? ", undated: refuse" : "")) { s in
            s.origin.expects("GET /p").replies(200, "Content-Type: \(row.type)", body: row.text)
            let answer = try s.client().get("/p")
            #expect(answer.status == (isRefused ? row.refused : 200), "\(answer)")
            if answer.status == 200 { #expect(answer.text == row.text) }
        }
    }

    @Test func `an index that may not be stored passes, or is refused with what has no date`() throws {
        try scenario(cache: Self.rule()) { s in
            for _ in 0..<2 {
                s.origin.expects("GET /p").replies(
                    200, Self.fields + ["Cache-Control: no-store"], Array(Self.index().utf8))
            }
            #expect(try s.client().get("/p").text == Self.index())
            try s.adopt(cache: Self.rule(more: ", undated: refuse"))
            #expect(try s.client().get("/p").status == 403)
        }
    }

    @Test func `a rule that only reports changes nothing`() throws {
        try scenario(cache: Self.rule(more: ", report_only: yes")) { s in
            s.origin.expects("GET /p").replies(200, Self.fields, Array(Self.index().utf8))
            let answer = try s.client().get("/p")
            #expect(answer.text == Self.index() && answer["ETag"] == "\"origin\"")
            #expect(s.count(.releasesReported) == 1)
        }
    }

    static let below = rule(kind: "npm-document").replacing(
        "\"/{package}\"", with: "[ \"*/@{scope}/{package}\", \"*/{package}\" ]")

    @Test(arguments: [
        "/p", "/repository/npm-group/p", "/artifactory/api/npm/npm/p", "/x/@acme/p", "/x/@acme%2fp", "/x//p",
        "/x/./p", "/x;v=1/p", "/x/p;v=1",
    ]) func `a document below a path is filtered if it has the form of an index`(_ path: String) throws {
        try scenario(cache: Self.below) { s in
            s.origin.expects("GET \(path)", "Accept: application/json").replies(
                200, Self.fields, Array(Self.index().utf8))
            let answer = try s.client().get(path, Self.accept)
            #expect(
                answer.status == 200 && Self.withoutRestrictions(answer.text) == Self.index(young: false), "\(answer)")
        }
    }

    @Test(arguments: ["application/json", "text/html", "application/octet-stream"], ["", ", undated: refuse"])
    func `and nothing else is touched, stored or not`(type: String, more: String) throws {
        let below = Self.below.replacing("age: 3d", with: "age: 3d\(more)")
        try scenario(cache: below) { s in
            let texts = [#"{"versions":["2.0.0"],"time":{"2.0.0":"\#(Self.time(-3600))"}}"#, "[]", "{", "x"]
            for (number, text) in texts.enumerated() {
                for control in ["max-age=60", "no-store"] {
                    let path = "/x/\(number)/\(control)"
                    s.origin.expects("GET \(path)").replies(
                        200, "Content-Type: \(type)", "ETag: \"o\"", "Cache-Control: \(control)", body: text)
                    let answer = try s.client().get(path)
                    #expect(answer.status == 200 && answer.text == text && answer["ETag"] == "\"o\"", "\(answer)")
                }
            }
            #expect(s.count(.releasesRemoved) == 0)
        }
    }

    @Test func `a Python index loses files, and keeps everything else`() throws {
        try scenario(cache: Self.rule(kind: "python-index")) { s in
            let old = #"{ "filename": "p-1.0.zip", "upload-time": "2020-01-01T00:00:00Z" }"#
            let young = #"{ "filename": "p-2.0.zip", "upload-time": "\#(Self.time(-60))" }"#
            s.origin.expects("GET /p").replies(
                200, "Content-Type: application/vnd.pypi.simple.v1+json",
                body: "{ \"files\": [ \(old), \(young) ], \"versions\": [\"1.0\",\"2.0\"] }")
            let client = try s.client()
            let answer = try client.get("/p")
            #expect(answer.text == "{ \"files\": [ \(old) ], \"versions\": [\"1.0\"] }")
            #expect(answer["Content-Type"] == "application/vnd.pypi.simple.v1+json")
            let part = try client.get("/p", "Range: bytes=0-9")
            #expect(part.status == 206 && part.text == String(answer.text.prefix(10)))
            let head = try client.request("HEAD", "/p")
            #expect(head.status == 200 && head["ETag"] == answer["ETag"] && head.body.isEmpty)
            #expect(head["Content-Length"] == "\(answer.body.count)")
        }
    }
}
