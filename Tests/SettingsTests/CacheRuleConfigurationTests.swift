import Caching
import Message
import Rules
import Settings
import Testing
import YAML

@Suite("Zones and rules of the cache")
struct CacheRuleConfigurationTests {
    static let everything = """
        cache:
          negative_ttl: 10s
          targeted_fields: yes
          policy_clients: [ 127.0.0.1, 10.0.0.0/8 ]
          compression: { types: [ text/*, "application/*+json" ], size_min: 2KiB }
          zones:
            - { name: packages, memory: 64MiB, object_size_max: 16MiB, policy: [ cache-first ], ttl: 1d }
            - name: pages-2
              memory: 8MiB
              disk: { path: /srv/pages, size: 1GiB, pinned: 100MiB }
          rules:
            - match:
                host: [ "*.example.org" ]
                port: 80
                path: [ "/pool/*" ]
                method: [ GET, HEAD ]
                client: 10.0.0.0/8
              zone: packages
              policy: [ cache-first, stale-on-error ]
              storage: session
              admission: second-hit
              ttl: 1h
              ttl_max: 2h
              ttl_default: 3h
              immutable: yes
              respect_cache_control: no
              negative_ttl: 7s
              object_size_max: 1MiB
              store_cookies: yes
              drop_cookies: [ a, b ]
              authorization: per-credential
              ranges: whole
              if_match: stored
              compress: on-the-fly
              key: { drop: [ "utm_*", fbclid ], sort: yes, host: Mirror.Example.org, signature: verify }
              note: the pool
            - match: { type: "text/*" }
              ttl: 0
            - { zone: default, key: { keep: id } }
        """

    @Test func `every key sets its property`() throws {
        let cache = try loaded(Self.everything).cache
        #expect(cache.negativeTTL == Seconds(10) && cache.targetedFields)
        #expect(cache.policyClients.map(\.description) == ["127.0.0.1", "10.0.0.0/8"])
        #expect(cache.compression.types.map(\.description) == ["text/*", "application/*+json"])
        #expect(cache.compression.sizeMin == 2048)

        var packages = CacheZone(name: "packages", memory: 64 << 20, line: 7)
        packages.changes.objectSizeMax = 16 << 20
        packages.changes.use = .cacheFirst
        packages.changes.ttl = Seconds(86_400)
        let pages = CacheZone(name: "pages-2", memory: 8 << 20, diskPath: "/srv/pages", diskSize: 1 << 30, line: 8)
        #expect(cache.writtenZones == [WrittenZone(packages), WrittenZone(pages, diskPinned: 100 << 20)])
        #expect(cache.zones == [packages, pages])

        var first = CacheRule(zone: "packages", number: 1, line: 12)
        first.conditions.hosts = [.below(".example.org")]
        first.conditions.ports = [80...80]
        first.conditions.paths = [PathPattern("/pool/*")].compactMap { $0 }
        first.conditions.methods = ["GET", "HEAD"]
        first.conditions.clients = [AddressRange("10.0.0.0/8")].compactMap { $0 }
        first.changes.use = [.cacheFirst, .staleOnError]
        first.changes.storage = .session
        first.changes.admission = .secondHit
        first.changes.ttl = Seconds(3600)
        first.changes.ttlMax = Seconds(7200)
        first.changes.ttlDefault = Seconds(10_800)
        first.changes.isImmutable = true
        first.changes.respectsCacheControl = false
        first.changes.negativeTTL = Seconds(7)
        first.changes.objectSizeMax = 1 << 20
        first.changes.storesCookies = true
        first.changes.droppedCookies = [Array("a".utf8), Array("b".utf8)]
        first.changes.authorization = .separate
        first.changes.ranges = .whole
        first.changes.ifMatch = .stored
        first.changes.compression = .onTheFly
        let dropped = ["utm_*", "fbclid"].compactMap { ParameterPattern($0) }
        first.key = KeyRules(
            query: .dropping(dropped), sortsQuery: true, host: "mirror.example.org",
            signature: [ParameterPattern("verify")].compactMap { $0 })
        first.note = "the pool"
        var second = CacheRule(number: 2, line: 37)
        second.conditions.types = [MediaTypePattern("text/*")].compactMap { $0 }
        second.changes.ttl = .zero
        let kept = ["id"].compactMap { ParameterPattern($0) }
        let third = CacheRule(zone: "default", key: KeyRules(query: .keeping(kept)), number: 3, line: 39)
        #expect(cache.rules == [first, second, third])
    }

    @Test func `a configuration makes the rules of its cache`() throws {
        let rules = try loaded(Self.everything).cacheRules
        #expect(rules.zoneNames == ["default", "packages", "pages-2"])
        #expect(rules.defaultHandling.negativeTTL == Seconds(10) && rules.defaultHandling.heedsTargetedFields)
        #expect(rules.heedsPolicy(of: IPAddress(v4: 0x0A00_0001)) && rules.dependOnType && !rules.isTrivial)
        let plain = Configuration().cacheRules
        #expect(
            plain.isTrivial && plain.defaultHandling.negativeTTL == Seconds(5)
                && !plain.defaultHandling.heedsTargetedFields)
        #expect(!plain.heedsPolicy(of: IPAddress(v4: 0x7F00_0001)))
    }

    @Test func `rules and zones are shown in one line each, with the same words in the same order`() throws {
        let cache = try loaded(Self.everything).cache
        #expect(
            cache.rules.map(\.text) == [
                "host *.example.org; port 80; method GET, HEAD; path /pool/*; client 10.0.0.0/8 → zone packages; policy cache-first, stale-on-error; storage session; admission second-hit; ttl 1h; ttl_max 2h; ttl_default 3h; immutable yes; respect_cache_control no; negative_ttl 7s; object_size_max 1MiB; store_cookies yes; drop_cookies a, b; authorization per-credential; ranges whole; if_match stored; compress on-the-fly; key.drop utm_*, fbclid; key.sort yes; key.host mirror.example.org; key.signature known, verify; note the pool",
                "type text/* → ttl 0s", "everything → zone default; key.keep id",
            ])
        #expect(
            cache.writtenZones.map(\.text) == [
                "packages: memory 64MiB; policy cache-first; ttl 1d; object_size_max 16MiB",
                "pages-2: memory 8MiB; disk 1GiB in /srv/pages; pinned 100MiB",
            ])
        #expect(
            try loaded("cache: { rules: [ { match: { host: a } } ] }").cache.rules.map(\.text) == [
                "host a → as without rules"
            ])
    }

    /// Errors of one rule on line 3, after `cache.rules[1]`.
    static let ruleRows: [(rule: String, expected: String)] = [
        ("a", ": found \"a\", expected keys such as match: { … } and policy: …"),
        ("{ mach: { host: a } }", ".mach: unknown key; did you mean match?"),
        (
            "{ colour: a }",
            ".colour: unknown key; known are match, zone, policy, storage, admission, ttl, ttl_max, ttl_default, immutable, respect_cache_control, negative_ttl, failure_statuses, object_size_max, store_cookies, drop_cookies, authorization, digest, release, min_age, ranges, if_match, compress, key, note"
        ),
        ("{ match: a }", ".match: found \"a\", expected conditions such as { host: … }"),
        ("{ match: { hots: a } }", ".match.hots: unknown condition; did you mean host?"),
        (
            "{ match: { address: 10.0.0.1 } }",
            ".match.address: a cache rule has no address: stored responses are served without resolving the host; use host"
        ),
        (
            "{ match: { path: \"/a?b\" } }",
            ".match.path: found \"/a?b\", expected a path such as /pool/* or *.deb; a path does not include the query"
        ),
        (
            "{ match: { path: \"http://a/b\" } }",
            ".match.path: found \"http://a/b\", expected a path such as /pool/* or *.deb; only a path, without scheme and host"
        ),
        (
            "{ match: { path: [ \"/a b\" ] } }",
            ".match.path[1]: found \"/a b\", expected a path such as /pool/* or *.deb; percent-encode it, as clients do"
        ),
        (
            "{ match: { type: text } }",
            ".match.type: found \"text\", expected a media type such as text/html, text/* or application/*+json; did you mean text/*?"
        ),
        (
            "{ match: { type: text/html;q=1 } }",
            ".match.type: found \"text/html;q=1\", expected a media type such as text/html, text/* or application/*+json; without parameters"
        ),
        (
            "{ policy: cache-frist }",
            ".policy: found \"cache-frist\", expected one of revalidate-when-stale, revalidate-always, cache-first, cache-only, no-read, no-write, stale-on-error; did you mean cache-first?"
        ),
        ("{ policy: [ cache-only, no-read ] }", ".policy: cache-only and no-read contradict each other"),
        (
            "{ policy: [ cache-first, revalidate-always ] }",
            ".policy: revalidate-always and cache-first contradict each other"
        ),
        ("{ storage: forever }", ".storage: found \"forever\", expected one of session, permanent, pinned"),
        (
            "{ admission: secondhit }",
            ".admission: found \"secondhit\", expected all or second-hit; did you mean second-hit?"
        ),
        (
            "{ ttl: 500ms }", ".ttl: found \"500ms\", expected a duration of whole seconds from 0s to 3650d"
        ),
        (
            "{ ttl: 60 }",
            ".ttl: found \"60\", expected a duration of whole seconds from 0s to 3650d; a duration needs a unit: 60s, 60m, 60h"
        ),
        ("{ respect_cache_control: maybe }", ".respect_cache_control: found \"maybe\", expected yes or no"),
        (
            "{ drop_cookies: \"_cf*\" }",
            ".drop_cookies: found \"_cf*\", expected the name of a cookie; each cookie is named: those of others are never dropped"
        ),
        (
            "{ authorization: pubic }",
            ".authorization: found \"pubic\", expected one of standard, public, validate, per-credential; did you mean public?"
        ),
        (
            "{ match: { path: [ \"/{hex:64}\", \"/a\" ] }, digest: { from: path, algorithm: sha256 } }",
            ".digest: each path of match must have the digest; add match: { path: \"…{hex:64}…\" }"
        ),
        (
            "{ digest: { from: path, algorithm: md5 } }",
            ".digest.algorithm: found \"md5\", expected one of sha256, sha512, blake2b-256"
        ),
        ("{ digest: { from: path } }", ".digest: algorithm is missing"),
        ("{ ranges: half }", ".ranges: found \"half\", expected one of sparse, whole, pass"),
        ("{ compress: ocne }", ".compress: found \"ocne\", expected one of no, on-the-fly, once; did you mean once?"),
        (
            "{ zone: Packages }",
            ".zone: found \"Packages\", expected a name of 1 to 32 lower-case letters, digits and -"
        ),
        (
            "{ match: { client: 10.0.0.1 }, key: { sort: yes } }",
            ".key: a rule for some clients cannot say how keys are made, because its responses would be found by all clients; leave out user, group, client or listener, or give the rule a zone that no other rule names"
        ),
        ("{ zone: package }", ".zone: no zone is called \"package\"; did you mean packages?"),
        ("{ zone: elsewhere }", ".zone: no zone is called \"elsewhere\"; zones are default, packages"),
        (
            "{ match: { type: text/* }, zone: packages }",
            ".zone: a rule with a type cannot have it: it is needed before the type is known"
        ),
        (
            "{ match: { type: text/* }, key: { sort: yes } }",
            ".key: a rule with a type cannot have it: it is needed before the type is known"
        ),
        ("{ key: { drop: a, keep: b } }", ".key.keep: drop and keep cannot be combined"),
        (
            "{ key: { signature: known } }",
            ".key: hosts sign their addresses, so match must name them; "
                + "add match: { host: … }"
        ),
        (
            "{ match: { host: a }, key: { signature: a=b } }",
            ".key.signature: found \"a=b\", expected the name of a query parameter, or its start followed by *"
        ),
        ("{ key: { drop: [] } }", ".key.drop: found an empty list; leave the key out instead"),
        (
            "{ key: { drop: a=b } }",
            ".key.drop: found \"a=b\", expected the name of a query parameter, or its start followed by *"
        ),
        ("{ key: { srot: yes } }", ".key.srot: unknown key; did you mean sort?"),
        (
            "{ match: { path: \"/{hex:64}\" }, digest: { from: path, algorithm: sha256 }, key: { digest: yes } }",
            ".key: hosts share what has the same digest, so match must name them; add match: { host: … }"
        ),
        (
            "{ match: { host: a }, key: { digest: yes } }",
            ".key: addresses that share a digest must have it in their paths; "
                + "add digest: { from: path, algorithm: … }"
        ),
        (
            "{ match: { host: a, path: \"/{hex:64}\" }, digest: { from: path, algorithm: sha256 }, key: { digest: yes }, authorization: validate }",
            ".key: with authorization: validate, addresses cannot share what has the same digest; leave digest out of key"
        ),
        (
            "{ match: { host: a }, key: { host: \"a:80\" } }",
            ".key.host: found \"a:80\", expected a host name or an address, without a port"
        ),
        (
            "{ match: { path: /a }, key: { host: a } }",
            ".key: host replaces other hosts, so match must name them; add match: { host: … }"
        ),
        (
            "{ match: { host: [ a, \"*\" ] }, key: { host: a } }",
            ".key: host replaces other hosts, so match must name them; add match: { host: … }"
        ),
        (
            "{ match: { user: alice } }",
            ": names users or groups, but no authentication is configured; configure access.authentication"
        ),
    ]
    @Test(arguments: ruleRows) func `errors of a rule`(_ rule: String, _ expected: String) throws {
        let (configuration, errors, _) = try load(
            "cache:\n  rules:\n    - \(rule)\n  zones: [ { name: packages, memory: 1MiB } ]\n")
        #expect(errors.map(\.description) == ["larder.yaml:3: cache.rules[1]\(expected)"])
        #expect(configuration == nil)
    }

    static let zoneRows: [(zone: String, expected: [String])] = [
        ("{ name: a }", ["cache.zones[1]: memory is missing"]),
        ("{ memory: 1MiB }", ["cache.zones[1]: name is missing"]),
        ("a", ["cache.zones[1]: found \"a\", expected keys such as name: … and memory: …"]),
        ("{ name: a, memory: 1KiB }", ["cache.zones[1].memory: found \"1KiB\", expected a size from 1MiB to 16TiB"]),
        (
            "{ name: a, memory: 1MiB, mtach: {} }",
            [
                "cache.zones[1].mtach: unknown key; known are name, memory, policy, storage, admission, ttl, ttl_max, ttl_default, immutable, respect_cache_control, negative_ttl, failure_statuses, object_size_max, store_cookies, drop_cookies, authorization, digest, release, min_age, ranges, if_match, compress, disk"
            ]
        ),
        (
            "{ name: default, memory: 1MiB }",
            ["cache.zones[1].name: this zone always exists; cache.memory is its size, and a last rule can set the rest"]
        ),
        (
            "{ name: a, memory: 1MiB, policy: [ no-read, stale-on-error ] }",
            ["cache.zones[1].policy: stale-on-error and no-read contradict each other"]
        ),
        ("{ name: a, memory: 1MiB, disk: { path: /a } }", ["cache.zones[1].disk: size is missing"]),
    ]
    @Test(arguments: zoneRows) func `errors of a zone`(_ zone: String, _ expected: [String]) throws {
        // The rule names a zone that is wrong: said once, of the zone.
        let (configuration, errors, _) = try load("cache:\n  zones:\n    - \(zone)\n  rules: [ { zone: a } ]\n")
        #expect(errors.map(\.description) == expected.map { "larder.yaml:3: \($0)" })
        #expect(configuration == nil)
    }

    @Test func `a zone that is defined twice is reported with its line`() throws {
        let zones = "cache:\n  zones:\n    - name: a\n      memory: 1MiB\n    - memory: 2MiB\n      name: a\n"
        #expect(
            try load(zones).errors.map(\.description) == ["larder.yaml:6: cache.zones[2].name: a is listed twice"])
    }

    static let warnings: [(text: String, expected: [String])] = [
        ("cache: { rules: [ { storage: session } ] }", []),
        (
            "cache:\n  rules:\n    - ttl: 1s\n    - match: { host: a }",
            ["4: cache.rules[2]: is never reached: rule 1 matches everything; move it up"]
        ),
        (
            "access:\n  rules:\n    - deny:\n    - allow: { host: a }",
            ["4: access.rules[2]: is never reached: rule 1 matches everything; move it up"]
        ),
        (
            "access:\n  rules:\n    - deny: { host: \"*.a.example\" }\n    - allow: { host: b.a.example, port: 80 }",
            ["4: access.rules[2]: is never reached: rule 1 matches all that it matches; move it up"]
        ),
        (
            "access:\n  rules:\n    - allow: { host: [ a.example, b.example ] }\n    - deny: { host: b.example, path: /x }",
            ["4: access.rules[2]: is never reached: rule 1 matches all that it matches; move it up"]
        ),
        (
            "access:\n  rules:\n    - deny: { client: 10.0.0.0/8 }\n    - allow: { client: 10.1.0.0/16, host: a.example }",
            ["4: access.rules[2]: is never reached: rule 1 matches all that it matches; move it up"]
        ),
        // What is not certain is not said: an allow rule behind another one can open a port or an address; readings of paths differ; rules
        // that only report decide nothing.
        ("access: { rules: [ { allow: { host: a.example } }, { allow: { host: a.example, port: 8443 } } ] }", []),
        ("access: { rules: [ { allow: {} }, { allow: { address: 10.0.0.5 } } ] }", []),
        (
            "access: { rules: [ { allow: { host: a.example, path: /a } }, { deny: { host: a.example, path: /a } } ] }",
            []
        ),
        ("access: { rules: [ { deny: { report: yes } }, { allow: { host: a.example } } ] }", []),
        ("access: { rules: [ { deny: { host: { file: f } } }, { allow: { host: a.example } } ] }", []),
        ("access: { rules: [ { deny: { address: 10.0.0.0/8 } }, { allow: { host: a.example } } ] }", []),
        ("access: { rules: [ { deny: { port: 80 } }, { allow: { host: a.example } } ] }", []),
        (
            "access: { rules: [ { deny: { path: /a, method: CONNECT } } ] }",
            ["1: access.rules[1]: never matches: Larder cannot see the path in a tunnel"]
        ),
        (
            "cache: { policy_clients: [ \"::/0\" ] }",
            [
                "1: cache.policy_clients: every client can make the cache ignore the origin, for all other clients; name the clients that you trust"
            ]
        ),
        (
            "cache:\n  memory: 2MiB\n  zones: [ { name: a, memory: 1MiB } ]\n  rules: [ { zone: a, object_size_max: 2MiB }, { match: { host: a }, object_size_max: 2MiB } ]",
            [
                "4: cache.rules[1].object_size_max: 2MiB is more than the zone can store, 1MiB",
                "4: cache.rules[2]: is never reached: rule 1 matches everything; move it up",
            ]
        ),
    ]
    @Test(arguments: warnings.indices) func `a rule that cannot be meant gets a warning`(_ index: Int) throws {
        let row = Self.warnings[index]
        let (configuration, errors, warnings) = try load(row.text)
        #expect(configuration != nil && errors.isEmpty)
        #expect(Set(warnings.map(\.description)) == Set(row.expected.map { "larder.yaml:\($0)" }), "\(row.text)")
    }

    @Test func `changes of zones and rules need no restart`() throws {
        let changed = try loaded(Self.everything)
        #expect(changesNeedingRestart(from: Configuration(), to: changed).isEmpty)
    }
}

@Suite("Recipes in a configuration file")
struct RecipeConfigurationTests {
    static let rows: [(recipes: String, expected: [String])] = [
        ("[ { use: npm, hosts: a } ]", []), ("[ { use: npm, hosts: [ a, \"*.b\" ] }, { use: debian, hosts: a } ]", []),
        ("[ { use: nmp, hosts: a } ]", ["recipes[1].use: no recipe is called \"nmp\"; did you mean npm?"]),
        (
            "[ { use: mainframe, hosts: a } ]",
            ["recipes[1].use: no recipe is called \"mainframe\"; larder recipe list shows all of them"]
        ),
        ("[ { use: npm } ]", ["recipes[1]: hosts is missing"]), ("[ { hosts: a } ]", ["recipes[1]: use is missing"]),
        (
            "[ { use: npm, hosts: \"*\" } ]",
            ["recipes[1].hosts: a recipe is for the hosts of its ecosystem; name them, or *.example.org"]
        ),
        (
            "[ { use: npm, hosts: \"http://a/\" } ]",
            [
                "recipes[1].hosts: found \"http://a/\", expected a host name, *.name, * or an address; only a host, without scheme and path"
            ]
        ),
        ("[ { use: npm, hosts: a, authorization: validate, private: [ \"@acme/*\", own ] } ]", []),
        (
            "[ { use: npm, hosts: a, private: /own } ]",
            ["recipes[1].private: found \"/own\", expected names of packages such as \"@acme/*\""]
        ),
        ("[ { use: npm, hosts: a, zones: b } ]", ["recipes[1].zones: unknown key; did you mean zone?"]),
        ("[ { use: npm, hosts: a, zone: b } ]", ["recipes[1].zone: no zone is called \"b\"; zones are default"]),
        ("npm", ["recipes: found \"npm\", expected a list of recipes"]),
        ("[ { use: npm, hosts: a, min_age: 3d } ]", []),
        (
            "[ { use: npm, hosts: a, min_age: { age: 3d, except: [ \"@acme/*\", b ], packages: [ { package: c, age: 1d } ], cut_off: 2026-11-01, break_glass: [ { package: d, until: 2026-12-01T12:00:00Z, why: a hole } ], undated: refuse, report_only: yes } } ]",
            []
        ),
        ("[ { use: npm, hosts: a, min_age: { cut_off: 2026-11-01 } } ]", []),
        (
            "[ { use: npm, hosts: a, min_age: 3 } ]",
            [
                "recipes[1].min_age: found \"3\", expected a duration of whole seconds from 0s to 3650d; a duration needs a unit: 3s, 3m, 3h"
            ]
        ),
        ("[ { use: npm, hosts: a, min_age: {} } ]", ["recipes[1].min_age: age is missing"]),
        ("[ { use: npm, hosts: a, min_age: { except: b } } ]", ["recipes[1].min_age: age is missing"]),
        (
            "[ { use: npm, hosts: a, min_age: { age: 1d, excepted: b } } ]",
            ["recipes[1].min_age.excepted: unknown key; did you mean except?"]
        ),
        (
            "[ { use: npm, hosts: a, min_age: { age: 1d, cut_off: yesterday } } ]",
            [
                "recipes[1].min_age.cut_off: found \"yesterday\", expected a date such as 2026-11-01, or a time such as 2026-11-01T12:00:00Z"
            ]
        ),
        (
            "[ { use: npm, hosts: a, min_age: { age: 1d, except: \"a*b\" } } ]",
            [
                "recipes[1].min_age.except: found \"a*b\", expected the name of a package, or its beginning followed by *"
            ]
        ),
        (
            "[ { use: npm, hosts: a, min_age: { age: 1d, break_glass: [ { package: b, until: 2026-01-01 } ] } } ]",
            ["recipes[1].min_age.break_glass[1]: why is missing"]
        ),
        (
            "[ { use: npm, hosts: a, min_age: { age: 1d, undated: maybe } } ]",
            ["recipes[1].min_age.undated: found \"maybe\", expected pass or refuse"]
        ),
        (
            "[ { use: debian, hosts: a, min_age: 3d } ]",
            [
                "recipes[1].min_age: the recipe debian does not say which responses are releases; these do: npm, python"
            ]
        ),
    ]
    @Test(arguments: rows) func `errors name the element`(_ recipes: String, _ expected: [String]) throws {
        let errors = try load("recipes: \(recipes)").errors
        #expect(errors.map(\.description) == expected.map { "larder.yaml:1: \($0)" })
    }

    static let files: [(text: String, error: String)] = [
        ("about: a", "larder.yaml:1: rules is missing"),
        ("{ about: a, rules: [ { match: { path: /a } } ] }", "rules[1]: note is missing"),
        (
            "{ about: a, rules: [ { note: b, match: { host: c, path: /a } } ] }",
            "rules[1]: the match of a recipe's rule has path, and method if need be"
        ),
        (
            "{ about: a, rules: [ { note: b } ] }",
            "rules[1]: the match of a recipe's rule has path, and method if need be"
        ),
        (
            "{ about: a, rules: [ { note: b, match: { path: /a }, zone: c } ] }",
            "rules[1]: a recipe has no zone, and its keys have digest and signature at most"
        ),
        (
            "{ about: a, rules: [ { note: b, match: { path: /a }, key: { sort: yes, signature: known } } ] }",
            "rules[1]: a recipe has no zone, and its keys have digest and signature at most"
        ),
        ("{ about: a, rlues: [] }", "rlues: unknown key; did you mean rules?"),
    ]
    @Test(arguments: files) func `errors in the file of a recipe`(_ text: String, _ error: String) throws {
        let loaded = loadRecipe(ConfigurationNode(try #require(try parseYAML(Array(text.utf8)))), name: "r")
        #expect(loaded.recipe == nil)
        #expect(
            loaded.errors.contains { "\($0)".hasSuffix(error.replacing("larder.yaml:1: ", with: "")) },
            "\(loaded.errors)")
    }

    @Test func `what holds for the whole recipe holds for each rule that does not say otherwise`() throws {
        let made = try recipe(
            "r",
            "{ about: a, ttl: 5s, rules: [ { note: a, match: { path: /a } }, { note: b, match: { path: /b }, ttl: 6s } ] }"
        )
        #expect(made.rules.map(\.changes.ttl) == [Seconds(5), Seconds(6)])
    }
}
