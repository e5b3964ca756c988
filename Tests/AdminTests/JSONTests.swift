import Admin
import Testing
import JSON

@Suite("RFC 8259 JSON")
struct JSONTests {
    static let values: [(text: String, value: JSONValue)] = [
        ("null", .null), ("true", .bool(true)), (" false\r\n\t", .bool(false)),
        ("0", .integer(0)), ("-12", .integer(-12)), ("9223372036854775807", .integer(.max)),
        ("9223372036854775808", .double(9_223_372_036_854_775_808)), ("1.5", .double(1.5)), ("-2e2", .double(-200)),
        ("\"\"", .string("")), (#""a\"\\\/\b\f\n\r\tz""#, .string("a\"\\/\u{8}\u{C}\n\r\tz")),
        (#""\u00e9\u20AC""#, .string("é€")), (#""\ud83e\uded9""#, .string("🫙")), ("\"🫙\"", .string("🫙")),
        ("[]", .array([])), ("[1, [2]]", .array([.integer(1), .array([.integer(2)])])), ("{}", .object([])),
        ("{\"a\" : {\"b\":null}}", .object([.init(name: "a", value: .object([.init(name: "b", value: .null)]))])),
    ]
    @Test(arguments: values) func `a text is read as its value`(_ row: (text: String, value: JSONValue)) throws {
        #expect(try JSONValue(parsing: Array(row.text.utf8)) == row.value)
    }

    static let broken: [(text: String, error: JSONError)] = [
        ("", .unexpectedEnd), ("{", .unexpectedEnd), ("[1", .unexpectedEnd), ("\"a", .unexpectedEnd),
        ("nul", .unexpectedEnd), ("nulL", .unexpectedByte(at: 3)), ("?", .unexpectedByte(at: 0)),
        ("[1,]", .unexpectedByte(at: 3)), ("{a:1}", .unexpectedByte(at: 1)), ("{\"a\" 1}", .unexpectedByte(at: 5)),
        ("01", .invalidNumber(at: 0)), ("1.", .invalidNumber(at: 0)), ("-", .invalidNumber(at: 0)),
        ("1e", .invalidNumber(at: 0)), (".5", .unexpectedByte(at: 0)), ("+1", .unexpectedByte(at: 0)),
        ("1e999", .invalidNumber(at: 0)), (#""\x""#, .invalidEscape(at: 2)), (#""\u12g4""#, .invalidEscape(at: 5)),
        (#""\ud800""#, .invalidEscape(at: 3)), (#""\udc00""#, .invalidEscape(at: 3)),
        ("\"a\nb\"", .controlInString(at: 2)), ("1 2", .trailingBytes(at: 2)), ("{} x", .trailingBytes(at: 3)),
        ("{\"a\":1,\"a\":2}", .repeatedName("a")), (String(repeating: "[", count: 33), .tooDeep),
    ]
    @Test(arguments: broken) func `a broken text is refused with what and where`(
        _ row: (text: String, error: JSONError)
    ) {
        let error = #expect(throws: JSONError.self) { try JSONValue(parsing: Array(row.text.utf8)) }
        #expect(error == row.error)
        #expect(error?.text.isEmpty == false)
    }

    @Test func `a string must be UTF-8`() {
        #expect(throws: JSONError.invalidUTF8) { try JSONValue(parsing: [0x22, 0xFF, 0x22]) }
    }

    @Test func `what is written reads back, controls and quotes included`() throws {
        let text = "q\" b\\ n\n r\r t\t nul\u{0} del\u{7F} < \u{2028}\u{2029} é🫙 /"
        var writer = JSONWriter()
        writer.array { $0.string(text) }
        #expect(try JSONValue(parsing: writer.bytes) == .array([.string(text)]))
        #expect(writer.bytes.allSatisfy { $0 >= 0x20 && $0 != UInt8(ascii: "<") })
    }

    static let numbers: [(value: Double?, text: String)] = [
        (0, "0"), (1, "1"), (0.1, "0.1"), (0.875, "0.875"), (-3, "-3"), (1e300, "1e+300"), (nil, "null"),
        (.nan, "null"), (.infinity, "null"),
    ]
    @Test(arguments: numbers) func `numbers are exact and never NaN`(_ row: (value: Double?, text: String)) {
        var writer = JSONWriter()
        writer.number(row.value)
        #expect(String(decoding: writer.bytes, as: UTF8.self) == row.text)
    }

    @Test func `a counter keeps every digit`() {
        var writer = JSONWriter()
        writer.integer(UInt64.max)
        #expect(writer.bytes == Array("18446744073709551615".utf8))
    }

    @Test func `commas stand between members and elements only`() {
        var writer = JSONWriter()
        writer.object {
            $0.member("a", 1)
            $0.key("b")
            $0.array {
                $0.object { _ in }
                $0.array { _ in }
                $0.null()
            }
            $0.member("c", true)
        }
        #expect(String(decoding: writer.bytes, as: UTF8.self) == #"{"a":1,"b":[{},[],null],"c":true}"#)
    }
}
