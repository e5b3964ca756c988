import Testing
import YAML

@Suite("YAML")
struct YAMLTests {
    /// The tree in one line: plain scalars as they are, quoted in quotes, each with line and column.
    static func summary(_ node: YAMLNode) -> String {
        let place = "@\(node.line):\(node.column)"
        switch node.value {
        case .scalar(let text, let isQuoted): return (isQuoted ? "'\(text)'" : text) + place
        case .sequence(let elements): return "[" + elements.map(summary).joined(separator: " ") + "]" + place
        case .mapping(let entries):
            return "{" + entries.map { "\($0.key)#\($0.keyLine)=" + summary($0.value) }.joined(separator: " ") + "}"
                + place
        }
    }

    static let trees: [(String, String)] = [
        ("a: 1", "{a#1=1@1:4}@1:1"), ("a: '1'", "{a#1='1'@1:4}@1:1"), ("a: \"x\\ty\"", "{a#1='x\ty'@1:4}@1:1"),
        ("a:\nb: ~", "{a#1=@1:3 b#2=~@2:4}@1:1"), ("- x\n- [ y, z ]", "[x@1:3 [y@2:5 z@2:8]@2:3]@1:1"),
        ("# c\na:\n  b: { c: d }\n", "{a#2={b#3={c#3=d@3:11}@3:6}@3:3}@2:1"), ("a: |\n  t\n", "{a#1='t\n'@1:4}@1:1"),
        ("---\nx\n...\n", "x@2:1"), ("a: bücher", "{a#1=bücher@1:4}@1:1"),
        ("a: {}\nb: []", "{a#1={}@1:4 b#2=[]@2:4}@1:1"),
    ]
    @Test(arguments: trees) func `every value has its line and column`(_ text: String, _ expected: String) throws {
        #expect(Self.summary(try #require(try parseYAML(Array(text.utf8)))) == expected)
    }

    @Test(arguments: ["", "\n\n", "# nothing\n"]) func `an empty document has no tree`(_ text: String) throws {
        #expect(try parseYAML(Array(text.utf8)) == nil)
    }

    static let errors: [(text: String, line: Int, says: String)] = [
        ("a: 1\nb: 2\na: 3", 3, "the key \"a\" is already in line 1"), ("a: &x 1\nb: *x", 1, "anchors"),
        ("a: *x", 1, "aliases"),
        ("a: !!str 1", 1, "tags"), ("a: !x { b: c }", 1, "tags"), ("a: 1\n---\nb: 2", 3, "second document"),
        ("a: 1\n\tb: 2", 2, "found"), ("a: [ 1, 2", 2, "expected"), ("a: \"x", 1, "quoted"),
        ("a: 1\n b: 2", 2, "not allowed"),
        ("host: [ *.example.com ]", 1, "needs quotes"), ("? [ a ]\n: b", 1, "plain text"), ("a: \u{1}", 1, "control"),
        ("a: {b: 1, b: 2}", 1, "already"), ("a: 1\n}", 2, "expected"),
    ]
    @Test(arguments: errors) func `an error names its line`(_ text: String, _ line: Int, _ says: String) {
        let error = #expect(throws: YAMLError.self) { try parseYAML(Array(text.utf8)) }
        #expect(error?.message.contains(says) == true, "\(String(describing: error))")
        #expect(error?.line == line, "\(String(describing: error))")
    }

    @Test func `bytes that are not UTF-8 are reported with their line`() {
        let error = #expect(throws: YAMLError.self) { try parseYAML(Array("a: 1\nb: ".utf8) + [0xFF, 0x0A]) }
        #expect(error == YAMLError(line: 2, column: 1, message: "not UTF-8 text"))
    }

    static let bounds: [(text: String, isFine: Bool)] = [
        ("[[[1]]]", true), ("[[[[1]]]]", false), ("[1, 2, 3, 4, 5, 6, 7]", true), ("[1, 2, 3, 4, 5, 6, 7, 8]", false),
        ("# 34567890123456789012345678901", true), ("# 345678901234567890123456789012", false),
    ]
    @Test(arguments: bounds) func `depth, count and length have a limit`(_ text: String, _ isFine: Bool) {
        var bounds = YAMLBounds()
        bounds.depthMax = 4
        bounds.nodeCountMax = 8
        bounds.textBytesMax = 31
        if isFine {
            #expect(throws: Never.self) { try parseYAML(Array(text.utf8), bounds: bounds) }
        } else {
            #expect(throws: YAMLError.self) { try parseYAML(Array(text.utf8), bounds: bounds) }
        }
    }

    @Test(arguments: 0..<200) func `any bytes give a tree or an error`(_ seed: UInt64) {
        var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
        let alphabet = Array("ab:-[]{},\"'#&*!|>%@?~ \n\n\t\\0".utf8)
        let text = (0..<64).map { _ -> UInt8 in
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return alphabet[Int(state % UInt64(alphabet.count))]
        }
        do {
            _ = try parseYAML(text)
        } catch {
            #expect(error.line >= 0 && !error.message.isEmpty)
        }
    }
}
