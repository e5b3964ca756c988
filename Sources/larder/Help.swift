import Admin

/// `larder help`: every command, and which files and sockets Larder uses.
let helpText: String = {
    let lines =
        ["Larder \(larderVersion), a caching forward proxy.", "", "Usage: larder COMMAND [OPTION]...", "", "Commands:"]
        + Command.allCases.map { "  \(padded($0.rawValue, 9))\($0.meaning)" }
        + [
            "", "larder help COMMAND shows the options of a command.", "",
            "Configuration: --config FILE, or ./larder.yaml, or /etc/larder/larder.yaml, or the defaults.",
            "Admin socket: admin.socket of the configuration. If serve cannot write there, it uses",
            "  $XDG_RUNTIME_DIR/larder/admin.sock, or ~/.cache/larder/admin.sock without that variable.",
            "  These commands try the same sockets in the same order:",
            "  \(Command.allCases.filter { $0.options.contains(.socket) }.map(\.rawValue).joined(separator: ", ")).",
            "Exit status: 0 done, 1 failed, 2 usage or configuration error.",
        ]
    return lines.joined(separator: "\n")
}()

/// `larder help COMMAND`.
func helpText(of command: Command) -> String {
    let synopsis = command.synopsis.isEmpty ? "" : " \(command.synopsis)"
    var lines = ["Usage: larder \(command.rawValue)\(synopsis) [OPTION]...", "", "  \(command.meaning)"]
    if !command.verbs.isEmpty { lines.append("") }
    lines += command.verbs.map { "  \(padded($0.name, 9))\($0.meaning)" }
    lines += ["", "Options:"]
    for option in command.options {
        let short = option.short.map { "\($0), " } ?? ""
        let value = option.value.map { " \($0)" } ?? ""
        lines.append("  \(padded(short + option.long + value, 20))\(option.meaning(in: command))")
    }
    return lines.joined(separator: "\n")
}

/// Appends spaces to `text` up to `width`, and at least one.
func padded(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(1, width - text.count))
}
