import ProgramUnderTest
import Testing

/// Clients of stores whose addresses are digests: large files of git, and models.
extension RegistryClient {
    static let gitLFS = RegistryClient(
        name: "git-lfs", recipe: "git-lfs", programs: ["git", "git-lfs"], ways: [.http, .password],
        limits: [.originDown: "it asks for a plan with POST"],
        publish: { host, release in
            let object = try await publishObject("/objects/", host.place, release)
            try host.place.write(
                "pointer",
                "version https://git-lfs.github.com/spec/v1\noid sha256:\(object.digest)\nsize \(object.size)\n".utf8)
            let plan = """
                { "transfer": "basic", "objects": [ { "oid": "\(object.digest)", "size": \(object.size), "authenticated": true,
                  "actions": { "download": { "href": "\(host.url)\(object.path)" } } } ] }
                """
            try host.place.writeAnswer(
                "/demo.git/info/lfs/objects/batch", fields: ["Content-Type: application/vnd.git-lfs+json"],
                body: Array(plan.utf8))
            return [object.path]
        },
        install: { host, home, _ in
            let words = "-c lfs.url=\(host.url)/demo.git/info/lfs -c lfs.transfer.maxretries=1"
            return try await host.place.run(
                "sh", ["-c", "git init -q && git \(words) lfs smudge >data"], environment: host.environment(home: home),
                input: host.place.path("pointer"), in: home.path)
        })

    /// Four connections, each for a range.
    static let aria2 = RegistryClient(
        name: "aria2c", recipe: "git-lfs", programs: ["aria2c"], ways: [.http, .password],
        publish: { host, release in [try await publishObject("/objects/", host.place, release, copies: 90).path] },
        install: { host, home, _ in
            let path = textOfFile(host.place.path("object-path"))
            var words = [
                "--no-conf", "-x4", "-s4", "-k1M", "--max-tries=1", "--all-proxy=\(host.proxyURL)", "-o", "data",
            ]
            words.append("--checksum=sha-256=\(path.suffix(64))")
            if let root = host.root { words.append("--ca-certificate=\(root)") }
            return try await host.place.run("aria2c", words + ["\(host.url)\(path)"], in: home.path)
        })

    /// From PyPI. It asks the hub for the commit of a branch with HEAD, and downloads from the store that the hub redirects to.
    static let huggingface = RegistryClient(
        name: "huggingface_hub", recipe: "huggingface", programs: ["hf"], ways: [.http],
        limits: [.originDown: "it asks with HEAD which commit a branch is"],
        publish: { host, release in
            let object = try await publishObject(modelStore, host.place, release)
            try host.place.writeAnswer(
                "/larder/demo/resolve/main/model.bin", status: "302 Found",
                fields: [
                    "Location: \(host.storeURL)\(object.path)", "X-Repo-Commit: \(object.digest.prefix(40))",
                    "X-Linked-Size: \(object.size)", "X-Linked-Etag: \"\(object.digest)\"",
                ])
            return [object.path]
        },
        install: { host, home, _ in
            var environment = host.environment(home: home)
            environment["HF_ENDPOINT"] = host.url
            environment["HF_HUB_DISABLE_UPDATE_CHECK"] = "1"
            environment["HF_HUB_DISABLE_TELEMETRY"] = "1"
            environment["HF_HUB_DISABLE_XET"] = "1"
            return try await host.place.run("hf", ["download", "larder/demo", "model.bin"], environment: environment)
        })

    /// From PyPI. A byte tells it how long the file is; then it asks for four ranges at a time. It compares no digest.
    static let hfTransfer = RegistryClient(
        name: "hf_transfer", recipe: "huggingface", modules: ["hf_transfer"], asksForRanges: true,
        publish: { host, release in [try await publishObject(modelStore, host.place, release, copies: 20).path] },
        install: { host, home, _ in
            let url = host.url + textOfFile(host.place.path("object-path"))
            let program = """
                import hf_transfer, sys
                url, file = sys.argv[1:]
                hf_transfer.download(url=url, filename=file, max_files=4, chunk_size=1 << 18)
                """
            let output = try await host.place.runPython(
                with: "hf_transfer", program, [url, "\(home.path)/data"], environment: host.environment(home: home))
            guard output.status == 0 else { return output }
            // The fetch in the background may take longer than the client.
            try await eventually("the whole is stored") { try await host.larder.statistic("store", "stored") > 0 }
            return output
        })

    private static let modelStore = "/repos/ab/cd/\(String(repeating: "e", count: 64))/"

    private struct Object {
        let path: String
        let digest: String
        let size: Int
    }

    /// Puts a file at an address that ends with its digest. The path is told in `object-path` as well.
    private static func publishObject(
        _ folder: String, _ place: Workplace, _ release: Release, copies: Int = 1
    ) async throws -> Object {
        let content = Array(String(repeating: release.padded, count: copies).utf8)
        try place.write("object", content)
        let digest = try await place.digest(of: "object")
        try place.write("www\(folder)\(digest)", content)
        try place.write("object-path", "\(folder)\(digest)".utf8)
        return Object(path: "\(folder)\(digest)", digest: digest, size: content.count)
    }
}
