package import Framing
package import Message

/// Reads the content of one message as its framing says (RFC 9112 §6.3), in whatever pieces the bytes arrive.
///
/// ```
/// reading ──last byte, last chunk──▶ complete
///    │  └───────closed()───────────▶ complete (until close), or cut short
/// ```
///
/// It never copies bytes: `next` says which of the bytes given are content. It never takes a byte of what follows the message.
package struct BodyReader: ~Copyable {
    package enum Step: Equatable, Sendable {
        /// Content at this range of the bytes given. Ask again.
        case data(Range<Int>)
        /// All bytes given are used. More must arrive.
        case more
        /// The body is complete. The bytes from the offset on belong to something else.
        case end
    }

    /// How a body ends whose connection closes.
    package enum Ending: Equatable, Sendable {
        case complete
        /// The framing promised more (RFC 9112 §8).
        case cutShort
    }

    private enum Kind { case counted, chunked, untilClose }

    private let kind: Kind
    /// Bytes of content that are still to come, where the framing tells.
    private var remaining: UInt64 = 0
    /// Most bodies need none, and it is large.
    private var decoder: Decoder?
    package private(set) var isComplete: Bool

    private final class Decoder {
        var chunked: ChunkedDecoder
        init(limits: Limits) { chunked = ChunkedDecoder(limits: limits) }
    }

    /// Of a message without content.
    package init() {
        kind = .counted
        isComplete = true
    }

    package init(_ length: BodyLength, limits: Limits) {
        switch length {
        case .none, .tunnel: kind = .counted
        case .length(let count):
            kind = .counted
            remaining = count
        case .chunked:
            kind = .chunked
            decoder = Decoder(limits: limits)
        case .untilClose: kind = .untilClose
        }
        isComplete = kind == .counted && remaining == 0
    }

    /// The trailer section (RFC 9112 §7.1.2); nil where there is none or the body is not complete.
    package var trailers: Fields? { decoder?.chunked.trailers }

    /// Bytes of content still to come; nil where the framing does not tell.
    package var missing: UInt64? { kind == .counted ? remaining : nil }

    /// How many of the connection's next bytes are surely content, so that they may be read straight to where they belong. 0
    /// where lines of the framing stand in between.
    package var readableDirectly: UInt64 {
        switch kind {
        case .counted: remaining
        case .chunked: 0
        case .untilClose: isComplete ? 0 : .max
        }
    }

    /// Notes content that was read without `next`.
    /// - Parameter count: at most `readableDirectly`.
    package mutating func passed(_ count: Int) {
        precondition(count >= 0 && UInt64(count) <= readableDirectly, "more content than the framing lets in")
        if kind == .counted { take(UInt64(count)) }
    }

    /// Finds the next piece of content, or the end.
    /// - Parameters:
    ///   - bytes: as they came from the connection.
    ///   - offset: where to go on; afterwards, behind what was used.
    /// - Throws: a violation of the chunked coding. The reader is of no more use then.
    package mutating func next(in bytes: borrowing Span<UInt8>, from offset: inout Int) throws(FramingError) -> Step {
        precondition(offset >= 0 && offset <= bytes.count, "the offset stands outside of the bytes")
        if isComplete { return .end }
        switch kind {
        case .counted:
            let count = Int(min(UInt64(bytes.count - offset), remaining))
            guard count > 0 else { return .more }
            defer { offset += count }
            take(UInt64(count))
            return .data(offset..<(offset + count))
        case .untilClose:
            guard offset < bytes.count else { return .more }
            defer { offset = bytes.count }
            return .data(offset..<bytes.count)
        case .chunked:
            let start = offset
            switch try decoder!.chunked.step(bytes.extracting(start...)) {
            case .needMore(let consumed):
                offset += consumed
                return .more
            case .data(let consumed, let range):
                offset += consumed
                return .data((start + range.lowerBound)..<(start + range.upperBound))
            case .end(let consumed):
                offset += consumed
                isComplete = true
                return .end
            }
        }
    }

    /// The peer closed its side.
    package mutating func closed() -> Ending {
        if kind == .untilClose { isComplete = true }
        return isComplete ? .complete : .cutShort
    }

    private mutating func take(_ count: UInt64) {
        remaining -= count
        isComplete = remaining == 0
    }
}
