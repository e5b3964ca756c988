package import Access
package import Authentication
package import Caching
package import ClientSetup
import Interception
package import Limiting
package import LogIns
package import Message
package import PACRunner
package import Routing
package import Origins
import Rules
package import Settings
package import TLS

/// One configuration in the form in which it is used. A reload makes a new one; a request keeps the one with which it began.
package final class Snapshot: Sendable {
    package let configuration: Configuration
    package let access: AccessPolicy
    /// What holds in its place for a job that learns with `--allow`, where it denies.
    let lenientAccess: AccessPolicy
    package let cachePolicy: CachePolicy
    package let cacheRules: CacheRules
    // Values of the rules that every request reads. Reading them from `cacheRules` would copy the rules.
    let cacheRulesDependOnType: Bool
    let cacheRulesDependOnIndexes: Bool
    /// The key of every request is its URI: there are neither cache rules nor credentials, cookie jars nor routes for some clients in use.
    let cacheRulesAreTrivial: Bool
    /// Or a credential, a cookie jar or a route does, which is part of the key.
    let cacheRulesDependOnUser: Bool
    /// A hit in memory may be served because one before it on the connection was: only the rules and the user decide about it.
    let allowsShortWays: Bool
    /// A rule of `routes` looks at who asks.
    let routesDependOnClient: Bool
    /// Some rule of `origins` uses a cookie jar.
    let usesCookies: Bool
    let defaultHandling: CacheHandling
    package let limits: Limits
    package let routes: RouteTable
    /// The PAC files of `routes`.
    package let scripts: [PACSource: PACScript]
    package let origins: OriginTable
    /// Whether any rule of `origins` follows redirects.
    let followsRedirects: Bool
    /// There are rules of `routes`. Otherwise all origins but the one inside this process are connected to directly.
    let hasRoutes: Bool
    /// A rule of `routes` names a credential.
    let routesHaveCredentials: Bool
    package let bandwidth: BandwidthPlan
    package let limitPlan: LimitPlan
    /// Whether some limit counts connections.
    let countsConnections: Bool
    /// Whether any request can have a limit of the rate.
    let limitsBandwidth: Bool
    /// When requests to an origin fail without trying. Nil: never.
    package let originCircuit: Circuit.Terms?
    package let credentials: CredentialTable
    /// Some credential has placeholders.
    let usesPlaceholders: Bool
    /// Of `credentials`.
    package let secrets: SecretShelf
    /// For connections to origins and next proxies.
    let tls: TLSContexts
    /// How clients prove who they are.
    package let authentication: AuthenticationShelf
    /// Whether they all have to.
    let requiresIdentity: Bool
    /// The schemes of `access.authentication`; nil if requests carry no credentials.
    package var authenticator: Authenticator? { readsCredentials ? authentication.authenticator : nil }
    /// Whether requests can carry credentials.
    let readsCredentials: Bool
    /// Whether requests have to carry credentials.
    var asksForCredentials: Bool { readsCredentials && requiresIdentity }
    /// Whether clients can say who they are, in one of the ways that the configuration names.
    let mayHaveIdentity: Bool
    /// How users are looked up who are in no file.
    var directoryTerms: DirectoryDesk.Terms {
        DirectoryDesk.Terms(
            settings: configuration.access.authentication.directory,
            accountPassword: authentication.material.directoryPassword,
            authorityFile: directoryAuthorities(configuration))
    }
    /// What listeners show to clients that speak TLS.
    package let listenerTLS: [ListenerTLSSettings: ListenerTLS]
    let interception: InterceptionPolicy
    /// Opens tunnels. Nil: every tunnel remains one.
    package let interceptor: Interceptor?
    /// What the proxy port answers to clients that are to be set up.
    package let pages: Pages

    /// Clients have to prove who they are, and can do so with a certificate alone.
    let isCertificateRequired: Bool

    /// Whether the configuration, or the environment that it refers to, names a next proxy there, by this host or by this address.
    func isNextProxy(_ host: DestinationHost, _ address: IPAddress, port: UInt16) -> Bool {
        guard hasRoutes else { return false }
        return routes.nextProxies.contains { proxy in
            proxy.endpoint.port == port
                && (proxy.endpoint.host == host.description || proxy.endpoint.host == address.description)
        }
    }

    /// The PAC file of a rule.
    func script(from source: PACSource) -> PACScript {
        guard let script = scripts[source] else { preconditionFailure("every PAC file of a rule is read") }
        return script
    }

    /// The name of the recipe that a rule comes from. Nil for a rule of `cache.rules`.
    func recipe(ofRule number: Int) -> String? { cacheRules.rules[number - 1].recipe }

    /// What the rules say beyond a handling. Nil for most: then the rules are not even read.
    func particulars(of handling: CacheHandling) -> HandlingParticulars? {
        handling.hasParticulars ? cacheRules.particulars(of: handling) : nil
    }

    /// - Parameters:
    ///   - authentication: what the files of `access.authentication` gave. Without users, every password is wrong.
    ///   - secrets: those of `credentials`. A credential without one refuses its requests.
    ///   - listenerTLS: what the files of `listen` gave.
    ///   - originTLS: what the files of `origins` gave.
    ///   - scripts: the PAC files of `routes`.
    ///   - environment: what the environment says of next proxies, for `via: environment`.
    ///   - earlier: the configuration in force. What did not change of its TLS goes on.
    ///   - interceptor: made with the authority of `intercept.ca`; nil without one.
    package init(
        configuration: Configuration, authentication: AuthenticationMaterial = AuthenticationMaterial(),
        interceptor: Interceptor? = nil, pages: Pages = Pages(),
        secrets: SecretShelf = SecretShelf(), listenerTLS: [ListenerTLSSettings: ListenerTLS] = [:],
        originTLS: [TLSMaterial] = [], scripts: [PACSource: PACScript] = [:],
        environment: ProxyEnvironment = ProxyEnvironment(), after earlier: Snapshot? = nil
    ) throws(TLSContextError) {
        self.configuration = configuration
        self.interceptor = interceptor
        self.listenerTLS = listenerTLS
        self.pages = pages
        interception = InterceptionPolicy(configuration.intercept)
        access = AccessPolicy(from: configuration.access)
        lenientAccess = AccessPolicy(from: configuration.access.lenient)
        var policy = CachePolicy()
        policy.heuristicLifetimeMax = Seconds(configuration.cache.heuristicLifetimeMax.components.seconds)
        cachePolicy = policy
        cacheRules = configuration.cacheRules
        cacheRulesDependOnType = cacheRules.dependOnType
        cacheRulesDependOnIndexes = cacheRules.dependOnIndexes
        usesCookies = configuration.origins.contains { $0.cookies != nil }
        routes = RouteTable(builtIn: CheckOrigin.host, rules: configuration.routes, environment: environment)
        let keysAreOfRulesAlone =
            CredentialTable(configuration.credentials).isEmpty && !usesCookies && !routes.dependsOnClient
        cacheRulesAreTrivial = cacheRules.isTrivial && keysAreOfRulesAlone
        allowsShortWays = keysAreOfRulesAlone && !cacheRulesDependOnIndexes
        cacheRulesDependOnUser =
            cacheRules.dependOnUser || CredentialTable(configuration.credentials).dependsOnUser
            || (usesCookies && configuration.origins.contains(where: \.conditions.dependOnUser))
            || routes.dependsOnUser
        defaultHandling = cacheRules.defaultHandling
        limits = configuration.limits
        hasRoutes = !configuration.routes.isEmpty
        routesDependOnClient = routes.dependsOnClient
        routesHaveCredentials = routes.hasCredentials
        self.scripts = scripts
        bandwidth = configuration.bandwidth
        limitPlan = configuration.limitPlan
        countsConnections = limitPlan.countsConnections
        limitsBandwidth = !bandwidth.isUnlimited || configuration.origins.contains { $0.bandwidth != nil }
        originCircuit = configuration.circuit.terms
        tls = try TLSContexts(configuration.tls, originTLS, after: earlier?.tls)
        let timeouts = configuration.timeouts
        origins = OriginTable(
            configuration.origins,
            general: OriginTerms(
                connect: timeouts.connect, firstByte: timeouts.firstByte, idle: timeouts.idle, total: timeouts.total,
                retriesMax: configuration.retries.countMax,
                connections: ConnectionTerms(
                    countMax: configuration.limits.originConnectionsMax, idle: timeouts.originKeepAlive)),
            profiles: tls.profiles)
        followsRedirects = origins.followsRedirects
        credentials = CredentialTable(configuration.credentials)
        usesPlaceholders = credentials.hasPlaceholders
        self.secrets = secrets
        self.authentication = AuthenticationShelf(configuration.access.authentication, authentication)
        readsCredentials = !configuration.access.authentication.offered.isEmpty
        mayHaveIdentity = configuration.access.authentication.isConfigured
        requiresIdentity = configuration.access.authentication.isRequired
        isCertificateRequired = requiresIdentity && !readsCredentials
    }
}
