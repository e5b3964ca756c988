import Caching
import Rules

/// What no single setting can tell of the disks: they must not be in each other's way, and what is to go there needs one.
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
    // A directory that is not written is not known yet: whoever chooses it heeds those of the zones.
    let known = cache.isDiskLeftOut ? cache.disks : cache.expectedDisks
    let disks = known.map { (disk: $0, parts: normalisedPath($0.path)) }
    return disks.enumerated().compactMap { index, own in
        for other in disks[..<index] {
            let told = "\(other.disk.path), the disk of zone \(other.disk.zone)"
            let message =
                own.parts == other.parts
                ? "is \(told), too"
                : own.parts.starts(with: other.parts)
                    ? "lies in \(told)" : other.parts.starts(with: own.parts) ? "holds \(told)" : nil
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

/// What is to survive the process, in a zone that has no disk for it.
private func storageWarnings(_ cache: CacheSettings, _ reader: ConfigurationReader) -> [ConfigurationError] {
    places(in: cache).compactMap { place in
        guard let storage = place.changes.storage, storage != .session else { return nil }
        let key = "\(place.key).storage"
        if place.disks.isEmpty {
            return reader.error(
                key,
                "\(storage.rawValue) needs a disk, and zone \(place.zone) has none: it is kept in memory, as session",
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
            "\(place.key).admission", "says what goes to the disk, and zone \(place.zone) has none")
    }
}

/// A zone or a rule, and the disks that what it says may be of.
private struct ChangesPlace {
    let key: String
    let zone: String
    let changes: TreatmentChanges
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
    // A zone that is not there is told elsewhere.
    let rules = cache.rules.filter { names.contains($0.zone ?? CacheZone.defaultName) }
    return zones
        + rules.map { rule in
            let zone = rule.zone ?? CacheZone.defaultName
            // A rule with a type holds in the zone that was chosen before it: any of them.
            let isOfAnyZone = !rule.conditions.types.isEmpty
            return ChangesPlace(
                key: "cache.rules[\(rule.number)]", zone: zone, changes: rule.changes,
                disks: disks.filter { isOfAnyZone || $0.zone == zone })
        }
}
