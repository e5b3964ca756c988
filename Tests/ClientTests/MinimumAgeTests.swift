import Foundation
import ProgramUnderTest
import Testing

/// Real package managers and a registry that has an old release and one of this hour.
@Suite("Clients and the minimum age of releases", .enabled(if: Nginx.isInstalled, "package nginx-light"))
struct MinimumAgeTests {
    private static let old = "2020-01-01T00:00:00Z"
    private static var young: String { ISO8601DateFormatter().string(from: Date(timeIntervalSinceNow: -3600)) }

    /// Makes a file as old as a release.
    private static func publish(_ path: String, at time: String, in place: Workplace) async throws {
        let touched = try await place.run("touch", ["-d", time, place.path(path)])
        try #require(touched.status == 0, "\(touched)")
    }

    // MARK: npm

    private static func withNpm(_ body: (ProxiedHost) async throws -> Void) async throws {
        try await Workplace.with { place in
            let host = try await ProxiedHost.start(
                in: place, recipe: "npm, min_age: 3d",
                server:
                    "add_header Cache-Control 'max-age=600'; location = /larder-demo { default_type application/json; try_files /larder-demo.json =404; }"
            )
            try place.makeDirectory("www/larder-demo/-")
            var versions: [String] = []
            for (version, time) in [("1.0.0", old), ("2.0.0", young)] {
                let tarball = "/larder-demo/-/larder-demo-\(version).tgz"
                try place.write("package/package.json", #"{ "name": "larder-demo", "version": "\#(version)" }"#.utf8)
                let made = try await place.run("tar", ["czf", place.path("www\(tarball)"), "package"])
                try #require(made.status == 0, "\(made)")
                try await publish("www\(tarball)", at: time, in: place)
                let digest = try await place.digest(of: "www\(tarball)", "sha1sum")
                versions.append(
                    #""\#(version)": { "name": "larder-demo", "version": "\#(version)", "dist": { "tarball": "\#(host.url)\#(tarball)", "shasum": "\#(digest)" } }"#
                )
            }
            try place.write(
                "www/larder-demo.json",
                """
                { "name": "larder-demo", "dist-tags": { "latest": "2.0.0" }, "versions": { \(versions.joined(separator: ",")) },
                  "time": { "1.0.0": "\(old)", "2.0.0": "\(young)" } }
                """.utf8)
            try await body(host)
        }
    }

    private static func npm(_ host: ProxiedHost, _ package: String, home name: String) async throws -> Workplace.Output
    {
        let home = try host.place.makeDirectory(name)
        try host.place.write("\(name)/package.json", #"{ "name": "user", "version": "1.0.0" }"#.utf8)
        return try await host.place.run(
            "npm",
            [
                "install", package, "--registry", "\(host.url)/", "--proxy", host.proxyURL, "--https-proxy",
                host.proxyURL,
                "--no-audit", "--no-fund", "--no-update-notifier", "--fetch-retries", "0", "--cafile", host.root ?? "",
            ], environment: ["HOME": home], in: home)
    }

    @Test(.enabled(if: installed("npm") != nil, "package npm"))
    func `npm installs the newest release that is old enough`() async throws {
        try await Self.withNpm { host in
            let output = try await Self.npm(host, "larder-demo", home: "a")
            #expect(output.status == 0, "\(output)")
            let manifest = String(
                decoding: host.place.bytes("a/node_modules/larder-demo/package.json"), as: UTF8.self)
            #expect(manifest.contains("1.0.0"), "\(manifest)")
        }
    }

    @Test(.enabled(if: installed("npm") != nil, "package npm"))
    func `npm says why a release that is too young is not there`() async throws {
        try await Self.withNpm { host in
            let pinned = try await Self.npm(host, "larder-demo@2.0.0", home: "a")
            #expect(pinned.status != 0)
            #expect(pinned.err.contains("Could not download larder-demo@2.0.0 due to policy violations"), "\(pinned)")
            #expect(pinned.err.contains("larder: larder-demo 2.0.0 was published 20"), "\(pinned)")
            #expect(pinned.err.contains(" and opens 20"))
            // As a lock file asks: by the address of the file.
            let file = try await Self.npm(host, "\(host.url)/larder-demo/-/larder-demo-2.0.0.tgz", home: "b")
            #expect(file.status != 0)
            #expect(file.err.contains("403 Forbidden: larder-demo-2.0.0.tgz was published 20"), "\(file)")
        }
    }

    // MARK: pip

    /// - Parameter isJSON: the index is in JSON, with times. Otherwise it is HTML.
    private static func withPip(isJSON: Bool, _ body: (ProxiedHost) async throws -> Void) async throws {
        try await Workplace.with { place in
            let type = isJSON ? "application/vnd.pypi.simple.v1+json" : "text/html"
            let host = try await ProxiedHost.start(
                in: place, recipe: "python, min_age: 3d",
                server:
                    "add_header Cache-Control 'max-age=600'; location = /simple/larder-demo/ { types {} default_type \(type); try_files /index.txt =404; }"
            )
            var files: [String] = []
            for (version, time) in [("1.0", old), ("2.0", young)] {
                let name = "larder_demo-\(version)-py3-none-any.whl"
                let information = "larder_demo-\(version).dist-info"
                let path = try await place.publishWheel(
                    name,
                    [
                        "larder_demo.py": "version = '\(version)'\n",
                        "\(information)/METADATA": "Metadata-Version: 2.1\nName: larder-demo\nVersion: \(version)\n",
                        "\(information)/WHEEL":
                            "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
                        "\(information)/RECORD": "",
                    ])
                try await publish("www\(path)", at: time, in: place)
                files.append(
                    isJSON
                        ? #"{ "filename": "\#(name)", "url": "\#(host.url)\#(path)", "hashes": {}, "upload-time": "\#(time)" }"#
                        : "<a href=\"\(path)\">\(name)</a>")
            }
            let index =
                isJSON
                ? #"{ "meta": { "api-version": "1.1" }, "name": "larder-demo", "files": [ \#(files.joined(separator: ", ")) ], "versions": ["1.0", "2.0"] }"#
                : "<!DOCTYPE html><html><body>\(files.joined())</body></html>"
            try place.write("www/index.txt", index.utf8)
            try await body(host)
        }
    }

    private static func pip(_ host: ProxiedHost, _ package: String, target: String) async throws -> Workplace.Output {
        try await host.place.run(
            "pip3",
            [
                "install", "--isolated", "--disable-pip-version-check", "--no-cache-dir", "--no-deps", "--proxy",
                host.proxyURL, "--index-url", "\(host.url)/simple/", "--retries", "0", "--cert", host.root ?? "",
                "--target",
                host.place.path(target), package,
            ])
    }

    @Test(.enabled(if: installed("pip3") != nil && installed("python3") != nil, "package python3-pip"))
    func `pip installs the newest release that is old enough, and no other`() async throws {
        try await Self.withPip(isJSON: true) { host in
            let output = try await Self.pip(host, "larder-demo", target: "a")
            #expect(output.status == 0, "\(output)")
            #expect(host.place.bytes("a/larder_demo.py") == Array("version = '1.0'\n".utf8))
            let pinned = try await Self.pip(host, "larder-demo==2.0", target: "b")
            #expect(pinned.status != 0)
            #expect(pinned.err.contains("from versions: 1.0)"), "\(pinned)")
        }
    }

    @Test(.enabled(if: installed("pip3") != nil && installed("python3") != nil, "package python3-pip"))
    func `an index in HTML has no times, and the file itself is refused`() async throws {
        try await Self.withPip(isJSON: false) { host in
            let output = try await Self.pip(host, "larder-demo", target: "a")
            #expect(output.status != 0)
            #expect(
                output.err.contains("403 Client Error: Forbidden: larder_demo-2.0-py3-none-any.whl was published 20"),
                "\(output)")
            #expect(output.err.contains(" and opens 20"))
            #expect(try await Self.pip(host, "larder-demo==1.0", target: "b").status == 0)
        }
    }

    // MARK: larder

    @Test(.enabled(if: installed("curl") != nil, "package curl"))
    func `explain and the log say the same as the answer`() async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place, server: "add_header Cache-Control 'max-age=600';")
            let larder = try await Larder.start(
                in: place, more: "recipes: [ { use: npm, hosts: [ 127.0.0.1 ], min_age: 3d } ]")
            try place.makeDirectory("www/demo/-")
            try place.write("www/demo/-/demo-1.0.0.tgz", "bytes".utf8)
            try await Self.publish("www/demo/-/demo-1.0.0.tgz", at: Self.young, in: place)
            let url = "\(nginx.url)/demo/-/demo-1.0.0.tgz"
            let reply = try await place.curl(url, through: larder)
            #expect(reply.status == 403, "\(reply)")
            let page = String(decoding: reply.body, as: UTF8.self)
            #expect(page.contains("demo-1.0.0.tgz was published 20"), "\(page)")
            try await eventually("the file is stored") { try await larder.statistic("store", "stored") == 1 }
            let explained = try await larder.command("explain", url)
            #expect(explained.out.contains("403 too-young: demo-1.0.0.tgz was published 20"), "\(explained)")
            #expect(explained.out.contains("file of demo"), "\(explained)")
            try await eventually("the log names the refusal") {
                textOfFile(larder.accessLog).contains("\"reason\":\"too-young\"")
            }
        }
    }

    @Test func `check warns of an exception that has ended`() async throws {
        try await Workplace.with { place in
            let text = """
                recipes:
                  - use: npm
                    hosts: [ registry.example.test ]
                    min_age: { age: 3d, break_glass: [ { package: a, until: 2020-01-01, why: a hole } ] }
                """
            try place.write("larder.yaml", text.utf8)
            let output = try await place.run(Larder.executable, ["check", "--config", place.path("larder.yaml")])
            #expect(output.status == 0, "\(output)")
            #expect(
                output.err.contains(
                    "recipes[1].min_age.break_glass[1]: the exception for a ended 2020-01-01T00:00:00Z: a hole"),
                "\(output)")
        }
    }
}
