import Access
import Foundation
import Message
import Passwords
import Server
import Settings
import Testing

/// The 407 itself, whichever schemes it offers (RFC 9110 §15.5.8): its connection goes on.
@Suite("Access: asking for credentials (RFC 9110 §15.5.8)")
struct AskingScenarios {
    static let right = "Proxy-Authorization: Basic \(Data("ann:secret".utf8).base64EncodedString())"

    private func withUsers(_ play: (Scenario) throws -> Void) throws {
        try scenario(
            { configuration, files in
                configuration.access.authentication.basic.usersFile = try files.write(
                    "users", "ann:\(try hash(password: Array("secret".utf8)))\n")
            }, play)
    }

    /// How a request with a body arrives: the framing of its head, and its body in pieces.
    static let bodies: [(name: String, framing: [String], pieces: [String])] = [
        ("with its head", ["Content-Length: 5"], ["hello"]),
        ("behind its head", ["Content-Length: 10"], ["", "hello", "hello"]),
        ("chunked", ["Transfer-Encoding: chunked"], ["5\r\nhel", "lo\r\n0\r\n", "\r\n"]),
        (
            "after the answer, where a 100 was waited for", ["Content-Length: 5", "Expect: 100-continue"],
            ["", "hello"]
        ),
        ("large", ["Content-Length: \(1 << 20)"], ["", String(repeating: "x", count: 1 << 20)]),
    ]
    @Test(arguments: bodies) func `the body of a request that gets 407 is dropped, and its connection goes on`(
        _ row: (name: String, framing: [String], pieces: [String])
    ) throws {
        try withUsers { s in
            s.origin.expects("POST /a", "!Proxy-Authorization").replies(200)
            let client = try s.client()
            let head = (["POST \(s.origin.url("/a")) HTTP/1.1", "Host: \(s.origin.authority)"] + row.framing)
                .map { "\($0)\r\n" }.joined()
            try client.send(head + "\r\n" + row.pieces[0])
            if row.pieces[0].isEmpty {
                // The answer does not wait for the body.
                let refused = try client.response(to: "POST")
                #expect(refused.status == 407 && refused["Connection"] == nil, "\(refused)")
            }
            for piece in row.pieces.dropFirst() { try client.send(piece) }
            if !row.pieces[0].isEmpty {
                let refused = try client.response(to: "POST")
                #expect(refused.status == 407 && refused["Connection"] == nil, "\(refused)")
            }
            let answer = try client.request("POST", "/a", Self.right, body: "again")
            #expect(answer.status == 200)
            try s.expect(.clientConnectionsAccepted, 1)
        }
    }

    static let endings: [(name: String, request: String, closes: String)] = [
        ("a longer body", "Content-Length: \((1 << 20) + 1)\r\n\r\n", "close"),
        ("a chunked body that never ends", "Transfer-Encoding: chunked\r\n\r\n", ""),
    ]
    @Test(arguments: endings) func `a body is dropped within a bound`(
        _ row: (name: String, request: String, closes: String)
    ) throws {
        try withUsers { s in
            let client = try s.client()
            try client.send("POST \(s.origin.url("/a")) HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\(row.request)")
            let refused = try client.response(to: "POST")
            #expect(refused.status == 407)
            #expect((refused["Connection"] ?? "") == row.closes)
            if row.closes.isEmpty {
                let chunk = "10000\r\n" + String(repeating: "x", count: 0x10000) + "\r\n"
                for _ in 0..<17 { try? client.send(chunk) }
            }
            try client.expectClosed()
            try s.eventually("the close is counted") { s.closes(.requestUnread) == 1 }
        }
    }

    @Test func `what follows the body of a refused request in the same bytes is the next request`() throws {
        try withUsers { s in
            s.origin.expects("GET /b").replies(200)
            let client = try s.client()
            let url = s.origin.url("/a")
            let host = "Host: \(s.origin.authority)\r\n"
            try client.send(
                "POST \(url) HTTP/1.1\r\n\(host)Content-Length: 5\r\n\r\nhello"
                    + "GET \(s.origin.url("/b")) HTTP/1.1\r\n\(host)\(Self.right)\r\n\r\n")
            #expect(try client.response(to: "POST").status == 407)
            #expect(try client.response().status == 200)
        }
    }

    @Test func `a body that is not HTTP closes the connection`() throws {
        try withUsers { s in
            let client = try s.client()
            try client.send(
                "POST \(s.origin.url("/a")) HTTP/1.1\r\nHost: \(s.origin.authority)\r\n"
                    + "Transfer-Encoding: chunked\r\n\r\n")
            #expect(try client.response(to: "POST").status == 407)
            try client.send("no size\r\n")
            try client.expectClosed()
            try s.eventually("the close is counted") { s.closes(.malformedBody) == 1 }
        }
    }

    @Test func `a client of HTTP 1.0 that asks for it keeps its connection`() throws {
        try withUsers { s in
            s.origin.expects("GET /a").replies(200)
            let client = try s.client()
            try client.ask("GET", "/a", ["Connection: keep-alive"], version: "1.0")
            let refused = try client.response()
            #expect(refused.status == 407 && refused["Connection"] == "keep-alive", "\(refused)")
            #expect(refused["Content-Length"] != nil)
            try client.ask("GET", "/a", ["Connection: keep-alive", Self.right], version: "1.0")
            #expect(try client.response().status == 200)
        }
    }

    @Test func `a CONNECT that gets 407 is sent again on its connection`() throws {
        try scenario({ configuration, files in
            configuration.access.authentication.basic.usersFile = try files.write(
                "users", "ann:\(try hash(password: Array("secret".utf8)))\n")
            configuration.access.connectPorts = [files.origin.port...files.origin.port]
        }) { s in
            let client = try s.client()
            let refused = try client.request("CONNECT", s.origin.authority)
            #expect(refused.status == 407 && refused["Connection"] == nil, "\(refused)")
            #expect(try client.request("CONNECT", s.origin.authority, Self.right).status == 200)
            try s.expect(.clientConnectionsAccepted, 1)
        }
    }
}
