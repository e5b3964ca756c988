import Message
import Routing
import Testing

private func environment(_ variables: [String: String]) throws(ProxyEnvironment.Fault) -> ProxyEnvironment {
    try ProxyEnvironment { variables[$0] }
}

@Suite("The variables http_proxy and its like") struct ProxyEnvironmentTests {
    static let rows: [(rule: String, variables: [String: String], http: String, https: String)] = [
        ("nothing is set", [:], "direct", "direct"),
        (
            "each scheme has its own", ["http_proxy": "http://a:1", "https_proxy": "http://b:2"], "http://a:1",
            "http://b:2"
        ),
        ("all_proxy is for what has none", ["all_proxy": "socks5://c:3"], "socks5://c:3", "socks5://c:3"),
        ("all_proxy counts last", ["all_proxy": "http://c:3", "http_proxy": "http://a:1"], "http://a:1", "http://c:3"),
        ("upper case is read", ["HTTPS_PROXY": "http://b:2", "ALL_PROXY": "http://c:3"], "http://c:3", "http://b:2"),
        (
            "lower case counts first", ["https_proxy": "http://a:1", "HTTPS_PROXY": "http://b:2"], "direct",
            "http://a:1"
        ),
        ("HTTP_PROXY is not read", ["HTTP_PROXY": "http://evil:1"], "direct", "direct"),
        ("an empty one is absent", ["http_proxy": "", "all_proxy": "http://c:3"], "http://c:3", "http://c:3"),
        ("without a scheme it is http", ["http_proxy": "a:1"], "http://a:1", "direct"),
        ("a slash may follow", ["http_proxy": "http://a:1/"], "http://a:1", "direct"),
        ("socks5h is socks5", ["http_proxy": "socks5h://a:1"], "socks5://a:1", "direct"),
        ("over TLS to the proxy", ["http_proxy": "https://[2001:db8::1]:1"], "https://[2001:db8::1]:1", "direct"),
    ]
    @Test(arguments: rows) func `which variable counts`(
        rule: String, variables: [String: String], http: String, https: String
    ) throws {
        let environment = try environment(variables)
        #expect("\(environment.route(to: Origin(.http, Endpoint(host: "x", port: 80))))" == http, "\(rule)")
        #expect("\(environment.route(to: Origin(.https, Endpoint(host: "x", port: 443))))" == https, "\(rule)")
    }

    static let exceptions: [(list: String, host: String, port: UInt16, isDirect: Bool)] = [
        ("*", "a.example", 80, true), ("", "a.example", 80, false),
        ("a.example", "a.example", 80, true), ("a.example", "x.a.example", 80, true),
        ("a.example", "xa.example", 80, false),
        (".a.example", "x.a.example", 80, true), (".a.example", "a.example", 80, true),
        ("*.a.example", "x.a.example", 80, true), ("A.Example.", "a.example", 80, true),
        ("b.example, a.example", "a.example", 80, true), ("b.example a.example", "a.example", 80, true),
        (",,b.example,\t", "a.example", 80, false),
        ("a.example:8080", "a.example", 8080, true), ("a.example:8080", "a.example", 80, false),
        ("*:81", "a.example", 81, true),
        ("10.0.0.7", "10.0.0.7", 80, true), ("10.0.0.7", "10.0.0.8", 80, false), ("10.0.0.7:1", "10.0.0.7", 80, false),
        ("10.0.0.0/8", "10.1.2.3", 80, true), ("10.0.0.0/8", "11.1.2.3", 80, false),
        ("10.0.0.0/8", "a.example", 80, false),
        ("2001:db8::1", "2001:db8::1", 80, true), ("[2001:db8::1]", "2001:db8::1", 80, true),
        ("[2001:db8::1]:81", "2001:db8::1", 80, false), ("[2001:db8::1]:81", "2001:db8::1", 81, true),
        ("2001:db8::/32", "2001:db8:1::1", 80, true),
    ]
    @Test(arguments: exceptions) func `no_proxy names what is reached directly`(
        list: String, host: String, port: UInt16, isDirect: Bool
    ) throws {
        let environment = try environment(["all_proxy": "http://p:1", "no_proxy": list])
        let route = environment.route(to: Origin(.http, Endpoint(host: host, port: port)))
        #expect("\(route)" == (isDirect ? "direct" : "http://p:1"), "\(list)")
    }

    @Test func `the list in lower case counts before the one in upper case`() throws {
        let environment = try environment(["all_proxy": "http://p:1", "no_proxy": "a", "NO_PROXY": "b"])
        #expect(environment.route(to: Origin(.http, Endpoint(host: "a", port: 80))) == .direct)
        #expect(environment.route(to: Origin(.http, Endpoint(host: "b", port: 80))) != .direct)
    }

    static let faults: [(variable: String, value: String, reason: ProxyEnvironment.Fault.Reason)] = [
        ("http_proxy", "http://a", .notAProxy), ("https_proxy", "a b:1", .notAProxy),
        ("all_proxy", "http://me:sec%ret@a:1", .notAProxy), ("HTTPS_PROXY", "socks4://a:1", .scheme("socks4")),
        ("no_proxy", "a,<local>", .exception("<local>")), ("NO_PROXY", "10.1.2.3/8", .exception("10.1.2.3/8")),
        ("no_proxy", "a:x", .exception("a:x")), ("no_proxy", "10.*", .exception("10.*")),
    ]
    @Test(arguments: faults) func `a variable that cannot be used is named, and not guessed at`(
        variable: String, value: String, reason: ProxyEnvironment.Fault.Reason
    ) {
        #expect(throws: ProxyEnvironment.Fault(variable: variable, reason: reason)) {
            try environment([variable: value])
        }
    }

    @Test func `a fault never shows a password, and a user is kept`() throws {
        do {
            _ = try environment(["http_proxy": "http://me:hidden@a"])
            Issue.record("it has no port")
        } catch {
            #expect(!"\(error) \(error.text)".contains("hidden"))
        }
        let route = try environment(["http_proxy": "http://me:hidden@a:1"]).route(
            to: Origin(.http, Endpoint(host: "x", port: 80)))
        guard case .proxy(let proxy) = route else { throw CancellationError() }
        #expect(proxy.logIn == ProxyLogIn(user: Array("me".utf8), password: Array("hidden".utf8)))
    }
}
