import Message
import Routing
import Rules
import Settings
import Testing

@Suite("routes") struct RouteSettingsTests {
    @Test func `a rule has its conditions, its routes and its order`() throws {
        let configuration = try loaded(
            """
            routes:
              - { match: { host: "*.corp.example", port: 80, method: GET, path: /a/*, client: 10.0.0.0/8, user: me }, via: direct }
              - match: { host: [ a.example, b.example ] }
                via: [ "http://one.example:3128", "https://two.example:3129/", "socks5://[2001:db8::1]:1080", direct ]
              - { via: [ "http://One.Example.:1", "HTTP://two:2" ], choose: hash }
            """)
        let routes = configuration.routes
        #expect(
            routes.map(\.ways) == [
                .listed(routes[0].routes, .order), .listed(routes[1].routes, .order), .listed(routes[2].routes, .hash),
            ])
        #expect(routes.map(\.number) == [1, 2, 3])
        #expect(routes.map(\.line) == [2, 3, 5])
        #expect(routes[0].routes == [.direct])
        #expect(
            routes[0].conditions.description
                == "host *.corp.example; port 80; method GET; path /a/*; user me; client 10.0.0.0/8")
        #expect(
            routes[1].routes.map { "\($0)" } == [
                "http://one.example:3128", "https://two.example:3129", "socks5://[2001:db8::1]:1080", "direct",
            ])
        #expect(routes[2].routes.map { "\($0)" } == ["http://one.example:1", "http://two:2"])
    }

    @Test func `a PAC file and the environment take the place of via`() throws {
        let configuration = try loaded(
            """
            pac: { timeout: 500ms, lifetime: 1h, refresh: 10m, fetch_timeout: 3s }
            routes:
              - { match: { host: "*.corp.example" }, pac: /etc/larder/corp.pac }
              - { match: { client: 10.0.0.0/8 }, pac: proxy.pac, otherwise: [ "http://spare:3128", direct ] }
              - { via: environment }
              - { pac: "https://wpad.example/proxy.pac?site=1" }
            """)
        let spare = NextProxy(Endpoint(host: "spare", port: 3128))
        #expect(
            configuration.routes.map(\.ways) == [
                .script(.file("/etc/larder/corp.pac"), otherwise: []),
                .script(.file("proxy.pac"), otherwise: [.proxy(spare), .direct]), .environment,
                .script(try #require(PACSource("https://wpad.example/proxy.pac?site=1")), otherwise: []),
            ])
        var pac = PACSettings(timeout: .milliseconds(500), lifetime: .seconds(3600))
        (pac.refresh, pac.fetchTimeout) = (.seconds(600), .seconds(3))
        #expect(configuration.pac == pac)
    }

    @Test func `where others name the proxies, the rule lists those that get the credential`() throws {
        let configuration = try loaded(
            """
            credentials: [ { name: corp, scheme: basic, user: me, password: x } ]
            routes:
              - { pac: /a.pac, credential: corp, proxies: [ "https://one.example:1", "socks5://two.example:2" ] }
              - { via: environment, credential: corp, proxies: "http://three.example:3" }
            """)
        #expect(configuration.routes.map(\.credential) == ["corp", "corp"])
        #expect(
            configuration.routes.map { $0.grant?.proxies.map { "\($0)" } } == [
                ["https://one.example:1", "socks5://two.example:2"], ["http://three.example:3"],
            ])
    }

    @Test func `a PAC file that comes over http from another machine is a warning`() throws {
        let (_, errors, warnings) = try load(
            """
            routes:
              - { match: { port: 1 }, pac: "http://localhost/a.pac" }
              - { match: { port: 2 }, pac: "http://127.0.0.1:8080/a.pac" }
              - { match: { port: 3 }, pac: "http://[::1]/a.pac" }
              - { match: { port: 4 }, pac: "https://wpad.example/" }
              - { match: { port: 5 }, pac: "http://wpad.example/" }
            """)
        #expect(errors == [])
        #expect(
            warnings.map(\.description) == [
                "larder.yaml:6: routes[5].pac: everybody on the way to wpad.example can replace the script, and read what its proxies get; use https"
            ])
    }

    static let users: [(url: String, user: String, password: String)] = [
        ("http://me:secret@p:1", "me", "secret"), ("socks5://me@p:1", "me", ""),
        ("http://CORP%5Cme:p%40ss%3a%25@p:1", "CORP\\me", "p@ss:%"), ("http://me:a:b@p:1", "me", "a:b"),
    ]
    @Test(arguments: users) func `a URL has the user and the password, percent-encoded`(
        url: String, user: String, password: String
    ) throws {
        let configuration = try loaded("routes: [ { via: \"\(url)\" } ]")
        guard case .proxy(let proxy) = configuration.routes[0].routes[0] else { throw CancellationError() }
        #expect(proxy.logIn == ProxyLogIn(user: Array(user.utf8), password: Array(password.utf8)))
    }

    static let mistakes: [(text: String, error: String)] = [
        ("- { match: { host: a.example } }", "2: routes[1]: via is missing"),
        ("- { via: [] }", "2: routes[1].via: found an empty list; leave the key out instead"),
        ("- { via: dirct }", "2: routes[1].via: found \"dirct\", expected \(way); did you mean direct?"),
        (
            "- { via: \"proxy:3128\" }",
            "2: routes[1].via: found \"proxy:3128\", expected \(way); did you mean http://proxy:3128?"
        ),
        (
            "- { via: \"http://proxy\" }",
            "2: routes[1].via: found \"http://proxy\", expected \(way); name the port, http://proxy:3128"
        ),
        (
            "- { via: \"htp://proxy:1\" }",
            "2: routes[1].via: found \"htp://proxy:1\", expected \(way); did you mean http://?"
        ),
        (
            "- { via: \"socks5h://proxy:1\" }",
            "2: routes[1].via: found \"socks5h://proxy:1\", expected \(way); socks5:// is known, and lets the proxy resolve names"
        ),
        (
            "- { via: \"http://proxy:1/a\" }",
            "2: routes[1].via: found \"http://proxy:1/a\", expected \(way); a proxy has no path"
        ),
        (
            "- { via: \"http://proxy:0\" }",
            "2: routes[1].via: found \"http://proxy:0\", expected \(way); name the port, http://proxy:0:3128"
        ),
        ("- { via: [ direct, direct ] }", "2: routes[1].via: the same route twice"),
        ("- { via: [ \"http://a:1\", \"http://a:1/\" ] }", "2: routes[1].via: the same route twice"),
        (
            "- { via: [ \"http://a:1\", direct ], choose: hash }",
            "2: routes[1].choose: hash chooses among several proxies; name them in via, or leave choose out"
        ),
        ("- { via: direct, choose: random }", "2: routes[1].choose: found \"random\", expected order or hash"),
        (
            "- { via: [ environment, direct ] }",
            "2: routes[1].via[1]: found \"environment\", expected \(way); environment stands alone: via: environment"
        ),
        (
            "- { via: enviroment }",
            "2: routes[1].via: found \"enviroment\", expected \(way); did you mean environment?"
        ),
        (
            "- { via: environment, choose: hash }",
            "2: routes[1].choose: the environment names one proxy for each scheme; leave choose out"
        ),
        (
            "- { pac: \"ftp://wpad.example/wpad.dat\" }",
            "2: routes[1].pac: found \"ftp://wpad.example/wpad.dat\", expected \(pac); http:// and https:// are known"
        ),
        (
            "- { pac: \"https://wpad.example:0/\" }",
            "2: routes[1].pac: found \"https://wpad.example:0/\", expected \(pac)"
        ),
        (
            "- { pac: \"https://me:hidden@wpad.example/\" }",
            "2: routes[1].pac: found a URL with a user, expected \(pac); remove the user: Larder has no log-in for the server of a PAC file"
        ),
        (
            "- { pac: /a.pac, via: direct }",
            "2: routes[1].via: the PAC file says the routes; name those that are taken if it fails in otherwise"
        ),
        ("- { pac: /a.pac, choose: hash }", "2: routes[1].choose: the PAC file says the order; leave choose out"),
        ("- { pac: /a.pac, otherwise: [ direct, direct ] }", "2: routes[1].otherwise: the same route twice"),
        (
            "- { via: \"http://a:1\", otherwise: direct }",
            "2: routes[1].otherwise: belongs to a PAC file; name further routes in via"
        ),
        (
            "- { via: direct, match: { address: 10.0.0.0/8 } }",
            "2: routes[1].match.address: a route has no address: a next proxy resolves the host itself; use host"
        ),
        (
            "- { via: direct, match: { type: text/html } }",
            "2: routes[1].match.type: a route has no type: it is taken before there is a response; use path"
        ),
        (
            "- { via: direct, credentials: x }",
            "2: routes[1].credentials: unknown key; did you mean credential?"
        ),
    ]
    private static let pac = "the path or the http or https URL of a PAC file"
    private static let way = "direct, or a proxy such as http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT"

    @Test(arguments: mistakes) func `a mistake names its place, what is allowed, and what is near`(
        text: String, error: String
    ) throws {
        let result = try load("routes:\n  \(text)\n")
        #expect(result.errors.map(\.description) == ["larder.yaml:\(error)"])
    }

    static let credentialMistakes: [(route: String, error: String)] = [
        (
            "- { via: direct, credential: corp }",
            "5: routes[1].credential: via names no proxy; leave credential out"
        ),
        (
            "- { via: \"http://me:x@a:1\", credential: corp }",
            "5: routes[1].credential: the URL of http://a:1 has a user as well; remove it from the URL"
        ),
        (
            "- { via: \"http://a:1\", credential: crop }",
            "5: routes[1].credential: there is no credential crop; did you mean corp?"
        ),
        (
            "- { via: \"http://a:1\", credential: keys }",
            "5: routes[1].credential: keys has the scheme oauth1, and http://a:1 can get basic, digest, ntlm, negotiate and bearer"
        ),
        (
            "- { via: [ \"http://a:1\", \"socks5://a:2\" ], credential: corp }",
            "5: routes[1].credential: corp has the scheme digest, and socks5://a:2 can get basic"
        ),
        (
            "- { pac: /a.pac, credential: corp, proxies: \"socks5://a:2\" }",
            "5: routes[1].credential: corp has the scheme digest, and socks5://a:2 can get basic"
        ),
        (
            "- { pac: /a.pac, credential: corp }",
            "5: routes[1].credential: a PAC file does not decide who gets it; list the proxies that do: proxies: [ \"http://HOST:PORT\" ]"
        ),
        (
            "- { via: environment, credential: corp }",
            "5: routes[1].credential: the environment does not decide who gets it; list the proxies that do: proxies: [ \"http://HOST:PORT\" ]"
        ),
        (
            "- { pac: /a.pac, proxies: \"http://a:1\" }",
            "5: routes[1].proxies: lists the proxies that get a credential; add credential: NAME"
        ),
        (
            "- { via: \"http://a:1\", credential: corp, proxies: \"http://a:1\" }",
            "5: routes[1].proxies: via names the proxies; leave proxies out"
        ),
        (
            "- { pac: /a.pac, credential: corp, proxies: [ \"http://a:1\", direct ] }",
            "5: routes[1].proxies: direct is no proxy; leave it out"
        ),
        (
            "- { pac: /a.pac, credential: corp, proxies: [ \"http://a:1\", \"http://A:1/\" ] }",
            "5: routes[1].proxies: the same proxy twice"
        ),
        (
            "- { pac: /a.pac, credential: corp, proxies: \"http://me:x@a:1\" }",
            "5: routes[1].proxies: the URL of http://a:1 has a user as well; remove it from the URL"
        ),
        (
            "- { pac: /a.pac, otherwise: \"http://me:x@a:1\", credential: corp, proxies: \"http://a:1\" }",
            "5: routes[1].otherwise: the URL of http://a:1 has a user as well; remove it from the URL"
        ),
    ]
    @Test(arguments: credentialMistakes) func `a rule names a credential that its proxies can get`(
        route: String, error: String
    ) throws {
        let result = try load(
            """
            credentials:
              - { name: corp, scheme: digest, match: { host: a.example }, user: me, password: x }
              - { name: keys, scheme: oauth1, match: { host: a.example }, client_key: k, client_secret: s }
            routes:
              \(route)

            """)
        #expect(result.errors.map(\.description) == ["larder.yaml:\(error)"])
    }

    @Test func `a message never shows the password of a URL`() throws {
        for url in [
            "http://me:hidden@proxy", "http://me:hid%zden@proxy:1", "htp://me:hidden@proxy:1", "me:hidden@proxy:1",
        ] {
            let messages = try load("routes: [ { via: \"\(url)\" } ]").errors.map(\.description)
            #expect(messages.count == 1)
            #expect(!messages.contains { $0.contains("hid") }, "\(messages)")
        }
        let shown = try? loaded("routes: [ { via: \"http://me:hidden@proxy:1\" } ]").routes.description
        #expect(shown?.contains("hidden") == false, "\(shown ?? "nothing")")
    }

    @Test func `what browsers reach without the proxy`() throws {
        let configuration = try loaded(
            "pac: { direct: [ \"*.internal\", Printer.Example, 10.0.0.0/8, 10.1.2.3, \"fd00::1\" ] }")
        #expect(
            configuration.pac.direct == [
                .host(.below(".internal")), .host(.exact("printer.example")),
                .network(try #require(AddressRange("10.0.0.0/8"))), .host(.address(IPAddress(v4: 0x0A01_0203))),
                .host(.address(try #require(IPAddress(strict: "fd00::1".utf8)))),
            ])
    }

    static let notDirect: [(value: String, error: String)] = [
        ("\"*\"", "then nothing would use the proxy"), ("http://a.example/", "only the host, without a scheme"),
        (".internal", "did you mean *.internal?"),
        ("\"fd00::/8\"", "PAC files cannot compare networks of IPv6; name addresses"),
        ("10.1.2.3/8", "expected a host name, *.name, an address or a network of IPv4"),
    ]
    @Test(arguments: notDirect) func `what browsers cannot reach without the proxy`(
        _ row: (value: String, error: String)
    ) throws {
        let texts = try load("pac: { direct: \(row.value) }").errors.map(\.description)
        #expect(texts.count == 1 && texts[0].contains("pac.direct") && texts[0].contains(row.error), "\(texts)")
    }
}
