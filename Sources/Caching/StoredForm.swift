package import Message

/// Encodes values so that they can outlive the process: numbers are little-endian, and lengths come first. `StoredFormReader` reads them
/// in the same order.
package struct StoredFormWriter: Sendable {
    package private(set) var bytes: [UInt8] = []

    package init(capacity: Int = 512) { bytes.reserveCapacity(capacity) }

    package mutating func write<Number: FixedWidthInteger>(_ value: Number) {
        var value = value.littleEndian
        unsafe withUnsafeBytes(of: &value) { unsafe bytes.append(contentsOf: $0) }
    }

    package mutating func write(_ value: Seconds) { write(value.count) }
    package mutating func write(_ value: WallTime) { write(value.secondsSinceEpoch) }

    package mutating func write(_ value: Seconds?) {
        write(UInt8(value == nil ? 0 : 1))
        if let value { write(value) }
    }

    package mutating func write(_ value: some Collection<UInt8>) {
        write(UInt32(value.count))
        bytes.append(contentsOf: value)
    }

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
        write(flags.enumerated().reduce(into: UInt16(0)) { $0 |= $1.element ? 1 << UInt16($1.offset) : 0 })
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
