import Foundation
import Testing

/// How Larder gets on with the origin that most of the world runs.
@Suite("nginx as the origin", .enabled(if: Nginx.isInstalled && installed("curl") != nil, "packages nginx-light, curl"))
struct NginxTests {
    private func with(
        _ server: String = "", access: String = Larder.openLoopback,
        _ body: (Workplace, Nginx, Larder) async throws -> Void
    ) async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place, server: server)
            try await body(place, nginx, try await Larder.start(in: place, access: access))
        }
    }

    @Test func `a stale file is validated with ETag and Last-Modified, and 304 renews it`() async throws {
        try await with("add_header Cache-Control max-age=0;") { place, nginx, larder in
            try place.write("www/a", "first\n".utf8)
            let first = try await place.curl("\(nginx.url)/a", through: larder)
            #expect(first.status == 200 && first.cacheStatus.contains("fwd=uri-miss"), "\(first)")
            let second = try await place.curl("\(nginx.url)/a", through: larder)
            #expect(second.status == 200 && second.text == "first\n", "\(second)")
            #expect(
                second.cacheStatus.contains("fwd=stale") && second.cacheStatus.contains("fwd-status=304"), "\(second)")
            let asked = try #require(nginx.asked("/a").last)
            let etag = first.fields["etag"]?.replacingOccurrences(of: "\"", with: "\\x22")
            #expect(asked.hasPrefix("GET /a 304 "), "\(asked)")
            #expect(asked.contains("im=\"\(etag ?? "?")\""), "\(asked)")
            #expect(asked.contains("ims=\"\(first.fields["last-modified"] ?? "?")\""), "\(asked)")
        }
    }

    @Test func `a file that changed replaces the stored one`() async throws {
        try await with("add_header Cache-Control max-age=0;") { place, nginx, larder in
            try place.write("www/a", "first\n".utf8)
            _ = try await place.curl("\(nginx.url)/a", through: larder)
            try place.write("www/a", "second, longer\n".utf8, age: 3)
            let second = try await place.curl("\(nginx.url)/a", through: larder)
            #expect(second.text == "second, longer\n" && second.cacheStatus.contains("fwd-status=200"), "\(second)")
            let third = try await place.curl("\(nginx.url)/a", through: larder)
            #expect(third.text == "second, longer\n" && third.cacheStatus.contains("fwd-status=304"), "\(third)")
            #expect(try await larder.statistic("memory", "records") == 1)
        }
    }

    @Test func `clients with a copy of their own get 304 from the cache`() async throws {
        try await with { place, nginx, larder in
            try place.write("www/a", "first\n".utf8)
            let first = try await place.curl("\(nginx.url)/a", through: larder)
            let conditions = [
                "If-None-Match: \(first.fields["etag"] ?? "?")",
                "If-None-Match: \"other\", W/\(first.fields["etag"] ?? "?")",
                "If-None-Match: *", "If-Modified-Since: \(first.fields["last-modified"] ?? "?")",
            ]
            for condition in conditions {
                let reply = try await place.curl("-H", condition, "\(nginx.url)/a", through: larder)
                #expect(reply.status == 304 && reply.body.isEmpty && reply.isHit, "\(condition): \(reply)")
                #expect(reply.fields["etag"] == first.fields["etag"], "\(condition): \(reply)")
            }
            let other = try await place.curl("-H", "If-None-Match: \"other\"", "\(nginx.url)/a", through: larder)
            #expect(other.status == 200 && other.text == "first\n" && other.isHit, "\(other)")
            #expect(nginx.asked.count == 1)
        }
    }

    @Test func `gzip with Vary: one stored copy is validated and answers in each coding`() async throws {
        try await with("gzip on; add_header Cache-Control max-age=0;") { place, nginx, larder in
            let text = String(repeating: "the quick brown fox\n", count: 100)
            try place.write("www/a.txt", text.utf8)
            for round in 1...2 {
                for coding in ["gzip", "identity"] {
                    let reply = try await place.curl(
                        "-H", "Accept-Encoding: \(coding)", "\(nginx.url)/a.txt", through: larder)
                    #expect(reply.status == 200 && reply.fields["vary"] == "Accept-Encoding", "\(reply)")
                    #expect(reply.fields["content-encoding"] == (coding == "gzip" ? "gzip" : nil), "\(reply)")
                    #expect((reply.text == text) == (coding == "identity"))
                    #expect(
                        reply.cacheStatus.contains("fwd-status=304") == (round == 2 || coding == "identity"),
                        "\(round) \(coding): \(reply)")
                }
            }
            #expect(try await larder.statistic("memory", "records") == 1)
        }
    }

    @Test func `416 is passed on with the length, and does not spoil the cache`() async throws {
        try await with { place, nginx, larder in
            try place.write("www/a", "0123456789".utf8)
            let reply = try await place.curl("-r", "100-", "\(nginx.url)/a", through: larder)
            #expect(reply.status == 416 && reply.fields["content-range"] == "bytes */10", "\(reply)")
            let whole = try await place.curl("\(nginx.url)/a", through: larder)
            #expect(whole.status == 200 && whole.text == "0123456789", "\(whole)")
        }
    }

    @Test func `a range of a file too large to be stored whole reaches nginx as a range, and is stored`() async throws {
        try await with { place, nginx, larder in
            // Larger than an eighth of the 64 MiB of memory: it passes through.
            let content = noise(9 << 20)
            try place.write("www/large", content)
            let whole = try await place.curl("\(nginx.url)/large", through: larder)
            #expect(whole.status == 200 && whole.body == content)
            let part = try await place.curl("-r", "8000000-8999999", "\(nginx.url)/large", through: larder)
            #expect(part.status == 206 && part.body == Array(content[8_000_000..<9_000_000]), "\(part)")
            #expect(nginx.asked("/large").last?.contains("range=\"bytes=8000000-8999999\"") == true, "\(nginx.asked)")
            let within = try await place.curl("-r", "8100000-8100999", "\(nginx.url)/large", through: larder)
            #expect(within.isHit && within.body == Array(content[8_100_000..<8_101_000]), "\(within)")
        }
    }

    @Test func `a connection that nginx closes after its keep-alive time is not seen by any client`() async throws {
        try await with("keepalive_timeout 1s; location = /status { stub_status; keepalive_timeout 0; }") {
            place, nginx, larder in
            try place.write("www/a", "a\n".utf8)
            for round in 1...2 {
                let reply = try await place.curl("\(nginx.url)/a?\(round)", through: larder)
                #expect(reply.status == 200, "\(reply)")
                try await eventually("nginx to end the idle connection") {
                    let status = try await place.curl("\(nginx.url)/status", through: nil)
                    return status.text.hasPrefix("Active connections: 1 ")  // the one that asks
                }
            }
            let opened = try await larder.statistic("origins", "opened")
            #expect(opened == 2)
        }
    }

    @Test func `a connection that nginx ends after each few requests is replaced`() async throws {
        try await with("keepalive_requests 3;") { place, nginx, larder in
            let output = try await place.run(
                "curl",
                ["-q", "-sS", "-x", larder.url, "-w", "%{http_code} ", "\(nginx.url)/none?[1-20]", "-o", "/dev/null"])
            #expect(output.out.split(separator: " ").allSatisfy { $0 == "404" }, "\(output)")
            #expect(output.out.split(separator: " ").count == 20, "\(output)")
            #expect(try await larder.statistic("origins", "opened") == 7)
        }
    }

    @Test func `when nginx is gone the answer is 502 with a reason, and what is stored is served`() async throws {
        try await with { place, nginx, larder in
            try place.write("www/a", "a\n".utf8)
            _ = try await place.curl("\(nginx.url)/a", through: larder)
            await nginx.child.stop()
            let stored = try await place.curl("\(nginx.url)/a", through: larder)
            #expect(stored.isHit && stored.text == "a\n", "\(stored)")
            let other = try await place.curl("\(nginx.url)/b", through: larder)
            #expect(other.status == 502, "\(other)")
            #expect(other.fields["proxy-status"]?.contains("error=connection_refused") == true, "\(other)")
        }
    }

    @Test func `the client's own fields reach nginx, the proxy's do not`() async throws {
        try await with { place, nginx, larder in
            try place.write("www/a", "a\n".utf8)
            _ = try await place.curl(
                "-A", "a tester", "-H", "Proxy-Connection: keep-alive", "-H", "Proxy-Authorization: Basic eDp5",
                "\(nginx.url)/a", through: larder)
            let asked = try #require(nginx.asked.first)
            #expect(
                asked.contains("ua=\"a tester\"") && asked.contains("pc=\"-\"") && asked.contains("pa=\"-\""),
                "\(asked)")
        }
    }
}
