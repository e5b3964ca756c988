import Admin
import JSON

/// `larder learn start|stop|show|forget JOB` and `larder learn list`
func learnCommand(_ arguments: Arguments, _ console: Console) throws(UsageError) -> Int32 {
    let request = try LearnRequest(arguments)
    guard let client = adminClient(arguments, console) else { return ExitStatus.usage }
    do throws(AdminClient.Failure) {
        return report(try request.ask(client, arguments), of: request, arguments, console)
    } catch {
        console.error("larder: \(error.text)")
        return ExitStatus.failed
    }
}

private enum LearnRequest {
    case start(String)
    case stop(String)
    case list
    case show(String)
    case forget(String)

    init(_ arguments: Arguments) throws(UsageError) {
        let words = arguments.words
        switch (words.first, words.count) {
        case ("start", 2): self = .start(words[1])
        case ("stop", 2): self = .stop(words[1])
        case ("list", 1): self = .list
        case ("show", 2): self = .show(words[1])
        case ("forget", 2): self = .forget(words[1])
        case (let verb?, _) where ["start", "stop", "show", "forget"].contains(verb):
            throw UsageError("learn \(verb) takes the name of one job", hint: "larder learn \(verb) JOB")
        default:
            throw UsageError(
                "learn takes start, stop, list, show or forget", hint: "larder learn start JOB --client ADDRESS")
        }
        if case .start = self {
        } else {
            for option in [Option.client, .user, .listener, .allow, .for] where arguments.has(option) {
                throw UsageError("only learn start takes \(option.long)")
            }
        }
        if case .show = self {
        } else if arguments.has(.diff) {
            throw UsageError("only learn show takes --diff")
        }
        if arguments.has(.allow), !arguments.has(.client), !arguments.has(.user), !arguments.has(.listener) {
            throw UsageError(
                "--allow lets through what the rules deny, so it needs --client, --user or --listener",
                hint: "larder learn start JOB --client ADDRESS --allow --for 1h")
        }
    }

    func ask(_ client: AdminClient, _ arguments: Arguments) throws(AdminClient.Failure) -> AdminClient.Answer {
        switch self {
        case .start(let job):
            try client.ask(
                "POST", "/learn/start",
                body: body([
                    ("job", job), ("client", arguments[.client]), ("user", arguments[.user]),
                    ("listener", arguments[.listener]),
                    ("allow", arguments.has(.allow) ? "yes" : nil), ("for", arguments[.for]),
                ]))
        case .stop(let job): try client.ask("POST", "/learn/stop", body: body([("job", job)]))
        case .forget(let job): try client.ask("POST", "/learn/forget", body: body([("job", job)]))
        case .list: try client.ask("GET", "/learn")
        case .show(let job): try client.ask("GET", "/learn/show?job=\(queryText(job))")
        }
    }

    private func body(_ members: [(String, String?)]) -> [UInt8] {
        var writer = JSONWriter()
        writer.object { for (name, value) in members { if let value { $0.member(name, value) } } }
        return writer.bytes
    }
}

/// What the name of a job cannot have is encoded, so that the server can say so.
private func queryText(_ text: String) -> String {
    text.utf8.reduce(into: "") { result, byte in
        let isPlain =
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
            || "-._".utf8.contains(byte)
        let digits = Array("0123456789ABCDEF")
        result += isPlain ? String(UnicodeScalar(byte)) : "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
    }
}

private func report(
    _ answer: AdminClient.Answer, of request: LearnRequest, _ arguments: Arguments, _ console: Console
) -> Int32 {
    let text = String(decoding: answer.body, as: UTF8.self).trimmingNewline
    guard answer.status == 200, let answered = try? JSONValue(parsing: answer.body) else {
        let error = (try? JSONValue(parsing: answer.body))?.legible["error"]?.text
        console.error("larder: \(error ?? "status \(answer.status): \(text)")")
        return answer.status == 400 ? ExitStatus.usage : ExitStatus.failed
    }
    let value = answered.legible
    if let warning = value["warning"]?.text { console.error("larder: warning: \(warning)") }
    if arguments.has(.json) {
        console.print(text)
        return ExitStatus.done
    }
    switch request {
    case .start: console.print(startText(value))
    case .stop: console.print("stopped \(value["stopped"]?.text ?? "")")
    case .forget: console.print("forgot \(value["forgotten"]?.text ?? "")")
    case .list:
        let jobs = value["jobs"]?.elements ?? []
        if jobs.isEmpty { console.print("no job has learnt anything") }
        for job in jobs { console.print(line(of: job)) }
    case .show:
        console.print(
            arguments.has(.diff) ? differenceText(value) : (answered["yaml"]?.text ?? "").trimmingNewline)
    }
    return ExitStatus.done
}

private func startText(_ value: JSONValue) -> String {
    let scope = value["scope"]?.text ?? ""
    var lines = ["learning \(value["job"]?.text ?? ""): every request of \(scope)"]
    if scope == "every client" {
        lines = [
            "learning \(value["job"]?.text ?? ""): every request of every client, until it is stopped; --client, --user and --listener name whose requests belong to the job"
        ]
    }
    if value["allows"]?.flag == true {
        lines.append("what the access rules deny to \(scope) is let through until \(value["ends"]?.text ?? "")")
    } else if let end = value["ends"]?.text {
        lines.append("it ends at \(end)")
    }
    return lines.joined(separator: "\n")
}

/// `nightly           learning   3 runs   214 requests  client 10.2.0.17`.
private func line(of job: JSONValue) -> String {
    let state =
        job["learning"]?.flag != true
        ? "-"
        : job["allows"]?.flag == true ? "learning, rules let through until \(job["ends"]?.text ?? "")" : "learning"
    return [
        padded(job["job"]?.text ?? "", 20), padded(counted(job["runs"]?.integer ?? 0, "run"), 8),
        padded(counted(job["requests"]?.integer ?? 0, "request"), 16), padded(job["scope"]?.text ?? "", 24), state,
    ].joined(separator: "  ")
}

/// What a set of rules has to gain and to lose, one line for each rule.
func differenceText(_ value: JSONValue) -> String {
    let difference = value["difference"]
    let missing = difference?["missing"]?.elements ?? []
    let superfluous = difference?["superfluous"]?.elements ?? []
    let denied = difference?["denied"]?.elements ?? []
    var lines: [String] = []
    func add(_ title: String, _ texts: [String]) {
        guard !texts.isEmpty else { return }
        lines += (lines.isEmpty ? [] : [""]) + [title] + texts
    }
    func text(_ sign: String, _ rule: JSONValue) -> String {
        "\(sign) allow: \(rule["text"]?.text ?? "")\n    \(rule["comment"]?.text ?? "")"
    }
    add("Needed, and denied by the rules in force:", missing.map { text("+", $0) })
    add(
        "Allow rules in force that this job did not need:", superfluous.compactMap { $0.integer.map { "- rule \($0)" } }
    )
    add("Denied while it ran, and not among the learnt rules:", denied.map { text("?", $0) })
    return lines.isEmpty
        ? "the rules in force allow what this job needs, and nothing else" : lines.joined(separator: "\n")
}

private func counted(_ count: Int64, _ noun: String) -> String { count == 1 ? "1 \(noun)" : "\(count) \(noun)s" }
