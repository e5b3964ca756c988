import Access
import Foundation
import Framing
import Testing
import Transaction

@Suite("Architecture: the documents")
struct DocumentTests {
    static let documents =
        ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"].filter(Tree.exists)
        + Tree.files(below: "docs", suffix: ".md")

    @Test func `the documents that the README promises are there`() {
        for name in ["architecture", "admin", "access", "caching", "troubleshooting", "configuration"] {
            #expect(Self.documents.contains("docs/\(name).md"))
        }
        #expect(Self.documents.contains("README.md"))
        #expect(Self.documents.contains("CHANGELOG.md"))
    }

    @Test(arguments: documents) func `every relative link leads to a file`(_ document: String) throws {
        let directory = document.split(separator: "/").dropLast().joined(separator: "/")
        for link in Self.links(in: try Tree.text(document)) {
            let path = directory.isEmpty ? link : "\(directory)/\(link)"
            #expect(Tree.exists(path), "\(document) links to \(link)")
        }
    }

    /// The targets of `[text](target)` that are no URLs, without their anchors.
    static func links(in text: String) -> [String] {
        text.matches(of: /\]\(([^)\s]+)\)/).map { String($0.1) }
            .filter { !$0.contains("://") && !$0.hasPrefix("#") && !$0.hasPrefix("mailto:") }
            .compactMap { $0.split(separator: "#").first.map(String.init) }
    }

    @Test func `links are found`() {
        #expect(Self.links(in: "[a](b.md#c) and [d](https://e) and [f](g/h.md)") == ["b.md", "g/h.md"])
    }

    /// `Sources/Server/origin/Fetch.swift` and its like, wherever they stand between backquotes.
    @Test(arguments: documents) func `every source file that is named exists`(_ document: String) throws {
        for match in try Tree.text(document).matches(of: /`((?:Sources|Tests|FuzzTesting|conf|docker)\/[^`*{\s]+)`/) {
            #expect(Tree.exists(String(match.1)), "\(document) names \(match.1)")
        }
    }

    /// In the tables of architecture.md files and suites stand without their directory.
    @Test func `every Swift file that the architecture names exists`() throws {
        var files: Set<String> = ["Package.swift"]
        for directory in ["Sources", "Tests", "FuzzTesting"] {
            for path in Tree.files(below: directory, suffix: ".swift") {
                files.insert(String(path.split(separator: "/").last ?? ""))
            }
        }
        let named = try Tree.text("docs/architecture.md").matches(of: /([A-Za-z0-9+]+\.swift)/).map { String($0.1) }
        #expect(named.count > 50)
        for name in named { #expect(files.contains(name), "docs/architecture.md names \(name)") }
    }

    @Test(arguments: Refusal.allCases) func `troubleshooting names every refusal`(_ refusal: Refusal) throws {
        let text = try Tree.text("docs/troubleshooting.md")
        #expect(text.contains("| `\(refusal.name)` | \(refusal.status) | `\(refusal.proxyStatusError)` |"))
    }

    @Test(arguments: CloseReason.allCases) func `troubleshooting names every reason to close`(_ reason: CloseReason)
        throws
    {
        let text = try Tree.text("docs/troubleshooting.md")
        #expect(text.contains("| `\(reason.name)` | \(reason.explanation) |"))
    }

    @Test(arguments: FramingError.allCases)
    func `troubleshooting names every violation of framing`(_ error: FramingError) throws {
        let text = try Tree.text("docs/troubleshooting.md")
        #expect(text.contains("| `\(error.reason)` | \(error.requestStatus) |"))
    }

    @Test(arguments: DenialReason.allCases) func `troubleshooting names every denial`(_ reason: DenialReason) throws {
        #expect(try Tree.text("docs/troubleshooting.md").contains("| `\(reason.rawValue)` |"))
    }

    @Test func `every decision has its number once`() {
        let numbers = Tree.files(below: "docs/decisions", suffix: ".md").compactMap {
            $0.split(separator: "/").last?.prefix(4)
        }
        #expect(numbers.count >= 7)
        #expect(Set(numbers).count == numbers.count)
        #expect(numbers.sorted() == (1...numbers.count).map { ("000" + String($0)).suffix(4) })
    }
}
