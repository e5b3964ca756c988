import Glibc
import TLS
import Testing

/// Two ends of one connection, driven in turns by the test.
final class Link {
    let clientFD: CInt
    let serverFD: CInt

    init() {
        var ends: [CInt] = [0, 0]
        _ = unsafe socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends)
        (clientFD, serverFD) = (ends[0], ends[1])
        for fd in ends { _ = fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) }
    }

    deinit {
        close(clientFD)
        close(serverFD)
    }
}

/// Brings both ends to a decision.
func handshake(_ client: TLSSession, _ server: TLSSession) -> (client: TLSHandshake, server: TLSHandshake) {
    var (atClient, atServer): (TLSHandshake, TLSHandshake) = (.wantRead, .wantRead)
    for _ in 0..<20 {
        if atClient == .wantRead { atClient = client.handshake() }
        if atServer == .wantRead { atServer = server.handshake() }
    }
    return (atClient, atServer)
}

func write(_ session: TLSSession, _ text: String) -> TLSResult {
    unsafe Array(text.utf8).withUnsafeBytes { unsafe session.write($0) }
}

func read(_ session: TLSSession, _ count: Int = 100) -> (result: TLSResult, text: String) {
    var bytes = [UInt8](repeating: 0, count: count)
    let result = unsafe bytes.withUnsafeMutableBytes { unsafe session.read(into: $0) }
    guard case .bytes(let got) = result else { return (result, "") }
    return (result, String(decoding: bytes.prefix(got), as: UTF8.self))
}

@Suite("TLS sessions")
struct TLSSessionTests {
    static let authority = TestCertificate("authority")
    static let leaf = TestCertificate("a.test", "DNS:a.test,DNS:*.b.test,IP:127.0.0.1,IP:::1", issuer: authority)

    /// A link whose both ends have agreed.
    private func connected(
        _ client: TLSClientContext, _ server: TLSServerContext, _ name: String = "a.test"
    ) throws -> (link: Link, client: TLSSession, server: TLSSession) {
        let link = Link()
        let c = try TLSSession(client, fd: link.clientFD, serverName: name)
        let s = try TLSSession(server, fd: link.serverFD)
        let result = handshake(c, s)
        #expect(result.client == .done)
        #expect(result.server == .done)
        return (link, c, s)
    }

    @Test(arguments: ["a.test", "a.test.", "x.b.test", "127.0.0.1", "::1"])
    func `a certificate with the server's name is accepted`(_ name: String) throws {
        let (link, client, server) = try connected(
            try Self.authority.clientContext(), try Self.leaf.serverContext(), name)
        #expect(client.version == "TLSv1.3")
        #expect(write(client, "hello") == .bytes(5))
        #expect(read(server).text == "hello")
        #expect(read(server).result == .wantRead)
        withExtendedLifetime(link) {}
    }

    struct Refusal: Sendable {
        var what: String
        var name = "a.test"
        var certificate: @Sendable () -> TestCertificate
        var problem: TLSFailure.CertificateProblem
    }
    static let refusals = [
        Refusal(what: "another name", name: "c.test", certificate: { leaf }, problem: .nameMismatch),
        Refusal(
            what: "a wildcard stands for one label", name: "x.y.b.test", certificate: { leaf }, problem: .nameMismatch),
        Refusal(what: "another address", name: "127.0.0.2", certificate: { leaf }, problem: .nameMismatch),
        Refusal(
            what: "expired",
            certificate: { TestCertificate("a.test", "DNS:a.test", validUntil: -60, issuer: authority) },
            problem: .expired),
        Refusal(
            what: "not yet valid",
            certificate: { TestCertificate("a.test", "DNS:a.test", validFrom: 600, issuer: authority) },
            problem: .notYetValid),
        Refusal(what: "self-signed", certificate: { TestCertificate("a.test", "DNS:a.test") }, problem: .selfSigned),
        Refusal(
            what: "an authority nobody knows",
            certificate: { TestCertificate("a.test", "DNS:a.test", issuer: TestCertificate("stranger")) },
            problem: .unknownIssuer),
    ]

    @Test(arguments: refusals) func `an invalid certificate is refused with the reason`(_ row: Refusal) throws {
        let link = Link()
        let client = try TLSSession(try Self.authority.clientContext(), fd: link.clientFD, serverName: row.name)
        let server = try TLSSession(try row.certificate().serverContext(), fd: link.serverFD)
        let result = handshake(client, server)
        #expect(result.client == .failed(.certificate(row.problem)), "\(row.what)")
        #expect(!TLSFailure.certificate(row.problem).details.isEmpty)
        // The server learns it as an alert.
        var atServer = result.server
        if atServer == .done { if case .failed(let failure) = read(server).result { atServer = .failed(failure) } }
        guard case .failed(.alertReceived(_, let name)) = atServer else {
            Issue.record("the server got no alert but \(atServer)")
            return
        }
        #expect(!name.isEmpty)
    }

    @Test func `a server without TLS is a protocol error`() throws {
        let link = Link()
        let client = try TLSSession(try Self.authority.clientContext(), fd: link.clientFD, serverName: "a.test")
        #expect(client.handshake() == .wantRead)
        let text = Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)
        _ = unsafe Glibc.write(link.serverFD, text, text.count)
        guard case .failed(.protocolError) = client.handshake() else {
            Issue.record("that was no TLS")
            return
        }
    }

    @Test func `a server that closes during the handshake is a failure`() throws {
        let link = Link()
        let client = try TLSSession(try Self.authority.clientContext(), fd: link.clientFD, serverName: "a.test")
        #expect(client.handshake() == .wantRead)
        _ = shutdown(link.serverFD, CInt(SHUT_RDWR))
        guard case .failed(let failure) = client.handshake() else {
            Issue.record("nobody is there")
            return
        }
        switch failure {
        case .truncated, .connectionFailed: break
        case .certificate, .protocolError, .alertReceived: Issue.record("\(failure)")
        }
    }

    @Test func `an announced end and a truncation are distinguished`() throws {
        let (client, server) = (try Self.authority.clientContext(), try Self.leaf.serverContext())
        let orderly = try connected(client, server)
        #expect(write(orderly.server, "all") == .bytes(3))
        #expect(orderly.server.shutdown() == .done)
        #expect(read(orderly.client).text == "all")
        #expect(read(orderly.client).result == .closed)

        let cut = try connected(client, server)
        #expect(write(cut.server, "par") == .bytes(3))
        _ = shutdown(cut.link.serverFD, CInt(SHUT_WR))
        #expect(read(cut.client).text == "par")
        #expect(read(cut.client).result == .failed(.truncated))
        #expect(write(cut.client, "x") == .failed(.truncated))
    }

    @Test func `a full pipe accepts a part, and the rest later from another place in memory`() throws {
        let (link, client, server) = try connected(try Self.authority.clientContext(), try Self.leaf.serverContext())
        let text = (0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7 >> 2) }
        var rest = text[...]
        var received: [UInt8] = []
        var hasBlocked = false
        var chunk = [UInt8](repeating: 0, count: 65536)
        while received.count < text.count {
            if !rest.isEmpty {
                let copy = Array(rest)
                switch unsafe copy.withUnsafeBytes({ unsafe client.write($0) }) {
                case .bytes(let count):
                    rest = rest.dropFirst(count)
                    continue
                case .wantWrite: hasBlocked = true
                default: throw LinkFailure()
                }
            }
            while case .bytes(let count) = unsafe chunk.withUnsafeMutableBytes({ unsafe server.read(into: $0) }) {
                received += chunk.prefix(count)
            }
        }
        #expect(hasBlocked)
        #expect(received == text)
        withExtendedLifetime(link) {}
    }
    struct LinkFailure: Error {}

    @Test func `bytes that were decrypted but not read are reported as pending`() throws {
        let (link, client, server) = try connected(try Self.authority.clientContext(), try Self.leaf.serverContext())
        #expect(write(client, "hello") == .bytes(5))
        #expect(read(server, 2).text == "he")
        #expect(server.hasPendingBytes)
        #expect(read(server).text == "llo")
        #expect(!server.hasPendingBytes)
        withExtendedLifetime(link) {}
    }

    /// Servers answer and close because they left a part of a request unread.
    @Test func `what came before the connection broke can be read after a write that found it broken`() throws {
        let (link, client, server) = try connected(try Self.authority.clientContext(), try Self.leaf.serverContext())
        #expect(write(server, "answer") == .bytes(6))
        _ = shutdown(link.serverFD, CInt(SHUT_RDWR))
        #expect(write(client, "more") == .failed(.connectionFailed(errno: EPIPE)))
        #expect(read(client).text == "answer")
        #expect(read(client).result == .failed(.truncated))
        #expect(client.shutdown() == .done)
    }

    @Test func `a session is resumed for its own server name only`() throws {
        let (client, server) = (try Self.authority.clientContext(), try Self.leaf.serverContext())
        do {
            let first = try connected(client, server)
            #expect(!first.client.isResumed)
            #expect(write(first.server, "x") == .bytes(1))
            #expect(read(first.client).text == "x")  // the tickets come before it
        }
        #expect(try !connected(client, server, "x.b.test").client.isResumed)
        #expect(try connected(client, server).client.isResumed)
    }

    @Test func `unusable contexts are refused when they are made`() throws {
        #expect(throws: TLSContextError.self) { try TLSClientContext(authorities: .file("/nonexistent/ca.pem")) }
        #expect(throws: TLSContextError.self) { try TLSServerContext(certificates: [1], privateKey: [2]) }
        let (leaf, other) = (Self.leaf, TestCertificate("other"))
        #expect {
            try TLSServerContext(certificates: leaf.certificatePEM, privateKey: other.keyPEM)
        } throws: {
            if case .privateKeyUnusable? = $0 as? TLSContextError { true } else { false }
        }
        _ = try TLSClientContext()
    }
}
