import Caching
import Message
import Testing

@Suite("RFC 9110 §9.3.3 POST: an answer that a later GET may get")
struct PostStoringTests {
    static let here = "Content-Location: /p?x"
    static let fresh = "Cache-Control: max-age=9"
    static let rows: [(rule: String, status: UInt16, lines: [String], isStored: Bool)] = [
        ("explicit lifetime and the target as Content-Location", 200, [fresh, here], true),
        (
            "the target as a whole URI, in another spelling", 200,
            [fresh, "Content-Location: HTTP://A.example:80/p?x"], true
        ),
        ("Expires", 200, ["Expires: \(date(9))", here], true),
        ("203 is a 200", 203, [fresh, here], true),
        ("another Content-Location", 200, [fresh, "Content-Location: /p"], false),
        ("several", 200, [fresh, here, here], false),
        ("none", 200, [fresh], false),
        ("no explicit lifetime", 200, ["Last-Modified: \(date(-1000))", here], false),
        ("public is no lifetime", 200, ["Cache-Control: public", "Last-Modified: \(date(-1000))", here], false),
        ("201 would be no answer to a GET", 201, [fresh, here], false),
        ("an error", 404, [fresh, here], false),
    ]

    @Test(arguments: rows) func `the response to a POST is stored if it says that a GET would get it`(
        _ row: (rule: String, status: UInt16, lines: [String], isStored: Bool)
    ) throws {
        let target = try #require(TargetURI("http://a.example/p?x".utf8))
        var request = CacheRequest(method: .post, fields: Fields())
        request.hasBody = true
        func decision(_ target: TargetURI?, _ request: CacheRequest) -> Storability {
            storability(
                of: request, status: row.status, fields: fields(row.lines), policy: CachePolicy(), now: noon,
                target: target)
        }
        #expect(decision(target, request) == (row.isStored ? .store : .doNotStore(.method)), "\(row.rule)")
        #expect(decision(nil, request) == .doNotStore(.method), "\(row.rule)")
        let put = CacheRequest(method: .put, fields: Fields())
        #expect(decision(target, put) == .doNotStore(.method), "\(row.rule)")
    }

    @Test func `for a POST a lifetime from the operator is not enough`() throws {
        let target = try #require(TargetURI("http://a.example/p?x".utf8))
        var handling = CacheHandling()
        handling.ttl = seconds(9)
        let decision = storability(
            of: CacheRequest(method: .post, fields: Fields()), status: 200, fields: fields(Self.here),
            policy: CachePolicy(), handling: handling, now: noon, target: target)
        #expect(decision == .doNotStore(.method))
    }
}
