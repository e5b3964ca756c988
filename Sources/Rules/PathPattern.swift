/// What a `path` condition may say: `/pool/*`, `*.deb`, `/`. `*` stands for any bytes, "/" included, also none.
///
/// Compared with the whole path as sent, without the query, byte by byte: case counts, and `%7E` is not `~`.
package struct PathPattern: Sendable, Hashable, CustomStringConvertible {
    package let description: String
    /// What stands between the asterisks: one piece more than there are of them.
    private let pieces: [[UInt8]]
    /// The same as an origin might read it (`plainPath`).
    private let plainPieces: [[UInt8]]

    /// Nil where the text does not begin with "/" or "*", holds what no path can hold (`?`, `#`, spaces, other than
    /// ASCII), or segments "." and "..", which clients take away before they send it.
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

    /// - Parameter plain: the path as `plainPath` gives it.
    func matches(plain: ArraySlice<UInt8>) -> Bool { holds(plainPieces, in: plain) }
}

/// The first piece at the beginning, the last at the end, the others between them in their order, each as early as it comes.
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
