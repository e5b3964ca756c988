import Forwarding
import Framing
import Message

/// The body of a request on its way to the origin: read by the client's framing, framed anew by the fetch.
struct RequestUpload {
    private var reader: BodyReader
    /// The fetch has the whole body.
    private(set) var isComplete: Bool

    init(_ length: BodyLength, limits: Limits) {
        reader = BodyReader(length, limits: limits)
        isComplete = reader.isComplete
    }

    /// Sends what is there; what follows the body stays in `inbound`.
    /// - Returns: more may be read from the client.
    mutating func send(_ inbound: inout [UInt8], to fetch: Fetch) throws(FramingError) -> Bool {
        guard !isComplete, !inbound.isEmpty else { return true }
        let bytes = inbound
        inbound = []
        var offset = 0
        var wantsMore = true
        while !isComplete {
            switch try reader.next(in: bytes.span, from: &offset) {
            case .data(let range):
                wantsMore = unsafe bytes.withUnsafeBytes {
                    unsafe fetch.sendBody(UnsafeRawBufferPointer(rebasing: $0[range]))
                }
            case .more:
                return wantsMore
            case .end:
                isComplete = true
                fetch.endBody(trailers: reader.trailers)
            }
        }
        if offset < bytes.count { inbound = bytes[offset...] + inbound }
        return wantsMore
    }
}
