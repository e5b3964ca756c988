import Foundation
import ProgramUnderTest
import Testing

/// curl logs in through Larder to servers that authenticate connections.
@Suite("RFC 4559 §6: log-ins of clients with NTLM and Negotiate, with real programs")
struct PinnedLogInTests {
    private static func larder(in place: Workplace) async throws -> Larder {
        let adminPort = FreePort.take()
        let text = Larder.configuration(
            in: place, adminPort: adminPort,
            access: "access: { rules: [ allow: { host: localhost, address: 127.0.0.1, port: 1-65535 } ] }",
            more: "workers: 1")
        return try await Larder.start(
            in: place, text: text.replacing("level: info", with: "level: debug, debug: [ connections ]"),
            adminPort: adminPort)
    }

    /// The contents that curl got, one behind the other.
    private func curl(_ words: [String], _ larder: Larder, environment: [String: String] = [:]) async throws -> String {
        let said = try await larder.place.run(
            "curl", ["-q", "-sS", "-m", "50", "-x", larder.url] + words, environment: environment)
        #expect(said.status == 0, "\(said.err) \(larder.child.errors)")
        return said.out
    }

    private static let mechanisms = NegotiatingApache.Mechanism.allCases.filter(NegotiatingApache.isInstalled)

    /// The steps before the last one of a log-in.
    private static func steps(_ mechanism: NegotiatingApache.Mechanism) -> Int { mechanism == .ntlm ? 1 : 0 }

    @Test(
        .enabled(if: !mechanisms.isEmpty, "packages apache2-bin, libapache2-mod-auth-gssapi, krb5-kdc, gss-ntlmssp"),
        arguments: mechanisms)
    func `curl logs in with Negotiate once for all its requests`(_ mechanism: NegotiatingApache.Mechanism) async throws
    {
        try await Workplace.with { place in
            let apache = try await NegotiatingApache.start(in: place, mechanism, files: ["file": "for fleet;"])
            defer { apache.stop() }
            let larder = try await Self.larder(in: place)
            let url = "http://localhost:\(apache.port)"
            try place.write("upload", "0123456789".utf8)
            let user = ["--negotiate", "-u", ":"]
            let contents = try await curl(
                user + ["\(url)/file", "\(url)/file", "--next", "-q", "-sS", "-x", larder.url] + user
                    + ["-o", place.path("said"), "-T", place.path("upload"), "\(url)/new"], larder,
                environment: apache.clientEnvironment)
            #expect(contents == "for fleet;for fleet;", "\(larder.child.errors)")
            #expect(place.bytes("apache/www/new") == Array("0123456789".utf8))
            let steps = (0..<Self.steps(mechanism)).map { "GET /file 401 - \($0)" }
            let requests = ["GET /file 200", "GET /file 200", "PUT /new 201"].enumerated().map { index, request in
                "\(request) \(apache.user) \(steps.count + index)"
            }
            try await eventually("all came on one connection: \(apache.asked)") { apache.asked == steps + requests }
            // Whoever comes next is a stranger there, and gets nothing that came for the user.
            let stranger = try await place.curl("\(url)/file", through: larder)
            #expect(stranger.status == 401 && stranger.heads.contains("WWW-Authenticate: Negotiate\r\n"), "\(stranger)")
            #expect(stranger.fields["proxy-support"] == "Session-Based-Authentication", "\(stranger)")
        }
    }

    @Test(
        .enabled(if: NegotiatingApache.isInstalled(.kerberos), "packages libapache2-mod-auth-gssapi, krb5-kdc"))
    func `an upload that logs in arrives once`() async throws {
        try await Workplace.with { place in
            let apache = try await NegotiatingApache.start(in: place, .kerberos, files: [:])
            defer { apache.stop() }
            let larder = try await Self.larder(in: place)
            let content = String(repeating: "0123456789abcdef", count: 16384)
            try place.write("upload", content.utf8)
            for name in ["one", "two"] {
                _ = try await curl(
                    ["--negotiate", "-u", ":", "-T", place.path("upload"), "http://localhost:\(apache.port)/\(name)"],
                    larder, environment: apache.clientEnvironment)
                #expect(place.bytes("apache/www/\(name)") == Array(content.utf8), "\(apache.asked)")
            }
            let accepted = ["one", "two"].map { "PUT /\($0) 201 \(apache.user) 0" }
            // Apache writes its log after the response.
            try await eventually("each was accepted once: \(apache.asked)") {
                apache.asked.filter { $0.contains(" 201 ") } == accepted
            }
        }
    }

    @Test(.enabled(if: NTLMSquid.isInstalled && Nginx.isInstalled, "packages squid, nginx-light"))
    func `curl logs in with NTLM, and what it sends arrives`() async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(
                in: place,
                server: """
                    # It waits for the whole of a body before it asks on.
                    location / { proxy_pass http://127.0.0.1:$server_port/told; }
                    location = /told { add_header Cache-Control max-age=60; return 200 "$request_method $content_length;"; }
                    """)
            let squid = try await NTLMSquid.start(in: place, before: nginx.port)
            let larder = try await Self.larder(in: place)
            let url = "http://localhost:\(squid.port)"
            let user = ["--ntlm", "-u", "fleet:open sesame"]
            #expect(try await curl(user + ["\(url)/a", "\(url)/a"], larder) == "GET ;GET ;")
            #expect(try await curl(user + ["-d", "0123456789", "\(url)/b", "\(url)/b"], larder) == "POST 10;POST 10;")
            try await eventually("squid has written its log: \(squid.asked)") { squid.asked.count == 6 }
            let asked = squid.asked
            let seen = asked.map { $0.prefix(3).joined(separator: " ") }
            #expect(
                seen == [
                    "GET /a 401", "GET /a 200", "GET /a 200", "POST /b 401", "POST /b 200", "POST /b 200",
                ])
            #expect(asked.filter { $0[2] == "200" }.allSatisfy { $0.last?.contains("fleet") == true }, "\(asked)")
            // Each run of curl has one connection to the origin.
            let ports = asked.map { $0[3] }
            #expect(Set(ports[..<3]).count == 1 && Set(ports[3...]).count == 1 && ports[0] != ports[3], "\(asked)")
            let stranger = try await place.curl("\(url)/a", through: larder)
            #expect(stranger.status == 401 && stranger.fields["www-authenticate"] == "NTLM", "\(stranger)")
            #expect(larder.child.errors.contains("connections: \(url): a pin to one client connection begins"))
            try await eventually("the log says why the pin ends: \(larder.child.errors)") {
                larder.child.errors.contains("connections: \(url): the pin ends, the client connection has closed: ")
            }
        }
    }
}
