import Glibc

/// Writes a head into a worker's output buffer with plain stores, for hits.
///
/// Traps if the head does not fit. It always does: stored heads are bounded far below the size of the buffer
/// (`StoredResponse.isPlain`).
@safe struct OutputCursor {
    private let buffer: UnsafeMutableRawBufferPointer
    private(set) var count = 0

    init(_ buffer: UnsafeMutableRawBufferPointer) { unsafe self.buffer = unsafe buffer }

    var bytes: UnsafeRawBufferPointer { unsafe UnsafeRawBufferPointer(rebasing: buffer[..<count]) }

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        precondition(unsafe bytes.count <= buffer.count - count, "a head longer than the output buffer")
        guard let source = bytes.baseAddress else { return }
        unsafe memcpy(buffer.baseAddress! + count, source, bytes.count)
        count += bytes.count
    }

    mutating func append(_ bytes: [UInt8]) { unsafe bytes.withUnsafeBytes { unsafe append($0) } }

    mutating func append(_ text: StaticString) {
        unsafe append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    mutating func append(decimal value: Int64) {
        precondition(unsafe buffer.count - count >= 20, "a head longer than the output buffer")
        if value < 0 { store(0x2D) }
        var magnitude = value.magnitude
        var digits = 1
        var bound: UInt64 = 10
        while digits < 19 && magnitude >= bound {
            digits += 1
            bound &*= 10
        }
        if digits == 19 && magnitude >= 10_000_000_000_000_000_000 { digits = 20 }
        var position = count + digits
        count = position
        repeat {
            position -= 1
            unsafe buffer[position] = 0x30 + UInt8(truncatingIfNeeded: magnitude % 10)
            magnitude /= 10
        } while magnitude > 0
    }

    private mutating func store(_ byte: UInt8) {
        unsafe buffer[count] = byte
        count += 1
    }
}
