import Access
import Authentication
import Credentials
import Message
import Routing
import Origins
import Rules
import Server
import Settings
import Testing

private let challenge = "Proxy-Authenticate: Digest realm=\"next\", nonce=\"1\", qop=\"auth\""
private let basicChallenge = "Proxy-Authenticate: Basic realm=\"next\""
private let basic = "Proxy-Authorization: Basic bWU6c2VzYW1l"

/// The parameters of a digest that was sent.
private func digest(_ request: ScriptedOrigin.Received) -> [String: String] {
    let sent = parseChallenges([Array((request["Proxy-Authorization"] ?? "").utf8)[...]]).first
    var found: [String: String] = [:]
    func note(_ name: String, _ value: [UInt8]?) { found[name] = value.map { String(decoding: $0, as: UTF8.self) } }
    note("uri", sent?.value("uri"))
    note("nc", sent?.value("nc"))
    note("nonce", sent?.value("nonce"))
    note("realm", sent?.value("realm"))
    note("username", sent?.value("username"))
    return found
}

/// The credential: me, sesame.
private func corp(_ schemes: Set<ChallengeScheme>, isUnasked: Bool = false) -> CredentialRule {
    CredentialRule(
        name: "corp", .password(user: "me", schemes: schemes, isUnasked: isUnasked), nil,
        secrets: [.password: .text(Secret("sesame"))])
}

extension Scenario {
    /// All requests go to these proxies with a credential: me, sesame.
    fileprivate func adopt(
        _ proxies: NextProxy..., then others: Route..., schemes: Set<ChallengeScheme> = [.digest],
        isUnasked: Bool = false, also configure: (inout Configuration) -> Void = { _ in }
    ) throws {
        try adopt { configuration, _ in
            configuration.credentials = [corp(schemes, isUnasked: isUnasked)]
            let routes = proxies.map { Route.proxy($0.proving("corp")) } + others
            configuration.routes = [RouteRule(RuleConditions(), via: routes, number: 1)]
            configure(&configuration)
        }
    }

    fileprivate func proxy(_ kind: NextProxy.Kind = .http, host: String = "127.0.0.1") -> NextProxy {
        NextProxy(Endpoint(host: host, port: origin.port), kind)
    }
}

/// One worker: each learns for itself.
private func withOneWorker(_ play: (Scenario) throws -> Void) throws {
    try scenario({ configuration, _ in configuration.workers = .count(1) }, play)
}

@Suite("RFC 9110 §11.7 Logging in to next proxies")
struct NextProxyLogInScenarios {
    // MARK: requests that the proxy reads

    @Test func `a digest covers the absolute URI, is learnt once, and counts its nonce`() throws {
        try withOneWorker { s in
            try s.adopt(s.proxy())
            s.origin.expects("GET http://a.example/x?y=1", "!Proxy-Authorization").replies(407, challenge, body: "who?")
            s.origin.expects("GET http://a.example/x?y=1", "Proxy-Authorization", "!Authorization")
                .replies(200, body: "hello")
            s.origin.expects("GET http://b.example/", "Proxy-Authorization").replies(200, body: "there")
            let client = try s.client()
            #expect(try client.get("http://a.example/x?y=1").text == "hello")
            #expect(try client.get("http://b.example/").text == "there")
            let sent = s.origin.requests.map(digest)
            #expect(sent[1]["uri"] == "http://a.example/x?y=1" && sent[1]["nc"] == "00000001", "\(sent)")
            #expect(sent[2]["uri"] == "http://b.example/" && sent[2]["nc"] == "00000002", "\(sent)")
            #expect(sent[1]["username"] == "me" && sent[1]["realm"] == "next" && sent[1]["nonce"] == "1")
            #expect(s.origin.requests[0].connection == s.origin.requests[1].connection, "the 407 was read to its end")
        }
    }

    @Test func `Basic goes out when it has been asked for, and from then on unasked`() throws {
        try withOneWorker { s in
            try s.adopt(s.proxy(), schemes: [.basic])
            s.origin.expects("GET http://a.example/", "!Proxy-Authorization").replies(407, basicChallenge)
            s.origin.expects("GET http://a.example/", basic).replies(200, body: "a")
            s.origin.expects("CONNECT b.example:443", basic).replies(200).echoes()
            #expect(try s.client().get("http://a.example/").text == "a")
            #expect(try s.client().request("CONNECT", "b.example:443").status == 200)
        }
    }

    @Test func `a body waits until the proxy has seen a digest`() throws {
        try withOneWorker { s in
            try s.adopt(s.proxy())
            s.origin.expects("POST http://a.example/", "!Proxy-Authorization", "Expect: 100-continue")
                .replies(407, challenge).closes().readsBody()
            s.origin.expects("POST http://a.example/", "Proxy-Authorization", "Expect: 100-continue")
                .sends("HTTP/1.1 100 Continue\r\n\r\n").readsBody().replies(201, body: "made")
            let answer = try s.client().request("POST", "http://a.example/", body: "content")
            #expect(answer.status == 201 && answer.text == "made", "\(answer)")
        }
    }

    @Test func `proxy and origin get a credential each, and neither that of the other`() throws {
        try withOneWorker { s in
            try s.adopt(s.proxy()) {
                let own = s.credential(isUnasked: true) { $0.hosts = [HostPattern("a.example")!] }
                $0.credentials.append(own)
            }
            let mine = "Authorization: Basic bWU6c2VzYW1l"
            s.origin.expects("GET http://a.example/", mine, "!Proxy-Authorization").replies(407, challenge)
            s.origin.expects("GET http://a.example/", mine, "Proxy-Authorization").replies(200, body: "both")
            s.origin.expects("GET http://b.example/", "!Authorization", "Proxy-Authorization").replies(200, body: "one")
            #expect(try s.client().get("http://a.example/").text == "both")
            #expect(try s.client().get("http://b.example/").text == "one")
        }
    }

    @Test func `a nonce that has expired is replaced once, and one that is announced is used`() throws {
        try withOneWorker { s in
            try s.adopt(s.proxy())
            let next = "Proxy-Authenticate: Digest realm=\"next\", nonce=\"2\", qop=\"auth\", stale=true"
            s.origin.expects("GET http://a.example/1").replies(407, challenge)
            s.origin.expects("GET http://a.example/1").replies(200)
            s.origin.expects("GET http://a.example/2").replies(407, next)
            s.origin.expects("GET http://a.example/2").replies(200, "Proxy-Authentication-Info: nextnonce=\"3\"")
            s.origin.expects("GET http://a.example/3").replies(200)
            let client = try s.client()
            for path in 1...3 {
                let answer = try client.get("http://a.example/\(path)")
                #expect(answer.status == 200 && answer["Proxy-Authentication-Info"] == nil, "\(answer)")
            }
            let nonces = s.origin.requests.map { digest($0)["nonce"] }
            #expect(nonces == [nil, "1", "1", "2", "3"], "\(nonces)")
            #expect(s.count(.credentialsRefused) == 0)
        }
    }

    @Test func `one request tries the credential while the others wait`() throws {
        try withOneWorker { s in
            try s.adopt(s.proxy())
            let proving = Gate()
            let mayAnswer = Gate()
            s.origin.expects("GET http://a.example/", "!Proxy-Authorization").replies(407, challenge)
            s.origin.expects("GET http://a.example/", "Proxy-Authorization").opens(proving).waits(for: mayAnswer)
                .replies(200, body: "a")
            s.origin.expects("GET http://b.example/", "Proxy-Authorization").replies(200, body: "b")
            s.origin.expects("CONNECT c.example:443", "Proxy-Authorization").replies(200).echoes()
            let (first, second, third) = (try s.client(), try s.client(), try s.client())
            try first.ask("GET", "http://a.example/")
            try proving.wait()
            try second.ask("GET", "http://b.example/")
            try third.ask("CONNECT", "c.example:443")
            try s.eventually("both have a connection, over which they say nothing") { s.origin.connectionCount == 3 }
            #expect(s.origin.requests.count == 2)
            mayAnswer.open()
            #expect(try first.response().text == "a")
            #expect(try second.response().text == "b")
            #expect(try third.response(to: "CONNECT").status == 200)
        }
    }

    @Test func `a client that leaves while its request tries the credential leaves the others a try`() throws {
        try withOneWorker { s in
            try s.adopt(s.proxy())
            let proving = Gate()
            s.origin.expects("CONNECT a.example:443", "!Proxy-Authorization").replies(407, challenge)
            s.origin.expects("CONNECT a.example:443", "Proxy-Authorization").opens(proving).hangs()
            s.origin.expects("GET http://b.example/", "Proxy-Authorization").replies(200, body: "b")
            let (first, second) = (try s.client(), try s.client())
            try first.ask("CONNECT", "a.example:443")
            try proving.wait()
            try second.ask("GET", "http://b.example/")
            first.wire.reset()
            #expect(try second.response().text == "b")
        }
    }

    // MARK: tunnels

    @Test func `a challenge to CONNECT is answered over the same connection`() throws {
        try withOneWorker { s in
            try s.adopt(s.proxy()) { $0.access.rules = [.anyTunnel] }
            s.origin.expects("CONNECT a.example:443", "!Proxy-Authorization").replies(407, challenge, body: "who?")
            s.origin.expects("CONNECT a.example:443", "Proxy-Authorization").sends("HTTP/1.1 200 OK\r\n\r\n").echoes()
            let client = try s.client()
            try client.ask("CONNECT", "a.example:443")
            #expect(try client.response(to: "CONNECT").status == 200)
            try client.send("echo")
            #expect(try client.reader.bytes(4) == Array("echo".utf8))
            #expect(s.origin.connectionCount == 1)
            #expect(s.origin.requests.last.map(digest)?["uri"] == "a.example:443")
        }
    }

    @Test(arguments: ["Connection: close\r\nContent-Length: 0\r\n\r\n", "Content-Length: 9\r\n\r\nbody", "\r\nbody"])
    func `a challenge whose connection ends is answered over another one`(_ rest: String) throws {
        try withOneWorker { s in
            try s.adopt(s.proxy())
            s.origin.expects("CONNECT a.example:443", "!Proxy-Authorization")
                .sends("HTTP/1.1 407 x\r\n\(challenge)\r\n\(rest)").closes()
            s.origin.expects("CONNECT a.example:443", "Proxy-Authorization").replies(200).echoes()
            #expect(try s.client().request("CONNECT", "a.example:443").status == 200)
            #expect(s.origin.connectionCount == 2)
            #expect(s.count(.nextProxyFailures) == 0)
        }
    }

    @Test func `a challenge with a body that does not end is answered over another connection`() throws {
        try withOneWorker { s in
            try s.adopt(s.proxy())
            let gone = Gate()
            s.origin.expects("CONNECT a.example:443", "!Proxy-Authorization")
                .sends("HTTP/1.1 407 x\r\n\(challenge)\r\nTransfer-Encoding: chunked\r\n\r\n")
                .streams("4\r\nbody\r\n", untilGone: gone)
            s.origin.expects("CONNECT a.example:443", "Proxy-Authorization").replies(200).echoes()
            #expect(try s.client().request("CONNECT", "a.example:443").status == 200)
            try gone.wait()
        }
    }

    // MARK: refusals

    private static let refusal = "detail=next-proxy-log-in"

    @Test(arguments: ["GET", "CONNECT"]) func `after three refusals nothing is sent any more`(_ method: String) throws {
        try withOneWorker { s in
            try s.adopt(s.proxy(), schemes: [.basic], isUnasked: true)
            func ask(_ number: Int) throws {
                let target = method == "GET" ? "http://a.example/\(number)" : "a\(number).example:443"
                if number <= 3 { s.origin.expects("\(method) \(target)", basic).replies(407, basicChallenge) }
                let answer = try s.client().request(method, target)
                #expect(answer.status == 502 && answer.cacheStatus.contains(Self.refusal), "\(answer)")
                #expect(answer["Proxy-Authenticate"] == nil)
            }
            for number in 1...4 { try ask(number) }
            #expect(s.origin.requests.count == 3)
            let key = CredentialLedger.Key(credential: "corp", at: s.proxy().place)
            #expect(s.proxy.shared.credentialLedger.withLock { $0.entry(of: key)?.isGivenUp } == true)
            // Another secret begins anew.
            try s.adopt(s.proxy(), schemes: [.basic], isUnasked: true)
            s.origin.expects("GET http://a.example/", basic).replies(200, body: "accepted")
            #expect(try s.client().get("http://a.example/").text == "accepted")
        }
    }

    @Test(arguments: ["GET", "CONNECT"]) func `a proxy that offers only what is not allowed gets nothing`(
        _ method: String
    ) throws {
        try withOneWorker { s in
            try s.adopt(s.proxy())
            let target = method == "GET" ? "http://a.example/" : "a.example:443"
            s.origin.expects("\(method) \(target)", "!Proxy-Authorization").replies(407, basicChallenge)
            let answer = try s.client().request(method, target)
            #expect(answer.status == 502 && answer.cacheStatus.contains(Self.refusal), "\(answer)")
            #expect(s.count(.credentialsSent) == 0)
        }
    }

    @Test func `Basic in front of Digest is not taken`() throws {
        try withOneWorker { s in
            try s.adopt(s.proxy(), schemes: [.basic, .digest])
            s.origin.expects("GET http://a.example/").replies(407, basicChallenge, challenge)
            s.origin.expects("GET http://a.example/").replies(200)
            #expect(try s.client().get("http://a.example/").status == 200)
            #expect(s.origin.requests.last.map(digest)?["realm"] == "next")
        }
    }

    @Test(arguments: ["GET", "CONNECT"])
    func `a refusal counts as a failure of the route, and the next route gets nothing`(
        _ method: String
    ) throws {
        try withOneWorker { s in
            try s.adopt(s.proxy(), then: .direct, schemes: [.basic], isUnasked: true) {
                $0.access.rules = AccessRule.directToo
            }
            let target = method == "GET" ? s.origin.url("/a") : s.origin.authority
            s.origin.expects("\(method) \(target)", basic).replies(407, basicChallenge)
            if method == "GET" {
                s.origin.expects("GET /a", "!Proxy-Authorization", "!Authorization").replies(200, body: "directly")
            }
            let answer = try s.client().request(method, target)
            #expect(answer.status == 200, "\(answer)")
            #expect(s.count(.routesFailedOver) == 1 && s.count(.nextProxyFailures) == 1)
        }
    }

    @Test(arguments: ["GET", "CONNECT"]) func `what one proxy has asked for another one does not get`(
        _ method: String
    ) throws {
        try withOneWorker { s in
            func ask(_ number: Int, _ proxy: NextProxy, conditions: [String]) throws {
                try s.adopt(proxy, schemes: [.basic])
                let target = method == "GET" ? "http://a.example/\(number)" : "a\(number).example:443"
                s.origin.expects("\(method) \(target)", conditions[0]).replies(407, basicChallenge)
                s.origin.expects("\(method) \(target)", basic).replies(200)
                #expect(try s.client().request(method, target).status == 200)
            }
            try ask(1, s.proxy(), conditions: ["!Proxy-Authorization"])
            try ask(2, s.proxy(host: "localhost"), conditions: ["!Proxy-Authorization"])
        }
    }

    @Test(arguments: ["GET", "CONNECT"]) func `challenges without an end come to an end`(_ method: String) throws {
        try withOneWorker { s in
            try s.adopt(s.proxy())
            let target = method == "GET" ? "http://a.example/" : "a.example:443"
            for nonce in 0..<5 {
                s.origin.expects("\(method) \(target)").replies(
                    407, "Proxy-Authenticate: Digest realm=a, nonce=\"\(nonce)\", qop=\"auth\", stale=true")
            }
            let answer = try s.client().request(method, target)
            #expect(answer.status == 502 && answer.cacheStatus.contains(Self.refusal), "\(answer)")
        }
    }

    @Test func `a 407 of the origin inside a tunnel is none of the proxy's`() throws {
        try withOneWorker { s in
            try s.adopt(s.proxy(), schemes: [.basic], isUnasked: true) { $0.access.rules = [.anyTunnel] }
            s.origin.expects("CONNECT a.example:443", basic).sends("HTTP/1.1 200 OK\r\n\r\n").echoes()
            let client = try s.client()
            try client.ask("CONNECT", "a.example:443")
            #expect(try client.response(to: "CONNECT").status == 200)
            try client.send("HTTP/1.1 407 x\r\n\r\n")
            #expect(try client.reader.bytes(18) == Array("HTTP/1.1 407 x\r\n\r\n".utf8))
        }
    }

    // MARK: proxies that others name

    @Test(arguments: ["GET", "CONNECT"])
    func `of the proxies that a script names those that are listed get the credential, and no other`(
        _ method: String
    ) throws {
        try withOneWorker { s in
            try s.adopt { configuration, files in
                let script = s.pac("return host == 'a.example' ? proxy : 'PROXY localhost:\(s.origin.port)';")
                let path = try files.write("proxy.pac", script)
                let listed = CredentialGrant("corp", to: [s.proxy()])
                configuration.credentials = [corp([.basic])]
                configuration.routes = [
                    RouteRule(RuleConditions(), .script(.file(path), otherwise: []), grant: listed, number: 1)
                ]
            }
            func target(_ host: String) -> String { method == "GET" ? "http://\(host)/" : "\(host):443" }
            s.origin.expects("\(method) \(target("a.example"))", "!Proxy-Authorization").replies(407, basicChallenge)
            s.origin.expects("\(method) \(target("a.example"))", basic).replies(200)
            #expect(try s.client().request(method, target("a.example")).status == 200)
            s.origin.expects("\(method) \(target("b.example"))", "!Proxy-Authorization").replies(407, basicChallenge)
            let answer = try s.client().request(method, target("b.example"))
            #expect(answer.status == 502 && answer.cacheStatus.contains(Self.refusal), "\(answer)")
            #expect(s.count(.credentialsSent) == 1)
            #expect(try s.explained("http://a.example/") == "corp (basic)")
            #expect(try s.explained("http://b.example/") == nil)
        }
    }

    @Test func `explain names the credential of a route, and who refuses it`() throws {
        try withOneWorker { s in
            try s.adopt(s.proxy(), then: .direct, schemes: [.basic, .digest])
            #expect(try s.explained("http://a.example/") == "corp (basic or digest)")
            s.origin.expects("GET http://127.0.0.1:1/", "!Proxy-Authorization").replies(407, challenge)
            s.origin.expects("GET http://127.0.0.1:1/", "Proxy-Authorization").replies(407, challenge)
            #expect(try s.client().get("http://127.0.0.1:1/").status == 502)
            #expect(
                try s.explained("http://a.example/")
                    == "corp (basic or digest); refused 1 times by \(s.proxy())")
        }
    }
}

extension Scenario {
    /// What explain says of the credential that the next proxies get. Nil if it says nothing.
    fileprivate func explained(_ target: String) throws -> String? {
        try proxy.explain(ExplainQuestion(target: target)).sections.first { $0.name == "origin" }?
            .lines.first { $0.name == "credential of the route" }?.value
    }
}
