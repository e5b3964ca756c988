import Foundation
import Testing

/// A smart-HTTP server: nginx, fcgiwrap and `git http-backend`, as Debian installs them.
private struct GitServer {
    let nginx: Nginx
    var url: String { "\(nginx.url)/git/project.git" }

    static let backend = "/usr/lib/git-core/git-http-backend"
    static let isInstalled =
        Nginx.isInstalled && installed("git") != nil && installed("fcgiwrap") != nil
        && FileManager.default.isExecutableFile(atPath: backend)

    static func start(in place: Workplace) async throws -> GitServer {
        let socket = place.path("fcgi.sock")
        let runner = try await place.start("fcgiwrap", ["-c", "2", "-s", "unix:\(socket)"], lastSignal: "TERM")
        try await eventually("fcgiwrap listens; it said: \(runner.errors)") {
            FileManager.default.fileExists(atPath: socket)
        }
        let nginx = try await Nginx.start(
            in: place,
            server: """
                location ~ ^/git(/.*)$ {
                    fastcgi_pass unix:\(socket);
                    fastcgi_param SCRIPT_FILENAME \(backend);
                    fastcgi_param GIT_HTTP_EXPORT_ALL "";
                    fastcgi_param GIT_PROJECT_ROOT \(try place.makeDirectory("repositories"));
                    fastcgi_param GIT_CONFIG_NOSYSTEM 1;
                    fastcgi_param HOME \(place.path("home"));
                    fastcgi_param PATH_INFO $1;
                    fastcgi_param QUERY_STRING $query_string;
                    fastcgi_param REQUEST_METHOD $request_method;
                    fastcgi_param CONTENT_TYPE $content_type;
                    fastcgi_param CONTENT_LENGTH $content_length;
                    fastcgi_param GIT_PROTOCOL $http_git_protocol;
                }
                """)
        try place.write(
            "home/.gitconfig",
            """
            [user]
                name = A Tester
                email = tester@example.org
            [init]
                defaultBranch = main
            [safe]
                directory = *
            [gc]
                auto = 0
            """.utf8)
        return GitServer(nginx: nginx)
    }
}

@Suite("git", .enabled(if: GitServer.isInstalled, "packages git, fcgiwrap, nginx-light"))
struct GitTests {
    /// A server with a repository of two commits, and a proxy before it.
    private func with(
        users: Bool = false, _ body: (Workplace, GitServer, Larder) async throws -> Void
    ) async throws {
        try await Workplace.with { place in
            let server = try await GitServer.start(in: place)
            try await git(place, "init", "-q", "--bare", place.path("repositories/project.git"))
            try await git(place, "-C", place.path("repositories/project.git"), "config", "http.receivepack", "true")
            try await git(place, "init", "-q", place.path("seed"))
            try await commit(place, "seed", file: "first", noise(20_000))
            try await commit(place, "seed", file: "second", noise(30_000))
            try await git(place, "-C", place.path("seed"), "push", "-q", place.path("repositories/project.git"), "main")
            let larder = users ? try await Larder.startWithUsers(in: place) : try await Larder.start(in: place)
            try await body(place, server, larder)
        }
    }

    @discardableResult
    private func git(
        _ place: Workplace, _ words: String..., through larder: Larder? = nil, as credentials: String? = nil
    ) async throws -> String {
        let output = try await place.run("git", words, environment: larder?.proxy(as: credentials) ?? [:])
        try #require(output.status == 0, "git \(words): \(output)")
        return output.out.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    private func commit(_ place: Workplace, _ clone: String, file: String, _ content: [UInt8]) async throws {
        try place.write("\(clone)/\(file)", content)
        try await git(place, "-C", place.path(clone), "add", ".")
        try await git(place, "-C", place.path(clone), "commit", "-q", "-m", "add \(file)")
    }

    private func tip(_ place: Workplace, _ repository: String) async throws -> String {
        try await git(place, "-C", place.path(repository), "rev-parse", "main")
    }

    @Test func `a clone, a push and a fetch of what was pushed`() async throws {
        try await with { place, server, larder in
            try await git(place, "clone", "-q", server.url, place.path("ours"), through: larder)
            try await git(place, "clone", "-q", server.url, place.path("theirs"), through: larder)
            #expect(place.bytes("ours/second") == noise(30_000))
            try await commit(place, "theirs", file: "third", noise(1000))
            try await git(place, "-C", place.path("theirs"), "push", "-q", "origin", "main", through: larder)
            // The references were asked for before: a cache that kept them would hide the news.
            try await git(place, "-C", place.path("ours"), "pull", "-q", through: larder)
            let tip = try await tip(place, "ours")
            #expect(try await self.tip(place, "repositories/project.git") == tip)
            #expect(place.bytes("ours/third") == noise(1000))
            #expect(server.nginx.asked.allSatisfy { $0.contains("via=\"1.1 larder") }, "\(server.nginx.asked)")
        }
    }

    @Test func `a shallow clone, deepened`() async throws {
        try await with { place, server, larder in
            try await git(place, "clone", "-q", "--depth", "1", server.url, place.path("shallow"), through: larder)
            #expect(try await git(place, "-C", place.path("shallow"), "rev-list", "--count", "main") == "1")
            try await git(place, "-C", place.path("shallow"), "fetch", "-q", "--unshallow", through: larder)
            #expect(try await git(place, "-C", place.path("shallow"), "rev-list", "--count", "main") == "2")
        }
    }

    @Test func `a push larger than http.postBuffer goes out in chunks`() async throws {
        try await with { place, server, larder in
            try await git(place, "clone", "-q", server.url, place.path("ours"), through: larder)
            try await commit(place, "ours", file: "large", noise(3_000_000))
            try await git(
                place, "-C", place.path("ours"), "-c", "http.postBuffer=65536", "push", "-q", "origin", "main",
                through: larder)
            let tip = try await tip(place, "ours")
            #expect(try await self.tip(place, "repositories/project.git") == tip)
            let pushed = server.nginx.asked.filter { $0.hasPrefix("POST /git/project.git/git-receive-pack ") }
            #expect(pushed.contains { $0.contains("te=\"chunked\"") }, "\(pushed)")
        }
    }

    @Test func `a password in the proxy's URL, told after 407: clone and a push in chunks`() async throws {
        try await with(users: true) { place, server, larder in
            try await git(place, "clone", "-q", server.url, place.path("ours"), through: larder, as: "ali:sesame")
            try await commit(place, "ours", file: "large", noise(1_000_000))
            try await git(
                place, "-C", place.path("ours"), "-c", "http.postBuffer=65536", "push", "-q", "origin", "main",
                through: larder, as: "ali:sesame")
            let tip = try await tip(place, "ours")
            #expect(try await self.tip(place, "repositories/project.git") == tip)
            #expect(server.nginx.asked.allSatisfy { $0.contains("pa=\"-\"") }, "\(server.nginx.asked)")
        }
    }

    @Test func `a repository that is not there is told as the server tells it`() async throws {
        try await with { place, server, larder in
            let output = try await place.run(
                "git", ["clone", "-q", "\(server.nginx.url)/git/nothing.git", place.path("x")],
                environment: larder.proxy)
            #expect(output.status == 128 && output.err.contains("not found"), "\(output)")
        }
    }
}
