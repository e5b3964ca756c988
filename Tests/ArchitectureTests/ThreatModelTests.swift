import Testing

@Suite("Architecture: the threat model")
struct ThreatModelTests {
    static let document = "docs/threat-model.md"

    /// One test that a row of the document names.
    struct Evidence: Equatable, CustomTestStringConvertible, Sendable {
        let file: String
        let test: String
        var testDescription: String { "\(file): \(test)" }

        func isIn(_ files: [TestFile]) -> Bool {
            files.contains { $0.name == file && $0.text.contains("func `\(test)`") }
        }
    }

    /// The rows of the tables under "Threats", without their headings.
    static func rows(in text: String) -> [String] {
        guard let threats = text.firstRange(of: "\n## Threats\n") else { return [] }
        let rest = text[threats.upperBound...]
        let end = rest.firstRange(of: "\n## ")?.lowerBound ?? rest.endIndex
        return rest[..<end].split(separator: "\n").map(String.init).filter {
            $0.hasPrefix("| ") && !$0.hasPrefix("| threat |")
        }
    }

    /// `File.swift`: "a test", "another"; `Other.swift`: "a third".
    static func evidence(in row: String) -> [Evidence] {
        row.matches(of: /`([A-Za-z0-9+]+\.swift)`: ("[^"]+"(?:, "[^"]+")*)/).flatMap { match in
            match.2.matches(of: /"([^"]+)"/).map { Evidence(file: String(match.1), test: String($0.1)) }
        }
    }

    @Test func `every threat names at least one test, and no quotation is overlooked`() throws {
        let rows = Self.rows(in: try Tree.text(Self.document))
        #expect(rows.count > 30)
        for row in rows {
            let evidence = Self.evidence(in: row)
            #expect(!evidence.isEmpty, "\(row)")
            #expect(row.count { $0 == "\"" } == evidence.count * 2, "\(row)")
        }
    }

    @Test func `every test that the threat model names exists`() throws {
        for evidence in Self.rows(in: try Tree.text(Self.document)).flatMap(Self.evidence) {
            #expect(evidence.isIn(TestFile.all), "\(Self.document) names \(evidence.testDescription)")
        }
    }

    @Test func `rows and tests are read from the document`() {
        let text = "\n## Threats\n\n| threat | tests |\n|---|---|\n| a | b |\n\n## Not covered\n\n| d | e |\n"
        #expect(Self.rows(in: text) == ["| a | b |"])
        let evidence = Self.evidence(in: "| a | b | `A.swift`: \"one\", \"two\"; `B+C.swift`: \"three\" |")
        #expect(evidence.map(\.testDescription) == ["A.swift: one", "A.swift: two", "B+C.swift: three"])
        let file = TestFile(path: "Tests/T/A.swift", text: "@Test func `one`() {}\n// two")
        #expect(evidence.map { $0.isIn([file]) } == [true, false, false])
    }
}

/// Types and members that architecture.md names between backquotes, wherever they stand.
@Suite("Architecture: the symbols of the documents")
struct DocumentedSymbolTests {
    static let document = "docs/architecture.md"

    /// Between backquotes like types, but names of fields, and of the manifest.
    static let strangers: Set<String> = ["Age", "Date", "Host", "Package", "Range", "Vary", "Via"]

    /// `Type`, `Type.member` or `Type.member(label:)`.
    struct Symbol: Hashable, Sendable {
        let type: String
        let member: String?
        var text: String { member.map { "\(type).\($0)" } ?? type }
    }

    static func symbols(in text: String) -> [Symbol] {
        prose(of: text).matches(of: /`([^`\n]+)`/).compactMap { quoted -> Symbol? in
            let pattern = /([A-Z][A-Za-z0-9]+)(?:\.([a-z][A-Za-z0-9]+))?(?:\(.*\))?/
            guard let match = quoted.1.wholeMatch(of: pattern) else { return nil }
            return Symbol(type: String(match.1), member: match.2.map { String($0) })
        }
    }

    /// The text without its blocks of code, whose fences would be taken for backquotes.
    static func prose(of text: String) -> String {
        var lines: [Substring] = []
        var isCode = false
        for line in text.split(separator: "\n") {
            if line.hasPrefix("```") { isCode.toggle() } else if !isCode { lines.append(line) }
        }
        return lines.joined(separator: "\n")
    }

    /// Identifiers, keywords and numbers, in their order. Bytes, because all sources are read.
    static func words(of text: String) -> [String] {
        text.utf8.split { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x5F, 0x61...0x7A: false
            default: true
            }
        }.map { String(decoding: $0, as: UTF8.self) }
    }

    /// What stands behind a keyword that declares or extends a type.
    static func types(declaredBy words: [String]) -> Set<String> {
        let keywords: Set<String> = ["actor", "class", "enum", "extension", "protocol", "struct", "typealias"]
        return Set(zip(words, words.dropFirst()).filter { keywords.contains($0.0) }.map { $0.1 })
    }

    @Test func `every type that is named is declared, and every member is in a file of its type`() throws {
        let symbols = Set(Self.symbols(in: try Tree.text(Self.document))).filter { !Self.strangers.contains($0.type) }
        #expect(symbols.count > 50)
        let named = Set(symbols.map(\.type))
        // By type: the words of all files that declare or extend it.
        var places: [String: Set<String>] = [:]
        for text in SourceFile.all.map(\.text) + TestFile.all.map(\.text) {
            let words = Self.words(of: text)
            for type in Self.types(declaredBy: words).intersection(named) {
                places[type, default: []].formUnion(words)
            }
        }
        for symbol in symbols {
            let words = places[symbol.type]
            #expect(words != nil, "\(Self.document) names `\(symbol.text)`: there is no such type")
            guard let words, let member = symbol.member else { continue }
            #expect(words.contains(member), "\(Self.document) names `\(symbol.text)`: there is no such member")
        }
    }

    @Test func `symbols and declarations are read from text`() {
        let text = "`no` and `reuse(of:)`, but `Fetch`, `Body.claim`\n```\n`Code`\n```\nand `Hole.fill(in:)`"
        #expect(Self.symbols(in: text).map(\.text) == ["Fetch", "Body.claim", "Hole.fill"])
        let words = Self.words(of: "final class Fetch {}\nextension Body { func claim(_: Int) }\nlet a1 = B()")
        #expect(Self.types(declaredBy: words) == ["Fetch", "Body"])
        #expect(words.contains("claim") && words.contains("a1") && !words.contains("cl"))
    }
}
