import Settings
import YAML

/// What reading the configuration came to: for `serve`, for `check`, and for those who look up the admin socket.
struct ConfigurationReading {
    /// The file that was read; nil: there was none, the defaults hold.
    var file: String?
    /// Nil where there are errors.
    var configuration: Configuration?
    var errors: [ConfigurationError]
    var warnings: [ConfigurationError]

    var name: String { file ?? "built-in defaults" }
}

private let configurationPaths = ["larder.yaml", "/etc/larder/larder.yaml"]

/// Reads the file `--config` names, else the first of the usual ones that exists, else takes the defaults.
func readConfiguration(_ arguments: Arguments) -> ConfigurationReading {
    guard let file = arguments[.config] ?? configurationPaths.first(where: fileExists) else {
        return load(nil, file: nil)
    }
    do throws(FileError) {
        return parse(try readFile(file), file: file)
    } catch {
        return failed(file, line: 0, "can not be read: \(FileError(path: "", code: error.code).text.dropFirst(2))")
    }
}

private func parse(_ text: [UInt8], file: String) -> ConfigurationReading {
    do throws(YAMLError) {
        return load(try parseYAML(text).map(configurationNode), file: file)
    } catch {
        return failed(file, line: error.line, error.message)
    }
}

private func load(_ root: ConfigurationNode?, file: String?) -> ConfigurationReading {
    let (configuration, errors, warnings) = loadConfiguration(root, file: file ?? "built-in defaults")
    return ConfigurationReading(file: file, configuration: configuration, errors: errors, warnings: warnings)
}

private func failed(_ file: String, line: Int, _ message: String) -> ConfigurationReading {
    let error = ConfigurationError(file: file, line: line, key: "", message: message)
    return ConfigurationReading(file: file, configuration: nil, errors: [error], warnings: [])
}

/// The settings know no YAML; here the two trees meet.
func configurationNode(_ node: YAMLNode) -> ConfigurationNode {
    let value: ConfigurationNode.Value =
        switch node.value {
        case .scalar(let text, let isQuoted): .scalar(text, isQuoted: isQuoted)
        case .sequence(let elements): .list(elements.map(configurationNode))
        case .mapping(let entries):
            .mapping(entries.map { .init(key: $0.key, keyLine: $0.keyLine, value: configurationNode($0.value)) })
        }
    return ConfigurationNode(value, line: node.line, column: node.column)
}
