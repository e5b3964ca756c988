import Message
import Testing

private func text(_ bytes: some Collection<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }

@Suite("RFC 9110 §5.6.1 Lists")
struct FieldListTests {
    static let lists: [(String, [String])] = [
        ("a,b", ["a", "b"]), (" a \t,\tb ", ["a", "b"]), (",,a,,", ["a"]), ("", []), (" , ", []),
        ("\"a,b\",c", ["\"a,b\"", "c"]), ("\"a\\\",b\",c", ["\"a\\\",b\"", "c"]), ("\"a,b", ["\"a,b"]),
        ("a;b=\",\"", ["a;b=\",\""]),
        ("\"a\\", ["\"a\\"]),
    ]
    @Test(arguments: lists) func `elements`(_ value: String, _ expected: [String]) {
        var elements: [String] = []
        forEachListElement(Array(value.utf8)[...]) { elements.append(text($0)) }
        #expect(elements == expected)
    }

    @Test(
        arguments: [
            ("a", "a"), ("\"a b\"", "a b"), ("\"a\\\"b\"", "a\"b"), ("\"\"", ""), ("\"a", nil), ("\"a\"b", nil),
            ("a b", nil),
            ("", nil), ("\"a\\", nil), ("\"\u{1}\"", nil),
        ] as [(String, String?)]) func `quoted strings and tokens (§5.6.4)`(_ value: String, _ expected: String?)
    {
        #expect(unquoted(Array(value.utf8)[...]).map { text($0) } == expected)
    }
}

@Suite("RFC 9110 §8.8.3 Entity Tags")
struct EntityTagTests {
    @Test func `strong and weak comparison, as the table of §8.8.3.2 has it`() throws {
        let weak1 = try #require(EntityTag(parsing: "W/\"1\"".utf8))
        let weak2 = try #require(EntityTag(parsing: "W/\"2\"".utf8))
        let strong1 = try #require(EntityTag(parsing: "\"1\"".utf8))
        #expect(!weak1.strongMatches(weak1) && weak1.weakMatches(weak1))
        #expect(!weak1.strongMatches(weak2) && !weak1.weakMatches(weak2))
        #expect(!weak1.strongMatches(strong1) && weak1.weakMatches(strong1))
        #expect(strong1.strongMatches(strong1) && strong1.weakMatches(strong1))
        #expect(text(weak1.wire) == "W/\"1\"" && text(strong1.wire) == "\"1\"")
    }

    @Test(arguments: [
        "", "a", "\"", "\"a", "a\"", "w/\"a\"", "W/a", "\"a\"b\"", "\"a b\"", "\"a\" ", "W/ \"a\"", "\"\u{7F}\"",
    ])
    func `is no entity tag`(_ value: String) { #expect(EntityTag(parsing: value.utf8) == nil) }

    @Test func `is written in one way`() throws {
        let texts = ["\"1\"", "W/\"1\"", "\"2\"", "\"W/1\"", "\"\"", "W/\"\""]
        for text in texts {
            let tag = try #require(EntityTag(parsing: text.utf8))
            #expect(tag.wire == Array(text.utf8))
            for other in texts + ["", "W/", "w/\"1\"", "1"] {
                let value = Array(("ab" + other + "c").utf8)
                #expect(tag.isWritten(value[2..<value.count - 1]) == (text == other), "\(text) and \(other)")
            }
        }
    }

    @Test func `lists`() throws {
        #expect(EntityTagList(parsing: " * ".utf8) == .any)
        let list = try #require(EntityTagList(parsing: "\"a,b\", W/\"c\",, unquoted".utf8))
        #expect(list.containsStrong(EntityTag(isWeak: false, opaque: Array("\"a,b\"".utf8))))
        #expect(list.containsWeak(EntityTag(isWeak: false, opaque: Array("\"c\"".utf8))))
        #expect(!list.containsStrong(EntityTag(isWeak: false, opaque: Array("\"c\"".utf8))))
        #expect(!list.containsWeak(EntityTag(isWeak: false, opaque: Array("unquoted".utf8))))
        #expect(EntityTagList(parsing: "unquoted".utf8) == nil)
        #expect(EntityTagList(parsing: "".utf8) == nil)
    }
}

@Suite("RFC 9110 §14 Ranges")
struct ByteRangeTests {
    static let ranges: [(String, [ByteRangeSpec]?)] = [
        ("bytes=0-499", [.from(0, through: 499)]), ("bytes=9500-", [.from(9500, through: nil)]),
        ("bytes=-500", [.suffix(500)]),
        ("BYTES=0-0,-1", [.from(0, through: 0), .suffix(1)]),
        ("bytes= 0-1 , ,4-5", [.from(0, through: 1), .from(4, through: 5)]),
        ("bytes=5-4", nil), ("bytes=", nil), ("bytes=,", nil), ("bytes", nil), ("bytes=-", nil), ("bytes=a-b", nil),
        ("bytes=1-2x", nil), ("bytes=+1-2", nil), ("bytes =1-2", nil), ("items=0-1", nil), ("bytes=0-1,x", nil),
        ("bytes=0-9007199254740990", [.from(0, through: 1 << 53 - 2)]), ("bytes=1e3-", nil), ("bytes=-1.5", nil),
        ("bytes=--5", nil), ("bytes=000000000000000000000000000005-6", [.from(5, through: 6)]),
    ]
    /// Numbers that no length reaches are one number: what they select is the same.
    static let beyond = [
        "9007199254740991", "9007199254740992", "9223372036854775807", "9223372036854775808",
        "18446744073709551615", "18446744073709551616", "999999999999999999999999999999",
    ]
    @Test(arguments: beyond) func `a number beyond every length is one (§14.1.2)`(_ number: String) {
        #expect(parseByteRanges("bytes=0-\(number)".utf8) == [.from(0, through: 1 << 53 - 1)])
        #expect(parseByteRanges("bytes=\(number)-".utf8) == [.from(1 << 53 - 1, through: nil)])
        #expect(parseByteRanges("bytes=-\(number)".utf8) == [.suffix(1 << 53 - 1)])
        #expect(parseByteRanges("bytes=\(number)-5".utf8) == nil)
        #expect(parseByteRanges("bytes=\(number)x-".utf8) == nil)
    }

    static let extremes: [(String, Range<UInt64>?, UInt64?)] = [
        ("bytes 0-9007199254740990/9007199254740991", 0..<(1 << 53 - 1), 1 << 53 - 1),
        ("bytes 9007199254740990-9007199254740990/*", (1 << 53 - 2)..<(1 << 53 - 1), nil),
        ("bytes */9007199254740991", nil, 1 << 53 - 1), ("bytes */0", nil, 0), ("bytes 0-0/1", 0..<1, 1),
        ("bytes 4294967295-4294967297/4294967298", (1 << 32 - 1)..<(1 << 32 + 2), 1 << 32 + 2),
        ("bytes 0000000000000000000000-01/002", 0..<2, 2),
    ]
    @Test(arguments: extremes) func `Content-Range names bytes of any content`(
        _ value: String, _ range: Range<UInt64>?, _ length: UInt64?
    ) { #expect(ContentRange(parsing: value.utf8) == ContentRange(range: range, completeLength: length)) }

    @Test(arguments: beyond.dropFirst()) func `a Content-Range beyond every content is none (§14.4)`(_ number: String) {
        for value in ["0-1/\(number)", "*/\(number)", "0-\(number)/*", "\(number)-\(number)/*"] {
            #expect(ContentRange(parsing: "bytes \(value)".utf8) == nil, "\(value)")
        }
    }

    @Test(arguments: ranges) func `is parsed (§14.1.2)`(_ value: String, _ expected: [ByteRangeSpec]?) {
        #expect(parseByteRanges(value.utf8) == expected)
    }

    @Test func `a Range with too many ranges is ignored`() {
        #expect(parseByteRanges("bytes=0-0,1-1,2-2".utf8, countMax: 3)?.count == 3)
        #expect(parseByteRanges("bytes=0-0,1-1,2-2,3-3".utf8, countMax: 3) == nil)
    }

    @Test(
        arguments: [
            (.from(0, through: 499), 10_000, 0..<500), (.from(9500, through: nil), 10_000, 9500..<10_000),
            (.suffix(500), 10_000, 9500..<10_000), (.suffix(20_000), 10_000, 0..<10_000), (.suffix(0), 10_000, nil),
            (.from(9999, through: 20_000), 10_000, 9999..<10_000), (.from(10_000, through: nil), 10_000, nil),
            (.from(0, through: .max), 10_000, 0..<10_000), (.from(0, through: nil), 0, nil), (.suffix(1), 0, 0..<0),
            (.suffix(0), 0, nil), (.from(0, through: 0), 0, nil),
            (.from(0, through: 9999), 10_000, 0..<10_000), (.from(0, through: .max), .max, 0..<UInt64.max),
            (.suffix(.max), 1 << 53 - 1, 0..<(1 << 53 - 1)), (.from(1 << 53 - 1, through: nil), 1 << 53 - 1, nil),
            (.from(1 << 53 - 2, through: 1 << 53 - 1), 1 << 53 - 1, (1 << 53 - 2)..<(1 << 53 - 1)),
        ] as [(ByteRangeSpec, UInt64, Range<UInt64>?)])
    func `is resolved`(_ spec: ByteRangeSpec, _ length: UInt64, _ expected: Range<UInt64>?) {
        #expect(spec.resolve(against: length) == expected)
    }

    @Test(arguments: ["bytes 0-99/1234", "bytes 0-99/*", "bytes */1234", "bytes 5-5/6"])
    func `Content-Range is read and written alike (§14.4)`(_ value: String) {
        #expect((ContentRange(parsing: value.utf8)?.wire).map { text($0) } == value)
    }

    @Test(arguments: [
        "", "bytes", "bytes ", "bytes */*", "bytes 5-4/10", "bytes 0-10/10", "bytes 0-/10", "bytes -5/10",
        "bytes=0-1/2",
        "items 0-1/2", "bytes 0-18446744073709551615/*", "bytes 0-1/x", "bytes 0-1", "bytes x-1/2",
    ]) func `is no Content-Range`(_ value: String) { #expect(ContentRange(parsing: value.utf8) == nil) }
}

@Suite("RFC 9110 §12.4.2 Quality Values, §8.4.1 Content Codings")
struct QualityValueTests {
    static let values: [(String, [String])] = [
        ("gzip", ["gzip 1000"]), ("gzip;q=0.5, br ; Q=1", ["gzip 500", "br 1000"]), ("*;q=0", ["* 0"]),
        ("a;q=0.123", ["a 123"]), ("a;q=1.000", ["a 1000"]), ("a;q=1.001", ["a 0"]), ("a;q=2", ["a 0"]),
        ("a;q=0.1234", ["a 0"]),
        ("a;q=", ["a 0"]), ("a;q=x", ["a 0"]), ("text/html;level=1;q=0.3", ["text/html 300"]), ("a;q=0.", ["a 0"]),
        ("a;b=\",;q=0\";q=0.2,c", ["a 200", "c 1000"]), ("", []),
    ]
    @Test(arguments: values) func `weights in thousandths`(_ value: String, _ expected: [String]) {
        let members = qualityValues(Array(value.utf8)[...])
        #expect(members.map { "\(text($0.token)) \($0.weight)" } == expected)
    }

    @Test func `codings are recognised in any case and by their old names`() {
        for coding in ContentCoding.allCases { #expect(ContentCoding(name: bytes(of: coding.text)) == coding) }
        #expect(ContentCoding(name: "X-GZip".utf8) == .gzip)
        #expect(ContentCoding(name: "x-compress".utf8) == .compress)
        #expect(ContentCoding(name: "x-br".utf8) == nil)
        #expect(ContentCoding(name: "".utf8) == nil)
    }
}

@Suite("Numbers, base 64, reason phrases")
struct SmallParserTests {
    @Test func `decimals`() {
        #expect(parseDecimal("18446744073709551615".utf8) == .max)
        for text in ["", "18446744073709551616", "-1", "+1", " 1", "1 ", "0x1", "1.0"] {
            #expect(parseDecimal(text.utf8) == nil)
        }
        #expect(parseDeltaSeconds("2147483647".utf8) == Seconds(2_147_483_647))
        #expect(parseDeltaSeconds("99999999999999999999".utf8) == .deltaMax)
        #expect(parseDeltaSeconds("-1".utf8) == nil)
        for value in [0, 9, 10, 12_345, UInt64.max] {
            var bytes: [UInt8] = []
            appendDecimal(value, to: &bytes)
            #expect(text(bytes) == String(value))
        }
    }

    @Test func `decimals of up to eight digits at once`() {
        var values: [UInt32] = [0, shortDecimalEnd - 1]
        for power: UInt32 in [10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000] {
            values += [power - 1, power, power + 1, power * 9, power * 10 - 1]
        }
        values += stride(from: 0, to: 30_000, by: 1).map { UInt32($0) }
        values += stride(from: 30_000, to: shortDecimalEnd, by: 9_973)
        for value in values {
            let (digits, count) = shortDecimal(value)
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: digits >> UInt64($0 * 8)) }
            #expect(text(bytes) == String(value))
            #expect(count == 8 || digits >> UInt64(count * 8) == 0)
        }
    }

    @Test(arguments: 0..<40) func `ranges of bytes are equal if each byte is`(_ count: Int) {
        func isEqual(_ a: [UInt8], _ first: Range<Int>, _ b: [UInt8], _ second: Range<Int>) -> Bool {
            areEqual(a.span, first, b.span, second)
        }
        let bytes = (0..<64).map { UInt8($0) }
        let shifted = [0xFF] + bytes
        let range = 3..<3 + count
        #expect(isEqual(bytes, range, shifted, 4..<4 + count))
        #expect(!isEqual(bytes, range, shifted, 4..<5 + count))
        for index in range {
            var other = bytes
            other[index] ^= 0x20
            #expect(!isEqual(bytes, range, other, range))
        }
    }

    @Test func `seconds do not trap at their bounds`() {
        #expect(Seconds(0) - Seconds(.min) == Seconds(.max))
        #expect(Seconds(-2) - Seconds(.max) == Seconds(.min))
        #expect(Seconds(.max) + Seconds(1) == Seconds(.max))
    }

    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
    ])
    func `base 64, as RFC 4648 §10 has it`(_ plain: String, _ encoded: String) {
        #expect(text(encodeBase64(plain.utf8)) == encoded)
        #expect(decodeBase64(encoded.utf8) == Array(plain.utf8))
        #expect(decodeBase64(encoded.utf8.prefix { $0 != 0x3D }) == Array(plain.utf8))
    }

    @Test(arguments: ["Z", "Zg=", "Zg===", "=", "Z=g=", "Zm9v=", "Zm 9v", "Zm_v"])
    func `is no base 64`(_ encoded: String) { #expect(decodeBase64(encoded.utf8) == nil) }

    @Test func `phrases`() {
        #expect(reasonPhrase(200).description == "OK")
        #expect(reasonPhrase(431).description == "Request Header Fields Too Large")
        #expect(reasonPhrase(299).description.isEmpty && reasonPhrase(999).description.isEmpty)
    }
}
