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

    @Test(arguments: documents) func `every relative link leads to a file, and to a heading of it`(
        _ document: String
    ) throws {
        let directory = document.split(separator: "/").dropLast().joined(separator: "/")
        for link in Self.links(in: try Tree.text(document)) {
            let path = link.file.isEmpty ? document : directory.isEmpty ? link.file : "\(directory)/\(link.file)"
            #expect(Tree.exists(path), "\(document) links to \(path)")
            guard let anchor = link.anchor, path.hasSuffix(".md"), Tree.exists(path) else { continue }
            #expect(Self.anchors(in: try Tree.text(path)).contains(anchor), "\(document) links to \(path)#\(anchor)")
        }
    }

    struct Link: Equatable {
        /// Empty: the document itself.
        var file: String
        var anchor: String?
    }

    /// The targets of `[text](target)` that are no URLs.
    static func links(in text: String) -> [Link] {
        text.matches(of: /\]\(([^)\s]+)\)/).map { String($0.1) }
            .filter { !$0.contains("://") && !$0.hasPrefix("mailto:") }
            .map { target in
                let parts = target.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false).map(
                    String.init)
                return Link(file: parts[0], anchor: parts.count == 2 ? parts[1] : nil)
            }
    }

    /// What links to the headings of a document are made of: lower case, without punctuation, with hyphens for spaces.
    static func anchors(in text: String) -> Set<String> {
        let headings = text.replacing(/(?s)```.*?```/, with: "").matches(of: /(?m)^#+ (.+)$/)
        return Set(
            headings.map { heading in
                heading.1.lowercased().filter { $0.isLetter || $0.isNumber || "-_ ".contains($0) }
                    .replacing(" ", with: "-")
            })
    }

    @Test func `links and headings are found`() {
        #expect(
            Self.links(in: "[a](b.md#c) and [d](https://e) and [f](g/h.md) and [i](#j)")
                == [Link(file: "b.md", anchor: "c"), Link(file: "g/h.md"), Link(file: "", anchor: "j")])
        #expect(Self.anchors(in: "# A `b.c`: d, 2\n```\n# no\n```\n### E-f\n") == ["a-bc-d-2", "e-f"])
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

    @Test(arguments: TunnelBreak.allCases)
    func `troubleshooting names every reason why a tunnel breaks off`(_ reason: TunnelBreak) throws {
        let text = try Tree.text("docs/troubleshooting.md")
        #expect(text.contains("| `\(reason.rawValue)` | \(reason.explanation) |"))
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
