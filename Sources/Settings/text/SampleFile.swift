/// `conf/larder.yaml`: every setting with its meaning and default, rendered from the declarations.
///
/// Loading the file gives `Configuration()`. A setting whose default cannot be written is a comment.
package func renderSampleFile() -> String {
    var lines = sampleHead
    for section in Settings.sections {
        lines.append("")
        var writer = SectionWriter(section)
        lines += writer.render()
    }
    return lines.joined(separator: "\n") + "\n"
}

private let sampleHead = [
    "# The configuration of Larder: every setting with its default. docs/configuration.md explains them further. Check your own file",
    "# with `larder check`. Sizes are written as 64KiB, 256MiB, 10GiB or bytes, durations as 500ms, 30s, 5m, 1h or 2d.",
    "# Rendered from Sources/Settings/values/Settings.swift by `LARDER_RENDER=1 swift test --filter Rendering`.",
]

/// Writes the lines of one section, nested by the parts of the keys.
private struct SectionWriter {
    private let section: Settings.Section
    private let defaults = Configuration()
    private var lines: [String] = []
    /// The mappings that are open, outermost first.
    private var open: [String] = []

    init(_ section: Settings.Section) { self.section = section }

    mutating func render() -> [String] {
        if !section.key.isEmpty { lines.append("# \(section.meaning)") }
        for setting in section.settings { append(setting) }
        return lines
    }

    private mutating func append(_ setting: any SettingDeclaration) {
        let parts = setting.key.split(separator: ".").map(String.init)
        openMappings(Array(parts.dropLast()))
        let indent = String(repeating: "  ", count: open.count)
        lines += comment(setting).map { "\(indent)# \($0)" }
        if !setting.example.isEmpty {
            lines += setting.example.map { "\(indent)# \($0)" }
        } else if !setting.written.isEmpty {
            lines += setting.written.map { indent + $0 }
        } else {
            lines.append("\(indent)\(parts[parts.count - 1]): \(setting.text(in: defaults))")
        }
    }

    /// What the setting means, which values it takes, and when a change takes effect.
    private func comment(_ setting: any SettingDeclaration) -> [String] {
        var note = "Values: \(setting.allowed)."
        if let meaning = setting.defaultMeaning { note += " Default: \(meaning)." }
        if setting.reload == .restart { note += " A change needs a restart." }
        let width = 118 - 2 * open.count
        return wrap(setting.meaning, width: width) + wrap(note, width: width)
    }

    /// A mapping that contains only comments is written as a comment.
    private mutating func openMappings(_ path: [String]) {
        while open.count > path.count || open != Array(path.prefix(open.count)) { open.removeLast() }
        for name in path.dropFirst(open.count) {
            let indent = String(repeating: "  ", count: open.count)
            open.append(name)
            let prefix = open.joined(separator: ".") + "."
            let isActive = section.settings.contains { $0.key.hasPrefix(prefix) && $0.example.isEmpty }
            lines.append("\(indent)\(isActive ? "" : "# ")\(name):")
        }
    }
}

/// The text in lines of at most `width` characters, broken at spaces.
private func wrap(_ text: String, width: Int) -> [String] {
    var lines: [String] = []
    for word in text.split(separator: " ") {
        if let last = lines.last, last.count + 1 + word.count <= width {
            lines[lines.count - 1] = "\(last) \(word)"
        } else {
            lines.append(String(word))
        }
    }
    return lines
}
