package import Caching

extension Configuration {
    /// The rules of the cache, ready to be asked. For a configuration that was loaded without errors, or one like it: rules
    /// name zones that are there.
    package var cacheRules: CacheRules {
        CacheRules(
            defaultHandling: cache.handling, zones: cache.zones.map(\.withUsualStorage), rules: cache.rules,
            policyClients: cache.policyClients)
    }
}

extension CacheSettings {
    /// What holds where neither a zone nor a rule says anything.
    var handling: CacheHandling {
        var handling = CacheHandling()
        handling.negativeTTL = negativeTTL
        handling.storage = usualStorage(diskSize: diskSize)
        handling.heedsTargetedFields = targetedFields
        return handling
    }
}

extension CacheZone {
    /// What is left out follows from its disk, not from that of the default zone.
    fileprivate var withUsualStorage: CacheZone {
        var zone = self
        zone.changes.storage = changes.storage ?? usualStorage(diskSize: diskSize)
        zone.changes.objectSizeMax = changes.objectSizeMax ?? max(memory, diskSize) / 8
        return zone
    }
}

/// Where no rule says how long a thing is kept: on the disk if there is one.
private func usualStorage(diskSize: UInt64) -> StoragePolicy { diskSize > 0 ? .permanent : .session }
