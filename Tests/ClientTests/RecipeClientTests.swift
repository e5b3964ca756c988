import Foundation
import Testing

/// Real clients of package registries: each installs twice with a fresh home, and the second time no file of a package comes from the origin.
@Suite("Clients of package ecosystems", .enabled(if: Nginx.isInstalled, "package nginx-light"))
struct RecipeClientTests {
    /// The origin gives no lifetime of use: without recipes, each file is asked for again.
    private static let unhelpful = "add_header Cache-Control 'max-age=0';"
    /// And it has a content delivery network with its cookie.
    private static let cookie = "add_header Set-Cookie '_cfuvid=secret; path=/';"

    private static func recipe(_ name: String) -> String { "recipes: [ { use: \(name), hosts: 127.0.0.1 } ]" }

    @Test(.enabled(if: installed("npm") != nil, "package npm")) func `npm install`() async throws {
        try await Workplace.with { place in
            let port = try await Nginx.start(
                in: place,
                server: Self.unhelpful + Self.cookie + """
                    location = /larder-demo { default_type application/json; alias \(place.path("about.json")); }
                    """)
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
                  "dist": { "tarball": "\(port.url)/larder-demo/-/larder-demo-1.0.0.tgz", "shasum": "\(digest)" } } } }
                """.utf8)
            let larder = try await Larder.start(in: place, more: Self.recipe("npm"))
            for round in 1...2 {
                let folder = try place.makeDirectory("round-\(round)")
                try place.write("round-\(round)/package.json", #"{ "name": "user", "version": "1.0.0" }"#.utf8)
                let output = try await place.run(
                    "npm",
                    [
                        "install", "larder-demo", "--registry", "\(port.url)/", "--proxy", larder.url, "--cache",
                        place.path("cache-\(round)"), "--no-audit", "--no-fund", "--no-update-notifier",
                        "--fetch-retries", "0",
                    ], in: folder)
                #expect(output.status == 0, "\(output)")
                #expect(!place.bytes("round-\(round)/node_modules/larder-demo/package.json").isEmpty)
            }
            #expect(port.asked("/larder-demo/-/larder-demo-1.0.0.tgz").count == 1, "\(port.asked)")
        }
    }

    @Test(.enabled(if: installed("cargo") != nil, "package cargo")) func `cargo fetch`() async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place, server: Self.unhelpful)
            let file = "www/crates/larder-demo/larder-demo-1.0.0.crate"
            let manifest = "[package]\nname = \"larder-demo\"\nversion = \"1.0.0\"\nedition = \"2021\"\n"
            try place.write("larder-demo-1.0.0/Cargo.toml", manifest.utf8)
            try place.write("larder-demo-1.0.0/src/lib.rs", "pub fn answer() -> u8 { 42 }\n".utf8)
            try place.makeDirectory("www/crates/larder-demo")
            let made = try await place.run("tar", ["czf", place.path(file), "larder-demo-1.0.0"])
            try #require(made.status == 0, "\(made)")
            let digest = try await place.run("sha256sum", [place.path(file)]).out.prefix(64)
            try place.write(
                "www/index/config.json", "{ \"dl\": \"\(nginx.url)/crates/{crate}/{crate}-{version}.crate\" }".utf8)
            try place.write(
                "www/index/la/rd/larder-demo",
                #"{"name":"larder-demo","vers":"1.0.0","deps":[],"cksum":"\#(digest)","features":{},"yanked":false}"#
                    .utf8)
            let larder = try await Larder.start(in: place, more: Self.recipe("cargo"))
            for round in 1...2 {
                let folder = try place.makeDirectory("round-\(round)")
                try place.write(
                    "round-\(round)/Cargo.toml",
                    (manifest.replacingOccurrences(of: "larder-demo", with: "user")
                        + "[dependencies]\nlarder-demo = { version = \"1.0\", registry = \"demo\" }\n").utf8)
                try place.write("round-\(round)/src/lib.rs", "".utf8)
                var environment = larder.proxy
                environment["CARGO_HOME"] = place.path("cargo-\(round)")
                environment["CARGO_REGISTRIES_DEMO_INDEX"] = "sparse+\(nginx.url)/index/"
                environment["CARGO_NET_RETRY"] = "0"
                environment["RUSTUP_HOME"] = Self.rustup
                let output = try await place.run("cargo", ["fetch"], environment: environment, in: folder)
                #expect(output.status == 0, "\(output)")
                #expect(output.err.contains("Downloaded larder-demo"), "\(output)")
            }
            #expect(nginx.asked("/crates/larder-demo/larder-demo-1.0.0.crate").count == 1, "\(nginx.asked)")
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
