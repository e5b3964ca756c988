import Message

/// What an unsafe request has invalidated (RFC 9111 §4.4), as one entry of the stream of purges says it: cache keys, which are removed in all zones.
///
/// ```
/// invalidates 5d3ac01f⏎
/// http://example.org/a⏎
/// http://example.org/b
/// ```
///
/// A purge by URL looks through all that a node has, because the rules may have stored a URL under several keys. This one names the keys, so it costs a node one look-up
/// for each, and unsafe requests may be many.
package struct InvalidatedKeys: Equatable, Sendable {
    /// Tells the run of the node that sends it. It has invalidated the keys itself, and does not do it again, because by now it may have stored the response from after the request.
    package let run: String
    /// Each has at least one byte, and none has a line feed.
    package let keys: [[UInt8]]

    private static let lineFeed = UInt8(ascii: "\n")
    private static let mark = Array("invalidates ".utf8)
    /// Of one key. A longer one does not fit into an entry.
    package static let keyBytesMax = 12 << 10

    package init(run: String, keys: [[UInt8]]) {
        precondition(keys.allSatisfy(InvalidatedKeys.canSay), "the keys can be told apart")
        self.run = run
        self.keys = keys
    }

    /// Whether an entry can name the key.
    package static func canSay(_ key: [UInt8]) -> Bool {
        !key.isEmpty && key.count <= keyBytesMax && !key.contains(lineFeed)
    }

    /// What `PurgeEntry.purge` is. Purges of another kind are objects of JSON.
    package var bytes: [UInt8] {
        InvalidatedKeys.mark + Array(run.utf8) + [InvalidatedKeys.lineFeed]
            + Array(keys.joined(separator: [InvalidatedKeys.lineFeed]))
    }

    /// Returns nil if the purge is of another kind.
    package init?(purge: [UInt8]) {
        guard purge.starts(with: InvalidatedKeys.mark) else { return nil }
        let lines = purge.dropFirst(InvalidatedKeys.mark.count)
            .split(separator: InvalidatedKeys.lineFeed, omittingEmptySubsequences: false).map(Array.init)
        guard let run = String(validating: lines[0], as: UTF8.self), lines.count > 1,
            lines.dropFirst().allSatisfy(InvalidatedKeys.canSay)
        else { return nil }
        self.run = run
        keys = Array(lines.dropFirst())
    }
}
