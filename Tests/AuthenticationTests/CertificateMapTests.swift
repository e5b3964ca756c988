import Authentication
import Testing

@Suite("access.authentication.certificates: whose certificate it is")
struct CertificateMapTests {
    private static let build = ClientCertificate(
        subject: "CN=build-7,O=Example", commonName: "build-7", dnsNames: ["B7.Builders.example"],
        mailboxes: ["Ali@Example.org"], uris: ["spiffe://example/ci/7"])

    struct Row: Sendable, CustomTestStringConvertible {
        let field: CertificateMap.Field
        let pattern: String
        let user: String
        /// Nil: the entry does not match.
        let name: String?
        var testDescription: String { "\(field) \(pattern) → \(user)" }

        init(_ field: CertificateMap.Field, _ pattern: String, _ user: String, _ name: String?) {
            (self.field, self.pattern, self.user, self.name) = (field, pattern, user, name)
        }
    }

    static let rows = [
        Row(.san, "*.builders.example", "{san}", "b7.builders.example"),
        Row(.san, "*.Builders.example", "builder-{*}", "builder-b7"),
        Row(.san, "b7.builders.example", "b7", "b7"),
        Row(.san, "builders.example", "x", nil),
        Row(.san, "*b7.builders.example", "x", nil),
        Row(.san, "ali@example.org", "ali", "ali"),
        Row(.san, "spiffe://example/*", "{*}", "ci/7"),
        Row(.san, "SPIFFE://example/*", "x", nil),
        Row(.cn, "build-7", "{cn}", "build-7"),
        Row(.cn, "build-*", "{cn} of {subject}", "build-7 of CN=build-7,O=Example"),
        Row(.cn, "BUILD-7", "x", nil),
        Row(.subject, "CN=build-7,O=Example", "{san}", "b7.builders.example"),
        Row(.subject, "*,O=Example", "{*}", "CN=build-7"),
        Row(.subject, "CN=build-7", "x", nil),
    ]

    @Test(arguments: rows) func `an entry matches a name and makes another of it`(_ row: Row) throws {
        let map = CertificateMap([
            .init(row.field, try #require(NamePattern(row.pattern)), user: row.user, groups: ["g"])
        ])
        let found = map.identity(of: Self.build)
        #expect(found?.name == row.name)
        #expect(found?.groups == (row.name == nil ? nil : ["g"]))
    }

    @Test func `the first entry that matches counts`() throws {
        let map = CertificateMap([
            .init(.cn, try #require(NamePattern("other")), user: "a"),
            .init(.cn, try #require(NamePattern("*")), user: "b"),
            .init(.cn, try #require(NamePattern("build-7")), user: "c"),
        ])
        #expect(map.identity(of: Self.build)?.name == "b")
    }

    @Test func `a certificate for many hosts is nobody's, and one without the name that is asked for neither`() throws {
        let map = CertificateMap([
            .init(.san, try #require(NamePattern("*.builders.example")), user: "{san}"),
            .init(.subject, try #require(NamePattern("*")), user: "{cn}"),
        ])
        #expect(map.identity(of: ClientCertificate(subject: "O=x", dnsNames: ["*.builders.example"])) == nil)
    }

    @Test(arguments: ["", "a*b*c", "**"]) func `a pattern has one star at most`(_ text: String) {
        #expect(NamePattern(text) == nil)
    }
}
