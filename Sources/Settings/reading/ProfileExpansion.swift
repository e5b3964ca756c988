import Access
import Caching
import Interception
import Message
import Rules

// `allow: { profile: NAME, … }` in `access.rules`: what stands there in place of rules is replaced by the rules of the profile when recipes
// and interception are known. Conditions on users, clients and addresses go into each of them.

/// Whether a profile has what it needs.
///
/// - Parameter reader: refuses what the profile says itself, and requires what only people can say.
func checkProfile(_ profile: AccessProfile, _ conditions: RuleConditions, _ reader: inout MappingReader) {
    let name = profile.rawValue
    reader.refuse("method", "the profile \(name) names the methods", hint: "leave method out")
    reader.refuse("intercept", "the profile \(name) opens tunnels if intercept.ca names an authority")
    switch profile {
    case .packagesRead:
        reader.refuse("path", "the paths are those of the recipes", hint: "leave path out")
    case .sourceRead: reader.require("host")
    case .modelAPI:
        reader.require("host")
        reader.require("path")
    }
    if conditions.hosts.contains(.any) {
        reader.refuse("host", "a profile is for the hosts that you name", hint: "name them, or *.example.org")
    } else if !conditions.hostLists.isEmpty {
        // They are read later, when it is too late to know their recipes.
        reader.refuse("host", "a profile cannot have its hosts from a file", hint: "name them in the rule")
    }
}

extension Configuration {
    /// Replaces each rule with a profile by the rules of the profile, and numbers all rules anew.
    mutating func expandProfiles(_ reader: ConfigurationReader) -> (
        errors: [ConfigurationError], warnings: [ConfigurationError]
    ) {
        guard access.rules.contains(where: { $0.profile != nil }) else { return ([], []) }
        var errors: [ConfigurationError] = []
        var warnings: [ConfigurationError] = []
        var rules: [AccessRule] = []
        for rule in access.rules {
            guard let profile = rule.profile else {
                rules.append(rule)
                continue
            }
            let key = "access.rules[\(rule.number)].allow.profile"
            let expansion = ProfileExpansion(rule, profile, recipes: recipes, opensTunnels: intercept.isOn)
            rules += expansion.rules
            if let problem = expansion.problem {
                errors.append(reader.error(key, line: rule.line, problem.message, hint: problem.hint))
            } else if !intercept.isOn {
                let hosts = rule.conditions.hosts.map { "\($0)" }.joined(separator: ", ")
                warnings.append(
                    reader.error(
                        key, line: rule.line,
                        "the profile \(profile.rawValue) looks at paths and methods, and tunnels to \(hosts.isEmpty ? "the hosts of recipes" : hosts) are not opened: https is denied",
                        hint: "intercept.ca names an authority; larder ca create makes one"))
            }
        }
        access.rules = rules.enumerated().map { index, rule in
            var rule = rule
            rule.number = index + 1
            return rule
        }
        return (errors, warnings)
    }
}

/// The rules that stand for one rule with a profile.
struct ProfileExpansion {
    private(set) var rules: [AccessRule] = []
    /// Why there are none.
    private(set) var problem: (message: String, hint: String?)?
    private let rule: AccessRule
    private let opensTunnels: Bool

    init(_ rule: AccessRule, _ profile: AccessProfile, recipes: [RecipeUse], opensTunnels: Bool) {
        self.rule = rule
        self.opensTunnels = opensTunnels
        switch profile {
        case .packagesRead: readPackages(recipes)
        case .sourceRead: readSource()
        case .modelAPI:
            addTunnels(to: rule.conditions.hosts)
            var posts = made(rule.conditions.hosts, ["POST"], rule.conditions.paths)
            if rule.conditions.details.bodyLength == nil {
                posts.conditions.details.bodyLength = 0...ProfileExpansion.modelBodyMax
            }
            rules.append(posts)
        }
    }

    /// The longest body of a request to a model, where the rule says nothing else: room for long contexts and some images.
    static let modelBodyMax: UInt64 = 10 << 20

    // MARK: packages-read

    private mutating func readPackages(_ recipes: [RecipeUse]) {
        guard !recipes.isEmpty else {
            problem = ("no recipe is in use, so no host is allowed", "name the hosts of your packages in recipes")
            return
        }
        let wanted = rule.conditions.hosts
        for host in wanted where !recipes.contains(where: { $0.hosts.contains { $0.covers(host) || $0 == host } }) {
            problem = ("\(host) is not among the hosts of recipes", "add it to the hosts of its recipe")
            return
        }
        var known: [HostPattern] = []
        for use in recipes {
            let hosts =
                wanted.isEmpty
                ? use.hosts : wanted.filter { host in use.hosts.contains { $0.covers(host) || $0 == host } }
            known += hosts.filter { !known.contains($0) }
        }
        addTunnels(to: known)
        for use in recipes {
            let hosts =
                wanted.isEmpty
                ? use.hosts : wanted.filter { host in use.hosts.contains { $0.covers(host) || $0 == host } }
            let readable = (use.recipe?.rules ?? []).filter { rule in
                rule.conditions.methods.isEmpty || !Set(rule.conditions.methods).isDisjoint(with: ["GET", "HEAD"])
            }
            var paths: [PathPattern] = []
            for path in readable.flatMap(\.conditions.paths) where !paths.contains(path) { paths.append(path) }
            if !hosts.isEmpty, !paths.isEmpty { add(hosts, ["GET", "HEAD"], paths) }
        }
    }

    // MARK: source-read

    /// What git asks for: the references, by either protocol, and what it needs of them. What forges make of a revision.
    private static let readPaths = [
        "/info/refs", "/HEAD", "/objects/*", "/archive/*", "/tarball/*", "/zipball/*", "/tar.gz/*", "/zip/*",
    ]
    private static let fetchPaths = ["/git-upload-pack"]
    private static let pushPaths = ["/git-receive-pack"]
    /// What a push asks for first.
    private static let referencePaths = ["/info/refs"]
    private static let pushQuery = "service=git-receive-pack"

    private mutating func readSource() {
        let repositories = rule.conditions.paths.isEmpty ? ["*"] : rule.conditions.paths.map { "\($0)" }
        func paths(_ ends: [String]) -> [PathPattern] {
            repositories.flatMap { repository in
                let start = repository.hasSuffix("/") ? String(repository.dropLast()) : repository
                return ends.compactMap { PathPattern(start + $0) }
            }
        }
        var push = made(rule.conditions.hosts, [], paths(Self.pushPaths))
        push.effect = .deny(reason: ProfileExpansion.noPushes)
        rules.append(push)
        var references = made(rule.conditions.hosts, [], paths(Self.referencePaths))
        references.effect = push.effect
        references.conditions.details.queries = [Self.pushQuery]
        rules.append(references)
        addTunnels(to: rule.conditions.hosts)
        add(rule.conditions.hosts, ["GET", "HEAD"], paths(Self.readPaths))
        add(rule.conditions.hosts, ["POST"], paths(Self.fetchPaths))
    }

    private static let noPushes = "source-read allows no pushes"

    // MARK: rules

    /// CONNECT, where the requests inside are seen. Otherwise there is none: a tunnel hides methods and paths.
    private mutating func addTunnels(to hosts: [HostPattern]) {
        guard opensTunnels, !hosts.isEmpty else { return }
        var tunnels = made(hosts, ["CONNECT"], [])
        if rule.conditions.ports.isEmpty { tunnels.conditions.ports = [443...443] }
        tunnels.intercept = true
        // What is inside is looked at there.
        let details = tunnels.conditions.details
        tunnels.conditions.details = DetailConditions()
        tunnels.conditions.details.times = details.times
        tunnels.conditions.details.zone = details.zone
        rules.append(tunnels)
    }

    private mutating func add(_ hosts: [HostPattern], _ methods: [String], _ paths: [PathPattern]) {
        rules.append(made(hosts, methods, paths))
    }

    private func made(_ hosts: [HostPattern], _ methods: [String], _ paths: [PathPattern]) -> AccessRule {
        var made = rule
        made.conditions.hosts = hosts
        made.conditions.methods = methods
        made.conditions.paths = paths
        if rule.conditions.ports.isEmpty { made.conditions.ports = [80...80, 443...443] }
        return made
    }
}
