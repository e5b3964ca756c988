import Message

/// All placeholders, so that a scanner finds any of them in one pass over the bytes.
package final class PlaceholderIndex: Sendable {
    /// Sixteen bytes, of which the first is the most significant.
    struct Window: Hashable {
        var high: UInt64 = 0
        var low: UInt64 = 0

        @inline(__always) mutating func push(_ byte: UInt8) {
            high = high << 8 | low >> 56
            low = low << 8 | UInt64(byte)
        }
    }

    package let placeholders: [Placeholder]
    /// The last bytes of each placeholder, as they are and in base 64, with the position of the placeholder.
    fileprivate let windows: [Window: Int]
    /// A bit for each value of some hash of the windows. Most bytes need no other look.
    fileprivate let filter: [UInt64]
    fileprivate let filterShift: UInt64

    package init(_ placeholders: [Placeholder] = []) {
        self.placeholders = placeholders
        var windows: [Window: Int] = [:]
        for (position, placeholder) in placeholders.enumerated() {
            for window in PlaceholderIndex.windows(of: placeholder.text) { windows[window] = position }
        }
        // A false bit in thirty at most.
        var bits = 12
        while (1 << bits) < windows.count * 32 { bits += 1 }
        let shift = UInt64(64 - bits)
        var filter = [UInt64](repeating: 0, count: 1 << (bits - 6))
        for window in windows.keys {
            let place = PlaceholderIndex.place(of: window.low, shift)
            filter[Int(place >> 6)] |= 1 << (place & 63)
        }
        self.windows = windows
        self.filter = filter
        filterShift = shift
    }

    package var isEmpty: Bool { placeholders.isEmpty }

    @inline(__always) fileprivate static func place(of low: UInt64, _ shift: UInt64) -> UInt64 {
        (low &* 0x9E37_79B9_7F4A_7C15) >> shift
    }

    private static let windowBytes = 16

    private static func windows(of text: [UInt8]) -> Set<Window> {
        precondition(text.count > windowBytes, "a placeholder is longer than what is looked for")
        var windows: Set = [window(text.suffix(windowBytes))]
        // In base 64, three bytes become four digits. Where a group begins depends on what stands in front.
        for skipped in 0..<3 {
            let groups = (text.count - skipped) / 3
            let last = text[(skipped + 3 * groups - windowBytes / 4 * 3)..<(skipped + 3 * groups)]
            let digits = encodeBase64(last)
            windows.insert(window(digits[...]))
            // RFC 4648 §5.
            windows.insert(window(digits.map { $0 == 0x2B ? 0x2D : $0 == 0x2F ? 0x5F : $0 }[...]))
        }
        return windows
    }

    private static func window(_ bytes: ArraySlice<UInt8>) -> Window {
        var window = Window()
        for byte in bytes { window.push(byte) }
        return window
    }
}

/// Finds placeholders in a stream of bytes that comes in pieces: as they are, percent-encoded (RFC 3986 §2.1), with the escapes of JSON
/// (RFC 8259 §7), and in base 64 (RFC 4648 §4, §5).
///
/// It decodes escapes on the way, whatever the bytes are, and looks at the last sixteen. A placeholder contains no escape, so one that is
/// not encoded is found among decoded bytes as well.
package struct PlaceholderScanner: Sendable {
    private enum Escape { case none, percent, backslash }

    private var window = PlaceholderIndex.Window()
    private var escape = Escape.none
    /// The bytes of an escape that is not complete.
    private var pending: [UInt8] = []

    package init() {}

    /// The position in the index of the next placeholder that ends in these bytes. Nil if none does.
    ///
    /// - Parameter offset: where to go on. Behind the last byte when this returns nil.
    package mutating func next(in bytes: Span<UInt8>, from offset: inout Int, _ index: PlaceholderIndex) -> Int? {
        while offset < bytes.count {
            let byte = bytes[offset]
            offset += 1
            if case .none = escape, byte != 0x25, byte != 0x5C {
                if let found = push(byte, index) { return found }
            } else if let found = takeEscape(byte, index) {
                return found
            }
        }
        return nil
    }

    @inline(__always) private mutating func push(_ byte: UInt8, _ index: PlaceholderIndex) -> Int? {
        window.push(byte)
        let place = PlaceholderIndex.place(of: window.low, index.filterShift)
        guard index.filter[Int(place >> 6)] >> (place & 63) & 1 != 0 else { return nil }
        return look(index)
    }

    private mutating func look(_ index: PlaceholderIndex) -> Int? {
        guard let found = index.windows[window] else { return nil }
        window = PlaceholderIndex.Window()
        return found
    }

    private mutating func takeEscape(_ byte: UInt8, _ index: PlaceholderIndex) -> Int? {
        switch escape {
        case .none:
            escape = byte == 0x25 ? .percent : .backslash
            pending = [byte]
            return nil
        case .percent:
            guard hexValue(byte) != nil else { break }
            pending.append(byte)
            return pending.count == 3 ? endEscape(number, index) : nil
        case .backslash where pending.count == 1:
            guard byte == UInt8(ascii: "u") else { return endEscape(unescaped(byte), index) }
            pending.append(byte)
            return nil
        case .backslash:
            guard hexValue(byte) != nil else { break }
            pending.append(byte)
            return pending.count == 6 ? endEscape(number, index) : nil
        }
        // It was no escape. The byte may begin one.
        let literal = pending
        escape = .none
        pending = []
        var found: Int?
        for one in literal { found = push(one, index) ?? found }
        if byte == 0x25 || byte == 0x5C { return takeEscape(byte, index) ?? found }
        return push(byte, index) ?? found
    }

    private mutating func endEscape(_ byte: UInt8, _ index: PlaceholderIndex) -> Int? {
        escape = .none
        pending = []
        return push(byte, index)
    }

    /// The number in the digits of the escape. Placeholders have no characters beyond ASCII.
    private var number: UInt8 {
        let value = pending.reduce(0) { sum, digit in hexValue(digit).map { sum << 4 | Int($0) } ?? sum }
        return UInt8(exactly: value) ?? 0
    }

    private func unescaped(_ byte: UInt8) -> UInt8 { byte == UInt8(ascii: "n") ? 0x0A : byte }
}
