import EventLoop
import Foundation
import ProgramUnderTest
import Testing

/// curl, Larder with a PAC file that nginx or a scripted server has, and nginx as the origin.
@Suite("PAC files from URLs", .enabled(if: Nginx.isInstalled && installed("curl") != nil, "packages nginx-light, curl"))
struct PACURLTests {
    private static let direct = "function FindProxyForURL() { return 'DIRECT'; }"
    /// Nothing listens on port 1.
    private static let nowhere = "function FindProxyForURL() { return 'PROXY 127.0.0.1:1'; }"

    /// What is stored would be served whatever the script says.
    private let uncached = "add_header Cache-Control no-store;"

    private static func more(_ url: String, _ rest: String = "", pac: String = "refresh: 1h") -> String {
        "pac: { \(pac), lifetime: 0s }\nroutes: [ { pac: \"\(url)\"\(rest) } ]"
    }

    /// The only one of `pac_files` in the statistics.
    private static func state(of larder: Larder) async throws -> [String: Any] {
        let output = try await larder.command("stats", "--json")
        let value = try JSONSerialization.jsonObject(with: Data(output.out.utf8)) as? [String: Any]
        return try #require((value?["pac_files"] as? [[String: Any]])?.first, "\(output)")
    }

    @Test func `https with a redirect: it is fetched, revalidated, replaced, and kept while its server is away`()
        async throws
    {
        try await Workplace.with { place in
            let tls = try await place.certificate()
            let origin = try await Nginx.start(in: place, server: uncached)
            try place.write("www/file", "from the origin".utf8)
            try place.write("pac/proxy.pac", Self.direct.utf8)
            let server = try await Nginx.start(
                in: place, name: "server", root: "pac", server: "location = /wpad.dat { return 302 /proxy.pac; }",
                tls: tls)
            let url = "https://127.0.0.1:\(server.port)/wpad.dat?key=1"
            let larder = try await Larder.start(
                in: place, more: "tls: { ca_file: \(tls.certificate) }\n" + Self.more(url, pac: "refresh: 1s"))
            func ask() async throws -> Workplace.Reply { try await place.curl("\(origin.url)/file", through: larder) }
            let first = try await ask()
            #expect(first.text == "from the origin", "the start waits for the script: \(first)")
            #expect(larder.child.errors.contains("/wpad.dat?… was fetched"), "\(larder.child.errors)")
            #expect(!larder.child.errors.contains("key=1"), "\(larder.child.errors)")
            #expect(server.asked("/proxy.pac").first?.contains("im=\"-\"") == true)
            try await eventually("it is asked for again; nginx had \(server.asked)") {
                server.asked("/proxy.pac").contains { $0.contains(" 304 ") && !$0.contains("im=\"-\"") }
            }
            #expect(server.asked.allSatisfy { $0.contains("via=\"-\"") }, "it is fetched without a proxy")
            try place.write("pac/proxy.pac", Self.nowhere.utf8, age: 1)
            try await eventually("the new version is in use") {
                try await ask().cacheStatus.contains("detail=next-proxy-unreachable")
            }
            var state = try await Self.state(of: larder)
            #expect(state["path"] as? String == "https://127.0.0.1:\(server.port)/wpad.dat?…")
            #expect(state["fetch_failing"] as? Bool == false && state["fetched_at"] != nil)
            await server.child.stop()
            try await eventually("the log says that it fails: \(larder.child.errors)") {
                larder.child.errors.contains("was not fetched: ") && larder.child.errors.contains("stays in use")
            }
            state = try await Self.state(of: larder)
            #expect(state["fetch_failing"] as? Bool == true && state["fetch_failing_since"] != nil, "\(state)")
            #expect(try await ask().cacheStatus.contains("detail=next-proxy-unreachable"), "the version stays")
            let metrics = try await place.curl("http://127.0.0.1:\(larder.adminPort)/metrics", through: nil)
            #expect(metrics.text.contains("/wpad.dat?…\"} 1"), "\(metrics.text)")
            let explained = try await larder.command("explain", "\(origin.url)/file")
            #expect(explained.out.contains("; failing since "), "\(explained)")
        }
    }

    @Test func `a server that hangs delays the start for pac.fetch_timeout, and a reload fetches again`() async throws {
        try await Workplace.with { place in
            let origin = try await Nginx.start(in: place, server: uncached)
            try place.write("www/file", "from the origin".utf8)
            let answers = Locked(false)
            try await ScriptedOrigin.with({ _, connection in
                guard answers.withLock({ $0 }) else {
                    _ = connection.receive(1)
                    return
                }
                let script = Self.direct
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(script.utf8.count)\r\n\r\n\(script)")
            }) { server in
                let larder = try await Larder.start(
                    in: place, more: Self.more("\(server.url)/a.pac", pac: "refresh: 1h, fetch_timeout: 300ms"))
                #expect(
                    larder.child.errors.contains(
                        "/a.pac was not fetched: the request took too long; its rules take the routes of otherwise, or refuse"
                    ), "\(larder.child.errors)")
                let refused = try await place.curl("\(origin.url)/file", through: larder)
                #expect(refused.status == 502 && refused.cacheStatus.contains("detail=route-unknown"), "\(refused)")
                answers.withLock { $0 = true }
                larder.child.signal(SIGHUP)
                try await eventually("the script is in use") {
                    try await place.curl("\(origin.url)/file", through: larder).text == "from the origin"
                }
                let state = try await Self.state(of: larder)
                #expect(state["fetch_failing"] as? Bool == false && state["failure"] == nil, "\(state)")
            }
        }
    }

    @Test func `a reload to a URL keeps the old configuration in force until the script has come`() async throws {
        try await Workplace.with { place in
            let origin = try await Nginx.start(in: place, server: uncached)
            try place.write("www/file", "from the origin".utf8)
            let (asked, mayAnswer) = (CountingSemaphore(), CountingSemaphore())
            try await ScriptedOrigin.with({ _, connection in
                asked.signal()
                mayAnswer.wait()
                let script = Self.nowhere
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(script.utf8.count)\r\n\r\n\(script)")
            }) { server in
                let larder = try await Larder.start(in: place)
                let text = textOfFile(larder.configuration)
                try place.write("larder.yaml", (text + Self.more("\(server.url)/a.pac") + "\n").utf8)
                larder.child.signal(SIGHUP)
                #expect(asked.wait(timeout: .seconds(20)))
                let between = try await place.curl("\(origin.url)/file", through: larder)
                #expect(between.text == "from the origin", "\(between)")
                mayAnswer.signal()
                try await eventually("the new configuration is in force") {
                    try await place.curl("\(origin.url)/file?2", through: larder)
                        .cacheStatus.contains("detail=next-proxy-unreachable")
                }
                #expect(!larder.child.errors.contains("was not fetched"), "\(larder.child.errors)")
            }
        }
    }

    @Test func `a certificate that nobody vouches for brings no script, and otherwise is taken`() async throws {
        try await Workplace.with { place in
            let tls = try await place.certificate()
            let origin = try await Nginx.start(in: place, server: uncached)
            try place.write("www/file", "from the origin".utf8)
            try place.write("pac/a.pac", Self.nowhere.utf8)
            let server = try await Nginx.start(in: place, name: "server", root: "pac", tls: tls)
            let url = "https://127.0.0.1:\(server.port)/a.pac"
            let larder = try await Larder.start(in: place, more: Self.more(url, ", otherwise: direct"))
            #expect(larder.child.errors.contains("the certificate is self-signed"), "\(larder.child.errors)")
            #expect(try await place.curl("\(origin.url)/file", through: larder).text == "from the origin")
            #expect(server.asked.isEmpty)
        }
    }

    /// What a server does with each request, and what `larder check` says of it.
    static let answers: [(head: String, body: String, text: String)] = [
        ("404 Not Found", "", "cannot be fetched: the server answers with status 404"),
        ("200 OK", "<html>Sign in</html>", "cannot be used: line 1: it has no function FindProxyForURL"),
        ("200 OK", String(repeating: " ", count: 1 << 20) + "x", "cannot be fetched: it is longer than 1048576 bytes"),
        ("302 Found\r\nLocation: /again", "", "cannot be fetched: the server redirects more than 5 times"),
        ("302 Found", "", "cannot be fetched: the server redirects without a URL"),
        ("304 Not Modified", "", "cannot be fetched: the server answers with status 304"),
        ("200 OK", "function FindProxyForURL() { return 'SOCKS a:1'; }", "has no route for http://example.com/"),
        ("200 OK", direct, "no errors"),
    ]
    @Test(arguments: answers) func `check fetches the script, and warns of what is wrong with it`(
        _ row: (head: String, body: String, text: String)
    ) async throws {
        try await Workplace.with { place in
            try await ScriptedOrigin.with({ _, connection in
                let length = row.head.hasPrefix("304") ? "" : "Content-Length: \(row.body.utf8.count)\r\n"
                connection.send("HTTP/1.1 \(row.head)\r\n\(length)\r\n\(row.body)")
            }) { server in
                let file = try place.write("check.yaml", "routes: [ { pac: \"\(server.url)/a.pac?key=1\" } ]\n".utf8)
                let output = try await place.run(Larder.executable, ["check", "--config", file])
                #expect(output.status == 0 && (output.out + output.err).contains(row.text), "\(output)")
                #expect(!output.err.contains("key=1"))
                if row.head.hasPrefix("302 Found\r\n") { #expect(server.heads.withLock { $0.count } == 6) }
            }
        }
    }
}
