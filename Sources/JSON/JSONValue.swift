/// A JSON text as a value (RFC 8259), for request bodies and for the answers that the command line reads.
///
/// Reading is strict: no comments, no trailing commas, no repeated member names, nothing behind the value, bounded depth.
package enum JSONValue: Sendable, Equatable {
    case null
    case bool(Bool)
    /// An integer that fits into 64 bits. Other numbers are `.double`.
    case integer(Int64)
    case double(Double)
    case string(String)
    case array([JSONValue])
    /// Members in their order.
    case object([Member])

    package struct Member: Sendable, Equatable {
        package var name: String
        package var value: JSONValue
        package init(name: String, value: JSONValue) {
            self.name = name
            self.value = value
        }
    }

    package init(parsing bytes: some Collection<UInt8>) throws(JSONError) {
        var reader = JSONReader(bytes: Array(bytes))
        self = try reader.wholeText()
    }

    /// The member of that name. Returns nil if there is none, or if the value is not an object.
    package subscript(_ name: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
    }

    package var text: String? { if case .string(let text) = self { text } else { nil } }
    package var flag: Bool? { if case .bool(let flag) = self { flag } else { nil } }
    package var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
    package var elements: [JSONValue]? { if case .array(let values) = self { values } else { nil } }
    package var members: [Member]? { if case .object(let members) = self { members } else { nil } }

    package var number: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .double(let value): value
        case .null, .bool, .string, .array, .object: nil
        }
    }
}

/// What is wrong with a JSON text, and at which byte.
package enum JSONError: Error, Equatable {
    case unexpectedByte(at: Int)
    case unexpectedEnd
    case invalidNumber(at: Int)
    case invalidEscape(at: Int)
    case controlInString(at: Int)
    case invalidUTF8
    case repeatedName(String)
    case tooDeep
    case trailingBytes(at: Int)

    package var text: String {
        switch self {
        case .unexpectedByte(let offset): "unexpected character at byte \(offset)"
        case .unexpectedEnd: "the text ends too early"
        case .invalidNumber(let offset): "invalid number at byte \(offset)"
        case .invalidEscape(let offset): "invalid escape at byte \(offset)"
        case .controlInString(let offset): "control character in a string at byte \(offset)"
        case .invalidUTF8: "a string is not UTF-8"
        case .repeatedName(let name): "\"\(name)\" occurs twice"
        case .tooDeep: "nested deeper than \(JSONReader.depthMax)"
        case .trailingBytes(let offset): "something follows the value at byte \(offset)"
        }
    }
}
