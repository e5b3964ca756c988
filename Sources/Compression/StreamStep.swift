import CZlib

/// What one step of a compressor or decompressor did. Both are driven the same way: give input and room, move on by what
/// was taken and made, and come again while `needsRoom`, with what is left of the input.
package struct StreamStep: Equatable, Sendable {
    /// Bytes of the input taken.
    package var consumed = 0
    /// Bytes written into the room given.
    package var produced = 0
    /// The room was too small: more comes out, perhaps without further input. Where false, all of the input is taken.
    package var needsRoom = false

    package init() {}
}

/// Lets `step` write up to `room` bytes behind what is in `output`.
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

/// Shows zlib the two buffers for the time of one call; says what it answered and how many bytes it took and made.
func withStream(
    _ stream: UnsafeMutablePointer<z_stream>, _ input: UnsafeRawBufferPointer, _ room: UnsafeMutableRawBufferPointer,
    _ call: () -> CInt
) -> (status: CInt, taken: Int, made: Int) {
    // zlib counts in 32 bits; what is beyond is for the next call.
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
