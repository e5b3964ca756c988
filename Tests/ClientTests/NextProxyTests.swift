import Foundation
import Testing

/// curl, Larder, a real next proxy, and nginx.
@Suite(
    "Next proxies: Squid and Dante",
    .enabled(
        if: Nginx.isInstalled && Squid.isInstalled && Dante.isInstalled, "packages nginx-light, squid, dante-server"))
struct NextProxyTests {
    private static let name = "registry.example.test"

    /// How Larder reaches the next proxy.
    enum Hop: String, CaseIterable, Sendable { case http, https, socks5 }
    /// How the client asks.
    enum Request: String, CaseIterable, Sendable { case http, tunnel, opened }

    struct Row: Sendable, CustomTestStringConvertible {
        let hop: Hop
        let request: Request
        var testDescription: String { "\(request.rawValue) through \(hop.rawValue)" }
        /// Dante knows no names of ours, and Larder certifies no addresses.
        var host: String { request == .opened ? NextProxyTests.name : "127.0.0.1" }
    }
    static let rows = Hop.allCases.flatMap { hop in
        Request.allCases.filter { hop != .socks5 || $0 != .opened }.map { Row(hop: hop, request: $0) }
    }

    private static func start(
        _ row: Row, in place: Workplace, user: (name: String, password: String)? = nil, logIn: String = ""
    ) async throws -> (nginx: Nginx, squid: Squid?, larder: Larder) {
        let tls = try await place.certificate(for: name)
        let nginx = try await Nginx.start(
            in: place, server: "add_header Cache-Control 'max-age=600';", tls: row.request == .http ? nil : tls)
        try place.write("www/file", "from the origin".utf8)
        let made = try await place.run(Larder.executable, ["ca", "create", "--out", place.path("ca"), "--host", name])
        try #require(made.status == 0, "\(made)")
        var squid: Squid?
        let url: String
        if row.hop == .socks5 {
            url = "socks5://127.0.0.1:\(try await Dante.start(in: place, blockedPort: 9).port)"
        } else {
            let started = try await Squid.start(
                in: place, tls: tls, names: [name],
                demands: user.map { .basic(user: $0.name, password: $0.password) } ?? .nothing)
            squid = started
            url = "\(row.hop.rawValue)://\(logIn)127.0.0.1:\(row.hop == .http ? started.port : started.securePort)"
        }
        let larder = try await Larder.start(
            in: place,
            access: "access: { rules: [ allow: { host: [ 127.0.0.1, \(name) ], port: [ 1-65535 ] } ] }",
            more: """
                tls: { ca_file: \(tls.certificate) }
                intercept:
                  ca: { certificate: \(place.path("ca/intermediate.pem")), key: \(place.path("ca/intermediate.key")) }
                  hosts: [ \(name) ]
                routes: [ { via: "\(url)" } ]
                """)
        return (nginx, squid, larder)
    }

    @Test(arguments: rows) func `a download comes through`(_ row: Row) async throws {
        try await Workplace.with { place in
            let (nginx, squid, larder) = try await Self.start(row, in: place)
            let trusted = place.path(row.request == .opened ? "ca/root.pem" : "certificate.pem")
            let url = "\(row.request == .http ? "http" : "https")://\(row.host):\(nginx.port)/file"
            for _ in 1...2 {
                let reply = try await place.curl("--cacert", trusted, url, through: larder)
                #expect(reply.text == "from the origin", "\(reply)")
            }
            #expect(nginx.asked("/file").count == (row.request == .tunnel ? 2 : 1), "what Larder reads is stored")
            guard let squid else { return }
            // Squid logs a tunnel at its end, and Larder keeps it for the next request.
            await larder.child.stop()
            let method = row.request == .http ? "GET http://" : "CONNECT "
            try await eventually("squid logs it; it has \(squid.asked)") {
                squid.asked.contains { $0.hasPrefix("\(method)\(row.host):\(nginx.port)") && $0.hasSuffix("200 \"-\"") }
            }
        }
    }

    @Test(arguments: [Hop.http, .https], [Request.http, .tunnel, .opened])
    func `the user and the password of the route are accepted, and reach nobody else`(
        _ hop: Hop, _ request: Request
    ) async throws {
        try await Workplace.with { place in
            let row = Row(hop: hop, request: request)
            let (nginx, squid, larder) = try await Self.start(
                row, in: place, user: ("fleet", "p@ss:%"), logIn: "fleet:p%40ss%3A%25@")
            let trusted = place.path(row.request == .opened ? "ca/root.pem" : "certificate.pem")
            let url = "\(row.request == .http ? "http" : "https")://\(row.host):\(nginx.port)/file"
            let reply = try await place.curl("--cacert", trusted, url, through: larder)
            #expect(reply.text == "from the origin", "\(reply)")
            #expect(nginx.asked("/file").allSatisfy { $0.contains("pa=\"-\"") })
            await larder.child.stop()
            try await eventually("squid knows the user") {
                squid?.asked.contains { $0.hasSuffix("200 \"fleet\"") } == true
            }
        }
    }

    @Test(arguments: ["", "fleet:wrong@"], [Request.http, .tunnel])
    func `a wrong password, or none, is told to the operator and not asked of the client`(
        _ logIn: String, _ request: Request
    ) async throws {
        try await Workplace.with { place in
            let row = Row(hop: .http, request: request)
            let (nginx, _, larder) = try await Self.start(row, in: place, user: ("fleet", "right"), logIn: logIn)
            let url = "\(request == .http ? "http" : "https")://127.0.0.1:\(nginx.port)/file"
            let reply = try await place.curl("-k", url, through: larder)
            #expect(reply.heads.contains("HTTP/1.1 502"), "\(reply)")
            #expect(reply.heads.contains("error=proxy_configuration_error"), "\(reply)")
            #expect(!reply.heads.lowercased().contains("proxy-authenticate"), "\(reply)")
            #expect(larder.child.errors.contains("does not accept the user and the password"), "\(larder.child.errors)")
            #expect(!larder.child.errors.contains("wrong@"), "\(larder.child.errors)")
        }
    }

    @Test(arguments: [Hop.http, .https], ["basic", "digest"])
    func `the credential of a rule is proven as Squid asks for it`(_ hop: Hop, _ scheme: String) async throws {
        try await Workplace.with { place in
            let tls = try await place.certificate(for: Self.name)
            let nginx = try await Nginx.start(in: place, server: "add_header Cache-Control 'no-store';")
            try place.write("www/file", "from the origin".utf8)
            let squid = try await Squid.start(
                in: place, tls: tls, names: [Self.name],
                demands: scheme == "digest"
                    ? .digest(user: "fleet", password: "right") : .basic(user: "fleet", password: "right"))
            let port = hop == .http ? squid.port : squid.securePort
            let larder = try await Larder.start(
                in: place,
                access: "access: { rules: [ allow: { host: [ 127.0.0.1 ], port: [ 1-65535 ], tunnel: any } ] }",
                more: """
                    tls: { ca_file: \(tls.certificate) }
                    credentials: [ { name: corp, scheme: \(scheme), user: fleet, password: right } ]
                    routes: [ { via: "\(hop.rawValue)://127.0.0.1:\(port)", credential: corp } ]
                    """)
            let url = "http://127.0.0.1:\(nginx.port)/file"
            for more in [[], ["--proxytunnel"]] {
                let reply = try await place.curl(more + [url], through: larder)
                #expect(reply.text == "from the origin", "\(reply)")
            }
            #expect(nginx.asked("/file").allSatisfy { $0.contains("pa=\"-\"") })
            await larder.child.stop()
            try await eventually("squid knows the user") {
                squid.asked.filter { $0.hasSuffix("200 \"fleet\"") }.count >= 2
            }
        }
    }

    @Test func `what Dante's rules block is refused`() async throws {
        try await Workplace.with { place in
            let (_, _, larder) = try await Self.start(Row(hop: .socks5, request: .http), in: place)
            let reply = try await place.curl("http://127.0.0.1:9/", through: larder)
            #expect(reply.status == 502 && reply.cacheStatus.contains("detail=next-proxy-refused"), "\(reply)")
        }
    }
}
