import Cookies
import Message
import PublicSuffixes
import Testing

let now = WallTime(secondsSinceEpoch: 1_000_000_000)
let isPublicSuffix = PublicSuffixList.system.contains

func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

/// The cookie that a line makes, or why there is none.
func result(_ line: String, from url: String) -> Result<Cookie, CookieRejection> {
    Result { () throws(CookieRejection) in
        try SetCookie(Array(line.utf8)[...]).cookie(from: origin(url), now: now, isPublicSuffix: isPublicSuffix)
    }
}

@Suite("RFC 6265 §5.2 and §5.3: what a Set-Cookie line says")
struct SetCookieTests {
    static let pairs: [(line: String, name: String, value: String)] = [
        ("a=b", "a", "b"), (" a\t=  b ; Path=/", "a", "b"), ("a=b=c", "a", "b=c"), ("a=", "a", ""), ("=b", "", "b"),
        ("b", "", "b"), ("a=\"b c\"", "a", "\"b c\""), ("a=b;c=d", "a", "b"), ("a = b c", "a", "b c"),
        ("ä=ö", "ä", "ö"),
    ]
    @Test(arguments: pairs) func `name and value are what stands before and behind the first =`(
        _ row: (line: String, name: String, value: String)
    ) throws {
        let line = try SetCookie(Array(row.line.utf8)[...])
        #expect(text(line.name) == row.name && text(line.value) == row.value)
    }

    /// The line, the URL that sets it, and the cookie.
    static let cookies: [(line: String, url: String, domain: String, isHostOnly: Bool, path: String)] = [
        ("a=b", "http://www.a.example/x/y?z/", "www.a.example", true, "/x"),
        ("a=b", "http://a.example", "a.example", true, "/"), ("a=b", "http://a.example/x", "a.example", true, "/"),
        ("a=b", "http://a.example/x/", "a.example", true, "/x"), ("a=b", "http://a.example?x", "a.example", true, "/"),
        ("a=b; Path=/y", "http://a.example/x/z", "a.example", true, "/y"),
        ("a=b; Path=y", "http://a.example/x/z", "a.example", true, "/x"),
        ("a=b; Path", "http://a.example/x/z", "a.example", true, "/x"),
        ("a=b; Path=/y; path=/z", "http://a.example/", "a.example", true, "/z"),
        ("a=b; Path=/y; path=", "http://a.example/x/z", "a.example", true, "/x"),
        ("a=b; Domain=a.example", "http://www.a.example/", "a.example", false, "/"),
        ("a=b; domain=.A.Example", "http://www.a.example/", "a.example", false, "/"),
        ("a=b; Domain=a.example; Domain=", "http://www.a.example/", "www.a.example", true, "/"),
        ("a=b; Domain=x.example; Domain=a.example", "http://www.a.example/", "a.example", false, "/"),
        ("a=b; Domain=127.0.0.1", "http://127.0.0.1/", "127.0.0.1", true, "/"),
        ("a=b; Domain=::1", "http://[::1]/", "::1", true, "/"),
        // A host that is a public suffix itself sets cookies for itself.
        ("a=b; Domain=co.uk", "http://co.uk/", "co.uk", true, "/"),
        ("a=b; Domain=repo", "http://repo/", "repo", true, "/"),
        // Longer than an attribute may be: it is as if it were not there.
        ("a=b; Path=/\(String(repeating: "p", count: 1024))", "http://a.example/x/y", "a.example", true, "/x"),
        ("__Secure-a=b; Secure", "https://a.example/", "a.example", true, "/"),
        ("__host-a=b; Secure; Path=/", "https://a.example/x/y", "a.example", true, "/"),
    ]
    @Test(arguments: cookies) func `domain and path are those of the line, or of the request`(
        _ row: (line: String, url: String, domain: String, isHostOnly: Bool, path: String)
    ) throws {
        let cookie = try result(row.line, from: row.url).get()
        #expect(cookie.domain == row.domain && cookie.isHostOnly == row.isHostOnly && text(cookie.path) == row.path)
    }

    static let rejections: [(line: String, url: String, rejection: CookieRejection)] = [
        ("", "http://a.example/", .empty), ("=", "http://a.example/", .empty),
        ("; Path=/", "http://a.example/", .empty),
        ("a=b\u{1}c", "http://a.example/", .character), ("a=b\tc", "http://a.example/", .character),
        ("a=b; X=\u{7F}", "http://a.example/", .character), ("a=b; Path=/\tx", "http://a.example/", .character),
        ("a=\(String(repeating: "v", count: 4096))", "http://a.example/", .tooLong),
        ("a=b; Domain=b.example", "http://a.example/", .domain),
        ("a=b; Domain=www.a.example", "http://a.example/", .domain),
        ("a=b; Domain=xa.example", "http://a.example/", .domain),
        ("a=b; Domain=ä.example", "http://a.example/", .domain),
        ("a=b; Domain=1.1.1.1", "http://a.example/", .domain),
        ("a=b; Domain=..a.example", "http://a.example/", .domain),
        ("a=b; Domain=0.0.1", "http://127.0.0.1/", .domain),
        ("a=b; Domain=com", "http://a.com/", .publicSuffix), ("a=b; Domain=co.uk", "http://a.co.uk/", .publicSuffix),
        ("a=b; Domain=.github.io", "http://me.github.io/", .publicSuffix),
        ("a=b; Domain=corp", "http://a.corp/", .publicSuffix),
        ("a=b; Secure", "http://a.example/", .insecure),
        ("__Secure-a=b", "https://a.example/", .prefix), ("__SECURE-a=b", "https://a.example/", .prefix),
        ("__Host-a=b; Secure", "https://a.example/x/y", .prefix),
        // The path must be written, even where it is the default.
        ("__Host-a=b; Secure", "https://a.example/", .prefix),
        ("__Host-a=b; Secure; Path=/; Domain=a.example", "https://a.example/", .prefix),
        ("=__Host-a=b; Secure; Path=/", "https://a.example/", .prefix), ("__Secure-a", "https://a.example/", .prefix),
    ]
    @Test(arguments: rejections) func `what is not allowed is rejected, and why`(
        _ row: (line: String, url: String, rejection: CookieRejection)
    ) {
        #expect(result(row.line, from: row.url) == .failure(row.rejection))
    }

    @Test func `name and value may have so many bytes together`() throws {
        let line = "a=" + String(repeating: "v", count: CookieLimits.pairBytesMax - 1)
        #expect(try result(line, from: "http://a.example/").get().value.count == 4095)
    }

    static let expiries: [(attributes: String, seconds: Int64?)] = [
        ("", nil), ("Max-Age=60", 60), ("Max-Age=0", .min), ("Max-Age=-1", .min), ("Max-Age=", nil), ("Max-Age=-", nil),
        ("Max-Age=+60", nil), ("Max-Age=6 0", nil), ("Max-Age=60.5", nil), ("max-age=60; Max-Age=120", 120),
        ("Max-Age=60; Max-Age=x", 60), ("Expires=Sun, 09 Sep 2001 01:47:40 GMT", 60), ("Expires=Sun", nil),
        ("Expires=Sun, 09 Sep 2001 01:47:40 GMT; Max-Age=10", 10),
        ("Max-Age=10; Expires=Sun, 09 Sep 2001 01:47:40 GMT", 10),
        ("Expires=Thu, 01 Jan 1970 00:00:00 GMT", -1_000_000_000),
        // 400 days at most.
        ("Max-Age=999999999999999999999999", 34_560_000), ("Expires=Fri, 31 Dec 9999 23:59:59 GMT", 34_560_000),
        ("Max-Age=\(String(repeating: "0", count: 1024))1", nil),
    ]
    @Test(arguments: expiries) func `Max-Age counts before Expires, and what cannot be read does not count`(
        _ row: (attributes: String, seconds: Int64?)
    ) throws {
        let cookie = try result("a=b; \(row.attributes)", from: "http://a.example/").get()
        let expected = row.seconds.map { $0 == .min ? WallTime.earliest : now + Seconds($0) }
        #expect(cookie.expiry == expected)
        #expect(cookie.isExpired(at: now) == (row.seconds.map { $0 <= 0 } ?? false))
    }

    @Test func `flags are read in any case, and SameSite is kept`() throws {
        let cookie = try result("a=b; SECURE; httponly=x; samesite=LAX", from: "https://a.example/").get()
        #expect(cookie.isSecure && cookie.isHTTPOnly && cookie.sameSite == .lax)
        let other = try result("a=b; SameSite=Strict; SameSite=weird", from: "https://a.example/").get()
        #expect(!other.isSecure && !other.isHTTPOnly && other.sameSite == .unset)
    }

    @Test func `printing a cookie does not show its value`() throws {
        let cookie = try result("session=s3cret", from: "http://a.example/x/y").get()
        var dumped = ""
        dump(cookie, to: &dumped)
        #expect("\(cookie)" == "session for a.example/x")
        for shown in ["\(cookie)", String(reflecting: cookie), dumped] { #expect(!shown.contains("s3cret")) }
    }
}
