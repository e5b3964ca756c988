import Caching
import Message
import Testing

@Suite("RFC 9111 §5.2.1 Request Directives, §5.4 Pragma")
struct RequestDirectivesTests {
    typealias Change = @Sendable (inout RequestDirectives) -> Void
    static let rows: [(rule: String, lines: [String], change: Change)] = [
        ("no field, no wish", [], { _ in }),
        ("§5.2.1.1 max-age", ["Cache-Control: max-age=5"], { $0.maxAge = seconds(5) }),
        ("§5.2.1.2 max-stale without a number", ["Cache-Control: max-stale"], { $0.maxStale = .any }),
        ("§5.2.1.2 max-stale with one", ["Cache-Control: max-stale=9"], { $0.maxStale = .upTo(seconds(9)) }),
        ("max-stale with rubbish allows nothing", ["Cache-Control: max-stale=x"], { $0.maxStale = .upTo(.zero) }),
        (
            "max-stale with a blank before = allows nothing", ["Cache-Control: max-stale =9"],
            { $0.maxStale = .upTo(.zero) }
        ),
        (
            "the bounded max-stale counts, before", ["Cache-Control: max-stale=9, max-stale"],
            { $0.maxStale = .upTo(seconds(9)) }
        ),
        (
            "the bounded max-stale counts, behind", ["Cache-Control: max-stale, max-stale=9, max-stale=10"],
            { $0.maxStale = .upTo(seconds(9)) }
        ),
        ("§5.2.1.3 min-fresh", ["Cache-Control: min-fresh=7"], { $0.minFresh = seconds(7) }),
        ("the longest min-fresh counts", ["Cache-Control: min-fresh=7, min-fresh=8"], { $0.minFresh = seconds(8) }),
        ("min-fresh with rubbish wants the most", ["Cache-Control: min-fresh=-1"], { $0.minFresh = .deltaMax }),
        ("§5.2.1.4 no-cache", ["Cache-Control: no-cache"], { $0.noCache = true }),
        ("§5.2.1.5 no-store", ["Cache-Control: no-store"], { $0.noStore = true }),
        ("§5.2.1.6 no-transform", ["Cache-Control: no-transform"], { $0.noTransform = true }),
        ("§5.2.1.7 only-if-cached", ["Cache-Control: only-if-cached"], { $0.onlyIfCached = true }),
        ("RFC 5861 stale-if-error", ["Cache-Control: stale-if-error=60"], { $0.staleIfError = seconds(60) }),
        ("stale-if-error with rubbish allows nothing", ["Cache-Control: stale-if-error"], { $0.staleIfError = .zero }),
        ("names in any case", ["cache-control: NO-Cache, Max-AGE=1"], { ($0.noCache, $0.maxAge) = (true, seconds(1)) }),
        ("the smallest max-age counts", ["Cache-Control: max-age=5, max-age=2, max-age=9"], { $0.maxAge = seconds(2) }),
        ("max-age with rubbish is 0", ["Cache-Control: max-age=1.5"], { $0.maxAge = .zero }),
        (
            "all lines count", ["Cache-Control: no-store", "Cache-Control: max-age=1"],
            { ($0.noStore, $0.maxAge) = (true, seconds(1)) }
        ),
        ("response directives mean nothing here", ["Cache-Control: public, private, s-maxage=1, immutable"], { _ in }),
        ("§5.4 Pragma counts where there is no Cache-Control", ["Pragma: no-cache"], { $0.noCache = true }),
        (
            "§5.4 Pragma does not count where there is one", ["Pragma: no-cache", "Cache-Control: max-age=1"],
            { $0.maxAge = seconds(1) }
        ),
        ("of Pragma only no-cache is known", ["Pragma: no-store, max-age=0"], { _ in }),
    ]

    @Test(arguments: rows.indices) func `the directives of a request mean what the RFC says`(_ index: Int) {
        let row = Self.rows[index]
        var expected = RequestDirectives()
        row.change(&expected)
        #expect(CacheRequest(method: .get, fields: fields(row.lines)).directives == expected, "\(row.rule)")
    }

    @Test func `a plain request has no field that concerns the cache`() {
        #expect(get("Accept: */*", "User-Agent: x", "Accept-Encoding: gzip").isPlain)
        for line in [
            "Cache-Control: x", "Pragma: no-cache", "Authorization: Basic x", "Range: bytes=0-1", "If-Match: *",
            "If-None-Match: *", "If-Modified-Since: x", "If-Unmodified-Since: x", "If-Range: \"a\"",
            "X-HTTP-Method: GET", "x-http-method-override: GET", "X-Method-Override: GET",
        ] { #expect(!get(line).isPlain, "\(line)") }
        #expect(CacheRequest(method: .head, fields: Fields()).isPlain)
        #expect(!CacheRequest(method: .post, fields: Fields()).isPlain)
        var withBody = get()
        withBody.hasBody = true
        #expect(!withBody.isPlain)
    }

    @Test func `a request knows which kinds of field it has`() {
        #expect(get("Authorization: Basic x").hasAuthorization)
        #expect(get("Range: bytes=0-").hasRange)
        #expect(!get("Range: bytes=0-", "If-Range: \"a\"").hasPreconditions)
        #expect(get("If-Range: \"a\"").hasIfRange && !get("Range: bytes=0-").hasIfRange)
        #expect(get("If-None-Match: \"a\"").hasPreconditions)
        #expect(get("If-Unmodified-Since: x").hasPreconditions)
        #expect(!get("Accept: */*").hasAuthorization)
    }
}

@Suite("RFC 9111 §5.2.2 Response Directives")
struct ResponseDirectivesTests {
    typealias Change = @Sendable (inout ResponseDirectives) -> Void
    static let rows: [(rule: String, value: String, change: Change)] = [
        ("§5.2.2.1 max-age", "max-age=5", { $0.maxAge = seconds(5) }),
        ("§5.2.2.2 must-revalidate", "must-revalidate", { $0.mustRevalidate = true }),
        ("§5.2.2.3 must-understand", "must-understand", { $0.mustUnderstand = true }),
        ("§5.2.2.4 no-cache", "no-cache", { $0.noCache = true }),
        (
            "§5.2.2.4 no-cache with fields", "no-cache=\"Set-Cookie, X-a\"",
            { $0.noCacheFields = [Array("set-cookie".utf8), Array("x-a".utf8)] }
        ),
        ("no-cache for what the cache needs itself", "no-cache=\"X, Vary\"", { $0.noCache = true }),
        ("private for what the cache needs itself", "private=\"cache-control\"", { $0.isPrivate = true }),
        ("§5.2.2.4 a field name as a token", "no-cache=foo", { $0.noCacheFields = [Array("foo".utf8)] }),
        ("no-cache with no field in its list", "no-cache=\"\"", { $0.noCache = true }),
        ("no-cache with empty members only", "no-cache=\" , ,\"", { $0.noCache = true }),
        ("no-cache with what is no list of names", "no-cache=\"a b\"", { $0.noCache = true }),
        ("no-cache with text behind its list", "no-cache=\"a\"b", { $0.noCache = true }),
        (
            "both forms of no-cache", "no-cache=\"a\", no-cache",
            {
                $0.noCache = true
                $0.noCacheFields = [Array("a".utf8)]
            }
        ),
        ("§5.2.2.5 no-store", "no-store", { $0.noStore = true }),
        ("no-store with an argument", "no-store=x", { $0.noStore = true }),
        ("no-store with text behind it", "no-store x", { $0.noStore = true }),
        ("§5.2.2.6 no-transform", "no-transform", { $0.noTransform = true }),
        ("§5.2.2.7 private", "private", { $0.isPrivate = true }),
        ("§5.2.2.7 private with fields", "private=\"a\"", { $0.privateFields = [Array("a".utf8)] }),
        ("private with an open quote", "private=\"a", { $0.isPrivate = true }),
        ("§5.2.2.8 proxy-revalidate", "proxy-revalidate", { $0.proxyRevalidate = true }),
        ("§5.2.2.9 public", "public", { $0.isPublic = true }),
        ("§5.2.2.10 s-maxage", "s-maxage=6", { $0.sMaxAge = seconds(6) }),
        ("RFC 8246 immutable", "immutable", { $0.immutable = true }),
        ("RFC 5861 stale-while-revalidate", "stale-while-revalidate=3", { $0.staleWhileRevalidate = seconds(3) }),
        ("RFC 5861 stale-if-error", "stale-if-error=4", { $0.staleIfError = seconds(4) }),
        (
            "a leave with rubbish is none", "stale-while-revalidate=x, stale-if-error=-1",
            { ($0.staleWhileRevalidate, $0.staleIfError) = (.zero, .zero) }
        ),
        ("§5.2 names in any case", "MAX-age=5, No-STORE", { ($0.maxAge, $0.noStore) = (seconds(5), true) }),
        ("§5.2 a quoted argument is as good", "max-age=\"5\"", { $0.maxAge = seconds(5) }),
        (
            "§5.2.3 unknown ones are passed over", "foo, bar=\"x, no-store\", max-age=5, community=\"UCI\"",
            { $0.maxAge = seconds(5) }
        ),
        ("RFC 9110 §5.6.1 empty members", ",, ,max-age=5,\t,", { $0.maxAge = seconds(5) }),
        (
            "white space around members", " \t max-age=5 \t ,\tpublic ",
            { ($0.maxAge, $0.isPublic) = (seconds(5), true) }
        ),
        ("a quoted comma and quote", "x=\"a\\\", no-store\", max-age=5", { $0.maxAge = seconds(5) }),
        ("what follows an open quote is read", "x=\"a, no-store", { $0.noStore = true }),
        ("a quote within a token hides nothing", "x\"a, no-store, b\"", { $0.noStore = true }),
        ("nor one behind a string", "x=\"a\"\"b, no-store, c\"", { $0.noStore = true }),
        ("a quoted string behind a blank is one", "x= \"a, no-store\"", { _ in }),
        ("the smallest max-age counts", "max-age=5, max-age=1", { $0.maxAge = seconds(1) }),
        ("a malformed max-age beside a good one counts", "max-age=5, max-age=a", { $0.maxAge = .zero }),
        ("max-age without =", "max-age", { $0.maxAge = .zero }),
        ("max-age without a number", "max-age=", { $0.maxAge = .zero }),
        ("max-age negative", "max-age=-1", { $0.maxAge = .zero }),
        ("max-age with a plus", "max-age=+5", { $0.maxAge = .zero }),
        ("max-age with a fraction", "max-age=5.0", { $0.maxAge = .zero }),
        ("max-age in hexadecimal", "max-age=0x5", { $0.maxAge = .zero }),
        ("max-age with letters", "max-age=5s", { $0.maxAge = .zero }),
        ("max-age in single quotes", "max-age='5'", { $0.maxAge = .zero }),
        ("max-age with a blank before =", "max-age =5", { $0.maxAge = .zero }),
        ("max-age with a blank behind =", "max-age= 5", { $0.maxAge = .zero }),
        ("max-age with a blank for =", "max-age 5", { $0.maxAge = .zero }),
        ("max-age with text behind the quote", "max-age=\"5\"0", { $0.maxAge = .zero }),
        ("max-age with leading zeros", "max-age=005", { $0.maxAge = seconds(5) }),
        ("§1.2.2 the largest that fits", "max-age=2147483647", { $0.maxAge = seconds(2_147_483_647) }),
        ("§1.2.2 one more is 2^31", "max-age=2147483648", { $0.maxAge = .deltaMax }),
        ("§1.2.2 overflow is 2^31", "max-age=99999999999999999999999999999999", { $0.maxAge = .deltaMax }),
        ("s-maxage with rubbish", "s-maxage=x, max-age=5", { ($0.sMaxAge, $0.maxAge) = (.zero, seconds(5)) }),
        ("request directives mean nothing here", "only-if-cached, min-fresh=1, max-stale", { _ in }),
    ]

    @Test(arguments: rows.indices) func `the directives of a response mean what the RFC says`(_ index: Int) {
        let row = Self.rows[index]
        var expected = ResponseDirectives()
        row.change(&expected)
        #expect(ResponseDirectives(fields("Cache-Control: " + row.value)) == expected, "\(row.rule)")
    }

    @Test func `the lines of the field are one list`() {
        let directives = ResponseDirectives(
            fields("Cache-Control: max-age=9", "X: y", "cache-control: public, max-age=3"))
        #expect(directives.isPublic && directives.maxAge == seconds(3))
        #expect(ResponseDirectives(fields("Pragma: no-cache")) == ResponseDirectives(), "§5.4: Pragma is for requests")
    }
}
