import Origins
import Settings
import Testing

@Suite("cookie_jars, and cookies of origins") struct CookieSettingsTests {
    @Test func `jars have names and perhaps files, and rules use them`() throws {
        let configuration = try loaded(
            """
            cookie_jars:
              - { name: portal, file: /var/lib/larder/portal.cookies }
              - { name: balancer }
            origins:
              - { match: { host: portal.example, client: 10.0.0.0/8 }, cookies: portal }
              - match: { host: [ "*.lb.example", lb.example ] }
                cookies: { jar: balancer, client: merge, learn: no }
              - { retries: 1 }
            """)
        #expect(configuration.cookieJars.map(\.name) == ["portal", "balancer"])
        #expect(configuration.cookieJars.map(\.file) == ["/var/lib/larder/portal.cookies", nil])
        let uses = configuration.origins.map(\.cookies)
        #expect(uses == [CookieUse(jar: "portal"), CookieUse(jar: "balancer", clientUse: .merge, learns: false), nil])
        #expect(
            uses.map { $0.map { "\($0)" } } == [
                "cookies of the jar portal",
                "cookies of the jar balancer, beside those of the client, which does not learn", nil,
            ])
    }

    static let mistakes: [(text: String, error: String)] = [
        ("cookie_jars: {}", "1: cookie_jars: found a mapping, expected a list of jars"),
        ("cookie_jars: [ {} ]", "1: cookie_jars[1]: name is missing"),
        (
            "cookie_jars: [ { name: \"a b\" } ]",
            "1: cookie_jars[1].name: found \"a b\", expected a name of 1 to 64 letters, digits, \"-\", \"_\" and \".\""
        ),
        ("cookie_jars: [ { name: a, path: /a } ]", "1: cookie_jars[1].path: unknown key; known are name, file"),
        ("cookie_jars: [ { name: a }, { name: a } ]", "1: cookie_jars[2].name: the name a is used twice"),
        (
            "cookie_jars: [ { name: a, file: /a }, { name: b, file: /a } ]",
            "1: cookie_jars[2].file: /a is the file of the jar a as well; give each jar a file of its own, or use one jar in both rules"
        ),
        (
            "origins: [ { match: { host: a.example }, cookies: a } ]",
            "1: origins[1].cookies: there is no jar a; add cookie_jars: [ { name: a } ]"
        ),
        (
            "cookie_jars: [ { name: portal }, { name: b } ]\norigins: [ { match: { host: a.example }, cookies: protal } ]",
            "2: origins[1].cookies: there is no jar protal; did you mean portal?"
        ),
        (
            "cookie_jars: [ { name: portal }, { name: b } ]\norigins: [ { match: { host: a.example }, cookies: { jar: x } } ]",
            "2: origins[1].cookies: there is no jar x; cookie_jars has portal, b"
        ),
        (
            "cookie_jars: [ { name: a } ]\norigins: [ { cookies: a } ]",
            "2: origins[1].cookies: names no host: what any origin sets would come into the jar; add host: NAME to match"
        ),
        (
            "cookie_jars: [ { name: a } ]\norigins: [ { match: { host: \"*\" }, cookies: a } ]",
            "2: origins[1].cookies: names no host: what any origin sets would come into the jar; add host: NAME to match"
        ),
        (
            "cookie_jars: [ { name: a } ]\norigins: [ { match: { host: a.example }, cookies: a, fields: { set: { cookie: x } } } ]",
            "2: origins[1].cookies: fields changes Cookie already; leave one of the two out"
        ),
        (
            "cookie_jars: [ { name: a } ]\norigins: [ { match: { host: a.example }, cookies: [ a ] } ]",
            "2: origins[1].cookies: found a list, expected the name of a jar, or jar: NAME with client: replace or merge, and learn: yes or no"
        ),
        (
            "cookie_jars: [ { name: a } ]\norigins: [ { match: { host: a.example }, cookies: { jar: a, client: keep } } ]",
            "2: origins[1].cookies.client: found \"keep\", expected replace or merge"
        ),
    ]
    @Test(arguments: mistakes) func `a mistake is named with its place, and what to do about it`(
        _ row: (text: String, error: String)
    ) throws {
        #expect(try load(row.text).errors.map(\.description) == ["larder.yaml:\(row.error)"])
    }
}
