import Caching
import Message
import Testing

@Suite("RFC 9111 §4.3.1 Sending a Validation Request")
struct ConditionalFieldsTests {
    func sent(_ lines: String...) -> [String] {
        conditionalFields(for: stored(lines)).map { "\($0.0.text): \(text($0.1))" }
    }

    @Test func `every validator is sent as it was received`() {
        #expect(
            sent("ETag: W/\"a\"", "Last-Modified: \(date(-9))")
                == ["If-None-Match: W/\"a\"", "If-Modified-Since: \(date(-9))"])
        #expect(sent("ETag: \"a\"") == ["If-None-Match: \"a\""])
        #expect(
            sent("Last-Modified: Sunday, 06-Nov-94 08:49:37 GMT")
                == ["If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT"])
    }

    @Test func `a value that is not a validator is not sent`() {
        #expect(sent("Date: \(date(0))") == [])
        #expect(sent("ETag: a", "Last-Modified: yesterday") == [])
    }

    @Test func `the client's own conditions are replaced`() {
        for name in [FieldName.ifNoneMatch, .ifModifiedSince, .ifMatch, .ifUnmodifiedSince, .ifRange, .range] {
            #expect(replacedByConditionalFields.contains(name))
        }
        #expect(!replacedByConditionalFields.contains(.accept))
    }
}

@Suite("RFC 9111 §4.3.2 Handling a Received Validation Request, RFC 9110 §13.2.2")
struct PreconditionTests {
    struct Row: Sendable {
        var rule: String
        var request: [String]
        var response: [String]
        var result: Precondition
        init(_ rule: String, _ request: [String], on response: [String] = both, then result: Precondition) {
            (self.rule, self.request, self.response, self.result) = (rule, request, response, result)
        }
    }
    static let both = ["ETag: \"a\"", "Last-Modified: \(date(-100))", "Date: \(date(0))"]
    static let weak = ["ETag: W/\"a\""]
    static let bare = ["Date: \(date(-50))"]

    static let rows = [
        Row("no conditions", [], then: .none),
        Row("If-None-Match, the same tag", ["If-None-Match: \"a\""], then: .notModified),
        Row("another tag", ["If-None-Match: \"b\""], then: .passed),
        Row("one of a list", ["If-None-Match: \"b\", \"a\""], then: .notModified),
        Row("on several lines", ["If-None-Match: \"b\"", "If-None-Match: \"a\""], then: .notModified),
        Row("a list with empty members", ["If-None-Match: ,, \"a\","], then: .notModified),
        Row("*", ["If-None-Match: *"], then: .notModified),
        Row("* without a tag of ours", ["If-None-Match: *"], on: bare, then: .notModified),
        Row("weak comparison, theirs", ["If-None-Match: W/\"a\""], then: .notModified),
        Row("weak comparison, ours", ["If-None-Match: \"a\""], on: weak, then: .notModified),
        Row("weak comparison, both", ["If-None-Match: W/\"a\""], on: weak, then: .notModified),
        Row("tags have case", ["If-None-Match: \"A\""], then: .passed),
        Row("a tag where we have none", ["If-None-Match: \"a\""], on: bare, then: .passed),
        Row("a tag without quotes is none", ["If-None-Match: a"], then: .passed),
        Row("a tag with a comma in it", ["If-None-Match: \"b,\", \"a\""], then: .notModified),
        Row(
            "§13.1.3 If-None-Match goes before If-Modified-Since",
            ["If-None-Match: \"b\"", "If-Modified-Since: \(date(0))"], then: .passed),
        Row("even where it can not be read", ["If-None-Match: x", "If-Modified-Since: \(date(0))"], then: .passed),
        Row(
            "and the other way round", ["If-None-Match: \"a\"", "If-Modified-Since: \(date(-500))"], then: .notModified),
        Row("If-Modified-Since, the same time", ["If-Modified-Since: \(date(-100))"], then: .notModified),
        Row("later", ["If-Modified-Since: \(date(-99))"], then: .notModified),
        Row("earlier", ["If-Modified-Since: \(date(-101))"], then: .passed),
        Row("no date", ["If-Modified-Since: yesterday"], then: .none),
        Row("more than one date", ["If-Modified-Since: \(date(0))", "If-Modified-Since: \(date(0))"], then: .none),
        Row(
            "§4.3.2 our Date where we have no Last-Modified", ["If-Modified-Since: \(date(-50))"], on: bare,
            then: .notModified),
        Row("and earlier than that", ["If-Modified-Since: \(date(-51))"], on: bare, then: .passed),
        Row(
            "§4.3.2 the time of arrival where there is no Date", ["If-Modified-Since: \(date(0))"], on: weak,
            then: .notModified),
        Row("If-Match, the same tag", ["If-Match: \"a\""], then: .passed),
        Row("another tag is the origin's to judge", ["If-Match: \"b\""], then: .failed),
        Row("*", ["If-Match: *"], then: .passed),
        Row("strong comparison, theirs", ["If-Match: W/\"a\""], then: .failed),
        Row("strong comparison, ours", ["If-Match: \"a\""], on: weak, then: .failed),
        Row("a tag where we have none", ["If-Match: \"a\""], on: bare, then: .failed),
        Row("what can not be read", ["If-Match: a"], then: .failed),
        Row("If-Unmodified-Since, the same time", ["If-Unmodified-Since: \(date(-100))"], then: .passed),
        Row("earlier", ["If-Unmodified-Since: \(date(-101))"], then: .failed),
        Row("no date", ["If-Unmodified-Since: yesterday"], then: .none),
        Row("§13.1.4 where we have none", ["If-Unmodified-Since: \(date(-101))"], on: bare, then: .none),
        Row(
            "§13.2.2 If-Match goes before If-Unmodified-Since",
            ["If-Match: \"a\"", "If-Unmodified-Since: \(date(-500))"], then: .passed),
        Row("§13.2.2 then If-None-Match", ["If-Match: \"a\"", "If-None-Match: \"a\""], then: .notModified),
        Row("§13.2.2 a failure comes first", ["If-Match: \"b\"", "If-None-Match: \"a\""], then: .failed),
    ]

    @Test(arguments: rows) func `conditions are evaluated against the stored response`(_ row: Row) {
        for method in [Method.get, .head] {
            let result = evaluate(fields(row.request), method: method, against: stored(row.response), now: noon)
            #expect(result == row.result, "\(row.rule)")
        }
    }

    @Test(arguments: [301, 404, 410, 500] as [UInt16])
    func `§13.2.1: conditions are ignored if the response is not a success`(_ status: UInt16) {
        let response = stored("ETag: \"a\"", status: status)
        #expect(evaluate(fields("If-None-Match: \"a\""), method: .get, against: response, now: noon) == .none)
        #expect(evaluate(fields("If-Match: \"b\""), method: .get, against: response, now: noon) == .none)
    }

    @Test func `conditions of other methods are left to the origin`() {
        #expect(evaluate(fields("If-None-Match: *"), method: .put, against: stored("ETag: \"a\""), now: noon) == .none)
    }

    @Test func `RFC 9110 §15.4.5: a 304 has the fields of a 200, except those that describe content`() {
        let response = fields(
            "Date: x", "Content-Type: a", "ETag: \"a\"", "Last-Modified: y", "Content-Length: 5", "Cache-Control: c",
            "Content-Location: /l", "Expires: e", "Vary: v", "Content-Encoding: gzip", "Content-Language: en", "X: z")
        #expect(
            lines(notModifiedFields(of: response)) == [
                "Date: x", "ETag: \"a\"", "Cache-Control: c", "Content-Location: /l", "Expires: e", "Vary: v", "X: z",
            ])
        #expect(lines(notModifiedFields(of: fields("Last-Modified: y"))) == ["Last-Modified: y"])
    }
}
