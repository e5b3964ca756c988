// YAML as text (YAML 1.2.2). What is written here was sent by a client or comes from a file, so nothing of it may be read as anything but itself.

/// A scalar that every YAML parser reads as this text, and as no number, flag, alias, tag or comment.
///
/// Capital letters alone stand as they are, as in `GET`, except the words that YAML 1.1 takes for flags and null. Everything else is double-quoted
/// (§7.3.1), with escapes for what cannot stand in a line.
package func yamlScalar(_ text: String) -> String {
    let isWord = !text.isEmpty && text.utf8.allSatisfy { (0x41...0x5A).contains($0) }
    if isWord, !["Y", "N", "YES", "NO", "ON", "OFF", "TRUE", "FALSE", "NULL"].contains(text) { return text }
    return yamlQuoted(text)
}

/// A double-quoted scalar (§7.3.1).
package func yamlQuoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
        switch scalar {
        case "\\": result += "\\\\"
        case "\"": result += "\\\""
        case _ where isPrintable(scalar): result.unicodeScalars.append(scalar)
        default: result += escaped(scalar)
        }
    }
    return result + "\""
}

/// A comment of one line: what would end it is shown as an escape.
package func yamlComment(_ text: String) -> String {
    text.unicodeScalars.reduce(into: "# ") { line, scalar in
        if isPrintable(scalar) { line.unicodeScalars.append(scalar) } else { line += escaped(scalar) }
    }
}

/// Whether a scalar stands in a line of every parser as it is (§5.1), without breaking it (§5.4) or changing how it is shown.
private func isPrintable(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x20...0x7E: true
    case 0x00A0...0xD7FF, 0xE000...0xFFFD, 0x10000...0x10FFFF:
        switch scalar.properties.generalCategory {
        case .lineSeparator, .paragraphSeparator, .format, .control, .privateUse, .unassigned, .surrogate: false
        default: true
        }
    default: false
    }
}

private func escaped(_ scalar: Unicode.Scalar) -> String {
    let digits = String(scalar.value, radix: 16, uppercase: true)
    let (letter, width) = scalar.value > 0xFFFF ? ("U", 8) : ("u", 4)
    return "\\\(letter)" + String(repeating: "0", count: width - digits.count) + digits
}
