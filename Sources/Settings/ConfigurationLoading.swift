import Caching

/// The configuration a file says, with everything that is wrong with it.
///
/// - Parameter root: nil for an empty file, which means the defaults.
/// - Parameter file: the name that messages begin with.
/// - Returns: the configuration, or nil where there are errors; both lists in the order of lines. Warnings stop nothing.
package func loadConfiguration(
    _ root: ConfigurationNode?, file: String
) -> (configuration: Configuration?, errors: [ConfigurationError], warnings: [ConfigurationError]) {
    var reader = ConfigurationReader(file: file)
    if let root { reader.read(root) }
    let (errors, warnings) = validate(reader)
    let all = (reader.errors + errors).sorted { $0.line < $1.line }
    return (all.isEmpty ? reader.configuration : nil, all, warnings.sorted { $0.line < $1.line })
}

/// The key paths whose values differ and are read at start only.
package func changesNeedingRestart(from old: Configuration, to new: Configuration) -> [String] {
    Settings.all.filter { $0.reload == .restart && $0.differs(old, new) }.map(\.key)
        + diskChangesNeedingRestart(from: old.cache, to: new.cache)
}

/// A store is opened at start: what is read again is how large it may be, not whether and where it is.
private func diskChangesNeedingRestart(from old: CacheSettings, to new: CacheSettings) -> [String] {
    var keys: [String] = []
    if (old.diskSize == 0) != (new.diskSize == 0) { keys.append("cache.disk.size") }
    for (index, zone) in new.zones.enumerated() {
        let (before, after) = (old.disk(ofZone: zone.name), new.disk(ofZone: zone.name))
        if before?.path != after?.path { keys.append("cache.zones[\(index + 1)].disk") }
    }
    return keys
}

/// Every setting with its value, for `larder check -v`; those left out without a value are not there.
package func effectiveSettings(_ configuration: Configuration) -> [(key: String, value: String)] {
    Settings.all.compactMap { setting in
        let text = setting.text(in: configuration)
        return text.isEmpty ? nil : (setting.key, text)
    }
}
