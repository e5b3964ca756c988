/// Reads a mapping inside of a value. The keys that the caller reads are the known ones; `finish` reports all others.
struct MappingReader {
    private let entries: [ConfigurationNode.Entry]
    private let node: ConfigurationNode
    /// The problems of each entry.
    private var problems: [[SettingProblem]]
    private var isKnown: [Bool]
    private var known: [String] = []
    private var missing: [SettingProblem] = []

    /// - Parameter expected: describes the mapping, for the message if the node is none. An empty node counts as an empty mapping.
    init?(_ node: ConfigurationNode, expected: String, problems: inout [SettingProblem]) {
        if case .mapping(let entries) = node.value {
            self.entries = entries
        } else if node.isNull {
            entries = []
        } else {
            problems.append(SettingProblem(node, message: "found \(node.found), expected \(expected)"))
            return nil
        }
        self.node = node
        self.problems = entries.map { _ in [] }
        isKnown = entries.map { _ in false }
    }

    /// Returns nil if the key is missing or its value is wrong.
    mutating func value<Value>(_ key: String, _ kind: SettingKind<Value>) -> Value? {
        known.append(key)
        guard let index = find(key) else { return nil }
        var own: [SettingProblem] = []
        let value = kind.read(entries[index].value, &own)
        problems[index] += own.map { $0.inside(".\(key)") }
        return value
    }

    /// Like `value`, but the key must be present.
    mutating func requiredValue<Value>(_ key: String, _ kind: SettingKind<Value>) -> Value? {
        let value = value(key, kind)
        require(key)
        return value
    }

    /// Whether the key is present, even if its value is wrong.
    func has(_ key: String) -> Bool { entries.contains { $0.key == key } }

    /// Reports the key if it is missing.
    mutating func require(_ key: String) {
        if find(key) == nil { missing.append(SettingProblem(node, message: "\(key) is missing")) }
    }

    /// Reports a key that has a meaning elsewhere but not here.
    mutating func refuse(_ key: String, _ message: String, hint: String? = nil) {
        guard let index = find(key) else { return }
        problems[index].append(
            SettingProblem(line: entries[index].keyLine, place: ".\(key)", message: message, hint: hint))
    }

    /// - Parameter noun: what a key is called here: `key`, `condition`.
    /// - Returns: whether there was no problem.
    func finish(_ noun: String, into all: inout [SettingProblem]) -> Bool {
        let unknown = entries.indices.filter { !isKnown[$0] }
        let found = entries.indices.flatMap {
            unknown.contains($0) ? [problem(unknown: entries[$0], noun)] : problems[$0]
        }
        all += found + missing
        return found.isEmpty && missing.isEmpty
    }

    private mutating func find(_ key: String) -> Int? {
        guard let index = entries.firstIndex(where: { $0.key == key }) else { return nil }
        isKnown[index] = true
        return index
    }

    private func problem(unknown entry: ConfigurationNode.Entry, _ noun: String) -> SettingProblem {
        let near = nearestName(to: entry.key, among: known).map { "did you mean \($0)?" }
        return SettingProblem(
            line: entry.keyLine, place: ".\(entry.key)", message: "unknown \(noun)",
            hint: near ?? "known are \(known.joined(separator: ", "))")
    }
}

extension SettingKind {
    /// Reads a list whose elements are numbered from 1: rules, zones.
    ///
    /// - Parameter noun: what the elements are called, in the plural.
    static func elements<Element: Sendable & Equatable>(
        _ noun: String, allowed: String,
        read: @escaping @Sendable (ConfigurationNode, Int, inout [SettingProblem]) -> Element?
    ) -> SettingKind where Value == [Element] {
        SettingKind(
            allowed: allowed,
            read: { node, problems in
                guard case .list(let nodes) = node.value else {
                    problems.append(SettingProblem(node, message: "found \(node.found), expected a list of \(noun)"))
                    return nil
                }
                var elements: [Element] = []
                for (index, node) in nodes.enumerated() {
                    var own: [SettingProblem] = []
                    if let element = read(node, index + 1, &own) { elements.append(element) }
                    problems += own.map { $0.inside("[\(index + 1)]") }
                }
                return elements.count == nodes.count ? elements : nil
            }, render: { $0.isEmpty ? "[]" : "\($0.count) \(noun)" })
    }
}
