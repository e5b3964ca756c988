import Origins
import Rules
import Testing
import YAML

@testable import Settings

@Suite("tls of a rule for origins") struct OriginTLSSettingsTests {
    private static let pin = "sha256/AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

    private static func read(_ text: String) throws -> (tls: OriginTLS?, problems: [String]) {
        let node = ConfigurationNode(try #require(try parseYAML(Array(text.utf8))))
        var problems: [SettingProblem] = []
        let tls = SettingKind<OriginTLS>.originTLS.read(node, &problems)
        return (tls, problems.map { "\($0.place): \($0.message)" + ($0.hint.map { "; \($0)" } ?? "") })
    }

    @Test func `every key is read`() throws {
        let (tls, problems) = try Self.read(
            """
            ca_file: /a/ca.pem
            certificate: /a/own.pem
            key: /a/own.key
            password_file: /a/password
            pin: [ "\(Self.pin)" ]
            min_version: 1.2
            max_version: "1.3"
            server_name: Other.Example.
            verify: yes
            """)
        #expect(problems == [])
        var expected = OriginTLS()
        expected.authorityFile = "/a/ca.pem"
        expected.identity = .pem(certificate: "/a/own.pem", key: "/a/own.key")
        expected.passwordFile = "/a/password"
        expected.pins = [try #require(PublicKeyPin(Self.pin))]
        expected.minVersion = .v1_2
        expected.maxVersion = .v1_3
        expected.serverName = "other.example"
        #expect(tls == expected)
        #expect(expected.pins.first?.digest == Array(0..<32))
        #expect(expected.pins.map { "\($0)" } == [Self.pin])
    }

    @Test func `what is left out is as for all origins`() throws {
        #expect(try Self.read("{}").tls == OriginTLS())
        #expect(try Self.read("{ certificate: /a }").tls?.identity == .pem(certificate: "/a", key: "/a"))
        #expect(try Self.read("{ pkcs12: /a, password_file: /b }").tls?.identity == .pkcs12("/a"))
        #expect(try Self.read("{ verify: no }").tls?.verification == OriginTLS.Verification.none)
        #expect(try Self.read("{ verify: no, pin: \(Self.pin) }").problems == [])
        #expect(try Self.read("{ server_name: \"::1\" }").tls?.serverName == "::1")
    }

    static let command =
        "openssl x509 -in FILE -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64 prints it"
    static let mistakes: [(text: String, problem: String)] = [
        ("[]", ": found a list, expected keys such as ca_file, certificate, pin and server_name"),
        (
            "{ certificate: /a, pkcs12: /b }",
            ".certificate: pkcs12 has a certificate and its key already; name one of the two forms"
        ),
        ("{ key: /a, pkcs12: /b }", ".key: pkcs12 has a certificate and its key already; name one of the two forms"),
        ("{ key: /a }", ".key: there is no certificate for it; add certificate: FILE"),
        (
            "{ password_file: /a }",
            ".password_file: there is nothing to open with it; name pkcs12, or certificate and key"
        ),
        ("{ min_version: 1.3, max_version: 1.2 }", ".min_version: 1.3 is above max_version, which is 1.2"),
        ("{ min_version: 1.1 }", ".min_version: found \"1.1\", expected 1.2 or 1.3; did you mean 1.2?"),
        (
            "{ verify: no, ca_file: /a }",
            ".verify: without verification, ca_file has no effect; leave verify out: ca_file is trusted then"
        ),
        (
            "{ server_name: \"a b\" }",
            ".server_name: found \"a b\", expected the name of a host, or an address"
        ),
        (
            "{ pin: \"sha256/\(pin)\" }",
            ".pin: found \"sha256/\(pin)\", expected sha256/ and 44 characters of base 64; \(command)"
        ),
        (
            "{ pin: sha256/AAAA }",
            ".pin: found \"sha256/AAAA\", expected sha256/ and 44 characters of base 64; \(command)"
        ),
        ("{ ca_fil: /a }", ".ca_fil: unknown key; did you mean ca_file?"),
    ]

    @Test(arguments: mistakes) func `a mistake is named`(_ text: String, _ problem: String) throws {
        let (tls, problems) = try Self.read(text)
        #expect(tls == nil)
        #expect(problems == [problem])
    }

    private static let digits = pin.dropFirst("sha256/".count)
    static let pins: [(text: String, hint: String)] = [
        ("\(digits)", "did you mean \(pin)?"),
        ("sha256//\(digits)", "write one slash"),
        // The last digit has bits that mean nothing; the padding is missing.
        (pin.dropLast(2) + "9=", command),
        (String(pin.dropLast()), command),
    ]

    @Test(arguments: pins) func `a pin that is nearly right gets a hint`(_ text: String, _ hint: String) throws {
        let problems = try Self.read("{ pin: \"\(text)\" }").problems
        #expect(
            problems == [".pin: found \"\(text)\", expected sha256/ and 44 characters of base 64; \(hint)"])
    }
}
