import Settings
import Testing

@Suite("The default disk tier")
struct DefaultDiskTests {
    static let mebibyte: UInt64 = 1 << 20
    static let gibibyte: UInt64 = 1 << 30

    static let sizes: [(free: UInt64, size: UInt64)] = [
        (0, 0),
        (159 * mebibyte, 0),
        (160 * mebibyte, 16 * mebibyte),
        (165 * mebibyte, 16 * mebibyte),
        (10 * gibibyte, gibibyte),
        (100 * gibibyte - 1, 10 * gibibyte - mebibyte),
        (100 * gibibyte, 10 * gibibyte),
        (8192 * gibibyte, 10 * gibibyte),
        (.max, 10 * gibibyte),
    ]
    @Test(arguments: sizes) func `the default disk takes a tenth of the free space, 10 GiB at most, or nothing`(
        _ row: (free: UInt64, size: UInt64)
    ) {
        #expect(DefaultDisk.size(freeBytes: row.free) == row.size, "\(row)")
    }

    static let directories: [(environment: [String: String], expected: [String])] = [
        ([:], ["/var/lib/larder"]),
        (["HOME": "/home/a"], ["/var/lib/larder", "/home/a/.local/state/larder"]),
        (["HOME": "/home/a", "XDG_STATE_HOME": "/s"], ["/var/lib/larder", "/s/larder"]),
        (["HOME": "/home/a", "XDG_STATE_HOME": "relative"], ["/var/lib/larder", "/home/a/.local/state/larder"]),
        (["HOME": "/"], ["/var/lib/larder"]),
    ]
    @Test(arguments: directories) func `the default disk is in the system's directory, or in the user's own`(
        _ row: (environment: [String: String], expected: [String])
    ) {
        #expect(DefaultDisk.directories { row.environment[$0] } == row.expected)
    }

    static let choice = DefaultDisk(path: "/home/a/.local/state/larder", size: 4 << 30)
    static let texts: [(text: String, disk: ZoneDisk?)] = [
        ("", disk(choice.path, choice.size)),
        ("cache: { disk: { size: 0 } }", nil),
        ("cache: { disk: { path: /a } }", disk("/a", choice.size)),
        ("cache: { disk: { size: 1GiB } }", disk(choice.path, 1 << 30)),
        ("cache: { disk: { path: /a, size: 1GiB } }", disk("/a", 1 << 30)),
        // A quota that is larger than the size that was chosen is all of it.
        ("cache: { disk: { pinned: 5GiB } }", disk(choice.path, choice.size, pinned: choice.size)),
    ]
    static func disk(_ path: String, _ size: UInt64, pinned: UInt64? = nil) -> ZoneDisk {
        ZoneDisk(zone: "default", path: path, size: size, pinned: pinned ?? size / 2, sync: .seconds(2))
    }

    @Test(arguments: texts) func `written values count, and the default replaces the others`(
        _ row: (text: String, disk: ZoneDisk?)
    ) throws {
        var cache = try loaded(row.text).cache
        cache.defaultDisk = Self.choice
        #expect(cache.disk == row.disk, "\(row.text)")
    }

    @Test func `a zone is found by its directory, and its disk can be turned off alone`() throws {
        let cache = try loaded(
            "cache: { disk: { path: /d, size: 1GiB }, zones: [ { name: a, memory: 1MiB, disk: { path: /a/b, size: 1GiB } } ] }"
        ).cache
        #expect(cache.zone(usingDirectory: "/a/b/") == "a" && cache.zone(usingDirectory: "/a/b/c") == "a")
        #expect(cache.zone(usingDirectory: "/a") == "a" && cache.zone(usingDirectory: "/a/c") == nil)
        #expect(cache.withoutDisk(ofZone: "a").disks.map(\.zone) == ["default"])
        #expect(cache.withoutDisk(ofZone: "default").disks.map(\.zone) == ["a"])
    }
}
