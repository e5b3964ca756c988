import Framing
import Message

/// The body of a request on its way to the origin: decoded from the client's framing, framed anew by the fetch.
struct RequestUpload {
    private(set) var isComplete = false
    private var remaining: UInt64 = 0
    private var decoder: ChunkedDecoder?

    init(_ length: BodyLength, limits: Limits) {
        switch length {
        case .length(let count): remaining = count
        case .chunked: decoder = ChunkedDecoder(limits: limits)
        case .none, .untilClose, .tunnel: isComplete = true
        }
    }

    /// Sends what is there; what follows the body stays in `inbound`.
    /// - Returns: more may be read from the client.
    mutating func send(_ inbound: inout [UInt8], to fetch: Fetch) throws(FramingError) -> Bool {
        guard !isComplete, !inbound.isEmpty else { return true }
        let bytes = inbound
        inbound = []
        var consumed = 0
        var wantsMore = true
        if decoder == nil {
            consumed = Int(min(UInt64(bytes.count), remaining))
            remaining -= UInt64(consumed)
            wantsMore = unsafe bytes.withUnsafeBytes {
                unsafe fetch.sendBody(UnsafeRawBufferPointer(rebasing: $0[..<consumed]))
            }
            if remaining == 0 { end(fetch, trailers: nil) }
        } else {
            wantsMore = try sendChunked(bytes, &consumed, fetch)
        }
        if consumed < bytes.count { inbound = bytes[consumed...] + inbound }
        return wantsMore
    }

    private mutating func sendChunked(_ bytes: [UInt8], _ consumed: inout Int, _ fetch: Fetch) throws(FramingError)
        -> Bool
    {
        var wantsMore = true
        while !isComplete && consumed < bytes.count {
            let base = consumed
            switch try decoder!.step(bytes.span.extracting(base...)) {
            case .needMore(let used):
                consumed += used
                return wantsMore
            case .data(let used, let range):
                consumed += used
                wantsMore = unsafe bytes.withUnsafeBytes {
                    unsafe fetch.sendBody(
                        UnsafeRawBufferPointer(rebasing: $0[base + range.lowerBound..<base + range.upperBound]))
                }
            case .end(let used):
                consumed += used
                end(fetch, trailers: decoder?.trailers)
            }
        }
        return wantsMore
    }

    private mutating func end(_ fetch: Fetch, trailers: Fields?) {
        isComplete = true
        fetch.endBody(trailers: trailers)
    }
}
