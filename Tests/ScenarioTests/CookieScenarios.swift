import Admin
import Cookies
import Credentials
import Foundation
import Origins
import Rules
import Server
import Settings
import TLS
import Testing

/// Rules that use the jar `portal` for 127.0.0.1 and localhost. One that names paths holds for these alone.
private func rule(
    _ number: Int = 1, jar: String = "portal", hosts: [String] = ["127.0.0.1", "localhost"], path: String? = nil,
    client: CookieUse.ClientUse = .replace, learns: Bool = true
) -> OriginRule {
    var conditions = RuleConditions()
    conditions.hosts = hosts.compactMap { HostPattern($0) }
    conditions.paths = path.flatMap { PathPattern($0) }.map { [$0] } ?? []
    return OriginRule(
        conditions, cookies: CookieUse(jar: jar, clientUse: client, learns: learns), number: number)
}

/// - Parameter file: the name of the jar's file, and what is in it at first. Nil: the jar has none.
private func withJar(
    _ rules: [OriginRule] = [rule()], file: (name: String, text: String)? = nil,
    also configure: (inout Configuration, Scenario.Files) throws -> Void = { _, _ in },
    _ play: (Scenario) throws -> Void
) throws {
    try scenario(
        { configuration, files in
            configuration.origins = rules
            configuration.cookieJars = [
                CookieJarSettings(name: "portal", file: try file.map { try files.write($0, $1) })
            ]
            try configure(&configuration, files)
        }, play)
}

private let page = "portal.cookies"

extension Scenario {
    fileprivate var jar: SharedCookieJar { proxy.shared.cookies.jar(named: "portal")! }
    fileprivate var path: String { directory.appendingPathComponent(page).path }
    /// The lines with cookies.
    fileprivate var saved: [String] {
        ((try? String(contentsOfFile: path, encoding: .utf8)) ?? "").split(separator: "\n").map(String.init)
            .filter { !$0.hasPrefix("# ") }
    }
    /// Of what is stored in memory.
    fileprivate var keys: [String] {
        var keys: [String] = []
        tier.memory.forEach { keys.append(String(decoding: $0.keyBytes, as: UTF8.self)) }
        return keys
    }
    fileprivate func restartedJar() throws -> [String] {
        try restart()
        return saved
    }
}

@Suite("Cookies that Larder keeps")
struct CookieScenarios {
    @Test func `one client logs in, and others, who keep no cookies, get in`() throws {
        try withJar { (s: Scenario) throws in
            s.origin.expects("POST /login", "!Cookie").replies(204, "Set-Cookie: sid=s3cret; Path=/", "Set-Cookie: b=2")
            let answer = try s.client().request("POST", "/login", body: "user=me")
            #expect(answer.status == 204 && answer["Set-Cookie"] == nil, "\(answer)")
            // Whichever worker has the connection.
            for number in 1...8 {
                s.origin.expects("GET /\(number)", "Cookie: sid=s3cret; b=2").replies(200, body: "in")
                #expect(try s.client().get("/\(number)").text == "in")
            }
            #expect(s.jar.tally.sent == 8 && s.jar.tally.set == 2 && s.jar.count == 2)
        }
    }

    @Test func `host A's cookies never go to host B, nor to a path that they are not for`() throws {
        try withJar { (s: Scenario) throws in
            let other = "http://localhost:\(s.origin.port)"
            s.origin.expects("GET /x/a").replies(200, "Set-Cookie: a=1", "Set-Cookie: all=1; Path=/")
            s.origin.expects("GET /x/b", "!Cookie").replies(200, "Set-Cookie: b=1; Path=/")
            s.origin.expects("GET /c", "Cookie: all=1").replies(200, body: "c")
            s.origin.expects("GET /d", "Cookie: b=1").replies(200, body: "d")
            s.origin.expects("GET /x/e", "Cookie: a=1; all=1").replies(200, body: "e")
            let client = try s.client()
            _ = try client.get("/x/a")
            _ = try client.get("\(other)/x/b")
            #expect(try client.get("/c").text == "c")
            #expect(try client.get("\(other)/d").text == "d")
            #expect(try client.get("/x/e").text == "e")
        }
    }

    @Test func `what a jar fetches is stored without cookies, and served to the requests that use the jar alone`()
        throws
    {
        try withJar([rule(hosts: ["127.0.0.1"])]) { (s: Scenario) throws in
            s.origin.expects("GET /a").replies(
                200, "Cache-Control: max-age=60", "Set-Cookie: a=1", "Vary: Accept", body: "members only")
            let client = try s.client()
            let first = try client.get("/a")
            #expect(first.text == "members only" && first["Set-Cookie"] == nil)
            let second = try s.client().get("/a")
            #expect(second.cacheStatus.contains("hit") && second["Set-Cookie"] == nil, "\(second)")
            #expect(s.keys == ["\(s.origin.url("/a"))#cookies:portal"])

            // The rule is gone: the same URL is another thing.
            try s.adopt { configuration, _ in configuration.cookieJars = [CookieJarSettings(name: "portal")] }
            s.origin.expects("GET /a", "!Cookie").replies(200, "Cache-Control: max-age=60", body: "for all")
            #expect(try client.get("/a").text == "for all")
            var selection = Selection()
            selection.url = s.origin.url("/a")
            #expect(RunningProxy(proxy: s.proxy, version: "test").purge(PurgeRequest(selection)).records == 2)
        }
    }

    @Test func `an unsafe request invalidates what the jar fetched`() throws {
        var get = rule()
        get.conditions.methods = ["GET"]
        try withJar([get]) { (s: Scenario) throws in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "old")
            s.origin.expects("POST /a", "!Cookie").replies(204)
            s.origin.expects("GET /a").replies(200, body: "new")
            let client = try s.client()
            #expect(try client.get("/a").text == "old")
            #expect(try client.request("POST", "/a", body: "x").status == 204)
            #expect(try client.get("/a").text == "new")
        }
    }

    @Test func `a client's own cookies are dropped, or go out first`() throws {
        try withJar { (s: Scenario) throws in
            s.origin.expects("GET /a", "!Cookie").replies(
                200, "Set-Cookie: sid=jar; Path=/", "Set-Cookie: b=jar; Path=/")
            s.origin.expects("GET /b", "Cookie: sid=jar; b=jar").replies(200, body: "replaced")
            let client = try s.client()
            _ = try client.get("/a", "Cookie: sid=own")
            #expect(try client.get("/b", "Cookie: sid=own").text == "replaced")
        }
        try withJar([rule(client: .merge)]) { (s: Scenario) throws in
            s.origin.expects("GET /a").replies(200, "Set-Cookie: sid=jar; Path=/", "Set-Cookie: b=jar; Path=/")
            s.origin.expects("GET /b", "Cookie: sid=own; c=own; b=jar").replies(200, "Set-Cookie: sid=next", body: "b")
            s.origin.expects("GET /c", "Cookie: sid=jar; b=jar").replies(200, body: "c")
            let client = try s.client()
            #expect(try client.get("/a")["Set-Cookie"] == nil)
            // What the origin sets for this client is for this client.
            #expect(try client.get("/b", "Cookie: sid=own", "Cookie: c=own")["Set-Cookie"] == "sid=next")
            #expect(try client.get("/c").text == "c")
        }
    }

    @Test func `a jar that does not learn stays as it is, and the client sees no cookies`() throws {
        try withJar(
            [rule(learns: false)], file: (page, "127.0.0.1\tFALSE\t/\tFALSE\t0\tlicence\taccepted\n")
        ) { (s: Scenario) throws in
            s.origin.expects("GET /a", "Cookie: licence=accepted").replies(200, "Set-Cookie: x=1", body: "a")
            s.origin.expects("GET /b", "Cookie: licence=accepted").replies(200, body: "b")
            #expect(try s.client().get("/a")["Set-Cookie"] == nil)
            #expect(try s.client().get("/b").text == "b")
        }
    }

    @Test func `cookies that have expired are not sent, and the origin can remove one`() throws {
        try withJar(
            file: (page, "127.0.0.1\tFALSE\t/\tFALSE\t1\told\t1\n127.0.0.1\tFALSE\t/\tFALSE\t0\tgone\t1\n")
        ) { (s: Scenario) throws in
            s.origin.expects("GET /a", "Cookie: gone=1").replies(
                200, "Set-Cookie: gone=; Max-Age=0; Path=/", "Set-Cookie: x=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT")
            s.origin.expects("GET /b", "!Cookie").replies(200, body: "b")
            _ = try s.client().get("/a")
            #expect(try s.client().get("/b").text == "b")
        }
    }

    @Test func `cookies come from interim, redirecting and failing answers too, and a TRACE carries none`() throws {
        try withJar([rule(client: .merge)]) { (s: Scenario) throws in
            s.origin.expects("GET /a").sends("HTTP/1.1 103 Early Hints\r\nSet-Cookie: a=1\r\nX-Hint: 1\r\n\r\n")
                .replies(
                    302, "Set-Cookie: b=1", "Location: /b")
            s.origin.expects("GET /b", "Cookie: a=1; b=1").replies(403, "Set-Cookie: c=1")
            s.origin.expects("TRACE /c", "!Cookie").replies(200, body: "x")
            s.origin.expects("GET /d", "Cookie: a=1; b=1; c=1").replies(200, body: "d")
            let client = try s.client()
            try client.ask("GET", "/a")
            let interim = try client.head()
            #expect(interim.all("X-Hint") == ["1"] && interim.all("Set-Cookie").isEmpty, "\(interim)")
            #expect(try client.response()["Set-Cookie"] == nil)
            #expect(try client.get("/b")["Set-Cookie"] == nil)
            #expect(try client.request("TRACE", "/c", "Cookie: own=1").status == 200)
            #expect(try client.get("/d").text == "d")
        }
    }

    @Test func `trailers show no cookies`() throws {
        try withJar { (s: Scenario) throws in
            s.origin.expects("GET /a").replies(
                200, ["Transfer-Encoding: chunked", "Trailer: Set-Cookie, X-Sum"],
                Array("1\r\na\r\n0\r\nSet-Cookie: a=1\r\nX-Sum: 1\r\n\r\n".utf8))
            let answer = try s.client().get("/a", "TE: trailers")
            #expect(answer.text == "a" && !"\(answer)".contains("a=1"), "\(answer)")
        }
    }

    @Test func `a challenge is answered with the cookies that it set`() throws {
        try withJar(also: { configuration, _ in configuration.workers = .count(1) }) { (s: Scenario) throws in
            try s.adopt(credentials: s.credential()) {
                $0.origins = [rule()]
                $0.cookieJars = [CookieJarSettings(name: "portal")]
            }
            s.origin.expects("GET /a", "!Cookie").replies(
                401, "WWW-Authenticate: Basic realm=\"a\"", "Set-Cookie: step=1", body: "who?")
            s.origin.expects("GET /a", "Cookie: step=1", "Authorization").replies(
                200, "Cache-Control: max-age=60", body: "in")
            #expect(try s.client().get("/a").text == "in")
            #expect(s.keys == ["\(s.origin.url("/a"))#credential:mirror#cookies:portal"])
        }
    }

    @Test(arguments: [true, false]) func `cookies with Secure go to origins that have proven who they are`(
        _ isVerified: Bool
    ) throws {
        let certificate = try MadeCertificate(for: "IP:127.0.0.1")
        let origin = try TLSOrigin(
            certificate,
            .answers(
                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nSet-Cookie: set=1; Secure\r\nSet-Cookie: open=1\r\n\r\nok"))
        defer { origin.end() }
        try withJar(
            file: (page, "127.0.0.1\tFALSE\t/\tTRUE\t0\tkept\t1\n"),
            also: { configuration, files in
                var tls = OriginTLS()
                tls.verification = isVerified ? .required : .none
                if isVerified { tls.authorityFile = try files.write("origin.pem", certificate.certificate) }
                configuration.origins[0].tls = tls
            }
        ) { (s: Scenario) throws in
            let client = try s.client()
            #expect(try client.get(origin.url("/a")).text == "ok")
            #expect(try client.get(origin.url("/b")).text == "ok")
            let cookies = origin.heads.map { head in
                head.split(whereSeparator: \.isNewline).filter { $0.hasPrefix("Cookie: ") }.map(String.init)
            }
            #expect(
                cookies
                    == (isVerified
                        ? [["Cookie: kept=1"], ["Cookie: kept=1; set=1; open=1"]] : [[], ["Cookie: open=1"]]))
            s.origin.expects("GET /c", "Cookie: open=1").replies(200, "Set-Cookie: kept=2; Path=/", body: "c")
            #expect(try client.get("/c").text == "c")
            #expect(s.jar.tally.rejected == [.insecure: isVerified ? 1 : 3])
        }
    }

    // MARK: the life of a jar

    @Test func `a reload keeps the jar, also if it has no file`() throws {
        try withJar { (s: Scenario) throws in
            s.origin.expects("GET /a").replies(200, "Set-Cookie: a=1", body: "a")
            _ = try s.client().get("/a")
            try s.adopt { configuration, _ in
                configuration.origins = [rule(hosts: ["127.0.0.1"])]
                configuration.cookieJars = [CookieJarSettings(name: "other"), CookieJarSettings(name: "portal")]
            }
            s.origin.expects("GET /b", "Cookie: a=1").replies(200, body: "b")
            #expect(try s.client().get("/b").text == "b")
        }
    }

    @Test func `the file has the cookies soon, nobody else can read it, and a restart finds them`() throws {
        try withJar(file: (page, "")) { (s: Scenario) throws in
            s.origin.expects("GET /a").replies(
                200, "Set-Cookie: a=1; Max-Age=1000; HttpOnly", "Set-Cookie: session=2", body: "a")
            _ = try s.client().get("/a")
            try s.eventually("the cookies are saved") { s.saved.count == 2 }
            #expect(s.saved[0].hasPrefix("#HttpOnly_127.0.0.1\tFALSE\t/\tFALSE\t") && s.saved[0].hasSuffix("\ta\t1"))
            #expect(s.saved[1] == "127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\t2")
            let mode = try FileManager.default.attributesOfItem(atPath: s.path)[.posixPermissions] as? Int
            #expect(mode == 0o600)
            try s.restart()
            s.origin.expects("GET /b", "Cookie: a=1; session=2").replies(200, "Set-Cookie: last=3", body: "b")
            #expect(try s.client().get("/b").text == "b")
            // What was set just before the end is not lost.
            #expect(try s.restartedJar().last == "127.0.0.1\tFALSE\t/\tFALSE\t0\tlast\t3")
        }
    }

    @Test func `a file that somebody else writes counts at once, and damaged lines cost themselves alone`() throws {
        try withJar(file: (page, "")) { (s: Scenario) throws in
            s.origin.expects("GET /a", "!Cookie").replies(200, "Set-Cookie: a=1", body: "a")
            _ = try s.client().get("/a")
            try s.eventually("it is saved") { s.saved.count == 1 }
            let line = "127.0.0.1\tFALSE\t/\tFALSE\t0"
            let files = Scenario.Files(directory: s.directory, origin: s.origin)
            _ = try files.write(page, "\(line)\tsid\t1\nno cookie\n.com\tTRUE\t/\tFALSE\t0\tx\ty\n\(line)\tb\t2\n")
            try s.eventually("it is read") { s.jar.count == 2 }
            s.origin.expects("GET /b", "Cookie: sid=1; b=2").replies(200, body: "b")
            #expect(try s.client().get("/b").text == "b")
        }
    }

    @Test func `a file that cannot be read is left as it is`() throws {
        try withJar(file: (page, "")) { (s: Scenario) throws in
            // Longer than a jar can be: nobody knows what else is in it.
            let length = off_t(CookieLimits.fileBytesMax) + 1
            try #require(unsafe truncate(s.path, length) == 0)
            s.origin.expects("GET /a").replies(200, "Set-Cookie: a=1", body: "a")
            s.origin.expects("GET /b", "Cookie: a=1").replies(200, body: "b")
            _ = try s.client().get("/a")
            #expect(try s.client().get("/b").text == "b")
            try s.restart()
            var status = stat()
            #expect(unsafe stat(s.path, &status) == 0 && status.st_size == length)
            let admin = RunningProxy(proxy: s.proxy, version: "test")
            // Whoever clears the jar does not want what is in the file.
            #expect(admin.clearSession(of: "portal") == ClearedSession(credentials: 0, cookieJars: 1))
            #expect(unsafe stat(s.path, &status) == 0 && status.st_size < 200)
            try FileManager.default.removeItem(atPath: s.path)
            try FileManager.default.createDirectory(atPath: s.path, withIntermediateDirectories: false)
            #expect(admin.clearSession(of: "portal")?.problems.count == 1)
        }
    }

    @Test func `session clear empties the jar and its file`() throws {
        try withJar(file: (page, "127.0.0.1\tFALSE\t/\tFALSE\t0\tsid\t1\n")) { (s: Scenario) throws in
            s.origin.expects("GET /a", "Cookie: sid=1").replies(200, body: "a")
            #expect(try s.client().get("/a").text == "a")
            let admin = RunningProxy(proxy: s.proxy, version: "test")
            #expect(admin.clearSession(of: "nobody") == nil)
            #expect(admin.clearSession(of: "portal") == ClearedSession(credentials: 0, cookieJars: 1))
            #expect(s.saved.isEmpty && s.jar.count == 0)
            s.origin.expects("GET /b", "!Cookie").replies(200, body: "b")
            #expect(try s.client().get("/b").text == "b")
            #expect(try s.restartedJar().isEmpty)
        }
    }

    // MARK: what people see

    @Test func `explain and the statistics show the jar, and no value`() throws {
        try withJar { (s: Scenario) throws in
            s.origin.expects("GET /a").replies(
                200, "Set-Cookie: sid=s3cret", "Set-Cookie: b=2", "Set-Cookie: c=3; Domain=com",
                "Set-Cookie: d=4; Secure")
            s.origin.expects("GET /b").replies(200, body: "b")
            _ = try s.client().get("/a")
            _ = try s.client().get("/b")
            let explanation = try s.proxy.explain(ExplainQuestion(target: s.origin.url("/c")))
            let lines = explanation.sections.flatMap(\.lines)
            #expect(lines.first { $0.name == "cookies" }?.value == "jar portal, 2 cookies")
            #expect(lines.first { $0.name == "key" }?.value.hasSuffix("/c#cookies:portal") == true)
            let stats = try s.stats()
            let jar = stats["cookie_jars"]?.elements?.first
            #expect(jar?["name"]?.text == "portal" && jar?["cookies"]?.integer == 2 && jar?["sent"]?.integer == 1)
            #expect(jar?["set"]?.integer == 2 && jar?["rejected"]?["insecure"]?.integer == 1)
            #expect(jar?["rejected"]?["public-suffix"]?.integer == 1, "\(stats)")
            let log = try s.logLines().joined()
            for shown in ["\(stats)", "\(explanation)", log] { #expect(!shown.contains("s3cret")) }
        }
    }

    @Test func `requests of other rules keep their cookies`() throws {
        try withJar([rule(path: "/portal/*")]) { (s: Scenario) throws in
            s.origin.expects("GET /portal/a").replies(200, "Set-Cookie: a=1; Path=/")
            s.origin.expects("GET /b", "Cookie: own=1").replies(200, "Set-Cookie: own=2", body: "b")
            let client = try s.client()
            _ = try client.get("/portal/a")
            #expect(try client.get("/b", "Cookie: own=1")["Set-Cookie"] == "own=2")
        }
    }
}
