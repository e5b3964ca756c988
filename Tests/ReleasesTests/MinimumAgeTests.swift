import Message
import Releases
import Testing

private let now = time("2026-11-23T12:00:00Z")
private func time(_ text: String) -> WallTime { parseTimestamp(text.utf8)! }

@Suite("The minimum age of a release")
struct MinimumAgeTests {
    static let rule: MinimumAge = {
        var rule = MinimumAge(age: Seconds(3 * 86_400))
        rule.packages = [.init(package: PackagePattern("slow*")!, age: Seconds(30 * 86_400))]
        rule.except = [PackagePattern("@acme/*")!, PackagePattern("left-pad")!]
        rule.breakGlass = [
            .init(package: PackagePattern("urgent")!, until: time("2026-11-24"), why: "a hole"),
            .init(package: PackagePattern("expired")!, until: time("2026-11-23T12:00:00Z"), why: "was a hole"),
        ]
        return rule
    }()

    enum Expected { case passes, tooYoung(opens: String) }

    static let rows: [(name: String?, published: String, expected: Expected)] = [
        ("a", "2026-11-20T12:00:00Z", .passes),
        ("a", "2026-11-20T12:00:01Z", .tooYoung(opens: "2026-11-23T12:00:01Z")),
        ("a", "2026-11-23T12:00:00Z", .tooYoung(opens: "2026-11-26T12:00:00Z")),
        // A time in the future is no way past the rule.
        ("a", "2027-01-01", .tooYoung(opens: "2027-01-04T00:00:00Z")),
        ("slowly", "2026-11-20T11:00:00Z", .tooYoung(opens: "2026-12-20T11:00:00Z")),
        ("slowly", "2026-10-20", .passes),
        ("@acme/tool", "2026-11-23", .passes), ("left-pad", "2026-11-23", .passes),
        ("left-pads", "2026-11-23", .tooYoung(opens: "2026-11-26T00:00:00Z")),
        ("@acmes/tool", "2026-11-23", .tooYoung(opens: "2026-11-26T00:00:00Z")),
        ("Left-Pad", "2026-11-23", .tooYoung(opens: "2026-11-26T00:00:00Z")),
        ("urgent", "2026-11-23", .passes),
        ("expired", "2026-11-23", .tooYoung(opens: "2026-11-26T00:00:00Z")),
        // No name, no exception.
        (nil, "2026-11-23", .tooYoung(opens: "2026-11-26T00:00:00Z")), (nil, "2026-11-01", .passes),
    ]

    @Test(arguments: rows) func `a release passes from its age on, or by an exception`(
        _ row: (name: String?, published: String, expected: Expected)
    ) {
        let published = time(row.published)
        let expected: AgeVerdict
        switch row.expected {
        case .passes: expected = .passes
        case .tooYoung(let opens): expected = .refused(.tooYoung(published: published, opens: time(opens)))
        }
        #expect(Self.rule.verdict(on: row.name, of: .file, published: published, now: now) == expected)
        var reporting = Self.rule
        reporting.isReportOnly = true
        let reported = reporting.verdict(on: row.name, of: .file, published: published, now: now)
        if case .refused(let objection) = expected {
            #expect(reported == .reported(objection))
        } else {
            #expect(reported == .passes)
        }
    }

    @Test func `nothing passes that was published at the cut-off date or later, however old it becomes`() {
        var rule = Self.rule
        rule.cutOff = time("2026-11-01")
        func verdict(_ name: String, _ published: String, _ now: WallTime = now) -> AgeVerdict {
            rule.verdict(on: name, of: .file, published: time(published), now: now)
        }
        #expect(verdict("a", "2026-10-31T23:59:59Z") == .passes)
        #expect(verdict("a", "2026-11-01") == .refused(.behindCutOff(published: time("2026-11-01"))))
        #expect(
            verdict("a", "2026-11-01", time("2036-01-01")) == .refused(.behindCutOff(published: time("2026-11-01"))))
        #expect(verdict("left-pad", "2026-11-02") == .passes)
    }

    @Test func `a release without a time passes unless the rule refuses it`() {
        #expect(Self.rule.verdict(on: "a", of: .file, published: nil, now: now) == .passesUndated)
        var rule = Self.rule
        rule.undated = .refuse
        #expect(rule.verdict(on: "a", of: .file, published: nil, now: now) == .refused(.undated))
        #expect(rule.verdict(on: "left-pad", of: .file, published: nil, now: now) == .passes)
        rule.isReportOnly = true
        #expect(rule.verdict(on: "a", of: .file, published: nil, now: now) == .reported(.undated))
    }

    static let names: [(pattern: String, name: String, kind: ReleaseKind, matches: Bool)] = [
        ("zope.interface", "Zope_Interface", .pythonFile, true), ("Zope-*", "zope.interface", .pythonIndex, true),
        ("a--b", "a-b", .pythonFile, true), ("a.b", "a-b", .npmIndex, false), ("@acme/*", "@acme/", .file, true),
        ("*", "anything", .file, true), ("a", "A", .npmIndex, false),
    ]
    @Test(arguments: names) func `names are compared as their ecosystem compares them`(
        _ row: (pattern: String, name: String, kind: ReleaseKind, matches: Bool)
    ) {
        #expect(PackagePattern(row.pattern)!.matches(row.name, of: row.kind) == row.matches)
    }

    @Test(arguments: ["", "a b", "a*b", "**", "a\n"]) func `other patterns are refused`(_ text: String) {
        #expect(PackagePattern(text) == nil)
    }

    static let files: [(file: String, package: String?)] = [
        ("six-1.16.0-py2.py3-none-any.whl", "six"), ("Zope.Interface-5.0-cp39-linux.whl", "zope-interface"),
        ("six-1.16.0-py2.py3-none-any.whl.metadata", "six"), ("old-name-1.0.tar.gz", "old-name"),
        ("old_name-1.0.zip", "old-name"), ("six-1.0-py2.7.egg", "six"), ("six.tar.gz", nil), ("-1.whl", nil),
    ]
    @Test(arguments: files) func `a Python file tells its package`(_ row: (file: String, package: String?)) {
        #expect(pythonPackage(ofFile: row.file) == row.package)
    }

    @Test func `what goes into a head is visible text and no more`() {
        let withheld = Withheld("a\r\nSet-Cookie: b", .undated)
        #expect(withheld.text == "nobody says when a??Set-Cookie: b was published")
        #expect(Withheld(String(repeating: "x", count: 300), .undated).release.count == 200)
    }

    @Test func `a sentence names the release and both times`() {
        let objection = AgeObjection.tooYoung(published: time("2026-11-22"), opens: time("2026-11-25"))
        #expect(
            Withheld("a 1.0", objection).text
                == "a 1.0 was published 2026-11-22T00:00:00Z and opens 2026-11-25T00:00:00Z")
    }
}
