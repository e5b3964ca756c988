import Admin
import JSON

/// `larder stats [--fleet | --watch | --cancel ID] [--json]`
func statsCommand(_ arguments: Arguments, _ console: Console) throws(UsageError) -> Int32 {
    guard arguments.words.isEmpty else { throw UsageError("stats takes no \"\(arguments.words[0])\"") }
    let kinds = [Option.fleet, .watch, .cancel].filter(arguments.has)
    guard kinds.count <= 1 else {
        throw UsageError("\(kinds.map(\.long).joined(separator: " and ")) cannot be given together")
    }
    guard let client = adminClient(arguments, console) else { return ExitStatus.usage }
    do throws(AdminClient.Failure) {
        if let id = arguments[.cancel] { return try cancelTransfer(id, client, arguments, console) }
        if arguments.has(.watch) { return try watch(client, arguments, console) }
        if arguments.has(.fleet) { return try showFleet(client, arguments, console) }
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
        let reason = (try? JSONValue(parsing: answer.body))?.legible["error"]?.text
        console.error("larder: \(reason ?? "status \(answer.status): \(text)")")
        return answer.status == 400 ? ExitStatus.usage : ExitStatus.failed
    }
    console.print(arguments.has(.json) ? text : "ended \(id)")
    return ExitStatus.done
}
