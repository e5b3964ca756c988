import JSON
import Testing

@Suite("RFC 8259 §7: what is written as a string is read as itself") struct JSONTextTests {
    static let hostile = [
        "", "\"", "\\", "\\\"", "\\u0041", "\n\r\t", "\u{0}\u{1F}\u{7F}", "</script><!--", "\u{2028}\u{2029}",
        "é\u{1F600}",
        "\"\u{301}", "\\\u{301}", "\u{600}<", "\u{600}\"", "\r\n", "\u{FEFF}", "\u{10FFFF}",
    ]
    @Test(arguments: hostile) func `hostile text`(_ text: String) throws { try expectRead(text) }

    @Test func `random text`() throws {
        let scalars: [Unicode.Scalar] = [
            "a", "\"", "\\", "/", "u", "<", "\u{0}", "\n", "\u{301}", "\u{600}", "\u{200D}", "\u{2028}", "\u{1F600}",
        ]
        for _ in 0..<2000 {
            var text = ""
            for _ in 0..<Int.random(in: 0...10) { text.unicodeScalars.append(scalars.randomElement() ?? "a") }
            try expectRead(text)
        }
    }

    private func expectRead(_ text: String) throws {
        let written = jsonString(text)
        guard case .string(let read) = try JSONValue(parsing: Array(written.utf8)) else {
            Issue.record("\(written) is no string")
            return
        }
        // By scalar: Swift takes equivalent texts for equal.
        #expect(Array(read.unicodeScalars) == Array(text.unicodeScalars), "\(written)")
        #expect(!written.utf8.contains { $0 < 0x20 || $0 == UInt8(ascii: "<") })
    }
}
