import Access
import Rules
import Settings
import Testing

@Suite("Access rules as they are written")
struct AccessRuleSettingsTests {
    static let rows: [(rule: String, text: String)] = [
        ("allow: { host: a.example, scheme: https, port: 443 }", "allow: host a.example; port 443; scheme https"),
        (
            "deny: { query: [ token, \"a b\", service=git-receive-pack ] }",
            "deny: query token, a b, service=git-receive-pack"
        ),
        ("deny: { content_type: \"application/*\", method: POST }", "deny: method POST; content_type application/*"),
        ("deny: { request_size: { at_least: 1MiB } }", "deny: request_size at least 1048576 bytes"),
        ("allow: { request_size: { at_most: 100 } }", "allow: request_size at most 100 bytes"),
        ("deny: { upgrade: WebSocket }", "deny: upgrade websocket"),
        ("deny: { upgrade: \"*\" }", "deny: upgrade *"),
        ("deny: { credential: client }", "deny: credential client"),
        (
            "allow: { host: a.example, sni: [ b.example, \"*.c.example\" ] }",
            "allow: host a.example; sni b.example, *.c.example"
        ),
        ("allow: { credential: [ own, none ] }", "allow: credential own, none"),
        ("deny: { user_agent: [ curl/, \"*bot*\" ] }", "deny: user_agent curl/, *bot*"),
        ("allow: { time: [ mon-fri 08:00-18:00, sat utc ] }", "allow: time mon-fri 08:00-18:00, sat utc"),
        (
            "allow: { time: mon-fri 08:00-18:00, zone: Europe/Berlin }",
            "allow: time mon-fri 08:00-18:00; zone Europe/Berlin"
        ),
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

    private static let optional = "authentication: { required: no, basic: { users: u } }"

    @Test func `rules that ask for a log-in`() throws {
        let configuration = try loaded(
            "access: { \(Self.optional), rules: [ { authenticate: { host: a.example, path: /x/* } }, { allow: {} } ] }")
        #expect(
            configuration.access.rules.map(\.text) == ["authenticate: host a.example; path /x/*", "allow: everything"])
        #expect(!configuration.access.authentication.isRequired && configuration.access.authentication.isConfigured)
        // Nobody has to log in, so the clients are those of a proxy without log-ins.
        #expect(configuration.access.clients == AddressRange.loopback)
    }

    static let doubtful: [(text: String, warning: String?)] = [
        ("\(optional), rules: [ { authenticate: {} }, { authenticate: {} }, { allow: {} } ]", nil),
        (
            "\(optional), rules: [ { allow: {} } ]",
            "access.authentication.required: no client is ever asked for credentials"
        ),
        (
            "\(optional), rules: [ { authenticate: { report: yes } }, { allow: {} } ]",
            "access.authentication.required: no client is ever asked for credentials"
        ),
        (
            "authentication: { basic: { users: u } }, rules: [ { authenticate: {} }, { allow: {} } ]",
            "access.rules[1]: decides nothing: every request has to carry credentials; set access.authentication.required: no"
        ),
        (
            "\(optional), rules: [ { allow: {} }, { authenticate: {} } ]",
            "access.rules[2]: is never reached: rule 1 matches everything; move it up"
        ),
    ]
    @Test(arguments: doubtful) func `a log-in that is never asked for, or always, gets a warning`(
        _ row: (text: String, warning: String?)
    ) throws {
        let (configuration, errors, warnings) = try load("access: { \(row.text) }")
        #expect(configuration != nil && errors.isEmpty)
        let texts = warnings.map(\.description)
        guard let warning = row.warning else { return #expect(texts == []) }
        #expect(texts.count == 1 && texts[0].contains(warning), "\(texts)")
    }

    static let wrong: [(text: String, error: String)] = [
        (
            "rules: [ { authenticate: {} } ]",
            "access.rules[1]: asks for credentials, but no authentication is configured; configure access.authentication"
        ),
        (
            "\(optional), rules: [ { authenticate: { user: ann } } ]",
            "access.rules[1].authenticate.user: who has to log in is not known yet; name users in allow and deny rules behind it"
        ),
        (
            "\(optional), rules: [ { authenticate: { reason: a } } ]",
            "access.rules[1].authenticate.reason: only a deny rule has a reason"
        ),
        (
            "\(optional), rules: [ { authenticate: { tunnel: any } } ]",
            "access.rules[1].authenticate.tunnel: an authenticate rule opens no tunnel"
        ),
        ("\(optional), rules: [ { autenticate: {} } ]", "or authenticate: { … }; did you mean authenticate?"),
        ("authentication: { requird: no, basic: { users: u } }", "did you mean access.authentication.required?"),
        ("authentication: { required: no }", "access.authentication.basic.users: missing"),
    ]
    @Test(arguments: wrong) func `what a rule that asks for a log-in cannot have`(
        _ row: (text: String, error: String)
    ) throws {
        let texts = try load("access: { \(row.text) }").errors.map(\.description)
        #expect(texts.count == 1 && texts[0].contains(row.error), "\(texts)")
    }

    @Test func `rules that only report do not change the default`() throws {
        #expect(try loaded("access: { rules: [ { deny: { report: yes } } ] }").access.defaultEffect == .allow)
        #expect(try loaded("access: { rules: [ { deny: {} } ] }").access.defaultEffect == .deny)
    }

    private static let forge =
        "credentials: [ { name: forge, scheme: bearer, match: { host: a.example, scheme: https }, token: t } ]"

    @Test func `a rule may be for requests with a credential of Larder's own`() throws {
        let configuration = try loaded(
            "access: { rules: [ { allow: { host: a.example, credential: { own: forge } } } ] }\n\(Self.forge)")
        #expect(configuration.access.rules.map(\.text) == ["allow: host a.example; credential own forge"])
        let wrong = try load("access: { rules: [ { allow: { credential: { own: forgr } } } ] }\n\(Self.forge)").errors
        #expect(
            wrong.map(\.description).contains {
                $0.contains("access.rules[1]: there is no credential forgr; did you mean forge?")
            }, "\(wrong)")
        let unknown = try load("access: { rules: [ { allow: { credential: larder } } ] }").errors
        #expect(
            unknown.map(\.description).contains { $0.contains("expected one of client, none, own") },
            "\(unknown)")
    }

    static let zones: [(rule: String, error: String)] = [
        ("allow: { zone: Europe/Berlin }", "[1].allow.zone: zone needs time; time: mon-fri 08:00-18:00"),
        ("allow: { time: mon, zone: ../../etc/passwd }", "expected a time zone such as Europe/Berlin"),
        ("allow: { time: mon, zone: /etc/localtime }", "expected a time zone such as Europe/Berlin"),
        ("allow: { time: mon, zone: \"+01:00\" }", "name the place, not the offset"),
        ("allow: { time: 08:00-18:00 Europe/Berlin }", "the zone has a key of its own: zone: Europe/Berlin"),
    ]
    @Test(arguments: zones) func `a zone has a name, and belongs to times`(_ rule: String, _ error: String) throws {
        let texts = try load("access: { rules: [ \(rule) ] }").errors.map(\.description)
        #expect(texts.count == 1 && texts[0].contains(error), "\(texts)")
    }

    static let sides = [
        ("cache: { rules: [ { match: { query: a }, ttl: 1s } ] }", "cache.rules[1].match.query"),
        ("routes: [ { match: { time: mon }, via: direct } ]", "routes[1].match.time"),
        ("origins: [ { match: { user_agent: a } } ]", "origins[1].match.user_agent"),
        ("routes: [ { match: { sni: a.example }, via: direct } ]", "routes[1].match.sni"),
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
