import Message
import Rules
import Testing

@Suite("Path patterns")
struct PathPatternTests {
    static let rows: [(pattern: String, path: String, expected: Bool)] = [
        ("/", "/", true), ("/", "/a", false), ("/a", "/a", true), ("/a", "/a/", false), ("/a", "/A", false),
        ("/pool/*", "/pool/x.deb", true), ("/pool/*", "/pool/a/b/c", true), ("/pool/*", "/pool/", true),
        ("/pool/*", "/pool", false), ("/pool/*", "/other/pool/x", false), ("*", "/", true), ("*", "/any/thing", true),
        ("*.deb", "/pool/x.deb", true), ("*.deb", "/pool/x.deb.asc", false), ("/a*a", "/a", false),
        ("/a*a", "/aa", true), ("/*/b/*", "/a/b/c", true), ("/*/b/*", "/b/c", false), ("/*b*b*", "/abb", true),
        ("/*b*b*", "/ab", false), ("/a*b*c", "/axbxbxc", true), ("/a*bc*bc", "/abc", false),
        ("/a*bc*bc", "/abcbc", true),
        ("/~u/*", "/%7Eu/x", false), ("/%7Eu/*", "/%7Eu/x", true), ("/%7Eu/*", "/%7eu/x", false), ("/**", "/a", true),
    ]
    @Test(arguments: rows) func `a pattern is compared with the whole path byte by byte`(
        _ text: String, _ path: String, _ expected: Bool
    ) throws {
        let pattern = try #require(PathPattern(text))
        #expect(pattern.matches(ArraySlice(path.utf8)) == expected)
        #expect(pattern.description == text)
    }

    static let refused = [
        "", "a", "a/*", "/a?b", "/a#b", "/a b", "/ä", "/a/../b", "/a/./b", "/..", "/%2e%2E/a", "http://a/",
    ]
    @Test(arguments: refused) func `is no pattern`(_ text: String) { #expect(PathPattern(text) == nil) }

    /// What a run of asterisks costs is bounded by the length of path times pattern.
    @Test func `many asterisks against a long path take linear time`() throws {
        let pattern = try #require(PathPattern("/" + String(repeating: "*a", count: 200) + "b"))
        let path = [UInt8](repeating: UInt8(ascii: "a"), count: 8000)
        #expect(!pattern.matches([UInt8(ascii: "/")] + path))
        #expect(pattern.matches([UInt8(ascii: "/")] + path + [UInt8(ascii: "b")]))
    }
}

@Suite("RFC 9110 §8.3.1 Media type patterns")
struct MediaTypePatternTests {
    static let rows: [(pattern: String, value: String, expected: Bool)] = [
        ("text/html", "text/html", true), ("text/html", "TEXT/HTML; charset=utf-8", true),
        ("text/html", "text/html ;x", true),
        ("Text/HTML", "text/html", true), ("text/html", "text/htmlx", false), ("text/html", "text/plain", false),
        ("text/html", "text/xhtml", false),
        ("text/*", "text/css", true), ("text/*", "text/", false), ("text/*", "text", false),
        ("text/*", "texts/css", false),
        ("*/*", "image/png", true), ("*/*", "nonsense", false), ("application/*+json", "application/ld+json", true),
        ("application/*+json", "application/json", false), ("application/*+json", "application/ld+json+x", false),
        ("text/*", "", false),
    ]
    @Test(arguments: rows) func `type and subtype are compared without case and parameters`(
        _ text: String, _ value: String, _ expected: Bool
    ) throws {
        let pattern = try #require(MediaTypePattern(text))
        #expect(pattern.matches(ArraySlice(value.utf8)) == expected)
        #expect(pattern.description == text.lowercased())
    }

    static let refused = [
        "", "text", "text/", "/html", "*/html", "te*t/x", "text/ht*", "text/*x", "a/b/c", "text/html; a=b", "te xt/a",
    ]
    @Test(arguments: refused) func `is no pattern`(_ text: String) { #expect(MediaTypePattern(text) == nil) }
}
