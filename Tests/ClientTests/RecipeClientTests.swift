import Foundation
import Testing

/// Real clients of package registries: each installs twice with a fresh home, and the second time no file of a package comes from the origin.
@Suite("Clients of package ecosystems", .enabled(if: Nginx.isInstalled, "package nginx-light"))
struct RecipeClientTests {
    /// The origin gives no lifetime of use: without recipes, each file is asked for again.
    fileprivate static let unhelpful = "add_header Cache-Control 'max-age=0';"
    /// And it has a content delivery network with its cookie.
    private static let cookie = "add_header Set-Cookie '_cfuvid=secret; path=/';"

    fileprivate static func recipe(_ name: String) -> String {
        "recipes: [ { use: \(name), hosts: [ 127.0.0.1, localhost ] } ]"
    }

    /// How the client reaches the registry: in plain text, or in a tunnel that Larder opens.
    enum Way: String, CaseIterable, Sendable { case http, https }

    /// A registry and a proxy before it. With https, nobody but Larder trusts the registry, and `root` is what the client has to trust.
    private struct Registry {
        let nginx: Nginx
        let larder: Larder
        let url: String
        let root: String

        static func start(_ way: Way, recipe: String, in place: Workplace, server: String = RecipeClientTests.unhelpful)
            async throws -> Registry
        {
            guard way == .https else {
                let nginx = try await Nginx.start(in: place, server: server)
                let larder = try await Larder.start(in: place, more: RecipeClientTests.recipe(recipe))
                return Registry(nginx: nginx, larder: larder, url: nginx.url, root: "")
            }
            let certificate = try await place.certificate()
            let nginx = try await Nginx.start(in: place, server: server, tls: certificate)
            let made = try await place.run(
                Larder.executable, ["ca", "create", "--out", place.path("ca"), "--host", "localhost"])
            try #require(made.status == 0, "\(made)")
            let larder = try await Larder.start(
                in: place,
                more: """
                    \(RecipeClientTests.recipe(recipe))
                    tls: { ca_file: \(certificate.certificate) }
                    intercept:
                      ca: { certificate: \(place.path("ca/intermediate.pem")), key: \(place.path("ca/intermediate.key")) }
                      hosts: [ localhost ]
                    """)
            return Registry(
                nginx: nginx, larder: larder, url: "https://localhost:\(nginx.port)", root: place.path("ca/root.pem"))
        }
    }

    @Test(.enabled(if: installed("npm") != nil, "package npm"), arguments: Way.allCases)
    func `npm install`(_ way: Way) async throws {
        try await Workplace.with { place in
            let registry = try await Registry.start(
                way, recipe: "npm", in: place,
                server: Self.unhelpful + Self.cookie + """
                    location = /larder-demo { default_type application/json; alias \(place.path("about.json")); }
                    """)
            let larder = registry.larder
            let file = "www/larder-demo/-/larder-demo-1.0.0.tgz"
            try place.write("package/package.json", #"{ "name": "larder-demo", "version": "1.0.0" }"#.utf8)
            try place.makeDirectory("www/larder-demo/-")
            let made = try await place.run("tar", ["czf", place.path(file), "package"])
            try #require(made.status == 0, "\(made)")
            let digest = try await place.run("sha1sum", [place.path(file)]).out.prefix(40)
            try place.write(
                "about.json",
                """
                { "name": "larder-demo", "dist-tags": { "latest": "1.0.0" }, "versions": { "1.0.0": {
                  "name": "larder-demo", "version": "1.0.0",
                  "dist": { "tarball": "\(registry.url)/larder-demo/-/larder-demo-1.0.0.tgz", "shasum": "\(digest)" } } } }
                """.utf8)
            for round in 1...2 {
                let folder = try place.makeDirectory("round-\(round)")
                try place.write("round-\(round)/package.json", #"{ "name": "user", "version": "1.0.0" }"#.utf8)
                let output = try await place.run(
                    "npm",
                    [
                        "install", "larder-demo", "--registry", "\(registry.url)/", "--proxy", larder.url,
                        "--https-proxy",
                        larder.url, "--cache",
                        place.path("cache-\(round)"), "--no-audit", "--no-fund", "--no-update-notifier",
                        "--fetch-retries", "0",
                    ] + (way == .https ? ["--cafile", registry.root] : []), in: folder)
                #expect(output.status == 0, "\(output)")
                #expect(!place.bytes("round-\(round)/node_modules/larder-demo/package.json").isEmpty)
            }
            let asked = registry.nginx.asked("/larder-demo/-/larder-demo-1.0.0.tgz")
            #expect(asked.count == 1, "\(registry.nginx.asked)")
        }
    }

    @Test(.enabled(if: installed("cargo") != nil, "package cargo"), arguments: Way.allCases)
    func `cargo fetch`(_ way: Way) async throws {
        try await Workplace.with { place in
            let registry = try await Registry.start(way, recipe: "cargo", in: place)
            let (nginx, larder) = (registry.nginx, registry.larder)
            let file = "www/crates/larder-demo/larder-demo-1.0.0.crate"
            let manifest = "[package]\nname = \"larder-demo\"\nversion = \"1.0.0\"\nedition = \"2021\"\n"
            try place.write("larder-demo-1.0.0/Cargo.toml", manifest.utf8)
            try place.write("larder-demo-1.0.0/src/lib.rs", "pub fn answer() -> u8 { 42 }\n".utf8)
            try place.makeDirectory("www/crates/larder-demo")
            let made = try await place.run("tar", ["czf", place.path(file), "larder-demo-1.0.0"])
            try #require(made.status == 0, "\(made)")
            let digest = try await place.run("sha256sum", [place.path(file)]).out.prefix(64)
            try place.write(
                "www/index/config.json", "{ \"dl\": \"\(registry.url)/crates/{crate}/{crate}-{version}.crate\" }".utf8)
            try place.write(
                "www/index/la/rd/larder-demo",
                #"{"name":"larder-demo","vers":"1.0.0","deps":[],"cksum":"\#(digest)","features":{},"yanked":false}"#
                    .utf8)
            for round in 1...2 {
                let folder = try place.makeDirectory("round-\(round)")
                try place.write(
                    "round-\(round)/Cargo.toml",
                    (manifest.replacingOccurrences(of: "larder-demo", with: "user")
                        + "[dependencies]\nlarder-demo = { version = \"1.0\", registry = \"demo\" }\n").utf8)
                try place.write("round-\(round)/src/lib.rs", "".utf8)
                var environment = larder.proxy
                environment["CARGO_HOME"] = place.path("cargo-\(round)")
                environment["CARGO_REGISTRIES_DEMO_INDEX"] = "sparse+\(registry.url)/index/"
                environment["CARGO_NET_RETRY"] = "0"
                if way == .https { environment["CARGO_HTTP_CAINFO"] = registry.root }
                environment["RUSTUP_HOME"] = Self.rustup
                let output = try await place.run("cargo", ["fetch"], environment: environment, in: folder)
                #expect(output.status == 0, "\(output)")
                #expect(output.err.contains("Downloaded larder-demo"), "\(output)")
            }
            #expect(nginx.asked("/crates/larder-demo/larder-demo-1.0.0.crate").count == 1, "\(nginx.asked)")
        }
    }

    private static let makeWheel = """
        import sys, zipfile
        with zipfile.ZipFile(sys.argv[1], "w") as wheel:
            wheel.writestr("larder_demo.py", "# " + "x" * 50000)
            info = "larder_demo-1.0.dist-info/"
            wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: larder-demo\\nVersion: 1.0\\n")
            wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nGenerator: hand\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
            wheel.writestr(info + "RECORD", "")
        """

    @Test(.enabled(if: installed("pip3") != nil, "package python3-pip"), arguments: Way.allCases)
    func `pip install`(_ way: Way) async throws {
        try await Workplace.with { place in
            let registry = try await Registry.start(way, recipe: "python", in: place)
            let folder = "packages/ab/cd/\(String(repeating: "0f", count: 30))"
            let file = "\(folder)/larder_demo-1.0-py3-none-any.whl"
            try place.makeDirectory("www/\(folder)")
            let made = try await place.run("python3", ["-c", Self.makeWheel, place.path("www/\(file)")])
            try #require(made.status == 0, "\(made)")
            try place.write(
                "www/simple/larder-demo/index.html",
                "<!DOCTYPE html><html><body><a href=\"/\(file)\">larder_demo-1.0-py3-none-any.whl</a></body></html>"
                    .utf8)
            for round in 1...2 {
                let trust = way == .https ? ["--cert", registry.root] : ["--trusted-host", "127.0.0.1"]
                let output = try await place.run(
                    "pip3",
                    [
                        "install", "--isolated", "--disable-pip-version-check", "--no-cache-dir", "--no-deps",
                        "--proxy",
                        registry.larder.url, "--index-url", "\(registry.url)/simple/", "--retries", "0", "--target",
                        place.path("round-\(round)"), "larder-demo",
                    ] + trust)
                #expect(output.status == 0, "\(output)")
                #expect(!place.bytes("round-\(round)/larder_demo.py").isEmpty)
            }
            #expect(registry.nginx.asked("/\(file)").count == 1, "\(registry.nginx.asked)")
        }
    }

    /// Where rustup keeps its compilers, if cargo is started by it.
    private static var rustup: String {
        let environment = ProcessInfo.processInfo.environment
        return environment["RUSTUP_HOME"] ?? "\(environment["HOME"] ?? "")/.rustup"
    }

    private static let makeModule = """
        import sys, zipfile
        with zipfile.ZipFile(sys.argv[1], "w") as module:
            module.writestr("example.test/demo@v1.0.0/go.mod", "module example.test/demo\\n")
            module.writestr("example.test/demo@v1.0.0/demo.go", "package demo\\n")
        """

    @Test(.enabled(if: installed("go") != nil && installed("python3") != nil, "packages golang-go, python3"))
    func `go mod download`() async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place, server: Self.unhelpful)
            let versions = "www/example.test/demo/@v"
            try place.makeDirectory(versions)
            try place.write("\(versions)/list", "v1.0.0\n".utf8)
            try place.write("\(versions)/v1.0.0.info", #"{ "Version": "v1.0.0", "Time": "2026-01-01T00:00:00Z" }"#.utf8)
            try place.write("\(versions)/v1.0.0.mod", "module example.test/demo\n".utf8)
            let made = try await place.run("python3", ["-c", Self.makeModule, place.path("\(versions)/v1.0.0.zip")])
            try #require(made.status == 0, "\(made)")
            let larder = try await Larder.start(in: place, more: Self.recipe("go"))
            for round in 1...2 {
                let folder = try place.makeDirectory("round-\(round)")
                try place.write("round-\(round)/go.mod", "module user\n\nrequire example.test/demo v1.0.0\n".utf8)
                let environment = larder.proxy.merging([
                    // Go asks loopback without a proxy, unless it does not see that it is loopback.
                    "GOPROXY": nginx.url.replacingOccurrences(of: "127.0.0.1", with: "127.1"), "GONOSUMDB": "*",
                    "GONOSUMCHECK": "1", "GOFLAGS": "-modcacherw", "GOTOOLCHAIN": "local", "GOSUMDB": "off",
                    "GOPATH": place.path("go-\(round)"), "GOCACHE": place.path("go-cache"),
                ]) { $1 }
                let output = try await place.run(
                    "go", ["mod", "download", "-x", "example.test/demo"], environment: environment, in: folder)
                #expect(output.status == 0, "\(output)")
                #expect(!place.bytes("go-\(round)/pkg/mod/example.test/demo@v1.0.0/demo.go").isEmpty)
            }
            for name in ["v1.0.0.info", "v1.0.0.mod", "v1.0.0.zip"] {
                #expect(nginx.asked("/example.test/demo/@v/\(name)").count <= 1, "\(nginx.asked)")
            }
            #expect(nginx.asked("/example.test/demo/@v/v1.0.0.zip").count == 1, "\(nginx.asked)")
        }
    }
}
