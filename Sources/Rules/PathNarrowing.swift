extension PathPattern {
    /// The pattern with less freedom, for one path that matches it: each `*` that stands for whole segments becomes what it stands for, and a
    /// `*` at the beginning keeps the directories before it. Placeholders and other asterisks stay.
    ///
    /// `*/info/refs` becomes `/group/tool.git/info/refs`, and `*.whl` becomes `/files/*.whl`. Returns nil if the path does not match, or if it
    /// has bytes that no pattern can spell.
    package func narrowed(to path: ArraySlice<UInt8>) -> PathPattern? {
        let texts = description.split(separator: "*", omittingEmptySubsequences: false)
        let asterisks = tokens.indices.filter { tokens[$0] == .anything }
        // Several asterisks side by side are one token, and would have no text between them.
        guard matches(path), texts.count == asterisks.count + 1 else { return nil }
        var text = String(texts[0])
        for (index, asterisk) in asterisks.enumerated() {
            guard let part = pathPart(asterisk, of: tokens, in: path) else { return nil }
            let beginsSegment = text.isEmpty || text.hasSuffix("/")
            let endsSegment = texts[index + 1].hasPrefix("/")
            if beginsSegment && endsSegment {
                text += PathPattern.spelling(of: part)
            } else if text.isEmpty {
                let directories = part.lastIndex(of: UInt8(ascii: "/")).map { part[...$0] } ?? []
                text += PathPattern.spelling(of: directories) + "*"
            } else {
                text += "*"
            }
            text += texts[index + 1]
        }
        return PathPattern(text)
    }

    /// The text of a pattern that matches these bytes. A byte that a pattern cannot spell is matched by any one byte but "/".
    package static func spelling(of path: some Collection<UInt8>) -> String {
        path.reduce(into: "") { text, byte in
            let isPlain = byte > 0x20 && byte < 0x7F && !"*{}?#".utf8.contains(byte)
            text += isPlain ? String(UnicodeScalar(byte)) : "{byte:1}"
        }
    }
}
