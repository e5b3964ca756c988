import Framing
import Message
import Testing

@Suite("Requests inside an intercepted tunnel (RFC 9112 §3.2.1, RFC 9110 §7.4)")
struct FixedOriginTests {
    struct Row: Sendable {
        let request: String
        /// Scheme, host and port of the completed target; nil where the request is misdirected.
        let expected: String?
        init(_ request: String, _ expected: String?) { (self.request, self.expected) = (request, expected) }
    }

    static let rows = [
        Row("GET /a HTTP/1.1\r\nHost: example.org\r\n", "https example.org 443"),
        Row("GET /a HTTP/1.1\r\nHost: EXAMPLE.org:443\r\n", "https EXAMPLE.org 443"),
        Row("OPTIONS * HTTP/1.1\r\nHost: example.org\r\n", "https example.org 443"),
        Row("GET https://example.org/a HTTP/1.1\r\nHost: example.org\r\n", "https example.org 443"),
        Row("GET /a HTTP/1.1\r\nHost: example.org.\r\n", "https example.org 443"),
        Row("GET /a HTTP/1.1\r\nHost: Example.ORG.:443\r\n", "https Example.ORG 443"),
        Row("GET https://example.org./a HTTP/1.1\r\nHost: example.org\r\n", "https example.org 443"),
        Row("GET /a HTTP/1.1\r\nHost: example.org.:8443\r\n", nil),
        Row("GET /a HTTP/1.1\r\nHost: example.com\r\n", nil),
        Row("GET /a HTTP/1.1\r\nHost: example.org:8443\r\n", nil),
        Row("GET /a HTTP/1.1\r\nHost:\r\n", nil),
        Row("GET http://example.org/a HTTP/1.1\r\nHost: example.org\r\n", nil),
        Row("GET https://example.com/a HTTP/1.1\r\nHost: example.org\r\n", nil),
        Row("CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n", nil),
    ]

    @Test func `* in a tunnel is its origin, in absolute-form without a path (RFC 9112 §3.2.4)`() throws {
        let bytes = Array("OPTIONS * HTTP/1.1\r\nHost: example.org\r\n\r\n".utf8)
        var head = RequestHead()
        var progress = HeadProgress()
        #expect(try parseRequestHead(bytes.span, into: &head, progress: &progress, limits: Limits()))
        let origin = FixedOrigin(scheme: .https, host: "example.org", port: 443)
        guard case .complete(let target) = origin.complete(head.target, bytes.span) else {
            Issue.record("the request is for the origin of the tunnel")
            return
        }
        #expect(target.form == .absolute && target.pathRange.isEmpty && target.scheme == .https)
    }

    @Test(arguments: rows) func `the tunnel completes a target, and Host must agree`(_ row: Row) throws {
        let origin = FixedOrigin(scheme: .https, host: "Example.org", port: 443)
        let bytes = Array("\(row.request)\r\n".utf8)
        var head = RequestHead()
        var progress = HeadProgress()
        #expect(try parseRequestHead(bytes.span, into: &head, progress: &progress, limits: Limits()))
        switch origin.complete(head.target, bytes.span) {
        case .complete(let target):
            let host = String(decoding: bytes[target.hostRange], as: UTF8.self)
            #expect("\(target.scheme) \(host) \(target.port)" == row.expected)
            #expect(target.form != .origin)
        case .misdirected:
            #expect(row.expected == nil)
        }
    }

    @Test func `a tunnel to another port than the default completes targets with that port`() throws {
        let origin = FixedOrigin(scheme: .http, host: "[2001:db8::1]", port: 8080)
        let bytes = Array("GET /a HTTP/1.1\r\nHost: [2001:db8::1]:8080\r\n\r\n".utf8)
        var head = RequestHead()
        var progress = HeadProgress()
        #expect(try parseRequestHead(bytes.span, into: &head, progress: &progress, limits: Limits()))
        guard case .complete(let target) = origin.complete(head.target, bytes.span) else {
            Issue.record("the target is the tunnel's")
            return
        }
        #expect(target.port == 8080)
        #expect(target.form == .absolute)
    }
}
