import Admin
import JSON
import Texts

/// Prints an answer of the admin server: with `--json` as it arrived, otherwise as a text that `text` makes of it.
/// - Returns: the exit status.
func show(
    _ body: [UInt8], _ arguments: Arguments, _ console: Console, as text: (JSONValue) -> String
) -> Int32 {
    if arguments.has(.json) {
        console.print(String(decoding: body, as: UTF8.self).trimmingNewline)
        return ExitStatus.done
    }
    do throws(JSONError) {
        console.print(text(try JSONValue(parsing: body).legible))
        return ExitStatus.done
    } catch {
        console.error("larder: the answer is not JSON: \(error.text)")
        return ExitStatus.failed
    }
}

extension JSONValue {
    /// The same with each string as one line for people: URLs, media types and names of users were chosen by others.
    var legible: JSONValue {
        switch self {
        case .null, .bool, .integer, .double: self
        case .string(let text): .string(lineText(text))
        case .array(let values): .array(values.map(\.legible))
        case .object(let members): .object(members.map { Member(name: lineText($0.name), value: $0.value.legible) })
        }
    }
}
