import Caching
import Message
import Testing

@Suite("RFC 9111 §4 Constructing Responses from Caches, §5.2.1 Request Directives")
struct ReuseTests {
    struct Row: Sendable {
        var rule: String
        var response: String
        var after: Int64
        var request: [String]
        var reuse: Reuse
        init(_ rule: String, _ response: String, after: Int64, asks request: String..., then reuse: Reuse) {
            (self.rule, self.response, self.after, self.request, self.reuse) = (rule, response, after, request, reuse)
        }
    }

    static func serve(_ age: Int64, _ ttl: Int64) -> Reuse { .serve(age: seconds(age), ttl: seconds(ttl)) }
    static func stale(_ age: Int64, _ ttl: Int64) -> Reuse { .serveStale(age: seconds(age), ttl: seconds(ttl)) }
    static func behind(_ age: Int64, _ ttl: Int64) -> Reuse {
        .serveStaleAndRevalidate(age: seconds(age), ttl: seconds(ttl))
    }

    static let rows = [
        Row("fresh", "max-age=10", after: 4, then: serve(4, 6)),
        Row("§4.2 stale", "max-age=10", after: 10, then: .validate(.stale)),
        Row(
            "fresh, with a request that has unrelated wishes", "max-age=10", after: 4, asks: "Range: bytes=0-1",
            then: serve(4, 6)),
        Row("§5.2.2.4 no-cache", "no-cache, max-age=10", after: 1, then: .validate(.responseNoCache)),
        Row(
            "§5.2.2.4 no-cache, whatever the client takes", "no-cache, max-age=1", after: 5,
            asks: "Cache-Control: max-stale", then: .validate(.responseNoCache)),
        Row(
            "§5.2.1.4 request no-cache", "max-age=10", after: 1, asks: "Cache-Control: no-cache",
            then: .validate(.requestNoCache)),
        Row("§5.4 request Pragma", "max-age=10", after: 1, asks: "Pragma: no-cache", then: .validate(.requestNoCache)),
        Row(
            "§5.2.1.4 even where immutable", "max-age=10, immutable", after: 1, asks: "Cache-Control: no-cache",
            then: .validate(.requestNoCache)),
        Row(
            "§5.2.1.5 request no-store is about storing", "max-age=10", after: 1, asks: "Cache-Control: no-store",
            then: serve(1, 9)),
        Row("§5.2.1.1 age up to max-age", "max-age=10", after: 5, asks: "Cache-Control: max-age=5", then: serve(5, 5)),
        Row(
            "§5.2.1.1 age beyond max-age", "max-age=10", after: 6, asks: "Cache-Control: max-age=5",
            then: .validate(.requestMaxAge)),
        Row(
            "§5.2.1.1 max-age=0 at age 0 is a reload", "max-age=10", after: 0, asks: "Cache-Control: max-age=0",
            then: .validate(.requestMaxAge)),
        Row(
            "§5.2.1.1 max-age does not lengthen a lifetime", "max-age=10", after: 11, asks: "Cache-Control: max-age=50",
            then: .validate(.stale)),
        Row(
            "RFC 8246 immutable and fresh", "max-age=10, immutable", after: 6, asks: "Cache-Control: max-age=0",
            then: serve(6, 4)),
        Row(
            "RFC 8246 immutable and stale", "max-age=10, immutable", after: 10, asks: "Cache-Control: max-age=0",
            then: .validate(.stale)),
        Row(
            "§5.2.1.3 min-fresh just left", "max-age=10", after: 5, asks: "Cache-Control: min-fresh=5",
            then: serve(5, 5)),
        Row(
            "§5.2.1.3 min-fresh not left", "max-age=10", after: 6, asks: "Cache-Control: min-fresh=5",
            then: .validate(.requestMinFresh)),
        Row(
            "§5.2.1.3 min-fresh and stale", "max-age=10", after: 16, asks: "Cache-Control: min-fresh=0",
            then: .validate(.stale)),
        Row("§5.2.1.2 max-stale", "max-age=10", after: 99, asks: "Cache-Control: max-stale", then: stale(99, -89)),
        Row(
            "§5.2.1.2 staleness up to max-stale", "max-age=10", after: 15, asks: "Cache-Control: max-stale=5",
            then: stale(15, -5)),
        Row(
            "§5.2.1.2 staleness beyond max-stale", "max-age=10", after: 16, asks: "Cache-Control: max-stale=5",
            then: .validate(.stale)),
        Row(
            "§5.2.1.2 max-stale behind max-age", "max-age=10", after: 7,
            asks: "Cache-Control: max-age=5, max-stale=2", then: serve(7, 3)),
        Row(
            "§5.2.1.2 max-stale beyond max-age", "max-age=10", after: 8,
            asks: "Cache-Control: max-age=5, max-stale=2", then: .validate(.requestMaxAge)),
        Row(
            "§5.2.2.2 must-revalidate, whatever the client takes", "max-age=10, must-revalidate", after: 11,
            asks: "Cache-Control: max-stale", then: .validate(.stale)),
        Row(
            "§5.2.2.8 proxy-revalidate as well", "max-age=10, proxy-revalidate", after: 11,
            asks: "Cache-Control: max-stale", then: .validate(.stale)),
        Row(
            "§5.2.2.10 s-maxage as well", "s-maxage=10", after: 11, asks: "Cache-Control: max-stale",
            then: .validate(.stale)),
        Row("§5.2.2.2 must-revalidate, fresh", "max-age=10, must-revalidate", after: 9, then: serve(9, 1)),
        Row("RFC 5861 §3 inside the window", "max-age=10, stale-while-revalidate=5", after: 14, then: behind(14, -4)),
        Row("RFC 5861 §3 as it begins", "max-age=10, stale-while-revalidate=5", after: 10, then: behind(10, 0)),
        Row("RFC 5861 §3 after it", "max-age=10, stale-while-revalidate=5", after: 15, then: .validate(.stale)),
        Row(
            "RFC 5861 §3 not where must-revalidate", "max-age=10, must-revalidate, stale-while-revalidate=5", after: 11,
            then: .validate(.stale)),
        Row(
            "§5.2.1.1 not for a client that says max-age", "max-age=10, stale-while-revalidate=5", after: 11,
            asks: "Cache-Control: max-age=60", then: .validate(.stale)),
        Row(
            "§5.2.1.3 nor min-fresh", "max-age=10, stale-while-revalidate=5", after: 11,
            asks: "Cache-Control: min-fresh=1", then: .validate(.stale)),
        Row(
            "§5.2.1.7 only-if-cached, fresh", "max-age=10", after: 4, asks: "Cache-Control: only-if-cached",
            then: serve(4, 6)),
        Row(
            "§5.2.1.7 only-if-cached, stale", "max-age=10", after: 11, asks: "Cache-Control: only-if-cached",
            then: .refuse),
        Row(
            "§5.2.1.7 only-if-cached, stale in the window", "max-age=10, stale-while-revalidate=5", after: 11,
            asks: "Cache-Control: only-if-cached", then: .refuse),
        Row(
            "§5.2.1.7 only-if-cached and max-stale", "max-age=10", after: 11,
            asks: "Cache-Control: only-if-cached, max-stale", then: stale(11, -1)),
        Row(
            "§5.2.1.7 only-if-cached and no-cache", "max-age=10", after: 4,
            asks: "Cache-Control: only-if-cached, no-cache", then: .refuse),
        Row("§3.5 Authorization", "max-age=10", after: 4, asks: "Authorization: Basic x", then: .fetch(.authorization)),
        Row("§3.5 with public", "public, max-age=10", after: 4, asks: "Authorization: Basic x", then: serve(4, 6)),
        Row(
            "§3.5 with must-revalidate", "must-revalidate, max-age=10", after: 4, asks: "Authorization: Basic x",
            then: serve(4, 6)),
        Row(
            "§3.5 with s-maxage, stale", "s-maxage=10", after: 14, asks: "Authorization: Basic x",
            then: .validate(.stale)),
        Row(
            "§5.2.3 unknown directives change nothing", "max-age=10", after: 4, asks: "Cache-Control: foo=bar",
            then: serve(4, 6)),
    ]

    @Test(arguments: rows) func `a stored response is reused only as the rules allow`(_ row: Row) {
        let response = stored("Cache-Control: " + row.response)
        let request = CacheRequest(method: .get, fields: fields(row.request))
        #expect(reuse(of: response, for: request, now: noon + seconds(row.after)) == row.reuse, "\(row.rule)")
    }

    @Test(arguments: Method.allCases) func `only GET and HEAD are answered from the store`(_ method: Method) {
        let decision = reuse(
            of: stored("Cache-Control: max-age=10"), for: CacheRequest(method: method, fields: Fields()), now: noon)
        #expect(decision == (method == .get || method == .head ? Self.serve(0, 10) : .fetch(.method)))
    }

    @Test func `a GET with content is not answered from the store`() {
        var request = get()
        request.hasBody = true
        #expect(reuse(of: stored("Cache-Control: max-age=10"), for: request, now: noon) == .fetch(.requestBody))
    }

    @Test(arguments: methodOverrides)
    func `an overridden method is not answered from the store, whatever the rules or the client accept`(
        _ name: String
    ) {
        let response = stored("Cache-Control: max-age=10")
        #expect(reuse(of: response, for: get("\(name): GET"), now: noon) == .fetch(.methodOverride))
        #expect(reuse(of: response, for: get("\(name): GET"), use: .cacheFirst, now: noon) == .fetch(.methodOverride))
        #expect(!isEligible(response.terms, for: get("\(name): GET")))
    }

    @Test func `every reason occurs`() {
        let decisions = Self.rows.map(\.reuse) + CacheUseTests.rows.map(\.reuse)
        for reason in ValidateReason.allCases { #expect(decisions.contains(.validate(reason)), "\(reason)") }
        // These have tests of their own.
        let fetches = decisions + [.method, .methodOverride, .requestBody, .ifMatch, .permission].map { .fetch($0) }
        for reason in FetchReason.allCases { #expect(fetches.contains(.fetch(reason)), "\(reason)") }
    }

    /// Whatever is served fresh is within both lifetimes; whatever is served stale was not forbidden.
    @Test(arguments: 0..<60 as Range<UInt64>) func `no combination of directives serves what one of them forbids`(
        _ seed: UInt64
    ) {
        var random = Seeded(seed)
        for _ in 0..<100 {
            let response = stored("Cache-Control: " + Self.some(of: Self.responseParts, &random))
            let request = get("Cache-Control: " + Self.some(of: Self.requestParts, &random))
            let now = noon + seconds(.random(in: 0...30, using: &random))
            let (wishes, origin) = (request.directives, response.directives)
            switch reuse(of: response, for: request, now: now) {
            case .serve(let age, let ttl):
                #expect(response.isFresh(now) && !origin.noCache && !wishes.noCache)
                #expect(age == response.currentAge(now) && ttl == response.remainingLifetime(now) && ttl > .zero)
                #expect(wishes.minFresh.map { ttl >= $0 } ?? true)
            case .serveStale(_, let ttl):
                #expect(ttl <= .zero && wishes.maxStale != nil && !forbidsStale(origin) && !wishes.noCache)
            case .serveStaleAndRevalidate(_, let ttl):
                #expect(ttl <= .zero && !forbidsStale(origin) && !wishes.noCache && !wishes.onlyIfCached)
                #expect(wishes.maxAge == nil && wishes.minFresh == nil && origin.staleWhileRevalidate != nil)
            case .validate, .fetch: #expect(!wishes.onlyIfCached)
            case .refuse: #expect(wishes.onlyIfCached)
            }
        }
    }

    static let responseParts = [
        "max-age=10", "s-maxage=12", "must-revalidate", "proxy-revalidate", "no-cache", "stale-while-revalidate=5",
        "stale-if-error=9", "immutable", "public",
    ]
    static let requestParts = [
        "max-age=5", "max-age=0", "max-stale", "max-stale=3", "min-fresh=2", "no-cache", "only-if-cached", "no-store",
    ]
    static func some(of parts: [String], _ random: inout Seeded) -> String {
        parts.filter { _ in Int.random(in: 0..<3, using: &random) == 0 }.joined(separator: ", ")
    }
}

@Suite("RFC 9111 §4.2.4 Serving Stale Responses")
struct StalenessTests {
    static let rows: [(rule: String, response: String, after: Int64, request: [String], allowed: Bool)] = [
        ("the origin fails, nothing forbids", "max-age=10", 1000, [], true),
        ("within a week", "max-age=10", 604_809, [], true),
        ("after it", "max-age=10", 604_810, [], false),
        ("must-revalidate", "max-age=10, must-revalidate", 11, [], false),
        ("proxy-revalidate", "max-age=10, proxy-revalidate", 11, [], false),
        ("s-maxage", "s-maxage=10", 11, [], false),
        ("no-cache", "max-age=10, no-cache", 5, [], false),
        ("must-revalidate, still fresh", "max-age=10, must-revalidate", 9, [], true),
        ("RFC 5861 §4 inside the window", "max-age=10, stale-if-error=5", 14, [], true),
        ("RFC 5861 §4 as it begins", "max-age=10, stale-if-error=5", 10, [], true),
        ("RFC 5861 §4 after it", "max-age=10, stale-if-error=5", 15, [], false),
        ("RFC 5861 §4 of no length", "max-age=10, stale-if-error=0", 10, [], false),
        ("RFC 5861 §4 does not lift must-revalidate", "max-age=10, must-revalidate, stale-if-error=5", 11, [], false),
        (
            "RFC 5861 §4 the request's own window", "max-age=10, stale-if-error=5", 16,
            ["Cache-Control: stale-if-error=20"], true
        ),
        (
            "RFC 5861 §4 the request's own window is the narrower one", "max-age=10, stale-if-error=60", 16,
            ["Cache-Control: stale-if-error=5"], false
        ),
        ("narrower than the general bound", "max-age=10", 16, ["Cache-Control: stale-if-error=5"], false),
        ("within it", "max-age=10", 14, ["Cache-Control: stale-if-error=5"], true),
        ("of no length", "max-age=10", 10, ["Cache-Control: stale-if-error=0"], false),
        ("never fresh: it may be made for one client", "max-age=0", 1, [], false),
        ("never fresh, and the client takes any", "max-age=0", 1, ["Cache-Control: max-stale"], false),
        ("never fresh, and the client's own window", "max-age=0", 1, ["Cache-Control: stale-if-error=9"], false),
        ("never fresh, and the origin gives leave", "max-age=0, stale-if-error=5", 1, [], true),
        ("no lifetime at all", "public", 1, [], false),
        ("nor does the request's", "max-age=10, must-revalidate", 16, ["Cache-Control: stale-if-error=20"], false),
        ("the client insists", "max-age=10", 11, ["Cache-Control: no-cache"], false),
        ("the client takes no stale one", "max-age=10", 11, ["Cache-Control: max-age=60"], false),
        ("nor one that soon is", "max-age=10", 11, ["Cache-Control: min-fresh=1"], false),
        ("a fresh one is better than an error", "max-age=10", 8, ["Cache-Control: max-age=5"], true),
        ("the client says how stale", "max-age=10", 12, ["Cache-Control: max-age=5, max-stale=2"], true),
        ("and no more", "max-age=10", 13, ["Cache-Control: max-stale=2"], false),
        ("the client takes any, we do not", "max-age=10", 604_810, ["Cache-Control: max-stale"], false),
        ("credentials", "max-age=10", 11, ["Authorization: Basic x"], false),
    ]

    @Test(arguments: rows) func `a stored response may be served if the origin fails`(
        _ row: (rule: String, response: String, after: Int64, request: [String], allowed: Bool)
    ) {
        let response = stored("Cache-Control: " + row.response)
        let request = CacheRequest(method: .get, fields: fields(row.request))
        #expect(
            mayServeStaleOnError(response, for: request, now: noon + seconds(row.after)) == row.allowed, "\(row.rule)")
    }

    @Test func `the policy bounds how long a response is served if the origin fails`() {
        var policy = CachePolicy()
        policy.staleOnErrorMax = seconds(60)
        let response = stored("Cache-Control: max-age=10", policy: policy)
        #expect(mayServeStaleOnError(response, for: get(), now: noon + seconds(69)))
        #expect(!mayServeStaleOnError(response, for: get(), now: noon + seconds(70)))
        policy.staleOnErrorMax = .zero
        #expect(
            !mayServeStaleOnError(
                stored("Cache-Control: max-age=10", policy: policy), for: get(), now: noon + seconds(10)))
    }
}

/// What a rule calls immutable may change all the same: who insists has the origin asked, once a minute.
@Suite("Reuse: clients that insist, and rules that say that nothing changes")
struct InsistenceTests {
    static let byOrigin = "max-age=10000, immutable"

    static let rows: [(origin: String, proven: Bool, asks: String, after: Int64, validates: Bool)] = [
        ("max-age=1", false, "no-cache", 60, true), ("max-age=1", false, "no-cache", 59, false),
        ("max-age=1", true, "no-cache", 60, true), ("max-age=1", true, "no-cache", 59, false),
        ("max-age=1", false, "max-age=0", 60, true), ("max-age=1", false, "max-age=0", 59, false),
        ("max-age=1", true, "max-age=0", 60, false), ("max-age=1", true, "max-age=0", 5000, false),
        ("max-age=1", false, "max-age=1", 5000, false), ("max-age=1", false, "max-stale", 5000, false),
        // The origin says it itself: RFC 8246 §2.1, and RFC 9111 §5.2.1.4 as it stands.
        (byOrigin, false, "max-age=0", 5000, false), (byOrigin, false, "no-cache", 1, true),
    ]
    @Test(arguments: rows) func `the origin is asked at most once a minute`(
        _ row: (origin: String, proven: Bool, asks: String, after: Int64, validates: Bool)
    ) {
        var handling = CacheHandling()
        handling.isImmutable = true
        handling.hasDigestInAddress = row.proven
        let terms = stored("Cache-Control: \(row.origin)", "ETag: \"a\"").terms(under: handling)
        let request = get("Cache-Control: \(row.asks)")
        let now = noon + Seconds(row.after)
        let decision = reuse(of: terms, for: request, now: now)
        if case .validate = decision { #expect(row.validates) } else { #expect(!row.validates, "\(decision)") }
        // If the origin cannot be asked, what never changes stands in.
        let isByOrigin = row.origin == InsistenceTests.byOrigin && row.asks == "no-cache"
        #expect(mayServeStaleOnError(terms, for: request, now: now) != isByOrigin)
    }
}
