/// The recursive-descent reader behind `JSONValue(parsing:)`: makes values of what a `JSONScanner` reads.
struct JSONReader {
    /// How deep arrays and objects can be nested. Four are needed.
    static let depthMax = 32

    private var scanner: JSONScanner

    init(bytes: [UInt8]) { scanner = JSONScanner(bytes) }

    mutating func wholeText() throws(JSONError) -> JSONValue {
        let value = try Self.value(&scanner, depth: 0)
        try scanner.end()
        return value
    }

    private static func value(_ scanner: inout JSONScanner, depth: Int) throws(JSONError) -> JSONValue {
        let kind = try scanner.kind()
        switch kind {
        case .object, .array:
            guard depth < depthMax else { throw .tooDeep }
            return kind == .object ? try object(&scanner, depth: depth + 1) : try array(&scanner, depth: depth + 1)
        case .string: return .string(try scanner.string())
        case .number: return try number(&scanner)
        case .bool, .null: return try scanner.word().map { .bool($0) } ?? .null
        }
    }

    private static func object(_ scanner: inout JSONScanner, depth: Int) throws(JSONError) -> JSONValue {
        var members: [JSONValue.Member] = []
        try scanner.object { (scanner, name, _) throws(JSONError) in
            guard !members.contains(where: { $0.name == name }) else { throw .repeatedName(name) }
            members.append(.init(name: name, value: try value(&scanner, depth: depth)))
        }
        return .object(members)
    }

    private static func array(_ scanner: inout JSONScanner, depth: Int) throws(JSONError) -> JSONValue {
        var elements: [JSONValue] = []
        try scanner.array { (scanner) throws(JSONError) in elements.append(try value(&scanner, depth: depth)) }
        return .array(elements)
    }

    private static func number(_ scanner: inout JSONScanner) throws(JSONError) -> JSONValue {
        let (range, isInteger) = try scanner.number()
        let text = String(decoding: scanner.bytes[range], as: UTF8.self)
        if isInteger, let value = Int64(text) { return .integer(value) }
        guard let value = Double(text), value.isFinite else { throw .invalidNumber(at: range.lowerBound) }
        return .double(value)
    }
}
