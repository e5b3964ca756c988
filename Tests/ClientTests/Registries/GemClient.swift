import Testing

extension RegistryClient {
    static let gem = RegistryClient(
        name: "gem", recipe: "rubygems", programs: ["gem"], limits: limitsOfStoredFiles, publish: publishGem,
        install: { host, home, _ in
            try await host.place.run(
                "gem",
                [
                    "install", "larder-demo", "--clear-sources", "--source", "\(host.url)/", "--install-dir",
                    "\(home.path)/gems", "--no-document",
                ], environment: host.environment(home: home))
        })

    /// It asks for the compact index.
    static let bundler = RegistryClient(
        name: "bundler", recipe: "rubygems", programs: ["bundle", "gem"], ways: [.http, .password],
        limits: limitsOfStoredFiles,
        publish: { host, release in
            let place = host.place
            let artefacts = try await publishGem(host, release)
            let gem = try await place.digest(of: "www\(artefacts[0])")
            try await publishIndex("info/larder-demo", "---\n\(release.version) |checksum:\(gem)\n", place)
            let digest = try await place.digest(of: "index/info/larder-demo", "md5sum")
            try await publishIndex(
                "versions", "created_at: 2026-01-01T00:00:00Z\n---\nlarder-demo \(release.version) \(digest)\n", place)
            return [artefacts[0]]
        },
        install: { host, home, _ in
            try host.place.write("\(home.name)/Gemfile", "source '\(host.url)'\ngem 'larder-demo'\n".utf8)
            var environment = host.environment(home: home)
            environment["BUNDLE_PATH"] = "\(home.path)/gems"
            environment["BUNDLE_RETRY"] = "0"
            environment["BUNDLE_SSL_CA_CERT"] = host.root
            return try await host.place.run("bundle", ["install"], environment: environment, in: home.path)
        })

    /// The entity tag has to be the digest of the body.
    private static func publishIndex(_ name: String, _ text: String, _ place: Workplace) async throws {
        try place.write("index/\(name)", text.utf8)
        let digest = try await place.digest(of: "index/\(name)", "md5sum")
        try place.writeAnswer(
            "/\(name)", fields: ["Content-Type: text/plain", "ETag: \"\(digest)\""],
            body: Array(text.utf8))
    }

    @Sendable private static func publishGem(_ host: ProxiedHost, _ release: Release) async throws -> [String] {
        let place = host.place
        let comment = release.padded.replacing("\n", with: " ")
        try place.write("gem/lib/larder_demo.rb", "module LarderDemo; end # \(comment)\n".utf8)
        try place.write(
            "gem/larder-demo.gemspec",
            """
            Gem::Specification.new do |gem|
              gem.name, gem.version, gem.summary = "larder-demo", "\(release.version)", "made for a test"
              gem.authors, gem.files = ["A Tester"], ["lib/larder_demo.rb"]
            end
            """.utf8)
        let folder = try place.makeDirectory("www/gems")
        let file = "larder-demo-\(release.version).gem"
        let built = try await place.run(
            "gem", ["build", "-q", "larder-demo.gemspec", "-o", "\(folder)/\(file)"], in: place.path("gem"))
        try #require(built.status == 0, "\(built)")
        let indexed = try await place.run("gem", ["generate_index", "-d", place.path("www")])
        try #require(indexed.status == 0, "\(indexed)")
        return ["/gems/\(file)", "/quick/Marshal.4.8/larder-demo-\(release.version).gemspec.rz"]
    }
}
