import CISAL
import Glibc

/// Reads little-endian fields out of arbitrary bytes. Each call returns nil if the bytes end too early.
@safe struct BookFields {
    private let bytes: UnsafeRawBufferPointer
    private let count: Int
    private(set) var position = 0

    /// - Parameter bytes: must outlive the value.
    init(_ bytes: UnsafeRawBufferPointer) {
        unsafe self.bytes = bytes
        count = bytes.count
    }

    var isAtEnd: Bool { position == count }

    @inline(__always)
    mutating func number<Number: FixedWidthInteger>(_ type: Number.Type = Number.self) -> Number? {
        let end = position + Number.bitWidth / 8
        guard end <= count else { return nil }
        defer { position = end }
        return unsafe Number(littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: Number.self))
    }

    mutating func array(_ count: Int) -> [UInt8]? {
        guard count >= 0, count <= self.count - position else { return nil }
        defer { position += count }
        return unsafe [UInt8](UnsafeRawBufferPointer(rebasing: bytes[position..<position + count]))
    }

    mutating func array(_ count: Int, sharing shared: inout BookShared) -> [UInt8]? {
        guard count >= 0, count <= self.count - position else { return nil }
        defer { position += count }
        return unsafe shared.array(of: UnsafeRawBufferPointer(rebasing: bytes[position..<position + count]))
    }
}

/// Arrays made recently, which are shared between entries with equal bytes: a million entries have a handful of media types.
struct BookShared {
    private var recent: [[UInt8]] = Array(repeating: [], count: 64)

    mutating func array(of bytes: UnsafeRawBufferPointer) -> [UInt8] {
        guard let first = unsafe bytes.first, let last = unsafe bytes.last else { return [] }
        let slot = (bytes.count &* 7 &+ Int(first) &* 31 &+ Int(last)) & 63
        // The slot only says where to look. If other bytes are there, this costs one more array.
        let isSame = unsafe recent[slot].withUnsafeBytes { unsafe bookCompare($0, bytes) == 0 }
        if !isSame { unsafe recent[slot] = [UInt8](bytes) }
        return recent[slot]
    }
}

extension [UInt8] {
    mutating func appendLittleEndian<Number: FixedWidthInteger>(_ number: Number) {
        unsafe Swift.withUnsafeBytes(of: number.littleEndian) { unsafe append(contentsOf: $0) }
    }
}

/// Every value of the book ends with the CRC-32C of its key and of the bytes before.
/// The key is included so that a value is never taken for that of another key.
enum BookSeal {
    static let bytes = 4

    static func append(to value: inout [UInt8], key: [UInt8]) {
        let sum = unsafe key.withUnsafeBytes { key in unsafe value.withUnsafeBytes { unsafe checksum(key, $0) } }
        value.appendLittleEndian(sum)
    }

    /// The value without its seal. Returns nil if the checksum is wrong.
    static func open(_ value: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        let count = value.count - bytes
        guard count >= 0 else { return nil }
        let content = unsafe UnsafeRawBufferPointer(rebasing: value[..<count])
        let sum = unsafe UInt32(littleEndian: value.loadUnaligned(fromByteOffset: count, as: UInt32.self))
        return unsafe checksum(key, content) == sum ? content : nil
    }

    private static func checksum(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> UInt32 {
        ~(unsafe run(value, run(key, 0xFFFF_FFFF)))
    }

    private static func run(_ bytes: UnsafeRawBufferPointer, _ sum: UInt32) -> UInt32 {
        guard let base = bytes.baseAddress, unsafe !bytes.isEmpty else { return sum }
        // The parameter of the C function is not const, but nothing is written.
        let start = unsafe UnsafeMutablePointer(mutating: base.assumingMemoryBound(to: UInt8.self))
        return unsafe crc32_iscsi(start, CInt(bytes.count), sum)
    }
}

/// The order in which LMDB keeps keys: byte by byte, the shorter one first. Negative, zero, or positive.
@inline(__always)
func bookCompare(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Int {
    let common = min(left.count, right.count)
    if common > 0 {
        let order = unsafe memcmp(left.baseAddress!, right.baseAddress!, common)
        if order != 0 { return Int(order) }
    }
    return left.count - right.count
}

func bookCompare(_ left: [UInt8], _ right: [UInt8]) -> Int {
    unsafe left.withUnsafeBytes { left in unsafe right.withUnsafeBytes { unsafe bookCompare(left, $0) } }
}
