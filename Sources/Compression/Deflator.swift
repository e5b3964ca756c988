import CZlib

/// Compresses a stream into the gzip format (RFC 1952), piece by piece. Holds about 256 KiB.
@safe package struct Deflator: ~Copyable {
    /// zlib keeps a pointer back to its stream, so it must not move.
    private let stream: UnsafeMutablePointer<z_stream>
    /// Everything is out.
    package private(set) var isFinished = false

    package enum Flush: Sendable {
        /// Keep what compresses better together with what follows.
        case no
        /// Everything given so far can be decompressed by the receiver.
        case sync
        /// Nothing follows.
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
        precondition(status == Z_OK, "deflateInit2 fails only without memory")
    }

    deinit {
        unsafe deflateEnd(stream)
        unsafe stream.deallocate()
    }

    /// Takes of `input` what it can and fills `room`, which is not empty. While `needsRoom` comes back, go on with the
    /// rest of the input, be it empty, and the same `flush`: only then has it happened.
    package mutating func step(
        _ input: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer, _ flush: Flush = .no
    ) -> StreamStep {
        unsafe precondition(!room.isEmpty, "a step needs room")
        precondition(!isFinished, "nothing follows the end")
        let (status, taken, made) = unsafe withStream(stream, input, room) { unsafe deflate(stream, flush.code) }
        precondition(status >= 0 || status == Z_BUF_ERROR, "deflate fails only when misused")
        isFinished = status == Z_STREAM_END
        var step = StreamStep()
        step.consumed = taken
        step.produced = made
        step.needsRoom = !isFinished && (made == room.count || taken < input.count)
        return step
    }
}

extension Deflator {
    /// Appends the compressed form of `bytes` to `output`: never more than they, plus a thousandth and 64 bytes.
    package mutating func compress(_ bytes: [UInt8], into output: inout [UInt8], _ flush: Flush = .no) {
        unsafe bytes.span.bytes.withUnsafeBytes { input in
            var rest = unsafe input
            var made = StreamStep()
            repeat {
                made = unsafe appendStep(to: &output, room: chunkBytes) { room in unsafe step(rest, into: room, flush) }
                unsafe rest = UnsafeRawBufferPointer(rebasing: rest[made.consumed...])
            } while made.needsRoom
        }
    }
}

/// One call for what is all in memory.
package func gzip(_ bytes: [UInt8], level: Int = 6) -> [UInt8] {
    var deflator = Deflator(level: level)
    var output: [UInt8] = []
    deflator.compress(bytes, into: &output, .finish)
    return output
}
