import Caching
import Message
import Testing

@Suite("The explanation of RFC 9111 §4.2")
struct ExplanationTests {
    static func explained(
        _ response: CachedResponse, _ request: CacheRequest = get(), use: CacheUse = [], after: Int64
    ) -> [String] {
        explainFreshness(response, for: request, use: use, now: noon + seconds(after)).map { "\($0.name): \($0.value)" }
    }

    @Test func `the calculation is shown line by line`() {
        let response = CachedResponse(
            status: 200,
            fields: fields("Date: \(date(-3))", "Age: 10", "Cache-Control: max-age=60, stale-while-revalidate=5"),
            requestTime: noon + seconds(-2), responseTime: noon, policy: CachePolicy())
        #expect(
            Self.explained(response, after: 20) == [
                "date_value: \(date(-3))", "request_time: \(date(-2))", "response_time: \(date(0))",
                "now: \(date(20))", "age_value: 10 s", "apparent_age: max(0, response_time - date_value) = 3 s",
                "response_delay: response_time - request_time = 2 s",
                "corrected_age_value: age_value + response_delay = 12 s",
                "corrected_initial_age: max(apparent_age, corrected_age_value) = 12 s",
                "resident_time: now - response_time = 20 s",
                "current_age: corrected_initial_age + resident_time = 32 s", "freshness_lifetime: max-age = 60 s",
                "response_is_fresh: yes, for 28 s", "stale-while-revalidate: for 5 s", "stale on error: for 604800 s",
                "decision: serve: fresh", "if the origin fails: may be served",
            ])
    }

    @Test func `fractions are shown, and why a Date that is close to Age does not count`() {
        let response = CachedResponse(
            status: 200, fields: fields("Date: \(date(0))", "Cache-Control: max-age=60"),
            requestTime: noon + milliseconds(500), responseTime: noon + milliseconds(1000), policy: CachePolicy())
        let lines = Self.explained(response, after: 2)
        for line in [
            "apparent_age: max(0, response_time - date_value) = 1 s",
            "response_delay: response_time - request_time = 0.500 s",
            "corrected_initial_age: corrected_age_value, since apparent_age is less than a second more = 0.500 s",
            "current_age: corrected_initial_age + resident_time = 1 s", "response_is_fresh: yes, for 59 s",
        ] { #expect(lines.contains(line), "\(lines)") }
    }

    static let rows: [(line: String, response: [String], use: CacheUse, asks: String)] = [
        ("freshness_lifetime: s-maxage = 9 s", ["Cache-Control: s-maxage=9"], [], "X: y"),
        ("freshness_lifetime: Expires - Date = 9 s", ["Expires: \(date(9))", "Date: \(date(0))"], [], "X: y"),
        (
            "freshness_lifetime: heuristic, a share of Date - Last-Modified (§4.2.2) = 100 s",
            ["Last-Modified: \(date(-1000))"], [], "X: y"
        ),
        ("freshness_lifetime: 0 s: the origin gave no lifetime, and no heuristic applies", ["ETag: \"a\""], [], "X: y"),
        ("stale on error: forbidden", ["Cache-Control: must-revalidate, max-age=9"], [], "X: y"),
        ("response_is_fresh: no, since 20 s", ["ETag: \"a\""], [], "X: y"),
        ("decision: validate: stale", ["ETag: \"a\""], [], "X: y"),
        ("decision: validate: policy", ["Cache-Control: max-age=99"], .revalidateAlways, "X: y"),
        ("decision: fetch: policy", ["Cache-Control: max-age=99"], .noRead, "X: y"),
        ("decision: fetch: authorization", ["Cache-Control: max-age=99"], [], "Authorization: Basic x"),
        ("decision: serve stale: the client or the policy allows it", ["ETag: \"a\""], .cacheFirst, "X: y"),
        (
            "decision: serve stale, and validate in the background",
            ["Cache-Control: max-age=1, stale-while-revalidate=99"], [], "X: y"
        ),
        (
            "decision: refuse with 504: the origin must not be asked", ["ETag: \"a\""], [],
            "Cache-Control: only-if-cached"
        ),
        ("if the origin fails: may not be served", ["Cache-Control: no-cache"], [], "X: y"),
    ]

    @Test(arguments: rows) func `each rule is explained in words`(
        _ row: (line: String, response: [String], use: CacheUse, asks: String)
    ) {
        #expect(Self.explained(stored(row.response), get(row.asks), use: row.use, after: 20).contains(row.line))
    }

    @Test func `what the operator configured is shown as well`() {
        let handled = HandlingTests.response(["Age: 7"], HandlingTests.hour)
        #expect(
            Self.explained(handled, after: 0).contains(
                "freshness_lifetime: ttl 3600 s + corrected_initial_age = 3607 s"))
        let outdated = Self.explained(stored("Cache-Control: max-age=99").outdated(), after: 0)
        #expect(outdated.contains("outdated: purged softly, or a HEAD showed another representation"))
        #expect(outdated.contains("decision: validate: outdated"))
    }
}
