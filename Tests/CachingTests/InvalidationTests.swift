import Caching
import Message
import Testing

@Suite("RFC 9111 §4.4 Invalidating Stored Responses")
struct InvalidationTests {
    @Test(arguments: Method.allCases) func `unsafe and unknown methods invalidate, unless they fail`(_ method: Method) {
        let request = CacheRequest(method: method, fields: Fields())
        let isUnsafe = [.other, .post, .put, .delete, .patch].contains(method)
        for status in [200, 201, 204, 299, 302, 303, 399] as [UInt16] {
            #expect(invalidates(request, status: status) == isUnsafe)
        }
        for status in [100, 199, 400, 404, 412, 500, 503] as [UInt16] {
            #expect(!invalidates(request, status: status))
        }
    }

    @Test(arguments: methodOverrides) func `an overridden method is of unknown safety`(_ name: String) {
        #expect(invalidates(get("\(name): GET"), status: 200))
        #expect(!invalidates(get("\(name): DELETE"), status: 404))
    }

    static let rows: [(rule: String, lines: [String], paths: [String])] = [
        ("the target", [], ["http://a.example/p/q?x"]),
        ("Location", ["Location: /other"], ["http://a.example/p/q?x", "http://a.example/other"]),
        ("Content-Location", ["Content-Location: r"], ["http://a.example/p/q?x", "http://a.example/p/r"]),
        (
            "both, each once", ["Content-Location: /o", "Location: http://A.example:80/o"],
            ["http://a.example/p/q?x", "http://a.example/o"]
        ),
        ("the target named again", ["Location: q?x"], ["http://a.example/p/q?x"]),
        ("another host", ["Location: http://b.example/o"], ["http://a.example/p/q?x"]),
        ("another port", ["Location: http://a.example:81/o"], ["http://a.example/p/q?x"]),
        ("another scheme", ["Content-Location: https://a.example/o"], ["http://a.example/p/q?x"]),
        ("what is no URI of ours", ["Location: mailto:x@y"], ["http://a.example/p/q?x"]),
    ]

    @Test(arguments: rows) func `the target is invalidated, and URIs of its own origin that the response names`(
        _ row: (rule: String, lines: [String], paths: [String])
    ) throws {
        let target = try #require(TargetURI("http://a.example/p/q?x".utf8))
        let uris = invalidatedURIs(target: target, status: 200, fields: fields(row.lines))
        #expect(uris.map { text($0.normalised) } == row.paths, "\(row.rule)")
        #expect(invalidatedURIs(target: target, status: 500, fields: fields(row.lines)) == [])
    }
}
