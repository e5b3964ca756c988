package import Caching

/// The disk tier of one zone, with the values that are in effect.
package struct ZoneDisk: Sendable, Equatable {
    package var zone: String
    /// Its directory, as written.
    package var path: String
    /// Bytes of all its files; never 0.
    package var size: UInt64
    /// How many of these bytes pinned responses may take.
    package var pinned: UInt64
    /// How often stored responses are forced to the disk.
    package var sync: Duration

    package init(zone: String, path: String, size: UInt64, pinned: UInt64, sync: Duration) {
        self.zone = zone
        self.path = path
        self.size = size
        self.pinned = pinned
        self.sync = sync
    }
}

/// A zone as it is written in the file.
package struct WrittenZone: Sendable, Equatable {
    package var zone: CacheZone
    /// `disk.pinned` in bytes as written; nil if it is left out.
    package var diskPinned: UInt64?

    package init(_ zone: CacheZone, diskPinned: UInt64? = nil) {
        self.zone = zone
        self.diskPinned = diskPinned
    }
}

extension WrittenZone {
    /// Nil if the zone has none.
    ///
    /// - Parameter sync: `cache.disk.sync`, which holds for all zones.
    func disk(sync: Duration) -> ZoneDisk? {
        guard let path = zone.diskPath, zone.diskSize > 0 else { return nil }
        let pinned = diskPinned ?? pinnedLeftOut(of: zone.diskSize)
        return ZoneDisk(zone: zone.name, path: path, size: zone.diskSize, pinned: pinned, sync: sync)
    }
}

extension CacheSettings {
    /// Of the default zone; nil if it has none.
    package var disk: ZoneDisk? { disk(size: diskSize) }

    private func disk(size: UInt64) -> ZoneDisk? {
        guard size > 0 else { return nil }
        var pinned = writtenDiskPinned ?? pinnedLeftOut(of: size)
        // The quota is configured but the size is not: the quota must fit the size that was chosen.
        if writtenDiskSize == nil { pinned = min(pinned, size) }
        return ZoneDisk(zone: CacheZone.defaultName, path: diskPath, size: size, pinned: pinned, sync: diskSync)
    }

    /// Of all zones that have one, the default one first.
    package var disks: [ZoneDisk] {
        (disk.map { [$0] } ?? []) + writtenZones.compactMap { $0.disk(sync: diskSync) }
    }

    /// As `disks`, before the machine was looked at: the default zone has a disk of unknown size unless the configuration turns it off.
    var expectedDisks: [ZoneDisk] {
        (disk(size: writtenDiskSize ?? .max).map { [$0] } ?? []) + writtenZones.compactMap { $0.disk(sync: diskSync) }
    }

    /// Nil if the zone has none, or there is no such zone.
    package func disk(ofZone name: String) -> ZoneDisk? { disks.first { $0.zone == name } }
}

/// The quota for pinned responses if none is configured: half, so that there is always room for others.
private func pinnedLeftOut(of size: UInt64) -> UInt64 { size / 2 }
