import CZlib

/// Compresses a stream into the gzip format (RFC 1952), piece by piece. Takes about 256 KiB of memory.
@safe package struct Deflator: ~Copyable {
    /// zlib keeps a pointer to its stream, so the stream must not move.
    private let stream: UnsafeMutablePointer<z_stream>
    /// Whether the end of the stream has been written.
    package private(set) var isFinished = false

    package enum Flush: Sendable {
        /// Keep bytes back that compress better together with those that follow.
        case no
        /// Make everything so far decodable for the receiver.
        case sync
        /// End the stream.
        case finish

        var code: CInt {
            switch self {
            case .no: Z_NO_FLUSH
            case .sync: Z_SYNC_FLUSH
            case .finish: Z_FINISH
            }
        }
    }

    /// - Parameter level: 1 (fast) to 9 (small).
    package init(level: Int = 6) {
        precondition((1...9).contains(level), "zlib has levels 1 to 9")
        unsafe stream = .allocate(capacity: 1)
        unsafe stream.initialize(to: z_stream())
        let status = unsafe deflateInit2_(
            stream, CInt(level), Z_DEFLATED, gzipWindowBits, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
            CInt(MemoryLayout<z_stream>.size))
        precondition(status == Z_OK, "deflateInit2 failed: no memory")
    }

    deinit {
        unsafe deflateEnd(stream)
        unsafe stream.deallocate()
    }

    /// Compresses as much of `input` as fits into `room`, which must not be empty. While `needsRoom` is returned, call again with the rest
    /// of the input, even if it is empty, and the same `flush`: it is complete only then.
    package mutating func step(
        _ input: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer, _ flush: Flush = .no
    ) -> StreamStep {
        unsafe precondition(!room.isEmpty, "a step needs room")
        precondition(!isFinished, "the stream has ended")
        let (status, taken, made) = unsafe withStream(stream, input, room) { unsafe deflate(stream, flush.code) }
        precondition(status >= 0 || status == Z_BUF_ERROR, "deflate was misused")
        isFinished = status == Z_STREAM_END
        var step = StreamStep()
        step.consumed = taken
        step.produced = made
        step.needsRoom = !isFinished && (made == room.count || taken < input.count)
        return step
    }
}

extension Deflator {
    /// Appends the compressed form of `bytes` to `output`. It is never longer than the bytes by more than a thousandth and 64 bytes.
    package mutating func compress(_ bytes: [UInt8], into output: inout [UInt8], _ flush: Flush = .no) {
        unsafe bytes.withUnsafeBytes { unsafe compress($0, into: &output, flush) }
    }

    /// As above.
    package mutating func compress(_ bytes: UnsafeRawBufferPointer, into output: inout [UInt8], _ flush: Flush) {
        var rest = unsafe bytes
        var made = StreamStep()
        repeat {
            made = unsafe appendStep(to: &output, room: chunkBytes) { room in unsafe step(rest, into: room, flush) }
            unsafe rest = UnsafeRawBufferPointer(rebasing: rest[made.consumed...])
        } while made.needsRoom
    }
}

/// One call for what is all in memory.
package func gzip(_ bytes: [UInt8], level: Int = 6) -> [UInt8] {
    var deflator = Deflator(level: level)
    var output: [UInt8] = []
    deflator.compress(bytes, into: &output, .finish)
    return output
}
