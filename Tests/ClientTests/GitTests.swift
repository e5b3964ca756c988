import Foundation
import Testing

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
