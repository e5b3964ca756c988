package import Message

/// Encodes values so that they can outlive the process: numbers are little-endian, and lengths come first. `StoredFormReader` reads them
/// in the same order.
package struct StoredFormWriter: Sendable {
    /// What was written, and room behind it. An array that grew with each number would cost five times as much.
    private var room: [UInt8]
    private var count = 0

    package init(capacity: Int = 512) { room = Array(repeating: 0, count: capacity) }

    /// Returns what was written, and begins anew.
    package mutating func finish() -> [UInt8] {
        var bytes: [UInt8] = []
        // Taken out and not copied.
        swap(&bytes, &room)
        bytes.removeLast(bytes.count - count)
        count = 0
        return bytes
    }

    private mutating func makeRoom(for more: Int) {
        guard count + more > room.count else { return }
        room.append(contentsOf: repeatElement(0, count: max(room.count, more)))
    }

    package mutating func write<Number: FixedWidthInteger & BitwiseCopyable>(_ value: Number) {
        let end = count + MemoryLayout<Number>.size
        makeRoom(for: end - count)
        unsafe room.withUnsafeMutableBytes { bytes in
            unsafe bytes.storeBytes(of: value.littleEndian, toByteOffset: count, as: Number.self)
        }
        count = end
    }

    package mutating func write(_ value: Seconds) { write(value.count) }
    package mutating func write(_ value: WallTime) { write(value.secondsSinceEpoch) }

    package mutating func write(_ value: Seconds?) {
        write(UInt8(value == nil ? 0 : 1))
        if let value { write(value) }
    }

    package mutating func write(_ value: ArraySlice<UInt8>) {
        write(UInt32(value.count))
        makeRoom(for: value.count)
        unsafe room.withUnsafeMutableBytes { bytes in
            unsafe value.withUnsafeBytes { from in
                unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[count...]).copyMemory(from: from)
            }
        }
        count += value.count
    }

    package mutating func write(_ value: [UInt8]) { write(value[...]) }

    package mutating func write(_ value: [UInt8]?) {
        write(UInt8(value == nil ? 0 : 1))
        if let value { write(value) }
    }

    package mutating func write(_ values: [[UInt8]]) {
        write(UInt16(clamping: values.count))
        for value in values.prefix(Int(UInt16.max)) { write(value) }
    }

    /// Writes flags as bits, beginning with the lowest.
    package mutating func write(flags: Bool...) {
        var bits: UInt16 = 0
        for index in flags.indices where flags[index] { bits |= 1 << UInt16(index) }
        write(bits)
    }
}

/// The bytes are not such an encoding: they are cut short, or were written by another version.
package struct StoredFormError: Error, Equatable, Sendable { package init() {} }

package struct StoredFormReader: Sendable {
    private let bytes: [UInt8]
    private var position = 0

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    package var isAtEnd: Bool { position == bytes.count }

    package mutating func read<Number: FixedWidthInteger>(_ type: Number.Type = Number.self) throws(StoredFormError)
        -> Number
    {
        let count = Number.bitWidth / 8
        guard count <= bytes.count - position else { throw StoredFormError() }
        var value: Number = 0
        for offset in 0..<count { value |= Number(truncatingIfNeeded: bytes[position + offset]) << (8 * offset) }
        position += count
        return value
    }

    package mutating func readSeconds() throws(StoredFormError) -> Seconds { Seconds(try read(Int64.self)) }
    package mutating func readTime() throws(StoredFormError) -> WallTime {
        WallTime(secondsSinceEpoch: try read(Int64.self))
    }
    package mutating func readSecondsIfAny() throws(StoredFormError) -> Seconds? {
        try isNext() ? try readSeconds() : nil
    }

    package mutating func readBytes() throws(StoredFormError) -> ArraySlice<UInt8> {
        let count = Int(try read(UInt32.self))
        guard count <= bytes.count - position else { throw StoredFormError() }
        position += count
        return bytes[position - count..<position]
    }

    package mutating func readBytesIfAny() throws(StoredFormError) -> [UInt8]? {
        try isNext() ? Array(try readBytes()) : nil
    }

    package mutating func readList() throws(StoredFormError) -> [[UInt8]] {
        let count = try read(UInt16.self)
        var values: [[UInt8]] = []
        for _ in 0..<count { values.append(Array(try readBytes())) }
        return values
    }

    package mutating func readFlags() throws(StoredFormError) -> StoredFlags { StoredFlags(bits: try read()) }

    private mutating func isNext() throws(StoredFormError) -> Bool {
        switch try read(UInt8.self) {
        case 0: return false
        case 1: return true
        default: throw StoredFormError()
        }
    }
}

package struct StoredFlags: Sendable {
    let bits: UInt16
    package subscript(index: Int) -> Bool { bits & 1 << UInt16(index) != 0 }
}

// MARK: fields

extension Fields {
    /// Writes the lines in their order and spelling.
    package func write(to form: inout StoredFormWriter) {
        form.write(UInt16(clamping: lines.count))
        for line in lines.prefix(Int(UInt16.max)) {
            form.write(name(of: line))
            form.write(value(of: line))
        }
    }

    package init(from form: inout StoredFormReader) throws(StoredFormError) {
        self.init()
        let count = try form.read(UInt16.self)
        for _ in 0..<count {
            let name = try form.readBytes()
            append(FieldName(spelling: name), spelling: name, try form.readBytes())
        }
    }
}
