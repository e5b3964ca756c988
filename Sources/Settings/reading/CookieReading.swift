import Message
import Origins
import Rules

/// One entry of `cookie_jars`.
package struct CookieJarSettings: Sendable, Equatable {
    package var name: String
    /// Where the jar is kept. Nil: it lives as long as the process.
    package var file: String?
    /// The line in the configuration file; 0 if it does not come from a file.
    package var line: Int

    package init(name: String, file: String? = nil, line: Int = 0) {
        self.name = name
        self.file = file
        self.line = line
    }
}

/// `cookie_jars`: a list of `name` and `file`.
extension SettingKind where Value == [CookieJarSettings] {
    static var cookieJars: SettingKind {
        let kind = elements("jars", allowed: "a list of name: NAME, perhaps with file: FILE", read: readCookieJar)
        return SettingKind(
            allowed: kind.allowed,
            read: { node, problems in
                guard let jars = kind.read(node, &problems) else { return nil }
                let before = problems.count
                for (index, jar) in jars.enumerated() {
                    let earlier = jars[..<index]
                    if earlier.contains(where: { $0.name == jar.name }) {
                        problems.append(
                            SettingProblem(
                                line: jar.line, place: "[\(index + 1)].name",
                                message: "the name \(jar.name) is used twice"))
                    }
                    if let file = jar.file, let other = earlier.first(where: { $0.file == file }) {
                        problems.append(
                            SettingProblem(
                                line: jar.line, place: "[\(index + 1)].file",
                                message: "\(file) is the file of the jar \(other.name) as well",
                                hint: "give each jar a file of its own, or use one jar in both rules"))
                    }
                }
                return problems.count == before ? jars : nil
            }, render: kind.render)
    }
}

@Sendable
private func readCookieJar(
    _ node: ConfigurationNode, number: Int, _ problems: inout [SettingProblem]
) -> CookieJarSettings? {
    let expected = "name: NAME, perhaps with file: FILE"
    guard var reader = MappingReader(node, expected: expected, problems: &problems) else { return nil }
    let name = reader.requiredValue("name", .plainName)
    let file = reader.value("file", SettingKind<String>.path("a file"))
    guard reader.finish("key", into: &problems), let name else { return nil }
    return CookieJarSettings(name: name, file: file, line: node.line)
}

/// `cookies` of a rule for origins: the name of a jar, or `{ jar: NAME, client: …, learn: … }`.
extension SettingKind where Value == CookieUse {
    static var cookieUse: SettingKind {
        let allowed = "the name of a jar, or jar: NAME with client: replace or merge, and learn: yes or no"
        return SettingKind(
            allowed: allowed,
            read: { node, problems in
                if case .scalar = node.value, !node.isNull {
                    return SettingKind<String>.plainName.read(node, &problems).map { CookieUse(jar: $0) }
                }
                guard var reader = MappingReader(node, expected: allowed, problems: &problems) else { return nil }
                let jar = reader.requiredValue("jar", .plainName)
                let clientUse = reader.value("client", SettingKind<CookieUse.ClientUse>.choice) ?? .replace
                let learns = reader.value("learn", .flag) ?? true
                guard reader.finish("key", into: &problems), let jar else { return nil }
                return CookieUse(jar: jar, clientUse: clientUse, learns: learns)
            }, render: { "\($0)" })
    }
}

extension MappingReader {
    /// Checks what a rule with `cookies` may match and change.
    mutating func checkCookies(of conditions: RuleConditions, _ fields: [FieldChange]) {
        if conditions.hosts.isEmpty || conditions.hosts.contains(.any) {
            refuse(
                "cookies", "names no host: what any origin sets would come into the jar",
                hint: "add host: NAME to match")
        }
        if fields.contains(where: { $0.name == .cookie }) {
            refuse("cookies", "fields changes Cookie already", hint: "leave one of the two out")
        }
    }
}

/// The rules of `origins` whose jar does not exist.
func cookieErrors(_ configuration: Configuration, _ reader: ConfigurationReader) -> [ConfigurationError] {
    let names = configuration.cookieJars.map(\.name)
    return configuration.origins.compactMap { rule in
        guard let jar = rule.cookies?.jar, !names.contains(jar) else { return nil }
        let near = nearestName(to: jar, among: names).map { "did you mean \($0)?" }
        return reader.error(
            "origins[\(rule.number)].cookies", "there is no jar \(jar)",
            hint: near
                ?? (names.isEmpty
                    ? "add cookie_jars: [ { name: \(jar) } ]" : "cookie_jars has \(names.joined(separator: ", "))"))
    }
}
