import Admin
import JSON

/// `larder session clear [NAME]`
func sessionCommand(_ arguments: Arguments, _ console: Console) throws(UsageError) -> Int32 {
    let words = arguments.words
    guard words.first == "clear", words.count <= 2 else {
        throw UsageError(
            "session takes clear, and perhaps the name of a credential or a cookie jar", hint: "larder session clear")
    }
    guard let client = adminClient(arguments, console) else { return ExitStatus.usage }
    do throws(AdminClient.Failure) {
        let name = words.count > 1 ? words[1] : ""
        let answer = try client.ask("POST", "/session/clear", body: Array(name.utf8), patience: .disk)
        return reportCleared(answer, arguments, console)
    } catch {
        console.error("larder: \(error.text)")
        return ExitStatus.failed
    }
}

private func reportCleared(_ answer: AdminClient.Answer, _ arguments: Arguments, _ console: Console) -> Int32 {
    let text = String(decoding: answer.body, as: UTF8.self).trimmingNewline
    let value = (try? JSONValue(parsing: answer.body))?.legible
    guard answer.status == 200, let credentials = value?["credentials"]?.integer,
        let jars = value?["cookie_jars"]?.integer
    else {
        console.error("larder: \(value?["error"]?.text ?? "status \(answer.status): \(text)")")
        return answer.status == 400 ? ExitStatus.usage : ExitStatus.failed
    }
    let forgotten = [
        credentials > 0 || jars == 0 ? "the log-ins with \(counted(credentials, "credential"))" : nil,
        jars > 0 ? "the cookies of \(counted(jars, "jar"))" : nil,
    ].compactMap(\.self)
    console.print(arguments.has(.json) ? text : "forgot " + forgotten.joined(separator: " and "))
    return ExitStatus.done
}

private func counted(_ count: Int64, _ noun: String) -> String { count == 1 ? "1 \(noun)" : "\(count) \(noun)s" }
