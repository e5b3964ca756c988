import Access
import Admin
import EventLoop
import Message
import Provisioning
import Settings
import Upstream

/// `larder check [-v] [--json] [--elsewhere]`: reports everything that is wrong with the configuration and with what it names on this machine, and prints
/// the rules as Larder understands them.
func checkCommand(_ arguments: Arguments, _ console: Console) throws(UsageError) -> Int32 {
    guard arguments.words.isEmpty else {
        throw UsageError("check takes no \"\(arguments.words[0])\"", hint: "larder check --config FILE")
    }
    var reading = readConfiguration(arguments)
    if !arguments.has(.elsewhere) { reading.chooseDisk() }
    if arguments.has(.elsewhere) { reading.checkOpenHosts() } else { reading.checkPreparation(fetchPAC) }
    reading.checkBreakGlass(now: WallTime(ticks: readWallTicks()))
    if arguments.has(.json) {
        console.print(String(decoding: json(reading, arguments), as: UTF8.self))
    } else {
        show(reading, arguments, console)
    }
    return reading.configuration == nil ? ExitStatus.usage : ExitStatus.done
}

/// Prints the warnings; `serve` does so, too.
func showWarnings(_ reading: ConfigurationReading, _ console: Console) {
    for warning in reading.warnings { console.error("warning: \(warning)") }
}

private func show(_ reading: ConfigurationReading, _ arguments: Arguments, _ console: Console) {
    for error in reading.errors { console.error("\(error)") }
    showWarnings(reading, console)
    guard let configuration = reading.configuration else { return }
    console.print(
        arguments.has(.elsewhere)
            ? "\(reading.name): no errors; the files, directories and URLs that it names were not looked at"
            : "\(reading.name): no errors")
    if arguments.has(.verbose) { console.print(settingsTable(configuration)) }
    let rules = ruleList(configuration)
    if !rules.isEmpty { console.print(rules) }
}

private func json(_ reading: ConfigurationReading, _ arguments: Arguments) -> [UInt8] {
    var writer = JSONWriter()
    writer.object { json in
        json.member("file", reading.name)
        json.member("fine", reading.configuration != nil)
        json.member("elsewhere", arguments.has(.elsewhere))
        json.key("errors")
        json.array { for error in reading.errors { write(error, to: &$0) } }
        json.key("warnings")
        json.array { for warning in reading.warnings { write(warning, to: &$0) } }
        if let configuration = reading.configuration { writeRules(configuration, to: &json) }
    }
    return writer.bytes
}

private func write(_ error: ConfigurationError, to json: inout JSONWriter) {
    json.object {
        $0.member("line", error.line)
        $0.member("key", error.key)
        $0.member("message", error.message)
        if let hint = error.hint { $0.member("hint", hint) }
    }
}
