import Message

extension RuleConditions {
    /// What the placeholders of the first pattern that matches stand for, by their names. Percent-encoding is decoded. Empty where no pattern matches,
    /// or where it has no placeholders.
    ///
    /// - Parameter path: as sent, or one of `PathReadings.paths`.
    package func placeholders(in path: ArraySlice<UInt8>) -> [String: String] {
        for pattern in paths {
            let parts: [String: ArraySlice<UInt8>]
            if pattern.matches(path) {
                parts = pattern.placeholders(in: path)
            } else if pattern.matches(plain: path) {
                parts = pattern.placeholders(inPlain: path)
            } else {
                continue
            }
            return parts.mapValues { String(decoding: percentDecoded($0), as: UTF8.self) }
        }
        return [:]
    }
}

/// The last segment of a path, as an origin might read it.
package func lastSegment(of path: ArraySlice<UInt8>) -> String {
    String(decoding: plainPath(path).split(separator: UInt8(ascii: "/")).last ?? [], as: UTF8.self)
}
