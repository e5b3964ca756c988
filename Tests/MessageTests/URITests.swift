import Message
import Testing

@Suite("RFC 3986 §6.2.2 Normalisation, §5.2 Resolution")
struct URITests {
    static let normalised: [(String, String)] = [
        ("http://a.example/", "http://a.example/"), ("http://a.example", "http://a.example/"),
        ("HTTP://A.Example./b", "http://a.example/b"), ("http://a.example:80/", "http://a.example/"),
        ("http://a.example:/", "http://a.example/"), ("http://a.example:443/", "http://a.example:443/"),
        ("https://a.example:443/", "https://a.example/"), ("http://a?q", "http://a/?q"),
        ("http://a/%7Eb/%2f%3a", "http://a/%7Eb/%2f%3a"), ("http://a/%zz%4", "http://a/%zz%4"),
        ("http://a/b/../c/./d", "http://a/b/../c/./d"), ("http://a/../..", "http://a/../.."),
        ("http://a/b/..", "http://a/b/.."),
        ("http://a/b/.", "http://a/b/."), ("http://a/b/%2e%2E/c", "http://a/b/%2e%2E/c"),
        ("http://a/.b/..c/...", "http://a/.b/..c/..."),
        ("http://a/b?c=/../d&%7e", "http://a/b?c=/../d&%7e"), ("http://a//b//../c", "http://a//b//../c"),
        ("http://[2001:DB8::1]:8080/", "http://[2001:db8::1]:8080/"), ("http://a/b#c", "http://a/b"),
        ("http://a/ü?ä=%c3", "http://a/%C3%BC?%C3%A4=%c3"), ("http://a?é#é", "http://a/?%C3%A9"),
    ]
    @Test(arguments: normalised) func `has one spelling`(_ text: String, _ expected: String) throws {
        let uri = try #require(TargetURI(text.utf8))
        #expect(String(decoding: uri.normalised, as: UTF8.self) == expected)
        #expect(TargetURI(uri.normalised) == uri)
    }

    @Test(arguments: [
        "", "a", "/a", "ftp://a/", "http:/a", "http://", "http:///a", "http://u@a/", "http://a:0/", "http://a b/",
        "http://ü/", "http://a/ü b", "http://a/ü\u{7F}", "http://ü@a/", "http://a:ü/",
    ])
    func `is no absolute http URI`(_ text: String) { #expect(TargetURI(text.utf8) == nil) }

    /// The examples of RFC 3986 §5.4 that apply to http.
    static let references: [(String, String)] = [
        ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"), ("/g", "http://a/g"),
        ("//g", "http://g/"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"), ("#s", "http://a/b/c/d;p?q"),
        ("g#s", "http://a/b/c/g"), (";x", "http://a/b/c/;x"), ("g;x?y#s", "http://a/b/c/g;x?y"),
        ("", "http://a/b/c/d;p?q"),
        (".", "http://a/b/c/"), ("./", "http://a/b/c/"), ("..", "http://a/b/"), ("../g", "http://a/b/g"),
        ("../..", "http://a/"),
        ("../../../g", "http://a/g"), ("/./g", "http://a/g"), ("g.", "http://a/b/c/g."), ("..g", "http://a/b/c/..g"),
        ("./g/.", "http://a/b/c/g/"), ("g;x=1/../y", "http://a/b/c/y"), ("g?y/../x", "http://a/b/c/g?y/../x"),
        ("https://x:1/y", "https://x:1/y"), ("http://x/a/../y/./z", "http://x/y/z"), ("//x/a/../y", "http://x/y"),
        ("http://x//y/../z", "http://x//z"),
        ("/ü", "http://a/%C3%BC"), ("é/../ü?ö", "http://a/b/c/%C3%BC?%C3%B6"), ("?ü", "http://a/b/c/d;p?%C3%BC"),
        ("//g/ü", "http://g/%C3%BC"), ("https://x/ü#ü", "https://x/%C3%BC"),
    ]
    @Test(arguments: references) func `a reference is resolved`(_ reference: String, _ expected: String) throws {
        let base = try #require(TargetURI("http://a/b/c/d;p?q".utf8))
        let target = try #require(base.resolving(reference.utf8))
        #expect(String(decoding: target.normalised, as: UTF8.self) == expected)
    }

    @Test(arguments: ["mailto:a@b", "g h", "//u@g", "//ü/", "ü h", "/ü\u{1}"])
    func `a reference to another scheme is not resolved`(
        _ text: String
    ) {
        #expect(TargetURI("http://a/".utf8)?.resolving(text.utf8) == nil)
    }

    @Test(arguments: [
        ("g?y#s", "http://a/b/c/g?y#s"), ("#s", "http://a/b/c/d;p?q#s"), ("//g", "http://g/"),
        ("https://x/../y#s", "https://x/../y#s"), ("mailto:a@b", "mailto:a@b"),
    ])
    func `a reference means the same elsewhere`(_ reference: String, _ expected: String) throws {
        let base = try #require(TargetURI("http://a/b/c/d;p?q".utf8))
        #expect(base.absolute(Array(reference.utf8)[...]).map { String(decoding: $0, as: UTF8.self) } == expected)
    }

    @Test func `a reference that resolves to nothing means nothing elsewhere`() {
        #expect(TargetURI("http://a/".utf8)?.absolute(Array("g h".utf8)[...]) == nil)
    }
}
