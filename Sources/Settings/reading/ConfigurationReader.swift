/// Walks the tree of a file along the declared keys and collects what is wrong with it.
struct ConfigurationReader {
    private let file: String
    private var root: ConfigurationNode?
    private(set) var configuration = Configuration()
    private(set) var errors: [ConfigurationError] = []
    /// The lines of the keys in the file, including sections.
    private(set) var lines: [String: Int] = [:]

    init(file: String) { self.file = file }

    /// Every mapping that may hold settings, by its path.
    private static let sections: Set<String> = Set(
        Settings.all.flatMap { setting -> [String] in
            let parts = setting.key.split(separator: ".")
            return (1..<max(1, parts.count)).map { parts.prefix($0).joined(separator: ".") }
        })

    private static let settings: [String: any SettingDeclaration] = Dictionary(
        uniqueKeysWithValues: Settings.all.map { ($0.key, $0) })

    mutating func read(_ root: ConfigurationNode) {
        self.root = root
        readSection(root, path: "", line: root.line)
    }

    mutating func report(_ key: String, line: Int? = nil, _ message: String, hint: String? = nil) {
        errors.append(error(key, line: line, message, hint: hint))
    }

    func error(_ key: String, line: Int? = nil, _ message: String, hint: String? = nil) -> ConfigurationError {
        let line = line ?? lines[key] ?? root?.line(at: key) ?? 0
        return ConfigurationError(file: file, line: line, key: key, message: message, hint: hint)
    }

    /// Whether there is an error about a key or about something in its value.
    func hasErrors(in key: String) -> Bool { errors.contains { $0.key.hasPrefix(key) } }

    private mutating func readSection(_ node: ConfigurationNode, path: String, line: Int) {
        if node.isNull { return }
        guard case .mapping(let entries) = node.value else {
            report(path, line: node.line, "found \(node.found), expected \(Self.expectation(path))")
            return
        }
        for entry in entries { read(entry, in: path) }
    }

    private mutating func read(_ entry: ConfigurationNode.Entry, in path: String) {
        let key = path.isEmpty ? entry.key : "\(path).\(entry.key)"
        let isPlainKey = !entry.key.contains(".")
        if isPlainKey, let setting = Self.settings[key] {
            lines[key] = entry.keyLine
            for problem in setting.read(entry.value, into: &configuration) {
                report(key + problem.place, line: problem.line, problem.message, hint: problem.hint)
            }
        } else if isPlainKey, Self.sections.contains(key) {
            lines[key] = entry.keyLine
            readSection(entry.value, path: key, line: entry.keyLine)
        } else {
            report(key, line: entry.keyLine, "unknown key", hint: Self.hint(forUnknown: entry.key, in: path))
        }
    }

    /// Describes what a section contains.
    private static func expectation(_ path: String) -> String {
        let names = children(of: path)
        return names.count == 1 ? "the key \(names[0])" : "the keys \(names.joined(separator: ", "))"
    }

    /// The names right below a path, in the order of declaration.
    private static func children(of path: String) -> [String] {
        let prefix = path.isEmpty ? "" : path + "."
        var names: [String] = []
        for setting in Settings.all where setting.key.hasPrefix(prefix) {
            let name = String(setting.key.dropFirst(prefix.count).prefix { $0 != "." })
            if !names.contains(name) { names.append(name) }
        }
        return names
    }

    /// Names the most similar key of the section, or else the most similar key of any section.
    private static func hint(forUnknown name: String, in path: String) -> String? {
        let prefix = path.isEmpty ? "" : path + "."
        if settings[prefix + name] != nil { return "keys are nested, not dotted" }
        if let neighbour = nearestName(to: name, among: children(of: path)) {
            return "did you mean \(prefix)\(neighbour)?"
        }
        let lastNames = Settings.all.map { String($0.key.split(separator: ".").last ?? "") }
        guard let near = nearestName(to: name, among: lastNames), let index = lastNames.firstIndex(of: near) else {
            return nil
        }
        return "did you mean \(Settings.all[index].key)?"
    }
}
