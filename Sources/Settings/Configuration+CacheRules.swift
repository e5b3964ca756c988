package import Caching

extension Configuration {
    /// The rules of the cache, ready to be asked. For a configuration that was loaded without errors, or one like it: rules
    /// name zones that are there.
    package var cacheRules: CacheRules {
        CacheRules(house: cache.treatment, zones: cache.zones, rules: cache.rules, policyClients: cache.policyClients)
    }
}

extension CacheSettings {
    /// What holds where neither a zone nor a rule says anything.
    var treatment: CacheTreatment {
        var treatment = CacheTreatment()
        treatment.negativeTTL = negativeTTL
        treatment.heedsTargetedFields = targetedFields
        return treatment
    }
}
