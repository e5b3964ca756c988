import Message

/// The credentials of a client without what changes from one of its requests to the next: `uri`, `nc`, `cnonce` and `response`.
///
/// A client writes the other parameters alike each time, and all of them in the same order. So the next credentials are read by comparing them with
/// these, in one pass and without allocating.
struct DigestForm: Sendable {
    private let text: [UInt8]
    /// In the order of the text.
    private let places: [Place]

    private struct Place: Sendable {
        let parameter: Parameter
        /// The value, without quotes.
        let range: Range<Int>
        let isQuoted: Bool
    }

    private enum Parameter: CaseIterable {
        case uri, count, clientNonce, response

        var name: StaticString {
            switch self {
            case .uri: "uri"
            case .count: "nc"
            case .clientNonce: "cnonce"
            case .response: "response"
            }
        }
    }

    /// - Parameter value: credentials that `DigestCredentials` has read.
    /// - Returns: nil if they are written in a way that few clients use: with a backslash in a value, or with spaces around "=".
    init?(_ value: ArraySlice<UInt8>) {
        text = Array(value)
        guard let places = DigestForm.places(in: text), places.count == Parameter.allCases.count else { return nil }
        self.places = places
    }

    private static func places(in text: [UInt8]) -> [Place]? {
        var places: [Place] = []
        var position = text.prefix(while: isTchar).endIndex  // the name of the scheme
        while position < text.count {
            if isOWS(text[position]) || text[position] == UInt8(ascii: ",") {
                position += 1
                continue
            }
            let name = text[position...].prefix(while: isTchar)
            guard !name.isEmpty, name.endIndex + 1 < text.count, text[name.endIndex] == UInt8(ascii: "=") else {
                return nil
            }
            let isQuoted = text[name.endIndex + 1] == UInt8(ascii: "\"")
            let start = name.endIndex + (isQuoted ? 2 : 1)
            let range = start..<DigestForm.end(of: isQuoted, text.span, from: start, below: text.count)
            guard !isQuoted || range.upperBound < text.count && text[range.upperBound] == UInt8(ascii: "\"") else {
                return nil
            }
            if let parameter = Parameter.allCases.first(where: { equalsIgnoringCase(name, $0.name) }) {
                places.append(Place(parameter: parameter, range: range, isQuoted: isQuoted))
            }
            position = range.upperBound + (isQuoted ? 1 : 0)
        }
        return places
    }

    /// The end of a value that begins at `start`: of a token, or of the content of a quoted-string that has neither a backslash nor anything but
    /// visible ASCII and spaces.
    private static func end(
        of isQuoted: Bool, _ bytes: borrowing Span<UInt8>, from start: Int, below bound: Int
    ) -> Int {
        var end = start
        if isQuoted {
            while end < bound, bytes[end] >= 0x20, bytes[end] < 0x7F, bytes[end] != UInt8(ascii: "\""),
                bytes[end] != UInt8(ascii: "\\")
            {
                end += 1
            }
        } else {
            while end < bound, isTchar(bytes[end]) { end += 1 }
        }
        return end
    }

    /// Reads other credentials.
    ///
    /// - Parameter range: where the value of the field lies in `bytes`.
    /// - Returns: nil if they differ in more than the four values, or if one of these is not valid. This says nothing about what they are: they have to be
    ///   read in full.
    func claim(in bytes: borrowing Span<UInt8>, _ range: Range<Int>) -> DigestClaim? {
        var claim = DigestClaim()
        var position = range.lowerBound
        var known = 0
        for place in places {
            let start = position + place.range.lowerBound - known
            guard start <= range.upperBound,
                areEqual(text.span, known..<place.range.lowerBound, bytes, position..<start)
            else { return nil }
            let end = DigestForm.end(of: place.isQuoted, bytes, from: start, below: range.upperBound)
            guard end > start else { return nil }
            switch place.parameter {
            case .uri: claim.uri = start..<end
            case .count: claim.countText = start..<end
            case .clientNonce: claim.clientNonce = start..<end
            case .response: claim.response = start..<end
            }
            position = end
            known = place.range.upperBound
        }
        guard areEqual(text.span, known..<text.count, bytes, position..<range.upperBound),
            let count = DigestForm.number(bytes, claim.countText)
        else { return nil }
        claim.count = count
        return claim
    }

    /// Eight hexadecimal digits, and not 0.
    private static func number(_ bytes: borrowing Span<UInt8>, _ range: Range<Int>) -> UInt32? {
        guard range.count == 8 else { return nil }
        var number: UInt32 = 0
        for index in range {
            guard let value = hexValue(bytes[index]) else { return nil }
            number = number << 4 | UInt32(value)
        }
        return number == 0 ? nil : number
    }
}

/// What credentials say about one request: ranges of the head in which they stand.
package struct DigestClaim: Sendable {
    package fileprivate(set) var uri = 0..<0
    fileprivate(set) var countText = 0..<0
    fileprivate(set) var clientNonce = 0..<0
    fileprivate(set) var response = 0..<0
    /// `nc`
    package fileprivate(set) var count: UInt32 = 0
    /// The digits of `rspauth`, once the credentials have been found right.
    var answer = InlineArray<64, UInt8>(repeating: 0)

    /// Of no request.
    package init() {}
}
