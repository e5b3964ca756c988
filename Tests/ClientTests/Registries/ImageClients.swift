import Foundation
import Testing

extension RegistryClient {
    /// It tries http only after https has failed, so there is no row for plain text.
    static let skopeo = RegistryClient(
        name: "skopeo", recipe: "oci", programs: ["skopeo"], ways: [.https, .password],
        server: cookie + """
            location = /v2/ { return 200 '{}'; }
            location ~ ^/v2/.*/manifests/ { default_type \(manifestType); }
            """, isValidated: true,
        limits: [.originDown: "it asks for /v2/ first, which is never stored"], publish: publishImage,
        install: copyImage)

    /// It unpacks what it pulls.
    static let podman = RegistryClient(
        name: "podman", recipe: "oci", programs: ["podman"], ways: [.password], server: skopeo.server,
        isValidated: true,
        needsRoot: true, limits: skopeo.limits, publish: publishImage,
        install: { host, home, _ in
            let policy = try host.place.write(
                "\(home.name)/policy.json", #"{ "default": [ { "type": "insecureAcceptAnything" } ] }"#.utf8)
            return try await host.place.run(
                "podman",
                [
                    "--root", "\(home.path)/root", "--runroot", "\(home.path)/run", "--storage-driver", "vfs", "pull",
                    "--quiet", "--signature-policy", policy, "docker://\(host.authority)/larder/demo:latest",
                ], environment: host.environment(home: home))
        })

    /// As public registries do it: whoever asks gets a token, and nothing is to be had without one.
    static let skopeoWithTokens = RegistryClient(
        name: "skopeo with tokens", recipe: "oci", programs: ["skopeo"],
        ways: [.https, .password],
        server: """
            location = /token { default_type application/json; return 200 '{ "token": "abc", "expires_in": 300 }'; }
            location /v2/ {
                default_type \(manifestType);
                if ($http_authorization != 'Bearer abc') {
                    add_header WWW-Authenticate 'Bearer realm="https://$http_host/token",service="demo"' always;
                    return 401;
                }
                if ($uri = /v2/) { return 200 '{}'; }
            }
            """, isValidated: true,
        limits: [.originDown: "it asks for /v2/ first, which is never stored"], publish: publishImage,
        install: copyImage)

    private static let manifestType = "application/vnd.docker.distribution.manifest.v2+json"

    /// A layer, a configuration, and the manifest of both under a tag. Blobs are named by their digests.
    @Sendable private static func publishImage(_ host: ProxiedHost, _ release: Release) async throws -> [String] {
        let place = host.place
        try place.write("layer/data", release.padded.utf8)
        let packed = try await place.run("tar", ["cf", place.path("layer.tar"), "-C", place.path("layer"), "data"])
        try #require(packed.status == 0, "\(packed)")
        let layer = try await publishBlob(place, place.bytes("layer.tar"))
        let configuration = try await publishBlob(
            place,
            Array(
                """
                { "architecture": "amd64", "os": "linux", "config": {},
                  "rootfs": { "type": "layers", "diff_ids": [ "\(layer.digest)" ] } }
                """.utf8))
        let manifest = """
            { "schemaVersion": 2, "mediaType": "\(manifestType)",
              "config": { "mediaType": "application/vnd.docker.container.image.v1+json",
                          "size": \(configuration.size), "digest": "\(configuration.digest)" },
              "layers": [ { "mediaType": "application/vnd.docker.image.rootfs.diff.tar",
                            "size": \(layer.size), "digest": "\(layer.digest)" } ] }
            """
        try place.write("www/v2/larder/demo/manifests/latest", manifest.utf8)
        return [layer, configuration].map { "/v2/larder/demo/blobs/\($0.digest)" }
    }

    private static func publishBlob(_ place: Workplace, _ content: [UInt8]) async throws -> (digest: String, size: Int)
    {
        try place.write("blob", content)
        let digest = "sha256:\(try await place.digest(of: "blob"))"
        try place.write("www/v2/larder/demo/blobs/\(digest)", content)
        return (digest, content.count)
    }

    @Sendable private static func copyImage(_ host: ProxiedHost, _ home: Home, _: Release) async throws
        -> Workplace.Output
    {
        try await host.place.run(
            "skopeo",
            [
                "--insecure-policy", "copy", "docker://\(host.authority)/larder/demo:latest", "dir:\(home.path)/image",
            ], environment: host.environment(home: home))
    }
}
