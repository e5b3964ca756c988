import Access
import Caching
import Rules

/// What no single rule and no single zone can tell.
func cacheRuleErrors(_ configuration: Configuration, _ reader: ConfigurationReader) -> [ConfigurationError] {
    zoneErrors(configuration.cache.zones, reader) + unknownZoneErrors(configuration.cache, reader)
}

func cacheRuleWarnings(_ configuration: Configuration, _ reader: ConfigurationReader) -> [ConfigurationError] {
    let cache = configuration.cache
    var warnings =
        unreachableWarnings(cache.rules.map(\.conditions), "cache.rules", reader) + sizeWarnings(cache, reader)
    if cache.policyClients.contains(where: \.isEverything) {
        warnings.append(
            reader.error(
                "cache.policy_clients", "every client can make the cache ignore what origins say, for all the others",
                hint: "name the clients you trust with that"))
    }
    return warnings
}

/// A rule that can never decide is a slip of the pen.
func accessRuleWarnings(_ configuration: Configuration, _ reader: ConfigurationReader) -> [ConfigurationError] {
    let rules = configuration.access.rules
    var warnings = unreachableWarnings(rules.map(\.conditions), "access.rules", reader)
    for rule in rules where !rule.conditions.paths.isEmpty && rule.conditions.methods == ["CONNECT"] {
        warnings.append(
            reader.error("access.rules[\(rule.number)]", "never holds: a tunnel has no path that Larder could see"))
    }
    return warnings
}

private func zoneErrors(_ zones: [CacheZone], _ reader: ConfigurationReader) -> [ConfigurationError] {
    var seen: Set<String> = []
    return zones.enumerated().compactMap { index, zone in
        if seen.insert(zone.name).inserted { return nil }
        return reader.error("cache.zones[\(index + 1)].name", "\(zone.name) stands here twice")
    }
}

private func unknownZoneErrors(_ cache: CacheSettings, _ reader: ConfigurationReader) -> [ConfigurationError] {
    // Where the zones themselves are wrong, they are not known; that is told already.
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

/// Rules behind one that holds for everything.
private func unreachableWarnings(
    _ rules: [RuleConditions], _ key: String, _ reader: ConfigurationReader
) -> [ConfigurationError] {
    guard let last = rules.firstIndex(where: \.isEverything), last + 1 < rules.count else { return [] }
    return [
        reader.error(
            "\(key)[\(last + 2)]", "is never asked: rule \(last + 1) holds for everything", hint: "put it first")
    ]
}

/// Limits that no budget has room for.
private func sizeWarnings(_ cache: CacheSettings, _ reader: ConfigurationReader) -> [ConfigurationError] {
    // How large the disk tier of the default zone will be is not known where its size is left out.
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
            "\(key).object_size_max", "\(renderSize(sizeMax)) is more than the zone holds, \(renderSize(budget))")
    }
}
