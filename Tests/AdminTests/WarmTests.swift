import Admin
import EventLoop
import Message
import Settings
import Testing

@testable import larder
import JSON

private func plan(_ words: String...) throws -> WarmPlan { try warmPlan(Arguments(words[...], for: .warm)) }

@Suite("larder warm: the plan")
struct WarmPlanTests {
    @Test func `words and pages are the targets`() throws {
        let plan = try plan("http://a/x", "--page", "http://b/", "-j", "8", "--page=http://c/", "--retries", "0")
        #expect(plan.targets.map(\.text) == ["http://a/x", "http://b/", "http://c/"])
        #expect(plan.targets.map(\.kind) == [.other, .page, .page])
        #expect(plan.jobs == 8 && plan.retries == 0)
    }

    @Test func `a list has one URL on each line, and may have comments`() {
        let list = warmList(Array("http://a/\r\n\n  # no\n\thttp://b/ \nnonsense\nhttp://c/".utf8))
        #expect(list.map(\.text) == ["http://a/", "http://b/", "nonsense", "http://c/"])
        #expect(list.map { $0.target == nil } == [false, false, true, false])
    }

    @Test func `a list may begin with a byte order mark, and its URLs may have letters beyond ASCII`() {
        let list = warmList(
            [0xEF, 0xBB, 0xBF] + Array("http://a/b\nhttp://a/caf\u{E9}?x=\u{FC}\nhttp://caf\u{E9}/\n".utf8))
        #expect(
            list.map { $0.target.map { String(decoding: $0.normalised, as: UTF8.self) } } == [
                "http://a/b", "http://a/caf%C3%A9?x=%C3%BC", nil,
            ])
    }

    static let fields: [(words: [String], fields: [String])] = [
        ([], ["User-Agent: larder-warm/\(larderVersion)", "Accept: */*", "Accept-Encoding: gzip"]),
        (
            ["-H", "accept-encoding: br", "-HX: a: b "],
            ["User-Agent: larder-warm/\(larderVersion)", "Accept: */*", "accept-encoding: br", "X: a: b"]
        ),
        (["-H", "Accept-Encoding:", "-H", "User-Agent:", "-H", "Accept:"], []),
    ]
    @Test(arguments: fields) func `requests have the usual fields, except those that -H replaces`(
        _ row: (words: [String], fields: [String])
    )
        throws
    {
        let plan = try warmPlan(Arguments((row.words + ["http://a/"])[...], for: .warm))
        #expect(plan.fields.map { "\($0.name): \($0.value)" } == row.fields)
    }

    static let wrong: [(words: [String], says: String)] = [
        ([], "warm needs a URL, --from or --page"), (["a"], "\"a\" is not an absolute URL"),
        (["--page", "ftp://a/"], "\"ftp://a/\" is not an absolute URL"),
        (["http://a/", "-j", "0"], "--jobs takes a number from 1 to 64"),
        (["http://a/", "-j", "x"], "--jobs takes a number from 1 to 64"),
        (["http://a/", "--retries", "-1"], "--retries takes a number from 0 to 20"),
        (["http://a/", "-H", "no colon"], "\"no colon\" is not a header"),
        (["http://a/", "-H", ": x"], "\": x\" is not a header"),
        (["http://a/", "-H", "X: a\nHost: b"], "\"X: a\nHost: b\" is not a header"),
        (["http://a/", "-H", "Host: b"], "Host cannot be set"),
        (["http://a/", "-H", "content-length: 3"], "content-length cannot be set"),
        (["--from", "/nonexistent/list"], "--from /nonexistent/list: No such file"),
    ]
    @Test(arguments: wrong) func `a mistake in the command line is reported`(_ row: (words: [String], says: String))
        throws
    {
        let error = #expect(throws: UsageError.self) { try warmPlan(Arguments(row.words[...], for: .warm)) }
        #expect(error?.message.hasPrefix(row.says) == true, "\(error?.message ?? "")")
    }
}

@Suite("larder warm: the address of the proxy")
struct ProxyAddressTests {
    static let named: [(text: String, address: String?)] = [
        ("127.0.0.1:3128", "127.0.0.1:3128"), ("http://127.0.0.1:3128/", "127.0.0.1:3128"),
        ("[::1]:3128", "[::1]:3128"),
        ("HTTP://localhost:80", "127.0.0.1:80"), ("0.0.0.0:3128", "127.0.0.1:3128"), ("[::]:3128", "[::1]:3128"),
        ("unix:/run/x.sock", "unix:/run/x.sock"), ("127.0.0.1", nil), ("", nil), (":3128", nil), ("a:b", nil),
        ("https://127.0.0.1:1", nil),
    ]
    @Test(arguments: named) func `--proxy names the proxy`(_ row: (text: String, address: String?)) throws {
        guard let address = row.address else {
            #expect(throws: ProxyAddressFailure.self) { try proxyAddresses(named: row.text) }
            return
        }
        #expect(try proxyAddresses(named: row.text).map { "\($0)" } == [address])
    }

    @Test func `without --proxy, the proxy is at the first listener that can be reached`() throws {
        var configuration = Configuration()
        #expect(try proxyAddresses(of: configuration).map { "\($0)" } == ["127.0.0.1:3128"])
        configuration.listen = [.tcp(IPAddress(v4: 0), port: 0), .tcp(IPAddress(v4: 0), port: 8080)]
        #expect(try proxyAddresses(of: configuration).map { "\($0)" } == ["127.0.0.1:8080"])
        configuration.listen = [.tcp(IPAddress(v4: 0), port: 0)]
        #expect(throws: ProxyAddressFailure.self) { try proxyAddresses(of: configuration) }
    }
}

@Suite("larder warm: results")
struct WarmOutcomeTests {
    static let rows: [(status: [String], outcome: WarmOutcome)] = [
        (["larder; hit; ttl=60"], .hit), (["larder; hit; ttl=-5"], .hit),
        (["larder; fwd=stale; fwd-status=304; ttl=9"], .hit),
        (["larder; fwd=uri-miss; fwd-status=200; ttl=60; stored"], .stored),
        (["larder; fwd=uri-miss; collapsed"], .stored),
        (["larder; fwd=uri-miss; fwd-status=200; detail=no-store"], .notStored(reason: "no-store")),
        (["larder; fwd=uri-miss; detail=\"too large\""], .notStored(reason: "too large")),
        (["larder; fwd=bypass"], .notStored(reason: "no reason given")),
        (["larder; fwd=uri-miss; fwd-status=200; ttl=60; detail=memory-only"], .notStored(reason: "memory-only")),
        (["larder; hit; ttl=60; detail=memory-only"], .notStored(reason: "memory-only")),
        (["larder; fwd=stale; fwd-status=304; ttl=9; detail=memory-only"], .notStored(reason: "memory-only")),
        (["larder; fwd=uri-miss; fwd-status=200; stored; detail=unpinned"], .storedUnpinned),
        (["larder; fwd=uri-miss; fwd-status=200; stored; detail=peer"], .stored),
        (["other; hit", "larder; fwd=uri-miss; stored"], .stored),
        (["other; fwd=miss; detail=x, larder; hit"], .hit),
    ]
    @Test(arguments: rows) func `Cache-Status tells the outcome (RFC 9211)`(
        _ row: (status: [String], outcome: WarmOutcome)
    ) {
        var fields = Fields()
        for value in row.status { fields.append(.cacheStatus, value) }
        #expect(warmOutcome(fields) == row.outcome)
    }

    @Test(arguments: [[], ["other; hit"], ["larder; hit, other; hit"], ["larder; ="], [""]])
    func `without Larder's own Cache-Status the outcome is not known`(_ status: [String]) {
        var fields = Fields()
        for value in status { fields.append(.cacheStatus, value) }
        #expect(warmOutcome(fields).reason?.contains("is this the right proxy?") == true)
    }

    static let failures: [(status: UInt16, proxyStatus: String?, reason: String)] = [
        (404, nil, "status 404"), (403, "larder; error=http_request_denied; details=\"rule 1\"", "status 403: rule 1"),
        (502, "a; error=x, larder; error=dns_error", "status 502: dns_error"), (500, "broken=", "status 500"),
    ]
    @Test(arguments: failures)
    func `Proxy-Status tells the reason of a failure (RFC 9209)`(
        _ row: (status: UInt16, proxyStatus: String?, reason: String)
    ) {
        var fields = Fields()
        if let value = row.proxyStatus { fields.append(.proxyStatus, value) }
        #expect(failureReason(status: row.status, fields) == row.reason)
    }

    private func sum(_ outcomes: WarmOutcome...) -> WarmSum {
        var sum = WarmSum()
        for outcome in outcomes {
            var result = WarmResult(WarmTarget("http://a/"), outcome)
            result.bytes = 512
            sum.add(result)
        }
        return sum
    }

    @Test func `the sum names fetched, stored and hits, and other counts that are not zero`() throws {
        #expect(sum().text(.zero) == "fetched 0, 0 B in 0.0 s: 0 stored, 0 hits")
        #expect(sum(.hit, .stored).text(.milliseconds(1250)) == "fetched 2, 1.0 KiB in 1.3 s: 1 stored, 1 hit")
        let all = sum(
            .stored, .notStored(reason: "b"), .notStored(reason: "a"), .notStored(reason: "b"),
            .failed(reason: "x"))
        #expect(
            all.text(.seconds(1))
                == "fetched 4, 2.5 KiB in 1.0 s: 1 stored, 0 hits, 3 not stored (b: 2, a: 1); 1 failed"
        )
        let unpinned = sum(.stored, .storedUnpinned)
        #expect(unpinned.text(.zero).contains("2 stored (1 not pinned, the quota is full), 0 hits"))
        #expect(try JSONValue(parsing: Array(unpinned.json(.zero).utf8))["summary"]?["unpinned"] == .integer(1))
        let json = try JSONValue(parsing: Array(all.json(.seconds(1)).utf8))["summary"]
        #expect(json?["fetched"] == .integer(4) && json?["failed"] == .integer(1))
        #expect(json?["not_stored"]?["b"] == .integer(2))
    }

    static let promises: [(outcome: WarmOutcome, mayBeStoredLater: Bool, isBroken: Bool)] = [
        (.hit, false, false), (.stored, false, false), (.failed(reason: "status 404"), false, false),
        (.notStored(reason: "no-store"), false, false), (.storedUnpinned, false, true),
        (.notStored(reason: "memory-only"), true, true), (.notStored(reason: "disk-busy"), true, true),
        (.notStored(reason: "memory-full"), true, true), (.notStored(reason: "disk-off"), false, true),
    ]
    @Test(arguments: promises) func `what the disk did not take is tried again, and is no success`(
        _ row: (outcome: WarmOutcome, mayBeStoredLater: Bool, isBroken: Bool)
    ) {
        #expect(row.outcome.mayBeStoredLater == row.mayBeStoredLater)
        #expect(sum(row.outcome).broken == (row.isBroken ? 1 : 0))
    }

    @Test func `the bar grows with the number of URLs that are done`() {
        #expect(warmBar(done: 0, of: 0, sum(), width: 4) == "[----] 0/0  0 B")
        #expect(warmBar(done: 2, of: 4, sum(.stored, .failed(reason: "")), width: 4) == "[##--] 2/4  1.0 KiB  1 failed")
        #expect(warmBar(done: 3, of: 3, sum(.hit), width: 4) == "[####] 3/3  512 B")
    }
}
