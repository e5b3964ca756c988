import Admin
import JSON

/// `larder credential issue|list|revoke`
func credentialCommand(_ arguments: Arguments, _ console: Console) throws(UsageError) -> Int32 {
    let words = arguments.words
    let request: CredentialRequest
    switch (words.first, words.count) {
    case ("issue", 2): request = .issue(words[1])
    case ("list", 1): request = .list
    case ("revoke", 2): request = .revoke(words[1])
    case ("revoke", 1) where arguments[.job] != nil: request = .revoke(nil)
    case ("issue", _):
        throw UsageError(
            "credential issue takes the name of one credential", hint: "larder credential issue NAME --for 1h")
    case ("revoke", _):
        throw UsageError(
            "credential revoke takes the name of a credential, the ID of a placeholder, a placeholder, or --job",
            hint: "larder credential list shows the IDs")
    default:
        throw UsageError("credential takes issue, list or revoke", hint: "larder credential issue NAME --for 1h")
    }
    if case .issue = request {
    } else if arguments[.for] != nil {
        throw UsageError("only credential issue takes --for", hint: nil)
    }
    guard let client = adminClient(arguments, console) else { return ExitStatus.usage }
    do throws(AdminClient.Failure) {
        return report(try request.ask(client, arguments), of: request, arguments, console)
    } catch {
        console.error("larder: \(error.text)")
        return ExitStatus.failed
    }
}

private enum CredentialRequest {
    case issue(String)
    case list
    case revoke(String?)

    func ask(_ client: AdminClient, _ arguments: Arguments) throws(AdminClient.Failure) -> AdminClient.Answer {
        switch self {
        case .issue(let name):
            try client.ask(
                "POST", "/credentials/issue",
                body: body([("credential", name), ("job", arguments[.job]), ("for", arguments[.for])]))
        case .list: try client.ask("GET", "/credentials")
        case .revoke(let which):
            try client.ask("POST", "/credentials/revoke", body: body([("which", which), ("job", arguments[.job])]))
        }
    }

    private func body(_ members: [(String, String?)]) -> [UInt8] {
        var writer = JSONWriter()
        writer.object { for (name, value) in members { if let value { $0.member(name, value) } } }
        return writer.bytes
    }
}

private func report(
    _ answer: AdminClient.Answer, of request: CredentialRequest, _ arguments: Arguments, _ console: Console
) -> Int32 {
    let text = String(decoding: answer.body, as: UTF8.self).trimmingNewline
    guard answer.status == 200, let value = (try? JSONValue(parsing: answer.body))?.legible else {
        let error = (try? JSONValue(parsing: answer.body))?.legible["error"]?.text
        console.error("larder: \(error ?? "status \(answer.status): \(text)")")
        return answer.status == 400 ? ExitStatus.usage : ExitStatus.failed
    }
    if arguments.has(.json) {
        console.print(text)
        return ExitStatus.done
    }
    switch request {
    case .issue: console.print(value["placeholder"]?.text ?? "")
    case .list:
        let placeholders = value["placeholders"]?.elements ?? []
        if placeholders.isEmpty { console.print("no placeholder has been issued") }
        for one in placeholders { console.print(line(of: one)) }
    case .revoke:
        let count = value["placeholders"]?.elements?.count ?? 0
        guard count > 0 else {
            console.error("larder: no such placeholder holds")
            return ExitStatus.failed
        }
        console.print(count == 1 ? "revoked 1 placeholder" : "revoked \(count) placeholders")
    }
    return ExitStatus.done
}

/// `1f2e3d4c  forge  nightly-17  holds until 2026-01-31T12:00:00Z`.
private func line(of placeholder: JSONValue) -> String {
    let end = placeholder["ends"]?.text
    let state =
        switch placeholder["state"]?.text {
        case "holds": end.map { "holds until \($0)" } ?? "holds until it is revoked"
        case let state: "\(state ?? "") \(end ?? "")"
        }
    return [
        placeholder["id"]?.text ?? "", padded(placeholder["credential"]?.text ?? "", 16),
        padded(placeholder["job"]?.text ?? "-", 16), state,
    ].joined(separator: "  ")
}
