import Caching
import Message
import Testing

@Suite("RFC 9213 Targeted HTTP Cache Control")
struct TargetedFieldsTests {
    static let rows: [(rule: String, lines: [String], lifetime: FreshnessLifetime)] = [
        (
            "§2.2 it takes the place of Cache-Control", ["CDN-Cache-Control: max-age=9", "Cache-Control: max-age=1"],
            .explicit(seconds(9), by: .maxAge)
        ),
        (
            "§2.2 and of Expires", ["CDN-Cache-Control: public", "Expires: \(date(9))", "Date: \(date(0))"], .unknown
        ),
        (
            "§2.2 ours before the general one",
            ["CDN-Cache-Control: max-age=9", "larder-cache-control: max-age=8", "Cache-Control: max-age=1"],
            .explicit(seconds(8), by: .maxAge)
        ),
        (
            "§2.2 what can not be read is as if it was not there",
            ["Larder-Cache-Control: max-age=", "CDN-Cache-Control: max-age=9"], .explicit(seconds(9), by: .maxAge)
        ),
        (
            "§2.2 nor what is empty", ["CDN-Cache-Control:", "Cache-Control: max-age=1"],
            .explicit(seconds(1), by: .maxAge)
        ),
        (
            "§2.1 keys are lower case, else it can not be read",
            ["CDN-Cache-Control: Max-Age=9", "Cache-Control: max-age=1"],
            .explicit(seconds(1), by: .maxAge)
        ),
        (
            "its lines are one", ["CDN-Cache-Control: max-age=9", "CDN-Cache-Control: s-maxage=7"],
            .explicit(seconds(7), by: .sMaxAge)
        ),
        ("§2.1 the last of a key", ["CDN-Cache-Control: max-age=1, max-age=9"], .explicit(seconds(9), by: .maxAge)),
        ("§2.1 parameters are ignored", ["CDN-Cache-Control: max-age=9;x=1"], .explicit(seconds(9), by: .maxAge)),
        ("a string is no time", ["CDN-Cache-Control: max-age=\"9\""], .explicit(.zero, by: .maxAge)),
        ("nor is a negative number", ["CDN-Cache-Control: max-age=-9"], .explicit(.zero, by: .maxAge)),
        (
            "what is too large is 2^31", ["CDN-Cache-Control: max-age=999999999999999"],
            .explicit(.deltaMax, by: .maxAge)
        ),
    ]

    static func response(_ lines: [String], heeds: Bool = true) -> CachedResponse {
        HandlingTests.response(lines) { $0.heedsTargetedFields = heeds }
    }

    @Test(arguments: rows) func `the first targeted field replaces Cache-Control`(
        _ row: (rule: String, lines: [String], lifetime: FreshnessLifetime)
    ) {
        #expect(Self.response(row.lines).lifetime == row.lifetime, "\(row.rule)")
    }

    @Test func `a targeted field is ignored unless the setting is on`() {
        let lines = ["CDN-Cache-Control: max-age=9", "Larder-Cache-Control: max-age=8", "Cache-Control: max-age=1"]
        #expect(Self.response(lines, heeds: false).lifetime == .explicit(seconds(1), by: .maxAge))
    }

    @Test func `a targeted field has the directives of Cache-Control`() {
        let directives = Self.response([
            "CDN-Cache-Control: no-store, no-cache=\"x\", private, public=?0, foo, must-revalidate, immutable"
        ]).directives
        #expect(directives.noStore && directives.isPrivate && directives.mustRevalidate && directives.immutable)
        #expect(!directives.isPublic, "what is false is absent")
        #expect(directives.noCacheFields == [Array("x".utf8)] && !directives.noCache)
        #expect(Self.response(["CDN-Cache-Control: no-store=1"]).directives.noStore, "of the wrong type, and strict")
    }

    @Test func `a targeted field decides about storing`() {
        var handling = CacheHandling()
        handling.heedsTargetedFields = true
        let lines = fields("CDN-Cache-Control: max-age=9", "Cache-Control: no-store")
        func decision(_ handling: CacheHandling) -> Storability {
            storability(of: get(), status: 200, fields: lines, policy: CachePolicy(), handling: handling, now: noon)
        }
        #expect(decision(handling) == .store)
        #expect(decision(CacheHandling()) == .doNotStore(.noStore))
    }
}
