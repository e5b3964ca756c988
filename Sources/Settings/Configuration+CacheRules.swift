package import Caching

extension Configuration {
    /// The rules of the cache, prepared for look-ups. The configuration must have been validated: its rules name zones that exist.
    package var cacheRules: CacheRules {
        CacheRules(
            defaultHandling: cache.handling, zones: cache.zones.map(\.withUsualStorage), rules: cache.rules,
            recipeRules: recipeRules, policyClients: cache.policyClients)
    }
}

extension CacheSettings {
    /// The handling if neither a zone nor a rule says anything.
    var handling: CacheHandling {
        var handling = CacheHandling()
        handling.negativeTTL = negativeTTL
        handling.storage = usualStorage(diskSize: diskSize)
        handling.heedsTargetedFields = targetedFields
        return handling
    }
}

extension CacheZone {
    /// The zone with the storage policy that follows from its own disk, if it names none.
    fileprivate var withUsualStorage: CacheZone {
        var zone = self
        zone.changes.storage = changes.storage ?? usualStorage(diskSize: diskSize)
        zone.changes.objectSizeMax = changes.objectSizeMax ?? max(memory, diskSize) / 8
        return zone
    }
}

/// The storage policy if no zone or rule names one: on the disk if there is one.
private func usualStorage(diskSize: UInt64) -> StoragePolicy { diskSize > 0 ? .permanent : .session }
