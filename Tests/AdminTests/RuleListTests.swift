import Access
import Admin
import Caching
import Rules
import Settings
import Testing

@testable import larder
import JSON

@Suite("Command line: check lists the rules")
struct RuleListTests {
    static let configuration: Configuration = {
        var configuration = Configuration()
        var conditions = RuleConditions()
        conditions.hosts = [.below(".example.org")]
        conditions.ports = [80...80, 8000...8999]
        configuration.access.rules = [
            AccessRule(effect: .allow, conditions: conditions, number: 1, line: 4),
            AccessRule(effect: .deny(reason: "not on the list"), number: 2, line: 5),
        ]
        var packages = CacheZone(name: "packages", memory: 64 << 20)
        packages.changes.use = .staleOnError
        configuration.cache.zones = [packages]
        var rule = CacheRule(conditions: conditions, zone: "packages", number: 1, line: 9)
        rule.changes.use = [.cacheFirst, .staleOnError]
        rule.key = KeyRules(sortsQuery: true)
        configuration.cache.rules = [rule]
        return configuration
    }()

    @Test func `rules are numbered and printed in one line each`() {
        #expect(
            ruleList(Self.configuration) == """

                Access rules
                  1.  allow: host *.example.org; port 80, 8000-8999
                  2.  deny: everything ("not on the list")
                      otherwise: deny

                Zones
                      default: memory 256MiB
                      packages: memory 64MiB; policy stale-on-error

                Cache rules
                  1.  host *.example.org; port 80, 8000-8999 → zone packages; policy cache-first, stale-on-error; key.sort yes
                """)
    }

    @Test func `without rules nothing is printed, except a default that denies`() {
        #expect(ruleList(Configuration()) == "")
        var closed = Configuration()
        closed.access.writtenDefault = .deny
        #expect(ruleList(closed) == "\nAccess rules\n      otherwise: deny")
    }

    @Test func `with --json every value is in a list`() throws {
        var writer = JSONWriter()
        writer.object { writeRules(Self.configuration, to: &$0) }
        let expected = """
            {"access_rules":[
            {"number":1,"line":4,"text":"allow: host *.example.org; port 80, 8000-8999","effect":"allow",
            "match":{"host":["*.example.org"],"port":["80","8000-8999"]}},
            {"number":2,"line":5,"text":"deny: everything (\\"not on the list\\")","effect":"deny","reason":"not on the list","match":{}}],
            "access_default":"deny",
            "zones":[{"name":"packages","memory":67108864,"handling":{"policy":["stale-on-error"]}}],
            "cache_rules":[{"number":1,"line":9,
            "text":"host *.example.org; port 80, 8000-8999 → zone packages; policy cache-first, stale-on-error; key.sort yes",
            "match":{"host":["*.example.org"],"port":["80","8000-8999"]},
            "handling":{"zone":["packages"],"policy":["cache-first","stale-on-error"],"key.sort":["yes"]}}]}
            """
        #expect(try JSONValue(parsing: writer.bytes) == JSONValue(parsing: Array(expected.utf8)))
    }
}
