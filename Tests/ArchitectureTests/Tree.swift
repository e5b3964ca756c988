import Foundation
import Testing

/// The source tree this test was built from: the tests read what was written, not what was compiled.
enum Tree {
    /// Tests/ArchitectureTests/Tree.swift, three levels below.
    static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    static func exists(_ path: String) -> Bool {
        FileManager.default.fileExists(atPath: root.appendingPathComponent(path).path)
    }

    /// Paths from the root, sorted, of all files below a directory whose names end so.
    static func files(below directory: String, suffix: String) -> [String] {
        let base = root.appendingPathComponent(directory).path
        guard let walk = FileManager.default.enumerator(atPath: base) else { return [] }
        return walk.compactMap { $0 as? String }.filter { $0.hasSuffix(suffix) }.map { "\(directory)/\($0)" }.sorted()
    }
}

/// One Swift file of a target.
struct SourceFile: CustomTestStringConvertible, Sendable {
    let path: String
    let text: String
    /// The directory below Sources: the name of the target.
    var target: String { String(path.split(separator: "/")[1]) }
    var testDescription: String { path }

    /// The modules it imports, whatever stands before `import`.
    var imports: [String] {
        text.split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ").prefix { !$0.hasPrefix("//") }
            guard let place = words.firstIndex(of: "import"), place + 1 < words.endIndex else { return nil }
            let isImport = words[..<place].allSatisfy {
                $0.hasPrefix("@") || ["package", "public", "internal", "private", "fileprivate"].contains($0)
            }
            guard isImport else { return nil }
            // `import struct Module.Name` names a kind first.
            let kinds: Set<Substring> = ["struct", "class", "enum", "protocol", "typealias", "func", "let", "var"]
            let name = kinds.contains(words[place + 1]) ? words.dropFirst(place + 2).first : words[place + 1]
            return name?.split(separator: ".").first.map(String.init)
        }
    }

    static let all: [SourceFile] = Tree.files(below: "Sources", suffix: ".swift").compactMap { path in
        (try? Tree.text(path)).map { SourceFile(path: path, text: $0) }
    }

    static func of(_ targets: Set<String>) -> [SourceFile] { all.filter { targets.contains($0.target) } }
}
