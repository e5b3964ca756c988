import CZlib

/// Compresses a stream into the gzip format (RFC 1952), piece by piece.
@safe package struct Deflator: ~Copyable {
    /// zlib keeps a pointer back to its stream, so it must not move.
    private let stream: UnsafeMutablePointer<z_stream>
    private var isFinished = false

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

    /// Appends the compressed form of `bytes` to `output`: never more than they, plus a thousandth and 64 bytes.
    package mutating func compress(_ bytes: [UInt8], into output: inout [UInt8], _ flush: Flush = .no) {
        precondition(!isFinished, "nothing follows the end")
        isFinished = flush == .finish
        var input = bytes
        unsafe input.withUnsafeMutableBufferPointer { input in
            unsafe stream.pointee.next_in = input.baseAddress
            unsafe stream.pointee.avail_in = CUnsignedInt(input.count)
            drain(into: &output, flush)
            unsafe stream.pointee.next_in = nil
        }
    }

    private func drain(into output: inout [UInt8], _ flush: Flush) {
        var isMore = true
        while isMore {
            let produced = unsafe appendChunk(to: &output) { chunk in
                unsafe stream.pointee.next_out = chunk.baseAddress
                unsafe stream.pointee.avail_out = CUnsignedInt(chunk.count)
                let status = unsafe deflate(stream, flush.code)
                precondition(status >= 0 || status == Z_BUF_ERROR, "deflate fails only when misused")
                return unsafe chunk.count - Int(stream.pointee.avail_out)
            }
            isMore = produced == chunkBytes
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

/// The largest window (2^15), plus 16 for the gzip wrapper.
let gzipWindowBits: CInt = 15 + 16
let chunkBytes = 16384

/// Lets `fill` write up to `chunkBytes` behind what is in `output`; it says how many it wrote.
func appendChunk(to output: inout [UInt8], _ fill: (UnsafeMutableBufferPointer<UInt8>) -> Int) -> Int {
    let chunk = unsafe [UInt8](unsafeUninitializedCapacity: chunkBytes) { buffer, count in
        count = unsafe fill(UnsafeMutableBufferPointer(rebasing: buffer.prefix(chunkBytes)))
    }
    output += chunk
    return chunk.count
}
