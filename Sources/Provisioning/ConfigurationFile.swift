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

    /// Reads the authority of `intercept.ca`, and adds what is wrong with it. That it does not exist on this machine is a warning.
    package mutating func checkInterception() {
        guard let configuration else { return }
        do throws(ProvisioningFault) {
            guard let interceptor = try readInterceptor(configuration.intercept) else { return }
            warnings += remarks(on: interceptor).map { problem("intercept.ca", $0) }
        } catch {
            if error.isAuthorityMissing { return warnings.append(problem(error)) }
            reject(error)
        }
    }

    /// Reads the files of `access.authentication`, and adds what is wrong with them. If one is missing, the configuration is for another machine.
    package mutating func checkAuthentication() {
        guard let configuration else { return }
        let settings = configuration.access.authentication
        // Without them no user of the directory could log in: they are needed where the configuration is checked, too.
        for (key, path) in [
            ("password_file", settings.directory.accountPasswordFile), ("ca_file", settings.directory.authorityFile),
        ] {
            guard let path, !fileExists(path) else { continue }
            return reject(
                ProvisioningFault(
                    "access.authentication.directory.\(key)", FileError(path: path, code: ENOENT).text))
        }
        if let fault = faultOfKeytab(settings.negotiate) {
            warnings.append(problem("access.authentication.negotiate.keytab", fault))
        }
        guard settings.files.allSatisfy(fileExists) else { return }
        do throws(ProvisioningFault) {
            try checkDirectoryAuthorities(configuration)
            warnings += remarks(on: try readAuthentication(settings, fetched: nil), settings).map {
                problem("access.authentication", $0)
            }
        } catch { reject(error) }
    }

    /// Reads the files of `fleet`, and adds what is wrong with them. If one is missing, the configuration is for another machine.
    package mutating func checkFleet() {
        guard let configuration else { return }
        let fleet = configuration.fleet
        let files = [fleet.secretFile, fleet.passwordFile, fleet.authorityFile].compactMap { $0 }
        guard (files + (fleet.peer.tls?.files ?? [])).allSatisfy({ fileExists($0) }) else { return }
        do throws(ProvisioningFault) { _ = try readFleet(configuration) } catch { reject(error) }
    }

    /// Reads the files that access rules name, and adds what is wrong with them.
    package mutating func checkLists() {
        guard let access = configuration?.access else { return }
        do throws(ProvisioningFault) { configuration?.access = try readLists(access) } catch { reject(error) }
    }

    /// Reads the files of `tls` in `origins`, and adds what is wrong with them.
    package mutating func checkOriginTLS() {
        guard let configuration else { return }
        do throws(ProvisioningFault) {
            warnings += try OriginTLSReading(configuration).remarks.map { problem($0) }
        } catch { reject(error) }
    }

    /// Reads and fetches the PAC files of `routes` and asks each for one origin, reads the environment if a rule wants it, and adds what is wrong
    /// with them.
    package mutating func checkRoutes(_ fetch: PACFetcher) {
        guard let configuration else { return }
        do throws(ProvisioningFault) { _ = try readProxyEnvironment(for: configuration.routes) } catch { reject(error) }
        do throws(ProvisioningFault) {
            warnings += try tryPACFiles(configuration, fetch).map { problem($0) }
        } catch { reject(error) }
    }

    mutating func reject(_ fault: ProvisioningFault) {
        errors.append(problem(fault))
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
        loaded?.problem(key, message, hint: hint)
            ?? ConfigurationError(file: name, line: 0, key: key, message: message, hint: hint)
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
