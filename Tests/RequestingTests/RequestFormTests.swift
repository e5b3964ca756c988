import Framing
import Message
import Requesting
import Testing

@Suite("requests: the head") struct RequestFormTests {
    private func head(
        _ method: String, _ url: String, _ fields: [(String, String)] = [], _ form: RequestForm.TargetForm = .origin,
        body: BodyLength = .none, own: [(String, String)] = []
    ) throws -> String {
        let form2 = try RequestForm(method: method, url: url, fields: fields.map { .init($0.0, $0.1) })
        return String(
            decoding: form2.head(form, body: body, own: own.map { .init($0.0, $0.1) }), as: UTF8.self)
    }

    @Test func `servers get the origin-form, proxies the absolute one`() throws {
        #expect(try head("GET", "http://A.example/b?c#d") == "GET /b?c HTTP/1.1\r\nHost: a.example\r\n\r\n")
        #expect(
            try head("GET", "https://a.example:8443", [("X", "y")], .absolute)
                == "GET https://a.example:8443/ HTTP/1.1\r\nHost: a.example:8443\r\nX: y\r\n\r\n")
    }

    @Test func `the head tells how the body ends`() throws {
        #expect(try head("POST", "http://a/", body: .length(3)).contains("\r\nContent-Length: 3\r\n"))
        #expect(try head("PUT", "http://a/", body: .chunked).contains("\r\nTransfer-Encoding: chunked\r\n"))
        #expect(try head("POST", "http://a/").contains("\r\nContent-Length: 0\r\n"))
        #expect(try !head("DELETE", "http://a/").contains("Content-Length"))
    }

    @Test func `a field of the request replaces one of the client`() throws {
        let text = try head("GET", "http://a/", [("accept", "x")], own: [("Accept", "*/*"), ("P", "q")])
        #expect(text == "GET / HTTP/1.1\r\nHost: a\r\nP: q\r\naccept: x\r\n\r\n")
    }

    static let wrong: [(method: String, url: String, name: String, value: String, fault: RequestFault)] = [
        ("GET", "ftp://a/", "X", "", .url("ftp://a/")), ("GET", "/a", "X", "", .url("/a")),
        ("GET", "http://u:p@a/", "X", "", .url("http://u:p@a/")), ("GET", "http://a/ b", "X", "", .url("http://a/ b")),
        ("G T", "http://a/", "X", "", .method("G T")), ("", "http://a/", "X", "", .method("")),
        ("CONNECT", "http://a/", "X", "", .method("CONNECT")), ("GET", "http://a/", "X Y", "", .field("X Y")),
        ("GET", "http://a/", "", "x", .field("")), ("GET", "http://a/", "X", "a\r\nHost: b", .field("X")),
        ("GET", "http://a/", "X", "a\u{0}", .field("X")), ("GET", "http://a/", "HOST", "b", .reservedField("HOST")),
        ("GET", "http://a/", "content-length", "3", .reservedField("content-length")),
        ("GET", "http://a/", "Transfer-Encoding", "chunked", .reservedField("Transfer-Encoding")),
    ]
    @Test(arguments: wrong) func `what would break the framing is not sent`(
        _ row: (method: String, url: String, name: String, value: String, fault: RequestFault)
    ) {
        #expect(throws: row.fault) {
            try RequestForm(method: row.method, url: row.url, fields: [.init(row.name, row.value)])
        }
    }

    static let redirects: [(method: String, status: UInt16, location: String?, next: String?, keepsBody: Bool)] = [
        ("GET", 301, "/b", "GET http://a.example/b", true), ("GET", 302, "b", "GET http://a.example/x/b", true),
        ("POST", 301, "/b", "GET http://a.example/b", false), ("POST", 302, "/b", "GET http://a.example/b", false),
        ("PUT", 302, "/b", "PUT http://a.example/b", true), ("PUT", 303, "/b", "GET http://a.example/b", false),
        ("HEAD", 303, "/b", "HEAD http://a.example/b", false), ("POST", 307, "/b", "POST http://a.example/b", true),
        ("POST", 308, "//c/d", "POST http://c/d", true), ("GET", 300, "/b", nil, false), ("GET", 304, "/b", nil, false),
        ("GET", 301, nil, nil, false), ("GET", 301, "mailto:x", nil, false),
    ]
    @Test(arguments: redirects) func `redirects are followed as RFC 9110 §15.4 says`(
        _ row: (method: String, status: UInt16, location: String?, next: String?, keepsBody: Bool)
    ) throws {
        let form = try RequestForm(method: row.method, url: "http://a.example/x/y", fields: [])
        switch form.redirected(status: row.status, location: row.location.map { Array($0.utf8)[...] }) {
        case .none: #expect(row.next == nil)
        case .follow(let next, let keepsBody):
            let text = String(decoding: next.methodText + [0x20] + next.target.normalised, as: UTF8.self)
            #expect(text == row.next)
            #expect(keepsBody == row.keepsBody)
        }
    }

    static let strangers: [(location: String, isKept: Bool)] = [
        ("/b", true), ("http://a.example:80/b", true), ("http://b.example/", false), ("https://a.example/", false),
        ("http://a.example:81/", false),
    ]
    @Test(arguments: strangers) func `another origin does not get the credentials`(
        _ row: (location: String, isKept: Bool)
    ) throws {
        let form = try RequestForm(
            method: "GET", url: "http://a.example/",
            fields: [.init("AUTHORIZATION", "Bearer x"), .init("Cookie", "y"), .init("Accept", "z")])
        guard case .follow(let next, _) = form.redirected(status: 302, location: Array(row.location.utf8)[...]) else {
            return #expect(Bool(false), "it is a redirect")
        }
        #expect((next.value(of: "Authorization") != nil) == row.isKept)
        #expect((next.value(of: "cookie") != nil) == row.isKept)
        #expect(next.value(of: "Accept") != nil)
    }

    static let repeats: [(method: Method, isReused: Bool, hasReceived: Bool, canResend: Bool, repeats: Bool)] = [
        (.get, true, false, true, true), (.get, false, false, true, false), (.get, true, true, true, false),
        (.put, true, false, false, false), (.put, true, false, true, true), (.post, true, false, true, false),
        (.other, true, false, true, false),
    ]
    @Test(arguments: repeats) func `only what is safe to repeat is repeated (RFC 9112 §9.3.1)`(
        _ row: (method: Method, isReused: Bool, hasReceived: Bool, canResend: Bool, repeats: Bool)
    ) {
        #expect(
            mayRepeat(
                row.method, isReused: row.isReused, hasReceived: row.hasReceived, canResendBody: row.canResend)
                == row.repeats)
    }
}
