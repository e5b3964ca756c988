package import Storage

/// The disk tier of a zone, as `/stats` and `/metrics` tell of it.
package struct DiskUse: Sendable, Equatable {
    package var statistics: BackStoreStatistics
    package var state: BackStoreHealth
    /// The book was read: until then what it knows is not found, and fetched anew.
    package var isLoaded: Bool

    package init(statistics: BackStoreStatistics, state: BackStoreHealth = .on, isLoaded: Bool = true) {
        self.statistics = statistics
        self.state = state
        self.isLoaded = isLoaded
    }

    package init(_ store: any BackStore) {
        self.init(statistics: store.statistics, state: store.health, isLoaded: store.isLoaded)
    }

    /// Why nothing is written; nil: all is well.
    package var offReason: String? {
        switch state {
        case .on: nil
        case .off(let reason): reason
        }
    }
}

/// A disk to which nothing is written, and why.
package struct DiskOff: Sendable, Equatable {
    package var zone: String
    package var reason: String

    package init(zone: String, reason: String) {
        self.zone = zone
        self.reason = reason
    }
}

/// One number of a disk: its name in `/stats`, and in `/metrics` with `larder_disk_` before it and, of a counter, `_total` behind.
struct DiskFigure: Sendable {
    let name: String
    let kind: MetricsWriter.Kind
    let help: String
    let value: @Sendable (BackStoreStatistics) -> UInt64

    init(
        _ name: String, _ kind: MetricsWriter.Kind, _ help: String,
        _ value: @escaping @Sendable (BackStoreStatistics) -> UInt64
    ) {
        self.name = name
        self.kind = kind
        self.help = help
        self.value = value
    }

    static let all = [
        DiskFigure("size_bytes", .gauge, "Bytes that all files of the disk tier may take.") { $0.sizeBytes },
        DiskFigure("used_bytes", .gauge, "Bytes of all its files.") { $0.usedBytes },
        DiskFigure("live_bytes", .gauge, "Bytes of what is stored.") { $0.liveBytes },
        DiskFigure("pinned_limit_bytes", .gauge, "Bytes that what is pinned may take.") { $0.pinnedLimitBytes },
        DiskFigure("pinned_bytes", .gauge, "Bytes of what is pinned.") { $0.pinnedBytes },
        DiskFigure("objects", .gauge, "Responses on disk.") { UInt64(clamping: $0.objectCount) },
        DiskFigure("large_objects", .gauge, "Of these, with a file of their own.") { UInt64(clamping: $0.largeCount) },
        DiskFigure("segments", .gauge, "Files that responses share.") { UInt64(clamping: $0.segmentCount) },
        DiskFigure("book_bytes", .gauge, "Bytes of the book's files.") { $0.bookBytes },
        DiskFigure("waiting_bytes", .gauge, "Bytes that wait to be written.") { UInt64(clamping: $0.waitingBytes) },
        DiskFigure("stored_objects", .counter, "Responses written.") { $0.storedObjects },
        DiskFigure("stored_bytes", .counter, "Bytes of responses written.") { $0.storedBytes },
        DiskFigure("refused_busy", .counter, "Responses not written: too much waited.") { $0.refusedBusy },
        DiskFigure("refused_pinned", .counter, "Responses not pinned: the quota was full.") { $0.refusedPinned },
        DiskFigure("dropped_objects", .counter, "Responses taken and not written: no room, or an error.") {
            $0.droppedObjects
        },
        DiskFigure("evicted_objects", .counter, "Responses evicted for space.") { $0.evictedObjects },
        DiskFigure("evicted_bytes", .counter, "Bytes of responses evicted for space.") { $0.evictedBytes },
        DiskFigure("moved_bytes", .counter, "Bytes copied forward to free a segment.") { $0.movedBytes },
        DiskFigure("damaged_objects", .counter, "Responses dropped because they were damaged.") { $0.damagedObjects },
        DiskFigure("read_errors", .counter, "Reads that failed.") { $0.readErrors },
        DiskFigure("write_errors", .counter, "Writes that failed.") { $0.writeErrors },
        DiskFigure("commits", .counter, "Transactions of the book.") { $0.commits },
    ]
}

extension DiskUse {
    func write(to json: inout JSONWriter) {
        json.object { json in
            json.member("state", offReason == nil ? "on" : "off")
            if let offReason { json.member("reason", offReason) }
            json.member("loaded", isLoaded)
            for figure in DiskFigure.all { json.member(figure.name, figure.value(statistics)) }
        }
    }
}

extension Statistics {
    /// Of the zones with a disk.
    func writeDisks(to metrics: inout MetricsWriter) {
        let disks = zones.compactMap { zone in zone.disk.map { (zone: zone.name, disk: $0) } }
        guard !disks.isEmpty else { return }
        func family(_ name: String, _ kind: MetricsWriter.Kind, _ help: String, _ value: (DiskUse) -> UInt64) {
            metrics.family(
                "larder_disk_\(name)\(kind == .counter ? "_total" : "")", kind, help, label: "zone",
                disks.map { ($0.zone, value($0.disk)) })
        }
        family(
            "up", .gauge, "1 while the disk tier is written to; 0 after errors, until there is room or they are gone."
        ) {
            $0.offReason == nil ? 1 : 0
        }
        family("loaded", .gauge, "1 when the book was read.") { $0.isLoaded ? 1 : 0 }
        for figure in DiskFigure.all {
            family(figure.name, figure.kind, figure.help) { figure.value($0.statistics) }
        }
    }
}
