import Foundation
import Message
import Origins
import Rules
import Server
import Settings
import TLS
import Testing
import Transaction

/// Browsers encode what a user types; curl and others send it as it is.
@Suite("Targets with bytes beyond ASCII") struct BeyondASCIIScenarios {
    @Test func `origin, key and rules know one form, and the log says what was received`() throws {
        try scenario { s in
            s.origin.expects("GET /%C3%BC?q=%C3%A9").replies(200, "Cache-Control: max-age=60", body: "here")
            #expect(try s.client().get("/ü?q=é").text == "here")
            for target in ["/ü?q=é", "/%C3%BC?q=%C3%A9"] {
                let answer = try s.client().get(target)
                #expect(answer.text == "here" && answer.cacheStatus.hasPrefix("larder; hit"), "\(target): \(answer)")
            }
            let lines = try s.logLines()
            #expect(lines.count == 3)
            for line in lines { #expect(line.contains("\"uri\":\"\(s.origin.url("/%C3%BC?q=%C3%A9"))\""), "\(line)") }
            let received = "\"received\":\"\(s.origin.url("/\\u00c3\\u00bc?q=\\u00c3\\u00a9"))\""
            // Clients of different workers: their lines come in any order.
            #expect(lines.count { $0.contains(received) } == 2, "\(lines)")
            #expect(lines.count { $0.contains("\"received\":") } == 2, "\(lines)")
        }
    }

    @Test func `a secret in what was received is not logged`() throws {
        try scenario { s in
            s.origin.expects("GET /%C3%BC?access_token=s3cret").replies(200, body: "here")
            let answer = try s.client().get("/ü?access_token=s3cret")
            #expect(answer.status == 200)
            let lines = try s.logLines()
            #expect(lines.allSatisfy { !$0.contains("s3cret") && $0.contains("\"received\":") }, "\(lines)")
        }
    }

    @Test func `requests in one piece are answered in their order`() throws {
        try scenario { s in
            let paths = (0..<100).map { $0 % 3 == 0 ? "/a\($0)" : "/ü\($0)" }
            for path in paths {
                s.origin.expects("GET \(path.replacing("ü", with: "%C3%BC"))").replies(200, body: path)
            }
            let client = try s.client()
            try client.send(
                paths.map { "GET \(s.origin.url($0)) HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n" }.joined())
            for path in paths { #expect(try client.response().text == path) }
            let lines = try s.logLines()
            #expect(lines.filter { $0.contains("\"received\":") }.count == paths.count { $0.contains("ü") })
        }
    }

    @Test func `the client may have sent its last byte, or the head in pieces, or content`() throws {
        try scenario { s in
            s.origin.expects("GET /%C3%BC").replies(200, body: "one")
            let last = try s.client()
            try last.ask("GET", "/ü")
            last.wire.finishWriting()
            #expect(try last.response().text == "one")
            s.origin.expects("GET /%C3%BC").replies(200, body: "two")
            let slow = try s.client()
            for byte in "GET \(s.origin.url("/ü")) HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n".utf8 {
                try slow.wire.write([byte])
            }
            #expect(try slow.response().text == "two")
            s.origin.expects("POST /%C3%BC", "Content-Length: 5").readsBody().replies(200, body: "three")
            #expect(try s.client().request("POST", "/ü", body: "ü=é").text == "three")
        }
    }

    @Test func `a target is too long as it is sent on`() throws {
        try scenario({ configuration, _ in configuration.limits.targetBytesMax = 4096 }) { s in
            let answer = try s.client().get("/" + String(repeating: "ü", count: 1000))
            #expect(answer.status == 414, "\(answer)")
            #expect(s.origin.connectionCount == 0)
        }
    }

    @Test(arguments: ["/ü\u{1}", "/ü\u{7F}", "/ü x", "/ü#x", "/\u{1}ü"]) func `what no target has is refused`(
        _ path: String
    ) throws {
        try scenario { s in
            let client = try s.client()
            try client.send("GET \(s.origin.url(path)) HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n")
            #expect(try client.response().status == 400)
            try client.expectClosed()
            #expect(s.origin.connectionCount == 0)
        }
    }

    @Test func `a redirect that Larder follows`() throws {
        try scenario({ configuration, _ in
            configuration.origins = [OriginRule(RuleConditions(), redirectsMax: 3, number: 1)]
        }) { s in
            s.origin.expects("GET /moved").replies(302, "Location: /café?é")
            s.origin.expects("GET /caf%C3%A9?%C3%A9").replies(200, body: "there")
            let answer = try s.client().get("/moved")
            #expect(answer.text == "there", "\(answer)")
        }
    }

    @Test func `a Location that is not followed stays as it is, and is what a write invalidates`() throws {
        try scenario { s in
            s.origin.expects("GET /caf%C3%A9").replies(200, "Cache-Control: max-age=60", body: "old")
            let old = try s.client().get("/café")
            #expect(old.text == "old")
            s.origin.expects("POST /a").replies(201, "Location: /café")
            #expect(try s.client().request("POST", "/a")["Location"] == "/café")
            s.origin.expects("GET /caf%C3%A9").replies(200, body: "new")
            #expect(try s.client().get("/caf%C3%A9").text == "new")
        }
    }

    @Test func `in an opened tunnel`() throws {
        let certificate = try MadeCertificate(for: "IP:127.0.0.1")
        let origin = try TLSOrigin(certificate, .answers("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhere"))
        defer { origin.end() }
        try scenario({ configuration, files in
            try files.intercept("127.0.0.1", in: &configuration)
            configuration.tls.caFile = try files.write("ca.pem", certificate.certificate)
        }) { s in
            let client = try s.secureTunnel(to: "127.0.0.1:\(origin.port)")
            #expect(try client.getInside("/ü", host: "127.0.0.1:\(origin.port)").text == "here")
            #expect(origin.heads.first?.hasPrefix("GET /%C3%BC HTTP/1.1\r\n") == true, "\(origin.heads)")
            #expect(try s.logLines().contains { $0.contains("\"received\":\"/\\u00c3\\u00bc\"") })
        }
    }
}
