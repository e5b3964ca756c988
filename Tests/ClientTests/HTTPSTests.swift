import Foundation
import Testing

@Suite("https: real clients in opened tunnels", .enabled(if: Nginx.isInstalled, "package nginx-light"))
struct HTTPSTests {
    /// With each client, without a password and with one.
    struct Row: Sendable, CustomTestStringConvertible {
        let client: DownloadClient
        let way: Way
        var testDescription: String { "\(client.name), \(way.rawValue)" }
    }
    static let rows = DownloadClient.all.filter(\.isInstalled).flatMap { client in
        [Way.https, .password].map { Row(client: client, way: $0) }
    }

    @Test(arguments: rows) func `the second download is a hit, and the origin is asked once`(_ row: Row) async throws {
        try await Workplace.with { place in
            let host = try await ProxiedHost.start(row.way, in: place)
            let content = noise(300_000).map { $0 & 0x7F | 0x20 }
            try place.write("www/file", content)
            for round in 1...2 {
                let output = try await row.client.download("\(host.url)/file", host, trusting: try #require(host.root))
                #expect(output.status == 0, "round \(round): \(output.err)")
                #expect(Array(output.out.utf8) == content)
            }
            #expect(host.nginx.asked("/file").count == 1)
            #expect(host.nginx.asked("/file").first?.contains("via=\"1.1 larder") == true)
            #expect(host.nginx.asked("/file").first?.contains("pa=\"-\"") == true, "the password stays here")
            #expect(try await host.larder.statistic("tunnels", "intercepted") == 2)
        }
    }

    @Test(arguments: DownloadClient.all.filter(\.isInstalled))
    func `a client without the authority fails, and is named in the log`(_ client: DownloadClient) async throws {
        try await Workplace.with { place in
            let host = try await ProxiedHost.start(in: place)
            try place.write("www/file", "secret".utf8)
            let stranger = try await place.certificate(for: ProxiedHost.name)
            let output = try await client.download("\(host.url)/file", host, trusting: stranger.certificate)
            #expect(output.status != 0, "\(output)")
            #expect(!output.out.contains("secret"))
            #expect(host.nginx.asked("/file").isEmpty)
            _ = try await eventually("the refusal is counted") {
                try await host.larder.statistic("tunnels", "certificates_refused") >= 1 ? true : nil
            }
            let listed = try await host.larder.command("doctor", "--refusals")
            // A client that only closes the connection is certain from the second time on.
            switch client.refusal {
            case .alert: #expect(listed.status == 1 && listed.out.contains(ProxiedHost.name), "\(listed)")
            case .close: #expect(listed.status == 0 && !listed.out.contains(ProxiedHost.name), "\(listed)")
            case .either: break
            }
        }
    }

    @Test func `larder warm stores what a tunnel serves`() async throws {
        try await Workplace.with { place in
            let host = try await ProxiedHost.start(in: place)
            try place.write("www/file", "warm".utf8)
            let warmed = try await host.larder.command(
                "warm", "--proxy", "127.0.0.1:\(host.larder.port)", "\(host.url)/file")
            #expect(warmed.status == 0, "\(warmed)")
            let reply = try await place.curl(
                "--cacert", try #require(host.root), "\(host.url)/file", through: host.larder)
            #expect(reply.isHit, "\(reply)")
            #expect(host.nginx.asked("/file").count == 1)
        }
    }

    @Test func `a host that is not listed keeps its own certificate`() async throws {
        try await Workplace.with { place in
            let host = try await ProxiedHost.start(in: place)
            try place.write("www/file", "own".utf8)
            let words = ["https://127.0.0.1:\(host.nginx.port)/file", "--cacert"]
            let own = try await place.curl(words + [place.path("certificate.pem")], through: host.larder)
            #expect(own.text == "own", "\(own)")
            let larders = try await place.curl(words + [try #require(host.root)], through: host.larder)
            #expect(larders.exit == 60, "\(larders)")
        }
    }

    @Test func `check refuses a host that the authority may not certify`() async throws {
        try await Workplace.with { place in
            let host = try await ProxiedHost.start(in: place)
            let text = try String(contentsOfFile: host.larder.configuration, encoding: .utf8)
            let wider = text.replacingOccurrences(
                of: "hosts: [ \(ProxiedHost.name) ]", with: "hosts: [ \(ProxiedHost.name), other.test ]")
            let file = try place.write("wider.yaml", wider.utf8)
            for command in ["check", "serve"] {
                let output = try await place.run(Larder.executable, [command, "--config", file])
                #expect(output.status != 0)
                #expect(
                    output.err.contains("intercept.hosts: other.test: the name constraints of the authority"),
                    "\(output)")
            }
            let exposed = try await place.run("chmod", ["644", place.path("ca/intermediate.key")])
            #expect(exposed.status == 0)
            let refused = try await host.larder.command("check")
            #expect(refused.status == 2 && refused.err.contains("intercept.ca.key: "), "\(refused)")
            #expect(refused.err.contains("chmod 600"))
        }
    }
}

@Suite("https: git in opened tunnels", .enabled(if: GitServer.isInstalled, "packages git, fcgiwrap, nginx-light"))
struct OpenedGitTests {
    static let ways = [Way.https, .password]

    private func git(_ host: ProxiedHost, _ words: String...) async throws {
        let trust = host.root.map { ["-c", "http.sslCAInfo=\($0)"] } ?? []
        let output = try await host.place.run("git", trust + words, environment: host.proxy)
        try #require(output.status == 0, "\(words): \(output)")
    }

    /// A bare repository with one commit.
    private func publish(_ host: ProxiedHost, _ repository: String) async throws {
        let place = host.place
        try place.write("source/file", noise(5000))
        try await git(host, "init", "-q", place.path("source"))
        try await git(host, "-C", place.path("source"), "add", ".")
        try await git(host, "-C", place.path("source"), "commit", "-qm", "one")
        try await git(host, "clone", "-q", "--bare", place.path("source"), place.path(repository))
        try await git(host, "-C", place.path(repository), "update-server-info")
    }

    @Test(arguments: ways) func `over dumb HTTP, every object comes once`(_ way: Way) async throws {
        try await Workplace.with { place in
            let host = try await ProxiedHost.start(
                way, in: place,
                server: try await GitServer.backend(in: place) + "add_header Cache-Control 'max-age=600';")
            try await publish(host, "www/project.git")
            for round in 1...2 {
                try await git(host, "clone", "-q", "\(host.url)/project.git", place.path("clone-\(round)"))
                #expect(place.bytes("clone-\(round)/file") == noise(5000))
            }
            // What git asks for with `no-cache` is validated.
            let objects = host.nginx.asked.filter { $0.contains("/objects/") && $0.contains(" 200 ") }
            #expect(!objects.isEmpty)
            #expect(Set(objects.map { $0.split(separator: " ")[1] }).count == objects.count, "\(objects)")
        }
    }

    @Test(arguments: ways) func `over smart HTTP, each clone asks the origin, since its request is a POST`(
        _ way: Way
    ) async throws {
        try await Workplace.with { place in
            let host = try await ProxiedHost.start(way, in: place, server: try await GitServer.backend(in: place))
            try await publish(host, "repositories/project.git")
            for round in 1...2 {
                try await git(host, "clone", "-q", "\(host.url)/git/project.git", place.path("clone-\(round)"))
                #expect(place.bytes("clone-\(round)/file") == noise(5000))
            }
            let packs = host.nginx.asked.filter { $0.hasPrefix("POST /git/project.git/git-upload-pack 200") }
            // Protocol 2 sends two: the list of references, and the pack.
            #expect(packs.count == 4, "\(host.nginx.asked)")
        }
    }
}
