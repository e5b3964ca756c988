/// A URL in a stylesheet.
struct StylesheetReference: Equatable {
    /// The URL as written, with escapes resolved.
    var text: [UInt8]
    /// It is in an `@import`, so it leads to another stylesheet.
    var isImport: Bool
}

/// Finds the URLs in CSS: `url(…)`, and the strings of `@import` and `image-set(…)`. URLs of `@namespace` are names, and are left out.
///
/// It knows the tokens of CSS Syntax 3 §4 as far as they tell text from comments and strings, and looks at every byte once.
struct StylesheetScanner {
    private let bytes: [UInt8]
    private var position = 0
    private var references: [StylesheetReference] = []
    /// The at-rule whose prelude is being read.
    private var rule = Rule.other
    private var depth = 0
    /// The depth inside of `image-set(`, whose strings are URLs. Nil outside of it.
    private var imageSetDepth: Int?

    private enum Rule {
        case other, importing, namespace
        /// An `@import` whose URL was read. The rest of it, such as `supports(…)`, contains no URL.
        case imported
    }

    private init(_ bytes: [UInt8]) { self.bytes = bytes }

    static func references(in bytes: [UInt8]) -> [StylesheetReference] {
        var scanner = StylesheetScanner(bytes)
        scanner.scan()
        return scanner.references
    }

    private mutating func scan() {
        while position < bytes.count {
            let byte = bytes[position]
            switch byte {
            case Byte.slash where bytes[position...].starts(with: "/*".utf8): skipComment()
            case Byte.doubleQuote, Byte.singleQuote: foundString(takeString())
            case UInt8(ascii: "@"):
                position += 1
                began(rule: lowercased(takeName()[...]))
            case UInt8(ascii: ";"), UInt8(ascii: "{"), UInt8(ascii: "}"):
                position += 1
                rule = .other
                (depth, imageSetDepth) = (0, nil)
            case UInt8(ascii: "("):
                position += 1
                depth += 1
            case UInt8(ascii: ")"):
                position += 1
                depth = max(0, depth - 1)
                if let inside = imageSetDepth, depth < inside { imageSetDepth = nil }
            case let byte where isNameByte(byte): word()
            default: position += 1
            }
        }
    }

    private mutating func began(rule name: String) {
        rule =
            switch name {
            case "import": .importing
            case "namespace": .namespace
            default: .other
            }
    }

    /// Reads an identifier, or the name of a function with its parenthesis.
    private mutating func word() {
        let name = lowercased(takeName()[...])
        guard position < bytes.count, bytes[position] == UInt8(ascii: "(") else { return }
        position += 1
        if name == "url" { return foundURL() }
        depth += 1
        if name == "image-set" || name == "-webkit-image-set" { imageSetDepth = depth }
    }

    private mutating func foundURL() {
        skipSpace()
        guard position < bytes.count else { return }
        let text: [UInt8]
        if bytes[position] == Byte.doubleQuote || bytes[position] == Byte.singleQuote {
            text = takeString()
            skipSpace()
        } else {
            text = takeUnquoted()
        }
        if position < bytes.count, bytes[position] == UInt8(ascii: ")") { position += 1 }
        add(text)
    }

    private mutating func foundString(_ text: [UInt8]) {
        if rule == .importing || imageSetDepth == depth { add(text) }
    }

    private mutating func add(_ text: [UInt8]) {
        guard rule == .other || rule == .importing, !text.isEmpty else { return }
        references.append(.init(text: text, isImport: rule == .importing))
        if rule == .importing { rule = .imported }
    }

    // MARK: tokens

    private mutating func skipComment() {
        position += 2
        while let star = bytes[position...].firstIndex(of: UInt8(ascii: "*")) {
            position = star + 1
            if position < bytes.count, bytes[position] == Byte.slash {
                position += 1
                return
            }
        }
        position = bytes.count
    }

    /// Reads a string without its quotes. A line end that is not escaped is an error and ends it.
    private mutating func takeString() -> [UInt8] {
        let quote = bytes[position]
        position += 1
        var text: [UInt8] = []
        while position < bytes.count {
            let byte = bytes[position]
            if byte == 0x0A || byte == 0x0C || byte == 0x0D { return [] }
            position += 1
            if byte == quote { return text }
            if byte == Byte.backslash { text += takeEscape() } else { text.append(byte) }
        }
        return text
    }

    /// Reads up to the closing parenthesis.
    private mutating func takeUnquoted() -> [UInt8] {
        var text: [UInt8] = []
        while position < bytes.count, bytes[position] != UInt8(ascii: ")") {
            let byte = bytes[position]
            position += 1
            if byte == Byte.backslash { text += takeEscape() } else { text.append(byte) }
        }
        while let last = text.last, isSpace(last) { text.removeLast() }
        return text
    }

    private mutating func takeName() -> [UInt8] {
        var name: [UInt8] = []
        while position < bytes.count, isNameByte(bytes[position]) {
            let byte = bytes[position]
            position += 1
            if byte == Byte.backslash { name += takeEscape() } else { name.append(byte) }
        }
        return name
    }

    /// Reads what follows a backslash: up to six hexadecimal digits and a space, or a line end (nothing), or the byte itself.
    private mutating func takeEscape() -> [UInt8] {
        guard position < bytes.count else { return [] }
        var value: UInt32 = 0
        var count = 0
        while count < 6, position < bytes.count, let digit = hexDigit(bytes[position]) {
            value = value << 4 | digit
            position += 1
            count += 1
        }
        if count > 0 {
            if position < bytes.count, isSpace(bytes[position]) { position += 1 }
            let scalar = value == 0 ? nil : Unicode.Scalar(value)
            return Array(String(scalar ?? "\u{FFFD}").utf8)
        }
        let byte = bytes[position]
        position += 1
        if byte == 0x0D, position < bytes.count, bytes[position] == 0x0A { position += 1 }
        return byte == 0x0A || byte == 0x0C || byte == 0x0D ? [] : [byte]
    }

    private mutating func skipSpace() {
        while position < bytes.count, isSpace(bytes[position]) { position += 1 }
    }
}

/// Whether the byte can be part of an identifier: letters, digits, "-", "_", and everything beyond ASCII.
private func isNameByte(_ byte: UInt8) -> Bool {
    isLetter(byte) || byte &- 0x30 < 10 || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_") || byte >= 0x80
        || byte == Byte.backslash
}
