import CZlib

/// The result of one step of a compressor or decompressor. Both are used in the same way: give input and room, advance by what was
/// consumed and produced, and call again with the rest of the input while `needsRoom` is true.
package struct StreamStep: Equatable, Sendable {
    /// Bytes of the input that were used.
    package var consumed = 0
    /// Bytes that were written into the room.
    package var produced = 0
    /// Whether the room was too small, so that there is more output, perhaps without further input. If false, all input was consumed.
    package var needsRoom = false

    package init() {}
}

/// Lets `step` append up to `room` bytes to `output`.
package func appendStep<Failure: Error>(
    to output: inout [UInt8], room: Int, _ step: (UnsafeMutableRawBufferPointer) throws(Failure) -> StreamStep
) throws(Failure) -> StreamStep {
    var result = StreamStep()
    try output.append(addingCapacity: room) { (span: inout OutputSpan<UInt8>) throws(Failure) in
        unsafe try span.withUnsafeMutableBufferPointer { buffer, count throws(Failure) in
            let free = unsafe UnsafeMutableBufferPointer(rebasing: buffer[count..<min(buffer.count, count + room)])
            result = unsafe try step(UnsafeMutableRawBufferPointer(free))
            count += result.produced
        }
    }
    return result
}

/// The largest window (2^15), plus 16 for the gzip wrapper.
let gzipWindowBits: CInt = 15 + 16
let chunkBytes = 16384

/// Gives zlib the two buffers for one call. Returns its status, and how many bytes it consumed and produced.
func withStream(
    _ stream: UnsafeMutablePointer<z_stream>, _ input: UnsafeRawBufferPointer, _ room: UnsafeMutableRawBufferPointer,
    _ call: () -> CInt
) -> (status: CInt, taken: Int, made: Int) {
    // zlib counts in 32 bits. The next call handles what is beyond.
    let (given, free) = (CUnsignedInt(clamping: input.count), CUnsignedInt(clamping: room.count))
    unsafe stream.pointee.next_in = UnsafeMutablePointer(
        mutating: input.baseAddress?.assumingMemoryBound(to: UInt8.self))
    unsafe stream.pointee.avail_in = given
    unsafe stream.pointee.next_out = room.baseAddress?.assumingMemoryBound(to: UInt8.self)
    unsafe stream.pointee.avail_out = free
    let status = call()
    unsafe stream.pointee.next_in = nil
    unsafe stream.pointee.next_out = nil
    return unsafe (status, Int(given - stream.pointee.avail_in), Int(free - stream.pointee.avail_out))
}
