package import Caching

extension Configuration {
    /// The rules of the cache, prepared for look-ups. The configuration must have been validated: its rules name zones that exist.
    package var cacheRules: CacheRules {
        CacheRules(
            defaultHandling: defaultHandling, zones: cache.zones.map(withUsualStorage), rules: cache.rules,
            recipeRules: recipeRules, policyClients: cache.policyClients)
    }

    /// The handling if neither a zone nor a rule says anything.
    private var defaultHandling: CacheHandling {
        var handling = CacheHandling()
        handling.negativeTTL = cache.negativeTTL
        handling.storage = usualStorage(diskSize: cache.diskSize)
        handling.heedsTargetedFields = cache.targetedFields
        return handling
    }

    /// A zone with the storage policy that follows from its own disk, if it names none.
    private func withUsualStorage(_ zone: CacheZone) -> CacheZone {
        var zone = zone
        zone.changes.storage = zone.changes.storage ?? usualStorage(diskSize: zone.diskSize)
        zone.changes.objectSizeMax = zone.changes.objectSizeMax ?? max(zone.memory, zone.diskSize) / 8
        return zone
    }

    /// The storage policy if no zone or rule names one: responses outlive the process where a disk or a fleet keeps them.
    private func usualStorage(diskSize: UInt64) -> StoragePolicy {
        diskSize > 0 || fleet.redis != nil ? .permanent : .session
    }
}
