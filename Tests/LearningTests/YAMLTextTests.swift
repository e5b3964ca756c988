import Learning
import Message
import Rules
import Testing
import Texts
import YAML

/// What a client sends becomes text of a configuration. A real parser reads it back.
@Suite("YAML 1.2 §7.3.1: what is learnt is written so that it is read as itself")
struct YAMLTextTests {
    static let hostile = [
        "'DELETE'", "\"DELETE\"", "#X", "!t", "*", "&a", "|", ">", "%", "@", "`", "-", "?", ":", "a: b", "a #b", "[",
        "]", "{", "}", ",",
        "~", "null", "NULL", "yes", "NO", "ON", "TRUE", "1", "0x10", "1e3", "", " ", " a ", "a\nb", "a\r\n- allow: {}",
        "\u{0}", "\u{7F}",
        "\u{85}", "\u{2028}", "\u{FEFF}", "\u{202E}", "\\", "\\n", "é", "\u{1F600}", "---", "...", "<<", "=",
        "\"\u{301}", "\\\u{301}", "\u{600}\"", "'\u{301}", "#\u{301}", "\u{301}",
    ]

    private func readBack(_ text: String) throws -> [String] {
        guard case .sequence(let nodes) = try #require(try parseYAML(Array("[ \(yamlScalar(text)), GET ]".utf8))).value
        else { return [] }
        return nodes.compactMap { if case .scalar(let value, _) = $0.value { value } else { nil } }
    }

    @Test(arguments: hostile) func `a parser reads the scalar as the text`(_ text: String) throws {
        #expect(try readBack(text) == [text, "GET"])
    }

    @Test(arguments: 0..<200 as Range<UInt64>) func `so it does with random text`(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let letters =
            Array("aZ09'\"#!*&|>%@`-?:,[]{}~\\ \t\n\r\u{0}\u{85}\u{2028}é\u{1F600}".unicodeScalars) + [
                "\u{301}", "\u{600}", "\u{200D}",
            ]
        for _ in 0..<20 {
            var text = ""
            for _ in 0..<Int.random(in: 0...12, using: &random) {
                text.unicodeScalars.append(letters.randomElement(using: &random)!)
            }
            #expect(try readBack(text) == [text, "GET"])
            let document = try #require(try parseYAML(Array("\(yamlComment(text))\na: 1\n".utf8)))
            guard case .mapping(let entries) = document.value else { throw Unread() }
            #expect(entries.map(\.key) == ["a"])
        }
    }

    @Test func `a method that looks like another is not that one`() throws {
        var journal = Journal(
            [
                Observation(try request("a.example", "/x", method: .other, text: "'DELETE'"), .allowed),
                Observation(try request("a.example", "/x"), .allowed),
            ], scope: JobScope(client: AddressRange("10.2.0.17")))
        journal.run([])
        #expect(journal.yaml.contains("\"'DELETE'\""))
        #expect(journal.yaml.contains("GET"))
    }

    @Test func `a method that no rule can name is left out`() throws {
        let journal = Journal([Observation(try request("a.example", "/x", method: .other, text: "get"), .allowed)])
        #expect(journal.yaml.contains("rules: []") && journal.leftOut == 1)
    }

    private struct Unread: Error {}
}
