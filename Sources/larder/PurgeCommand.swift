import Admin
import JSON

/// `larder purge [URL] [CONDITION]... | --all [--soft] [--dry-run] [--json]`
func purgeCommand(_ arguments: Arguments, _ console: Console) throws(UsageError) -> Int32 {
    let body = try purgeBody(arguments)
    guard let client = adminClient(arguments, console) else { return ExitStatus.usage }
    do throws(AdminClient.Failure) {
        return report(try client.ask("POST", "/purge", body: body, patience: .disk), arguments, console)
    } catch {
        console.error("larder: \(error.text)")
        return ExitStatus.failed
    }
}

/// The body of `POST /purge`: at least one condition, or `--all`.
func purgeBody(_ arguments: Arguments) throws(UsageError) -> [UInt8] {
    guard arguments.words.count <= 1 else { throw UsageError("purge takes one URL at a time") }
    let conditions = try conditions(arguments, word: .url)
    guard conditions.isEmpty == arguments.has(.all) else {
        throw UsageError(
            conditions.isEmpty
                ? "purge needs a URL, a condition or --all" : "--all cannot be combined with a URL or a condition",
            hint: "larder purge \(Command.purge.synopsis)")
    }
    var writer = JSONWriter()
    writer.object {
        for (key, value) in conditions { $0.member(key.rawValue, value) }
        if arguments.has(.all) { $0.member("all", true) }
        $0.member("soft", arguments.has(.soft))
        $0.member("dry_run", arguments.has(.dryRun))
    }
    return writer.bytes
}

/// Prints the answer of the server. If the server refuses the URL, that is a usage error.
private func report(_ answer: AdminClient.Answer, _ arguments: Arguments, _ console: Console) -> Int32 {
    let text = String(decoding: answer.body, as: UTF8.self).trimmingNewline
    let value: JSONValue
    do throws(JSONError) {
        value = try JSONValue(parsing: answer.body).legible
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
        let verb =
            switch (arguments.has(.soft), arguments.has(.dryRun)) {
            case (false, false): "purged"
            case (false, true): "would purge"
            case (true, false): "marked stale"
            case (true, true): "would mark stale"
            }
        console.print("\(verb) \(responses), \(binarySize(Double(bytes)))\(spread(value["fleet"]))")
        for line in stragglers(value["fleet"]) { console.print(line) }
    }
    return isEverywhere(value["fleet"]) ? ExitStatus.done : ExitStatus.failed
}

/// Whether all known nodes of the fleet have applied the purge.
private func isEverywhere(_ fleet: JSONValue?) -> Bool {
    guard let applied = fleet?["applied"]?.integer, let nodes = fleet?["nodes"]?.integer else { return true }
    return applied == nodes && fleet?["waits"] == nil
}

/// A line for each node that has not applied the purge, as far as is known.
private func stragglers(_ fleet: JSONValue?) -> [String] {
    (fleet?["by_node"]?.elements ?? []).compactMap { node in
        let name = node["name"]?.text ?? ""
        switch node["state"]?.text {
        case "applied": return nil
        case "refused": return "  \(name): refused, \(node["reason"]?.text ?? "")"
        case "silent":
            guard let seconds = node["silent_seconds"]?.integer else { return "  \(name): never heard from" }
            return seconds < 15
                ? "  \(name): not applied yet" : "  \(name): not heard from for \(timeSpan(seconds))"
        default: return "  \(name): not known, \(node["reason"]?.text ?? "")"
        }
    }
}

/// How far a purge has come in the fleet. Empty if the server is alone.
private func spread(_ fleet: JSONValue?) -> String {
    guard let applied = fleet?["applied"]?.integer, let nodes = fleet?["nodes"]?.integer else { return "" }
    if let reason = fleet?["waits"]?.text {
        return " on this node; the others follow when the Redis of the fleet takes purges again: \(reason)"
    }
    return " on this node; applied on \(applied) of \(nodes) nodes"
}

extension String {
    /// The text without the line feeds at its end.
    var trimmingNewline: String {
        var text = self[...]
        while text.last == "\n" { text.removeLast() }
        return String(text)
    }
}
