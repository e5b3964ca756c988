import Testing

@Suite("Architecture: who may import whom")
struct ImportTests {
    @Test func `every source file belongs to a room`() {
        #expect(SourceFile.all.count > 100)
        #expect(Set(SourceFile.all.map(\.target)) == Rooms.all, "Package.swift says which room is core, edge or driver")
    }

    @Test(arguments: SourceFile.of(Rooms.core))
    func `a file of the core imports the core alone`(_ file: SourceFile) {
        let strangers = Set(file.imports).subtracting(Rooms.core)
        #expect(strangers.isEmpty)
    }

    @Test(arguments: SourceFile.of(Rooms.edge))
    func `a file of the edge knows nothing of the core and nothing of the drivers`(_ file: SourceFile) {
        let imports = Set(file.imports)
        #expect(imports.isDisjoint(with: Rooms.core))
        #expect(imports.isDisjoint(with: Rooms.drivers))
    }

    @Test func `the server does not know the admin, and nobody knows the command line`() {
        for file in SourceFile.all {
            #expect(!file.imports.contains("larder"), "\(file.path)")
            if file.target == "Server" { #expect(!file.imports.contains("Admin"), "\(file.path)") }
            // Verify, repair, export and import: a proxy that serves needs none of them.
            if file.target != "larder" { #expect(!file.imports.contains("DiskTools"), "\(file.path)") }
        }
    }

    /// Whoever stores and serves speaks of a back store. The disk itself is for its adapter and for the commands that work on
    /// its files while no proxy runs.
    @Test func `the disk is known to its adapter, its tools and the command line alone`() {
        for file in SourceFile.all where file.imports.contains("Disk") {
            #expect(["DiskTier", "DiskTools", "larder"].contains(file.target), "\(file.path)")
        }
        for file in SourceFile.all where file.imports.contains("DiskTier") {
            #expect(file.path == "Sources/Server/life/Zones.swift", "\(file.path)")
        }
    }

    /// The engine of PAC files runs in a process of its own, which the command line becomes.
    @Test func `the engine for PAC files is known to the command line alone`() {
        for file in SourceFile.all where file.imports.contains("PAC") || file.imports.contains("CPacparser") {
            #expect(file.path == "Sources/larder/EvaluatePAC.swift" || file.target == "PAC", "\(file.path)")
        }
    }

    /// Not even in a comment, so that a search for the word finds nothing.
    @Test(arguments: SourceFile.all)
    func `no source mentions Foundation`(_ file: SourceFile) {
        #expect(!file.text.contains("Foundation"))
    }

    static let lines: [(String, [String])] = [
        ("import Message", ["Message"]), ("package import EventLoop", ["EventLoop"]),
        ("@preconcurrency import Glibc", ["Glibc"]), ("import struct Storage.Body", ["Storage"]),
        ("    // import Server", []), ("let x = important", []), ("/// We import Server", []),
    ]
    @Test(arguments: lines) func `imports are read from all their spellings`(_ line: String, _ expected: [String]) {
        #expect(SourceFile(path: "Sources/X/Y.swift", text: line).imports == expected)
    }
}

@Suite("Architecture: Package.swift")
struct ManifestTests {
    private static func dependencies(of target: String) throws -> Set<String> {
        try #require(Rooms.named(target), "Package.swift declares it").dependencies
    }

    @Test(arguments: Rooms.all.sorted()) func `a room depends on rooms of lower floors`(_ target: String) throws {
        let room = try #require(Rooms.named(target))
        for name in room.dependencies.intersection(Rooms.all) {
            #expect(try #require(Rooms.named(name)).floor < room.floor, "\(name)")
        }
    }

    /// The package manager would let a file import whatever happens to have been built before.
    @Test(arguments: Rooms.all.sorted()) func `a file imports what its room declares`(_ target: String) throws {
        let declared = try Self.dependencies(of: target)
        for file in SourceFile.of([target]) {
            let strangers = Set(file.imports).intersection(Rooms.all).subtracting(declared)
            #expect(strangers.isEmpty, "\(file.path)")
        }
    }

    @Test(arguments: Rooms.all.sorted()) func `what a room declares is imported`(_ target: String) throws {
        let imported = Set(SourceFile.of([target]).flatMap(\.imports))
        #expect(try Self.dependencies(of: target).intersection(Rooms.all).subtracting(imported).isEmpty)
    }

    @Test(arguments: Rooms.core) func `a core target depends on the core alone`(_ target: String) throws {
        #expect(try Self.dependencies(of: target).subtracting(Rooms.core).isEmpty)
    }

    /// DiskTier stands on Storage and Disk, Disk on the threads and locks of EventLoop, DiskTools on both of those, Secrets on
    /// Processes, and Transport on the sockets of EventLoop and the sessions of TLS. No other room of the edge knows another.
    static let knownAtTheEdge = [
        "DiskTier": ["Disk", "Storage"], "Disk": ["EventLoop"], "DiskTools": ["Disk", "EventLoop"],
        "Secrets": ["Processes"], "Transport": ["EventLoop", "TLS"],
    ]

    @Test(arguments: Rooms.edge) func `an edge target depends on C libraries, and the rooms below it`(
        _ target: String
    ) throws {
        let dependencies = try Self.dependencies(of: target)
        let strangers = dependencies.filter { !$0.hasPrefix("C") || Rooms.core.contains($0) || Rooms.edge.contains($0) }
        #expect(strangers.subtracting(Self.knownAtTheEdge[target] ?? []).isEmpty)
    }

    @Test func `the manifest is read right`() {
        let manifest = """
            func core(_ name: String, floor: Int, _ dependencies: [Target.Dependency] = []) -> Target {
            parser("Message", floor: 0),
            core(
                "Rules", floor: 12,
                [
                    "Message", "Texts",
                ]),
            driver("Server", floor: 13, ["Rules", "CLarder"], resources: [.embedInCode("data")]),
            .executableTarget(
                name: "larder", dependencies: ["Server"], swiftSettings: strict),
            """
        #expect(
            Rooms.read(manifest) == [
                DeclaredRoom(name: "Message", kind: .parser, floor: 0, dependencies: []),
                DeclaredRoom(name: "Rules", kind: .core, floor: 12, dependencies: ["Message", "Texts"]),
                DeclaredRoom(name: "Server", kind: .driver, floor: 13, dependencies: ["Rules", "CLarder"]),
                DeclaredRoom(name: "larder", kind: .driver, floor: 14, dependencies: ["Server"]),
            ])
    }
}
