import Caching
import Message
import Testing

@Suite("RFC 9110 §14.2 Range, §13.1.5 If-Range, from complete responses")
struct RangeSelectionTests {
    static let strong = ["ETag: \"a\"", "Last-Modified: \(date(-100))", "Date: \(date(0))"]

    func select(
        _ request: [String], of response: [String] = strong, status: UInt16 = 200, method: Method = .get,
        length: UInt64 = 100
    ) -> RangeSelection {
        selectRange(
            fields(request), method: method, stored: stored(response, status: status), length: length, now: noon)
    }

    static let rows: [(range: String, selection: RangeSelection)] = [
        ("bytes=0-9", .single(0..<10)), ("bytes=90-", .single(90..<100)), ("bytes=-5", .single(95..<100)),
        ("bytes=0-999", .single(0..<100)), ("bytes=-999", .single(0..<100)), ("bytes=99-99", .single(99..<100)),
        ("bytes=0-18446744073709551615", .single(0..<100)), ("bytes=100-", .unsatisfiable),
        ("bytes=200-300", .unsatisfiable), ("bytes=-0", .unsatisfiable), ("bytes=100-, 200-", .unsatisfiable),
        ("bytes=0-1,5-6", .multiple([0..<2, 5..<7])), ("bytes=5-6, 0-1", .multiple([5..<7, 0..<2])),
        ("bytes=0-1,200-", .single(0..<2)), ("bytes=0-,0-", .whole), ("bytes=0-,-1", .whole), ("bytes=9-5", .whole),
        ("bytes=a-b", .whole), ("bytes=", .whole), ("bytes", .whole), ("items=0-5", .whole), ("", .whole),
        ("bytes=99999999999999999999999-", .unsatisfiable), ("bytes=0-99999999999999999999999", .single(0..<100)),
        ("bytes=-99999999999999999999999", .single(0..<100)), ("bytes=9223372036854775807-", .unsatisfiable),
        ("bytes=-9223372036854775808", .single(0..<100)), ("bytes=98-9223372036854775807", .single(98..<100)),
    ]

    @Test(arguments: rows) func `a range selects the bytes that exist`(
        _ row: (range: String, selection: RangeSelection)
    ) {
        let selection = select(["Range: " + row.range])
        #expect(selection == row.selection, "\(row.range)")
    }

    @Test func `a request without Range asks for the whole`() { #expect(select([]) == .whole) }

    /// §14.1.2: a suffix that is not zero is satisfiable, and if the content is shorter, all of it is meant. No 206 can say that it has none of no bytes.
    @Test(
        arguments: [
            ("bytes=-5", .whole), ("bytes=-1", .whole), ("bytes=-5, -1", .whole), ("bytes=0-, -5", .whole),
            ("bytes=-5, 3-4", .whole), ("bytes=-9223372036854775808", .whole), ("bytes=0-", .unsatisfiable),
            ("bytes=0-0", .unsatisfiable), ("bytes=-0", .unsatisfiable), ("bytes=5-, -0", .unsatisfiable),
        ] as [(String, RangeSelection)])
    func `a suffix of empty content is all of it, other ranges have nothing`(
        _ range: String, _ selection: RangeSelection
    ) {
        #expect(select(["Range: \(range)"], length: 0) == selection)
        #expect(select(["Range: \(range)", "If-Range: \"b\""], length: 0) == .whole)
    }

    @Test func `a suffix of one byte is that byte`() {
        #expect(select(["Range: bytes=-1"], length: 1) == .single(0..<1))
        #expect(select(["Range: bytes=-2, -0"], length: 1) == .single(0..<1))
    }

    @Test func `Range applies to GET and 200 only`() {
        #expect(select(["Range: bytes=0-1"], method: .head) == .whole)
        #expect(select(["Range: bytes=0-1"], status: 404) == .whole)
    }

    static let conditions: [(rule: String, ifRange: String, response: [String], holds: Bool)] = [
        ("the same strong tag", "\"a\"", strong, true),
        ("another tag", "\"b\"", strong, false),
        ("strong comparison: theirs is weak", "W/\"a\"", strong, false),
        ("strong comparison: ours is weak", "\"a\"", ["ETag: W/\"a\""], false),
        ("strong comparison: both are", "W/\"a\"", ["ETag: W/\"a\""], false),
        ("a tag where we have none", "\"a\"", ["Last-Modified: \(date(-100))"], false),
        ("the same date", date(-100), strong, true),
        ("a later date is not the same", date(-99), strong, false),
        ("an earlier one neither", date(-101), strong, false),
        ("a date where we have none", date(-100), ["ETag: \"a\""], false),
        (
            "§8.8.2.2 a date of the same second as Date is weak", date(0),
            ["Last-Modified: \(date(0))", "Date: \(date(0))"], false
        ),
        ("a second earlier is strong", date(-1), ["Last-Modified: \(date(-1))", "Date: \(date(0))"], true),
        ("what can not be read", "a", strong, false),
        ("a list of tags", "\"a\", \"b\"", strong, false),
    ]

    @Test(arguments: conditions) func `an If-Range that is false asks for the whole`(
        _ row: (rule: String, ifRange: String, response: [String], holds: Bool)
    ) {
        let selection = select(["Range: bytes=0-1", "If-Range: " + row.ifRange], of: row.response)
        #expect(selection == (row.holds ? .single(0..<2) : .whole), "\(row.rule)")
    }

    @Test func `an unsatisfiable range with a false If-Range asks for the whole`() {
        #expect(select(["Range: bytes=500-", "If-Range: \"b\""]) == .whole)
        #expect(select(["Range: bytes=500-", "If-Range: \"a\""]) == .unsatisfiable)
    }
}
