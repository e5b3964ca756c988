import Message
import Testing

@Suite("RFC 3986 §2.1 Percent-Encoding")
struct PercentEncodingTests {
    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    static let unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"

    @Test func `unreserved characters are kept, and each other byte is two digits in upper case (§2.3)`() {
        for byte in UInt8.min ... .max {
            let encoded = text(percentEncoded([byte]))
            if Self.unreserved.utf8.contains(byte) {
                #expect(encoded.utf8.elementsEqual([byte]))
            } else {
                let digits = String(byte, radix: 16, uppercase: true)
                #expect(encoded == "%" + (digits.count == 1 ? "0" : "") + digits)
            }
        }
    }

    static let rows: [(what: String, text: String, encoded: String)] = [
        ("nothing", "", ""), ("a word", "abc", "abc"), ("what ends a value", "a=b&c d+e%", "a%3Db%26c%20d%2Be%25"),
        ("letters beyond ASCII", "ü€", "%C3%BC%E2%82%AC"), ("what is encoded already", "%7e", "%257e"),
    ]
    @Test(arguments: rows) func `a value stays one value`(_ row: (what: String, text: String, encoded: String)) {
        #expect(text(percentEncoded(row.text.utf8)) == row.encoded, "\(row.what)")
    }

    @Test func `whoever encodes says what else is kept`() {
        let slash = UInt8(ascii: "/")
        #expect(text(percentEncoded("/a b/ü".utf8) { isUnreserved($0) || $0 == slash }) == "/a%20b/%C3%BC")
        #expect(percentEncoded("a b".utf8) { _ in true } == Array("a b".utf8))
    }

    @Test func `beyond ASCII, and nothing else, is encoded in what a user typed`() {
        #expect(encodingBeyondASCII(Array("/a b%zz?<\u{7F}".utf8)) == nil)
        #expect(encodingBeyondASCII(Array("/ü b%C3?é".utf8)).map(text) == "/%C3%BC b%C3?%C3%A9")
    }
}
