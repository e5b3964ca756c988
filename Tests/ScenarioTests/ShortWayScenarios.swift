import Access
import Credentials
import Foundation
import LogIns
import Passwords
import Rules
import Server
import Settings
import TLS
import Testing

/// Successive hits on one connection: the second one takes the decisions of the first (ShortWay in Transaction). Whatever else may have changed
/// between the two, the request is decided about as if it were the first.
@Suite("Hits behind rules and passwords")
struct ShortWayScenarios {
    private static func rule(_ effect: AccessRule.Effect, _ set: (inout AccessRule.Conditions) -> Void = { _ in })
        -> AccessRule
    {
        var rule = AccessRule(effect: effect, number: 1)
        set(&rule.conditions)
        return rule
    }
    private static let allow = rule(.allow)
    private static func credentials(_ name: String, _ password: String = "secret") -> String {
        "Proxy-Authorization: Basic \(Data("\(name):\(password)".utf8).base64EncodedString())"
    }
    private static func readUsers(
        _ names: [String], _ configuration: inout Configuration, _ files: Scenario.Files
    ) throws {
        let lines = try names.map { "\($0):\(try hash(password: Array("secret".utf8)))\n" }
        configuration.access.authentication.basic.usersFile = try files.write("users", lines.joined())
    }

    /// Two hits for /a; the second one is decided by the first.
    private static func warm(_ s: Scenario, _ client: ScriptedClient, _ fields: [String] = []) throws {
        s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "stored")
        let before = s.count(.hitsByEarlierDecision)
        for _ in 0..<3 {
            try client.ask("GET", "/a", fields)
            #expect(try client.response().text == "stored")
        }
        try s.expect(.hitsByEarlierDecision, before + 1)
    }

    // MARK: what takes the short way

    @Test func `a hit behind access rules is answered as before it`() throws {
        try scenario({ configuration, _ in
            configuration.access.rules = [Self.rule(.deny(reason: nil)) { $0.ports = [22...25] }, Self.allow]
        }) { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", "X-Own: 1", body: "stored")
            s.origin.expects("GET /b").replies(200, "Cache-Control: max-age=60", body: "other")
            let client = try s.client()
            try client.get("/a")
            try client.get("/b")
            let first = try client.get("/a")
            let second = try client.get("/a")
            #expect(try client.get("/b").text == "other")
            #expect(first.status == second.status && first.text == second.text)
            #expect(first["X-Own"] == second["X-Own"] && first["Date"] == second["Date"])
            #expect(second.cacheStatus.hasPrefix("larder; hit; ttl="))
            try s.expect(.hitsByEarlierDecision, 2)
            try s.expect(.hits, 3)
        }
    }

    @Test func `a hit behind a password names its user in the log`() throws {
        try scenario({ try Self.readUsers(["ann"], &$0, $1) }) { s in
            let client = try s.client()
            try Self.warm(s, client, [Self.credentials("ann")])
            let lines = try s.logLines()
            #expect(lines.count == 3)
            #expect(lines.allSatisfy { $0.contains(#""user":"ann""#) && !$0.contains("secret") })
        }
    }

    @Test func `a rule's ttl is the lifetime of a hit`() throws {
        try scenario(cache: "rules: [ { match: { path: /a }, ttl: 1h }, { match: { host: 127.0.0.1 }, ttl: 2h } ]") {
            s in
            s.origin.expects("GET /b").replies(200, "Cache-Control: max-age=60", body: "stored")
            let client = try s.client()
            try client.get("/b")
            let ttls = try (0..<2).map { _ in try client.get("/b").cacheStatus }
            for ttl in ttls {
                let seconds = try #require(Int(ttl.replacing("larder; hit; ttl=", with: "")))
                #expect((7100...7200).contains(seconds), "\(ttl)")
            }
            try s.expect(.hitsByEarlierDecision, 1)
            // Another rule is for this path.
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "stored")
            for _ in 0..<2 { try client.get("/a") }
            #expect(try client.get("/a").cacheStatus.contains("ttl=3") == true)
            try s.expect(.hitsByEarlierDecision, 1)
        }
    }

    /// The lines of a session of Digest.
    private static func authorization(_ session: inout DigestSession, _ uri: String = "/a") throws -> String {
        let sent = try session.authorization(
            for: DigestRequest(method: Array("GET".utf8), uri: Array(uri.utf8)), clientNonce: Array("c".utf8),
            using: OpenSSLHashing())
        return "Proxy-Authorization: \(String(decoding: sent.value, as: UTF8.self))"
    }

    private static func digestSecrets(_ names: [String]) throws -> String {
        try names.map { name in
            let secret = try digestSecret(
                user: Array(name.utf8), realm: Array("larder".utf8), password: Array("secret".utf8), .sha256,
                using: OpenSSLHashing())
            return "\(name):larder:SHA-256:\(String(decoding: secret.bytes, as: UTF8.self))\n"
        }.joined()
    }

    /// Plays with a client that has the challenge.
    private func withDigest(_ play: (Scenario, ScriptedClient, inout DigestSession) throws -> Void) throws {
        try scenario({ configuration, files in
            configuration.access.authentication.digest.usersFile = try files.write(
                "users.digest", Self.digestSecrets(["ann"]))
        }) { s in
            let client = try s.client()
            let challenge = try #require(try client.get("/a")["Proxy-Authenticate"])
            let read = try #require(parseChallenges([Array(challenge.utf8)[...]]).first.flatMap { DigestChallenge($0) })
            var session = try DigestSession(read, user: "ann", password: Secret("secret"))
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "stored")
            for _ in 0..<2 { try client.get("/a", Self.authorization(&session)) }
            try s.expect(.hitsByEarlierDecision, 0)
            try play(s, client, &session)
        }
    }

    @Test func `a hit with Digest proves itself, and its answer does`() throws {
        try withDigest { s, client, session in
            for count in 1...3 {
                let sent = try session.authorization(
                    for: DigestRequest(method: Array("GET".utf8), uri: Array("/a".utf8)),
                    clientNonce: Array("c\(count)".utf8), using: OpenSSLHashing())
                let answer = try client.get("/a", "Proxy-Authorization: \(String(decoding: sent.value, as: UTF8.self))")
                #expect(answer.text == "stored")
                let information = try #require(
                    answer["Proxy-Authentication-Info"].flatMap { AuthenticationInfo(Array($0.utf8)[...]) })
                #expect(try sent.proof(in: information, using: OpenSSLHashing()) == .right)
                try s.expect(.hitsByEarlierDecision, UInt64(count))
            }
            #expect(try s.logLines().suffix(3).allSatisfy { $0.contains(#""user":"ann""#) })
        }
    }

    @Test func `a digest is accepted once, and a wrong one never`() throws {
        try withDigest { s, client, session in
            let (first, second) = (try Self.authorization(&session), try Self.authorization(&session))
            #expect(try client.get("/a", first).text == "stored")
            try s.expect(.hitsByEarlierDecision, 1)
            let again = try client.get("/a", first)
            #expect(again.status == 407 && again["Proxy-Authenticate"]?.contains("stale=true") == true)
            #expect(try client.get("/b", second).status == 407, "it is for another target")
            #expect(try client.get("/a", second.replacing("nc=00000004", with: "nc=00000005")).status == 407)
            #expect(try client.get("/a").status == 407)
            try s.expect(.hitsByEarlierDecision, 1)
            // The next ones are of the same nonce.
            for _ in 0..<2 { #expect(try client.get("/a", Self.authorization(&session)).text == "stored") }
            #expect(s.count(.hitsByEarlierDecision) > 1)
        }
    }

    @Test func `a miss behind hits with Digest uses its count once`() throws {
        try withDigest { s, client, session in
            s.origin.expects("GET /b").replies(200, "Cache-Control: max-age=60", body: "other")
            #expect(try client.get("/b", Self.authorization(&session, "/b")).text == "other")
            #expect(try client.get("/b", Self.authorization(&session, "/b")).text == "other")
            try s.expect(.hitsByEarlierDecision, 1)
        }
    }

    @Test func `a user of Digest who is removed is refused on the connection that knows him`() throws {
        try withDigest { s, client, session in
            #expect(try client.get("/a", Self.authorization(&session)).text == "stored")
            try s.adopt { configuration, files in
                configuration.access.authentication.digest.usersFile = try files.write(
                    "other.digest", Self.digestSecrets(["bob"]))
            }
            try s.eventually("ann is refused") {
                let sent = try Self.authorization(&session)
                return try client.get("/a", sent).status == 407
            }
        }
    }

    // MARK: what does not

    @Test func `other credentials are checked, and the user's own rules hold`() throws {
        try scenario({ configuration, files in
            try Self.readUsers(["ann", "bob"], &configuration, files)
            configuration.access.rules = [Self.rule(.allow) { $0.users = ["ann"] }]
        }) { s in
            let client = try s.client()
            try Self.warm(s, client, [Self.credentials("ann")])
            #expect(try client.get("/a").status == 407)
            #expect(try client.get("/a", Self.credentials("ann", "guess")).status == 407)
            #expect(try client.get("/a", Self.credentials("ann", "secreT")).status == 407)
            #expect(try client.get("/a", Self.credentials("bob")).status == 403)
            #expect(
                try client.get("/a", Self.credentials("bob"), Self.credentials("ann")).status == 403,
                "the first of two counts, as on a new connection")
            #expect(try client.get("/a", Self.credentials("ann")).text == "stored")
        }
    }

    @Test func `what one connection has proven is of no use to another`() throws {
        try scenario({ try Self.readUsers(["ann"], &$0, $1) }) { s in
            try Self.warm(s, s.client(), [Self.credentials("ann")])
            #expect(try s.client().get("/a").status == 407)
        }
    }

    @Test func `a user who is removed is refused on the connection that knows him`() throws {
        try scenario({ try Self.readUsers(["ann"], &$0, $1) }) { s in
            let client = try s.client()
            try Self.warm(s, client, [Self.credentials("ann")])
            try s.adopt { try Self.readUsers(["bob"], &$0, $1) }
            // Workers take a new configuration when they come to it.
            try s.eventually("ann is refused") { try client.get("/a", Self.credentials("ann")).status == 407 }
        }
    }

    @Test func `remembered credentials end with their time`() throws {
        try scenario({ configuration, files in
            try Self.readUsers(["ann"], &configuration, files)
            configuration.access.authentication.basic.remember = .milliseconds(300)
        }) { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=600", body: "stored")
            let client = try s.client()
            try client.get("/a", Self.credentials("ann"))
            let checks = s.count(.authenticationChecks)
            try s.eventually("the password is hashed again") {
                try client.get("/a", Self.credentials("ann"))
                return s.count(.authenticationChecks) > checks
            }
        }
    }

    @Test func `a client that fails too often waits, on the connections that know it as well`() throws {
        try scenario({ configuration, files in
            try Self.readUsers(["ann"], &configuration, files)
            configuration.workers = .count(1)
        }) { s in
            let client = try s.client()
            try Self.warm(s, client, [Self.credentials("ann")])
            let other = try s.client()
            for number in 0..<10 {
                #expect(try other.get("/a", Self.credentials("ann", "guess \(number)")).status == 407)
            }
            let answer = try client.get("/a", Self.credentials("ann"))
            #expect(answer.status != 200 && !answer.text.contains("stored"), "\(answer)")
        }
    }

    @Test func `a rule that a reload adds holds on the same connection`() throws {
        let rules: [AccessRule] = [
            Self.rule(.deny(reason: "closed")),
            Self.rule(.deny(reason: "closed")) { $0.paths = [PathPattern("/a")].compactMap { $0 } },
            Self.rule(.deny(reason: "closed")) { $0.methods = ["GET"] },
        ]
        for rule in rules {
            try scenario({ configuration, _ in configuration.access.rules = [Self.allow] }) { s in
                let client = try s.client()
                try Self.warm(s, client)
                try s.adopt { configuration, _ in configuration.access.rules = [rule, Self.allow] }
                try s.eventually("the rule holds") { try client.get("/a").status == 403 }
                #expect(try client.get("/a").text.contains("closed"))
            }
        }
    }

    @Test func `a path that rules close is closed behind hits of open paths`() throws {
        try scenario({ configuration, _ in configuration.access.rules = [Self.allow] }) { s in
            let client = try s.client()
            s.origin.expects("GET /private/a").replies(200, "Cache-Control: max-age=60", body: "private")
            try client.get("/private/a")
            try Self.warm(s, client)
            try s.adopt { configuration, _ in
                configuration.access.rules = [
                    Self.rule(.deny(reason: nil)) { $0.paths = [PathPattern("/private/*")].compactMap { $0 } },
                    Self.allow,
                ]
            }
            try s.eventually("the rule holds") { try client.get("/private/a").status == 403 }
            for _ in 0..<3 { #expect(try client.get("/a").text == "stored") }
            for path in ["/private/a", "/private/a?x", "/x/../private/a"] {
                #expect(try client.get(path).status == 403, "\(path)")
                #expect(try client.get("/a").text == "stored")
            }
        }
    }

    @Test func `hosts, methods and ports are told apart without rules for paths`() throws {
        try scenario({ configuration, _ in
            configuration.access.rules = [
                Self.rule(.deny(reason: nil)) { $0.methods = ["HEAD"] },
                Self.rule(.deny(reason: nil)) { $0.hosts = [HostPattern("localhost")].compactMap { $0 } },
                Self.rule(.deny(reason: nil)) { $0.ports = [1...1] },
                Self.allow,
            ]
        }) { s in
            let client = try s.client()
            try Self.warm(s, client)
            let denied = [
                ("HEAD", "/a"), ("GET", "http://localhost:\(s.origin.port)/a"), ("GET", "http://127.0.0.1:1/a"),
            ]
            for (method, target) in denied {
                #expect(try client.request(method, target).status == 403, "\(method) \(target)")
                // The next one that is allowed is decided about once more.
                for _ in 0..<2 { #expect(try client.get("/a").text == "stored") }
            }
        }
    }

    @Test func `a cache rule for a path holds behind hits of other paths`() throws {
        try scenario(cache: "rules: [ { match: { path: \"/live/*\" }, policy: revalidate-always } ]") { s in
            let client = try s.client()
            try Self.warm(s, client)
            s.origin.expects("GET /live/b").replies(200, "Cache-Control: max-age=60", "ETag: \"b\"", body: "live")
            try client.get("/live/b")
            s.origin.expects("GET /live/b", "If-None-Match: \"b\"").replies(304, "ETag: \"b\"")
            #expect(try client.get("/live/b").text == "live")
        }
    }

    /// The CONNECT has proven the user. What is inside has no credentials.
    @Test func `a hit in an opened tunnel is decided by the user of this tunnel`() throws {
        let certificate = try MadeCertificate(for: "IP:127.0.0.1")
        let origin = try TLSOrigin(
            certificate, .answers("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 6\r\n\r\nstored"))
        defer { origin.end() }
        try scenario({ configuration, files in
            try files.intercept("127.0.0.1", in: &configuration)
            configuration.tls.caFile = try files.write("ca.pem", certificate.certificate)
            try Self.readUsers(["ann", "bob"], &configuration, files)
            configuration.access.rules = [
                Self.rule(.allow) { $0.methods = ["CONNECT"] }, Self.rule(.allow) { $0.users = ["ann"] },
            ]
        }) { s in
            let authority = "127.0.0.1:\(origin.port)"
            func tunnel(_ name: String) throws -> ScriptedClient {
                let client = try s.tunnel(to: authority, Self.credentials(name))
                try client.wire.secure(s.trust(), name: "127.0.0.1")
                return client
            }
            let ann = try tunnel("ann")
            for _ in 0..<3 { #expect(try ann.getInside("/a", host: authority).text == "stored") }
            try s.expect(.hitsByEarlierDecision, 1)
            #expect(try ann.getInside("/a", host: "localhost:\(origin.port)").status == 421)
            #expect(try tunnel("bob").getInside("/a", host: authority).status == 403)
            // Outside of the tunnel nobody has proven anything.
            #expect(try s.client().get(origin.url("/a")).status == 407)
        }
    }
}
