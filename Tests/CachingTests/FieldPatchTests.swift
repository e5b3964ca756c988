import Caching
import Message
import Testing

/// The short way of a 304: what it yields is what the long way would.
@Suite("RFC 9111 §3.2 Updating Stored Header Fields where only values change")
struct FieldPatchTests {
    static let held = [
        "Date: \(date(-90))", "Cache-Control: max-age=60", "ETag: \"a\"", "Expires: \(date(-30))", "X-a: 1", "X-b: 2",
        "Content-Length: 5", "Server: one",
    ]
    static let rows: [(rule: String, update: [String], changed: FieldNameSet?)] = [
        ("nothing new", ["ETag: \"a\"", "X-a: 1"], []),
        ("a later date", ["Date: \(date(0))"], [.date]),
        ("dates, in another order", ["Expires: \(date(60))", "Date: \(date(0))"], [.date, .expires]),
        ("a field we do not know, in its place", ["X-b: 9"], [.other]),
        ("what is never taken changes nothing", ["Content-Length: 0", "Keep-Alive: timeout=5"], []),
        ("a longer value", ["Server: three"], nil),
        ("a new field", ["Age: 1"], nil),
        ("another spelling", ["DATE: \(date(0))"], nil),
        ("another spelling of a name we do not know", ["x-A: 1"], nil),
        ("one line by two", ["Server: two", "Server: six"], nil),
        ("other directives, of which some may name fields", ["Cache-Control: max-age=90"], nil),
        ("a field of the connection", ["Connection: X-a", "X-a: 9"], nil),
    ]

    @Test(arguments: rows) func `the result names the fields that changed`(
        _ row: (rule: String, update: [String], changed: FieldNameSet?)
    ) {
        let result = freshening(fields(Self.held), by: fields(row.update))
        #expect(result.changed == row.changed, "\(row.rule)")
    }

    /// An `Age` that goes makes the patch impossible, so that the same update is merged.
    @Test(arguments: rows) func `patched or merged, the fields are the same`(
        _ row: (rule: String, update: [String], changed: FieldNameSet?)
    ) {
        guard !row.update.contains("Age: 1") else { return }
        let patched = freshened(fields(Self.held), by: fields(row.update))
        let merged = freshening(fields(Self.held + ["Age: 7"]), by: fields(row.update))
        #expect(merged.changed == nil)
        #expect(lines(patched) == lines(merged.fields), "\(row.rule)")
    }

    @Test func `fields that Cache-Control names are merged the long way`() {
        let before = ["Cache-Control: private=\"X-Own\"", "X-Own: 1"]
        #expect(lines(freshened(fields(before), by: fields("X-Own: 2"))) == ["Cache-Control: private=\"X-Own\""])
    }

    @Test func `two lines of one name are merged the long way`() {
        let result = freshening(fields("X: 1", "A: 0", "X: 2"), by: fields("X: 3"))
        #expect(result.changed == nil)
        #expect(lines(result.fields) == ["X: 3", "A: 0"])
    }

    static let renewals: [(rule: String, stored: [String], update: [String], isRenewed: Bool)] = [
        ("a later date", held, ["Date: \(date(0))"], true),
        (
            "dates that make the lifetime", ["Date: \(date(-90))", "Expires: \(date(-30))"],
            ["Date: \(date(0))", "Expires: \(date(99))"], true
        ),
        ("a heuristic lifetime", ["Date: \(date(-90))", "Last-Modified: \(date(-990))"], ["Date: \(date(0))"], true),
        ("another tag", held, ["ETag: \"b\""], false),
        ("what varies", ["Vary: Aa"], ["Vary: Bb"], false),
        ("a field we do not know may say what it is", held, ["X-a: 2"], false),
    ]

    @Test(arguments: renewals) func `renewing a response gives the same as computing it again`(
        _ row: (rule: String, stored: [String], update: [String], isRenewed: Bool)
    ) {
        let result = freshening(fields(row.stored), by: fields(row.update), received: noon)
        let renewed = stored(row.stored).renewed(
            result, requestTime: noon, responseTime: noon, policy: CachePolicy(), handling: CacheHandling())
        #expect((renewed != nil) == row.isRenewed, "\(row.rule)")
        guard let renewed else { return }
        let anew = CachedResponse(
            status: 200, fields: result.fields, requestTime: noon, responseTime: noon, policy: CachePolicy())
        #expect(renewed == anew, "\(row.rule)")
    }

    static let handlings: [(rule: String, change: @Sendable (inout CacheHandling) -> Void)] = [
        ("Cache-Control not respected", { $0.respectsCacheControl = false }),
        ("targeted fields heeded", { $0.heedsTargetedFields = true }),
    ]

    @Test(arguments: handlings) func `under another handling everything is computed again`(
        _ row: (rule: String, change: @Sendable (inout CacheHandling) -> Void)
    ) {
        var handling = CacheHandling()
        row.change(&handling)
        let result = freshening(fields(Self.held), by: fields("Date: \(date(0))"))
        let before = stored(Self.held)
        #expect(
            before.renewed(
                result, requestTime: noon, responseTime: noon, policy: CachePolicy(), handling: handling) == nil,
            "\(row.rule)")
        let handled = CachedResponse(
            status: 200, fields: fields(Self.held), requestTime: noon, responseTime: noon, policy: CachePolicy(),
            handling: handling)
        #expect(
            handled.renewed(
                result, requestTime: noon, responseTime: noon, policy: CachePolicy(), handling: CacheHandling())
                == nil,
            "\(row.rule)")
    }
}
