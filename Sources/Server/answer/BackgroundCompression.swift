import Compression
import EventLoop
import Glibc
import Storage

/// Compresses a complete stored body into a new one, once for all clients, on the blocking pool.
///
/// Each job of the pool takes some milliseconds, so that other jobs have their turn in between.
enum BackgroundCompression {
    /// Begins. Returns false, and does not call `then`, if memory or the pool's queue is full; a later request may try again.
    ///
    /// - Parameter then: called on the loop of `inbox` with the complete gzip copy. Nil if the attempt was given up: memory or the
    ///   queue was full, or the copy would not be smaller by at least a tenth.
    static func begin(
        _ body: Body, in tier: MemoryTier, level: Int = 6, on pool: BlockingPool, inbox: Inbox,
        then: @escaping @Sendable (Body?) -> Void
    ) -> Bool {
        guard let job = CompressionJob(body, tier, level: level) else { return false }
        return submitNextJob(job, pool, inbox, then)
    }

    private static func submitNextJob(
        _ job: CompressionJob, _ pool: BlockingPool, _ inbox: Inbox, _ then: @escaping @Sendable (Body?) -> Void
    ) -> Bool {
        pool.submit(
            { job.advance() },
            then: { outcome in
                switch outcome {
                case .more: if !submitNextJob(job, pool, inbox, then) { then(nil) }
                case .done(let copy): then(copy)
                case .givenUp: then(nil)
                }
            }, on: inbox)
    }
}

/// The compression of one body. One thread uses it at a time, because each job is submitted when the one before has ended. That is why
/// it is `@unchecked Sendable`.
private final class CompressionJob: @unchecked Sendable {
    enum Outcome: Sendable {
        case more
        case done(Body)
        case givenUp
    }

    /// Bytes that one job of the pool compresses: about fifteen milliseconds at level 6.
    private static let jobBytes = 512 << 10
    private let source: Body
    private let target: Body
    private let tier: MemoryTier
    private let transcoder: Transcoder
    private var offset = 0
    private var made: [UInt8] = []

    init?(_ source: Body, _ tier: MemoryTier, level: Int) {
        precondition(source.state == .complete, "only a complete body is compressed once for all")
        guard let target = tier.makeBody(expectedLength: nil) else { return nil }
        self.source = source
        self.target = target
        self.tier = tier
        transcoder = Transcoder(.compress(level: level))
        made.reserveCapacity(Transcoder.stepBytesMax)
    }

    /// Ends a copy that was given up. No effect on one that is complete.
    deinit { target.fail() }

    func advance() -> Outcome {
        let end = offset + Self.jobBytes
        while offset < end {
            made.removeAll(keepingCapacity: true)
            do throws(TranscodingError) {
                let progress = try transcoder.next(from: source, offset: &offset, into: &made)
                guard isWorthIt(), append() else { return .givenUp }
                if progress == .done {
                    precondition(offset == source.length, "the copy has the content of the whole body")
                    return target.finish() ? .done(fitted() ?? target) : .givenUp
                }
            } catch {
                return .givenUp
            }
        }
        return .more
    }

    /// Whether the copy is smaller than the body by at least a tenth.
    private func isWorthIt() -> Bool { target.length + made.count <= source.length / 10 * 9 }

    /// Appends what was made. Returns false if memory is full.
    private func append() -> Bool {
        unsafe made.withUnsafeBytes { unsafe target.append($0) == .appended }
    }

    /// The copy in a page of exactly its length, because a page that grew may be half empty. Returns nil if the copy is long, or if memory
    /// has no room for both.
    private func fitted() -> Body? {
        let length = target.length
        guard length <= Self.fittedMax, let copy = tier.makeBody(expectedLength: length) else { return nil }
        var vectors = unsafe [iovec](repeating: iovec(), count: 16)
        let used = unsafe vectors.withUnsafeMutableBufferPointer {
            unsafe target.vectors(from: 0, limit: length, into: $0)
        }
        for index in 0..<used {
            let piece = unsafe UnsafeRawBufferPointer(start: vectors[index].iov_base, count: vectors[index].iov_len)
            guard unsafe copy.append(piece) == .appended else { return nil }
        }
        precondition(copy.length == length, "the copy has all bytes")
        return copy.finish() ? copy : nil
    }
    private static let fittedMax = 256 << 10
}
