import Message
import Testing

@Suite("RFC 9110 §5.1 Field Names")
struct FieldNameTests {
    @Test func `all names fit into one word of a set`() { #expect(FieldName.allCases.count <= 64) }

    @Test(arguments: FieldName.allCases.filter { $0 != .other })
    func `every name is found in any case`(_ name: FieldName) {
        let spelling = bytes(of: name.text)
        #expect(!spelling.isEmpty && spelling.allSatisfy(isTchar))
        let lower = spelling.map(asciiLowercased)
        let upper = lower.map { isAlpha($0) ? $0 & 0xDF : $0 }
        for variant in [spelling, lower, upper] {
            #expect(FieldName(spelling: variant) == name)
            // Within a head there are bytes before and behind.
            let embedded = Array("\r\n".utf8) + variant + Array(": some value\r\n".utf8)
            unsafe #expect(FieldName.classify(embedded.span.bytes, 2..<(2 + variant.count)) == name)
        }
    }

    @Test(arguments: FieldName.allCases.filter { $0 != .other })
    func `a name that differs in one byte is another`(_ name: FieldName) {
        let spelling = bytes(of: name.text)
        for index in spelling.indices {
            var changed = spelling
            changed[index] = 0x7E
            #expect(FieldName(spelling: changed) == .other)
        }
        #expect(FieldName(spelling: spelling + [0x78]) == .other)
        #expect(FieldName(spelling: spelling.dropLast()) == .other || name == .eTag)
    }

    @Test func `the case of a name is its spelling without hyphens`() {
        for name in FieldName.allCases where name != .other {
            let plain = bytes(of: name.text).filter { $0 != 0x2D }.map(asciiLowercased)
            #expect(plain == Array("\(name)".utf8).map(asciiLowercased))
        }
    }

    @Test func `bytes that folding of case could confuse are told apart`() {
        #expect(FieldName(spelling: Array("user\ragent".utf8)) == .other)
        #expect(FieldName(spelling: []) == .other)
    }
}

@Suite("Character classes")
struct CharacterClassTests {
    @Test func `tchar is what RFC 9110 §5.6.2 lists`() {
        let letters = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
        for byte in UInt8.min...UInt8.max { #expect(isTchar(byte) == letters.utf8.contains(byte)) }
    }
}
