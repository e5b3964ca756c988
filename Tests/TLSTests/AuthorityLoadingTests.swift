import Glibc
import TLS
import Testing

@Suite("The files of an authority")
struct AuthorityLoadingTests {
    static let now = AuthorityFixture.now

    private func load(
        _ files: Files, certificate: String = "intermediate.pem", key: String = "intermediate.key", at now: Int64 = now
    )
        -> AuthorityError?
    {
        do throws(AuthorityError) {
            _ = try CertificateAuthority(
                certificateFile: "\(files.directory)/\(certificate)", keyFile: "\(files.directory)/\(key)", at: now)
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: [0o600, 0o400] as [mode_t]) func `a key that only its owner can read is used`(_ mode: mode_t)
        throws
    {
        let fixture = try AuthorityFixture(permitting: nil)
        #expect(chmod(fixture.files, "intermediate.key", mode))
        #expect(load(fixture.files) == nil)
    }

    @Test(arguments: [0o640, 0o604, 0o620, 0o660, 0o644, 0o601] as [mode_t])
    func `a key that others can use is refused`(_ mode: mode_t) throws {
        let fixture = try AuthorityFixture(permitting: nil)
        #expect(chmod(fixture.files, "intermediate.key", mode))
        let path = "\(fixture.files.directory)/intermediate.key"
        let error = try #require(load(fixture.files))
        #expect(error == .keyExposed(path: path, mode: mode))
        #expect(error.description.hasPrefix("\(path) has mode 0\(String(mode, radix: 8)),"))
        #expect(chmod(fixture.files, "intermediate.key", 0o600))
        #expect(load(fixture.files) == nil)
    }

    @Test(.enabled(if: geteuid() == 0)) func `a key of another user is refused`() throws {
        let fixture = try AuthorityFixture(permitting: nil)
        let path = "\(fixture.files.directory)/intermediate.key"
        #expect(unsafe chown(path, 12345, 12345) == 0)
        #expect(load(fixture.files) == .keyOwnedByAnother(path: path, owner: 12345))
    }

    @Test func `a key that is no regular file is refused, and does not block`() throws {
        let fixture = try AuthorityFixture(permitting: nil)
        let path = "\(fixture.files.directory)/pipe"
        #expect(unsafe mkfifo(path, 0o600) == 0)
        #expect(load(fixture.files, key: "pipe") == .keyNotRegularFile(path: path))
        #expect(load(fixture.files, key: ".") == .keyNotRegularFile(path: "\(fixture.files.directory)/."))
    }

    @Test func `missing files are named`() throws {
        let fixture = try AuthorityFixture(permitting: nil)
        let missing = AuthorityError.fileUnreadable(path: "\(fixture.files.directory)/none", errno: ENOENT)
        #expect(load(fixture.files, key: "none") == missing)
        #expect(load(fixture.files, certificate: "none") == missing)
        #expect(missing.description.contains("No such file"))
    }

    @Test func `what is no PEM is refused`() throws {
        let fixture = try AuthorityFixture(permitting: nil)
        let path = fixture.files.write("text", Array("hello\n".utf8))
        #expect(load(fixture.files, certificate: "text") == .noCertificate(path: path))
        guard case .keyUnreadable(path, _)? = load(fixture.files, key: "text") else {
            Issue.record("the text was accepted, or another error was found")
            return
        }
        let half = fixture.files.write("half", Array(fixture.root.certificate.pem.dropLast(80)))
        #expect(load(fixture.files, certificate: "half") == .certificateUnreadable(path: half))
    }

    /// Certificates and keys made by OpenSSL: `FILE.key` by the first command, `FILE.pem` with the extensions.
    struct Foreign: Sendable {
        var what: String
        var key: String
        var extensions: String
        var error: String?
        var isQuick = true
    }
    static let authorityExtensions =
        "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\nsubjectKeyIdentifier=hash\n"
    static let foreign = [
        Foreign(what: "P-256", key: "ecparam -name prime256v1 -genkey -noout", extensions: authorityExtensions),
        Foreign(what: "P-384", key: "ecparam -name secp384r1 -genkey -noout", extensions: authorityExtensions),
        Foreign(what: "P-521", key: "ecparam -name secp521r1 -genkey -noout", extensions: authorityExtensions),
        Foreign(what: "RSA 2048", key: "genrsa 2048", extensions: authorityExtensions, isQuick: false),
        Foreign(
            what: "RSA 1024", key: "genrsa 1024", extensions: authorityExtensions,
            error: "is RSA 1024; allowed are P-256, P-384, P-521 and RSA of 2048 bits or more"),
        Foreign(
            what: "Ed25519", key: "genpkey -algorithm ed25519", extensions: authorityExtensions,
            error: "is ED25519; allowed"),
        Foreign(
            what: "another curve", key: "ecparam -name secp256k1 -genkey -noout", extensions: authorityExtensions,
            error: "is EC on secp256k1; allowed"),
        Foreign(
            what: "encrypted", key: "genrsa -aes128 -passout pass:secret 2048", extensions: authorityExtensions,
            error: "is encrypted with a passphrase"),
        Foreign(
            what: "no authority", key: "ecparam -name prime256v1 -genkey -noout",
            extensions: "basicConstraints=CA:FALSE\n",
            error: "basicConstraints with CA:TRUE is missing"),
        Foreign(
            what: "no keyCertSign", key: "ecparam -name prime256v1 -genkey -noout",
            extensions: "basicConstraints=CA:TRUE\nkeyUsage=cRLSign\n", error: "its keyUsage lacks keyCertSign"),
        Foreign(
            what: "for clients only", key: "ecparam -name prime256v1 -genkey -noout",
            extensions: authorityExtensions + "extendedKeyUsage=clientAuth\n",
            error: "its extendedKeyUsage lacks serverAuth"),
    ]

    private func make(_ row: Foreign, in files: Files) throws -> Int64 {
        let made = shell(
            """
            cd '\(files.directory)' && umask 077
            printf '[req]\\ndistinguished_name=d\\n[d]\\n' > cnf
            cat > ext <<'EOF'
            \(row.extensions)
            EOF
            openssl \(row.key) > own.key
            openssl req -config cnf -new -key own.key -passin pass:secret -subj '/CN=Our own' -out own.csr
            openssl x509 -req -in own.csr -signkey own.key -passin pass:secret -days 300 -extfile ext -out own.pem
            date +%s
            """)
        return try #require(Int64(made.output.split(separator: "\n").last ?? ""), "\(made.output)")
    }

    @Test(arguments: foreign) func `an authority of one's own is used if its key and its certificate are suitable`(
        _ row: Foreign
    ) throws {
        let files = Files()
        let now = try make(row, in: files)
        let error = load(files, certificate: "own.pem", key: "own.key", at: now)
        guard let text = row.error else {
            #expect(error == nil)
            let authority = try CertificateAuthority(
                certificateFile: "\(files.directory)/own.pem", keyFile: "\(files.directory)/own.key", at: now)
            #expect(authority.signsQuickly == row.isQuick)
            #expect(authority.remarks == [])
            let path = files.write("leaf.pem", try authority.issue(.dns("a.example.org"), at: now).pem)
            // A root sends nothing but the leaf.
            let verdict = shell(
                "grep -c BEGIN '\(path)'; openssl verify -x509_strict -verify_hostname a.example.org -CAfile '\(files.directory)/own.pem' '\(path)'"
            )
            #expect(verdict.output == "1\n\(path): OK\n")
            return
        }
        #expect(error?.description.contains(text) == true, "\(String(describing: error))")
    }

    @Test func `odd certificates are used, with a remark`() throws {
        let files = Files()
        let row = Foreign(
            what: "", key: "ecparam -name prime256v1 -genkey -noout",
            extensions: "basicConstraints=CA:TRUE\nsubjectKeyIdentifier=none\n")
        let now = try make(row, in: files)
        let authority = try CertificateAuthority(
            certificateFile: "\(files.directory)/own.pem", keyFile: "\(files.directory)/own.key", at: now)
        #expect(authority.remarks.count == 3)
        #expect(authority.remarks.allSatisfy { $0.hasSuffix("strict clients, such as Python 3.13, refuse it") })
        // Its identifier is computed, as RFC 5280 §4.2.1.2 says, so that clients find it.
        let path = files.write("leaf.pem", try authority.issue(.dns("a.example.org"), at: now).pem)
        let seen = shell(
            """
            cd '\(files.directory)'
            openssl x509 -in leaf.pem -noout -ext authorityKeyIdentifier | tail -1 | tr -d ' :\\n'
            openssl x509 -in own.pem -noout -pubkey | openssl pkey -pubin -outform DER | tail -c 65 | openssl sha1 -r | cut -c1-40 | tr a-f A-F
            """
        ).output.split(separator: "\n")
        #expect(seen.count == 1 && seen[0].count == 80 && seen[0].prefix(40) == seen[0].suffix(40), "\(seen) \(path)")
    }

    @Test func `an authority without its root has none to hand out`() throws {
        let fixture = try AuthorityFixture(permitting: nil)
        let text = String(decoding: fixture.root.certificate.pem, as: UTF8.self)
        let all = shell("cat '\(fixture.files.directory)/intermediate.pem'").output
        let alone = fixture.files.write("alone.pem", Array(all.replacing(text, with: "").utf8))
        let authority = try CertificateAuthority(
            certificateFile: alone, keyFile: "\(fixture.files.directory)/intermediate.key", at: Self.now)
        #expect(authority.roots.isEmpty)
        #expect(authority.remarks == ["the file has no root certificate: Larder has none to hand out to clients"])
        #expect(!fixture.authority.isSame(as: authority))
        let again = try CertificateAuthority(
            certificateFile: alone, keyFile: "\(fixture.files.directory)/intermediate.key", at: Self.now)
        #expect(authority.isSame(as: again))
    }

    @Test
    func `the order of the other certificates does not matter, and another root is handed out but not in the path`()
        throws
    {
        let (fixture, next) = (try AuthorityFixture(permitting: nil), try AuthorityFixture(permitting: ["b.test"]))
        let own = Array(shell("cat '\(fixture.files.directory)/intermediate.pem'").output.utf8)
        let rootCount = fixture.root.certificate.pem.count
        let intermediate: [UInt8] = own.dropLast(rootCount)
        let shuffled = intermediate + next.root.certificate.pem + fixture.root.certificate.pem
        let authority = try CertificateAuthority(
            certificateFile: fixture.files.write("both.pem", shuffled),
            keyFile: "\(fixture.files.directory)/intermediate.key", at: Self.now)
        #expect(authority.roots.map(\.sha256) == [next.root.certificate.sha256, fixture.root.certificate.sha256])
        #expect(authority.permits(.dns("a.example.org")))
        #expect(!fixture.authority.isSame(as: next.authority))
    }

    @Test func `a key of another certificate is refused`() throws {
        let (fixture, other) = (try AuthorityFixture(permitting: nil), try AuthorityFixture(permitting: nil))
        let key = fixture.files.write(
            "other.key", Array(shell("cat '\(other.files.directory)/intermediate.key'").output.utf8))
        let error = load(fixture.files, key: "other.key")
        #expect(error == .keyOfAnother(certificate: "\(fixture.files.directory)/intermediate.pem", key: key))
    }

    @Test func `an authority is refused before and after its time`() throws {
        let fixture = try AuthorityFixture(permitting: nil)
        let late = try #require(load(fixture.files, at: Self.now + 398 * 86_400))
        #expect(late.description.contains("expired on 2027-12-24"))
        let early = try #require(load(fixture.files, at: Self.now - 3 * 86_400))
        #expect(early.description.contains("is not valid before 2026-11-20"))
    }

    @Test func `the fingerprint is that of openssl`() throws {
        let fixture = try AuthorityFixture(permitting: nil)
        let seen = shell("openssl x509 -in '\(fixture.rootPath)' -noout -fingerprint -sha256").output
        let digits = seen.split(separator: "=").last.map { $0.lowercased().filter { $0.isHexDigit } }
        #expect(fixture.authority.roots.map(\.fingerprint) == [try #require(digits)])
    }

    private func chmod(_ files: Files, _ name: String, _ mode: mode_t) -> Bool {
        unsafe Glibc.chmod("\(files.directory)/\(name)", mode) == 0
    }
}
