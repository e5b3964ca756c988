import Admin

/// `larder help`: every command, and where things are looked for.
let helpText: String = {
    let here = Command.allCases.filter(\.isPartOfThisVersion)
    let later = Command.allCases.filter { !$0.isPartOfThisVersion }
    let lines =
        ["Larder \(larderVersion), a caching forward proxy.", "", "Usage: larder COMMAND [OPTION]...", "", "Commands:"]
        + here.map { "  \(padded($0.rawValue, 9))\($0.meaning)" }
        + ["", "Not part of this version:"]
        + later.map { "  \(padded($0.rawValue, 9))\($0.meaning)" }
        + [
            "", "larder help COMMAND shows the options of one.", "",
            "Configuration: --config FILE, else larder.yaml here, else /etc/larder/larder.yaml, else the defaults.",
            "Admin socket: admin.socket of the configuration; where serve may not write there it takes",
            "  $XDG_RUNTIME_DIR/larder/admin.sock, and without that ~/.cache/larder/admin.sock.",
            "  purge, stats, ls, du, top and explain ask at the same places, in the same order.",
            "Exit status: 0 done, 1 failed, 2 usage or configuration error.",
        ]
    return lines.joined(separator: "\n")
}()

/// `larder help COMMAND`.
func helpText(of command: Command) -> String {
    let synopsis = command.synopsis.isEmpty ? "" : " \(command.synopsis)"
    var lines = ["Usage: larder \(command.rawValue)\(synopsis) [OPTION]...", "", "  \(command.meaning)"]
    if !command.isPartOfThisVersion { lines.append("  (not part of this version)") }
    lines += ["", "Options:"]
    for option in command.options {
        let short = option.short.map { "\($0), " } ?? ""
        let value = option.value.map { " \($0)" } ?? ""
        lines.append("  \(padded(short + option.long + value, 20))\(option.meaning)")
    }
    return lines.joined(separator: "\n")
}

/// `text` and spaces up to `width`, at least one.
func padded(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(1, width - text.count))
}
