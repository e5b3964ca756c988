import Framing
import Interception
import Rules
import Testing
import Transaction

private func host(_ text: String) throws -> DestinationHost { try #require(DestinationHost(Array(text.utf8))) }

private func hello(
    _ name: String?, _ protocols: [String]? = nil, encrypted: ClientHello.EncryptedHello? = nil
) -> FirstBytes {
    .tls(
        ClientHello(
            serverName: name.map { Array($0.utf8) }, protocols: protocols?.map { Array($0.utf8) },
            encryptedHello: encrypted))
}

/// What is compared with the host of CONNECT.
private let names: [(name: String?, host: String, isSame: Bool)] = [
    ("files.example.org", "files.example.org", true), ("Files.EXAMPLE.org", "files.example.org", true),
    ("192.0.2.1", "192.0.2.1", true), ("other.example.org", "files.example.org", false),
    ("example.org", "files.example.org", false), ("files.example.org.", "files.example.org", false),
    ("files.example.org\0.evil.test", "files.example.org", false), ("files.example.org\0", "files.example.org", false),
    ("192.0.2.1", "files.example.org", false), ("files.example.org", "192.0.2.1", false),
    ("192.0.2.2", "192.0.2.1", false), ("*.example.org", "files.example.org", false),
    ("file%73.example.org", "files.example.org", false), ("", "files.example.org", false),
    ("files.example.org,evil.test", "files.example.org", false),
    ("fi\u{17F}es.example.org", "files.example.org", false),
]

@Suite("What becomes of a tunnel that is opened, after the client's first bytes")
struct OpenedTunnelStepTests {
    static func step(
        _ bytes: FirstBytes, host name: String = "files.example.org", terms: TunnelTerms = .anything, mayRemain: Bool
    ) throws -> TunnelStep {
        TunnelTarget(host: try host(name), terms: terms, use: .open(mayRemain: mayRemain)).step(after: bytes)
    }

    @Test(arguments: names, [true, false])
    func `SNI names the host of CONNECT, or the client is refused`(
        _ row: (name: String?, host: String, isSame: Bool), _ mayRemain: Bool
    ) throws {
        let step = try Self.step(hello(row.name), host: row.host, mayRemain: mayRemain)
        let own = try host(row.host)
        #expect(step == (row.isSame ? .secure(own) : .refuse(.serverNameMismatch, alert: .unrecognisedName)))
    }

    @Test(arguments: ["files.example.org", "192.0.2.1"])
    func `without SNI, the certificate is for the host of CONNECT`(_ name: String) throws {
        #expect(try Self.step(hello(nil), host: name, mayRemain: true) == .secure(host(name)))
    }

    static let protocols: [(offered: [String]?, isSpoken: Bool)] = [
        (nil, true), (["http/1.1"], true), (["h2", "http/1.1"], true), (["http/1.1", "h2"], true),
        (["h2"], false), (["postgresql"], false), (["acme-tls/1"], false), (["http/1.0"], false), (["HTTP/1.1"], false),
    ]

    @Test(arguments: protocols)
    func `what Larder does not speak remains a tunnel only where no rule looks inside`(
        _ row: (offered: [String]?, isSpoken: Bool)
    ) throws {
        let own = try host("files.example.org")
        let hello = hello("files.example.org", row.offered)
        #expect(try Self.step(hello, mayRemain: true) == (row.isSpoken ? .secure(own) : .tunnel))
        let refusal = TunnelStep.refuse(.protocolNotOpened, alert: .noApplicationProtocol)
        #expect(try Self.step(hello, mayRemain: false) == (row.isSpoken ? .secure(own) : refusal))
    }

    @Test func `a foreign protocol does not excuse another name, or none`() throws {
        #expect(
            try Self.step(hello("other.test", ["h2"]), mayRemain: true)
                == .refuse(.serverNameMismatch, alert: .unrecognisedName))
        #expect(
            try Self.step(hello(nil, ["h2"]), terms: TunnelTerms(.tls, namesHost: true), mayRemain: true)
                == .refuse(.serverNameMissing, alert: .missingExtension))
    }

    static let others: [(bytes: FirstBytes, open: TunnelStep, closed: TunnelStep)] = [
        (.http1, .plain, .plain), (.undecided(needs: 9), .wait(needs: 9), .wait(needs: 9)),
        (.other, .tunnel, .refuse(.protocolNotOpened, alert: nil)),
        (.ssh, .tunnel, .refuse(.protocolNotOpened, alert: nil)),
        (.malformedHello, .refuse(.malformedHello, alert: .decodeError), .refuse(.malformedHello, alert: .decodeError)),
        (.longHello, .refuse(.malformedHello, alert: .decodeError), .refuse(.malformedHello, alert: .decodeError)),
    ]

    @Test(arguments: others)
    func `bytes that are no ClientHello`(_ row: (bytes: FirstBytes, open: TunnelStep, closed: TunnelStep)) throws {
        #expect(try Self.step(row.bytes, mayRemain: true) == row.open)
        #expect(try Self.step(row.bytes, mayRemain: false) == row.closed)
    }

    @Test func `what remains a tunnel keeps to the terms of tunnels`() throws {
        let terms = TunnelTerms(.tls, namesHost: true)
        for bytes in [FirstBytes.other, .ssh] {
            #expect(try Self.step(bytes, terms: terms, mayRemain: true) == .refuse(.tlsMissing, alert: nil))
        }
    }

    @Test func `a client that waits for the server gets its tunnel when the time is over`() throws {
        func step(_ terms: TunnelTerms, mayRemain: Bool, received: Int) throws -> TunnelStep {
            TunnelTarget(host: try host("a.test"), terms: terms, use: .open(mayRemain: mayRemain))
                .stepAtTimeLimit(received: received)
        }
        let refusal = TunnelStep.refuse(.helloTimeout, alert: nil)
        #expect(try step(.anything, mayRemain: true, received: 0) == .tunnel)
        #expect(try step(.anything, mayRemain: true, received: 3) == refusal)
        #expect(try step(.anything, mayRemain: false, received: 0) == refusal)
        // Nobody would look at what it sends afterwards.
        #expect(try step(TunnelTerms(.recognised, namesHost: true), mayRemain: true, received: 0) == refusal)
        #expect(try step(TunnelTerms(.tls, namesHost: false), mayRemain: true, received: 0) == refusal)
    }

    @Test func `an alert is a record of TLS`() {
        #expect(TLSAlert.unrecognisedName.record == [21, 3, 3, 0, 2, 2, 112])
        #expect(TLSAlert.missingExtension.record == [21, 3, 3, 0, 2, 2, 109])
    }
}

@Suite("What becomes of a tunnel that is passed on, after the client's first bytes")
struct PassedTunnelStepTests {
    static let ruled = TunnelTerms(.tls, namesHost: true)
    static let ruledElsewhere = TunnelTerms(.recognised, namesHost: true)
    static let unruled = TunnelTerms(.tls, namesHost: false)

    static func target(_ terms: TunnelTerms, host name: String = "files.example.org") throws -> TunnelTarget {
        TunnelTarget(host: try host(name), terms: terms, use: .pass)
    }

    @Test(arguments: names, [ruled, ruledElsewhere])
    func `where a host rule is in force, SNI names the host`(
        _ row: (name: String?, host: String, isSame: Bool), _ terms: TunnelTerms
    ) throws {
        let step = try Self.target(terms, host: row.host).step(after: hello(row.name))
        #expect(step == (row.isSame ? .tunnel : .refuse(.serverNameMismatch, alert: .unrecognisedName)))
        let unruled = try Self.target(Self.unruled, host: row.host).step(after: hello(row.name))
        #expect(unruled == .tunnel)
    }

    @Test func `a name has to be there, an address cannot be`() throws {
        let named = try Self.target(Self.ruled).step(after: hello(nil))
        #expect(named == .refuse(.serverNameMissing, alert: .missingExtension))
        for address in ["192.0.2.1", "[2001:db8::1]"] {
            #expect(try Self.target(Self.ruled, host: address).step(after: hello(nil)) == .tunnel)
        }
    }

    static let encrypted: [(name: String?, type: ClientHello.EncryptedHello, expected: TunnelStep)] = [
        // Chromium and Firefox send the extension to every server.
        ("files.example.org", .outer, .tunnel),
        ("public-name.test", .outer, .refuse(.serverNameMismatch, alert: .unrecognisedName)),
        (nil, .outer, .refuse(.serverNameMissing, alert: .missingExtension)),
        ("files.example.org", .inner, .refuse(.malformedHello, alert: .illegalParameter)),
        ("public-name.test", .inner, .refuse(.malformedHello, alert: .illegalParameter)),
    ]

    @Test(arguments: encrypted)
    func `an encrypted hello proves nothing, and its public name is a name`(
        _ row: (name: String?, type: ClientHello.EncryptedHello, expected: TunnelStep)
    ) throws {
        #expect(try Self.target(Self.ruled).step(after: hello(row.name, encrypted: row.type)) == row.expected)
        #expect(try Self.target(Self.unruled).step(after: hello(row.name, encrypted: row.type)) == .tunnel)
    }

    static let malformed = TunnelStep.refuse(.malformedHello, alert: .decodeError)
    static let noTLS = TunnelStep.refuse(.tlsMissing, alert: nil)
    static let others: [(bytes: FirstBytes, tls: TunnelStep, elsewhere: TunnelStep, anything: TunnelStep)] = [
        (.undecided(needs: 9), .wait(needs: 9), .wait(needs: 9), .wait(needs: 9)), (.ssh, noTLS, .tunnel, .tunnel),
        (.http1, noTLS, noTLS, .tunnel), (.other, noTLS, noTLS, .tunnel),
        (.malformedHello, malformed, malformed, malformed), (.longHello, malformed, malformed, malformed),
    ]

    @Test(arguments: others)
    func `bytes that are no ClientHello`(
        _ row: (bytes: FirstBytes, tls: TunnelStep, elsewhere: TunnelStep, anything: TunnelStep)
    ) throws {
        #expect(try Self.target(Self.ruled).step(after: row.bytes) == row.tls)
        #expect(try Self.target(Self.unruled).step(after: row.bytes) == row.tls)
        #expect(try Self.target(Self.ruledElsewhere).step(after: row.bytes) == row.elsewhere)
        #expect(try Self.target(.anything).step(after: row.bytes) == row.anything)
    }

    @Test func `the server may speak first where TLS need not be spoken`() throws {
        #expect(try Self.target(Self.ruledElsewhere).hearsOrigin)
        #expect(try Self.target(Self.ruledElsewhere).stepWhenOriginSpeaks == .tunnel)
        #expect(try !Self.target(Self.ruled).hearsOrigin)
        #expect(try Self.target(Self.ruled).stepWhenOriginSpeaks == Self.noTLS)
    }

    @Test(arguments: [ruled, ruledElsewhere, unruled], [0, 1, 500])
    func `nothing is passed on for a client that says too little`(_ terms: TunnelTerms, _ received: Int) throws {
        #expect(try Self.target(terms).stepAtTimeLimit(received: received) == .refuse(.helloTimeout, alert: nil))
    }
}

@Suite("What a client speaks in a tunnel")
struct FirstBytesTests {
    static let rows: [(text: String, expected: FirstBytes)] = [
        ("", .undecided(needs: 1)), ("G", .undecided(needs: 2)), ("GET", .undecided(needs: 4)),
        ("GET / HTTP/1.1", .undecided(needs: 15)), ("GET / HTTP/1.1\r\n", .http1), ("GET / HTTP/1.0\n", .http1),
        ("VERSION-CONTROL /a HTTP/1.1\r\nHost", .http1), ("M-SEARCH * HTTP/1.1\r\n", .http1),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", .other), ("GET / HTTP/3\r\n", .other), ("GET /\r\n", .other),
        ("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", .ssh), ("SSH-", .undecided(needs: 5)), ("SSH-1.99-x\n", .ssh),
        ("SSHX-2.0\r\n", .other), ("SSH -2.0\r\n", .other), ("ssh-2.0-x\r\n", .other), ("XSSH-2.0\r\n", .other),
        ("NICK larder\r\n", .other), ("get / HTTP/1.1\r\n", .other),
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
