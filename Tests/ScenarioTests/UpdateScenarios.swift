import Foundation
import Passwords
import Origins
import Rules
import Server
import Settings
import Testing

/// Bytes and fields join what is stored only if the request and the answer that brought them let them be stored.
@Suite("RFC 9111 §3.3, §4.3.4: what an answer adds to a stored response may be stored itself")
struct UpdateScenarios {
    private static let shared = ["Cache-Control: public, max-age=60", "ETag: \"a\"", "Content-Type: text/plain"]
    private static let authorization = "Authorization: Basic YTpi"

    /// What the 206 says for the missing bytes, and whether others get them from the store.
    static let holes: [(control: String?, isShared: Bool)] = [
        ("public, max-age=60", true), (nil, true), ("no-store", false), ("private, max-age=60", false),
        ("max-age=60", false),
    ]

    private static func fields(_ control: String?, _ range: String) -> [String] {
        (control.map { ["Cache-Control: \($0)"] } ?? []) + [
            "ETag: \"a\"", "Content-Type: text/plain", "Content-Range: bytes \(range)/10",
        ]
    }

    @Test(arguments: holes) func `bytes for a hole are stored if their own answer allows it`(
        _ row: (control: String?, isShared: Bool)
    ) throws {
        try scenario { s in
            s.origin.expects("GET /a", "Range: bytes=0-4").replies(
                206, Self.fields("public, max-age=60", "0-4"), Array("01234".utf8))
            s.origin.expects("GET /a", "Range: bytes=5-9", "Authorization", "If-Range").replies(
                206, Self.fields(row.control, "5-9"), Array("56789".utf8))
            if !row.isShared {
                // Asked again, for this client alone.
                s.origin.expects("GET /a", "Range: bytes=5-9", "Authorization", "!If-Range").replies(
                    206, Self.fields(row.control, "5-9"), Array("56789".utf8))
                s.origin.expects("GET /a", "!Authorization").replies(
                    206, Self.fields("no-store", "5-9"), Array("56789".utf8))
            }
            let client = try s.client()
            #expect(try client.get("/a", "Range: bytes=0-4").text == "01234")
            #expect(try client.get("/a", Self.authorization, "Range: bytes=5-9").text == "56789")
            let other = try client.get("/a", "Range: bytes=5-9")
            #expect(other.text == "56789" && other.cacheStatus.contains("hit") == row.isShared, "\(other)")
        }
    }

    @Test(arguments: ["no-store", "private"]) func `the rest of a body that broke off is not stored against its answer`(
        _ control: String
    ) throws {
        try scenario { s in
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 200 OK\r\n\(Self.shared.joined(separator: "\r\n"))\r\nContent-Length: 10\r\n\r\n01234"
            ).closes()
            s.origin.expects("GET /a", "Range: bytes=5-").replies(206, Self.fields(control, "5-9"), Array("56789".utf8))
            s.origin.expects("GET /a", "!Range").replies(200, "Cache-Control: no-store", body: "0123456789")
            _ = try? s.client().get("/a")
            let other = try s.client().get("/a")
            #expect(other.text == "0123456789" && !other.cacheStatus.contains("hit"), "\(other)")
        }
    }

    @Test func `an answer to a request with no-store changes nothing that is stored`() throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(
                200, ["Cache-Control: max-age=0", "ETag: \"a\"", "X-Answer: one"], Array("body".utf8))
            s.origin.expects("GET /a", "If-None-Match: \"a\"").replies(
                304, "Cache-Control: max-age=60", "ETag: \"a\"", "X-Answer: of alice")
            s.origin.expects("GET /a", "If-None-Match: \"a\"").replies(
                304, "Cache-Control: max-age=60", "ETag: \"a\"", "X-Answer: of bob")
            let client = try s.client()
            try client.get("/a")
            let seen = try client.get("/a", "Cache-Control: no-store")
            #expect(seen["X-Answer"] == "of alice")
            #expect(
                !seen.cacheStatus.contains("stored") && seen.cacheStatus.contains("detail=request-no-store"), "\(seen)")
            let other = try client.get("/a")
            #expect(other["X-Answer"] == "of bob" && other.text == "body", "\(other)")
        }
    }

    @Test func `a 304 that withdraws the permission to store says why the response is not stored`() throws {
        try scenario { s in
            s.origin.expects("GET /a", "Authorization").replies(
                200, ["Cache-Control: public, max-age=0", "ETag: \"a\""], Array("body".utf8))
            s.origin.expects("GET /a", "Authorization", "If-None-Match: \"a\"").replies(
                304, "Cache-Control: max-age=60", "ETag: \"a\"")
            let client = try s.client()
            #expect(try client.get("/a", Self.authorization).cacheStatus.contains("; stored"))
            let seen = try client.get("/a", Self.authorization)
            #expect(seen.text == "body" && seen.cacheStatus.hasPrefix("larder; fwd=stale; fwd-status=304"), "\(seen)")
            #expect(
                !seen.cacheStatus.contains("stored") && seen.cacheStatus.contains("detail=authorization"), "\(seen)")
            s.origin.expects("GET /a", "!If-None-Match").replies(200, body: "another")
            #expect(try client.get("/a", Self.authorization).text == "another")
        }
    }

    @Test func `a request with no-store fills no hole`() throws {
        try scenario { s in
            s.origin.expects("GET /a", "Range: bytes=0-4").replies(
                206, Self.fields("public, max-age=60", "0-4"), Array("01234".utf8))
            s.origin.expects("GET /a", "!Range").replies(200, Self.shared, Array("0123456789".utf8))
            s.origin.expects("GET /a", "Range: bytes=5-9").replies(
                206, Self.fields("public, max-age=60", "5-9"), Array("56789".utf8))
            let client = try s.client()
            try client.get("/a", "Range: bytes=0-4")
            #expect(try client.get("/a", "Cache-Control: no-store").text == "0123456789")
            #expect(try client.get("/a", "Range: bytes=5-9").text == "56789")
        }
    }

    @Test func `no validator of a variant goes out with credentials that it is not for`() throws {
        try scenario { s in
            s.origin.expects("GET /a", "X-L: en").replies(
                200, ["Cache-Control: max-age=60", "ETag: \"en\"", "Vary: X-L"], Array("en".utf8))
            s.origin.expects("GET /a", "X-L: de", "Authorization", "!If-None-Match").replies(
                200, ["Cache-Control: max-age=60", "ETag: \"en\"", "Vary: X-L"], Array("of alice".utf8))
            s.origin.expects("GET /a", "X-L: de", "!Authorization", "If-None-Match: \"en\"").replies(
                304, "ETag: \"en\"", "Vary: X-L")
            let client = try s.client()
            try client.get("/a", "X-L: en")
            #expect(try client.get("/a", "X-L: de", Self.authorization).text == "of alice")
            #expect(try client.get("/a", "X-L: de").text == "en")
        }
    }

    /// What the 304 says beside its cookie, and whether the cookie is for all.
    static let cookies: [(line: String, isForAll: Bool)] = [
        ("X-Else: none", false), ("Cache-Control: public, max-age=60", true),
    ]
    @Test(arguments: cookies) func `a cookie of a 304 is for all if the 304 itself says so`(
        _ row: (line: String, isForAll: Bool)
    ) throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(
                200, ["Cache-Control: public, max-age=0", "ETag: \"a\""], Array("body".utf8))
            s.origin.expects("GET /a", "If-None-Match").replies(304, "ETag: \"a\"", row.line, "Set-Cookie: s=alice")
            if row.line.hasPrefix("X-") { s.origin.expects("GET /a", "If-None-Match").replies(304, "ETag: \"a\"") }
            let client = try s.client()
            try client.get("/a")
            #expect(try client.get("/a")["Set-Cookie"] == "s=alice")
            #expect(try client.get("/a")["Set-Cookie"] == (row.isForAll ? "s=alice" : nil))
        }
    }

    @Test func `a time limit for some clients does not fail those who wait with them`() throws {
        try scenario({ configuration, files in
            let users = try files.write(
                "users", "alice:\(try hash(password: Array("a".utf8)))\nbob:\(try hash(password: Array("b".utf8)))\n")
            configuration.access.authentication.basic.usersFile = users
            var (conditions, limits) = (RuleConditions(), OriginRule.Timeouts())
            conditions.users = ["alice"]
            limits.firstByte = .milliseconds(300)
            configuration.origins = [OriginRule(conditions, timeouts: limits, number: 1)]
        }) { s in
            let (asked, end) = (Gate("asked"), Gate("end"))
            s.origin.expects("GET /a", "X-Who: alice").opens(asked).waits(for: end).replies(200, body: "late")
            s.origin.expects("GET /a", "X-Who: bob").replies(200, body: "of bob")
            let (alice, bob) = (try s.client(), try s.client())
            try alice.ask("GET", "/a", ["X-Who: alice", "Proxy-Authorization: Basic YWxpY2U6YQ=="])
            try asked.wait()
            try bob.ask("GET", "/a", ["X-Who: bob", "Proxy-Authorization: Basic Ym9iOmI="])
            #expect(try alice.response().status == 504)
            #expect(try bob.response().text == "of bob")
            end.open()
        }
    }
}
