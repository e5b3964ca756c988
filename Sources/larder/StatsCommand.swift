import Admin
import JSON

/// `larder stats [--watch | --cancel ID] [--json]`
func statsCommand(_ arguments: Arguments, _ console: Console) throws(UsageError) -> Int32 {
    guard arguments.words.isEmpty else { throw UsageError("stats takes no \"\(arguments.words[0])\"") }
    guard !arguments.has(.watch) || !arguments.has(.cancel) else {
        throw UsageError("--watch and --cancel cannot be given together")
    }
    guard let client = adminClient(arguments, console) else { return ExitStatus.usage }
    do throws(AdminClient.Failure) {
        if let id = arguments[.cancel] { return try cancelTransfer(id, client, arguments, console) }
        if arguments.has(.watch) { return try watch(client, arguments, console) }
        let answer = try client.ask("GET", "/stats")
        guard answer.status == 200 else {
            console.error("larder: the admin server answered with status \(answer.status)")
            return ExitStatus.failed
        }
        return show(answer.body, arguments, console, as: statisticsTable)
    } catch {
        console.error("larder: \(error.text)")
        return ExitStatus.failed
    }
}

private func cancelTransfer(
    _ id: String, _ client: AdminClient, _ arguments: Arguments, _ console: Console
) throws(AdminClient.Failure) -> Int32 {
    let answer = try client.ask("POST", "/transfers/cancel", body: Array(id.utf8))
    let text = String(decoding: answer.body, as: UTF8.self).trimmingNewline
    guard answer.status == 200 else {
        let reason = (try? JSONValue(parsing: answer.body))?["error"]?.text
        console.error("larder: \(reason ?? "status \(answer.status): \(text)")")
        return answer.status == 400 ? ExitStatus.usage : ExitStatus.failed
    }
    console.print(arguments.has(.json) ? text : "ended \(id)")
    return ExitStatus.done
}
