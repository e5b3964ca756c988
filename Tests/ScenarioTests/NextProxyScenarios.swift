import Access
import Admin
import Foundation
import Message
import ProgramUnderTest
import Routing
import Rules
import Server
import Settings
import Testing

extension Scenario {
    /// The scripted origin as a next proxy.
    func nextProxy(
        _ kind: NextProxy.Kind = .http, user: String? = nil, password: String = "", port: UInt16? = nil
    ) -> Route {
        let logIn = user.flatMap { ProxyLogIn(user: Array($0.utf8), password: Array(password.utf8)) }
        let endpoint = Endpoint(host: "127.0.0.1", port: port ?? UInt16(origin.authority.split(separator: ":")[1])!)
        return .proxy(NextProxy(endpoint, kind, logIn: logIn))
    }

    /// All requests take these routes from now on.
    func adopt(routes: Route..., also configure: (inout Configuration) -> Void = { _ in }) throws {
        try adopt { configuration, _ in
            configuration.routes = [RouteRule(RuleConditions(), via: routes, number: 1)]
            configure(&configuration)
        }
    }
}

extension AccessRule {
    /// Tunnels carry what a script sends, which is not TLS.
    static let anyTunnel = AccessRule(effect: .allow, tunnel: .any, number: 1)

    /// The scripted origin may be reached directly as well, although it is the next proxy.
    static let directToo: [AccessRule] = {
        var conditions = RuleConditions()
        conditions.addresses = [AddressRange(IPAddress(v4: 0x7F00_0001))]
        return [
            AccessRule(effect: .allow, conditions: conditions, tunnel: .any, number: 1),
            AccessRule(effect: .allow, tunnel: .any, number: 2),
        ]
    }()
}

@Suite("Next proxies")
struct NextProxyScenarios {
    @Test func `what a next proxy of some clients lets them have is not for the others`() throws {
        try scenario { s in
            try s.adopt { configuration, _ in
                var conditions = RuleConditions()
                conditions.clients = [AddressRange(IPAddress(v4: 0x7F00_0002))]
                configuration.routes = [RouteRule(conditions, via: [s.nextProxy()], number: 1)]
                configuration.access.rules = AccessRule.directToo
            }
            let (some, others) = (try s.client(from: 0x7F00_0002), try s.client())
            for _ in 0..<2 {
                s.origin.expects("GET \(s.origin.url("/a"))").replies(200, "Cache-Control: max-age=60", body: "theirs")
                s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "all")
                for expected in ["miss", "hit"] {
                    for (client, body) in [(some, "theirs"), (others, "all")] {
                        let answer = try client.get("/a")
                        #expect(answer.text == body, "\(answer)")
                        #expect(expected == "miss" || answer.cacheStatus.hasPrefix("larder; hit"), "\(answer)")
                    }
                }
                // What others have stored is invalid, too.
                s.origin.expects("POST /a").replies(200)
                #expect(try others.request("POST", "/a", "Content-Length: 0").status == 200)
            }
            s.origin.expects("GET \(s.origin.url("/a"))").replies(200, "Cache-Control: max-age=60", body: "theirs")
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "all")
            let last = (try some.get("/a"), try others.get("/a"))
            #expect(last.0.text == "theirs" && last.1.text == "all")
            var selection = Selection()
            selection.url = s.origin.url("/a")
            let purged = RunningProxy(proxy: s.proxy, version: "test").purge(PurgeRequest(selection))
            #expect(purged.records == 2, "what came by every route")
        }
    }

    @Test func `a request in plain text goes out in absolute-form, with the proxy's own log-in`() throws {
        try scenario { s in
            try s.adopt(routes: s.nextProxy(user: "me", password: "secret"))
            s.origin.expects(
                "GET http://a.example:8080/x?y=1", "Host: a.example:8080", "Proxy-Authorization: Basic bWU6c2VjcmV0",
                "Accept: text/plain", "Via"
            ).replies(200, "Cache-Control: max-age=60", body: "hello")
            let client = try s.client()
            let answer = try client.get("http://a.example:8080/x?y=1", "Accept: text/plain")
            #expect(answer.text == "hello", "\(answer)")
            // The origin has no more to say: what comes now comes from the store.
            let again = try client.get("http://a.example:8080/x?y=1", "Accept: text/plain")
            #expect(again.text == "hello" && again.cacheStatus.contains("hit"), "\(again)")
        }
    }

    @Test func `a client's log-in at this proxy does not reach the next one`() throws {
        try scenario { s in
            try s.adopt(routes: s.nextProxy())
            s.origin.expects("GET http://a.example/", "Host: a.example", "!Proxy-Authorization").replies(200, body: "x")
            let answer = try s.client().get("http://a.example/", "Proxy-Authorization: Basic eDp5")
            #expect(answer.status == 200, "\(answer)")
        }
    }

    @Test func `OPTIONS for a whole server has no path`() throws {
        try scenario { s in
            try s.adopt(routes: s.nextProxy())
            s.origin.expects("OPTIONS http://a.example", "Host: a.example").replies(204)
            let answer = try s.client().request("OPTIONS", "http://a.example")
            #expect(answer.status == 204, "\(answer)")
        }
    }

    @Test func `a body goes through the proxy as to an origin`() throws {
        try scenario { s in
            try s.adopt(routes: s.nextProxy())
            s.origin.expects("POST http://a.example/form", "Content-Length: 4").readsBody().replies(201, body: "made")
            let answer = try s.client().request("POST", "http://a.example/form", body: "body")
            #expect(answer.text == "made", "\(answer)")
        }
    }

    @Test func `CONNECT goes through the proxy, and what comes at once is not lost`() throws {
        try scenario { s in
            try s.adopt(routes: s.nextProxy(user: "me", password: "secret")) { $0.access.rules = [.anyTunnel] }
            s.origin.expects(
                "CONNECT a.example:443", "Host: a.example:443", "Proxy-Authorization: Basic bWU6c2VjcmV0"
            ).sends("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhello").echoes()
            let client = try s.client()
            try client.ask("CONNECT", "a.example:443")
            #expect(try client.response(to: "CONNECT").status == 200)
            #expect(try client.reader.bytes(5) == Array("hello".utf8))
            try client.send("echo")
            #expect(try client.reader.bytes(4) == Array("echo".utf8))
        }
    }

    @Test(arguments: [403, 404, 502, 504]) func `a tunnel that the proxy refuses is refused`(_ status: Int) throws {
        try scenario { s in
            try s.adopt(routes: s.nextProxy(), .direct)
            s.origin.expects("CONNECT a.example:443").replies(status, body: "a page of the next proxy")
            let answer = try s.client().request("CONNECT", "a.example:443")
            #expect(answer.status == 502 && answer.cacheStatus.contains("detail=next-proxy-refused"), "\(answer)")
            #expect(!answer.text.contains("a page of"), "nothing of the next proxy is taken for Larder's own")
            #expect(s.count(.routesFailedOver) == 0, "the answer is about the destination")
        }
    }

    @Test(arguments: ["GET", "CONNECT"]) func `a dead proxy is left for the next route, and is not tried again at once`(
        _ method: String
    ) throws {
        try scenario { s in
            let closed = try Unanswering.ClosedPort()
            try s.adopt(routes: s.nextProxy(port: closed.port), s.nextProxy())
            for number in 1...3 {
                let target = method == "GET" ? "http://a.example/\(number)" : "a\(number).example:443"
                s.origin.expects("\(method) \(target)").replies(200, body: "")
                let answer = try s.client().request(method, target)
                #expect(answer.status == 200, "\(answer)")
            }
            #expect(s.count(.nextProxyFailures) == 1)
            #expect(s.count(.routesFailedOver) == 1)
        }
    }

    @Test func `a proxy that fails in all routes names the last failure`() throws {
        try scenario { s in
            let closed = try Unanswering.ClosedPort()
            try s.adopt(routes: s.nextProxy(port: closed.port))
            for _ in 0..<2 {
                let answer = try s.client().get("http://a.example/")
                #expect(
                    answer.status == 502 && answer.cacheStatus.contains("detail=next-proxy-unreachable"), "\(answer)")
            }
            #expect(s.count(.nextProxyFailures) == 2, "without another route it is tried each time")
        }
    }

    @Test func `a demand for credentials is not passed on to the client, and the proxy comes last then`() throws {
        try scenario { s in
            let proxy = s.nextProxy(user: "me", password: "wrong")
            try s.adopt(routes: proxy, .direct) { $0.access.rules = AccessRule.directToo }
            s.origin.expects("GET http://127.0.0.1:\(s.origin.authority.split(separator: ":")[1])/a")
                .replies(407, "Proxy-Authenticate: Basic realm=\"next\"", body: "no")
            s.origin.expects("GET /a", "!Proxy-Authorization").replies(200, "Cache-Control: no-store", body: "directly")
            let answer = try s.client().get("/a")
            #expect(answer.text == "directly" && answer["Proxy-Authenticate"] == nil, "\(answer)")
            s.origin.expects("GET /b").replies(200, body: "at once")
            #expect(try s.client().get("/b").text == "at once")
            #expect(s.count(.nextProxyFailures) == 1 && s.count(.routesFailedOver) == 1)
        }
    }

    @Test(arguments: [
        "http://127.0.0.1/", "http://[::1]/", "http://localhost/", "http://a.localhost/", "http://10.1.2.3/",
    ])
    func `no private address can be reached behind a proxy`(_ url: String) throws {
        try scenario { s in
            try s.adopt(routes: s.nextProxy()) { $0.access.privateDestinations = .deny }
            let answer = try s.client().get(url)
            #expect(answer.status == 403 && answer.cacheStatus.contains("detail=destination-forbidden"), "\(answer)")
            let host = url.dropFirst("http://".count).dropLast()
            let tunnel = try s.client().request("CONNECT", "\(host):443")
            #expect(tunnel.status == 403 && tunnel.cacheStatus.contains("detail=destination-forbidden"), "\(tunnel)")
        }
    }

    @Test func `a connection is not used for an address that the rules deny this client`() throws {
        try scenario { s in
            try s.adopt(routes: s.nextProxy()) {
                $0.access.privateDestinations = .deny
                var one = RuleConditions()
                one.addresses = [AddressRange("10.1.2.3")!]
                one.clients = [AddressRange("127.0.0.1")!]
                $0.access.rules = [AccessRule(effect: .allow, conditions: one, number: 1)]
                $0.access.writtenDefault = .allow
            }
            s.origin.expects("GET http://10.1.2.3/").replies(200, "Cache-Control: no-store", body: "x")
            #expect(try s.client().get("http://10.1.2.3/").status == 200)
            let answer = try s.client(from: 0x7F00_0002).get("http://10.1.2.3/")
            #expect(answer.status == 403, "\(answer)")
        }
    }

    @Test func `a stale response is served while the proxy is dead`() throws {
        try scenario { s in
            try s.adopt(routes: s.nextProxy())
            s.origin.expects("GET http://a.example/").replies(
                200, "Cache-Control: max-age=0, stale-if-error=60", "ETag: \"1\"", body: "old")
            #expect(try s.client().get("http://a.example/").text == "old")
            let closed = try Unanswering.ClosedPort()
            try s.adopt(routes: s.nextProxy(port: closed.port))
            let answer = try s.client().get("http://a.example/")
            #expect(answer.text == "old", "\(answer)")
        }
    }
}
