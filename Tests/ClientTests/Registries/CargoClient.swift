import Foundation
import Testing

extension RegistryClient {
    static let cargo = RegistryClient(
        name: "cargo", recipe: "cargo", programs: ["cargo"],
        publish: { host in
            let place = host.place
            let crate = "/crates/larder-demo/larder-demo-1.0.0.crate"
            try place.write("larder-demo-1.0.0/Cargo.toml", manifest(of: "larder-demo").utf8)
            try place.write("larder-demo-1.0.0/src/lib.rs", "pub fn answer() -> u8 { 42 }\n".utf8)
            try place.makeDirectory("www/crates/larder-demo")
            let made = try await place.run("tar", ["czf", place.path("www\(crate)"), "larder-demo-1.0.0"])
            try #require(made.status == 0, "\(made)")
            let digest = try await place.digest(of: "www\(crate)")
            try place.write(
                "www/index/config.json", "{ \"dl\": \"\(host.url)/crates/{crate}/{crate}-{version}.crate\" }".utf8)
            try place.write(
                "www/index/la/rd/larder-demo",
                #"{"name":"larder-demo","vers":"1.0.0","deps":[],"cksum":"\#(digest)","features":{},"yanked":false}"#
                    .utf8)
            return [crate]
        },
        install: { host, home in
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
            let fetched = try await host.place.run("cargo", ["fetch"], environment: environment, in: home.path)
            #expect(fetched.err.contains("Downloaded larder-demo"), "\(fetched)")
            return fetched
        }, installs: "Cargo.lock")

    private static func manifest(of name: String) -> String {
        "[package]\nname = \"\(name)\"\nversion = \"1.0.0\"\nedition = \"2021\"\n"
    }

    /// Where rustup keeps its compilers, if cargo is started by it.
    private static var rustup: String {
        let environment = ProcessInfo.processInfo.environment
        return environment["RUSTUP_HOME"] ?? "\(environment["HOME"] ?? "")/.rustup"
    }
}
