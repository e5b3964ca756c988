import Admin
import ClientSetup
import Settings

/// `larder doctor [--proxy ADDRESS] [--server] [--refusals] [--json]`
///
/// Exit status 0: nothing is wrong. 1: something is, or the proxy cannot be reached.
func doctorCommand(_ arguments: Arguments, _ console: Console) throws(UsageError) -> Int32 {
    if let word = arguments.words.first { throw UsageError("doctor takes no \"\(word)\"") }
    if arguments.has(.refusals) { return refusalsCommand(arguments, console) }
    if arguments.has(.server) {
        guard arguments[.proxy] == nil else {
            throw UsageError("--proxy is for the doctor of clients", hint: "larder doctor --server --config FILE")
        }
        return serverDoctorCommand(arguments, console)
    }
    let environment = processEnvironment()
    guard let proxy = try clientProxy(arguments, environment) else {
        console.error("larder: no variable names a proxy")
        console.error("        larder doctor --proxy HOST:PORT, or set up this machine first (docs/clients.md)")
        return ExitStatus.failed
    }
    let isJSON = arguments.has(.json)
    do throws(ClientDoctor.Failure) {
        let doctor = try ClientDoctor(proxy, environment: environment)
        if !isJSON {
            console.print("proxy  \(proxy.url) (from \(proxy.source))\n")
            console.print(ToolTableText.head)
        }
        let examination = try doctor.examine { row in if !isJSON { console.print(ToolTableText.line(row)) } }
        if isJSON {
            console.print(String(decoding: json(examination), as: UTF8.self))
        } else {
            show(examination, console)
        }
        return examination.isFine ? ExitStatus.done : ExitStatus.failed
    } catch {
        console.error("larder: \(error.message)")
        console.error("        \(error.mend)")
        return ExitStatus.failed
    }
}

/// The proxy of `--proxy`, of the variables, or of a configuration file that is named.
private func clientProxy(_ arguments: Arguments, _ environment: [String: String]) throws(UsageError) -> ClientProxy? {
    if let named = arguments[.proxy] {
        guard let proxy = ClientProxy(named, source: "--proxy") else {
            throw UsageError("--proxy takes HOST:PORT or http://USER:PASSWORD@HOST:PORT")
        }
        return proxy
    }
    return ClientProxy(environment: environment)
}

private enum ToolTableText {
    static let width = Tool.all.map(\.name.count).max() ?? 0
    static let head = padded("tool", width + 2) + "proxy  trusts  cached"

    static func line(_ row: ClientExamination.Row) -> String {
        let verdict = row.verdict
        var line =
            padded(row.tool.name, width + 2) + padded(mark(verdict.usesProxy), 7) + padded(mark(verdict.trusts), 8)
            + padded(mark(verdict.isCached), 8)
        if let advice = verdict.advice { line += advice }
        while line.last == " " { line.removeLast() }
        return line
    }

    private static func mark(_ mark: ToolVerdict.Mark) -> String { mark == .no ? "NO" : mark.rawValue }
}

private func show(_ examination: ClientExamination, _ console: Console) {
    let failed = examination.rows.filter { !$0.said.isEmpty }
    if !failed.isEmpty { console.print("") }
    for row in failed { console.print("\(row.tool.name) said: \(row.said)") }
    if !examination.findings.isEmpty || !examination.remarks.isEmpty { console.print("") }
    for finding in examination.findings {
        console.print("wrong: \(finding.problem)")
        console.print("       \(finding.mend)")
    }
    for remark in examination.remarks { console.print("note:  \(remark)") }
    if !examination.isFine {
        console.print("\nOne command sets up everything:\n  \(examination.facts.setupCommand)")
    }
}

private func json(_ examination: ClientExamination) -> [UInt8] {
    var writer = JSONWriter()
    writer.object { json in
        json.member("proxy", examination.proxy.url)
        json.member("fine", examination.isFine)
        json.member("opens_tls", examination.facts.opensTLS)
        json.key("tools")
        json.array { array in
            for row in examination.rows {
                array.object { json in
                    json.member("name", row.tool.name)
                    json.member("program", row.program)
                    for (name, mark) in [
                        ("proxy", row.verdict.usesProxy), ("trusts", row.verdict.trusts),
                        ("cached", row.verdict.isCached),
                    ] {
                        switch mark {
                        case .yes: json.member(name, true)
                        case .no: json.member(name, false)
                        case .untested:
                            json.key(name)
                            json.null()
                        }
                    }
                    if let advice = row.verdict.advice { json.member("advice", advice) }
                    if !row.said.isEmpty { json.member("said", row.said) }
                }
            }
        }
        json.key("findings")
        json.array { array in
            for finding in examination.findings {
                array.object { json in
                    json.member("problem", finding.problem)
                    json.member("mend", finding.mend)
                }
            }
        }
        json.key("remarks")
        json.array { for remark in examination.remarks { $0.string(remark) } }
        json.member("setup", examination.facts.setupCommand)
    }
    return writer.bytes
}
