import Framing
import Message

/// The body of one request: whoever forwards it takes its content here, decoded, and nowhere else.
///
/// The session gives it what comes from the client behind the request's head, up to the end of the body. What nobody has taken is kept, and
/// the session reads no more from the client while that is a lot.
final class InboundBody {
    private var decoder: RequestBodyDecoder
    /// Content that nobody has taken yet.
    private var content: [UInt8] = []
    /// What came breaks the framing; nothing behind it can be understood.
    private(set) var violation: FramingError?

    init(_ length: BodyLength, limits: Limits) { decoder = RequestBodyDecoder(length, limits: limits) }

    /// The client has sent all of it.
    var isWhole: Bool { decoder.isWhole }
    /// All of it was taken.
    var isTaken: Bool { isWhole && content.isEmpty }
    /// Nil where the body had none, or is not whole.
    var trailers: Fields? { decoder.trailers }
    /// Bytes that wait to be taken.
    var waitingBytes: Int { content.count }

    /// Takes in what the client sent.
    ///
    /// - Returns: how many of the bytes belong to the body.
    func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard violation == nil else { return bytes.count }
        do throws(FramingError) {
            return unsafe try decoder.decode(bytes.bindMemory(to: UInt8.self).span, into: &content)
        } catch {
            violation = error
            return bytes.count
        }
    }

    /// Hands over the content that has come, at most once all of it; what was wrong with the framing is thrown behind what was right.
    ///
    /// - Parameter consume: returns whether more is wanted at once.
    /// - Returns: true where more may be read from the client.
    func take(_ consume: (UnsafeRawBufferPointer) -> Bool) throws(FramingError) -> Bool {
        var wantsMore = true
        if !content.isEmpty {
            // What is taken may lead to more being received: it must find an empty buffer.
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
