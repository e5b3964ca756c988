import Credentials
import Foundation
import Message
import ProgramUnderTest
import Routing
import Rules
import Server
import Settings
import Testing

/// Each test has a process of its own: the library reads the way to its realm from the environment.
@Suite("RFC 4559 Larder logs in to origins with Negotiate", .enabled(if: KerberosRealm.isInstalled, "package krb5-kdc"))
struct NegotiateScenarios {
    @Test func `each request carries a token of its own, and a connection is used again for them`() async {
        await #expect(processExitsWith: .success) {
            try withRealm { s, _ in
                s.expectsQuestion()
                for path in ["/a", "/b", "/c"] {
                    s.origin.expects("GET \(path)", "Authorization").replies(200, "Cache-Control: no-store", body: path)
                }
                let client = try s.client()
                for path in ["/a", "/b", "/c"] { #expect(try client.get(path).text == path) }
                let tokens = s.origin.requests.compactMap { $0["Authorization"] }
                #expect(tokens.allSatisfy { $0.hasPrefix("Negotiate YI") } && Set(tokens).count == 3, "\(tokens)")
                #expect(s.origin.requests.map(\.connection) == [1, 2, 2, 2])
                #expect(s.count(.connectionLogIns) == 3)
            }
        }
    }

    @Test func `where the origin says so, the connection stays logged in`() async {
        await #expect(processExitsWith: .success) {
            try withRealm { s, _ in
                s.expectsQuestion()
                s.origin.expects("GET /a", "Authorization").replies(200, "Persistent-Auth: true", body: "hello")
                s.origin.expects("GET /b", "!Authorization").replies(200, body: "there")
                let client = try s.client()
                #expect(try client.get("/a").text == "hello")
                #expect(try client.get("/b").text == "there")
                #expect(s.origin.requests.map(\.connection) == [1, 2, 2])
            }
        }
    }

    @Test func `a response with a wrong proof is not passed on`() async {
        await #expect(processExitsWith: .success) {
            try withRealm { s, _ in
                for proof in ["bm8gcHJvb2Y=", "oQcwBaADCgEA"] {
                    s.expectsQuestion()
                    s.origin.expects("GET /a", "Authorization").replies(
                        200, "WWW-Authenticate: Negotiate \(proof)", "Cache-Control: max-age=60", "Set-Cookie: a=b",
                        body: "not from the origin")
                    let answer = try s.client().get("/a")
                    #expect(answer.status == 502 && answer.cacheStatus.contains("detail=origin-unproven"), "\(answer)")
                    #expect(answer["Set-Cookie"] == nil && !answer.text.contains("not from the origin"))
                    // What has been learnt about the origin remains. Its connection does not.
                    s.origin.expects("GET /b", "Authorization").replies(200, "Cache-Control: no-store", body: "hello")
                    #expect(try s.client().get("/b").text == "hello")
                    try s.renew()
                }
                #expect(s.count(.credentialsRefused) == 0 && s.count(.connectionLogInsFailed) == 2)
                // Nothing of it was stored.
                s.expectsQuestion()
                s.origin.expects("GET /a", "Authorization").replies(200, body: "from the origin")
                #expect(try s.client().get("/a").text == "from the origin")
            }
        }
    }

    @Test func `content leaves once, when the origin has accepted the token`() async {
        await #expect(processExitsWith: .success) {
            try withRealm { s, _ in
                s.origin.expects("POST /a", "!Authorization", "Expect: 100-continue").replies(
                    401, "WWW-Authenticate: Negotiate"
                ).closes().readsBody()
                s.origin.expects("POST /a", "Authorization", "Expect: 100-continue", "Content-Length: 5").sends(
                    "HTTP/1.1 100 Continue\r\n\r\n"
                ).readsBody().replies(201)
                let answer = try s.client().request("POST", "/a", body: "hello")
                #expect(answer.status == 201)
                #expect(s.origin.requests.map(\.message.text) == ["", "hello"])
            }
        }
    }

    @Test func `if the origin wants more than one token, they go with HEAD before content`() async {
        await #expect(processExitsWith: .success) {
            try withRealm { s, _ in
                s.expectsQuestion()
                // The peer has not decided yet (RFC 4178 §4.2.2: negState accept-incomplete).
                let more = "WWW-Authenticate: Negotiate oQcwBaADCgEB"
                s.origin.expects("POST /a", "Authorization", "Expect: 100-continue").replies(401, more).closes()
                    .readsBody()
                s.origin.expects("HEAD /a", "Authorization", "!Expect").replies(200, "Persistent-Auth: true")
                s.origin.expects("POST /a", "!Authorization", "!Expect").readsBody().replies(201)
                s.origin.expects("GET /a", "Authorization").replies(200)
                try s.client().get("/a")
                #expect(try s.client().request("POST", "/a", body: "hello").status == 201)
                #expect(s.origin.requests.last?.message.text == "hello")
            }
        }
    }

    @Test func `a password that the key distribution center refuses is tried three times`() async {
        await #expect(processExitsWith: .success) {
            try withRealm(password: "wrong") { s, _ in
                for _ in 1...3 {
                    s.expectsQuestion()
                    let answer = try s.client().get("/a")
                    #expect(
                        answer.status == 502 && answer.cacheStatus.contains("detail=credential-refused"), "\(answer)")
                }
                #expect(try s.client().get("/a").status == 502)
                #expect(s.count(.credentialsRefused) == 3 && s.origin.requests.count == 3)
            }
        }
    }

    @Test func `a key distribution center that is away refuses nobody`() async {
        await #expect(processExitsWith: .success) {
            try withRealm { s, realm in
                realm.stop()
                s.expectsQuestion()
                for _ in 1...4 {
                    let answer = try s.client().get("/a")
                    #expect(
                        answer.status == 502 && answer.cacheStatus.contains("detail=credential-log-in-incomplete"),
                        "\(answer)")
                }
                #expect(s.count(.credentialsRefused) == 0 && s.count(.connectionLogInsFailed) == 4)
                #expect(s.origin.requests.count == 1)
            }
        }
    }
}

extension Scenario {
    fileprivate func expectsQuestion() {
        origin.expects("GET /a", "!Authorization").replies(401, "WWW-Authenticate: Negotiate")
    }

    fileprivate func renew() throws { proxy.snapshot.secrets.renew("corp") }
}

/// Plays a scenario in a realm. Larder logs in as `fleet`.
private func withRealm(password: String = "sesame", _ play: (Scenario, KerberosRealm) throws -> Void) throws {
    try scenarioInRealm { s, realm in
        try s.adopt(
            credentials: s.credential(
                "corp", .password(user: "fleet", schemes: [.negotiate], isUnasked: false),
                secrets: [.password: .text(Secret(password))]))
        try play(s, realm)
    }
}
