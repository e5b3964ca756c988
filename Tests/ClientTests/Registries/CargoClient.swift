import Foundation
import Testing

extension RegistryClient {
    static let cargo = RegistryClient(
        name: "cargo", recipe: "cargo", programs: ["cargo"], limits: limitsOfStoredFiles,
        publish: { host, release in
            let place = host.place
            let folder = "larder-demo-\(release.version)"
            let crate = "/crates/larder-demo/\(folder).crate"
            try place.write("\(folder)/Cargo.toml", manifest(of: "larder-demo", release.version).utf8)
            try place.write("\(folder)/src/lib.rs", "// \(release.padded.replacing("\n", with: " "))\n".utf8)
            try place.makeDirectory("www/crates/larder-demo")
            let made = try await place.run("tar", ["czf", place.path("www\(crate)"), folder])
            try #require(made.status == 0, "\(made)")
            let digest = try await place.digest(of: "www\(crate)")
            try place.write(
                "www/index/config.json", "{ \"dl\": \"\(host.url)/crates/{crate}/{crate}-{version}.crate\" }".utf8)
            try place.write(
                "www/index/la/rd/larder-demo",
                #"{"name":"larder-demo","vers":"\#(release.version)","deps":[],"cksum":"\#(digest)","features":{},"yanked":false}"#
                    .utf8)
            return [crate]
        },
        install: { host, home, _ in
            let project = home.name
            let dependency = "[dependencies]\nlarder-demo = { version = \"1.0\", registry = \"demo\" }\n"
            try host.place.write("\(project)/Cargo.toml", (manifest(of: "user") + dependency).utf8)
            try host.place.write("\(project)/src/lib.rs", "".utf8)
            var environment = host.proxy
            environment["CARGO_HOME"] = home.path
            environment["CARGO_REGISTRIES_DEMO_INDEX"] = "sparse+\(host.url)/index/"
            environment["CARGO_NET_RETRY"] = "0"
            environment["CARGO_HTTP_CAINFO"] = host.root
            environment["RUSTUP_HOME"] = rustup
            return try await host.place.run("cargo", ["fetch"], environment: environment, in: home.path)
        })

    private static func manifest(of name: String, _ version: String = "1.0.0") -> String {
        "[package]\nname = \"\(name)\"\nversion = \"\(version)\"\nedition = \"2021\"\n"
    }

    /// Where rustup keeps its compilers, if cargo is started by it.
    private static var rustup: String {
        let environment = ProcessInfo.processInfo.environment
        return environment["RUSTUP_HOME"] ?? "\(environment["HOME"] ?? "")/.rustup"
    }
}
