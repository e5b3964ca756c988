import EventLoop
import Settings
import Storage

/// The caches of this process: the default one, and those that the configuration names.
package final class Zones: Sendable {
    let defaultTier: MemoryTier
    private let zones: Locked<[Zone]>

    init(_ configuration: Configuration) {
        let tier = Zones.makeTier(configuration.cache.memory, configuration)
        defaultTier = tier
        zones = Locked(Zones.made(configuration, from: [Zones.defaultZone(tier, configuration)]))
    }

    /// The default one first, the others in the order of the configuration: what `CacheTreatment.zone` counts.
    package var current: [Zone] { zones.withLock { $0 } }

    /// Zones that stay keep what they hold; those that are gone from the configuration are emptied.
    /// - Returns: the zones there are now, as `current`.
    func adopt(_ configuration: Configuration) -> [Zone] {
        let known = current
        let made = Zones.made(configuration, from: known)
        zones.withLock { $0 = made }
        for zone in known where !made.contains(where: { $0.tier === zone.tier }) { zone.tier.removeAll() }
        return made
    }

    private static func made(_ configuration: Configuration, from known: [Zone]) -> [Zone] {
        let tier = known[0].tier
        tier.setBudget(Int(clamping: configuration.cache.memory))
        return [defaultZone(tier, configuration)]
            + configuration.cache.zones.map { settings in
                let tier =
                    known.first { $0.name == settings.name }?.tier ?? makeTier(settings.memory, configuration)
                tier.setBudget(Int(clamping: settings.memory))
                return Zone(
                    name: settings.name, tier: tier, objectSizeMax: Int(clamping: settings.objectSizeMax))
            }
    }

    private static func defaultZone(_ tier: MemoryTier, _ configuration: Configuration) -> Zone {
        Zone(
            name: Zone.defaultName, tier: tier, objectSizeMax: Int(clamping: configuration.cache.objectSizeMax))
    }

    /// What a body may have is asked of the zone and the rules, which may allow any that fits.
    private static func makeTier(_ budget: UInt64, _ configuration: Configuration) -> MemoryTier {
        MemoryTier(
            budget: Int(clamping: budget), objectMax: Int(clamping: budget),
            variantsPerKeyMax: configuration.limits.variantsPerKeyMax)
    }
}
