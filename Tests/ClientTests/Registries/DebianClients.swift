import Foundation
import Glibc
import Testing

extension RegistryClient {
    /// It takes `InRelease`.
    static let apt = RegistryClient(
        name: "apt", recipe: "debian", programs: ["apt-get", "dpkg-deb"] + SigningKey.programs,
        limits: limitsOfStoredFiles, publish: publishArchive,
        install: { host, home, release in
            let place = host.place
            let name = home.name
            for folder in ["etc/apt.conf.d", "etc/preferences.d", "state/lists/partial", "cache/archives/partial"] {
                try place.makeDirectory("\(name)/\(folder)")
            }
            try place.write("\(name)/state/status", [])
            let key = try await SigningKey.take(in: place)
            try place.write("\(name)/etc/sources.list", "deb [signed-by=\(key.binary)] \(host.url)/ stable main\n".utf8)
            var options = [
                "Dir=\(home.path)", "Dir::Etc=etc", "Dir::State=state", "Dir::State::status=state/status",
                "Dir::Cache=cache", "Dir::Log=log", "APT::Sandbox::User=root", "APT::Architecture=amd64",
                "Acquire::Languages=none", "Acquire::http::Proxy=\(host.proxyURL)/",
                "Acquire::https::Proxy=\(host.proxyURL)/", "Acquire::Retries=0", "Debug::NoLocking=true",
                "APT::Update::Error-Mode=any",
            ]
            if let root = host.root { options.append("Acquire::https::CaInfo=\(root)") }
            let words = options.flatMap { ["-o", $0] } + ["-q"]
            let environment = ["APT_CONFIG": "/dev/null"]
            let updated = try await place.run("apt-get", words + ["update"], environment: environment)
            guard updated.status == 0 else { return updated }
            return try await place.run(
                "apt-get", words + ["download", "larder-demo"], environment: environment, in: home.path)
        })

    /// It finds no `InRelease`, and takes `Release` and `Release.gpg`. Downloads with wget.
    static let debootstrap = RegistryClient(
        name: "debootstrap", recipe: "debian",
        programs: ["debootstrap", "wget", "dpkg-deb"] + SigningKey.programs, ways: [.http, .password],
        server: "location = /dists/stable/InRelease { return 404; }", needsRoot: true,
        limits: limitsOfStoredFiles, publish: publishArchive,
        install: { host, home, _ in
            let key = try await SigningKey.take(in: host.place)
            let trust = host.root.map { "ca_certificate = \($0)\n" } ?? ""
            try host.place.write("\(home.name)/.wgetrc", "tries = 1\n\(trust)".utf8)
            let script = try host.place.write(
                "\(home.name)/script",
                """
                mirror_style release
                download_style apt
                finddebs_style from-indices
                variants -
                work_out_debs () { required=larder-demo; base=; }

                """.utf8)
            return try await host.place.run(
                "debootstrap",
                [
                    "--arch=amd64", "--keyring=\(key.binary)", "--download-only", "stable", "\(home.path)/root",
                    host.url,
                    script,
                ], environment: host.environment(home: home))
        })

    /// It asks for everything with `no-cache`, and for no index by its digest. Downloads with wget.
    static let aptMirror = RegistryClient(
        name: "apt-mirror", recipe: "debian",
        programs: ["apt-mirror", "wget", "dpkg-deb"] + SigningKey.programs, ways: [.http, .password],
        isValidated: true,
        limits: [
            .originDown: "it asks with no-cache",
            .wrongBody: "Larder has stored the wrong file, and the origin calls it current",
        ],
        publish: { host, release in Array(try await publishArchive(host, release).prefix(1)) },
        install: { host, home, _ in
            let place = host.place
            let name = home.name
            let trust = host.root.map { "ca_certificate = \($0)\n" } ?? ""
            try place.write("\(name)/.wgetrc", "waitretry = 0\n\(trust)".utf8)
            let login = host.credentials == nil ? "" : "set proxy_user ali\nset proxy_password sesame"
            let configuration = try place.write(
                "\(name)/mirror.list",
                """
                set base_path \(home.path)
                set defaultarch amd64
                set nthreads 2
                set _contents 0
                set run_postmirror 0
                set use_proxy on
                set http_proxy \(host.larder.url)
                set https_proxy \(host.larder.url)
                \(login)
                deb \(host.url) stable main

                """.utf8)
            // wget names a directory after host and port, and apt-mirror looks for the host alone.
            for folder in ["skel", "mirror"] {
                try place.makeDirectory("\(name)/\(folder)")
                try FileManager.default.createSymbolicLink(
                    atPath: "\(home.path)/\(folder)/\(ProxiedHost.name)", withDestinationPath: host.authority)
            }
            let mirrored = try await place.run("apt-mirror", [configuration], environment: ["HOME": home.path])
            guard mirrored.status == 0 else { return mirrored }
            // It ends with 0 whatever it could download.
            let key = try await SigningKey.take(in: place)
            let script = """
                set -e
                cd mirror/\(ProxiedHost.name)/dists/stable
                gpgv --keyring \(key.binary) Release.gpg Release
                sed -n 's/^ \\(.*\\) .* /\\1  /p' Release | sha256sum --check --strict
                cd \(home.path)/mirror
                sha256sum --check --strict ../var/SHA256
                """
            var checked = try await place.run("sh", ["-c", script], in: home.path)
            checked.out += mirrored.out
            checked.err += mirrored.err
            return checked
        })

    /// An archive with one package. Its index is packed and has an address by its digest, and `Release` is signed in both ways.
    @Sendable private static func publishArchive(_ host: ProxiedHost, _ release: Release) async throws -> [String] {
        let place = host.place
        let control = """
            Package: larder-demo
            Version: \(release.version)
            Architecture: all
            Priority: required
            Maintainer: A Tester <t@example.org>
            Description: made for a test

            """
        try place.write("build/DEBIAN/control", control.utf8)
        try place.write("build/usr/share/larder-demo/data", release.padded.utf8)
        let file = "pool/main/l/larder-demo/larder-demo_\(release.version)_all.deb"
        try place.makeDirectory("www/pool/main/l/larder-demo")
        let built = try await place.run(
            "dpkg-deb", ["-Znone", "--root-owner-group", "-b", place.path("build"), place.path("www/\(file)")])
        try #require(built.status == 0, "\(built)")
        let index = """
            \(control)Filename: \(file)
            Size: \(place.bytes("www/\(file)").count)
            SHA256: \(try await place.digest(of: "www/\(file)"))


            """
        let folder = "www/dists/stable/main/binary-amd64"
        let plain = try place.write("index/Packages", index.utf8)
        let packed = try await place.run("gzip", ["-nk", "--force", plain])
        try #require(packed.status == 0, "\(packed)")
        let bytes = place.bytes("index/Packages.gz")
        let digest = try await place.digest(of: "index/Packages.gz")
        let byHash = "\(folder)/by-hash/SHA256/\(digest)"
        for file in ["\(folder)/Packages.gz", byHash] { try place.write(file, bytes) }
        // The last line is not a digest: debootstrap overlooks that of an InRelease.
        try place.write(
            "www/dists/stable/Release",
            """
            Suite: stable
            Architectures: amd64
            Components: main
            Date: Sat, 01 Aug 2026 00:00:00 UTC
            SHA256:
             \(try await place.digest(of: "index/Packages")) \(index.utf8.count) main/binary-amd64/Packages
             \(digest) \(bytes.count) main/binary-amd64/Packages.gz
            Acquire-By-Hash: yes

            """.utf8)
        let key = try await SigningKey.take(in: place)
        try await key.sign("www/dists/stable/Release", around: "www/dists/stable/InRelease")
        try await key.sign("www/dists/stable/Release", beside: "www/dists/stable/Release.gpg")
        return ["/\(file)", "/\(byHash.dropFirst("www/".count))"]
    }
}
