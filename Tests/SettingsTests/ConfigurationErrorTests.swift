import Settings
import Testing

@Suite("Errors of configuration files")
struct ConfigurationErrorTests {
    static let rows: [(text: String, expected: [String])] = [
        ("cache:\n  memroy: 1GiB", ["2: cache.memroy: unknown key; did you mean cache.memory?"]),
        ("cahce:\n  memory: 1GiB", ["1: cahce: unknown key; did you mean cache?"]),
        ("memory: 1GiB", ["1: memory: unknown key; did you mean cache.memory?"]),
        ("cache.memory: 1GiB", ["1: cache.memory: unknown key; keys are nested, not dotted"]),
        ("utterly: 1", ["1: utterly: unknown key"]),
        ("cache: { memory: 12q }", ["1: cache.memory: found \"12q\", expected a size from 1MiB to 16TiB"]),
        ("cache: { memory: 1023KiB }", ["1: cache.memory: found \"1023KiB\", expected a size from 1MiB to 16TiB"]),
        ("cache: { memory: 17TiB }", ["1: cache.memory: found \"17TiB\", expected a size from 1MiB to 16TiB"]),
        ("cache: { memory: [ 1 ] }", ["1: cache.memory: found a list, expected a size from 1MiB to 16TiB"]),
        ("cache:\n  memory:", ["2: cache.memory: found nothing, expected a size from 1MiB to 16TiB"]),
        (
            "cache: big",
            [
                "1: cache: found \"big\", expected the keys memory, disk, collapse, object_size_max, heuristic_lifetime_max, negative_ttl, targeted_fields, policy_clients, compression, zones, rules"
            ]
        ),
        ("cache: { disk: 10GiB }", ["1: cache.disk: found \"10GiB\", expected the keys path, size, pinned, sync"]),
        (
            "- a",
            [
                "1: found a list, expected the keys listen, workers, recipes, routes, origins, cookie_jars, credentials, admin, cache, fleet, access, learn, intercept, log, timeouts, retries, circuit, pac, bandwidth, tls, dns, limits"
            ]
        ),
        (
            "intercept: { hosts: [ a.test ] }",
            [
                "1: intercept.hosts: tunnels are to be opened, but intercept.ca names no authority; larder ca create makes an authority, and prints both lines"
            ]
        ),
        (
            "intercept: { ca: { certificate: /c } }",
            [
                "1: intercept.ca.key: missing; larder ca create makes an authority, and prints both lines"
            ]
        ),
        (
            "intercept: { ca: { key: /k } }",
            [
                "1: intercept.ca.certificate: missing; larder ca create makes an authority, and prints both lines"
            ]
        ),
        (
            "access: { rules: [ { allow: { intercept: yes } } ] }",
            [
                "1: access.rules[1]: tunnels are to be opened, but intercept.ca names no authority; larder ca create makes an authority, and prints both lines"
            ]
        ),
        (
            "access: { rules: [ { deny: { intercept: no } } ] }",
            ["1: access.rules[1].deny.intercept: a deny rule opens no tunnel"]
        ),
        (
            "intercept: { refused: close }", ["1: intercept.refused: found \"close\", expected open or tunnel"]
        ),
        ("workers: 0", ["1: workers: found \"0\", expected auto, or a number from 1 to 1024"]),
        ("cache: { collapse: maybe }", ["1: cache.collapse: found \"maybe\", expected yes or no"]),
        (
            "log: { level: wraning }",
            ["1: log.level: found \"wraning\", expected one of error, warning, info, debug; did you mean warning?"]
        ),
        (
            "log: { access: stdot }",
            [
                "1: log.access: found \"stdot\", expected stdout, off, or a file with a / in its path; did you mean stdout?"
            ]
        ),
        (
            "timeouts: { connect: 30 }",
            [
                "1: timeouts.connect: found \"30\", expected a duration from 100ms to 10m; a duration needs a unit: 30s, 30m, 30h"
            ]
        ),
        ("timeouts: { connect: 99ms }", ["1: timeouts.connect: found \"99ms\", expected a duration from 100ms to 10m"]),
        ("timeouts: { connect: 11m }", ["1: timeouts.connect: found \"11m\", expected a duration from 100ms to 10m"]),
        (
            "admin: { address: unix:/a }",
            ["1: admin.address: found \"unix:/a\", expected host:port with an address as host, or [v6]:port, or off"]
        ),
        (
            "admin: { socket: admin.sock }",
            ["1: admin.socket: found \"admin.sock\", expected an absolute path of at most 107 bytes, or off"]
        ),
        (
            "dns: { servers: [ name.test:53 ] }",
            ["1: dns.servers[1]: found \"name.test:53\", expected host:port with an address as host, or [v6]:port"]
        ),
        (
            "dns: { family: prefer-ip4 }",
            [
                "1: dns.family: found \"prefer-ip4\", expected one of any, ipv4, ipv6, prefer-ipv4, prefer-ipv6; did you mean prefer-ipv4?"
            ]
        ),
        (
            "dns:\n  hosts: { 192.0.2.1: 192.0.2.7 }",
            ["2: dns.hosts.192.0.2.1: expected a host name or *.name"]
        ),
        (
            "dns:\n  hosts:\n    a.test: [ 192.0.2.7, b.test ]\n    A.test.: 192.0.2.8",
            [
                "3: dns.hosts.a.test[2]: found \"b.test\", expected an IP address"
            ]
        ),
        (
            "dns:\n  hosts:\n    a.test: 192.0.2.7\n    A.test.: 192.0.2.8",
            ["4: dns.hosts.A.test.: is listed twice"]
        ),
        ("dns: { hosts: a.test }", ["1: dns.hosts: found \"a.test\", expected names with their addresses"]),
        (
            "dns: { suffixes: { \"*.corp.test\": \"192.0.2.53:53\" } }",
            ["1: dns.suffixes.*.corp.test: expected a host name; a suffix includes the names below it"]
        ),
        (
            "dns: { suffixes: { corp.test: 192.0.2.53 } }",
            [
                "1: dns.suffixes.corp.test: found \"192.0.2.53\", expected host:port with an address as host, or [v6]:port"
            ]
        ),
        ("dns: { ttl_min: 1m, ttl_max: 30s }", ["1: dns.ttl_min: 1m is more than dns.ttl_max, 30s"]),
        (
            "limits: { field_count_max: 15 }",
            ["1: limits.field_count_max: found \"15\", expected a number from 16 to 10000"]
        ),
        ("listen: []", ["1: listen: found an empty list; leave the key out instead"]),
        (
            "listen: [ { address: example.org:80 } ]",
            [
                "1: listen[1].address: found \"example.org:80\", expected host:port with an address as host, [v6]:port, unix:/path, systemd or systemd:NAME"
            ]
        ),
        (
            "listen: [ { adress: 127.0.0.1:80 } ]",
            ["1: listen[1].adress: unknown key; did you mean address?", "1: listen[1]: address is missing"]
        ),
        (
            "listen: [ { address: 127.0.0.1:80 }, { address: 127.0.0.1:80 } ]",
            ["1: listen: 127.0.0.1:80 is listed twice"]
        ),
        (
            "listen: [ { address: 127.0.0.1:80, protocols: [ http1, http2 ] } ]",
            [
                "1: listen[1].protocols[2]: found \"http2\", expected http1 or socks5; HTTP/2 is not spoken with clients"
            ]
        ),
        (
            "listen: [ { address: 127.0.0.1:80, tls: { certificate: /c } } ]",
            ["1: listen[1].tls: key is missing"]
        ),
        (
            "listen: [ { address: 127.0.0.1:80, tls: { certificate: /c, key: /k, crl: /r } } ]",
            ["1: listen[1].tls.crl: nobody is asked for a certificate; add client_ca"]
        ),
        (
            "listen: [ { address: 127.0.0.1:80, mode: 0660 } ]",
            ["1: listen[1].mode: only a Unix socket has permissions; leave it out"]
        ),
        (
            "listen: [ { address: unix:/run/p, mode: 888 } ]",
            ["1: listen[1].mode: found \"888\", expected permissions in octal, such as 0660"]
        ),
        (
            "listen: [ { address: unix:/run/p, proxy_protocol: 10.0.0.0/8 } ]",
            [
                "1: listen[1].proxy_protocol: the clients of a Unix socket have no address that could be trusted; leave it out"
            ]
        ),
        (
            "listen: [ { address: 127.0.0.1:80, name: \"a b\" } ]",
            [
                "1: listen[1].name: found \"a b\", expected a name of 1 to 64 letters, digits, -, _ and ."
            ]
        ),
        (
            "listen: [ { address: 127.0.0.1:80, name: a }, { address: 127.0.0.1:81, name: a } ]",
            ["1: listen[2].name: another listener has the name a"]
        ),
        (
            "listen: [ systemd, \"systemd:a\" ]",
            ["1: listen: systemd takes all sockets, so none is left for a listener with a name"]
        ),
        (
            "access: { authentication: { certificates: { map: [ { cn: x } ] } } }",
            [
                "1: access.authentication.certificates.map: no listener asks clients for a certificate; add tls: { client_ca: FILE } to an entry of listen"
            ]
        ),
        (
            "listen: [ { address: 127.0.0.1:80, tls: { certificate: /c, key: /k, client_ca: /a } } ]\naccess: { authentication: { certificates: { map: [ { cn: x, san: y }, { user: z }, { cn: \"*a*\" }, { cn: x, user: \"{dn}\" } ] } } }",
            [
                "2: access.authentication.certificates.map[1].cn: an entry looks at one name; write an entry of its own",
                "2: access.authentication.certificates.map[2]: san is missing",
                "2: access.authentication.certificates.map[3].cn: found \"*a*\", expected a name, with one * at most",
                "2: access.authentication.certificates.map[4].user: found \"{dn}\", expected a name, with the placeholders {san}, {cn}, {subject}, {*}",
                "2: access.authentication.basic.users: missing; name the users' file, or remove access.authentication",
            ]
        ),
        ("listen: [ { address: 127.0.0.1:3129 } ]", ["1: admin.address: 127.0.0.1:3129 is also an address in listen"]),
        (
            "access: { clients: [ 10.0.0.1/8, example.org ] }",
            [
                "1: access.clients[1]: found \"10.0.0.1/8\", expected an address or a range such as 10.0.0.0/8; the network that contains it is 10.0.0.0/8",
                "1: access.clients[2]: found \"example.org\", expected an address or a range such as 10.0.0.0/8; host names are not resolved here",
            ]
        ),
        ("access: { clients: [] }", ["1: access.clients: found an empty list; leave the key out instead"]),
        (
            "access: { private_destinations: maybe }",
            ["1: access.private_destinations: found \"maybe\", expected deny or allow"]
        ),
        (
            "access:\n  authentication:",
            ["2: access.authentication.basic.users: missing; name the users' file, or remove access.authentication"]
        ),
        (
            "access:\n  authentication:\n    basic: { realm: r }",
            ["3: access.authentication.basic.users: missing; name the users' file, or remove access.authentication"]
        ),
        (
            "access:\n  authentication:\n    bearer: { realm: r }",
            [
                "3: access.authentication.bearer.tokens: missing; name the file of the tokens, or jwt.jwks, or remove access.authentication.bearer"
            ]
        ),
        (
            "access: { authentication: { bearer: { tokens: /t, jwt: { issuer: i } } } }",
            [
                "1: access.authentication.bearer.jwt.jwks: missing; name the keys, or remove access.authentication.bearer.jwt"
            ]
        ),
        (
            "access: { authentication: { bearer: { jwt: { jwks: /k } } } }",
            [
                "1: access.authentication.bearer.jwt.issuer: missing; say what iss of the tokens has to be",
                "1: access.authentication.bearer.jwt.audience: missing; say what aud of the tokens has to be",
            ]
        ),
        (
            "access: { authentication: { bearer: { jwt: { jwks: \"http://a.example/k\", issuer: i, audience: a } } } }",
            [
                "1: access.authentication.bearer.jwt.jwks: found \"http://a.example/k\", expected the path or the https URL of a JWK Set; whoever is on the way could send keys of their own: use https",
                "1: access.authentication.bearer.tokens: missing; name the file of the tokens, or jwt.jwks, or remove access.authentication.bearer",
            ]
        ),
        (
            "access: { authentication: { bearer: { jwt: { jwks: \"https://a.example/k\", issuer: i, audience: a, algorithms: HS256 } } } }",
            [
                "1: access.authentication.bearer.jwt.algorithms: HS256 needs a shared key, which cannot come from a URL; name a file in jwks, or remove HS256"
            ]
        ),
        (
            "access: { authentication: { kerberos: x } }",
            [
                "1: access.authentication.kerberos: unknown key",
                "1: access.authentication.basic.users: missing; name the users' file, or remove access.authentication",
            ]
        ),
    ]
    @Test(arguments: rows.indices) func `an error names file, line, key, what was found and what is allowed`(
        _ index: Int
    ) throws {
        let row = Self.rows[index]
        let (configuration, errors, _) = try load(row.text)
        #expect(errors.map(\.description) == row.expected.map { "larder.yaml:\($0)" }, "\(row.text)")
        #expect(configuration == nil)
    }

    static let ruleRows: [(rule: String, expected: String)] = [
        (
            "alow: { host: a }",
            "[1]: found keys \"alow\", expected allow: { … }, deny: { … }, redirect: { … } or authenticate: { … }; did you mean allow?"
        ),
        (
            "{ allow: {}, deny: {} }",
            "[1]: found keys \"allow\", \"deny\", expected allow: { … }, deny: { … }, redirect: { … } or authenticate: { … }"
        ),
        ("allow", "[1]: found \"allow\", expected allow: { … }, deny: { … }, redirect: { … } or authenticate: { … }"),
        ("allow: example.org", "[1].allow: found \"example.org\", expected conditions such as { host: … }"),
        ("allow: { hosts: a }", "[1].allow.hosts: unknown condition; did you mean host?"),
        (
            "allow: { colour: a }",
            "[1].allow.colour: unknown condition; known are host, address, client, user, port, method, scheme, path, group, listener, query, content_type, request_size, upgrade, credential, user_agent, time, zone, sni, intercept, tunnel, shared, profile, report"
        ),
        ("deny: { tunnel: any }", "[1].deny.tunnel: a deny rule opens no tunnel"),
        ("allow: { tunnel: ssh }", "[1].allow.tunnel: found \"ssh\", expected tls or any"),
        ("allow: { tunel: any }", "[1].allow.tunel: unknown condition; did you mean tunnel?"),
        ("allow: { reason: a }", "[1].allow.reason: only a deny rule has a reason"),
        ("allow: { host: [] }", "[1].allow.host: found an empty list; leave the key out instead"),
        ("allow: { host: }", "[1].allow.host: found nothing, expected a host name, *.name, * or an address"),
        (
            "allow: { host: [ a, \"http://b/\" ] }",
            "[1].allow.host[2]: found \"http://b/\", expected a host name, *.name, * or an address; only a host, without scheme and path"
        ),
        (
            "allow: { host: a:80 }",
            "[1].allow.host: found \"a:80\", expected a host name, *.name, * or an address; ports belong in port:"
        ),
        (
            "allow: { host: 10.0.0.0/8 }",
            "[1].allow.host: found \"10.0.0.0/8\", expected a host name, *.name, * or an address; networks belong in address:"
        ),
        (
            "allow: { port: 0 }",
            "[1].allow.port: found \"0\", expected a port from 1 to 65535, or a range such as 8000-8999"
        ),
        (
            "allow: { port: 65536 }",
            "[1].allow.port: found \"65536\", expected a port from 1 to 65535, or a range such as 8000-8999"
        ),
        (
            "allow: { port: 90-80 }",
            "[1].allow.port: found \"90-80\", expected a port from 1 to 65535, or a range such as 8000-8999"
        ),
        (
            "allow: { port: 80- }",
            "[1].allow.port: found \"80-\", expected a port from 1 to 65535, or a range such as 8000-8999"
        ),
        (
            "allow: { method: get }",
            "[1].allow.method: found \"get\", expected a method in upper case; methods are upper case: GET"
        ),
        (
            "allow: { address: localhost }",
            "[1].allow.address: found \"localhost\", expected an address or a range such as 10.0.0.0/8; host names are not resolved here"
        ),
        (
            "allow: { user: alice }",
            "[1]: names users or groups, but no authentication is configured; configure access.authentication"
        ),
        (
            "allow: { path: pool }",
            "[1].allow.path: found \"pool\", expected a path such as /pool/* or *.deb; did you mean /pool?"
        ),
        (
            "deny: { type: text/html }",
            "[1].deny.type: an access rule has no type: it decides before there is a response; use path, or content_type"
        ),
        (
            "allow: { scheme: ftp }", "[1].allow.scheme: found \"ftp\", expected http or https"
        ),
        (
            "deny: { query: a=b=c }",
            "[1].deny.query: found \"a=b=c\", expected the name of a query parameter, or name=value"
        ),
        (
            "deny: { upgrade: h2c/1 }",
            "[1].deny.upgrade: found \"h2c/1\", expected a protocol such as websocket, or *; without a version"
        ),
        (
            "deny: { request_size: 1MiB }",
            "[1].deny.request_size: found \"1MiB\", expected { at_most: … } or { at_least: … }"
        ),
        (
            "deny: { request_size: { at_least: 2MiB, at_most: 1MiB } }",
            "[1].deny.request_size: at_least is more than at_most"
        ),
        (
            "deny: { request_size: {} }",
            "[1].deny.request_size: found a mapping, expected { at_most: … } or { at_least: … }"
        ),
        (
            "deny: { credential: mine }", "[1].deny.credential: found \"mine\", expected one of client, none, own"
        ),
        (
            "allow: { time: \"monday 8-18\" }",
            "[1].allow.time: found \"monday 8-18\", expected days, times or both, such as \"mon-fri 08:00-18:00\", with utc behind them for UTC; days are mon, tue, wed, thu, fri, sat, sun"
        ),
        (
            "allow: { host: { file: x, files: y } }", "[1].allow.host.files: unknown key; did you mean file?"
        ),
        (
            "allow: { group: staff }",
            "[1]: names users or groups, but no authentication is configured; configure access.authentication"
        ),
        (
            "redirect: { host: a.example }", "[1].redirect: to is missing"
        ),
        (
            "redirect: { to: /help }", "[1].redirect.to: found \"/help\", expected an absolute URL with http or https"
        ),
        (
            "allow: { to: \"http://a.example/\" }", "[1].allow.to: only a redirect rule has a page"
        ),
        (
            "deny: { reason: \"\" }",
            "[1].deny.reason: found \"\", expected text of 1 to 500 bytes without control characters"
        ),
    ]
    @Test(arguments: ruleRows) func `an error in an access rule names the rule`(_ rule: String, _ expected: String)
        throws
    {
        let (configuration, errors, _) = try load("access:\n  rules:\n    - \(rule)\n")
        #expect(errors.map(\.description) == ["larder.yaml:3: access.rules\(expected)"])
        #expect(configuration == nil)
    }

    @Test func `all errors are reported, in the order of lines`() throws {
        let (_, errors, _) = try load(
            "wrokers: 2\ncache:\n  memory: 1\n  dsik: {}\naccess:\n  rules:\n    - allow: { port: x, host: [] }\n    - drop: {}\n"
        )
        #expect(errors.map(\.line) == [1, 3, 4, 7, 7, 8])
        #expect(
            errors.map(\.key) == [
                "wrokers", "cache.memory", "cache.dsik", "access.rules[1].allow.port", "access.rules[1].allow.host",
                "access.rules[2]",
            ])
    }

    static let listeners: [(text: String, isFine: Bool)] = [
        ("0.0.0.0:3128", false), ("\"[::]:3128\"", false), ("192.168.1.1:3128", false), ("8.8.8.8:3128", false),
        ("127.0.0.1:3128", true), ("127.9.9.9:3128", true), ("\"[::1]:3128\"", true), ("unix:/run/p.sock", true),
        ("\"[::ffff:127.0.0.1]:3128\"", true),
    ]
    @Test(arguments: listeners) func `a listener beyond loopback needs named clients`(_ address: String, _ isFine: Bool)
        throws
    {
        let listen = "listen:\n  - address: \(address)\n"
        let (configuration, errors, _) = try load(listen)
        #expect((configuration != nil) == isFine)
        #expect(
            errors.allSatisfy {
                $0.message.hasSuffix("a listener beyond loopback needs access.clients or access.authentication")
                    && $0.line == 1
            })
        #expect(errors.count == (isFine ? 0 : 1))
        #expect(try load(listen + "access: { clients: 192.168.0.0/16 }").configuration != nil)
        #expect(try load(listen + "access: { authentication: { basic: { users: u } } }").configuration != nil)
    }

    static let warnings: [(text: String, key: String)] = [
        ("cache: { disk: { size: 0 }, rules: [ { storage: pinned } ] }", "cache.rules[1].storage"),
        ("access: { clients: 0.0.0.0/0 }", "access.clients"),
        ("access: { clients: [ 10.0.0.0/8, \"::/0\" ] }", "access.clients"),
        ("admin: { address: 0.0.0.0:3129 }", "admin.address"),
        ("access: { default: deny }", "access.default"),
        (
            "credentials: [ { name: a, scheme: bearer, match: { host: a.example }, token: t } ]",
            "credentials[1].match.host"
        ),
    ]
    @Test(arguments: warnings) func `a warning does not prevent a start`(_ text: String, _ key: String) throws {
        let (configuration, errors, warnings) = try load(text)
        #expect(configuration != nil && errors.isEmpty)
        #expect(warnings.map(\.key) == [key])
        #expect(warnings.allSatisfy { $0.line == 1 })
    }

    private static let withheld: [(match: String, origins: String, reason: String?)] = [
        ("host: a.example, scheme: http", "[]", "its requests come over http"),
        ("host: a.example, port: 80", "[]", "its requests come over http"),
        ("host: a.example, port: [ 80, 443 ]", "[]", nil), ("host: a.example", "[]", nil),
        (
            "host: a.example", "[ { match: { host: a.example }, tls: { verify: no } } ]",
            "its origins prove nothing: their rule of origins says verify: no"
        ),
        (
            "host: [ a.example, b.example ]", "[ { match: { host: a.example }, tls: { verify: no } } ]", nil
        ),
        (
            "host: a.example", "[ { match: { host: a.example, path: /x }, tls: { verify: no } } ]", nil
        ),
        (
            "host: a.example",
            "[ { match: { host: a.example }, tls: { verify: no, pin: sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= } } ]",
            nil
        ),
    ]
    @Test(arguments: withheld) func `a credential that is never sent is warned of`(
        _ row: (match: String, origins: String, reason: String?)
    ) throws {
        func warnings(_ more: String) throws -> [String] {
            try load(
                """
                intercept: { ca: { certificate: c, key: k }, hosts: [ "*" ] }
                origins: \(row.origins)
                credentials: [ { name: a, scheme: bearer, match: { \(row.match) }, token: t\(more) } ]
                """
            ).warnings.map(\.message)
        }
        #expect(try warnings("") == (row.reason.map { ["the credential a is never sent: \($0)"] } ?? []))
        #expect(try warnings(", plain_http: yes") == [])
    }

    @Test(arguments: [
        ("[ a.example ]", ""), ("[ \"*.b.example\", a.example ]", ""), ("[ \"*\" ]", ""),
        ("[ b.example ]", "a.example"),
        ("[ \"*.a.example\" ]", "a.example"),
    ])
    func `a credential for tunnels that stay closed is warned of`(opened: String, host: String) throws {
        let warnings = try load(
            """
            intercept: { ca: { certificate: c, key: k }, hosts: \(opened) }
            credentials:
              - { name: a, scheme: bearer, match: { host: a.example }, token: t }
              - { name: b, scheme: bearer, match: { host: b.other }, token: t, plain_http: yes }
            """
        ).warnings
        #expect(
            warnings.map(\.message)
                == (host.isEmpty
                    ? [] : ["tunnels to \(host) are not opened, so the credential a cannot be used in them"]))
    }
}
