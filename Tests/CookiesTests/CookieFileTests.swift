import Cookies
import Message
import Testing

private func file(_ text: String) -> CookieFile { CookieFile(Array(text.utf8), isPublicSuffix: isPublicSuffix) }

@Suite("Cookie files of Netscape's format")
struct CookieFileTests {
    @Test func `a file as curl and wget write it is read`() throws {
        let read = file(
            """
            # Netscape HTTP Cookie File
            # https://curl.se/docs/http-cookies.html

            #HttpOnly_.example.com\tTRUE\t/\tTRUE\t1893456000\tSID\t31d4d96e
            www.example.com\tFALSE\t/docs\tfalse\t0\tlang\ten-US\r
            127.0.0.1\tFALSE\t/\tFALSE\t0\tempty
            # A comment.
            \texample\t
            WWW.Example.org\tTRUE\t/\tFALSE\t0\tx\ty

            """)
        #expect(read.cookies.count == 4 && read.faults.map(\.line) == [8])
        let sid = try #require(read.cookies.first)
        #expect(sid.isHTTPOnly && sid.isSecure && !sid.isHostOnly && sid.domain == "example.com")
        #expect(sid.expiry == WallTime(secondsSinceEpoch: 1_893_456_000) && text(sid.value) == "31d4d96e")
        let lang = read.cookies[1]
        #expect(
            !lang.isHTTPOnly && !lang.isSecure && lang.isHostOnly && lang.expiry == nil && text(lang.value) == "en-US")
        #expect(read.cookies[2].value.isEmpty && text(read.cookies[2].path) == "/")
        #expect(read.cookies[3].domain == "www.example.org")
    }

    static let damaged: [(line: String, fault: CookieFile.Fault)] = [
        ("a.example", .fields(1)), ("a.example TRUE / FALSE 0 a b", .fields(1)),
        ("a.example\tTRUE\t/\tFALSE\t0\ta\tb\tc", .fields(8)), ("\tTRUE\t/\tFALSE\t0\ta\tb", .domain),
        ("a b\tTRUE\t/\tFALSE\t0\ta\tb", .domain), ("a.example\tYES\t/\tFALSE\t0\ta\tb", .flag),
        ("a.example\tTRUE\t/\t1\t0\ta\tb", .flag), ("a.example\tTRUE\tx\tFALSE\t0\ta\tb", .path),
        ("a.example\tTRUE\t/\tFALSE\tsoon\ta\tb", .expiry), ("a.example\tTRUE\t/\tFALSE\t-1\ta\tb", .expiry),
        ("a.example\tTRUE\t/\tFALSE\t0\t\t", .rejected(.empty)),
        ("a.example\tTRUE\t/\tFALSE\t0\ta\tb;c", .rejected(.character)),
        ("a.example\tTRUE\t/\tFALSE\t0\ta=b\tc", .rejected(.character)),
        ("a.example\tTRUE\t/\tFALSE\t0\ta\tb\u{1}", .rejected(.character)),
        (".co.uk\tTRUE\t/\tFALSE\t0\ta\tb", .rejected(.publicSuffix)),
        ("a.example\tFALSE\t/\tFALSE\t0\t__Secure-a\tb", .rejected(.prefix)),
        ("a.example\tFALSE\t/\tFALSE\t0\ta\t\(String(repeating: "v", count: 4096))", .rejected(.tooLong)),
        (String(repeating: "x", count: CookieLimits.lineBytesMax + 1), .tooLong),
    ]
    @Test(arguments: damaged) func `a damaged line costs that line, and the rest is read`(
        _ row: (line: String, fault: CookieFile.Fault)
    ) {
        let good = "a.example\tFALSE\t/\tFALSE\t0\tgood\t1"
        let read = file("\(good)\n\(row.line)\n\(good)2\n")
        #expect(read.cookies.count == 2)
        #expect(read.faults.map(\.line) == [2] && read.faults.map(\.fault) == [row.fault])
    }

    @Test func `what is written is read again as it was`() throws {
        let s = try TestedJar([
            ("https://www.a.example/x/y", "a=1; Domain=a.example; Secure; HttpOnly; Max-Age=60"),
            ("http://a.example/x/y", "b=two words"), ("http://127.0.0.1/", "c="), ("http://[::1]/", "plain"),
            ("http://a.example/", "d=\"quoted=\""), ("https://a.example/", "__Host-e=5; Secure; Path=/"),
        ])
        let cookies = s.jar.cookies(now: now)
        let read = CookieFile(CookieFile.text(cookies), isPublicSuffix: isPublicSuffix)
        #expect(read.faults.isEmpty && cookies.count == 6)
        var jar = CookieJar()
        jar.replace(with: read.cookies, savedAt: nil, now: now)
        #expect(CookieFile.text(jar.cookies(now: now)) == CookieFile.text(cookies))
        for url in ["https://www.a.example/x", "http://a.example/x/y", "http://127.0.0.1/", "http://[::1]/"] {
            #expect(
                jar.cookies(for: origin(url), now: now).map(\.value)
                    == s.jar.cookies(for: origin(url), now: now).map(\.value))
        }
    }

    @Test func `the longest cookie that a request can bring survives the file`() throws {
        let path = "/" + String(repeating: "p", count: 8 << 10)
        let s = try TestedJar([("http://a.example\(path)/x", "a=" + String(repeating: "v", count: 4095))])
        let read = CookieFile(CookieFile.text(s.jar.cookies(now: now)), isPublicSuffix: isPublicSuffix)
        #expect(read.faults.isEmpty && read.cookies.first.map { text($0.path) } == path)
    }

    @Test func `of a file come neither more cookies than a domain may have, nor what has expired`() {
        let many = (0...CookieLimits.perDomainMax).map { "a.example\tFALSE\t/\tFALSE\t0\tc\($0)\tx\n" }.joined()
        let times = [("ended", now.secondsSinceEpoch), ("goes-on", now.secondsSinceEpoch + 1)]
        let timed = times.map { "b.example\tFALSE\t/\tFALSE\t\($0.1)\t\($0.0)\tx\n" }.joined()
        var jar = CookieJar()
        jar.replace(with: file(many + timed).cookies, savedAt: nil, now: now)
        #expect(jar.count == CookieLimits.perDomainMax + 1)
        #expect(jar.cookies(for: origin("http://a.example/"), now: now).count == CookieLimits.perDomainMax)
        #expect(jar.cookies(for: origin("http://b.example/"), now: now).map { text($0.name) } == ["goes-on"])
    }

    @Test func `a file that others have changed counts, except against what it does not know yet`() throws {
        var s = try TestedJar([
            ("http://a.example/", "kept=1"), ("http://a.example/", "gone=1"), ("http://a.example/", "old=1"),
        ])
        let saved = s.jar.changedAt
        try s.set("http://a.example/", "new=1")
        try s.set("http://a.example/", "old=2")
        let other = file("a.example\tFALSE\t/\tFALSE\t0\told\tfile\na.example\tFALSE\t/\tFALSE\t0\tkept\tfile\n")
        s.jar.replace(with: other.cookies, savedAt: saved, now: now)
        #expect(s.field("http://a.example/") == "kept=file; old=2; new=1" && s.jar.count == 3)
        #expect(s.jar.changedAt > saved, "the two are still to be saved")
        // Saved, and changed by others again.
        let again = s.jar.changedAt
        s.jar.replace(with: [], savedAt: again, now: now)
        #expect(s.field("http://a.example/") == "" && s.jar.changedAt == again)
    }

    @Test func `of a file with more cookies than a jar can hold the last ones count`() {
        let lines = (0..<CookieLimits.countMax + 2).map { "h\($0).example\tFALSE\t/\tFALSE\t0\ta\t\($0)\n" }
        var jar = CookieJar()
        jar.replace(with: file(lines.joined()).cookies, savedAt: nil, now: now)
        #expect(jar.cookies(now: now).map(\.domain) == (2..<CookieLimits.countMax + 2).map { "h\($0).example" })
    }
}
