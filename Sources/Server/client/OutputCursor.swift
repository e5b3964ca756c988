import Glibc
import Message

/// Writes a head into a worker's output buffer with plain stores, for hits.
///
/// Traps if the head does not fit. It always does: stored heads are bounded far below the size of the buffer
/// (`StoredResponse.isPlain`).
@safe struct OutputCursor {
    private let buffer: UnsafeMutableRawBufferPointer
    private(set) var count = 0

    init(_ buffer: UnsafeMutableRawBufferPointer) { unsafe self.buffer = unsafe buffer }

    var bytes: UnsafeRawBufferPointer { unsafe UnsafeRawBufferPointer(rebasing: buffer[..<count]) }

    @inline(__always)
    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        precondition(unsafe bytes.count <= buffer.count - count, "a head longer than the output buffer")
        guard let source = bytes.baseAddress else { return }
        unsafe memcpy(buffer.baseAddress! + count, source, bytes.count)
        count += bytes.count
    }

    mutating func append(_ bytes: [UInt8]) { unsafe bytes.withUnsafeBytes { unsafe append($0) } }

    /// Always inlined: with a literal it is a comparison and a few stores.
    @inline(__always)
    mutating func append(_ text: StaticString) {
        unsafe append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    @inline(__always)
    mutating func append(decimal value: Int64) {
        guard 0..<Int64(shortDecimalEnd) ~= value else { return append(String(value)) }
        precondition(unsafe buffer.count - count >= 8, "a head longer than the output buffer")
        let (digits, length) = shortDecimal(UInt32(truncatingIfNeeded: value))
        // Behind the last digit it writes zeros, over which the next bytes are written.
        unsafe buffer.storeBytes(of: digits, toByteOffset: count, as: UInt64.self)
        count += length
    }

    @inline(never)
    private mutating func append(_ text: String) { append(Array(text.utf8)) }
}
