import Routing
import Rules
import Testing

@Suite("Credentials for proxies that others name") struct CredentialGrantTests {
    private let grant = CredentialGrant("corp", to: [NextProxy(url: "https://one.example:3129")!])
    static let rows: [(proxy: String, credential: String?)] = [
        ("https://one.example:3129", "corp"), ("http://one.example:3129", nil), ("socks5://one.example:3129", nil),
        ("https://one.example:3130", nil), ("https://two.example:3129", nil), ("https://me@one.example:3129", nil),
    ]
    @Test(arguments: rows) func `kind, host and port must be those that are listed`(
        _ row: (proxy: String, credential: String?)
    ) throws {
        let proxy = try #require(NextProxy(url: row.proxy))
        let rules: [RouteRule.Ways] = [
            .script(.file("/a.pac"), otherwise: []), .script(.file("/a.pac"), otherwise: [.proxy(proxy)]),
        ]
        let verdicts: [PACVerdict] = [.success([.direct, .proxy(proxy)]), .failure(.timedOut)]
        for (ways, verdict) in zip(rules, verdicts) {
            let rule = RouteRule(RuleConditions(), ways, grant: grant, number: 1)
            guard case .proxy(let found)? = plan(by: verdict, of: rule)?.routes.last else {
                Issue.record("\(ways)")
                continue
            }
            #expect(found.credential == row.credential && found.logIn == proxy.logIn)
        }
        let environment = try ProxyEnvironment { ["https_proxy": row.proxy, "http_proxy": "http://other:1"][$0] }
        let table = RouteTable(
            rules: [RouteRule(RuleConditions(), .environment, grant: grant, number: 1)], environment: environment)
        #expect(table.nextProxies.map(\.credential) == [nil, row.credential])
        #expect(table.hasCredentials)
    }

    private func plan(by verdict: PACVerdict, of rule: RouteRule) -> RoutePlan? {
        let origin = Origin(.https, Endpoint(host: "a.example", port: 443))
        return ScriptedChoice(.file("/a.pac"), origin: origin, rule: rule).plan(by: verdict)
    }
}
