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
        case _ where isShown(scalar): result.unicodeScalars.append(scalar)
        default: result += escaped(scalar)
        }
    }
    return result + "\""
}

/// A single-quoted scalar (§7.3.2), for text with backslashes; double-quoted where it has what a single-quoted one cannot have.
package func yamlSingleQuoted(_ text: String) -> String {
    guard text.unicodeScalars.allSatisfy(isShown) else { return yamlQuoted(text) }
    return text.unicodeScalars.reduce(into: "'") { result, scalar in
        if scalar == "'" { result += "''" } else { result.unicodeScalars.append(scalar) }
    } + "'"
}

/// A name or a path: plain if it is made of letters, digits and `/._-`, with a dot or a slash, so that no parser takes it for a number or a flag;
/// otherwise double-quoted.
package func yamlName(_ text: String) -> String {
    let isPlain = text.utf8.allSatisfy { isLetter($0) || (0x30...0x39).contains($0) || "/._-".utf8.contains($0) }
    let begins = text.utf8.first.map { isLetter($0) || $0 == UInt8(ascii: "/") } ?? false
    return isPlain && begins && text.utf8.contains { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: ".") }
        ? text : yamlQuoted(text)
}

private func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }

/// A comment of one line: what would end it is shown as an escape.
package func yamlComment(_ text: String) -> String {
    text.unicodeScalars.reduce(into: "# ") { line, scalar in
        if isShown(scalar) { line.unicodeScalars.append(scalar) } else { line += escaped(scalar) }
    }
}

private func escaped(_ scalar: Unicode.Scalar) -> String {
    let (letter, width) = scalar.value > 0xFFFF ? ("U", 8) : ("u", 4)
    return "\\\(letter)" + hexadecimal(scalar.value, digits: width).uppercased()
}
