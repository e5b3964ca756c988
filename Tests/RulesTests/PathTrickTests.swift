import Message
import Rules
import Testing

/// Known ways to make an origin read another path than a proxy. No spelling gets past a deny rule, and none widens an allow rule.
@Suite("Spellings of paths that are meant to deceive")
struct PathTrickTests {
    /// Paths as sent that some origin reads as /admin/x, or as another file in it.
    static let hidden = [
        "/admin/x", "//admin/x", "/admin//x", "/./admin/x", "/%61dmin/x", "/admin%2fx", "/admin%2Fx", "/admin%5cx",
        "/\\admin/x", "/public/../admin/x", "/public/%2e%2e/admin/x", "/public/.%2e/admin/x",
        "/public/%2e%2e%2fadmin%2fx", "/public/..%5cadmin%5cx", "/public/..;/admin/x", "/public/..;a=b/admin/x",
        "/public/..%3b/admin/x", "/admin;a=b/x", "/;/admin/x", "/;a=b/admin/x", "/public;/../admin/x",
        // Decoded twice, and three times.
        "/%2561dmin/x", "/%252561dmin/x", "/public/%252e%252e/admin/x", "/public/%252e%252e%252fadmin/x",
        "/public/%25252e%25252e/admin/x", "/admin%252fx", "/admin%255cx", "/admin%253bv/x",
        // UTF-8 that is longer than needed.
        "/public/%c0%ae%c0%ae/admin/x", "/public/%c0%ae./admin/x", "/admin%c0%afx", "/admin%C0%AFx", "/%c1%a1dmin/x",
        "/admin%e0%80%afx", "/%e0%81%a1dmin/x", "/admin%f0%80%80%afx", "/public/%25c0%25ae%25c0%25ae/admin/x",
        "/admin%00/x", "/admin%00",
        // Each undoes itself if all steps are done at once.
        "/public/../admin/x;%2f..%2f..%2fpublic%2fx", "/public/../admin/x;%5c..%5c..%5cpublic%5cx",
        "/public/../admin/x/..;/..;/public/x", "/public/../admin/x%5c..%5cpublic%5cx", "/public/../admin//../public/x",
        "/admin/x;/../../public/x", "/admin;%2f../x", "/admin//../x",
        // Resolved, and cut then: "..;b" is a segment like any other until its parameter is gone.
        "/./admin;a/..;b/../x", "/%2e/admin;a/..;b/../x", "/a/../admin;a/..;b/../x", "/x/../admin;/..;/../x",
        "/x/../admin;a/y/..;/../x", "/x/../admin%3b/..%3b/../x",
        "/./admin/..", "/.//admin/..", "/%2e/admin/..",
        // An origin may merge "/" and leave dots as they are.
        "//%61dmin%2F..", "//admin/..",
    ]
    static let admin = RuleConditionsTests.paths("/admin/*", "/admin")

    @Test(arguments: hidden) func `no spelling gets past a deny rule`(_ path: String) {
        #expect(Self.admin.holdForRequest(request(path: path), paths: .anySpelling))
    }

    @Test(arguments: hidden) func `what may be another path is not allowed`(_ path: String) {
        let elsewhere = RuleConditionsTests.paths("/public/*", "*.jpg")
        #expect(!elsewhere.holdForRequest(request(path: path), paths: .everySpelling))
    }

    @Test(arguments: [
        "/public/a/../b", "/public/%2e%2e/public/b", "/public/a/..;/b", "/public/a/..%2fb", "/public/a/%252e%252e/b",
    ])
    func `a segment ".." satisfies no allow rule, wherever it leads`(_ path: String) {
        #expect(!RuleConditionsTests.paths("/*").holdForRequest(request(path: path), paths: .everySpelling))
    }

    /// Longer than anything that is deployed.
    @Test(arguments: [
        "/public/" + String(repeating: "a%20", count: 1100), "/public/" + String(repeating: "//", count: 2050),
    ])
    func `where it is not known what an origin makes of a path, it is denied and not allowed`(_ path: String) {
        #expect(Self.admin.holdForRequest(request(path: path), paths: .anySpelling))
        #expect(!RuleConditionsTests.paths("/public/*").holdForRequest(request(path: path), paths: .everySpelling))
    }

    /// What is cut off at NUL has another end.
    @Test(arguments: ["/x.php%00.jpg", "/x.php%2500.jpg", "/x.php%c0%80.jpg", "/x.php;.jpg", "/x.php%3b.jpg"])
    func `an end that is cut off does not count`(_ path: String) {
        #expect(!RuleConditionsTests.paths("*.jpg").holdForRequest(request(path: path), paths: .everySpelling))
        #expect(RuleConditionsTests.paths("*.php").holdForRequest(request(path: path), paths: .anySpelling))
    }

    /// Harmless spellings stay allowed, and others are not denied.
    @Test(arguments: [
        "/public/x", "/public/a%20b", "/public/100%", "/public/%zz", "/public/%e2%82%ac", "/public/%C3%A9",
        "/public/a;v=1/b",
        "/public/a%2520b", "/public/x/", "/public/%7Euser",
    ])
    func `ordinary encodings do no harm`(_ path: String) {
        let open = RuleConditionsTests.paths("/public/*")
        #expect(open.holdForRequest(request(path: path), paths: .everySpelling))
        #expect(!Self.admin.holdForRequest(request(path: path), paths: .anySpelling))
    }

    @Test func `parameters that a rule names count`() {
        let versioned = RuleConditionsTests.paths("/public;v=1/*")
        #expect(versioned.holdForRequest(request(path: "/public;v=1/x"), paths: .everySpelling))
        #expect(!versioned.holdForRequest(request(path: "/public;v=2/x"), paths: .everySpelling))
        #expect(!versioned.holdForRequest(request(path: "/public;v=1/..;/x"), paths: .everySpelling))
    }

    /// `pathMayMatch` takes the first occurrence of each literal. That needs literals that never stand side by side.
    @Test(arguments: ["/a*b", "/a{hex}b", "/{x|}{y|}z", "/a{hex}{digits}", "/{hex:2}*{hex:2}/x"])
    func `what may match includes what matches`(_ text: String) throws {
        let pattern = try #require(PathPattern(text))
        let letters = Array("/ab19xyz".utf8)
        for number in 0..<4096 {
            var path: [UInt8] = [0x2F]
            var rest = number
            while rest > 0 {
                path.append(letters[rest % 8])
                rest /= 8
            }
            let mayMatch = pattern.mayMatch(path.span)
            if pattern.matches(path[...]) { #expect(mayMatch, "\(path)") }
        }
    }
}
