import Caching
import Message
import Rules
import Settings
import Testing

@Suite("Configuration of the disk tier")
struct DiskConfigurationTests {
    static let zones = """
        cache:
          memory: 64MiB
          disk: { path: /var/lib/larder, size: 8GiB }
          zones:
            - { name: memory, memory: 32MiB }
            - { name: layers, memory: 32MiB, disk: { path: /srv/layers, size: 1TiB, pinned: 1GiB } }
            - { name: pages, memory: 32MiB, storage: session, disk: { path: /srv/pages, size: 1GiB } }
            - { name: off, memory: 32MiB, disk: { path: /srv/off, size: 0 } }
        """

    @Test func `every zone has its own disk, or none`() throws {
        let cache = try loaded(Self.zones).cache
        let second = Duration.seconds(2)
        #expect(
            cache.disks == [
                ZoneDisk(zone: "default", path: "/var/lib/larder", size: 8 << 30, pinned: 4 << 30, sync: second),
                ZoneDisk(zone: "layers", path: "/srv/layers", size: 1 << 40, pinned: 1 << 30, sync: second),
                ZoneDisk(zone: "pages", path: "/srv/pages", size: 1 << 30, pinned: 512 << 20, sync: second),
            ])
        #expect(cache.disk(ofZone: "layers") == cache.disks[1])
        #expect(cache.disk(ofZone: "memory") == nil && cache.disk(ofZone: "off") == nil)
        #expect(Configuration().cache.disks.isEmpty)
    }

    /// What holds in a zone for a request without a rule: asked of a last rule that sends all to it.
    static func handling(_ zone: String) throws -> CacheHandling {
        var configuration = try loaded(Self.zones)
        configuration.cache.rules = [CacheRule(zone: zone, number: 1)]
        let request = RuleRequest(
            client: nil, method: .get, destination: try #require(DestinationHost("a".utf8)), port: 80, isTunnel: false)
        return configuration.cacheRules.handling(of: request)
    }

    @Test func `a zone with a disk stores permanently unless it says otherwise`() throws {
        #expect(try loaded(Self.zones).cacheRules.defaultHandling.storage == .permanent)
        #expect(Configuration().cacheRules.defaultHandling.storage == .session)
        #expect(try Self.handling("memory").storage == .session)
        #expect(try Self.handling("layers").storage == .permanent)
        #expect(try Self.handling("pages").storage == .session)
        #expect(try Self.handling("off").storage == .session)
    }

    @Test func `the largest body is an eighth of the larger of memory and disk`() throws {
        #expect(try loaded(Self.zones).cache.objectSizeMax == 1 << 30)
        #expect(try Self.handling("memory").objectSizeMax == 4 << 20)
        #expect(try Self.handling("layers").objectSizeMax == 1 << 37)
    }

    static let errors: [(text: String, expected: [String])] = [
        (
            "cache:\n  disk: { size: 1GiB, sync: 50ms }",
            ["2: cache.disk.sync: found \"50ms\", expected a duration from 100ms to 1h"]
        ),
        (
            "cache:\n  disk:\n    size: 1GiB\n    pinned: 2GiB",
            ["4: cache.disk.pinned: 2GiB is more than size, 1GiB"]
        ),
        (
            "cache:\n  disk: { size: 4MiB }",
            ["2: cache.disk.size: found \"4MiB\", expected 0, or a size from 16MiB to 1024TiB"]
        ),
        (
            "cache:\n  disk: { path: /a }\n  zones:\n    - { name: a, memory: 1MiB, disk: { path: /a/b, size: 1GiB } }",
            [
                "4: cache.zones[1].disk.path: /a/b is inside /a, the directory of zone default; give each zone a directory of its own"
            ]
        ),
        ("cache:\n  disk: { siez: 1GiB }", ["2: cache.disk.siez: unknown key; did you mean cache.disk.size?"]),
        (
            "cache:\n  zones:\n    - { name: a, memory: 1MiB, disk: { path: /a, size: 1GiB, pined: 1 } }",
            ["3: cache.zones[1].disk.pined: unknown key; did you mean pinned?"]
        ),
        (
            "cache:\n  zones:\n    - { name: a, memory: 1MiB, disk: { path: /a, size: 1GiB, pinned: 2GiB } }",
            ["3: cache.zones[1].disk.pinned: 2GiB is more than size, 1GiB"]
        ),
        (
            "cache:\n  disk: { size: 1GiB }\n  zones:\n    - name: a\n      memory: 1MiB\n      disk: { path: /var//lib/./larder/, size: 1GiB }",
            [
                "6: cache.zones[1].disk.path: /var//lib/./larder/ is also /var/lib/larder, the directory of zone default; give each zone a directory of its own"
            ]
        ),
        (
            "cache:\n  zones:\n    - { name: a, memory: 1MiB, disk: { path: /s/a, size: 1GiB } }\n    - { name: b, memory: 1MiB, disk: { path: /s/c/../a/b, size: 1GiB } }",
            [
                "4: cache.zones[2].disk.path: /s/c/../a/b is inside /s/a, the directory of zone a; give each zone a directory of its own"
            ]
        ),
        (
            "cache:\n  zones:\n    - { name: a, memory: 1MiB, disk: { path: s/a, size: 1GiB } }\n    - { name: b, memory: 1MiB, disk: { path: ./s, size: 1GiB } }",
            [
                "4: cache.zones[2].disk.path: ./s contains s/a, the directory of zone a; give each zone a directory of its own"
            ]
        ),
    ]
    @Test(arguments: errors.indices) func `an impossible disk is an error`(_ index: Int) throws {
        let row = Self.errors[index]
        let (configuration, errors, _) = try load(row.text)
        #expect(configuration == nil)
        #expect(errors.map(\.description) == row.expected.map { "larder.yaml:\($0)" }, "\(row.text)")
    }

    static let fine = [
        // Names that begin alike are not nested, and a disk that is off is in nobody's way.
        "cache: { zones: [ { name: a, memory: 1MiB, disk: { path: /s/a, size: 1GiB } }, { name: b, memory: 1MiB, disk: { path: /s/ab, size: 1GiB } } ] }",
        "cache: { zones: [ { name: a, memory: 1MiB, disk: { path: /var/lib/larder, size: 1GiB } } ] }",
        "cache: { disk: { size: 1GiB }, rules: [ { match: { host: a }, storage: pinned }, { storage: permanent, admission: second-hit } ] }",
        // Where the configuration says nothing about it, the default zone has a disk.
        "cache: { rules: [ { match: { host: a }, storage: pinned, object_size_max: 1GiB } ] }",
        "cache: { disk: { pinned: 5GiB } }",
        // It may hold in the zone that has a disk.
        "cache: { zones: [ { name: a, memory: 1MiB, disk: { path: /a, size: 1GiB } } ], rules: [ { match: { type: text/* }, storage: pinned } ] }",
    ]
    @Test(arguments: fine) func `a valid disk gets no warning`(_ text: String) throws {
        let (configuration, errors, warnings) = try load(text)
        #expect(configuration != nil && errors == [] && warnings == [])
    }

    static let warnings: [(text: String, expected: [String])] = [
        (
            "cache:\n  disk: { size: 0 }\n  rules:\n    - ttl: 1s\n      storage: pinned",
            [
                "5: cache.rules[1].storage: pinned needs a disk, and zone default has none: such responses stay in memory, as with session; set cache.disk.size"
            ]
        ),
        (
            "cache:\n  disk: { size: 1GiB }\n  zones:\n    - name: a\n      memory: 1MiB\n      storage: permanent\n      admission: second-hit",
            [
                "6: cache.zones[1].storage: permanent needs a disk, and zone a has none: such responses stay in memory, as with session; give the zone a disk: { path: …, size: … }",
                "7: cache.zones[1].admission: has no effect: it is about the disk, and zone a has none",
            ]
        ),
        (
            "cache:\n  disk: { size: 1GiB, pinned: 0 }\n  rules:\n    - storage: pinned",
            ["4: cache.rules[1].storage: nothing can be pinned in zone default: its disk has pinned: 0"]
        ),
        (
            "cache:\n  zones: [ { name: a, memory: 1MiB, disk: { path: /a, size: 16MiB } } ]\n  rules: [ { zone: a, object_size_max: 32MiB } ]",
            ["3: cache.rules[1].object_size_max: 32MiB is more than the zone can store, 16MiB"]
        ),
    ]
    @Test(arguments: warnings.indices) func `settings that need a missing disk get a warning`(_ index: Int) throws {
        let row = Self.warnings[index]
        let (configuration, errors, warnings) = try load(row.text)
        #expect(configuration != nil && errors == [])
        #expect(Set(warnings.map(\.description)) == Set(row.expected.map { "larder.yaml:\($0)" }), "\(row.text)")
    }
}
