import Credentials
import Message
import Routing
import Origins
import Rules
import Server
import Settings
import TLS
import Testing

private let negotiateMessage = "Authorization: \(NTLMPeer.beginning)"
private let challenge = "WWW-Authenticate: \(NTLMPeer.challengeValue)"
private let user = NTLMCredential(user: "me", domain: "CORP", password: Secret("sesame"))

/// Whether the third request has the third message, as the user answers the challenge of the script.
private func isLoggedIn(_ s: Scenario) throws -> Bool {
    try NTLMPeer.accepts(s.origin.requests.dropFirst(2).first?["Authorization"], of: user, host: "127.0.0.1")
}

extension Scenario {
    fileprivate func ntlm(
        _ name: String = "corp", among schemes: Set<ChallengeScheme> = [.ntlm],
        _ limit: (inout RuleConditions) -> Void = { _ in }
    ) -> CredentialRule {
        credential(
            name,
            .password(
                user: "me", schemes: schemes, isUnasked: false, names: DirectoryNames(domain: "CORP")),
            secrets: [.password: .text(Secret("sesame"))], limit)
    }

    /// The origin asks for NTLM, on a connection that is not logged in.
    fileprivate func expectsQuestion(_ path: String = "/a") {
        origin.expects("GET \(path)", "!Authorization").replies(401, "WWW-Authenticate: NTLM", body: "who?")
    }

    /// The origin lets a GET log in, and answers it.
    fileprivate func expectsLogIn(_ path: String = "/a", body: String = "hello") {
        origin.expects("GET \(path)", negotiateMessage).replies(401, challenge, body: "go on")
        origin.expects("GET \(path)", "Authorization").replies(200, "Cache-Control: no-store", body: body)
    }

    fileprivate var connections: [Int] { origin.requests.map(\.connection) }

    /// Nobody else uses a worker that could have learnt the challenge.
    fileprivate static func withOneWorker(_ play: (Scenario) throws -> Void) throws {
        try scenario({ configuration, _ in configuration.workers = .count(1) }, play)
    }
}

private func withOneWorker(_ play: (Scenario) throws -> Void) throws { try Scenario.withOneWorker(play) }

@Suite("[MS-NTHT] Larder logs in to origins with NTLM")
struct NTLMScenarios {
    @Test func `a connection is logged in once, and carries the requests of all clients from then on`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.ntlm())
            s.expectsQuestion()
            s.expectsLogIn()
            s.origin.expects("GET /b", "!Authorization").replies(200, body: "there")
            s.origin.expects("GET /c", "!Authorization").replies(200, body: "everywhere")
            let (client, other) = (try s.client(), try s.client())
            #expect(try client.get("/a", "Authorization: Basic eDp5").text == "hello")
            #expect(try client.get("/b").text == "there")
            #expect(try other.get("/c").text == "everywhere")
            #expect(s.connections == [1, 2, 2, 2, 2])
            #expect(try isLoggedIn(s))
            #expect(s.count(.connectionLogIns) == 1 && s.count(.credentialsSent) == 1)
        }
    }

    @Test func `a client sees nothing of the log-in`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.ntlm())
            s.expectsQuestion()
            s.origin.expects("GET /a", negotiateMessage).replies(401, challenge)
            s.origin.expects("GET /a", "Authorization").replies(
                200, "WWW-Authenticate: NTLM bGFzdA==", "persistent-auth: true", "Cache-Control: max-age=60",
                body: "hello")
            let client = try s.client()
            for _ in 1...2 {
                let answer = try client.get("/a")
                #expect(answer.text == "hello")
                #expect(answer["WWW-Authenticate"] == nil && answer["Persistent-Auth"] == nil, "\(answer)")
            }
        }
    }

    @Test func `what is fetched over such a connection is stored for the credential`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.ntlm())
            s.expectsQuestion()
            s.origin.expects("GET /a", negotiateMessage).replies(401, challenge)
            s.origin.expects("GET /a", "Authorization").replies(200, "Cache-Control: max-age=60", body: "hello")
            let client = try s.client()
            #expect(try client.get("/a").text == "hello")
            #expect(try client.get("/a").cacheStatus.contains("hit"))
        }
    }

    @Test func `other requests never get the connection, and those of the credential get no other one`() throws {
        try withOneWorker { s in
            func only(_ path: String) -> (inout RuleConditions) -> Void {
                { $0.paths = [PathPattern(path)!] }
            }
            try s.adopt(credentials: s.ntlm("one", only("/one/*")), s.ntlm("two", only("/two/*")))
            let client = try s.client()
            for path in ["/one/a", "/two/a"] {
                s.expectsQuestion(path)
                s.expectsLogIn(path)
                #expect(try client.get(path).text == "hello")
            }
            for path in ["/one/b", "/two/b", "/plain"] {
                s.origin.expects("GET \(path)", "!Authorization").replies(200, "Cache-Control: no-store")
                #expect(try client.get(path).status == 200)
            }
            // A connection that has asked for NTLM is used by nobody afterwards: 1 and 3.
            #expect(s.connections == [1, 2, 2, 3, 4, 4, 2, 4, 5])
        }
    }

    // MARK: requests with content

    @Test func `content leaves once, with the last message, when the origin has accepted it`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.ntlm())
            s.origin.expects("POST /a", "!Authorization", "Expect: 100-continue").replies(401, "WWW-Authenticate: NTLM")
                .closes().readsBody()
            s.origin.expects(
                "HEAD /a", negotiateMessage, "!Content-Length", "!Content-Type", "!Expect", "!If-Match",
                "!X-HTTP-Method-Override", "!Transfer-Encoding"
            ).replies(401, challenge, "Content-Length: 7")
            s.origin.expects("POST /a", "Authorization", "Expect: 100-continue", "Content-Length: 5").sends(
                "HTTP/1.1 100 Continue\r\n\r\n"
            ).readsBody().replies(200)
            let client = try s.client()
            let answer = try client.request(
                "POST", "/a", "Content-Type: text/plain", "If-Match: \"x\"", "X-HTTP-Method-Override: PUT",
                body: "hello")
            #expect(answer.status == 200)
            #expect(s.origin.requests.map { $0.message.text } == ["", "", "hello"])
            #expect(s.connections == [1, 2, 2])
            #expect(try isLoggedIn(s))
        }
    }

    @Test func `content is lost to nobody if the origin refuses the last message`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.ntlm())
            s.origin.expects("POST /a", "!Authorization").replies(401, "WWW-Authenticate: NTLM").closes().readsBody()
            s.origin.expects("HEAD /a", negotiateMessage).replies(401, challenge, "Content-Length: 0")
            s.origin.expects("POST /a", "Authorization").replies(401, "WWW-Authenticate: NTLM").closes().readsBody()
            let answer = try s.client().request("POST", "/a", body: "hello")
            #expect(answer.status == 502 && answer.cacheStatus.contains("detail=credential-refused"))
            #expect(s.origin.requests.allSatisfy { $0.message.body.isEmpty })
        }
    }

    @Test func `where nobody asks for the log-in, content goes out as it is`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.ntlm())
            s.expectsQuestion()
            s.origin.expects("GET /a", negotiateMessage).replies(401, challenge, "Connection: close").closes()
            #expect(try s.client().get("/a").status == 502)
            s.origin.expects("HEAD /open", negotiateMessage).replies(200, "Content-Length: 9")
            s.origin.expects("POST /open", "!Authorization", "Expect: 100-continue").sends(
                "HTTP/1.1 100 Continue\r\n\r\n"
            ).readsBody().replies(201)
            #expect(try s.client().request("POST", "/open", body: "hello").status == 201)
            #expect(s.origin.requests.last.map { $0.message.text } == "hello")
            s.origin.expects("HEAD /odd", negotiateMessage).replies(405, "Content-Length: 9")
            s.origin.expects("POST /odd", "!Authorization").replies(401, "WWW-Authenticate: NTLM").closes().readsBody()
            let answer = try s.client().request("POST", "/odd", body: "hello")
            #expect(answer.status == 502 && answer.cacheStatus.contains("detail=credential-log-in-incomplete"))
            #expect(s.count(.connectionLogIns) == 0)
        }
    }

    // MARK: the messages of the origin

    @Test func `a challenge is read to its end, in whatever pieces it comes`() throws {
        let chunked = "HTTP/1.1 401 x\r\n\(challenge)\r\nTransfer-Encoding: chunked\r\n\r\n"
        let counted = "HTTP/1.1 401 x\r\n\(challenge)\r\nContent-Length: 9\r\n\r\n"
        let pieces: [(String, String)] = [
            (counted, "nine byte"), (counted + "nine", " byte"), (chunked + "5\r\nfi", "ve!\r\n0\r\n\r\n"),
            (chunked + "0\r\n", "\r\n"),
        ]
        for (first, second) in pieces {
            try withOneWorker { s in
                try s.adopt(credentials: s.ntlm())
                let isRead = Gate()
                s.expectsQuestion()
                s.origin.expects("GET /a", negotiateMessage).sends(first).waits(for: isRead).sends(second)
                s.origin.expects("GET /a", "Authorization").replies(200, body: "hello")
                let client = try s.client()
                try client.ask("GET", "/a")
                try s.eventually("Larder has read the first piece") { s.count(.bytesFromOrigins) >= first.utf8.count }
                isRead.open()
                #expect(try client.response().text == "hello", "\(first)")
                #expect(s.connections == [1, 2, 2])
            }
        }
    }

    /// Each is the answer to the first message, and what follows it.
    static let incomplete: [(name: String, answer: String)] = [
        ("it closes", "HTTP/1.1 401 x\r\n\(challenge)\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
        ("it ends with its connection", "HTTP/1.1 401 x\r\n\(challenge)\r\n\r\nwho?"),
        ("its body is too long", "HTTP/1.1 401 x\r\n\(challenge)\r\nContent-Length: 65537\r\n\r\n"),
        (
            "its chunks are too long",
            "HTTP/1.1 401 x\r\n\(challenge)\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n"
                + String(repeating: "x", count: 70_000)
        ),
        ("its chunks are none", "HTTP/1.1 401 x\r\n\(challenge)\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n"),
        ("something follows it", "HTTP/1.1 401 x\r\n\(challenge)\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"),
        ("it is no message of NTLM", "HTTP/1.1 401 x\r\nWWW-Authenticate: NTLM bm8h\r\nContent-Length: 0\r\n\r\n"),
    ]

    @Test(arguments: incomplete)
    func `a challenge that leads nowhere fails the request, and nothing is proven`(name: String, answer: String) throws
    {
        try withOneWorker { s in
            try s.adopt(credentials: s.ntlm())
            s.expectsQuestion()
            s.origin.expects("GET /a", negotiateMessage).sends(answer).closes()
            let answer = try s.client().get("/a")
            #expect(
                answer.status == 502 && answer.cacheStatus.contains("detail=credential-log-in-incomplete"), "\(answer)")
            #expect(s.connections == [1, 2])
            #expect(s.count(.credentialsSent) == 0 && s.count(.connectionLogInsFailed) == 1)
        }
    }

    @Test func `a connection that ends behind the last message fails the request`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.ntlm())
            s.expectsQuestion()
            s.origin.expects("GET /a", negotiateMessage).replies(401, challenge)
            s.origin.expects("GET /a", "Authorization").closes()
            let answer = try s.client().get("/a")
            #expect(answer.status == 502 && answer.cacheStatus.contains("detail=credential-log-in-incomplete"))
            // The credentials are not refused: the next request tries them.
            s.expectsLogIn()
            #expect(try s.client().get("/a").text == "hello")
            #expect(s.count(.credentialsRefused) == 0)
        }
    }

    @Test func `three refusals end it`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.ntlm())
            for _ in 1...3 {
                s.expectsQuestion()
                s.origin.expects("GET /a", negotiateMessage).replies(401, challenge)
                s.origin.expects("GET /a", "Authorization").replies(401, "WWW-Authenticate: NTLM")
                let answer = try s.client().get("/a")
                #expect(answer.status == 502 && answer.cacheStatus.contains("detail=credential-refused"))
            }
            #expect(try s.client().get("/a").status == 502)
            #expect(s.count(.credentialsRefused) == 3 && s.origin.requests.count == 9)
            // Each connection is of no use any more.
            try s.expect(.originConnectionsClosed, 6)
        }
    }

    @Test func `an origin that does not care for the log-in answers, and the connection is not logged in`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.ntlm())
            s.expectsQuestion()
            s.origin.expects("GET /a", negotiateMessage).replies(401, challenge)
            s.origin.expects("GET /a", "Authorization").replies(200).closes()
            let client = try s.client()
            try client.get("/a")
            try s.expect(.originConnectionsClosed, 2)
            s.origin.expects("GET /open", negotiateMessage).replies(200, "Cache-Control: no-store", body: "open")
            #expect(try client.get("/open").text == "open")
            s.expectsLogIn("/b")
            #expect(try client.get("/b").text == "hello")
            #expect(s.count(.connectionLogIns) == 2)
        }
    }

    // MARK: connections that are logged in

    @Test func `an origin that asks again on such a connection is answered once more`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.ntlm())
            s.expectsQuestion()
            s.expectsLogIn()
            let client = try s.client()
            try client.get("/a")
            s.expectsQuestion("/b")
            s.expectsLogIn("/b", body: "again")
            #expect(try client.get("/b").text == "again")
            s.expectsQuestion("/c")
            let answer = try client.get("/c")
            #expect(answer.status == 502 && answer.cacheStatus.contains("detail=credential-refused"))
            #expect(s.connections == [1, 2, 2, 2, 2, 2, 2])
        }
    }

    @Test func `an origin that asks again and ends the connection is answered on another one`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.ntlm())
            s.expectsQuestion()
            s.expectsLogIn()
            let client = try s.client()
            try client.get("/a")
            s.origin.expects("GET /b", "!Authorization").replies(401, "WWW-Authenticate: NTLM", "Connection: close")
            s.expectsLogIn("/b", body: "again")
            let answer = try client.get("/b")
            #expect(answer.status == 200, "\(answer.head) \(answer.text)")
            #expect(s.connections == [1, 2, 2, 2, 3, 3])
        }
    }

    @Test func `content that has left on such a connection is not sent again, and the client gets the 401`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.ntlm()) { configuration in
                var connections = OriginRule.Connections()
                connections.carriesBodies = true
                configuration.origins = [OriginRule(RuleConditions(), connections: connections, number: 1)]
            }
            s.expectsQuestion()
            s.expectsLogIn()
            let client = try s.client()
            try client.get("/a")
            s.origin.expects("POST /b", "!Authorization", "!Expect").replies(401, "WWW-Authenticate: NTLM")
            #expect(try client.request("POST", "/b", body: "hello").status == 401)
            #expect(s.count(.credentialsRefused) == 0)
        }
    }

    @Test func `a new secret, or a cleared session, ends the use of what is logged in`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.ntlm())
            let client = try s.client()
            s.expectsQuestion()
            s.expectsLogIn()
            try client.get("/a")
            try s.expect(.originConnectionsClosed, 1)
            try s.renew("corp")
            // No request is needed for that.
            try s.expect(.originConnectionsClosed, 2)
            s.expectsQuestion("/b")
            s.expectsLogIn("/b")
            #expect(try client.get("/b").text == "hello")
            #expect(s.connections == [1, 2, 2, 3, 4, 4])
        }
    }

    @Test func `a connection in use closes behind its response if the secret has changed meanwhile`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.ntlm())
            let (client, other) = (try s.client(), try s.client())
            let isRenewed = Gate()
            s.expectsQuestion()
            s.origin.expects("GET /a", negotiateMessage).replies(401, challenge)
            s.origin.expects("GET /a", "Authorization").waits(for: isRenewed).replies(200, body: "late")
            try client.ask("GET", "/a")
            try s.eventually("the origin has the last message") { s.origin.requests.count == 3 }
            try s.renew("corp")
            s.expectsQuestion("/b")
            s.expectsLogIn("/b")
            #expect(try other.get("/b").text == "hello")
            isRenewed.open()
            #expect(try client.response().text == "late")
            try s.expect(.originConnectionsClosed, 3)
        }
    }

    @Test func `a connection that was closed while it was idle is replaced by one that is logged in`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.ntlm())
            let client = try s.client()
            s.expectsQuestion()
            s.origin.expects("GET /a", negotiateMessage).replies(401, challenge)
            s.origin.expects("GET /a", "Authorization").replies(200).closes()
            try client.get("/a")
            try s.expect(.originConnectionsClosed, 2)
            s.expectsLogIn("/b")
            #expect(try client.get("/b").text == "hello")
            #expect(s.connections == [1, 2, 2, 3, 3])
        }
    }

    @Test func `one request tries the credentials, and the others wait for the verdict`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.ntlm())
            let (first, second) = (try s.client(), try s.client())
            let (asks, mayAnswer) = (Gate(), Gate())
            s.origin.expects("GET /b", "!Authorization").waits(for: asks).replies(401, "WWW-Authenticate: NTLM")
            s.expectsQuestion()
            s.origin.expects("GET /a", negotiateMessage).opens(asks).waits(for: mayAnswer).replies(401, challenge)
            s.origin.expects("GET /a", "Authorization").replies(401, "WWW-Authenticate: NTLM")
            try second.ask("GET", "/b")
            try s.eventually("the second has asked") { s.origin.requests.count == 1 }
            try first.ask("GET", "/a")
            // Its 401 is read: its connection closes.
            try s.expect(.originConnectionsClosed, 2)
            // The verdict is no verdict about the second, which asks anew and tries.
            s.origin.expects("GET /b", "!Authorization").replies(200, body: "open")
            mayAnswer.open()
            #expect(try first.response().status == 502)
            #expect(try second.response().text == "open")
        }
    }

    @Test func `over TLS the last message is bound to the certificate of the origin`() throws {
        let certificate = try MadeCertificate(for: "IP:127.0.0.1")
        let origin = try TLSOrigin(
            certificate, .answers("HTTP/1.1 401 x\r\n\(challenge)\r\nContent-Length: 0\r\n\r\n"))
        defer { origin.end() }
        try withOneWorker { s in
            let rule = s.ntlm()
            try s.adopt { configuration, files in
                configuration.tls.caFile = try files.write("ca.pem", certificate.certificate)
                configuration.credentials = [rule]
            }
            #expect(try s.client().get(origin.url("/a")).status == 502)
            let values = origin.heads.compactMap { head in
                head.split(separator: "\r\n").first { $0.hasPrefix("Authorization: ") }.map {
                    String($0.dropFirst("Authorization: ".count))
                }
            }
            let base64 = certificate.certificate.split(separator: "\n").filter { !$0.hasPrefix("-") }.joined()
            let hash = Digest.sha256(try #require(decodeBase64(Array(base64.utf8))))
            #expect(values.count == 2 && values[0] == NTLMPeer.beginning, "\(values)")
            #expect(try NTLMPeer.accepts(values.last, of: user, host: "127.0.0.1", endPoint: hash))
            #expect(try !NTLMPeer.accepts(values.last, of: user, host: "127.0.0.1"))
        }
    }

    // MARK: next proxies

    @Test func `no connection is logged in through a proxy that reads the requests`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.ntlm(among: [.ntlm]) { $0.hosts = [HostPattern("a.example")!] }) {
                $0.routes = [
                    RouteRule(
                        RuleConditions(),
                        via: [.proxy(NextProxy(Endpoint(host: "127.0.0.1", port: s.origin.port), .http))], number: 1)
                ]
            }
            s.origin.expects("GET http://a.example/", "!Authorization").replies(401, "WWW-Authenticate: NTLM")
            #expect(try s.client().get("http://a.example/").status == 401)
            #expect(s.origin.requests.count == 1)
        }
    }

    @Test func `the weaker scheme is answered where no connection can be logged in`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.ntlm(among: [.ntlm, .basic]) { $0.hosts = [HostPattern("a.example")!] }) {
                $0.routes = [
                    RouteRule(
                        RuleConditions(),
                        via: [.proxy(NextProxy(Endpoint(host: "127.0.0.1", port: s.origin.port), .http))], number: 1)
                ]
            }
            s.origin.expects("GET http://a.example/", "!Authorization").replies(
                401, "WWW-Authenticate: NTLM", "WWW-Authenticate: Basic realm=\"a\"")
            s.origin.expects("GET http://a.example/", "Authorization: Basic bWU6c2VzYW1l").replies(200, body: "hello")
            #expect(try s.client().get("http://a.example/").text == "hello")
        }
    }

    @Test func `without a ticket nothing is sent, and the request fails`() throws {
        try withOneWorker { s in
            try s.adopt(
                credentials: s.credential(
                    "corp", .ticket(principal: nil, keytab: "/nowhere/larder.keytab", service: "HTTP"),
                    secrets: [.keytab: .text(Secret("a key"))]))
            s.origin.expects("GET /a", "!Authorization").replies(401, "WWW-Authenticate: Negotiate")
            let answer = try s.client().get("/a")
            #expect(answer.status == 502 && answer.cacheStatus.contains("detail=credential-log-in-incomplete"))
            #expect(s.origin.requests.count == 1)
        }
    }
}

extension Scenario {
    /// As `larder session clear` and a file that has changed do.
    fileprivate func renew(_ name: String) throws { proxy.snapshot.secrets.renew(name) }
}
