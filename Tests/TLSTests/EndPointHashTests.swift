import COpenSSL
import Testing

@testable import TLS

@Suite("RFC 5929 §4 The hash that binds a log-in to the server's certificate")
struct EndPointHashTests {
    static let authority = TestCertificate("authority")

    @Test(arguments: [TLSClientOptions.Version.tls12, .tls13], [false, true])
    func `the client hashes the server's certificate, of a resumed session as well`(
        _ version: TLSClientOptions.Version, _ isResumed: Bool
    ) throws {
        let leaf = TestCertificate("a.test", "DNS:a.test", issuer: Self.authority)
        let context = try Self.authority.clientContext { $0.versions = version...version }
        let server = try leaf.serverContext()
        for round in 0...(isResumed ? 1 : 0) {
            let link = Link()
            let client = try TLSSession(context, fd: link.clientFD, serverName: "a.test")
            let peer = try TLSSession(server, fd: link.serverFD)
            #expect(client.endPointHash == nil)
            #expect(handshake(client, peer).client == .done)
            // The session of TLS 1.3 comes with the first bytes.
            #expect(write(peer, "x") == .bytes(1))
            #expect(read(client).text == "x")
            #expect(client.isResumed == (round == 1))
            #expect(client.endPointHash == Digest.sha256(unsafe encoded { unsafe i2d_X509(leaf.certificate, $0) }))
            withExtendedLifetime(link) {}
        }
    }

    @Test func `the hash function is that of the signature, and never a weak one`() throws {
        let rsa = unsafe Self.key(EVP_PKEY_RSA)
        defer { unsafe EVP_PKEY_free(rsa) }
        let rows = [
            ("MD5", "SHA256"), ("SHA1", "SHA256"), ("SHA256", "SHA256"), ("SHA384", "SHA384"), ("SHA512", "SHA512"),
        ]
        for (signing, expected) in rows {
            let function = unsafe EVP_get_digestbyname(signing)
            // OpenSSL makes no certificate with PSS and MD5.
            for isPSS in signing == "MD5" ? [false] : [false, true] {
                let signed = TestCertificate("a.test")
                unsafe X509_set_pubkey(signed.certificate, rsa)
                unsafe Self.sign(signed.certificate, rsa, function, isPSS: isPSS)
                #expect(
                    unsafe hashOfEndPoint(signed.certificate) == Self.digest(of: signed.certificate, expected),
                    "\(signing) PSS \(isPSS)")
            }
        }
    }

    @Test func `a signature without a hash function binds nothing`() {
        let key = unsafe Self.key(EVP_PKEY_ED25519)
        defer { unsafe EVP_PKEY_free(key) }
        let signed = TestCertificate("a.test")
        unsafe X509_set_pubkey(signed.certificate, key)
        #expect(unsafe X509_sign(signed.certificate, key, nil) > 0)
        #expect(unsafe hashOfEndPoint(signed.certificate) == nil)
    }

    private static func key(_ kind: CInt) -> OpaquePointer? {
        let context = unsafe EVP_PKEY_CTX_new_id(kind, nil)
        defer { unsafe EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        unsafe EVP_PKEY_keygen_init(context)
        unsafe EVP_PKEY_keygen(context, &key)
        return unsafe key
    }

    private static func sign(
        _ certificate: OpaquePointer, _ key: OpaquePointer?, _ function: OpaquePointer?, isPSS: Bool
    ) {
        let context = unsafe EVP_MD_CTX_new()
        defer { unsafe EVP_MD_CTX_free(context) }
        var parameters: OpaquePointer?
        #expect(unsafe EVP_DigestSignInit(context, &parameters, function, nil, key) == 1)
        if isPSS { unsafe EVP_PKEY_CTX_set_rsa_padding(parameters, CInt(RSA_PKCS1_PSS_PADDING)) }
        #expect(unsafe X509_sign_ctx(certificate, context) > 0)
    }

    private static func digest(of certificate: OpaquePointer, _ name: String) -> [UInt8] {
        let bytes = unsafe encoded { unsafe i2d_X509(certificate, $0) }
        var digest = [UInt8](repeating: 0, count: 64)
        var count = 0
        #expect(unsafe EVP_Q_digest(nil, name, nil, bytes, bytes.count, &digest, &count) == 1)
        return Array(digest[..<count])
    }
}
