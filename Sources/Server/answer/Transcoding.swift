import Caching
import Compression
import Glibc
import Storage
import Synchronization

/// Why a stored body can not go out in another coding.
enum TranscodingError: Error, Equatable {
    /// The stored bytes are no gzip, are cut short, or expand beyond what is allowed.
    case inflating(InflateError)
    /// The body broke off.
    case bodyFailed
}

/// The content of a stored body in another coding, made while it goes out to one client.
///
/// Never blocks and never does much at a time: a worker calls `next` when its client has room, and has other clients.
final class Transcoder {
    enum Work {
        case inflate(InflateBounds)
        /// - Parameter level: 1 (fast) to 9 (small).
        case compress(level: Int)

        /// nil: nothing is to be made, what goes out is stored.
        init?(_ choice: CodingChoice) {
            switch choice {
            case .asStored, .gzippedCopy: return nil
            case .inflated: self = .inflate(InflateBounds())
            case .gzipped: self = .compress(level: onTheFlyLevel)
            }
        }
    }

    enum Progress: Equatable {
        /// There is more to do at once.
        case more
        /// All that has come is out, in a form the client can decode; the body still grows.
        case wait
        /// Everything is out.
        case done
    }

    /// Bytes taken or made in one step, at most: compressing that many takes 0.7 ms at level 1, inflating them 0.2 ms.
    static let stepBytesMax = 64 << 10
    /// Room in which any flush of zlib fits.
    private static let roomMin = 16
    /// Fast, for each client anew. Of text, level 6 makes a fifth less in three times the time (11 and 30 ns a byte).
    static let onTheFlyLevel = 1

    /// Compressors at work at once, for all workers together: each holds 256 KiB. Beyond, clients get what is stored. (One
    /// that inflates holds 40 KiB, and its client can not do without.)
    static let compressorsMax = 256
    private static let compressors = Atomic<Int>(0)
    /// Whether `compressorsMax` allows one more; two threads that ask at once may both be told so.
    static var mayCompress: Bool { compressors.load(ordering: .relaxed) < compressorsMax }

    // One of the two.
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
        if deflator != nil { Self.compressors.subtract(1, ordering: .relaxed) }
    }

    /// Appends what is made of the published bytes from `offset`, which moves on: at most `limit` bytes, and no more than
    /// a step takes. What can be made is handed over before an error is thrown.
    /// - Parameter limit: at least 16 bytes.
    func next(
        from body: some TranscodedSource, offset: inout Int, limit: Int = stepBytesMax, into out: inout [UInt8]
    ) throws(TranscodingError) -> Progress {
        precondition(limit >= Self.roomMin, "a step needs room")
        let start = out.count
        do throws(TranscodingError) {
            return try isDone ? .done : advance(body, &offset, min(limit, Self.stepBytesMax), &out)
        } catch {
            // It comes again.
            guard out.count == start else { return .more }
            throw error
        }
    }

    private func advance(
        _ body: some TranscodedSource, _ offset: inout Int, _ limit: Int, _ out: inout [UInt8]
    ) throws(TranscodingError) -> Progress {
        // The state is read first: a body that is complete by then has its whole length published.
        let state = body.state
        let length = body.length
        var (inputLeft, roomLeft) = (Self.stepBytesMax, limit)
        while roomLeft >= Self.roomMin {
            // What is published meanwhile is for the next step: there `length` and `state` know of it.
            let input = unsafe body.transcodedPiece(from: offset, limit: min(inputLeft, length - offset))
            let isAll = offset + input.count == length
            guard unsafe isAll || !input.isEmpty else { throw .bodyFailed }
            let made = unsafe try step(input, flush(state, isAll: isAll), room: roomLeft, into: &out)
            offset += made.consumed
            inputLeft -= made.consumed
            roomLeft -= made.produced
            if isAll && !made.needsRoom { return try atEnd(state, length) }
            if inputLeft == 0 { return .more }
        }
        return .more
    }

    /// All that is published is dealt with.
    private func atEnd(_ state: Body.State, _ length: Int) throws(TranscodingError) -> Progress {
        switch state {
        case .growing, .partial: return .wait
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
        // Deployed servers label content they do not send: nothing at all stands for nothing.
        guard length > 0 else { return }
        do throws(InflateError) { try inflator?.finish() } catch { throw .inflating(error) }
    }
}

/// What is transcoded: a stored body, or a piece of it.
protocol TranscodedSource {
    var state: Body.State { get }
    /// One past the last byte that is there.
    var length: Int { get }
    /// Bytes from `offset`, at most `limit`; empty: none.
    func transcodedPiece(from offset: Int, limit: Int) -> UnsafeRawBufferPointer
}

extension Body: TranscodedSource {
    /// To the end of their page.
    func transcodedPiece(from offset: Int, limit: Int) -> UnsafeRawBufferPointer {
        var vector = unsafe iovec()
        let used = unsafe withUnsafeMutablePointer(to: &vector) {
            unsafe vectors(from: offset, limit: limit, into: UnsafeMutableBufferPointer(start: $0, count: 1))
        }
        return unsafe used == 0
            ? UnsafeRawBufferPointer(start: nil, count: 0)
            : UnsafeRawBufferPointer(start: vector.iov_base, count: vector.iov_len)
    }
}

/// A piece of a body that is not in memory, as it was read: complete where it is the last.
@safe final class TranscodedPiece: TranscodedSource {
    let state: Body.State
    private let start: Int
    private let count: Int
    private let bytes: UnsafeMutableRawBufferPointer

    init(state: Body.State, start: Int, bytes: [UInt8]) {
        self.state = state
        self.start = start
        count = bytes.count
        unsafe self.bytes = .allocate(byteCount: max(1, bytes.count), alignment: 16)
        unsafe self.bytes.copyBytes(from: bytes)
    }

    deinit { unsafe bytes.deallocate() }

    var length: Int { start + count }

    func transcodedPiece(from offset: Int, limit: Int) -> UnsafeRawBufferPointer {
        let first = min(max(0, offset - start), count)
        return unsafe UnsafeRawBufferPointer(rebasing: bytes[first..<min(count, first + limit)])
    }
}
