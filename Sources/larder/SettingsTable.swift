import Settings

/// What `larder check -v` shows: the value of every setting, including those that the file leaves out.
func settingsTable(_ configuration: Configuration) -> String {
    let settings = effectiveSettings(configuration)
    let width = (settings.map(\.key.count).max() ?? 0) + 2
    return (["", "Settings"] + settings.map { "  \(padded($0.key, width))\($0.value)" }).joined(separator: "\n")
}
