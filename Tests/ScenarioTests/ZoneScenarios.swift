import Server
import Storage
import Testing

@Suite("Zones are separate caches")
struct ZoneScenarios {
    private static let packages = """
        zones: [ { name: packages, memory: 8MiB } ]
        rules: [ { match: { path: "/pool/*" }, zone: packages } ]
        """

    @Test func `each zone stores its own responses, and Cache-Status names the zone (RFC 9211)`() throws {
        try scenario(cache: Self.packages) { s in
            let client = try s.client()
            for path in ["/pool/a", "/a"] {
                s.origin.expects("GET \(path)").replies(200, "Cache-Control: max-age=60", body: path)
                try client.get(path)
            }
            let package = try client.get("/pool/a")
            #expect(package.cacheStatus.hasPrefix("larder; hit; ttl="))
            #expect(package.cacheStatus.hasSuffix("; zone=packages"))
            let other = try client.get("/a")
            #expect(other.cacheStatus.hasPrefix("larder; hit; ttl="))
            #expect(!other.cacheStatus.contains("zone"))
            #expect(s.proxy.shared.zones.current.map(\.name) == ["default", "packages"])
            #expect(s.proxy.shared.zones.current.map { $0.tier.memory.statistics.recordCount } == [1, 1])
        }
    }

    @Test func `responses in one zone evict nothing from another`() throws {
        try scenario(
            cache: """
                zones: [ { name: small, memory: 1MiB, object_size_max: 1MiB } ]
                rules: [ { match: { path: "/pool/*" }, zone: small } ]
                """
        ) { s in
            let client = try s.client()
            let body = [UInt8](repeating: 0x78, count: 300_000)
            s.origin.expects("GET /a").replies(200, ["Cache-Control: max-age=60"], body)
            try client.get("/a")
            for number in 0..<8 {
                s.origin.expects("GET /pool/\(number)").replies(200, ["Cache-Control: max-age=60"], body)
                try client.get("/pool/\(number)")
            }
            #expect(try client.get("/a").cacheStatus.hasPrefix("larder; hit"))
            #expect(s.proxy.shared.zones.current[1].tier.memory.statistics.recordCount < 4)
        }
    }

    @Test func `an unsafe request invalidates in the zone that a GET would use (RFC 9111 §4.4)`() throws {
        try scenario(
            cache: """
                zones: [ { name: packages, memory: 8MiB } ]
                rules:
                  - { match: { path: "/pool/*", method: GET }, zone: packages }
                """
        ) { s in
            let client = try s.client()
            for (path, location) in [("/pool/a", ""), ("/a", ""), ("/pool/b", "Location: /pool/b")] {
                s.origin.expects("GET \(path)").replies(200, "Cache-Control: max-age=60", body: "old")
                try client.get(path)
                let target = location.isEmpty ? path : "/elsewhere"
                s.origin.expects("POST \(target)").replies(201, [location].filter { !$0.isEmpty }, [])
                try client.request("POST", target, body: "x")
                s.origin.expects("GET \(path)").replies(200, "Cache-Control: max-age=60", body: "new")
                #expect(try client.get(path).text == "new")
            }
            try s.expect(.invalidated, 3)
        }
    }

    @Test func `a reload adds, shrinks and removes zones, and the others keep their responses`() throws {
        try scenario(cache: Self.packages) { s in
            let client = try s.client()
            let body = [UInt8](repeating: 0x78, count: 700_000)
            s.origin.expects("GET /pool/a").replies(200, ["Cache-Control: max-age=60"], body)
            try client.get("/pool/a")
            // Another one is added, before it.
            try s.adopt(
                cache: """
                    zones: [ { name: pages, memory: 8MiB }, { name: packages, memory: 8MiB } ]
                    rules: [ { match: { path: "/pool/*" }, zone: packages }, { match: { path: "/a" }, zone: pages } ]
                    """)
            #expect(try client.get("/pool/a").cacheStatus.hasSuffix("zone=packages"))
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "page")
            try client.get("/a")
            #expect(try client.get("/a").cacheStatus.hasSuffix("zone=pages"))
            // It shrinks below what it holds.
            try s.adopt(
                cache: """
                    zones: [ { name: pages, memory: 8MiB }, { name: packages, memory: 1MiB, object_size_max: 100KiB } ]
                    rules: [ { match: { path: "/pool/*" }, zone: packages }, { match: { path: "/a" }, zone: pages } ]
                    """)
            #expect(try client.get("/a").cacheStatus.hasPrefix("larder; hit"))
            for number in 0..<20 {
                let body = [UInt8](repeating: 0x78, count: 90_000)
                s.origin.expects("GET /pool/\(number)").replies(200, ["Cache-Control: max-age=60"], body)
                try client.get("/pool/\(number)")
            }
            #expect(s.proxy.shared.zones.current[2].tier.memory.statistics.usedBytes <= 1 << 20)
            // It goes, and what it held with it, also when one of the same name comes again.
            let tier = s.proxy.shared.zones.current[2].tier
            try s.adopt(
                cache: "zones: [ { name: pages, memory: 8MiB } ]\nrules: [ { match: { path: \"/a\" }, zone: pages } ]")
            #expect(tier.memory.statistics.recordCount == 0)
            #expect(try client.get("/a").cacheStatus.hasSuffix("zone=pages"))
            s.origin.expects("GET /pool/a").replies(200, "Cache-Control: max-age=60", body: "in the default one")
            #expect(try client.get("/pool/a").cacheStatus.contains("zone") == false)
            try s.adopt(cache: Self.packages)
            s.origin.expects("GET /pool/a").replies(200, "Cache-Control: max-age=60", body: "anew")
            #expect(try client.get("/pool/a").text == "anew")
        }
    }

    @Test func `a transfer into a zone that a reload removes reaches its client completely`() throws {
        try scenario(cache: Self.packages) { s in
            let gone = Gate("the zone is gone")
            s.origin.expects("GET /pool/a").sends(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 10\r\n\r\nhello"
            )
            .waits(for: gone).sends("world")
            let client = try s.client()
            try client.ask("GET", "/pool/a")
            #expect(try client.head().startLine.contains("200"))
            try s.adopt(cache: "rules: []")
            gone.open()
            let body = try client.reader.bytes(10)
            #expect(String(decoding: body, as: UTF8.self) == "helloworld")
            s.origin.expects("GET /pool/a").replies(200, "Cache-Control: max-age=60", body: "anew")
            #expect(try client.get("/pool/a").text == "anew")
        }
    }

    @Test func `a rule can send requests to the default zone before another rule applies`() throws {
        try scenario(
            cache: """
                zones: [ { name: packages, memory: 8MiB, policy: cache-first } ]
                rules:
                  - { match: { path: "/pool/new/*" }, zone: default }
                  - { match: { path: "/pool/*" }, zone: packages }
                  - { match: { path: "/b" }, zone: packages, policy: revalidate-when-stale }
                """
        ) { s in
            let client = try s.client()
            for path in ["/pool/new/a", "/b"] {
                s.origin.expects("GET \(path)").replies(
                    200, "Cache-Control: max-age=10", "Age: 60", "ETag: \"a\"", body: "old")
                s.origin.expects("GET \(path)", "If-None-Match: \"a\"").replies(304)
            }
            s.origin.expects("GET /pool/a").replies(
                200, "Cache-Control: max-age=10", "Age: 60", "ETag: \"a\"", body: "old")
            for path in ["/pool/new/a", "/b", "/pool/a"] {
                for _ in 0..<2 { #expect(try client.get(path).text == "old") }
            }
        }
    }
}
