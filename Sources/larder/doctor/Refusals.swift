import Admin
import JSON

/// `larder doctor --refusals`: which clients did not accept the certificate for which host, and which origins want a certificate of the client, as
/// the running proxy remembers it.
///
/// Exit status 0: none. 1: some, or the proxy cannot be reached.
func refusalsCommand(_ arguments: Arguments, _ console: Console) -> Int32 {
    guard let client = adminClient(arguments, console) else { return ExitStatus.usage }
    do throws(AdminClient.Failure) {
        let answer = try client.ask("GET", "/stats")
        guard answer.status == 200, let statistics = try? JSONValue(parsing: answer.body),
            case .array(let refusals)? = statistics["certificate_refusals"],
            case .array(let requests)? = statistics["certificate_requests"]
        else {
            console.error("larder: the admin server answered with status \(answer.status)")
            return ExitStatus.failed
        }
        let required = requests.filter { $0["required"] == .bool(true) }
        if arguments.has(.json) {
            console.print(String(decoding: json(refusals, required), as: UTF8.self))
        } else {
            show(refusals.map(\.legible), console)
            showRequired(required.map(\.legible), console)
        }
        return refusals.isEmpty && required.isEmpty ? ExitStatus.done : ExitStatus.failed
    } catch {
        console.error("larder: \(error.text)")
        return ExitStatus.failed
    }
}

private func show(_ refusals: [JSONValue], _ console: Console) {
    guard !refusals.isEmpty else { return console.print("every client accepted the certificates of the last day") }
    let rows = refusals.map { ["client", "host", "signal", "last_at"].map($0.text) }
    show(rows, under: ["client", "host", "what it did", "last"], console)
    console.print("")
    console.print(
        "These clients do not trust the authority of intercept.ca. On each of them run setup.sh, and then larder doctor."
    )
    console.print("If a program accepts one certificate only, leave its host out of intercept.hosts.")
}

private func showRequired(_ requests: [JSONValue], _ console: Console) {
    guard !requests.isEmpty else { return }
    console.print("")
    show(requests.map { ["host", "last_at"].map($0.text) }, under: ["origin", "last"], console)
    console.print("")
    console.print(
        "These origins want a certificate of the client. Larder has none to show, and the client's own does not pass an opened tunnel: name one in tls of a rule of origins, or leave them out of intercept.hosts, or say intercept: no in their access rules."
    )
}

private func show(_ rows: [[String]], under head: [String], _ console: Console) {
    let widths = head.indices.map { column in ([head] + rows).map { $0[column].count }.max() ?? 0 }
    for row in [head] + rows {
        var line = ""
        for (cell, width) in zip(row, widths) { line += padded(cell, width + 2) }
        while line.last == " " { line.removeLast() }
        console.print(line)
    }
}

private func json(_ refusals: [JSONValue], _ required: [JSONValue]) -> [UInt8] {
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
        json.key("certificates_required")
        json.array { json in
            for request in required {
                json.object { json in
                    for name in ["host", "last_at"] { json.member(name, request.text(name)) }
                    if case .integer(let count)? = request["count"] { json.member("count", count) }
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
