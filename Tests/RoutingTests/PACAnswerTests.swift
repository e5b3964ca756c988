import Message
import Routing
import Testing

@Suite("The answer of a PAC file") struct PACAnswerTests {
    static let rows: [(text: String, routes: [String])] = [
        ("DIRECT", ["direct"]), ("", ["direct"]), ("null", ["direct"]), (" ; ;\t", ["direct"]),
        ("PROXY proxy.example:3128", ["http://proxy.example:3128"]),
        ("HTTP proxy.example:3128", ["http://proxy.example:3128"]),
        ("HTTPS proxy.example:3129", ["https://proxy.example:3129"]),
        ("SOCKS5 proxy.example:1081", ["socks5://proxy.example:1081"]),
        ("PROXY a", ["http://a:80"]), ("HTTPS a", ["https://a:443"]), ("SOCKS5 a", ["socks5://a:1080"]),
        ("PROXY 192.0.2.1:1", ["http://192.0.2.1:1"]), ("PROXY [2001:db8::1]:8080", ["http://[2001:db8::1]:8080"]),
        ("PROXY [2001:DB8::1]", ["http://[2001:db8::1]:80"]),
        ("PROXY a:1; HTTPS b:2;SOCKS5 c:3 ;DIRECT", ["http://a:1", "https://b:2", "socks5://c:3", "direct"]),
        (" \t\r\nproxy \t A.Example.:1 ; Direct\n", ["http://a.example:1", "direct"]),
        ("PROXY a:1; PROXY a:1; DIRECT", ["http://a:1", "direct"]),
        ("PROXY a:1;", ["http://a:1"]),
    ]
    @Test(arguments: rows) func `the ways are routes, in their order`(text: String, routes: [String]) throws {
        #expect(try PACAnswer(Array(text.utf8)).routes.map { "\($0)" } == routes)
    }

    static let ends: [(text: String, routes: [String])] = [
        ("SOCKS5 a:1; SOCKS a:1; DIRECT", ["socks5://a:1"]), ("PROXY a:1; JUNK; DIRECT", ["http://a:1"]),
        ("DIRECT; PROXY", ["direct"]), ("PROXY a:1; DIRECT x; PROXY b:1", ["http://a:1"]),
    ]
    @Test(arguments: ends)
    func `a way that cannot be used ends the list, and what is behind it does not take its place`(
        text: String, routes: [String]
    ) throws {
        #expect(try PACAnswer(Array(text.utf8)).routes.map { "\($0)" } == routes)
    }

    static let faults: [(text: String, fault: PACAnswerFault)] = [
        ("undefined", .nothing),
        ("SOCKS a:1; DIRECT", .unsupported("SOCKS a:1")), ("socks4 a:1", .unsupported("socks4 a:1")),
        ("7", .unknown("7")), ("[object Object]", .unknown("[object Object]")), ("DIRECT a:1", .unknown("DIRECT a:1")),
        ("QUIC a:1; PROXY b:1", .unknown("QUIC a:1")), ("PROXYa:1", .unknown("PROXYa:1")),
        ("PROXY", .invalidAddress("PROXY")), ("PROXY :1", .invalidAddress("PROXY :1")),
        ("PROXY a:0", .invalidAddress("PROXY a:0")), ("PROXY a:65536", .invalidAddress("PROXY a:65536")),
        ("PROXY a:", .invalidAddress("PROXY a:")), ("PROXY a:1x", .invalidAddress("PROXY a:1x")),
        ("PROXY a:+1", .invalidAddress("PROXY a:+1")), ("PROXY a b:1", .invalidAddress("PROXY a b:1")),
        ("PROXY http://a:1", .invalidAddress("PROXY http://a:1")),
        ("PROXY me:secret@a:1", .invalidAddress("PROXY me:secret@a:1")),
        ("PROXY 2001:db8::1", .invalidAddress("PROXY 2001:db8::1")), ("PROXY [::1", .invalidAddress("PROXY [::1")),
        ("PROXY 1.2.3.999:1", .invalidAddress("PROXY 1.2.3.999:1")), ("PROXY \u{e9}:1", .invalidAddress("PROXY ??:1")),
    ]
    @Test(arguments: faults) func `an answer whose first way cannot be used is a fault`(
        text: String, fault: PACAnswerFault
    ) {
        #expect(throws: fault) { try PACAnswer(Array(text.utf8)) }
    }

    @Test func `the number of routes and the length of a message are bounded`() throws {
        let many = (1...100).map { "PROXY a\($0):1" }.joined(separator: ";")
        #expect(try PACAnswer(Array(many.utf8)).routes.count == PACAnswer.routesMax)
        #expect(readable([UInt8](repeating: 0x61, count: 500)).count == 81)
        #expect(readable([0x1B, 0x41, 0xFF]) == "?A?")
    }

    static let questions: [(scheme: Scheme, host: String, port: UInt16, url: String)] = [
        (.http, "a.example", 80, "http://a.example/"), (.http, "a.example", 443, "http://a.example:443/"),
        (.https, "a.example", 443, "https://a.example/"), (.https, "a.example", 8443, "https://a.example:8443/"),
        (.http, "2001:db8::1", 8080, "http://[2001:db8::1]:8080/"),
    ]
    @Test(arguments: questions) func `a script is asked for scheme, host and port, and not for the path`(
        scheme: Scheme, host: String, port: UInt16, url: String
    ) {
        let question = Origin(scheme, Endpoint(host: host, port: port)).pacQuestion
        #expect(question.url == Array(url.utf8) && question.host == Array(host.utf8))
    }
}
