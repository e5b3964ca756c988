import EventLoop
import Foundation
import Limiting
import ProgramUnderTest
import Rules
import Server
import Settings
import Testing

/// `limits.download_rate_min` and `limits.upload_rate_min`. Windows are short here, and the rates such that no machine decides: a client that is
/// to be cut off is asked for more than any can do, and one that is not has nothing to do.
@Suite("Minimum rates of slow clients") struct SlowPeerScenarios {
    private typealias Change = (inout Configuration, Scenario.Files) throws -> Void
    /// In bytes per second. Nobody moves as many.
    private static let unreachable: UInt64 = 1 << 40

    private func judging(
        download: UInt64? = unreachable, upload: UInt64? = unreachable, window: Duration = .milliseconds(300),
        also change: @escaping Change = { _, _ in }
    ) -> Change {
        { configuration, files in
            configuration.limits.downloadRateMin = download
            configuration.limits.uploadRateMin = upload
            configuration.limits.rateWindow = window
            configuration.access.connectPorts = [1...65535]
            try change(&configuration, files)
        }
    }

    private static let piece = String(repeating: "x", count: 65536)

    // MARK: clients that read

    @Test func `a client that reads nothing of a stored response is reset, and the log says why`() throws {
        try scenario(judging(download: 1000, also: { configuration, _ in configuration.cache.memory = 128 << 20 })) {
            s in
            let body = [UInt8](repeating: 0x78, count: 10 << 20)
            s.origin.expects("GET /a").replies(200, ["Cache-Control: max-age=600"], body)
            #expect(try s.client().get("/a").body == body)
            let client = try s.client(receiveBuffer: 4096)
            try client.ask("GET", "/a")
            try s.eventually("its connection is counted") { s.closes(.clientTooSlow) == 1 }
            let end = #expect(throws: WireError.self) { try client.reader.untilEnd() }
            #expect(end?.description.contains("reset") == true, "\(String(describing: end))")
            #expect(s.count(.timeouts) == 1)
            #expect(try s.stat(.closes, "client-too-slow") == 1)
        }
    }

    @Test func `a client that reads too little is reset although bytes arrive`() throws {
        try scenario(judging()) { s in
            s.origin.expects("GET /a").sends("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
                .streams(Self.piece, untilGone: Gate("the connection to the origin is closed"))
            let client = try s.client(receiveBuffer: 4096)
            try client.ask("GET", "/a")
            let end = #expect(throws: WireError.self) { while try !client.wire.read().isEmpty {} }
            #expect(end?.description.contains("reset") == true, "\(String(describing: end))")
            try s.eventually("its connection is counted") { s.closes(.clientTooSlow) == 1 }
            #expect(try s.logLines().contains { $0.contains("\"close\":\"client-too-slow\"") })
        }
    }

    @Test func `a client on a Unix socket is judged by what it takes from the socket`() throws {
        try scenario(
            judging(
                download: 1000,
                also: { configuration, files in
                    configuration.listen.append(.unix(files.directory.appendingPathComponent("s").path))
                })
        ) { s in
            s.origin.expects("GET /a").sends("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
                .streams(Self.piece, untilGone: Gate("the connection to the origin is closed"))
            let path = s.directory.appendingPathComponent("s").path
            guard case .connected(let socket) = try Sockets.connect(try SocketAddress(unixPath: path)) else {
                throw WireError("a Unix socket connects at once")
            }
            let wire = Wire(adopting: socket.release(), "client")
            try wire.write(Array("GET \(s.origin.url("/a")) HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n".utf8))
            try s.eventually("its connection is counted") { s.closes(.clientTooSlow) == 1 }
            withExtendedLifetime(wire) {}
        }
    }

    @Test func `bytes that a client sends do not prolong the time for an answer that it does not read`() throws {
        try scenario({ configuration, _ in
            configuration.limits.downloadRateMin = nil
            configuration.timeouts.idle = .milliseconds(300)
        }) { s in
            s.origin.expects("GET /a").sends("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
                .streams(Self.piece, untilGone: Gate("the connection to the origin is closed"))
            let client = try s.client(receiveBuffer: 4096)
            try client.ask("GET", "/a")
            try s.eventually("its connection is counted") {
                // Writing fails when the connection is closed.
                do { try client.send("G") } catch {}
                return s.closes(.clientStalled) == 1
            }
        }
    }

    // MARK: clients that wait

    /// Waits until a client that reads nothing has been cut off: a window has passed since this was called.
    private func waitForWindow(_ s: Scenario) throws {
        let before = s.closes(.clientTooSlow)
        s.origin.expects("GET /endless").sends(
            "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 1000000000000\r\n\r\n"
        ).streams(Self.piece, untilGone: Gate("the connection to the origin is closed"))
        let slow = try s.client(receiveBuffer: 4096)
        try slow.ask("GET", "/endless")
        try s.eventually("a window is over") { s.closes(.clientTooSlow) == before + 1 }
        withExtendedLifetime(slow) {}
    }

    @Test func `a client that waits for the origin is not judged, before and within an answer`() throws {
        try scenario(judging()) { s in
            let (head, rest) = (Gate("the head may be sent"), Gate("the rest may be sent"))
            s.origin.expects("GET /a").waits(for: head).sends("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234")
                .waits(for: rest).sends("56789")
            let client = try s.client()
            try client.ask("GET", "/a")
            try waitForWindow(s)
            head.open()
            #expect(try client.head().startLine.contains("200"))
            try waitForWindow(s)
            rest.open()
            #expect(try client.reader.bytes(10) == Array("0123456789".utf8))
        }
    }

    @Test func `a client that is held to a rate is not judged by it`() throws {
        try scenario(
            judging(also: { configuration, _ in
                var conditions = RuleConditions()
                conditions.paths = [PathPattern("/slow")!]
                configuration.limitPlan = LimitPlan([
                    LimitRule(name: "slow", conditions, LimitTerms(bandwidth: 100 << 10))
                ])
            })
        ) { s in
            let body = [UInt8](repeating: 0x78, count: 100 << 10)
            s.origin.expects("GET /slow").replies(200, ["Cache-Control: max-age=600"], body)
            let client = try s.client()
            try client.ask("GET", "/slow")
            try waitForWindow(s)
            #expect(try client.response().body == body)
        }
    }

    @Test func `a client that waits for another request's transfer is not judged`() throws {
        try scenario(judging()) { s in
            let (asked, go) = (Gate("the origin was asked"), Gate("the origin may answer"))
            s.origin.expects("GET /a").opens(asked).waits(for: go).replies(
                200, "Cache-Control: max-age=600", body: "both")
            let (leader, follower) = (try s.client(), try s.client())
            try leader.ask("GET", "/a")
            try asked.wait()
            try follower.ask("GET", "/a")
            try waitForWindow(s)
            go.open()
            #expect(try [leader.response().text, follower.response().text] == ["both", "both"])
        }
    }

    @Test func `a tunnel is not judged`() throws {
        try scenario(judging()) { s in
            s.origin.expects("GET /a").replies(200, body: "through the tunnel")
            let client = try s.client()
            #expect(try client.request("CONNECT", s.origin.authority).status == 200)
            try waitForWindow(s)
            try client.send("GET /a HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n")
            #expect(try client.response().text == "through the tunnel")
        }
    }

    // MARK: clients that send

    /// A request whose body does not come to its end.
    private func post(_ fields: String, _ beginning: String, to port: UInt16) -> String {
        "POST http://127.0.0.1:\(port)/a HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\(fields)\r\n\r\n\(beginning)"
    }

    private static let unfinished: [(what: String, fields: String, beginning: String)] = [
        ("with a length", "Content-Length: 10", "01234"),
        ("in chunks", "Transfer-Encoding: chunked", "5\r\n01234\r\n"),
        ("that was to wait for a 100", "Content-Length: 10\r\nExpect: 100-continue", "01234"),
    ]

    @Test(arguments: unfinished) func `a body that stops gets 408, and the origin's connection is reset`(
        how: (what: String, fields: String, beginning: String)
    ) throws {
        let origin = try RawOrigin()
        try scenario(judging()) { s in
            let client = try s.client()
            try client.send(post(how.fields, how.beginning, to: origin.port))
            let taken = try origin.accept(s)
            let refused = try client.response(to: "POST")
            #expect(refused.status == 408 && refused["Connection"] == "close", "\(how.what): \(refused)")
            try client.expectClosed()
            client.wire.hangUp()
            try s.eventually("its connection is counted") { s.closes(.bodyTooSlow) == 1 }
            let end = #expect(throws: WireError.self, "the end is a reset, not the end of a stream") {
                while try !taken.read().isEmpty {}
            }
            #expect(end?.description.contains("reset") == true, "\(how.what): \(String(describing: end))")
            #expect(try s.logLines().contains { $0.contains("\"reason\":\"request-timeout\"") })
        }
    }

    @Test func `a body that was to wait for a 100 and stops has the time between two bytes as well`() throws {
        let origin = try RawOrigin()
        try scenario(
            judging(upload: nil, also: { configuration, _ in configuration.timeouts.clientIdle = .milliseconds(200) })
        ) { s in
            let client = try s.client()
            try client.send(post("Content-Length: 10\r\nExpect: 100-continue", "01234", to: origin.port))
            let taken = try origin.accept(s)
            #expect(try client.response(to: "POST").status == 408)
            client.wire.hangUp()
            try s.eventually("its connection is counted") { s.closes(.bodyTimeout) == 1 }
            withExtendedLifetime(taken) {}
        }
    }

    @Test func `a body that comes too slowly gets 408 although bytes arrive`() throws {
        let origin = try RawOrigin()
        try scenario(judging()) { s in
            let client = try s.client()
            try client.send(post("Transfer-Encoding: chunked", "", to: origin.port))
            let taken = try origin.accept(s)
            try s.eventually("the body is too slow") {
                try client.send("1\r\nx\r\n")
                return s.count(.timeouts) == 1
            }
            #expect(try client.response(to: "POST").status == 408)
            withExtendedLifetime(taken) {}
        }
    }

    @Test func `within an answer that has begun, the connection breaks off`() throws {
        let origin = try RawOrigin()
        try scenario(judging()) { s in
            let client = try s.client()
            try client.send(post("Content-Length: 10", "01234", to: origin.port))
            let taken = try origin.accept(s)
            try taken.write(Array("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234".utf8))
            let answer = try client.response(to: "POST")
            #expect(answer.status == 200 && !answer.isWhole, "\(answer)")
            try s.eventually("its connection is counted") { s.closes(.bodyTooSlow) == 1 }
        }
    }

    @Test func `a client that waits for a 100 is not judged`() throws {
        let origin = try RawOrigin()
        try scenario(judging()) { s in
            let client = try s.client()
            try client.send(post("Content-Length: 10\r\nExpect: 100-continue", "", to: origin.port))
            let taken = try origin.accept(s)
            try waitForWindow(s)
            try taken.write(Array("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nunasked".utf8))
            #expect(try client.response(to: "POST").text == "unasked")
        }
    }

    @Test func `a client whose origin takes nothing is not judged`() throws {
        let origin = try Unanswering.Listener()
        try scenario(judging(upload: 1000, window: .seconds(1))) { s in
            let client = try s.client()
            // More than all buffers on the way hold, so Larder stops reading from the client.
            let body = [UInt8](repeating: 0x78, count: 64 << 20)
            try client.send(post("Content-Length: \(body.count)", "", to: origin.port))
            let hasEnded = Gate("the client has ended")
            let wire = client.wire
            Thread.detachNewThread {
                // It fails when the test hangs up.
                do { try wire.write(body) } catch {}
                hasEnded.open()
            }
            try waitForWindow(s)
            try waitForWindow(s)
            #expect(s.closes(.bodyTooSlow) == 0)
            client.wire.hangUp()
            try hasEnded.wait()
            withExtendedLifetime(origin) {}
        }
    }

    // MARK: heads

    @Test func `the beginning of a head that came behind a request has the time of a head`() throws {
        try scenario({ configuration, _ in configuration.timeouts.clientHead = .milliseconds(200) }) { s in
            s.origin.expects("GET /a").replies(200, body: "a")
            let client = try s.client()
            try client.send(
                "GET \(s.origin.url("/a")) HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\nGET http://")
            #expect(try client.response().text == "a")
            #expect(try client.response().status == 408)
            client.wire.hangUp()
            try s.eventually("its connection is counted") { s.closes(.headTimeout) == 1 }
        }
    }
}
