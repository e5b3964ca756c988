package import Framing
package import Message

/// Finds the content of one message by its framing (RFC 9112 §6.3), in whatever pieces the bytes arrive.
///
/// ```
/// reading ──last byte, last chunk──▶ complete
///    │  └───────closed()───────────▶ complete (until close), or cut short
/// ```
///
/// It copies nothing: `next` returns which of the given bytes are content. It never uses a byte behind the message.
package struct BodyReader: ~Copyable {
    package enum Step: Equatable, Sendable {
        /// This range of the given bytes is content. Call again.
        case data(Range<Int>)
        /// All given bytes were used. More must arrive.
        case more
        /// The body is complete. Bytes from the offset on do not belong to it.
        case end
    }

    /// How a body ends when its connection closes.
    package enum Ending: Equatable, Sendable {
        case complete
        /// The body is incomplete by its framing (RFC 9112 §8).
        case cutShort
    }

    private enum Kind { case counted, chunked, untilClose }

    private let kind: Kind
    /// Bytes of content that are still to come. Meaningful only for `counted`.
    private var remaining: UInt64 = 0
    /// The decoder of the chunked coding. Allocated only for a chunked body, because it is large.
    private var decoder: Decoder?
    package private(set) var isComplete: Bool

    private final class Decoder {
        var chunked: ChunkedDecoder
        init(limits: Limits) { chunked = ChunkedDecoder(limits: limits, isLenient: true) }
    }

    /// The reader of a message without content.
    package init() {
        kind = .counted
        isComplete = true
    }

    /// - Parameter limits: asked for only if the body is chunked.
    package init(_ length: BodyLength, limits: @autoclosure () -> Limits) {
        switch length {
        case .none, .tunnel: kind = .counted
        case .length(let count):
            kind = .counted
            remaining = count
        case .chunked:
            kind = .chunked
            decoder = Decoder(limits: limits())
        case .untilClose: kind = .untilClose
        }
        isComplete = kind == .counted && remaining == 0
    }

    /// The trailer section (RFC 9112 §7.1.2). Nil if there is none, or if the body is not complete.
    package var trailers: Fields? { decoder?.chunked.trailers }

    /// Bytes of content that are still to come. Nil if the framing does not tell.
    package var missing: UInt64? { kind == .counted ? remaining : nil }

    /// How many of the next bytes of the connection are certainly content, so that they may be read directly to their destination. 0 if
    /// framing may come next.
    package var readableDirectly: UInt64 {
        switch kind {
        case .counted: remaining
        case .chunked: 0
        case .untilClose: isComplete ? 0 : .max
        }
    }

    /// Counts content that was read directly, without `next`.
    ///
    /// - Parameter count: at most `readableDirectly`.
    package mutating func passed(_ count: Int) {
        precondition(count >= 0 && UInt64(count) <= readableDirectly, "more content was read than the framing allows")
        if kind == .counted { take(UInt64(count)) }
    }

    /// Finds the next piece of content, or the end.
    ///
    /// - Parameters:
    ///   - bytes: bytes as received.
    ///   - offset: where to begin. Set to the end of the bytes that were used.
    /// - Throws: a violation of the chunked coding. The reader must not be used afterwards.
    package mutating func next(in bytes: borrowing Span<UInt8>, from offset: inout Int) throws(FramingError) -> Step {
        precondition(offset >= 0 && offset <= bytes.count, "the offset lies outside the bytes")
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

    /// Reports that the peer closed its side.
    package mutating func closed() -> Ending {
        if kind == .untilClose { isComplete = true }
        return isComplete ? .complete : .cutShort
    }

    private mutating func take(_ count: UInt64) {
        remaining -= count
        isComplete = remaining == 0
    }
}
