import Caching
import Message
import Testing

@Suite("RFC 9111 §3 Storing Responses in Caches")
struct StorabilityTests {
    struct Row: Sendable {
        var rule: String
        var status: UInt16
        var request: [String]
        var response: [String]
        var reason: NotStoredReason?
        init(
            _ rule: String, _ status: UInt16 = 200, asks request: [String] = [], gives response: [String],
            then reason: NotStoredReason?
        ) {
            (self.rule, self.status, self.request, self.response, self.reason) = (
                rule, status, request, response, reason
            )
        }
    }

    static let fresh = "Cache-Control: max-age=60"
    static let rows = [
        Row("explicit lifetime", gives: [fresh], then: nil),
        Row("s-maxage", gives: ["Cache-Control: s-maxage=60"], then: nil),
        Row("Expires", gives: ["Expires: \(date(60))"], then: nil),
        Row("heuristic", gives: ["Last-Modified: \(date(-1000))"], then: nil),
        Row("a validator, to be asked each time", gives: ["ETag: \"a\""], then: nil),
        Row("nothing to go on", gives: ["Content-Type: text/html"], then: .neverReusable),
        Row("stale at once, without validator", gives: ["Cache-Control: max-age=0"], then: .neverReusable),
        Row("stale at once, with validator", gives: ["Cache-Control: max-age=0", "ETag: \"a\""], then: nil),
        Row(
            "§5.2.2.4 no-cache, with validator", gives: ["Cache-Control: no-cache, max-age=9", "ETag: \"a\""], then: nil
        ),
        Row("§5.2.2.4 no-cache, without", gives: ["Cache-Control: no-cache, max-age=9"], then: .neverReusable),
        Row("§5.2.2.4 no-cache for one field", gives: ["Cache-Control: no-cache=\"a\", max-age=9"], then: nil),
        Row(
            "RFC 9110 §14.4 a part with the status of the whole", gives: [fresh, "Content-Range: bytes 0-1/9"],
            then: .partStatus),
        Row("all of it", gives: [fresh, "Content-Range: bytes 0-8/9"], then: .partStatus),
        Row("a Content-Range that cannot be read", gives: [fresh, "Content-Range: x"], then: .partStatus),
        Row("in an error", 404, gives: [fresh, "Content-Range: bytes */9"], then: .partStatus),
        Row("in a 416", 416, gives: [fresh, "Content-Range: bytes */9"], then: .aboutRequest),
        Row("§5.2.2.5 no-store", gives: ["Cache-Control: no-store, max-age=60"], then: .noStore),
        Row("§5.2.1.5 request no-store", asks: ["Cache-Control: no-store"], gives: [fresh], then: .requestNoStore),
        Row("request no-cache stores", asks: ["Cache-Control: no-cache"], gives: [fresh], then: nil),
        Row("§5.2.2.7 private", gives: ["Cache-Control: private, max-age=60"], then: .isPrivate),
        Row("private, even where public", gives: ["Cache-Control: private, public, max-age=60"], then: .isPrivate),
        Row("§5.2.2.7 private for one field", gives: ["Cache-Control: private=\"x\", max-age=60"], then: nil),
        Row("§3.5 Authorization", asks: ["Authorization: Basic x"], gives: [fresh], then: .authorization),
        Row(
            "§3.5 with public", asks: ["Authorization: Basic x"], gives: ["Cache-Control: public, max-age=6"], then: nil
        ),
        Row("§3.5 with s-maxage", asks: ["Authorization: Basic x"], gives: ["Cache-Control: s-maxage=6"], then: nil),
        Row(
            "§3.5 with must-revalidate", asks: ["Authorization: Basic x"],
            gives: ["Cache-Control: must-revalidate, max-age=6"], then: nil),
        Row(
            "§3.5 proxy-revalidate is not enough", asks: ["Authorization: Basic x"],
            gives: ["Cache-Control: proxy-revalidate, max-age=6"], then: .authorization),
        Row("Set-Cookie", gives: [fresh, "Set-Cookie: a=b"], then: .setCookie),
        Row("Set-Cookie with public", gives: ["Cache-Control: public, max-age=9", "Set-Cookie: a=b"], then: nil),
        Row("Set-Cookie with s-maxage", gives: ["Cache-Control: s-maxage=9", "Set-Cookie: a=b"], then: nil),
        Row(
            "§5.2.2.7 Set-Cookie that private names is left out",
            gives: ["Cache-Control: max-age=9, private=\"Set-Cookie\"", "Set-Cookie: a=b"], then: nil),
        Row(
            "§5.2.2.4 or no-cache names",
            gives: ["Cache-Control: max-age=9, no-cache=\"set-cookie\"", "Set-Cookie: a=b"],
            then: nil),
        Row(
            "§5.2.2.7 private for a field that tells how to read the content is for all",
            gives: ["Cache-Control: private=\"Content-Encoding\", max-age=60"], then: .isPrivate),
        Row("§4.1 Vary: *", gives: [fresh, "Vary: Accept, *"], then: .varyStar),
        Row("Vary with names", gives: [fresh, "Vary: Accept"], then: nil),
        Row("§3 interim", 103, gives: [fresh], then: .interimStatus),
        Row("§3.3 partial", 206, gives: [fresh, "ETag: \"a\""], then: .partialContent),
        Row("304 is for freshening", 304, gives: [fresh], then: .notModified),
        Row("heuristics are not for 302", 302, gives: ["Last-Modified: \(date(-1000))"], then: .notCacheable),
        Row("nor for 500", 500, gives: ["Last-Modified: \(date(-1000))"], then: .notCacheable),
        Row("RFC 6585 §4 429 with explicit lifetime", 429, gives: [fresh], then: .aboutRequest),
        Row("412 with explicit lifetime", 412, gives: [fresh], then: .aboutRequest),
        Row("416 with explicit lifetime", 416, gives: ["Cache-Control: public, max-age=9"], then: .aboutRequest),
        Row("302 with explicit lifetime", 302, gives: [fresh], then: nil),
        Row("500 with explicit lifetime", 500, gives: [fresh], then: nil),
        Row("404 with explicit lifetime", 404, gives: [fresh], then: nil),
        Row("unknown status with explicit lifetime", 599, gives: [fresh], then: nil),
        Row(
            "unknown status with public", 299, gives: ["Cache-Control: public", "Last-Modified: \(date(-1000))"],
            then: nil),
        Row(
            "§5.2.2.3 must-understand, unknown status", 299, gives: ["Cache-Control: must-understand, max-age=9"],
            then: .statusNotUnderstood),
        Row("§5.2.2.3 must-understand, known status", gives: ["Cache-Control: must-understand, max-age=9"], then: nil),
        Row(
            "§5.2.2.5 no-store with a validator and everything else",
            gives: ["Cache-Control: no-store, public, s-maxage=60"],
            then: .noStore),
        Row(
            "§5.2.2.3 must-understand takes no-store back",
            gives: ["Cache-Control: must-understand, no-store, max-age=9"],
            then: nil),
        Row(
            "§5.2.2.3 but not where the status is unknown", 299,
            gives: ["Cache-Control: must-understand, no-store, max-age=9"], then: .statusNotUnderstood),
    ]

    @Test(arguments: rows) func `a response is stored only as the rules allow`(_ row: Row) {
        let request = CacheRequest(method: .get, fields: fields(row.request))
        let decision = storability(
            of: request, status: row.status, fields: fields(row.response), policy: CachePolicy(), now: noon)
        #expect(decision == row.reason.map { .doNotStore($0) } ?? .store, "\(row.rule)")
    }

    @Test(arguments: Method.allCases) func `only responses to GET are stored`(_ method: Method) {
        let decision = storability(
            of: CacheRequest(method: method, fields: Fields()), status: 200, fields: fields(Self.fresh),
            policy: CachePolicy(), now: noon)
        #expect(decision == (method == .get ? .store : .doNotStore(.method)))
    }

    @Test(arguments: [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501] as [UInt16])
    func `RFC 9110 §15.1: some statuses are stored with a heuristic lifetime`(_ status: UInt16) {
        let decision = storability(
            of: get(), status: status, fields: fields("Last-Modified: \(date(-1000))"), policy: CachePolicy(), now: noon
        )
        #expect(decision == .store)
    }

    @Test func `§3: every final status is stored with an explicit lifetime, except those about one request`() {
        let others: Set<UInt16> = [206, 304, 407, 412, 416, 417, 428, 429, 431, 511]
        for status in 200...999 as ClosedRange<UInt16> {
            let decision = storability(
                of: get(), status: status, fields: fields(Self.fresh), policy: CachePolicy(), now: noon)
            #expect((decision == .store) == !others.contains(status), "\(status)")
        }
    }

    @Test(arguments: [407, 412, 416, 417, 428, 429, 431, 511] as [UInt16])
    func `a response about one request is not stored`(_ status: UInt16) {
        let decision = storability(
            of: get(), status: status, fields: fields("Cache-Control: public, s-maxage=9"), policy: CachePolicy(),
            now: noon)
        #expect(decision == .doNotStore(.aboutRequest))
    }

    @Test func `the response to a GET with content is not stored`() {
        var request = get()
        request.hasBody = true
        let decision = storability(
            of: request, status: 200, fields: fields(Self.fresh), policy: CachePolicy(), now: noon)
        #expect(decision == .doNotStore(.requestBody))
    }

    @Test(arguments: methodOverrides) func `the response to an overridden method is not stored`(_ name: String) throws {
        let target = try #require(TargetURI("http://a.example/p".utf8))
        for method in [Method.get, .post, .head, .options] {
            let request = CacheRequest(method: method, fields: fields("\(name): GET"))
            let decision = storability(
                of: request, status: 200, fields: fields("Cache-Control: public, max-age=9", "Content-Location: /p"),
                policy: CachePolicy(), now: noon, target: target)
            #expect(decision == .doNotStore(.methodOverride))
        }
        let part = decideStoringPart(
            of: get("\(name): GET", "Range: bytes=0-1"), status: 206,
            fields: fields("ETag: \"a\"", "Content-Range: bytes 0-1/10"), policy: CachePolicy(), requestTime: noon,
            responseTime: noon)
        guard case .doNotStore(.methodOverride) = part else {
            Issue.record("a part is stored")
            return
        }
    }

    static let renewals: [(rule: String, stored: [String], renewed: [String], reason: NotStoredReason?)] = [
        ("other times", [fresh], ["Cache-Control: max-age=90"], nil),
        ("§5.2.2.5 no-store", [fresh], ["Cache-Control: no-store"], .noStore),
        ("§5.2.2.7 private", [fresh], ["Cache-Control: private"], .isPrivate),
        ("§3.5 no longer for requests with credentials", ["Cache-Control: public, max-age=9"], [fresh], .authorization),
        (
            "§3.5 which need not be said twice alike", ["Cache-Control: public, max-age=9"],
            ["Cache-Control: s-maxage=9"], nil
        ),
        ("§3.5 nor where it was not for them", [fresh], ["Cache-Control: max-age=9"], nil),
        ("§4.1 Vary: *", [fresh], [fresh, "Vary: *"], .varyStar),
        ("§4.1 another Vary", [fresh], [fresh, "Vary: Accept"], nil),
        ("as many fields as a head may have", [fresh], [fresh] + (2...100).map { "X-\($0): v" }, nil),
        ("more fields", [fresh], [fresh] + (2...103).map { "X-\($0): v" }, .headTooLarge),
        ("more bytes", [fresh], [fresh, "X: " + String(repeating: "v", count: 70_000)], .headTooLarge),
    ]

    @Test(arguments: renewals) func `§4.3.4: a renewed response stays only if it may be stored, for all it was for`(
        _ row: (rule: String, stored: [String], renewed: [String], reason: NotStoredReason?)
    ) {
        func response(_ lines: [String]) -> CachedResponse {
            CachedResponse(
                status: 200, fields: fields(lines), requestTime: noon, responseTime: noon, policy: CachePolicy())
        }
        let objection = objectionToKeeping(
            response(row.renewed), fields(row.renewed), insteadOf: response(row.stored), handling: CacheHandling(),
            limits: Limits())
        #expect(objection == row.reason, "\(row.rule)")
    }

    @Test func `every reason has a row and a text of its own`() {
        var seen = Set(Self.rows.compactMap(\.reason) + [.method, .methodOverride, .requestBody])
        seen.formUnion(Self.renewals.compactMap(\.reason))
        seen.formUnion(HandlingTests.storing.compactMap(\.reason) + PartTests.rows.compactMap(\.reason))
        // `Retrieval` decides the one, and PageTests have the rows of the other.
        seen.formUnion([.staleElsewhere, .page])
        // The fetch knows the others: they are the state of the store, or that of a proof.
        seen.formUnion(NotStoredReason.allCases.filter(\.isPassing))
        #expect(seen == Set(NotStoredReason.allCases))
        #expect(Set(NotStoredReason.allCases.map(\.text)).count == NotStoredReason.allCases.count)
    }
}

@Suite("RFC 9111 §3.1 Storing Header and Trailer Fields")
struct StoredFieldsTests {
    @Test func `all end-to-end fields are stored as they arrived, in their order`() {
        let received = fields(
            "X-b: 1", "connection: close, X-Hop", "ETag: \"a\"", "x-hop: 1", "X-B: 2 ", "Keep-Alive: 5", "TE: x",
            "Transfer-Encoding: chunked", "Upgrade: h2c", "Trailer: x", "Proxy-Authenticate: Basic",
            "Proxy-Authentication-Info: x", "Proxy-Authorization: x", "Proxy-Connection: close", "Set-Cookie: a=b",
            "X-Empty:")
        #expect(
            lines(storedFields(of: received)) == ["X-b: 1", "ETag: \"a\"", "X-B: 2", "Set-Cookie: a=b", "X-Empty: "])
    }

    @Test func `fields that a targeted field lists are not stored either`() {
        var handling = CacheHandling()
        handling.heedsTargetedFields = true
        let received = fields("CDN-Cache-Control: max-age=9, private=\"X-A\"", "X-A: 1", "X-B: 2")
        let response = CachedResponse(
            status: 200, fields: received, requestTime: noon, responseTime: noon, policy: CachePolicy(),
            handling: handling)
        #expect(lines(storedFields(of: received, as: response)).suffix(1) == ["X-B: 2"])
        #expect(storedFields(of: received).lines.count == 3)
    }

    @Test func `fields that private and no-cache name are not stored`() {
        let received = fields(
            "Cache-Control: private=\"Set-Cookie\", no-cache=\"x-a, X-B\", max-age=9", "Set-Cookie: a", "X-A: 1",
            "x-b: 2", "X-C: 3")
        #expect(lines(storedFields(of: received)).suffix(1) == ["X-C: 3"])
        #expect(storedFields(of: received).lines.count == 2)
    }
}
