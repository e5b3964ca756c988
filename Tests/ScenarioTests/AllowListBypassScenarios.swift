import Access
import EventLoop
import Foundation
import Message
import Origins
import Rules
import Server
import Settings
import TLS
import Testing

/// The known ways round an allow-list. A rule allows `allowed.test`; what a row tries to reach is `denied.test`, another server on another address with
/// the same port. What counts is what arrives there, and for which host.
@Suite("Known ways round an allow-list") struct AllowListBypassScenarios {
    /// The two servers, and what the rules say.
    private struct Site {
        let allowed: RecordingOrigin
        let denied: RecordingOrigin
        var port: UInt16 { allowed.port }

        /// PORT is the port of both servers.
        func text(_ template: String) -> [UInt8] {
            Array(template.replacing("PORT", with: "\(port)").utf8)
        }
    }

    private static func withSite(
        rule change: (inout AccessRule) -> Void = { _ in },
        configure: (inout Configuration, Scenario.Files) throws -> Void = { _, _ in },
        _ play: (Scenario, Site) throws -> Void
    ) throws {
        let (allowed, denied) = try RecordingOrigin.pair(
            "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nallowed", RecordingOrigin.page)
        defer {
            allowed.end()
            denied.end()
        }
        try scenario(
            { configuration, files in
                configuration.dns.hosts = [
                    DNSEntry(name: "allowed.test", values: [IPAddress(v4: 0x7F00_0001)]),
                    DNSEntry(name: "*.test", values: [IPAddress(v4: 0x7F00_0002)]),
                ]
                var conditions = RuleConditions()
                conditions.hosts = [HostPattern("allowed.test")!]
                var rule = AccessRule(effect: .allow, conditions: conditions, number: 1)
                change(&rule)
                configuration.access.rules = [rule]
                configuration.access.connectPorts = [allowed.port...allowed.port]
                try configure(&configuration, files)
            }, { try play($0, Site(allowed: allowed, denied: denied)) })
    }

    /// Bytes of a client, which has one connection.
    struct Row: Sendable, CustomTestStringConvertible {
        let what: String
        let bytes: String
        /// The statuses that the client gets, in their order, until the connection ends or as many have come.
        let statuses: [Int]
        var testDescription: String { what }

        init(_ what: String, _ bytes: String, _ statuses: Int...) {
            self.what = what
            self.bytes = bytes
            self.statuses = statuses
        }

        /// A GET in absolute-form, with a Host field that a client would send.
        static func get(_ what: String, _ uri: String, _ status: Int, host: String = "allowed.test:PORT") -> Row {
            Row(what, "GET \(uri) HTTP/1.1\r\nHost: \(host)\r\n\r\n", status)
        }
    }

    static let rows: [Row] = [
        .get("the plain way", "http://denied.test:PORT/", 403),
        .get("Host against the target: the target counts", "http://denied.test:PORT/", 403, host: "allowed.test:PORT"),
        Row(
            "two Host fields",
            "GET http://allowed.test:PORT/ HTTP/1.1\r\nHost: allowed.test:PORT\r\nHost: denied.test:PORT\r\n\r\n", 400),
        Row("origin-form with a foreign Host", "GET / HTTP/1.1\r\nHost: denied.test:PORT\r\n\r\n", 400),
        .get("user information", "http://allowed.test:80@denied.test:PORT/", 400),
        .get("user information without a password", "http://allowed.test@denied.test:PORT/", 400),
        .get("a backslash before the at sign", "http://allowed.test:PORT\\@denied.test:PORT/", 400),
        .get("a backslash for a slash", "http:\\\\denied.test:PORT/", 400),
        .get("a backslash in the authority", "http://denied.test:PORT\\.allowed.test/", 400),
        .get("a NUL", "http://denied.test\0.allowed.test:PORT/", 400),
        .get("an encoded NUL", "http://denied.test%00.allowed.test:PORT/", 400),
        .get("an encoded dot", "http://denied%2Etest:PORT/", 400),
        .get("an encoded host", "http://%64enied.test:PORT/", 400),
        .get("a full stop of another alphabet", "http://denied\u{3002}test:PORT/", 400),
        .get("letters of full width", "http://\u{FF44}enied.test:PORT/", 400),
        .get("a trailing dot", "http://denied.test.:PORT/", 403),
        .get("two trailing dots", "http://allowed.test..:PORT/", 400),
        .get("a longer name", "http://allowed.test.denied.test:PORT/", 403),
        .get("a name before it", "http://notallowed.test:PORT/", 403),
        .get("a space", "http://denied.test :PORT/", 400),
        .get("a tabulator", "http://denied.test\t:PORT/", 400),
        .get("a comma", "http://allowed.test,denied.test:PORT/", 400),
        .get("a fragment", "http://denied.test:PORT#@allowed.test/", 400),
        .get("a query in the place of the path", "http://denied.test:PORT?@allowed.test/", 403),
        .get("IPv4", "http://127.0.0.2:PORT/", 403), .get("an integer", "http://2130706434:PORT/", 403),
        .get("octal", "http://0177.0.0.2:PORT/", 403), .get("hexadecimal", "http://0x7f.0.0.2:PORT/", 403),
        .get("a short form", "http://127.2:PORT/", 403), .get("mapped", "http://[::ffff:127.0.0.2]:PORT/", 403),
        .get("mapped, in hexadecimal", "http://[::ffff:7f00:2]:PORT/", 403),
        .get("NAT64", "http://[64:ff9b::7f00:2]:PORT/", 403), .get("6to4", "http://[2002:7f00:2::1]:PORT/", 403),
        .get("IPv4-compatible", "http://[::7f00:2]:PORT/", 403), .get("a zone", "http://[fe80::1%25lo]:PORT/", 400),
        .get("ftp", "ftp://denied.test:PORT/", 400), .get("gopher", "gopher://denied.test:PORT/_x", 400),
        .get("file", "file://denied.test:PORT/etc/passwd", 400), .get("ws", "ws://denied.test:PORT/", 400),
        .get("https", "https://denied.test:PORT/", 403), .get("no slashes", "http:denied.test:PORT/", 400),
        .get("metadata of clouds", "http://169.254.169.254/latest/meta-data/", 403),
        Row("CONNECT", "CONNECT denied.test:PORT HTTP/1.1\r\nHost: denied.test:PORT\r\n\r\n", 403),
        Row(
            "CONNECT with another Host field", "CONNECT denied.test:PORT HTTP/1.1\r\nHost: allowed.test:PORT\r\n\r\n",
            403),
        Row("CONNECT with user information", "CONNECT allowed.test@denied.test:PORT HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        Row("CONNECT with a URI", "CONNECT http://denied.test:PORT/ HTTP/1.1\r\nHost: denied.test:PORT\r\n\r\n", 400),
        Row("CONNECT to metadata", "CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: 169.254.169.254:80\r\n\r\n", 403),
        Row(
            "what follows a refused CONNECT",
            "CONNECT denied.test:PORT HTTP/1.1\r\nHost: denied.test:PORT\r\n\r\nGET http://denied.test:PORT/ HTTP/1.1\r\n\r\n",
            403),
        Row(
            "smuggling: two lengths (CL.TE)",
            "POST http://allowed.test:PORT/ HTTP/1.1\r\nHost: allowed.test:PORT\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "0\r\n\r\nGET http://denied.test:PORT/ HTTP/1.1\r\nHost: denied.test:PORT\r\n\r\n", 400),
        Row(
            "smuggling: two values of Content-Length",
            "POST http://allowed.test:PORT/ HTTP/1.1\r\nHost: allowed.test:PORT\r\nContent-Length: 4\r\nContent-Length: 60\r\n\r\n"
                + "GET http://denied.test:PORT/ HTTP/1.1\r\nHost: denied.test:PORT\r\n\r\n", 400),
        Row(
            "smuggling: a line that is folded",
            "GET http://allowed.test:PORT/ HTTP/1.1\r\nHost: allowed.test:PORT\r\nX: a\r\n Host: denied.test\r\n\r\n",
            400),
        Row(
            "smuggling: a space before the colon",
            "GET http://allowed.test:PORT/ HTTP/1.1\r\nHost: allowed.test:PORT\r\nTransfer-Encoding : chunked\r\n\r\n",
            400),
        Row(
            "smuggling: CR alone",
            "GET http://allowed.test:PORT/ HTTP/1.1\r\nHost: allowed.test:PORT\r\nX: a\rHost: denied.test\r\n\r\n", 400),
        Row(
            "smuggling: a second request on the connection is decided on its own",
            "GET http://allowed.test:PORT/ HTTP/1.1\r\nHost: allowed.test:PORT\r\n\r\n"
                + "GET http://denied.test:PORT/ HTTP/1.1\r\nHost: denied.test:PORT\r\n\r\n", 200, 403),
    ]

    @Test(arguments: rows) func `nothing arrives at the host that is not allowed`(_ row: Row) throws {
        try Self.withSite { s, site in
            let client = try s.client()
            try client.wire.write(site.text(row.bytes))
            for status in row.statuses { #expect(try client.response(to: "GET").status == status) }
            #expect(site.denied.connectionCount == 0)
            #expect(!String(decoding: site.allowed.bytes, as: UTF8.self).contains("denied.test"))
            if row.statuses.first != 200 { #expect(site.allowed.connectionCount == 0) }
        }
    }

    @Test func `what is allowed arrives, with the host that was judged`() throws {
        try Self.withSite { s, site in
            let answer = try s.client().get("http://allowed.test:\(site.port)/", "Host: denied.test:\(site.port)")
            #expect(answer.text == "allowed", "\(answer)")
            #expect(
                String(decoding: site.allowed.bytes, as: UTF8.self).contains("\r\nHost: allowed.test:\(site.port)\r\n"))
            #expect(!String(decoding: site.allowed.bytes, as: UTF8.self).contains("denied.test"))
        }
    }

    // MARK: in tunnels to the host that is allowed

    static let inside: [(what: String, bytes: [UInt8])] = [
        ("fronting by SNI", HelloBytes(name: "denied.test").bytes), ("fronting without SNI", HelloBytes().bytes),
        (
            "fronting by an encrypted hello",
            HelloBytes(name: "public.test", encryptedHello: HelloBytes.grease).bytes
        ),
        ("HTTP to another host", Array("GET / HTTP/1.1\r\nHost: denied.test\r\n\r\n".utf8)),
        ("HTTP in absolute-form", Array("GET http://denied.test/ HTTP/1.1\r\nHost: denied.test\r\n\r\n".utf8)),
        ("HTTP/2 in plain text", Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)),
        ("a proxy there, by CONNECT", Array("CONNECT denied.test:443 HTTP/1.1\r\nHost: denied.test:443\r\n\r\n".utf8)),
        ("a proxy there, by SOCKS 4", [4, 1, 0, 80, 127, 0, 0, 2, 0]), ("a proxy there, by SOCKS 5", [5, 1, 0]),
        ("a tunnel of another protocol", [0, 0x5B, 0, 1] + Array("openvpn".utf8)),
        ("WebSocket without TLS", Array("GET / HTTP/1.1\r\nHost: allowed.test\r\nUpgrade: websocket\r\n\r\n".utf8)),
    ]

    @Test(arguments: inside)
    func `nothing goes through an allowed tunnel that asks for another host`(_ row: (what: String, bytes: [UInt8]))
        throws
    {
        try Self.withSite { s, site in
            let client = try s.tunnel(to: "allowed.test:\(site.port)")
            try client.wire.write(row.bytes)
            _ = try? client.reader.untilEnd()
            #expect(site.allowed.bytes.isEmpty, "\(row.what)")
            #expect(site.denied.connectionCount == 0)
        }
    }

    @Test(arguments: [22, 25, 80, 853, 8443]) func `a tunnel to another port of the host is refused`(_ port: Int) throws
    {
        try Self.withSite(rule: { $0.conditions.ports = [443...443] }) { s, site in
            let answer = try s.client().request("CONNECT", "allowed.test:\(port)")
            #expect(answer.status == 403)
            #expect(site.allowed.connectionCount == 0)
        }
    }

    // MARK: what an allowed host is used for

    /// A host that serves many, or takes uploads: method and path conditions hold, in opened tunnels too.
    static let uses: [(what: String, method: String, path: String)] = [
        ("push", "POST", "/project/git-receive-pack"), ("an upload", "PUT", "/project/file"),
        ("another tenant", "GET", "/stranger/file"), ("another tenant by dots", "GET", "/project/../stranger/file"),
        ("another tenant by encoded dots", "GET", "/project/%2e%2e/stranger/file"),
        ("another tenant by an encoded slash", "GET", "/project/..%2fstranger/file"),
        ("a query to a resolver (DoH)", "POST", "/dns-query"),
        ("a query to a resolver by GET", "GET", "/dns-query?dns=AAAB"),
        ("a method that the origin might obey", "PROPFIND", "/project/"),
    ]

    @Test(arguments: uses, [true, false])
    func `an allowed host is there for what the rule says`(
        _ row: (what: String, method: String, path: String), _ isOpened: Bool
    ) throws {
        let certificate = try MadeCertificate(for: "DNS:allowed.test")
        let origin = try TLSOrigin(certificate, .answers("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
        defer { origin.end() }
        try Self.withSite(
            rule: { rule in
                rule.conditions.methods = ["GET", "HEAD"]
                rule.conditions.paths = [PathPattern("/project/*")!]
                rule.number = 2
            },
            configure: { configuration, files in
                try files.intercept("allowed.test", in: &configuration)
                configuration.tls.caFile = try files.write("ca.pem", certificate.certificate)
                var connect = RuleConditions()
                connect.hosts = [HostPattern("allowed.test")!]
                connect.methods = ["CONNECT"]
                configuration.access.rules.insert(AccessRule(effect: .allow, conditions: connect, number: 1), at: 0)
            }
        ) { s, site in
            if isOpened {
                let authority = "allowed.test:\(origin.port)"
                let client = try s.secureTunnel(to: authority)
                try client.askInside(row.method, row.path, host: authority, body: row.method == "GET" ? nil : "x")
                #expect(try client.response(to: row.method).status == 403, "\(row.what)")
                let fair = try s.secureTunnel(to: authority)
                #expect(try fair.getInside("/project/file", host: authority).status == 200)
                #expect(origin.heads.count == 1)
            } else {
                let answer = try s.client().request(row.method, "http://allowed.test:\(site.port)\(row.path)")
                #expect(answer.status == 403, "\(row.what)")
                #expect(site.allowed.connectionCount == 0)
            }
        }
    }

    @Test func `in an opened tunnel, each request is for the host of the tunnel`() throws {
        try Self.withSite(configure: { try $1.intercept("allowed.test", in: &$0) }) { s, site in
            for line in ["GET /", "GET https://denied.test:\(site.port)/", "GET http://allowed.test:\(site.port)/"] {
                let client = try s.secureTunnel(to: "allowed.test:\(site.port)")
                try client.send("\(line) HTTP/1.1\r\nHost: denied.test:\(site.port)\r\n\r\n")
                #expect(try client.response().status == 421, "\(line)")
            }
            #expect(site.denied.connectionCount == 0)
            #expect(site.allowed.connectionCount == 0)
        }
    }

    /// WebSocket passes where GET does: a rule with a method cannot tell. One for the path can.
    @Test func `an upgrade is a GET, and the rules for its path hold`() throws {
        try Self.withSite(rule: { $0.conditions.paths = [PathPattern("/project/*")!] }) { s, site in
            let answer = try s.client().get(
                "http://allowed.test:\(site.port)/socket", "Connection: Upgrade", "Upgrade: websocket")
            #expect(answer.status == 403)
            #expect(site.allowed.connectionCount == 0)
        }
    }

    // MARK: by way of somebody else

    @Test(arguments: [
        "http://denied.test:PORT/", "//denied.test:PORT/", "http://127.0.0.2:PORT/", "http://169.254.169.254/",
    ])
    func `a redirect of an allowed host leads nowhere else, whoever follows it`(_ place: String) throws {
        for followed in [true, false] {
            try Self.withSite(
                rule: { $0.conditions.hosts.append(HostPattern("redirecting.test")!) },
                configure: { configuration, files in
                    configuration.dns.hosts.insert(
                        DNSEntry(name: "redirecting.test", values: [IPAddress(v4: 0x7F00_0001)]), at: 0)
                    configuration.origins = followed ? [OriginRule(RuleConditions(), redirectsMax: 3, number: 1)] : []
                }
            ) { s, site in
                let location = String(decoding: site.text(place), as: UTF8.self)
                s.origin.expects("GET /a").replies(302, "Location: \(location)")
                let answer = try s.client().get("http://redirecting.test:\(s.origin.port)/a")
                #expect(answer.status == (followed ? 403 : 302), "\(answer)")
                if !followed, location.hasPrefix("http:") { #expect(try s.client().get(location).status == 403) }
                #expect(site.denied.connectionCount == 0)
            }
        }
    }

    @Test func `the proxy itself leads nowhere else`() throws {
        try Self.withSite(rule: { $0.conditions.hosts.append(HostPattern("127.0.0.1")!) }) { s, site in
            let own = s.proxy.addresses[0].port
            try s.adopt { configuration, _ in
                configuration = s.proxy.snapshot.configuration
                configuration.access.connectPorts = [1...65535]
            }
            for (method, target) in [("CONNECT", "127.0.0.1:\(own)"), ("GET", "http://127.0.0.1:\(own)/")] {
                let answer = try s.client().request(method, target)
                #expect(answer["Larder-Deny"]?.hasPrefix("reason=own-listener; ") == true, "\(answer)")
            }
            s.proxy.shared.setAdminAddresses([SocketAddress(v4: 0x7F00_0001, port: site.port)])
            let admin = try s.client().request("CONNECT", "allowed.test:\(site.port)")
            #expect(admin["Larder-Deny"]?.hasPrefix("reason=admin-server; ") == true, "\(admin)")
        }
    }
}
