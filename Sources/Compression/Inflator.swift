import CZlib

/// The peer's fault: what it sent is not gzip, or not all of it, or too much.
package enum InflateError: Error, Equatable {
    case corrupt
    /// The stream expands to more than was allowed: a decompression bomb, perhaps.
    case outputTooLarge
    /// The input ended before the stream did.
    case truncated
}

/// Decompresses a gzip stream (RFC 1952), piece by piece, up to a bound. Several members in a row are one stream (§2.2).
@safe package struct Inflator: ~Copyable {
    private let stream: UnsafeMutablePointer<z_stream>
    private let outputMax: Int
    private var outputCount = 0
    private enum State { case betweenMembers, inMember, failed(InflateError) }
    private var state: State = .inMember

    /// - Parameter outputMax: bytes that may come out in all.
    package init(outputMax: Int) {
        self.outputMax = outputMax
        unsafe stream = .allocate(capacity: 1)
        unsafe stream.initialize(to: z_stream())
        let status = unsafe inflateInit2_(stream, gzipWindowBits, ZLIB_VERSION, CInt(MemoryLayout<z_stream>.size))
        precondition(status == Z_OK, "inflateInit2 fails only without memory")
    }

    deinit {
        unsafe inflateEnd(stream)
        unsafe stream.deallocate()
    }

    /// Appends what `bytes` decompress to. After an error the same error is thrown again.
    package mutating func decompress(_ bytes: [UInt8], into output: inout [UInt8]) throws(InflateError) {
        if case .failed(let error) = state { throw error }
        var input = bytes
        let error = unsafe input.withUnsafeMutableBufferPointer { input in
            unsafe stream.pointee.next_in = input.baseAddress
            unsafe stream.pointee.avail_in = CUnsignedInt(input.count)
            let error = consume(into: &output)
            unsafe stream.pointee.next_in = nil
            return error
        }
        if let error {
            state = .failed(error)
            throw error
        }
    }

    /// Nothing more comes. Throws `.truncated` when the stream is not at an end.
    package func finish() throws(InflateError) {
        switch state {
        case .betweenMembers: return
        case .inMember: throw .truncated
        case .failed(let error): throw error
        }
    }

    private mutating func consume(into output: inout [UInt8]) -> InflateError? {
        while true {
            if case .betweenMembers = state {
                guard unsafe stream.pointee.avail_in > 0 else { return nil }
                unsafe inflateReset(stream)
                state = .inMember
            }
            var status = Z_OK
            let produced = unsafe appendChunk(to: &output) { chunk in
                unsafe stream.pointee.next_out = chunk.baseAddress
                unsafe stream.pointee.avail_out = CUnsignedInt(chunk.count)
                status = unsafe inflate(stream, Z_NO_FLUSH)
                return unsafe chunk.count - Int(stream.pointee.avail_out)
            }
            outputCount += produced
            if outputCount > outputMax {
                output.removeLast(min(produced, outputCount - outputMax))
                return .outputTooLarge
            }
            switch status {
            case Z_STREAM_END: state = .betweenMembers
            case Z_OK: if unsafe produced < chunkBytes && stream.pointee.avail_in == 0 { return nil }
            case Z_BUF_ERROR: return nil  // it wants more input
            default: return .corrupt
            }
        }
    }
}
