/// A YAML document as a tree of scalars, sequences and mappings, each with its position. Lines and columns count from 1.
///
/// It has the part of YAML 1.1 that configuration needs. Anchors, aliases, tags and further documents are refused.
package struct YAMLNode: Sendable, Equatable {
    package enum Value: Sendable, Equatable {
        /// - Parameter isQuoted: in quotes or a block. A plain scalar may stand for a number, a flag or null.
        case scalar(String, isQuoted: Bool)
        case sequence([YAMLNode])
        /// In the order of the file. No key occurs twice.
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

/// Why a text is not a YAML document that Larder accepts.
package struct YAMLError: Error, Sendable, Equatable, CustomStringConvertible {
    /// Counted from 1. Zero if the parser does not know the line.
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
