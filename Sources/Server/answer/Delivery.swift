import Forwarding
import Framing
import Glibc
import Message
import Storage

/// A stored body on its way to one client: which ranges of it, where it stands, and how it is framed.
///
/// A class, so that a connection without one does not keep room for it. Reads what is published and waits for the
/// rest, so it serves a body that is complete, still arriving, or partial alike.
final class Delivery {
    /// The stored response whose body it is; nil: the body is only passed on.
    let record: StoredResponse?
    /// Those of a body that is passed on or arriving, known at its end.
    private let trailers: TransientTrailers?
    /// The stored body, or its compressed copy.
    let body: Body
    private(set) var offset: Int
    /// One past the last byte of the range under way; nil: until the body ends, wherever that will be.
    private(set) var end: Int?
    let isChunked: Bool
    /// The ranges after the one under way, last first, each with what goes out before it (RFC 9110 §14.6).
    private var following: [BodyPart] = []
    /// What goes out before the first range.
    private var opening: [UInt8] = []
    /// What goes out behind the last range.
    private var closing: [UInt8] = []
    /// Bytes of the chunk whose header is out already.
    private var chunkRemaining = 0
    /// The last chunk is out, or queued.
    private var isTerminated = false
    /// A growing body is told how far its readers are, in case it has to stream through a window.
    private var reader: ReaderID?
    /// The body streams through a window that has passed the bytes to go on with.
    private var isLost: Bool
    var ticket: WaitTicket?

    /// Makes another coding of the body on the way.
    private let transcoder: Transcoder?
    /// What is being read from the disk on another thread, or was.
    private var reading: DiskReading?

    /// One range, or all of the body where `range` is nil.
    /// - Parameters:
    ///   - body: in place of the record's own.
    ///   - work: what is done to it on the way.
    init(
        _ record: StoredResponse, body: Body? = nil, range: Range<Int>?, isChunked: Bool, work: Transcoder.Work? = nil
    ) {
        self.record = record
        trailers = record.trailers
        self.body = body ?? record.body
        transcoder = work.map(Transcoder.init)
        offset = range?.lowerBound ?? 0
        end = range?.upperBound
        self.isChunked = isChunked
        (reader, isLost) = Delivery.attach(to: self.body, at: offset)
    }

    /// A body that is only passed on, to this one client.
    init(passing body: Body, isChunked: Bool, trailers: TransientTrailers?) {
        record = nil
        self.trailers = trailers
        self.body = body
        transcoder = nil
        offset = 0
        end = body.expectedLength
        self.isChunked = isChunked
        (reader, isLost) = Delivery.attach(to: body, at: 0)
    }

    /// Several ranges, each with its part's head before it.
    init(_ record: StoredResponse, parts: [BodyPart], closing: [UInt8]) {
        precondition(!parts.isEmpty, "an answer of no parts is none")
        self.record = record
        trailers = nil
        body = record.body
        transcoder = nil
        opening = parts[0].head
        following = parts.dropFirst().reversed()
        self.closing = closing
        isChunked = false
        offset = parts[0].range.lowerBound
        end = parts[0].range.upperBound
        (reader, isLost) = Delivery.attach(to: record.body, at: offset)
    }

    private static func attach(to body: Body, at offset: Int) -> (ReaderID?, isLost: Bool) {
        // Of a body that streamed through a window, the end of the transfer leaves only the length.
        guard body.state == .growing || body.isWindowed else { return (nil, false) }
        let reader = body.attach(at: offset)
        return (reader, reader == nil)
    }

    enum Next {
        case bytes(Int)
        /// What goes out is all in the framing.
        case made(Int)
        case wait
        case finished
        case broken(Breakage)
    }

    /// Why a body cannot be read to its end.
    enum Breakage {
        /// The transfer that it arrives with broke off.
        case transferFailed
        /// It has left the store.
        case gone
        /// It is not in the coding that its head says.
        case undecodable
    }

    /// What there is to send now; framing of chunks and parts goes into `framing`, which is sent before the bytes.
    func next(framing: inout [UInt8]) -> Next {
        if isLost { return .broken(.gone) }
        if let transcoder { return transcode(transcoder, framing: &framing) }
        if chunkRemaining > 0 { return .bytes(chunkRemaining) }
        if !opening.isEmpty {
            framing += opening
            opening = []
        }
        while let reached = end, offset >= reached {
            guard let part = following.popLast() else {
                framing += closing
                closing = []
                return .finished
            }
            framing += part.head
            offset = part.range.lowerBound
            end = part.range.upperBound
            moveReader()
            if isLost { return .broken(.gone) }
        }
        // The state is read first: a body that is complete by then has its whole length published.
        let state = body.state
        let available = min(end ?? .max, body.available(from: offset)) - offset
        if available > 0 {
            if isChunked {
                HeadWriter.append(hexadecimal: available, to: &framing)
                HeadWriter.append("\r\n", to: &framing)
                chunkRemaining = available
            }
            return .bytes(available)
        }
        switch state {
        case .growing: return .wait
        // Who followed the transfer that broke off does not try again what its leader tried in vain.
        case .partial: return reader == nil ? .wait : .broken(.transferFailed)
        case .failed: return .broken(reader == nil ? .gone : .transferFailed)
        // A block was found damaged by somebody else, at this moment: it is fetched anew.
        case .complete where body.isLarge && offset < endNeeded ?? 0: return .wait
        case .complete:
            guard end == nil else { return .broken(.gone) }
            terminate(&framing)
            return .finished
        }
    }

    /// The next range may lie before the one that is done. To hold all until then would hold up those who read in order.
    private func moveReader() {
        guard let left = reader else { return }
        reader = body.attach(at: offset)
        isLost = reader == nil
        body.detach(left)
    }

    private func transcode(_ transcoder: Transcoder, framing: inout [UInt8]) -> Next {
        var out: [UInt8] = []
        let progress: Transcoder.Progress
        do throws(TranscodingError) {
            if !body.isResident {
                guard let source = pieceToTranscode() else { return .wait }
                progress = try transcoder.next(from: source, offset: &offset, into: &out)
            } else {
                progress = try transcoder.next(from: body, offset: &offset, into: &out)
            }
        } catch {
            switch error {
            case .inflating: return .broken(.undecodable)
            case .bodyFailed: return .broken(reader == nil ? .gone : .transferFailed)
            }
        }
        if let reader { body.advance(reader, to: offset) }
        if !out.isEmpty {
            if isChunked { appendChunkHeader(out.count, to: &framing) }
            framing += out
            if isChunked { HeadWriter.append("\r\n", to: &framing) }
            return .made(out.count)
        }
        switch progress {
        case .more: return .made(0)
        case .wait: return .wait
        case .done:
            terminate(&framing)
            return .finished
        }
    }

    // MARK: bytes from the disk

    /// Bytes to send of a large body, from where it stands; for the moment.
    /// - Parameter room: at least `blockBytes`.
    func piece(limit: Int, room: UnsafeMutableRawBufferPointer) -> Body.Piece {
        if let reading {
            guard let read = reading.result else { return .wouldBlock }
            if let bytes = unsafe read.bytes(from: offset) {
                return unsafe .bytes(UnsafeRawBufferPointer(rebasing: bytes.prefix(limit)))
            }
            self.reading = nil
        }
        return unsafe body.piece(from: offset, limit: limit, room: room, waits: false)
    }

    /// The piece under way is being read by somebody who may block.
    var isReading: Bool {
        guard let reading else { return false }
        return reading.result == nil
    }

    /// What stands at the offset, to be read on a thread that may block.
    func beginReading() -> DiskReading {
        let made = DiskReading(body: body, offset: offset)
        reading = made
        return made
    }

    /// nil: it has to be waited for.
    private func pieceToTranscode() -> TranscodedPiece? {
        let isAtEnd = body.expectedLength == offset
        if isAtEnd { return TranscodedPiece(state: .complete, start: offset, bytes: []) }
        var room = [UInt8](repeating: 0, count: Transcoder.stepBytesMax)
        let bytes: [UInt8]? = unsafe room.withUnsafeMutableBytes { room in
            guard case .bytes(let bytes) = unsafe piece(limit: room.count, room: room) else { return nil }
            return unsafe Array(bytes)
        }
        guard let bytes else { return nil }
        let isLast = offset + bytes.count == body.expectedLength
        return TranscodedPiece(state: isLast ? .complete : .growing, start: offset, bytes: bytes)
    }

    private func terminate(_ framing: inout [UInt8]) {
        if isChunked && !isTerminated { appendLastChunk(trailers: trailers?.value, to: &framing) }
        isTerminated = true
    }

    /// Nothing but the end of the connection tells where it ends.
    var endsWithConnection: Bool { !isChunked && end == nil }

    /// Everything made so far goes out before more is made.
    var isTranscoded: Bool { transcoder != nil }

    /// One past the last byte that it needs of a body whose length is known.
    var endNeeded: Int? { end ?? body.expectedLength }

    /// - Parameter framing: gets the end of a chunk that is out.
    func advance(by count: Int, framing: inout [UInt8]) {
        offset += count
        if let reader { body.advance(reader, to: offset) }
        guard isChunked else { return }
        chunkRemaining -= count
        if chunkRemaining == 0 { HeadWriter.append("\r\n", to: &framing) }
    }

    /// Nothing that it will send is missing.
    var isAllThere: Bool { missing.isEmpty }

    /// What of that which it will send is not there.
    var missing: [Range<Int>] {
        let extents = body.extents
        let ranges = (endNeeded.map { [offset..<max(offset, $0)] } ?? []) + following.map(\.range)
        return ranges.flatMap { gaps(in: $0, between: extents) }
    }

    /// It stands before bytes that nobody has fetched.
    var isBeforeHole: Bool { body.state == .partial && body.available(from: offset) == offset }

    func end(cancelling: Bool) {
        if let ticket, cancelling { body.cancel(ticket) }
        if let reader { body.detach(reader) }
    }
}

/// What of a range lies in none of the extents, which are in order.
private func gaps(in range: Range<Int>, between extents: [Range<Int>]) -> [Range<Int>] {
    var gaps: [Range<Int>] = []
    var start = range.lowerBound
    for extent in extents where extent.overlaps(range) {
        if start < extent.lowerBound { gaps.append(start..<extent.lowerBound) }
        start = extent.upperBound
    }
    if start < range.upperBound { gaps.append(start..<range.upperBound) }
    return gaps
}

extension Body {
    /// Whether these ranges, none of which is there, can be kept beside what is.
    /// - Parameter lengthMax: bytes of one body that may be kept.
    func mayKeep(_ ranges: [Range<Int>], lengthMax: Int) -> Bool {
        heldBytes + ranges.reduce(0) { $0 + $1.count } <= lengthMax && hasRoom(for: ranges)
    }

    /// All bytes that are there, in whatever order they came.
    var heldBytes: Int { extents.reduce(0) { $0 + $1.count } }
}
