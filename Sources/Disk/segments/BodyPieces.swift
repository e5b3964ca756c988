import Glibc

extension BodyBytes {
    /// Calls `call` with vectors for the range, in order.
    func forEachVector(from offset: Int, length: Int, _ call: (iovec) -> Void) {
        precondition(offset >= 0 && length >= 0 && offset + length <= byteCount, "the range lies within the body")
        unsafe withUnsafeTemporaryAllocation(of: iovec.self, capacity: 64) { vectors in
            unsafe vectors.initialize(repeating: iovec())
            var at = offset
            let end = offset + length
            while at < end {
                let count = unsafe self.vectors(from: at, limit: end - at, into: vectors)
                let before = at
                for index in 0..<count {
                    let vector = unsafe vectors[index]
                    unsafe at += vector.iov_len
                    unsafe call(vector)
                }
                precondition(at > before && at <= end, "a body hands out the bytes it claims to have")
            }
        }
    }

    /// The CRC-32C of a range.
    package func checksum(from offset: Int, length: Int) -> UInt32 {
        var checksum = Checksum()
        unsafe forEachVector(from: offset, length: length) { vector in
            unsafe checksum.add(UnsafeRawBufferPointer(start: vector.iov_base, count: vector.iov_len))
        }
        return checksum.value
    }

    /// The CRC-32C of each block.
    package func blockChecksums() -> [UInt32] {
        stride(from: 0, to: byteCount, by: blockBytes).map {
            checksum(from: $0, length: min(blockBytes, byteCount - $0))
        }
    }
}
