@testable import ClientSetup
import Testing

@Suite("larder doctor: what is concluded about a tool")
struct ToolVerdictTests {
    static let facts = DoctorFacts(
        proxy: "http://proxy.test:3128", opensTLS: true, fingerprint: "ab", bundle: "/etc/larder/ca-bundle.pem")
    static let tool = Tool.all.first { $0.name == "curl" }!

    static func seen(_ way: CheckOrigin.Way, _ count: Int = 1) -> [CheckRecords.Sighting: Int] {
        [.init(way: way, method: "GET", path: "/file"): count]
    }
    static let http = ProbeResult(.http, first: seen(.http), second: seen(.http), output: "")
    static let https = ProbeResult(.https, first: seen(.https), second: seen(.https), output: "")
    static func lost(_ way: ToolProbe.Way, _ output: String) -> ProbeResult {
        ProbeResult(way, first: [:], second: [:], output: output)
    }

    static let rows:
        [(
            name: String, results: [ProbeResult], proxy: ToolVerdict.Mark, trusts: ToolVerdict.Mark,
            cached: ToolVerdict.Mark
        )] = [
            ("all is well", [http, https], .yes, .yes, .yes),
            ("the proxy opens no TLS", [http], .yes, .untested, .yes),
            (
                "nothing arrives", [lost(.http, "no such host"), lost(.https, "no such host")], .no, .untested,
                .untested
            ),
            ("the certificate is refused", [http, lost(.https, "SSL certificate problem")], .yes, .no, .yes),
            ("only https is asked, and refused", [lost(.https, "x509: unknown authority")], .yes, .no, .untested),
            ("https goes past the proxy", [http, lost(.https, "Could not resolve host")], .no, .untested, .yes),
            (
                "the second request reaches the origin",
                [ProbeResult(.http, first: seen(.http), second: seen(.http, 2), output: "")], .yes, .untested, .no
            ),
            (
                "a tunnel to port 80 cannot be cached",
                [ProbeResult(.http, first: seen(.tunnel), second: seen(.tunnel, 2), output: "")], .yes, .untested,
                .untested
            ),
            ("nothing was asked", [], .untested, .untested, .untested),
        ]
    @Test(arguments: rows) func `what arrived and what was said decides`(
        _ row: (
            name: String, results: [ProbeResult], proxy: ToolVerdict.Mark, trusts: ToolVerdict.Mark,
            cached: ToolVerdict.Mark
        )
    ) {
        let verdict = judge(Self.tool, row.results, Self.facts)
        #expect(
            verdict.usesProxy == row.proxy && verdict.trusts == row.trusts && verdict.isCached == row.cached,
            "\(row.name): \(verdict)")
        #expect((verdict.advice == nil) == verdict.isFine, "\(row.name): \(verdict)")
    }

    @Test func `a tool without a probe is untested`() {
        let tool = Tool.all.first { $0.probe == nil }!
        #expect(judge(tool, [Self.http], Self.facts) == .untested)
    }

    @Test func `a probe that cannot run tells nothing`() {
        let tool = Tool.all.first { $0.name == "Python: requests" }!
        let verdict = judge(tool, [Self.lost(.http, "ModuleNotFoundError: No module named 'requests'")], Self.facts)
        #expect(verdict == .untested)
    }

    @Test func `a tool without support for proxies is not wrong, and says why it goes past them`() {
        let node = Tool.all.first { $0.name == "node" }!
        let verdict = judge(node, [Self.lost(.http, "Uncaught 'no support for proxies'")], Self.facts)
        #expect(verdict.usesProxy == .untested && verdict.isFine && verdict.advice == node.traps[0])
    }

    static let advice: [(tool: String, lost: ToolProbe.Way, said: String, advice: String)] = [
        ("curl", .http, "", "export http_proxy=http://proxy.test:3128 https_proxy=http://proxy.test:3128"),
        ("curl", .https, "certificate", "export CURL_CA_BUNDLE=/etc/larder/ca-bundle.pem"),
        ("cargo", .https, "certificate", "export CARGO_HTTP_CAINFO=/etc/larder/ca-bundle.pem"),
        (
            "apt", .http, "",
            "curl -fsS --noproxy '*' http://proxy.test:3128/setup.sh | sh -s -- --ca-sha256 ab  (as root)"
        ),
        (
            "npm", .https, "certificate", "export npm_config_cafile=/etc/larder/ca-bundle.pem"
        ),
    ]
    @Test(arguments: advice) func `the advice is one line that mends it`(
        _ row: (tool: String, lost: ToolProbe.Way, said: String, advice: String)
    ) {
        let tool = Tool.all.first { $0.name == row.tool }!
        let results = row.lost == .https ? [Self.http, Self.lost(.https, row.said)] : [Self.lost(.http, row.said)]
        #expect(judge(tool, results, Self.facts).advice == row.advice)
    }

    @Test func `where all variables are set, the advice is the tool's trap`() {
        let node = Tool.all.first { $0.name == "node" }!
        let facts = DoctorFacts(
            proxy: "http://p:1", opensTLS: false, fingerprint: nil, bundle: nil, variables: ["NODE_USE_ENV_PROXY"])
        #expect(judge(node, [Self.lost(.http, "ENOTFOUND")], facts).advice == node.traps[0])
    }

    @Test func `of what a tool prints, the line is shown that tells most`() {
        #expect(tellingLine("a\n  Error: b\n  at c\n") == "Error: b")
        #expect(tellingLine("a\nb\n}\n") == "b")
        #expect(tellingLine("") == "")
    }

    @Test func `a probe is filled in`() {
        let probe = ToolProbe(
            "{program}", "{url}/a", "docker://{place}", "{dir}/{dir}", environment: ["X": "{url}"],
            files: ["f": "{url}{url}"]
        ).filled(program: "/bin/x", way: .https, path: "/p", directory: "/d")
        let url = "https://check.larder.internal/p"
        #expect(probe.words == ["/bin/x", "\(url)/a", "docker://check.larder.internal/p", "/d//d"])
        #expect(probe.environment == ["X": url] && probe.files == ["f": url + url])
    }

    @Test(arguments: Tool.all) func `no probe says where the proxy or the certificates are`(_ tool: Tool) throws {
        guard let probe = tool.probe else { return }
        #expect(!tool.programs.isEmpty && !probe.ways.isEmpty)
        let settings = Set(SetupVariable.all.map(\.name))
        #expect(settings.isDisjoint(with: probe.environment.keys))
        #expect(
            probe.words.allSatisfy { !["--proxy", "--cacert", "--cert", "--ca-certificate", "--cafile"].contains($0) })
    }
}

@Suite("larder doctor: mistakes in variables")
struct EnvironmentFindingsTests {
    static let rows: [(environment: [String: String], problem: String)] = [
        (["HTTP_PROXY": "http://p:1", "https_proxy": "http://p:1"], "http_proxy is not"),
        (["http_proxy": "http://p:1"], "https goes past the proxy"),
        (["http_proxy": "p:1", "https_proxy": "http://p:1"], "has no scheme"),
        (["https_proxy": "http://p:1", "HTTPS_PROXY": "http://q:1"], "https_proxy and HTTPS_PROXY differ"),
        (["no_proxy": "a", "NO_PROXY": "b"], "no_proxy and NO_PROXY differ"),
        (["no_proxy": "a, b"], "has spaces"), (["no_proxy": "*"], "use no proxy at all"),
        (["NO_PROXY": "*.example.org"], "only Go and Node know this form"),
        (["no_proxy": "http://a"], "a name has no scheme"),
        (["no_proxy": ".internal"], "it covers check.larder.internal"),
        (["no_proxy": "larder.internal"], "it covers check.larder.internal"),
        (["SSL_CERT_FILE": "/gone"], "cannot be read"), (["NODE_EXTRA_CA_CERTS": "/old"], "lacks Larder's certificate"),
    ]
    private func findings(_ environment: [String: String]) -> [Finding] {
        environmentFindings(environment) { $0 == "/gone" ? .missing : $0 == "/old" ? .lacksAuthority : nil }
    }

    @Test(arguments: rows) func `a mistake is found once, with what mends it`(
        _ row: (environment: [String: String], problem: String)
    ) {
        let found = findings(row.environment)
        #expect(found.count == 1 && found.first?.problem.contains(row.problem) == true, "\(found)")
        #expect(found.first?.mend.isEmpty == false)
    }

    @Test func `what setup.sh writes has no mistake`() {
        var environment: [String: String] = [:]
        for variable in SetupVariable.all {
            switch variable.value {
            case .proxy: environment[variable.name] = "http://p:1"
            case .exceptions: environment[variable.name] = "localhost,127.0.0.1,::1,p,.corp.test"
            case .bundle, .authority: environment[variable.name] = "/etc/larder/ca.pem"
            case .javaOptions, .literal: environment[variable.name] = "x"
            }
        }
        #expect(findings(environment).isEmpty)
        #expect(findings([:]).isEmpty)
    }
}
