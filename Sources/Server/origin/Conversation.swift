import Access
package import Framing
package import Message
import Transaction

/// The user of a stream to an origin. An owner that waits for a stream must cancel its `StreamRequest` before it is released.
protocol OriginStreamOwner: ConversationOwner {
    /// A stream was lent. `isReused`: its connection has carried other requests.
    func opened(_ stream: OriginStream, isReused: Bool)
    /// No stream can be lent. `denial`: the access rule that forbids it, if one does.
    func openingFailed(_ refusal: Refusal, _ denial: Denial?)
}

/// Hears what becomes of one request and its response. Each call may end the conversation, or begin the next request on its connection.
///
/// ```
/// asked ─▶ received(interim:) … ─▶ received(final:) ─▶ content … ─▶ ended
///   │                                  │                  └─▶ brokeOff
///   └─▶ closedBeforeHead               └─▶ skipped, or nothing before `release`
/// ```
package protocol ConversationOwner: AnyObject {
    // MARK: reading

    /// At most this many of `count` bytes may be read now. If it is none, nothing is read before `resume`.
    func allowance(for count: Int) -> Int
    /// So many bytes have come.
    func hasRead(_ count: Int)
    /// The beginning of a head has come, and its end is still missing.
    func headBegan()
    /// An interim head has come (RFC 9110 §15.2). With a 101, the owner takes the connection or ends the conversation.
    func received(interim head: ArrivedHead)
    /// The final head has come. Its framing is known: the conversation says how much content follows.
    ///
    /// - Returns: what becomes of the content. It does not matter if the owner has ended the conversation, or begun the next request.
    func received(final head: ArrivedHead, of conversation: HTTP1Conversation) -> ContentUse
    /// Room that the content which follows may fill directly. Empty: the content is handed over by `received(content:)`.
    ///
    /// - Parameter limit: so many bytes follow before any framing does.
    func room(forContent limit: UInt64) -> UnsafeMutableRawBufferPointer
    /// So many bytes of content have been read into the room.
    func filled(_ count: Int)
    /// A piece of content. It is valid within the call.
    ///
    /// - Parameter isAll: no more content follows in this read.
    func received(content: UnsafeRawBufferPointer, isAll: Bool)
    /// The response is complete. Its trailers can be asked for.
    ///
    /// - Parameter byClosing: the end of the connection has ended it.
    func ended(byClosing: Bool)
    /// For the moment nothing more can be read.
    func endOfRead()
    /// The content that was to be skipped has been, or skipping it was given up and the connection does not persist.
    func skipped()

    // MARK: failures

    /// Bytes have come although nothing was asked, so they answer nothing.
    func receivedUnasked()
    /// A head or the framing of the content violates HTTP.
    func violated(_ error: FramingError)
    /// The connection has ended before a final head.
    ///
    /// - Parameter headBegan: a part of a head had come.
    func closedBeforeHead(headBegan: Bool)
    /// The connection has ended in the middle of the content.
    func brokeOff()

    // MARK: writing

    /// The socket has accepted all bytes that were sent.
    func drained()
    /// The connection accepts no more bytes. What the peer has sent can still be read.
    func writeFailed()
}

/// An owner without limits, and without memory of its own for content.
extension ConversationOwner {
    package func allowance(for count: Int) -> Int { count }
    package func hasRead(_ count: Int) {}
    package func headBegan() {}
    package func room(forContent limit: UInt64) -> UnsafeMutableRawBufferPointer {
        unsafe UnsafeMutableRawBufferPointer(start: nil, count: 0)
    }
    package func filled(_ count: Int) { preconditionFailure("content was read into room that nobody has given") }
    package func skipped() { preconditionFailure("no content was to be skipped") }
    package func endOfRead() {}
    package func drained() {}
    package func writeFailed() {}
}

/// What becomes of the content behind a final head.
package enum ContentUse {
    /// The owner gets it.
    case take
    /// It is read over, if it has no more than so many bytes; `skipped` follows.
    case skip(atMost: Int)
    /// It is left where it is, and the owner ends the conversation or has other plans.
    case leave
    /// The head has to wait. It comes once more after `release`, and nothing is read until then.
    case hold
}

/// A head that has just come, and what follows it in the memory that it was read into. Valid within the call.
@safe package struct ArrivedHead {
    private let head: UnsafePointer<ResponseHead>
    package let bytes: UnsafeRawBufferPointer
    /// What was read behind it.
    package let rest: UnsafeRawBufferPointer
    /// How long its content is (RFC 9112 §6.3).
    package let length: BodyLength

    init(
        _ head: UnsafePointer<ResponseHead>, _ bytes: UnsafeRawBufferPointer, _ rest: UnsafeRawBufferPointer,
        _ length: BodyLength
    ) {
        unsafe self.head = head
        unsafe self.bytes = bytes
        unsafe self.rest = rest
        self.length = length
    }

    package var status: UInt16 { unsafe head.pointee.status }
    package var minorVersion: UInt8 { unsafe head.pointee.minorVersion }
    package var reasonRange: Range<Int> { unsafe head.pointee.reasonRange }
    package var fields: FieldSection { unsafe head.pointee.fields }
    /// How much content follows, in bytes. Nil if the framing does not tell.
    package var missing: UInt64? {
        switch length {
        case .none, .tunnel: 0
        case .length(let count): count
        case .chunked, .untilClose: nil
        }
    }

    /// All of the content, if it has come together with the head and is not empty. `HTTP1Conversation.takeContent` takes it.
    package var content: UnsafeRawBufferPointer? {
        guard case .length(let count) = length, count > 0, unsafe count <= rest.count else {
            return unsafe UnsafeRawBufferPointer?.none
        }
        return unsafe UnsafeRawBufferPointer(rebasing: rest[..<Int(count)])
    }
}

/// The memory into which the conversations of one thread read, and parse. Its content is valid until the next read on this thread.
@safe package struct ConversationMemory {
    let input: UnsafeMutableRawBufferPointer
    let head: UnsafeMutablePointer<ResponseHead>
    /// For the heads and chunks of responses.
    let limits: UnsafePointer<Limits>

    package init(
        input: UnsafeMutableRawBufferPointer, head: UnsafeMutablePointer<ResponseHead>, limits: UnsafePointer<Limits>
    ) {
        unsafe self.input = input
        unsafe self.head = head
        unsafe self.limits = limits
    }
}

/// What became of bytes that were to be sent.
package enum WriteOutcome {
    /// The socket accepted all bytes.
    case sent
    /// The bytes that the socket did not accept are queued.
    case kept
    /// The connection accepts no more bytes.
    case failed
}

/// Keeps a connection between its conversations.
package protocol ConversationKeeper: AnyObject {
    /// Runs what the arrival of bytes causes.
    func turn(_ work: () -> Void)
    /// The connection is idle, and there is something to read: a message of TLS, the end, or bytes that nobody has asked for.
    func readableWhileIdle()
    func hasRead(_ count: Int)
    func hasWritten(_ count: Int)
}
