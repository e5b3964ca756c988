/// docs/conformance.md: what the RFCs require of a cache and a proxy, and what answers for it; then the suites by RFC.
func renderConformance(_ tables: [(rfc: Int, rows: [Requirement])], suites: [Suite]) -> String {
    var lines = [
        "# Conformance", "",
        "What the RFCs require of a shared cache and of a proxy, in our own words, and the tests that hold us to it, or the decision that stands in",
        "their place. Written by `LARDER_RENDER=1 swift test --filter Conformance` from the tables in `Tests/ArchitectureTests/Conformance`; the same",
        "test fails where a row has neither, or names a test that is not there.",
    ]
    for table in tables {
        let tested = table.rows.count { if case .tests = $0.answer { true } else { false } }
        lines += [
            "", "## RFC \(table.rfc)", "",
            "\(table.rows.count) requirements: \(tested) with tests, \(table.rows.count - tested) by decision.", "",
            "| § | | requirement | tests |", "|---|---|---|---|",
        ]
        lines += table.rows.map {
            "| \($0.section) | \($0.level.rawValue) | \(cell($0.text)) | \(cell(text(of: $0.answer))) |"
        }
    }
    lines += ["", "## Suites by RFC", "", "| suite | file |", "|---|---|"]
    lines += suites.map { "| \(cell($0.name)) | `\($0.path)` |" }
    return lines.joined(separator: "\n") + "\n"
}

private func text(of answer: Requirement.Answer) -> String {
    switch answer {
    case .tests(let tests): tests.joined(separator: "; ")
    case .decision(let reason): "decision: " + reason
    }
}

private func cell(_ text: String) -> String { text.replacing("|", with: "\\|").replacing("*", with: "\\*") }
