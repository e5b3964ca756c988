import Access
import Message
import Rules
import Testing

/// A request for `GET http://host:port/`, or CONNECT.
func request(
    _ host: String, port: UInt16 = 80, method: Method = .get, methodText: String? = nil, user: String? = nil,
    client: String? = "127.0.0.1", path: String = "/"
) -> AccessRequest {
    guard let destination = DestinationHost(host.utf8) else { preconditionFailure("\(host) is no host") }
    return AccessRequest(
        client: client.map(ip), identity: user.map { Identity(name: $0, scheme: .basic) }, method: method,
        methodText: methodText, destination: destination,
        port: port,
        isTunnel: method == .connect, pathAndQuery: ArraySlice(path.utf8))
}

func rule(
    _ effect: AccessRule.Effect, host: [String] = [], address: [String] = [], port: [UInt16] = [],
    method: [String] = [],
    user: [String] = [], client: [String] = [], path: [String] = []
) -> AccessRule {
    var conditions = AccessRule.Conditions()
    conditions.hosts = host.compactMap { HostPattern($0) }
    conditions.addresses = address.compactMap { AddressRange($0) }
    conditions.ports = port.map { $0...$0 }
    conditions.methods = method
    conditions.users = user
    conditions.paths = path.compactMap { PathPattern($0) }
    conditions.clients = client.compactMap { AddressRange($0) }
    return AccessRule(effect: effect, conditions: conditions, number: 0)
}

func policy(
    _ rules: [AccessRule] = [], private destinations: AccessSettings.PrivateDestinations = .deny,
    default effect: AccessSettings.DefaultEffect? = nil
) -> AccessPolicy {
    var settings = AccessSettings()
    settings.rules = rules.enumerated().map { index, rule in
        var rule = rule
        rule.number = index + 1
        return rule
    }
    settings.privateDestinations = destinations
    settings.writtenDefault = effect
    return AccessPolicy(from: settings)
}

extension Verdict {
    /// `allow`, `allow 2`, `deny 1 rule`, `deny private-destination`, `needs address`.
    var summary: String {
        switch self {
        case .allow(let rule): "allow" + (rule.map { " \($0)" } ?? "")
        case .deny(let denial): "deny " + (denial.rule.map { "\($0) " } ?? "") + denial.reason.rawValue
        case .needsAddress: "needs address"
        case .needsServerName: "needs server name"
        }
    }
}

@Suite("Private destinations")
struct PrivateDestinationTests {
    /// All of them are in DestinationHostTests (RulesTests).
    static let spellings = [
        "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1.", "[::ffff:127.0.0.1]", "0",
        "[::1]",
        "169.254.169.254", "0xa9fea9fe", "169.254.43518", "[::ffff:a9fe:a9fe]",
    ]

    @Test(arguments: spellings) func `a private destination is refused in every spelling before anything is dialled`(
        _ host: String
    ) throws {
        for method in [Method.get, .post, .connect] {
            let request = request(host, port: method == .connect ? 443 : 80, method: method)
            #expect(policy().decide(request, address: nil).summary == "deny private-destination")
            let address = try #require(request.destination.address)
            #expect(policy().mayDial(request, address: address)?.reason == .privateDestination)
        }
    }

    @Test(arguments: AddressClassTests.rows)
    func `a name that resolves to a private address is refused, whatever the rules say about the name`(
        _ text: String, _ kind: AddressClass
    ) {
        for policy in [policy(), policy([rule(.allow, host: ["*"])]), policy([rule(.allow, host: ["rebind.example"])])]
        {
            let request = request("rebind.example")
            #expect(policy.decide(request, address: nil).summary.hasPrefix("allow"))
            #expect((policy.mayDial(request, address: ip(text)) == nil) == kind.isPublic)
        }
    }

    @Test func `the refusal names the address and its class`() {
        let denial = policy().mayDial(request("rebind.example"), address: ip("10.0.0.7"))
        #expect(
            denial?.text
                == "rebind.example resolves to 10.0.0.7, which is not a public address (private-use) and no rule opens it"
        )
        #expect(denial?.status == 403)
        #expect(
            policy().mayDial(request("10.0.0.7"), address: ip("10.0.0.7"))?.text
                == "10.0.0.7 is not a public address (private-use) and no rule opens it")
    }

    static let opening: [(rules: [AccessRule], host: String, port: UInt16, address: String, isOpen: Bool)] = [
        ([rule(.allow, address: ["10.0.0.7"])], "a.example", 80, "10.0.0.7", true),
        ([rule(.allow, address: ["10.0.0.7"])], "a.example", 80, "10.0.0.8", false),
        ([rule(.allow, address: ["10.0.0.7"]), rule(.allow)], "a.example", 80, "10.0.0.8", false),
        ([rule(.allow, address: ["127.0.0.1"], port: [8080])], "127.0.0.1", 8080, "127.0.0.1", true),
        ([rule(.allow, address: ["127.0.0.1"], port: [8080]), rule(.allow)], "127.0.0.1", 80, "127.0.0.1", false),
        ([rule(.allow, host: ["127.0.0.1"])], "0x7f.1", 80, "127.0.0.1", true),
        ([rule(.allow, host: ["127.0.0.1"])], "a.example", 80, "127.0.0.1", false),
        // The order of allow rules does not matter, that of deny rules does.
        ([rule(.allow, host: ["*"]), rule(.allow, address: ["10.0.0.0/8"])], "a.example", 80, "10.1.1.1", true),
        (
            [rule(.deny(reason: nil), host: ["a.example"]), rule(.allow, address: ["10.0.0.0/8"])], "a.example", 80,
            "10.1.1.1", false
        ),
        (
            [rule(.allow, host: ["*"]), rule(.deny(reason: nil), port: [80]), rule(.allow, address: ["10.0.0.0/8"])],
            "a.example", 80, "10.1.1.1", false
        ),
        // A network of IPv6 names none of the IPv4 addresses inside it, unless all of it stands for them.
        ([rule(.allow, address: ["2000::/3"])], "a.example", 80, "2002:a00:7::1", false),
        ([rule(.allow, address: ["2002::/16"])], "a.example", 80, "2002:a00:7::1", true),
        ([rule(.allow, address: ["64:ff9b::a00:7"])], "a.example", 80, "64:ff9b::a00:7", true),
        ([rule(.allow, address: ["10.0.0.7"])], "a.example", 80, "64:ff9b::a00:7", false),
        ([rule(.allow, address: ["169.254.169.254"])], "a.example", 80, "64:ff9b::a9fe:a9fe", false),
        // Metadata only by a rule that names it.
        ([rule(.allow, address: ["169.254.169.254"])], "a.example", 80, "169.254.169.254", true),
    ]
    static let embedding: [String] = [
        "64:ff9b::808:808", "2002:808:808::1", "2001:0:808:808::f7f7:f7f7", "::808:808", "::ffff:0:808:808",
        "2a00:1450:4001::5efe:808:808", "::ffff:8.8.8.8", "8.8.8.8",
    ]

    @Test(arguments: embedding)
    func `an address that is denied is denied in every form of IPv6 that stands for it`(_ text: String) {
        let byAddress = policy([rule(.deny(reason: nil), address: ["8.8.8.0/24"])], default: .allow)
        #expect(byAddress.mayDial(request("a.example"), address: ip(text))?.reason == .rule)
        #expect(byAddress.mayDial(request("a.example"), address: ip("2a00:1450:4001::1")) == nil)
        let literal = text.contains(":") ? "[\(text)]" : text
        let byHost = policy([rule(.deny(reason: nil), host: ["8.8.8.8"])], default: .allow)
        #expect(byHost.decide(request(literal), address: nil).summary == "deny 1 rule")
        #expect(byAddress.decide(request(literal), address: nil).summary == "deny 1 rule")
    }

    @Test(arguments: opening.indices) func `a rule that names an address opens that address alone`(_ index: Int) {
        let row = Self.opening[index]
        let denial = policy(row.rules).mayDial(request(row.host, port: row.port), address: ip(row.address))
        #expect((denial == nil) == row.isOpen, "row \(index): \(String(describing: denial))")
    }

    @Test func `private_destinations allow opens all addresses but the metadata services`() {
        let policy = policy(private: .allow)
        #expect(policy.mayDial(request("a.example"), address: ip("10.0.0.1")) == nil)
        #expect(policy.mayDial(request("a.example"), address: ip("::1")) == nil)
        #expect(policy.mayDial(request("a.example"), address: ip("169.254.169.254"))?.reason == .privateDestination)
        #expect(policy.mayDial(request("a.example"), address: ip("64:ff9b::a9fe:a9fe"))?.reason == .privateDestination)
    }
}

@Suite("Access rules")
struct AccessRuleTests {
    static let allowExample = rule(
        .allow, host: ["*.example.com", "example.org"], port: [80, 443], method: ["GET", "CONNECT"])
    static let denyAll = rule(.deny(reason: "not on the list"))
    static let alice = rule(.allow, user: ["alice"])
    static let lab = rule(.allow, client: ["192.0.2.0/24"])
    static let denyTens = rule(.deny(reason: nil), address: ["10.0.0.0/8"])
    static let allowEights = rule(.allow, address: ["8.0.0.0/8"])

    static let rows: [(rules: [AccessRule], request: AccessRequest, address: String?, expected: String)] = [
        ([], request("a.example"), nil, "allow"),
        ([allowExample, denyAll], request("example.org"), nil, "allow 1"),
        ([allowExample, denyAll], request("www.example.com", port: 443, method: .connect), nil, "allow 1"),
        ([allowExample, denyAll], request("www.example.com", port: 8080), nil, "deny 2 rule"),
        ([allowExample, denyAll], request("example.org", method: .post), nil, "deny 2 rule"),
        ([allowExample, denyAll], request("example.com"), nil, "deny 2 rule"),
        ([allowExample], request("other.example"), nil, "deny no-rule"),
        ([denyAll, allowExample], request("example.org"), nil, "deny 1 rule"),
        ([alice], request("a.example", user: "alice"), nil, "allow 1"),
        ([alice], request("a.example", user: "bob"), nil, "deny no-rule"),
        ([alice], request("a.example"), nil, "deny no-rule"),
        ([lab], request("a.example", client: "192.0.2.9"), nil, "allow 1"),
        ([lab], request("a.example", client: "192.0.3.9"), nil, "deny no-rule"),
        ([lab], request("a.example", client: nil), nil, "deny no-rule"),
        (
            [rule(.allow, method: ["PROPFIND"])], request("a.example", method: .other, methodText: "PROPFIND"), nil,
            "allow 1"
        ),
        (
            [rule(.allow, method: ["PROPFIND"])], request("a.example", method: .other, methodText: "propfind"), nil,
            "deny no-rule"
        ),
        // Rules with an address wait for it, unless it changes nothing.
        ([allowEights, denyAll], request("a.example"), nil, "needs address"),
        ([allowEights, denyAll], request("a.example"), "8.8.8.8", "allow 1"),
        ([allowEights, denyAll], request("a.example"), "9.9.9.9", "deny 2 rule"),
        ([allowEights], request("a.example"), nil, "needs address"),
        ([allowEights, rule(.allow)], request("a.example"), nil, "allow 2"),
        ([denyTens, rule(.allow)], request("a.example"), nil, "needs address"),
        ([denyTens, denyAll], request("a.example"), nil, "deny 2 rule"),
        ([denyTens, rule(.allow)], request("a.example"), "10.1.1.1", "deny 1 rule"),
        ([denyTens, rule(.allow)], request("a.example"), "9.9.9.9", "allow 2"),
        ([denyTens, rule(.allow)], request("10.9.8.7"), nil, "deny 1 rule"),
        ([allowEights], request("8.1.1.1"), nil, "allow 1"),
    ]
    @Test(arguments: rows.indices) func `the first rule that matches decides`(_ index: Int) {
        let row = Self.rows[index]
        #expect(
            policy(row.rules).decide(row.request, address: row.address.map(ip)).summary == row.expected, "row \(index)")
    }

    static let allowPublic = rule(.allow, path: ["/public/*"])
    static let denyAdmin = rule(.deny(reason: nil), path: ["/admin/*"])
    static let pathRows: [(rules: [AccessRule], path: String, expected: String)] = [
        ([allowPublic], "/public/x", "allow 1"), ([allowPublic], "/private/x", "deny no-rule"),
        ([allowPublic], "/public/x?../y", "allow 1"),
        // What is allowed may not be something else for the origin, what is denied may not be spelled otherwise.
        ([allowPublic], "/public/../private/x", "deny no-rule"),
        ([allowPublic], "/public/%2e%2e/private", "deny no-rule"),
        ([allowPublic], "/%70ublic/x", "deny no-rule"), ([denyAdmin, rule(.allow)], "/admin/x", "deny 1 rule"),
        ([denyAdmin, rule(.allow)], "/%61dmin/x", "deny 1 rule"),
        ([denyAdmin, rule(.allow)], "/a/..//admin/x", "deny 1 rule"),
        ([denyAdmin, rule(.allow)], "/public/x", "allow 2"), ([denyAdmin, rule(.allow)], "/x?/admin/x", "allow 2"),
    ]
    @Test(arguments: pathRows.indices) func `a rule uses the safer reading of a path`(_ index: Int) {
        let row = Self.pathRows[index]
        let request = request("a.example", path: row.path)
        #expect(policy(row.rules).decide(request, address: nil).summary == row.expected, "row \(index)")
        #expect((policy(row.rules).mayDial(request, address: ip("8.8.8.8")) == nil) == row.expected.hasPrefix("allow"))
    }

    @Test func `a tunnel has no path`() {
        let connect = request("a.example", port: 443, method: .connect)
        #expect(
            policy([Self.allowPublic, rule(.allow, path: ["*"])]).decide(connect, address: nil).summary
                == "deny no-rule")
        #expect(
            policy([rule(.deny(reason: nil), path: ["*"]), rule(.allow)]).decide(connect, address: nil).summary
                == "allow 2")
    }

    @Test func `an address that a rule denies is not dialled, even if the name is allowed`() {
        let policy = policy([rule(.deny(reason: "no"), address: ["9.9.9.0/24"]), rule(.allow)])
        #expect(
            policy.mayDial(request("a.example"), address: ip("9.9.9.9")) == Denial(rule: 1, reason: .rule, text: "no"))
        #expect(policy.mayDial(request("a.example"), address: ip("9.9.8.9")) == nil)
    }

    @Test func `a configured default applies`() {
        #expect(policy([Self.alice], default: .allow).decide(request("a.example"), address: nil) == .allow(rule: nil))
        #expect(policy(default: .deny).decide(request("a.example"), address: nil).summary == "deny no-rule")
        #expect(policy(default: .deny).mayDial(request("a.example"), address: ip("8.8.8.8"))?.reason == .noRule)
    }

    @Test func `a refusal has the text of its rule`() {
        let written = policy([rule(.deny(reason: "not on the list"))]).decide(request("a.example"), address: nil)
        #expect(written == .deny(Denial(rule: 1, reason: .rule, text: "not on the list")))
        let general = policy([rule(.deny(reason: nil))]).decide(request("a.example"), address: nil)
        #expect(general == .deny(Denial(rule: 1, reason: .rule, text: "rule 1 denies GET to a.example:80")))
        let none = policy([Self.alice]).decide(request("a.example"), address: nil)
        guard case .deny(let denial) = none else { Issue.record("\(none)"); return }
        #expect(denial.reason == .noRule && denial.text == "no rule allows GET to a.example:80")
    }

    @Test func `access is open only without rules and authentication`() {
        #expect(policy().isOpen)
        #expect(!policy([Self.alice]).isOpen)
        #expect(!policy(default: .deny).isOpen)
        var settings = AccessSettings()
        settings.authentication.basic.usersFile = "users"
        #expect(!AccessPolicy(from: settings).isOpen)
    }
}

@Suite("RFC 9110 §9.3.6 CONNECT")
struct ConnectPortTests {
    static let rows: [(rules: [AccessRule], port: UInt16, expected: String)] = [
        ([], 443, "allow"), ([], 22, "deny connect-port"), ([], 80, "deny connect-port"),
        ([rule(.allow)], 8443, "deny connect-port"), ([rule(.allow, port: [8443])], 8443, "allow 1"),
        ([rule(.allow, host: ["*"]), rule(.allow, port: [8443])], 8443, "allow 1"),
        ([rule(.allow, host: ["b.example"], port: [8443]), rule(.allow)], 8443, "deny connect-port"),
        (
            [rule(.allow), rule(.deny(reason: nil), method: ["CONNECT"]), rule(.allow, port: [8443])], 8443,
            "deny connect-port"
        ),
    ]
    @Test(arguments: rows.indices) func `CONNECT may use its ports and those that a rule names`(_ index: Int) {
        let row = Self.rows[index]
        let connect = request("a.example", port: row.port, method: .connect)
        #expect(policy(row.rules).decide(connect, address: nil).summary == row.expected, "row \(index)")
        let isDialled = policy(row.rules).mayDial(connect, address: ip("8.8.8.8")) == nil
        #expect(isDialled == row.expected.hasPrefix("allow"), "row \(index)")
    }

    @Test func `other methods may use any port`() {
        #expect(policy().decide(request("a.example", port: 22), address: nil) == .allow(rule: nil))
    }
}

@Suite("Clients")
struct ClientAdmissionTests {
    static let rows: [(clients: [String]?, hasUsers: Bool, client: String?, expected: Bool)] = [
        (nil, false, "127.0.0.1", true), (nil, false, "127.8.8.8", true), (nil, false, "::1", true),
        (nil, false, "::ffff:127.0.0.1", true), (nil, false, "192.168.1.1", false), (nil, false, nil, true),
        (["192.168.1.0/24"], false, "192.168.1.1", true), (["192.168.1.0/24"], false, "127.0.0.1", false),
        (["192.168.1.0/24"], true, "192.168.2.1", false), (nil, true, "203.0.113.5", true),
        (["192.168.1.0/24"], false, nil, true),
    ]
    @Test(arguments: rows.indices)
    func `only loopback clients are admitted until clients are named or must authenticate`(_ index: Int) {
        let row = Self.rows[index]
        var settings = AccessSettings()
        settings.namedClients = row.clients?.compactMap { AddressRange($0) }
        settings.authentication.basic.usersFile = row.hasUsers ? "users" : nil
        #expect(AccessPolicy(from: settings).admits(client: row.client.map(ip)) == row.expected, "row \(index)")
    }
}
