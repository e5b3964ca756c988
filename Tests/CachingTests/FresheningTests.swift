import Caching
import Message
import Testing

@Suite("RFC 9111 §3.2 Updating Stored Header Fields, §4.3.4 Freshening Stored Responses")
struct FresheningTests {
    static let rows: [(rule: String, stored: [String], update: [String], result: [String])] = [
        (
            "a value is replaced in its place", ["A: 1", "Cache-Control: x", "B: 2"], ["cache-control: y"],
            ["A: 1", "cache-control: y", "B: 2"]
        ),
        ("a name we do not know as well", ["X-a: 1", "X-b: 2"], ["x-A: 9"], ["x-A: 9", "X-b: 2"]),
        ("what the 304 does not name stays", ["ETag: \"a\"", "Expires: x"], [], ["ETag: \"a\"", "Expires: x"]),
        ("a new field comes last", ["A: 1"], ["B: 2", "C: 3"], ["A: 1", "B: 2", "C: 3"]),
        (
            "all lines by all lines", ["X: 1", "A: 0", "X: 2"], ["X: 3", "X: 4", "X: 5"],
            ["X: 3", "X: 4", "X: 5", "A: 0"]
        ),
        ("many by one", ["X: 1", "X: 2", "A: 0"], ["X: 3"], ["X: 3", "A: 0"]),
        ("Content-Length stays", ["Content-Length: 5"], ["Content-Length: 0"], ["Content-Length: 5"]),
        ("and is not made up", [], ["Content-Length: 0"], []),
        ("Content-Encoding stays", ["Content-Encoding: gzip"], ["Content-Encoding: br"], ["Content-Encoding: gzip"]),
        (
            "§5.2.2.7 what the stored Cache-Control keeps from others is not taken",
            ["Cache-Control: private=\"X-Own\"", "A: 1"], ["X-Own: me", "A: 2"],
            ["Cache-Control: private=\"X-Own\"", "A: 2"]
        ),
        ("Content-Range is not taken", ["A: 1"], ["Content-Range: bytes 0-1/2"], ["A: 1"]),
        ("Content-Type is replaced", ["Content-Type: a"], ["Content-Type: b"], ["Content-Type: b"]),
        (
            "§3.1 hop-by-hop fields are not taken", ["A: 1"],
            [
                "Connection: close, X-Hop", "X-Hop: 1", "Keep-Alive: 5", "Transfer-Encoding: chunked", "Upgrade: x",
                "Proxy-Authenticate: x",
            ], ["A: 1"]
        ),
        ("Connection does not take away what is stored", ["X-Hop: 1"], ["Connection: X-Hop"], ["X-Hop: 1"]),
        ("§4.2.3 Age was the old response's", ["Age: 99", "A: 1"], [], ["A: 1"]),
        ("§4.2.3 unless the 304 has one", ["Age: 99", "A: 1"], ["Age: 3"], ["Age: 3", "A: 1"]),
        ("RFC 9110 §8.8.1 a weak tag does not become strong", ["ETag: W/\"a\""], ["ETag: \"a\""], ["ETag: W/\"a\""]),
        ("a strong tag may become weak", ["ETag: \"a\""], ["ETag: W/\"a\""], ["ETag: W/\"a\""]),
        ("another tag is another", ["ETag: W/\"a\""], ["ETag: \"b\""], ["ETag: \"b\""]),
        ("spelling and bytes as they come", ["etag: W/\"a\""], ["eTaG: W/\"a\u{E9}\""], ["eTaG: W/\"a\u{E9}\""]),
    ]

    @Test(arguments: rows) func `a 304 updates the stored fields`(
        _ row: (rule: String, stored: [String], update: [String], result: [String])
    ) {
        #expect(lines(freshened(fields(row.stored), by: fields(row.update))) == row.result, "\(row.rule)")
    }

    @Test func `a 304 without a Date gets its time of arrival`() {
        let result = freshened(fields("Date: \(date(-90))", "A: 1"), by: Fields(), received: noon)
        #expect(lines(result) == ["Date: \(date(0))", "A: 1"])
        let own = freshened(fields("Date: \(date(-90))"), by: fields("Date: \(date(-2))"), received: noon)
        #expect(lines(own) == ["Date: \(date(-2))"])
    }

    @Test func `a freshened response is fresh again`() {
        let before = ["Cache-Control: max-age=10", "Date: \(date(-90))", "ETag: \"a\"", "Age: 50"]
        #expect(!stored(before).isFresh(noon))
        let after = freshened(fields(before), by: fields("Date: \(date(0))"))
        let response = CachedResponse(
            status: 200, fields: after, requestTime: noon, responseTime: noon, policy: CachePolicy())
        #expect(response.remainingLifetime(noon) == seconds(10))
    }

    static let selections: [(rule: String, stored: [String], update: [String], selects: Bool)] = [
        ("the same strong tag", ["ETag: \"a\""], ["ETag: \"a\""], true),
        ("another strong tag", ["ETag: \"a\""], ["ETag: \"b\""], false),
        ("a strong tag does not speak of a weak one", ["ETag: W/\"a\""], ["ETag: \"a\""], false),
        ("a weak tag, the same", ["ETag: \"a\""], ["ETag: W/\"a\""], true),
        ("a weak tag, another", ["ETag: W/\"a\""], ["ETag: W/\"b\""], false),
        ("a tag where there was none", ["Last-Modified: \(date(-9))"], ["ETag: \"a\""], false),
        (
            "the tag goes before the date", ["ETag: \"a\"", "Last-Modified: \(date(-9))"],
            ["ETag: \"a\"", "Last-Modified: \(date(-8))"], true
        ),
        ("the same date", ["Last-Modified: \(date(-9))"], ["Last-Modified: \(date(-9))"], true),
        ("another date", ["Last-Modified: \(date(-9))"], ["Last-Modified: \(date(-8))"], false),
        ("no validator: it answers what was asked", ["ETag: \"a\""], ["Date: \(date(0))"], true),
    ]

    @Test func `a strong tag confirms the weak one that was sent: nginx, compressing`() {
        let weak = stored(["ETag: W/\"a\""])
        #expect(!selects(fields(["ETag: \"a\""]), weak, received: noon))
        #expect(confirms(fields(["ETag: \"a\""]), weak, received: noon))
        #expect(!confirms(fields(["ETag: \"b\""]), weak, received: noon))
        #expect(confirms(fields(["Date: Sun, 06 Nov 1994 08:49:37 GMT"]), weak, received: noon))
    }

    @Test(arguments: selections) func `§4.3.4: a 304 is about the response with its validator`(
        _ row: (rule: String, stored: [String], update: [String], selects: Bool)
    ) {
        #expect(selects(fields(row.update), stored(row.stored), received: noon) == row.selects, "\(row.rule)")
    }
}

@Suite("RFC 9111 §4.3.5 Freshening Responses with HEAD, §4 the most recent one")
struct HeadFresheningTests {
    static let rows: [(rule: String, stored: [String], head: [String], status: UInt16, update: HeadUpdate)] = [
        ("all the same", ["ETag: \"a\"", "Content-Length: 5"], ["ETag: \"a\"", "Content-Length: 5"], 200, .freshen),
        ("nothing named", ["ETag: \"a\"", "Content-Length: 5"], [], 200, .freshen),
        ("another tag", ["ETag: \"a\""], ["ETag: \"b\""], 200, .markStale),
        ("another date", ["Last-Modified: \(date(-9))"], ["Last-Modified: \(date(-8))"], 200, .markStale),
        ("the same date", ["Last-Modified: \(date(-9))"], ["Last-Modified: \(date(-9))"], 200, .freshen),
        (
            "the same tag, another date", ["ETag: \"a\"", "Last-Modified: \(date(-9))"],
            ["ETag: \"a\"", "Last-Modified: \(date(-8))"], 200, .markStale
        ),
        ("another length", ["ETag: \"a\""], ["ETag: \"a\"", "Content-Length: 4"], 200, .markStale),
        ("a length that is none", [], ["Content-Length: x"], 200, .markStale),
        ("a length beyond every content", [], ["Content-Length: 99999999999999999999"], 200, .markStale),
        ("only a 200 speaks", ["ETag: \"a\""], ["ETag: \"b\""], 404, .ignore),
        (
            "of a part it says nothing of the whole (RFC 9110 §14.4)", ["ETag: \"a\""],
            ["ETag: \"b\"", "Content-Range: bytes 0-1/5", "Content-Length: 2"], 200, .ignore
        ),
    ]

    @Test(arguments: rows) func `a HEAD shows whether the stored response is still valid`(
        _ row: (rule: String, stored: [String], head: [String], status: UInt16, update: HeadUpdate)
    ) {
        let update = headUpdate(
            status: row.status, fields: fields(row.head), stored: stored(row.stored), length: 5, received: noon)
        #expect(update == row.update, "\(row.rule)")
    }

    @Test func `the most recent is the one with the later Date`() {
        let (old, new) = (stored("Date: \(date(-9))"), stored("Date: \(date(-8))"))
        #expect(isMoreRecent(new, than: old) && !isMoreRecent(old, than: new) && !isMoreRecent(new, than: new))
        let later = CachedResponse(
            status: 200, fields: fields("Date: \(date(-8))"), requestTime: noon, responseTime: noon + seconds(1),
            policy: CachePolicy())
        #expect(isMoreRecent(later, than: new), "of the same Date, the one that came later")
    }
}
