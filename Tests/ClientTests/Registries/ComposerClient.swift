extension RegistryClient {
    static let composer = RegistryClient(
        name: "composer", recipe: "composer", programs: ["composer", "python3"],
        publish: { host in
            let commit = String(repeating: "0a", count: 20)
            let archive = "/dist/larder-demo-\(commit).zip"
            try await host.place.zip(
                "www\(archive)",
                [
                    "demo/composer.json": #"{ "name": "larder/demo" }"#,
                    "demo/data": String(repeating: "x", count: 50_000),
                ])
            let digest = try await host.place.digest(of: "www\(archive)", "sha1sum")
            try host.place.write(
                "www/packages.json",
                """
                { "packages": { "larder/demo": { "1.0.0": { "name": "larder/demo", "version": "1.0.0", "dist": {
                  "type": "zip", "url": "\(host.url)\(archive)", "reference": "\(commit)", "shasum": "\(digest)" } } } } }
                """.utf8)
            return [archive]
        },
        install: { host, home in
            try host.place.write(
                "\(home.name)/composer.json",
                """
                { "repositories": [ { "packagist.org": false }, { "type": "composer", "url": "\(host.url)" } ],
                  "config": { "secure-http": \(host.way != .http) }, "require": { "larder/demo": "1.0.0" } }
                """.utf8)
            var environment = host.environment(home: home)
            environment["COMPOSER_ALLOW_SUPERUSER"] = "1"
            return try await host.place.run(
                "composer", ["install", "--no-interaction", "--no-plugins"], environment: environment, in: home.path)
        }, installs: "vendor/larder/demo/data")
}
