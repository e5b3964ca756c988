import Compression
import Origins
import Rules
@testable import Server
import Settings
import Testing

@Suite("origins: content of requests with gzip") struct RequestCodingScenarios {
    private static let text = String(repeating: "{\"name\": \"value\"}\n", count: 4000)

    private func configure(_ configuration: inout Configuration, _: Scenario.Files) {
        configuration.origins = [OriginRule(RuleConditions(), encodesRequests: true, number: 1)]
    }

    private func inflated(_ body: [UInt8]) throws -> String {
        var inflator = Inflator(outputMax: 1 << 20)
        var output: [UInt8] = []
        try inflator.decompress(body, into: &output)
        try inflator.finish()
        return String(decoding: output, as: UTF8.self)
    }

    @Test func `content is compressed on its way, and says so`() throws {
        try scenario(configure) { s in
            s.origin.expects("POST /a", "Content-Encoding: gzip", "!Content-Length").readsBody().replies(200)
            let client = try s.client()
            let answer = try client.request("POST", "/a", "Content-Type: application/json", body: Self.text)
            #expect(answer.status == 200)
            let received = s.origin.requests[0].message
            #expect(received.body.count < Self.text.utf8.count / 20)
            #expect(try inflated(received.body) == Self.text)
            try s.expect(.requestsEncoded, 1)
        }
    }

    @Test func `content without a length is compressed piece by piece`() throws {
        try scenario(configure) { s in
            s.origin.expects("POST /a", "Content-Encoding: gzip").readsBody().replies(200)
            let client = try s.client()
            try client.send(
                "POST \(s.origin.url("/a")) HTTP/1.1\r\nHost: \(s.origin.authority)\r\nContent-Type: text/plain\r\n"
                    + "Transfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
            try s.eventually("the first piece is out") { s.proxy.transfers().first?.sent == 5 }
            try client.send("6\r\nsecond\r\n0\r\n\r\n")
            #expect(try client.response().status == 200)
            #expect(try inflated(s.origin.requests[0].message.body) == "firstsecond")
        }
    }

    /// A client that sends what happens, when it happens, must not wait for the compressor.
    @Test func `each piece of content without a length can be read at once`() throws {
        for isPrompt in [true, false] {
            let encoder = ContentEncoder(isPrompt: isPrompt)
            let piece = unsafe Array("first".utf8).withUnsafeBytes { unsafe encoder.encode($0) }
            var inflator = Inflator(outputMax: 1 << 20)
            var output: [UInt8] = []
            try inflator.decompress(piece, into: &output)
            #expect(output == (isPrompt ? Array("first".utf8) : []))
        }
    }

    @Test(arguments: [
        "Content-Type: image/png", "Content-Type: application/json\r\nContent-Encoding: br",
        "Content-Type: application/json\r\nCache-Control: no-transform",
        "Content-Type: application/json\r\nContent-Digest: sha-256=:AAAA:",
        "Content-Type: application/json\r\nx-amz-content-sha256: 00", "X: y",
        "Content-Type: application/json\r\nContent-Range: bytes 0-9/10",
    ])
    func `what must stay as it is stays`(fields: String) throws {
        try scenario(configure) { s in
            s.origin.expects("POST /a", "Content-Length: \(Self.text.utf8.count)").readsBody().replies(200)
            let client = try s.client()
            try client.send(
                "POST \(s.origin.url("/a")) HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\(fields)\r\n"
                    + "Content-Length: \(Self.text.utf8.count)\r\n\r\n\(Self.text)")
            #expect(try client.response().status == 200)
            #expect(s.origin.requests[0].message.text == Self.text)
            try s.expect(.requestsEncoded, 0)
        }
    }

    @Test func `short content stays as it is`() throws {
        try scenario(configure) { s in
            s.origin.expects("POST /a", "Content-Length: 2", "!Content-Encoding").readsBody().replies(200)
            let client = try s.client()
            #expect(try client.request("POST", "/a", "Content-Type: application/json", body: "{}").status == 200)
        }
    }
}
