import EventLoop
import Glibc
package import Message
import Releases
package import Settings
package import YAML

/// The result of reading the configuration, for every command that needs settings.
package struct ConfigurationReading {
    /// The file that was read. Nil if there was none, and the defaults apply.
    package let file: String?
    /// Nil if there are errors.
    package var configuration: Configuration?
    package private(set) var errors: [ConfigurationError]
    package var warnings: [ConfigurationError]
    private let loaded: LoadedConfiguration?

    /// The configuration, although it may lack the authority that `larder ca` is to make. Nil if there are other errors.
    package var withoutAuthority: Configuration? { errors.allSatisfy(\.isMissingAuthority) ? loaded?.draft : nil }

    package var name: String { file ?? "built-in defaults" }

    fileprivate init(_ root: ConfigurationNode?, file: String?) {
        let loaded = loadConfiguration(root, file: file ?? "built-in defaults", recipes: RecipeBook.all)
        self.file = file
        self.loaded = loaded
        configuration = loaded.configuration
        errors = loaded.errors
        warnings = loaded.warnings
    }

    /// A file that cannot be read, or is not YAML.
    fileprivate init(unreadable file: String, line: Int, _ message: String) {
        self.file = file
        loaded = nil
        configuration = nil
        errors = [ConfigurationError(file: file, line: line, key: "", message: message)]
        warnings = []
    }

    /// Adds these faults as errors, in the order of their lines.
    mutating func reject(_ faults: [ProvisioningFault]) {
        guard !faults.isEmpty else { return }
        errors = (errors + faults.map { problem($0) }).enumerated().sorted {
            ($0.element.line, $0.offset) < ($1.element.line, $1.offset)
        }.map(\.element)
        configuration = nil
    }

    /// Warns of exceptions from a minimum age that have ended: they are left over, or the package waits again although somebody wanted it.
    package mutating func checkBreakGlass(now: WallTime) {
        for (index, use) in (configuration?.recipes ?? []).enumerated() {
            for (number, entry) in (use.minimumAge?.breakGlass ?? []).enumerated() where entry.until <= now {
                warnings.append(
                    problem(
                        "recipes[\(index + 1)].min_age.break_glass[\(number + 1)]",
                        "the exception for \(entry.package) ended \(utc(entry.until)): \(entry.why)",
                        hint: "remove it, or set a later date"))
            }
        }
    }

    /// A problem with a setting that was found when it was used, with file and line if they are known.
    package func problem(_ key: String, _ message: String, hint: String? = nil) -> ConfigurationError {
        // The key of the only listener has no number, also where it stands in a list.
        let places = key.hasPrefix("listen.") ? [key, "listen[1]\(key.dropFirst("listen".count))"] : [key]
        let line = places.compactMap { loaded?.problem($0, message).line }.max() ?? 0
        return ConfigurationError(file: name, line: line, key: key, message: message, hint: hint)
    }
}

/// The defaults, without a file.
package func readDefaultConfiguration() -> ConfigurationReading { ConfigurationReading(nil, file: nil) }

/// Reads a configuration file.
package func readConfiguration(file: String) -> ConfigurationReading {
    do throws(FileError) {
        return readConfiguration(text: try readFile(file), name: file)
    } catch {
        return ConfigurationReading(unreadable: file, line: 0, "cannot be read: \(systemErrorText(error.code))")
    }
}

/// Reads the text of a configuration file.
///
/// - Parameter name: what errors call it.
package func readConfiguration(text: [UInt8], name: String) -> ConfigurationReading {
    do throws(YAMLError) {
        return ConfigurationReading(try parseYAML(text).map(configurationNode), file: name)
    } catch {
        return ConfigurationReading(unreadable: name, line: error.line, error.message)
    }
}

/// Translates a YAML tree into the tree that Settings reads: Settings does not know YAML.
package func configurationNode(_ node: YAMLNode) -> ConfigurationNode {
    let value: ConfigurationNode.Value =
        switch node.value {
        case .scalar(let text, let isQuoted): .scalar(text, isQuoted: isQuoted)
        case .sequence(let elements): .list(elements.map(configurationNode))
        case .mapping(let entries):
            .mapping(entries.map { .init(key: $0.key, keyLine: $0.keyLine, value: configurationNode($0.value)) })
        }
    return ConfigurationNode(value, line: node.line, column: node.column)
}
