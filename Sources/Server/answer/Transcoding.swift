import Caching
import Compression
import Glibc
import Storage
import Synchronization

/// Why a stored body cannot be sent in another coding.
enum TranscodingError: Error, Equatable {
    /// The stored bytes are not gzip, are cut short, or expand beyond the bounds (`InflateBounds`).
    case inflating(InflateError)
    /// The body broke off.
    case bodyFailed
}

/// Changes the coding of a stored body while it is sent to one client.
///
/// It never blocks and does little at a time: the worker calls `next` when its client has room, and serves other clients in between.
final class Transcoder {
    enum Work {
        case inflate(InflateBounds)
        /// - Parameter level: 1 (fast) to 9 (small).
        case compress(level: Int)

        /// Nil if the bytes that are sent are stored as they are.
        init?(_ choice: CodingChoice) {
            switch choice {
            case .asStored, .gzippedCopy: return nil
            case .inflated: self = .inflate(InflateBounds())
            case .gzipped: self = .compress(level: onTheFlyLevel)
            }
        }
    }

    enum Progress: Equatable {
        /// More can be made at once.
        case more
        /// All published bytes have been coded, flushed so that the client can decode them. The body still grows.
        case wait
        /// Everything has been made.
        case done
    }

    /// The most bytes that one step takes or makes. Compressing that many takes 0.7 ms at level 1, inflating them 0.2 ms.
    static let stepBytesMax = 64 << 10
    /// Room in bytes that is enough for any flush of zlib.
    private static let roomMin = 16
    /// The level for compressing for each client anew. For text, level 6 saves a fifth of the bytes but takes three times as long (30 ns
    /// for each byte in place of 11).
    static let onTheFlyLevel = 1

    /// The most compressors at once, over all workers: each holds 256 KiB. Beyond that, clients get the stored coding. Inflating is not
    /// bounded: it holds 40 KiB, and its client cannot read the stored coding.
    static let compressorsMax = 256
    private static let compressors = Atomic<Int>(0)
    /// Whether `compressorsMax` allows one more. Two threads that ask at once may both get the last one.
    static var mayCompress: Bool { compressors.load(ordering: .relaxed) < compressorsMax }

    // Exactly one of the two is set.
    private var inflator: Inflator?
    private var deflator: Deflator?
    private var isDone = false

    init(_ work: Work) {
        switch work {
        case .inflate(let bounds): inflator = Inflator(bounds: bounds)
        case .compress(let level):
            deflator = Deflator(level: level)
            Self.compressors.add(1, ordering: .relaxed)
        }
    }

    deinit {
        guard deflator != nil else { return }
        let before = Self.compressors.wrappingSubtract(1, ordering: .relaxed).oldValue
        precondition(before > 0, "a compressor is counted once")
    }

    /// Codes published bytes from `offset` on, and advances `offset` past them. Appends at most `limit` bytes, and no more than one
    /// step makes. Throws an error only after everything before it was handed over.
    ///
    /// - Parameter limit: at least 16.
    func next(
        from body: some TranscodedSource, offset: inout Int, limit: Int = stepBytesMax, into out: inout [UInt8]
    ) throws(TranscodingError) -> Progress {
        precondition(limit >= Self.roomMin, "a step needs room")
        let start = out.count
        do throws(TranscodingError) {
            return try isDone ? .done : advance(body, &offset, min(limit, Self.stepBytesMax), &out)
        } catch {
            // The next call throws the error again.
            guard out.count == start else { return .more }
            throw error
        }
    }

    private func advance(
        _ body: some TranscodedSource, _ offset: inout Int, _ limit: Int, _ out: inout [UInt8]
    ) throws(TranscodingError) -> Progress {
        // Read the state before the length: if the body is complete, its whole length is published by then.
        let state = body.state
        let length = body.length
        precondition(offset >= 0 && offset <= length, "bytes beyond the published ones cannot be coded")
        var (inputLeft, roomLeft) = (Self.stepBytesMax, limit)
        while roomLeft >= Self.roomMin {
            // Bytes that are published after `length` was read are left for the next step.
            let input = unsafe body.transcodedPiece(from: offset, limit: min(inputLeft, length - offset))
            let isAll = offset + input.count == length
            guard unsafe isAll || !input.isEmpty else { throw .bodyFailed }
            let made = unsafe try step(input, flush(state, isAll: isAll), room: roomLeft, into: &out)
            precondition(made.consumed <= input.count && made.produced <= roomLeft, "zlib went beyond its buffers")
            offset += made.consumed
            inputLeft -= made.consumed
            roomLeft -= made.produced
            if isAll && !made.needsRoom { return try atEnd(state, length) }
            if inputLeft == 0 { return .more }
        }
        return .more
    }

    /// All published bytes have been coded.
    private func atEnd(_ state: Body.State, _ length: Int) throws(TranscodingError) -> Progress {
        switch state {
        case .growing, .partial, .moved: return .wait
        case .failed: throw .bodyFailed
        case .complete:
            try finish(length)
            isDone = true
            return .done
        }
    }

    private func flush(_ state: Body.State, isAll: Bool) -> Deflator.Flush {
        guard isAll else { return .no }
        return state == .complete ? .finish : .sync
    }

    private func step(
        _ input: UnsafeRawBufferPointer, _ flush: Deflator.Flush, room: Int, into out: inout [UInt8]
    ) throws(TranscodingError) -> StreamStep {
        do throws(InflateError) {
            return unsafe try appendStep(to: &out, room: room) { room throws(InflateError) in
                unsafe try inflator?.step(input, into: room) ?? deflator!.step(input, into: room, flush)
            }
        } catch {
            throw .inflating(error)
        }
    }

    private func finish(_ length: Int) throws(TranscodingError) {
        // Some servers name a coding for empty content. An empty body stands for itself.
        guard length > 0 else { return }
        do throws(InflateError) { try inflator?.finish() } catch { throw .inflating(error) }
    }
}

/// A source of bytes to code: a stored body, or a piece of one.
protocol TranscodedSource {
    var state: Body.State { get }
    /// One past the last byte that is available.
    var length: Int { get }
    /// Bytes from `offset` on, at most `limit`. Empty if there are none.
    func transcodedPiece(from offset: Int, limit: Int) -> UnsafeRawBufferPointer
}

extension Body: TranscodedSource {
    /// Returns no bytes beyond the end of the page at `offset`.
    func transcodedPiece(from offset: Int, limit: Int) -> UnsafeRawBufferPointer {
        var vector = unsafe iovec()
        let used = unsafe withUnsafeMutablePointer(to: &vector) {
            unsafe vectors(from: offset, limit: limit, into: UnsafeMutableBufferPointer(start: $0, count: 1))
        }
        precondition(
            unsafe used == 0 || (used == 1 && vector.iov_len <= limit), "a piece ends with the published bytes")
        return unsafe used == 0
            ? UnsafeRawBufferPointer(start: nil, count: 0)
            : UnsafeRawBufferPointer(start: vector.iov_base, count: vector.iov_len)
    }
}

/// A piece of a body that is not in memory, copied after it was read. Its state is `complete` if it is the last one.
@safe final class TranscodedPiece: TranscodedSource {
    let state: Body.State
    private let start: Int
    private let count: Int
    private let bytes: UnsafeMutableRawBufferPointer

    init(state: Body.State, start: Int, bytes: [UInt8]) {
        precondition(start >= 0, "a piece begins at a byte of the body")
        self.state = state
        self.start = start
        count = bytes.count
        unsafe self.bytes = .allocate(byteCount: max(1, bytes.count), alignment: 16)
        unsafe self.bytes.copyBytes(from: bytes)
    }

    /// What stands behind the last byte of a body that has been read up to `offset`: nothing, but that it ends there. Nil if more may come.
    ///
    /// A large body can lose blocks on the disk when it is complete, or while somebody is still reading it. It is partial then, but whoever has read
    /// all of it needs none of them.
    convenience init?(behind offset: Int, of body: Body) {
        let state = body.state
        switch state {
        case .complete, .failed: self.init(state: state, start: offset, bytes: [])
        case .partial where offset == body.expectedLength: self.init(state: .complete, start: offset, bytes: [])
        case .growing, .partial, .moved: return nil
        }
    }

    deinit { unsafe bytes.deallocate() }

    var length: Int { start + count }

    func transcodedPiece(from offset: Int, limit: Int) -> UnsafeRawBufferPointer {
        precondition(
            offset >= start && offset <= length && limit >= 0, "bytes of another place would be coded")
        let first = min(offset - start, count)
        return unsafe UnsafeRawBufferPointer(rebasing: bytes[first..<min(count, first + limit)])
    }
}
