import Caching
import Rules
import Texts

/// The result of reading the file of a recipe.
package struct LoadedRecipe: Sendable {
    /// Nil if there are errors.
    package let recipe: Recipe?
    package let errors: [ConfigurationError]
}

/// Reads the tree of a recipe's file: `about`, what holds for all of its rules, `rules`, and `elsewhere`.
package func loadRecipe(_ root: ConfigurationNode, name: String) -> LoadedRecipe {
    var problems: [SettingProblem] = []
    let recipe = readRecipe(root, name: name, &problems)
    let errors = problems.map {
        ConfigurationError(
            file: "\(name).yaml", line: $0.line, key: String($0.place.drop { $0 == "." }), message: $0.message,
            hint: $0.hint)
    }
    return LoadedRecipe(recipe: errors.isEmpty ? recipe : nil, errors: errors)
}

private func readRecipe(_ node: ConfigurationNode, name: String, _ problems: inout [SettingProblem]) -> Recipe? {
    guard var reader = MappingReader(node, expected: "the keys about and rules", problems: &problems) else {
        return nil
    }
    let about = reader.requiredValue("about", .text(100))
    let general = readChanges(&reader)
    let kind = SettingKind<[CacheRule]>.elements("rules", allowed: "a list of rules", read: readRecipeRule)
    let rules = reader.requiredValue("rules", kind)
    let elsewhere = reader.value("elsewhere", kind)
    guard reader.finish("key", into: &problems), let about, let rules else { return nil }
    func completed(_ rule: CacheRule) -> CacheRule {
        var rule = rule
        rule.changes = rule.changes.over(general)
        return rule
    }
    return Recipe(
        name: name, about: about, rules: rules.map(completed), rulesElsewhere: (elsewhere ?? []).map(completed))
}

/// A rule of a recipe says what it is about, and names paths. Hosts, zones and what names them are for the configuration to say.
@Sendable
private func readRecipeRule(_ node: ConfigurationNode, number: Int, _ problems: inout [SettingProblem]) -> CacheRule? {
    guard let rule = readRule(node, number: number, isOfRecipe: true, &problems) else { return nil }
    let conditions = rule.conditions
    var allowed = RuleConditions()
    (allowed.paths, allowed.methods) = (conditions.paths, conditions.methods)
    let message: String? =
        if conditions != allowed || conditions.paths.isEmpty {
            "the match of a recipe's rule has path, and method if need be"
        } else if rule.zone != nil || !(rule.key?.isForRecipes ?? true) {
            "a recipe has no zone, and its keys have digest and signature at most"
        } else if rule.note == nil {
            "note is missing"
        } else { nil }
    guard let message else { return rule }
    problems.append(SettingProblem(node, message: message))
    return nil
}

extension SettingKind where Value == [RecipeUse] {
    /// `recipes`: a list of `use: NAME, hosts: [ … ]`.
    static var recipes: SettingKind {
        .elements("recipes", allowed: "a list of use: NAME with hosts: [ … ]", read: readUse)
    }
}

@Sendable
private func readUse(_ node: ConfigurationNode, number: Int, _ problems: inout [SettingProblem]) -> RecipeUse? {
    guard var reader = MappingReader(node, expected: "keys such as use: NAME and hosts: …", problems: &problems) else {
        return nil
    }
    let name = reader.requiredValue("use", .text(32))
    let hosts = reader.requiredValue("hosts", SettingKind<HostPattern>.hostPattern.list())
    let zone = reader.value("zone", .zoneName)
    let authorization: AuthorizationUse? = reader.value("authorization", .choice)
    let minimumAge = reader.value("min_age", .minimumAge)
    let failureStatuses = reader.value("failure_statuses", .failureStatuses)
    let privatePaths = reader.value("private", SettingKind<[PathPattern]>.packageScope.list())
    if hosts?.contains(.any) == true {
        reader.refuse("hosts", "a recipe is for the hosts of its ecosystem", hint: "name them, or *.example.org")
    }
    guard reader.finish("key", into: &problems), let name, let hosts else { return nil }
    return RecipeUse(
        name: name, hosts: hosts, zone: zone, authorization: authorization, failureStatuses: failureStatuses,
        privatePaths: privatePaths?.flatMap(\.self) ?? [], minimumAge: minimumAge, line: node.line)
}

extension SettingKind where Value == [PathPattern] {
    /// `@acme/*`, which clients also write `@acme%2fname`.
    static var packageScope: SettingKind {
        .scalar(
            "names of packages such as \"@acme/*\"",
            parse: { text in
                guard !text.hasPrefix("/"), !text.isEmpty else { return nil }
                let spellings = ["/", "%2f", "%2F"].map { text.replacing("/", with: $0) }
                let patterns = Set(spellings).sorted().map { PathPattern("*/\($0)") }
                return patterns.contains(nil) ? nil : patterns.compactMap(\.self)
            }, render: { $0.first.map { yamlQuoted("\($0)") } ?? "" })
    }
}

/// Finds the recipes that the configuration uses. Reports names that no recipe has, zones that do not exist, and a minimum age for a recipe without
/// releases.
func resolve(
    _ uses: inout [RecipeUse], among recipes: [Recipe], zones: [String], _ reader: ConfigurationReader
) -> [ConfigurationError] {
    var errors: [ConfigurationError] = []
    for index in uses.indices {
        let use = uses[index]
        uses[index].recipe = recipes.first { $0.name == use.name }
        if uses[index].recipe == nil {
            let near = nearestName(to: use.name, among: recipes.map(\.name)).map { "did you mean \($0)?" }
            errors.append(
                reader.error(
                    "recipes[\(index + 1)].use", "no recipe is called \"\(use.name)\"",
                    hint: near ?? "larder recipe list shows all of them"))
        }
        if let recipe = uses[index].recipe, use.minimumAge != nil, !recipe.hasReleases {
            let others = recipes.filter(\.hasReleases).map(\.name).joined(separator: ", ")
            errors.append(
                reader.error(
                    "recipes[\(index + 1)].min_age", "the recipe \(use.name) does not say which responses are releases",
                    hint: "these do: \(others)"))
        }
        if let zone = use.zone, !zones.contains(zone), !reader.hasErrors(in: "cache.zones") {
            let near = nearestName(to: zone, among: zones).map { "did you mean \($0)?" }
            errors.append(
                reader.error(
                    "recipes[\(index + 1)].zone", "no zone is called \"\(zone)\"",
                    hint: near ?? "zones are \(zones.joined(separator: ", "))"))
        }
    }
    return errors
}

extension KeyRules {
    /// They say only what holds for any hosts.
    fileprivate var isForRecipes: Bool { self == KeyRules(signature: signature, sharesDigests: sharesDigests) }
}
