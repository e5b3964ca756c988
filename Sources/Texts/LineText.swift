// Text for people, on a terminal or in a log. What is shown was sent by clients and origins, so nothing of it may be obeyed.

/// One line: what would end it, what a terminal obeys and what nobody sees is an escape of JSON, such as `\u001b` and `\n`.
///
/// That are control characters, those of format, which change the direction of what follows or join it, separators of lines, and what no font has.
/// A backslash stays as it is: this is for reading, and not for reading back.
package func lineText(_ text: String) -> String { shown(text, keepsLines: false) }

/// Text of several lines: as `lineText`, but with its line feeds and tabs.
///
/// A text in JSON remains one with the same meaning: what is replaced stands in its strings alone.
package func screenText(_ text: String) -> String { shown(text, keepsLines: true) }

private func shown(_ text: String, keepsLines: Bool) -> String {
    func isPlain(_ byte: UInt8) -> Bool {
        0x20...0x7E ~= byte || keepsLines && (byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\t"))
    }
    // Most lines are as they should be.
    guard !text.utf8.allSatisfy(isPlain) else { return text }
    // By scalar: CR and LF are one character, and so is any character with the marks behind it.
    return text.unicodeScalars.reduce(into: "") { result, scalar in
        switch scalar {
        case "\n" where keepsLines, "\t" where keepsLines: result.unicodeScalars.append(scalar)
        case "\n": result += "\\n"
        case "\r": result += "\\r"
        case "\t": result += "\\t"
        case _ where isShown(scalar): result.unicodeScalars.append(scalar)
        default: result += unicodeEscape(scalar)
        }
    }
}

/// Whether a scalar is shown as itself: it stands in a line, does not end it, and changes nothing of how the others are shown.
package func isShown(_ scalar: Unicode.Scalar) -> Bool {
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

/// One or two escapes of JSON (RFC 8259 §7): `\u009b`.
package func unicodeEscape(_ scalar: Unicode.Scalar) -> String {
    scalar.utf16.reduce(into: "") { $0 += "\\u" + hexadecimal(UInt32($1), digits: 4) }
}

func hexadecimal(_ number: UInt32, digits: Int) -> String {
    let text = String(number, radix: 16)
    return String(repeating: "0", count: digits - text.utf8.count) + text
}
