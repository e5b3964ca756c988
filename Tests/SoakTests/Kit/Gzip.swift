import CZlib

private let streamSize = unsafe CInt(MemoryLayout<z_stream>.size)

/// zlib keeps a pointer back to its stream, so the stream must not move.
private func makeStream() -> UnsafeMutablePointer<z_stream> {
    let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    unsafe stream.initialize(to: z_stream())
    return unsafe stream
}

/// `bytes` in the gzip coding; the same bytes give the same result each time.
func gzipped(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
    let stream = unsafe makeStream()
    unsafe deflateInit2_(stream, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION, streamSize)
    defer {
        unsafe deflateEnd(stream)
        unsafe stream.deallocate()
    }
    let room = bytes.count + bytes.count / 100 + 128
    var input = Array(bytes)
    return unsafe input.withUnsafeMutableBufferPointer { input in
        unsafe [UInt8](unsafeUninitializedCapacity: room) { output, count in
            unsafe stream.pointee.next_in = input.baseAddress
            unsafe stream.pointee.avail_in = UInt32(input.count)
            unsafe stream.pointee.next_out = output.baseAddress
            unsafe stream.pointee.avail_out = UInt32(room)
            let status = unsafe deflate(stream, Z_FINISH)
            precondition(status == Z_STREAM_END, "the room holds what does not compress")
            count = unsafe room - Int(stream.pointee.avail_out)
        }
    }
}

/// What a gzip stream holds, as far as it came.
/// - Returns: the bytes, and whether the stream came to its end; nil if it is not gzip.
func gunzipped(_ bytes: [UInt8], lengthMax: Int) -> (bytes: [UInt8], isWhole: Bool)? {
    let stream = unsafe makeStream()
    unsafe inflateInit2_(stream, 31, ZLIB_VERSION, streamSize)
    defer {
        unsafe inflateEnd(stream)
        unsafe stream.deallocate()
    }
    var input = bytes
    var status: CInt = 0
    let result = unsafe input.withUnsafeMutableBufferPointer { input in
        unsafe [UInt8](unsafeUninitializedCapacity: lengthMax) { output, count in
            unsafe stream.pointee.next_in = input.baseAddress
            unsafe stream.pointee.avail_in = UInt32(input.count)
            unsafe stream.pointee.next_out = output.baseAddress
            unsafe stream.pointee.avail_out = UInt32(lengthMax)
            status = unsafe inflate(stream, Z_NO_FLUSH)
            count = unsafe lengthMax - Int(stream.pointee.avail_out)
        }
    }
    switch status {
    case Z_STREAM_END: return (result, true)
    case Z_OK, Z_BUF_ERROR: return (result, false)
    default: return nil
    }
}
