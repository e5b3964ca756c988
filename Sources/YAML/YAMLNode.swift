/// A YAML document as a tree: scalars, sequences and mappings, each with where it stands. Lines and columns count from 1.
///
/// The part of YAML 1.1 that configuration needs. Anchors, aliases, tags and further documents are refused.
package struct YAMLNode: Sendable, Equatable {
    package enum Value: Sendable, Equatable {
        /// - Parameter isQuoted: by quotes or as a block; a plain one may mean a number, a flag or nothing.
        case scalar(String, isQuoted: Bool)
        case sequence([YAMLNode])
        /// In the order of the file; no key twice.
        case mapping([Entry])
    }

    package struct Entry: Sendable, Equatable {
        package let key: String
        package let keyLine: Int
        package let value: YAMLNode

        package init(key: String, keyLine: Int, value: YAMLNode) {
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
}

/// Why a text is no configuration.
package struct YAMLError: Error, Sendable, Equatable, CustomStringConvertible {
    /// From 1; 0 if the parser does not say.
    package let line: Int
    package let column: Int
    package let message: String

    package init(line: Int, column: Int, message: String) {
        self.line = line
        self.column = column
        self.message = message
    }

    package var description: String { "line \(line), column \(column): \(message)" }
}
