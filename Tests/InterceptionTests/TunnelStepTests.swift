import Framing
import Interception
import Rules
import Testing
import Transaction

@Suite("What becomes of a tunnel after the client's first bytes")
struct TunnelStepTests {
    static func step(name: String?, protocols: [String]?, host: String = "files.example.org", mayRemain: Bool) throws
        -> TunnelStep
    {
        let host = try #require(DestinationHost(Array(host.utf8)))
        let hello = ClientHello(
            serverName: name.map { Array($0.utf8) }, protocols: protocols?.map { Array($0.utf8) })
        return TunnelTarget(host: host, mayRemainTunnel: mayRemain).step(after: .tls(hello))
    }

    static let names: [(name: String?, host: String, isSame: Bool)] = [
        ("files.example.org", "files.example.org", true), ("Files.EXAMPLE.org", "files.example.org", true),
        (nil, "files.example.org", true), (nil, "192.0.2.1", true), ("192.0.2.1", "192.0.2.1", true),
        ("other.example.org", "files.example.org", false), ("example.org", "files.example.org", false),
        ("files.example.org.", "files.example.org", false),
        ("files.example.org\0.evil.test", "files.example.org", false),
        ("files.example.org\0", "files.example.org", false), ("192.0.2.1", "files.example.org", false),
        ("files.example.org", "192.0.2.1", false), ("*.example.org", "files.example.org", false),
        ("file%73.example.org", "files.example.org", false), ("", "files.example.org", false),
    ]

    @Test(arguments: names, [true, false])
    func `SNI names the host of CONNECT, or the client is refused`(
        _ row: (name: String?, host: String, isSame: Bool), _ mayRemain: Bool
    ) throws {
        let host = try #require(DestinationHost(Array(row.host.utf8)))
        let step = try Self.step(name: row.name, protocols: nil, host: row.host, mayRemain: mayRemain)
        #expect(step == (row.isSame ? .secure(host) : .refuse(.serverNameMismatch, alert: .unrecognisedName)))
    }

    static let protocols: [(offered: [String]?, isSpoken: Bool)] = [
        (nil, true), (["http/1.1"], true), (["h2", "http/1.1"], true), (["http/1.1", "h2"], true),
        (["h2"], false), (["postgresql"], false), (["acme-tls/1"], false), (["http/1.0"], false), (["HTTP/1.1"], false),
    ]

    @Test(arguments: protocols)
    func `what Larder does not speak remains a tunnel only where no rule looks inside`(
        _ row: (offered: [String]?, isSpoken: Bool)
    ) throws {
        let host = try #require(DestinationHost(Array("files.example.org".utf8)))
        let open = try Self.step(name: "files.example.org", protocols: row.offered, mayRemain: true)
        #expect(open == (row.isSpoken ? .secure(host) : .tunnel))
        let closed = try Self.step(name: "files.example.org", protocols: row.offered, mayRemain: false)
        let refusal = TunnelStep.refuse(.protocolNotOpened, alert: .noApplicationProtocol)
        #expect(closed == (row.isSpoken ? .secure(host) : refusal))
    }

    @Test func `a foreign protocol does not excuse another name`() throws {
        #expect(
            try Self.step(name: "other.test", protocols: ["h2"], mayRemain: true)
                == .refuse(.serverNameMismatch, alert: .unrecognisedName))
    }

    static let others: [(bytes: FirstBytes, open: TunnelStep, closed: TunnelStep)] = [
        (.http1, .plain, .plain), (.undecided(needs: 9), .wait(needs: 9), .wait(needs: 9)),
        (.other, .tunnel, .refuse(.protocolNotOpened, alert: nil)),
        (.malformedHello, .refuse(.malformedHello, alert: .decodeError), .refuse(.malformedHello, alert: .decodeError)),
        (.longHello, .refuse(.malformedHello, alert: .decodeError), .refuse(.malformedHello, alert: .decodeError)),
    ]

    @Test(arguments: others)
    func `bytes that are no ClientHello`(_ row: (bytes: FirstBytes, open: TunnelStep, closed: TunnelStep)) throws {
        let host = try #require(DestinationHost(Array("files.example.org".utf8)))
        #expect(TunnelTarget(host: host, mayRemainTunnel: true).step(after: row.bytes) == row.open)
        #expect(TunnelTarget(host: host, mayRemainTunnel: false).step(after: row.bytes) == row.closed)
    }

    @Test func `a client that waits for the server gets its tunnel when the time is over`() throws {
        let host = try #require(DestinationHost(Array("files.example.org".utf8)))
        let open = TunnelTarget(host: host, mayRemainTunnel: true)
        let closed = TunnelTarget(host: host, mayRemainTunnel: false)
        #expect(open.stepAtTimeLimit(received: 0) == .tunnel)
        #expect(open.stepAtTimeLimit(received: 3) == .refuse(.helloTimeout, alert: nil))
        #expect(closed.stepAtTimeLimit(received: 0) == .refuse(.helloTimeout, alert: nil))
    }

    @Test func `an alert is a record of its own`() {
        #expect(TLSAlert.unrecognisedName.record == [0x15, 3, 3, 0, 2, 2, 112])
        #expect(TLSAlert.noApplicationProtocol.record == [0x15, 3, 3, 0, 2, 2, 120])
    }
}

@Suite("What a client speaks in a tunnel")
struct FirstBytesTests {
    static let rows: [(text: String, expected: FirstBytes)] = [
        ("", .undecided(needs: 1)), ("G", .undecided(needs: 2)), ("GET", .undecided(needs: 4)),
        ("GET / HTTP/1.1", .undecided(needs: 15)), ("GET / HTTP/1.1\r\n", .http1), ("GET / HTTP/1.0\n", .http1),
        ("VERSION-CONTROL /a HTTP/1.1\r\nHost", .http1), ("M-SEARCH * HTTP/1.1\r\n", .http1),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", .other), ("GET / HTTP/3\r\n", .other), ("GET /\r\n", .other),
        ("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", .other), ("NICK larder\r\n", .other), ("get / HTTP/1.1\r\n", .other),
        (" HTTP/1.1\r\n", .other), ("\r\nGET / HTTP/1.1\r\n", .other), ("\u{5}\u{1}\0", .other),
        ("EHLO mail.example.org\r\n", .other), (String(repeating: "A", count: 33), .other),
        (String(repeating: "A", count: 32), .undecided(needs: 33)),
        ("GET /" + String(repeating: "a", count: 16 << 10), .other),
    ]

    @Test(arguments: rows) func `HTTP/1 shows by its request line`(_ row: (text: String, expected: FirstBytes)) {
        #expect(FirstBytes(Array(row.text.utf8).span) == row.expected)
    }

    static let records: [(bytes: [UInt8], expected: FirstBytes)] = [
        ([0x16], .undecided(needs: 5)), ([0x16, 2], .malformedHello), ([0x16, 3, 1, 0x40, 0], .longHello),
    ]
    @Test(arguments: records) func `a TLS record is read as one`(_ row: (bytes: [UInt8], expected: FirstBytes)) {
        #expect(FirstBytes(row.bytes.span) == row.expected)
    }
}
