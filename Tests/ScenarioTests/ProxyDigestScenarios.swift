import Authentication
import Credentials
import Foundation
import LogIns
import Message
import Passwords
import Server
import Settings
import TLS
import Testing

@Suite("Access: Digest authentication (RFC 7616)")
struct ProxyDigestScenarios {
    private func withUsers(
        _ change: @escaping (inout Configuration, Scenario.Files) throws -> Void = { _, _ in },
        _ play: (Scenario) throws -> Void
    ) throws {
        try scenario(
            { configuration, files in
                let secret = try digestSecret(
                    user: Array("ann".utf8), realm: Array("larder".utf8), password: Array("secret".utf8), .sha256,
                    using: OpenSSLHashing())
                configuration.access.authentication.digest.usersFile = try files.write(
                    "users", "ann:larder:SHA-256:\(String(decoding: secret.bytes, as: UTF8.self))\n")
                configuration.access.connectPorts = [files.origin.port...files.origin.port]
                try change(&configuration, files)
            }, play)
    }

    /// A client that has been asked, and its connection.
    private struct Client {
        let wire: ScriptedClient
        var session: DigestSession
        private let origin: ScriptedOrigin

        init(_ s: Scenario, password: String = "secret") throws {
            wire = try s.client()
            origin = s.origin
            let refused = try wire.get("/")
            try #require(refused.status == 407 && refused["Connection"] == nil, "\(refused)")
            let challenge = try #require(refused["Proxy-Authenticate"])
            let read = try #require(
                parseChallenges([Array(challenge.utf8)[...]]).first.flatMap { DigestChallenge($0) }, "\(challenge)")
            session = try DigestSession(read, user: "ann", password: Secret(password))
        }

        mutating func authorization(_ method: String, _ uri: String) throws -> DigestAuthorization {
            try session.authorization(
                for: DigestRequest(method: Array(method.utf8), uri: Array(uri.utf8)), clientNonce: Array("c".utf8),
                using: OpenSSLHashing())
        }

        /// Sends a request, and has the answer prove that the proxy knows the password.
        mutating func request(
            _ method: String, _ target: String, _ fields: String..., expect status: Int
        ) throws -> SeenMessage {
            let sent = try authorization(method, target)
            try wire.ask(
                method, target, fields + ["Proxy-Authorization: \(String(decoding: sent.value, as: UTF8.self))"])
            let answer = try wire.response(to: method)
            #expect(answer.status == status, "\(answer)")
            let information = try #require(
                answer["Proxy-Authentication-Info"].flatMap { AuthenticationInfo(Array($0.utf8)[...]) }, "\(answer)")
            #expect(try sent.proof(in: information, using: OpenSSLHashing()) == .right)
            return answer
        }
    }

    @Test func `misses, hits, 304s and errors prove themselves, and no origin sees a credential`() throws {
        try withUsers { s in
            s.origin.expects("GET /a", "!Proxy-Authorization").replies(
                200, "Cache-Control: max-age=60", "ETag: \"1\"", "Proxy-Authentication-Info: of-the-origin")
            s.origin.expects("GET /b", "!Proxy-Authorization").replies(404)
            var client = try Client(s)
            let miss = try client.request("GET", "/a", expect: 200)
            #expect(miss["Proxy-Authentication-Info"]?.contains("of-the-origin") == false)
            for _ in 0..<2 { #expect(try client.request("GET", "/a", expect: 200)["Age"] != nil) }
            _ = try client.request("GET", "/a", "If-None-Match: \"1\"", expect: 304)
            _ = try client.request("HEAD", "/a", expect: 200)
            _ = try client.request("GET", "/b", expect: 404)
            _ = try client.request("GET", "/c", "Cache-Control: only-if-cached", expect: 504)
            try s.expect(.clientConnectionsAccepted, 1)
        }
    }

    @Test(arguments: [false, true])
    func `an answer that is denied proves itself, and so does the 200 that opens a tunnel`(_ isOpened: Bool) throws {
        try withUsers({ configuration, files in
            if isOpened { try files.intercept("127.0.0.1", in: &configuration) }
        }) { s in
            var client = try Client(s)
            _ = try client.request("GET", "http://169.254.169.254/", expect: 403)
            s.origin.expects("GET /in-the-tunnel", "!Proxy-Authorization").replies(200)
            _ = try client.request("CONNECT", s.origin.authority, expect: 200)
            try client.wire.send("GET /in-the-tunnel HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n")
            let inside = try client.wire.response()
            #expect(inside.status == 200 && inside["Proxy-Authentication-Info"] == nil)
        }
    }

    /// Plays with a client that covers bodies.
    private func withIntegrity(_ play: (Scenario, ScriptedClient, inout DigestSession) throws -> Void) throws {
        try withUsers({ configuration, _ in configuration.access.authentication.digest.protection = .authInt }) { s in
            let wire = try s.client()
            let challenge = try #require(try wire.get("/")["Proxy-Authenticate"])
            #expect(challenge.contains("qop=\"auth, auth-int\""))
            let alone = Array(challenge.replacingOccurrences(of: "auth, auth-int", with: "auth-int").utf8)
            let read = try #require(parseChallenges([alone[...]]).first.flatMap { DigestChallenge($0) })
            var session = try DigestSession(read, user: "ann", password: Secret("secret"))
            try play(s, wire, &session)
        }
    }

    private func covering(_ session: inout DigestSession, _ body: String, method: String = "POST") throws -> String {
        let sent = try session.authorization(
            for: DigestRequest(
                method: Array(method.utf8), uri: Array("/a".utf8),
                body: body.isEmpty ? .empty : .content(Array(body.utf8))), clientNonce: Array("c".utf8),
            using: OpenSSLHashing())
        return "Proxy-Authorization: \(String(decoding: sent.value, as: UTF8.self))"
    }

    @Test func `with auth-int a body goes on when it has been proven, and not before`() throws {
        try withIntegrity { s, wire, session in
            s.origin.expects("GET /a").replies(200, "Cache-Control: no-store", body: "got")
            #expect(try wire.get("/a", covering(&session, "", method: "GET")).text == "got")
            for parts in [["all of it"], ["in ", "two parts"]] {
                let body = parts.joined()
                s.origin.expects("POST /a", "!Proxy-Authorization").replies(200, body: "taken")
                try wire.ask(
                    "POST", "/a", ["Content-Length: \(body.utf8.count)", try covering(&session, body)])
                for part in parts { try wire.send(part) }
                let answer = try wire.response(to: "POST")
                #expect(answer.text == "taken" && answer["Proxy-Authentication-Info"] == nil, "\(answer)")
                #expect(s.origin.requests.last?.message.text == body)
            }
            // Somebody has changed the body. The origin sees nothing of it.
            try wire.ask("POST", "/a", ["Content-Length: 5", try covering(&session, "right")])
            try wire.send("wrong")
            #expect(try wire.response(to: "POST").status == 407)
        }
    }

    @Test func `a client with auth-int that waits for a 100 gets it before its body is proven`() throws {
        try withIntegrity { s, wire, session in
            s.origin.expects("POST /a").replies(200, body: "taken")
            try wire.ask(
                "POST", "/a", ["Content-Length: 4", "Expect: 100-continue", try covering(&session, "body")])
            #expect(try wire.head().startLine.contains(" 100 "))
            try wire.send("body")
            #expect(try wire.response(to: "POST").text == "taken")
        }
    }

    @Test func `a body that is too long for auth-int is asked for with auth`() throws {
        try withIntegrity { s, wire, session in
            let long = String(repeating: "x", count: 65_537)
            try wire.ask(
                "POST", "/a", ["Content-Length: \(long.utf8.count)", try covering(&session, long)])
            try wire.send(long)
            let refused = try wire.response(to: "POST")
            #expect(refused.status == 407, "\(refused)")
            #expect(refused["Proxy-Authenticate"]?.contains("qop=\"auth\"") == true, "\(refused)")
            try wire.ask("POST", "/a", ["Transfer-Encoding: chunked", try covering(&session, "body")])
            let unknown = try wire.response(to: "POST")
            #expect(unknown.status == 407, "\(unknown)")
            #expect(unknown["Proxy-Authenticate"]?.contains("qop=\"auth\"") == true, "\(unknown)")
        }
    }

    @Test func `a WebSocket has the identity of its handshake`() throws {
        try withUsers { s in
            s.origin.expects("GET /socket", "Upgrade: websocket", "!Proxy-Authorization").sends(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello")
            var client = try Client(s)
            let sent = try client.authorization("GET", "/socket")
            try client.wire.ask(
                "GET", "/socket",
                [
                    "Connection: Upgrade", "Upgrade: websocket",
                    "Proxy-Authorization: \(String(decoding: sent.value, as: UTF8.self))",
                ])
            let head = try client.wire.head()
            #expect(head.startLine.contains(" 101 "))
            #expect(head["Proxy-Authentication-Info"]?.contains("rspauth=") == true, "\(head)")
        }
    }

    @Test func `a tunnel ends with the user of its CONNECT`() throws {
        try withUsers { s in
            var (client, other) = (try Client(s), try Client(s))
            _ = try client.request("CONNECT", s.origin.authority, expect: 200)
            _ = try other.request("CONNECT", s.origin.authority, expect: 200)
            s.origin.expects("GET /a").replies(200, body: "a")
            try client.wire.send("GET /a HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n")
            #expect(try client.wire.response().text == "a")
            let shelf = s.proxy.snapshot.authentication
            var material = shelf.material
            material.digestUsers = DigestFile()
            s.proxy.adopt(material, for: shelf)
            try client.wire.expectClosed()
            try other.wire.expectClosed()
        }
    }

    @Test func `an interim head has no proof, and the final one has`() throws {
        try withUsers { s in
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            var client = try Client(s)
            let sent = try client.authorization("GET", "/a")
            try client.wire.ask(
                "GET", "/a", ["Proxy-Authorization: \(String(decoding: sent.value, as: UTF8.self))"])
            let hints = try client.wire.head()
            #expect(hints.startLine.contains(" 103 ") && hints["Proxy-Authentication-Info"] == nil, "\(hints)")
            let final = try client.wire.response()
            #expect(final.status == 200 && final["Proxy-Authentication-Info"] != nil, "\(final)")
        }
    }

    @Test func `a request that is sent again by somebody who saw it is stale, whichever worker gets it`() throws {
        try withUsers { s in
            for _ in 0..<8 { s.origin.expects("GET /a").replies(200, "Cache-Control: no-store") }
            var client = try Client(s)
            let sent = try (0..<8).map { _ in
                String(decoding: try client.authorization("GET", "/a").value, as: UTF8.self)
            }
            // Each on a connection of its own, in reverse: the workers share what has been used.
            for value in sent.reversed() {
                #expect(try s.client().get("/a", "Proxy-Authorization: \(value)").status == 200)
            }
            for value in sent {
                let refused = try s.client().get("/a", "Proxy-Authorization: \(value)")
                #expect(refused.status == 407)
                #expect(refused["Proxy-Authenticate"]?.hasSuffix(", stale=true") == true, "\(refused)")
            }
            try s.expect(.authenticationStale, 8)
        }
    }

    @Test func `who fails too often waits on every connection, and the counts say so`() throws {
        try withUsers { s in
            var client = try Client(s, password: "guess")
            for _ in 0..<10 {
                let sent = try client.authorization("GET", "/a")
                let answer = try client.wire.get(
                    "/a", "Proxy-Authorization: \(String(decoding: sent.value, as: UTF8.self))")
                #expect(answer.status == 407)
                #expect(answer["Proxy-Authenticate"]?.contains("stale") == false)
            }
            let sent = try client.authorization("GET", "/a")
            for _ in 0..<4 {
                let waits = try s.client().get(
                    "/a", "Proxy-Authorization: \(String(decoding: sent.value, as: UTF8.self))")
                #expect(waits.status == 429 && waits["Retry-After"] != nil, "\(waits)")
            }
            try s.expect(.authenticationWaits, 4)
            try s.expect(.authenticationFailures, 11)
        }
    }

    @Test func `the answers to failures come later each time, and a client that leaves meanwhile harms nothing`() throws
    {
        try withUsers { s in
            s.origin.expects("GET /a").replies(200)
            var client = try Client(s, password: "guess")
            let began = ContinuousClock.now
            for _ in 0..<4 {
                let sent = try client.authorization("GET", "/a")
                #expect(
                    try client.wire.get(
                        "/a", "Proxy-Authorization: \(String(decoding: sent.value, as: UTF8.self))"
                    ).status == 407)
            }
            // 50, 100 and 200 ms.
            #expect(ContinuousClock.now - began >= .milliseconds(350))
            let sent = try client.authorization("GET", "/a")
            try client.wire.ask(
                "GET", "/a", ["Proxy-Authorization: \(String(decoding: sent.value, as: UTF8.self))"])
            try s.expect(.authenticationFailures, 6)
            client.wire.wire.reset()
            try s.eventually("the client has left") { s.closes(.clientLeft) == 1 }
            var other = try Client(s)
            _ = try other.request("GET", "/a", expect: 200)
        }
    }

    @Test func `Digest is offered before Basic, and either is accepted`() throws {
        try withUsers({ configuration, files in
            configuration.access.authentication.basic.usersFile = try files.write(
                "basic", "bob:\(try hash(password: Array("secret".utf8)))\n")
        }) { s in
            for path in ["/a", "/b"] { s.origin.expects("GET \(path)").replies(200, "Cache-Control: no-store") }
            let refused = try s.client().get("/a")
            let offers = refused.head.all("Proxy-Authenticate")
            #expect(offers.count == 2 && offers[0].hasPrefix("Digest ") && offers[1].hasPrefix("Basic "), "\(offers)")
            var client = try Client(s)
            _ = try client.request("GET", "/a", expect: 200)
            let bob = Data("bob:secret".utf8).base64EncodedString()
            let answer = try client.wire.get("/b", "Proxy-Authorization: Basic \(bob)")
            #expect(answer.status == 200 && answer["Proxy-Authentication-Info"] == nil)
        }
    }

    @Test func `neither log nor page shows a credential`() throws {
        try withUsers { s in
            s.origin.expects("GET /a").replies(200)
            var client = try Client(s)
            let answer = try client.request("GET", "/a", expect: 200)
            let wrong = try client.wire.get("/a", "Proxy-Authorization: Digest username=\"ann\", response=\"5ec2e7\"")
            #expect(wrong.status == 407 && !wrong.text.contains("5ec2e7"))
            let log = try s.logLines().joined(separator: "\n")
            #expect(log.contains("\"user\":\"ann\""))
            for text in ["5ec2e7", "rspauth", "cnonce", answer["Proxy-Authentication-Info"] ?? "?"] {
                #expect(!log.contains(text))
            }
        }
    }
}
