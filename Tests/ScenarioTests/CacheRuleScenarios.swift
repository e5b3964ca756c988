import Foundation
import Passwords
import Server
import Settings
import Testing

@Suite("Rules of the cache")
struct CacheRuleScenarios {
    /// A rule, the answer of the origin, and whether the second request is answered from the store.
    static let rows: [(rule: String, status: Int, fields: [String], isHit: Bool)] = [
        ("ttl: 60s", 200, [], true), ("ttl: 0", 200, ["Cache-Control: max-age=60"], false),
        ("ttl: 60s", 200, ["Cache-Control: max-age=0"], true),
        ("ttl: 60s", 200, ["Cache-Control: max-age=10", "Age: 30"], true),
        ("ttl: 60s", 200, ["Cache-Control: no-store"], false), ("ttl: 60s", 200, ["Cache-Control: private"], false),
        ("ttl: 60s", 200, ["Expires: 0"], true), ("ttl: 60s", 200, ["Vary: *"], false),
        ("respect_cache_control: no", 200, ["Cache-Control: no-store, max-age=60"], true),
        ("respect_cache_control: no, ttl: 60s", 200, ["Cache-Control: no-store"], true),
        ("respect_cache_control: no, ttl: 60s", 200, ["Cache-Control: private, no-cache"], true),
        ("respect_cache_control: no, ttl: 60s", 200, ["Cache-Control: no-store", "Vary: *"], false),
        ("respect_cache_control: no, ttl: 60s", 200, ["Cache-Control: private", "Set-Cookie: a=b"], false),
        (
            "respect_cache_control: no, ttl: 60s, store_cookies: yes", 200,
            ["Cache-Control: private", "Set-Cookie: a=b"], true
        ),
        ("negative_ttl: 60s", 404, [], true), ("negative_ttl: 60s", 410, [], true),
        ("negative_ttl: 60s", 200, [], false),
        ("negative_ttl: 60s", 404, ["Cache-Control: no-store"], false),
        ("negative_ttl: 60s", 404, ["Cache-Control: max-age=0"], false),
        ("negative_ttl: 60s", 403, [], false), ("negative_ttl: 0", 404, [], false),
        ("store_cookies: yes", 200, ["Cache-Control: max-age=60", "Set-Cookie: a=b"], true),
        ("store_cookies: yes", 200, ["Set-Cookie: a=b"], false),
        ("store_cookies: no", 200, ["Cache-Control: max-age=60", "Set-Cookie: a=b"], false),
        ("store_cookies: no", 200, ["Cache-Control: public, max-age=60", "Set-Cookie: a=b"], true),
        ("object_size_max: 4", 200, ["Cache-Control: max-age=60"], true),
        ("object_size_max: 3", 200, ["Cache-Control: max-age=60"], false),
    ]

    @Test(arguments: rows) func `the first rule that matches decides how a response is stored`(
        _ row: (rule: String, status: Int, fields: [String], isHit: Bool)
    ) throws {
        try scenario(cache: "rules: [ { match: { path: /a }, \(row.rule) } ]") { s in
            for _ in 0..<(row.isHit ? 1 : 2) {
                s.origin.expects("GET /a").replies(row.status, row.fields, Array("body".utf8))
            }
            let client = try s.client()
            try client.get("/a")
            let second = try client.get("/a")
            #expect(second.cacheStatus.hasPrefix("larder; hit") == row.isHit, "\(second)")
            #expect(second.status == row.status)
            #expect(second.text == "body")
            #expect(second["Set-Cookie"] == (row.fields.contains("Set-Cookie: a=b") ? "a=b" : nil))
        }
    }

    @Test(arguments: ["{ path: /a }", "{ type: text/plain }"], ["Transfer-Encoding: chunked", "Connection: close"])
    func `a body that grows beyond object_size_max reaches its client completely and is not kept`(
        _ match: String, _ framing: String
    ) throws {
        try scenario(cache: "rules: [ { match: \(match), object_size_max: 20KiB } ]") { s in
            let body = String(repeating: "x", count: 30_000)
            let isChunked = framing.contains("chunked")
            for _ in 0..<2 {
                s.origin.expects("GET /a").sends(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCache-Control: max-age=60\r\n\(framing)\r\n\r\n"
                        + (isChunked ? "7530\r\n\(body)\r\n0\r\n\r\n" : body)
                ).closes()
            }
            let client = try s.client()
            for _ in 0..<2 {
                let answer = try client.get("/a")
                #expect(answer.text == body)
                #expect(answer.isWhole)
            }
        }
    }

    @Test func `a rule by type bounds the size of stored bodies of that type`() throws {
        try scenario(cache: "rules: [ { match: { type: text/plain }, object_size_max: 3 } ]") { s in
            for _ in 0..<2 {
                s.origin.expects("GET /a").replies(
                    200, "Content-Type: text/plain", "Cache-Control: max-age=60", body: "body")
            }
            let client = try s.client()
            for _ in 0..<2 { #expect(try client.get("/a").text == "body") }
        }
    }

    @Test func `a rule may store larger bodies than its zone`() throws {
        try scenario(
            cache: """
                zones: [ { name: z, memory: 8MiB } ]
                rules: [ { match: { path: /a }, zone: z, object_size_max: 4MiB } ]
                """
        ) { s in
            let body = [UInt8](repeating: 0x78, count: 2 << 20)
            s.origin.expects("GET /a").replies(200, ["Cache-Control: max-age=60"], body)
            let client = try s.client()
            for _ in 0..<2 { #expect(try client.get("/a").body == body) }
        }
    }

    /// Conditions, and whether they hold for a GET of /pool/a by 127.0.0.1.
    static let conditions: [(match: String, holds: Bool)] = [
        ("{ host: 127.0.0.1 }", true), ("{ host: example.org }", false), ("{ port: ORIGIN }", true),
        ("{ port: 1 }", false),
        ("{ path: \"/pool/*\" }", true), ("{ path: /pool }", false), ("{ method: GET }", true),
        ("{ method: HEAD }", false),
        ("{ method: [ HEAD, GET ] }", true), ("{ client: 127.0.0.0/8 }", true), ("{ client: 10.0.0.0/8 }", false),
        ("{ type: \"text/*\" }", true), ("{ type: text/css }", false), ("{ host: 127.0.0.1, path: /pool }", false),
    ]

    @Test(arguments: conditions) func `all conditions must hold`(_ row: (match: String, holds: Bool)) throws {
        try scenario(cache: "rules: [ { match: \(row.match), ttl: 60s } ]") { s in
            for _ in 0..<(row.holds ? 1 : 2) {
                s.origin.expects("GET /pool/a").replies(200, "Content-Type: text/plain", body: "body")
            }
            let client = try s.client()
            try client.get("/pool/a")
            #expect(try client.get("/pool/a").cacheStatus.hasPrefix("larder; hit") == row.holds)
        }
    }

    @Test func `a response stored by a rule for one user is judged by the rules of the user who asks`() throws {
        try scenario({ configuration, files in
            let users = try files.write(
                "users", "alice:\(try hash(password: Array("a".utf8)))\nbob:\(try hash(password: Array("b".utf8)))\n")
            configuration.access.authentication.basic.usersFile = users
            try configuration.read(cache: "rules: [ { match: { user: alice }, ttl: 60s } ]", files)
        }) { s in
            for _ in 0..<3 { s.origin.expects("GET /a", "!Proxy-Authorization").replies(200, body: "body") }
            let client = try s.client()
            let (alice, bob) = ("Proxy-Authorization: Basic YWxpY2U6YQ==", "Proxy-Authorization: Basic Ym9iOmI=")
            #expect(try !client.get("/a", bob).cacheStatus.contains("stored"))
            #expect(try client.get("/a", alice).cacheStatus.contains("stored"))
            #expect(try client.get("/a", alice).cacheStatus.hasPrefix("larder; hit"))
            let forBob = try client.get("/a", bob)
            #expect(!forBob.cacheStatus.hasPrefix("larder; hit") && forBob.text == "body")
            #expect(try client.get("/a", alice).cacheStatus.hasPrefix("larder; hit"))
        }
    }

    /// A rule for one user, the answer to her request, and whether it is for others too.
    static let permissions: [(rule: String, request: String, answer: [String], isForAll: Bool)] = [
        ("ttl: 60s", "", ["Cache-Control: max-age=60"], true),
        ("authorization: public", "Authorization: x y", ["Cache-Control: max-age=60"], false),
        ("authorization: public", "Authorization: x y", ["Cache-Control: public, max-age=60"], true),
        ("authorization: public", "", ["Cache-Control: max-age=60"], true),
        ("authorization: validate", "Authorization: x y", ["Cache-Control: max-age=60", "ETag: \"1\""], false),
        ("respect_cache_control: no", "", ["Cache-Control: private, max-age=60"], false),
        ("respect_cache_control: no", "", ["Cache-Control: no-store, max-age=60"], false),
        ("respect_cache_control: no", "", ["Cache-Control: no-cache, max-age=60", "ETag: \"1\""], false),
        ("respect_cache_control: no", "", ["Cache-Control: must-revalidate, max-age=60"], false),
        ("respect_cache_control: no", "", ["Cache-Control: max-age=60"], true),
        ("store_cookies: yes", "", ["Cache-Control: max-age=60", "Set-Cookie: a=b"], false),
        ("store_cookies: yes", "", ["Cache-Control: public, max-age=60", "Set-Cookie: a=b"], true),
        ("drop_cookies: [ a ]", "", ["Cache-Control: max-age=60", "Set-Cookie: a=b"], false),
        ("drop_cookies: [ a ]", "", ["Cache-Control: max-age=60"], true),
    ]

    @Test(arguments: permissions, ["", "disk: { path: DIRECTORY/disk, size: 200MiB, sync: 100ms }, "])
    func `what a rule for one user lets be stored is not for a user without that rule`(
        _ row: (rule: String, request: String, answer: [String], isForAll: Bool), _ disk: String
    ) throws {
        try scenario({ configuration, files in
            let users = try files.write(
                "users", "alice:\(try hash(password: Array("a".utf8)))\nbob:\(try hash(password: Array("b".utf8)))\n")
            configuration.access.authentication.basic.usersFile = users
            try configuration.read(cache: "{ \(disk)rules: [ { match: { user: alice }, \(row.rule) } ] }", files)
        }) { s in
            let client = try s.client()
            let (alice, bob) = ("Proxy-Authorization: Basic YWxpY2U6YQ==", "Proxy-Authorization: Basic Ym9iOmI=")
            s.origin.expects("GET /a").replies(200, row.answer, Array("of alice".utf8))
            #expect(
                try client.get("/a", alice, row.request.isEmpty ? "X-A: b" : row.request).cacheStatus.contains("stored")
            )
            if !row.isForAll {
                s.origin.expects("GET /a", "!If-None-Match").replies(200, "Cache-Control: no-store", body: "of bob")
            }
            #expect(try client.get("/a", bob).text == (row.isForAll ? "of alice" : "of bob"))
            if !row.isForAll { s.origin.expects("HEAD /a").replies(200, "Cache-Control: no-store") }
            #expect(try client.request("HEAD", "/a", bob).status == 200)
            // A reload that takes the rule away ends what it allowed, for her as well.
            try s.adopt(cache: "rules: []")
            if !row.isForAll {
                s.origin.expects("GET /a", "!If-None-Match").replies(200, "Cache-Control: no-store", body: "anew")
            }
            #expect(try client.get("/a", alice).text == (row.isForAll ? "of alice" : "anew"))
        }
    }

    @Test func `the first rule that matches decides, and later ones add nothing`() throws {
        try scenario(
            cache: """
                rules:
                  - { match: { path: "/a*" }, negative_ttl: 7s }
                  - { match: { path: /a }, ttl: 60s }
                  - { ttl: 0 }
                """
        ) { s in
            for path in ["/a", "/b"] {
                for _ in 0..<2 { s.origin.expects("GET \(path)").replies(200, body: "body") }
            }
            let client = try s.client()
            for path in ["/a", "/b"] {
                for _ in 0..<2 { #expect(try !client.get(path).cacheStatus.hasPrefix("larder; hit")) }
            }
        }
    }

    @Test func `a lifetime is judged when it is read, so that a change of the rules holds for what is stored`() throws {
        try scenario(cache: "rules: [ { match: { path: /a }, immutable: yes } ]") { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", "ETag: \"1\"", "Age: 30", body: "old")
            let client = try s.client()
            try client.get("/a")
            #expect(try client.get("/a", "Cache-Control: max-age=0").cacheStatus.hasPrefix("larder; hit; ttl=3153"))
            // Lower, then without a rule, then with a bound below the age that it came with.
            try s.adopt(cache: "rules: [ { match: { path: /a }, ttl: 40s } ]")
            #expect(try client.get("/a").cacheStatus.hasPrefix("larder; hit; ttl=4"))
            try s.adopt(cache: "rules: []")
            #expect(try client.get("/a").cacheStatus.hasPrefix("larder; hit; ttl=30"))
            try s.adopt(cache: "rules: [ { match: { path: /a }, ttl_max: 20s } ]")
            s.origin.expects("GET /a", "If-None-Match: \"1\"").replies(200, "Cache-Control: max-age=60", body: "new")
            #expect(try client.get("/a").text == "new")
        }
    }

    @Test func `a rule by type keeps its place in the order, for new and for stored responses`() throws {
        let rules = """
            rules:
              - { match: { type: text/html }, ttl: 60s }
              - { match: { path: "/*" }, ttl: 0 }
            """
        try scenario(cache: rules) { s in
            s.origin.expects("GET /page").replies(200, "Content-Type: text/html; charset=utf-8", body: "page")
            for _ in 0..<2 { s.origin.expects("GET /text").replies(200, "Content-Type: text/plain", body: "text") }
            let client = try s.client()
            for path in ["/page", "/text"] { for _ in 0..<2 { try client.get(path) } }
            // For hits the rules are asked with the stored type.
            try s.adopt(cache: "rules: [ { match: { type: text/html }, policy: revalidate-always } ]")
            s.origin.expects("GET /page").replies(200, "Content-Type: text/html", body: "newer")
            #expect(try client.get("/page").text == "newer")
        }
    }

    @Test func `cache-only by type asks the origin until a response is stored, and never afterwards`() throws {
        try scenario(cache: "rules: [ { match: { type: text/html }, policy: cache-only } ]") { s in
            s.origin.expects("GET /a").replies(
                200, "Content-Type: text/html", "Cache-Control: max-age=10", "Age: 60", body: "page")
            let client = try s.client()
            try client.get("/a")
            #expect(try client.get("/a").cacheStatus.hasPrefix("larder; hit"))
        }
    }

    @Test func `a lifetime by type applies again after a 304`() throws {
        try scenario(cache: "rules: [ { match: { type: text/html }, ttl: 60s } ]") { s in
            s.origin.expects("GET /a").replies(200, "Content-Type: text/html", "ETag: \"a\"", body: "page")
            s.origin.expects("GET /a", "If-None-Match: \"a\"").replies(304, "ETag: \"a\"")
            let client = try s.client()
            try client.get("/a")
            try client.get("/a", "Cache-Control: no-cache")
            let third = try client.get("/a")
            #expect(third.cacheStatus.hasPrefix("larder; hit; ttl="), "\(third.cacheStatus)")
        }
    }

    @Test(arguments: [
        "HTTP/1.1 503 Down\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\ndown", "nonsense\r\n\r\n",
    ])
    func `stale-on-error by type uses the type of the stored response`(_ failure: String) throws {
        try scenario(cache: "rules: [ { match: { type: text/html }, policy: stale-on-error } ]") { s in
            s.origin.expects("GET /a").replies(
                200, "Content-Type: text/html", "Cache-Control: max-age=10", "Age: 1000000", "ETag: \"a\"", body: "page"
            )
            s.origin.expects("GET /a", "If-None-Match: \"a\"").sends(failure).closes()
            let client = try s.client()
            try client.get("/a")
            let second = try client.get("/a")
            #expect(second.text == "page")
        }
    }

    @Test func `no-write by type stores no response of its type, not even as a replacement`() throws {
        try scenario(cache: "rules: [ { match: { type: text/plain }, policy: no-write } ]") { s in
            s.origin.expects("GET /a").replies(
                200, "Content-Type: text/html", "Cache-Control: max-age=10", "Age: 60", "ETag: \"a\"", body: "page")
            for _ in 0..<2 {
                s.origin.expects("GET /a").replies(
                    200, "Content-Type: text/plain", "Cache-Control: max-age=60", body: "text")
            }
            let client = try s.client()
            try client.get("/a")
            for _ in 0..<2 { #expect(try client.get("/a").text == "text") }
        }
    }

    @Test func `a rule by type compresses its type`() throws {
        try scenario(cache: "rules: [ { match: { type: text/html }, compress: on-the-fly } ]") { s in
            let body = String(repeating: "All work and no play. ", count: 200)
            for (path, type) in [("/a", "text/html"), ("/b", "text/plain")] {
                s.origin.expects("GET \(path)").replies(
                    200, "Content-Type: \(type)", "Cache-Control: max-age=60", body: body)
            }
            let client = try s.client()
            for _ in 0..<2 {
                #expect(try client.get("/a", "Accept-Encoding: gzip")["Content-Encoding"] == "gzip")
                #expect(try client.get("/b", "Accept-Encoding: gzip")["Content-Encoding"] == nil)
            }
        }
    }

    @Test func `a rule by type decides about ranges of its type`() throws {
        try scenario(cache: "rules: [ { match: { type: text/html }, ranges: pass } ]") { s in
            let part = [
                "Content-Type: text/html", "Cache-Control: max-age=60", "ETag: \"a\"", "Content-Range: bytes 0-1/10",
            ]
            for _ in 0..<2 { s.origin.expects("GET /a", "Range: bytes=0-1").replies(206, part, Array("01".utf8)) }
            let client = try s.client()
            for _ in 0..<2 {
                let answer = try client.get("/a", "Range: bytes=0-1")
                #expect(answer.status == 206)
                #expect(answer.text == "01")
            }
        }
    }

    @Test func `a rule by type fetches the rest of a part in the background`() throws {
        try scenario(cache: "rules: [ { match: { type: text/html }, ranges: whole } ]") { s in
            let fields = { (range: String) in
                [
                    "Content-Type: text/html", "Cache-Control: max-age=60", "ETag: \"a\"",
                    "Content-Range: bytes \(range)/10",
                ]
            }
            s.origin.expects("GET /a", "Range: bytes=0-1").replies(206, fields("0-1"), Array("01".utf8))
            s.origin.expects("GET /a", "Range: bytes=2-9").replies(206, fields("2-9"), Array("23456789".utf8))
            let client = try s.client()
            #expect(try client.get("/a", "Range: bytes=0-1").text == "01")
            try s.expect(.stored, 1)
            let whole = try client.get("/a")
            #expect(whole.text == "0123456789")
            #expect(whole.cacheStatus.hasPrefix("larder; hit"))
        }
    }
}
