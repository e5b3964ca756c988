import Caching
import Disk
import EventLoop
import Settings
import Storage

/// The caches of this process: the default one, and those that the configuration names.
package final class Zones: Sendable {
    let defaultTier: Tiers
    private let zones: Locked<[Zone]>
    private let hasher: Shared.Hasher

    init(_ configuration: Configuration, hasher: Shared.Hasher) throws(DiskRefusal) {
        self.hasher = hasher
        let cache = configuration.cache
        defaultTier = try Zones.makeTier(Zone.defaultName, cache.memory, configuration, hasher)
        var made = [Zones.defaultZone(defaultTier, configuration)]
        do throws(DiskRefusal) {
            for settings in cache.zones {
                made.append(
                    Zone(settings, try Zones.makeTier(settings.name, settings.memory, configuration, hasher)))
            }
        } catch {
            for zone in made { zone.tier.disk?.close() }
            throw error
        }
        zones = Locked(made)
    }

    /// The default one first, the others in the order of the configuration: what `CacheTreatment.zone` counts.
    package var current: [Zone] { zones.withLock { $0 } }

    /// Zones that stay keep what they hold; those that are gone from the configuration are emptied, and their disks closed. A
    /// zone whose disk can not be opened is in memory alone, and the log says so.
    /// - Returns: the zones there are now, as `current`.
    func adopt(_ configuration: Configuration) -> [Zone] {
        let known = current
        // First, so that a zone with another name may have the directory.
        for zone in known.dropFirst() where !configuration.cache.zones.contains(where: { $0.name == zone.name }) {
            zone.tier.clearMemory()
            zone.tier.disk?.close()
        }
        var made = [Zones.defaultZone(known[0].tier, configuration)]
        for settings in configuration.cache.zones {
            let tier =
                known.first { $0.name == settings.name }?.tier
                ?? Zones.makeTierAnyway(settings.name, settings.memory, configuration, hasher)
            made.append(Zone(settings, tier))
        }
        for (zone, memory) in zip(made, [configuration.cache.memory] + configuration.cache.zones.map(\.memory)) {
            zone.tier.memory.setBudget(Int(clamping: memory))
            if let disk = zone.tier.disk, let settings = configuration.cache.disk(ofZone: zone.name) {
                disk.setLimits(size: settings.size, pinned: settings.pinned, syncInterval: settings.sync)
            }
        }
        zones.withLock { [made] in $0 = made }
        return made
    }

    /// Writes what waits, and lets the disks go. Blocks.
    func close() { for zone in current { zone.tier.disk?.close() } }

    private static func defaultZone(_ tier: Tiers, _ configuration: Configuration) -> Zone {
        Zone(
            name: Zone.defaultName, tier: tier, objectSizeMax: configuration.cache.objectSizeMax,
            memory: configuration.cache.memory)
    }

    /// What a body may have is asked of the zone and the rules, which may allow any that fits.
    private static func makeTier(
        _ name: String, _ budget: UInt64, _ configuration: Configuration, _ hasher: Shared.Hasher
    ) throws(DiskRefusal) -> Tiers {
        let disk = try configuration.cache.disk(ofZone: name).map { settings throws(DiskRefusal) in
            try open(settings, hasher)
        }
        return makeTier(budget, configuration, disk)
    }

    private static func makeTierAnyway(
        _ name: String, _ budget: UInt64, _ configuration: Configuration, _ hasher: Shared.Hasher
    ) -> Tiers {
        do throws(DiskRefusal) {
            return try makeTier(name, budget, configuration, hasher)
        } catch {
            Diagnostics.error("zone \(name) is in memory alone: \(error)")
            return makeTier(budget, configuration, nil)
        }
    }

    private static func makeTier(_ budget: UInt64, _ configuration: Configuration, _ disk: DiskStore?) -> Tiers {
        let memory = MemoryTier(
            budget: Int(clamping: budget), objectMax: Int(clamping: budget),
            variantsPerKeyMax: configuration.limits.variantsPerKeyMax)
        return Tiers(memory: memory, disk: disk, format: StoredResponse.format)
    }

    private static func open(_ settings: ZoneDisk, _ hasher: Shared.Hasher) throws(DiskRefusal) -> DiskStore {
        let zone = settings.zone
        return try DiskStore.open(
            DiskOptions(
                path: settings.path, size: settings.size, pinned: settings.pinned, syncInterval: settings.sync,
                hash: { hasher.key(of: $0).folded },
                log: { event in
                    let text = "disk of zone \(zone): \(event.text)"
                    switch event.level {
                    case .info: Diagnostics.info(text)
                    case .warning: Diagnostics.warning(text)
                    case .error: Diagnostics.error(text)
                    }
                }), calls: SystemCalls())
    }
}

extension Zone {
    fileprivate convenience init(_ settings: CacheZone, _ tier: Tiers) {
        self.init(
            name: settings.name, tier: tier, objectSizeMax: settings.objectSizeMax, memory: settings.memory)
    }

    fileprivate convenience init(name: String, tier: Tiers, objectSizeMax: UInt64, memory: UInt64) {
        self.init(
            name: name, tier: tier, objectSizeMax: Int(clamping: objectSizeMax),
            memoryObjectSizeMax: tier.disk == nil ? nil : Int(clamping: memory / 8))
    }
}
