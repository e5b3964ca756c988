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

/// Lends bytes to the library for one call. A NUL follows them, which does not count: the mechanism for NTLM (gss-ntlmssp) reads a
/// password up to a NUL, and not up to its length.
func withBuffer<Result>(_ bytes: [UInt8], _ body: (gss_buffer_t) -> Result) -> Result {
    let length = bytes.count
    var bytes = bytes + [0]
    return unsafe bytes.withUnsafeMutableBytes { bytes in
        var buffer = unsafe gss_buffer_desc(length: length, value: bytes.baseAddress)
        return unsafe body(&buffer)
    }
}
