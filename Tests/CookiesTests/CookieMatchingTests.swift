import Cookies
import Rules
import Testing

/// An origin as in a URL: `https://a.example/b`.
func origin(_ url: String, isSecure: Bool? = nil) -> CookieOrigin {
    let parts = url.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
    let rest = parts[2]
    let host = rest.prefix { $0 != "/" && $0 != "?" }
    return CookieOrigin(
        DestinationHost(host.utf8)!, target: Array(rest.dropFirst(host.count).utf8)[...],
        isSecure: isSecure ?? url.hasPrefix("https:"))
}

@Suite("RFC 6265 §5.1.3 and §5.1.4: domains and paths match")
struct CookieMatchingTests {
    static let domains: [(host: String, domain: String, matches: Bool)] = [
        ("a.example", "a.example", true), ("A.EXAMPLE", "a.example", true), ("www.a.example", "a.example", true),
        ("x.www.a.example", "a.example", true), ("a.example", "www.a.example", false),
        ("ba.example", "a.example", false),
        ("a.example", "b.example", false), ("a.example", "example", true), ("a.example", "", false),
        ("127.0.0.1", "127.0.0.1", true), ("127.0.0.1", "0.0.1", false), ("127.0.0.1", "1", false),
        ("[::1]", "::1", true), ("a.example.", "a.example", true),
    ]
    @Test(arguments: domains) func `a host matches itself and the domains above it`(
        _ row: (host: String, domain: String, matches: Bool)
    ) {
        #expect(origin("http://\(row.host)/").matches(domain: row.domain) == row.matches)
    }

    static let paths: [(path: String, cookie: String, matches: Bool)] = [
        ("/", "/", true), ("/a", "/", true), ("/a", "/a", true), ("/a/", "/a", true), ("/a/b", "/a", true),
        ("/a/b", "/a/", true), ("/a", "/a/", false), ("/ab", "/a", false), ("/b/a", "/a", false), ("/", "/a", false),
        ("/A", "/a", false),
    ]
    /// The client chooses how a path is spelled, and must not lead a cookie out of its path.
    @Test(arguments: [
        ("/a/b", true), ("/a/b%20c", true), ("/a/../b", false), ("/a/%2e%2e/b", false), ("/a/..%2fb", false),
        ("/a/..;/b", false),
        ("/a/%252e%252e/b", false), ("/a%2fb", false),
    ]) func `a cookie with a path goes only where every reading of the path is below it`(
        _ row: (path: String, matches: Bool)
    ) {
        #expect(origin("https://a.example\(row.path)").matches(path: Array("/a".utf8)) == row.matches)
        #expect(origin("https://a.example\(row.path)").matches(path: Array("/".utf8)))
    }

    @Test(arguments: paths) func `a path matches itself and the paths above it`(
        _ row: (path: String, cookie: String, matches: Bool)
    ) {
        #expect(pathMatches(Array(row.path.utf8), Array(row.cookie.utf8)) == row.matches)
    }
}
