import CGSSAPI

/// A buffer that the library fills, and its memory.
@safe struct OwnedBuffer: ~Copyable {
    let buffer: UnsafeMutablePointer<gss_buffer_desc>

    init() {
        unsafe buffer = .allocate(capacity: 1)
        unsafe buffer.initialize(to: gss_buffer_desc(length: 0, value: nil))
    }

    deinit {
        var minor: OM_uint32 = 0
        unsafe gss_release_buffer(&minor, buffer)
        unsafe buffer.deallocate()
    }

    var bytes: [UInt8] {
        unsafe Array(UnsafeRawBufferPointer(start: buffer.pointee.value, count: buffer.pointee.length))
    }
}

/// Lends bytes to the library for one call.
func withBuffer<Result>(_ bytes: [UInt8], _ body: (gss_buffer_t) -> Result) -> Result {
    var bytes = bytes
    return unsafe bytes.withUnsafeMutableBytes { bytes in
        var buffer = unsafe gss_buffer_desc(length: bytes.count, value: bytes.baseAddress)
        return unsafe body(&buffer)
    }
}
