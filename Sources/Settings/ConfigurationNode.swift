/// A configuration file as a tree, whatever language it was written in. Lines and columns count from 1.
package struct ConfigurationNode: Sendable {
    package enum Value: Sendable {
        /// - Parameter isQuoted: a quoted scalar is always text, never null.
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

    /// Nothing was written: an empty plain scalar, `~` or `null`.
    package var isNull: Bool {
        guard case .scalar(let text, isQuoted: false) = value else { return false }
        return text.isEmpty || text == "~" || text == "null"
    }

    /// What stands there, for messages: `"12q"`, `a list`.
    var found: String {
        switch value {
        case .scalar(let text, _): isNull ? "nothing" : "\"\(text)\""
        case .list: "a list"
        case .mapping: "a mapping"
        }
    }
}
