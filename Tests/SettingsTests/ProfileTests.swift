import Access
import Message
import Rules
import Settings
import Testing

@Suite("access.rules: profiles")
struct ProfileTests {
    private static let authority = "intercept: { ca: { certificate: /ca.pem, key: /ca.key } }\n"

    private func rules(_ rule: String, _ more: String = authority) throws -> [String] {
        try loaded("access: { rules: [ \(rule) ] }\n\(more)").access.rules.map { "\($0.number) \($0.text)" }
    }

    @Test func `packages-read allows what the recipes know, on the hosts of recipes`() throws {
        let recipes = "recipes: [ { use: npm, hosts: [ a.example ] }, { use: debian, hosts: [ \"*.b.example\" ] } ]\n"
        #expect(
            try rules("allow: { profile: packages-read, client: 10.0.0.0/8 }, deny: {}", Self.authority + recipes) == [
                "1 allow: host a.example, *.b.example; port 443; method CONNECT; client 10.0.0.0/8 → intercept yes — profile packages-read",
                "2 allow: host a.example; port 80, 443; method GET, HEAD; path /f/*; client 10.0.0.0/8 — profile packages-read",
                "3 allow: host *.b.example; port 80, 443; method GET, HEAD; path /f/*; client 10.0.0.0/8 — profile packages-read",
                "4 deny: everything",
            ])
        #expect(
            try rules(
                "allow: { profile: packages-read, host: x.b.example, port: 8080, client: 10.0.0.0/8 }",
                Self.authority + recipes) == [
                    "1 allow: host x.b.example; port 8080; method CONNECT; client 10.0.0.0/8 → intercept yes — profile packages-read",
                    "2 allow: host x.b.example; port 8080; method GET, HEAD; path /f/*; client 10.0.0.0/8 — profile packages-read",
                ])
    }

    @Test func `source-read allows git to read, and denies pushes`() throws {
        #expect(
            try rules("allow: { profile: source-read, host: git.example, path: /group/tool.git }") == [
                "1 deny: host git.example; port 80, 443; path /group/tool.git/git-receive-pack (\"source-read allows no pushes\") — profile source-read",
                "2 deny: host git.example; port 80, 443; path /group/tool.git/info/refs; query service=git-receive-pack (\"source-read allows no pushes\") — profile source-read",
                "3 allow: host git.example; port 443; method CONNECT → intercept yes — profile source-read",
                "4 allow: host git.example; port 80, 443; method GET, HEAD; path /group/tool.git/info/refs, /group/tool.git/HEAD, /group/tool.git/objects/*, /group/tool.git/archive/*, /group/tool.git/tarball/*, /group/tool.git/zipball/*, /group/tool.git/tar.gz/*, /group/tool.git/zip/* — profile source-read",
                "5 allow: host git.example; port 80, 443; method POST; path /group/tool.git/git-upload-pack — profile source-read",
            ])
    }

    @Test func `model-api allows POST to the paths, and nothing else`() throws {
        #expect(
            try rules("allow: { profile: model-api, host: models.example, path: [ /v1/messages ] }") == [
                "1 allow: host models.example; port 443; method CONNECT → intercept yes — profile model-api",
                "2 allow: host models.example; port 80, 443; method POST; path /v1/messages; request_size at most 10485760 bytes — profile model-api",
            ])
        #expect(
            try rules(
                "allow: { profile: model-api, host: models.example, path: /v1, request_size: { at_most: 64KiB } }") == [
                    "1 allow: host models.example; port 443; method CONNECT → intercept yes — profile model-api",
                    "2 allow: host models.example; port 80, 443; method POST; path /v1; request_size at most 65536 bytes — profile model-api",
                ])
    }

    @Test func `without an authority tunnels stay closed, and a warning says so`() throws {
        let (configuration, errors, warnings) = try load(
            "access: { rules: [ allow: { profile: model-api, host: models.example, path: /v1 } ] }")
        #expect(errors == [])
        let rules = try #require(configuration?.access.rules)
        #expect(rules.map(\.conditions.methods) == [["POST"]])
        #expect(warnings.map(\.key) == ["access.rules[1].allow.profile"])
        #expect(warnings.first?.message.contains("models.example are not opened: https is denied") == true)
    }

    static let wrong: [(rule: String, part: String)] = [
        ("allow: { profile: source-raed, host: a.example }", "source-read"),
        ("allow: { profile: source-read }", "host is missing"),
        (
            "allow: { profile: packages-read, host: [ a.example, { file: /hosts } ] }",
            "a profile cannot have its hosts from a file"
        ),
        ("allow: { profile: model-api, host: a.example }", "path is missing"),
        ("allow: { profile: model-api, host: a.example, path: /x, method: GET }", "names the methods"),
        ("allow: { profile: source-read, host: \"*\" }", "hosts that you name"),
        ("allow: { profile: source-read, host: a.example, intercept: no }", "intercept.ca"),
        ("allow: { profile: packages-read, path: /x }", "those of the recipes"),
        ("allow: { profile: packages-read }", "no recipe is in use"),
        ("deny: { profile: source-read }", "only an allow rule"),
    ]
    @Test(arguments: wrong) func `what a profile cannot have is an error`(_ row: (rule: String, part: String)) throws {
        let (configuration, errors, _) = try load("access: { rules: [ \(row.rule) ] }\n\(Self.authority)")
        #expect(configuration == nil)
        #expect(errors.contains { "\($0)".contains(row.part) }, "\(errors)")
    }

    @Test func `packages-read for a host without a recipe is an error`() throws {
        let (_, errors, _) = try load(
            "access: { rules: [ allow: { profile: packages-read, host: c.example } ] }\nrecipes: [ { use: npm, hosts: [ a.example ] } ]\n\(Self.authority)"
        )
        #expect(errors.map(\.message) == ["c.example is not among the hosts of recipes"])
    }

    // MARK: what the profiles stop

    static let requests: [(method: String, path: String, isAllowed: Bool)] = [
        ("GET", "/group/tool.git/info/refs", true), ("POST", "/group/tool.git/git-upload-pack", true),
        ("GET", "/group/tool/-/archive/v1/tool.tar.gz", true), ("GET", "/group/tool.git/objects/info/packs", true),
        ("POST", "/group/tool.git/git-receive-pack", false), ("POST", "/group/tool.git/git%2Dreceive-pack", false),
        ("POST", "/x/../group/tool.git/git-receive-pack", false), ("PUT", "/group/tool.git/info/refs", false),
        ("POST", "/api/v4/projects", false), ("GET", "/api/v4/projects", false),
        ("POST", "/group/tool.git/info/refs", false),
    ]
    @Test(arguments: requests) func `source-read`(_ row: (method: String, path: String, isAllowed: Bool)) throws {
        let configuration = try loaded(
            "access: { rules: [ allow: { profile: source-read, host: git.example } ] }\n\(Self.authority)")
        let method = Method.allCases.first { "\($0.text)" == row.method } ?? .other
        let request = AccessRequest(
            client: nil, method: method, scheme: .https,
            destination: try #require(DestinationHost("git.example".utf8)), port: 443, isTunnel: false,
            pathAndQuery: ArraySlice(row.path.utf8))
        let verdict = AccessPolicy(from: configuration.access).decide(request, address: nil)
        if case .allow = verdict { #expect(row.isAllowed) } else { #expect(!row.isAllowed, "\(verdict)") }
    }
}
