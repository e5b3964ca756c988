import Caching
import Message
import Testing

@Suite("How a response is handled where the operator overrides RFC 9111 §3")
struct HandlingTests {
    typealias Change = @Sendable (inout CacheHandling) -> Void
    struct Storing: Sendable {
        var rule: String
        var change: Change
        var status: UInt16
        var request: [String]
        var response: [String]
        var reason: NotStoredReason?
        init(
            _ rule: String, _ change: @escaping Change, _ status: UInt16 = 200, asks request: [String] = [],
            gives response: [String], then reason: NotStoredReason?
        ) {
            (self.rule, self.change, self.status) = (rule, change, status)
            (self.request, self.response, self.reason) = (request, response, reason)
        }
    }
    static let overrides: Change = { $0.respectsCacheControl = false }
    static let hour: Change = { $0.ttl = seconds(3600) }
    static let overridesForAnHour: Change = { ($0.respectsCacheControl, $0.ttl) = (false, seconds(3600)) }
    /// Of the rows whose handling has any.
    static let particulars = HandlingParticulars(droppedCookies: [Array("a".utf8), Array("b".utf8)])
    static func shared(_ use: AuthorizationUse) -> Change { { $0.authorization = use } }
    static let credentials = ["Authorization: Basic x"]

    static let storing = [
        Storing("no-write", { $0.use = .noWrite }, gives: ["Cache-Control: public, max-age=9"], then: .policy),
        Storing("no-store is overridden", overrides, gives: ["Cache-Control: no-store, max-age=9"], then: nil),
        Storing("private is overridden", overrides, gives: ["Cache-Control: private, max-age=9"], then: nil),
        Storing("no-cache is overridden", overrides, gives: ["Cache-Control: no-cache, max-age=9"], then: nil),
        Storing(
            "a request's no-store is the client's, and stays", overridesForAnHour, asks: ["Cache-Control: no-store"],
            gives: [], then: .requestNoStore),
        Storing("Vary: * stays", overridesForAnHour, gives: ["Vary: *"], then: .varyStar),
        Storing(
            "credentials stay protected", overrides, asks: credentials, gives: ["Cache-Control: max-age=9"],
            then: .authorization),
        Storing(
            "must-revalidate that is overridden lets nobody share them", overrides, asks: credentials,
            gives: ["Cache-Control: must-revalidate, max-age=9"], then: .authorization),
        Storing(
            "a ttl alone neither", hour, asks: credentials, gives: ["Cache-Control: max-age=9"], then: .authorization),
        Storing(
            "a ttl of the same rule does", overridesForAnHour, asks: credentials, gives: ["Cache-Control: max-age=9"],
            then: nil),
        Storing(
            "cookies stay protected", overridesForAnHour, gives: ["Cache-Control: max-age=9", "Set-Cookie: a"],
            then: .setCookie),
        Storing(
            "cookies are stored where a rule says so", { $0.storesCookies = true },
            gives: ["Cache-Control: max-age=9", "Set-Cookie: a"], then: nil),
        Storing(
            "with an explicit lifetime only", { $0.storesCookies = true },
            gives: ["Last-Modified: \(date(-1000))", "Set-Cookie: a"], then: .setCookie),
        Storing(
            "which the rule's ttl is", { ($0.storesCookies, $0.ttl) = (true, seconds(9)) }, gives: ["Set-Cookie: a"],
            then: nil),
        Storing(
            "which a negative one is not", { ($0.storesCookies, $0.negativeTTL) = (true, seconds(9)) }, 404,
            gives: ["Set-Cookie: a"], then: .setCookie),
        Storing(
            "cookies that are named do not count", { $0.hasParticulars = true },
            gives: ["Cache-Control: max-age=9", "Set-Cookie: a=1", "Set-Cookie: b=2; Path=/"], then: nil),
        Storing(
            "any other does", { $0.hasParticulars = true },
            gives: ["Cache-Control: max-age=9", "Set-Cookie: a=1", "Set-Cookie: c=2"], then: .setCookie),
        Storing(
            "their case matters", { $0.hasParticulars = true },
            gives: ["Cache-Control: max-age=9", "Set-Cookie: A=1"],
            then: .setCookie),
        Storing(
            "credentials with public", shared(.public), asks: credentials, gives: ["Cache-Control: max-age=9"],
            then: nil),
        Storing("with validate", shared(.validate), asks: credentials, gives: ["Cache-Control: max-age=9"], then: nil),
        Storing("per credential", shared(.separate), asks: credentials, gives: ["Cache-Control: max-age=9"], then: nil),
        Storing(
            "what is private stays private", shared(.public), asks: credentials,
            gives: ["Cache-Control: private, max-age=9"],
            then: .isPrivate),
        Storing(
            "and no-store holds", shared(.separate), asks: credentials, gives: ["Cache-Control: no-store"],
            then: .noStore),
        Storing(
            "a 401 is of one client", shared(.public), 401, gives: ["Cache-Control: max-age=9"], then: .aboutRequest),
        Storing("a 403 too", shared(.separate), 403, gives: ["Cache-Control: max-age=9"], then: .aboutRequest),
        Storing(
            "a 404 may hide what others may see", shared(.validate), 404, gives: ["Cache-Control: max-age=9"],
            then: .aboutRequest),
        Storing("a ttl gives a lifetime", hour, gives: ["Content-Type: a"], then: nil),
        Storing("a ttl does not override no-store", hour, gives: ["Cache-Control: no-store"], then: .noStore),
        Storing("a ttl makes no error last", hour, 500, gives: ["Content-Type: a"], then: .notCacheable),
        Storing("nor a 404 without a lifetime", hour, 404, gives: ["Content-Type: a"], then: .neverReusable),
        Storing("nor a 302 without one", hour, 302, gives: ["Location: /"], then: .notCacheable),
        Storing("but a 302 with one", hour, 302, gives: ["Cache-Control: max-age=1"], then: nil),
        Storing("negative caching", { $0.negativeTTL = seconds(5) }, 404, gives: ["Content-Type: a"], then: nil),
        Storing("of a 410 as well", { $0.negativeTTL = seconds(5) }, 410, gives: ["Content-Type: a"], then: nil),
        Storing(
            "of no other error", { $0.negativeTTL = seconds(5) }, 503, gives: ["Content-Type: a"], then: .notCacheable),
        Storing("cache-first keeps what is stale at once", { $0.use = .cacheFirst }, gives: ["A: b"], then: nil),
        Storing("stale-on-error too", { $0.use = .staleOnError }, gives: ["Cache-Control: max-age=0"], then: nil),
        Storing(
            "neither keeps what no rule of the RFC lets be stored", { $0.use = .cacheFirst }, 302, gives: ["A: b"],
            then: .notCacheable),
        Storing(
            "must-understand is about correctness, and stays", overrides, 299,
            gives: ["Cache-Control: must-understand, max-age=9"], then: .statusNotUnderstood),
    ]

    @Test(arguments: storing) func `the handling decides about storing`(_ row: Storing) {
        var handling = CacheHandling()
        row.change(&handling)
        let decision = storability(
            of: CacheRequest(method: .get, fields: fields(row.request)), status: row.status,
            fields: fields(row.response), policy: CachePolicy(), handling: handling,
            particulars: handling.hasParticulars ? Self.particulars : nil, now: noon)
        #expect(decision == row.reason.map { .doNotStore($0) } ?? .store, "\(row.rule)")
    }

    static let lifetimes:
        [(rule: String, change: Change, status: UInt16, lines: [String], lifetime: FreshnessLifetime)] = [
            (
                "ttl takes the place of max-age", hour, 200, ["Cache-Control: max-age=1"],
                .explicit(seconds(3600), by: .policy)
            ),
            ("of Expires", hour, 200, ["Expires: 0"], .explicit(seconds(3600), by: .policy)),
            ("of the heuristic", hour, 200, ["Last-Modified: \(date(-1000))"], .explicit(seconds(3600), by: .policy)),
            ("of nothing", hour, 301, [], .explicit(seconds(3600), by: .policy)),
            (
                "zero is a lifetime", { $0.ttl = .zero }, 200, ["Cache-Control: max-age=9"],
                .explicit(.zero, by: .policy)
            ),
            (
                "an error keeps what the origin says, for so long as the operator says", hour, 404,
                ["Cache-Control: max-age=1"], .explicit(seconds(3600), by: .policy)
            ),
            ("an error without a lifetime has none", hour, 404, [], .unknown),
            ("negative", { $0.negativeTTL = seconds(5) }, 404, [], .explicit(seconds(5), by: .negative)),
            (
                "negative takes the place of the heuristic", { $0.negativeTTL = seconds(5) }, 410,
                ["Last-Modified: \(date(-1000))"], .explicit(seconds(5), by: .negative)
            ),
            (
                "not of what the origin says", { $0.negativeTTL = seconds(5) }, 404, ["Cache-Control: max-age=1"],
                .explicit(seconds(1), by: .maxAge)
            ),
            ("nor for another status", { $0.negativeTTL = seconds(5) }, 200, [], .unknown),
        ]

    static func response(_ lines: [String], status: UInt16 = 200, _ change: Change) -> CachedResponse {
        var handling = CacheHandling()
        change(&handling)
        return CachedResponse(
            status: status, fields: fields(lines), requestTime: noon, responseTime: noon, policy: CachePolicy(),
            handling: handling)
    }

    @Test(arguments: lifetimes) func `the handling can give a lifetime`(
        _ row: (rule: String, change: Change, status: UInt16, lines: [String], lifetime: FreshnessLifetime)
    ) {
        #expect(Self.response(row.lines, status: row.status, row.change).lifetime == row.lifetime, "\(row.rule)")
    }

    @Test func `a ttl counts from arrival, whatever age and clock say`() {
        for lines in [["Age: 5000"], ["Date: \(date(-90))"], ["Date: \(date(90))"]] {
            let response = Self.response(lines, Self.hour)
            #expect(response.remainingLifetime(noon) == seconds(3600))
            #expect(response.isFresh(noon + seconds(3599)) && !response.isFresh(noon + seconds(3600)))
        }
        #expect(Self.response(["Age: 5000"], Self.hour).currentAge(noon) == seconds(5000), "Age is told as it is")
    }

    @Test func `a directive that is overridden no longer forbids serving stale`() {
        for line in ["must-revalidate", "proxy-revalidate", "s-maxage=10", "no-cache"] {
            let overridden = Self.response(["Cache-Control: max-age=10, \(line)"], Self.overrides)
            let respected = Self.response(["Cache-Control: max-age=10, \(line)"], { _ in })
            #expect(mayServeStaleOnError(overridden, for: get(), now: noon + seconds(11)))
            #expect(!mayServeStaleOnError(respected, for: get(), now: noon + seconds(11)))
            #expect(reuse(of: overridden, for: get(), now: noon) == .serve(age: .zero, ttl: seconds(10)))
        }
    }

    @Test func `a field list counts whatever the rules override`() {
        let received = fields("Cache-Control: private=\"X\", no-store, max-age=9", "X: 1", "Y: 2")
        var handling = CacheHandling()
        Self.overrides(&handling)
        guard
            case .store(let response) = decideStoring(
                of: get(), status: 200, fields: received, policy: CachePolicy(), handling: handling,
                requestTime: noon, responseTime: noon)
        else {
            Issue.record("not stored")
            return
        }
        #expect(lines(storedFields(of: received, as: response)).suffix(1) == ["Y: 2"])
    }

    @Test func `a freshened response is handled by the same rules`() {
        let before = Self.response(["Cache-Control: no-cache", "ETag: \"a\""], Self.overridesForAnHour)
        let after = freshened(fields("Cache-Control: no-cache", "ETag: \"a\""), by: fields("Age: 4"))
        #expect(Self.response(lines(after), Self.overridesForAnHour).remainingLifetime(noon) == seconds(3600))
        #expect(!before.directives.noCache)
    }
}
