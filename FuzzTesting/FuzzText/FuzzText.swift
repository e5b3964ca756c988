import FuzzSupport
import JSON
import Message
import Texts
import YAML

/// Any text that is written in some format is read as that text: by the parsers that read files of users, or by a reader of the format that knows
/// nothing of the writer.

private func yaml(_ text: String) -> [String?]? {
    guard let node = try? parseYAML(Array(text.utf8)), case .sequence(let nodes) = node.value else { return nil }
    return nodes.map { if case .scalar(let value, _) = $0.value { value } else { nil } }
}

private func areSame(_ a: String?, _ b: String) -> Bool { a.map { $0.utf8.elementsEqual(b.utf8) } ?? false }

/// What a quoted text of metrics says: the bytes up to the quote that ends it, and what follows (Prometheus text format 0.0.4).
private func label(_ text: some Collection<UInt8>) -> (value: [UInt8], rest: ArraySlice<UInt8>)? {
    var rest = Array(text)[...]
    var value: [UInt8] = []
    guard rest.popFirst() == UInt8(ascii: "\"") else { return nil }
    while let byte = rest.popFirst() {
        switch byte {
        case UInt8(ascii: "\""): return (value, rest)
        case UInt8(ascii: "\n"): return nil
        case UInt8(ascii: "\\"):
            guard let next = rest.popFirst(), "n\\\"".utf8.contains(next) else { return nil }
            value.append(next == UInt8(ascii: "n") ? 0x0A : next)
        default: value.append(byte)
        }
    }
    return nil
}

/// The words of a line without variables and operators (XCU §2.2). Nil if a shell would do more than to divide it into words.
private func words(_ text: String) -> [[UInt8]]? {
    var result: [[UInt8]] = []
    var word: [UInt8]?
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
        switch byte {
        case UInt8(ascii: " "):
            if let word { result.append(word) }
            word = nil
        case UInt8(ascii: "'"):
            guard let end = rest.firstIndex(of: byte) else { return nil }
            word = (word ?? []) + rest[..<end]
            rest = rest[(end + 1)...]
        case UInt8(ascii: "\\"):
            guard let next = rest.popFirst(), next != UInt8(ascii: "\n") else { return nil }
            word = (word ?? []) + [next]
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "-"),
            UInt8(ascii: "_"):
            word = (word ?? []) + [byte]
        default: return nil
        }
    }
    return result + (word.map { [$0] } ?? [])
}

/// Text of HTML without a tag, its five references resolved. Nil if a parser would see more than text.
private func characters(_ text: String) -> [UInt8]? {
    let references: [(name: String, byte: UInt8)] = [
        ("&amp;", UInt8(ascii: "&")), ("&lt;", UInt8(ascii: "<")), ("&gt;", UInt8(ascii: ">")),
        ("&quot;", UInt8(ascii: "\"")), ("&#39;", UInt8(ascii: "'")),
    ]
    var result: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.first {
        if let reference = references.first(where: { rest.starts(with: $0.name.utf8) }) {
            result.append(reference.byte)
            rest = rest.dropFirst(reference.name.utf8.count)
        } else {
            guard !"&<>\"'".utf8.contains(byte) else { return nil }
            result.append(byte)
            rest = rest.dropFirst()
        }
    }
    return result
}

private func json(_ text: String) -> String? { (try? JSONValue(parsing: Array(text.utf8)))?.text }

@_cdecl("FuzzText_main")
public func entry(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    unsafe fuzz(count, arguments) { start, count in
        let bytes = unsafe input(start, count)
        let text = String(decoding: bytes, as: UTF8.self)
        precondition(areSame(json(jsonString(text)), text), "JSON has another text")
        precondition(jsonString(text).unicodeScalars.allSatisfy(isShown), "JSON acts on no terminal")
        for written in [yamlScalar(text), yamlQuoted(text), yamlName(text), yamlSingleQuoted(text)] {
            precondition(!written.utf8.contains(UInt8(ascii: "\n")), "a scalar stands in one line")
            let list = yaml("[ \(written), GET ]")
            precondition(list?.count == 2 && areSame(list?[0], text) && list?[1] == "GET", "YAML has another text")
        }
        precondition(yaml("\(yamlComment(text))\n- a\n")?.count == 1, "a comment ends with its line")

        let sample = label("\(metricsLabel(text))} 1\n".utf8)
        precondition(sample?.value.elementsEqual(text.utf8) == true, "a label has another text")
        precondition(sample?.rest.elementsEqual("} 1\n".utf8) == true, "a label ends where it ends")
        precondition(!metricsHelp(text).utf8.contains(0x0A), "help is one line")

        let command = words("rm \(shellWord(text)) -f")
        let word = text.utf8.filter { $0 != 0 }
        precondition(command?.count == 3 && command?[1].elementsEqual(word) == true, "a shell has another word")
        precondition(characters(htmlText(text))?.elementsEqual(text.utf8) == true, "HTML has another text")

        var field: [UInt8] = []
        appendQuotedString(bytes, to: &field)
        precondition(unquoted(field[...]) == bytes.filter(isFieldContent), "a quoted-string has another text")
        precondition(field.allSatisfy(isFieldContent), "a field value has no control character")
        var item: [UInt8] = []
        appendStructuredString(bytes, to: &item)
        guard case .item(.string(let read))? = parseStructuredList(item[...])?.first?.value else {
            preconditionFailure("an sf-string is one")
        }
        let isPlain = bytes.allSatisfy { (0x20...0x7E).contains($0) }
        precondition(!isPlain || read.elementsEqual(bytes), "an sf-string has another text")

        let line = lineText(text)
        precondition(line.unicodeScalars.allSatisfy(isShown), "a line has nothing that acts")
        precondition(areSame(lineText(line), line), "what is shown is shown as it is")
        precondition(
            screenText(text).unicodeScalars.allSatisfy { isShown($0) || $0 == "\n" || $0 == "\t" }, "so has a screen")
        // A text of JSON that others have written, with line feeds between its values, means the same on the screen.
        let foreign =
            "[\n\t\""
            + text.unicodeScalars.filter { $0.value >= 0x20 && $0 != "\"" && $0 != "\\" }.map { String($0) }.joined()
            + "\"\n]"
        let (before, after) = (
            try? JSONValue(parsing: Array(foreign.utf8)), try? JSONValue(parsing: Array(screenText(foreign).utf8))
        )
        precondition(areSame(after?.elements?.first?.text, before?.elements?.first?.text ?? "?"), "JSON means the same")
        return 0
    }
}
