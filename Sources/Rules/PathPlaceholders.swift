import Message

extension RuleConditions {
    /// What the placeholders of the first path that matches stand for, by their names: of the path as it was sent, and as an origin might read
    /// it. Percent-encoding is decoded in both. Empty where no path matches, or where the path has no placeholders.
    package func placeholders(in path: ArraySlice<UInt8>) -> (asSent: [String: String], plain: [String: String]) {
        let plain = plainPath(path)[...]
        let sent = paths.first { $0.matches(path) }?.placeholders(in: path) ?? [:]
        let read = paths.first { $0.matches(plain: plain) }?.placeholders(inPlain: plain) ?? [:]
        return (
            sent.mapValues { String(decoding: percentDecoded($0), as: UTF8.self) },
            read.mapValues { String(decoding: $0, as: UTF8.self) }
        )
    }
}

/// The last segment of a path, as an origin might read it.
package func lastSegment(of path: ArraySlice<UInt8>) -> String {
    String(decoding: plainPath(path).split(separator: UInt8(ascii: "/")).last ?? [], as: UTF8.self)
}
