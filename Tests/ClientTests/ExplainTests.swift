import Foundation
import Glibc
import ProgramUnderTest
import Testing

@Suite("larder explain", .enabled(if: Nginx.isInstalled && installed("curl") != nil, "packages nginx-light, curl"))
struct ExplainTests {
    /// What it says, by section and name; of names that occur more than once the last.
    private struct Said: CustomStringConvertible {
        var decision: String
        var reason: String
        var lines: [String: String]
        var sections: [String]
        var description: String { "\(decision): \(reason) \(sections) \(lines)" }
        subscript(_ name: String) -> String { lines[name] ?? "-" }
    }

    private func explain(_ words: [String], _ larder: Larder) async throws -> Said {
        let output = try await larder.place.run(
            Larder.executable, ["explain", "--json", "--config", larder.configuration] + words)
        let object = try JSONSerialization.jsonObject(with: Data(output.out.utf8)) as? [String: Any]
        let value = try #require(object, "\(output)")
        var lines: [String: String] = [:]
        let sections = value["sections"] as? [[String: Any]] ?? []
        for section in sections {
            for line in section["lines"] as? [[String: String]] ?? [] {
                lines["\(section["name"] ?? "") \(line["name"] ?? "")"] = line["value"]
            }
        }
        return Said(
            decision: value["decision"] as? String ?? "", reason: value["reason"] as? String ?? "", lines: lines,
            sections: sections.compactMap { $0["name"] as? String })
    }

    private func with(
        access: String = Larder.openLoopback, more: String = "",
        _ body: (Workplace, Nginx, Larder) async throws -> Void
    ) async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(
                in: place,
                server: """
                    gzip on;
                    location = /nocache { add_header Cache-Control no-cache; alias \(place.path("www/a")); }
                    """)
            try place.write("www/a", "a\n".utf8)
            try place.write("www/b.txt", String(repeating: "compressed ", count: 50).utf8)
            try await body(place, nginx, try await Larder.start(in: place, access: access, more: more))
        }
    }

    @Test func `what is not stored would be fetched, and asking changes nothing`() async throws {
        try await with { _, nginx, larder in
            let said = try await explain(["\(nginx.url)/a"], larder)
            #expect(said.decision == "fetch" && said.reason.contains("nothing is stored"), "\(said)")
            #expect(said["request key"] == "\(nginx.url)/a" && said["stored responses"] == "none", "\(said)")
            #expect(said["access verdict"] == "allowed by rule 1" && said["origin 127.0.0.1"] == "may be connected to")
            #expect(nginx.asked.isEmpty)
            #expect(try await larder.statistic("memory", "records") == 0)
            #expect(try await larder.statistic("requests", "total") == 0)
        }
    }

    @Test func `what is stored is shown with its arithmetic`() async throws {
        try await with { place, nginx, larder in
            _ = try await place.curl("\(nginx.url)/a", through: larder)
            let said = try await explain(["\(nginx.url)/a"], larder)
            #expect(said.decision == "hit" && said.reason.hasPrefix("the stored response is fresh for "), "\(said)")
            #expect(said["stored status"] == "200" && said["stored body"] == "2 bytes", "\(said)")
            #expect(said["stored ETag"].hasPrefix("\"") && said["freshness freshness_lifetime"].contains("heuristic"))
            #expect(said["freshness response_is_fresh"].hasPrefix("yes"), "\(said)")
            let text = try await larder.command("explain", "\(nginx.url)/a")
            #expect(text.status == 0 && text.out.contains("\nfreshness\n  "), "\(text)")
            #expect(
                text.out.split(separator: "\n").last?.hasPrefix("hit: the stored response is fresh for ") == true,
                "\(text)")
        }
    }

    @Test func `what only the disk has is found, and counts as a hit from the disk`() async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place)
            for name in ["a", "b"] { try place.write("www/\(name)", "\(name)\n".utf8) }
            func start() async throws -> Larder {
                let port = FreePort.take()
                let text = Larder.configuration(in: place, adminPort: port)
                let cache = "disk: { path: \(place.path("disk")), size: 64MiB }"
                return try await Larder.start(
                    in: place, text: text.replacingOccurrences(of: "disk: { size: 0 }", with: cache), adminPort: port)
            }
            let first = try await start()
            for name in ["a", "b"] { _ = try await place.curl("\(nginx.url)/\(name)", through: first) }
            first.child.signal(SIGTERM)
            #expect(try await first.child.end(within: .seconds(30)) == 0, "\(first.child.errors)")
            let second = try await start()
            // It waits until the disk is loaded.
            #expect(try await place.curl("\(nginx.url)/a", through: second).isHit)
            #expect(try await second.statistic("requests", "hits_from_disk") == 1)
            #expect(try await explain(["\(nginx.url)/b"], second).decision == "hit")
        }
    }

    @Test func `variants are told apart`() async throws {
        try await with { place, nginx, larder in
            _ = try await place.curl("\(nginx.url)/b.txt", through: larder)
            _ = try await place.curl("-H", "Accept-Encoding: gzip", "\(nginx.url)/b.txt", through: larder)
            let said = try await explain(["\(nginx.url)/b.txt", "-H", "Accept-Encoding: gzip"], larder)
            #expect(said.decision == "hit", "\(said)")
            let first = "stored, variant 1 of 2"
            #expect(
                said["\(first) Vary"] == "Accept-Encoding" && said["\(first) matches the request"] == "yes", "\(said)")
            #expect(said["stored, variant 2 of 2 matches the request"] == "no", "\(said)")
            #expect(said["\(first) asked with accept-encoding"] == "gzip", "\(said)")
            let other = try await explain(["\(nginx.url)/b.txt", "-H", "Accept-Encoding: br"], larder)
            #expect(other.decision == "hit" && other["stored, variant 2 of 2 matches the request"] == "no", "\(other)")
        }
    }

    @Test func `the route is named without its log-in, and the proxy's answer is not guessed`() async throws {
        let routes = """
            routes:
              - { match: { host: 127.0.0.1 }, via: direct }
              - { match: { host: "*.test" }, via: [ "http://ali:secret@proxy.test:3128", "socks5://socks.test:1080" ] }

            """
        let access = """
            access:
              rules:
                - allow: { host: "*.test" }
                - allow: { address: [ 127.0.0.1 ], port: [ 1-65535 ] }
            """
        try await with(access: access, more: routes) { _, nginx, larder in
            let near = try await explain(["\(nginx.url)/a"], larder)
            #expect(near["origin route"] == "routes[1]: direct" && near.decision == "fetch", "\(near)")
            let far = try await explain(["http://far.test/a"], larder)
            #expect(
                far["origin route"] == "routes[2]: http://proxy.test:3128, then socks5://socks.test:1080"
                    && far.decision == "fetch", "\(far)")
        }
    }

    @Test func `the credential is named, and never shown`() async throws {
        let credentials = """
            credentials:
              - { name: mirror, scheme: [ basic, digest ], match: { host: 127.0.0.1 }, user: me, password: sesame, plain_http: yes }

            """
        try await with(more: credentials) { _, nginx, larder in
            let said = try await explain(["\(nginx.url)/a"], larder)
            #expect(
                said["origin credential"] == "mirror (basic or digest), sent once the origin has asked for it",
                "\(said)")
            #expect(said["request key"].hasSuffix("/a#credential:mirror") && !"\(said)".contains("sesame"), "\(said)")
        }
    }

    @Test func `a credential that is not sent over http says so`() async throws {
        let credentials = """
            credentials:
              - { name: mirror, scheme: basic, match: { host: 127.0.0.1 }, user: me, password: sesame }

            """
        try await with(more: credentials) { _, nginx, larder in
            let said = try await explain(["\(nginx.url)/a?id_token=s3cret"], larder)
            #expect(
                said["origin credential"]
                    == "mirror, not sent, because it would go over http (plain_http: yes allows it)", "\(said)")
            #expect(said["request key"].hasSuffix("/a?id_token=***") && !"\(said)".contains("s3cret"), "\(said)")
        }
    }

    @Test func `a credential that logs in connections says so`() async throws {
        let credentials = """
            credentials:
              - { name: corp, scheme: [ ntlm, basic ], match: { host: 127.0.0.1 }, user: me, password: sesame, plain_http: yes }

            """
        try await with(more: credentials) { _, nginx, larder in
            let said = try await explain(["\(nginx.url)/a"], larder)
            #expect(
                said["origin credential"]
                    == "corp (basic or ntlm), sent once the origin has asked for it; with ntlm it logs in connections",
                "\(said)")
        }
    }

    @Test func `the credential of a route is named, and whether it logs in connections`() async throws {
        let routes = """
            credentials:
              - { name: corp, scheme: [ negotiate, ntlm, digest ], user: me, password: sesame }
            routes: [ { via: "http://proxy.test:3128", credential: corp } ]

            """
        try await with(more: routes) { _, nginx, larder in
            let said = try await explain(["\(nginx.url)/a"], larder)
            #expect(
                said["origin credential of the route"]
                    == "corp (digest or ntlm or negotiate); with ntlm and negotiate it logs in connections", "\(said)")
            #expect(!"\(said)".contains("sesame"), "\(said)")
        }
    }

    /// The answer is what the proxy then does: for each request explain is asked first, and curl shows what comes.
    @Test func `what it says is what happens`() async throws {
        try await with { place, nginx, larder in
            for path in ["/a", "/nocache"] { _ = try await place.curl("\(nginx.url)\(path)", through: larder) }
            let rows: [(words: [String], method: String, path: String, says: String, comes: String)] = [
                ([], "GET", "/a", "hit", "larder; hit"), ([], "HEAD", "/a", "hit", "larder; hit"),
                (["-H", "Cache-Control: max-age=100000"], "GET", "/a", "hit", "larder; hit"),
                (["-H", "Cache-Control: no-cache"], "GET", "/a", "validate", "larder; fwd=request; fwd-status=304"),
                (["-H", "Cache-Control: min-fresh=9999999"], "GET", "/a", "validate", "larder; fwd=request"),
                (["-H", "Authorization: Basic x"], "GET", "/a", "fetch", "larder; fwd=request"),
                (["-H", "Authorization: NTLM x"], "GET", "/a", "fetch", "larder; fwd=bypass"),
                (["-H", "If-Match: \"x\""], "GET", "/a", "fetch", "larder; fwd=bypass"),
                ([], "GET", "/nocache", "validate", "larder; fwd=stale; fwd-status=304"),
                (
                    ["-H", "Cache-Control: only-if-cached"], "GET", "/new", "refuse",
                    "larder; detail=only-if-cached"
                ),
                ([], "DELETE", "/a", "fetch", "larder; fwd=method"),
                ([], "GET", "/new", "fetch", "larder; fwd=uri-miss"),
            ]
            for row in rows {
                let url = "\(nginx.url)\(row.path)"
                let said = try await explain([row.method, url] + row.words, larder)
                #expect(said.decision == row.says, "\(row): \(said)")
                let method = row.method == "HEAD" ? ["-I"] : ["-X", row.method]
                let words = method + row.words + [url]
                let reply = try await place.curl(words, through: larder)
                #expect(reply.cacheStatus.hasPrefix(row.comes), "\(row): \(reply)")
            }
        }
    }

    @Test func `a log-in that pins the connection is shown`() async throws {
        try await with { _, nginx, larder in
            for scheme in ["NTLM", "Negotiate"] {
                let said = try await explain(["\(nginx.url)/a", "-H", "Authorization: \(scheme) x"], larder)
                #expect(said["origin log-in"].hasPrefix("it authenticates the connection"), "\(said)")
                #expect(said.reason.hasPrefix("this request is not answered from the store"), "\(said)")
            }
            let other = try await explain(["\(nginx.url)/a", "-H", "Authorization: Basic x"], larder)
            #expect(other["origin log-in"] == "-", "\(other)")
        }
    }

    @Test func `after a soft purge it would be validated`() async throws {
        try await with { place, nginx, larder in
            _ = try await place.curl("\(nginx.url)/a", through: larder)
            _ = try await larder.command("purge", "--all", "--soft")
            let said = try await explain(["\(nginx.url)/a"], larder)
            #expect(
                said.decision == "validate" && said.reason.hasPrefix("the stored response was marked stale"), "\(said)")
        }
    }

    @Test func `refusals name the rule, or the address`() async throws {
        let access = """
            access:
              rules:
                - deny: { host: [ closed.example ], reason: closed for today }
                - allow: { client: [ 127.0.0.1 ], port: [ 80, 443 ] }
            """
        try await with(access: access) { _, nginx, larder in
            let rule = try await explain(["http://closed.example/"], larder)
            #expect(rule.decision == "refuse" && rule.reason.hasSuffix("closed for today"), "\(rule)")
            #expect(rule["access verdict"] == "denied by rule 1", "\(rule)")
            let metadata = try await explain(["http://169.254.169.254/"], larder)
            #expect(metadata.decision == "refuse" && metadata.reason.contains("not a public address"), "\(metadata)")
            let port = try await explain(["\(nginx.url)/a"], larder)
            #expect(port.decision == "refuse" && port["access verdict"] == "denied by no-rule", "\(port)")
            #expect(
                port["access denial"] == "port-not-allowed: rule 2 allows this host, but only to port 80, 443",
                "\(port)")
            let client = try await explain(["http://a.example/", "--client", "192.0.2.1"], larder)
            #expect(client.decision == "refuse" && client.reason.contains("not among the clients"), "\(client)")
            let tunnel = try await explain(["CONNECT", "127.0.0.1:443"], larder)
            #expect(tunnel.decision == "refuse", "\(tunnel)")
        }
    }

    @Test func `a user is taken for granted`() async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place)
            let larder = try await Larder.startWithUsers(in: place)
            let nobody = try await explain(["\(nginx.url)/a"], larder)
            #expect(nobody.decision == "refuse" && nobody.reason.hasPrefix("407 "), "\(nobody)")
            #expect(try await explain(["\(nginx.url)/a", "--as", "ali"], larder).decision == "fetch")
            #expect(try await explain(["\(nginx.url)/a", "--as", "eve"], larder).decision == "refuse")
        }
    }

    @Test func `a request for what is on its way would join it`() async throws {
        let gate = Gate()
        try await ScriptedOrigin.with { _, connection in
            gate.wait()
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: max-age=60\r\n\r\nok")
        } _: { origin in
            defer { gate.open() }
            try await Workplace.with { place in
                let larder = try await Larder.start(in: place)
                async let slow = place.curl("\(origin.url)/a", through: larder)
                try await eventually("the request at the origin") { !origin.heads.withLock { $0.isEmpty } }
                #expect(try await explain(["\(origin.url)/a"], larder).decision == "collapse")
                #expect(try await explain(["\(origin.url)/b"], larder).decision == "fetch")
                gate.open()
                #expect(try await slow.text == "ok")
                #expect(origin.heads.withLock { $0.count } == 1)
            }
        }
    }

    static let wrong = [
        ["nonsense"], ["/a"], ["ftp://a/"], ["G T", "http://a/"], ["http://a/", "-H", "Content-Length: x"],
        ["http://a/", "-H", "Host: a", "-H", "Host: b"], ["CONNECT", "http://a/"], ["http://a/", "--client", "me"],
        ["http://u:p@a/"],
    ]
    @Test func `what the proxy would not read is an error of usage`() async throws {
        try await with { place, _, larder in
            for words in Self.wrong {
                let output = try await place.run(
                    Larder.executable, ["explain", "--config", larder.configuration] + words)
                #expect(output.status == 2 && output.err.hasPrefix("larder: "), "\(words): \(output)")
            }
        }
    }
}
