import Compression
import Framing
import Storage

/// A stored body on its way to one client in another coding: what `Delivery` is for a body as it is stored.
///
/// Its bytes are made, not referred to, so they go where the connection keeps what is to be sent: ask for the next ones when
/// those before are out.
final class CodedDelivery {
    let body: Body
    /// Bytes of the stored body that are dealt with: what to wait beyond.
    private(set) var offset = 0
    private let transcoder: Transcoder
    private let isChunked: Bool
    /// A growing body is told how far its readers are, in case it has to stream through a window.
    private let reader: ReaderID?
    /// The bytes it should begin with were let go a moment before.
    private let isLost: Bool
    private var isTerminated = false
    var ticket: WaitTicket?

    /// - Parameter isChunked: the length of the content is not known; to clients that know no chunks (HTTP/1.0) the end of
    ///   the connection says it.
    init(body: Body, _ work: Transcoder.Work, isChunked: Bool) {
        self.body = body
        self.isChunked = isChunked
        transcoder = Transcoder(work)
        let isGrowing = body.state == .growing
        reader = isGrowing ? body.attach(at: 0) : nil
        isLost = isGrowing && reader == nil
    }

    enum Next: Equatable {
        /// So many bytes of content are in the buffer, framed.
        case queued(Int)
        case wait
        case finished
        /// The rest can not be made: the connection must end such that the client sees it (RFC 9112 §8).
        case broken
    }

    /// - Parameter out: gets content and framing, about 64 KiB at most.
    func next(into out: inout [UInt8]) -> Next {
        if isLost { return .broken }
        let start = out.count
        var progress = Transcoder.Progress.more
        do throws(TranscodingError) {
            // A step may take its share of input and make nothing of it.
            progress = try transcoder.next(from: body, offset: &offset, into: &out)
        } catch {
            return .broken
        }
        if let reader { body.advance(reader, to: offset) }
        let count = out.count - start
        if count > 0, isChunked { frame(count, in: &out) }
        switch progress {
        case .more: return .queued(count)
        case .wait: return count > 0 ? .queued(count) : .wait
        case .done:
            if count > 0 { return .queued(count) }
            if isChunked, !isTerminated { appendLastChunk(trailers: nil, to: &out) }
            isTerminated = true
            return .finished
        }
    }

    func end(cancelling: Bool) {
        if let ticket, cancelling { body.cancel(ticket) }
        if let reader { body.detach(reader) }
    }

    /// Makes the last `count` bytes a chunk (RFC 9112 §7.1).
    private func frame(_ count: Int, in out: inout [UInt8]) {
        var header: [UInt8] = []
        appendChunkHeader(count, to: &header)
        out.insert(contentsOf: header, at: out.count - count)
        out += [0x0D, 0x0A]
    }
}
