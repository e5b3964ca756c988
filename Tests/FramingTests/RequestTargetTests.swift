import Framing
import Message
import Testing

@Suite("RFC 9112 §3.2 Request Target")
struct RequestTargetTests {
    struct Target: Sendable {
        var form: TargetForm
        var scheme = Scheme.http
        var host: String
        var port: UInt16
        var path: String
    }
    static let accepted: [Row<Target>] = [
        Row(
            "origin-form takes host and port from Host", "GET /x?y HTTP/1.1\r\nHost: a.example:81\r\n\r\n",
            Target(form: .origin, host: "a.example", port: 81, path: "/x?y")),
        Row(
            "absolute-form", "GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n",
            Target(form: .absolute, host: "a.example", port: 80, path: "/x")),
        Row(
            "absolute-form wins over Host (§3.2.2)", "GET http://a.example/ HTTP/1.1\r\nHost: b.example:9\r\n\r\n",
            Target(form: .absolute, host: "a.example", port: 80, path: "/")),
        Row(
            "https and its port", "GET https://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
            Target(form: .absolute, scheme: .https, host: "a.example", port: 443, path: "/")),
        Row(
            "scheme in any case", "GET hTTpS://A.example:8443/ HTTP/1.1\r\nHost: a\r\n\r\n",
            Target(form: .absolute, scheme: .https, host: "A.example", port: 8443, path: "/")),
        Row(
            "absolute-form without a path", "GET http://a.example HTTP/1.1\r\nHost: a\r\n\r\n",
            Target(form: .absolute, host: "a.example", port: 80, path: "")),
        Row(
            "absolute-form with a query alone", "GET http://a.example?q HTTP/1.1\r\nHost: a\r\n\r\n",
            Target(form: .absolute, host: "a.example", port: 80, path: "?q")),
        Row(
            "an empty port is the default", "GET http://a.example:/ HTTP/1.1\r\nHost: a\r\n\r\n",
            Target(form: .absolute, host: "a.example", port: 80, path: "/")),
        Row(
            "an IPv6 literal keeps its brackets", "GET http://[::1]:8080/ HTTP/1.1\r\nHost: a\r\n\r\n",
            Target(form: .absolute, host: "[::1]", port: 8080, path: "/")),
        Row(
            "an @ in the path is no userinfo", "GET http://a/@b HTTP/1.1\r\nHost: a\r\n\r\n",
            Target(form: .absolute, host: "a", port: 80, path: "/@b")),
        Row(
            "authority-form", "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n",
            Target(form: .authority, host: "a.example", port: 443, path: "")),
        Row(
            "authority-form with an IPv6 literal", "CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: a\r\n\r\n",
            Target(form: .authority, host: "[2001:db8::1]", port: 443, path: "")),
        Row(
            "asterisk-form", "OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n",
            Target(form: .asterisk, host: "a.example", port: 80, path: "*")),
        Row(
            "HTTP/1.0 needs no Host", "GET http://a.example/ HTTP/1.0\r\n\r\n",
            Target(form: .absolute, host: "a.example", port: 80, path: "/")),
        Row(
            "an empty Host is allowed where the target has the host", "GET http://a/ HTTP/1.1\r\nHost:\r\n\r\n",
            Target(form: .absolute, host: "a", port: 80, path: "/")),
    ]
    @Test(arguments: accepted) func `is taken apart`(_ row: Row<Target>) throws {
        let result = try #require(parseRequest(row.bytes))
        #expect(result.error == nil)
        #expect(result.parsed.form == row.expect.form)
        #expect(result.parsed.scheme == row.expect.scheme)
        #expect(text(row.bytes[result.parsed.hostRange]) == row.expect.host)
        #expect(result.parsed.port == row.expect.port)
        #expect(text(row.bytes[result.parsed.pathRange]) == row.expect.path)
    }

    static let refused: [Row<FramingError>] = [
        Row("userinfo", "GET http://user@a/ HTTP/1.1", .userinfoInTarget),
        Row("userinfo with a password", "GET http://user:pass@a/ HTTP/1.1", .userinfoInTarget),
        Row("userinfo with a password of digits", "GET http://user:80@a/ HTTP/1.1", .userinfoInTarget),
        Row("userinfo with CONNECT", "CONNECT user@a:443 HTTP/1.1", .userinfoInTarget),
        Row("another scheme", "GET ftp://a/ HTTP/1.1", .schemeNotSupported),
        Row("a scheme that begins like ours", "GET httpx://a/ HTTP/1.1", .schemeNotSupported),
        Row("one slash", "GET http:/a/ HTTP/1.1", .schemeNotSupported),
        Row("no host", "GET http:///x HTTP/1.1", .badHostInTarget),
        Row("no host but a port", "GET http://:80/ HTTP/1.1", .badHostInTarget),
        Row("a zone id", "GET http://[fe80::1%25eth0]/ HTTP/1.1", .badHostInTarget),
        Row("a literal that does not end", "GET http://[::1/ HTTP/1.1", .badHostInTarget),
        Row("a name in brackets", "GET http://[a]/ HTTP/1.1", .badHostInTarget),
        Row("bytes behind a literal", "GET http://[::1]a/ HTTP/1.1", .badHostInTarget),
        Row("percent-encoding in the host", "GET http://a%2eb/ HTTP/1.1", .badHostInTarget),
        Row("a backslash in the host", "GET http://a\\b/ HTTP/1.1", .badHostInTarget),
        Row(
            "a host longer than names can be", "GET http://\(String(repeating: "a", count: 256))/ HTTP/1.1",
            .badHostInTarget),
        Row("an empty label", "GET http://a..b/ HTTP/1.1", .badHostInTarget),
        Row("an empty label at the end (found by fuzzing)", "GET http://a../ HTTP/1.1", .badHostInTarget),
        Row("nothing but a dot", "GET http://./ HTTP/1.1", .badHostInTarget),
        Row("port 0", "GET http://a:0/ HTTP/1.1", .badPort),
        Row("port 65536", "GET http://a:65536/ HTTP/1.1", .badPort),
        Row("a port that does not fit anywhere", "GET http://a:99999999999999999999/ HTTP/1.1", .badPort),
        Row("a port with a sign", "GET http://a:+80/ HTTP/1.1", .badPort),
        Row("two ports", "GET http://a:80:80/ HTTP/1.1", .badPort),
        Row("CONNECT without a port", "CONNECT a HTTP/1.1", .badPort),
        Row("CONNECT with an empty port", "CONNECT a: HTTP/1.1", .badPort),
        Row("CONNECT with a path", "CONNECT a:443/ HTTP/1.1", .formNotForMethod),
        Row("CONNECT in absolute-form", "CONNECT http://a:443/ HTTP/1.1", .formNotForMethod),
        Row("CONNECT with *", "CONNECT * HTTP/1.1", .formNotForMethod),
        Row("* for another method than OPTIONS", "GET * HTTP/1.1", .formNotForMethod),
        Row("authority-form for another method than CONNECT", "GET a:443 HTTP/1.1", .formNotForMethod),
        Row("a name alone", "GET a HTTP/1.1", .badTarget),
        Row("a query alone", "GET ?a HTTP/1.1", .badTarget),
        Row("an asterisk and more", "OPTIONS *a HTTP/1.1", .badTarget),
    ]
    @Test(arguments: refused) func `is refused with 400`(_ row: Row<FramingError>) {
        let error = parseRequest(row.bytes + Array("\r\nHost: a\r\n\r\n".utf8))?.error
        #expect(error == row.expect)
        #expect(error?.requestStatus == 400)
    }

    static let hosts: [Row<FramingError?>] = [
        Row("none in HTTP/1.1", "", .missingHost),
        Row("two", "Host: a\r\nHost: a\r\n", .repeatedHost),
        Row("a list", "Host: a, b\r\n", .badHost),
        Row("userinfo", "Host: u@a\r\n", .badHost),
        Row("a path", "Host: a/b\r\n", .badHost),
        Row("port 0", "Host: a:0\r\n", .badHost),
        Row("a space within", "Host: a b\r\n", .badHost),
        Row("a zone id", "Host: [fe80::1%25eth0]\r\n", .badHost),
        Row("white space around it", "Host: \t a:80 \r\n", nil),
        Row("in any case", "hOST: a\r\n", nil),
    ]
    @Test(arguments: hosts) func `Host must be present once and valid`(_ row: Row<FramingError?>) throws {
        for target in ["/", "http://a/"] {
            let request = Array("GET \(target) HTTP/1.1\r\n".utf8) + row.bytes + [0x0D, 0x0A]
            #expect(try #require(parseRequest(request)).error == row.expect)
        }
    }

    @Test func `a Host must be valid in HTTP 1.0 as well`() {
        #expect(parseRequest(Array("GET / HTTP/1.0\r\nHost: a b\r\n\r\n".utf8))?.error == .badHost)
    }
}
