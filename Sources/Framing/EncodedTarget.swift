import Message

/// The target of a request line with `%XX` in place of each byte above 0x7F of its path and query.
///
/// The parser refuses such bytes with `badTarget`, so that the targets of nearly all requests cost nothing more. Who reads requests then puts
/// this text in the place of what was received, and parses again. So everything behind the parser knows one form. In a host these bytes stay
/// refused: programs convert names differently.
package struct EncodedTarget: Equatable, Sendable {
    /// Where the target as received is in the bytes.
    package let range: Range<Int>
    /// What takes its place. Longer by two bytes for each that was encoded, so that limits apply to it anew.
    package let text: [UInt8]

    /// - Parameter bytes: a head that begins with a complete request line, perhaps behind empty lines.
    /// - Returns: nil if there is nothing to encode, and if the line has no form in which encoding would help.
    package init?(ofHead bytes: borrowing Span<UInt8>) {
        var start = 0
        while start + 1 < bytes.count, bytes[start] == 0x0D, bytes[start + 1] == 0x0A { start += 2 }
        while start < bytes.count, isTchar(bytes[start]) { start += 1 }
        guard start < bytes.count, bytes[start] == 0x20 else { return nil }
        start += 1
        var end = start
        // Up to what can be in no target. The parser says what is wrong with that.
        while end < bytes.count, isFieldVchar(bytes[end]) { end += 1 }
        guard end < bytes.count else { return nil }
        let target = (start..<end).map { bytes[$0] }
        let pathStart = startOfPath(in: target)
        guard let path = encodingBeyondASCII(target[pathStart...]) else { return nil }
        range = start..<end
        text = target[..<pathStart] + path
    }

    /// The bytes with the encoded target in its place.
    package func applied(to bytes: borrowing Span<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count - range.count + text.count)
        result.append(bytes, 0..<range.lowerBound)
        result += text
        result.append(bytes, range.upperBound..<bytes.count)
        return result
    }
}
