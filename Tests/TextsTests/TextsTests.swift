import Testing
import Texts
import YAML

@Suite("Texts for people: nothing acts on a terminal, and a line is one") struct LineTextTests {
    @Test(arguments: [
        ("http://a/b?c=é", "http://a/b?c=é"), ("a\nb\r\nc\td", "a\\nb\\r\\nc\\td"), ("\u{1B}[31m", "\\u001b[31m"),
        ("\u{9B}31m", "\\u009b31m"), ("\u{202E}cod.exe", "\\u202ecod.exe"), ("\u{0}\u{7F}", "\\u0000\\u007f"),
        ("\u{2028}", "\\u2028"), ("\u{F0000}", "\\udb80\\udc00"), ("a\\n", "a\\n"), ("e\u{301}", "e\u{301}"),
        ("\u{1F600}", "\u{1F600}"),
    ]) func `what is not shown as itself is an escape`(_ text: String, _ line: String) {
        #expect(Array(lineText(text).utf8) == Array(line.utf8))
    }

    @Test func `text of several lines keeps its lines`() {
        #expect(screenText("a\n\tb\r\u{1B}[J") == "a\n\tb\\r\\u001b[J")
    }

    @Test(arguments: hostile) func `no line has a control character`(_ text: String) { expectShown(text) }

    @Test(arguments: 0..<50 as Range<UInt64>) func `so it is with random text`(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<40 { expectShown(randomText(&random)) }
    }

    private func expectShown(_ text: String) {
        #expect(lineText(text).unicodeScalars.allSatisfy(isShown))
        #expect(screenText(text).unicodeScalars.allSatisfy { isShown($0) || $0 == "\n" || $0 == "\t" })
        #expect(screenText(screenText(text)) == screenText(text))
    }
}

@Suite("XCU §2.2: a word for a shell is read as itself") struct ShellWordTests {
    @Test(arguments: hostile) func `a shell reads the word as the text`(_ text: String) throws {
        let read = try #require(output(of: ["sh", "-c"], argument: "printf '[%s]' \(shellWord(text))"))
        #expect(read == Array("[\(text)]".utf8), "\(shellWord(text))")
    }

    @Test func `so it does with random texts`() throws {
        var random = SeededGenerator(seed: 1)
        let texts = (0..<300).map { _ in randomText(&random) }
        let read = try #require(
            output(of: ["sh", "-c"], argument: "printf '[%s]' " + texts.map(shellWord).joined(separator: " ")))
        #expect(read == Array(texts.map { "[\($0)]" }.joined().utf8))
    }

    @Test func `a NUL is left out`() { #expect(shellWord("a\0b") == "'ab'") }
}

@Suite("HTML §13.1.4: text of a page is text") struct HTMLTextTests {
    @Test func `a parser of HTML reads the text, and no tag`() throws {
        var random = SeededGenerator(seed: 2)
        let texts = (hostile + (0..<300).map { _ in randomText(&random) }).filter { !$0.contains("\0") }
        // A parser makes one line feed of CR LF, as the standard says of input streams.
        let program = """
            import html.parser, sys
            class Reader(html.parser.HTMLParser):
                def __init__(self): super().__init__(); self.texts = []; self.tags = []
                def handle_starttag(self, tag, attributes):
                    self.tags.append(tag)
                    if tag == "p": self.texts.append([dict(attributes).get("title") or "", ""])
                def handle_data(self, data): self.texts[-1][1] += data
            reader = Reader()
            reader.feed(sys.argv[1]); reader.close()
            assert set(reader.tags) == {"p"}, reader.tags
            sys.stdout.buffer.write("\\0".join(a + "\\1" + b for a, b in reader.texts).encode())
            """
        let page = texts.map { "<p title=\"\(htmlText($0))\">\(htmlText($0))</p>" }.joined()
        guard let read = output(of: ["python3", "-c", program], argument: page) else { return }
        #expect(read == Array(texts.map { "\($0)\u{1}\($0)" }.joined(separator: "\0").utf8))
    }

    @Test(arguments: hostile) func `no bracket and no quote remains`(_ text: String) {
        #expect(!htmlText(text).utf8.contains { "<>\"'".utf8.contains($0) })
    }
}

@Suite("Prometheus text format 0.0.4: a label is read as itself") struct MetricsTextTests {
    @Test(arguments: hostile) func `a label`(_ text: String) { #expect(read(metricsLabel(text)) == Array(text.utf8)) }

    @Test func `random labels`() {
        var random = SeededGenerator(seed: 3)
        for _ in 0..<500 {
            let text = randomText(&random)
            #expect(read(metricsLabel(text)) == Array(text.utf8))
            #expect(!metricsHelp(text).utf8.contains(0x0A))
        }
    }

    /// The value of a label that is all of the text.
    private func read(_ written: String) -> [UInt8]? {
        var rest = Array(written.utf8)[...]
        guard rest.popFirst() == UInt8(ascii: "\"") else { return nil }
        var value: [UInt8] = []
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "\""): return rest.isEmpty ? value : nil
            case UInt8(ascii: "\n"): return nil
            case UInt8(ascii: "\\"):
                switch rest.popFirst() {
                case UInt8(ascii: "n"): value.append(0x0A)
                case let next? where next == UInt8(ascii: "\\") || next == UInt8(ascii: "\""): value.append(next)
                default: return nil
                }
            default: value.append(byte)
            }
        }
        return nil
    }
}

@Suite("YAML 1.2 §7.3: names and single-quoted scalars are read as themselves") struct YAMLNameTests {
    @Test(
        arguments: hostile + [
            "a.b", "/etc/larder/ca.pem", "no", "1.5", ".nan", "::1", "*.a", "a", "1e3.x", "/a,b", "A.", "a.b: c",
            "0x.1",
        ])
    func `in a list`(_ text: String) throws {
        for written in [yamlName(text), yamlSingleQuoted(text)] {
            guard case .sequence(let nodes) = try #require(try parseYAML(Array("[ \(written), x ]".utf8))).value,
                case .scalar(let read, _) = nodes[0].value
            else {
                Issue.record("\(written) is no scalar")
                continue
            }
            #expect(nodes.count == 2 && Array(read.utf8) == Array(text.utf8), "\(written)")
        }
    }

    @Test func `names are plain where they can be`() {
        #expect(yamlName("a.example") == "a.example" && yamlName("/etc/x.pem") == "/etc/x.pem")
        #expect(yamlName("no") == "\"no\"" && yamlName("::1") == "\"::1\"" && yamlName("1.5") == "\"1.5\"")
    }
}
