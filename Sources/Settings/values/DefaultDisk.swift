import Caching

/// Directory and size of the default zone's disk tier, for a configuration that leaves them out.
///
/// This file has the rules. The command line looks at the machine (which directory it may write to, how much space is free) and
/// stores the result in `CacheSettings.defaultDisk`.
package struct DefaultDisk: Sendable, Equatable {
    package var path: String
    /// In bytes. Zero means memory only.
    package var size: UInt64

    package init(path: String, size: UInt64) {
        self.path = path
        self.size = size
    }

    /// The value before the command line has examined the machine.
    package static let notChosen = DefaultDisk(path: systemDirectory, size: 0)

    package static let systemDirectory = "/var/lib/larder"

    /// The directories in the order in which they are tried. The first one that Larder may write to is used.
    ///
    /// - Parameter environment: the value of a variable; nil if it is not set.
    package static func directories(environment: (String) -> String?) -> [String] {
        if let state = environment("XDG_STATE_HOME"), state.hasPrefix("/") {
            return [systemDirectory, "\(state)/larder"]
        }
        if let home = environment("HOME"), home.hasPrefix("/"), home != "/" {
            return [systemDirectory, "\(home)/.local/state/larder"]
        }
        return [systemDirectory]
    }

    /// 10 % of the free space, in whole MiB, and 10 GiB at most.
    ///
    /// - Parameter freeBytes: the free space of the file system, plus the space that an existing disk tier takes.
    /// - Returns: 0 if the result would be too small for a store.
    package static func size(freeBytes: UInt64) -> UInt64 {
        let size = min(freeBytes / 10, sizeMax) & ~((1 << 20) - 1)
        return size < diskSizeMin ? 0 : size
    }

    private static let sizeMax: UInt64 = 10 << 30
}

/// The size of the smallest disk tier, in bytes: it needs room for its index and a few files.
package let diskSizeMin: UInt64 = 16 << 20

extension CacheSettings {
    /// The configuration names neither path nor size of the default zone's disk tier. Such a disk tier must never keep Larder from
    /// starting.
    package var isDiskLeftOut: Bool { writtenDiskPath == nil && writtenDiskSize == nil }

    /// The zone whose disk shares its directory with `path`, contains it, or lies in it. Nil: none does.
    package func zone(usingDirectory path: String) -> String? {
        let parts = normalisedPath(path)
        return writtenZones.first { zone in
            guard let other = zone.disk(sync: diskSync).map({ normalisedPath($0.path) }) else { return false }
            return other.starts(with: parts) || parts.starts(with: other)
        }?.zone.name
    }

    /// The same settings with the disk tier of one zone turned off.
    package func withoutDisk(ofZone name: String) -> CacheSettings {
        var settings = self
        if name == CacheZone.defaultName { settings.writtenDiskSize = 0 }
        for index in writtenZones.indices where writtenZones[index].zone.name == name {
            settings.writtenZones[index].zone.diskSize = 0
        }
        return settings
    }
}
