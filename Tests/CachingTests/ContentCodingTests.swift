import Caching
import Message
import Testing

@Suite("RFC 9110 §12.5.3 Accept-Encoding")
struct AcceptedCodingsTests {
    static let rows: [(rule: String, lines: [String], gzip: Int, identity: Int, br: Int)] = [
        ("absent: as it is, for such clients can not decode", [], 0, 1000, 0),
        ("empty: no coding wanted", ["Accept-Encoding:"], 0, 1, 0),
        ("listed", ["Accept-Encoding: gzip"], 1000, 1, 0),
        ("another one listed", ["Accept-Encoding: br"], 0, 1, 1000),
        ("in any case", ["Accept-Encoding: GZip"], 1000, 1, 0),
        ("by its old name", ["Accept-Encoding: x-gzip"], 1000, 1, 0),
        ("by both names, one refused", ["Accept-Encoding: gzip;q=0, x-gzip"], 1000, 1, 0),
        ("in the other order", ["Accept-Encoding: gzip, x-gzip;q=0"], 1000, 1, 0),
        ("weights", ["Accept-Encoding: gzip;q=0.5, br;q=0.25, identity;q=0.125"], 500, 125, 250),
        ("on two lines", ["Accept-Encoding: gzip", "Accept-Encoding: br;q=0.1"], 1000, 1, 100),
        ("refused", ["Accept-Encoding: gzip;q=0"], 0, 1, 0),
        ("a weight that is none refuses", ["Accept-Encoding: gzip;q=best"], 0, 1, 0),
        ("identity alone", ["Accept-Encoding: identity"], 0, 1000, 0),
        ("identity refused", ["Accept-Encoding: gzip, identity;q=0"], 1000, 0, 0),
        ("anything", ["Accept-Encoding: *"], 1000, 1000, 1000),
        ("anything else is refused", ["Accept-Encoding: gzip, *;q=0"], 1000, 0, 0),
        ("anything else is refused but identity", ["Accept-Encoding: identity, *;q=0"], 0, 1000, 0),
        ("the star is for what is not listed", ["Accept-Encoding: *;q=0.3, gzip;q=0"], 0, 300, 300),
        ("nothing at all", ["Accept-Encoding: *;q=0"], 0, 0, 0),
        ("unknown ones do not matter", ["Accept-Encoding: sdch, dcb;q=0.5"], 0, 1, 0),
    ]

    @Test(arguments: rows) func `each coding has its weight`(
        _ row: (rule: String, lines: [String], gzip: Int, identity: Int, br: Int)
    ) {
        let accepted = AcceptedCodings(fields(row.lines))
        #expect(accepted.weight(of: .gzip) == row.gzip, "\(row.rule)")
        #expect(accepted.weight(of: .identity) == row.identity, "\(row.rule)")
        #expect(accepted.weight(of: .br) == row.br, "\(row.rule)")
    }
}

@Suite("RFC 9110 §8.4 Content-Encoding of what is stored")
struct CodingTermsTests {
    static let codings: [(rule: String, lines: [String], coding: StoredCoding)] = [
        ("absent", [], .identity), ("empty", ["Content-Encoding:"], .identity),
        ("gzip", ["Content-Encoding: gzip"], .single(.gzip)), ("any case", ["Content-Encoding: GZIP"], .single(.gzip)),
        ("its old name", ["Content-Encoding: x-gzip"], .single(.gzip)),
        ("another", ["Content-Encoding: br"], .single(.br)),
        ("the word identity", ["Content-Encoding: identity"], .identity),
        ("identity among others", ["Content-Encoding: identity, gzip"], .single(.gzip)),
        ("two", ["Content-Encoding: gzip, br"], .opaque), ("twice", ["Content-Encoding: gzip, gzip"], .opaque),
        ("on two lines", ["Content-Encoding: gzip", "Content-Encoding: gzip"], .opaque),
        ("unknown", ["Content-Encoding: aes128gcm"], .opaque),
        ("unknown and known", ["Content-Encoding: aes128gcm, gzip"], .opaque),
    ]

    @Test(arguments: codings) func `Content-Encoding says how the content is coded`(
        _ row: (rule: String, lines: [String], coding: StoredCoding)
    ) {
        #expect(StoredCoding(of: fields(row.lines)) == row.coding, "\(row.rule)")
    }

    enum Change: String { case none, inflatable, compressible }
    static let gzip = "Content-Encoding: gzip"
    static let html = "Content-Type: text/html"
    static let changes: [(rule: String, status: UInt16, lines: [String], uri: String, change: Change)] = [
        ("gzip of a text", 200, [gzip, html], "http://a/", .inflatable),
        ("gzip that the origin negotiates", 200, [gzip, "Vary: Accept-Encoding"], "http://a/", .inflatable),
        ("in any case", 200, [gzip, "Vary: Accept, accept-encoding"], "http://a/", .inflatable),
        ("gzip that everybody gets", 200, [gzip, "Content-Type: application/x-tar"], "http://a/", .none),
        ("of unknown type", 200, [gzip], "http://a/", .none),
        ("a text whose name says gzip", 200, [gzip, "Content-Type: text/plain"], "http://a/Packages.gz", .none),
        ("whatever the query", 200, [gzip, "Content-Type: text/plain"], "http://a/Packages.gz?v=1.2", .none),
        ("in any case", 200, [gzip, html], "http://a/x.TGZ", .none),
        ("a name in the query", 200, [gzip, html], "http://a/x?y.gz", .inflatable),
        ("a name that only begins so", 200, [gzip, html], "http://a/x.gz.html", .inflatable),
        ("a directory", 200, [gzip, html], "http://a/x.gz/", .inflatable),
        ("a name that says gzip, negotiated", 200, [gzip, html, "Vary: Accept-Encoding"], "http://a/x.gz", .none),
        ("or that it is packed", 200, [gzip, html, "Vary: Accept-Encoding"], "http://a/x.tar.zst", .none),
        ("an error page", 404, [gzip, html], "http://a/", .inflatable),
        ("a part", 206, [gzip, html, "Content-Range: bytes 0-1/9"], "http://a/", .none),
        ("no content", 204, [html], "http://a/", .none),
        ("no-transform", 200, [gzip, html, "Cache-Control: no-transform"], "http://a/", .none),
        ("another coding", 200, ["Content-Encoding: br", html], "http://a/", .none),
        ("gzip twice", 200, ["Content-Encoding: gzip, gzip", html], "http://a/", .none),
        ("a text", 200, [html], "http://a/", .compressible),
        ("of what types, the rules know", 200, ["Content-Type: image/png"], "http://a/", .compressible),
        ("of unknown type", 200, [], "http://a/", .compressible),
        ("a text, no-transform", 200, [html, "Cache-Control: max-age=1, no-transform"], "http://a/", .none),
        ("part of a text", 206, [html], "http://a/", .none),
    ]

    @Test(arguments: changes) func `the terms say which changes of coding are allowed`(
        _ row: (rule: String, status: UInt16, lines: [String], uri: String, change: Change)
    ) {
        let terms = CodingTerms(stored(row.lines, status: row.status), fields: fields(row.lines), uri: row.uri.utf8)
        #expect(terms.isInflatable == (row.change == .inflatable), "\(row.rule)")
        #expect(terms.isCompressible == (row.change == .compressible), "\(row.rule)")
        #expect(terms.isFixed(.no) == (row.change != .inflatable), "\(row.rule)")
        #expect(terms.isFixed(.once) == (row.change == .none), "\(row.rule)")
    }

    static let types: [(String, Bool)] = [
        ("text/html", true), ("TEXT/HTML; charset=utf-8", true), ("text/plain ;x=y", true),
        ("application/json", true), ("application/javascript", true), ("application/problem+json", true),
        ("image/svg+xml", true), ("application/wasm", true), ("font/ttf", true), ("font/woff2", false),
        ("image/jpeg", false), ("application/gzip", false), ("application/octet-stream", false), ("video/mp4", false),
        ("text/event-stream", false), ("", false), ("text", false), ("application/json-but-not", false),
    ]

    @Test(arguments: types) func `text is worth compressing, and compressed formats are not`(
        _ type: String, _ expected: Bool
    ) {
        #expect(isCompressibleType(Array(type.utf8)[...]) == expected)
    }
}

@Suite("RFC 9110 §12.5.3 In which form a stored response goes out")
struct ContentCodingChoiceTests {
    struct Row {
        let rule: String
        var stored = gzip
        var accept: String?
        var request: [String] = []
        var method: Method = .get
        var length: UInt64? = 5000
        var use: CompressionUse = .no
        let expect: CodingChoice
    }
    static let html = "Content-Type: text/html"
    static let gzip = ["Content-Encoding: gzip", html]
    static let tar = ["Content-Encoding: gzip", "Content-Type: application/x-tar"]
    static let negotiated = tar + ["Vary: Accept-Encoding"]
    static let brotli = ["Content-Encoding: br", html]

    static let rows = [
        Row(rule: "gzip for who accepts it", accept: "gzip, br", expect: .asStored),
        Row(rule: "gzip for who does not", accept: "br", expect: .inflated),
        Row(rule: "gzip for who says nothing", expect: .inflated),
        Row(rule: "gzip for who wants no coding", accept: "", expect: .inflated),
        Row(rule: "gzip for who wants identity", accept: "identity", expect: .inflated),
        Row(rule: "gzip for who refuses it", accept: "gzip;q=0", expect: .inflated),
        Row(rule: "gzip for who likes identity better", accept: "identity, gzip;q=0.5", expect: .inflated),
        Row(rule: "gzip for who likes both", accept: "identity, gzip", expect: .asStored),
        Row(rule: "gzip for who takes anything", accept: "*", expect: .asStored),
        Row(rule: "gzip for who refuses both: nothing is gained", accept: "*;q=0", expect: .asStored),
        Row(rule: "gzip for who accepts only what there is not", accept: "br, identity;q=0", expect: .asStored),
        Row(rule: "HEAD as GET", method: .head, expect: .inflated),
        Row(rule: "POST: as stored", method: .post, expect: .asStored),
        Row(rule: "unknown length", length: nil, expect: .inflated),
        Row(rule: "empty", length: 0, expect: .inflated),
        Row(rule: "the request says no-transform", request: ["Cache-Control: no-transform"], expect: .asStored),
        Row(rule: "a file that is gzip", stored: tar, expect: .asStored),
        Row(rule: "a negotiated file for who says nothing", stored: negotiated, expect: .asStored),
        Row(rule: "a negotiated file for who does not accept it", stored: negotiated, accept: "br", expect: .inflated),
        Row(rule: "a range for who accepts gzip", accept: "gzip", request: ["Range: bytes=0-1"], expect: .asStored),
        Row(
            rule: "a range for who accepts gzip, if need be", accept: "identity, gzip;q=0.1",
            request: ["Range: bytes=0-1"], expect: .asStored),
        Row(rule: "a range for who does not", accept: "br", request: ["Range: bytes=0-1"], expect: .inflated),
        Row(rule: "a range for who says nothing", request: ["Range: bytes=0-1"], expect: .inflated),
        Row(rule: "what can not be inflated", stored: brotli, accept: "gzip", expect: .asStored),
        Row(rule: "text, no rule", stored: [html], accept: "gzip", expect: .asStored),
        Row(rule: "text, on the fly", stored: [html], accept: "gzip", use: .onTheFly, expect: .gzipped),
        Row(rule: "text, once", stored: [html], accept: "gzip", use: .once, expect: .gzippedCopy),
        Row(rule: "for who does not accept it", stored: [html], accept: "br", use: .onTheFly, expect: .asStored),
        Row(rule: "for who says nothing", stored: [html], use: .onTheFly, expect: .asStored),
        Row(
            rule: "for who likes identity better", stored: [html], accept: "gzip;q=0.1, identity", use: .onTheFly,
            expect: .asStored),
        Row(rule: "for who does not care", stored: [html], accept: "*", use: .onTheFly, expect: .asStored),
        Row(
            rule: "for who refuses identity", stored: [html], accept: "gzip, identity;q=0", use: .once,
            expect: .gzippedCopy),
        Row(rule: "one below the least", stored: [html], accept: "gzip", length: 1023, use: .once, expect: .asStored),
        Row(rule: "the least", stored: [html], accept: "gzip", length: 1024, use: .once, expect: .gzippedCopy),
        Row(rule: "who knows how long", stored: [html], accept: "gzip", length: nil, use: .onTheFly, expect: .gzipped),
        Row(
            rule: "a range is of what is stored", stored: [html], accept: "gzip", request: ["Range: bytes=0-1"],
            use: .onTheFly, expect: .asStored),
        Row(
            rule: "no-transform", stored: [html], accept: "gzip", request: ["Cache-Control: no-transform"],
            use: .onTheFly, expect: .asStored),
        Row(
            rule: "HEAD as GET, compressed", stored: [html], accept: "gzip", method: .head, use: .onTheFly,
            expect: .gzipped),
        Row(rule: "gzip is not compressed again", accept: "gzip", use: .onTheFly, expect: .asStored),
        Row(rule: "inflating needs no rule", accept: "br", use: .onTheFly, expect: .inflated),
    ]

    @Test(arguments: rows) func `the client gets the form that it prefers`(_ row: Row) {
        let terms = CodingTerms(stored(row.stored), fields: fields(row.stored), uri: "http://a/".utf8)
        let request = fields(row.request + (row.accept.map { ["Accept-Encoding: \($0)"] } ?? []))
        let choice = chooseCoding(
            of: terms, length: row.length, for: AcceptedCodings(request),
            CacheRequest(method: row.method, fields: request), compression: row.use)
        #expect(choice == row.expect, "\(row.rule)")
        if terms.isFixed(row.use) { #expect(choice == .asStored, "\(row.rule)") }
    }
}
