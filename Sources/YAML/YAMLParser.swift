/// The tree of a YAML text (UTF-8); nil for a document without content.
package func parseYAML(_ text: [UInt8], bounds: YAMLBounds = YAMLBounds()) throws(YAMLError) -> YAMLNode? {
    nil
}

/// What one text may make us hold.
package struct YAMLBounds: Sendable {
    package var textBytesMax = 4 << 20
    /// Sequences and mappings inside each other.
    package var depthMax = 32
    package var nodeCountMax = 200_000
    package init() {}
}
