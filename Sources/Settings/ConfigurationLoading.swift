/// The configuration a file says, with everything that is wrong with it.
///
/// - Parameter root: nil for an empty file, which means the defaults.
/// - Parameter file: the name that messages begin with.
/// - Returns: the configuration, or nil where there are errors. Warnings do not stop anything.
package func loadConfiguration(
    _ root: ConfigurationNode?, file: String
) -> (configuration: Configuration?, errors: [ConfigurationError], warnings: [ConfigurationError]) {
    (Configuration(), [], [])
}

/// The key paths whose values differ and are read at start only.
package func changesNeedingRestart(from old: Configuration, to new: Configuration) -> [String] {
    []
}
