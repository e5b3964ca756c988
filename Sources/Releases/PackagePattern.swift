/// Names of packages: `left-pad`, or `@acme/*`, where the asterisk stands for any text.
package struct PackagePattern: Sendable, Hashable, CustomStringConvertible {
    package let description: String

    /// Returns nil if the text is empty, or if it has spaces, control characters or an asterisk that is not at its end.
    package init?(_ text: String) {
        let isFine = text.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F }
        guard !text.isEmpty, isFine, !text.dropLast().contains("*") else { return nil }
        description = text
    }

    package func matches(_ name: String, of kind: ReleaseKind) -> Bool {
        guard description.hasSuffix("*") else { return kind.normalised(description) == kind.normalised(name) }
        return kind.normalised(name).hasPrefix(kind.normalised(String(description.dropLast())))
    }
}
