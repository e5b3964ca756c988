import Caching
import Rules

/// Checks the disk tiers against each other and against the zones and rules that use them.
func diskErrors(_ cache: CacheSettings, _ reader: ConfigurationReader) -> [ConfigurationError] {
    sharedDirectoryErrors(cache, reader) + quotaErrors(cache, reader)
}

func diskWarnings(_ cache: CacheSettings, _ reader: ConfigurationReader) -> [ConfigurationError] {
    storageWarnings(cache, reader) + admissionWarnings(cache, reader)
}

/// `/a/b` for `/a//./c/../b/`; links are not followed, and `..` that leads out of a relative path stays.
func normalisedPath(_ path: String) -> [Substring] {
    var parts: [Substring] = path.hasPrefix("/") ? [""] : []
    for part in path.split(separator: "/") where part != "." {
        if part != ".." || parts.isEmpty || parts.last == ".." {
            parts.append(part)
        } else if parts.last != "" {
            parts.removeLast()
        }
    }
    return parts
}

private func sharedDirectoryErrors(_ cache: CacheSettings, _ reader: ConfigurationReader) -> [ConfigurationError] {
    // If a directory is left out, it is chosen later, and the directories of zones are avoided.
    let known = cache.isDiskLeftOut ? cache.disks : cache.expectedDisks
    let disks = known.map { (disk: $0, parts: normalisedPath($0.path)) }
    return disks.enumerated().compactMap { index, own in
        for other in disks[..<index] {
            let told = "\(other.disk.path), the directory of zone \(other.disk.zone)"
            let message =
                own.parts == other.parts
                ? "is also \(told)"
                : own.parts.starts(with: other.parts)
                    ? "is inside \(told)" : other.parts.starts(with: own.parts) ? "contains \(told)" : nil
            guard let message else { continue }
            return reader.error(
                "\(cache.key(ofDisk: own.disk.zone)).path", "\(own.disk.path) \(message)",
                hint: "give each zone a directory of its own")
        }
        return nil
    }
}

private func quotaErrors(_ cache: CacheSettings, _ reader: ConfigurationReader) -> [ConfigurationError] {
    cache.expectedDisks.compactMap { disk in
        guard disk.pinned > disk.size else { return nil }
        return reader.error(
            "\(cache.key(ofDisk: disk.zone)).pinned",
            "\(renderSize(disk.pinned)) is more than size, \(renderSize(disk.size))")
    }
}

extension CacheSettings {
    /// The key under which the disk of a zone is configured: `cache.disk`, `cache.zones[2].disk`.
    package func key(ofDisk zone: String) -> String {
        guard let index = zones.firstIndex(where: { $0.name == zone }) else { return "cache.disk" }
        return "cache.zones[\(index + 1)].disk"
    }
}

/// Warns about responses that are meant to survive a restart in a zone without a disk.
private func storageWarnings(_ cache: CacheSettings, _ reader: ConfigurationReader) -> [ConfigurationError] {
    places(in: cache).compactMap { place in
        guard let storage = place.changes.storage, storage != .session else { return nil }
        let key = "\(place.key).storage"
        if place.disks.isEmpty {
            return reader.error(
                key,
                "\(storage.rawValue) needs a disk, and zone \(place.zone) has none: such responses stay in memory, as with session",
                hint: place.zone == CacheZone.defaultName
                    ? "set cache.disk.size" : "give the zone a disk: { path: …, size: … }"
            )
        }
        guard storage == .pinned, place.disks.allSatisfy({ $0.pinned == 0 }) else { return nil }
        return reader.error(key, "nothing can be pinned in zone \(place.zone): its disk has pinned: 0")
    }
}

private func admissionWarnings(_ cache: CacheSettings, _ reader: ConfigurationReader) -> [ConfigurationError] {
    places(in: cache).compactMap { place in
        guard place.changes.admission == .secondHit, place.disks.isEmpty else { return nil }
        return reader.error(
            "\(place.key).admission", "has no effect: it is about the disk, and zone \(place.zone) has none")
    }
}

/// A zone or a rule, and the disks that its settings may apply to.
private struct ChangesPlace {
    let key: String
    let zone: String
    let changes: HandlingChanges
    let disks: [ZoneDisk]
}

private func places(in cache: CacheSettings) -> [ChangesPlace] {
    let disks = cache.expectedDisks
    let names = [CacheZone.defaultName] + cache.zones.map(\.name)
    let zones = cache.zones.enumerated().map { index, zone in
        ChangesPlace(
            key: "cache.zones[\(index + 1)]", zone: zone.name, changes: zone.changes,
            disks: disks.filter { $0.zone == zone.name })
    }
    // Another check reports rules with unknown zones.
    let rules = cache.rules.filter { names.contains($0.zone ?? CacheZone.defaultName) }
    return zones
        + rules.map { rule in
            let zone = rule.zone ?? CacheZone.defaultName
            // A rule with a type does not choose the zone, so it applies to responses of all zones.
            let isOfAnyZone = !rule.conditions.types.isEmpty
            return ChangesPlace(
                key: "cache.rules[\(rule.number)]", zone: zone, changes: rule.changes,
                disks: disks.filter { isOfAnyZone || $0.zone == zone })
        }
}
