/// A configuration file as a tree, whatever language it was written in: so Settings needs no parser, and Provisioning makes the tree from YAML. Lines
/// and columns count from 1.
package struct ConfigurationNode: Sendable {
    package enum Value: Sendable {
        /// - Parameter isQuoted: a quoted scalar is always text and never null.
        case scalar(String, isQuoted: Bool)
        case list([ConfigurationNode])
        case mapping([Entry])
    }

    package struct Entry: Sendable {
        package let key: String
        package let keyLine: Int
        package let value: ConfigurationNode

        package init(key: String, keyLine: Int, value: ConfigurationNode) {
            self.key = key
            self.keyLine = keyLine
            self.value = value
        }
    }

    package let value: Value
    package let line: Int
    package let column: Int

    package init(_ value: Value, line: Int, column: Int) {
        self.value = value
        self.line = line
        self.column = column
    }

    /// The value is empty: an empty plain scalar, `~` or `null`.
    package var isNull: Bool {
        guard case .scalar(let text, isQuoted: false) = value else { return false }
        return text.isEmpty || text == "~" || text == "null"
    }

    /// The value as messages show it: `"12q"`, `a list`.
    var found: String {
        switch value {
        case .scalar(let text, _): isNull ? "nothing" : "\"\(text)\""
        case .list: "a list"
        case .mapping: "a mapping"
        }
    }
}

extension ConfigurationNode {
    /// The line of the node at a path, such as `cache.rules[2].zone`, or of the nearest existing node around it. Returns nil if the first
    /// key of the path does not exist.
    func line(at path: String) -> Int? {
        var node = self
        var line: Int?
        for step in path.split(whereSeparator: { $0 == "." || $0 == "[" || $0 == "]" }) {
            switch node.value {
            case .mapping(let entries):
                guard let entry = entries.first(where: { $0.key == step }) else { return line }
                (node, line) = (entry.value, entry.keyLine)
            case .list(let elements):
                guard let number = Int(step), elements.indices.contains(number - 1) else { return line }
                node = elements[number - 1]
                line = node.line
            case .scalar: return line
            }
        }
        return line
    }
}
