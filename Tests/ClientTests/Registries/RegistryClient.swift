import Testing

/// A client of package registries: what a registry of its kind has, and how the client installs from it.
struct RegistryClient: Sendable, CustomTestStringConvertible {
    let name: String
    /// What stands in an entry of `recipes`, without its hosts.
    let recipe: String
    /// The client can be tested if all of these are installed.
    let programs: [String]
    var ways = Way.allCases
    /// Directives of nginx.
    var server = ""
    /// Whether each request goes to the origin, which may answer 304.
    var isValidated = false
    /// Writes the registry's files into `www`. Returns the paths of the artefacts: what is the same for ever under its address.
    let publish: @Sendable (ProxiedHost) async throws -> [String]
    /// Installs something from the registry into a new home.
    let install: @Sendable (ProxiedHost, _ home: Home) async throws -> Workplace.Output
    /// A file in the home that is there afterwards.
    let installs: String

    static let all = [pip, uv, npm, cargo, go, maven, gem, composer, skopeo, skopeoWithTokens, apt]

    /// The cookie of a content delivery network, which some recipes drop.
    static let cookie = "add_header Set-Cookie '_cfuvid=secret; path=/'; "

    var isInstalled: Bool { programs.allSatisfy { installed($0) != nil } }
    var testDescription: String { name }
}

/// A home directory that nobody has used yet.
struct Home: Sendable {
    /// Its name in the workplace.
    let name: String
    let path: String
}

extension ProxiedHost {
    /// What most clients are told: the proxy, whom to trust, and where their home is.
    func environment(home: Home) -> [String: String] {
        var result = proxy
        result["HOME"] = home.path
        result["SSL_CERT_FILE"] = root
        return result
    }
}
