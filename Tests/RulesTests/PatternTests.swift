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
        // Without placeholders, "may" is "does".
        #expect(pattern.mayMatch(Array(path.utf8).span) == expected)
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

@Suite("Placeholders in path patterns")
struct PathPlaceholderTests {
    static let digest = String(repeating: "0aF9", count: 16)
    static let rows: [(pattern: String, path: String, expected: Bool)] = [
        ("/{hex}", "/", false), ("/{hex}", "/a0F", true), ("/{hex}", "/a0g", false), ("/{hex:2}", "/a0", true),
        ("/{hex:2}", "/a", false), ("/{hex:2}", "/a00", false), ("/x{hex:2}*", "/xa00", true),
        ("/{digits}", "/042", true), ("/{digits}", "/4a", false),
        ("/{digits:8}.{digits:6}-{digits}", "/20260102.030405-7", true),
        ("/{name}", "/a", true), ("/{name}", "/a/", false), ("/{name}", "/a/b", false), ("/{name}", "/@a%2fb", true),
        ("/{name}/{version}", "/a/1.0", true), ("/{name}/", "/a/", true), ("/{name}/", "//", false),
        ("*/{name}-{version}.crate", "/crates/a-b/a-b-1.0.crate", true),
        ("*/{name}-{version}.crate", "/a/-1.crate", false),
        ("*/{name}-{version}.crate", "/a/b-.crate", false), ("/{a|bc|}x", "/x", true), ("/{a|bc|}x", "/bcx", true),
        ("/{a|bc|}x", "/abcx", false), ("/f.{jar|pom}{|.sha1}", "/f.jar", true),
        ("/f.{jar|pom}{|.sha1}", "/f.pom.sha1", true),
        ("/f.{jar|pom}{|.sha1}", "/f.sha1", false),
        ("/v2/*/blobs/sha256:{hex:64}", "/v2/a/b/blobs/sha256:\(digest)", true),
        ("/v2/*/blobs/sha256:{hex:64}", "/v2/a/b/blobs/sha256:\(digest)0", false),
        ("/v2/*/blobs/sha256:{hex:64}", "/v2/blobs/sha256:\(digest)", false), ("/{a}{b}", "/x", false),
        ("/{a}{b}", "/xy", true),
        ("/{a:2}/{b}", "/xy/z", true), ("/{a:2}/{b}", "/xyz/z", false), ("/{a:2}{b}", "/x/z", false),
        ("/{hex}{digits}", "/12", true), ("/{hex}{digits}", "/1a", false),
    ]
    @Test(arguments: rows) func `a placeholder stays within its segment`(
        _ text: String, _ path: String, _ expected: Bool
    ) throws {
        let pattern = try #require(PathPattern(text))
        #expect(pattern.matches(ArraySlice(path.utf8)) == expected)
        #expect(pattern.description == text)
    }

    static let refused = [
        "/{", "/}", "/{}", "/{a", "/a}", "/{a{b}}", "/{a*}", "/{a/b}", "/{:3}", "/{a:b:3}", "/{hex:0}", "/{hex:}",
        "/{hex:x}",
        "/{hex:513}", "/{A}", "/{%41}", "/" + String(repeating: "{a}-", count: 33),
    ]
    @Test(arguments: refused) func `is no pattern`(_ text: String) { #expect(PathPattern(text) == nil) }

    static let captures: [(pattern: String, path: String, digits: String?)] = [
        ("/v2/*/blobs/sha256:{hex:4}", "/v2/a/blobs/sha256:00ff", "00ff"), ("/{hex:4}*", "/abcd/abce", "abcd"),
        ("*{hex:4}*", "/abcde", "bcde"), ("/{hex:4}/{hex:4}", "/0000/1111", "1111"),
        ("/{hex}{hex:4}", "/012345", "2345"),
        ("/{hex:4}/{hex:2}", "/abcd/ef", "abcd"), ("/{name}{hex:4}{a|}", "/xabcda", "bcda"), ("/{hex:4}", "/abc", nil),
        ("/{hex:3}", "/abc", nil), ("*", "/abcd", nil),
        // A digest that is divided.
        ("/{hex:1}/{hex:1}/{hex:2}/{file}", "/a/b/cd/ef", "abcd"), ("/{hex:2}/{hex:3}", "/ab/cde", nil),
        ("/{hex:2}/{hex}", "/ab/cd", nil), ("/{hex:1}/{hex:1}/{hex:2}", "/a/b/c", nil),
    ]
    @Test(arguments: captures) func `the digits of a digest are found`(
        _ text: String, _ path: String, _ digits: String?
    ) throws {
        let pattern = try #require(PathPattern(text))
        let found = pattern.hexDigits(4, in: ArraySlice(path.utf8))
        #expect(found.map { String(decoding: $0, as: UTF8.self) } == digits)
    }

    /// What a pattern costs is bounded by the length of path times pattern.
    @Test func `many placeholders against a long path take linear time`() throws {
        let pattern = try #require(PathPattern("/" + String(repeating: "{a}*{hex}", count: 20) + "b{hex:4}"))
        let path = [UInt8](repeating: UInt8(ascii: "a"), count: 8000)
        #expect(!pattern.matches([UInt8(ascii: "/")] + path))
        let matching = ArraySlice([UInt8(ascii: "/")] + path + Array("b0123".utf8))
        #expect(pattern.matches(matching))
        #expect(pattern.hexDigits(4, in: matching)?.elementsEqual("0123".utf8) == true)
    }

    @Test func `an origin may read the literals in another way`() throws {
        let rule = try #require(PathPattern("/a%62/{hex:2}"))
        var conditions = RuleConditions()
        conditions.paths = [rule]
        let request = RuleRequest(
            client: nil, method: .get, destination: .name("example.org"), port: 80, isTunnel: false,
            pathAndQuery: ArraySlice("/a%62/%30%31".utf8))
        #expect(!conditions.holdForRequest(request, paths: .asSent))
        #expect(conditions.holdForRequest(request, paths: .anySpelling))
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

@Suite("Rules by host")
struct HostIndexTests {
    static let index = HostIndex([
        [.exact("a.example.org")], [.below(".example.org")], [.exact("a.example.org"), .exact("b.example.com")],
        [.below(".a.example.org"), .below(".example.com")], [.any],
    ])
    static let rows: [(host: String, positions: [Int])] = [
        ("a.example.org", [0, 1, 2, 4]), ("A.Example.Org.", [0, 1, 2, 4]), ("example.org", [4]),
        ("x.y.example.org", [1, 4]),
        ("x.a.example.org", [1, 3, 4]), ("b.example.com", [2, 3, 4]), ("aexample.org", [4]), ("localhost", [4]),
        ("127.0.0.1", [4]),
    ]
    @Test(arguments: rows) func `the first rule that names the host and holds`(_ host: String, _ positions: [Int])
        throws
    {
        let host = try #require(DestinationHost(Array(host.utf8)))
        for position in 0..<5 {
            let rest = positions.filter { $0 >= position }
            #expect(Self.index.first(for: host) { $0 >= position } == rest.first)
        }
    }

    @Test func `without rules there is nothing to find`() throws {
        #expect(HostIndex([]).isEmpty && HostIndex([[], []]).isEmpty && !Self.index.isEmpty)
        let host = try #require(DestinationHost(Array("a".utf8)))
        #expect(HostIndex([[]]).first(for: host) { _ in true } == nil)
    }
}

@Suite("Path patterns: what stands in a path twice")
struct RepetitionTests {
    static let rows: [(pattern: String, path: String, expected: Bool)] = [
        ("*/{a}/{b}/{=a}-{=b}.jar", "/x/lib/1.0/lib-1.0.jar", true),
        ("*/{a}/{b}/{=a}-{=b}.jar", "/x/lib/1.0/lib-1.1.jar", false),
        ("*/{a}/{b}/{=a}-{=b}.jar", "/x/lib/1.0/lic-1.0.jar", false),
        ("*/{a}/{b}/{=a}-{=b}.jar", "/lib/1.0/x/lib-1.0.jar", false),
        ("*/{a}/{b}/{=a}-{=b}-{c}.jar", "/my-lib/1-2/my-lib-1-2-all.jar", true),
        ("*/{a}/{b}/{=a}-{=b}-{c}.jar", "/my-lib/1-2/my-lib-1-.jar", false),
        ("/{a}/{=a}", "/x/x", true), ("/{a}/{=a}", "/x/y", false), ("/{a}/{=a}", "/x/xx", false),
        ("/{a}/{=a}{=a}", "/x/xx", true), ("/{a:2}/{=a}", "/ab/ab", true), ("/{a:2}/{=a}", "/ab/ac", false),
    ]
    @Test(arguments: rows) func `the same text has to stand there again`(
        _ row: (pattern: String, path: String, expected: Bool)
    ) throws {
        let pattern = try #require(PathPattern(row.pattern))
        #expect(pattern.matches(ArraySlice(row.path.utf8)) == row.expected)
        #expect(!row.expected || pattern.mayMatch(Array(row.path.utf8).span))
        #expect(pattern.matches(pattern.example[...]), "\(String(decoding: pattern.example, as: UTF8.self))")
    }

    @Test(arguments: [
        "/{=a}", "/{a}/{=b}", "/{a}-{b}/{=a}", "/{a}/*/{=a}", "*{a}/{=a}", "/x{a}/{=a}", "/{a|b}/{=a}", "/{a}/{=}",
    ])
    func `what is repeated is an earlier segment, and there is one answer to which`(_ text: String) {
        #expect(PathPattern(text) == nil)
    }
}
