package import Message

/// Takes the content of a request's body out of its framing (RFC 9112 §6), over whatever pieces it arrives in.
package struct RequestBodyDecoder: Sendable {
    private enum State {
        case length(remaining: UInt64)
        case chunked(ChunkedDecoder)
        case whole
    }
    private var state: State
    /// The trailer section of a chunked body that is whole; nil where there is none.
    package private(set) var trailers: Fields?

    package init(_ length: BodyLength, limits: Limits) {
        switch length {
        case .length(let count) where count > 0: state = .length(remaining: count)
        case .chunked: state = .chunked(ChunkedDecoder(limits: limits))
        case .none, .length, .untilClose, .tunnel: state = .whole
        }
    }

    /// The last byte of the body, its framing included, has been decoded.
    package var isWhole: Bool {
        if case .whole = state { return true }
        return false
    }

    /// Appends the content that `bytes` hold. Having thrown, the decoder is of no more use.
    ///
    /// - Returns: how many bytes belong to the body; what is behind them is another request's.
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
