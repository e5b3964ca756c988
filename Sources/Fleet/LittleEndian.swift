extension Array<UInt8> {
    mutating func appendLittleEndian(_ value: some FixedWidthInteger) {
        for index in 0..<(value.bitWidth / 8) { append(UInt8(truncatingIfNeeded: value >> (8 * index))) }
    }
}

/// Takes numbers and bytes from the front of a record. Each function returns nil if there are too few bytes.
struct RecordScanner {
    private(set) var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    mutating func bytes(_ count: Int) -> [UInt8]? {
        guard count >= 0, count <= rest.count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    mutating func number<Number: FixedWidthInteger>(_ type: Number.Type = Number.self) -> Number? {
        guard let bytes = bytes(Number.bitWidth / 8) else { return nil }
        return bytes.reversed().reduce(Number(0)) { $0 << 8 | Number(truncatingIfNeeded: $1) }
    }
}
