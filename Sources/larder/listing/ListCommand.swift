import Admin
import Glibc
import JSON

/// `larder ls [PREFIX] [CONDITION]... [--json]`: prints a line for each stored response as it arrives.
func listCommand(_ arguments: Arguments, _ console: Console) throws(UsageError) -> Int32 {
    let isJSON = arguments.has(.json)
    if !isJSON, isatty(STDOUT_FILENO) == 1 { console.print(objectHeading) }
    return try forEachObject(arguments, console) { line, object in
        console.print(isJSON ? String(decoding: line, as: UTF8.self) : objectLine(object))
    }
}

let objectHeading = columns("STATE", "STATUS", "SIZE", "AGE", "LEFT", "HITS", "TYPE", "URL")

/// The line for one object of `GET /objects`.
func objectLine(_ object: JSONValue) -> String {
    let left = object["ttl"]?.integer ?? 0
    let variants = object["variants"]?.integer ?? 1
    let vary = (object["vary"]?.elements ?? []).compactMap(\.text).joined(separator: ", ")
    let addresses = (object["addresses"]?.elements ?? []).compactMap(\.text)
    // The key of a digest is no address. The first line says how many there are besides.
    let url = addresses.first.map { addresses.count > 1 ? "\($0)  (and \(addresses.count - 1) more)" : $0 }
    let variant = vary.isEmpty ? "" : "  (by \(vary); \(variants) stored)"
    return columns(
        object["state"]?.text ?? "?", "\(object["status"]?.integer ?? 0)", binarySize(object["bytes"]?.number ?? 0),
        timeSpan(object["age"]?.integer ?? 0), left > 0 ? timeSpan(left) : "-", grouped(object["hits"]?.integer ?? 0),
        object["type"]?.text ?? "-", (url ?? object["url"]?.text ?? "?") + variant)
}

private func columns(
    _ state: String, _ status: String, _ size: String, _ age: String, _ left: String, _ hits: String, _ type: String,
    _ url: String
) -> String {
    let numbers = [(size, 10), (age, 10), (left, 10), (hits, 7)].map { aligned($0.0, $0.1) }.joined(separator: "  ")
    return "\(padded(state, 8))\(padded(status, 6))\(numbers)  \(padded(type, 24)) \(url)"
}

/// Puts spaces before `text` up to `width`.
func aligned(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(0, width - text.count)) + text
}
