import Caching

/// The result of reading a configuration.
package struct LoadedConfiguration: Sendable {
    /// Nil if there are errors.
    package let configuration: Configuration?
    /// What was understood, although there may be errors: a setting with an error has its default.
    package let draft: Configuration
    /// In the order of lines.
    package let errors: [ConfigurationError]
    /// In the order of lines. Warnings do not prevent a start.
    package let warnings: [ConfigurationError]
    private let file: String
    private let root: ConfigurationNode?

    fileprivate init(_ root: ConfigurationNode?, file: String, recipes: [Recipe]) {
        self.root = root
        self.file = file
        var reader = ConfigurationReader(file: file)
        if let root { reader.read(root) }
        let (found, warnings) = validate(reader)
        var complete = reader.configuration
        let unresolved = resolve(
            &complete.recipes, among: recipes, zones: [CacheZone.defaultName] + complete.cache.zones.map(\.name), reader
        )
        let profiles = complete.expandProfiles(reader)
        errors = (reader.errors + found + unresolved + profiles.errors).sorted { $0.line < $1.line }
        draft = complete
        configuration = errors.isEmpty ? complete : nil
        self.warnings = (warnings + recipeWarnings(complete, reader) + profiles.warnings).sorted { $0.line < $1.line }
    }

    /// A problem with a setting that was found later. It has the line of the key, or of the nearest section around it.
    package func problem(_ key: String, _ message: String, hint: String? = nil) -> ConfigurationError {
        ConfigurationError(file: file, line: root?.line(at: key) ?? 0, key: key, message: message, hint: hint)
    }
}

/// Reads and validates the tree of a file.
///
/// - Parameters:
///   - root: nil for an empty file, which means the defaults.
///   - file: the name at the beginning of messages.
///   - recipes: all recipes that there are.
package func loadConfiguration(
    _ root: ConfigurationNode?, file: String, recipes: [Recipe] = []
) -> LoadedConfiguration {
    LoadedConfiguration(root, file: file, recipes: recipes)
}

/// The keys of settings that differ and whose changes take effect only at the next start.
package func changesNeedingRestart(from old: Configuration, to new: Configuration) -> [String] {
    Settings.all.filter { $0.reload == .restart && $0.differs(old, new) }.map(\.key)
        + diskChangesNeedingRestart(from: old.cache, to: new.cache)
        + fleetChangesNeedingRestart(from: old.fleet, to: new.fleet)
}

/// A reload can change who the nodes are, but not whether they ask each other: that needs a listener.
private func fleetChangesNeedingRestart(from old: FleetSettings, to new: FleetSettings) -> [String] {
    (old.peers == nil) == (new.peers == nil) ? [] : ["fleet.peers"]
}

/// A reload can change the size of a disk tier, but not turn it on or off, nor move it.
private func diskChangesNeedingRestart(from old: CacheSettings, to new: CacheSettings) -> [String] {
    var keys: [String] = []
    if (old.diskSize == 0) != (new.diskSize == 0) { keys.append("cache.disk.size") }
    for (index, zone) in new.zones.enumerated() where old.zones.contains(where: { $0.name == zone.name }) {
        let (before, after) = (old.disk(ofZone: zone.name), new.disk(ofZone: zone.name))
        if before?.path != after?.path { keys.append("cache.zones[\(index + 1)].disk") }
    }
    return keys
}

/// Every setting with the value that is in effect, for `larder check -v`.
package func effectiveSettings(_ configuration: Configuration) -> [(key: String, value: String)] {
    Settings.all.map { ($0.key, $0.effectiveText(in: configuration)) }
}
