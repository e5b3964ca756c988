import CISAL

/// CRC-32C (Castagnoli; RFC 3720 appendix B.4). ISA-L computes it with carry-less multiplication if the processor has that
/// (docs/decisions/0011-isa-l-for-checksums.md). The bytes may come in pieces:
///
///     var checksum = Checksum()
///     checksum.add(one); checksum.add(another)
///     checksum.value
package struct Checksum: Sendable {
    private var state: UInt32

    /// - Parameter seed: the checksum of the bytes before, zero if there are none.
    package init(seed: UInt32 = 0) { state = ~seed }

    package var value: UInt32 { ~state }

    package mutating func add(_ bytes: UnsafeRawBufferPointer) {
        guard var start = bytes.baseAddress else { return }
        var left = bytes.count
        while left > 0 {
            // ISA-L counts bytes in an `int`.
            let count = min(left, 1 << 30)
            let pointer = unsafe UnsafeMutablePointer(mutating: start.assumingMemoryBound(to: UInt8.self))
            state = unsafe crc32_iscsi(pointer, CInt(count), state)
            unsafe start += count
            left -= count
        }
    }

    package mutating func add(_ bytes: [UInt8]) { unsafe bytes.withUnsafeBytes { unsafe add($0) } }

    package static func crc32c(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
        var checksum = Checksum()
        unsafe checksum.add(bytes)
        return checksum.value
    }

    package static func crc32c(_ bytes: [UInt8]) -> UInt32 { unsafe bytes.withUnsafeBytes { unsafe crc32c($0) } }
}
