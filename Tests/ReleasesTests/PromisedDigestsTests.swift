import Message
import Releases
import Testing

@Suite("Digests that an index promises")
struct PromisedDigestsTests {
    /// Of "secret".
    private static let sha256 = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
    private static let sha512 =
        "bd2b1aaf7ef4f09be9f52ce2d8d599674d81aa9d6a4421696dc4d93dd0619d682ce56b4d64a9ef097761ced99e0f67265b5f76085e5b0ee7ca4696b2ad6fe2b2"
    private static let integrity =
        "sha512-vSsar3708Jvp9Szi2NWZZ02Bqp1qRCFpbcTZPdBhnWgs5WtNZKnvCXdhztmeD2cmW192CF5bDufKRpayrW/isg=="
    private static let integrity256 = "sha256-K7gNU3sdo+OL0wNhqoVWhr3g6s1xYv72ol/pe/Unols="

    static func digests(_ text: String, _ kind: ReleaseKind, _ form: IndexForm = .json) throws -> [String] {
        try promisedDigests(Array(text.utf8), kind, form).map {
            "\(String(decoding: $0.reference, as: UTF8.self)) \($0.algorithm.rawValue):\(String(decoding: $0.digits, as: UTF8.self))"
        }
    }

    private static func packument(_ dist: String) -> String {
        #"{ "name": "p", "versions": { "1.0.0": { "dist": \#(dist), "x": [1] }, "2.0.0": {} }, "time": {} }"#
    }

    static let npm: [(dist: String, expected: [String])] = [
        (
            #"{ "tarball": "http://a/p/-/p-1.tgz", "integrity": "\#(integrity)" }"#,
            ["http://a/p/-/p-1.tgz sha512:\(sha512)"]
        ),
        (#"{ "integrity": "\#(integrity)?a", "shasum": "00", "tarball": "/p.tgz" }"#, ["/p.tgz sha512:\(sha512)"]),
        (
            #"{ "tarball": "/p.tgz", "integrity": "sha1-5en6G6MezRroT3XKqkdPOmY/BfQ= \#(integrity256) \#(integrity)" }"#,
            ["/p.tgz sha256:\(sha256)", "/p.tgz sha512:\(sha512)"]
        ),
        (#"{ "tarball": "/p.tgz", "integrity": "sha512-AAAA" }"#, []),
        (#"{ "tarball": "/p.tgz", "integrity": "sha512" }"#, []), (#"{ "tarball": "/p.tgz", "integrity": 1 }"#, []),
        (#"{ "tarball": "/p.tgz" }"#, []), (#"{ "integrity": "\#(integrity)" }"#, []), ("[]", []), ("null", []),
    ]
    @Test(arguments: npm) func `of the document about an npm package`(_ row: (dist: String, expected: [String])) throws
    {
        #expect(try Self.digests(Self.packument(row.dist), .npmIndex) == row.expected)
    }

    static let files: [(file: String, expected: [String])] = [
        (#"{ "url": "../a.whl", "hashes": { "sha256": "\#(sha256)" } }"#, ["../a.whl sha256:\(sha256)"]),
        (#"{ "hashes": { "md5": "0", "sha256": "\#(sha256.uppercased())" }, "url": "a" }"#, ["a sha256:\(sha256)"]),
        (#"{ "url": "a", "hashes": { "sha256": "\#(sha256)0" } }"#, []), (#"{ "url": "a", "hashes": {} }"#, []),
        (#"{ "hashes": { "sha256": "\#(sha256)" } }"#, []),
        (
            #"{ "url": "a.whl", "hashes": {}, "core-metadata": { "sha256": "\#(sha256)" } }"#,
            ["a.whl.metadata sha256:\(sha256)"]
        ),
        (
            #"{ "dist-info-metadata": { "sha256": "\#(sha256)" }, "core-metadata": true, "url": "a" }"#,
            ["a.metadata sha256:\(sha256)"]
        ),
        (#"{ "url": "a?b", "core-metadata": { "sha256": "\#(sha256)" } }"#, []),
        (#"{ "url": 1, "hashes": { "sha256": "\#(sha256)" } }"#, []),
        ("1", []),
    ]
    @Test(arguments: files) func `of the index of a Python project in JSON`(_ row: (file: String, expected: [String]))
        throws
    {
        #expect(try Self.digests(#"{ "meta": {}, "files": [ \#(row.file) ] }"#, .pythonIndex) == row.expected)
    }

    static let pages: [(page: String, expected: [String])] = [
        (#"<a href="../a.whl#sha256=\#(sha256)">a.whl</a>"#, ["../a.whl sha256:\(sha256)"]),
        ("<A data-x='1' HREF='a#sha256=\(sha256)'>a</A>", ["a sha256:\(sha256)"]),
        (#"<a href="a?b=1&amp;c=2#sha512=\#(sha512)">"#, ["a?b=1&c=2 sha512:\(sha512)"]),
        (
            #"<a href="a#md5=0&sha256=\#(sha256)"><a href="b#sha256=\#(sha256)">"#,
            ["a sha256:\(sha256)", "b sha256:\(sha256)"]
        ),
        (#"<a href="a">a</a><a href="b#sha256=0">"#, []), ("<a href=a#sha256=\(sha256)>", []),
        (#"<a data-href-x="a#sha256=\#(sha256)">"#, []), ("<a href=\"a#sha256=\(sha256)", []), ("", []),
    ]
    @Test(arguments: pages) func `of the index of a Python project in HTML`(_ row: (page: String, expected: [String]))
        throws
    {
        #expect(try Self.digests(row.page, .pythonIndex, .html) == row.expected)
    }

    @Test func `what is no index promises nothing`() throws {
        #expect(throws: (any Error).self) { try Self.digests("{", .npmIndex) }
        #expect(throws: (any Error).self) { try Self.digests("{} {}", .pythonIndex) }
        #expect(try Self.digests("[]", .npmIndex) == [] && Self.digests("{}", .pythonIndex) == [])
        #expect(try Self.digests("<a href=\"a#sha256=\(Self.sha256)\">", .npmIndex, .html) == [])
    }

    static let forms: [(type: String, expected: IndexForm?)] = [
        ("application/json", .json), ("application/vnd.pypi.simple.v1+json", .json),
        ("Application/JSON; charset=utf-8", .json),
        (" application/vnd.npm.install-v1+json ", .json), ("text/html; charset=UTF-8", .html),
        ("application/vnd.pypi.simple.v1+html", .html), ("text/plain", nil), ("", nil), ("application/jsonp", nil),
    ]
    @Test(arguments: forms) func `the form of an index`(_ row: (type: String, expected: IndexForm?)) {
        #expect(IndexForm(contentType: row.type.utf8) == row.expected)
    }
}
