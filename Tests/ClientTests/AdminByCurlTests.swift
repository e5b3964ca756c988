import ProgramUnderTest
import Foundation
import Testing

@Suite(
    "The admin server, by curl",
    .enabled(if: Nginx.isInstalled && installed("curl") != nil, "packages nginx-light, curl"))
struct AdminByCurlTests {
    private func with(more: String = "", _ body: (Workplace, Nginx, Larder, String) async throws -> Void) async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place)
            try place.write("www/a", "a\n".utf8)
            let larder = try await Larder.start(in: place, more: more)
            try await body(place, nginx, larder, "http://127.0.0.1:\(larder.adminPort)")
        }
    }

    @Test func `what can be read over TCP`() async throws {
        try await with { place, nginx, larder, admin in
            for _ in 1...2 { _ = try await place.curl("\(nginx.url)/a", through: larder) }
            let health = try await place.curl("\(admin)/health", through: nil)
            #expect(health.status == 200 && health.text.hasPrefix("ok"), "\(health)")
            let stats = try await place.curl("\(admin)/stats", through: nil)
            #expect(stats.fields["content-type"]?.hasPrefix("application/json") == true, "\(stats)")
            let values = try JSONSerialization.jsonObject(with: Data(stats.body)) as? [String: Any]
            #expect((values?["requests"] as? [String: Any])?["hit"] as? Int == 1, "\(stats.text)")
            let metrics = try await place.curl("\(admin)/metrics", through: nil)
            #expect(metrics.fields["content-type"]?.hasPrefix("text/plain; version=0.0.4") == true, "\(metrics)")
            #expect(metrics.text.contains("# TYPE larder_"), "\(metrics.text.prefix(500))")
            let page = try await place.curl("--compressed", "\(admin)/", through: nil)
            #expect(page.status == 200 && page.text.lowercased().contains("<!doctype html>"), "\(page)")
            let nothing = try await place.curl("\(admin)/nothing", through: nil)
            #expect(nothing.status == 404 && nothing.text.contains("/metrics"), "\(nothing)")
        }
    }

    @Test func `transfers tells of a download under way`() async throws {
        let gate = Gate()
        try await ScriptedOrigin.with { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc")
            gate.wait()
            connection.send("def")
        } _: { origin in
            defer { gate.open() }
            try await Workplace.with { place in
                let larder = try await Larder.start(in: place)
                async let slow = place.curl("\(origin.url)/slow", through: larder)
                let seen = try await eventually("the transfer") { () -> String? in
                    let reply = try await place.curl("http://127.0.0.1:\(larder.adminPort)/transfers", through: nil)
                    return reply.text.contains("\"received_bytes\":3") ? reply.text : nil
                }
                #expect(
                    seen.contains("\"url\":\"\(origin.url)/slow\"") && seen.contains("\"expected_bytes\":6"), "\(seen)")
                gate.open()
                #expect(try await slow.text == "abcdef")
            }
        }
    }

    @Test func `POST purge over TCP without the token is refused`() async throws {
        try await with { place, nginx, larder, admin in
            _ = try await place.curl("\(nginx.url)/a", through: larder)
            let refused = try await place.curl("-d", "all=yes", "\(admin)/purge", through: nil)
            #expect(refused.status == 403, "\(refused)")
            #expect(try await larder.statistic("memory", "records") == 1)
            let local = try await place.curl(
                "--unix-socket", larder.socket, "-d", "all=yes", "http://larder/purge", through: nil)
            #expect(local.status == 200 && local.text.contains("\"records\":1"), "\(local)")
            #expect(try await larder.statistic("memory", "records") == 0)
        }
    }

    @Test func `POST purge over TCP with the token is done`() async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place)
            try place.write("www/a", "a\n".utf8)
            let token = "a-token-of-more-than-sixteen-bytes"
            try place.write("token", "\(token)\n".utf8)
            let adminPort = FreePort.take()
            let text = Larder.configuration(in: place, adminPort: adminPort)
                .replacingOccurrences(of: "admin:\n", with: "admin:\n  token: \(place.path("token"))\n")
            let larder = try await Larder.start(in: place, text: text, adminPort: adminPort)
            _ = try await place.curl("\(nginx.url)/a", through: larder)
            let url = "http://127.0.0.1:\(adminPort)/purge"
            let wrong = try await place.curl("-H", "Authorization: Bearer no", "-d", "all=yes", url, through: nil)
            #expect(wrong.status == 401 || wrong.status == 403, "\(wrong)")
            let right = try await place.curl("-H", "Authorization: Bearer \(token)", "-d", "all=yes", url, through: nil)
            #expect(right.status == 200 && right.text.contains("\"records\":1"), "\(right)")
        }
    }

    @Test func `the admin server is not to be reached through the proxy`() async throws {
        try await with { place, _, larder, admin in
            let reply = try await place.curl("\(admin)/stats", through: larder)
            #expect(reply.status == 403, "\(reply)")
        }
    }
}
