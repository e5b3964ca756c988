import COpenSSL
import Testing

@testable import TLS

/// What the two ends of a connection made of their handshake.
struct Meeting {
    let link = Link()
    let client: TLSSession
    let server: TLSSession
    let result: (client: TLSHandshake, server: TLSHandshake)
    /// What the server says once it has seen all that the client sent: with TLS 1.3 it refuses a certificate after the client is done.
    let verdict: TLSResult

    init(_ client: TLSClientContext, _ server: TLSServerContext, _ name: String = "a.test") throws {
        self.client = try TLSSession(client, fd: link.clientFD, serverName: name)
        self.server = try TLSSession(server, fd: link.serverFD)
        result = handshake(self.client, self.server)
        if result.client == .done, result.server == .done {
            _ = write(self.server, "x")
            verdict = read(self.client).result
        } else {
            verdict = .wantRead
        }
    }

    var isDone: Bool { result.client == .done && result.server == .done }
}

/// Versions of TLS that a server speaks.
func limit(_ context: TLSServerContext, _ versions: ClosedRange<TLSClientOptions.Version>) {
    func number(_ version: TLSClientOptions.Version) -> Int { Int(version == .tls12 ? TLS1_2_VERSION : TLS1_3_VERSION) }
    _ = unsafe SSL_CTX_ctrl(context.raw, SSL_CTRL_SET_MIN_PROTO_VERSION, number(versions.lowerBound), nil)
    _ = unsafe SSL_CTX_ctrl(context.raw, SSL_CTRL_SET_MAX_PROTO_VERSION, number(versions.upperBound), nil)
}

@Suite("TLS to origins: versions, pins, verification")
struct ClientOptionsTests {
    static let authority = TestCertificate("authority")
    static let leaf = TestCertificate("a.test", "DNS:a.test", issuer: authority)

    typealias Versions = ClosedRange<TLSClientOptions.Version>
    static let versions: [(client: Versions, server: Versions, agreed: String?)] = [
        (.tls12 ... .tls13, .tls12 ... .tls13, "TLSv1.3"),
        (.tls12 ... .tls13, .tls12 ... .tls12, "TLSv1.2"),
        (.tls12 ... .tls12, .tls12 ... .tls13, "TLSv1.2"),
        (.tls13 ... .tls13, .tls12 ... .tls13, "TLSv1.3"),
        (.tls13 ... .tls13, .tls12 ... .tls12, nil),
        (.tls12 ... .tls12, .tls13 ... .tls13, nil),
    ]

    @Test(arguments: versions)
    func `both ends take the highest version that both have`(_ client: Versions, _ server: Versions, _ agreed: String?)
        throws
    {
        let context = try Self.leaf.serverContext()
        limit(context, server)
        let meeting = try Meeting(try Self.authority.clientContext { $0.versions = client }, context)
        #expect(meeting.isDone == (agreed != nil))
        if let agreed { #expect(meeting.client.version == agreed) }
        if agreed == nil {
            #expect(meeting.result.client == .failed(.alertReceived(code: 70, name: "protocol version")))
        }
    }

    /// SHA-256 of the SubjectPublicKeyInfo, as RFC 7469 appendix A computes it.
    private static func pin(_ certificate: TestCertificate) -> [UInt8] {
        let files = Files()
        let path = files.write("certificate.pem", certificate.certificatePEM)
        let digits = shell(
            "openssl x509 -in \(path) -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -r"
        ).output.prefix(64)
        return stride(from: 0, to: 64, by: 2).map { index in
            UInt8(digits.dropFirst(index).prefix(2), radix: 16) ?? 0
        }
    }
    private static let stranger = TestCertificate("stranger")
    private static let (ofLeaf, ofAuthority, ofStranger) = (pin(leaf), pin(authority), pin(stranger))

    private typealias Row = (
        what: String, pins: [[UInt8]], verification: TLSClientOptions.Verification, trusts: TestCertificate,
        problem: TLSFailure.CertificateProblem?
    )
    private static let rows: [Row] = [
        ("the server's own key", [ofLeaf], .required, authority, nil),
        ("the key of the authority", [ofAuthority], .required, authority, nil),
        ("one of several", [ofStranger, ofLeaf], .required, authority, nil),
        ("none of them", [ofStranger], .required, authority, .notPinned),
        ("a pin does not replace verification", [ofLeaf], .required, stranger, .selfSigned),
        ("without verification, the server's own key", [ofLeaf], .none, stranger, nil),
        ("without verification, the key of another", [ofStranger], .none, stranger, .notPinned),
        ("without verification, an issuer proves nothing", [ofAuthority], .none, authority, .notPinned),
    ]

    @Test(arguments: rows.indices) func `a pinned key must be in the chain`(_ index: Int) throws {
        let row = Self.rows[index]
        let context = try row.trusts.clientContext {
            $0.pinnedKeys = row.pins
            $0.verification = row.verification
        }
        // The server sends its authority too.
        let server = try TLSServerContext(
            certificates: Self.leaf.certificatePEM + Self.authority.certificatePEM, privateKey: Self.leaf.keyPEM)
        let meeting = try Meeting(context, server)
        if let problem = row.problem {
            #expect(meeting.result.client == .failed(.certificate(problem)), "\(row.what)")
        } else {
            #expect(meeting.isDone, "\(row.what): \(meeting.result)")
        }
    }

    private static let between = TestCertificate("between", issuer: authority, mayIssue: true)
    private static let deep = TestCertificate("a.test", "DNS:a.test", issuer: between)

    @Test func `each certificate of the file is trusted for itself`() throws {
        let server = try TLSServerContext(
            certificates: Self.deep.certificatePEM + Self.between.certificatePEM, privateKey: Self.deep.keyPEM)
        for trusted in [Self.authority, Self.between, Self.deep] {
            for (name, isRight) in [("a.test", true), ("b.test", false)] {
                #expect(try Meeting(try trusted.clientContext(), server, name).isDone == isRight)
            }
        }
        #expect(try !Meeting(try Self.stranger.clientContext(), server).isDone)
    }

    @Test func `the content of a file is as good as the file`() throws {
        var options = TLSClientOptions()
        options.authorities = .pem(Self.authority.certificatePEM)
        #expect(try Meeting(try TLSClientContext(options), try Self.leaf.serverContext()).isDone)
        for (text, reason) in [
            ([], "there is no certificate in PEM"),
            (Self.authority.certificatePEM.dropLast(60) + [], "a certificate cannot be read"),
        ] {
            options.authorities = .pem(text)
            #expect(throws: TLSContextError.authoritiesUnreadable(reason: reason)) { try TLSClientContext(options) }
        }
    }

    private static let unverifiable = [
        TestCertificate("a.test", "DNS:a.test"),
        TestCertificate("a.test", "DNS:a.test", validUntil: -60, issuer: authority),
        TestCertificate("b.test", "DNS:b.test", issuer: authority),
        TestCertificate("a.test", "DNS:a.test", issuer: stranger),
    ]

    @Test(arguments: unverifiable.indices)
    func `without verification every certificate is accepted, and the session says so`(_ index: Int) throws {
        let server = try Self.unverifiable[index].serverContext()
        let strict = try Meeting(try Self.authority.clientContext(), server)
        #expect(!strict.isDone)
        #expect(strict.client.isVerified)
        let meeting = try Meeting(try Self.authority.clientContext { $0.verification = .none }, server)
        #expect(meeting.isDone)
        #expect(!meeting.client.isVerified)
    }

    @Test func `a session is never resumed in another context`() throws {
        let server = try Self.leaf.serverContext()
        let (one, other) = (try Self.authority.clientContext(), try Self.authority.clientContext())
        let unverified = try Self.authority.clientContext { $0.verification = .none }
        #expect(try !Meeting(unverified, server).client.isResumed)
        #expect(try !Meeting(one, server).client.isResumed)
        #expect(try !Meeting(other, server).client.isResumed)
        #expect(try Meeting(one, server).client.isResumed)
        #expect(try Meeting(unverified, server).client.isResumed)
    }

    @Test func `a resumed session keeps its pin`() throws {
        let server = try Self.leaf.serverContext()
        let context = try Self.authority.clientContext { $0.pinnedKeys = [Self.ofLeaf] }
        #expect(try !Meeting(context, server).client.isResumed)
        let second = try Meeting(context, server)
        #expect(second.isDone && second.client.isResumed)
    }
}
