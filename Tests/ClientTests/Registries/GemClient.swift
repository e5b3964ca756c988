import Testing

extension RegistryClient {
    static let gem = RegistryClient(
        name: "gem", recipe: "rubygems", programs: ["gem"],
        publish: { host in
            let place = host.place
            try place.write("gem/lib/larder_demo.rb", "module LarderDemo; end\n".utf8)
            try place.write(
                "gem/larder-demo.gemspec",
                """
                Gem::Specification.new do |gem|
                  gem.name, gem.version, gem.summary = "larder-demo", "1.0", "made for a test"
                  gem.authors, gem.files = ["A Tester"], ["lib/larder_demo.rb"]
                end
                """.utf8)
            let folder = try place.makeDirectory("www/gems")
            let built = try await place.run(
                "gem", ["build", "-q", "larder-demo.gemspec", "-o", "\(folder)/larder-demo-1.0.gem"],
                in: place.path("gem"))
            try #require(built.status == 0, "\(built)")
            let indexed = try await place.run("gem", ["generate_index", "-d", place.path("www")])
            try #require(indexed.status == 0, "\(indexed)")
            return ["/gems/larder-demo-1.0.gem", "/quick/Marshal.4.8/larder-demo-1.0.gemspec.rz"]
        },
        install: { host, home in
            try await host.place.run(
                "gem",
                [
                    "install", "larder-demo", "--clear-sources", "--source", "\(host.url)/", "--install-dir",
                    "\(home.path)/gems", "--no-document",
                ], environment: host.environment(home: home))
        }, installs: "gems/gems/larder-demo-1.0/lib/larder_demo.rb")
}
