import Message

/// Reads a JSON text (RFC 8259) from its beginning to its end, and says where in the text each value lies.
///
/// Strict: no comments, no trailing commas, bounded depth. `JSONReader` makes values of the text; whoever changes a few bytes of
/// a text and keeps the others uses the scanner alone.
package struct JSONScanner {
    /// How deep arrays and objects can be nested in a value that is skipped. The documents about npm packages contain whatever an author has
    /// written into a manifest.
    package static let skippedDepthMax = 256

    package enum Kind: Sendable, Equatable { case object, array, string, number, bool, null }

    package let bytes: [UInt8]
    /// The offset of the next byte.
    package private(set) var position = 0

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    // MARK: values

    /// Skips white space, and tells by its first byte what the next value is. A byte that begins no value counts as one of a number, which
    /// `number` refuses.
    package mutating func kind() throws(JSONError) -> Kind {
        skipSpace()
        return switch try peek() {
        case UInt8(ascii: "{"): .object
        case UInt8(ascii: "["): .array
        case UInt8(ascii: "\""): .string
        case UInt8(ascii: "t"), UInt8(ascii: "f"): .bool
        case UInt8(ascii: "n"): .null
        default: .number
        }
    }

    /// Calls `visit` with the name of each member, at the beginning of its value. `visit` reads or skips the value.
    ///
    /// - Parameter visit: also gets the offset at which the name begins.
    package mutating func object(
        _ visit: (inout JSONScanner, _ name: String, _ start: Int) throws(JSONError) -> Void
    ) throws(JSONError) {
        try expect(UInt8(ascii: "{"))
        if skipIf(UInt8(ascii: "}")) { return }
        while true {
            skipSpace()
            let start = position
            let name = try string()
            skipSpace()
            try expect(UInt8(ascii: ":"))
            skipSpace()
            try visit(&self, name, start)
            if skipIf(UInt8(ascii: "}")) { return }
            try expect(UInt8(ascii: ","))
        }
    }

    /// Calls `visit` at the beginning of each element, which it reads or skips.
    package mutating func array(_ visit: (inout JSONScanner) throws(JSONError) -> Void) throws(JSONError) {
        try expect(UInt8(ascii: "["))
        if skipIf(UInt8(ascii: "]")) { return }
        while true {
            skipSpace()
            try visit(&self)
            if skipIf(UInt8(ascii: "]")) { return }
            try expect(UInt8(ascii: ","))
        }
    }

    /// Reads a string, its escapes resolved.
    package mutating func string() throws(JSONError) -> String {
        try expect(UInt8(ascii: "\""))
        var text: [UInt8] = []
        while true {
            let byte = try next()
            switch byte {
            case UInt8(ascii: "\""):
                guard let string = String(validating: text, as: UTF8.self) else { throw .invalidUTF8 }
                return string
            case UInt8(ascii: "\\"): text.append(contentsOf: String(try escape()).utf8)
            case 0..<0x20: throw .controlInString(at: position - 1)
            default: text.append(byte)
            }
        }
    }

    /// Reads `-? int frac? exp?` (RFC 8259 §6): no leading zero, no bare point. Returns where it lies, and whether it is an integer.
    package mutating func number() throws(JSONError) -> (range: Range<Int>, isInteger: Bool) {
        let start = position
        let isSigned = try peek() == UInt8(ascii: "-")
        if !isSigned && !isDigit(at: position) { throw .unexpectedByte(at: position) }
        if isSigned { position += 1 }
        let first = position
        try digits(since: start)
        if position - first > 1 && bytes[first] == UInt8(ascii: "0") { throw .invalidNumber(at: start) }
        var isInteger = true
        if isByte(at: position, UInt8(ascii: ".")) {
            isInteger = false
            position += 1
            try digits(since: start)
        }
        if isByte(at: position, UInt8(ascii: "e")) || isByte(at: position, UInt8(ascii: "E")) {
            isInteger = false
            position += 1
            if isByte(at: position, UInt8(ascii: "+")) || isByte(at: position, UInt8(ascii: "-")) { position += 1 }
            try digits(since: start)
        }
        return (start..<position, isInteger)
    }

    /// Reads `true`, `false` or `null`, the last as nil.
    package mutating func word() throws(JSONError) -> Bool? {
        switch try peek() {
        case UInt8(ascii: "t"):
            try expect("true")
            return true
        case UInt8(ascii: "f"):
            try expect("false")
            return false
        default:
            try expect("null")
            return nil
        }
    }

    /// Reads a value of any kind without keeping it. Returns where it lies.
    @discardableResult
    package mutating func skipValue() throws(JSONError) -> Range<Int> { try skipValue(depth: 0) }

    private mutating func skipValue(depth: Int) throws(JSONError) -> Range<Int> {
        guard depth <= Self.skippedDepthMax else { throw .tooDeep }
        let kind = try kind()
        let start = position
        switch kind {
        case .object: try skipMembers(depth: depth)
        case .array:
            try array { (scanner) throws(JSONError) in _ = try scanner.skipValue(depth: depth + 1) }
        case .string: try skipString()
        case .number: _ = try number()
        case .bool, .null: _ = try word()
        }
        return start..<position
    }

    private mutating func skipMembers(depth: Int) throws(JSONError) {
        position += 1
        if skipIf(UInt8(ascii: "}")) { return }
        while true {
            skipSpace()
            try skipString()
            skipSpace()
            try expect(UInt8(ascii: ":"))
            _ = try skipValue(depth: depth + 1)
            if skipIf(UInt8(ascii: "}")) { return }
            try expect(UInt8(ascii: ","))
        }
    }

    /// Where a string ends is all that counts here, so its escapes are not looked at.
    private mutating func skipString() throws(JSONError) {
        try expect(UInt8(ascii: "\""))
        while true {
            switch try next() {
            case UInt8(ascii: "\""): return
            case UInt8(ascii: "\\"): _ = try next()
            case 0..<0x20: throw .controlInString(at: position - 1)
            default: break
            }
        }
    }

    /// Whether anything but white space follows.
    package var hasMore: Bool {
        bytes[position...].contains { $0 != 0x20 && $0 != 0x09 && $0 != 0x0D && $0 != 0x0A }
    }

    /// Nothing but white space may follow the value.
    package mutating func end() throws(JSONError) {
        skipSpace()
        guard position == bytes.count else { throw .trailingBytes(at: position) }
    }

    // MARK: escapes

    private mutating func escape() throws(JSONError) -> Unicode.Scalar {
        switch try next() {
        case UInt8(ascii: "\""): return "\""
        case UInt8(ascii: "\\"): return "\\"
        case UInt8(ascii: "/"): return "/"
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): return try unicodeEscape()
        default: throw .invalidEscape(at: position - 1)
        }
    }

    /// `\u` and four hexadecimal digits, twice for a scalar beyond the first plane. A lone surrogate is an error.
    private mutating func unicodeEscape() throws(JSONError) -> Unicode.Scalar {
        let start = position
        let high = try hexDigits()
        if let scalar = Unicode.Scalar(high) { return scalar }
        guard high < 0xDC00, try next() == UInt8(ascii: "\\"), try next() == UInt8(ascii: "u") else {
            throw .invalidEscape(at: start)
        }
        let low = try hexDigits()
        guard (0xDC00...0xDFFF).contains(low),
            let scalar = Unicode.Scalar(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
        else { throw .invalidEscape(at: start) }
        return scalar
    }

    private mutating func hexDigits() throws(JSONError) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard let digit = hexValue(try next()) else { throw .invalidEscape(at: position - 1) }
            value = value << 4 | UInt32(digit)
        }
        return value
    }

    // MARK: bytes

    private mutating func digits(since start: Int) throws(JSONError) {
        guard isDigit(at: position) else { throw .invalidNumber(at: start) }
        while isDigit(at: position) { position += 1 }
    }

    private mutating func skipSpace() {
        while position < bytes.count {
            switch bytes[position] {
            case 0x20, 0x09, 0x0D, 0x0A: position += 1
            default: return
            }
        }
    }

    private mutating func skipIf(_ byte: UInt8) -> Bool {
        skipSpace()
        guard position < bytes.count, bytes[position] == byte else { return false }
        position += 1
        return true
    }

    private mutating func expect(_ byte: UInt8) throws(JSONError) {
        guard try next() == byte else { throw .unexpectedByte(at: position - 1) }
    }

    private mutating func expect(_ text: StaticString) throws(JSONError) {
        for byte in text.description.utf8 { try expect(byte) }
    }

    private func peek() throws(JSONError) -> UInt8 {
        guard position < bytes.count else { throw .unexpectedEnd }
        return bytes[position]
    }

    private mutating func next() throws(JSONError) -> UInt8 {
        let byte = try peek()
        position += 1
        return byte
    }

    private func isDigit(at offset: Int) -> Bool {
        offset < bytes.count && (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[offset])
    }

    private func isByte(at offset: Int, _ byte: UInt8) -> Bool { offset < bytes.count && bytes[offset] == byte }
}
