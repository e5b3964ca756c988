import Testing

extension RegistryClient {

    static let pip = RegistryClient(
        name: "pip", recipe: "python", programs: ["pip3", "python3"],
        publish: publishWheel,
        install: { host, home, _ in
            let trust = host.root.map { ["--cert", $0] } ?? ["--trusted-host", ProxiedHost.name]
            return try await host.place.run(
                "pip3",
                [
                    "install", "--isolated", "--disable-pip-version-check", "--no-cache-dir", "--no-deps", "--proxy",
                    host.proxyURL, "--index-url", "\(host.url)/simple/", "--retries", "0", "--target",
                    "\(home.path)/target",
                    "larder-demo",
                ] + trust)
        })

    static let uv = RegistryClient(
        name: "uv", recipe: "python", programs: ["uv", "python3"], publish: publishWheel,
        install: { host, home, _ in
            let trust = host.root == nil ? ["--allow-insecure-host", host.authority] : []
            var environment = host.environment(home: home)
            environment["UV_HTTP_RETRIES"] = "0"
            return try await host.place.run(
                "uv",
                [
                    "pip", "install", "--no-config", "--no-cache", "--no-deps", "--python", "python3", "--target",
                    "\(home.path)/target", "--index-url", "\(host.url)/simple/", "larder-demo",
                ] + trust, environment: environment)
        })

    /// From PyPI. It mirrors one project, and downloads from an https origin only.
    static let bandersnatch = RegistryClient(
        name: "bandersnatch", recipe: "python", programs: ["bandersnatch", "python3"], ways: [.password],
        publish: { host, release in
            let file = try await publishWheel(host, release)[0]
            let name = try #require(file.split(separator: "/").last)
            let metadata = """
                { "info": { "name": "larder-demo", "version": "\(release.version)" }, "last_serial": 1, "releases": { "\(release.version)": [ {
                  "url": "\(host.url)\(file)", "filename": "\(name)", "size": \(host.place.bytes("www\(file)").count),
                  "digests": { "sha256": "\(try await host.place.digest(of: "www\(file)"))" }, "requires_python": null,
                  "upload_time_iso_8601": "2026-01-01T00:00:00Z", "packagetype": "bdist_wheel", "yanked": false } ] } }
                """
            try host.place.writeAnswer(
                "/pypi/larder-demo/json", fields: ["Content-Type: application/json", "X-PyPI-Last-Serial: 1"],
                body: Array(metadata.utf8))
            return [file]
        },
        install: { host, home, _ in
            let configuration = try host.place.write(
                "\(home.name)/bandersnatch.conf",
                """
                [mirror]
                directory = \(home.path)/mirror
                master = \(host.url)
                proxy = \(host.proxyURL)
                stop-on-error = true
                hash-index = false
                json = false
                timeout = 10
                workers = 1

                """.utf8)
            return try await host.place.run(
                "bandersnatch", ["-c", configuration, "sync", "larder-demo"],
                environment: host.environment(home: home))
        })

    /// An index as PEP 503 describes it, with a wheel whose address is its digest.
    @Sendable private static func publishWheel(_ host: ProxiedHost, _ release: Release) async throws -> [String] {
        let information = "larder_demo-\(release.version).dist-info"
        let name = "larder_demo-\(release.version)-py3-none-any.whl"
        let file = try await host.place.publishWheel(
            name,
            [
                "larder_demo.py": "# \(release.padded.replacing("\n", with: " "))",
                "\(information)/METADATA": "Metadata-Version: 2.1\nName: larder-demo\nVersion: \(release.version)\n",
                "\(information)/WHEEL":
                    "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
                "\(information)/RECORD": "",
            ])
        try host.place.write(
            "www/simple/larder-demo/index.html",
            "<!DOCTYPE html><html><body><a href=\"\(file)\">\(name)</a></body></html>".utf8)
        return [file]
    }
}
