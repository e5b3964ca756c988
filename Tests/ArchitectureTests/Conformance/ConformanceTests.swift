import Foundation
import Testing

@Suite("Conformance: each requirement has its tests or a decision")
struct ConformanceTests {
    static let document = "docs/conformance.md"
    static let rows = Requirements.all.flatMap { table in table.rows.map { (table.rfc, $0) } }

    @Test(arguments: rows.indices) func `the tests that are named are there`(_ index: Int) throws {
        let (rfc, row) = Self.rows[index]
        let place = "RFC \(rfc) §\(row.section) \(row.text)"
        switch row.answer {
        case .decision(let reason): #expect(reason.count > 20, "\(place): a decision says why")
        case .tests(let tests):
            #expect(!tests.isEmpty, "\(place): neither a test nor a decision")
            for test in tests {
                let proof = try #require(Proof(test), "\(place): \(test)")
                let files = TestFile.all.filter { $0.name == proof.file }
                #expect(!files.isEmpty, "\(place): no file is called \(proof.file)")
                #expect(files.contains { $0.names(proof.words) }, "\(place): \(test) is not there")
            }
        }
    }

    @Test func `the sections stand in their order, and nothing twice`() {
        for (rfc, rows) in Requirements.all {
            let sections = rows.map { $0.section.split(separator: ".").compactMap { Int($0) } }
            let isOrdered = zip(sections, sections.dropFirst()).allSatisfy { !$1.lexicographicallyPrecedes($0) }
            #expect(isOrdered, "RFC \(rfc)")
            #expect(Set(rows.map { $0.section + $0.level.rawValue + $0.text }).count == rows.count, "RFC \(rfc)")
        }
    }

    @Test func `every section of RFC 9111 that binds a cache has a row`() {
        let sections: Set<String> = [
            "1.2.2", "2", "3", "3.1", "3.2", "3.3", "3.4", "3.5", "4", "4.1", "4.2", "4.2.1", "4.2.2", "4.2.3", "4.2.4",
            "4.3.1", "4.3.2", "4.3.3", "4.3.4", "4.3.5", "4.4", "5.1", "5.2", "5.2.3", "5.3", "5.4", "5.5", "7.3",
        ]
        let directives = (1...7).map { "5.2.1.\($0)" } + (1...10).map { "5.2.2.\($0)" }
        #expect(Set(Requirements.all[0].rows.map(\.section)) == sections.union(directives))
    }

    @Test func `LARDER_RENDER=1 writes the document that this compares`() throws {
        let text = renderConformance(Requirements.all, suites: Suite.all)
        if ProcessInfo.processInfo.environment["LARDER_RENDER"] == "1" {
            let file = Tree.root.appendingPathComponent(Self.document)
            try text.write(to: file, atomically: true, encoding: .utf8)
        }
        #expect(try Tree.text(Self.document) == text, "LARDER_RENDER=1 swift test --filter Conformance writes it anew")
    }

    @Test func `suites and their sections are read from the sources`() {
        let text =
            "@Suite(\"RFC 9111 §3 Storing\")\nstruct A {}\n@Suite(\"Other\") struct B {}\n@Suite(\n    \"RFC 9110 §8.8.3, RFC 9111 §2 x\")"
        let suites = Suite.read(TestFile(path: "Tests/T/F.swift", text: text))
        #expect(suites.map(\.name) == ["RFC 9111 §3 Storing", "RFC 9110 §8.8.3, RFC 9111 §2 x"])
        #expect(suites.map(\.rfc) == [9111, 9110])
        #expect(Proof("A: b: c") == Proof(file: "A.swift", words: "b: c"))
        #expect(Proof("A") == nil)
        let file = TestFile(path: "Tests/T/F.swift", text: "(\"a rule\", 1)  // a comment\nfunc `a name`() {}")
        #expect(file.names("a rule") && file.names("a name"))
        #expect(!file.names("a comment") && !file.names("func"))
    }
}
