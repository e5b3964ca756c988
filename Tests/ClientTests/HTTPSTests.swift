import Foundation
import Testing

/// An origin with TLS, Larder that opens the tunnels to it, and the files that a client needs to trust it.
private struct OpenedHost {
    let place: Workplace
    let nginx: Nginx
    let larder: Larder
    /// The root of Larder's authority, as `larder ca create` wrote it.
    let root: String

    /// Nobody but Larder trusts the certificate of the origin.
    static func with(
        more: String = "", server: String = "add_header Cache-Control 'max-age=600';",
        _ body: (OpenedHost) async throws -> Void
    ) async throws {
        try await Workplace.with { place in
            let certificate = try await place.certificate()
            let nginx = try await Nginx.start(in: place, server: server, tls: certificate)
            let made = try await place.run(
                Larder.executable, ["ca", "create", "--out", place.path("ca"), "--host", "localhost"])
            try #require(made.status == 0, "\(made)")
            let larder = try await Larder.start(
                in: place,
                more: """
                    tls: { ca_file: \(certificate.certificate) }
                    intercept:
                      ca: { certificate: \(place.path("ca/intermediate.pem")), key: \(place.path("ca/intermediate.key")) }
                      hosts: [ localhost ]
                    \(more)
                    """)
            try await body(OpenedHost(place: place, nginx: nginx, larder: larder, root: place.path("ca/root.pem")))
        }
    }

    var url: String { "https://localhost:\(nginx.port)" }

    /// What a client is told: the proxy, and nothing that would lead past it.
    var environment: [String: String] {
        var environment = larder.proxy
        environment["HTTPS_PROXY"] = larder.url
        environment["HOME"] = place.path("home")
        return environment
    }
}

@Suite("https: real clients in opened tunnels", .enabled(if: Nginx.isInstalled, "package nginx-light"))
struct HTTPSTests {
    /// A program that downloads `url` to standard output, and how it is told whom to trust.
    struct Client: Sendable, CustomTestStringConvertible {
        let program: String
        /// - Parameters: the URL and the file with the authority.
        let words: @Sendable (_ url: String, _ root: String) -> [String]
        var environment: @Sendable (_ root: String) -> [String: String] = { _ in [:] }
        var testDescription: String { program }
    }

    private static let strictly = """
        import ssl, sys, urllib.request
        context = ssl.create_default_context(cafile=sys.argv[2])
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        sys.stdout.buffer.write(urllib.request.urlopen(sys.argv[1], context=context, timeout=20).read())
        """

    static let clients = [
        Client(program: "curl", words: { ["-q", "-sS", "-m", "20", "--cacert", $1, $0] }),
        Client(
            program: "wget",
            words: { ["-q", "-T", "20", "-t", "1", "--no-config", "--ca-certificate=\($1)", "-O", "-", $0] }),
        Client(program: "python3", words: { ["-c", strictly, $0, $1] }),
    ]

    @Test(arguments: clients.filter { installed($0.program) != nil })
    func `the second download is a hit, and the origin is asked once`(_ client: Client) async throws {
        try await OpenedHost.with { host in
            let content = noise(300_000).map { $0 & 0x7F | 0x20 }
            try host.place.write("www/file", content)
            for round in 1...2 {
                let environment = host.environment.merging(client.environment(host.root)) { $1 }
                let output = try await host.place.run(
                    client.program, client.words("\(host.url)/file", host.root), environment: environment)
                #expect(output.status == 0, "round \(round): \(output.err)")
                #expect(Array(output.out.utf8) == content)
            }
            #expect(host.nginx.asked("/file").count == 1)
            #expect(host.nginx.asked("/file").first?.contains("via=\"1.1 larder") == true)
            #expect(try await host.larder.statistic("tunnels", "intercepted") == 2)
        }
    }

    @Test(arguments: clients.filter { installed($0.program) != nil })
    func `a client without the authority fails, and is named in the log`(_ client: Client) async throws {
        try await OpenedHost.with { host in
            try host.place.write("www/file", "secret".utf8)
            let stranger = try await host.place.certificate()
            let output = try await host.place.run(
                client.program, client.words("\(host.url)/file", stranger.certificate), environment: host.environment)
            #expect(output.status != 0, "\(output)")
            #expect(!output.out.contains("secret"))
            #expect(host.nginx.asked("/file").isEmpty)
            _ = try await eventually("the refusal is counted") {
                try await host.larder.statistic("tunnels", "certificates_refused") >= 1 ? true : nil
            }
            let listed = try await host.larder.command("doctor", "--refusals")
            // A client that only closes the connection is certain from the second time on.
            let isCertain = client.program != "wget"
            #expect((listed.status == 1) == isCertain, "\(listed)")
            #expect(listed.out.contains("localhost") == isCertain, "\(listed)")
        }
    }

    @Test(.enabled(if: installed("git") != nil, "package git")) func `git clone over dumb HTTP`() async throws {
        try await OpenedHost.with { host in
            let git = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
            let source = try host.place.makeDirectory("source")
            try host.place.write("source/file", noise(5000))
            for words in [["init", "-q"], ["add", "."], ["commit", "-qm", "one"]] {
                let made = try await host.place.run("git", git + words, environment: host.environment, in: source)
                try #require(made.status == 0, "\(made)")
            }
            for words in [
                ["clone", "-q", "--bare", source, host.place.path("www/project.git")],
                ["-C", host.place.path("www/project.git"), "update-server-info"],
            ] {
                let made = try await host.place.run("git", git + words, environment: host.environment)
                try #require(made.status == 0, "\(made)")
            }
            for round in 1...2 {
                let output = try await host.place.run(
                    "git",
                    [
                        "-c", "http.sslCAInfo=\(host.root)", "clone", "-q", "\(host.url)/project.git",
                        host.place.path("clone-\(round)"),
                    ],
                    environment: host.environment)
                #expect(output.status == 0, "\(output)")
                #expect(host.place.bytes("clone-\(round)/file") == noise(5000))
            }
            // What git asks for with `no-cache` is validated; every object comes once.
            let objects = host.nginx.asked.filter { $0.contains("/objects/") && $0.contains(" 200 ") }
            #expect(Set(objects.map { $0.split(separator: " ")[1] }).count == objects.count, "\(objects)")
        }
    }

    @Test func `larder warm stores what a tunnel serves`() async throws {
        try await OpenedHost.with { host in
            try host.place.write("www/file", "warm".utf8)
            let warmed = try await host.larder.command(
                "warm", "--proxy", "127.0.0.1:\(host.larder.port)", "\(host.url)/file")
            #expect(warmed.status == 0, "\(warmed)")
            let output = try await host.place.run(
                "curl", ["-q", "-sS", "-m", "20", "-i", "--cacert", host.root, "\(host.url)/file"],
                environment: host.environment)
            #expect(output.out.contains("Cache-Status: larder; hit"), "\(output)")
            #expect(host.nginx.asked("/file").count == 1)
        }
    }

    @Test func `a host that is not listed keeps its own certificate`() async throws {
        try await OpenedHost.with { host in
            try host.place.write("www/file", "own".utf8)
            let words = ["-q", "-sS", "-m", "20", "https://127.0.0.1:\(host.nginx.port)/file", "--cacert"]
            let own = try await host.place.run(
                "curl", words + [host.place.path("certificate.pem")], environment: host.environment)
            #expect(own.out == "own", "\(own)")
            let larders = try await host.place.run("curl", words + [host.root], environment: host.environment)
            #expect(larders.status == 60, "\(larders)")
        }
    }

    @Test func `check refuses a host that the authority may not certify`() async throws {
        try await OpenedHost.with { host in
            let text = try String(contentsOfFile: host.larder.configuration, encoding: .utf8)
            let wider = text.replacingOccurrences(of: "hosts: [ localhost ]", with: "hosts: [ localhost, other.test ]")
            let file = try host.place.write("wider.yaml", wider.utf8)
            for command in ["check", "serve"] {
                let output = try await host.place.run(Larder.executable, [command, "--config", file])
                #expect(output.status != 0)
                #expect(
                    output.err.contains("intercept.hosts: other.test: the name constraints of the authority"),
                    "\(output)")
            }
            let exposed = try await host.place.run("chmod", ["644", host.place.path("ca/intermediate.key")])
            #expect(exposed.status == 0)
            let refused = try await host.larder.command("check")
            #expect(refused.status == 2 && refused.err.contains("intercept.ca.key: "), "\(refused)")
            #expect(refused.err.contains("chmod 600"))
        }
    }
}
