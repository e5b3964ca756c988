import Caching
import Message
import Testing

@Suite("RFC 9111 §4.2.4 and the cache policies that go beyond it")
struct CacheUseTests {
    struct Row: Sendable {
        var rule: String
        var use: CacheUse
        var response: String
        var after: Int64
        var mark: Mark?
        var request: [String]
        var reuse: Reuse
        init(
            _ rule: String, _ use: CacheUse, _ response: String, after: Int64, mark: Mark? = nil,
            asks request: String..., then reuse: Reuse
        ) {
            (self.rule, self.use, self.response, self.after) = (rule, use, response, after)
            (self.mark, self.request, self.reuse) = (mark, request, reuse)
        }
    }
    enum Mark { case outdated, doubted }
    static let none: CacheUse = []

    static func serve(_ age: Int64, _ ttl: Int64) -> Reuse { .serve(age: seconds(age), ttl: seconds(ttl)) }
    static func stale(_ age: Int64, _ ttl: Int64) -> Reuse { .serveStale(age: seconds(age), ttl: seconds(ttl)) }

    static let rows = [
        Row("revalidate-always, fresh", .revalidateAlways, "max-age=10", after: 1, then: .validate(.policy)),
        Row("revalidate-always, stale", .revalidateAlways, "max-age=10", after: 11, then: .validate(.policy)),
        Row(
            "revalidate-always, whatever the client takes", .revalidateAlways, "max-age=10", after: 11,
            asks: "Cache-Control: max-stale", then: .validate(.policy)),
        Row(
            "revalidate-always, within stale-while-revalidate", .revalidateAlways,
            "max-age=10, stale-while-revalidate=9", after: 11, then: .validate(.policy)),
        Row(
            "revalidate-always, immutable", .revalidateAlways, "max-age=10, immutable", after: 1,
            then: .validate(.policy)),
        Row(
            "revalidate-always and only-if-cached", .revalidateAlways, "max-age=10", after: 1,
            asks: "Cache-Control: only-if-cached", then: .refuse),
        Row("cache-first, fresh", .cacheFirst, "max-age=10", after: 1, then: serve(1, 9)),
        Row("cache-first, stale", .cacheFirst, "max-age=10", after: 1000, then: stale(1000, -990)),
        Row("cache-first, at the second", .cacheFirst, "max-age=10", after: 10, then: stale(10, 0)),
        Row("cache-first, no-cache", .cacheFirst, "max-age=10, no-cache", after: 1, then: serve(1, 9)),
        Row("cache-first, must-revalidate", .cacheFirst, "max-age=10, must-revalidate", after: 11, then: stale(11, -1)),
        Row(
            "cache-first, the client wants it anew", .cacheFirst, "max-age=10", after: 11,
            asks: "Cache-Control: no-cache", then: stale(11, -1)),
        Row(
            "cache-first, purged softly", .cacheFirst, "max-age=10", after: 1, mark: .outdated, then: stale(1, 0)),
        Row(
            "cache-first, credentials", .cacheFirst, "max-age=10", after: 1, asks: "Authorization: Basic x",
            then: .fetch(.authorization)),
        Row(
            "cache-first with revalidate-always: the stricter", [.cacheFirst, .revalidateAlways], "max-age=10",
            after: 1,
            then: .validate(.policy)),
        Row("cache-only, stale", .cacheOnly, "max-age=10, no-cache", after: 11, then: stale(11, -1)),
        Row(
            "cache-only, credentials: 504", .cacheOnly, "max-age=10", after: 1, asks: "Authorization: Basic x",
            then: .refuse),
        Row(
            "cache-only with revalidate-always: the origin is never asked", [.cacheOnly, .revalidateAlways],
            "max-age=10", after: 11, then: stale(11, -1)),
        Row("no-read, fresh", .noRead, "max-age=10", after: 1, then: .fetch(.policy)),
        Row("no-read, even cache-first", [.noRead, .cacheFirst], "max-age=10", after: 1, then: .fetch(.policy)),
        Row("no-read and cache-only: nothing is left", [.noRead, .cacheOnly], "max-age=10", after: 1, then: .refuse),
        Row(
            "no-read and only-if-cached", .noRead, "max-age=10", after: 1, asks: "Cache-Control: only-if-cached",
            then: .refuse),
        Row("no-write changes nothing here", .noWrite, "max-age=10", after: 1, then: serve(1, 9)),
        Row("nor does stale-on-error", .staleOnError, "max-age=10", after: 11, then: .validate(.stale)),
        Row("doubted, fresh", none, "max-age=10", after: 1, mark: .doubted, then: .validate(.doubted)),
        Row("doubted, cache-first", .cacheFirst, "max-age=10", after: 1, mark: .doubted, then: .validate(.doubted)),
        Row(
            "doubted, cache-only: the origin is never asked", .cacheOnly, "max-age=10", after: 1, mark: .doubted,
            then: stale(1, 0)),
        Row("doubted, no-read", .noRead, "max-age=10", after: 1, mark: .doubted, then: .fetch(.policy)),
        Row(
            "doubted, whatever the client takes", none, "max-age=10", after: 1, mark: .doubted,
            asks: "Cache-Control: max-stale", then: .validate(.doubted)),
        Row(
            "doubted, in its window of stale-while-revalidate", none, "max-age=10, stale-while-revalidate=99",
            after: 11,
            mark: .doubted, then: .validate(.doubted)),
        Row("doubted, immutable", none, "max-age=10, immutable", after: 1, mark: .doubted, then: .validate(.doubted)),
        Row(
            "doubted and only-if-cached", none, "max-age=10", after: 1, mark: .doubted,
            asks: "Cache-Control: only-if-cached", then: .refuse),
        Row("purged softly, fresh", none, "max-age=10", after: 1, mark: .outdated, then: .validate(.outdated)),
        Row(
            "and before it was stored, by a clock set back", none, "max-age=10", after: -5, mark: .outdated,
            then: .validate(.outdated)),
        Row(
            "purged softly, whatever the client takes", none, "max-age=10", after: 1, mark: .outdated,
            asks: "Cache-Control: max-stale", then: .validate(.outdated)),
        Row(
            "purged softly, within stale-while-revalidate", none, "max-age=10, stale-while-revalidate=99",
            after: 11, mark: .outdated, then: .validate(.outdated)),
        Row(
            "purged softly and only-if-cached", none, "max-age=10", after: 1, mark: .outdated,
            asks: "Cache-Control: only-if-cached", then: .refuse),
    ]

    @Test(arguments: rows) func `a policy decides about reuse`(_ row: Row) {
        let plain = stored("Cache-Control: " + row.response)
        let response =
            switch row.mark {
            case .outdated: plain.outdated()
            case .doubted: plain.doubted()
            case nil: plain
            }
        let request = CacheRequest(method: .get, fields: fields(row.request))
        let decision = reuse(of: response, for: request, use: row.use, now: noon + seconds(row.after))
        #expect(decision == row.reuse, "\(row.rule)")
    }

    static let errors: [(use: CacheUse, status: UInt16, after: Int64, reuse: Reuse)] = [
        (.cacheFirst, 404, 1, serve(1, 9)), (.cacheFirst, 404, 11, .validate(.stale)),
        (.cacheFirst, 503, 11, .validate(.stale)), (.cacheFirst, 301, 11, stale(11, -1)),
        (.cacheOnly, 404, 11, stale(11, -1)),
    ]
    @Test(arguments: errors) func `cache-first serves no stale errors`(
        _ row: (use: CacheUse, status: UInt16, after: Int64, reuse: Reuse)
    ) {
        let response = stored("Cache-Control: max-age=10", status: row.status)
        let request = CacheRequest(method: .get, fields: Fields())
        #expect(reuse(of: response, for: request, use: row.use, now: noon + seconds(row.after)) == row.reuse)
    }

    static let failures: [(rule: String, use: CacheUse, response: String, after: Int64, asks: String, allowed: Bool)] =
        [
            ("stale-on-error after a year", .staleOnError, "max-age=10", 31_536_000, "X: y", true),
            ("without it", none, "max-age=10", 31_536_000, "X: y", false),
            ("stale-on-error, past stale-if-error", .staleOnError, "max-age=10, stale-if-error=1", 99, "X: y", true),
            ("not against must-revalidate", .staleOnError, "max-age=10, must-revalidate", 11, "X: y", false),
            ("not against proxy-revalidate", .staleOnError, "max-age=10, proxy-revalidate", 11, "X: y", false),
            ("not against s-maxage", .staleOnError, "s-maxage=10", 11, "X: y", false),
            ("not against no-cache", .staleOnError, "max-age=10, no-cache", 1, "X: y", false),
            ("not against the client", .staleOnError, "max-age=10", 11, "Cache-Control: no-cache", false),
            ("nor beyond what it takes", .staleOnError, "max-age=10", 16, "Cache-Control: max-stale=5", false),
            ("up to what it takes", .staleOnError, "max-age=10", 15, "Cache-Control: max-stale=5", true),
            ("no-read", [.staleOnError, .noRead], "max-age=10", 1, "X: y", false),
        ]

    @Test(arguments: failures) func `a stored response may be served if the origin fails`(
        _ row: (rule: String, use: CacheUse, response: String, after: Int64, asks: String, allowed: Bool)
    ) {
        let response = stored("Cache-Control: " + row.response)
        let allowed = mayServeStaleOnError(response, for: get(row.asks), use: row.use, now: noon + seconds(row.after))
        #expect(allowed == row.allowed, "\(row.rule)")
    }

    @Test func `another clock dates a response otherwise, and it has the same age`() {
        let response = stored("Cache-Control: max-age=10")
        let moved = response.moved(by: seconds(-3600))
        for after in [0, 5, 10, 11] as [Int64] {
            #expect(moved.currentAge(noon + seconds(after - 3600)) == response.currentAge(noon + seconds(after)))
            #expect(moved.isFresh(noon + seconds(after - 3600)) == response.isFresh(noon + seconds(after)))
        }
        #expect(moved.date == response.date && moved.moved(by: seconds(3600)) == response)
    }

    @Test func `what is doubted stands in for nobody until the origin has confirmed it`() {
        let doubted = stored("Cache-Control: max-age=10, stale-if-error=99").doubted()
        for use in [CacheUse.staleOnError, .cacheFirst, []] {
            for field in ["X: y", "Cache-Control: max-stale", "Cache-Control: stale-if-error=99"] {
                #expect(!mayServeStaleOnError(doubted, for: get(field), use: use, now: noon + seconds(1)))
            }
        }
        // Nor after a soft purge, which is the weaker mark.
        #expect(doubted.outdated() == doubted && doubted.outdated().terms.isDoubted)
        #expect(stored("Cache-Control: max-age=10").outdated().doubted().terms.isDoubted)
        #expect(!doubted.isFresh(noon))
    }

    @Test func `a softly purged response may be served if the origin fails`() {
        let purged = stored("Cache-Control: max-age=10").outdated()
        #expect(!purged.isFresh(noon) && purged.remainingLifetime(noon) == .zero)
        #expect(purged.remainingLifetime(noon + seconds(15)) == seconds(-5))
        #expect(mayServeStaleOnError(purged, for: get(), now: noon + seconds(1)))
        #expect(
            !mayServeStaleOnError(
                stored("Cache-Control: max-age=10, must-revalidate").outdated(), for: get(), now: noon + seconds(1)))
        #expect(purged.outdated() == purged)
        #expect(purged.lifetime == stored("Cache-Control: max-age=10").lifetime)
    }
}
