extension RegistryClient {
    static let composer = RegistryClient(
        name: "composer", recipe: "composer", programs: ["composer", "python3"],
        limits: limitsOfStoredFiles,
        publish: { host, release in
            let commit = String((release.version.filter(\.isNumber) + String(repeating: "0a", count: 20)).prefix(40))
            let archive = "/dist/larder-demo-\(commit).zip"
            try await host.place.zip(
                "www\(archive)",
                [
                    "demo/composer.json": #"{ "name": "larder/demo" }"#,
                    "demo/data": release.padded,
                ])
            let digest = try await host.place.digest(of: "www\(archive)", "sha1sum")
            try host.place.write(
                "www/packages.json",
                """
                { "packages": { "larder/demo": { "\(release.version)": { "name": "larder/demo", "version": "\(release.version)", "dist": {
                  "type": "zip", "url": "\(host.url)\(archive)", "reference": "\(commit)", "shasum": "\(digest)" } } } } }
                """.utf8)
            return [archive]
        },
        install: { host, home, _ in
            try host.place.write(
                "\(home.name)/composer.json",
                """
                { "repositories": [ { "packagist.org": false }, { "type": "composer", "url": "\(host.url)" } ],
                  "config": { "secure-http": \(host.way != .http) }, "require": { "larder/demo": "*" } }
                """.utf8)
            var environment = host.environment(home: home)
            environment["COMPOSER_ALLOW_SUPERUSER"] = "1"
            return try await host.place.run(
                "composer", ["install", "--no-interaction", "--no-plugins"], environment: environment, in: home.path)
        })
}
