import Cookies
import Message
import Testing

/// A jar at one moment after the other.
struct TestedJar {
    var jar = CookieJar()

    init(_ lines: [(url: String, line: String)] = []) throws { for (url, line) in lines { try set(url, line) } }

    mutating func set(_ url: String, _ line: String, after seconds: Int64 = 0) throws {
        try jar.set(
            SetCookie(Array(line.utf8)[...]), from: origin(url), now: now + Seconds(seconds),
            isPublicSuffix: isPublicSuffix)
    }

    /// The field of a request; empty if it has none.
    mutating func field(_ url: String, beside lines: [String] = [], after seconds: Int64 = 0) -> String {
        let lines = lines.map { Array($0.utf8)[...] }
        return jar.field(for: origin(url), beside: lines, now: now + Seconds(seconds)).map { text($0.value) } ?? ""
    }
}

@Suite("RFC 6265 §5.3 and §5.4: a jar")
struct CookieJarTests {
    /// RFC 6265 §3.1.
    @Test func `the examples of the RFC`() throws {
        var s = try TestedJar([("https://www.example.com/", "SID=31d4d96e407aad42")])
        #expect(s.field("https://www.example.com/x") == "SID=31d4d96e407aad42")
        #expect(s.field("https://example.com/") == "")
        try s.set("https://www.example.com/", "SID=31d4d96e407aad42; Path=/; Domain=example.com")
        #expect(s.field("https://x.example.com/") == "SID=31d4d96e407aad42")

        s = try TestedJar([
            ("https://www.example.com/", "SID=31d4d96e407aad42; Path=/; Secure; HttpOnly"),
            ("https://www.example.com/", "lang=en-US; Path=/; Domain=example.com"),
        ])
        #expect(s.field("https://www.example.com/") == "SID=31d4d96e407aad42; lang=en-US")
        #expect(s.field("http://www.example.com/") == "lang=en-US")
        try s.set("https://www.example.com/", "lang=; Expires=Sun, 06 Nov 1994 08:49:37 GMT; Domain=example.com")
        #expect(s.field("https://www.example.com/") == "SID=31d4d96e407aad42")
        #expect(s.jar.count == 1)
    }

    @Test func `cookies go to hosts, paths and connections that match, and nowhere else`() throws {
        var s = try TestedJar([
            ("http://a.example/", "host=1"), ("http://www.a.example/", "domain=1; Domain=a.example"),
            ("http://a.example/", "path=1; Path=/x"), ("https://a.example/", "secure=1; Secure"),
            ("http://127.0.0.1/", "address=1"),
        ])
        #expect(s.field("http://a.example/") == "host=1; domain=1")
        #expect(s.field("http://a.example/x/y") == "path=1; host=1; domain=1")
        #expect(s.field("https://a.example/") == "host=1; domain=1; secure=1")
        #expect(s.field("http://b.a.example/") == "domain=1")
        #expect(s.field("http://127.0.0.1/") == "address=1")
        for other in ["http://b.example/", "http://xa.example/", "http://example/", "http://127.0.0.2/"] {
            #expect(s.field(other) == "", "\(other)")
        }
    }

    @Test func `longer paths come first, then older cookies, and a changed cookie keeps its age`() throws {
        var s = try TestedJar([
            ("http://a.example/", "b=1"), ("http://a.example/", "a=1"), ("http://a.example/", "c=1; Path=/x/y"),
            ("http://a.example/", "d=1; Path=/x"), ("http://a.example/", "b=2"),
        ])
        #expect(s.field("http://a.example/x/y/z") == "c=1; d=1; b=2; a=1")
        #expect(s.jar.count == 4)
        s = try TestedJar([("http://b.a.example/", "older=1; Domain=a.example"), ("http://b.a.example/", "newer=1")])
        #expect(s.field("http://b.a.example/") == "older=1; newer=1")
    }

    @Test func `name, domain and path tell cookies apart`() throws {
        var s = try TestedJar([
            ("http://a.example/", "a=1"), ("http://a.example/", "a=2; Path=/x"),
            ("http://a.example/", "a=3; Domain=a.example"), ("http://a.example/", "A=4"),
        ])
        #expect(s.field("http://a.example/x") == "a=2; a=1; a=3; A=4")
    }

    @Test func `a cookie without a name is its value alone`() throws {
        var s = try TestedJar([("http://a.example/", "plain"), ("http://a.example/", "=other; Path=/x")])
        #expect(s.field("http://a.example/x") == "other; plain")
    }

    @Test func `expired cookies are not sent, and Max-Age=0 removes one`() throws {
        var s = try TestedJar([("http://a.example/", "a=1; Max-Age=60"), ("http://a.example/", "b=1")])
        #expect(s.field("http://a.example/", after: 59) == "a=1; b=1")
        #expect(s.field("http://a.example/", after: 60) == "b=1")
        #expect(s.jar.cookies(now: now + Seconds(60)).map { text($0.name) } == ["b"])
        let before = s.jar.changedAt
        try s.set("http://a.example/", "b=; Max-Age=0")
        #expect(s.field("http://a.example/", after: 60) == "" && s.jar.changedAt > before)
        let after = s.jar.changedAt
        try s.set("http://a.example/", "c=; Max-Age=0")
        #expect(s.jar.changedAt == after, "what was not there needs no saving")
    }

    /// draft-ietf-httpbis-rfc6265bis §5.7, step 16.
    @Test func `over http no cookie takes the place of one with Secure`() throws {
        var s = try TestedJar([("https://a.example/", "a=1; Secure; Path=/x; Domain=a.example")])
        for (url, line) in [
            ("http://a.example/", "a=2; Path=/x"), ("http://b.a.example/", "a=2; Path=/x/y"),
            ("http://a.example/", "a=2; Domain=a.example; Path=/x"),
            ("http://a.example/", "a=; Max-Age=0; Domain=a.example; Path=/x"),
        ] {
            #expect(throws: CookieRejection.insecure) { try s.set(url, line) }
        }
        // One for a domain above would be sent along with it.
        try s.set("https://www.c.example/", "a=1; Secure")
        #expect(throws: CookieRejection.insecure) { try s.set("http://c.example/", "a=2; Domain=c.example") }
        // Another path above it, another name, another domain, or a secure connection: nothing is hidden.
        try s.set("http://a.example/", "a=2; Path=/")
        try s.set("http://a.example/", "b=2; Path=/x")
        try s.set("http://b.example/", "a=2; Path=/x")
        try s.set("https://a.example/", "a=3; Path=/x; Domain=a.example")
        #expect(s.field("https://a.example/x") == "a=3; b=2; a=2")
    }

    @Test func `the cookies of a client stand first, and count where names are the same`() throws {
        var s = try TestedJar([("http://a.example/", "a=jar"), ("http://a.example/", "b=jar")])
        #expect(s.field("http://a.example/", beside: ["a=own; c=own", " d=own "]) == "a=own; c=own; d=own; b=jar")
        #expect(s.field("http://a.example/", beside: ["a=own; b=own"]) == "a=own; b=own")
        #expect(s.field("http://b.example/", beside: ["a=own"]) == "a=own")
        #expect(s.jar.field(for: origin("http://a.example/"), beside: [Array("a=1".utf8)[...]], now: now)?.count == 1)
    }

    @Test func `the field is bounded, and what is sent last is left out`() throws {
        var s = try TestedJar()
        let value = String(repeating: "v", count: 3000)
        for index in 0..<8 { try s.set("http://a.example/", "c\(index)=\(value)") }
        let field = s.jar.field(for: origin("http://a.example/"), now: now)
        #expect(field?.count == 5 && field.map { $0.value.count <= CookieLimits.fieldBytesMax } == true)
        #expect(field.map { text(Array($0.value.prefix(3))) } == "c0=")
    }

    @Test func `of one domain the least recently used goes, expired and insecure ones before`() throws {
        var s = try TestedJar()
        for index in 0..<CookieLimits.perDomainMax { try s.set("https://a.example/", "c\(index)=1; Path=/\(index)") }
        // What was used last stays.
        _ = s.field("https://a.example/0")
        try s.set("https://a.example/", "new=1")
        #expect(s.jar.count == CookieLimits.perDomainMax)
        #expect(s.field("https://a.example/0") == "c0=1; new=1" && s.field("https://a.example/1") == "new=1")
        try s.set("https://a.example/", "short=1; Max-Age=1")
        try s.set("https://a.example/", "next=1", after: 2)
        #expect(s.field("https://a.example/3", after: 2) == "c3=1; new=1; next=1", "the expired one went")

        s = try TestedJar([("https://a.example/", "first=1; Secure")])
        for index in 0..<CookieLimits.perDomainMax { try s.set("http://a.example/", "c\(index)=1; Path=/\(index)") }
        #expect(s.field("https://a.example/") == "first=1", "cookies of http do not displace it")
    }

    @Test func `of all domains together as well`() throws {
        var s = try TestedJar()
        for index in 0...CookieLimits.countMax { try s.set("http://h\(index).example/", "a=1") }
        #expect(s.jar.count == CookieLimits.countMax)
        #expect(s.field("http://h0.example/") == "" && s.field("http://h1.example/") == "a=1")
    }

    @Test func `a change is worth saving, and the same cookie again is none`() throws {
        var s = try TestedJar([("http://a.example/", "a=1")])
        let before = s.jar.changedAt
        _ = s.field("http://a.example/")
        try s.set("http://a.example/", "a=1")
        #expect(s.jar.changedAt == before)
        try s.set("http://a.example/", "a=2")
        #expect(s.jar.changedAt > before)
        let cleared = s.jar.changedAt
        s.jar.removeAll()
        #expect(s.jar.count == 0 && s.jar.changedAt > cleared && s.field("http://a.example/") == "")
    }
}
