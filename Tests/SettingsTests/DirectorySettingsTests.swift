import Authentication
import Foundation
import Settings
import Testing

@Suite("access.authentication.directory") struct DirectorySettingsTests {
    static func text(_ directory: String, more: String = "") -> String {
        "access:\n  authentication:\n    directory: { \(directory) }\n\(more)"
    }

    @Test func `a directory has its URLs, its account, and where users and groups are`() throws {
        let directory = try loaded(
            """
            access:
              authentication:
                directory:
                  urls: [ "ldaps://ldap1.example.net", "ldap://ldap2.example.net:3389" ]
                  ca_file: /etc/ca.pem
                  bind_dn: cn=larder,dc=example
                  password_file: /etc/password
                  users: { base: "ou=people,dc=example", filter: "(sAMAccountName={user})", name: sAMAccountName }
                  groups: { base: "ou=groups,dc=example", filter: "(memberUid={user})", name: ou, attribute: memberOf }
                  timeout: 2s
                  lifetime: 1m
            """
        ).access.authentication.directory
        #expect(directory.urls.map { "\($0)" } == ["ldaps://ldap1.example.net", "ldap://ldap2.example.net:3389"])
        #expect(directory.startsTLS && directory.plainText == .deny)
        #expect(directory.authorityFile == "/etc/ca.pem" && directory.accountPasswordFile == "/etc/password")
        #expect(directory.accountName == "cn=larder,dc=example" && directory.usersBase == "ou=people,dc=example")
        #expect(directory.usersFilter.map { "\($0)" } == "(sAMAccountName={user})")
        #expect(directory.nameAttribute == "sAMAccountName" && directory.userName == nil)
        #expect(directory.groupsFilter.map { "\($0)" } == "(memberUid={user})")
        #expect(directory.groupAttribute == "ou" && directory.memberAttribute == "memberOf")
        #expect(directory.timeout == .seconds(2) && directory.lifetime == .seconds(60))
    }

    @Test func `a directory alone has clients log in with Basic, beside Digest where basic is written`() throws {
        let alone = try loaded(Self.text("urls: \"ldaps://a\", users: { base: dc=x }")).access.authentication
        #expect(alone.offered == [.basic] && alone.isRequired)
        let both = try loaded(
            Self.text(
                "urls: \"ldaps://a\", users: { base: dc=x }", more: "    digest: { users: /d }\n    basic: { realm: r }"
            )
        ).access.authentication
        #expect(both.offered == [.digest, .basic])
    }

    static let section = "3: access.authentication.directory"
    static let rows: [(text: String, expected: [String])] = [
        (
            text("start_tls: yes"),
            ["\(section).urls: missing; name the directory, or remove access.authentication.directory"]
        ),
        (
            text("urls: \"ldap://a/dc=x\", users: { base: dc=x }"),
            [
                "\(section).urls: found \"ldap://a/dc=x\", expected ldaps://host or ldap://host, with a :port if it is not 636 or 389; names and filters belong in users and groups"
            ]
        ),
        (
            text("urls: [ \"ldaps://a\", \"ldaps://A\" ], users: { base: dc=x }"),
            ["\(section).urls: ldaps://a is listed twice"]
        ),
        (
            text("urls: \"ldap://a\", start_tls: no, users: { base: dc=x }"),
            [
                "\(section).urls: passwords would go to ldap://a without TLS; use ldaps or start_tls: yes, or say plain_text: allow if the network is safe"
            ]
        ),
        (text("urls: \"ldap://a\", start_tls: no, plain_text: allow, users: { base: dc=x }"), []),
        (text("urls: \"ldap://localhost\", start_tls: no, users: { base: dc=x }"), []),
        (
            text("urls: \"ldap://[::1]\", start_tls: no, ca_file: /c, users: { base: dc=x }"),
            ["\(section).ca_file: no connection to the directory uses TLS"]
        ),
        (
            text("urls: \"ldaps://a\", bind_dn: cn=x, users: { base: dc=x }"),
            ["\(section).password_file: missing; bind_dn and password_file belong together"]
        ),
        (
            text("urls: \"ldaps://a\", password_file: /p, users: { base: dc=x }"),
            ["\(section).bind_dn: missing; bind_dn and password_file belong together"]
        ),
        (
            text("urls: \"ldaps://a\""),
            ["\(section).users.base: missing; say where users are searched for, or name their entries with users.dn"]
        ),
        (
            text("urls: \"ldaps://a\", users: { base: dc=x, dn: \"uid={user},dc=x\" }"),
            ["\(section).users.dn: users are searched for below users.base already; remove one of them"]
        ),
        (
            text("urls: \"ldaps://a\", users: { dn: \"uid={user},dc=x\", filter: \"(cn={user})\" }"),
            ["\(section).users.filter: is for a search below users.base, which is missing"]
        ),
        (
            text("urls: \"ldaps://a\", users: { base: dc=x, filter: \"(cn={dn})\" }"),
            ["\(section).users.filter: has to name {user}, and no {dn}, which is what it looks for"]
        ),
        (
            text("urls: \"ldaps://a\", users: { base: dc=x, filter: \"uid={user}\" }"),
            [
                "\(section).users.filter: found \"uid={user}\", expected a filter (RFC 4515) such as (uid={user}); a filter stands in parentheses"
            ]
        ),
        (
            text("urls: \"ldaps://a\", users: { base: people }"),
            [
                "\(section).users.base: found \"people\", expected the name of an entry (RFC 4514) such as ou=people,dc=example,dc=net"
            ]
        ),
        (
            text("urls: \"ldaps://a\", users: { base: dc=x, name: \"a b\" }"),
            [
                "\(section).users.name: found \"a b\", expected the name of an attribute: letters, digits, \"-\", \".\" and \";\""
            ]
        ),
        (
            text("urls: \"ldaps://a\", users: { base: dc=x }, groups: { name: cn }"),
            [
                "\(section).groups.name: is for a search below groups.base, which is missing",
                "\(section).groups.base: missing; say where groups are searched for, or name groups.attribute",
            ]
        ),
        (
            text("urls: \"ldaps://a\", users: { base: dc=x }", more: "    digest: { users: /d }"),
            [
                "\(section): users of a directory log in with Basic, and only digest is configured; add access.authentication.basic, or remove digest"
            ]
        ),
        (
            text("url: \"ldaps://a\", users: { base: dc=x }"),
            ["\(section).url: unknown key; did you mean access.authentication.directory.urls?"]
        ),
    ]
    @Test(arguments: rows) func `what does not fit is refused, and says what to do`(
        _ row: (text: String, expected: [String])
    ) throws {
        let errors = try load(row.text).errors
        #expect(errors.map { "\($0)".replacingOccurrences(of: "larder.yaml:", with: "") } == row.expected)
    }
}
