import Admin
import JSON
import Texts

/// The conditions on a command line, in the order in which the help shows them.
///
/// - Parameter word: the condition that a word without an option stands for.
func conditions(
    _ arguments: Arguments, word: SelectionKey
) throws(UsageError) -> [(key: SelectionKey, value: String)] {
    var result: [(key: SelectionKey, value: String)] = arguments.words.map { (word, $0) }
    for key in SelectionKey.allCases {
        guard let value = arguments[option(of: key)] else { continue }
        guard !result.contains(where: { $0.key == key }) else {
            throw UsageError("\(option(of: key).long) and an argument without an option mean the same")
        }
        result.append((key, value))
    }
    // Also check them here, so that a mistake is reported before the proxy is asked.
    var selection = Selection()
    do throws(SelectionError) {
        for (key, value) in result { try selection.set(key, value) }
    } catch {
        throw UsageError(error.message)
    }
    return result
}

private func option(of key: SelectionKey) -> Option {
    switch key {
    case .url: .url
    case .prefix: .prefix
    case .host: .host
    case .tag: .tag
    case .type: .type
    case .zone: .zone
    case .storage: .storage
    case .olderThan: .olderThan
    }
}

/// Asks the running proxy for stored responses, and calls a function with each line of the answer and with its parsed content.
///
/// - Returns: the exit status. If it is not 0, an error was printed.
func forEachObject(
    _ arguments: Arguments, _ console: Console, _ each: (ArraySlice<UInt8>, JSONValue) -> Void
) throws(UsageError) -> Int32 {
    guard arguments.words.count <= 1 else { throw UsageError("only one prefix can be given") }
    let query = try conditions(arguments, word: .prefix)
        .map { "\($0.key.rawValue)=\(formEncoded($0.value))" }.joined(separator: "&")
    guard let client = adminClient(arguments, console) else { return ExitStatus.usage }
    var mistake: JSONError?
    do throws(AdminClient.Failure) {
        let refusal = try client.lines(query.isEmpty ? "/objects" : "/objects?\(query)") { line in
            do throws(JSONError) { each(line, try JSONValue(parsing: line).legible) } catch {
                mistake = mistake ?? error
            }
        }
        guard refusal == nil, mistake == nil else {
            let text = refusal.map { refusalText($0) } ?? "the answer is not JSON: \(mistake?.text ?? "")"
            console.error("larder: \(text)")
            return refusal?.status == 400 ? ExitStatus.usage : ExitStatus.failed
        }
        return ExitStatus.done
    } catch {
        console.error("larder: \(error.text)")
        return ExitStatus.failed
    }
}

/// The error message in an answer that is not a success.
func refusalText(_ answer: AdminClient.Answer) -> String {
    do throws(JSONError) {
        if let text = try JSONValue(parsing: answer.body)["error"]?.text { return lineText(text) }
    } catch {
        return "the admin server answered with status \(answer.status)"  // the content is not JSON
    }
    return "the admin server answered with status \(answer.status)"
}
