import Admin
import JSON

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
        console.print(text(try JSONValue(parsing: body)))
        return ExitStatus.done
    } catch {
        console.error("larder: the answer is not JSON: \(error.text)")
        return ExitStatus.failed
    }
}
