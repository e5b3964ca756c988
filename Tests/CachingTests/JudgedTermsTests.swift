import Caching
import Message
import Rules
import Testing

@Suite("Lifetimes are judged when a stored response is read")
struct JudgedTermsTests {
    typealias Change = @Sendable (inout CacheHandling) -> Void
    static let none: Change = { _ in }
    static let hour: Change = { $0.ttl = seconds(3600) }
    static let immutable: Change = { $0.isImmutable = true }
    static let index: Change = { ($0.ttlMax, $0.ttlDefault) = (seconds(300), seconds(300)) }
    private static let forEver = FreshnessLifetime.explicit(seconds(3650 * 86_400), by: .policy)

    /// The handling, the response, and the lifetime it has under the handling, whatever it had when it was stored.
    static let rows: [(rule: String, change: Change, status: UInt16, lines: [String], lifetime: FreshnessLifetime)] = [
        ("no rule", none, 200, ["Cache-Control: max-age=9"], .explicit(seconds(9), by: .maxAge)),
        ("ttl replaces", hour, 200, ["Cache-Control: max-age=9"], .explicit(seconds(3600), by: .policy)),
        ("ttl_max bounds the origin", index, 200, ["Cache-Control: max-age=900"], .explicit(seconds(300), by: .maxAge)),
        ("and lets shorter ones be", index, 200, ["Cache-Control: max-age=9"], .explicit(seconds(9), by: .maxAge)),
        ("ttl_default where the origin says nothing", index, 200, [], .explicit(seconds(300), by: .policy)),
        (
            "and before the heuristic", index, 200, ["Last-Modified: \(date(-90_000))"],
            .explicit(seconds(300), by: .policy)
        ),
        ("but not for an error", index, 503, [], .unknown),
        ("nor a redirect of the moment", index, 302, [], .unknown),
        ("ttl_max bounds a redirect", index, 302, ["Cache-Control: max-age=900"], .explicit(seconds(300), by: .maxAge)),
        (
            "ttl_max bounds the heuristic", { $0.ttlMax = seconds(7) }, 200, ["Last-Modified: \(date(-90_000))"],
            .heuristic(seconds(7))
        ),
        ("immutable", immutable, 200, ["Cache-Control: max-age=9"], forEver),
        ("immutable, for a part", immutable, 206, [], forEver),
        ("an error changes", immutable, 404, ["Cache-Control: max-age=9"], .explicit(seconds(9), by: .maxAge)),
        ("a redirect changes", immutable, 302, ["Cache-Control: max-age=9"], .explicit(seconds(9), by: .maxAge)),
        (
            "even one that says it is permanent", immutable, 301, ["Cache-Control: max-age=9"],
            .explicit(seconds(9), by: .maxAge)
        ),
        (
            "immutable with ttl_max, which bounds errors", { ($0.isImmutable, $0.ttlMax) = (true, seconds(60)) }, 404,
            ["Cache-Control: max-age=900"], .explicit(seconds(60), by: .maxAge)
        ),
        ("immutable with ttl_max", { ($0.isImmutable, $0.ttlMax) = (true, seconds(60)) }, 200, [], forEver),
        ("negative_ttl", { $0.negativeTTL = seconds(5) }, 404, [], .explicit(seconds(5), by: .negative)),
    ]

    static func response(_ lines: [String], _ status: UInt16, _ change: Change) -> CachedResponse {
        var handling = CacheHandling()
        change(&handling)
        return CachedResponse(
            status: status, fields: fields(lines), requestTime: noon, responseTime: noon, policy: CachePolicy(),
            handling: handling)
    }

    @Test(arguments: rows.indices, [none, hour, immutable, index]) func `the rules of now decide`(
        _ index: Int, _ before: Change
    ) throws {
        let row = Self.rows[index]
        var handling = CacheHandling()
        row.change(&handling)
        let stored = Self.response(row.lines, row.status, before)
        let judged = stored.judged(by: handling)
        #expect(judged.lifetime == row.lifetime, "\(row.rule)")
        #expect(judged.terms == Self.response(row.lines, row.status, row.change).terms, "\(row.rule)")
        #expect(judged.judged(by: handling) == judged)

        // And after a restart.
        var writer = StoredFormWriter()
        stored.write(to: &writer)
        var reader = StoredFormReader(writer.finish())
        #expect(
            try CachedResponse(from: &reader, fields: fields(row.lines)).judged(by: handling).lifetime == row.lifetime)
    }

    @Test func `what a trusted client gave counts as given`() {
        let byClient: Change = { ($0.ttl, $0.hasLifetimeOfClient) = (seconds(60), true) }
        let stored = Self.response([], 200, byClient)
        #expect(stored.judged(by: CacheHandling()).lifetime == .explicit(seconds(60), by: .policy))
        #expect(stored.hasFixedTerms)
    }

    @Test func `the short path serves what no rule concerns`() {
        #expect(Self.response(["Cache-Control: max-age=9"], 200, Self.none).hasFixedTerms)
        #expect(Self.response(["Cache-Control: max-age=9"], 404, Self.none).hasFixedTerms)
        #expect(!Self.response([], 404, Self.none).hasFixedTerms)
        #expect(!Self.response(["Cache-Control: max-age=9"], 200, Self.hour).hasFixedTerms)
        #expect(!Self.response(["Cache-Control: max-age=9"], 200, Self.immutable).hasFixedTerms)
        let shared: Change = { ($0.respectsCacheControl, $0.ttl) = (false, seconds(9)) }
        #expect(!Self.response(["Cache-Control: max-age=9"], 200, shared).hasFixedTerms)
    }

    @Test func `who may share a response is judged when it is read, too`() {
        let asks = get("Authorization: Basic x")
        let stored = Self.response(["Cache-Control: max-age=9", "ETag: \"1\""], 200) { $0.authorization = .public }
        #expect(!stored.hasFixedTerms)
        func decision(_ use: AuthorizationUse, _ policies: CacheUse = []) -> Reuse {
            var handling = CacheHandling()
            handling.authorization = use
            return reuse(of: stored.judged(by: handling), for: asks, use: policies, now: noon)
        }
        #expect(decision(.public) == .serve(age: .zero, ttl: seconds(9)))
        #expect(decision(.standard) == .fetch(.authorization))
        #expect(decision(.validate) == .validate(.responseNoCache))
        var proving = CacheHandling()
        proving.authorization = .validate
        let judged = stored.judged(by: proving)
        for request in [asks, get("Cache-Control: max-stale"), get()] {
            #expect(reuse(of: judged, for: request, now: noon) == .validate(.responseNoCache))
            #expect(!mayServeStaleOnError(judged, for: request, now: noon + seconds(60)))
        }
    }

    @Test func `no policy serves what each client has to prove access to`() {
        var changes = HandlingChanges()
        changes.use = [.cacheFirst, .staleOnError]
        changes.authorization = .validate
        let rules = CacheRules(rules: [CacheRule(changes: changes, number: 1)])
        let request = RuleRequest(
            client: nil, method: .get, destination: .name("a"), port: 80, isTunnel: false, pathAndQuery: [0x2F])
        #expect(rules.handling(of: request).use == [])
        #expect(rules.handling(of: request, clientPolicy: LarderPolicy.parse("cache-only".utf8)).use == [])
    }

    @Test func `a client that insists has the origin asked about what a rule calls immutable`() {
        let stored = Self.response(["Cache-Control: max-age=9"], 200, Self.immutable)
        let later = noon + seconds(86_400)
        #expect(reuse(of: stored, for: get(), now: later) == .serve(age: seconds(86_400), ttl: seconds(3649 * 86_400)))
        let reload = get("Cache-Control: max-age=0")
        #expect(reuse(of: stored, for: reload, now: later) == .validate(.requestMaxAge))
        #expect(reuse(of: stored, for: get("Cache-Control: no-cache"), now: later) == .validate(.requestNoCache))
        let index = Self.response(["Cache-Control: max-age=9"], 200, Self.index)
        #expect(reuse(of: index, for: reload, now: noon) == .validate(.requestMaxAge))
    }
}
