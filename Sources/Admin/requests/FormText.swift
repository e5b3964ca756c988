import Message

/// Reads `application/x-www-form-urlencoded` in bodies and queries: pairs joined by `&`, `+` for a space, percent-encoding.
///
/// A name without `=` has no value. Throws if the encoding is malformed, the text is not UTF-8, or a name occurs twice.
func formMembers(_ text: some Collection<UInt8>) throws(SelectionError) -> [(name: String, value: String?)] {
    var members: [(name: String, value: String?)] = []
    for pair in Array(text).split(separator: UInt8(ascii: "&")) {
        let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
        let name = try formText(parts[0])
        guard !members.contains(where: { $0.name == name }) else {
            throw SelectionError(message: "\"\(name)\" occurs twice")
        }
        members.append((name, parts.count == 2 ? try formText(parts[1]) : nil))
    }
    return members
}

private func formText(_ bytes: ArraySlice<UInt8>) throws(SelectionError) -> String {
    var text: [UInt8] = []
    var rest = bytes
    while let byte = rest.popFirst() {
        switch byte {
        case UInt8(ascii: "+"): text.append(0x20)
        case UInt8(ascii: "%"):
            guard let high = rest.popFirst().flatMap(hexValue), let low = rest.popFirst().flatMap(hexValue)
            else { throw SelectionError(message: "the form has a broken percent-encoding") }
            text.append(high << 4 | low)
        default: text.append(byte)
        }
    }
    guard let string = String(validating: text, as: UTF8.self) else {
        throw SelectionError(message: "the form is not UTF-8")
    }
    return string
}

/// Encodes a name or a value of a form: everything but unreserved characters (RFC 3986 §2.3) is percent-encoded.
package func formEncoded(_ text: String) -> String {
    String(decoding: percentEncoded(text.utf8), as: UTF8.self)
}
