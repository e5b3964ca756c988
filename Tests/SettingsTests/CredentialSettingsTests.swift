import Credentials
import Routing
import Origins
import Rules
import Settings
import Testing

@Suite("credentials") struct CredentialSettingsTests {
    @Test func `a credential has its name, its schemes, its conditions and its secret`() throws {
        let rules = try loaded(
            """
            credentials:
              - { name: mirror, scheme: [ digest, basic ], match: { host: "*.corp.example", path: /a/* }, user: me, password: sesame }
              - name: models
                scheme: bearer
                match: { host: models.example, port: 8443, client: 10.0.0.0/8 }
                token: { env: MODELS_TOKEN }
                client: pass
                plain_http: yes
              - { name: c, scheme: basic, match: { host: c.example }, user: me, password: { file: /etc/secret }, send: always }
              - { name: d, scheme: basic, match: { host: d.example }, user: me, password: { fd: 7 } }
              - { name: e, scheme: oauth1, match: { host: e.example }, client_key: key, client_secret: s, token: t, token_secret: u, signature: hmac-sha256, realm: r }
              - { name: f, scheme: oauth1, match: { host: f.example }, client_key: key, client_secret: s }
              - { name: g, scheme: sigv4, match: { host: g.example }, access_key: id, secret_key: s, session_token: t, region: eu-west-1, service: execute-api }
              - { name: h, scheme: sigv4, match: { host: h.example }, access_key: { env: ID }, secret_key: { file: /etc/key }, region: local }
            """
        ).credentials
        #expect(rules.map(\.name) == ["mirror", "models", "c", "d", "e", "f", "g", "h"])
        #expect(
            rules.map(\.means) == [
                .password(user: "me", schemes: [.digest, .basic], isUnasked: false), .bearer,
                .password(user: "me", schemes: [.basic], isUnasked: true),
                .password(user: "me", schemes: [.basic], isUnasked: false),
                .oauth1(clientKey: "key", .hmacSHA256, realm: "r"), .oauth1(clientKey: "key", .hmacSHA1, realm: nil),
                .sigv4(region: "eu-west-1", service: "execute-api"), .sigv4(region: "local", service: "s3"),
            ])
        let sources: [[SecretPart: SecretSource]] = [
            [.password: .text(Secret("sesame"))], [.token: .environment("MODELS_TOKEN")],
            [.password: .file("/etc/secret")], [.password: .descriptor(7)],
            [.clientSecret: .text(Secret("s")), .token: .text(Secret("t")), .tokenSecret: .text(Secret("u"))],
            [.clientSecret: .text(Secret("s"))],
            [.accessKey: .text(Secret("id")), .secretKey: .text(Secret("s")), .sessionToken: .text(Secret("t"))],
            [.accessKey: .environment("ID"), .secretKey: .file("/etc/key")],
        ]
        #expect(rules.map(\.secrets) == sources)
        #expect(rules.map(\.clientUse) == [.replace, .pass] + Array(repeating: .replace, count: 6))
        #expect(rules.map(\.allowsPlainHTTP) == [false, true] + Array(repeating: false, count: 6))
        #expect(rules.map(\.number) == Array(1...8) && rules.map(\.line) == [2, 3, 9, 10, 11, 12, 13, 14])
        #expect(rules[0].conditions?.description == "host *.corp.example; path /a/*")
    }

    @Test func `ntlm and negotiate log in with a password, a keytab or the tickets that are there`() throws {
        let rules = try loaded(
            """
            credentials:
              - { name: a, scheme: ntlm, match: { host: a.example }, user: me, domain: CORP, password: x }
              - { name: b, scheme: ntlm, match: { host: b.example }, user: 'CORP\\me', password: x }
              - { name: c, scheme: negotiate, match: { host: c.example } }
              - { name: d, scheme: negotiate, match: { host: d.example }, user: me@CORP.EXAMPLE, service: http }
              - { name: e, scheme: negotiate, match: { host: e.example }, keytab: /etc/larder/larder.keytab }
              - { name: f, scheme: negotiate, match: { host: f.example }, user: me, keytab: /etc/larder/larder.keytab }
              - { name: g, scheme: negotiate, match: { host: g.example }, user: me, password: x }
              - { name: h, scheme: [ negotiate, ntlm, digest, basic ], match: { host: h.example }, user: me, password: x, domain: CORP, service: WSMAN }
            """
        ).credentials
        #expect(
            rules.map(\.means) == [
                .password(
                    user: "me", schemes: [.ntlm], isUnasked: false, names: DirectoryNames(domain: "CORP")),
                .password(user: "CORP\\me", schemes: [.ntlm], isUnasked: false),
                .ticket(principal: nil, keytab: nil, service: "HTTP"),
                .ticket(principal: "me@CORP.EXAMPLE", keytab: nil, service: "http"),
                .ticket(principal: nil, keytab: "/etc/larder/larder.keytab", service: "HTTP"),
                .ticket(principal: "me", keytab: "/etc/larder/larder.keytab", service: "HTTP"),
                .password(user: "me", schemes: [.negotiate], isUnasked: false),
                .password(
                    user: "me", schemes: [.negotiate, .ntlm, .digest, .basic], isUnasked: false,
                    names: DirectoryNames(domain: "CORP", service: "WSMAN")),
            ])
        let password: [SecretPart: SecretSource] = [.password: .text(Secret("x"))]
        let keytab: [SecretPart: SecretSource] = [.keytab: .file("/etc/larder/larder.keytab")]
        #expect(rules.map(\.secrets) == [password, password, [:], [:], keytab, keytab, password, password])
    }

    @Test func `a credential that a route names needs no hosts`() throws {
        let configuration = try loaded(
            """
            credentials:
              - { name: corp, scheme: [ basic, digest ], user: me, password: x }
              - { name: both, scheme: bearer, match: { host: a.example }, token: x }
            routes:
              - { match: { host: b.example }, via: "http://one:3128", credential: both }
              - { via: [ "https://two:3129", direct ], credential: corp }
            """)
        #expect(configuration.credentials.map { $0.conditions?.description } == [nil, "host a.example"])
        #expect(configuration.routes.map(\.credential) == ["both", "corp"])
        let proxy = NextProxy(Endpoint(host: "two", port: 3129), .https, credential: "corp")
        #expect(configuration.routes[1].routes == [.proxy(proxy), .direct])
    }

    @Test func `a credential that nobody would get is refused`() throws {
        let text = "credentials:\n  - { name: corp, scheme: basic, user: me, password: x }\n"
        #expect(
            try load(text).errors.map(\.description) == [
                "larder.yaml:2: credentials[1].match: missing, and no rule of routes names corp: nobody would get the credential; add match: { host: NAME }, or credential: corp to a rule of routes"
            ])
    }

    @Test func `a placeholder has places`() throws {
        let rules = try loaded(
            """
            credentials:
              - { name: a, scheme: placeholder, match: { host: a.example }, token: secret }
              - name: b
                scheme: placeholder
                match: { host: b.example }
                token: { file: /etc/token }
                prefix: tok_
                fields: [ X-Api-Key, Private-Token ]
                query: [ key ]
                path_segment: yes
                json: [ auth.token, key ]
                form: client_secret
                require: yes
                renews: { refresh_token: b, data.access: a }
            """
        ).credentials
        var places = PlaceholderPlaces()
        #expect(rules[0].means == .placeholder(places))
        places.prefix = "tok_"
        places.fields = ["X-Api-Key", "Private-Token"]
        places.query = ["key"]
        places.path = true
        places.json = [["auth", "token"], ["key"]]
        places.form = ["client_secret"]
        places.isRequired = true
        places.renewals = [
            PlaceholderRenewal(member: ["refresh_token"], credential: "b"),
            PlaceholderRenewal(member: ["data", "access"], credential: "a"),
        ]
        #expect(rules[1].means == .placeholder(places))
    }

    @Test func `a description of a source never shows a secret`() {
        #expect("\(SecretSource.text(Secret("sesame")))" == "the configuration")
        #expect("\(SecretSource.file("/etc/secret"))" == "the file /etc/secret")
        #expect("\(SecretSource.environment("TOKEN"))" == "the variable TOKEN")
        #expect("\(SecretSource.descriptor(7))" == "descriptor 7")
    }

    /// Each is one entry; the rest of it is right.
    static let mistakes: [(entry: String, error: String)] = [
        ("{}", "2: credentials[1]: name is missing"),
        (
            "{ name: a b, \(rest) }",
            "2: credentials[1].name: found \"a b\", expected a name of 1 to 64 letters, digits, \"-\", \"_\" and \".\""
        ),
        (
            "{ name: a, scheme: basik, match: { host: a.example }, user: me, password: x }",
            "2: credentials[1].scheme: found \"basik\", expected one of basic, digest, ntlm, negotiate, bearer, oauth1, sigv4, placeholder; did you mean basic?"
        ),
        (
            "{ name: a, scheme: basic, match: {}, user: me, password: x }",
            "2: credentials[1].match: names no host: whoever asks would get the secret; add host: NAME"
        ),
        (
            "{ name: a, scheme: basic, match: { host: \"*\" }, user: me, password: x }",
            "2: credentials[1].match: names no host: whoever asks would get the secret; add host: NAME"
        ),
        (
            "{ name: a, scheme: basic, match: { host: a.example, address: 192.0.2.1 }, user: me, password: x }",
            "2: credentials[1].match.address: a credential has no address: it belongs to names that an origin proves; use host"
        ),
        ("{ name: a, scheme: basic, match: { host: a.example }, password: x }", "2: credentials[1]: user is missing"),
        ("{ name: a, scheme: basic, match: { host: a.example }, user: me }", "2: credentials[1]: password is missing"),
        (
            "{ name: a, scheme: basic, match: { host: a.example }, user: \"a:b\", password: x }",
            "2: credentials[1].user: found \"a:b\", expected a user of 1 to 255 bytes without \":\" and control characters"
        ),
        (
            "{ name: a, scheme: basic, match: { host: a.example }, user: me, token: x, password: x }",
            "2: credentials[1].token: basic has no token; its keys are user, password, send"
        ),
        (
            "{ name: a, scheme: bearer, match: { host: a.example }, user: me, token: x }",
            "2: credentials[1].user: bearer has no user; its keys are token"
        ),
        (
            "{ name: a, scheme: [ basic, bearer ], match: { host: a.example }, token: x }",
            "2: credentials[1].scheme: bearer stands alone; only basic, digest, ntlm and negotiate share a user and a password"
        ),
        (
            "{ name: a, scheme: bearer, match: { host: a.example }, token: x, send: learnt }",
            "2: credentials[1].send: bearer has no send; its keys are token"
        ),
        (
            "{ name: a, scheme: oauth1, match: { host: a.example }, client_key: k, client_secret: x, token: y }",
            "2: credentials[1].token: token and token_secret belong together"
        ),
        (
            "{ name: a, scheme: oauth1, match: { host: a.example }, client_key: k, client_secret: x, signature: hmac-sha265 }",
            "2: credentials[1].signature: found \"hmac-sha265\", expected hmac-sha1 or hmac-sha256; did you mean hmac-sha256?"
        ),
        (
            "{ name: a, scheme: placeholder, match: { host: a.example } }", "2: credentials[1]: token is missing"
        ),
        (
            "{ name: a, scheme: placeholder, match: { host: a.example }, token: x, fields: [ User-Agent ] }",
            "2: credentials[1].fields[1]: found \"User-Agent\", expected the name of a field that servers neither show nor log, such as X-Api-Key"
        ),
        (
            "{ name: a, scheme: placeholder, match: { host: a.example }, token: x, fields: [ authorization ] }",
            "2: credentials[1].fields[1]: found \"authorization\", expected the name of a field that servers neither show nor log, such as X-Api-Key; Authorization needs not be listed"
        ),
        (
            "{ name: a, scheme: placeholder, match: { host: a.example }, token: x, json: [ a..b ] }",
            "2: credentials[1].json[1]: found \"a..b\", expected the name of a member, or names with \".\" between them, such as auth.token"
        ),
        (
            "{ name: a, scheme: placeholder, match: { host: a.example }, token: x, prefix: \"a b\" }",
            "2: credentials[1].prefix: found \"a b\", expected a text of 1 to 24 letters, digits, \"-\", \"_\" and \".\""
        ),
        (
            "{ name: a, scheme: placeholder, match: { host: a.example }, token: x, client: pass }",
            "2: credentials[1].client: placeholder replaces what clients send, and nothing else; leave client out"
        ),
        (
            "{ name: forge, scheme: placeholder, match: { host: a.example }, token: x, renews: { a: frge } }",
            "2: credentials[1].renews.a: frge is no credential with the scheme placeholder; did you mean forge?"
        ),
        (
            "{ name: a, scheme: placeholder, match: { host: a.example }, token: x, renews: { a..b: a } }",
            "2: credentials[1].renews.a..b: a..b is not the name of a member, or names with \".\" between them, such as auth.token"
        ),
        (
            "{ name: a, scheme: placeholder, match: { host: a.example }, token: x, renews: [ a ] }",
            "2: credentials[1].renews: found a list, expected members of answers with the names of their credentials, such as { refresh_token: NAME }"
        ),
        (
            "{ name: a, scheme: bearer, match: { host: a.example }, token: x, require: yes }",
            "2: credentials[1].require: bearer has no require; its keys are token"
        ),
        (
            "{ name: a, scheme: sigv4, match: { host: a.example }, access_key: k, secret_key: x }",
            "2: credentials[1]: region is missing"
        ),
        (
            "{ name: a, scheme: sigv4, match: { host: a.example }, access_key: k, secret_key: x, region: EU West }",
            "2: credentials[1].region: found \"EU West\", expected a name of 1 to 64 small letters, digits and \"-\""
        ),
        (
            "{ name: a, scheme: ntlm, match: { host: a.example }, user: me, domain: CORP }",
            "2: credentials[1]: password is missing"
        ),
        (
            "{ name: a, scheme: ntlm, match: { host: a.example }, user: me, password: x, keytab: /etc/keytab }",
            "2: credentials[1].keytab: ntlm has no keytab; its keys are user, password, domain"
        ),
        (
            "{ name: a, scheme: ntlm, match: { host: a.example }, user: me, password: x, domain: 'a\\b' }",
            "2: credentials[1].domain: found \"a\\b\", expected a domain of 1 to 255 bytes without \"\\\", \"@\", white space and control characters"
        ),
        (
            "{ name: a, scheme: negotiate, match: { host: a.example }, password: x }",
            "2: credentials[1]: user is missing"
        ),
        (
            "{ name: a, scheme: negotiate, match: { host: a.example }, user: me, password: x, keytab: /etc/keytab }",
            "2: credentials[1].keytab: password and keytab exclude each other; leave one of them out"
        ),
        ("{ name: a, scheme: ntlm, match: { host: a.example } }", "2: credentials[1]: user is missing"),
        (
            "{ name: a, scheme: ntlm, match: { host: a.example }, user: me, password: x, keytab: /etc/keytab }",
            "2: credentials[1].keytab: ntlm has no keytab; its keys are user, password, domain"
        ),
        (
            "{ name: a, scheme: negotiate, match: { host: a.example }, service: HTTP/a }",
            "2: credentials[1].service: found \"HTTP/a\", expected a service of 1 to 64 letters, digits and \"-\""
        ),
        (
            "{ name: a, scheme: [ negotiate, basic ], match: { host: a.example }, user: me, keytab: /etc/keytab }",
            "2: credentials[1].keytab: negotiate and basic has no keytab; its keys are user, password, service, send"
        ),
        (
            "{ name: a, scheme: [ negotiate, ntlm ], match: { host: a.example }, user: me, password: x, keytab: /a }",
            "2: credentials[1].keytab: negotiate and ntlm has no keytab; its keys are user, password, service, domain"
        ),
        (
            "{ name: a, scheme: [ ntlm, basic ], match: { host: a.example }, user: me, password: x, send: always }",
            "2: credentials[1].send: ntlm answers a challenge and cannot be sent before it; leave send out"
        ),
        (
            "{ name: a, scheme: digest, match: { host: a.example }, user: me, password: x, send: always }",
            "2: credentials[1].send: digest answers a challenge and cannot be sent before it; leave send out"
        ),
        (
            "{ name: a, scheme: basic, match: { host: a.example }, user: me, password: { file: /a, env: B } }",
            "2: credentials[1].password: expected one of file, env, fd and command, found 2"
        ),
        (
            "{ name: a, scheme: basic, match: { host: a.example }, user: me, password: { fil: /a } }",
            "2: credentials[1].password.fil: unknown source; did you mean file?"
        ),
        (
            "{ name: a, scheme: basic, match: { host: a.example }, user: me, passwort: secret }",
            "2: credentials[1].passwort: unknown key; did you mean password?"
        ),
    ]
    private static let rest = "scheme: basic, match: { host: a.example }, user: me, password: x"

    @Test(arguments: mistakes) func `a mistake has its line, its key and its hint`(entry: String, error: String) throws
    {
        let errors = try load("credentials:\n  - \(entry)").errors.map(\.description)
        #expect(errors.first == "larder.yaml:\(error)", "\(errors)")
        #expect(!errors.joined().contains("secret\""), "\(errors)")
        let places = errors.map { $0.prefix { $0 != ";" } }
        #expect(Set(places).count == places.count, "said twice: \(errors)")
    }

    @Test func `two credentials have two names`() throws {
        let entry = "{ name: a, scheme: basic, match: { host: a.example }, user: me, password: x }"
        #expect(
            try load("credentials:\n  - \(entry)\n  - \(entry)").errors.map(\.description) == [
                "larder.yaml:3: credentials[2].name: the name a is used twice"
            ])
    }
}
