import Access
import Caching
import Rules

/// Checks zones and rules against each other.
func cacheRuleErrors(_ configuration: Configuration, _ reader: ConfigurationReader) -> [ConfigurationError] {
    zoneErrors(configuration.cache.zones, reader) + unknownZoneErrors(configuration.cache, reader)
        + keyErrors(configuration.cache, reader)
}

func cacheRuleWarnings(_ configuration: Configuration, _ reader: ConfigurationReader) -> [ConfigurationError] {
    let cache = configuration.cache
    var warnings =
        unreachableWarnings(cache.rules.map(\.conditions), "cache.rules", reader) + sizeWarnings(cache, reader)
    if cache.policyClients.contains(where: \.isEverything) {
        warnings.append(
            reader.error(
                "cache.policy_clients", "every client can make the cache ignore the origin, for all other clients",
                hint: "name the clients that you trust"))
    }
    return warnings
}

private func zoneErrors(_ zones: [CacheZone], _ reader: ConfigurationReader) -> [ConfigurationError] {
    var seen: Set<String> = []
    return zones.enumerated().compactMap { index, zone in
        if seen.insert(zone.name).inserted { return nil }
        return reader.error("cache.zones[\(index + 1)].name", "\(zone.name) is listed twice")
    }
}

/// Keys of a rule for some clients would be those of other addresses for all the others, if they shared a zone.
private func keyErrors(_ cache: CacheSettings, _ reader: ConfigurationReader) -> [ConfigurationError] {
    cache.rules.compactMap { rule in
        guard rule.key != nil, rule.conditions.dependOnClient else { return nil }
        let zone = rule.zone ?? CacheZone.defaultName
        let isAlone = zone != CacheZone.defaultName && cache.rules.count { $0.zone == zone } == 1
        return isAlone
            ? nil
            : reader.error(
                "cache.rules[\(rule.number)].key",
                "a rule for some clients cannot say how keys are made, because its responses would be found by all clients",
                hint: "leave out user, group, client or listener, or give the rule a zone that no other rule names")
    }
}

private func unknownZoneErrors(_ cache: CacheSettings, _ reader: ConfigurationReader) -> [ConfigurationError] {
    // If the zones have errors, which are reported already, their names are not known.
    if reader.hasErrors(in: "cache.zones") { return [] }
    let names = [CacheZone.defaultName] + cache.zones.map(\.name)
    return cache.rules.compactMap { rule in
        guard let zone = rule.zone, !names.contains(zone) else { return nil }
        let near = nearestName(to: zone, among: names).map { "did you mean \($0)?" }
        return reader.error(
            "cache.rules[\(rule.number)].zone", "no zone is called \"\(zone)\"",
            hint: near ?? "zones are \(names.joined(separator: ", "))")
    }
}

/// Rules after a rule that matches everything.
private func unreachableWarnings(
    _ rules: [RuleConditions], _ key: String, _ reader: ConfigurationReader
) -> [ConfigurationError] {
    guard let last = rules.firstIndex(where: \.isEverything), last + 1 < rules.count else { return [] }
    return [
        reader.error(
            "\(key)[\(last + 2)]", "is never reached: rule \(last + 1) matches everything", hint: "move it up")
    ]
}

/// Size limits that are larger than their zone.
private func sizeWarnings(_ cache: CacheSettings, _ reader: ConfigurationReader) -> [ConfigurationError] {
    // If the size of the default disk tier is left out, it is not known yet.
    let defaultBudget = cache.writtenDiskSize.map { max(cache.memory, $0) } ?? .max
    let budgets = Dictionary(
        cache.zones.map { ($0.name, max($0.memory, $0.diskSize)) }, uniquingKeysWith: { first, _ in first })
    let places =
        cache.zones.enumerated().map {
            ("cache.zones[\($0 + 1)]", $1.changes.objectSizeMax, max($1.memory, $1.diskSize))
        }
        + cache.rules.map { rule in
            (
                "cache.rules[\(rule.number)]", rule.changes.objectSizeMax,
                rule.zone.map { budgets[$0] ?? .max } ?? defaultBudget
            )
        }
    return places.compactMap { key, sizeMax, budget in
        guard let sizeMax, sizeMax > budget else { return nil }
        return reader.error(
            "\(key).object_size_max", "\(renderSize(sizeMax)) is more than the zone can store, \(renderSize(budget))")
    }
}
