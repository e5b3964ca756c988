import Framing
import Message

/// The body of one request. The session puts in the bytes that follow the request's head; the exchange takes out the decoded content.
///
/// Content that nobody has taken is kept, and the session stops reading from the client while there is much of it. So a body never takes
/// more memory than `ClientConnection.inboundBytesMax` and one read.
final class InboundBody {
    private var decoder: RequestBodyDecoder
    /// The decoded content that has arrived, in bytes.
    private(set) var contentBytes = 0
    /// Content that nobody has taken yet.
    private var content: [UInt8] = []
    /// Set once the client violates the framing. Nothing behind the violation can be interpreted.
    private(set) var violation: FramingError?

    init(_ length: BodyLength, limits: Limits) { decoder = RequestBodyDecoder(length, limits: limits) }

    /// Whether the client has sent the whole body.
    var isWhole: Bool { decoder.isWhole }
    /// Whether the whole body has been taken.
    var isTaken: Bool { isWhole && content.isEmpty }
    /// The trailers; nil if there are none, or if the body is not complete yet.
    var trailers: Fields? { decoder.trailers }
    /// Decoded bytes that have not been taken.
    var waitingBytes: Int { content.count }

    /// All of the content. Nil if it is not complete, or if some of it has been taken.
    var wholeContent: [UInt8]? { isWhole && content.count == contentBytes ? content : nil }

    /// Decodes bytes from the client.
    ///
    /// - Returns: how many of the bytes belong to the body. After a violation, all of them.
    func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
        precondition(!isWhole, "bytes behind the end of a body are another request")
        guard violation == nil else { return bytes.count }
        do throws(FramingError) {
            let before = content.count
            let used = unsafe try decoder.decode(bytes.bindMemory(to: UInt8.self).span, into: &content)
            contentBytes += content.count - before
            precondition(used <= bytes.count, "a body uses no more bytes than it was given")
            precondition(used == bytes.count || decoder.isWhole, "bytes are left only behind the end of the body")
            return used
        } catch {
            // Where the body ends is unknown from here on, and so is where the next request would begin: all bytes are swallowed, and the
            // connection closes after the answer (RFC 9112 §9.3).
            violation = error
            return bytes.count
        }
    }

    /// Hands over the content received so far. Throws a violation of the framing only after the content before it was handed over.
    ///
    /// - Parameter consume: gets all of the content in one piece; not called if there is none. Returns whether it wants more at once.
    /// - Returns: whether the session may read more from the client.
    func take(_ consume: (UnsafeRawBufferPointer) -> Bool) throws(FramingError) -> Bool {
        var wantsMore = true
        if !content.isEmpty {
            // `consume` may cause more to be received, which must find an empty buffer.
            var taken: [UInt8] = []
            swap(&taken, &content)
            wantsMore = unsafe taken.withUnsafeBytes { unsafe consume($0) }
            if content.isEmpty {
                taken.removeAll(keepingCapacity: true)
                swap(&taken, &content)
            }
        }
        if let violation { throw violation }
        return wantsMore
    }
}
