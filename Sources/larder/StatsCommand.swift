import Admin

/// `larder stats [--json]`
func statsCommand(_ arguments: Arguments, _ console: Console) throws(UsageError) -> Int32 {
    guard arguments.words.isEmpty else { throw UsageError("stats takes no \"\(arguments.words[0])\"") }
    guard let client = adminClient(arguments, console) else { return ExitStatus.usage }
    do throws(AdminClient.Failure) {
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
