import Caching
import Message
import Testing

@Suite("RFC 9111 §3.3 Storing Incomplete Responses, §3.4 Combining Partial Content")
struct PartTests {
    struct Row: Sendable {
        var rule: String
        var status: UInt16
        var request: [String]
        var response: [String]
        var reason: NotStoredReason?
        init(
            _ rule: String, _ status: UInt16 = 206, asks request: [String] = ["Range: bytes=0-9"],
            gives response: [String], then reason: NotStoredReason?
        ) {
            (self.rule, self.status, self.request) = (rule, status, request)
            (self.response, self.reason) = (response, reason)
        }
    }
    static let promises: [(rule: String, status: UInt16, lines: [String], promise: PartPromise)] = [
        ("the bytes of the range", 206, ["Content-Range: bytes 5-9/100"], .bytes(5)),
        ("whatever the total", 206, ["Content-Range: bytes 5-9/*"], .bytes(5)),
        ("as Content-Length says", 206, ["Content-Range: bytes 0-99/100", "Content-Length: 100"], .bytes(100)),
        ("fewer than that", 206, ["Content-Range: bytes 0-99/100", "Content-Length: 5"], .contradictory),
        ("more", 206, ["Content-Range: bytes 0-99/100", "Content-Length: 101"], .contradictory),
        ("one that is no number", 206, ["Content-Range: bytes 0-9/10", "Content-Length: x"], .contradictory),
        ("nothing", 206, ["Content-Length: 5"], .none),
        ("what cannot be read", 206, ["Content-Range: bytes 9-5/10", "Content-Length: 5"], .none),
        ("two ranges", 206, ["Content-Range: bytes 0-4/10", "Content-Range: bytes 0-5/10"], .none),
        (
            "several parts", 206,
            ["Content-Type: multipart/byteranges; boundary=x", "Content-Range: bytes 0-4/10", "Content-Length: 99"],
            .none
        ),
        (
            "of a whole, Content-Range says nothing (§14.4)", 200,
            ["Content-Range: bytes 0-4/10", "Content-Length: 9"], .none
        ),
    ]

    @Test(arguments: promises) func `a part promises the bytes of its range (RFC 9110 §14.4)`(
        _ row: (rule: String, status: UInt16, lines: [String], promise: PartPromise)
    ) {
        #expect(promisedPart(status: row.status, fields: fields(row.lines)) == row.promise, "\(row.rule)")
    }

    static let fresh = "Cache-Control: max-age=60"
    static let place = "Content-Range: bytes 0-9/100"
    static let rows = [
        Row("a strong tag", gives: [fresh, place, "ETag: \"a\""], then: nil),
        Row("with a coding", gives: [fresh, place, "ETag: \"a\"", "Content-Encoding: gzip"], then: nil),
        Row(
            "a date a second before Date", gives: [fresh, place, "Last-Modified: \(date(-1))", "Date: \(date(0))"],
            then: nil),
        Row(
            "RFC 9110 §8.8.2.2 a date of the same second is weak",
            gives: [fresh, place, "Last-Modified: \(date(0))", "Date: \(date(0))"], then: .partWeak),
        Row("RFC 9110 §8.8.1 a weak tag", gives: [fresh, place, "ETag: W/\"a\""], then: .partWeak),
        Row(
            "a weak tag beside a strong date", gives: [fresh, place, "ETag: W/\"a\"", "Last-Modified: \(date(-99))"],
            then: .partWeak),
        Row("no validator", gives: [fresh, place], then: .partWeak),
        Row("unknown total", gives: [fresh, "Content-Range: bytes 0-9/*", "ETag: \"a\""], then: .partUnplaced),
        Row("no place", gives: [fresh, "ETag: \"a\""], then: .partUnplaced),
        Row("no bytes", gives: [fresh, "Content-Range: bytes */100", "ETag: \"a\""], then: .partUnplaced),
        Row("another unit", gives: [fresh, "Content-Range: items 0-9/100", "ETag: \"a\""], then: .partUnplaced),
        Row("beyond its end", gives: [fresh, "Content-Range: bytes 0-100/100", "ETag: \"a\""], then: .partUnplaced),
        Row("two places", gives: [fresh, place, place, "ETag: \"a\""], then: .partUnplaced),
        Row("another length", gives: [fresh, place, "Content-Length: 9", "ETag: \"a\""], then: .partUnplaced),
        Row("its length", gives: [fresh, place, "Content-Length: 10", "ETag: \"a\""], then: nil),
        Row(
            "RFC 9110 §15.3.7.2 several parts",
            gives: [fresh, "ETag: \"a\"", "Content-Type: Multipart/ByteRanges; boundary=x"], then: .partMultiple),
        Row(
            "RFC 9110 §15.3.7 to an If-Range the type may be missing",
            asks: ["Range: bytes=0-9", "If-Range: \"a\""], gives: [fresh, place, "ETag: \"a\""], then: .partUnplaced),
        Row(
            "and may be there", asks: ["Range: bytes=0-9", "If-Range: \"a\""],
            gives: [fresh, place, "ETag: \"a\"", "Content-Type: a/b"], then: nil),
        Row("nobody asked for a part", asks: [], gives: [fresh, place, "ETag: \"a\""], then: .partialContent),
        Row("a whole", 200, gives: [fresh, place, "ETag: \"a\""], then: .partialContent),
        Row("§3 no-store", gives: ["Cache-Control: no-store", place, "ETag: \"a\""], then: .noStore),
        Row(
            "§3.5 credentials", asks: ["Range: bytes=0-9", "Authorization: Basic x"],
            gives: [fresh, place, "ETag: \"a\""], then: .authorization),
    ]

    static func decide(_ row: Row, _ handling: CacheHandling = .init()) -> PartStoring {
        decideStoringPart(
            of: CacheRequest(method: .get, fields: fields(row.request)), status: row.status,
            fields: fields(row.response), policy: CachePolicy(), handling: handling, requestTime: noon,
            responseTime: noon)
    }

    @Test(arguments: rows) func `a part is stored if it says where it belongs and has a strong validator`(_ row: Row) {
        switch Self.decide(row) {
        case .store(let part):
            #expect(row.reason == nil, "\(row.rule)")
            #expect(part.range == 0..<10 && part.total == 100 && part.whole.status == 200, "\(row.rule)")
            #expect(!part.fields.contains(.contentRange) && !part.fields.contains(.contentLength), "\(row.rule)")
        case .storeWhole: Issue.record("nothing proves it: \(row.rule)")
        case .doNotStore(let reason): #expect(reason == row.reason, "\(row.rule)")
        }
    }

    @Test(arguments: rows) func `of what a digest proves, the whole is asked for`(_ row: Row) {
        var handling = CacheHandling()
        handling.provesBodies = true
        // Nothing is combined with the whole: it needs no validator, and has a type of its own.
        let isStored =
            row.reason == nil || row.reason == .partWeak || row.request.contains { $0.hasPrefix("If-Range") }
        switch Self.decide(row, handling) {
        case .storeWhole(let length): #expect(isStored && length == 100, "\(row.rule)")
        case .doNotStore(let reason): #expect(!isStored && reason == row.reason, "\(row.rule)")
        case .store: Issue.record("a part proves nothing: \(row.rule)")
        }
        handling.ranges = .pass
        if case .storeWhole = Self.decide(row, handling) { Issue.record("ranges: pass, \(row.rule)") }
    }

    @Test func `policies can forbid storing parts`() {
        for change in [{ $0.ranges = .pass }, { $0.use = .noWrite }] as [(inout CacheHandling) -> Void] {
            var handling = CacheHandling()
            change(&handling)
            guard case .doNotStore(.policy) = Self.decide(Self.rows[0], handling) else {
                Issue.record("stored in spite of the policy")
                continue
            }
        }
    }

    static let pairs: [(rule: String, part: [String], stored: [String], combines: Bool)] = [
        ("the same strong tag", ["ETag: \"a\""], ["ETag: \"a\""], true),
        ("another", ["ETag: \"a\""], ["ETag: \"b\""], false),
        ("ours is weak", ["ETag: \"a\""], ["ETag: W/\"a\""], false),
        ("ours has none", ["ETag: \"a\""], ["Last-Modified: \(date(-9))"], false),
        ("the same strong date", ["Last-Modified: \(date(-9))"], ["Last-Modified: \(date(-9))"], true),
        ("another date", ["Last-Modified: \(date(-9))"], ["Last-Modified: \(date(-8))"], false),
        (
            "the tag counts, not the date", ["ETag: \"a\"", "Last-Modified: \(date(-9))"],
            ["ETag: \"a\"", "Last-Modified: \(date(-8))"], true
        ),
        (
            "a date does not stand for a tag", ["Last-Modified: \(date(-9))"],
            ["ETag: \"a\"", "Last-Modified: \(date(-9))"], false
        ),
        ("another coding under the same tag", ["ETag: \"a\"", "Content-Encoding: gzip"], ["ETag: \"a\""], false),
        (
            "the same coding", ["ETag: \"a\"", "Content-Encoding: GZIP"], ["ETag: \"a\"", "Content-Encoding: gzip"],
            true
        ),
    ]

    @Test(arguments: pairs) func `§3.4: parts with the same strong validator are combined`(
        _ row: (rule: String, part: [String], stored: [String], combines: Bool)
    ) throws {
        let row0 = Row("", gives: [Self.fresh, Self.place] + row.part, then: nil)
        guard case .store(let part) = Self.decide(row0) else {
            Issue.record("\(row.rule): the part is not stored")
            return
        }
        #expect(combines(part: part, with: stored(row.stored)) == row.combines, "\(row.rule)")
        #expect(!combines(part: part, with: stored(row.stored, status: 404)))
    }
}
