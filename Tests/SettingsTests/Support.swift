import Settings
import Testing
import YAML

extension ConfigurationNode {
    init(_ node: YAMLNode) {
        let value: Value
        switch node.value {
        case .scalar(let text, let isQuoted): value = .scalar(text, isQuoted: isQuoted)
        case .sequence(let elements): value = .list(elements.map { ConfigurationNode($0) })
        case .mapping(let entries):
            value = .mapping(
                entries.map { Entry(key: $0.key, keyLine: $0.keyLine, value: ConfigurationNode($0.value)) })
        }
        self.init(value, line: node.line, column: node.column)
    }
}

func load(
    _ text: String
) throws -> (configuration: Configuration?, errors: [ConfigurationError], warnings: [ConfigurationError]) {
    let result = loadConfiguration(
        try parseYAML(Array(text.utf8)).map { ConfigurationNode($0) }, file: "larder.yaml",
        recipes: [try recipe("npm", ofReleases), try recipe("debian"), try recipe("python", ofReleases)])
    return (result.configuration, result.errors, result.warnings)
}

/// The configuration of a text that is fine.
func loaded(_ text: String) throws -> Configuration {
    let (configuration, errors, _) = try load(text)
    #expect(errors == [])
    return try #require(configuration)
}

private let ofReleases =
    "about: a test\nrules: [ { note: files, match: { path: /f/* }, immutable: yes, release: file } ]"

/// A recipe with one rule.
func recipe(
    _ name: String, _ text: String = "about: a test\nrules: [ { note: files, match: { path: /f/* }, immutable: yes } ]"
) throws -> Recipe {
    let loaded = loadRecipe(ConfigurationNode(try #require(try parseYAML(Array(text.utf8)))), name: name)
    #expect(loaded.errors == [])
    return try #require(loaded.recipe)
}
