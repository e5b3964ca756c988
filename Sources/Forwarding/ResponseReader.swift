package import Framing
package import Message

/// Finds the heads and the content of the response to one request, in whatever pieces its bytes arrive (RFC 9112 §4, §6.3).
///
/// ```
/// head ──1xx──▶ head ──final head──▶ content ──last byte──▶ complete
/// ```
///
/// It copies nothing: `next` says which of the given bytes are what. It never uses a byte behind the response.
package struct ResponseReader: ~Copyable {
    package enum Step: Equatable, Sendable {
        /// More bytes must arrive. The given bytes from the offset on are needed again.
        case more
        /// An interim head (RFC 9110 §15.2). Another head follows, unless it is a 101.
        case interim
        /// The final head, and how its content is framed.
        case head(BodyLength)
        /// This range of the given bytes is content.
        case data(Range<Int>)
        /// The response is complete. Bytes from the offset on do not belong to it.
        case end
    }

    package enum Phase: Sendable { case head, content, complete }

    private let method: Method
    package private(set) var phase = Phase.head
    private var progress = HeadProgress()
    private var body = BodyReader()

    /// - Parameter method: that of the request.
    package init(to method: Method) { self.method = method }

    /// The reader of the same response, from its beginning.
    package func anew() -> ResponseReader { ResponseReader(to: method) }

    /// How much content is still to come, in bytes. Nil if the framing does not tell.
    package var missing: UInt64? { body.missing }
    /// The trailer section. Nil if there is none, or if the response is not complete.
    package var trailers: Fields? { body.trailers }
    /// How many of the next bytes of the connection are certainly content, so that they may be read directly to their destination.
    package var readableDirectly: UInt64 { phase == .content ? body.readableDirectly : 0 }

    /// Takes the next step.
    ///
    /// - Parameters:
    ///   - bytes: the bytes that were not used yet, and those that have arrived since.
    ///   - offset: where to begin. Set to the end of the bytes that were used.
    ///   - head: gets the head. Overwritten as long as the reader looks for one.
    /// - Throws: a violation of HTTP. The reader must not be used afterwards.
    package mutating func next(
        in bytes: borrowing Span<UInt8>, from offset: inout Int, head: inout ResponseHead, limits: Limits
    ) throws(FramingError) -> Step {
        switch phase {
        case .head: return try nextHead(in: bytes, from: &offset, head: &head, limits: limits)
        case .content: return try nextContent(in: bytes, from: &offset)
        case .complete: return .end
        }
    }

    /// Counts content that was read directly, without `next`. Returns whether it was the last.
    ///
    /// - Parameter count: at most `readableDirectly`, or content that `missing` has announced.
    package mutating func passed(_ count: Int) -> Bool {
        precondition(phase == .content, "content follows a final head")
        body.passed(count)
        if body.isComplete { phase = .complete }
        return body.isComplete
    }

    /// Reports that the peer closed its side. Returns whether the response is complete.
    package mutating func closed() -> Bool {
        if phase == .content, body.closed() == .complete { phase = .complete }
        return phase == .complete
    }

    /// Takes the next step in front of the content.
    package mutating func nextHead(
        in bytes: borrowing Span<UInt8>, from offset: inout Int, head: inout ResponseHead, limits: Limits
    ) throws(FramingError) -> Step {
        let rest = bytes.extracting(offset...)
        guard try parseResponseHead(rest, into: &head, progress: &progress, limits: limits) else { return .more }
        precondition(head.byteCount > 0 && head.byteCount <= rest.count, "a head lies within the received bytes")
        progress = HeadProgress()
        let length = try responseBodyLength(head, to: method, bytes: rest)
        offset += head.byteCount
        guard head.status >= 200 else { return .interim }
        body = BodyReader(length, limits: limits)
        phase = .content
        return .head(length)
    }

    /// Takes the next step behind the final head.
    package mutating func nextContent(
        in bytes: borrowing Span<UInt8>, from offset: inout Int
    ) throws(FramingError) -> Step {
        if phase == .complete { return .end }
        switch try body.next(in: bytes, from: &offset) {
        case .data(let range): return .data(range)
        case .more: return .more
        case .end:
            phase = .complete
            return .end
        }
    }
}
