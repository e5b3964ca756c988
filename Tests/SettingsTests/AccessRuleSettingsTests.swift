import Access
import Rules
import Settings
import Testing

@Suite("Access rules as they are written")
struct AccessRuleSettingsTests {
    static let rows: [(rule: String, text: String)] = [
        ("allow: { host: a.example, scheme: https, port: 443 }", "allow: host a.example; port 443; scheme https"),
        ("deny: { query: [ token, \"a b\" ] }", "deny: query token, a b"),
        ("deny: { content_type: \"application/*\", method: POST }", "deny: method POST; content_type application/*"),
        ("deny: { request_size: { at_least: 1MiB } }", "deny: request_size at least 1048576 bytes"),
        ("allow: { request_size: { at_most: 100 } }", "allow: request_size at most 100 bytes"),
        ("deny: { upgrade: WebSocket }", "deny: upgrade websocket"),
        ("deny: { upgrade: \"*\" }", "deny: upgrade *"),
        ("deny: { credential: client }", "deny: credential client"),
        ("deny: { user_agent: [ curl/, \"*bot*\" ] }", "deny: user_agent curl/, *bot*"),
        ("allow: { time: [ mon-fri 08:00-18:00, sat utc ] }", "allow: time mon-fri 08:00-18:00, sat utc"),
        ("allow: { listener: [ inner, outer ] }", "allow: listener inner, outer"),
        ("deny: { host: [ a.example, { file: blocked.txt } ] }", "deny: host a.example, blocked.txt (0 entries)"),
        ("deny: { host: { file: blocked.txt } }", "deny: host blocked.txt (0 entries)"),
        ("deny: { client: { file: c }, address: { file: a } }", "deny: address a (0 entries); client c (0 entries)"),
        (
            "redirect: { host: a.example, to: \"https://help.example/\" }",
            "redirect: host a.example → to https://help.example/"
        ),
        ("deny: { host: a.example, report: yes }", "deny: host a.example → report only"),
        ("allow: { host: a.example, report: no }", "allow: host a.example"),
    ]
    @Test(arguments: rows) func `larder check shows what was read`(_ rule: String, _ text: String) throws {
        let configuration = try loaded("access:\n  rules:\n    - \(rule)\n")
        #expect(configuration.access.rules.map(\.text) == [text])
    }

    @Test func `users and groups, with authentication`() throws {
        let configuration = try loaded(
            """
            access:
              authentication: { basic: { users: u } }
              rules:
                - allow: { user: [ ann, { file: staff } ], group: ops }
            """)
        #expect(configuration.access.rules.map(\.text) == ["allow: user ann, staff (0 entries); group ops"])
    }

    @Test func `rules that only report do not change the default`() throws {
        #expect(try loaded("access: { rules: [ { deny: { report: yes } } ] }").access.defaultEffect == .allow)
        #expect(try loaded("access: { rules: [ { deny: {} } ] }").access.defaultEffect == .deny)
    }

    static let sides = [
        ("cache: { rules: [ { match: { query: a }, ttl: 1s } ] }", "cache.rules[1].match.query"),
        ("routes: [ { match: { time: mon }, via: direct } ]", "routes[1].match.time"),
        ("origins: [ { match: { user_agent: a } } ]", "origins[1].match.user_agent"),
    ]
    @Test(arguments: sides) func `other rules have no details`(_ text: String, _ key: String) throws {
        let errors = try load(text).errors
        #expect(errors.map(\.key) == [key])
        #expect(errors.allSatisfy { $0.message.hasPrefix("only access rules have ") })
    }

    @Test func `other rules have scheme, group and listener`() throws {
        let configuration = try loaded("cache: { rules: [ { match: { scheme: https, listener: inner }, ttl: 1s } ] }")
        #expect("\(configuration.cache.rules[0].conditions)" == "scheme https; listener inner")
    }
}
