import Admin
import JSON

/// `larder explain [METHOD] URL [-H LINE]... [--as NAME] [--client ADDRESS] [--json]`
func explainCommand(_ arguments: Arguments, _ console: Console) throws(UsageError) -> Int32 {
    let body = try explainBody(arguments)
    guard let client = adminClient(arguments, console) else { return ExitStatus.usage }
    do throws(AdminClient.Failure) {
        let answer = try client.ask("POST", "/explain", body: body)
        guard answer.status == 200 else {
            console.error("larder: \(refusalText(answer))")
            return answer.status == 400 ? ExitStatus.usage : ExitStatus.failed
        }
        return show(answer.body, arguments, console, as: explanationText)
    } catch {
        console.error("larder: \(error.text)")
        return ExitStatus.failed
    }
}

/// The body of `POST /explain`.
func explainBody(_ arguments: Arguments) throws(UsageError) -> [UInt8] {
    guard let target = arguments.words.last, arguments.words.count <= 2 else {
        throw UsageError(
            "explain takes a URL, with an optional method before it", hint: "larder explain \(Command.explain.synopsis)"
        )
    }
    for line in arguments.all(.header) { _ = try requestField(line) }
    var writer = JSONWriter()
    writer.object { writer in
        writer.member("method", arguments.words.count == 2 ? arguments.words[0] : "GET")
        writer.member("url", target)
        writer.key("fields")
        writer.array { for line in arguments.all(.header) { $0.string(line) } }
        if let user = arguments[.as] { writer.member("user", user) }
        if let client = arguments[.client] { writer.member("client", client) }
    }
    return writer.bytes
}

/// The sections with their lines, and the decision at the end. Names are aligned on the left.
func explanationText(_ explanation: JSONValue) -> String {
    var lines: [String] = []
    for section in explanation["sections"]?.elements ?? [] {
        lines.append(section["name"]?.text ?? "?")
        for line in section["lines"]?.elements ?? [] {
            lines.append("  \(padded(line["name"]?.text ?? "?", 26))\(line["value"]?.text ?? "")")
        }
        lines.append("")
    }
    lines.append("\(explanation["decision"]?.text ?? "?"): \(explanation["reason"]?.text ?? "")")
    return lines.joined(separator: "\n")
}
