import Admin
import Synchronization
import Testing

/// A house that remembers what it was asked to purge.
final class ScriptedHouse: House {
    let isDraining: Bool
    let purges = Mutex<[PurgeRequest]>([])

    init(isDraining: Bool = false) { self.isDraining = isDraining }

    func statistics() -> Statistics { sampleStatistics }

    func purge(_ request: PurgeRequest) -> PurgeResult {
        purges.withLock { $0.append(request) }
        return PurgeResult(records: 3, bytes: 4096)
    }

    func transfers() -> [TransferDescription] {
        [
            TransferDescription(
                url: "http://example.org/a\"<b>", ageMilliseconds: 1500, receivedBytes: 10, expectedBytes: nil,
                readers: 2,
                isStored: true)
        ]
    }
}

private let token = Array("a-token-of-some-length".utf8)

private func ask(
    _ method: String, _ path: String, door: AdminRequest.Door = .unixSocket, host: String? = "localhost",
    authorization: String? = nil, body: String = "", type: String? = nil, token: [UInt8]? = token,
    house: ScriptedHouse = ScriptedHouse()
) -> AdminResponse {
    AdminRouter(house: house, token: token).respond(
        to: AdminRequest(
            door: door, method: method, path: path, host: host, authorization: authorization.map { Array($0.utf8) },
            contentType: type, body: Array(body.utf8)))
}

extension AdminResponse {
    fileprivate func value(_ name: String) -> String? { fields.first { $0.name == name }?.value }
    fileprivate var text: String { String(decoding: body, as: UTF8.self) }
}

@Suite("Admin: paths and methods")
struct AdminRouterTests {
    static let paths: [(path: String, type: String)] = [
        ("/", "text/html; charset=utf-8"), ("/health", "text/plain; charset=utf-8"), ("/stats", "application/json"),
        ("/metrics", "text/plain; version=0.0.4; charset=utf-8"), ("/transfers", "application/json"),
    ]
    @Test(arguments: paths) func `what can be read is read with GET and HEAD`(_ row: (path: String, type: String)) {
        for method in ["GET", "HEAD"] {
            let response = ask(method, row.path)
            #expect(response.status == 200)
            #expect(response.contentType == row.type)
            #expect(!response.body.isEmpty)
        }
    }

    @Test(arguments: ["/", "/health", "/stats", "/metrics", "/transfers"])
    func `another method is 405 with Allow`(_ path: String) {
        for method in ["POST", "DELETE", "get", ""] {
            let response = ask(method, path)
            #expect(response.status == 405)
            #expect(response.value("Allow") == "GET, HEAD")
        }
    }

    @Test func `purge takes POST only`() {
        #expect(ask("GET", "/purge").status == 405)
        #expect(ask("GET", "/purge").value("Allow") == "POST")
    }

    @Test(arguments: ["/nowhere", "", "*", "/stats/", "/Stats"]) func `an unknown path is 404 with a list`(
        _ path: String
    ) {
        let response = ask("GET", path)
        #expect(response.status == 404)
        for known in ["/health", "/metrics", "/purge", "/stats", "/transfers"] {
            #expect(response.text.contains(known))
        }
    }

    @Test func `health says ok, and 503 while draining`() {
        #expect(ask("GET", "/health").text == "ok\n")
        #expect(ask("GET", "/health", house: ScriptedHouse(isDraining: true)).status == 503)
    }

    @Test func `a transfer of unknown length says null, and its URL is escaped`() throws {
        let value = try JSONValue(parsing: ask("GET", "/transfers").body)
        let first = value["transfers"]?.elements?.first
        #expect(first?["url"] == .string("http://example.org/a\"<b>"))
        #expect(first?["expected_bytes"] == .null)
        #expect(first?["readers"] == .integer(2))
    }

    @Test(arguments: ["/", "/stats", "/nowhere", "/purge"]) func `no answer may be stored, framed or guessed at`(
        _ path: String
    ) {
        let response = ask("GET", path)
        #expect(response.value("Cache-Control") == "no-store")
        #expect(response.value("X-Content-Type-Options") == "nosniff")
        #expect(response.value("X-Frame-Options") == "DENY")
        #expect(response.fields.allSatisfy { !$0.name.hasPrefix("Access-Control") })
    }

    @Test func `the dashboard runs what carries its nonce, once, and loads nothing from elsewhere`() throws {
        let (first, second) = (ask("GET", "/"), ask("GET", "/"))
        let policy = try #require(first.value("Content-Security-Policy"))
        #expect(policy.hasPrefix("default-src 'none'; "))
        #expect(!policy.contains("unsafe"))
        #expect(policy != second.value("Content-Security-Policy"))
        let nonce = try #require(policy.split(separator: "'nonce-").last?.prefix { $0 != "'" })
        #expect(nonce.count == 32)
        #expect(first.text.contains("<script nonce=\"\(nonce)\">"))
        #expect(first.text.contains("<style nonce=\"\(nonce)\">"))
        for outside in ["src=\"http", "href=\"http", "@import", "style=\"", "onclick", "innerHTML"] {
            #expect(!first.text.contains(outside))
        }
    }
}

@Suite("Admin: who may change, and DNS rebinding")
struct AdminAuthorityTests {
    static let hosts: [(host: String?, isTaken: Bool)] = [
        ("localhost", true), ("LocalHost:3129", true), ("larder.localhost", true), ("127.0.0.1:3129", true),
        ("192.168.1.20", true), ("[::1]:3129", true), ("[fe80::1]", true), ("evil.example", false),
        ("127.0.0.1.evil.example", false), ("localhost.evil.example", false), ("127.0.0.1x", false),
        ("2130706433", false), ("0x7f.1", false), ("127.1", false), ("", false), (nil, false), ("[::1", false),
        ("[evil.example]", false), ("localhost:80:80", false), ("localhost:x", false), ("a@localhost", false),
    ]
    @Test(arguments: hosts) func `over TCP the Host is an address or localhost`(_ row: (host: String?, isTaken: Bool)) {
        #expect(ask("GET", "/stats", door: .tcp, host: row.host).status == (row.isTaken ? 200 : 403))
        #expect(ask("GET", "/stats", door: .unixSocket, host: row.host).status == 200)
    }

    static let changes: [(authorization: String?, token: [UInt8]?, status: UInt16)] = [
        (nil, nil, 403), ("Bearer x", nil, 403), (nil, token, 401), ("Bearer", token, 401), ("Bearer ", token, 401),
        ("Bearer wrong-token-of-length!", token, 401), ("Bearer a-token-of-some-lengtH", token, 401),
        ("Bearer a-token-of-some-lengt", token, 401), ("Bearer a-token-of-some-length-", token, 401),
        ("Basic a-token-of-some-length", token, 401), ("Bearer a-token-of-some-length", token, 200),
        ("bEARER a-token-of-some-length", token, 200),
    ]
    @Test(arguments: changes)
    func `over TCP a change needs the token`(_ row: (authorization: String?, token: [UInt8]?, status: UInt16)) {
        let house = ScriptedHouse()
        let response = ask(
            "POST", "/purge", door: .tcp, authorization: row.authorization, body: "all=yes", token: row.token,
            house: house)
        #expect(response.status == row.status)
        #expect(house.purges.withLock { $0.count } == (row.status == 200 ? 1 : 0))
        #expect((response.value("WWW-Authenticate") != nil) == (row.status == 401))
    }

    @Test func `the Unix socket needs none`() {
        #expect(ask("POST", "/purge", host: nil, body: "all=yes", token: nil).status == 200)
    }

    @Test func `a rebound name changes nothing even with the token`() {
        let house = ScriptedHouse()
        let response = ask(
            "POST", "/purge", door: .tcp, host: "evil.example", authorization: "Bearer a-token-of-some-length",
            body: "all=yes", house: house)
        #expect(response.status == 403)
        #expect(house.purges.withLock { $0.isEmpty })
    }
}

@Suite("POST /purge")
struct PurgeTests {
    static let bodies: [(body: String, type: String?, request: PurgeRequest)] = [
        (#"{"url":"http://example.org/a?b=c"}"#, "application/json", .init(.url("http://example.org/a?b=c"))),
        (#" {"url":"HTTPS://Example.org/"}"#, "Application/JSON; charset=utf-8", .init(.url("HTTPS://Example.org/"))),
        (
            #"{"prefix":"http://example.org/x/","dry_run":true}"#, nil,
            .init(.prefix("http://example.org/x/"), dryRun: true)
        ),
        (#"{"host":"Example.ORG","dry_run":false}"#, nil, .init(.host("example.org"))),
        (#"{"all":true}"#, nil, .init(.all)), ("all=yes", nil, .init(.all)), ("all", nil, .init(.all)),
        ("all=on&dry_run=1", "application/x-www-form-urlencoded", .init(.all, dryRun: true)),
        ("url=http%3A%2f%2Fexample.org%2Fa%2520b", nil, .init(.url("http://example.org/a%20b"))),
        ("host=example.org&dry_run=no", nil, .init(.host("example.org"))),
        (#"{"all":false,"host":"x"}"#, nil, .init(.host("x"))),
    ]
    @Test(arguments: bodies)
    func `JSON and forms name one selection`(_ row: (body: String, type: String?, request: PurgeRequest)) throws {
        #expect(try purgeRequest(body: Array(row.body.utf8), contentType: row.type) == row.request)
    }

    static let wrong: [(body: String, type: String?, says: String)] = [
        ("", nil, "exactly one"), ("{}", nil, "exactly one"), (#"{"all":false}"#, nil, "exactly one"),
        ("all=yes&host=x", nil, "exactly one"), (#"{"url":7}"#, nil, "must be text"),
        (#"{"url":"/a"}"#, nil, "absolute URL"), (#"{"url":"ftp://x/"}"#, nil, "absolute URL"),
        (#"{"url":"http:/x"}"#, nil, "absolute URL"), (#"{"prefix":"http://"}"#, nil, "absolute URL"),
        (#"{"url":"http://x/a b"}"#, nil, "absolute URL"), (#"{"url":"http://x/\n"}"#, nil, "absolute URL"),
        (#"{"host":""}"#, nil, "must be text"), (#"{"host":"http://x"}"#, nil, "host name"),
        (#"{"hots":"x"}"#, nil, "\"hots\" is not known"), (#"{"all":"maybe"}"#, nil, "true or false"),
        (#"{"all":1}"#, nil, "true or false"), (#"{"all":true"#, "application/json", "not JSON"),
        ("[1]", "application/json", "JSON object"), ("all=yes&all=yes", nil, "twice"), ("url=%4", nil, "percent"),
        ("url=%zz", nil, "percent"), ("url=%ff", nil, "UTF-8"), ("all=yes", "text/plain", "application/json"),
    ]
    @Test(arguments: wrong) func `a wrong body is 400 and says why`(_ row: (body: String, type: String?, says: String))
    {
        let house = ScriptedHouse()
        let response = ask("POST", "/purge", body: row.body, type: row.type, house: house)
        #expect(response.status == 400)
        #expect(response.text.contains(row.says.replacing("\"", with: "\\\"")), "\(response.text)")
        #expect(house.purges.withLock { $0.isEmpty })
    }

    @Test func `the answer has the counts`() throws {
        let value = try JSONValue(parsing: ask("POST", "/purge", body: #"{"host":"x","dry_run":true}"#).body)
        #expect(value["records"] == .integer(3))
        #expect(value["bytes"] == .integer(4096))
        #expect(value["dry_run"] == .bool(true))
    }
}
