import Testing

/// rattler from PyPI: what pixi downloads, solves and installs with.
extension RegistryClient {
    /// It takes `repodata.json.zst`.
    static let rattler = RegistryClient(
        name: "rattler", recipe: "conda", modules: ["rattler"], limits: limitsOfStoredFiles,
        publish: { try await publishChannel($0, $1) }, install: installFromChannel)

    /// As large channels have it: the index has a part for each package.
    static let rattlerWithShards = RegistryClient(
        name: "rattler with shards", recipe: "conda", modules: ["rattler"], ways: [.http, .password],
        limits: limitsOfStoredFiles.merging([.originDown: "it asks for parts of the index with no-store"]) { $1 },
        publish: { try await publishChannel($0, $1, shards: true) }, install: installFromChannel)

    /// A channel with one package, and the index that rattler makes of it.
    private static func publishChannel(
        _ host: ProxiedHost, _ release: Release, shards: Bool = false
    ) async throws -> [String] {
        let place = host.place
        let package = "/channel/noarch/larder-demo-\(release.version)-0.tar.bz2"
        try place.makeDirectory("www/channel/noarch")
        try place.write("data", release.padded.utf8)
        let program = """
            import asyncio, hashlib, io, json, sys, tarfile
            from rattler.index import index_fs
            channel, package, version, data, shards = sys.argv[1:]
            data = open(data, "rb").read()
            about = {
                "name": "larder-demo", "version": version, "build": "0", "build_number": 0, "depends": [],
                "subdir": "noarch", "noarch": "generic" }
            path = {
                "_path": "share/data", "path_type": "hardlink", "size_in_bytes": len(data),
                "sha256": hashlib.sha256(data).hexdigest() }
            with tarfile.open(package, "w:bz2") as archive:
                def add(name, content):
                    entry = tarfile.TarInfo(name)
                    entry.size = len(content)
                    archive.addfile(entry, io.BytesIO(content))
                add("info/index.json", json.dumps(about).encode())
                add("info/paths.json", json.dumps({ "paths": [path], "paths_version": 1 }).encode())
                add("share/data", data)
            asyncio.run(index_fs(channel, write_zst=True, write_shards=shards == "shards", force=True))
            """
        let made = try await runRattler(
            program,
            [
                place.path("www/channel"), place.path("www\(package)"), release.version, place.path("data"),
                shards ? "shards" : "",
            ], in: place)
        try #require(made.status == 0, "\(made)")
        return [package]
    }

    @Sendable private static func installFromChannel(_ host: ProxiedHost, _ home: Home, _: Release) async throws
        -> Workplace.Output
    {
        let program = """
            import asyncio, rattler, sys
            channel, home = sys.argv[1:]
            async def install():
                gateway = rattler.Gateway(cache_dir=home + "/cache")
                found = await rattler.solve([channel], ["larder-demo"], gateway=gateway, platforms=["noarch"])
                await rattler.install(found, home + "/prefix", cache_dir=home + "/cache")
            asyncio.run(install())
            """
        return try await runRattler(
            program, ["\(host.url)/channel", home.path], in: host.place, environment: host.environment(home: home))
    }

    /// Its threads may still use Python when a program is done, and crash it while Python ends. So Python has no time for that.
    private static func runRattler(
        _ program: String, _ arguments: [String], in place: Workplace, environment: [String: String] = [:]
    ) async throws -> Workplace.Output {
        try await place.runPython(
            with: "rattler", "\(program)\nimport os\nos._exit(0)\n", arguments, environment: environment)
    }
}
