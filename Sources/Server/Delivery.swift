import Glibc
import Message
import Storage

/// A stored body on its way to one client: where it stands, and how it is framed.
///
/// A class, so that a connection without one does not keep room for it. Reads what is published and waits for the rest, so it serves a complete body and one that is still arriving alike.
final class Delivery {
    let body: Body
    private(set) var offset: Int
    /// One past the last byte wanted; nil: until the body ends, wherever that will be.
    let end: Int?
    let isChunked: Bool
    /// Bytes of the chunk whose header is out already.
    private var chunkRemaining = 0
    /// The last chunk is out, or queued.
    private var isTerminated = false
    /// A growing body is told how far its readers are, in case it has to stream through a window.
    private let reader: ReaderID?
    /// The bytes it should begin with were let go a moment before.
    private let isLost: Bool
    var ticket: WaitTicket?

    init(body: Body, range: Range<Int>?, isChunked: Bool) {
        self.body = body
        offset = range?.lowerBound ?? 0
        end = range?.upperBound
        self.isChunked = isChunked
        let isGrowing = body.state == .growing
        reader = isGrowing ? body.attach(at: offset) : nil
        isLost = isGrowing && reader == nil
    }

    enum Next {
        case bytes(Int)
        case wait
        case finished
        case broken
    }

    /// What there is to send now; chunk framing goes into `framing`, which is sent before the bytes.
    func next(framing: inout [UInt8]) -> Next {
        if isLost { return .broken }
        if chunkRemaining > 0 { return .bytes(chunkRemaining) }
        // The state is read first: a body that is complete by then has its whole length published.
        let state = body.state
        let available = min(end ?? .max, body.length) - offset
        if available > 0 {
            if isChunked {
                HeadWriter.append(hexadecimal: available, to: &framing)
                HeadWriter.append("\r\n", to: &framing)
                chunkRemaining = available
            }
            return .bytes(available)
        }
        if let end, offset >= end { return .finished }
        switch state {
        case .growing: return .wait
        case .failed, .partial: return .broken
        case .complete:
            guard end == nil else { return .broken }
            if isChunked && !isTerminated { HeadWriter.append("0\r\n\r\n", to: &framing) }
            isTerminated = true
            return .finished
        }
    }

    /// - Parameter framing: gets the end of a chunk that is out.
    func advance(by count: Int, framing: inout [UInt8]) {
        offset += count
        if let reader { body.advance(reader, to: offset) }
        guard isChunked else { return }
        chunkRemaining -= count
        if chunkRemaining == 0 { HeadWriter.append("\r\n", to: &framing) }
    }

    func end(cancelling: Bool) {
        if let ticket, cancelling { body.cancel(ticket) }
        if let reader { body.detach(reader) }
    }
}
