import Accounts
import Caching
import DiskTier
import EventLoop
import Fleet
import Settings
import Storage

/// The zones of this process: the default one, and those that the configuration names.
package final class Zones: Sendable {
    let defaultTier: Tiers
    private let zones: Locked<[Zone]>
    private let hasher: Shared.Hasher
    /// Whether the back stores are closed. Held while one of them is closed, and by whoever must not see that.
    private let isClosed = Locked(false)
    /// Whether the responses of disks that are opened later may have been purged meanwhile by nodes of a fleet.
    private let doubtsDisks = Locked(false)
    /// The zones whose disks were opened later, until what they have is marked.
    private let addedDisks = Locked<Set<String>>([])
    /// The position that is to be written next. Nil: it has been written.
    private let latestPosition = Locked<[UInt8]?>(nil)

    init(_ configuration: Configuration, hasher: Shared.Hasher) throws(BackStoreRefusal) {
        self.hasher = hasher
        let cache = configuration.cache
        defaultTier = try Zones.makeTier(Zone.defaultName, cache.memory, configuration, hasher)
        var made = [Zones.defaultZone(defaultTier, configuration)]
        do throws(BackStoreRefusal) {
            for settings in cache.zones {
                made.append(
                    Zone(settings, try Zones.makeTier(settings.name, settings.memory, configuration, hasher)))
            }
        } catch {
            for zone in made { zone.tier.backStore?.close() }
            throw error
        }
        zones = Locked(made)
    }

    /// The default zone first, the others in the order of the configuration: `CacheHandling.zone` is an index into it.
    package var current: [Zone] { zones.withLock { $0 } }

    /// Adopts the zones of a new configuration. A zone that stays keeps its responses. A zone that is removed is emptied in memory, and its
    /// back store is closed. If the back store of a new zone cannot be opened, the zone is in memory alone, and a message says so.
    ///
    /// - Returns: the same as `current`.
    func adopt(_ configuration: Configuration) -> [Zone] { isClosed.withLock { _ in adoptNow(configuration) } }

    private func adoptNow(_ configuration: Configuration) -> [Zone] {
        // Requests that are under way keep their zone, whose tier lives until the last of them ends.
        let known = current
        precondition(known.first?.name == Zone.defaultName, "the default zone comes first")
        // Close these before opening others: a zone with another name may use the directory.
        for zone in known.dropFirst() where !configuration.cache.zones.contains(where: { $0.name == zone.name }) {
            zone.tier.clearMemory()
            zone.tier.backStore?.close()
        }
        var made = [Zones.defaultZone(known[0].tier, configuration)]
        for settings in configuration.cache.zones {
            let tier =
                known.first { $0.name == settings.name }?.tier
                ?? Zones.makeTierOrMemoryAlone(settings.name, settings.memory, configuration, hasher)
            if doubtsDisks.withLock({ $0 }), tier.backStore != nil, !known.contains(where: { $0.tier === tier }) {
                tier.doubtStored()
                _ = addedDisks.withLock { $0.insert(settings.name) }
            }
            made.append(Zone(settings, tier))
        }
        precondition(made[0].tier === defaultTier, "hits and the admin server look into the same default zone")
        precondition(made.count == 1 + configuration.cache.zones.count, "every zone gets its budget")
        for (zone, memory) in zip(made, [configuration.cache.memory] + configuration.cache.zones.map(\.memory)) {
            zone.tier.setBudget(Int(clamping: memory))
            if let backStore = zone.tier.backStore, let settings = configuration.cache.disk(ofZone: zone.name) {
                backStore.setLimits(size: settings.size, pinned: settings.pinned, syncInterval: settings.sync)
            }
        }
        zones.withLock { [made] in $0 = made }
        return made
    }

    // MARK: the position in the fleet's stream of purges

    private static let positionNote = "fleet-position"

    /// The zones with disks that have missed what was applied before they were opened.
    var unmarkedDisks: Set<String> { addedDisks.withLock { $0 } }
    /// What they have is marked.
    func areMarked(_ names: Set<String>) { addedDisks.withLock { $0.subtract(names) } }

    /// Nothing of the disks is served without a validation until `Tiers.trustStored` is called for them: purges of a fleet may have been made while they were closed.
    func doubtDisks() {
        doubtsDisks.withLock { $0 = true }
        for zone in current { zone.tier.doubtStored() }
    }

    /// Keeps it on every disk. Does not block: the latest one is written by a thread of the store. One that is lost has the fleet's purges applied again.
    func remember(_ position: [UInt8]) {
        let isFirst = latestPosition.withLock { latest in
            defer { latest = position }
            return latest == nil
        }
        guard isFirst, let store = current.lazy.compactMap(\.tier.backStore).first else { return }
        let isAccepted = store.perform { [self] in
            guard let position = latestPosition.withLock({ $0.take() }) else { return }
            // What is doubted has not got so far.
            for zone in current where !zone.tier.doubtsStored {
                _ = zone.tier.backStore?.keep(position, as: Zones.positionNote)
            }
        }
        if !isAccepted { latestPosition.withLock { $0 = nil } }
    }

    /// Up to where the purges of the fleet have been applied to what is on the disks. Blocks.
    ///
    /// - Returns: no position if one of the disks has none. `hasResponses`: the disks may have responses of an earlier run.
    var rememberedPosition: (position: StreamPosition?, hasResponses: Bool) {
        let stores = current.compactMap(\.tier.backStore)
        let positions = stores.map { $0.note(Zones.positionNote).flatMap { StreamPosition($0) } }
        let hasResponses = stores.contains { !$0.isLoaded || $0.statistics.objectCount > 0 }
        guard let first = positions.first ?? nil, positions.allSatisfy({ $0?.epoch == first.epoch }) else {
            return (nil, hasResponses)
        }
        return (positions.compactMap { $0 }.min { $0.id < $1.id }, hasResponses)
    }

    /// Writes everything that is queued, and closes the back stores. Blocks.
    func close() {
        isClosed.withLock { isClosed in
            isClosed = true
            for zone in current { zone.tier.backStore?.close() }
        }
    }

    /// Runs work on the zones that may take long, such as a purge. Meanwhile no back store is closed, and no other such work runs. Blocks.
    ///
    /// - Returns: nil if they are closed already.
    package func whileOpen<Result>(_ work: ([Zone]) -> Result) -> Result? {
        isClosed.withLock { isClosed in isClosed ? nil : work(current) }
    }

    private static func defaultZone(_ tier: Tiers, _ configuration: Configuration) -> Zone {
        Zone(
            name: Zone.defaultName, tier: tier, objectSizeMax: configuration.cache.objectSizeMax,
            memory: configuration.cache.memory)
    }

    /// Makes the tiers of a zone. Memory accepts any body that fits its budget; the zone and the rules say which are stored.
    private static func makeTier(
        _ name: String, _ budget: UInt64, _ configuration: Configuration, _ hasher: Shared.Hasher
    ) throws(BackStoreRefusal) -> Tiers {
        let backStore = try configuration.cache.disk(ofZone: name).map { settings throws(BackStoreRefusal) in
            try open(settings, hasher)
        }
        return makeTier(budget, configuration, backStore)
    }

    private static func makeTierOrMemoryAlone(
        _ name: String, _ budget: UInt64, _ configuration: Configuration, _ hasher: Shared.Hasher
    ) -> Tiers {
        do throws(BackStoreRefusal) {
            return try makeTier(name, budget, configuration, hasher)
        } catch {
            Diagnostics.error("zone \(name) is in memory alone: \(error)")
            return makeTier(budget, configuration, nil)
        }
    }

    private static func makeTier(_ budget: UInt64, _ configuration: Configuration, _ backStore: (any BackStore)?)
        -> Tiers
    {
        let memory = MemoryTier(
            budget: Int(clamping: budget), objectMax: Int(clamping: budget),
            variantsPerKeyMax: configuration.limits.variantsPerKeyMax)
        return Tiers(memory: memory, backStore: backStore, format: StoredResponse.format)
    }

    /// Whether the directory of a disk is a store. Throws what opening it would throw, as far as that can be found without changing or locking it.
    static func hasStore(_ disk: ZoneDisk) throws(BackStoreRefusal) -> Bool {
        try DiskBackStore.examine(disk.path, size: disk.size)
    }

    /// Opens the back store of a zone. The last line chooses the storage engine.
    private static func open(
        _ settings: ZoneDisk, _ hasher: Shared.Hasher
    ) throws(BackStoreRefusal) -> any BackStore {
        let zone = settings.zone
        let settings = BackStoreSettings(
            path: settings.path, size: settings.size, pinned: settings.pinned, syncInterval: settings.sync,
            key: { hasher.key(of: $0.span) },
            log: { event in
                let text = "disk of zone \(zone): \(event.text)"
                switch event.level {
                case .info: Diagnostics.info(text)
                case .warning: Diagnostics.warning(text)
                case .error: Diagnostics.error(text)
                }
            })
        return try DiskBackStore.open(settings)
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
            memoryObjectSizeMax: tier.backStore == nil ? nil : Int(clamping: memory / 8))
    }
}
