import Admin
import Storage
import Testing

@testable import larder
import JSON

/// Two disks with a different number in every place, one of them off; a third zone has none.
private let diskStatistics: Statistics = {
    var figures = BackStoreStatistics()
    figures.sizeBytes = 1 << 30
    figures.usedBytes = 1 << 29
    figures.liveBytes = 3
    figures.pinnedLimitBytes = 4
    figures.pinnedBytes = 5
    figures.objectCount = 6
    figures.largeCount = 7
    figures.segmentCount = 8
    figures.bookBytes = 9
    figures.waitingBytes = 10
    figures.storedObjects = 11
    figures.storedBytes = 12
    figures.refusedBusy = 13
    figures.refusedPinned = 14
    figures.droppedObjects = 22
    figures.evictedObjects = 15
    figures.evictedBytes = 16
    figures.movedBytes = 17
    figures.damagedObjects = 18
    figures.readErrors = 19
    figures.writeErrors = 20
    figures.commits = 21
    var statistics = sampleStatistics
    statistics.zones = [
        Statistics.Zone(name: "default", memory: sampleStatistics.memory, disk: DiskUse(statistics: figures)),
        Statistics.Zone(
            name: "layers", memory: sampleStatistics.memory,
            disk: DiskUse(
                statistics: BackStoreStatistics(), state: .off(reason: "no space left on device"), isLoaded: false)),
        Statistics.Zone(name: "memory", memory: sampleStatistics.memory),
    ]
    return statistics
}()

@Suite("Numbers of the disk tier")
struct DiskUseTests {
    static let figures: [(name: String, value: Int64)] = [
        ("size_bytes", 1 << 30), ("used_bytes", 1 << 29), ("live_bytes", 3), ("pinned_limit_bytes", 4),
        ("pinned_bytes", 5), ("objects", 6), ("large_objects", 7), ("segments", 8), ("book_bytes", 9),
        ("waiting_bytes", 10), ("stored_objects", 11), ("stored_bytes", 12), ("refused_busy", 13),
        ("refused_pinned", 14), ("dropped_objects", 22), ("evicted_objects", 15), ("evicted_bytes", 16),
        ("moved_bytes", 17),
        ("damaged_objects", 18), ("read_errors", 19), ("write_errors", 20), ("commits", 21),
    ]

    @Test func `stats has every number of each zone's disk under its name`() throws {
        let zones = try #require(try JSONValue(parsing: diskStatistics.json())["zones"]?.elements)
        let disk = try #require(zones[0]["disk"])
        for figure in Self.figures { #expect(disk[figure.name] == .integer(figure.value), "\(figure.name)") }
        #expect(disk.members?.count == Self.figures.count + 2, "state and loaded beside the numbers")
        #expect(Self.figures.count == Mirror(reflecting: BackStoreStatistics()).children.count)
        #expect(disk["state"] == .string("on") && disk["reason"] == nil && disk["loaded"] == .bool(true))
        #expect(zones[1]["disk"]?["state"] == .string("off"))
        #expect(zones[1]["disk"]?["reason"] == .string("no space left on device"))
        #expect(zones[1]["disk"]?["loaded"] == .bool(false))
        #expect(zones[2]["disk"] == nil)
    }

    @Test func `metrics have them by zone, and whether the disk is up`() {
        let lines = String(decoding: diskStatistics.prometheus(), as: UTF8.self).split(separator: "\n")
        let gauges = Self.figures.prefix(10).map { "larder_disk_\($0.name){zone=\"default\"} \($0.value)" }
        let counters = Self.figures.dropFirst(10).map { "larder_disk_\($0.name)_total{zone=\"default\"} \($0.value)" }
        let states = [
            "larder_disk_up{zone=\"default\"} 1", "larder_disk_up{zone=\"layers\"} 0",
            "larder_disk_loaded{zone=\"layers\"} 0",
        ]
        for line in gauges + counters + states { #expect(lines.contains(line[...]), "\(line)") }
        #expect(!lines.contains { $0.contains("larder_disk") && $0.contains("zone=\"memory\"") })
        #expect(lines.filter { $0.hasPrefix("# TYPE larder_disk_") }.count == Self.figures.count + 2)
    }

    @Test func `without a disk metrics do not speak of any`() {
        #expect(!String(decoding: sampleStatistics.prometheus(), as: UTF8.self).contains("larder_disk"))
    }

    @Test func `larder stats shows each disk, and says that one is off and why`() throws {
        let table = statisticsTable(try JSONValue(parsing: diskStatistics.json()))
        let squeezed = table.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }
        for line in [
            "Disk tier of zone default", "state on", "used 512.0 MiB", "size 1.0 GiB", "responses 6", "write errors 20",
            "Disk tier of zone layers", "state off", "loaded no", "reason no space left on device",
        ] { #expect(squeezed.contains(line), "\(line) is not in\n\(table)") }
        #expect(squeezed.filter { $0.hasPrefix("write errors") }.count == 1, "what never happened is not shown")
        #expect(!table.contains("Disk tier of zone memory"))
    }
}
