import COpenSSL
import Glibc
import Testing

@testable import TLS

@Suite("TLS to origins: client certificates")
struct ClientIdentityTests {
    private static let authority = TestCertificate("authority")
    private static let server = TestCertificate("a.test", "DNS:a.test", issuer: authority)
    private static let between = TestCertificate("between", issuer: authority, mayIssue: true)
    private static let own = TestCertificate("larder.test", issuer: between, use: "clientAuth")
    private static var chain: [UInt8] { own.certificatePEM + between.certificatePEM }

    /// A server that knows `authority` alone, and speaks to nobody without a certificate.
    private static func demandingServer() throws -> TLSServerContext {
        let context = try server.serverContext()
        let files = Files()
        let status = unsafe SSL_CTX_load_verify_file(context.raw, files.write("ca.pem", authority.certificatePEM))
        #expect(status == 1)
        unsafe SSL_CTX_set_verify(context.raw, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
        return context
    }

    @Test(arguments: [TLSClientOptions.Version.tls12, .tls13])
    func `a certificate is shown with its chain to a server that asks`(_ version: TLSClientOptions.Version) throws {
        let identity = try ClientIdentity(certificates: Self.chain, key: Self.own.keyPEM)
        #expect(identity.subject == "CN=larder.test")
        let context = try Self.authority.clientContext {
            $0.identity = identity
            $0.versions = version...version
        }
        let meeting = try Meeting(context, try Self.demandingServer())
        #expect(meeting.isDone && meeting.verdict == .bytes(1))
        #expect(!meeting.client.isAskedForCertificate)
    }

    @Test func `without a certificate the server refuses, and the session says that it was asked`() throws {
        let meeting = try Meeting(try Self.authority.clientContext(), try Self.demandingServer())
        #expect(meeting.client.isAskedForCertificate)
        guard case .failed = meeting.result.server else {
            Issue.record("the server accepted \(meeting.result)")
            return
        }
    }

    @Test func `a server that does not ask is not shown a certificate`() throws {
        let identity = try ClientIdentity(certificates: Self.chain, key: Self.own.keyPEM)
        let meeting = try Meeting(
            try Self.authority.clientContext { $0.identity = identity }, try Self.server.serverContext())
        #expect(meeting.isDone && !meeting.client.isAskedForCertificate)
    }

    // PEM

    private static func encryptedKey() -> [UInt8] {
        let files = Files()
        let path = files.write("key.pem", own.keyPEM)
        return Array(shell("openssl pkcs8 -topk8 -in \(path) -passout pass:sesame").output.utf8)
    }

    @Test func `an encrypted key is read with its passphrase`() throws {
        let identity = try ClientIdentity(
            certificates: Self.chain, key: Self.encryptedKey(), passphrase: Array("sesame".utf8))
        let context = try Self.authority.clientContext { $0.identity = identity }
        #expect(try Meeting(context, try Self.demandingServer()).verdict == .bytes(1))
        // A passphrase that nobody needs does no harm.
        _ = try ClientIdentity(certificates: Self.chain, key: Self.own.keyPEM, passphrase: Array("x".utf8))
    }

    private static let mistakes:
        [(certificates: [UInt8], key: [UInt8], passphrase: String?, error: ClientIdentityError)] =
            [
                ([], own.keyPEM, nil, .noCertificate),
                (own.keyPEM, own.keyPEM, nil, .noCertificate),
                (chain.dropLast(60) + [], own.keyPEM, nil, .certificateUnreadable),
                (chain, encryptedKey(), nil, .passphraseMissing),
                (chain, encryptedKey(), "simsim", .passphraseWrong),
                (chain, encryptedKey(), String(repeating: "x", count: 5000), .passphraseWrong),
                (chain, server.keyPEM, nil, .keyOfAnother(subject: "CN=larder.test")),
                (between.certificatePEM + own.certificatePEM, own.keyPEM, nil, .keyOfAnother(subject: "CN=between")),
            ]

    @Test(arguments: mistakes.indices) func `a mistake in PEM files has its own error`(_ index: Int) {
        let row = Self.mistakes[index]
        #expect(throws: row.error) {
            try ClientIdentity(
                certificates: row.certificates, key: row.key, passphrase: row.passphrase.map { Array($0.utf8) })
        }
        #expect(!row.error.description.isEmpty)
    }

    @Test func `a file without a key says so`() {
        #expect {
            try ClientIdentity(certificates: Self.chain, key: Self.chain)
        } throws: {
            if case .keyUnreadable? = $0 as? ClientIdentityError { true } else { false }
        }
    }

    // PKCS#12

    /// - Parameter options: of `openssl pkcs12 -export`.
    private static func bundle(
        _ options: String, password: String = "sesame", certificates content: [UInt8] = chain
    ) -> [UInt8] {
        let files = Files()
        let certificates = files.write("certificates.pem", content)
        let key = files.write("key.pem", own.keyPEM)
        let path = files.write("bundle.p12", [])
        let made = shell(
            "openssl pkcs12 -export \(options) -in \(certificates) -inkey \(key) -passout 'pass:\(password)' -out \(path)"
        )
        #expect(made.status == 0, "\(made.output)")
        return bytes(path)
    }

    /// As today's programs make it; as those before OpenSSL 3 and Windows 2019 did; and without encryption.
    private static let bundles = ["", "-legacy", "-keypbe NONE -certpbe NONE", "-certpbe PBE-SHA1-RC2-40 -legacy"]

    @Test(arguments: bundles) func `a PKCS#12 file has certificate, chain and key`(_ options: String) throws {
        let identity = try ClientIdentity(pkcs12: Self.bundle(options), passphrase: Array("sesame".utf8))
        #expect(identity.subject == "CN=larder.test")
        #expect(identity.issuers.map(\.subject) == ["CN=between"])
        let context = try Self.authority.clientContext { $0.identity = identity }
        #expect(try Meeting(context, try Self.demandingServer()).verdict == .bytes(1))
    }

    @Test func `a PKCS#12 file may have no issuers`() throws {
        let identity = try ClientIdentity(
            pkcs12: Self.bundle("", certificates: Self.own.certificatePEM), passphrase: Array("sesame".utf8))
        #expect(identity.subject == "CN=larder.test" && identity.issuers.isEmpty)
    }

    @Test(arguments: [[UInt8]?.none, []]) func `a PKCS#12 file may have no password`(_ passphrase: [UInt8]?) throws {
        _ = try ClientIdentity(pkcs12: Self.bundle("", password: ""), passphrase: passphrase)
    }

    private static let wrongBundles: [(bundle: [UInt8], passphrase: String?, error: ClientIdentityError)] = [
        (bundle(""), "simsim", .passphraseWrong),
        (bundle("-legacy"), "simsim", .passphraseWrong),
        (bundle(""), "sesame\0", .passphraseWrong),
        (bundle(""), nil, .passphraseMissing),
        (bundle("-nokeys"), "sesame", .bundleIncomplete),
    ]

    @Test(arguments: wrongBundles.indices) func `a mistake in a PKCS#12 file has its own error`(_ index: Int) {
        let row = Self.wrongBundles[index]
        #expect(throws: row.error) {
            try ClientIdentity(pkcs12: row.bundle, passphrase: row.passphrase.map { Array($0.utf8) })
        }
        #expect(!row.error.description.isEmpty)
    }

    @Test(arguments: [[], Array("-----BEGIN CERTIFICATE-----".utf8)] as [[UInt8]])
    func `what is not PKCS#12 says so`(_ bytes: [UInt8]) {
        #expect {
            try ClientIdentity(pkcs12: bytes, passphrase: nil)
        } throws: {
            if case .bundleUnreadable? = $0 as? ClientIdentityError { true } else { false }
        }
    }

    @Test func `an outdated encryption without the legacy module is named, with what mends it`() throws {
        let missing = LegacyAlgorithms(searchPath: "/nonexistent")
        #expect(throws: ClientIdentityError.bundleOutdated) {
            try ClientIdentity(pkcs12: Self.bundle("-legacy"), passphrase: Array("sesame".utf8), legacy: missing)
        }
        #expect(ClientIdentityError.bundleOutdated.hint?.contains("openssl pkcs12 -legacy") == true)
        // Others need no module.
        _ = try ClientIdentity(pkcs12: Self.bundle(""), passphrase: Array("sesame".utf8), legacy: missing)
    }

    // Remarks

    @Test func `a certificate that is out of date, or not for clients, is remarked upon`() throws {
        func remarks(_ certificate: TestCertificate) throws -> [String] {
            try ClientIdentity(certificates: certificate.certificatePEM, key: certificate.keyPEM)
                .remarks(at: Int64(Glibc.time(nil)))
        }
        #expect(try remarks(Self.own).isEmpty)
        #expect(try remarks(Self.between).isEmpty)
        let old = try remarks(TestCertificate("old", validUntil: -86_400))
        #expect(old.count == 1 && old[0].hasPrefix("the certificate of CN=old expired on 20"))
        let early = try remarks(TestCertificate("early", validFrom: 3600, validUntil: 7200))
        #expect(early.count == 1 && early[0].hasPrefix("the certificate of CN=early is not valid before 20"))
        let wrong = try remarks(TestCertificate("server", use: "serverAuth"))
        #expect(wrong.count == 1 && wrong[0].contains("lacks clientAuth"))
    }
}

private func bytes(_ path: String) -> [UInt8] {
    guard let file = unsafe fopen(path, "r") else { return [] }
    defer { unsafe fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 65536)
    let count = unsafe fread(&bytes, 1, bytes.count, file)
    return Array(bytes.prefix(count))
}
