/// One Swift file of a test target.
struct TestFile: Sendable {
    let path: String
    let text: String
    var name: String { path.split(separator: "/").last.map(String.init) ?? "" }

    /// Whether words stand in a literal or in the name of a test: not in a comment.
    func names(_ words: String) -> Bool {
        text.split(separator: "\n").contains { line in
            line.contains(words) && line.matches(of: /"(?:[^"\\]|\\.)*"|`[^`]*`/).contains { $0.0.contains(words) }
        }
    }

    /// Without the tables of requirements themselves, which would prove themselves.
    static let all: [TestFile] = Tree.files(below: "Tests", suffix: ".swift").compactMap { path in
        guard !path.contains("/Conformance/") else { return nil }
        return (try? Tree.text(path)).map { TestFile(path: path, text: $0) }
    }
}

/// `"StorabilityTests: §3 interim"`: a file, and words in it.
struct Proof: Equatable {
    let file: String
    let words: String

    init(file: String, words: String) {
        self.file = file
        self.words = words
    }

    init?(_ text: String) {
        guard let colon = text.firstRange(of: ": ") else { return nil }
        file = text[..<colon.lowerBound] + ".swift"
        words = String(text[colon.upperBound...])
    }
}

/// A suite whose name begins with an RFC.
struct Suite: Sendable {
    let rfc: Int
    let name: String
    let path: String

    static func read(_ file: TestFile) -> [Suite] {
        file.text.matches(of: /@Suite\(\s*"(RFC (\d+)[^"]*)"/).compactMap { match in
            Int(match.2).map { Suite(rfc: $0, name: String(match.1), path: file.path) }
        }
    }

    /// By RFC, then by name, which begins with the section.
    static let all: [Suite] = TestFile.all.flatMap(read).sorted {
        ($0.rfc, $0.name, $0.path) < ($1.rfc, $1.name, $1.path)
    }
}
