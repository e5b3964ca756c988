import Access
import Credentials
import Foundation
import Message
import ProgramUnderTest
import Routing
import Origins
import Rules
import Server
import Settings
import TLS
import Testing

private let asks = "Proxy-Authenticate: NTLM"
private let continues = "Proxy-Authenticate: \(NTLMPeer.challengeValue)"
private let beginning = "Proxy-Authorization: \(NTLMPeer.beginning)"
private let me = NTLMCredential(user: "me", domain: "CORP", password: Secret("sesame"))
private let incomplete = "detail=next-proxy-log-in-incomplete"
private let refused = "detail=next-proxy-log-in"

extension Scenario {
    /// All requests go to these proxies, and a credential with it: CORP\me or another user, sesame.
    func adoptConnectionLogIns(
        at proxies: NextProxy..., then others: Route..., schemes: Set<ChallengeScheme> = [.ntlm],
        as user: String = "me",
        also configure: (inout Configuration) throws -> Void = { _ in }
    ) throws {
        try adopt { configuration, _ in
            configuration.credentials = [
                CredentialRule(
                    name: "corp",
                    .password(
                        user: user, schemes: schemes, isUnasked: false, names: DirectoryNames(domain: "CORP")),
                    nil, secrets: [.password: .text(Secret("sesame"))])
            ]
            let routes = proxies.map { Route.proxy($0.proving("corp")) } + others
            configuration.routes = [RouteRule(RuleConditions(), via: routes, number: 1)]
            try configure(&configuration)
        }
    }

    fileprivate func proxy(_ kind: NextProxy.Kind = .http, host: String = "127.0.0.1") -> NextProxy {
        NextProxy(Endpoint(host: host, port: origin.port), kind)
    }

    /// Whether the request with this number has the third message.
    fileprivate func isThird(_ number: Int, host: String = "127.0.0.1") throws -> Bool {
        try NTLMPeer.accepts(origin.requests[number]["Proxy-Authorization"], of: me, host: host)
    }
}

/// One worker: each learns for itself.
private func withOneWorker(_ play: (Scenario) throws -> Void) throws {
    try scenario({ configuration, _ in configuration.workers = .count(1) }, play)
}

@Suite("RFC 4559 §6 Logging in connections to next proxies: tunnels")
struct NextProxyTunnelLogInScenarios {
    @Test func `all messages go over one connection, which becomes the tunnel`() throws {
        try withOneWorker { s in
            try s.adoptConnectionLogIns(at: s.proxy()) { $0.access.rules = [.anyTunnel] }
            s.origin.expects("CONNECT a.example:443", "!Proxy-Authorization").replies(407, asks, body: "who?")
            s.origin.expects("CONNECT a.example:443", beginning).replies(407, continues, body: "prove it")
            s.origin.expects("CONNECT a.example:443", "Proxy-Authorization").sends("HTTP/1.1 200 OK\r\n\r\n").echoes()
            let client = try s.client()
            try client.ask("CONNECT", "a.example:443")
            #expect(try client.response(to: "CONNECT").status == 200)
            try client.send("echo")
            #expect(try client.reader.bytes(4) == Array("echo".utf8))
            #expect(s.origin.connectionCount == 1)
            #expect(try s.isThird(2))
            #expect(s.count(.connectionLogIns) == 1)
        }
    }

    @Test func `the next tunnel is logged in anew, without being asked`() throws {
        try withOneWorker { s in
            try s.adoptConnectionLogIns(at: s.proxy())
            s.origin.expects("CONNECT a.example:443", "!Proxy-Authorization").replies(407, asks)
            for host in ["a", "b"] {
                s.origin.expects("CONNECT \(host).example:443", beginning).replies(407, continues)
                s.origin.expects("CONNECT \(host).example:443", "Proxy-Authorization").replies(200).echoes()
                #expect(try s.client().request("CONNECT", "\(host).example:443").status == 200)
            }
            #expect(s.origin.connectionCount == 2)
            #expect(try s.isThird(2) && s.isThird(4))
            #expect(s.origin.requests[2]["Proxy-Authorization"] != s.origin.requests[4]["Proxy-Authorization"])
            #expect(s.count(.connectionLogIns) == 2)
        }
    }

    @Test func `a challenge whose connection ends is answered over another one`() throws {
        try withOneWorker { s in
            try s.adoptConnectionLogIns(at: s.proxy())
            s.origin.expects("CONNECT a.example:443", "!Proxy-Authorization")
                .replies(407, asks, "Proxy-Connection: close", "Connection: close").closes()
            s.origin.expects("CONNECT a.example:443", beginning).replies(407, continues)
            s.origin.expects("CONNECT a.example:443", "Proxy-Authorization").replies(200).echoes()
            #expect(try s.client().request("CONNECT", "a.example:443").status == 200)
            #expect(s.origin.connectionCount == 2)
        }
    }

    /// What a proxy sends in place of the second message as it should be.
    static let breaches: [(name: String, answer: String)] = [
        ("the connection ends", ""),
        ("the connection will end", "HTTP/1.1 407 x\r\n\(continues)\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
        ("nobody knows where the body ends", "HTTP/1.1 407 x\r\n\(continues)\r\n\r\nbody"),
        (
            "the body is too long",
            "HTTP/1.1 407 x\r\n\(continues)\r\nContent-Length: 100000\r\n\r\n"
        ),
        (
            "the message is no challenge",
            "HTTP/1.1 407 x\r\nProxy-Authenticate: NTLM TlRMTVNTUAAD\r\nContent-Length: 0\r\n\r\n"
        ),
    ]

    @Test(arguments: breaches) func `a log-in that cannot go on is refused, and nothing more is sent`(
        _ breach: (name: String, answer: String)
    ) throws {
        try withOneWorker { s in
            try s.adoptConnectionLogIns(at: s.proxy())
            s.origin.expects("CONNECT a.example:443", "!Proxy-Authorization").replies(407, asks)
            s.origin.expects("CONNECT a.example:443", beginning).sends(breach.answer).closes()
            let answer = try s.client().request("CONNECT", "a.example:443")
            #expect(answer.status == 502 && answer.cacheStatus.contains(incomplete), "\(breach.name): \(answer)")
            #expect(s.origin.requests.count == 2, "\(breach.name)")
            #expect(s.count(.connectionLogInsFailed) == 1 && s.count(.credentialsRefused) == 0)
        }
    }

    @Test func `a proxy that goes on after the last message is left`() throws {
        try withOneWorker { s in
            try s.adoptConnectionLogIns(at: s.proxy())
            s.origin.expects("CONNECT a.example:443", "!Proxy-Authorization").replies(407, asks)
            s.origin.expects("CONNECT a.example:443", beginning).replies(407, continues)
            s.origin.expects("CONNECT a.example:443", "Proxy-Authorization").replies(407, continues)
            let answer = try s.client().request("CONNECT", "a.example:443")
            #expect(answer.status == 502 && answer.cacheStatus.contains(incomplete), "\(answer)")
        }
    }

    @Test(arguments: [true, false]) func `after three refusals nothing is sent any more`(_ persists: Bool) throws {
        try withOneWorker { s in
            try s.adoptConnectionLogIns(at: s.proxy())
            s.origin.expects("CONNECT a1.example:443", "!Proxy-Authorization").replies(407, asks)
            for number in 1...3 {
                // After a refusal nobody knows whether the proxy still wants NTLM.
                if number > 1 {
                    s.origin.expects("CONNECT a\(number).example:443", "!Proxy-Authorization").replies(407, asks)
                }
                s.origin.expects("CONNECT a\(number).example:443", beginning).replies(407, continues)
                let last = s.origin.expects("CONNECT a\(number).example:443", "Proxy-Authorization")
                if persists {
                    last.replies(407, asks)
                } else {
                    last.replies(407, asks, "Connection: close").closes()
                }
                let answer = try s.client().request("CONNECT", "a\(number).example:443")
                #expect(answer.status == 502 && answer.cacheStatus.contains(refused), "\(answer)")
                #expect(!answer.cacheStatus.contains(incomplete))
                #expect(answer["Proxy-Authenticate"] == nil)
            }
            let count = s.origin.requests.count
            #expect(try s.client().request("CONNECT", "a4.example:443").cacheStatus.contains(refused))
            #expect(s.origin.requests.count == count)
            #expect(s.count(.credentialsRefused) == 3)
        }
    }

    @Test func `a refusal of the destination is none of the credential`() throws {
        try withOneWorker { s in
            try s.adoptConnectionLogIns(at: s.proxy())
            s.origin.expects("CONNECT a.example:443", "!Proxy-Authorization").replies(407, asks)
            s.origin.expects("CONNECT a.example:443", beginning).replies(407, continues)
            s.origin.expects("CONNECT a.example:443", "Proxy-Authorization").replies(403, body: "no")
            let answer = try s.client().request("CONNECT", "a.example:443")
            #expect(answer.cacheStatus.contains("detail=next-proxy-refused"), "\(answer)")
            #expect(s.count(.credentialsRefused) == 0)
        }
    }

    @Test func `the next route gets a log-in of its own, and no message of the one that failed`() throws {
        try withOneWorker { s in
            try s.adoptConnectionLogIns(at: s.proxy(), s.proxy(host: "localhost"))
            s.origin.expects("CONNECT a.example:443", "!Proxy-Authorization").replies(407, asks)
            s.origin.expects("CONNECT a.example:443", beginning).replies(407, continues, "Connection: close").closes()
            s.origin.expects("CONNECT a.example:443", "!Proxy-Authorization").replies(407, asks)
            s.origin.expects("CONNECT a.example:443", beginning).replies(407, continues)
            s.origin.expects("CONNECT a.example:443", "Proxy-Authorization").replies(200).echoes()
            #expect(try s.client().request("CONNECT", "a.example:443").status == 200)
            #expect(try s.isThird(s.origin.requests.count - 1, host: "localhost"))
            #expect(s.count(.routesFailedOver) == 1)
        }
    }

    @Test func `one request tries the credential while the others wait, and each logs in its own connection`() throws {
        try withOneWorker { s in
            try s.adoptConnectionLogIns(at: s.proxy())
            let (proving, mayAnswer) = (Gate(), Gate())
            s.origin.expects("CONNECT a.example:443", "!Proxy-Authorization").replies(407, asks)
            s.origin.expects("CONNECT a.example:443", beginning).opens(proving).waits(for: mayAnswer)
                .replies(407, continues)
            s.origin.expects("CONNECT a.example:443", "Proxy-Authorization").replies(200).echoes()
            s.origin.expects("CONNECT b.example:443", beginning).replies(407, continues)
            s.origin.expects("CONNECT b.example:443", "Proxy-Authorization").replies(200).echoes()
            let (first, second) = (try s.client(), try s.client())
            try first.ask("CONNECT", "a.example:443")
            try proving.wait()
            try second.ask("CONNECT", "b.example:443")
            try s.eventually("it has a connection, over which it says nothing") { s.origin.connectionCount == 2 }
            #expect(s.origin.requests.count == 2)
            mayAnswer.open()
            #expect(try first.response(to: "CONNECT").status == 200)
            #expect(try second.response(to: "CONNECT").status == 200)
        }
    }

    @Test func `a client that leaves in the middle leaves the others a try`() throws {
        try withOneWorker { s in
            try s.adoptConnectionLogIns(at: s.proxy())
            let proving = Gate()
            s.origin.expects("CONNECT a.example:443", "!Proxy-Authorization").replies(407, asks)
            s.origin.expects("CONNECT a.example:443", beginning).opens(proving).hangs()
            s.origin.expects("CONNECT b.example:443", beginning).replies(407, continues)
            s.origin.expects("CONNECT b.example:443", "Proxy-Authorization").replies(200).echoes()
            let (first, second) = (try s.client(), try s.client())
            try first.ask("CONNECT", "a.example:443")
            try proving.wait()
            try second.ask("CONNECT", "b.example:443")
            first.wire.reset()
            #expect(try second.response(to: "CONNECT").status == 200)
        }
    }

    @Test func `the third message is bound to the certificate of a proxy with TLS`() throws {
        let certificate = try MadeCertificate(for: "IP:127.0.0.1")
        let proxy = try TLSOrigin(
            certificate, .answers("HTTP/1.1 407 x\r\n\(continues)\r\nContent-Length: 0\r\n\r\n"))
        defer { proxy.end() }
        try withOneWorker { s in
            try s.adopt { configuration, files in
                configuration.tls.caFile = try files.write("ca.pem", certificate.certificate)
                configuration.credentials = [
                    CredentialRule(
                        name: "corp",
                        .password(
                            user: "me", schemes: [.ntlm], isUnasked: false, names: DirectoryNames(domain: "CORP")),
                        nil, secrets: [.password: .text(Secret("sesame"))])
                ]
                let next = NextProxy(Endpoint(host: "127.0.0.1", port: proxy.port), .https).proving("corp")
                configuration.routes = [RouteRule(RuleConditions(), via: [.proxy(next)], number: 1)]
            }
            _ = try s.client().request("CONNECT", "a.example:443")
            let values = proxy.heads.compactMap { head in
                head.split(separator: "\r\n").first { $0.hasPrefix("Proxy-Authorization: ") }.map {
                    String($0.dropFirst("Proxy-Authorization: ".count))
                }
            }
            let base64 = certificate.certificate.split(separator: "\n").filter { !$0.hasPrefix("-") }.joined()
            let hash = Digest.sha256(try #require(Data(base64Encoded: base64)))
            #expect(values.count == 2 && values[0] == NTLMPeer.beginning, "\(values)")
            #expect(try NTLMPeer.accepts(values.last, of: me, host: "127.0.0.1", endPoint: hash))
            #expect(try !NTLMPeer.accepts(values.last, of: me, host: "127.0.0.1"))
        }
    }
}

@Suite("RFC 4559 §6 Logging in connections to next proxies: requests that the proxy reads")
struct NextProxyRequestLogInScenarios {
    @Test func `all messages go over one connection, which needs no others afterwards`() throws {
        try withOneWorker { s in
            try s.adoptConnectionLogIns(at: s.proxy())
            s.origin.expects("GET http://a.example/1", "!Proxy-Authorization").replies(407, asks, body: "who?")
            s.origin.expects("GET http://a.example/1", beginning).replies(407, continues, body: "prove it")
            s.origin.expects("GET http://a.example/1", "Proxy-Authorization", "!Authorization")
                .replies(200, body: "one")
            s.origin.expects("GET http://a.example/2", "!Proxy-Authorization").replies(200, body: "two")
            let client = try s.client()
            #expect(try client.get("http://a.example/1").text == "one")
            #expect(try client.get("http://a.example/2").text == "two")
            #expect(try s.isThird(2))
            #expect(s.origin.connectionCount == 1)
            #expect(s.count(.connectionLogIns) == 1 && s.count(.connectionLogInsFailed) == 0)
        }
    }

    @Test func `another connection is logged in without being asked`() throws {
        try withOneWorker { s in
            try s.adoptConnectionLogIns(at: s.proxy())
            s.origin.expects("GET http://a.example/", "!Proxy-Authorization").replies(407, asks)
            for host in ["a", "b"] {
                s.origin.expects("GET http://\(host).example/", beginning).replies(407, continues)
                s.origin.expects("GET http://\(host).example/", "Proxy-Authorization").replies(200, body: host)
                #expect(try s.client().get("http://\(host).example/").text == host)
            }
            #expect(try s.isThird(2) && s.isThird(4))
            #expect(s.origin.connectionCount == 2)
        }
    }

    @Test func `content goes out once, with the last message`() throws {
        try withOneWorker { s in
            try s.adoptConnectionLogIns(at: s.proxy())
            s.origin.expects("POST http://a.example/form", "!Proxy-Authorization", "Expect: 100-continue")
                .replies(407, asks, "Connection: close").closes().readsBody()
            s.origin.expects(
                "HEAD http://a.example/form", beginning, "!Content-Length", "!Transfer-Encoding", "!Expect",
                "!Content-Type"
            ).replies(407, continues)
            s.origin.expects("POST http://a.example/form", "Proxy-Authorization", "Expect: 100-continue")
                .sends("HTTP/1.1 100 Continue\r\n\r\n").readsBody().replies(201, body: "made")
            let answer = try s.client().request("POST", "http://a.example/form", body: "content")
            #expect(answer.status == 201 && answer.text == "made", "\(answer)")
            #expect(try s.isThird(2))
            #expect(s.origin.requests[2].connection == s.origin.requests[1].connection)
        }
    }

    @Test(arguments: ["Content-Length: 12\r\n\r\nin two", "Transfer-Encoding: chunked\r\n\r\n6\r\nin two\r\n6\r\n"])
    func `the body of a challenge may come in pieces`(_ beginningOfBody: String) throws {
        try withOneWorker { s in
            try s.adoptConnectionLogIns(at: s.proxy())
            let (begun, mayEnd) = (Gate(), Gate())
            s.origin.expects("GET http://a.example/", "!Proxy-Authorization").replies(407, asks)
            s.origin.expects("GET http://a.example/", beginning)
                .sends("HTTP/1.1 407 x\r\n\(continues)\r\n\(beginningOfBody)").opens(begun).waits(for: mayEnd)
                .sends(beginningOfBody.hasPrefix("T") ? "pieces\r\n0\r\n\r\n" : "pieces")
            s.origin.expects("GET http://a.example/", "Proxy-Authorization").replies(200, body: "hello")
            let client = try s.client()
            try client.ask("GET", "http://a.example/")
            try begun.wait()
            mayEnd.open()
            #expect(try client.response().text == "hello")
            #expect(s.origin.connectionCount == 1)
        }
    }

    @Test(arguments: NextProxyTunnelLogInScenarios.breaches)
    func `a log-in that cannot go on is refused, and nothing more is sent`(
        _ breach: (name: String, answer: String)
    ) throws {
        try withOneWorker { s in
            try s.adoptConnectionLogIns(at: s.proxy())
            s.origin.expects("GET http://a.example/", "!Proxy-Authorization")
                .replies(407, asks, "Connection: close").closes()
            s.origin.expects("GET http://a.example/", beginning).sends(breach.answer).closes()
            let answer = try s.client().get("http://a.example/")
            #expect(answer.status == 502, "\(breach.name): \(answer)")
            // A connection that ends after the first message may have been dead before.
            if !breach.answer.isEmpty { #expect(answer.cacheStatus.contains(incomplete), "\(breach.name): \(answer)") }
            #expect(s.origin.requests.count == 2, "\(breach.name)")
            #expect(s.count(.credentialsRefused) == 0)
        }
    }

    @Test func `after three refusals nothing is sent any more`() throws {
        try withOneWorker { s in
            try s.adoptConnectionLogIns(at: s.proxy())
            for number in 1...3 {
                let line = "GET http://a.example/\(number)"
                s.origin.expects(line, "!Proxy-Authorization").replies(407, asks)
                s.origin.expects(line, beginning).replies(407, continues)
                s.origin.expects(line, "Proxy-Authorization").replies(407, asks, "Connection: close").closes()
                let answer = try s.client().get("http://a.example/\(number)")
                #expect(answer.status == 502 && answer.cacheStatus.contains(refused), "\(answer)")
                #expect(!answer.cacheStatus.contains(incomplete) && answer["Proxy-Authenticate"] == nil)
            }
            let count = s.origin.requests.count
            #expect(try s.client().get("http://a.example/4").cacheStatus.contains(refused))
            #expect(s.origin.requests.count == count)
            #expect(s.count(.credentialsRefused) == 3)
        }
    }

    @Test func `a connection that was logged in with an earlier secret is not used again`() throws {
        try withOneWorker { s in
            try s.adoptConnectionLogIns(at: s.proxy())
            for number in 1...2 {
                let line = "GET http://a.example/\(number)"
                s.origin.expects(line, "!Proxy-Authorization").replies(407, asks)
                s.origin.expects(line, beginning).replies(407, continues)
                s.origin.expects(line, "Proxy-Authorization").replies(200, body: "\(number)")
                #expect(try s.client().get("http://a.example/\(number)").text == "\(number)")
                // The same text, and another secret.
                try s.adoptConnectionLogIns(at: s.proxy())
            }
            #expect(s.origin.requests[3].connection != s.origin.requests[2].connection)
        }
    }

    @Test func `a connection that was logged in may ask once more`() throws {
        try withOneWorker { s in
            try s.adoptConnectionLogIns(at: s.proxy())
            s.origin.expects("GET http://a.example/1", "!Proxy-Authorization").replies(407, asks)
            s.origin.expects("GET http://a.example/1", beginning).replies(407, continues)
            s.origin.expects("GET http://a.example/1", "Proxy-Authorization").replies(200, body: "one")
            s.origin.expects("GET http://a.example/2", "!Proxy-Authorization").replies(407, asks)
            s.origin.expects("GET http://a.example/2", beginning).replies(407, continues)
            s.origin.expects("GET http://a.example/2", "Proxy-Authorization").replies(200, body: "two")
            let client = try s.client()
            #expect(try client.get("http://a.example/1").text == "one")
            #expect(try client.get("http://a.example/2").text == "two")
            #expect(s.origin.connectionCount == 1 && s.count(.credentialsRefused) == 0)
        }
    }

    @Test func `the next route gets nothing of the log-in`() throws {
        try withOneWorker { s in
            try s.adoptConnectionLogIns(at: s.proxy(), then: .direct) { $0.access.rules = AccessRule.directToo }
            let url = s.origin.url("/a")
            s.origin.expects("GET \(url)", "!Proxy-Authorization").replies(407, asks)
            s.origin.expects("GET \(url)", beginning).replies(407, continues, "Connection: close").closes()
            s.origin.expects("GET /a", "!Proxy-Authorization", "!Authorization").replies(200, body: "directly")
            #expect(try s.client().get(url).text == "directly")
            #expect(s.count(.routesFailedOver) == 1)
        }
    }

    @Test func `proxy and origin get a log-in each, and the origin only what is for it`() throws {
        try withOneWorker { s in
            try s.adoptConnectionLogIns(at: s.proxy()) {
                $0.credentials.append(s.credential(isUnasked: true) { $0.hosts = [HostPattern("a.example")!] })
            }
            let mine = "Authorization: Basic bWU6c2VzYW1l"
            s.origin.expects("GET http://a.example/", mine, "!Proxy-Authorization").replies(407, asks)
            s.origin.expects("GET http://a.example/", mine, beginning).replies(407, continues)
            s.origin.expects("GET http://a.example/", mine, "Proxy-Authorization").replies(200, body: "both")
            #expect(try s.client().get("http://a.example/").text == "both")
        }
    }

    @Test func `an origin behind a proxy that reads the requests cannot have its connection logged in`() throws {
        try withOneWorker { s in
            try s.adoptConnectionLogIns(at: s.proxy()) {
                var conditions = RuleConditions()
                conditions.hosts = [HostPattern("a.example")!]
                $0.credentials.append(
                    CredentialRule(
                        name: "site", .password(user: "me", schemes: [.ntlm], isUnasked: false), conditions,
                        secrets: [.password: .text(Secret("sesame"))], allowsPlainHTTP: true))
            }
            s.origin.expects("GET http://a.example/", "!Proxy-Authorization").replies(407, asks)
            s.origin.expects("GET http://a.example/", beginning).replies(407, continues)
            s.origin.expects("GET http://a.example/", "Proxy-Authorization")
                .replies(401, "WWW-Authenticate: NTLM", body: "no")
            let answer = try s.client().get("http://a.example/")
            // The challenge of the origin is one that cannot be answered here.
            #expect(answer.status == 401 && answer.text == "no", "\(answer)")
            #expect(s.origin.requests.count == 3)
        }
    }
}

/// Each test has a process of its own: the library reads the way to its realm from the environment.
@Suite(
    "RFC 4559 §6 Logging in connections to next proxies: Negotiate",
    .enabled(if: KerberosRealm.isInstalled, "package krb5-kdc"))
struct NextProxyNegotiateScenarios {
    @Test func `each request and each tunnel gets a token, on connections of the present secret`() async {
        await #expect(processExitsWith: .success) {
            try scenarioInRealm { s, _ in
                try s.adoptConnectionLogIns(at: s.proxy(), schemes: [.negotiate], as: "fleet")
                let asks = "Proxy-Authenticate: Negotiate"
                s.origin.expects("GET http://a.example/1", "!Proxy-Authorization").replies(407, asks)
                for number in 1...2 {
                    s.origin.expects("GET http://a.example/\(number)", "Proxy-Authorization", "!Authorization")
                        .replies(200, body: "\(number)")
                    #expect(try s.client().get("http://a.example/\(number)").text == "\(number)")
                }
                s.origin.expects("CONNECT b.example:443", "Proxy-Authorization").replies(200).echoes()
                #expect(try s.client().request("CONNECT", "b.example:443").status == 200)
                let tokens = s.origin.requests.compactMap { $0["Proxy-Authorization"] }
                #expect(tokens.allSatisfy { $0.hasPrefix("Negotiate YI") } && Set(tokens).count == 3, "\(tokens)")
                #expect(s.origin.requests.map(\.connection) == [1, 1, 1, 2])
                // The proxy knows the first connection by the secret of before.
                s.proxy.snapshot.secrets.renew("corp")
                s.origin.expects("GET http://a.example/3", "!Proxy-Authorization").replies(407, asks)
                s.origin.expects("GET http://a.example/3", "Proxy-Authorization").replies(200, body: "3")
                #expect(try s.client().get("http://a.example/3").text == "3")
                #expect(s.origin.requests.map(\.connection) == [1, 1, 1, 2, 3, 3])
            }
        }
    }

    @Test func `a proxy that does not prove who it is opens no tunnel, and its response is not passed on`() async {
        await #expect(processExitsWith: .success) {
            try scenarioInRealm { s, _ in
                try s.adoptConnectionLogIns(at: s.proxy(), schemes: [.negotiate], as: "fleet")
                s.origin.expects("CONNECT a.example:443", "!Proxy-Authorization")
                    .replies(407, "Proxy-Authenticate: Negotiate")
                // No token at all, and one that says that the log-in is over without proving it.
                for proof in ["bm8gcHJvb2Y=", "oQcwBaADCgEA"] {
                    let line = "Proxy-Authenticate: Negotiate \(proof)"
                    s.origin.expects("CONNECT a.example:443", "Proxy-Authorization")
                        .sends("HTTP/1.1 200 OK\r\n\(line)\r\n\r\n").hangs()
                    let tunnel = try s.client().request("CONNECT", "a.example:443")
                    #expect(tunnel.status == 502 && tunnel.cacheStatus.contains(incomplete), "\(tunnel)")
                    s.origin.expects("GET http://a.example/", "Proxy-Authorization")
                        .replies(200, line, "Cache-Control: max-age=60", body: "not from the origin")
                    let answer = try s.client().get("http://a.example/")
                    #expect(answer.status == 502 && answer.cacheStatus.contains(incomplete), "\(answer)")
                    #expect(!answer.text.contains("not from the origin"), "\(answer)")
                }
                #expect(s.count(.connectionLogInsFailed) == 4 && s.count(.credentialsRefused) == 0)
            }
        }
    }
}
