import JSON
import Testing

@Suite("Changes to a JSON text")
struct JSONEditTests {
    /// Which of the three elements of `[a , b,c]` are removed.
    static let rows: [(removed: Set<Int>, expected: String)] = [
        ([], "[ 1 , 2,3 ]"), ([0], "[ 2,3 ]"), ([1], "[ 1,3 ]"), ([2], "[ 1 , 2 ]"), ([0, 1], "[ 3 ]"),
        ([0, 2], "[ 2 ]"), ([1, 2], "[ 1 ]"), ([0, 1, 2], "[  ]"),
    ]
    @Test(arguments: rows) func `elements go with their commas`(_ row: (removed: Set<Int>, expected: String)) throws {
        let text = Array("[ 1 , 2,3 ]".utf8)
        var children: [Range<Int>] = []
        var scanner = JSONScanner(text)
        try scanner.array { (scanner) throws(JSONError) in children.append(try scanner.skipValue()) }
        try scanner.end()
        var edit = JSONEdit()
        edit.remove(children) { row.removed.contains($0) }
        #expect(String(decoding: edit.apply(to: text), as: UTF8.self) == row.expected)
    }

    @Test func `values are replaced wherever they stand`() {
        var edit = JSONEdit()
        edit.replace(3..<4, by: Array("44".utf8))
        edit.replace(1..<2, by: [])
        #expect(edit.apply(to: Array("[1,2]".utf8)) == Array("[,44]".utf8))
        #expect(JSONEdit().isEmpty && JSONEdit().apply(to: [1, 2]) == [1, 2])
    }

    static let broken: [(text: String, error: JSONError)] = [
        ("{\"a\" 1}", .unexpectedByte(at: 5)), ("[1,]", .unexpectedByte(at: 3)), ("\"a", .unexpectedEnd),
        ("\"\u{1}\"", .controlInString(at: 1)), ("[01]", .invalidNumber(at: 1)), ("tru", .unexpectedEnd),
        (String(repeating: "[", count: 258), .tooDeep),
    ]
    @Test(arguments: broken) func `a value that is skipped is read as strictly`(_ row: (text: String, error: JSONError))
    {
        var scanner = JSONScanner(Array(row.text.utf8))
        #expect(throws: row.error) { () throws(JSONError) in try scanner.skipValue() }
    }
}
