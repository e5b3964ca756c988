package import Message

/// Decodes the framing of a request's body (RFC 9112 §6), in whatever pieces it arrives.
package struct RequestBodyDecoder: Sendable {
    private enum State {
        case length(remaining: UInt64)
        case chunked(ChunkedDecoder)
        case whole
    }
    private var state: State
    /// The trailer section of a complete chunked body. Nil if there is none.
    package private(set) var trailers: Fields?

    package init(_ length: BodyLength, limits: Limits) {
        switch length {
        case .length(let count) where count > 0: state = .length(remaining: count)
        case .chunked: state = .chunked(ChunkedDecoder(limits: limits))
        case .none, .length, .untilClose, .tunnel: state = .whole
        }
    }

    /// Whether the whole body, its framing included, has been decoded.
    package var isWhole: Bool {
        if case .whole = state { return true }
        return false
    }

    /// Appends the content of `bytes` to `content`. After it has thrown, the decoder must not be used.
    ///
    /// - Returns: how many of the bytes belong to the body. Those behind belong to the next request.
    package mutating func decode(
        _ bytes: borrowing Span<UInt8>, into content: inout [UInt8]
    ) throws(FramingError) -> Int {
        switch state {
        case .whole:
            return 0
        case .length(let remaining):
            let count = Int(min(UInt64(bytes.count), remaining))
            unsafe bytes.extracting(..<count).withUnsafeBufferPointer { unsafe content.append(contentsOf: $0) }
            state = UInt64(count) == remaining ? .whole : .length(remaining: remaining - UInt64(count))
            return count
        case .chunked(var decoder):
            let consumed = try decode(bytes, &decoder, into: &content)
            if !isWhole { state = .chunked(decoder) }
            return consumed
        }
    }

    private mutating func decode(
        _ bytes: borrowing Span<UInt8>, _ decoder: inout ChunkedDecoder, into content: inout [UInt8]
    ) throws(FramingError) -> Int {
        var consumed = 0
        while consumed < bytes.count {
            let rest = bytes.extracting(consumed...)
            switch try decoder.step(rest) {
            case .needMore(let used):
                return consumed + used
            case .data(let used, let range):
                unsafe rest.extracting(range).withUnsafeBufferPointer { unsafe content.append(contentsOf: $0) }
                consumed += used
            case .end(let used):
                trailers = decoder.trailers
                state = .whole
                return consumed + used
            }
        }
        return consumed
    }
}
