import EventLoop
import Foundation
import Testing

private let name = "registry.example.test"

/// curl, Larder with a credential for a real next proxy, and an origin.
@Suite(
    "Next proxies: log-ins at Squid and microsocks",
    .enabled(
        if: Nginx.isInstalled && Squid.isInstalled && Microsocks.isInstalled, "packages nginx-light, squid, microsocks")
)
struct NextProxyLogInTests {
    /// Larder with a credential for Squid, which asks for this scheme.
    private static func startProving(
        _ scheme: String, password: String = "right", in place: Workplace, more: String = "",
        routes: (Squid) throws -> String = { "{ via: \"http://127.0.0.1:\($0.port)\", credential: corp }" }
    ) async throws -> (squid: Squid, larder: Larder) {
        let tls = try await place.certificate(for: name)
        let squid = try await Squid.start(
            in: place, tls: tls, names: [name],
            demands: scheme == "digest"
                ? .digest(user: "fleet", password: "right") : .basic(user: "fleet", password: "right"))
        let larder = try await Larder.start(
            in: place,
            access: "access: { rules: [ allow: { host: [ 127.0.0.1, \(name) ], port: [ 1-65535 ], tunnel: any } ] }",
            more: """
                tls: { ca_file: \(tls.certificate) }
                credentials: [ { name: corp, scheme: \(scheme), user: fleet, password: \(password) } ]
                routes: [ \(try routes(squid)) ]
                \(more)
                """)
        return (squid, larder)
    }

    @Test(arguments: ["basic", "digest"], ["Content-Length", "chunked"])
    func `the body of a request waits for Squid's consent, and goes out once`(
        _ scheme: String, _ framing: String
    ) async throws {
        try await Workplace.with { place in
            let (squid, larder) = try await Self.startProving(scheme, in: place)
            let body = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) })
            try place.write("body", body, age: 0)
            let bodies = Locked<[Data]>([])
            try await ScriptedOrigin.with({ head, connection in
                bodies.withLock { $0.append(connection.readBody(after: head)) }
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\nreceived")
            }) { origin in
                let chunked = framing == "chunked" ? ["-H", "Transfer-Encoding: chunked"] : []
                for number in 1...2 {
                    let reply = try await place.curl(
                        chunked + ["--data-binary", "@\(place.path("body"))", "\(origin.url)/\(number)"],
                        through: larder)
                    #expect(reply.text == "received", "\(reply)")
                }
                #expect(bodies.withLock { $0 } == [body, body], "each once, and whole")
                #expect(origin.heads.withLock { $0 }.allSatisfy { !$0.contains("Proxy-Authorization") })
            }
            await larder.child.stop()
            try await eventually("squid logs both; it has \(squid.asked)") {
                squid.asked.count { $0.hasPrefix("POST ") && $0.contains(" 200 \"fleet\"") } == 2
            }
        }
    }

    @Test(arguments: ["basic", "digest"]) func `a tunnel that Larder opens is dialled through Squid with the log-in`(
        _ scheme: String
    ) async throws {
        try await Workplace.with { place in
            let made = try await place.run(
                Larder.executable, ["ca", "create", "--out", place.path("ca"), "--host", name])
            try #require(made.status == 0, "\(made)")
            let (squid, larder) = try await Self.startProving(
                scheme, in: place,
                more: """
                    intercept:
                      ca: { certificate: \(place.path("ca/intermediate.pem")), key: \(place.path("ca/intermediate.key")) }
                      hosts: [ \(name) ]
                    """)
            let tls = (certificate: place.path("certificate.pem"), key: place.path("key.pem"))
            let nginx = try await Nginx.start(in: place, server: "add_header Cache-Control 'max-age=600';", tls: tls)
            try place.write("www/file", "from the origin".utf8)
            for _ in 1...2 {
                let reply = try await place.curl(
                    "--cacert", place.path("ca/root.pem"), "https://\(name):\(nginx.port)/file", through: larder)
                #expect(reply.text == "from the origin", "\(reply)")
            }
            #expect(nginx.asked("/file").count == 1, "what Larder reads is stored")
            #expect(nginx.asked("/file").allSatisfy { $0.contains("pa=\"-\"") })
            await larder.child.stop()
            try await eventually("squid knows the user; it has \(squid.asked)") {
                squid.asked.contains { $0.hasPrefix("CONNECT \(name):") && $0.hasSuffix("200 \"fleet\"") }
            }
        }
    }

    @Test(arguments: ["basic", "digest"], ["http", "https"])
    func `after three wrong passwords Squid gets none any more, and the client is told the same each time`(
        _ scheme: String, _ request: String
    ) async throws {
        try await Workplace.with { place in
            let (squid, larder) = try await Self.startProving(scheme, password: "wrong", in: place)
            var refusals: Set<String> = []
            for number in 1...5 {
                let url = "\(request)://127.0.0.1:\(20 + number)/"
                let reply = try await place.curl("-k", url, through: larder)
                refusals.insert(
                    reply.heads.components(separatedBy: "\r\n").filter { line in
                        ["HTTP/1.1", "Cache-Status", "Proxy-Status", "Proxy-Authenticate"].contains {
                            line.hasPrefix($0)
                        }
                    }.joined(separator: "\n"))
            }
            #expect(
                refusals == [
                    """
                    HTTP/1.1 502 Bad Gateway
                    Cache-Status: larder; detail=next-proxy-log-in
                    Proxy-Status: larder; error=proxy_configuration_error; details="next-proxy-log-in"
                    """
                ])
            let output = try await larder.command("stats", "--json")
            #expect(output.out.contains("\"given_up\":true"), "\(output.out)")
            #expect(larder.child.errors.contains("does not accept the user and the password"), "\(larder.child.errors)")
            await larder.child.stop()
            let attempts = try await eventually("squid logs three passwords; it has \(squid.asked)") {
                () async throws -> [String]? in
                let attempts = squid.asked.filter { $0.hasSuffix("407 \"fleet\"") }
                return attempts.count >= 3 ? attempts : nil
            }
            #expect(attempts.count == 3, "\(attempts)")
            #expect(!squid.asked.contains { $0.contains("127.0.0.1:24") || $0.contains("127.0.0.1:25") })
        }
    }

    @Test(arguments: ["right", "wrong"]) func `a SOCKS proxy gets user and password of the credential`(
        _ password: String
    ) async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place)
            try place.write("www/file", "from the origin".utf8)
            let socks = try await Microsocks.start(in: place, user: "fleet", password: "right")
            let larder = try await Larder.start(
                in: place,
                access: "access: { rules: [ allow: { host: [ 127.0.0.1 ], port: [ 1-65535 ], tunnel: any } ] }",
                more: """
                    credentials: [ { name: corp, scheme: basic, user: fleet, password: \(password) } ]
                    routes: [ { via: "socks5://127.0.0.1:\(socks.port)", credential: corp } ]
                    """)
            for more in [[], ["--proxytunnel"]] {
                let reply = try await place.curl(more + ["\(nginx.url)/file"], through: larder)
                if password == "right" {
                    #expect(reply.text == "from the origin", "\(reply)")
                } else {
                    #expect(reply.heads.contains("detail=next-proxy-log-in"), "\(reply)")
                }
            }
            #expect(nginx.asked("/file").count == (password == "right" ? 2 : 0))
            #expect(!larder.child.errors.contains("\(password)"), "\(larder.child.errors)")
        }
    }

    @Test func `a PAC file names Squid, and only on the port that is listed it gets the credential`() async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place)
            try place.write("www/file", "from the origin".utf8)
            let (squid, larder) = try await Self.startProving("basic", in: place) { squid in
                let script =
                    "function FindProxyForURL(url, host) { return host == '\(name)' ? 'HTTPS 127.0.0.1:\(squid.securePort)' : 'PROXY 127.0.0.1:\(squid.port)'; }"
                try place.write("proxy.pac", script.utf8)
                return """
                    { pac: \(place.path("proxy.pac")), credential: corp, proxies: "http://127.0.0.1:\(squid.port)" }
                    """
            }
            let reply = try await place.curl("\(nginx.url)/file", through: larder)
            #expect(reply.text == "from the origin", "\(reply)")
            let refused = try await place.curl("http://\(name):\(nginx.port)/file", through: larder)
            #expect(refused.status == 502 && refused.cacheStatus.contains("detail=next-proxy-log-in"), "\(refused)")
            let explained = try await larder.command("explain", "\(nginx.url)/another")
            #expect(explained.out.contains("corp (basic)"), "\(explained)")
            await larder.child.stop()
            try await eventually("squid knows the user; it has \(squid.asked)") {
                squid.asked.contains { $0.hasSuffix("200 \"fleet\"") }
            }
            #expect(!squid.asked.contains { $0.contains(name) && $0.contains("fleet") }, "\(squid.asked)")
        }
    }
}
