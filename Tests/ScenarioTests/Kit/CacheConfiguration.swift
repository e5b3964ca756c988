import Settings
import Testing
import YAML

/// A scenario whose `cache:` section is written as its users write it.
///
/// - Parameter cache: YAML; `ORIGIN` stands for the port of the scripted origin, `DIRECTORY` for a directory of
///   its own. What it does not say of `memory` is as in every scenario.
func scenario(
    cache: String, sourceLocation: SourceLocation = #_sourceLocation,
    _ configure: (inout Configuration, Scenario.Files) throws -> Void = { _, _ in }, _ play: (Scenario) throws -> Void
) throws {
    try scenario(
        {
            try $0.read(cache: cache, $1)
            try configure(&$0, $1)
        }, sourceLocation: sourceLocation, play)
}

extension Scenario {
    /// Another `cache:` section for requests that begin from now on.
    func adopt(cache: String) throws { try adopt { try $0.read(cache: cache, $1) } }
}

extension Configuration {
    /// - Throws: what is wrong with the text.
    mutating func read(cache text: String, _ files: Scenario.Files) throws {
        let text = text.replacing("ORIGIN", with: "\(files.origin.port)").replacing(
            "DIRECTORY", with: files.directory.path)
        let lines = text.split(separator: "\n").map { "  \($0)\n" }.joined()
        // Rules by user want to know that users are asked for.
        let users =
            access.authentication.basic.usersFile.map {
                "access: { authentication: { basic: { users: \"\($0)\" } } }\n"
            } ?? ""
        let root = try parseYAML(Array("\(users)cache:\n\(lines)".utf8)).map { ConfigurationNode($0) }
        let result = loadConfiguration(root, file: "larder.yaml")
        guard let loaded = result.configuration else { throw WireError("\(result.errors)") }
        let memory = cache.memory
        cache = loaded.cache
        if cache.memory == Configuration().cache.memory { cache.memory = memory }
    }
}

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
