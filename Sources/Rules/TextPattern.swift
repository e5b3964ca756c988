import Message

/// A value of a `user_agent` condition: a text that stands somewhere in the value, or a pattern of the whole value with `*` for any number of any
/// bytes. Case does not matter.
package struct TextPattern: Sendable, Hashable, CustomStringConvertible {
    package let description: String
    /// What stands between the asterisks, in lower case; the first and the last piece are anchored, and may be empty.
    private let pieces: [[UInt8]]

    /// Returns nil if the text is empty or has bytes that no field value can have (RFC 9110 §5.5).
    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard !bytes.isEmpty, bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else { return nil }
        description = text
        let lower = bytes.map(asciiLowercased)
        let pieces = lower.split(separator: UInt8(ascii: "*"), omittingEmptySubsequences: false).map { Array($0) }
        self.pieces = pieces.count == 1 ? [[], pieces[0], []] : pieces
    }

    func matches(_ value: ArraySlice<UInt8>) -> Bool {
        var rest = value.map(asciiLowercased)[...]
        guard let first = pieces.first, let last = pieces.last, rest.count >= first.count + last.count,
            rest.starts(with: first), rest.suffix(last.count).elementsEqual(last)
        else { return false }
        rest = rest.dropFirst(first.count).dropLast(last.count)
        // Each piece at its first place: what is behind it has the most room then.
        for piece in pieces.dropFirst().dropLast() where !piece.isEmpty {
            guard let place = rest.indices.first(where: { rest[$0...].starts(with: piece) }) else { return false }
            rest = rest[(place + piece.count)...]
        }
        return true
    }
}
