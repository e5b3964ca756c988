/// A start tag of a page: its name in lower case, and its attributes in their order.
struct HTMLTag: Equatable {
    struct Attribute: Equatable {
        /// In lower case.
        var name: String
        /// Without quotes, and with character references resolved.
        var value: [UInt8]
    }

    var name: String
    var attributes: [Attribute] = []

    /// The value of the first attribute with this name. Later ones do not count (HTML §13.2.5.33).
    subscript(_ name: String) -> [UInt8]? { attributes.first { $0.name == name }?.value }
}

/// Scans HTML for what may contain URLs: start tags, and the text of `style` elements.
///
/// It is as tolerant as browsers are (the tokenizer of the HTML standard, §13.2.5, without the tree): no input is an error. It looks at
/// every byte once, and ignores what follows a comment or tag that is never closed. It does not know the "double escaped" state of
/// scripts, in which `</script>` within a comment of a script is text.
struct HTMLScanner {
    enum Event: Equatable {
        case tag(HTMLTag)
        case style([UInt8])
    }

    /// Further attributes of the tag are ignored.
    static let attributesMax = 128

    private let bytes: [UInt8]
    private var position = 0
    /// The element whose text follows, which contains no tags.
    private var rawText: String?

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Returns nil at the end.
    mutating func next() -> Event? {
        if let name = rawText {
            rawText = nil
            let text = takeRawText(of: name)
            if name == "style", !text.isEmpty { return .style(Array(text)) }
        }
        while let open = bytes[position...].firstIndex(of: UInt8(ascii: "<")) {
            position = open + 1
            guard position < bytes.count else { break }
            switch bytes[position] {
            case UInt8(ascii: "!"): skipMarkup()
            case UInt8(ascii: "?"): skip(beyond: UInt8(ascii: ">"))
            case UInt8(ascii: "/"): skipEndTag()
            case let byte where isLetter(byte):
                if let tag = takeTag() { return .tag(tag) }
            default: continue  // a lone "<" is text
            }
        }
        position = bytes.count
        return nil
    }

    // MARK: what is skipped

    private mutating func skip(beyond byte: UInt8) {
        position = bytes[position...].firstIndex(of: byte).map { $0 + 1 } ?? bytes.count
    }

    /// Skips a comment, or a declaration such as `<!DOCTYPE html>`.
    private mutating func skipMarkup() {
        guard bytes[position...].starts(with: "!--".utf8) else { return skip(beyond: UInt8(ascii: ">")) }
        position += 3
        // `<!-->` and `<!--->` are complete comments.
        if bytes[position...].starts(with: ">".utf8) || bytes[position...].starts(with: "->".utf8) {
            return skip(beyond: UInt8(ascii: ">"))
        }
        while let dash = bytes[position...].firstIndex(of: UInt8(ascii: "-")) {
            position = dash + 1
            let rest = bytes[position...]
            if rest.starts(with: "->".utf8) || rest.starts(with: "-!>".utf8) { return skip(beyond: UInt8(ascii: ">")) }
        }
        position = bytes.count
    }

    private mutating func skipEndTag() {
        position += 1
        guard position < bytes.count, isLetter(bytes[position]) else { return skip(beyond: UInt8(ascii: ">")) }
        // An end tag may have attributes, and a ">" within their quotes does not end it.
        _ = takeTag()
        rawText = nil
    }

    // MARK: tags

    /// Returns nil if the page ends within the tag.
    private mutating func takeTag() -> HTMLTag? {
        var tag = HTMLTag(name: lowercased(takeWhile { !isSpace($0) && $0 != Byte.slash && $0 != Byte.greater }))
        while position < bytes.count {
            let byte = bytes[position]
            if byte == Byte.greater {
                position += 1
                rawText = Self.rawTextElements.contains(tag.name) ? tag.name : nil
                return tag
            }
            if isSpace(byte) || byte == Byte.slash {
                position += 1
            } else {
                let attribute = takeAttribute()
                if tag.attributes.count < Self.attributesMax { tag.attributes.append(attribute) }
            }
        }
        return nil
    }

    private mutating func takeAttribute() -> HTMLTag.Attribute {
        let start = position
        position += 1  // even "=" can begin a name
        while position < bytes.count, !isSpace(bytes[position]), bytes[position] != Byte.slash,
            bytes[position] != Byte.greater, bytes[position] != Byte.equals
        { position += 1 }
        let name = lowercased(bytes[start..<position])
        let end = position
        skipSpace()
        guard position < bytes.count, bytes[position] == Byte.equals else {
            position = end
            return .init(name: name, value: [])
        }
        position += 1
        skipSpace()
        return .init(name: name, value: withoutCharacterReferences(takeValue()))
    }

    private mutating func takeValue() -> ArraySlice<UInt8> {
        guard position < bytes.count else { return [] }
        let quote = bytes[position]
        guard quote == Byte.doubleQuote || quote == Byte.singleQuote else {
            return takeWhile { !isSpace($0) && $0 != Byte.greater }
        }
        position += 1
        let value = takeWhile { $0 != quote }
        position = min(position + 1, bytes.count)
        return value
    }

    // MARK: text

    /// Elements whose content is always text. `noscript` is not among them: browsers that run no scripts load the images in it.
    private static let rawTextElements: Set<String> = [
        "script", "style", "textarea", "title", "xmp", "noembed", "noframes", "iframe", "plaintext",
    ]

    /// The text up to the end tag of the element, or up to the end of the page.
    private mutating func takeRawText(of name: String) -> ArraySlice<UInt8> {
        let start = position
        while let open = bytes[position...].firstIndex(of: UInt8(ascii: "<")) {
            let after = open + 2 + name.utf8.count
            if after <= bytes.count, bytes[open + 1] == Byte.slash, lowercased(bytes[(open + 2)..<after]) == name,
                after == bytes.count || isSpace(bytes[after]) || bytes[after] == Byte.slash
                    || bytes[after] == Byte.greater
            {
                position = open
                return bytes[start..<open]
            }
            position = open + 1
        }
        position = bytes.count
        return bytes[start...]
    }

    private mutating func takeWhile(_ isTaken: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        let start = position
        while position < bytes.count, isTaken(bytes[position]) { position += 1 }
        return bytes[start..<position]
    }

    private mutating func skipSpace() { _ = takeWhile(isSpace) }
}

enum Byte {
    static let slash = UInt8(ascii: "/")
    static let greater = UInt8(ascii: ">")
    static let equals = UInt8(ascii: "=")
    static let doubleQuote = UInt8(ascii: "\"")
    static let singleQuote = UInt8(ascii: "'")
    static let backslash = UInt8(ascii: "\\")
}

/// ASCII whitespace in HTML and CSS: space, tab, LF, FF, CR.
func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0C || byte == 0x0D }

func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- 0x61 < 26 }

/// ASCII letters in lower case. Other bytes stay as they are, as far as they are UTF-8.
func lowercased(_ bytes: ArraySlice<UInt8>) -> String {
    String(decoding: bytes.map { $0 &- 0x41 < 26 ? $0 | 0x20 : $0 }, as: UTF8.self)
}
