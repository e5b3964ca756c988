import Message
import Releases
import Testing

private let now = parseTimestamp("2026-11-23T12:00:00Z".utf8)!

private func filtered(
    _ text: String, _ kind: ReleaseKind, _ rule: MinimumAge = MinimumAge(age: Seconds(3 * 86_400)),
    of name: String = "a"
) throws -> FilteredIndex {
    try filterIndex(Array(text.utf8), kind, of: name, by: rule, now: now)
}

extension FilteredIndex {
    fileprivate var string: String? { text.map { String(decoding: $0, as: UTF8.self) } }
    /// Without what npm is told of the versions that were removed.
    fileprivate var withoutRestrictions: String? {
        string?.replacing(/,"policyRestrictions":\{"message":"[^"]*","versions":\{("[^"]*":\{[^}]*\},?)*\}\}/, with: "")
    }
}

@Suite("The document about an npm package, without versions that are too young")
struct NpmIndexTests {
    static let rows: [(text: String, expected: String?)] = [
        // Nothing is too young.
        (#"{"versions":{"1.0.0":{}},"time":{"1.0.0":"2020-01-01T00:00:00.000Z"}}"#, nil),
        // The last, the first and the only member; every other byte stays.
        (
            #"{ "n": 1.50e+3, "versions": { "1.0.0": {"a": [1, {}]}, "2.0.0": {} }, "time": {"1.0.0":"2020-01-01T00:00:00Z","2.0.0":"2026-11-23T00:00:00Z"}}"#,
            #"{ "n": 1.50e+3, "versions": { "1.0.0": {"a": [1, {}]} }, "time": {"1.0.0":"2020-01-01T00:00:00Z"}}"#
        ),
        (
            #"{"time":{"2.0.0":"2026-11-23T00:00:00Z", "1.0.0":"2020-01-01T00:00:00Z"},"versions":{"2.0.0":{}, "1.0.0":{}}}"#,
            #"{"time":{"1.0.0":"2020-01-01T00:00:00Z"},"versions":{"1.0.0":{}}}"#
        ),
        (
            #"{"versions":{"2.0.0":{}},"time":{"2.0.0":"2026-11-23T00:00:00Z","modified":"2026-11-23T00:00:00Z"},"dist-tags":{"latest":"2.0.0"}}"#,
            #"{"versions":{},"time":{"modified":"2026-11-23T00:00:00Z"},"dist-tags":{}}"#
        ),
        // `latest` moves to the highest release that is not higher, and other tags go.
        (
            #"{"dist-tags":{"beta":"3.0.0-b","latest":"2.0.0","old":"1.2.0"},"versions":{"1.2.0":{},"1.10.0":{},"2.0.0":{},"3.0.0-b":{},"9.0.0":{},"1.11.0-rc":{}},"time":{"1.2.0":"2020-01-01","1.10.0":"2020-01-01","2.0.0":"2026-11-22","3.0.0-b":"2026-11-22","9.0.0":"2020-01-01","1.11.0-rc":"2020-01-01"}}"#,
            #"{"dist-tags":{"latest":"1.10.0","old":"1.2.0"},"versions":{"1.2.0":{},"1.10.0":{},"9.0.0":{},"1.11.0-rc":{}},"time":{"1.2.0":"2020-01-01","1.10.0":"2020-01-01","9.0.0":"2020-01-01","1.11.0-rc":"2020-01-01"}}"#
        ),
        // Only prereleases are left.
        (
            #"{"dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0-a.10":{},"1.0.0-a.9":{},"1.0.0":{}},"time":{"1.0.0-a.10":"2020-01-01","1.0.0-a.9":"2020-01-01","1.0.0":"2026-11-22"}}"#,
            #"{"dist-tags":{"latest":"1.0.0-a.10"},"versions":{"1.0.0-a.10":{},"1.0.0-a.9":{}},"time":{"1.0.0-a.10":"2020-01-01","1.0.0-a.9":"2020-01-01"}}"#
        ),
        // Names with escapes are the names that clients read.
        (
            #"{"ver\u0073ions":{"2.0.\u0030":{}, "1.0.0":{}},"time":{"2.0.0":"2026-11-23T00:00:00Z","1.0.0":"2020-01-01"}}"#,
            #"{"ver\u0073ions":{"1.0.0":{}},"time":{"1.0.0":"2020-01-01"}}"#
        ),
        // Of two times the later counts; a version that occurs twice goes twice.
        (
            #"{"versions":{"1.0.0":{},"1.0.0":{}},"time":{"1.0.0":"2020-01-01","1.0.0":"2026-11-22"}}"#,
            #"{"versions":{},"time":{}}"#
        ),
        // The abbreviated document has no times.
        (#"{"versions":{"1.0.0":{}},"modified":"2026-11-23T00:00:00Z"}"#, nil),
        (#"{"error":"not found"}"#, nil), (#"{"versions":[],"time":7}"#, nil),
    ]

    @Test(arguments: rows) func `what is too young is gone, and nothing else changes`(
        _ row: (text: String, expected: String?)
    ) throws {
        #expect(try filtered(row.text, .npmIndex).withoutRestrictions == row.expected)
    }

    @Test func `npm is told which versions it must not install, and why`() throws {
        let text = #"{"versions":{"2.0.0":{},"\"":{}},"time":{"2.0.0":"2026-11-22","\"":"2026-11-22"}}"#
        #expect(
            try filtered(text, .npmIndex).string
                == #"{"versions":{},"policyRestrictions":{"message":"larder: a 2.0.0 was published 2026-11-22T00:00:00Z and opens "#
                + #"2026-11-25T00:00:00Z; a \" was published 2026-11-22T00:00:00Z and opens 2026-11-25T00:00:00Z","versions":{"#
                + #""\"":{"version":"\""},"2.0.0":{"version":"2.0.0"}}},"time":{}}"#)
        let restricted = #"{"versions":{"2.0.0":{}},"policyRestrictions":{},"time":{"2.0.0":"2026-11-22"}}"#
        #expect(try filtered(restricted, .npmIndex).string == #"{"versions":{},"policyRestrictions":{},"time":{}}"#)
    }

    @Test func `the result says what was removed and when it changes`() throws {
        let text =
            #"{"versions":{"1.0.0":{},"2.0.0":{},"3.0.0":{}},"time":{"2.0.0":"2026-11-22","3.0.0":"2026-11-21"}}"#
        var result = try filtered(text, .npmIndex)
        #expect(result.withheld.map(\.release) == ["a 2.0.0", "a 3.0.0"])
        #expect(result.changesAt == parseTimestamp("2026-11-24".utf8))
        #expect(result.undatedCount == 1)
        var rule = MinimumAge(age: Seconds(3 * 86_400))
        rule.isReportOnly = true
        result = try filtered(text, .npmIndex, rule)
        #expect(result.text == nil && result.withheld.count == 2)
        rule.isReportOnly = false
        rule.undated = .refuse
        #expect(try filtered(text, .npmIndex, rule).withheld.count == 3)
        rule.breakGlass = [
            .init(package: PackagePattern("a")!, until: parseTimestamp("2026-11-23T13:00:00Z".utf8)!, why: "")
        ]
        result = try filtered(text, .npmIndex, rule)
        #expect(result.text == nil && result.changesAt == parseTimestamp("2026-11-23T13:00:00Z".utf8))
    }

    /// A document at a path that may be anything, and whether it has the form of the one about a package.
    static let documents: [(text: String, isIndex: Bool)] = [
        (#"{"versions":{"2.0.0":{}},"time":{"2.0.0":"2026-11-22"}}"#, true),
        (#"{"time":{"2.0.0":"2026-11-22"},"dist-tags":{},"versions":{"2.0.0":{}}}"#, true),
        // About a version, a list, and others that have such a member.
        (#"{"name":"a","version":"2.0.0","dist":{},"time":{"2.0.0":"2026-11-22"}}"#, false),
        (#"{"versions":["2.0.0"],"time":{"2.0.0":"2026-11-22"}}"#, false),
        (#"{"versions":{"2.0.0":{}},"time":"2026-11-22"}"#, false), (#"{"versions":{"2.0.0":{}}}"#, false),
        (#"[{"versions":{"2.0.0":{}},"time":{"2.0.0":"2026-11-22"}}]"#, false), ("{", false), ("", false),
        (#"{"a":{"versions":{"2.0.0":{}},"time":{"2.0.0":"2026-11-22"}}}"#, false),
    ]
    @Test(arguments: documents) func `where the path does not tell, the form does`(
        _ row: (text: String, isIndex: Bool)
    ) throws {
        let result = try filtered(row.text, .npmDocument)
        #expect((result.text != nil) == row.isIndex && (result.withheld.map(\.release) == ["a 2.0.0"]) == row.isIndex)
    }

    @Test func `an index of that form that is ambiguous is refused`() {
        let text = #"{"versions":{},"time":{},"versions":{}}"#
        #expect(throws: IndexError.ambiguous) { try filtered(text, .npmDocument) }
    }

    static let broken: [String] = [
        "", "[]", "{", #"{"versions":{}"#, #"{"versions":{}}x"#, #"{"versions":{"1.0.0":}}"#, #"{"versions":{"a":1,}}"#,
        #"{"versions":{},"versions":{}}"#, #"{"time":{},"time":{}}"#, #"{"dist-tags":{},"dist-tags":{}}"#,
        String(repeating: #"{"a":"#, count: 300),
    ]
    @Test(arguments: broken) func `what is no such document, or more than one, is refused`(_ text: String) {
        #expect(throws: IndexError.self) { try filtered(text, .npmIndex) }
    }
}

@Suite("The index of a Python project, without files that are too young")
struct PythonIndexTests {
    static let rows: [(text: String, expected: String?)] = [
        (
            #"{"files":[{"filename":"a-1.0.tar.gz","upload-time":"2020-01-01T00:00:00.000000Z"}],"versions":["1.0"]}"#,
            nil
        ),
        (
            #"{ "files": [ {"filename":"a-1.0.tar.gz","upload-time":"2020-01-01T00:00:00Z"}, {"upload-time":"2026-11-23T00:00:00Z","filename":"A-2.0-py3-none-any.whl"} ], "versions": [ "1.0", "2.0" ], "n": 007.0e1 }"#
                .replacing("007.0e1", with: "7.0e1"),
            #"{ "files": [ {"filename":"a-1.0.tar.gz","upload-time":"2020-01-01T00:00:00Z"} ], "versions": [ "1.0" ], "n": 7.0e1 }"#
        ),
        // A version stays with the last of its files.
        (
            #"{"files":[{"filename":"a-1.0.tar.gz","upload-time":"2026-11-23"},{"filename":"a-1.0-py3-none-any.whl","upload-time":"2020-01-01"}],"versions":["1.0"]}"#,
            #"{"files":[{"filename":"a-1.0-py3-none-any.whl","upload-time":"2020-01-01"}],"versions":["1.0"]}"#
        ),
        // Of two times the later counts.
        (
            #"{"files":[{"filename":"a-1.0.zip","upload-time":"2020-01-01","upload-time":"2026-11-23"}]}"#,
            #"{"files":[]}"#
        ),
        (#"{"files":[{"filename":"a-1.0.zip"},7]}"#, nil), (#"{"meta":{}}"#, nil),
        (#"{"files":[{"filename":"a-1.0.zip","upload-time":"2026-11-23"},7]}"#, #"{"files":[7]}"#),
    ]

    @Test(arguments: rows) func `what is too young is gone, and nothing else changes`(
        _ row: (text: String, expected: String?)
    ) throws {
        #expect(try filtered(row.text, .pythonIndex).string == row.expected)
    }

    @Test(arguments: ["<html>", #"{"files":[],"files":[]}"#, #"{"files":[}"#]) func `anything else is refused`(
        _ text: String
    ) {
        #expect(throws: IndexError.self) { try filtered(text, .pythonIndex) }
    }
}
