package import Caching
import Message
package import Rules

/// Merges lists of rules. A more special rule comes first, and each list keeps its order: a rule counts as no less special than those behind it.
func mostSpecialFirst(_ lists: [[CacheRule]]) -> [CacheRule] {
    var ranked: [(rule: CacheRule, rank: Int)] = []
    for list in lists {
        var rank = 0
        var ranks: [Int] = []
        for rule in list.reversed() {
            rank = max(rank, specificity(of: rule))
            ranks.append(rank)
        }
        ranked += zip(list, ranks.reversed()).map { (rule: $0, rank: $1) }
    }
    // Stable: equal ranks stay in the order of the lists.
    return ranked.enumerated()
        .sorted { ($1.element.rank, $0.offset) < ($0.element.rank, $1.offset) }
        .map(\.element.rule)
}

/// A rule is as special as the least special of its paths.
private func specificity(of rule: CacheRule) -> Int { rule.conditions.paths.map(\.settledBytes).min() ?? 0 }

/// Warns of recipes that share paths of a host.
///
/// - Parameter configuration: its recipes have been found.
func recipeWarnings(_ configuration: Configuration, _ reader: ConfigurationReader) -> [ConfigurationError] {
    configuration.recipeOverlaps.map { overlap in
        let (one, other) = overlap.recipes
        return reader.error(
            "recipes[\(overlap.position)]",
            """
            the recipes \(one) and \(other) both have rules for paths of \(overlap.host), such as \(overlap.path); the more special rule decides
            """, hint: "larder recipe test URL shows which rule decides about a URL")
    }
}

extension Configuration {
    /// For each pair of recipes that share a host and have different rules for some path: an example of such a path.
    package var recipeOverlaps: [RecipeOverlap] {
        var overlaps: [RecipeOverlap] = []
        for (index, use) in recipes.enumerated() {
            for other in recipes[..<index] where other.name != use.name {
                guard
                    let host = use.hosts.first(where: { host in
                        other.hosts.contains { $0.covers(host) || host.covers($0) }
                    }),
                    let path = Configuration.disputedPath(use, other) ?? Configuration.disputedPath(other, use)
                else { continue }
                overlaps.append(
                    RecipeOverlap(position: index + 1, recipes: (other.name, use.name), host: "\(host)", path: path))
            }
        }
        return overlaps
    }

    /// What other recipes would say of a request about which a rule decides: the first rule of each that matches, other than those for all other paths.
    package func otherClaims(on request: RuleRequest, than rule: CacheRule) -> [CacheRule] {
        guard let name = rule.recipe else { return [] }
        var seen: Set<String> = [name]
        return recipeRules.filter { other in
            guard let recipe = other.recipe, !seen.contains(recipe), !other.conditions.paths.isEmpty,
                other.conditions.holdForRequest(request, paths: .asSent)
            else { return false }
            seen.insert(recipe)
            return true
        }
    }

    /// A path of a rule of one recipe for which a rule of the other says something else.
    private static func disputedPath(_ use: RecipeUse, _ other: RecipeUse) -> String? {
        for rule in use.recipe?.rules ?? [] {
            for pattern in rule.conditions.paths {
                let path = pattern.example
                guard let first = use.recipe?.rules.first(where: { matches($0, path) }), first == rule,
                    let rival = other.recipe?.rules.first(where: { matches($0, path) }),
                    !saysTheSame(rule, rival)
                else { continue }
                return String(decoding: path, as: UTF8.self)
            }
        }
        return nil
    }

    private static func matches(_ rule: CacheRule, _ path: [UInt8]) -> Bool {
        rule.conditions.paths.contains { $0.matches(path[...]) }
    }

    private static func saysTheSame(_ one: CacheRule, _ other: CacheRule) -> Bool {
        var (first, second) = (CacheHandling(), CacheHandling())
        one.changes.apply(to: &first)
        other.changes.apply(to: &second)
        return first == second
    }
}

/// Two recipes with rules for the same path of a host.
package struct RecipeOverlap: Sendable {
    /// Of the second recipe in `recipes`, from 1.
    package let position: Int
    package let recipes: (String, String)
    package let host: String
    /// An example.
    package let path: String
}
