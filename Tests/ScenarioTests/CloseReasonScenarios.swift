import Access
import Authentication
import Foundation
import Limiting
import Message
import Passwords
import ProgramUnderTest
import Rules
@testable import Server
import Settings
import TLS
import Testing
import Transaction

/// How a close is brought about, and whether the log line of a request names it.
private struct Ending: Sendable {
    var configure: @Sendable (inout Configuration, Scenario.Files) throws -> Void = { _, _ in }
    /// The request whose client did not get its whole answer, or what never became a request, has the reason in its log line.
    var isLogged = false
    /// Returns what is to stay open until the close is counted.
    var play: @Sendable (Scenario) throws -> ScriptedClient
}

extension CloseReason {
    /// A new close reason does not compile until it says how it is brought about.
    fileprivate var ending: Ending {
        switch self {
        case .clientClosed: .afterAnswer(ends: true)
        case .closeRequested: .afterAnswer("Connection: close")
        case .idle: .afterAnswer { configuration, _ in configuration.timeouts.clientIdle = .milliseconds(200) }
        case .requestLimitReached:
            .afterAnswer { configuration, _ in configuration.limits.requestsPerConnectionMax = 1 }
        case .becameTunnel: .becameTunnel
        case .clientLeft: .clientLeft
        case .clientStalled: .clientStalled
        case .clientTooSlow: .clientTooSlow
        case .headTimeout:
            Ending(
                configure: { configuration, _ in configuration.timeouts.clientHead = .milliseconds(200) },
                play: { try $0.refused("GET http://", 408) })
        case .bodyTimeout: .bodyTimeout
        case .bodyTooSlow: .bodyTooSlow
        case .malformedRequest: Ending { try $0.refused("GET http://h/ HTTP/1.1\r\n\r\n", 400) }
        case .malformedBody: .malformedBody
        case .requestUnread: .requestUnread
        case .tunnelRefused:
            Ending(
                configure: { configuration, _ in configuration.access.privateDestinations = .deny },
                play: { try $0.refused("CONNECT h.test:22 HTTP/1.1\r\nHost: h.test:22\r\n\r\n", 403) })
        case .tlsNotOffered: .greeting([0x16, 0x03, 0x01, 0x00, 0x05, 0x01, 0, 0, 1, 0])
        case .protocolNotOffered: .greeting(Array("PRI * HTTP/2.0\r\n\r\n".utf8))
        case .tlsRequired:
            .greeting(Array("GET".utf8)) { configuration, files in
                var tls = try files.listenerTLS(try MadeCertificate(for: "IP:127.0.0.1"))
                tls.isRequired = true
                configuration.secure(tls)
            }
        case .proxyHeaderUntrusted: .greeting(Array("PROXY UNKNOWN\r\n".utf8))
        case .proxyHeaderMissing:
            .greeting(Array("GET".utf8)) { configuration, _ in configuration.trustLoopback() }
        case .proxyHeaderMalformed:
            .greeting(Array("PROXY x\r\n".utf8), isAnswered: false) { configuration, _ in
                configuration.trustLoopback()
            }
        // A ClientHello of a version that nobody speaks any more.
        case .proxyHandshakeFailed:
            .greeting([0x16, 3, 0, 0, 4, 1, 0, 0, 0]) { configuration, files in
                configuration.secure(try files.listenerTLS(try MadeCertificate(for: "IP:127.0.0.1")))
            }
        case .clientCertificateRefused: .withoutCertificate
        case .malformedHello: .inTunnel { try $0.write([0x16, 3, 1, 0, 4, 2, 0, 0, 0]) }
        case .helloTimeout:
            .inTunnel {
                try $0.write([0x16, 3, 1])
            } configure: {
                $0.limits.helloTimeout = .milliseconds(100)
            }
        case .serverNameMismatch: .inTunnel { wire in try Ending.secure(wire, name: "other.test") }
        case .serverNameMissing: .inPassedTunnel { try $0.write(HelloBytes().bytes) }
        case .tlsMissing: .inPassedTunnel { try $0.write(Array("GET / HTTP/1.1\r\n".utf8)) }
        case .protocolNotOpened:
            .inTunnel {
                try $0.write(Array("SSH-2.0-test\r\n".utf8))
            } configure: {
                var conditions = RuleConditions()
                conditions.methods = ["CONNECT"]
                $0.access.rules = [AccessRule(effect: .allow, conditions: conditions, number: 1)]
            }
        case .certificateRefused:
            .inTunnel { wire in try Ending.secure(wire, name: "h.test", trusting: MadeAuthority.stranger) }
        // A record of a handshake that is not the one that has to follow.
        case .handshakeFailed: .handshakeFailed
        case .identityEnded: .identityEnded
        case .endOfBody: .endOfBody
        case .answerIncomplete: .answerIncomplete
        case .answerDamaged: .answerDamaged
        case .answerTooLong: .answerTooLong
        case .tooManyClients: .tooMany { $0.limits.clientsMax = 1 }
        case .tooManyOfClient:
            .tooMany {
                $0.limitPlan = LimitPlan([LimitRule(name: "one", RuleConditions(), LimitTerms(connections: 1))])
            }
        case .overloaded:
            Ending { s in
                s.origin.expects("GET /a").replies(200, body: "a")
                let client = try s.client()
                try client.get("/a")
                let levels = (OverloadPolicy.Level(used: 96, limit: 100), OverloadPolicy.Level(used: 1, limit: 100))
                s.proxy.shared.overload.assume(memory: levels.1, descriptors: levels.0)
                try client.expectClosed()
                return client
            }
        case .draining: .draining
        case .stopped: .stopped
        }
    }
}

@Suite("Every close reason is provoked")
struct CloseReasonScenarios {
    @Test(arguments: CloseReason.allCases) func `statistics and log name the reason`(_ reason: CloseReason) throws {
        let ending = reason.ending
        try scenario(ending.configure) { s in
            let client = try ending.play(s)
            try s.eventually("the close is counted; closed so far: \(try s.stats()["closes"]?.members ?? [])") {
                try s.stat(.closes, reason.name) == 1
            }
            // Each connection has one reason; those that are refused at once are not counted as accepted, nor as closed.
            let refused =
                reason == .tooManyClients || reason == .tooManyOfClient ? s.count(.clientConnectionsRefused) : 0
            // A connection's reason is counted first, and the connection when it is forgotten.
            try s.eventually("one reason per closed connection: \(s.count(.clientConnectionsClosed)) closed") {
                CloseReason.allCases.reduce(0) { $0 + s.closes($1) } == s.count(.clientConnectionsClosed) + refused
            }
            withExtendedLifetime(client) {}
            let lines = try s.logLines()
            #expect(lines.contains { $0.contains("\"close\":\"\(reason.name)\"") } == ending.isLogged, "\(lines)")
        }
    }
}

extension Scenario {
    /// Sends a request that is refused, and ends the client's side.
    fileprivate func refused(_ bytes: String, _ status: Int) throws -> ScriptedClient {
        let client = try client()
        try client.send(bytes)
        #expect(try client.response().status == status)
        client.wire.finishWriting()
        return client
    }
}

extension Ending {
    /// One answer, and then nothing.
    ///
    /// - Parameter ends: the client ends its side.
    fileprivate static func afterAnswer(
        _ fields: String..., ends: Bool = false,
        configure: @escaping @Sendable (inout Configuration, Scenario.Files) throws -> Void = { _, _ in }
    ) -> Ending {
        Ending(configure: configure) { s in
            s.origin.expects("GET /a").replies(200, body: "a")
            let client = try s.client()
            try client.ask("GET", "/a", fields)
            #expect(try client.response().text == "a")
            if ends { client.wire.finishWriting() }
            return client
        }
    }

    fileprivate static let becameTunnel = Ending(
        configure: { configuration, files in
            configuration.access.connectPorts = [files.origin.port...files.origin.port]
        },
        play: { s in
            let client = try s.client()
            #expect(try client.request("CONNECT", s.origin.authority).status == 200)
            return client
        })

    fileprivate static let clientLeft = Ending(isLogged: true) { s in
        let asked = Gate("the origin was asked")
        s.origin.expects("GET /a").opens(asked).hangs()
        let client = try s.client()
        try client.ask("GET", "/a")
        try asked.wait()
        client.wire.reset()
        return client
    }

    fileprivate static let clientStalled = unread { $0.timeouts.idle = .milliseconds(300) }
    fileprivate static let clientTooSlow = unread { $0.limits.rateWindow = .milliseconds(300) }

    /// The answer is larger than what the buffers of the kernel take, and the client does not read.
    private static func unread(_ configure: @escaping @Sendable (inout Configuration) -> Void) -> Ending {
        Ending(configure: { configuration, _ in configure(&configuration) }, isLogged: true) { s in
            let piece = String(repeating: "x", count: 65536)
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 1000000000\r\n\r\n"
            ).streams(piece, untilGone: Gate("the connection to the origin is closed"))
            let client = try s.client(receiveBuffer: 4096)
            try client.ask("GET", "/a")
            return client
        }
    }

    fileprivate static let bodyTimeout = unfinishedBody { $0.timeouts.clientIdle = .milliseconds(200) }
    fileprivate static let bodyTooSlow = unfinishedBody { $0.limits.rateWindow = .milliseconds(200) }

    private static func unfinishedBody(_ configure: @escaping @Sendable (inout Configuration) -> Void) -> Ending {
        Ending(configure: { configuration, _ in configure(&configuration) }) { s in
            let origin = try Unanswering.Listener()
            return try withExtendedLifetime(origin) {
                try s.refused(
                    "POST http://127.0.0.1:\(origin.port)/ HTTP/1.1\r\nHost: 127.0.0.1:\(origin.port)\r\n"
                        + "Content-Length: 10\r\n\r\n01234", 408)
            }
        }
    }

    fileprivate static let malformedBody = Ending { s in
        let origin = try Unanswering.Listener()
        return try withExtendedLifetime(origin) {
            try s.refused(
                "POST http://127.0.0.1:\(origin.port)/ HTTP/1.1\r\nHost: 127.0.0.1:\(origin.port)\r\n"
                    + "Transfer-Encoding: chunked\r\n\r\nno size\r\n", 400)
        }
    }

    fileprivate static let requestUnread = Ending(
        configure: { configuration, _ in
            configuration.access.rules = [AccessRule(effect: .deny(reason: "not today"), number: 1)]
        },
        play: { try $0.refused("POST http://h/ HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\n\r\n", 403) })

    fileprivate static func greeting(
        _ bytes: [UInt8], isAnswered: Bool = true,
        configure: @escaping @Sendable (inout Configuration, Scenario.Files) throws -> Void = { _, _ in }
    ) -> Ending {
        Ending(configure: configure, isLogged: true) { s in
            let client = try s.client()
            try client.wire.write(bytes)
            #expect(try client.reader.some().isEmpty == !isAnswered)
            client.wire.finishWriting()
            return client
        }
    }

    /// A client that is asked for a certificate, and has none.
    fileprivate static let withoutCertificate = Ending(
        configure: { configuration, files in
            configuration.secure(
                try files.listenerThatAsks(try MadeCertificate(for: "IP:127.0.0.1"), .required))
        }, isLogged: true
    ) { s in
        let client = try s.client()
        let path = s.directory.appendingPathComponent("listener.pem").path
        try client.wire.secure(try TLSClientContext(authorities: .file(path)), name: "127.0.0.1")
        #expect(throws: Wire.TLSProblem.self) { try client.reader.some() }
        return client
    }

    /// A client that does something in a tunnel to a host that is opened.
    fileprivate static func inTunnel(
        _ act: @escaping @Sendable (Wire) throws -> Void,
        configure: @escaping @Sendable (inout Configuration) -> Void = { _ in }
    ) -> Ending {
        Ending(
            configure: { configuration, files in
                try files.intercept("h.test", in: &configuration)
                configure(&configuration)
            }, isLogged: true,
            play: { s in
                let client = try s.tunnel(to: "h.test:443")
                try act(client.wire)
                return client
            })
    }

    /// A client that does something in a tunnel to a host that a rule names.
    fileprivate static func inPassedTunnel(_ act: @escaping @Sendable (Wire) throws -> Void) -> Ending {
        Ending(
            configure: { configuration, files in
                configuration.dns.hosts = [DNSEntry(name: "h.test", values: [IPAddress(v4: 0x7F00_0001)])]
                var conditions = RuleConditions()
                conditions.hosts = [HostPattern("h.test")!]
                conditions.ports = [files.origin.port...files.origin.port]
                configuration.access.rules = [AccessRule(effect: .allow, conditions: conditions, number: 1)]
            }, isLogged: true,
            play: { s in
                let client = try s.tunnel(to: "h.test:\(s.origin.port)")
                try act(client.wire)
                return client
            })
    }

    /// Shakes hands, which fails.
    fileprivate static func secure(
        _ wire: Wire, name: String, trusting authority: Result<MadeAuthority, any Error> = MadeAuthority.shared
    ) throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString).pem")
        try Data(authority.get().root).write(to: path)
        defer { try? FileManager.default.removeItem(at: path) }
        let context = try TLSClientContext(authorities: .file(path.path))
        #expect(throws: Wire.TLSProblem.self) { try wire.secure(context, name: name) }
    }

    /// The ClientHello is in order, but offers no key and no cipher that the proxy has.
    fileprivate static let handshakeFailed = Ending.inTunnel { wire in
        let hello: [UInt8] =
            [3, 3] + [UInt8](repeating: 7, count: 32) + [0, 0, 2, 0, 0, 1, 0, 0, 0]
        try wire.write([0x16, 3, 1, 0, UInt8(hello.count + 4), 1, 0, 0, UInt8(hello.count)] + hello)
        #expect(try wire.read().prefix(5) == [0x15, 3, 3, 0, 2])
    }

    /// The user of a CONNECT is removed, and a request follows in the opened tunnel.
    fileprivate static let identityEnded = Ending(
        configure: { configuration, files in
            try files.intercept("h.test", in: &configuration)
            let line = "ann:\(try hash(password: Array("secret".utf8)))\n"
            configuration.access.authentication.basic.usersFile = try files.write("users", line)
            configuration.workers = .count(1)
        },
        play: { s in
            let credentials = Data("ann:secret".utf8).base64EncodedString()
            let client = try s.tunnel(to: "h.test:80", "Proxy-Authorization: Basic \(credentials)")
            try client.askInside("GET", "/a", host: "h.test:80", "Cache-Control: only-if-cached")
            #expect(try client.response().status == 504)
            let shelf = s.proxy.snapshot.authentication
            s.proxy.adopt(AuthenticationMaterial(), for: shelf)
            try s.eventually("the user is not known any more") {
                try client.askInside("GET", "/a", host: "h.test:80", "Cache-Control: only-if-cached")
                return try client.response().status == 403
            }
            client.wire.finishWriting()
            return client
        })

    /// A client of HTTP/1.0 cannot read chunks.
    fileprivate static let endOfBody = Ending { s in
        s.origin.expects("GET /a").replies(
            200, ["Cache-Control: no-store", "Transfer-Encoding: chunked"], Array("1\r\na\r\n0\r\n\r\n".utf8))
        let client = try s.client()
        try client.ask("GET", "/a", ["Connection: keep-alive"], version: "1.0")
        #expect(try client.response().text == "a")
        client.wire.finishWriting()
        return client
    }

    fileprivate static let answerIncomplete = Ending(isLogged: true) { s in
        s.origin.expects("GET /a").sends("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123").closes()
        let client = try s.client()
        #expect(try !client.get("/a").isWhole)
        return client
    }

    /// A client does not take its answer at once. Its body, of which another part is damaged, cannot be kept in memory for it, so the rest
    /// is read from the disk when the client goes on, and is damaged then.
    fileprivate static let answerDamaged = Ending(
        configure: { configuration, files in
            try configuration.read(cache: "disk: { path: DIRECTORY/disk, size: 200MiB, sync: 100ms }", files)
            configuration.workers = .count(1)
        },
        isLogged: true,
        play: { s in
            // Four blocks of 64 KiB, of which the first two are asked for, and a fifth. Ranges of 96 KiB and more of what was verified would go
            // out by `sendfile`, which reads nothing.
            let (asked, rest, other) = (UInt8(ascii: "a"), UInt8(ascii: "r"), UInt8(ascii: "o"))
            let body = [UInt8](repeating: asked, count: 4 << 16) + [UInt8](repeating: rest, count: 30_000)
            let paths = (0..<90).map { "/\($0)" }
            for path in paths { s.origin.expects("GET \(path)").replies(200, ["Cache-Control: max-age=600"], body) }
            s.origin.expects("GET /other").replies(
                200, ["Cache-Control: max-age=600"], [UInt8](repeating: other, count: 200_000))
            for path in paths + ["/other"] { try s.client().get(path) }
            try s.leaveToDisk()
            try s.damageSegments(rest)
            let slow = try s.client(receiveBuffer: 4096)
            let sent = s.count(.bytesToClients)
            // More than the buffers of the kernel take: the client gets stuck within one of the answers.
            for path in paths { try slow.ask("GET", path, ["Range: bytes=0-89999"]) }
            let client = try s.client()
            var turnsWithoutProgress = 0
            try s.eventually("nothing more is sent to the slow client") {
                let before = s.count(.bytesToClients)
                try client.request("OPTIONS", "/", "Max-Forwards: 0")
                let isStuck = before > sent + 10_000 && s.count(.bytesToClients) - before < 1000
                turnsWithoutProgress = isStuck ? turnsWithoutProgress + 1 : 0
                return turnsWithoutProgress == 200
            }
            try s.damageSegments(asked)
            // The worker reads another body into its buffer.
            #expect(try client.get("/other").isWhole)
            _ = try slow.reader.untilEnd()
            return slow
        })

    fileprivate static let answerTooLong = Ending(
        configure: { configuration, _ in
            configuration.limitPlan = LimitPlan([
                LimitRule(name: "small", RuleConditions(), LimitTerms(responseBody: 3))
            ])
        }, isLogged: true,
        play: { s in
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n0\r\n\r\n")
            let client = try s.client()
            let answer = try client.get("/a")
            #expect(!answer.isWhole && answer.text == "fou", "\(answer)")
            return client
        })

    fileprivate static func tooMany(_ limit: @escaping @Sendable (inout Configuration) -> Void) -> Ending {
        Ending(
            configure: { configuration, _ in limit(&configuration) },
            play: { s in
                s.origin.expects("GET /a").replies(200, body: "a")
                let first = try s.client()
                try first.get("/a")
                try s.client().expectClosed()
                return first
            })
    }

    fileprivate static let draining = Ending { s in
        let (asked, go) = (Gate("the origin was asked"), Gate("the origin may answer"))
        s.origin.expects("GET /a").opens(asked).waits(for: go).replies(200, body: "last")
        let client = try s.client()
        try client.ask("GET", "/a")
        try asked.wait()
        s.proxy.drain()
        go.open()
        #expect(try client.response().text == "last")
        client.wire.finishWriting()
        return client
    }

    fileprivate static let stopped = Ending(isLogged: true) { s in
        let asked = Gate("the origin was asked")
        s.origin.expects("GET /a").opens(asked).hangs()
        let client = try s.client()
        try client.ask("GET", "/a")
        try asked.wait()
        s.proxy.stop()
        return client
    }
}

extension Scenario {
    /// Changes a byte in each KiB of what the disk tier has stored of bodies that consist of this byte.
    fileprivate func damageSegments(_ byte: UInt8) throws {
        let files = try #require(FileManager.default.enumerator(at: directory, includingPropertiesForKeys: nil))
        for case let file as URL in files where file.pathExtension == "seg" {
            let data = try Data(contentsOf: file)
            let handle = try FileHandle(forWritingTo: file)
            for start in stride(from: 0, to: data.count - 32, by: 1024)
            where data[start..<start + 32].allSatisfy({ $0 == byte }) {
                try handle.seek(toOffset: UInt64(start))
                try handle.write(contentsOf: [byte ^ 0x10])
            }
            try handle.close()
        }
    }
}
