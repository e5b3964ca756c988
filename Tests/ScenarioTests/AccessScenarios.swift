import Access
import Foundation
import Message
import Passwords
import Server
import Settings
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
            #expect(answer.status == 403, "\(answer)")
            #expect(answer["Proxy-Status"]?.contains("error=destination_ip_prohibited") == true, "\(answer)")
            #expect(s.origin.connectionCount == 0)
            #expect(s.count(.originConnectionsOpened) + s.count(.originConnectionsFailed) == 0)
        }
    }

    @Test func `metadata addresses stay closed if private destinations are open`() throws {
        try scenario { s in
            let answer = try s.client().get("http://169.254.169.254/latest/")
            #expect(answer.status == 403)
            #expect(answer["Proxy-Status"]?.contains("error=destination_ip_prohibited") == true, "\(answer)")
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

    @Test func `a rule that allows one port does not allow others`() throws {
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

    /// 127.0.0.1 and 127.0.0.2 are both this machine, and two clients.
    @Test func `a rule for one client does not apply to another`() throws {
        try scenario({ configuration, _ in
            configuration.access.rules = [
                DestinationScenarios.rule(.allow) { $0.clients = [AddressRange(IPAddress(v4: 0x7F00_0002))] }
            ]
        }) { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "for .2")
            #expect(try s.client(from: 0x7F00_0002).get("/a").text == "for .2")
            let other = try s.client(from: 0x7F00_0003).get("/a")
            #expect(other.status == 403)
            #expect(!other.text.contains("for .2"), "what is stored is behind the rules as well")
            #expect(try s.client(from: 0x7F00_0002).get("/a").cacheStatus.hasPrefix("larder; hit"))
        }
    }

    @Test func `an address that is not a client is refused everything, stored responses included`() throws {
        try scenario({ configuration, _ in
            configuration.access.namedClients = [AddressRange(IPAddress(v4: 0x7F00_0002))]
        }) { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "for clients")
            for _ in 0..<2 { #expect(try s.client(from: 0x7F00_0002).get("/a").text == "for clients") }
            let stranger = try s.client(from: 0x7F00_0003)
            for method in ["GET", "HEAD", "PUT"] {
                try stranger.ask(method, "/a")
                let answer = try stranger.response(to: method)
                #expect(answer.status == 403, "\(answer)")
                #expect(!answer.text.contains("for clients"))
            }
            try s.expect(.clientConnectionsRefused, 1)
            let tunnel = try s.client(from: 0x7F00_0003).request("CONNECT", s.origin.authority)
            #expect(tunnel.status == 403)
            #expect(s.origin.connectionCount == 1)
        }
    }

    @Test func `a name that does not resolve is reported`() throws {
        try scenario { s in
            let answer = try s.client().get("http://nonexistent.invalid/")
            #expect(answer.status == 502)
            #expect(answer["Proxy-Status"]?.contains("error=dns_error") == true, "\(answer)")
        }
    }
}

@Suite("Access: Basic authentication (RFC 7617)")
struct AuthenticationScenarios {
    private func withUsers(_ play: (Scenario) throws -> Void) throws {
        try scenario(
            { configuration, files in
                configuration.access.authentication.basic.usersFile = try files.write(
                    "users", "ann:\(try hash(password: Array("secret".utf8)))\n")
            }, play)
    }

    @Test func `missing and wrong credentials get 407, and right ones are remembered and not forwarded`() throws {
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

    @Test func `a rule for one user does not apply to another`() throws {
        try scenario({ configuration, files in
            let lines = try ["ann", "bob"].map { "\($0):\(try hash(password: Array("secret".utf8)))\n" }
            configuration.access.authentication.basic.usersFile = try files.write("users", lines.joined())
            var ann = AccessRule.Conditions()
            ann.users = ["ann"]
            var reading = AccessRule.Conditions()
            reading.methods = ["GET"]
            configuration.access.rules = [
                AccessRule(effect: .allow, conditions: ann, number: 1),
                AccessRule(effect: .allow, conditions: reading, number: 2),
                AccessRule(effect: .deny(reason: "only ann may write"), number: 3),
            ]
        }) { s in
            func credentials(_ name: String) -> String {
                "Proxy-Authorization: Basic \(Data("\(name):secret".utf8).base64EncodedString())"
            }
            s.origin.expects("PUT /a").replies(204)
            for _ in 0..<2 { s.origin.expects("GET /a").replies(200, "Cache-Control: no-store") }
            let client = try s.client()
            #expect(try client.request("PUT", "/a", credentials("ann"), body: "x").status == 204)
            for name in ["ann", "bob"] { #expect(try client.get("/a", credentials(name)).status == 200) }
            let refused = try client.request("PUT", "/a", credentials("bob"), body: "x")
            #expect(refused.status == 403)
            #expect(refused.text.contains("only ann may write"))
        }
    }
}

@Suite("Access: ports of tunnels")
struct TunnelPortScenarios {
    /// Nothing beyond this machine is connected to: where the rules are asked about public addresses, they alone are.
    static let ports: [(address: UInt32, port: UInt16, isTunnel: Bool, reason: DenialReason?)] = [
        (0x5DB8_D822, 22, true, .connectPort), (0x5DB8_D822, 25, true, .connectPort),
        (0x5DB8_D822, 80, true, .connectPort), (0x5DB8_D822, 8443, true, .connectPort),
        (0x5DB8_D822, 443, true, nil), (0x5DB8_D822, 22, false, nil), (0x0A00_0001, 443, true, .privateDestination),
    ]
    @Test(arguments: ports, AccessSettings.PrivateDestinations.allCases)
    func `tunnels to public addresses use port 443 alone`(
        _ row: (address: UInt32, port: UInt16, isTunnel: Bool, reason: DenialReason?),
        _ privateDestinations: AccessSettings.PrivateDestinations
    ) {
        var settings = AccessSettings()
        settings.privateDestinations = privateDestinations
        let policy = AccessPolicy(from: settings)
        let address = IPAddress(v4: row.address)
        let request = AccessRequest(
            client: IPAddress(v4: 0x7F00_0001), method: row.isTunnel ? .connect : .get, destination: .address(address),
            port: row.port, isTunnel: row.isTunnel)
        let reason = privateDestinations == .allow && row.reason == .privateDestination ? nil : row.reason
        #expect(policy.mayDial(request, address: address)?.reason == reason)
        guard case .deny(let denial) = policy.decide(request, address: nil) else { return #expect(reason == nil) }
        #expect(denial.reason == reason)
        #expect(denial.status == 403)
    }

    /// A name is not even looked up for a port that no rule opens.
    @Test func `CONNECT to another port is refused before anything is asked`() throws {
        try refusesPort22 { configuration in
            configuration.access.rules = [AccessRule(effect: .allow, number: 1)]
        }
    }

    @Test func `CONNECT to another port is refused before anything is asked, without rules too`() throws {
        try refusesPort22 { _ in }
    }

    private func refusesPort22(_ configure: (inout Configuration) -> Void) throws {
        try scenario({ configuration, _ in
            configuration.access.privateDestinations = .deny
            configure(&configuration)
        }) { s in
            let answer = try s.client().request("CONNECT", "nonexistent.invalid:22")
            #expect(answer.status == 403)
            #expect(answer["Proxy-Status"]?.contains("error=http_request_denied") == true, "\(answer)")
            #expect(answer.text.contains("port 22"), "\(answer)")
        }
    }

    @Test func `a rule that opens an address does not open all its ports to CONNECT`() throws {
        try scenario({ configuration, _ in
            configuration.access.privateDestinations = .deny
            var conditions = AccessRule.Conditions()
            conditions.addresses = [AddressRange(IPAddress(v4: 0x7F00_0001))]
            configuration.access.rules = [AccessRule(effect: .allow, conditions: conditions, number: 1)]
        }) { s in
            let answer = try s.client().request("CONNECT", s.origin.authority)
            #expect(answer.status == 403)
            #expect(s.origin.connectionCount == 0)
            s.origin.expects("GET /a").replies(200)
            #expect(try s.client().get("/a").status == 200)
        }
    }
}

@Suite("RFC 9110 §9.3.6 CONNECT, §7.8 Upgrade")
struct TunnelScenarios {
    @Test func `a tunnel carries early data in both directions and keeps half-closes`() throws {
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

    static let notSwitched: [(method: String, version: String, body: String?)] = [
        ("GET", "1.0", nil), ("HEAD", "1.1", nil), ("POST", "1.1", "ab"), ("PUT", "1.1", "ab"), ("PUT", "1.0", "ab"),
    ]
    @Test(arguments: notSwitched)
    func `Upgrade is ignored in HTTP 1.0, and in all requests but GET`(
        _ row: (method: String, version: String, body: String?)
    ) throws {
        try scenario { s in
            s.origin.expects("\(row.method) /a", "!Upgrade", "!Connection").replies(200)
            let client = try s.client()
            try client.ask(
                row.method, "/a", ["Connection: Upgrade", "Upgrade: websocket"], body: row.body, version: row.version)
            #expect(try client.response(to: row.method).status == 200)
        }
    }

    @Test func `who waits for the answer to a request with Upgrade of HTTP 1.0 gets the page`() throws {
        try scenario { s in
            let (asked, answer) = (Gate("asked"), Gate("answer"))
            s.origin.expects("GET /a", "!Upgrade").opens(asked).waits(for: answer).replies(
                200, "Cache-Control: max-age=60", body: "page")
            let (first, second) = (try s.client(), try s.client())
            try first.ask("GET", "/a", ["Connection: Upgrade", "Upgrade: websocket"], version: "1.0")
            try asked.wait()
            try second.ask("GET", "/a")
            try s.expect(.requests, 2)
            answer.open()
            #expect(try first.response().text == "page")
            #expect(try second.response().text == "page")
        }
    }
}
