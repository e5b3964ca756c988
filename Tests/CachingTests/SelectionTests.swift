import Caching
import Message
import Testing

@Suite("RFC 9111 §4.3.4 Freshening Stored Responses: which of several")
struct SelectionTests {
    static let old = "Date: \(date(-100))"
    static let new = "Date: \(date(-50))"
    static let modified = "Last-Modified: \(date(-500))"
    static let rows: [(rule: String, update: [String], stored: [[String]], selected: [Int])] = [
        (
            "all with the strong validator", ["ETag: \"a\""], [["ETag: \"a\""], ["ETag: \"b\""], ["ETag: \"a\""]],
            [0, 2]
        ),
        ("none with it: nothing is updated", ["ETag: \"c\""], [["ETag: \"a\""], ["ETag: \"b\""]], []),
        ("a weak one in store is not that", ["ETag: \"a\""], [["ETag: W/\"a\""]], []),
        (
            "of a weak validator the most recent", ["ETag: W/\"a\""],
            [["ETag: W/\"a\"", old], ["ETag: \"a\"", new], ["ETag: W/\"b\""]], [1]
        ),
        ("wherever it stands", ["ETag: W/\"a\""], [["ETag: W/\"a\"", new], ["ETag: W/\"a\"", old]], [0]),
        ("of a date the most recent", [modified], [[modified, old], [modified, new]], [1]),
        ("a date that none has", [modified], [["Last-Modified: \(date(-400))"]], []),
        ("no validator, one without", ["X: y"], [[old]], [0]),
        ("no validator, two without", ["X: y"], [[old], [new]], []),
        ("no validator, one with", ["X: y"], [["ETag: \"a\""]], []),
        ("nothing stored", ["ETag: \"a\""], [], []),
    ]

    @Test(arguments: rows) func `a 304 updates the responses that it is about`(
        _ row: (rule: String, update: [String], stored: [[String]], selected: [Int])
    ) {
        let responses = row.stored.map { stored($0) }
        #expect(selected(by: fields(row.update), among: responses, received: noon) == row.selected, "\(row.rule)")
    }

    @Test func `§4.3.1: all tags are sent once, and no date`() {
        let responses = [["ETag: \"a\"", Self.modified], ["ETag: W/\"b\""], [Self.modified], ["ETag: \"a\""]].map {
            stored($0)
        }
        let sent = conditionalFields(forOneOf: responses).map { "\($0.0.text): \(text($0.1))" }
        #expect(sent == ["If-None-Match: \"a\", W/\"b\""])
        #expect(conditionalFields(forOneOf: [stored(Self.modified)]).isEmpty)
        #expect(conditionalFields(forOneOf: []).isEmpty)
    }
}
