import Admin
import Credentials
import EventLoop
import Message
import Server
import Testing
import JSON
import Learning
import Limiting
import Access
import Authentication
import Rules

/// A proxy that remembers what it was asked to purge.
final class ScriptedProxy: AdministeredProxy {
    let isDraining: Bool
    let disksOff: [DiskOff]
    let purges = Locked<[PurgeRequest]>([])
    /// Called at the beginning of each purge.
    let whenPurging = Locked<(@Sendable () -> Void)?>(nil)

    init(isDraining: Bool = false, disksOff: [DiskOff] = []) {
        self.isDraining = isDraining
        self.disksOff = disksOff
    }

    func statistics() -> Statistics { sampleStatistics }
    let fleet = Locked<FleetView?>(nil)
    func fleetView() -> FleetView? { fleet.withLock { $0 } }

    func purge(_ request: PurgeRequest) -> PurgeResult {
        whenPurging.withLock { $0 }?()
        purges.withLock { $0.append(request) }
        return PurgeResult(records: 3, bytes: 4096)
    }

    /// Of the credential forge alone.
    func issuePlaceholder(
        of credential: String, job: String?, lifetime: Seconds?
    ) throws(PlaceholderProblem) -> Placeholder {
        guard credential == "forge" else { throw .unknownCredential(["forge"]) }
        return Placeholder(
            id: "1f2e3d4c", text: Array("ghp_x".utf8), credential: credential, job: job,
            issuedAt: now.wallTime, endsAt: lifetime.map { Expiry(after: $0, from: now) })
    }

    func revokePlaceholders(_ which: String?, job: String?) -> [Placeholder] {
        placeholders().filter { $0.id == which || (which == nil && $0.job == job) }
    }

    func placeholders() -> [Placeholder] {
        [
            Placeholder(
                id: "1f2e3d4c", text: Array("ghp_x".utf8), credential: "forge", job: "nightly",
                issuedAt: now.wallTime, endsAt: Expiry(after: .zero, from: now))
        ]
    }

    static let now = Moment(uptime: .seconds(5), wallTime: WallTime(secondsSinceEpoch: 1_000_000_000))
    var now: Moment { Self.now }

    /// The limit each has budgets of users; the file cannot be written for the one of full.
    func resetBudgets(
        of rule: String, _ subject: LimitSubject?
    ) throws(Proxy.BudgetRefusal) -> (count: Int, complaint: String?) {
        switch (rule, subject) {
        case ("each", nil), ("each", .user): return (subject == nil ? 3 : 1, nil)
        case ("each", _): throw .otherScope(.user)
        case ("shared", _): throw .shares("each")
        case ("full", _): return (1, "/b cannot be written: full")
        default: throw .unknownRule(withBudget: ["each", "full"])
        }
    }

    let cleared = Locked<[String?]>([])

    /// Two credentials, a and b, and two jars: j, and k whose file cannot be written.
    func clearSession(of name: String?) -> ClearedSession? {
        let known = ["a", "b", "j", "k"]
        guard name.map({ known.contains($0) }) ?? true else { return nil }
        cleared.withLock { $0.append(name) }
        switch name {
        case nil: return ClearedSession(credentials: 2, cookieJars: 1)
        case "j": return ClearedSession(credentials: 0, cookieJars: 1)
        case "k": return ClearedSession(credentials: 0, cookieJars: 1, problems: ["/k cannot be written: full"])
        default: return ClearedSession(credentials: 1)
        }
    }

    let selections = Locked<[Selection]>([])
    let questions = Locked<[ExplainQuestion]>([])

    /// Three pages: two objects, none, one.
    func objects(_ selection: Selection) -> @Sendable () -> [ObjectDescription]? {
        selections.withLock { $0.append(selection) }
        let pages = Locked<[[ObjectDescription]]>(
            [["http://example.org/a", "http://example.org/<b>"], [], ["http://example.net/c"]].map { urls in
                urls.map { ObjectDescription(url: $0) }
            })
        return { pages.withLock { $0.isEmpty ? nil : $0.removeFirst() } }
    }

    func explain(_ question: ExplainQuestion) throws(ExplainError) -> Explanation {
        questions.withLock { $0.append(question) }
        guard question.target != "nonsense" else { throw ExplainError(message: "this is no URL") }
        var explanation = Explanation(.hit, reason: "it is fresh")
        var section = Explanation.Section("access")
        section.lines.append(.init("rule", "1"))
        explanation.sections.append(section)
        return explanation
    }

    let started = Locked<[ActiveJob]>([])

    /// The job nightly learns already, and there is no room for the job many.
    func startLearning(_ job: ActiveJob) throws(LearningBook.Refusal) -> String? {
        if job.job == "nightly" { throw .running }
        if job.job == "many" { throw .tooManyJobs }
        started.withLock { $0.append(job) }
        return job.job == "unsaved" ? "it is kept in memory only" : nil
    }

    func stopLearning(_ job: String) -> Bool { job == "nightly" }
    func forgetJournal(of job: String) -> Bool { job == "nightly" }

    var learning: ActiveJobs {
        ActiveJobs([
            ActiveJob(
                job: "nightly", scope: JobScope(user: "builder"), allows: true,
                endsAt: Expiry(after: Seconds(3600), from: now))
        ])
    }

    func journals() -> [Journal] {
        var journal = Journal(job: "nightly", scope: JobScope(user: "builder"))
        journal.begin(journal.scope, allowing: true, at: now.wallTime)
        guard let host = DestinationHost("a.example".utf8) else { return [] }
        journal.note(
            Observation(
                AccessRequest(
                    client: nil, method: .get, destination: host, port: 80, isTunnel: false,
                    pathAndQuery: Array("/file".utf8)[...]), .allowed), recipes: RecipePaths())
        return [journal]
    }

    func journal(of job: String) -> (journal: Journal, difference: Difference)? {
        journals().first { $0.job == job }.map {
            ($0, Difference(of: $0, from: AccessPolicy(from: AccessSettings()), rules: []))
        }
    }

    static let transfer = TransferID(.fetch, worker: 1, place: ConnectionID(slot: 12, generation: 3))
    let cancelled = Locked<[TransferID]>([])

    func transfers() -> [TransferReport] {
        [
            TransferReport(
                id: Self.transfer, requestID: "0123456789abcdef", tunnelID: "fedcba9876543210",
                uri: Array("http://example.org/a\"<b>?id_token=s3cret".utf8), method: "PUT",
                client: "192.0.2.1",
                state: .held, age: .milliseconds(1500), received: 10, expected: nil, sent: 7, readers: 2,
                isStored: true)
        ]
    }

    /// There is no other transfer than the one.
    func cancelTransfer(_ id: TransferID) -> Bool {
        cancelled.withLock { $0.append(id) }
        return id == Self.transfer
    }
}

private let token = Array("a-token-of-some-length".utf8)

func ask(
    _ method: String, _ path: String, query: String = "", door: AdminRequest.Door = .unixSocket,
    host: String? = "localhost",
    authorization: String? = nil, body: String = "", type: String? = nil, token: [UInt8]? = token,
    proxy: ScriptedProxy = ScriptedProxy()
) -> AdminResponse {
    AdminRouter(proxy: proxy, token: token).respond(
        to: AdminRequest(
            door: door, method: method, path: path, query: query, host: host,
            authorization: authorization.map { Array($0.utf8) },
            contentType: type, body: Array(body.utf8)))
}

extension AdminResponse {
    fileprivate func value(_ name: String) -> String? { fields.first { $0.name == name }?.value }
    fileprivate var text: String { String(decoding: whole, as: UTF8.self) }
    /// The body, with its pieces where it has them.
    fileprivate var whole: [UInt8] {
        guard let pieces else { return body }
        var result: [UInt8] = []
        while let piece = pieces.next() { result += piece }
        return result
    }
}

@Suite("Admin: learning")
struct LearningRouteTests {
    @Test func `a job begins with its scope and its end`() {
        let proxy = ScriptedProxy()
        let body = #"{"job":"build-1","client":"10.2.0.17","user":"ann","for":"30m"}"#
        let answer = ask("POST", "/learn/start", body: body, proxy: proxy)
        #expect(answer.status == 200)
        #expect(
            answer.text
                == #"{"job":"build-1","scope":"client 10.2.0.17, user ann","allows":false,"ends":"2001-09-09T02:16:40Z"}"#
                + "\n")
        #expect(
            proxy.started.withLock { $0 } == [
                ActiveJob(
                    job: "build-1", scope: JobScope(client: AddressRange("10.2.0.17"), user: "ann"),
                    endsAt: Expiry(after: Seconds(1800), from: ScriptedProxy.now))
            ])
    }

    @Test func `what the rules deny is let through for an hour, if nobody says how long`() {
        let proxy = ScriptedProxy()
        #expect(
            ask("POST", "/learn/start", body: #"{"job":"a","user":"ann","allow":"yes"}"#, proxy: proxy).status == 200)
        let job = proxy.started.withLock { $0.first }
        #expect(job?.allows == true && job?.endsAt?.wallTime == WallTime(secondsSinceEpoch: 1_000_003_600))
    }

    static let wrong: [(body: String, part: String)] = [
        ("{}", "job"), (#"{"job":"a/b"}"#, "letters"), (#"{"job":"a","client":"nowhere"}"#, "address or a network"),
        (#"{"job":"a","user":""}"#, "user"), (#"{"job":"a","for":"0"}"#, "span of time"),
        (#"{"job":"a","x":"y"}"#, "x"),
        (#"{"job":"a","allow":"yes"}"#, "needs"), (#"{"job":"a","allow":"no"}"#, "allow"),
        (#"{"job":"a","client":"0.0.0.0/0","allow":"yes"}"#, "one client or a network"),
        (#"{"job":"a","user":"ann","allow":"yes","for":"25h"}"#, "24h at most"), ("[]", "JSON object"),
    ]
    @Test(arguments: wrong) func `a body that is wrong is refused, and says why`(_ row: (body: String, part: String)) {
        let proxy = ScriptedProxy()
        let answer = ask("POST", "/learn/start", body: row.body, proxy: proxy)
        #expect(answer.status == 400 && answer.text.contains(row.part), "\(answer.text)")
        #expect(proxy.started.withLock { $0.isEmpty })
    }

    @Test func `a journal that is not saved is a warning, and no room is an error`() {
        #expect(ask("POST", "/learn/start", body: #"{"job":"unsaved"}"#).text.contains("\"warning\":\"it is kept"))
        #expect(ask("POST", "/learn/start", body: #"{"job":"nightly"}"#).status == 409)
        #expect(ask("POST", "/learn/start", body: #"{"job":"many"}"#).status == 503)
    }

    static let resets: [(body: String, status: Int, text: String)] = [
        (#"{"rule":"each"}"#, 200, #"{"rule":"each","reset":3}"#),
        (#"{"rule":"each","user":"ann"}"#, 200, #"{"rule":"each","reset":1}"#),
        (#"{"rule":"each","client":"10.0.0.1"}"#, 400, "the limit each has one budget for each user"),
        (#"{"rule":"shared"}"#, 400, "the limit shared has the budgets of each"),
        (#"{"rule":"full"}"#, 500, "the budgets are reset until the next start: /b cannot be written: full"),
        (#"{"rule":"none"}"#, 404, "no limit none has a budget; those with one: each, full"),
        (#"{"user":"ann"}"#, 400, "is missing"), (#"{"rule":"each","user":"a","group":"b"}"#, 400, "one of"),
        (#"{"rule":"each","client":"a"}"#, 400, "must be an address"), ("", 400, "error"),
    ]
    @Test(arguments: resets) func `POST to budgets/reset lets budgets begin anew`(
        _ row: (body: String, status: Int, text: String)
    ) {
        let answer = ask("POST", "/budgets/reset", body: row.body)
        #expect(answer.status == row.status && answer.text.contains(row.text), "\(answer.status) \(answer.text)")
    }

    @Test(arguments: ["/learn/stop", "/learn/forget"]) func `a job that is not there`(_ path: String) {
        #expect(ask("POST", path, body: #"{"job":"nightly"}"#).status == 200)
        #expect(ask("POST", path, body: #"{"job":"other"}"#).status == 404)
        #expect(ask("POST", path, body: #"{"job":""}"#).status == 400)
    }

    @Test func `the list has the jobs, and show has their rules`() {
        let list = ask("GET", "/learn").text
        #expect(list.contains(#""job":"nightly","scope":"user builder","learning":true,"allows":true"#), "\(list)")
        let shown = ask("GET", "/learn/show", query: "job=nightly")
        #expect(shown.status == 200)
        #expect(
            shown.text.contains(
                #""match":{"host":["a.example"],"port":["80"],"method":["GET"],"path":["/file"],"user":["builder"]}"#),
            "\(shown.text)")
        #expect(shown.text.contains(#""difference":{"missing":[],"superfluous":[],"denied":[]}"#))
        #expect(ask("GET", "/learn/show", query: "job=other").status == 404)
        #expect(ask("GET", "/learn/show", query: "").status == 400)
        #expect(ask("GET", "/learn/show", query: "job=..%2Fx").status == 400)
    }

    @Test(arguments: [
        ("POST", "/budgets/reset"), ("POST", "/learn/start"), ("POST", "/learn/stop"), ("POST", "/learn/forget"),
        ("GET", "/learn"),
        ("GET", "/learn/show"),
    ])
    func `over TCP all of it needs the token`(_ row: (method: String, path: String)) {
        let body = #"{"job":"nightly"}"#
        #expect(ask(row.method, row.path, door: .tcp, body: body).status == 401)
        #expect(ask(row.method, row.path, door: .tcp, body: body, token: nil).status == 403)
    }
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
        #expect(ask("GET", "/health", proxy: ScriptedProxy(isDraining: true)).status == 503)
    }

    @Test func `a disk that is off degrades health, and leaves it a 200`() {
        let off = [DiskOff(zone: "default", reason: "no space"), DiskOff(zone: "layers", reason: "I/O error")]
        let answer = ask("GET", "/health", proxy: ScriptedProxy(disksOff: off))
        #expect(answer.status == 200)
        #expect(
            answer.text
                == "degraded: the disk of zone default is off: no space\ndegraded: the disk of zone layers is off: I/O error\n"
        )
        #expect(ask("GET", "/health", proxy: ScriptedProxy(isDraining: true, disksOff: off)).status == 503)
    }

    @Test func `a transfer of unknown length says null, and its URL is escaped`() throws {
        let value = try JSONValue(parsing: ask("GET", "/transfers").body)
        let first = value["transfers"]?.elements?.first
        #expect(first?["url"] == .string("http://example.org/a\"<b>?id_token=s3cret"))
        #expect(first?["expected_bytes"] == .null)
        #expect(first?["readers"] == .integer(2) && first?["sent_bytes"] == .integer(7))
        #expect(first?["id"] == .string("f1-12-3") && first?["kind"] == .string("fetch"))
        #expect(first?["request_id"] == .string("0123456789abcdef"))
        #expect(first?["tunnel"] == .string("fedcba9876543210"))
        #expect(first?["state"] == .string("held") && first?["client"] == .string("192.0.2.1"))
        #expect(first?["age_milliseconds"] == .integer(1500) && first?["method"] == .string("PUT"))
    }

    @Test(arguments: [
        (AdminRequest.Door.tcp, nil, "***"), (.tcp, "Bearer another-token-of-that-length", "***"),
        (.tcp, "Bearer a-token-of-some-length", "s3cret"), (.unixSocket, nil, "s3cret"),
    ])
    func `only who may change something sees secrets in the URLs of transfers`(
        door: AdminRequest.Door, authorization: String?, shown: String
    ) throws {
        let answer = ask("GET", "/transfers", door: door, authorization: authorization)
        let value = try JSONValue(parsing: answer.body)
        #expect(
            value["transfers"]?.elements?.first?["url"] == .string("http://example.org/a\"<b>?id_token=\(shown)"))
    }

    @Test func `a stored response is listed without secrets`() {
        let listed = ObjectDescription(key: Array("http://a.example/?x=1&client_secret=s3cret#credential:forge".utf8))
        #expect(listed.url == "http://a.example/?x=1&client_secret=***#credential:forge")
    }

    @Test func `a transfer is ended by its ID`() throws {
        let proxy = ScriptedProxy()
        let answer = ask("POST", "/transfers/cancel", body: "f1-12-3", proxy: proxy)
        #expect(answer.status == 200 && answer.text == #"{"cancelled":"f1-12-3"}"# + "\n")
        #expect(proxy.cancelled.withLock { $0 } == [ScriptedProxy.transfer])
        let late = ask("POST", "/transfers/cancel", body: "t0-12-3", proxy: proxy)
        #expect(late.status == 404 && late.text.contains("the transfer t0-12-3 is over"))
    }

    @Test(arguments: [
        "", "f1-12", "x1-12-3", "f1-12-3-4", "f01-12-3", "f-1-12-3", "f1-+2-3", "f1-12-99999999999", "f99999-1-1",
    ])
    func `what is no ID ends nothing`(id: String) {
        let proxy = ScriptedProxy()
        let answer = ask("POST", "/transfers/cancel", body: id, proxy: proxy)
        #expect(answer.status == 400 && answer.text.contains("such as f0-12-3"))
        #expect(proxy.cancelled.withLock { $0 }.isEmpty)
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
        let proxy = ScriptedProxy()
        let response = ask(
            "POST", "/purge", door: .tcp, authorization: row.authorization, body: "all=yes", token: row.token,
            proxy: proxy)
        #expect(response.status == row.status)
        #expect(proxy.purges.withLock { $0.count } == (row.status == 200 ? 1 : 0))
        #expect((response.value("WWW-Authenticate") != nil) == (row.status == 401))
    }

    @Test func `the Unix socket needs none`() {
        #expect(ask("POST", "/purge", host: nil, body: "all=yes", token: nil).status == 200)
    }

    @Test func `a rebound name changes nothing even with the token`() {
        let proxy = ScriptedProxy()
        let response = ask(
            "POST", "/purge", door: .tcp, host: "evil.example", authorization: "Bearer a-token-of-some-length",
            body: "all=yes", proxy: proxy)
        #expect(response.status == 403)
        #expect(proxy.purges.withLock { $0.isEmpty })
    }
}

private func selection(_ change: (inout Selection) -> Void) -> Selection {
    var selection = Selection()
    change(&selection)
    return selection
}

@Suite("POST /purge")
struct PurgeTests {
    static let bodies: [(body: String, type: String?, request: PurgeRequest)] = [
        (
            #"{"url":"http://example.org/a?b=c"}"#, "application/json",
            .init(selection { $0.url = "http://example.org/a?b=c" })
        ),
        (
            #" {"url":"HTTPS://Example.org/"}"#, "Application/JSON; charset=utf-8",
            .init(selection { $0.url = "HTTPS://Example.org/" })
        ),
        (
            #"{"prefix":"http://example.org/x/","dry_run":true}"#, nil,
            .init(selection { $0.prefix = "http://example.org/x/" }, dryRun: true)
        ),
        (#"{"host":"Example.ORG","dry_run":false}"#, nil, .init(selection { $0.host = "example.org" })),
        (#"{"host":"*.Example.ORG","soft":true}"#, nil, .init(selection { $0.host = "*.example.org" }, kind: .soft)),
        (#"{"all":true}"#, nil, .init(Selection())), ("all=yes", nil, .init(Selection())),
        ("all", nil, .init(Selection())), ("all&soft", nil, .init(Selection(), kind: .soft)),
        ("all=on&dry_run=1", "application/x-www-form-urlencoded", .init(Selection(), dryRun: true)),
        (
            "url=http%3A%2f%2Fexample.org%2Fa%2520b", nil, .init(selection { $0.url = "http://example.org/a%20b" })
        ),
        ("host=example.org&dry_run=no", nil, .init(selection { $0.host = "example.org" })),
        (#"{"all":false,"host":"x"}"#, nil, .init(selection { $0.host = "x" })),
        (
            "host=x&tag=a:b/c&type=Image/*&zone=big&storage=Pinned&older_than=7d", nil,
            .init(
                selection {
                    $0.host = "x"
                    $0.tag = "a:b/c"
                    $0.type = "image/*"
                    $0.zone = "big"
                    $0.storage = .pinned
                    $0.olderThan = Seconds(604_800)
                })
        ),
        (#"{"older_than":90}"#, nil, .init(selection { $0.olderThan = Seconds(90) })),
        (#"{"older_than":"0"}"#, nil, .init(selection { $0.olderThan = .zero })),
    ]
    @Test(arguments: bodies)
    func `JSON and forms name conditions`(_ row: (body: String, type: String?, request: PurgeRequest)) throws {
        #expect(try purgeRequest(body: Array(row.body.utf8), contentType: row.type) == row.request)
    }

    /// What a node of a fleet tells the others.
    @Test(arguments: bodies)
    func `a purge is read as it was written`(_ row: (body: String, type: String?, request: PurgeRequest)) throws {
        var request = row.request
        // It is not announced.
        request.dryRun = false
        #expect(try purgeRequest(body: request.json, contentType: "application/json") == request)
    }

    @Test func `every condition of a purge is written, whatever its text is`() throws {
        let rows: [(SelectionKey, String)] = [
            (.url, "http://a.example/a%22?b=1&c=\u{27}"), (.prefix, "http://a.example/p'"), (.host, "*.a.example"),
            (.tag, "t\"g"),
            (.type, "text/*"), (.zone, "big"), (.storage, "permanent"), (.olderThan, "90"),
        ]
        #expect(Set(rows.map(\.0)) == Set(SelectionKey.allCases))
        var all = Selection()
        for (key, text) in rows {
            var one = Selection()
            try one.set(key, text)
            try all.set(key, text)
            for kind in [PurgeRequest.Kind.hard, .soft] {
                let request = PurgeRequest(one, kind: kind)
                #expect(try purgeRequest(body: request.json, contentType: "application/json") == request, "\(key)")
            }
        }
        #expect(try purgeRequest(body: PurgeRequest(all).json, contentType: "application/json").selection == all)
    }

    static let wrong: [(body: String, type: String?, says: String)] = [
        ("", nil, "give at least one"), ("{}", nil, "give at least one"), (#"{"all":false}"#, nil, "give at least one"),
        (#"{"soft":true}"#, nil, "give at least one"), ("all=yes&host=x", nil, "cannot be combined"),
        (#"{"url":7}"#, nil, "must be text"), (#"{"url":"/a"}"#, nil, "absolute URL"),
        (#"{"url":"ftp://x/"}"#, nil, "absolute URL"), (#"{"url":"http:/x"}"#, nil, "absolute URL"),
        (#"{"prefix":"http://"}"#, nil, "absolute URL"), (#"{"url":"http://x/a b"}"#, nil, "absolute URL"),
        (#"{"url":"http://x/\n"}"#, nil, "absolute URL"), (#"{"host":""}"#, nil, "host name"),
        (#"{"host":"http://x"}"#, nil, "host name"), (#"{"host":"*"}"#, nil, "host name"),
        (#"{"host":"*.*.x"}"#, nil, "host name"), (#"{"host":"*."}"#, nil, "host name"),
        (#"{"tag":"a b"}"#, nil, "one word"), (#"{"tag":"a,b"}"#, nil, "one word"), (#"{"tag":""}"#, nil, "one word"),
        (#"{"type":"text"}"#, nil, "media type"), (#"{"type":"*/*"}"#, nil, "media type"),
        (#"{"type":"text/html; charset=x"}"#, nil, "media type"), (#"{"zone":""}"#, nil, "one word"),
        (#"{"storage":"forever"}"#, nil, "session, permanent, pinned"), ("older_than=d", nil, "span of time"),
        ("older_than=7y", nil, "span of time"),
        ("older_than=-7d", nil, "span of time"), ("older_than=99999999999999999w", nil, "span of time"),
        (#"{"older_than":true}"#, nil, "must be text"), (#"{"hots":"x"}"#, nil, "\"hots\" is not known"),
        (#"{"all":"maybe"}"#, nil, "true or false"), (#"{"all":1}"#, nil, "true or false"),
        (#"{"all":true"#, "application/json", "not JSON"), ("[1]", "application/json", "JSON object"),
        ("all=yes&all=yes", nil, "twice"), ("url=%4", nil, "percent"), ("url=%zz", nil, "percent"),
        ("url=%ff", nil, "UTF-8"), ("all=yes", "text/plain", "application/json"),
    ]
    @Test(arguments: wrong) func `a wrong body is 400 and says why`(_ row: (body: String, type: String?, says: String))
    {
        let proxy = ScriptedProxy()
        let response = ask("POST", "/purge", body: row.body, type: row.type, proxy: proxy)
        #expect(response.status == 400)
        #expect(response.text.contains(row.says.replacing("\"", with: "\\\"")), "\(response.text)")
        #expect(proxy.purges.withLock { $0.isEmpty })
    }

    @Test func `the answer has the counts`() throws {
        let value = try JSONValue(parsing: ask("POST", "/purge", body: #"{"host":"x","dry_run":true}"#).body)
        #expect(value["records"] == .integer(3))
        #expect(value["bytes"] == .integer(4096))
        #expect(value["dry_run"] == .bool(true))
        #expect(value["soft"] == .bool(false))
    }
}

@Suite("POST /session/clear")
struct SessionRouteTests {
    static let rows: [(body: String, status: Int, answer: String, cleared: [String?])] = [
        ("", 200, #"{"credentials":2,"cookie_jars":1}"#, [nil]),
        ("a", 200, #"{"credentials":1,"cookie_jars":0}"#, ["a"]),
        ("j", 200, #"{"credentials":0,"cookie_jars":1}"#, ["j"]),
        ("c", 400, #"{"error":"there is no credential and no cookie jar c"}"#, []),
        (
            "k", 500,
            #"{"error":"the cookies are forgotten until the next start: /k cannot be written: full"}"#, ["k"]
        ),
    ]
    @Test(arguments: rows) func `the named credential or jar is forgotten, or all`(
        _ row: (body: String, status: Int, answer: String, cleared: [String?])
    ) {
        let proxy = ScriptedProxy()
        let response = ask("POST", "/session/clear", body: row.body, proxy: proxy)
        #expect(response.status == row.status && String(decoding: response.body, as: UTF8.self) == row.answer + "\n")
        #expect(proxy.cleared.withLock { $0 } == row.cleared)
    }
}

@Suite("/credentials")
struct CredentialRouteTests {
    static let rows: [(method: String, path: String, body: String, status: Int, answer: String)] = [
        (
            "POST", "/credentials/issue", #"{"credential":"forge","job":"j","for":"1h"}"#, 200,
            #"{"id":"1f2e3d4c","credential":"forge","job":"j","placeholder":"ghp_x","state":"holds","issued":"2001-09-09T01:46:40Z","ends":"2001-09-09T02:46:40Z"}"#
        ),
        (
            "POST", "/credentials/issue", #"{"credential":"forge"}"#, 200,
            #"{"id":"1f2e3d4c","credential":"forge","job":null,"placeholder":"ghp_x","state":"holds","issued":"2001-09-09T01:46:40Z","ends":null}"#
        ),
        (
            "POST", "/credentials/issue", #"{"credential":"x"}"#, 400,
            #"{"error":"there is no credential x with the scheme placeholder; there is forge"}"#
        ),
        ("POST", "/credentials/issue", "forge", 400, #"{"error":"the body must be a JSON object"}"#),
        ("POST", "/credentials/issue", "{}", 400, #"{"error":"\"credential\" is missing"}"#),
        (
            "POST", "/credentials/issue", #"{"credential":"forge","for":"soon"}"#, 400,
            #"{"error":"\"for\" must be a span of time such as 90s, 30m, 12h or 7d"}"#
        ),
        (
            "POST", "/credentials/issue", #"{"credential":"forge","for":"0s"}"#, 400,
            #"{"error":"\"for\" must be a span of time such as 90s, 30m, 12h or 7d"}"#
        ),
        (
            "POST", "/credentials/issue", #"{"credential":"forge","job":"a b"}"#, 400,
            #"{"error":"\"job\" must have 1 to 128 bytes without spaces and control characters"}"#
        ),
        (
            "POST", "/credentials/issue", #"{"name":"forge"}"#, 400,
            #"{"error":"\"name\" is not one of credential, job, for, or is not a text"}"#
        ),
        (
            "POST", "/credentials/revoke", #"{"which":"1f2e3d4c"}"#, 200,
            #"{"placeholders":[{"id":"1f2e3d4c","credential":"forge","job":"nightly","state":"expired","issued":"2001-09-09T01:46:40Z","ends":"2001-09-09T01:46:40Z"}]}"#
        ),
        ("POST", "/credentials/revoke", #"{"which":"x"}"#, 200, #"{"placeholders":[]}"#),
        ("POST", "/credentials/revoke", "{}", 400, #"{"error":"\"which\" or \"job\" is missing"}"#),
        (
            "GET", "/credentials", "", 200,
            #"{"placeholders":[{"id":"1f2e3d4c","credential":"forge","job":"nightly","state":"expired","issued":"2001-09-09T01:46:40Z","ends":"2001-09-09T01:46:40Z"}]}"#
        ),
    ]
    @Test(arguments: rows) func `placeholders are issued, listed and revoked`(
        _ row: (method: String, path: String, body: String, status: Int, answer: String)
    ) {
        let response = ask(row.method, row.path, body: row.body)
        #expect(response.status == row.status)
        #expect(String(decoding: response.body, as: UTF8.self) == row.answer + "\n")
    }
}

@Suite("GET /objects and POST /explain")
struct ObjectsTests {
    @Test func `objects come as JSON lines, page by page`() throws {
        let response = ask("GET", "/objects")
        #expect(response.status == 200 && response.contentType == "application/x-ndjson")
        let lines = response.text.split(separator: "\n")
        let urls = try lines.map { try JSONValue(parsing: Array($0.utf8))["url"]?.text }
        #expect(urls == ["http://example.org/a", "http://example.org/<b>", "http://example.net/c"])
    }

    @Test func `an object tells all there is to tell`() throws {
        var object = ObjectDescription(url: "http://example.org/a")
        object.bytes = 7
        object.contentType = "text/html"
        object.ttlSeconds = -3
        object.state = .stale
        object.vary = ["accept"]
        object.zone = "default"
        let text = #"""
            {"url":"http://example.org/a","status":200,"bytes":7,"type":"text/html","age":0,"ttl":-3,"state":"stale",
            "variants":1,"vary":["accept"],"hits":0,"zone":"default","storage":"session"}
            """#
        #expect(String(decoding: object.json, as: UTF8.self) == text.replacing("\n", with: ""))
    }

    @Test func `the query has the conditions of a purge`() {
        let proxy = ScriptedProxy()
        #expect(ask("GET", "/objects", query: "host=x&type=text%2F*", proxy: proxy).status == 200)
        #expect(proxy.selections.withLock { $0.first?.host } == "x")
        #expect(proxy.selections.withLock { $0.first?.type } == "text/*")
        for query in ["hots=x", "host", "host=", "host=x&host=y", "all=yes", "type=%"] {
            #expect(ask("GET", "/objects", query: query, proxy: proxy).status == 400, "\(query)")
        }
        #expect(proxy.selections.withLock { $0.count } == 1)
    }

    @Test(arguments: [
        ("GET", "/objects", ""), ("POST", "/session/clear", ""), ("GET", "/credentials", ""),
        ("POST", "/credentials/issue", #"{"credential":"forge"}"#), ("POST", "/credentials/revoke", #"{"job":"a"}"#),
        ("POST", "/transfers/cancel", "f1-12-3"),
        ("POST", "/explain", #"{"url":"http://a/"}"#),
    ])
    func `what tells of URLs and rules is not for everybody`(_ row: (method: String, path: String, body: String)) {
        #expect(ask(row.method, row.path, door: .tcp, body: row.body).status == 401)
        #expect(ask(row.method, row.path, door: .tcp, body: row.body, token: nil).status == 403)
        let response = ask(
            row.method, row.path, door: .tcp, authorization: "Bearer a-token-of-some-length", body: row.body)
        #expect(response.status == 200)
    }

    @Test func `a question has a URL, and what else there is to say`() throws {
        let proxy = ScriptedProxy()
        let body = #"{"method":"HEAD","url":"http://a/","fields":["X: y"],"user":"u","client":"192.0.2.1"}"#
        let response = ask("POST", "/explain", body: body, proxy: proxy)
        var question = ExplainQuestion(target: "http://a/")
        question.method = "HEAD"
        question.fields = ["X: y"]
        question.user = "u"
        question.client = IPAddress(v4: 0xC000_0201)
        #expect(proxy.questions.withLock { $0 } == [question])
        let text =
            #"{"decision":"hit","reason":"it is fresh","sections":[{"name":"access","lines":[{"name":"rule","value":"1"}]}]}"#
        #expect(response.text == "\(text)\n")
    }

    static let wrong: [(body: String, says: String)] = [
        ("", "not JSON"), ("[]", "JSON object"), ("{}", "name the"), (#"{"url":""}"#, "must be text"),
        (#"{"url":1}"#, "must be text"), (#"{"url":"http://a/","x":1}"#, "not known"),
        (#"{"url":"http://a/","fields":"X: y"}"#, "a list"), (#"{"url":"http://a/","fields":[1]}"#, "a list"),
        (#"{"url":"http://a/","client":"nobody"}"#, "an address"), (#"{"url":"nonsense"}"#, "no URL"),
    ]
    @Test(arguments: wrong) func `a question that can not be read is 400`(_ row: (body: String, says: String)) {
        let response = ask("POST", "/explain", body: row.body)
        #expect(response.status == 400 && response.text.contains(row.says), "\(response.text)")
    }
}
