import Caching
import Message
import Testing

@Suite("RFC 9110 §8.8.3.3, §12.5.5 The head of a response in another coding")
struct CodedFieldsTests {
    static let rows: [(rule: String, choice: CodingChoice, stored: [String], expect: [String])] = [
        (
            "as stored", .asStored, ["Content-Encoding: gzip", "ETag: \"a\""],
            ["Content-Encoding: gzip", "ETag: \"a\""]
        ),
        ("the coding goes", .inflated, ["Content-Encoding: gzip", "Vary: Accept-Encoding"], ["Vary: Accept-Encoding"]),
        ("or comes", .gzipped, ["Vary: Accept-Encoding"], ["Vary: Accept-Encoding", "Content-Encoding: gzip"]),
        ("once as on the fly", .gzippedCopy, ["Vary: *"], ["Vary: *", "Content-Encoding: gzip"]),
        ("the strong tag becomes weak", .inflated, ["ETag: \"a\"", "Vary: *"], ["Vary: *", "ETag: W/\"a\""]),
        ("the weak one stays", .inflated, ["ETag: W/\"a\"", "Vary: *"], ["Vary: *", "ETag: W/\"a\""]),
        ("what is no tag goes", .inflated, ["ETag: a", "Vary: *"], ["Vary: *"]),
        ("Vary is told", .inflated, ["Vary: Accept"], ["Vary: Accept", "Vary: Accept-Encoding"]),
        ("Vary where there was none", .inflated, [], ["Vary: Accept-Encoding"]),
        ("in any case", .inflated, ["Vary: ACCEPT-ENCODING"], ["Vary: ACCEPT-ENCODING"]),
        ("the length is another", .inflated, ["Content-Length: 5", "Vary: *"], ["Vary: *"]),
        ("there are no ranges", .gzipped, ["Accept-Ranges: bytes", "Vary: *"], ["Vary: *", "Content-Encoding: gzip"]),
        (
            "digests are of other bytes", .inflated,
            ["Vary: *", "Content-Digest: a", "repr-digest: b", "Digest: c", "Content-MD5: d", "Want-Digest: e"],
            ["Vary: *", "Want-Digest: e"]
        ),
        (
            "the rest stays, in its order", .inflated, ["B: 1", "Last-Modified: x", "A: 2", "Vary: *"],
            ["B: 1", "Last-Modified: x", "A: 2", "Vary: *"]
        ),
    ]

    @Test(arguments: rows) func `another form changes coding, length, tag and digests`(
        _ row: (rule: String, choice: CodingChoice, stored: [String], expect: [String])
    ) {
        #expect(lines(codedFields(of: fields(row.stored), row.choice)) == row.expect, "\(row.rule)")
    }

    @Test func `a client's copy in either form is confirmed by 304`() throws {
        let response = stored("ETag: \"a\"", "Content-Encoding: gzip", "Vary: Accept-Encoding")
        let tag = try #require(
            codedFields(of: fields("ETag: \"a\"", "Content-Encoding: gzip"), .inflated).first(.eTag))
        for seen in ["\"a\"", text(tag)] {
            let request = fields("If-None-Match: \(seen)")
            #expect(evaluate(request, method: .get, against: response, now: noon) == .notModified)
        }
    }

    @Test func `the weakened tag is not good for a range`() {
        let request = fields("Range: bytes=0-1", "If-Range: W/\"a\"")
        #expect(selectRange(request, method: .get, stored: stored("ETag: \"a\""), length: 9, now: noon) == .whole)
    }

    static let varying: [(rule: String, stored: [String], use: CompressionUse, needs: Bool)] = [
        ("another client gets it inflated", ["Content-Encoding: gzip", "Content-Type: text/css"], .no, true),
        ("the origin said so", ["Content-Encoding: gzip", "Vary: Accept-Encoding"], .no, false),
        ("the origin said more", ["Content-Encoding: gzip", "Content-Type: text/css", "Vary: *"], .no, false),
        ("the origin said something else", ["Content-Encoding: gzip", "Content-Type: text/css", "Vary: A"], .no, true),
        ("another client gets it compressed", ["Content-Type: text/css"], .once, true),
        ("nobody gets it compressed", ["Content-Type: text/css"], .no, false),
    ]

    @Test(arguments: varying) func `a response that others get in another form varies by Accept-Encoding`(
        _ row: (rule: String, stored: [String], use: CompressionUse, needs: Bool)
    ) {
        let response = stored(row.stored)
        let terms = CodingTerms(response, fields: fields(row.stored), uri: "http://a/".utf8)
        #expect(needsVary(terms, response.vary, compression: row.use) == row.needs, "\(row.rule)")
    }
}

@Suite("RFC 9111 §4.1 One variant for many lists of codings")
struct CodingVariantTests {
    static let browsers = ["gzip, deflate, br, zstd", "gzip, deflate, br", "gzip, deflate"]

    struct Row {
        let rule: String
        var coding: String? = "gzip"
        var vary = "Accept-Encoding"
        var first: [String] = ["Accept-Encoding: gzip, deflate, br"]
        var second: [String] = []
        var type: String?
        let serves: Bool
    }
    static let rows = [
        Row(rule: "gzip for who accepts no gzip: inflated", second: ["Accept-Encoding: identity"], serves: true),
        Row(rule: "gzip of a text for who says nothing: inflated", type: "text/html", serves: true),
        Row(rule: "gzip of a file for who says nothing: what the origin sends to such", serves: false),
        Row(rule: "gzip for who accepts another: inflated", second: ["Accept-Encoding: deflate"], serves: true),
        Row(rule: "gzip for another list", second: ["Accept-Encoding: gzip"], serves: true),
        Row(rule: "gzip for who likes br better", second: ["Accept-Encoding: br, gzip;q=0.5"], serves: false),
        Row(rule: "gzip for who likes neither", second: ["Accept-Encoding: *;q=0"], serves: false),
        Row(
            rule: "gzip may not be inflated", second: ["Accept-Encoding: identity", "Cache-Control: no-transform"],
            serves: false),
        Row(
            rule: "another field differs", vary: "Accept-Encoding, Accept",
            first: ["Accept-Encoding: gzip", "Accept: a"], second: ["Accept: b"], serves: false),
        Row(
            rule: "the other field is the same", vary: "Accept, Accept-Encoding",
            first: ["Accept-Encoding: gzip", "Accept: a"], second: ["Accept: a"], type: "text/css", serves: true),
        Row(rule: "br for who accepts it", coding: "br", second: ["Accept-Encoding: br, gzip"], serves: true),
        Row(rule: "br for who does not", coding: "br", second: ["Accept-Encoding: gzip"], serves: false),
        Row(rule: "br for who says nothing", coding: "br", serves: false),
        Row(rule: "two codings", coding: "gzip, br", second: ["Accept-Encoding: gzip, br"], serves: false),
        Row(rule: "none, for who accepts less", coding: nil, second: ["Accept-Encoding: gzip"], serves: true),
        Row(rule: "none, for who says nothing", coding: nil, serves: true),
        Row(rule: "none, for who accepts more", coding: nil, second: ["Accept-Encoding: gzip, zstd"], serves: false),
        Row(
            rule: "none, where none could be chosen", coding: nil, first: [], second: ["Accept-Encoding: gzip"],
            serves: false),
        Row(
            rule: "none, for who refuses that", coding: nil, second: ["Accept-Encoding: gzip, identity;q=0"],
            serves: false),
    ]

    @Test(arguments: rows) func `a variant serves the clients that its coding suits`(_ row: Row) throws {
        let type = row.type.map { ["Content-Type: \($0)"] } ?? []
        let response = fields((row.coding.map { ["Content-Encoding: \($0)"] } ?? []) + type + ["Vary: \(row.vary)"])
        let variant = try #require(CodingVariant(Vary(response), request: fields(row.first)), "\(row.rule)")
        let terms = CodingTerms(stored(lines(response)), fields: response, uri: "http://a/".utf8)
        let request = fields(row.second)
        #expect(
            variant.serves(request, CacheRequest(method: .get, fields: request), terms) == row.serves, "\(row.rule)")
    }

    @Test(arguments: browsers, browsers) func `three browsers share one variant`(_ first: String, _ second: String)
        throws
    {
        let response = fields("Vary: Accept-Encoding", "Content-Encoding: gzip")
        let variant = try #require(CodingVariant(Vary(response), request: fields("Accept-Encoding: \(first)")))
        let terms = CodingTerms(stored(lines(response)), fields: response, uri: "http://a/".utf8)
        let request = fields("Accept-Encoding: \(second)")
        #expect(variant.serves(request, CacheRequest(method: .get, fields: request), terms))
    }

    @Test func `a variant is shared only if Vary names Accept-Encoding`() {
        #expect(CodingVariant(.none, request: Fields()) == nil)
        #expect(CodingVariant(.star, request: Fields()) == nil)
        #expect(CodingVariant(Vary(fields("Vary: Accept")), request: Fields()) == nil)
    }
}
