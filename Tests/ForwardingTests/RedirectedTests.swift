import Forwarding
import Framing
import Message
import Testing

@Suite("RFC 9110 §15.4 What goes on behind a redirect")
struct RedirectedTests {
    private static func next(
        _ fields: [String], becomesGet: Bool = false, isOtherOrigin: Bool = false, ownField: String = "",
        method: String = "GET"
    ) throws -> [String] {
        let target = try #require(TargetURI("http://B:8080/x?y#z".utf8))
        let head = Redirected.request(
            after: try request("\(method) http://a/ HTTP/1.1", ["Host: a"] + fields), to: target,
            .init(becomesGet: becomesGet, isOtherOrigin: isOtherOrigin, ownField: Array(ownField.utf8)))
        #expect(text(head).hasSuffix("\r\n\r\n"))
        return text(head.dropLast(4)).split(separator: "\r\n", omittingEmptySubsequences: false).map(String.init)
    }

    @Test func `the target is in absolute-form, and Host names its authority`() throws {
        #expect(try Self.next([]) == ["GET http://b:8080/x?y HTTP/1.1", "Host: b:8080"])
        #expect(try Self.next([], method: "PROPFIND")[0] == "PROPFIND http://b:8080/x?y HTTP/1.1")
        #expect(try Self.next([], becomesGet: true, method: "POST")[0] == "GET http://b:8080/x?y HTTP/1.1")
        let head = Redirected.request(
            after: try request("HEAD http://a/ HTTP/1.0"), to: try #require(TargetURI("https://[::1]".utf8)),
            .init(becomesGet: false, isOtherOrigin: true))
        #expect(text(head) == "HEAD https://[::1]/ HTTP/1.0\r\nHost: [::1]\r\n\r\n")
    }

    static let rows: [(what: String, fields: [String], other: [String], same: [String])] = [
        (
            "for all", ["Accept: */*", "Referer: http://r/"], ["Accept: */*", "Referer: http://r/"],
            ["Accept: */*", "Referer: http://r/"]
        ),
        (
            "for the origin before", ["Authorization: Basic eDp5", "cookie: a=b", "X: 1", "Cookie: c=d"], ["X: 1"],
            ["Authorization: Basic eDp5", "cookie: a=b", "X: 1", "Cookie: c=d"]
        ),
        ("for the proxy", ["Proxy-Authorization: Basic eDp5", "Proxy-X: 1", "Proxy-Connection: close"], [], []),
        (
            "of the connection", ["Connection: x-hop, close", "X-Hop: 1", "TE: trailers", "Expect: 100-continue"], [],
            []
        ),
        (
            "for Larder", ["Larder-Policy: pass", "Cache-Control: no-cache"],
            ["Larder-Policy: pass", "Cache-Control: no-cache"], ["Larder-Policy: pass", "Cache-Control: no-cache"]
        ),
        (
            "about the final representation",
            ["Range: bytes=0-", "If-Range: \"a\"", "If-None-Match: \"a\"", "If-Match: \"a\""],
            ["Range: bytes=0-", "If-Range: \"a\"", "If-None-Match: \"a\"", "If-Match: \"a\""],
            ["Range: bytes=0-", "If-Range: \"a\"", "If-None-Match: \"a\"", "If-Match: \"a\""]
        ),
        ("about another one", ["If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT"], [], []),
        (
            "a placeholder", ["x-Api-key: placeholder", "X-Api-Key-2: 1"], ["X-Api-Key-2: 1"],
            ["x-Api-key: placeholder", "X-Api-Key-2: 1"]
        ),
    ]
    @Test(arguments: rows) func `what is meant for one origin stays there`(
        _ row: (what: String, fields: [String], other: [String], same: [String])
    ) throws {
        #expect(try Self.next(row.fields, ownField: "X-Api-Key").dropFirst(2) == row.same[...], "\(row.what)")
        #expect(
            try Self.next(row.fields, isOtherOrigin: true, ownField: "X-Api-Key").dropFirst(2) == row.other[...],
            "\(row.what)")
    }

    @Test func `a request that becomes a GET says nothing of the content, and has no conditions`() throws {
        let fields = [
            "Content-Type: text/plain", "Content-Encoding: gzip", "Content-Language: en", "content-location: /x",
            "Content-Digest: a", "Repr-Digest: a", "Digest: a", "Last-Modified: x", "If-Match: \"a\"",
            "Range: bytes=0-",
            "X-Content: 1", "Content-Length: 0",
        ]
        #expect(try Self.next(fields, becomesGet: true, method: "POST").dropFirst(2) == ["X-Content: 1"])
    }

    static let answers: [(field: String, expected: String?)] = [
        ("Location: c?d#e", "Location: http://b/a/c?d#e"), ("Location: http://x/", "Location: http://x/"),
        ("Location: /\u{e9}", "Location: http://b/%C3%A9"), ("Location: /a b", nil),
        ("Content-Location: ../x", "Content-Location: http://b/x"),
        ("X-Location: c", "X-Location: c"),
    ]
    @Test(arguments: answers) func `references in the answer are those of where it comes from`(
        _ row: (field: String, expected: String?)
    ) throws {
        let place = try #require(TargetURI("http://b/a/b".utf8))
        let received = try response("HTTP/1.1 302 Found It", row.field, "ETag: \"a\"", "Cache-Control: max-age=9")
        let changed = received.with(Redirected.fields(received.fields, from: place, count: 2, isOtherOrigin: true))
        var bytes: [UInt8] = []
        ForwardedHead.appendResponse(changed, to: &bytes)
        let lines = text(bytes).split(separator: "\r\n").map(String.init)
        #expect(lines[0] == "HTTP/1.1 302 Found It")
        let added = ["Cache-Control: no-cache", "Proxy-Status: larder; details=\"redirects followed: 2\""]
        let kept = ["ETag: \"a\"", "Cache-Control: max-age=9"]
        if row.field.hasPrefix("X-") {
            #expect(lines.dropFirst() == ([row.field] + kept + added)[...])
        } else {
            #expect(lines.dropFirst() == (kept + (row.expected.map { [$0] } ?? []) + added)[...])
        }
    }

    @Test func `another origin sets neither cookies nor policies for the one that was asked`() throws {
        let place = try #require(TargetURI("http://b/".utf8))
        let own = [
            "Set-Cookie: a=b", "strict-transport-security: max-age=9", "Clear-Site-Data: \"*\"", "Alt-Svc: h3=\":443\"",
        ]
        let received = try response("HTTP/1.1 200 OK", own[0], own[1], own[2], own[3], "ETag: \"a\"")
        for isOther in [true, false] {
            let fields = Redirected.fields(received.fields, from: place, count: 1, isOtherOrigin: isOther)
            let lines = fields.lines.map { "\(text(fields.name(of: $0))): \(text(fields.value(of: $0)))" }
            #expect(lines.dropLast(2) == ((isOther ? [] : own) + ["ETag: \"a\""])[...])
        }
    }

    /// Whatever an origin writes into Location, and a client into its fields: the next request is one request, to where Location leads.
    @Test func `what an origin and a client write makes one request`() throws {
        let pieces = [
            "http://", "https://", "//", "/", "b", "..", ".", ":81", "@", "?", "#", "%0d%0a", "\\", "[::1]", ";", "&",
            "http:", "\u{e9}", " ", "\t", "Host:", "HTTP/1.1", "-", "*",
        ]
        var random = Numbers(seed: 1)
        let base = try #require(TargetURI("http://a.example/b/c?d".utf8))
        let received = try request(
            "GET http://a.example/b/c?d HTTP/1.1", "Host: a.example", "X: 1 HTTP/1.1", "Content-Length: 0",
            "Connection: x-y", "X-Y: 2", "Transfer: chunked", "Expect: 100-continue", "Via: 1.1 b")
        var followed = 0
        for _ in 0..<20_000 {
            let location = (0..<(1 + random.below(6))).map { _ in pieces[random.below(pieces.count)] }.joined()
            guard let target = base.resolving(Array(location.utf8)) else { continue }
            let changes = Redirected.Changes(
                becomesGet: random.below(2) == 0, isOtherOrigin: !target.isSameOrigin(as: base))
            let bytes = Redirected.request(after: received, to: target, changes)
            var head = RequestHead()
            var progress = HeadProgress()
            do throws(FramingError) {
                let isWhole = try parseRequestHead(bytes.span, into: &head, progress: &progress, limits: Limits())
                #expect(isWhole && head.byteCount == bytes.count, "\(location)")
            } catch { continue }
            followed += 1
            var uri: [UInt8] = []
            appendNormalisedURI(head.target, of: bytes.span, to: &uri)
            #expect(uri == target.normalised && head.target.form == .absolute, "\(location)")
            let fields = Fields(bytes: bytes, section: head.fields)
            #expect(fields.all(.host).count == 1 && !fields.contains(.contentLength), "\(location)")
            #expect(fields.lines.count == 4, "\(location): \(text(bytes))")
        }
        #expect(followed > 1000)
    }
}

/// The same numbers in each run.
private struct Numbers {
    private var state: UInt64
    init(seed: UInt64) { state = seed }

    mutating func below(_ bound: Int) -> Int {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int((state >> 33) % UInt64(bound))
    }
}
