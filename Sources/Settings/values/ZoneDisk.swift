package import Caching

/// The disk tier of one zone, with the values that are in effect.
package struct ZoneDisk: Sendable, Equatable {
    package var zone: String
    /// The directory, as written.
    package var path: String
    /// The most bytes that all files take together. Never 0.
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
    /// `disk.pinned` in bytes, as written. Nil if it is left out.
    package var diskPinned: UInt64?

    package init(_ zone: CacheZone, diskPinned: UInt64? = nil) {
        self.zone = zone
        self.diskPinned = diskPinned
    }
}

extension WrittenZone {
    /// Nil if the zone has no disk.
    ///
    /// - Parameter sync: `cache.disk.sync`, which applies to all zones.
    func disk(sync: Duration) -> ZoneDisk? {
        guard let path = zone.diskPath, zone.diskSize > 0 else { return nil }
        let pinned = diskPinned ?? pinnedLeftOut(of: zone.diskSize)
        return ZoneDisk(zone: zone.name, path: path, size: zone.diskSize, pinned: pinned, sync: sync)
    }
}

extension CacheSettings {
    /// The disk of the default zone. Nil if it has none.
    package var disk: ZoneDisk? { disk(size: diskSize) }

    private func disk(size: UInt64) -> ZoneDisk? {
        guard size > 0 else { return nil }
        var pinned = writtenDiskPinned ?? pinnedLeftOut(of: size)
        // The quota is configured but the size is not: the quota must fit the size that was chosen.
        if writtenDiskSize == nil { pinned = min(pinned, size) }
        return ZoneDisk(zone: CacheZone.defaultName, path: diskPath, size: size, pinned: pinned, sync: diskSync)
    }

    /// The disks of all zones that have one. The default zone comes first.
    package var disks: [ZoneDisk] {
        (disk.map { [$0] } ?? []) + writtenZones.compactMap { $0.disk(sync: diskSync) }
    }

    /// Like `disks`, before the machine was examined: the default zone has a disk of unknown size unless the configuration turns it off.
    var expectedDisks: [ZoneDisk] {
        (disk(size: writtenDiskSize ?? .max).map { [$0] } ?? []) + writtenZones.compactMap { $0.disk(sync: diskSync) }
    }

    /// Nil if the zone has no disk, or does not exist.
    package func disk(ofZone name: String) -> ZoneDisk? { disks.first { $0.zone == name } }
}

/// The quota for pinned responses if none is configured: half, so that there is always room for others.
private func pinnedLeftOut(of size: UInt64) -> UInt64 { size / 2 }
