import Message

/// One member of a `Cache-Control` list: `token [ "=" ( token / quoted-string ) ]` (RFC 9111 §5.2), as ranges into the head.
struct Directive: Equatable {
    var name: Range<Int>
    /// What follows "=", without quotes. Nil if there is no "=".
    var argument: Range<Int>?
    var isQuoted: Bool
    /// False if the member violates the grammar: white space around "=", text behind the argument, or a quote that is not closed.
    var isWellFormed: Bool
}

/// Scans the members of one `Cache-Control` field value.
///
/// It is lenient, so that it never overlooks a directive that restricts: it skips empty members, and returns the name even of a malformed
/// member. A quoted string that is never closed ends at the next comma, and the rest is read as directives again.
struct DirectiveScanner {
    private var position: Int
    private let end: Int

    init(_ value: Range<Int>) {
        position = value.lowerBound
        end = value.upperBound
    }

    mutating func next(_ bytes: borrowing Span<UInt8>) -> Directive? {
        while position < end {
            let start = skipSpace(bytes, from: position, to: end)
            let member = start..<memberEnd(bytes, from: start)
            position = member.upperBound + 1
            if !member.isEmpty { return directive(bytes, in: member) }
        }
        return nil
    }

    /// The comma that ends the member, or the end of the value. Commas in quoted strings do not count. A quote opens a string only behind
    /// "=": within a token it hides nothing.
    private func memberEnd(_ bytes: borrowing Span<UInt8>, from start: Int) -> Int {
        // Most members have no quote: the next comma ends them.
        let raw = unsafe bytes.bytes
        let stop = scan(raw, from: start, to: end) { ($0 .== vector(Byte.comma)) .| ($0 .== vector(Byte.quote)) }
        if stop == end || bytes[stop] == Byte.comma { return stop }
        var index = start
        var isBehindEquals = false
        while index < end, bytes[index] != Byte.comma {
            let byte = bytes[index]
            if byte == Byte.quote, isBehindEquals, let close = closingQuote(bytes, after: index, before: end) {
                index = close
            }
            if !isOWS(byte) { isBehindEquals = byte == Byte.equals }
            index += 1
        }
        return index
    }

    private func directive(_ bytes: borrowing Span<UInt8>, in member: Range<Int>) -> Directive {
        let end = trimmedEnd(bytes, of: member)
        let raw = unsafe bytes.bytes
        let nameEnd = scan(raw, from: member.lowerBound, to: end) {
            ($0 .== vector(Byte.equals)) .| ($0 .== vector(0x20)) .| ($0 .== vector(0x09))
        }
        let name = member.lowerBound..<nameEnd
        guard nameEnd < end else { return Directive(name: name, argument: nil, isQuoted: false, isWellFormed: true) }
        let equals = skipSpace(bytes, from: nameEnd, to: end)
        guard equals < end, bytes[equals] == Byte.equals else {
            return Directive(name: name, argument: nil, isQuoted: false, isWellFormed: false)
        }
        let start = skipSpace(bytes, from: equals + 1, to: end)
        let isTight = equals == nameEnd && start == equals + 1 && start < end
        guard start < end, bytes[start] == Byte.quote else {
            return Directive(name: name, argument: start..<end, isQuoted: false, isWellFormed: isTight)
        }
        guard let close = closingQuote(bytes, after: start, before: end) else {
            return Directive(name: name, argument: start..<end, isQuoted: false, isWellFormed: false)
        }
        let isWhole = isTight && close == end - 1
        return Directive(name: name, argument: start + 1..<close, isQuoted: true, isWellFormed: isWhole)
    }
}

/// The index of the quote that closes the one at `open`. Returns nil if there is none. A backslash quotes the next byte (RFC 9110 §5.6.4).
private func closingQuote(_ bytes: borrowing Span<UInt8>, after open: Int, before end: Int) -> Int? {
    var index = open + 1
    while index < end {
        if bytes[index] == Byte.quote { return index }
        index += bytes[index] == Byte.backslash ? 2 : 1
    }
    return nil
}

private func skipSpace(_ bytes: borrowing Span<UInt8>, from start: Int, to end: Int) -> Int {
    var index = start
    while index < end, isOWS(bytes[index]) { index += 1 }
    return index
}

private func trimmedEnd(_ bytes: borrowing Span<UInt8>, of range: Range<Int>) -> Int {
    var end = range.upperBound
    while end > range.lowerBound, isOWS(bytes[end - 1]) { end -= 1 }
    return end
}
