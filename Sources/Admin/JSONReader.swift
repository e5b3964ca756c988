/// The recursive-descent reader behind `JSONValue(parsing:)`, with one function for each production of RFC 8259.
struct JSONReader {
    /// How deep arrays and objects can be nested. Four are needed.
    static let depthMax = 32

    private let bytes: [UInt8]
    private var position = 0
    private var depth = 0

    init(bytes: [UInt8]) { self.bytes = bytes }

    mutating func wholeText() throws(JSONError) -> JSONValue {
        let value = try value()
        skipSpace()
        guard position == bytes.count else { throw .trailingBytes(at: position) }
        return value
    }

    private mutating func value() throws(JSONError) -> JSONValue {
        skipSpace()
        switch try peek() {
        case UInt8(ascii: "{"): return try object()
        case UInt8(ascii: "["): return try array()
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        default: return try number()
        }
    }

    private mutating func object() throws(JSONError) -> JSONValue {
        var members: [JSONValue.Member] = []
        try enter()
        if skipIf(UInt8(ascii: "}")) { return leave(.object(members)) }
        while true {
            skipSpace()
            let name = try string()
            guard !members.contains(where: { $0.name == name }) else { throw .repeatedName(name) }
            skipSpace()
            try expect(UInt8(ascii: ":"))
            members.append(.init(name: name, value: try value()))
            if skipIf(UInt8(ascii: "}")) { return leave(.object(members)) }
            try expect(UInt8(ascii: ","))
        }
    }

    private mutating func array() throws(JSONError) -> JSONValue {
        var elements: [JSONValue] = []
        try enter()
        if skipIf(UInt8(ascii: "]")) { return leave(.array(elements)) }
        while true {
            elements.append(try value())
            if skipIf(UInt8(ascii: "]")) { return leave(.array(elements)) }
            try expect(UInt8(ascii: ","))
        }
    }

    private mutating func string() throws(JSONError) -> String {
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

    /// `\uXXXX`, or two of them for a scalar beyond the first plane. A lone surrogate is an error.
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
            guard let digit = hexDigitValue(try next()) else { throw .invalidEscape(at: position - 1) }
            value = value << 4 | UInt32(digit)
        }
        return value
    }

    /// `-? int frac? exp?` (RFC 8259 §6): no leading zero, no bare point.
    private mutating func number() throws(JSONError) -> JSONValue {
        let start = position
        if !isDigit(at: position) && bytes[position] != UInt8(ascii: "-") { throw .unexpectedByte(at: position) }
        if bytes[position] == UInt8(ascii: "-") { position += 1 }
        let first = position
        try digits(since: start)
        if position - first > 1 && bytes[first] == UInt8(ascii: "0") { throw .invalidNumber(at: start) }
        var isInteger = true
        if isByte(at: position, among: ".") {
            isInteger = false
            position += 1
            try digits(since: start)
        }
        if isByte(at: position, among: "eE") {
            isInteger = false
            position += 1
            if isByte(at: position, among: "+-") { position += 1 }
            try digits(since: start)
        }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        if isInteger, let value = Int64(text) { return .integer(value) }
        guard let value = Double(text), value.isFinite else { throw .invalidNumber(at: start) }
        return .double(value)
    }

    private mutating func digits(since start: Int) throws(JSONError) {
        guard isDigit(at: position) else { throw .invalidNumber(at: start) }
        while isDigit(at: position) { position += 1 }
    }

    private mutating func word(_ text: StaticString, _ value: JSONValue) throws(JSONError) -> JSONValue {
        for byte in text.description.utf8 {
            guard try next() == byte else { throw .unexpectedByte(at: position - 1) }
        }
        return value
    }

    private mutating func enter() throws(JSONError) {
        position += 1
        depth += 1
        guard depth <= Self.depthMax else { throw .tooDeep }
    }

    private mutating func leave(_ value: JSONValue) -> JSONValue {
        depth -= 1
        return value
    }

    private mutating func skipSpace() {
        while isByte(at: position, among: " \t\r\n") { position += 1 }
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

    private func isByte(at offset: Int, among text: String) -> Bool {
        offset < bytes.count && text.utf8.contains(bytes[offset])
    }
}

/// The value of one hexadecimal digit in either case. Returns nil for any other byte.
func hexDigitValue(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
}
