import Admin
import Cookies
import Foundation
import Message
import Origins
import Rules
import Server
import Settings
import Testing

/// What is stored for each credential, user or client under a key of its own is one resource: an unsafe request by one of them
/// invalidates what the others have (RFC 9111 §4.4), and a purge of the URL finds it all.
@Suite("Unsafe requests and purges: keys that others have (RFC 9111 §4.4)")
struct SeparateInvalidationScenarios {
    private static let perCredential = "rules: [ { authorization: per-credential, ttl: 60s } ]"
    private static let (ann, bob) = ("Authorization: Bearer ann", "Authorization: Bearer bob")

    private static func answer(_ scenario: Scenario, _ path: String, _ who: String, _ text: String) {
        scenario.origin.expects("GET \(path)", who).replies(
            200, "Cache-Control: max-age=60", "ETag: \"\(text)\"", body: text)
    }

    @Test(arguments: ["POST", "PUT", "DELETE", "LOCK"])
    func `what is stored for another credential is validated after it`(_ method: String) throws {
        try scenario(cache: Self.perCredential) { s in
            let client = try s.client()
            for (who, text) in [(Self.ann, "ann"), (Self.bob, "bob")] {
                Self.answer(s, "/a", who, text)
                Self.answer(s, "/b", who, text)
                for path in ["/a", "/b"] { #expect(try client.get(path, who).text == text) }
            }
            s.origin.expects("\(method) /a", Self.ann).replies(204)
            try client.request(method, "/a", Self.ann, body: "x")
            s.origin.expects("GET /a", Self.bob, "If-None-Match: \"bob\"").replies(
                200, "Cache-Control: max-age=60", body: "new")
            for _ in 0..<2 { #expect(try client.get("/a", Self.bob).text == "new") }
            for who in [Self.ann, Self.bob] {
                #expect(try client.get("/b", who).cacheStatus.hasPrefix("larder; hit"), "another URL")
            }
        }
    }

    @Test func `what is validated after it counts as new`() throws {
        try scenario(cache: Self.perCredential) { s in
            let client = try s.client()
            Self.answer(s, "/a", Self.bob, "bob")
            try client.get("/a", Self.bob)
            s.origin.expects("PUT /a", Self.ann).replies(204)
            try client.request("PUT", "/a", Self.ann, body: "x")
            s.origin.expects("GET /a", Self.bob, "If-None-Match: \"bob\"").replies(304, "ETag: \"bob\"")
            #expect(try client.get("/a", Self.bob).text == "bob")
            #expect(try client.get("/a", Self.bob).cacheStatus.hasPrefix("larder; hit"))
        }
    }

    @Test func `one that fails changes nothing`() throws {
        try scenario(cache: Self.perCredential) { s in
            let client = try s.client()
            Self.answer(s, "/a", Self.bob, "bob")
            try client.get("/a", Self.bob)
            s.origin.expects("PUT /a", Self.ann).replies(403)
            try client.request("PUT", "/a", Self.ann, body: "x")
            #expect(try client.get("/a", Self.bob).cacheStatus.hasPrefix("larder; hit"))
        }
    }

    @Test func `a response that was under way at that time is validated`() throws {
        try scenario(cache: Self.perCredential) { s in
            let (client, other) = (try s.client(), try s.client())
            let (asked, answer) = (Gate("bob's request"), Gate("the answer to bob"))
            s.origin.expects("GET /a", Self.bob).opens(asked).waits(for: answer).replies(
                200, "Cache-Control: max-age=60", "ETag: \"old\"", body: "old")
            try other.ask("GET", "/a", [Self.bob])
            try asked.wait()
            s.origin.expects("PUT /a", Self.ann).replies(204)
            try client.request("PUT", "/a", Self.ann, body: "x")
            answer.open()
            #expect(try other.response().text == "old")
            s.origin.expects("GET /a", Self.bob).replies(200, "Cache-Control: max-age=60", body: "new")
            #expect(try client.get("/a", Self.bob).text == "new")
        }
    }

    /// What the rule makes of the key for one client, it does for nobody else.
    private static let keyOfOne = """
        zones: [ { name: hers, memory: 1MiB } ]
        rules: [ { match: { client: 127.0.0.2 }, zone: hers, key: { drop: [ x ] } } ]
        """

    @Test func `what a rule for another client stored under another key is removed`() throws {
        try scenario(cache: Self.keyOfOne) { s in
            let (one, other) = (try s.client(from: 0x7F00_0002), try s.client())
            s.origin.expects("GET /a?x=1").replies(200, "Cache-Control: max-age=60", body: "old")
            #expect(try one.get("/a?x=1").text == "old")
            s.origin.expects("PUT /a?x=2").replies(204)
            #expect(try other.request("PUT", "/a?x=2", body: "x").status == 204)
            s.origin.expects("GET /a?x=1").replies(200, body: "new")
            #expect(try one.get("/a?x=1").text == "new")
        }
    }

    @Test func `a purge of a URL finds what a rule for one client stored under another key`() throws {
        try scenario(cache: Self.keyOfOne) { s in
            s.origin.expects("GET /a?x=1").replies(200, "Cache-Control: max-age=60", body: "old")
            try s.client(from: 0x7F00_0002).get("/a?x=1")
            var selection = Selection()
            selection.url = s.origin.url("/a?x=2")
            let purged = RunningProxy(proxy: s.proxy, version: "test").purge(PurgeRequest(selection))
            #expect(purged.records == 1)
        }
    }

    /// A jar has the same name after a restart, and what it fetched would be a hit there.
    @Test func `what a jar fetched for other clients does not come back from the disk`() throws {
        let jar = "disk: { path: DIRECTORY/disk, size: 200MiB, sync: 100ms }"
        try scenario(
            cache: jar,
            { configuration, _ in
                var conditions = RuleConditions()
                conditions.clients = [try #require(AddressRange("127.0.0.2"))]
                configuration.origins = [
                    OriginRule(
                        conditions, cookies: CookieUse(jar: "hers", clientUse: .replace, learns: true), number: 1)
                ]
                configuration.cookieJars = [CookieJarSettings(name: "hers", file: nil)]
            }
        ) { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=600", "ETag: \"old\"", body: "old")
            #expect(try s.client(from: 0x7F00_0002).get("/a").text == "old")
            try s.leaveToDisk()
            s.origin.expects("PUT /a").replies(204)
            #expect(try s.client().request("PUT", "/a", body: "x").status == 204)
            let store = try #require(s.tier.backStore)
            #expect(store.flush())
            try s.eventually("the disk has nothing") { store.flush() && store.statistics.objectCount == 0 }
            try s.restart()
            s.origin.expects("GET /a").replies(200, body: "new")
            #expect(try s.client(from: 0x7F00_0002).get("/a").text == "new")
        }
    }
}
