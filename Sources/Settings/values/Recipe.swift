package import Caching
import Message
package import Releases
package import Rules

/// What Larder knows about the addresses of a package ecosystem: which never change, which are indexes, what is never stored.
///
/// A recipe is a data file (Sources/Provisioning/recipes). Its rules are in the grammar of `cache.rules`; their hosts come from the configuration.
package struct Recipe: Sendable, Equatable {
    package let name: String
    /// One line for `larder recipe list`.
    package let about: String
    /// In the order in which they are consulted. None of them names a host.
    package let rules: [CacheRule]
    /// Rules that are consulted after those of all recipes in use: for paths that may be of another ecosystem.
    package let rulesElsewhere: [CacheRule]

    /// Some of the rules say that their responses offer releases, so that they can have a minimum age.
    package var hasReleases: Bool { rules.contains { $0.changes.release != nil } }

    /// Registries that limit requests say 429. That they do is why many people have a cache.
    static let failureStatuses: FailureStatuses = .tooManyRequests

    /// The rule for the paths that no other rule of a recipe matches. A path that changes must not be taken for one that does not, and asking
    /// once too often costs one 304.
    static let otherPaths: CacheRule = {
        var rule = CacheRule(note: "all other paths", number: 0)
        rule.changes.use = .revalidateAlways
        return rule
    }()
}

/// One element of `recipes`: a recipe, and the hosts for which it holds.
package struct RecipeUse: Sendable, Equatable {
    package var name: String
    package var hosts: [HostPattern]
    /// The zone that stores the responses. Nil stands for the default zone.
    package var zone: String?
    /// How requests with credentials are treated. Nil if the recipe or RFC 9111 decides.
    package var authorization: AuthorizationUse?
    /// What counts as a failure of the hosts, beside 5xx. Nil if the recipe or its default decides.
    package var failureStatuses: FailureStatuses?
    /// What belongs to the owners of credentials: paths as in `@acme/*`, in every place and spelling.
    package var privatePaths: [PathPattern]
    /// How old releases have to be. Nil if they may be of any age.
    package var minimumAge: MinimumAge?
    package var line: Int
    /// Found by its name after the file has been read. Nil if there is no such recipe, which is an error.
    package var recipe: Recipe?

    /// The rules of the recipe for these hosts.
    fileprivate var rules: [CacheRule] { recipe.map { $0.rules.map(placed) } ?? [] }

    /// Private packages are stored for each credential, as long as the origin says.
    fileprivate var privateRules: [CacheRule] {
        guard !privatePaths.isEmpty else { return [] }
        var rule = CacheRule(note: "private packages", number: 0)
        rule.changes.authorization = .separate
        rule = placed(rule)
        rule.conditions.paths = privatePaths
        rule.changes.authorization = .separate
        return [rule]
    }

    fileprivate var rulesElsewhere: [CacheRule] { recipe.map { $0.rulesElsewhere.map(placed) } ?? [] }

    fileprivate var ruleForOtherPaths: CacheRule { placed(Recipe.otherPaths) }

    private func placed(_ rule: CacheRule) -> CacheRule {
        var rule = rule
        rule.conditions.hosts = hosts
        rule.zone = zone
        // What the stores of an ecosystem sign is one thing, whatever its signature.
        var key = rule.key ?? KeyRules()
        key.signature = key.signature ?? []
        // The hosts of one use are mirrors of each other, as far as digests go. The first stands for all.
        key.digestHost = hosts.first.map { hostInKey($0) }
        rule.key = key
        rule.changes.authorization = authorization ?? rule.changes.authorization
        rule.changes.failureStatuses =
            failureStatuses ?? rule.changes.failureStatuses ?? Recipe.failureStatuses
        if rule.changes.release != nil { rule.changes.minimumAge = minimumAge ?? rule.changes.minimumAge }
        rule.recipe = name
        rule.line = line
        return rule
    }
}

/// A host as it stands in a URI.
private func hostInKey(_ pattern: HostPattern) -> String {
    switch pattern {
    case .any: "*"
    case .exact(let name): name
    case .below(let suffix): String(suffix.dropFirst())
    case .address(let address): address.isV4 ? "\(address)" : "[\(address)]"
    }
}

extension Configuration {
    /// The rules of all recipes in use, numbered after those of `cache.rules`.
    ///
    /// One host can serve several ecosystems. If two recipes have rules for one path, the more special one decides, whichever recipe is named first;
    /// within a recipe, the first. What the operator names as private comes before all that recipes say, and rules for other paths come last.
    package var recipeRules: [CacheRule] {
        let rules =
            recipes.flatMap(\.privateRules) + mostSpecialFirst(recipes.map(\.rules)) + recipes.flatMap(\.rulesElsewhere)
            + recipes.map(\.ruleForOtherPaths)
        return rules.enumerated().map { index, rule in
            var rule = rule
            rule.number = cache.rules.count + index + 1
            return rule
        }
    }
}
