/// From the bytes of a field name to the case that names it: two words and a length decide, one probe finds.

extension FieldName {
    /// The name spelled so, in any case; `other` where we do not know it.
    package init(spelling: some Collection<UInt8>) {
        let bytes = Array(spelling)
        guard bytes.allSatisfy(isTchar) else {
            self = .other
            return
        }
        self = unsafe FieldName.classify(bytes.span.bytes, 0..<bytes.count)
    }

    /// - Parameter range: a token, checked before; folding case would confuse other bytes.
    package static func classify(_ bytes: RawSpan, _ range: Range<Int>) -> FieldName {
        FieldNameTable.shared.find(bytes, from: range.lowerBound, to: range.upperBound)
    }
}

/// The first and last eight bytes in lower case (they overlap in names shorter than sixteen); a name shorter than eight is
/// one word with zeros above, twice.
@inline(__always)
private func foldedWords(_ bytes: RawSpan, _ start: Int, _ length: Int) -> (UInt64, UInt64) {
    let fold: UInt64 = 0x2020_2020_2020_2020
    if length >= 8 {
        let head = unsafe bytes.unsafeLoadUnaligned(fromByteOffset: start, as: UInt64.self)
        let tail = unsafe bytes.unsafeLoadUnaligned(fromByteOffset: start &+ length &- 8, as: UInt64.self)
        return (head | fold, tail | fold)
    }
    let mask = UInt64.max &>> UInt64(64 &- 8 &* length)
    if start &+ 8 <= bytes.byteCount {
        let word = unsafe bytes.unsafeLoadUnaligned(fromByteOffset: start, as: UInt64.self)
        return ((word | fold) & mask, (word | fold) & mask)
    }
    var word: UInt64 = 0
    for index in 0..<length {
        let byte = unsafe bytes.unsafeLoad(fromByteOffset: start + index, as: UInt8.self)
        word |= UInt64(byte | 0x20) << UInt64(8 * index)
    }
    return (word, word)
}

/// An open-addressing table of the known names, made once from `FieldName.allCases`.
package struct FieldNameTable: Sendable {
    private struct Slot {
        var head: UInt64 = 0
        var tail: UInt64 = 0
        var length = 0
        var name = FieldName.other
    }

    static let lengthMin = 2
    static let lengthMax = 25
    package static let shared = FieldNameTable()
    /// An array, not inline: a copy of the table must not be made for each look-up.
    private var slots = [Slot](repeating: Slot(), count: 256)

    private init() {
        for name in FieldName.allCases where name != .other {
            let text = bytes(of: name.text)
            precondition(text.count >= Self.lengthMin && text.count <= Self.lengthMax, "a length out of bounds")
            let (head, tail) = unsafe foldedWords(text.span.bytes, 0, text.count)
            var index = Self.slot(head, tail)
            while slots[index].name != .other { index = (index + 1) & 255 }
            slots[index] = Slot(head: head, tail: tail, length: text.count, name: name)
        }
    }

    /// The name that stands there, which is also added to those that are present.
    package func find(_ bytes: RawSpan, from start: Int, to end: Int, present: inout FieldNameSet) -> FieldName {
        let name = find(bytes, from: start, to: end)
        present.insert(name)
        return name
    }

    @inline(__always)
    func find(_ bytes: RawSpan, from start: Int, to end: Int) -> FieldName {
        let length = end &- start
        guard length >= Self.lengthMin, length <= Self.lengthMax else { return .other }
        let (head, tail) = foldedWords(bytes, start, length)
        var index = Self.slot(head, tail)
        while true {
            let slot = slots[index]
            if slot.head == head, slot.tail == tail, slot.length == length {
                return length <= 16 || middleMatches(bytes, start, length, slot.name) ? slot.name : .other
            }
            // An empty slot has no length.
            if slot.length == 0 { return .other }
            index = (index &+ 1) & 255
        }
    }

    /// The words cover only the ends of a name longer than sixteen bytes.
    private func middleMatches(_ bytes: RawSpan, _ start: Int, _ length: Int, _ name: FieldName) -> Bool {
        let text = name.text
        for index in 8..<(length - 8) {
            let expected = unsafe text.utf8Start[index]
            guard loadByte(bytes, start + index) | 0x20 == expected | 0x20 else { return false }
        }
        return true
    }

    @inline(__always)
    private static func slot(_ head: UInt64, _ tail: UInt64) -> Int {
        Int(truncatingIfNeeded: ((head ^ (tail &* 0x9E37_79B9_7F4A_7C15)) &* 0xD6E8_FEB8_6659_FD93) &>> 56)
    }
}
