import EventLoop
import Foundation
import Passwords
import Server
import Testing

@Suite("Regressions: requests and tunnels")
struct RequestRegressions {
    static let waysToAdmin: [(host: String, isTunnel: Bool)] =
        ["127.0.0.1", "0.0.0.0", "[::]", "[::ffff:127.0.0.1]", "[::ffff:0.0.0.0]", "0", "localhost"].flatMap {
            [($0, false), ($0, true)]
        }
    /// Linux connects 0.0.0.0 to loopback, so clients reached the admin server in that way.
    @Test(arguments: waysToAdmin)
    func `the admin server is not reached by any name of this machine`(_ row: (host: String, isTunnel: Bool)) throws {
        try scenario { s in
            s.proxy.shared.setAdminAddresses([SocketAddress(v4: 0x7F00_0001, port: s.origin.port)])
            let authority = "\(row.host):\(s.origin.port)"
            let method = row.isTunnel ? "CONNECT" : "GET"
            let client = try s.client()
            try client.ask(method, row.isTunnel ? authority : "http://\(authority)/stats")
            let answer = try client.response(to: method)
            #expect(answer.status == 403, "\(answer)")
            #expect(answer["Proxy-Status"]?.contains("error=destination_ip_prohibited") == true, "\(answer)")
            #expect(answer["Larder-Deny"]?.hasPrefix("reason=admin-server; ") == true, "\(answer)")
            #expect(s.origin.connectionCount == 0)
        }
    }

    /// What makes the scenario above mean something: where nothing is kept out, 0.0.0.0 does lead there.
    @Test func `the unspecified address leads to this machine`() throws {
        try scenario { s in
            s.origin.expects("GET /stats").replies(200)
            let answer = try s.client().get("http://0.0.0.0:\(s.origin.port)/stats")
            #expect(answer.status == 200)
        }
    }

    enum Limit { case head, idle }

    /// The time limit of a head that was complete cut off an upload that waited for 100 Continue. A limit that began later on the same
    /// worker, and has passed, shows that the client's has passed.
    @Test(arguments: [Limit.head, .idle])
    func `a client that waits for 100 Continue may wait as long as the origin takes`(_ limit: Limit) throws {
        try scenario({ configuration, _ in
            configuration.workers = .count(1)
            configuration.timeouts.clientHead = limit == .head ? .seconds(3) : .seconds(60)
            configuration.timeouts.clientIdle = limit == .idle ? .seconds(1) : .seconds(60)
        }) { s in
            let asked = Gate("request")
            let go = Gate("100 Continue")
            s.origin.expects("POST /a", "Expect: 100-continue").opens(asked).waits(for: go).sends(
                "HTTP/1.1 100 Continue\r\n\r\n"
            ).readsBody().replies(200, body: "thanks")
            let client = try s.client()
            try client.ask("POST", "/a", ["Expect: 100-continue", "Content-Length: 4"])
            try asked.wait()
            let late = try s.client()
            switch limit {
            case .head:
                try late.send("GET http://")
                #expect(try late.response().status == 408)
            case .idle:
                s.origin.expects("GET /b").replies(200)
                #expect(try late.get("/b").status == 200)
                try late.expectClosed()
                // After the 100 it would have to send its body within the limit.
                try client.send("body")
            }
            go.open()
            #expect(try client.response().status == 100)
            if limit == .head { try client.send("body") }
            #expect(try client.response().text == "thanks")
            #expect(s.origin.requests.first?.message.text == "body")
        }
    }

    /// A client that stops in the middle of its body is cut off, and gets the reason. The origin must not take what it has for all of it.
    @Test func `a client that does not send its body gets 408`() throws {
        let origin = try RawOrigin()
        try scenario({ configuration, _ in configuration.timeouts.clientIdle = .seconds(1) }) { s in
            let client = try s.client()
            let host = "127.0.0.1:\(origin.port)"
            try client.send("POST http://\(host)/a HTTP/1.1\r\nHost: \(host)\r\nContent-Length: 10\r\n\r\nhalf")
            let taken = try origin.accept(s)
            #expect(try client.response(to: "POST").status == 408)
            try client.expectClosed()
            #expect(throws: WireError.self, "its connection is reset") { while try !taken.read().isEmpty {} }
        }
    }

    static let deceivingTrailers = [
        "Content-Length: 3", "Transfer-Encoding: chunked", "Host: evil.test", "Proxy-Authorization: Basic eDp5",
        "Connection: close", "Authorization: Basic eDp5", "Cookie: a=b", "Set-Cookie: a=b", "Cache-Control: max-age=9",
        "Expect: 100-continue", "Range: bytes=0-0", "If-None-Match: *", "Content-Encoding: gzip", "Content-Foo: a",
        "Proxy-Foo: a", "Via: 1.1 evil", "Trailer: X", "TE: trailers", "Upgrade: websocket", "Vary: *", "Age: 1",
    ]
    static let honestTrailers = ["X-Checksum: 1", "Content-Digest: sha-256=:AA==:", "Server-Timing: a;dur=1"]
    static let chunkedBody =
        "3\r\nabc\r\n0\r\n" + (deceivingTrailers + honestTrailers).map { "\($0)\r\n" }.joined() + "\r\n"

    /// Trailers were forwarded to the origin without a check, `Proxy-Authorization` included (RFC 9110 §6.5.1).
    @Test func `deceptive trailers of a request do not reach the origin`() throws {
        try scenario { s in
            s.origin.expects("POST /a", "!Proxy-Authorization").replies(200)
            let client = try s.client()
            try client.ask("POST", "/a", ["Transfer-Encoding: chunked"])
            try client.send(RequestRegressions.chunkedBody)
            #expect(try client.response().status == 200)
            #expect(s.origin.requests.first?.message.text == "abc")
            #expect(s.origin.requests.first?.message.trailers == RequestRegressions.honestTrailers)
        }
    }

    /// Trailers were forwarded to the client without a check.
    @Test(arguments: ["no-store", "max-age=60"])
    func `deceptive trailers of a response do not reach the client`(_ cacheControl: String) throws {
        try scenario { s in
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 200 OK\r\nCache-Control: \(cacheControl)\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + RequestRegressions.chunkedBody)
            let answer = try s.client().get("/a")
            #expect(answer.text == "abc")
            #expect(answer.isWhole)
            let deceiving = Set(RequestRegressions.deceivingTrailers)
            #expect(answer.trailers.allSatisfy { !deceiving.contains($0) }, "\(answer.trailers)")
            if cacheControl == "no-store" { #expect(answer.trailers == RequestRegressions.honestTrailers) }
        }
    }

    enum RefusedTunnel: Int, CaseIterable { case refused = 502, forbidden = 403, unauthenticated = 407 }

    private func withRefusal(_ how: RefusedTunnel, _ play: (Scenario) throws -> Void) throws {
        try scenario(
            { configuration, files in
                if how == .forbidden { configuration.access.privateDestinations = .deny }
                guard how == .unauthenticated else { return }
                configuration.access.authentication.basic.usersFile = try files.write(
                    "users", "ann:\(try hash(password: Array("secret".utf8)))\n")
            }, play)
    }

    /// Bytes that a client had sent for a tunnel were executed as requests of its own.
    @Test(arguments: RefusedTunnel.allCases)
    func `bytes behind a refused CONNECT are not read as requests`(_ how: RefusedTunnel) throws {
        try withRefusal(how) { s in
            let client = try s.client()
            let credentials = Data("ann:secret".utf8).base64EncodedString()
            try client.send(
                "CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\nGET \(s.origin.url("/evil")) HTTP/1.1\r\n"
                    + "Host: \(s.origin.authority)\r\nProxy-Authorization: Basic \(credentials)\r\n\r\n")
            #expect(try client.response(to: "CONNECT").status == how.rawValue)
            try client.expectClosed()
            #expect(s.origin.connectionCount == 0)
            #expect(s.count(.requests) == 1)
        }
    }

    /// A client that asks for a tunnel without credentials, and then waits, may try again on the same connection.
    @Test func `after a 407 to CONNECT the connection stays open if no bytes follow it`() throws {
        try withRefusal(.unauthenticated) { s in
            s.origin.expects("GET /inside").replies(200, body: "inside")
            let client = try s.client()
            #expect(try client.request("CONNECT", s.origin.authority).status == 407)
            let credentials = Data("ann:secret".utf8).base64EncodedString()
            let answer = try client.request(
                "CONNECT", s.origin.authority, "Proxy-Authorization: Basic \(credentials)")
            #expect(answer.status == 200)
            try client.send("GET /inside HTTP/1.1\r\n\r\n")
            #expect(try client.response().text == "inside")
        }
    }
}
