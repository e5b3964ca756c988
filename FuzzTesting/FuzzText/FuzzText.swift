import FuzzSupport
import JSON
import Rules
import YAML

/// Any text that is written as JSON or as YAML is read as that text, by the parsers that read files of users: alone, in a list, and as a comment.

private func yaml(_ text: String) -> [String?]? {
    guard let node = try? parseYAML(Array(text.utf8)), case .sequence(let nodes) = node.value else { return nil }
    return nodes.map { if case .scalar(let value, _) = $0.value { value } else { nil } }
}

private func areSame(_ a: String?, _ b: String) -> Bool { a.map { $0.utf8.elementsEqual(b.utf8) } ?? false }

@_cdecl("FuzzText_main")
public func entry(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    unsafe fuzz(count, arguments) { start, count in
        let text = String(decoding: unsafe input(start, count), as: UTF8.self)
        guard case .string(let read)? = try? JSONValue(parsing: Array(jsonString(text).utf8)) else {
            preconditionFailure("a string of JSON is read as one")
        }
        precondition(areSame(read, text), "JSON has another text")
        for written in [yamlScalar(text), yamlQuoted(text)] {
            precondition(!written.utf8.contains(UInt8(ascii: "\n")), "a scalar stands in one line")
            let list = yaml("[ \(written), GET ]")
            precondition(list?.count == 2 && areSame(list?[0], text) && list?[1] == "GET", "YAML has another text")
        }
        precondition(yaml("\(yamlComment(text))\n- a\n")?.count == 1, "a comment ends with its line")
        return 0
    }
}
