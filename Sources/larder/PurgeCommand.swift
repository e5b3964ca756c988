import Admin

/// `larder purge URL | --prefix URL | --host HOST | --all [--dry-run] [--json]`
func purgeCommand(_ arguments: Arguments, _ console: Console) throws(UsageError) -> Int32 {
    let body = try purgeBody(arguments)
    guard let client = adminClient(arguments, console) else { return ExitStatus.usage }
    do throws(AdminClient.Failure) {
        return report(try client.ask("POST", "/purge", body: body), arguments, console)
    } catch {
        console.error("larder: \(error.text)")
        return ExitStatus.failed
    }
}

/// The body of `POST /purge` for exactly one selection.
func purgeBody(_ arguments: Arguments) throws(UsageError) -> [UInt8] {
    var selections = arguments.words.map { (key: "url", value: $0) }
    if let prefix = arguments[.prefix] { selections.append(("prefix", prefix)) }
    if let host = arguments[.host] { selections.append(("host", host)) }
    if arguments.has(.all) { selections.append(("all", "")) }
    guard selections.count == 1, let selection = selections.first else {
        throw UsageError(
            selections.isEmpty ? "what is to be purged?" : "purge takes one selection at a time",
            hint: "larder purge \(Command.purge.synopsis)")
    }
    var writer = JSONWriter()
    writer.object {
        if selection.key == "all" { $0.member("all", true) } else { $0.member(selection.key, selection.value) }
        $0.member("dry_run", arguments.has(.dryRun))
    }
    return writer.bytes
}

/// Prints what the server answered. A URL that it refuses is an error of usage.
private func report(_ answer: AdminClient.Answer, _ arguments: Arguments, _ console: Console) -> Int32 {
    let text = String(decoding: answer.body, as: UTF8.self).trimmingNewline
    let value: JSONValue
    do throws(JSONError) {
        value = try JSONValue(parsing: answer.body)
    } catch {
        console.error("larder: the answer is not JSON: \(error.text)")
        return ExitStatus.failed
    }
    guard answer.status == 200, let records = value["records"]?.integer, let bytes = value["bytes"]?.integer else {
        console.error("larder: \(value["error"]?.text ?? "status \(answer.status): \(text)")")
        return answer.status == 400 ? ExitStatus.usage : ExitStatus.failed
    }
    if arguments.has(.json) {
        console.print(text)
    } else {
        let responses = records == 1 ? "1 response" : "\(grouped(records)) responses"
        let verb = arguments.has(.dryRun) ? "would purge" : "purged"
        console.print("\(verb) \(responses), \(binarySize(Double(bytes)))")
    }
    return ExitStatus.done
}

extension String {
    /// Without the line feeds at its end.
    var trimmingNewline: String {
        var text = self[...]
        while text.last == "\n" { text.removeLast() }
        return String(text)
    }
}
