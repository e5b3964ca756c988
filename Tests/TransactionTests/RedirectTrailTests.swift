import Message
import Testing
import Transaction

@Suite("RFC 9110 §15.4 Which redirects are followed")
struct RedirectTrailTests {
    private static func step(
        _ status: UInt16, _ locations: [String], _ method: Method = .get, from place: String = "http://a/b/c?d",
        isSafe: Bool? = nil, content: Redirect.Content = .none, isUpgrade: Bool = false, countMax: Int = 5
    ) throws -> RedirectStep {
        let trail = RedirectTrail(method, try #require(TargetURI(place.utf8)))
        return trail.step(
            Redirect(
                status: status, locations: locations.map { Array($0.utf8)[...] }, method: method,
                isSafe: isSafe ?? method.isSafe, content: content, isUpgrade: isUpgrade), countMax: countMax)
    }

    @Test(arguments: 300...599) func `five statuses redirect`(status: Int) {
        #expect(RedirectStep.concerns(status: UInt16(status)) == [301, 302, 303, 307, 308].contains(status))
    }

    /// `becomes`: the method of the next request. Nil: the redirect is passed on because of the content.
    static let methods: [(status: UInt16, method: Method, content: Redirect.Content, becomes: Method?)] = [
        (301, .get, .none, .get), (302, .get, .none, .get), (303, .get, .none, .get), (307, .get, .none, .get),
        (308, .get, .none, .get),
        (301, .head, .none, .head), (303, .head, .none, .head), (308, .head, .none, .head),
        (301, .post, .none, .get), (302, .post, .sent, .get), (303, .post, .sent, .get),
        (307, .post, .none, .post), (308, .post, .none, .post), (307, .post, .sent, nil), (308, .post, .sent, nil),
        (301, .put, .none, .put), (302, .put, .sent, nil), (303, .put, .sent, .get), (303, .delete, .none, .get),
        (302, .delete, .none, .delete), (302, .other, .none, .other), (303, .other, .sent, .get),
        (303, .get, .sent, .get), (302, .get, .sent, nil), (303, .head, .sent, nil), (307, .options, .none, .options),
    ]
    @Test(arguments: methods) func `the method of the next request`(
        _ row: (status: UInt16, method: Method, content: Redirect.Content, becomes: Method?)
    ) throws {
        let step = try Self.step(row.status, ["/x"], row.method, content: row.content)
        guard let becomes = row.becomes else {
            #expect(step == .passOn(.content))
            return
        }
        guard case .follow(let following) = step else {
            Issue.record("\(step)")
            return
        }
        #expect((following.becomesGet ? .get : row.method) == becomes)
        #expect(following.isSameOrigin)
        #expect(String(decoding: following.target.normalised, as: UTF8.self) == "http://a/x")
    }

    static let targets: [(location: String, target: String, isSameOrigin: Bool)] = [
        ("e", "http://a/b/e", true), ("?e", "http://a/b/c?e", true), ("../e#f", "http://a/e", true),
        ("http://A:80/e", "http://a/e", true), ("//a/e", "http://a/e", true), ("//x/e", "http://x/e", false),
        ("http://a:81/e", "http://a:81/e", false), ("https://a/e", "https://a/e", false),
        ("http://[::1]/e", "http://[::1]/e", false), ("HTTP://x/../e", "http://x/e", false),
    ]
    @Test(arguments: targets) func `Location is resolved, and says whether the origin is another one`(
        _ row: (location: String, target: String, isSameOrigin: Bool)
    ) throws {
        guard case .follow(let following) = try Self.step(302, [row.location]) else {
            Issue.record("not followed")
            return
        }
        #expect(String(decoding: following.target.normalised, as: UTF8.self) == row.target)
        #expect(following.isSameOrigin == row.isSameOrigin)
    }

    static let invalid = [
        "file:///etc/passwd", "ftp://x/", "javascript:alert(1)", "data:,x", "gopher://x/", "mailto:a@b", "unix:/run/x",
        "http://u:p@x/", "//u@x/", "http://", "http:///x", "http://x:0/", "http://x:99999/", "http://x y/", "/a b",
        "http://\u{e9}/", "//\u{e9}/x", "http://x\\@y/", "/a\tb",
    ]
    @Test(arguments: invalid) func `a Location that leads nowhere is passed on`(_ location: String) throws {
        let step = try Self.step(302, [location])
        if location == "http://x\\@y/" {
            // Some read a host x here, and some y.
            guard case .follow = step else { return #expect(step == .passOn(.locationInvalid)) }
            Issue.record("followed")
        }
        #expect(step == .passOn(.locationInvalid))
    }

    @Test func `a redirect without one Location is passed on`() throws {
        #expect(try Self.step(302, []) == .passOn(.locationMissing))
        #expect(try Self.step(302, ["/x", "/y"]) == .passOn(.locationMissing))
    }

    @Test func `nothing leads from https to http`() throws {
        #expect(try Self.step(302, ["http://a/x"], from: "https://a/") == .passOn(.insecure))
        guard case .follow = try Self.step(302, ["//x/"], from: "https://a/") else {
            Issue.record("https to https is followed")
            return
        }
    }

    @Test func `a request that is not safe goes to no other origin, unless it becomes a GET`() throws {
        for method in [Method.put, .delete, .patch, .other] {
            #expect(try Self.step(302, ["http://x/"], method) == .passOn(.unsafe))
            #expect(try Self.step(308, ["http://x/"], method) == .passOn(.unsafe))
        }
        #expect(try Self.step(307, ["http://x/"], .post) == .passOn(.unsafe))
        // A field asks for another method.
        #expect(try Self.step(302, ["http://x/"], .get, isSafe: false) == .passOn(.unsafe))
        guard case .follow(let following) = try Self.step(303, ["http://x/"], .delete) else {
            Issue.record("303 asks for a GET")
            return
        }
        #expect(following.becomesGet && !following.isSameOrigin)
    }

    @Test func `content that is on its way, and another protocol, keep the request where it is`() throws {
        #expect(try Self.step(303, ["/x"], .post, content: .unfinished) == .passOn(.contentUnfinished))
        #expect(try Self.step(307, ["/x"], .post, content: .unfinished) == .passOn(.content))
        #expect(try Self.step(302, ["/x"], isUpgrade: true) == .passOn(.upgrade))
    }

    @Test func `browsers follow redirects themselves`() throws {
        let trail = RedirectTrail(.get, try #require(TargetURI("http://a/".utf8)))
        let redirect = Redirect(
            status: 302, locations: [Array("/x".utf8)[...]], method: .get, isSafe: true, isOfBrowser: true)
        #expect(trail.step(redirect, countMax: 5) == .passOn(.browser))
    }

    @Test func `no address is asked twice in the same way`() throws {
        #expect(try Self.step(302, [""]) == .refuse(.redirectLoop))
        #expect(try Self.step(302, ["c?d#x"], countMax: 0) == .refuse(.redirectLoop))
        // After a POST, the same address is often the page to show.
        guard case .follow(let following) = try Self.step(303, ["c?d"], .post) else {
            Issue.record("a GET behind a POST is no loop")
            return
        }
        var trail = RedirectTrail(.post, try #require(TargetURI("http://a/b/c?d".utf8)))
        trail.follow(following, .post)
        #expect(trail.count == 1)
        let again = Redirect(status: 302, locations: [Array("/b/c?d".utf8)[...]], method: .get, isSafe: true)
        #expect(trail.step(again, countMax: 5) == .refuse(.redirectLoop))
    }

    @Test func `a loop of three is found where it closes, and a way too long where it is`() throws {
        var trail = RedirectTrail(.get, try #require(TargetURI("http://a/0".utf8)))
        for number in 1...3 {
            let redirect = Redirect(
                status: 302, locations: [Array("http://\(number)/\(number)".utf8)[...]], method: .get, isSafe: true)
            #expect(trail.step(redirect, countMax: number - 1) == .refuse(.tooManyRedirects))
            guard case .follow(let following) = trail.step(redirect, countMax: number) else {
                Issue.record("\(number) of \(number)")
                return
            }
            trail.follow(following, .get)
        }
        #expect(trail.count == 3 && trail.place.host == "3" && trail.isElsewhere)
        let back = Redirect(status: 302, locations: [Array("http://1/1".utf8)[...]], method: .get, isSafe: true)
        #expect(trail.step(back, countMax: 9) == .refuse(.redirectLoop))
    }

    @Test func `a step back to the first origin comes from another one`() throws {
        var trail = RedirectTrail(.get, try #require(TargetURI("http://a/0".utf8)))
        for (location, isSameOrigin) in [("http://b/1", false), ("/2", true), ("http://a/3", false)] {
            let redirect = Redirect(
                status: 302, locations: [Array(location.utf8)[...]], method: .get, isSafe: true)
            guard case .follow(let following) = trail.step(redirect, countMax: 9) else {
                Issue.record("\(location) is not followed")
                return
            }
            #expect(following.isSameOrigin == isSameOrigin, "\(location)")
            trail.follow(following, .get)
        }
        #expect(!trail.isElsewhere)
    }

    @Test func `each reason has a text of its own`() {
        let texts = RedirectStep.Reason.allCases.map { "\($0.text)" }
        #expect(Set(texts).count == texts.count)
    }
}
