import Caching
import Message
import Releases
import Rules

/// `cache.rules`: a list of `match: { conditions }` with the handling of the requests that match.
extension SettingKind where Value == [CacheRule] {
    static var rules: SettingKind {
        .elements("rules", allowed: "a list of match: { … } with what applies then", read: readRule)
    }
}

/// `cache.zones`.
extension SettingKind where Value == [WrittenZone] {
    static var zones: SettingKind {
        .elements("zones", allowed: "a list of name: …, memory: … and what applies in the zone", read: readZone)
    }
}

@Sendable
func readRule(_ node: ConfigurationNode, number: Int, _ problems: inout [SettingProblem]) -> CacheRule? {
    readRule(node, number: number, isOfRecipe: false, &problems)
}

/// - Parameter isOfRecipe: the hosts come from the use of the recipe.
func readRule(
    _ node: ConfigurationNode, number: Int, isOfRecipe: Bool, _ problems: inout [SettingProblem]
) -> CacheRule? {
    let expected = "keys such as match: { … } and policy: …"
    guard var reader = MappingReader(node, expected: expected, problems: &problems) else { return nil }
    var rule = CacheRule(number: number, line: node.line)
    rule.conditions = reader.value("match", .cacheConditions) ?? RuleConditions()
    rule.zone = reader.value("zone", .zoneName)
    rule.changes = readChanges(&reader)
    rule.key = reader.value("key", .keyRules)
    rule.note = reader.value("note", .text(200))
    if !rule.conditions.types.isEmpty {
        let reason = "a rule with a type cannot have it: it is needed before the type is known"
        reader.refuse("zone", reason)
        reader.refuse("key", reason)
    }
    if let digest = rule.changes.digest, digest.source == .path,
        rule.conditions.paths.isEmpty
            || !rule.conditions.paths.allSatisfy({ $0.hasHexDigits(digest.algorithm.hexCount) })
    {
        reader.refuse(
            "digest", "each path of match must have the digest",
            hint: "add match: { path: \"…{hex:\(digest.algorithm.hexCount)}…\" }")
    }
    if rule.conditions.hosts.isEmpty || rule.conditions.hosts.contains(.any) {
        let hint = "add match: { host: … }"
        if rule.key?.host != nil {
            reader.refuse("key", "host replaces other hosts, so match must name them", hint: hint)
        } else if rule.key?.signature != nil, !isOfRecipe {
            reader.refuse("key", "hosts sign their addresses, so match must name them", hint: hint)
        } else if rule.key?.sharesDigests == true, !isOfRecipe {
            reader.refuse("key", "hosts share what has the same digest, so match must name them", hint: hint)
        }
    }
    if rule.key?.sharesDigests == true {
        if rule.changes.digest?.source != .path {
            reader.refuse(
                "key", "addresses that share a digest must have it in their paths",
                hint: "add digest: { from: path, algorithm: … }")
        } else if let use = rule.changes.authorization, !use.letsAddressesShare {
            reader.refuse(
                "key", "with authorization: \(use.rawValue), addresses cannot share what has the same digest",
                hint: "leave digest out of key")
        }
    }
    return reader.finish("key", into: &problems) ? rule : nil
}

@Sendable
private func readZone(_ node: ConfigurationNode, number: Int, _ problems: inout [SettingProblem]) -> WrittenZone? {
    guard var reader = MappingReader(node, expected: "keys such as name: … and memory: …", problems: &problems) else {
        return nil
    }
    let name = reader.requiredValue("name", .zoneName)
    let memory = reader.requiredValue("memory", .size(1 << 20...16 << 40))
    let changes = readChanges(&reader)
    let disk = reader.value("disk", .zoneDisk)
    if name == CacheZone.defaultName {
        reader.refuse(
            "name", "this zone always exists", hint: "cache.memory is its size, and a last rule can set the rest")
    }
    guard reader.finish("key", into: &problems), let name, let memory else { return nil }
    let zone = CacheZone(
        name: name, memory: memory, changes: changes, diskPath: disk?.path, diskSize: disk?.size ?? 0, line: node.line)
    return WrittenZone(zone, diskPinned: disk?.pinned)
}

extension SettingKind where Value == FailureStatuses {
    /// `[ 403, 429 ]`, or an empty list.
    static var failureStatuses: SettingKind {
        let allowed = FailureStatuses.nameable.map { "\($0)" }.joined(separator: ", ")
        let each = SettingKind<FailureStatuses>.scalar(
            allowed, parse: { UInt16($0).flatMap(FailureStatuses.init(status:)) },
            render: { $0.statuses.map { "\($0)" }.joined(separator: ", ") }
        ).list(isEmptyAllowed: true)
        return SettingKind(
            allowed: each.allowed,
            read: { node, problems in each.read(node, &problems).map { $0.reduce([]) { $0.union($1) } } },
            render: { "[ \($0.statuses.map { "\($0)" }.joined(separator: ", ")) ]" })
    }
}

/// Reads the keys that rules and zones have in common.
func readChanges(_ reader: inout MappingReader) -> HandlingChanges {
    var changes = HandlingChanges()
    changes.use = reader.value("policy", .policies)
    changes.storage = reader.value("storage", .choice)
    changes.admission = reader.value("admission", .choice)
    changes.ttl = reader.value("ttl", .seconds(.zero ... .days(3650)))
    changes.ttlMax = reader.value("ttl_max", .seconds(.zero ... .days(3650)))
    changes.ttlDefault = reader.value("ttl_default", .seconds(.zero ... .days(3650)))
    changes.isImmutable = reader.value("immutable", .flag)
    changes.respectsCacheControl = reader.value("respect_cache_control", .flag)
    changes.negativeTTL = reader.value("negative_ttl", .seconds(.zero ... .days(1)))
    changes.failureStatuses = reader.value("failure_statuses", .failureStatuses)
    changes.objectSizeMax = reader.value("object_size_max", .size(0...1 << 50))
    changes.storesCookies = reader.value("store_cookies", .flag)
    changes.droppedCookies = reader.value("drop_cookies", SettingKind<String>.cookieName.list()).map {
        $0.map { Array($0.utf8) }
    }
    changes.authorization = reader.value("authorization", .choice)
    changes.digest = reader.value("digest", .digest)
    changes.release = reader.value("release", .choice)
    changes.minimumAge = reader.value("min_age", .minimumAge)
    changes.ranges = reader.value("ranges", .choice)
    changes.ifMatch = reader.value("if_match", .choice)
    changes.compression = reader.value("compress", .choice)
    return changes
}
