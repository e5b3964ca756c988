import Admin
import JSON

/// `larder budget reset LIMIT [--client ADDRESS | --user NAME | --group NAME]`
func budgetCommand(_ arguments: Arguments, _ console: Console) throws(UsageError) -> Int32 {
    let words = arguments.words
    guard words.first == "reset", words.count == 2 else {
        throw UsageError(
            "budget takes reset and the name of a limit", hint: "larder budget reset LIMIT --user NAME")
    }
    let named = [Option.client, .user, .group].filter { arguments.has($0) }
    guard named.count <= 1 else { throw UsageError("a budget is that of one client, one user or one group") }
    guard let client = adminClient(arguments, console) else { return ExitStatus.usage }
    var body = JSONWriter()
    body.object {
        $0.member("rule", words[1])
        if let option = named.first, let value = arguments[option] { $0.member(option.rawValue, value) }
    }
    do throws(AdminClient.Failure) {
        return report(try client.ask("POST", "/budgets/reset", body: body.bytes), words[1], arguments, console)
    } catch {
        console.error("larder: \(error.text)")
        return ExitStatus.failed
    }
}

private func report(
    _ answer: AdminClient.Answer, _ rule: String, _ arguments: Arguments, _ console: Console
) -> Int32 {
    let text = String(decoding: answer.body, as: UTF8.self).trimmingNewline
    let value = (try? JSONValue(parsing: answer.body))?.legible
    guard answer.status == 200, let count = value?["reset"]?.integer else {
        console.error("larder: \(value?["error"]?.text ?? "status \(answer.status): \(text)")")
        return answer.status == 400 ? ExitStatus.usage : ExitStatus.failed
    }
    if arguments.has(.json) {
        console.print(text)
    } else {
        console.print(
            count == 0
                ? "nothing of this budget of the limit \(rule) was used"
                : "reset \(count) \(count == 1 ? "budget" : "budgets") of the limit \(rule)")
    }
    return ExitStatus.done
}
