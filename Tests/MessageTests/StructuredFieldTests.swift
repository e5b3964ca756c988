import Message
import Testing

@Suite("RFC 9651 Structured Fields")
struct StructuredFieldTests {
    static func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    static let items: [(String, StructuredItem)] = [
        ("0", .integer(0)), ("-999999999999999", .integer(-999_999_999_999_999)), ("00", .integer(0)),
        ("1.5", .decimal(thousandths: 1500)),
        ("-0.25", .decimal(thousandths: -250)), ("999999999999.999", .decimal(thousandths: 999_999_999_999_999)),
        ("\"a\\\"b\\\\\"", .string(bytes("a\"b\\"))), ("\"\"", .string([])),
        ("foo123/456:x", .token(bytes("foo123/456:x"))),
        ("*a", .token(bytes("*a"))), (":aGVsbG8=:", .byteSequence(bytes("hello"))), ("::", .byteSequence([])),
        ("?1", .boolean(true)),
        ("?0", .boolean(false)), ("@1659578233", .date(1_659_578_233)), ("%\"f%c3%bc\"", .displayString(bytes("fü"))),
        (" 1 ", .integer(1)),
    ]
    @Test(arguments: items) func `items are read and written`(_ text: String, _ expected: StructuredItem) {
        #expect(parseStructuredItem(text.utf8)?.item == expected)
        var written: [UInt8] = []
        expected.append(to: &written)
        #expect(parseStructuredItem(written)?.item == expected)
    }

    @Test(arguments: [
        "", "1000000000000000", "1.", "1.2345", "1234567890123.1", "-", "--1", "\"a", "\"\\a\"", "\"\u{7F}\"", "\"ü\"",
        ":a", ":a:", ":a b=:",
        "?2", "?", "@1.5", "@", "%\"%C3%BC\"", "%\"%ff\"", "%\"a", "%a", "1 2", "a b", "1;", "1;A", "1;a=", "\t1",
        "(1)", "1,2",
    ]) func `is no item`(_ text: String) { #expect(parseStructuredItem(text.utf8) == nil) }

    @Test(arguments: [
        "a, b;q=0.5;x, (\"c\" d;y=1);z", "()", "1", "larder; hit; ttl=30, \"other cache\"; fwd=stale; detail=\"a\\\"\"",
    ]) func `lists are read and written`(_ text: String) throws {
        let list = try #require(parseStructuredList(text.utf8))
        var written: [UInt8] = []
        appendStructuredList(list, to: &written)
        #expect(String(decoding: written, as: UTF8.self) == text.replacing("; ", with: ";"))
    }

    @Test(arguments: ["a,", "a,,b", "a b", ",", "(a", "(a,b)", "(a\tb)", "(a)b"])
    func `is no list`(_ text: String) { #expect(parseStructuredList(text.utf8) == nil) }

    @Test func `empty lists and dictionaries are valid`() {
        #expect(parseStructuredList(" ".utf8) == [])
        #expect(parseStructuredDictionary("".utf8)?.entries.isEmpty == true)
    }

    @Test func `dictionaries`() throws {
        let dictionary = try #require(parseStructuredDictionary("u=2, i;a, x=(1 2), u=5 , b=?0".utf8))
        #expect(dictionary.entries.map { String(decoding: $0.key, as: UTF8.self) } == ["u", "i", "x", "b"])
        #expect(dictionary["u"]?.value == .item(.integer(5)))
        #expect(dictionary["i"]?.value == .item(.boolean(true)))
        #expect(dictionary["i"]?.parameters["a"] == .boolean(true))
        var written: [UInt8] = []
        dictionary.append(to: &written)
        #expect(String(decoding: written, as: UTF8.self) == "u=5, i;a, x=(1 2), b=?0")
        for text in ["a=", "A=1", "a=1,", "=1", "a=1 b=2", "1=a"] {
            #expect(parseStructuredDictionary(text.utf8) == nil)
        }
    }

    @Test func `a serialized string has no byte that strings must not have`() {
        var written: [UInt8] = []
        appendStructuredString("a\r\n\"\u{7F}ü".utf8, to: &written)
        #expect(String(decoding: written, as: UTF8.self) == "\"a%0D%0A\\\"%7F%C3%BC\"")
        #expect(isStructuredToken("a/b:c".utf8) && !isStructuredToken("1a".utf8) && !isStructuredToken("a b".utf8))
        #expect(!isStructuredToken("".utf8))
    }
}

@Suite("RFC 9110 §5.6.4: a quoted-string is read as its text") struct QuotedStringTests {
    @Test(arguments: ["", "a", "\"", "\\", "a\\\"b", "\"\u{301}", "\\\u{301}", "é", "a, b; c=\"d\"", "\t"])
    func `what is written is read`(_ text: String) {
        var written: [UInt8] = []
        appendQuotedString(text.utf8, to: &written)
        #expect(unquoted(written[...]) == Array(text.utf8))
    }

    @Test func `control characters are left out`() {
        var written: [UInt8] = []
        appendQuotedString("a\r\nB: c\u{0}\u{7F}".utf8, to: &written)
        #expect(String(decoding: written, as: UTF8.self) == "\"aB: c\"")
    }
}
