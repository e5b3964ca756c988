import Foundation
import TLS
import Testing

extension RegistryClient {
    static let npm = RegistryClient(
        name: "npm", recipe: "npm", programs: ["npm"],
        server: cookie + "location = /larder-demo { default_type application/json; try_files /larder-demo.json =404; }",
        publish: { host, release in
            let place = host.place
            let tarball = "/larder-demo/-/larder-demo-\(release.version).tgz"
            try place.write(
                "package/package.json",
                #"{ "name": "larder-demo", "version": "\#(release.version)", "description": "\#(release.text)" }"#.utf8)
            try place.makeDirectory("www/larder-demo/-")
            let made = try await place.run("tar", ["czf", place.path("www\(tarball)"), "package"])
            try #require(made.status == 0, "\(made)")
            let digest = try await place.digest(of: "www\(tarball)", "sha1sum")
            var integrity = RunningDigest(.sha512)
            unsafe place.bytes("www\(tarball)").withUnsafeBytes { unsafe integrity.update($0) }
            let sha512 = Data(integrity.finish()).base64EncodedString()
            try place.write(
                "www/larder-demo.json",
                """
                { "name": "larder-demo", "dist-tags": { "latest": "\(release.version)" }, "versions": { "\(release.version)": {
                  "name": "larder-demo", "version": "\(release.version)",
                  "dist": { "tarball": "\(host.url)\(tarball)", "shasum": "\(digest)", "integrity": "sha512-\(sha512)" } } } }
                """.utf8)
            return [tarball]
        },
        install: { host, home, _ in
            try host.place.write("\(home.name)/package.json", #"{ "name": "user", "version": "1.0.0" }"#.utf8)
            return try await host.place.run(
                "npm",
                [
                    "install", "larder-demo", "--registry", "\(host.url)/", "--proxy", host.proxyURL, "--https-proxy",
                    host.proxyURL, "--no-audit", "--no-fund", "--no-update-notifier", "--fetch-retries", "0",
                ] + (host.root.map { ["--cafile", $0] } ?? []), environment: ["HOME": home.path], in: home.path)
        })
}
