import Testing

extension RegistryClient {
    static let apt = RegistryClient(
        name: "apt", recipe: "debian", programs: ["apt-get", "dpkg-deb"],
        publish: { host in
            let place = host.place
            let control = """
                Package: larder-demo
                Version: 1.0
                Architecture: all
                Maintainer: A Tester <t@example.org>
                Description: made for a test

                """
            try place.write("build/DEBIAN/control", control.utf8)
            try place.write("build/usr/share/larder-demo/data", noise(50_000))
            let file = "pool/main/l/larder-demo/larder-demo_1.0_all.deb"
            try place.makeDirectory("www/pool/main/l/larder-demo")
            let built = try await place.run(
                "dpkg-deb", ["-Znone", "--root-owner-group", "-b", place.path("build"), place.path("www/\(file)")])
            try #require(built.status == 0, "\(built)")
            let size = place.bytes("www/\(file)").count
            let index = """
                \(control)Filename: \(file)
                Size: \(size)
                SHA256: \(try await place.digest(of: "www/\(file)"))

                """
            let folder = "www/dists/stable/main/binary-amd64"
            try place.write("\(folder)/Packages", index.utf8)
            let digest = try await place.digest(of: "\(folder)/Packages")
            let byHash = "\(folder)/by-hash/SHA256/\(digest)"
            try place.write(byHash, index.utf8)
            try place.write(
                "www/dists/stable/Release",
                """
                Suite: stable
                Date: Sat, 01 Aug 2026 00:00:00 UTC
                Acquire-By-Hash: yes
                SHA256:
                 \(digest) \(index.utf8.count) main/binary-amd64/Packages

                """.utf8)
            return ["/\(file)", "/\(byHash.dropFirst("www/".count))"]
        },
        install: { host, home in
            let place = host.place
            let name = home.name
            for folder in ["etc/apt.conf.d", "etc/preferences.d", "state/lists/partial", "cache/archives/partial"] {
                try place.makeDirectory("\(name)/\(folder)")
            }
            try place.write("\(name)/state/status", [])
            try place.write("\(name)/etc/sources.list", "deb [trusted=yes] \(host.url)/ stable main\n".utf8)
            var options = [
                "Dir=\(home.path)", "Dir::Etc=etc", "Dir::State=state", "Dir::State::status=state/status",
                "Dir::Cache=cache", "Dir::Log=log", "APT::Sandbox::User=root", "APT::Architecture=amd64",
                "Acquire::Languages=none", "Acquire::http::Proxy=\(host.proxyURL)/",
                "Acquire::https::Proxy=\(host.proxyURL)/", "Acquire::Retries=0", "Debug::NoLocking=true",
            ]
            if let root = host.root { options.append("Acquire::https::CaInfo=\(root)") }
            let words = options.flatMap { ["-o", $0] } + ["-q"]
            let environment = ["APT_CONFIG": "/dev/null"]
            let updated = try await place.run("apt-get", words + ["update"], environment: environment)
            try #require(updated.status == 0, "\(updated)")
            return try await place.run(
                "apt-get", words + ["download", "larder-demo"], environment: environment, in: home.path)
        }, installs: "larder-demo_1.0_all.deb")
}
