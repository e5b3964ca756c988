import Admin
import JSON

/// `larder doctor --refusals`: which clients did not accept the certificate for which host, as the running proxy remembers it.
///
/// Exit status 0: none. 1: some, or the proxy cannot be reached.
func refusalsCommand(_ arguments: Arguments, _ console: Console) -> Int32 {
    guard let client = adminClient(arguments, console) else { return ExitStatus.usage }
    do throws(AdminClient.Failure) {
        let answer = try client.ask("GET", "/stats")
        guard answer.status == 200, let statistics = try? JSONValue(parsing: answer.body),
            case .array(let refusals)? = statistics["certificate_refusals"]
        else {
            console.error("larder: the admin server answered with status \(answer.status)")
            return ExitStatus.failed
        }
        if arguments.has(.json) {
            console.print(String(decoding: json(refusals), as: UTF8.self))
        } else {
            show(refusals, console)
        }
        return refusals.isEmpty ? ExitStatus.done : ExitStatus.failed
    } catch {
        console.error("larder: \(error.text)")
        return ExitStatus.failed
    }
}

private func show(_ refusals: [JSONValue], _ console: Console) {
    guard !refusals.isEmpty else { return console.print("every client accepted the certificates of the last day") }
    let rows = refusals.map { ["client", "host", "signal", "last_at"].map($0.text) }
    let head = ["client", "host", "what it did", "last"]
    let widths = head.indices.map { column in ([head] + rows).map { $0[column].count }.max() ?? 0 }
    for row in [head] + rows {
        var line = ""
        for (cell, width) in zip(row, widths) { line += padded(cell, width + 2) }
        while line.last == " " { line.removeLast() }
        console.print(line)
    }
    console.print("")
    console.print(
        "These clients do not trust the authority of intercept.ca. On each of them run setup.sh, and then larder doctor."
    )
    console.print("If a program accepts one certificate only, leave its host out of intercept.hosts.")
}

private func json(_ refusals: [JSONValue]) -> [UInt8] {
    var writer = JSONWriter()
    writer.object { json in
        json.key("refusals")
        json.array { json in
            for refusal in refusals {
                json.object { json in
                    for name in ["client", "host", "signal", "last_at"] { json.member(name, refusal.text(name)) }
                    if case .integer(let count)? = refusal["count"] { json.member("count", count) }
                }
            }
        }
    }
    return writer.bytes
}

extension JSONValue {
    fileprivate func text(_ name: String) -> String {
        guard case .string(let text)? = self[name] else { return "a Unix socket" }
        return text
    }
}
