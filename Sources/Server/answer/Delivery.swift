import Forwarding
import Framing
import Glibc
import Message
import Storage

/// The sending of one body to one client: which ranges, how far it is, and how the bytes are framed.
///
/// It reads what the body has published and waits for the rest, so it serves complete, growing and partial bodies alike. The client
/// connection owns it, on the worker's thread; the body may be written on another thread at the same time. It is a class so that a
/// connection without one does not reserve room for it.
final class Delivery {
    /// The stored response that the body belongs to. Nil if the body is only passed on.
    private(set) var record: StoredResponse?
    /// The trailers of a body that is passed on or still arriving. They are set when the body ends.
    private let trailers: TransientTrailers?
    /// The stored body, or its compressed copy.
    private(set) var body: Body
    /// The offset in the body of the next byte to send.
    private(set) var offset: Int
    /// One past the last byte of the present range. Nil: the range ends where the body ends.
    private(set) var end: Int?
    let isChunked: Bool
    /// The ranges after the present one, in reverse order, each with the head of its part (RFC 9110 §14.6).
    private var following: [BodyPart] {
        _read { yield unsafe uncheckedFollowing }
        _modify { yield unsafe &uncheckedFollowing }
    }
    @exclusivity(unchecked) private var uncheckedFollowing: [BodyPart] = []
    /// Bytes to send before the first range.
    private var opening: [UInt8] = []
    /// Bytes to send behind the last range.
    private var closing: [UInt8] = []
    /// Bytes that are left of the present chunk, whose header has been queued.
    private var chunkRemaining = 0
    /// Whether the last chunk has been queued.
    private var isTerminated = false
    /// This delivery as a reader of a growing body. The body needs to know how far its readers are, in case it streams through a window.
    private var reader: ReaderID?
    /// Whether the body streams through a window that no longer holds the next byte.
    private var hasFallenBehind: Bool
    /// The file of what is left of a body that the back store has in one piece, kept open for a client that takes its bytes slowly: the store may
    /// give the place to others meanwhile. With the offset in the body at which it begins.
    private var heldFile: (start: Int, range: FileRange)?
    /// Whether `sendfile` failed on the file of the body: what is left is read, checked and copied.
    var mustCopy = false
    /// The registration for a wake when the body has more bytes.
    var ticket: WaitTicket?

    /// Changes the coding of the body while it is sent.
    private let transcoder: Transcoder?
    /// The piece that a thread of the back store reads or has read.
    private var reading: DiskReading?

    /// Sends one range, or the whole body if `range` is nil.
    ///
    /// - Parameters:
    ///   - body: sent in place of the stored response's own body.
    ///   - work: how the coding changes while the body is sent.
    init(
        _ record: StoredResponse, body: Body? = nil, range: Range<Int>?, isChunked: Bool, work: Transcoder.Work? = nil
    ) {
        self.record = record
        trailers = record.trailers
        self.body = body ?? record.body
        transcoder = work.map(Transcoder.init)
        offset = range?.lowerBound ?? 0
        end = range?.upperBound
        precondition(end ?? 0 <= self.body.expectedLength ?? .max, "a range lies within the body")
        self.isChunked = isChunked
        (reader, hasFallenBehind) = Delivery.attach(to: self.body, at: offset)
    }

    /// Sends a body that is passed on to this client alone.
    init(passing body: Body, isChunked: Bool, trailers: TransientTrailers?) {
        record = nil
        self.trailers = trailers
        self.body = body
        transcoder = nil
        offset = 0
        end = body.expectedLength
        self.isChunked = isChunked
        (reader, hasFallenBehind) = Delivery.attach(to: body, at: 0)
    }

    /// Sends several ranges, each behind the head of its part.
    init(_ record: StoredResponse, parts: [BodyPart], closing: [UInt8]) {
        precondition(!parts.isEmpty, "an answer with several ranges has at least one")
        self.record = record
        trailers = nil
        body = record.body
        transcoder = nil
        opening = parts[0].head
        unsafe uncheckedFollowing = parts.dropFirst().reversed()
        self.closing = closing
        isChunked = false
        offset = parts[0].range.lowerBound
        precondition(
            parts.allSatisfy { $0.range.upperBound <= record.body.expectedLength ?? .max },
            "a range lies within the body")
        end = parts[0].range.upperBound
        (reader, hasFallenBehind) = Delivery.attach(to: record.body, at: offset)
    }

    private static func attach(to body: Body, at offset: Int) -> (ReaderID?, hasFallenBehind: Bool) {
        // A body that streamed through a window keeps only its length after the end of the transfer.
        switch body.state {
        case .growing, .moved: break
        case .complete, .failed, .partial: guard body.isWindowed else { return (nil, false) }
        }
        let reader = body.attach(at: offset)
        return (reader, reader == nil)
    }

    /// Whether bytes of the body may be sent from their file, where they are in one.
    ///
    /// Not for a client that came while the body was growing in memory: its bytes are warm, and a page that was sent by reference goes to the system
    /// when the response is evicted. Another one from there costs more than the copy: a miss of 256 KiB that displaces one takes 95 µs instead of 205.
    var sendsByReference: Bool { !mustCopy && (reader == nil || !body.isResident) }

    /// Keeps what is left of the body for a client that takes its bytes slowly.
    ///
    /// - Parameter file: gives the bytes from an offset on, so many, as a range of a file.
    /// - Returns: false if they are not to be had like this: the body belongs into memory.
    func holdFile(_ file: (_ offset: Int, _ count: Int) -> FileRange?) -> Bool {
        if heldFile != nil { return true }
        guard !mustCopy, !isTranscoded, following.isEmpty, let end = endNeeded, end > offset,
            let range = file(offset, end - offset), range.count == end - offset
        else { return false }
        heldFile = (offset, range)
        return true
    }

    /// The next bytes from the file that is kept, `limit` at most, if the body has left its place in the store. Nil if they are no longer in the page
    /// cache: what is read again has to be verified, and the store has forgotten how.
    func heldRange(limit: Int) -> FileRange? {
        guard let heldFile, !mustCopy, body.hasLeftItsPlace,
            let range = heldFile.range.suffix(from: offset - heldFile.start, limit: limit), range.isCached
        else { return nil }
        return range
    }

    /// What to send next.
    enum Next {
        /// So many bytes of the body at `offset`.
        case bytes(Int)
        /// So many bytes of content, which are in the framing already.
        case made(Int)
        /// Nothing yet: the body grows, or bytes are missing.
        case wait
        /// Nothing more.
        case finished
        case broken(Breakage)
    }

    /// Why a body cannot be read to its end.
    enum Breakage {
        /// The transfer that the body arrives with broke off.
        case transferFailed
        /// The body has left the store, or the window no longer holds its bytes.
        case gone
        /// The body is not in the coding that its head names.
        case undecodable
    }

    /// What to send next. Framing of chunks and parts is appended to `framing`, which is sent before the bytes.
    func next(framing: inout [UInt8]) -> Next {
        // The window has freed bytes that this client was never sent. Sending what follows would leave a gap in its body.
        if hasFallenBehind { return .broken(.gone) }
        if let transcoder { return transcode(transcoder, framing: &framing) }
        // The header of the chunk is queued or sent already, and announces this many bytes.
        if chunkRemaining > 0 {
            // A body that was rescued meanwhile may lack bytes that the chunk was to have.
            let available = body.state == .partial ? body.available(from: offset) - offset : chunkRemaining
            return available > 0 ? .bytes(min(available, chunkRemaining)) : .wait
        }
        if !opening.isEmpty {
            framing += opening
            opening = []
        }
        while let reached = end, offset >= reached {
            guard let part = following.popLast() else {
                if !closing.isEmpty {
                    framing += closing
                    closing = []
                }
                return .finished
            }
            framing += part.head
            offset = part.range.lowerBound
            end = part.range.upperBound
            moveReader()
            if hasFallenBehind { return .broken(.gone) }
        }
        // Read the state before the length: if the body is complete, its whole length is published by then.
        let body = body
        let state = body.state
        let available = min(end ?? .max, body.available(from: offset)) - offset
        precondition(available >= 0, "the delivery is beyond its range")
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
        case .moved:
            followBody()
            return next(framing: &framing)
        // The transfer of this reader broke off. It must not ask again for what its leader could not get.
        case .partial: return reader == nil ? .wait : .broken(.transferFailed)
        case .failed: return .broken(reader == nil ? .gone : .transferFailed)
        // Another reader has just found a block damaged. It is a hole now, and is fetched again.
        case .complete where body.isLarge && offset < endNeeded ?? 0: return .wait
        case .complete:
            guard end == nil else { return .broken(.gone) }
            terminate(&framing)
            return .finished
        }
    }

    /// Continues with the body that took the place of this one. All bytes of this one have been read.
    private func followBody() {
        guard let left = reader, let next = body.continuation as? StoredResponse else {
            preconditionFailure("a body that moved has a continuation, and its readers are attached")
        }
        precondition(offset == body.length, "a body that moved is read to its end")
        let moved = body
        (record, body) = (next, next.body)
        (reader, hasFallenBehind) = Delivery.attach(to: body, at: offset)
        // Detach last: as long as somebody reads the old body, a window keeps the bytes behind it.
        moved.detach(left)
    }

    /// Goes on at the same offset with the response that took the place of this one, because its body could not be read here.
    func goOn(with rescued: StoredResponse) {
        precondition(reader == nil && ticket == nil, "nobody waits for bytes of a body that the back store has whole")
        precondition(!isTranscoded, "a body is rescued where its own bytes are sent")
        (record, body) = (rescued, rescued.body)
        (reading, heldFile) = (nil, nil)
    }

    /// Attaches to the body anew at the next range, which may lie before the last one. A reader that kept its old position would delay
    /// all readers of a window.
    private func moveReader() {
        guard let left = reader else { return }
        reader = body.attach(at: offset)
        hasFallenBehind = reader == nil
        body.detach(left)
    }

    private func transcode(_ transcoder: Transcoder, framing: inout [UInt8]) -> Next {
        if body.state == .moved, lacksBytes {
            followBody()
            if hasFallenBehind { return .broken(.gone) }
        }
        var out: [UInt8] = []
        let progress: Transcoder.Progress
        var position = offset
        do throws(TranscodingError) {
            if !body.isResident {
                guard let source = pieceToTranscode() else { return .wait }
                progress = try transcoder.next(from: source, offset: &position, into: &out)
            } else {
                progress = try transcoder.next(from: body, offset: &position, into: &out)
            }
        } catch {
            switch error {
            case .inflating: return .broken(.undecodable)
            case .bodyFailed: return .broken(reader == nil ? .gone : .transferFailed)
            }
        }
        offset = position
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

    /// The next bytes of a body that is not in memory. Valid until the next call, and while the delivery does not move.
    ///
    /// - Parameter room: at least `blockBytes`, where the bytes may be read into.
    func piece(limit: Int, room: UnsafeMutableRawBufferPointer) -> Body.Piece {
        if let reading {
            guard let read = reading.result else { return .wouldBlock }
            if let bytes = unsafe read.bytes(from: offset) {
                return unsafe .bytes(UnsafeRawBufferPointer(rebasing: bytes.prefix(limit)))
            }
            self.reading = nil
            // Asked again without waiting, the store would only say that it has to wait.
            if read.hasFoundNothing(at: offset) { return .nothing }
        }
        return unsafe body.piece(from: offset, limit: limit, room: room, waits: false)
    }

    /// Whether a thread of the back store is reading.
    var isReading: Bool {
        guard let reading else { return false }
        return reading.result == nil
    }

    /// Makes the job that reads the bytes at `offset` on a thread of the back store.
    func beginReading() -> DiskReading {
        precondition(!isReading, "one piece is read at a time")
        let made = DiskReading(body: body, offset: offset)
        reading = made
        return made
    }

    /// The next piece of a body that is not in memory. Returns nil if reading it would block, or if the body has no more bytes yet.
    private func pieceToTranscode() -> TranscodedPiece? {
        // It is made first, because it reads the state: a body that is complete by then has its whole length published.
        let last = TranscodedPiece(behind: offset, of: body)
        if lacksBytes { return last }
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

    /// Whether only the end of the connection ends the body (RFC 9112 §6.3 rule 8).
    var endsWithConnection: Bool { !isChunked && end == nil }

    /// Whether the coding changes while the body is sent.
    var isTranscoded: Bool { transcoder != nil }

    /// One past the last byte that is needed. Nil if neither the range nor the length of the body says so.
    var endNeeded: Int? { end ?? body.expectedLength }

    /// How many bytes of content the client gets. Nil if that is not known.
    var lengthNeeded: Int? {
        guard !isTranscoded, let endNeeded else { return nil }
        return following.reduce(max(0, endNeeded - offset)) { $0 + $1.range.count }
    }

    /// The socket accepted `count` bytes of the body.
    ///
    /// - Returns: true if that was the end of a chunk, behind which `endOfChunk` follows.
    func advance(by count: Int) -> Bool {
        offset += count
        if let reader { body.advance(reader, to: offset) }
        precondition(count >= 0 && offset <= end ?? .max, "more bytes were sent than the range has")
        guard isChunked else { return false }
        precondition(count <= chunkRemaining, "more bytes were sent than the chunk has")
        chunkRemaining -= count
        return chunkRemaining == 0
    }

    static let endOfChunk: StaticString = "\r\n"

    /// Whether no byte that is needed is missing.
    var isComplete: Bool { missing.isEmpty }

    /// The needed ranges that the body lacks.
    var missing: [Range<Int>] {
        let extents = body.extents
        let ranges = (endNeeded.map { [offset..<max(offset, $0)] } ?? []) + following.map(\.range)
        return ranges.flatMap { gaps(in: $0, between: extents) }
    }

    /// Whether the byte at `offset` has not been published.
    var lacksBytes: Bool { body.available(from: offset) == offset }

    /// Whether the byte at `offset` is missing. False behind the last byte, where nothing is missing: a transcoder that has read all bytes
    /// waits there for the body to be complete, which another thread may be about to say.
    var isAtHole: Bool { body.state == .partial && offset < endNeeded ?? .max && lacksBytes }

    /// Whether a byte that cannot be read from the back store may be fetched again.
    var mayBeFilled: Bool { body.isLarge && body.state != .growing && !body.isWindowed }

    /// Detaches from the body. Until then the body counts this delivery among its readers, and a window waits for it.
    func end(cancelling: Bool) {
        // A wake that is on its way all the same finds the connection by its number, and makes it send what it has.
        if let ticket, cancelling { body.cancel(ticket) }
        if let reader { body.detach(reader) }
    }
}

/// The parts of a range that no extent covers. The extents are in order.
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
    /// Whether the store can keep these missing ranges beside the bytes that it has.
    ///
    /// - Parameter lengthMax: how many bytes of one body may be kept.
    func mayKeep(_ ranges: [Range<Int>], lengthMax: Int) -> Bool {
        heldBytes + ranges.reduce(0) { $0 + $1.count } <= lengthMax && hasRoom(for: ranges)
    }

    /// The number of bytes that the body has, in all extents.
    var heldBytes: Int { extents.reduce(0) { $0 + $1.count } }
}
