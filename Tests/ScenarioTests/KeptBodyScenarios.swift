import Credentials
import Foundation
import Message
import Origins
@testable import Server
import Settings
import TLS
import Testing

private func hexadecimal(_ bytes: [UInt8]) -> String { bytes.map { String(format: "%02x", $0) }.joined() }

extension SeenMessage {
    fileprivate var digest: String { hexadecimal(Digest.sha256(body)) }
}

/// The value that a digest with MD5 must have: me, realm a, sesame (RFC 7616 §3.4.1).
private func expectIntegrity(_ message: SeenMessage, _ sourceLocation: SourceLocation = #_sourceLocation) throws {
    let sent = try #require(message["Authorization"], sourceLocation: sourceLocation)
    func parameter(_ name: String) throws -> String {
        let found = try #require(sent.firstMatch(of: try Regex(#"[ ,]\#(name)="?([^",]*)"#)), "\(sent)")
        return String(try #require(found.output[1].substring))
    }
    func hash(_ text: String) throws -> String { hexadecimal(try #require(Digest.hash(.md5, Array(text.utf8)))) }
    let words = message.head.startLine.split(separator: " ")
    let body = hexadecimal(try #require(Digest.hash(.md5, message.body)))
    let expected = try hash(
        [
            hash("me:a:sesame"), parameter("nonce"), parameter("nc"), parameter("cnonce"), "auth-int",
            hash("\(words[0]):\(words[1]):\(body)"),
        ].joined(separator: ":"))
    #expect(
        try parameter("response") == expected && sent.contains("qop=auth-int"), "\(sent)",
        sourceLocation: sourceLocation)
}

extension Scenario {
    fileprivate func signer(_ service: String = "s3") -> CredentialRule {
        credential(
            "signer", .sigv4(region: "eu-central-1", service: service),
            secrets: [.accessKey: .text(Secret("id")), .secretKey: .text(Secret("secret"))])
    }

    fileprivate var oauth: CredentialRule {
        credential(
            "signer", .oauth1(clientKey: "id", .hmacSHA1, realm: nil),
            secrets: [.clientSecret: .text(Secret("secret"))])
    }

    fileprivate func integrity(_ nonce: String, stale: Bool = false) -> String {
        "WWW-Authenticate: Digest realm=\"a\", nonce=\"\(nonce)\", qop=\"auth-int\"\(stale ? ", stale=true" : "")"
    }
}

private func expectUnavailable(_ answer: SeenMessage, _ sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(
        answer.status == 502 && answer.cacheStatus.contains("credential-unavailable"), "\(answer)",
        sourceLocation: sourceLocation)
}

private let form = "Content-Type: application/x-www-form-urlencoded"

@Suite("Credentials: bodies that are covered")
struct KeptBodyScenarios {
    private func play(_ play: (Scenario) throws -> Void) throws {
        let few: (inout Configuration, Scenario.Files) throws -> Void = { configuration, _ in
            configuration.workers = .count(1)
        }
        try scenario(few, play)
    }

    private func adopt(_ s: Scenario, _ rules: CredentialRule..., bytesMax: Int = 1 << 20, countMax: Int = 1024) throws
    {
        try s.adopt { configuration, _ in
            configuration.credentials = rules
            configuration.limits.keptBodyBytesMax = bytesMax
            configuration.limits.keptBodiesMax = countMax
        }
    }

    @Test func `a body over http is hashed and signed`() throws {
        try play { s in
            try adopt(s, s.signer())
            s.origin.expects("PUT /a", "Authorization", "!Expect", "Content-Length: 7").readsBody().replies(200)
            #expect(try s.client().request("PUT", "/a", "X-Amz-Content-SHA256: 0", body: "content").status == 200)
            let received = s.origin.requests[0].message
            #expect(received.text == "content")
            #expect(received["x-amz-content-sha256"] == received.digest)
            #expect(try s.stat(.origins, "bodies_kept") == 1)
        }
    }

    @Test func `no connection is asked for before the body is whole, and chunks become a length`() throws {
        try play { s in
            try adopt(s, s.signer())
            s.origin.expects("PUT /a", "!Expect", "!Transfer-Encoding", "Content-Length: 11").readsBody().replies(200)
            let client = try s.client()
            try client.ask("PUT", "/a", ["Expect: 100-continue", "Transfer-Encoding: chunked"])
            #expect(try client.head().startLine == "HTTP/1.1 100 Continue")
            try client.send("5\r\nfirst\r\n")
            #expect(s.origin.connectionCount == 0)
            try client.send("6\r\nsecond\r\n0\r\n\r\n")
            #expect(try client.response().status == 200)
            let received = s.origin.requests[0].message
            #expect(received.text == "firstsecond" && received["x-amz-content-sha256"] == received.digest)
        }
    }

    @Test func `trailers keep their chunks`() throws {
        try play { s in
            try adopt(s, s.signer())
            s.origin.expects("PUT /a", "Transfer-Encoding: chunked").readsBody().replies(200)
            let client = try s.client()
            try client.ask("PUT", "/a", ["Transfer-Encoding: chunked"])
            try client.send("5\r\nfirst\r\n0\r\nX-Sum: 1\r\n\r\n")
            #expect(try client.response().status == 200)
            let received = s.origin.requests[0].message
            #expect(received.trailers == ["X-Sum: 1"] && received["x-amz-content-sha256"] == received.digest)
        }
    }

    @Test func `a body that is announced too long is refused before it comes`() throws {
        try play { s in
            try adopt(s, s.signer("execute-api"), bytesMax: 8)
            let client = try s.client()
            try client.ask("PUT", "/a", ["Content-Length: 9"])
            expectUnavailable(try client.response())
            #expect(s.origin.connectionCount == 0 && s.count(.bodiesKept) == 0)
            s.origin.expects("PUT /b", "Content-Length: 8").readsBody().replies(200)
            #expect(try s.client().request("PUT", "/b", body: "8 bytes.").status == 200)
        }
    }

    @Test(arguments: ["9\r\nnine byte\r\n", "9\r\nnine byte\r\n0\r\n\r\n", "8\r\n8 bytes.\r\n1\r\n.\r\n0\r\n\r\n"])
    func `a body that becomes too long is refused where it does`(_ body: String) throws {
        try play { s in
            try adopt(s, s.signer("execute-api"), bytesMax: 8)
            let client = try s.client()
            try client.ask("PUT", "/a", ["Transfer-Encoding: chunked"])
            try client.send(body)
            expectUnavailable(try client.response())
            #expect(s.origin.connectionCount == 0)
        }
    }

    @Test func `the members of a form are signed, and nothing of other bodies`() throws {
        try play { s in
            try s.adopt { configuration, _ in
                configuration.credentials = [s.oauth]
                configuration.origins = [OriginRule(.init(), encodesRequests: true, number: 1)]
            }
            let body = "a=" + String(repeating: "b", count: 2000)
            s.origin.expects("POST /a", "Authorization", "!Content-Encoding").readsBody().replies(200)
            #expect(try s.client().request("POST", "/a", form, body: body).status == 200)
            #expect(s.origin.requests[0].message.text == body)
            #expect(s.count(.bodiesKept) == 1)
            // What is no form is sent while it comes.
            s.origin.expects("POST /a", "Authorization", "Content-Encoding: gzip").readsBody().replies(200)
            #expect(try s.client().request("POST", "/a", "Content-Type: application/json", body: body).status == 200)
            #expect(s.count(.bodiesKept) == 1)
        }
    }

    @Test func `what is covered is not encoded on its way`() throws {
        try play { s in
            try s.adopt { configuration, _ in
                configuration.credentials = [s.credential(schemes: [.digest])]
                configuration.origins = [OriginRule(.init(), encodesRequests: true, number: 1)]
            }
            s.origin.expects("GET /a", "!Authorization").replies(401, s.integrity("1"))
            s.origin.expects("GET /a", "Authorization").replies(200)
            #expect(try s.client().get("/a").status == 200)
            s.origin.expects("POST /a", "Authorization", "!Content-Encoding").readsBody().replies(200)
            let body = String(repeating: "[1] ", count: 1000)
            #expect(try s.client().request("POST", "/a", "Content-Type: application/json", body: body).status == 200)
            #expect(s.origin.requests[2].message.text == body)
            try expectIntegrity(s.origin.requests[2].message)
        }
    }

    @Test func `a form in a content coding cannot be signed`() throws {
        try play { s in
            try adopt(s, s.oauth)
            expectUnavailable(try s.client().request("POST", "/a", form, "Content-Encoding: gzip", body: "x"))
        }
    }

    @Test func `auth-int covers the body, which is sent again when the nonce has expired`() throws {
        try play { s in
            try adopt(s, s.credential(schemes: [.digest]))
            s.origin.expects("POST /a", "!Authorization", "Expect: 100-continue").replies(401, s.integrity("1"))
                .closes().readsBody()
            s.origin.expects("POST /a", "Authorization", "!Expect").readsBody().replies(201, body: "made")
            let client = try s.client()
            #expect(try client.request("POST", "/a", body: "content").text == "made")
            s.origin.expects("POST /b", "Authorization").readsBody().replies(401, s.integrity("2", stale: true))
            s.origin.expects("POST /b", "Authorization").readsBody().replies(201, body: "more")
            #expect(try client.request("POST", "/b", body: "other").text == "more")
            let received = s.origin.requests.map(\.message).dropFirst()
            #expect(received.map(\.text) == ["content", "other", "other"])
            for message in received { try expectIntegrity(message) }
        }
    }

    @Test func `with auth among the offers a body is not kept`() throws {
        try play { s in
            try adopt(s, s.credential(schemes: [.digest]))
            let both = "WWW-Authenticate: Digest realm=\"a\", nonce=\"1\", qop=\"auth-int,auth\""
            s.origin.expects("POST /a", "!Authorization", "Expect: 100-continue").replies(401, both).closes()
                .readsBody()
            s.origin.expects("POST /a", "Authorization", "Expect: 100-continue")
                .sends("HTTP/1.1 100 Continue\r\n\r\n").readsBody().replies(201, body: "made")
            #expect(try s.client().request("POST", "/a", body: "content").text == "made")
            #expect(s.origin.requests[1]["Authorization"]?.contains("qop=auth,") == true)
            #expect(s.count(.bodiesKept) == 0)
        }
    }

    @Test func `with auth-int alone a body that is too long is refused`() throws {
        try play { s in
            try adopt(s, s.credential(schemes: [.digest]), bytesMax: 8)
            s.origin.expects("POST /a", "!Authorization", "Expect: 100-continue").replies(401, s.integrity("1"))
                .closes().readsBody()
            expectUnavailable(try s.client().request("POST", "/a", body: "nine byte"))
        }
    }

    @Test func `others that wait for a verdict on the credentials do not wait for a client's body`() throws {
        try play { s in
            try adopt(s, s.credential(schemes: [.digest]))
            s.origin.expects("POST /a", "!Authorization").replies(401, s.integrity("1")).closes().readsBody()
            s.origin.expects("GET /b", "Authorization").replies(200, body: "b")
            s.origin.expects("POST /a", "Authorization").readsBody().replies(201, body: "made")
            let slow = try s.client()
            try slow.ask("POST", "/a", ["Content-Length: 7"])
            try slow.send("cont")
            try s.eventually("the body is kept") { s.count(.bodiesKept) == 1 }
            #expect(try s.client().get("/b").text == "b")
            try slow.send("ent")
            #expect(try slow.response().text == "made")
        }
    }

    @Test func `nothing but a challenge lets a body be sent again`() throws {
        try play { s in
            try adopt(s, s.signer())
            s.origin.expects("PUT /a").readsBody().closes()
            s.origin.expects("PUT /b").readsBody().replies(503, body: "later")
            #expect(try s.client().request("PUT", "/a", body: "content").status == 502)
            #expect(try s.client().request("PUT", "/b", body: "content").text == "later")
            // A signature answers no challenge.
            s.origin.expects("PUT /c").readsBody().replies(401, s.integrity("1"))
            let answer = try s.client().request("PUT", "/c", body: "content")
            #expect(answer.status == 502 && answer.cacheStatus.contains("credential-refused"), "\(answer)")
        }
    }

    @Test func `no more bodies are kept than the limit, and one whose client has left makes room`() throws {
        try play { s in
            try adopt(s, s.signer(), countMax: 1)
            let slow = try s.client()
            try slow.ask("PUT", "/a", ["Content-Length: 7"])
            try s.eventually("the body is kept") { s.count(.bodiesKept) == 1 }
            let full = try s.client().request("PUT", "/b", body: "content")
            #expect(full.status == 503 && full.cacheStatus.contains("too-many-requests"), "\(full)")
            slow.wire.reset()
            s.origin.expects("PUT /c").readsBody().replies(200)
            try s.eventually("the first one has left") {
                try s.client().request("PUT", "/c", body: "content").status == 200
            }
            #expect(s.origin.requests.count == 1)
        }
    }

    @Test func `a client that violates the framing gets its refusal, and the origin nothing`() throws {
        try play { s in
            try adopt(s, s.signer())
            let client = try s.client()
            try client.ask("PUT", "/a", ["Transfer-Encoding: chunked"])
            try client.send("5\r\nfirst\r\nno chunk\r\n")
            #expect(try client.response().status == 400)
            #expect(s.origin.connectionCount == 0)
        }
    }

    @Test func `the signature covers the body with the secret in the place of a placeholder`() throws {
        try play { s in
            var places = PlaceholderPlaces()
            places.json = [["token"]]
            let secret = "ghp_R3alS3cretR3alS3cretR3alS3cretR3al01"
            try adopt(
                s, s.signer("execute-api"),
                s.credential("forge", .placeholder(places), secrets: [.token: .text(Secret(secret))]))
            let made = try s.proxy.shared.placeholders.issue(
                "forge", like: Secret(secret), prefix: nil, job: nil, lifetime: nil,
                now: Moment(uptime: .zero, wallTime: WallTime(secondsSinceEpoch: 0)))
            let text = String(decoding: made.text, as: UTF8.self)
            let json = "Content-Type: application/json"
            s.origin.expects("POST /a", "Authorization").readsBody().replies(200)
            #expect(try s.client().request("POST", "/a", json, body: "{\"token\": \"\(text)\"}").status == 200)
            #expect(s.origin.requests[0].message.text == "{\"token\": \"\(secret)\"}")
            // In a place that is not listed nothing is sent, not even the head.
            for type in [json, "Content-Type: text/plain"] {
                let answer = try s.client().request("POST", "/b", type, body: "{\"other\": \"\(text)\"}")
                #expect(answer.status == 403 && answer.text.contains("credential-misplaced"), "\(answer)")
            }
            #expect(s.origin.requests.count == 1)
        }
    }

    @Test func `a body that may have a placeholder and becomes too long is sent while it comes`() throws {
        try play { s in
            var places = PlaceholderPlaces()
            places.json = [["token"]]
            let secret = "ghp_R3alS3cretR3alS3cretR3alS3cretR3al01"
            try adopt(
                s, s.credential("forge", .placeholder(places), secrets: [.token: .text(Secret(secret))]), bytesMax: 8)
            let made = try s.proxy.shared.placeholders.issue(
                "forge", like: Secret(secret), prefix: nil, job: nil, lifetime: nil,
                now: Moment(uptime: .zero, wallTime: WallTime(secondsSinceEpoch: 0)))
            let text = String(decoding: made.text, as: UTF8.self)
            let fields = ["Content-Type: application/json", "Transfer-Encoding: chunked"]
            let gate = Gate()
            s.origin.expects("POST /a", "Transfer-Encoding: chunked").opens(gate).readsBody().replies(200)
            let client = try s.client()
            try client.ask("POST", "/a", fields)
            try client.send("9\r\nnine byte\r\n")
            try gate.wait()
            try client.send("4\r\nmore\r\n0\r\n\r\n")
            #expect(try client.response().status == 200)
            #expect(s.origin.requests[0].message.text == "nine bytemore")
            s.origin.expects("POST /b", "Content-Length: 9").readsBody().replies(200)
            try client.ask("POST", "/b", fields)
            try client.send("9\r\nnine byte\r\n0\r\n\r\n")
            #expect(try client.response().status == 200)
            let body = "{\"token\": \"\(text)\"}"
            s.origin.expects("POST /c").readsBody()
            try client.ask("POST", "/c", fields)
            try client.send("\(String(body.utf8.count, radix: 16))\r\n\(body)\r\n0\r\n\r\n")
            let answer = try client.response()
            #expect(answer.status == 403 && answer.text.contains("credential-misplaced"), "\(answer)")
            try s.eventually("the request has broken off") { s.origin.requests.last?.message.isWhole == false }
        }
    }

    @Test func `larder explain says that the body is covered`() throws {
        try play { s in
            try adopt(s, s.signer("execute-api"))
            var question = ExplainQuestion(target: s.origin.url("/a"))
            question.method = "POST"
            question.fields = ["Content-Length: 5"]
            let lines = try s.proxy.explain(question).sections.first { $0.name == "origin" }?.lines
            let line = lines?.first { $0.name == "credential" }?.value
            #expect(
                line?.contains("it covers the body, which is kept up to 1048576 bytes") == true, "\(line ?? "none")")
        }
    }
}
