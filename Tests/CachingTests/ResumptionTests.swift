import Caching
import Message
import Testing

@Suite("RFC 9110 §13.1.5 If-Range, §15.3.7 206: asking for the rest")
struct ResumptionTests {
    static func asked(_ lines: [String], _ start: Int, _ end: Int?) -> [String]? {
        partConditions(for: stored(lines), from: start, to: end)?.map { "\($0.0.text): \(text($0.1))" }
    }

    @Test func `the rest is requested with a strong validator`() {
        #expect(Self.asked(["ETag: \"a\""], 10, nil) == ["Range: bytes=10-", "If-Range: \"a\""])
        #expect(Self.asked(["ETag: \"a\""], 10, 20) == ["Range: bytes=10-19", "If-Range: \"a\""])
        #expect(Self.asked(["ETag: \"a\""], 0, 1) == ["Range: bytes=0-0", "If-Range: \"a\""])
        let modified = "Sunday, 06-Nov-94 08:49:30 GMT"
        #expect(Self.asked(["Last-Modified: \(modified)"], 5, nil) == ["Range: bytes=5-", "If-Range: \(modified)"])
    }

    @Test func `§13.1.5: the rest is never requested with a weak validator`() {
        #expect(Self.asked(["ETag: W/\"a\""], 10, nil) == nil)
        #expect(Self.asked(["Last-Modified: \(date(0))", "Date: \(date(0))"], 10, nil) == nil)
        #expect(Self.asked([], 10, nil) == nil)
    }

    @Test func `§14.3: the rest is not requested if ranges are refused or nothing is missing`() {
        #expect(Self.asked(["ETag: \"a\"", "Accept-Ranges: None"], 10, nil) == nil)
        #expect(Self.asked(["ETag: \"a\"", "Accept-Ranges: bytes"], 10, nil) != nil)
        #expect(Self.asked(["ETag: \"a\""], 10, 10) == nil)
        #expect(Self.asked(["ETag: \"a\""], 11, 10) == nil)
    }

    struct Row: Sendable {
        var rule: String
        var status: UInt16
        var fields: [String]
        var stored: [String]
        var end: Int?
        var total: Int?
        var answer: ResumeAnswer
        init(
            _ rule: String, _ status: UInt16 = 206, gives fields: [String], to stored: [String] = ["ETag: \"a\""],
            end: Int? = nil, total: Int? = 100, then answer: ResumeAnswer
        ) {
            (self.rule, self.status, self.fields, self.stored) = (rule, status, fields, stored)
            (self.end, self.total, self.answer) = (end, total, answer)
        }
    }
    static let rest = "Content-Range: bytes 10-99/100"
    static let modified = ["Last-Modified: \(date(-9))"]
    static let rows = [
        Row("the rest", gives: [rest, "ETag: \"a\""], then: .goesOn(10..<100, total: 100)),
        Row("the total was not known", gives: [rest, "ETag: \"a\""], total: nil, then: .goesOn(10..<100, total: 100)),
        Row(
            "less than the rest", gives: ["Content-Range: bytes 10-19/100", "ETag: \"a\""],
            then: .goesOn(10..<20, total: 100)),
        Row(
            "a hole", gives: ["Content-Range: bytes 10-19/100", "ETag: \"a\""], end: 20,
            then: .goesOn(10..<20, total: 100)),
        Row("more than the hole", gives: [rest, "ETag: \"a\""], end: 20, then: .refused),
        Row("another start", gives: ["Content-Range: bytes 0-99/100", "ETag: \"a\""], then: .refused),
        Row("another total", gives: ["Content-Range: bytes 10-98/99", "ETag: \"a\""], then: .changed),
        Row("no total", gives: ["Content-Range: bytes 10-99/*", "ETag: \"a\""], then: .refused),
        Row("no place", gives: ["ETag: \"a\""], then: .refused),
        Row("another tag", gives: [rest, "ETag: \"b\""], then: .changed),
        Row("a weak tag", gives: [rest, "ETag: W/\"a\""], then: .changed),
        Row("§15.3.7 no tag though we sent one", gives: [rest], then: .changed),
        Row("another coding", gives: [rest, "ETag: \"a\"", "Content-Encoding: gzip"], then: .changed),
        Row(
            "the same coding", gives: [rest, "ETag: \"a\"", "Content-Encoding: gzip"],
            to: ["ETag: \"a\"", "Content-Encoding: gzip"], then: .goesOn(10..<100, total: 100)),
        Row(
            "a coding left out: servers give one tag to all of them", gives: [rest, "ETag: \"a\""],
            to: ["ETag: \"a\"", "Content-Encoding: gzip"], then: .changed),
        Row("the same date", gives: [rest] + modified, to: modified, then: .goesOn(10..<100, total: 100)),
        Row("§15.3.7 the date may be left out", gives: [rest], to: modified, then: .goesOn(10..<100, total: 100)),
        Row("another date", gives: [rest, "Last-Modified: \(date(-8))"], to: modified, then: .changed),
        Row("a tag where there was none", gives: [rest, "ETag: \"a\""], to: modified, then: .changed),
        Row("several parts", gives: ["Content-Type: multipart/byteranges; boundary=x", "ETag: \"a\""], then: .refused),
        Row("the whole once more", 200, gives: ["ETag: \"b\""], then: .changed),
        Row("416, as long as it was", 416, gives: ["Content-Range: bytes */100"], then: .refused),
        Row("416, and shorter", 416, gives: ["Content-Range: bytes */5"], then: .changed),
        Row("416 without a word", 416, gives: [], then: .refused),
        Row("gone", 404, gives: [], then: .changed),
        Row("gone for good", 410, gives: [], then: .changed),
        Row("an error", 503, gives: [], then: .refused),
        Row("credentials", 401, gives: [], then: .refused),
        Row("elsewhere", 302, gives: [], then: .refused),
    ]

    @Test(arguments: rows) func `a response continues only one that is equal byte by byte`(_ row: Row) {
        let answer = continues(
            status: row.status, fields: fields(row.fields), stored: stored(row.stored), from: 10, to: row.end,
            total: row.total)
        #expect(answer == row.answer, "\(row.rule)")
    }
}
