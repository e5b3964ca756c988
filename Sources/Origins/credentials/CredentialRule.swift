package import Routing
package import Credentials
package import Rules

/// What NTLM and Negotiate need besides a user and a password.
package struct DirectoryNames: Sendable, Equatable {
    /// Of NTLM. Nil if the user names it, or has none.
    package var domain: String?
    /// Of Negotiate: the service in the names of principals, as in `HTTP/host`.
    package var service: String

    package init(domain: String? = nil, service: String = DirectoryNames.serviceOfHTTP) {
        self.domain = domain
        self.service = service
    }

    /// RFC 4559 §4.1.
    package static let serviceOfHTTP = "HTTP"
}

/// How a credential proves itself.
package enum CredentialMeans: Sendable, Equatable {
    /// With a user and a password (RFC 7617, RFC 7616, [MS-NLMP], RFC 4559). The strongest scheme that the origin offers is used, among these.
    ///
    /// `isUnasked`: with each request, asked for or not. Otherwise once the origin has asked, and from then on with each request.
    case password(
        user: String, schemes: Set<ChallengeScheme>, isUnasked: Bool, names: DirectoryNames = DirectoryNames())
    /// With tickets of Kerberos, by Negotiate alone (RFC 4559).
    ///
    /// `principal`: whose they are. Nil: of the first one in the keytab, or in the cache. `keytab`: a file with its key. Nil: the tickets are in
    /// the cache of the user that runs this process.
    case ticket(principal: String?, keytab: String?, service: String)
    /// With a token (RFC 6750), which goes out with each request.
    case bearer
    /// With a signature over each request (RFC 5849).
    case oauth1(clientKey: String, OAuth1.SignatureMethod, realm: String?)
    /// With a signature over each request (AWS Signature Version 4), for a region and a service.
    case sigv4(region: String, service: String)
    /// With the secret in place of a placeholder that the client sends.
    case placeholder(PlaceholderPlaces)

    /// Whether a next proxy can be shown it: the others sign what an origin gets, or stand for what a client sends.
    ///
    /// - Parameter kind: SOCKS knows a user and a password, as they are (RFC 1929).
    package func isForProxies(_ kind: NextProxy.Kind) -> Bool {
        switch (self, kind) {
        case (.password(_, let schemes, _, _), .socks5): schemes.contains(.basic)
        case (.password, .http), (.password, .https), (.ticket, .http), (.ticket, .https), (.bearer, .http),
            (.bearer, .https):
            true
        case (.ticket, .socks5), (.bearer, .socks5), (.oauth1, _), (.sigv4, _), (.placeholder, _): false
        }
    }

    /// The schemes by the names that the configuration has for them.
    package var schemeNames: [String] {
        switch self {
        case .password, .ticket: challengeSchemes.sorted().map { "\($0)" }
        case .bearer: ["bearer"]
        case .oauth1: ["oauth1"]
        case .sigv4: ["sigv4"]
        case .placeholder: ["placeholder"]
        }
    }

    /// The tickets of the user that runs this process prove it.
    package var needsNoSecret: Bool { if case .ticket(_, keytab: nil, _) = self { true } else { false } }

    /// Those that answer challenges.
    package var challengeSchemes: Set<ChallengeScheme> {
        switch self {
        case .password(_, let schemes, _, _): schemes
        case .ticket: [.negotiate]
        case .bearer, .oauth1, .sigv4, .placeholder: []
        }
    }

    /// Nil if clients hold no placeholders.
    package var placeholderPlaces: PlaceholderPlaces? {
        if case .placeholder(let places) = self { places } else { nil }
    }

    /// A log-in that has learnt nothing yet.
    package func logIn(at place: LogInPlace) -> LogIn {
        if case .proxy(.socks5, _) = place { return LogIn(to: .basic(realm: [])) }
        return switch self {
        // A password as it is needs no challenge.
        case .password(_, let schemes, let isUnasked, _):
            LogIn(needsChallenge: schemes != [.basic], isUnasked: isUnasked)
        case .ticket: LogIn(needsChallenge: true)
        case .bearer, .oauth1, .sigv4, .placeholder: LogIn(needsChallenge: false, isUnasked: true)
        }
    }
}

/// One entry of `credentials`: what Larder itself proves to origins, on behalf of the clients whose requests match, and to the next proxies of
/// the routes that name it.
package struct CredentialRule: Sendable, Equatable {
    /// What becomes of the `Authorization` of a client.
    package enum ClientUse: String, CaseIterable, Sendable {
        /// It is dropped: Larder's own takes its place.
        case replace
        /// It is forwarded, and nothing of Larder's is sent with that request.
        case pass
    }
    package var name: String
    package var means: CredentialMeans
    /// Which requests carry it to their origin. Its hosts are never empty. Nil: it is for next proxies alone.
    package var conditions: RuleConditions?
    package var secrets: [SecretPart: SecretSource]
    package var clientUse: ClientUse
    /// Credentials may go out over `http`, and over TLS with an origin that proves nothing, where everybody on the way can read them.
    package var allowsPlainHTTP: Bool
    /// The position in the list, from 1.
    package var number: Int
    /// The line in the configuration file; 0 if it does not come from a file.
    package var line: Int

    package init(
        name: String, _ means: CredentialMeans, _ conditions: RuleConditions?, secrets: [SecretPart: SecretSource],
        clientUse: ClientUse = .replace, allowsPlainHTTP: Bool = false, number: Int = 1, line: Int = 0
    ) {
        precondition(conditions?.hosts.isEmpty != true, "a credential is for named hosts")
        precondition(!secrets.isEmpty || means.needsNoSecret, "a credential has a secret")
        self.name = name
        self.means = means
        self.conditions = conditions
        self.secrets = secrets
        self.clientUse = clientUse
        self.allowsPlainHTTP = allowsPlainHTTP
        self.number = number
        self.line = line
    }
}

/// A secret of a credential, by its key in the configuration.
package enum SecretPart: String, CaseIterable, Sendable {
    case password
    /// A file with keys of Kerberos, as it is. Its path is known to the means as well: the library reads it there.
    case keytab
    /// Of `bearer`; of `oauth1`, whose tokens have a secret of their own.
    case token
    case clientSecret = "client_secret"
    case tokenSecret = "token_secret"
    /// With temporary keys it changes as often as the other two.
    case accessKey = "access_key"
    case secretKey = "secret_key"
    case sessionToken = "session_token"
}
