import Access
import Foundation
import Passwords
import Server
import Testing

@Suite("Access: destinations")
struct DestinationScenarios {
    static let private_ = [
        "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1.", "[::1]", "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]", "0.0.0.0", "[::]", "169.254.169.254", "10.0.0.1", "192.168.0.1", "[fe80::1]", "localhost",
    ]
    static let ways = ["GET http://HOST:PORT/", "GET https://HOST:443/", "CONNECT HOST:443"]

    @Test(arguments: private_, ways)
    func `a private destination is refused, however it is spelt`(_ host: String, _ way: String) throws {
        try scenario({ configuration, _ in configuration.access.privateDestinations = .deny }) { s in
            let line = way.replacingOccurrences(of: "HOST", with: host)
                .replacingOccurrences(of: "PORT", with: "\(s.origin.port)").split(separator: " ")
            let client = try s.client()
            try client.ask(String(line[0]), String(line[1]))
            let answer = try client.response(to: String(line[0]))
            #expect([400, 403, 502].contains(answer.status), "\(answer)")
            #expect(s.origin.connectionCount == 0)
        }
    }

    @Test func `metadata addresses stay shut where private destinations are open`() throws {
        try scenario { s in
            let answer = try s.client().get("http://169.254.169.254/latest/")
            #expect(answer.status == 403)
        }
    }

    private static func rule(_ effect: AccessRule.Effect, _ conditions: (inout AccessRule.Conditions) -> Void)
        -> AccessRule
    {
        var made = AccessRule.Conditions()
        conditions(&made)
        return AccessRule(effect: effect, conditions: made, number: 1)
    }

    @Test func `a rule denies a method and says why`() throws {
        try scenario({ configuration, _ in
            configuration.access.rules = [
                DestinationScenarios.rule(.deny(reason: "read only")) { $0.methods = ["POST"] }
            ]
            configuration.access.writtenDefault = .allow
        }) { s in
            s.origin.expects("GET /a").replies(200)
            let client = try s.client()
            #expect(try client.get("/a").status == 200)
            let answer = try client.request("POST", "/a", body: "x")
            #expect(answer.status == 403)
            #expect(answer.text.contains("read only"))
        }
    }

    @Test func `where only one port is allowed, the others are not`() throws {
        try scenario({ configuration, files in
            configuration.access.rules = [
                DestinationScenarios.rule(.allow) { $0.ports = [files.origin.port...files.origin.port] }
            ]
            configuration.access.writtenDefault = .deny
        }) { s in
            s.origin.expects("GET /a").replies(200)
            let client = try s.client()
            #expect(try client.get("/a").status == 200)
            #expect(try client.get("http://127.0.0.1:9/").status == 403)
        }
    }
}

@Suite("Access: Basic authentication (RFC 7617)")
struct AuthenticationScenarios {
    private func withUsers(_ play: (Scenario) throws -> Void) throws {
        try scenario(
            { configuration, files in
                configuration.access.basicUsersFile = try files.write(
                    "users", "ann:\(try hash(password: Array("secret".utf8)))\n")
            }, play)
    }

    @Test func `missing and wrong credentials get 407, right ones are remembered and stay here`() throws {
        try withUsers { s in
            for _ in 0..<2 {
                s.origin.expects("GET /a", "!Proxy-Authorization").replies(200, "Cache-Control: no-store")
            }
            let client = try s.client()
            let first = try client.get("/a")
            #expect(first.status == 407)
            #expect(first["Proxy-Authenticate"]?.hasPrefix("Basic realm=\"larder\"") == true)
            let wrong = Data("ann:guess".utf8).base64EncodedString()
            #expect(try client.get("/a", "Proxy-Authorization: Basic \(wrong)").status == 407)
            let checks = s.count(.authenticationChecks)
            let right = Data("ann:secret".utf8).base64EncodedString()
            for _ in 0..<2 { #expect(try client.get("/a", "Proxy-Authorization: Basic \(right)").status == 200) }
            try s.expect(.authenticationChecks, checks + 1)
        }
    }
}

@Suite("RFC 9110 §9.3.6 CONNECT, §7.8 Upgrade")
struct TunnelScenarios {
    @Test func `a tunnel carries early data and both ways, and keeps half-closes`() throws {
        try scenario({ configuration, files in
            configuration.access.connectPorts = [files.origin.port...files.origin.port]
        }) { s in
            s.origin.expects("GET /inside").echoes()
            let client = try s.client()
            try client.send(
                "CONNECT \(s.origin.authority) HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n"
                    + "GET /inside HTTP/1.1\r\n\r\nearly")
            #expect(try client.response(to: "CONNECT").status == 200)
            #expect(String(decoding: try client.reader.bytes(5), as: UTF8.self) == "early")
            try client.send("more")
            #expect(String(decoding: try client.reader.bytes(4), as: UTF8.self) == "more")
            client.wire.finishWriting()
            try client.expectClosed()
            try s.expect(.tunnelsClosed, 1)
        }
    }

    @Test func `websocket passes 101 and bytes`() throws {
        try scenario { s in
            s.origin.expects("GET /chat", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: x").replies(
                101, "Connection: Upgrade", "Upgrade: websocket"
            ).echoes()
            let client = try s.client()
            try client.ask(
                "GET", "/chat", ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: x"])
            let answer = try client.response()
            #expect(answer.status == 101)
            #expect(answer["Upgrade"] == "websocket")
            try client.send("ping")
            #expect(String(decoding: try client.reader.bytes(4), as: UTF8.self) == "ping")
        }
    }
}
