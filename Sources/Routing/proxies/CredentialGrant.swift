/// A credential for some of the proxies that a PAC file or the environment names.
///
/// A script says which proxy a request takes, but not who gets a password: that are the proxies which the configuration lists, each with its
/// kind, its host and its port. A script that names another port, or the same host without TLS, gets nothing for it.
package struct CredentialGrant: Equatable, Sendable {
    /// The name of the credential.
    package let credential: String
    /// Who gets it. Never empty, each without a log-in of its own.
    package let proxies: [NextProxy]

    package init(_ credential: String, to proxies: [NextProxy]) {
        precondition(
            !proxies.isEmpty && proxies.allSatisfy { $0.logIn == nil }, "a grant is for proxies without a log-in")
        self.credential = credential
        self.proxies = proxies
    }

    /// Whether the proxy is one of them, whatever it proves itself with now.
    package func covers(_ proxy: NextProxy) -> Bool {
        proxies.contains { $0.kind == proxy.kind && $0.endpoint == proxy.endpoint }
    }

    /// The route with the credential, if its proxy gets it. A proxy whose URL has a user keeps that.
    func applied(to route: Route) -> Route {
        guard case .proxy(let proxy) = route, proxy.logIn == nil, covers(proxy) else { return route }
        return .proxy(proxy.proving(credential))
    }
}
