import ClientSetup
import Foundation
import Message
import PAC
import Testing

private func answer(_ script: String, url: String = "http://www.a.example/", host: String = "www.a.example") throws
    -> String
{
    let engine = try PACEngine(script: Array(script.utf8))
    return String(decoding: try engine.findProxy(url: Array(url.utf8), host: Array(host.utf8)), as: UTF8.self)
}

private func value(_ expression: String) throws -> String {
    try answer("function FindProxyForURL(url, host) { return String(\(expression)); }")
}

private func failure(_ body: () throws -> String) -> String {
    do { return "no failure: \(try body())" } catch let failure as PACEngineFailure {
        return String(decoding: failure.text, as: UTF8.self)
    } catch { return "\(error)" }
}

/// The library has one engine for the whole process.
@Suite("The engine for PAC files", .serialized) struct PACEngineTests {
    static let functions: [(expression: String, value: String)] = [
        ("url + ' ' + host", "http://www.a.example/ www.a.example"),
        ("isPlainHostName('www')", "true"), ("isPlainHostName(host)", "false"),
        ("dnsDomainIs(host, '.a.example')", "true"), ("dnsDomainIs('www', '.a.example')", "false"),
        ("localHostOrDomainIs('www', 'www.a.example')", "true"),
        ("localHostOrDomainIs('home.a.example', 'www.a.example')", "false"),
        ("isResolvable('localhost')", "true"), ("isResolvable('no.such.name.invalid')", "false"),
        ("dnsResolve('localhost')", "127.0.0.1"), ("dnsResolve('no.such.name.invalid')", "null"),
        ("isInNet('10.1.2.3', '10.0.0.0', '255.0.0.0')", "true"),
        ("isInNet('11.1.2.3', '10.0.0.0', '255.0.0.0')", "false"),
        ("isInNet('localhost', '127.0.0.0', '255.0.0.0')", "true"),
        ("dnsDomainLevels('www.a.example')", "2"),
        ("shExpMatch('http://a.example/x/y', '*/x/*')", "true"), ("shExpMatch('a.example', '*.org')", "false"),
        ("weekdayRange('SUN', 'SAT')", "true"), ("weekdayRange('MON', 'SUN', 'GMT')", "true"),
        ("weekdayRange('SAT', 'FRI')", "true"),
        (
            "['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'].filter(function (day) { return weekdayRange(day, 'GMT'); }).length",
            "1"
        ),

        ("dateRange(2000, 2999)", "true"), ("dateRange(1999)", "false"), ("timeRange(0, 24)", "true"),
        ("typeof myIpAddress()", "string"), ("alert('a message')", "undefined"),
    ]
    @Test(arguments: functions) func `the functions of PAC files are there`(expression: String, value expected: String)
        throws
    {
        #expect(try value(expression) == expected, "\(expression)")
    }

    // What `pac.direct` names, in the script that Larder gives to browsers.
    static let direct: [(host: String, isDirect: Bool)] = [
        ("www.example.org", false), ("a.internal", true), ("A.B.Internal", true), ("internal", false),
        ("notinternal", false), ("printer.example", true), ("printer.example.", true), ("x.printer.example", false),
        ("10.1.2.3", true), ("11.1.2.3", false), ("10.1.2.3.example.org", false), ("192.168.7.9", true),
        ("192.168.8.9", false), ("fd00::1", true), ("[fd00::1]", true), ("fd00::2", false), ("localhost", true),
        ("proxy.example", true), ("no.such.name.invalid", false),
    ]
    @Test(arguments: direct) func `the PAC file for browsers`(_ row: (host: String, isDirect: Bool)) throws {
        var direct = DirectDestinations()
        direct.hosts = ["printer.example", "fd00::1"]
        direct.suffixes = [".internal"]
        direct.networks = [
            .init(IPAddress(v4: 0x0A00_0000), prefixLength: 8), .init(IPAddress(v4: 0xC0A8_0600), prefixLength: 23),
        ]
        let place = ProxyPlace(host: Array("proxy.example".utf8), port: 3128)
        guard case .page(let page) = Pages(direct: direct).answer(.proxyConfiguration, place: place) else {
            Issue.record("there is no page")
            return
        }
        let script = String(decoding: page.body, as: UTF8.self)
        let found = try answer(script, url: "http://\(row.host)/", host: row.host)
        #expect(found == (row.isDirect ? "DIRECT" : "PROXY proxy.example:3128"), "\(row.host)")
    }

    static let results = [
        ("return 'PROXY a:1; DIRECT';", "PROXY a:1; DIRECT"), ("return null;", "null"), ("", "undefined"),
        ("return '';", ""), ("return 7;", "7"),
    ]
    @Test(arguments: results) func `what the function returns is passed on as text`(body: String, text: String) throws {
        #expect(try answer("function FindProxyForURL(url, host) { \(body) }") == text)
    }

    static let failures = [
        ("function FindProxyForURL(url, host", "line 1: SyntaxError: missing ) after formal parameters"),
        ("var a = 1;", "line 1: it has no function FindProxyForURL"),
        ("function FindProxyForURL() {\n return nothing.here;\n}", "line 2: ReferenceError: nothing is not defined"),
        ("function FindProxyForURL() { throw Error('on purpose'); }", "line 1: on purpose"),
        ("function FindProxyForURL() { return FindProxyForURL(); }", "line 1: InternalError: too much recursion"),
        ("function FindProxyForURL() { return 'a\0b'; }", "it has a NUL byte"),
    ]
    @Test(arguments: failures) func `a failure names its line and the reason`(script: String, text: String) {
        #expect(failure { try answer(script) } == text)
    }

    @Test func `a script keeps what it knows from one question to the next`() throws {
        let engine = try PACEngine(
            script: Array("var n = 0; function FindProxyForURL() { return 'PROXY a:' + ++n; }".utf8))
        for number in 1...3 {
            let answer = try engine.findProxy(url: Array("http://a/".utf8), host: Array("a".utf8))
            #expect(answer == Array("PROXY a:\(number)".utf8))
        }
    }

    @Test(arguments: ["http://a'b/", "http://a\\/", "http://a\n/"]) func `a URL that would end its quotes is not asked`(
        _ url: String
    ) {
        #expect(
            failure { try answer("function FindProxyForURL() { return 'DIRECT'; }", url: url) }.contains(
                "cannot be given"))
    }
}
