import Origins
import Rules
import Settings
import Testing

@Suite("origins, retries") struct OriginSettingsTests {
    @Test func `a rule has its conditions, its time limits and its retries`() throws {
        let configuration = try loaded(
            """
            timeouts: { total: 2h }
            retries: { max: 2, pause: 1s, budget: 20% }
            origins:
              - { match: { host: "*.slow.example", path: /a/* }, timeouts: { first_byte: 10m, idle: 5m } }
              - match: { host: fast.example }
                timeouts: { connect: 2s, total: off }
                retries: 0
              - { retries: 10 }
            """)
        #expect(configuration.timeouts.total == .seconds(7200))
        let retries = configuration.retries
        #expect(retries.countMax == 2 && retries.pause == .seconds(1) && retries.budgetPercent == 20)
        let rules = configuration.origins
        #expect(rules.map(\.number) == [1, 2, 3] && rules.map(\.line) == [4, 5, 8])
        #expect(rules[0].conditions.description == "host *.slow.example; path /a/*")
        #expect(rules[0].timeouts.firstByte == .seconds(600) && rules[0].timeouts.idle == .seconds(300))
        #expect(rules[0].timeouts.total == nil && rules[1].timeouts.total == .some(nil))
        #expect(rules.map(\.retriesMax) == [nil, 0, 10])
    }

    @Test func `a rule may say how TLS is spoken`() throws {
        let rules = try loaded(
            """
            origins:
              - { match: { host: [ a.example, 192.0.2.1 ] }, tls: { verify: no } }
              - { match: { host: "*.example" }, tls: { certificate: /a.pem, max_version: "1.2" }, retries: 3 }
              - { retries: 1 }
            """
        ).origins
        #expect(rules.map { $0.tls?.verification } == [OriginTLS.Verification.none, .required, nil])
        #expect(rules[1].tls?.identity == .pem(certificate: "/a.pem", key: "/a.pem"))
        #expect(
            rules.map { $0.tls.map { "\($0)" } } == [
                "the certificate of the origin is not verified", "certificate of /a.pem, at most TLS 1.2", nil,
            ])
    }

    @Test func `changes of fields have their order: removed, set, added`() throws {
        let configuration = try loaded(
            """
            origins:
              - match: { host: a.example }
                fields:
                  add: { X-Team: build, Via-Team: "a, b" }
                  set: { user-agent: "fleet/1.0 (+https://a.example)" }
                  remove: [ Referer, X-Client-Data ]
            """)
        let changes = configuration.origins[0].fields
        #expect(
            changes.map(\.description) == [
                "remove Referer", "remove X-Client-Data", "set user-agent", "add X-Team", "add Via-Team",
            ])
        #expect(changes[2].name == .userAgent && changes[2].value == Array("fleet/1.0 (+https://a.example)".utf8))
        #expect(changes[0].value == [] && changes[3].name == .other)
    }

    static let fieldMistakes: [(text: String, error: String)] = [
        ("set: { Host: a }", ".set.Host: Larder itself writes Host"),
        ("add: { proxy-x: a }", ".add.proxy-x: Larder itself writes proxy-x"),
        ("remove: If-None-Match", ".remove: Larder itself writes If-None-Match"),
        (
            "set: { X-HTTP-Method-Override: PUT }",
            ".set.X-HTTP-Method-Override: Larder itself writes X-HTTP-Method-Override"
        ),
        (
            "set: { authorization: a }",
            ".set.authorization: authorization is not set by a rule for origins; use credentials"
        ),
        (
            "set: { Accept-Encoding: gzip }",
            ".set.Accept-Encoding: clients differ in the codings that they understand; only remove: [ Accept-Encoding ] is possible"
        ),
        ("set: { \"a b\": c }", ".set.a b: a b is not the name of a field (RFC 9110 §5.1)"),
        (
            "set: { a: \"b\\r\\nc: d\" }",
            ".set.a: found \"b\r\nc: d\", expected text of 1 to 4096 bytes without control characters"
        ),
        ("set: [ a ]", ".set: found a list, expected fields with their values"),
        ("remove: { a: b }", ".remove: found a mapping, expected the name of a field"),
        ("sets: { a: b }", ".sets: unknown key; did you mean set?"),
    ]
    @Test(arguments: fieldMistakes) func `a change that no rule may make is named`(text: String, error: String) throws {
        let errors = try load("origins: [ { fields: { \(text) } } ]").errors.map(\.description)
        #expect(errors == ["larder.yaml:1: origins[1].fields\(error)"])
    }

    static let who = ["user: ann", "group: ops", "client: 10.0.0.0/8", "listener: jobs"]
    static let trust = [
        "verify: no", "ca_file: /a", "pin: sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        "server_name: b.example",
        "min_version: 1.3", "pkcs12: /a",
    ]
    @Test(arguments: who, trust) func `whom Larder believes to be an origin is the same for all`(
        who: String, trust: String
    ) throws {
        let rest =
            "access: { authentication: { basic: { users: /a } } }, listen: [ { address: 127.0.0.1:1, name: jobs } ]"
        let own = try load("{ \(rest), origins: [ { match: { host: a.example, \(who) }, tls: { \(trust) } } ] }").errors
        #expect(
            own.map(\.description) == [
                "larder.yaml:1: origins[1].tls: the rule has user or client, and what is stored would be what the first of them was given; leave user and client out"
            ])
        // For those of the first rule the second one would not count.
        func behind(_ host: String) throws -> [String] {
            try load(
                "{ \(rest), origins: [ { match: { host: \(host), \(who) }, retries: 1 }, { match: { host: a.example }, tls: { \(trust) } } ] }"
            ).errors.map(\.description)
        }
        let message =
            "larder.yaml:1: origins[2]: a rule before it has user or client, so what is stored would depend on who asked first; move it before [1]"
        #expect(try behind("a.example") == [message])
        #expect(try behind("\"*.example\"") == [message])
        #expect(try behind("b.example") == [])
    }

    @Test func `each setting of a rule says what it means for what is stored`() {
        let keys = ["conditions", "number", "line"]
        let names = [
            "timeouts": OriginSetting.timeouts, "connections": .connections, "retriesMax": .retries,
            "bandwidth": .bandwidth, "tls": .tls, "fields": .fields, "encodesRequests": .requestCoding,
            "redirectsMax": .redirects, "cookies": .cookies,
        ]
        let properties = Mirror(reflecting: OriginRule(RuleConditions(), number: 1)).children.compactMap(\.label)
            .filter { !keys.contains($0) }
        #expect(Set(properties) == Set(names.keys), "a new setting of a rule is a case of OriginSetting")
        #expect(Set(names.values) == Set(OriginSetting.allCases))
    }

    @Test func `what is stored does not depend on who asked first`() throws {
        let own = try load("origins: [ { match: { client: 10.0.0.0/8 }, fields: { remove: Referer } } ]").errors
        #expect(
            own.map(\.description) == [
                "larder.yaml:1: origins[1].fields: the rule has user or client, and what is stored would be what the first of them was given; leave user and client out"
            ])
        let before = try load(
            "origins: [ { match: { user: me }, retries: 1 }, { fields: { remove: Referer } } ]"
        ).errors
        #expect(
            before.map(\.description) == [
                "larder.yaml:1: origins[2]: a rule before it has user or client, so what is stored would depend on who asked first; move it before [1]"
            ])
        let behind = try load(
            "origins: [ { fields: { remove: Referer } }, { match: { user: me }, retries: 1 } ]"
        ).errors
        #expect(behind.isEmpty)
    }

    static let mistakes: [(text: String, error: String)] = [
        ("origins: {}", "1: origins: found a mapping, expected a list of origins"),
        (
            "origins: [ { match: { host: a.example } } ]",
            "1: origins[1]: the rule says nothing; add timeouts, connections, retries, bandwidth, tls, fields, redirects, cookies or request_coding"
        ),
        (
            "origins: [ { timeouts: { total: 1s }, retires: 1 } ]",
            "1: origins[1].retires: unknown key; did you mean retries?"
        ),
        (
            "origins: [ { timeouts: { first_bite: 1s } } ]",
            "1: origins[1].timeouts.first_bite: unknown key; did you mean first_byte?"
        ),
        (
            "origins: [ { timeouts: { connect: 1h } } ]",
            "1: origins[1].timeouts.connect: found \"1h\", expected a duration from 100ms to 10m"
        ),
        (
            "origins: [ { match: { address: 10.0.0.0/8 }, retries: 1 } ]",
            "1: origins[1].match.address: an origins rule has no address: it holds before the host is resolved; use host"
        ),
        (
            "origins: [ { match: { type: text/html }, retries: 1 } ]",
            "1: origins[1].match.type: an origins rule has no type: it holds before there is a response; use path"
        ),
        (
            "origins: [ { match: { host: a.example }, tls: { pin: x } } ]",
            "1: origins[1].tls.pin: found \"x\", expected sha256/ and 44 characters of base 64; \(OriginTLSSettingsTests.command)"
        ),
        (
            "origins: [ { match: { host: \"*.example\" }, tls: { verify: no } } ]",
            "1: origins[1].tls: verify: no is for named hosts only, not for patterns; name each host in match, or trust the origin with ca_file"
        ),
        (
            "origins: [ { tls: { verify: no } } ]",
            "1: origins[1].tls: verify: no is for named hosts only, not for patterns; name each host in match, or trust the origin with ca_file"
        ),
        (
            "origins: [ { tls: { pkcs12: /a } } ]",
            "1: origins[1].tls: names no host: every origin could ask for the certificate; add host: NAME to match"
        ),
        (
            "origins: [ { match: { host: a.example, client: 10.0.0.0/8 }, tls: { pkcs12: /a } } ]",
            "1: origins[1].tls: the rule has user or client, and what is stored would be what the first of them was given; leave user and client out"
        ),
        (
            "{ tls: { min_version: 1.3 }, origins: [ { match: { host: a.example }, tls: { max_version: 1.2 } } ] }",
            "1: origins[1].tls.max_version: 1.2 is below tls.min_version, which is 1.3; add min_version: \"1.2\""
        ),
        ("retries: { max: 11 }", "1: retries.max: found \"11\", expected a number from 0 to 10"),
        (
            "retries: { budget: 10 }",
            "1: retries.budget: found \"10\", expected a percentage from 0% to 100%; did you mean 10%?"
        ),
        ("retries: { budget: 101% }", "1: retries.budget: found \"101%\", expected a percentage from 0% to 100%"),
        (
            "timeouts: { total: 10 }",
            "1: timeouts.total: found \"10\", expected a duration from 1s to 7d, or off; a duration needs a unit: 10s, 10m, 10h"
        ),
    ]
    @Test(arguments: mistakes) func `a mistake is named`(text: String, error: String) throws {
        #expect(try load(text).errors.map(\.description) == ["larder.yaml:\(error)"])
    }
}

@Suite("origins: connections") struct ConnectionSettingsTests {
    @Test func `a rule says how connections are made and used`() throws {
        let rules = try loaded(
            """
            origins:
              - { match: { host: a.example }, connections: { max: 4, persistent: no, idle: 5s, reuse_for_bodies: yes } }
              - match: { host: b.example }
                connections: { http: "1.0", family: prefer-ipv6, source: [ 192.0.2.1, "2001:db8::1" ], interface: eth0 }
              - { connections: { fast_open: yes, tcp_keepalive: 60s } }
            """
        ).origins
        let first = rules[0].connections
        #expect(first.countMax == 4 && first.persists == false && first.idle == .seconds(5))
        #expect(first.carriesBodies == true && first.dialling == nil && first.isHTTP10 == nil)
        #expect(rules[1].connections.isHTTP10 == true)
        #expect(
            rules[1].connections.dialling.map { "\($0)" } == "from 192.0.2.1, 2001:db8::1, through eth0, prefer-ipv6")
        #expect(rules[2].connections.dialling.map { "\($0)" } == "TCP Fast Open, TCP keep-alive 60s")
    }

    @Test(arguments: [
        (
            "max: 0", "origins[1].connections.max: found \"0\", expected a number from 1 to 65535"
        ),
        (
            "http: \"2\"", "origins[1].connections.http: found \"2\", expected 1.0 or 1.1"
        ),
        (
            "source: [ 192.0.2.1, 192.0.2.2 ]",
            "origins[1].connections.source: there are two addresses of one family; name one of each at most"
        ),
        (
            "source: 192.0.2.1, family: ipv6", "origins[1].connections.family: no address of source is of this family"
        ),
        (
            "source: eth0", "origins[1].connections.source: found \"eth0\", expected an address of this machine"
        ),
        (
            "interface: an/interface",
            "origins[1].connections.interface: found \"an/interface\", expected the name of a network interface"
        ),
        (
            "http: \"1.0\", idle: 5s",
            "origins[1].connections.idle: with HTTP/1.0 each request has a connection of its own; leave it out"
        ),
        (
            "presistent: no", "origins[1].connections.presistent: unknown key; did you mean persistent?"
        ),
    ])
    func `mistakes are named`(text: String, message: String) throws {
        let errors = try load("origins: [ { connections: { \(text) } } ]").errors.map { "\($0)" }
        #expect(errors == ["larder.yaml:1: " + message])
    }
}

@Suite("origins: request_coding") struct RequestCodingSettingsTests {
    @Test func `a rule encodes requests`() throws {
        let rules = try loaded("origins: [ { request_coding: gzip }, { request_coding: none } ]").origins
        #expect(rules.map(\.encodesRequests) == [true, false])
    }

    @Test(arguments: [
        ("request_coding: br", "origins[1].request_coding: found \"br\", expected gzip or none"),
        (
            "request_coding: gzip, connections: { http: \"1.0\" }",
            "origins[1].request_coding: HTTP/1.0 has no chunks, which content of unknown length needs; leave one of the two out"
        ),
    ])
    func `mistakes are named`(text: String, message: String) throws {
        #expect(try load("origins: [ { \(text) } ]").errors.map { "\($0)" } == ["larder.yaml:1: " + message])
    }
}

@Suite("origins: redirects") struct RedirectSettingsTests {
    @Test func `a rule follows redirects`() throws {
        let rules = try loaded(
            "origins: [ { redirects: follow }, { redirects: pass }, { redirects: { max: 20 } }, { retries: 1 } ]"
        ).origins
        #expect(rules.map(\.redirectsMax) == [5, nil, 20, nil])
        let table = OriginTable(
            rules, general: OriginTerms(connect: .zero, firstByte: .zero, idle: .zero, total: nil, retriesMax: 0))
        #expect(table.followsRedirects)
        #expect(table.terms(ofRule: 1)?.description.contains("; redirects followed, at most 5") == true)
        #expect(table.terms(ofRule: 2)?.description.contains("redirects") == false)
    }

    @Test(arguments: [
        ("redirects: yes", "origins[1].redirects: found \"yes\", expected follow, pass or { max: N }"),
        ("redirects: [ follow ]", "origins[1].redirects: found a list, expected follow, pass or { max: N }"),
        ("redirects: { max: 0 }", "origins[1].redirects.max: found \"0\", expected a number from 1 to 20"),
        ("redirects: { max: 21 }", "origins[1].redirects.max: found \"21\", expected a number from 1 to 20"),
        ("redirects: { }", "origins[1].redirects: max is missing"),
        ("redirects: { max: 1, hosts: 2 }", "origins[1].redirects.hosts: unknown key; known are max"),
    ])
    func `mistakes are named`(text: String, message: String) throws {
        #expect(try load("origins: [ { \(text) } ]").errors.map { "\($0)" } == ["larder.yaml:1: " + message])
    }
}

@Suite("bandwidth") struct BandwidthSettingsTests {
    @Test func `limits have their rates`() throws {
        let configuration = try loaded(
            """
            bandwidth:
              total: 800Mbit/s
              client: 20 MiB/s
              classes:
                - { name: nightly, match: { client: 10.2.0.0/16, path: /a/* }, rate: 5MB/s }
                - { name: rest, rate: 1KiB/s }
            origins:
              - { match: { host: a.example }, bandwidth: 64kbit/s }
            """)
        let plan = configuration.bandwidth
        #expect(plan.total == 100_000_000 && plan.client == 20 << 20)
        #expect(plan.classes.map(\.name) == ["nightly", "rest"] && plan.classes.map(\.rate) == [5_000_000, 1024])
        #expect(plan.classes[0].conditions.description == "path /a/*; client 10.2.0.0/16")
        #expect(configuration.origins[0].bandwidth == 8000)
        #expect(try loaded("workers: 1").bandwidth.isUnlimited)
    }

    @Test(
        arguments: [
            ("1KiB/s", 1024), ("10MiB/s", 10 << 20), ("100Mbit/s", 12_500_000), ("64kbit/s", 8000),
            ("1Gbit/s", 125_000_000),
            ("1500B/s", 1500),
        ] as [(String, UInt64)])
    func `a rate has one spelling that is read and written`(text: String, rate: UInt64) {
        #expect(parseRate(text) == rate && parseRate(text.lowercased()) == rate)
        #expect(parseRate(renderRate(rate)) == rate)
    }

    @Test(
        arguments: [
            (12_500_000, "100Mbit/s"), (10 << 20, "10MiB/s"), (1500, "12kbit/s"), (1501, "1501B/s"), (8000, "64kbit/s"),
        ] as [(UInt64, String)])
    func `a rate is written in its shortest spelling`(rate: UInt64, text: String) { #expect(renderRate(rate) == text) }

    @Test(arguments: [
        (
            "bandwidth: { total: 10 }",
            "1: bandwidth.total: found \"10\", expected a rate from 1KiB/s to 1TiB/s, such as 10MiB/s or 100Mbit/s; a rate needs a unit: 10KiB/s, 10kbit/s"
        ),
        (
            "bandwidth: { client: 10MiB }",
            "1: bandwidth.client: found \"10MiB\", expected a rate from 1KiB/s to 1TiB/s, such as 10MiB/s or 100Mbit/s; did you mean 10MiB/s?"
        ),
        (
            "bandwidth: { client: 1000B/s }",
            "1: bandwidth.client: found \"1000B/s\", expected a rate from 1KiB/s to 1TiB/s, such as 10MiB/s or 100Mbit/s"
        ),
        (
            "bandwidth: { classes: [ { name: a } ] }", "1: bandwidth.classes[1]: rate is missing"
        ),
        (
            "bandwidth: { classes: [ { rate: 1MiB/s } ] }", "1: bandwidth.classes[1]: name is missing"
        ),
        (
            "bandwidth:\n  classes:\n    - { name: a, rate: 1MiB/s }\n    - { name: a, rate: 2MiB/s }",
            "4: bandwidth.classes[2].name: the name a is used twice"
        ),
        (
            "bandwidth: { classes: [ { name: a, rate: 1MiB/s, match: { type: text/html } } ] }",
            "1: bandwidth.classes[1].match.type: a class of bandwidth has no type: it holds before there is a response; use path"
        ),
        (
            "bandwidth: { classes: [ { name: a, rate: 1MiB/s, match: { address: 10.0.0.1 } } ] }",
            "1: bandwidth.classes[1].match.address: a class of bandwidth has no address: it holds before the host is resolved; use host"
        ),
    ])
    func `mistakes are named`(text: String, message: String) throws {
        #expect(try load(text).errors.map { "\($0)" } == ["larder.yaml:" + message])
    }
}
