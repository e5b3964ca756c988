import Message
import Rules
import Testing

@Suite("Conditions of rules")
struct RuleConditionsTests {
    static func conditions(_ set: (inout RuleConditions) -> Void) -> RuleConditions {
        var conditions = RuleConditions()
        set(&conditions)
        return conditions
    }
    static func paths(_ texts: String...) -> RuleConditions {
        conditions { $0.paths = texts.compactMap { PathPattern($0) } }
    }
    static let html = conditions { $0.types = [MediaTypePattern("text/html")].compactMap { $0 } }
    static let get = conditions { $0.methods = ["GET"] }
    static let alice = conditions { $0.users = ["alice", "bob"] }
    static let lab = conditions { $0.clients = [AddressRange("192.0.2.0/24")].compactMap { $0 } }
    static let ports = conditions { $0.ports = [80...80, 8000...8999] }
    static let example = conditions { $0.hosts = [HostPattern("*.example.org")].compactMap { $0 } }

    static let rows: [(conditions: RuleConditions, request: RuleRequest, expected: Bool)] = [
        (.init(), request(), true),
        (get, request(), true), (get, request(method: .head), false),
        (get, request(method: .other, methodText: "get"), false),
        (alice, request(user: "bob"), true), (alice, request(user: "eve"), false), (alice, request(), false),
        (lab, request(client: "192.0.2.7"), true), (lab, request(client: "192.0.3.7"), false),
        (lab, request(client: nil), false),
        (ports, request(port: 8500), true), (ports, request(port: 443), false),
        (example, request("A.Example.ORG."), true), (example, request("example.org"), false),
        (paths("/pool/*", "*.deb"), request(path: "/pool/x"), true),
        (paths("/pool/*", "*.deb"), request(path: "/x.deb?pool"), true),
        (paths("/pool/*"), request(path: "/dists/x?/pool/"), false),
        (paths("/"), request(path: "?q"), true), (paths("/"), request(path: ""), true),
        // What has no path is matched by none.
        (paths("*"), request(path: nil), false), (paths("*"), request(method: .options, path: "*"), false),
        (paths("*"), request(port: 443, method: .connect, path: "/"), false),
        // As sent: neither decoded nor resolved.
        (paths("/admin/*"), request(path: "/%61dmin/x"), false),
        (paths("/admin/*"), request(path: "/x/../admin/y"), false),
        (html, request(), false),
    ]
    @Test(arguments: rows.indices) func `all conditions must hold, and any value of each`(_ index: Int) {
        let row = Self.rows[index]
        #expect(row.conditions.hold(row.request, type: nil) == row.expected, "row \(index): \(row.conditions)")
    }

    @Test func `a type condition holds only with a response`() {
        #expect(Self.html.hold(request(), type: ArraySlice("text/html; charset=utf-8".utf8)))
        #expect(!Self.html.hold(request(), type: ArraySlice("text/css".utf8)))
        #expect(Self.get.hold(request(), type: ArraySlice("text/css".utf8)))
        #expect(!Self.get.hold(request(method: .head), type: ArraySlice("text/css".utf8)))
    }

    @Test func `an address condition is undecided without an address`() {
        let tens = Self.conditions { $0.addresses = [AddressRange("10.0.0.0/8")].compactMap { $0 } }
        #expect(tens.hold(request(), address: nil, paths: .asSent) == nil)
        #expect(tens.hold(request(), address: ip("10.1.1.1"), paths: .asSent) == true)
        #expect(tens.hold(request(), address: ip("11.1.1.1"), paths: .asSent) == false)
    }

    /// Spellings that an origin may take for /admin/x or /public/x.
    static let spellings: [(pattern: String, path: String, asSent: Bool, every: Bool, any: Bool)] = [
        ("/admin/*", "/admin/x", true, true, true), ("/admin/*", "/public/x", false, false, false),
        ("/admin/*", "/%61dmin/x", false, false, true), ("/admin/*", "/admin%2fx", false, false, true),
        ("/admin/*", "//admin//x", false, false, true), ("/admin/*", "/./admin/x", false, false, true),
        ("/admin/*", "/public/../admin/x", false, false, true),
        ("/admin/*", "/public/%2E%2e/admin/x", false, false, true),
        ("/admin/*", "/public/..%2fadmin/x", false, false, true),
        ("/admin/*", "/public/..\\admin\\x", false, false, true),
        ("/admin/*", "/../../admin/x", false, false, true), ("/admin/*", "/admin/../public/x", true, false, true),
        ("/admin/*", "/admin/..", true, false, true), ("/admin/*", "/admin/.", true, false, true),
        ("/admin/", "/admin/x/..", false, false, true), ("/admin/*", "/public/..;x/admin/y", false, false, true),
        ("/admin/*", "/admin/..;/public", true, false, true), ("/admin/*", "/admin/;x/y", true, true, true),
        ("/admin/*", "/admin/a%20b", true, true, true), ("/a%20b/*", "/a%20b/x", true, true, true),
        ("/a%20b/*", "/a%20b/%7Ex", true, true, true), ("/a/*.txt", "/a//b.txt", true, true, true),
        ("/admin/*", "/admin/100%", true, true, true), ("/admin/*", "/admin%2", false, false, false),
    ]
    @Test(arguments: spellings.indices)
    func `an allow rule matches in every reading of a path, a deny rule in any`(_ index: Int) {
        let row = Self.spellings[index]
        let (conditions, request) = (Self.paths(row.pattern), request(path: row.path))
        #expect(conditions.holdForRequest(request, paths: .asSent) == row.asSent, "\(row)")
        #expect(conditions.holdForRequest(request, paths: .everySpelling) == row.every, "\(row)")
        #expect(conditions.holdForRequest(request, paths: .anySpelling) == row.any, "\(row)")
    }

    @Test func `the conditions that do not hold are named`() {
        let conditions = Self.conditions {
            $0 = Self.paths("/pool/*")
            $0.hosts = [.below(".example.org")]
            $0.addresses = [AddressRange("8.0.0.0/8")].compactMap { $0 }
            $0.ports = [8080...8080]
            $0.methods = ["PUT"]
            $0.users = ["nobody"]
            $0.clients = [AddressRange("192.0.2.0/24")].compactMap { $0 }
        }
        let request = request(path: "/x")
        #expect(
            conditions.unmet(by: request, address: nil, paths: .asSent)
                == .all.subtracting([.scheme, .details, .serverName]))
        let known = conditions.unmet(by: request, address: IPAddress(v4: 0x0808_0808), paths: .asSent)
        #expect(known == .all.subtracting([.address, .scheme, .details, .serverName]))
        #expect(RuleConditions().unmet(by: request, address: nil, paths: .asSent) == [])
    }

    @Test func `conditions are shown in the words of the manual`() {
        let all = Self.conditions {
            $0 = Self.paths("/pool/*")
            $0.hosts = [.below(".example.org"), .any]
            $0.ports = [80...80, 8000...8999]
            $0.methods = ["GET"]
            $0.types = [MediaTypePattern("Text/*")].compactMap { $0 }
        }
        #expect("\(all)" == "host *.example.org, *; port 80, 8000-8999; method GET; path /pool/*; type text/*")
        #expect("\(RuleConditions())" == "everything")
        #expect(RuleConditions().isEverything && !all.isEverything)
    }
}
