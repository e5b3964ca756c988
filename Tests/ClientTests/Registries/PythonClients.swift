extension RegistryClient {
    static let pip = RegistryClient(
        name: "pip", recipe: "python", programs: ["pip3", "python3"], publish: publishWheel,
        install: { host, home in
            let trust = host.root.map { ["--cert", $0] } ?? ["--trusted-host", ProxiedHost.name]
            return try await host.place.run(
                "pip3",
                [
                    "install", "--isolated", "--disable-pip-version-check", "--no-cache-dir", "--no-deps", "--proxy",
                    host.proxyURL, "--index-url", "\(host.url)/simple/", "--retries", "0", "--target",
                    "\(home.path)/target",
                    "larder-demo",
                ] + trust)
        }, installs: "target/larder_demo.py")

    static let uv = RegistryClient(
        name: "uv", recipe: "python", programs: ["uv", "python3"], publish: publishWheel,
        install: { host, home in
            let trust = host.root == nil ? ["--allow-insecure-host", host.authority] : []
            return try await host.place.run(
                "uv",
                [
                    "pip", "install", "--no-config", "--no-cache", "--no-deps", "--python", "python3", "--target",
                    "\(home.path)/target", "--index-url", "\(host.url)/simple/", "larder-demo",
                ] + trust, environment: host.environment(home: home))
        }, installs: "target/larder_demo.py")

    /// An index as PEP 503 describes it, with a wheel whose address is its digest.
    @Sendable private static func publishWheel(_ host: ProxiedHost) async throws -> [String] {
        let information = "larder_demo-1.0.dist-info"
        let file = try await host.place.publishWheel(
            "larder_demo-1.0-py3-none-any.whl",
            [
                "larder_demo.py": "# \(String(repeating: "x", count: 50_000))",
                "\(information)/METADATA": "Metadata-Version: 2.1\nName: larder-demo\nVersion: 1.0\n",
                "\(information)/WHEEL":
                    "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
                "\(information)/RECORD": "",
            ])
        try host.place.write(
            "www/simple/larder-demo/index.html",
            "<!DOCTYPE html><html><body><a href=\"\(file)\">larder_demo-1.0-py3-none-any.whl</a></body></html>".utf8)
        return [file]
    }
}
