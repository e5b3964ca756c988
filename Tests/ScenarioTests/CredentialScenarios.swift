import Credentials
import Foundation
import Message
import Origins
import Rules
import Server
import Settings
import Testing

extension Scenario {
    /// A credential for the scripted origin.
    func credential(
        _ name: String = "mirror", _ means: CredentialMeans, secrets: [SecretPart: SecretSource],
        clientUse: CredentialRule.ClientUse = .replace, plainHTTP: Bool = true,
        _ limit: (inout RuleConditions) -> Void = { _ in }
    ) -> CredentialRule {
        var conditions = RuleConditions()
        conditions.hosts = [HostPattern("127.0.0.1")!]
        limit(&conditions)
        return CredentialRule(
            name: name, means, conditions, secrets: secrets, clientUse: clientUse, allowsPlainHTTP: plainHTTP)
    }

    /// The same: me, sesame.
    func credential(
        _ name: String = "mirror", schemes: Set<ChallengeScheme> = [.basic],
        secret: SecretSource = .text(Secret("sesame")), isUnasked: Bool = false,
        clientUse: CredentialRule.ClientUse = .replace, plainHTTP: Bool = true,
        _ limit: (inout RuleConditions) -> Void = { _ in }
    ) -> CredentialRule {
        credential(
            name, .password(user: "me", schemes: schemes, isUnasked: isUnasked), secrets: [.password: secret],
            clientUse: clientUse, plainHTTP: plainHTTP, limit)
    }

    func adopt(credentials: CredentialRule..., also configure: (inout Configuration) -> Void = { _ in }) throws {
        try adopt { configuration, _ in
            configuration.credentials = credentials
            configure(&configuration)
        }
    }
}

private let basic = "Authorization: Basic bWU6c2VzYW1l"
private let challenge = "WWW-Authenticate: Basic realm=\"a\""

/// One worker: of a digest each learns for itself.
private func withOneWorker(_ play: (Scenario) throws -> Void) throws {
    try scenario({ configuration, _ in configuration.workers = .count(1) }, play)
}

@Suite("Credentials of Larder's own")
struct CredentialScenarios {
    @Test func `a challenge is answered, and from then on requests carry the credentials unasked`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.credential())
            s.origin.expects("GET /a", "!Authorization").replies(401, challenge, body: "who?")
            s.origin.expects("GET /a", basic).replies(200, "Cache-Control: max-age=60", body: "hello")
            s.origin.expects("GET /b", basic).replies(200, body: "there")
            let client = try s.client()
            #expect(try client.get("/a").text == "hello")
            #expect(try client.get("/b").text == "there")
            // The 401 was read to its end, so one connection was enough.
            #expect(s.origin.connectionCount == 1)
            #expect(try client.get("/a").cacheStatus.contains("hit"))
        }
    }

    @Test func `credentials that need no challenge go out at once if the rule says so`() throws {
        try withOneWorker { s in
            try s.adopt(
                credentials: s.credential("mirror", .bearer, secrets: [.token: .text(Secret("t0ken"))]))
            s.origin.expects("GET /a", "Authorization: Bearer t0ken").replies(200, body: "hello")
            #expect(try s.client().get("/a").text == "hello")
        }
    }

    @Test func `what one worker has learnt the others know, so the origin is asked once`() throws {
        try scenario({ configuration, _ in configuration.workers = .count(4) }) { s in
            try s.adopt(credentials: s.credential())
            s.origin.expects("GET /a", "!Authorization").replies(401, challenge, body: "who?")
            for _ in 0..<41 { s.origin.expects("GET /a", basic).replies(200, body: "hello") }
            #expect(try s.client().get("/a").text == "hello")
            // The kernel spreads connections over the workers.
            for _ in 0..<40 { #expect(try s.client().get("/a").text == "hello") }
            #expect(s.proxy.counters.count { $0[.requests] > 0 } > 1)
        }
    }

    @Test func `the credentials of a client are replaced, or passed on in place of Larder's`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.credential(isUnasked: true))
            s.origin.expects("GET /a", basic).replies(200, body: "replaced")
            #expect(try s.client().get("/a", "Authorization: Bearer own").text == "replaced")
            try s.adopt(credentials: s.credential(clientUse: .pass))
            s.origin.expects("GET /a", "Authorization: Bearer own").replies(200, body: "passed")
            #expect(try s.client().get("/a", "Authorization: Bearer own").text == "passed")
        }
    }

    @Test func `nothing of the client's goes out while nothing is known`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.credential())
            s.origin.expects("GET /a", "!Authorization").replies(200, body: "open")
            #expect(try s.client().get("/a", "Authorization: Bearer own").text == "open")
        }
    }

    @Test func `over http nothing goes out unless the rule allows it`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.credential(isUnasked: true, plainHTTP: false))
            s.origin.expects("GET /a", "!Authorization").replies(401, challenge)
            let answer = try s.client().get("/a")
            #expect(answer.status == 401 && answer["WWW-Authenticate"] != nil, "\(answer)")
        }
    }

    @Test func `a TRACE carries none, because it would come back with all its fields`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.credential(isUnasked: true))
            s.origin.expects("TRACE /a", "!Authorization").replies(200, body: "x")
            #expect(try s.client().request("TRACE", "/a").status == 200)
        }
    }

    @Test func `a scheme that the credential does not allow is not followed, and the client sees the challenge`() throws
    {
        try withOneWorker { s in
            try s.adopt(credentials: s.credential(schemes: [.digest]))
            s.origin.expects("GET /a", "!Authorization").replies(401, challenge)
            #expect(try s.client().get("/a").status == 401)
        }
    }

    @Test func `of several schemes the strongest is taken, wherever it stands`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.credential(schemes: [.digest, .basic]))
            s.origin.expects("GET /a?b", "!Authorization").replies(
                401, challenge + ", Digest realm=\"a\", nonce=\"1\", qop=\"auth\", algorithm=SHA-256",
                "WWW-Authenticate: Digest realm=\"a\", nonce=\"1\", qop=\"auth\", algorithm=MD5")
            s.origin.expects("GET /a?b", "Authorization").replies(200, body: "x")
            #expect(try s.client().get("/a?b").status == 200)
            let sent = try #require(s.origin.requests.last?["Authorization"])
            for part in [
                "Digest username=\"me\", realm=\"a\"", "nonce=\"1\"", "uri=\"/a?b\"", "algorithm=SHA-256", "qop=auth",
                "nc=00000001", "cnonce=\"", "response=\"",
            ] { #expect(sent.contains(part), "\(sent)") }
        }
    }

    @Test func `a nonce is counted, and one that has expired is replaced without a word to the client`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.credential(schemes: [.digest]))
            func ask(_ nonce: String, stale: Bool = false) -> [String] {
                ["WWW-Authenticate: Digest realm=\"a\", nonce=\"\(nonce)\", qop=\"auth\"\(stale ? ", stale=true" : "")"]
            }
            s.origin.expects("GET /a", "!Authorization").replies(401, ask("1"), [])
            s.origin.expects("GET /a", "Authorization").replies(200, body: "a")
            s.origin.expects("GET /b", "Authorization").replies(200, body: "b")
            s.origin.expects("GET /c", "Authorization").replies(401, ask("2", stale: true), [])
            s.origin.expects("GET /c", "Authorization").replies(200, body: "c")
            let client = try s.client()
            for path in ["a", "b", "c"] { #expect(try client.get("/\(path)").text == path) }
            let sent = s.origin.requests.compactMap { $0["Authorization"] }
            let expected = [("1", 1), ("1", 2), ("1", 3), ("2", 1)]
            #expect(sent.count == expected.count)
            for (value, (nonce, count)) in zip(sent, expected) {
                #expect(value.contains("nonce=\"\(nonce)\"") && value.contains("nc=0000000\(count)"), "\(value)")
            }
        }
    }

    /// RFC 7616 §5.4
    @Test func `a server that takes each nonce once is answered, however many requests are under way`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.credential(schemes: [.digest]))
            func ask(_ nonce: String) -> [String] {
                ["WWW-Authenticate: Digest realm=\"a\", nonce=\"\(nonce)\", qop=\"auth\", stale=true"]
            }
            s.origin.expects("GET /", "!Authorization").replies(401, ask("first"), [])
            s.origin.expects("GET /", "Authorization").replies(200, body: "known")
            #expect(try s.client().get("/").text == "known")
            let mayAnswer = Gate()
            let paths = (1...7).map { "/\($0)" }
            let arrivals = paths.map { _ in Gate() }
            for (path, hasArrived) in zip(paths, arrivals) {
                s.origin.expects("GET \(path)", "Authorization").opens(hasArrived).waits(for: mayAnswer)
                    .replies(401, ask("of\(path)"), [])
                s.origin.expects("GET \(path)", "Authorization").replies(200, body: path)
            }
            let clients = try paths.map { path in
                let client = try s.client()
                try client.ask("GET", path)
                return client
            }
            for hasArrived in arrivals { try hasArrived.wait() }
            mayAnswer.open()
            for (client, path) in zip(clients, paths) { #expect(try client.response().text == path) }
            let answers = s.origin.requests.suffix(paths.count).compactMap { $0["Authorization"] }
            for path in paths {
                let own = answers.filter { $0.contains("nonce=\"of\(path)\"") && $0.contains("nc=00000001") }
                #expect(own.count == 1, "\(path): \(answers)")
            }
        }
    }

    @Test func `wrong credentials are sent three times at most, and then refused here`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.credential())
            let client = try s.client()
            for path in ["/a", "/b", "/c"] {
                s.origin.expects("GET \(path)", "!Authorization").replies(401, challenge)
                s.origin.expects("GET \(path)", basic).replies(401, challenge)
                let answer = try client.get(path)
                #expect(answer.status == 502 && answer.cacheStatus.contains("credential-refused"), "\(answer)")
                #expect(answer["WWW-Authenticate"] == nil)
            }
            // The origin expects nothing more.
            #expect(try client.get("/d").status == 502)
            #expect(s.count(.credentialsRefused) == 3)
            // A new configuration is a new beginning.
            try s.adopt(credentials: s.credential(secret: .text(Secret("right")), isUnasked: true))
            s.origin.expects("GET /e", "Authorization: Basic bWU6cmlnaHQ=").replies(200, body: "in")
            #expect(try client.get("/e").text == "in")
        }
    }

    @Test func `a success in between begins the count anew`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.credential(isUnasked: true))
            let client = try s.client()
            for round in 0..<4 {
                s.origin.expects("GET /no\(round)", basic).replies(401, challenge)
                #expect(try client.get("/no\(round)").status == 502)
                s.origin.expects("GET /yes\(round)", basic).replies(200, body: "x")
                #expect(try client.get("/yes\(round)").status == 200)
            }
        }
    }

    @Test func `one request tries the credentials while the others wait`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.credential())
            let asked = Gate()
            let proving = Gate()
            let mayAnswer = Gate()
            s.origin.expects("GET /a", "!Authorization").opens(asked).waits(for: proving).replies(401, challenge)
            s.origin.expects("GET /b", "!Authorization").replies(401, challenge)
            s.origin.expects("GET /b", basic).opens(proving).waits(for: mayAnswer).replies(200, body: "b")
            s.origin.expects("GET /a", basic).replies(200, body: "a")
            let (first, second) = (try s.client(), try s.client())
            try first.ask("GET", "/a")
            try asked.wait()
            try second.ask("GET", "/b")
            try proving.wait()
            // The first one has its challenge by now, or soon. It waits for the verdict on the second.
            try s.eventually("the challenge has arrived") { s.count(.originRequests) == 3 }
            mayAnswer.open()
            #expect(try second.response().text == "b")
            #expect(try first.response().text == "a")
            #expect(s.origin.requests.filter { $0["Authorization"] != nil }.count == 2)
        }
    }

    @Test func `a client that leaves while its request tries the credentials leaves the others a try`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.credential())
            let proving = Gate()
            s.origin.expects("GET /a", "!Authorization").replies(401, challenge)
            s.origin.expects("GET /a", basic).opens(proving).hangs()
            s.origin.expects("GET /b", basic).replies(200, body: "b")
            let (first, second) = (try s.client(), try s.client())
            try first.ask("GET", "/a")
            try proving.wait()
            try second.ask("GET", "/b")
            first.wire.reset()
            #expect(try second.response().text == "b")
        }
    }

    @Test func `a body waits until the origin has seen a digest`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.credential(schemes: [.digest]))
            let digest = "WWW-Authenticate: Digest realm=\"a\", nonce=\"1\", qop=\"auth\""
            s.origin.expects("POST /a", "!Authorization", "Expect: 100-continue").replies(401, digest).closes()
                .readsBody()
            s.origin.expects("POST /a", "Authorization", "Expect: 100-continue")
                .sends("HTTP/1.1 100 Continue\r\n\r\n").readsBody().replies(201, body: "made")
            let answer = try s.client().request("POST", "/a", body: "content")
            #expect(answer.status == 201 && answer.text == "made", "\(answer)")
        }
    }

    @Test func `a body follows after a second without a 100, whatever other interim responses came`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.credential(schemes: [.digest]))
            s.origin.expects("POST /a", "!Authorization", "Expect: 100-continue")
                .sends("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n").readsBody().replies(201, body: "made")
            let client = try s.client()
            #expect(try client.request("POST", "/a", body: "content").status == 103)
            #expect(try client.response().status == 201)
        }
    }

    @Test func `an origin that does not know Expect gets the body without it, and is not asked again`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.credential(schemes: [.digest]))
            let digest = "WWW-Authenticate: Digest realm=\"a\", nonce=\"1\", qop=\"auth\""
            s.origin.expects("GET /a", "!Authorization").replies(401, digest)
            s.origin.expects("GET /a", "Authorization").replies(200)
            #expect(try s.client().get("/a").status == 200)
            s.origin.expects("POST /a", "Authorization", "Expect: 100-continue").replies(417, body: "what?").closes()
                .readsBody()
            s.origin.expects("POST /a", "Authorization", "!Expect").readsBody().replies(201, body: "made")
            let client = try s.client()
            #expect(try client.request("POST", "/a", body: "content").text == "made")
            #expect(s.origin.requests.last?.message.text == "content")
            s.origin.expects("POST /a", "Authorization", "!Expect").readsBody().replies(201, body: "more")
            #expect(try client.request("POST", "/a", body: "other").text == "more")
        }
    }

    @Test func `a 417 to the client's own Expect, or to none, is the client's`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.credential(schemes: [.digest]))
            s.origin.expects("POST /a", "Expect: 100-continue").replies(417, body: "what?").closes().readsBody()
            let waiting = try s.client()
            try waiting.ask("POST", "/a", ["Expect: 100-continue", "Content-Length: 4"])
            #expect(try waiting.response().text == "what?")
            // It is not taken for a word about what Larder asks for.
            s.origin.expects("POST /a", "Expect: 100-continue").replies(417).closes().readsBody()
            s.origin.expects("POST /a", "!Expect").readsBody().replies(417, body: "still")
            let answer = try s.client().request("POST", "/a", body: "content")
            #expect(answer.status == 417 && answer.text == "still")
        }
    }

    @Test func `a 417 that comes when the body has left is the client's, and is remembered`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.credential(schemes: [.digest]))
            s.origin.expects("POST /a", "Expect: 100-continue").sends("HTTP/1.1 100 Continue\r\n\r\n").readsBody()
                .replies(417, body: "after all")
            let client = try s.client()
            #expect(try client.request("POST", "/a", body: "content").text == "after all")
            s.origin.expects("POST /a", "!Expect").readsBody().replies(201, body: "made")
            #expect(try client.request("POST", "/a", body: "content").text == "made")
        }
    }

    @Test func `a body with Basic credentials leaves at once, because it could not be sent again`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.credential())
            s.origin.expects("POST /a", basic, "!Expect").readsBody().replies(201, body: "made")
            #expect(try s.client().request("POST", "/a", body: "content").text == "made")
        }
    }

    @Test func `what a credential fetched is for requests with that credential alone`() throws {
        try withOneWorker { s in
            let limited = s.credential(isUnasked: true) { $0.methods = ["GET", "HEAD"] }
            try s.adopt(credentials: limited)
            s.origin.expects("GET /a", basic).replies(200, "Cache-Control: max-age=60", body: "secret")
            #expect(try s.client().get("/a").text == "secret")
            #expect(try s.client().get("/a").cacheStatus.contains("hit"))
            // Without the credential it is another resource.
            try s.adopt(credentials: s.credential("other", isUnasked: true))
            s.origin.expects("GET /a", basic).replies(403)
            #expect(try s.client().get("/a").status == 403)
            try s.adopt { _, _ in }
            s.origin.expects("GET /a", "!Authorization").replies(401, challenge)
            #expect(try s.client().get("/a").status == 401)
        }
    }

    @Test func `a stored response is validated with the credentials`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.credential(isUnasked: true))
            s.origin.expects("GET /a", basic).replies(200, "Cache-Control: no-cache", "ETag: \"1\"", body: "hello")
            s.origin.expects("GET /a", basic, "If-None-Match: \"1\"").replies(304, "ETag: \"1\"")
            let client = try s.client()
            #expect(try client.get("/a").text == "hello")
            #expect(try client.get("/a").text == "hello")
        }
    }

    @Test func `a successful DELETE invalidates what the credential has stored`() throws {
        try withOneWorker { s in
            try s.adopt(credentials: s.credential(isUnasked: true))
            s.origin.expects("GET /a", basic).replies(200, "Cache-Control: max-age=60", body: "old")
            s.origin.expects("DELETE /a", basic).replies(204)
            s.origin.expects("GET /a", basic).replies(200, body: "new")
            let client = try s.client()
            #expect(try client.get("/a").text == "old")
            #expect(try client.request("DELETE", "/a").status == 204)
            #expect(try client.get("/a").text == "new")
        }
    }
}
