/// A value of a `path` condition: `/pool/*`, `*.deb`, `/`. `*` matches any number of any bytes, "/" included.
///
/// The pattern is compared byte by byte with the whole path as sent, without the query: case matters, and `%7E` is not `~`.
package struct PathPattern: Sendable, Hashable, CustomStringConvertible {
    package let description: String
    /// The pieces between the asterisks, one more than there are asterisks.
    private let pieces: [[UInt8]]
    /// The pieces as an origin might read them (`plainPath`).
    private let plainPieces: [[UInt8]]

    /// Returns nil if the text does not begin with "/" or "*", if it contains bytes that no path can have (`?`, `#`, spaces, bytes beyond
    /// ASCII), or if it has segments "." or "..", which clients remove before they send a path.
    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard let first = bytes.first, first == UInt8(ascii: "/") || first == UInt8(ascii: "*"),
            bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }),
            !hasDotSegment(percentDecoded(bytes))
        else { return nil }
        description = text
        pieces = bytes.split(separator: UInt8(ascii: "*"), omittingEmptySubsequences: false).map { Array($0) }
        plainPieces = pieces.map { withSingleSlashes(percentDecoded($0)) }
    }

    package func matches(_ path: ArraySlice<UInt8>) -> Bool { holds(pieces, in: path) }

    /// - Parameter plain: the result of `plainPath`.
    func matches(plain: ArraySlice<UInt8>) -> Bool { holds(plainPieces, in: plain) }
}

/// Whether the path begins with the first piece, ends with the last one, and has the others in between in this order. Each is
/// matched at its first occurrence.
private func holds(_ pieces: [[UInt8]], in path: ArraySlice<UInt8>) -> Bool {
    let (first, last) = (pieces[0], pieces[pieces.count - 1])
    guard path.starts(with: first) else { return false }
    if pieces.count == 1 { return path.count == first.count }
    var rest = path.dropFirst(first.count)
    for piece in pieces[1..<(pieces.count - 1)] {
        guard let end = endOfFirst(piece, in: rest) else { return false }
        rest = rest[end...]
    }
    return rest.suffix(last.count).elementsEqual(last)
}

private func endOfFirst(_ piece: [UInt8], in bytes: ArraySlice<UInt8>) -> Int? {
    guard let head = piece.first else { return bytes.startIndex }
    var index = bytes.startIndex
    while bytes.endIndex - index >= piece.count {
        if bytes[index] == head, bytes[index...].starts(with: piece) { return index + piece.count }
        index += 1
    }
    return nil
}
