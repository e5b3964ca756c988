// Finds the `FieldName` for the bytes of a name: two words and the length are its hash, and one probe usually finds it.

extension FieldName {
    /// The field name with this spelling, without regard to case. `other` if it has no case of its own.
    package init(spelling: some Collection<UInt8>) {
        let bytes = Array(spelling)
        guard bytes.allSatisfy(isTchar) else {
            self = .other
            return
        }
        self = unsafe FieldName.classify(bytes.span.bytes, 0..<bytes.count)
    }

    /// - Parameter range: the range of a valid token. Folding the case would confuse other bytes.
    package static func classify(_ bytes: RawSpan, _ range: Range<Int>) -> FieldName {
        FieldNameTable.shared.find(bytes, from: range.lowerBound, to: range.upperBound)
    }
}

/// The first and the last eight bytes in lower case, which overlap in names shorter than sixteen. A name shorter than eight bytes is
/// the same word twice, with zeros above.
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

/// A table of the known names with open addressing, made once from `FieldName.allCases`.
@safe package struct FieldNameTable: @unchecked Sendable {
    private struct Slot {
        var head: UInt64 = 0
        var tail: UInt64 = 0
        var length = 0
        var name = FieldName.other
    }

    static let lengthMin = 2
    static let lengthMax = 25
    package static let shared = FieldNameTable()
    private static let slotCount = 256
    /// There is one table, which lives as long as the process and does not change once it is made. A pointer, because an array would be
    /// retained for each head, and inline storage copied for each look-up.
    private let slots: UnsafePointer<Slot>

    private init() {
        let slots = UnsafeMutablePointer<Slot>.allocate(capacity: Self.slotCount)
        unsafe slots.initialize(repeating: Slot(), count: Self.slotCount)
        for name in FieldName.allCases where name != .other {
            let text = bytes(of: name.text)
            precondition(text.count >= Self.lengthMin && text.count <= Self.lengthMax, "the length is out of bounds")
            let (head, tail) = unsafe foldedWords(text.span.bytes, 0, text.count)
            var index = Self.slot(head, tail)
            while unsafe slots[index].name != .other { index = (index + 1) & (Self.slotCount - 1) }
            unsafe slots[index] = Slot(head: head, tail: tail, length: text.count, name: name)
        }
        unsafe self.slots = UnsafePointer(slots)
    }

    /// The name at these bytes. Also inserts it into `present`.
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
            let slot = unsafe slots[index]
            if slot.head == head, slot.tail == tail, slot.length == length {
                return length <= 16 || middleMatches(bytes, start, length, slot.name) ? slot.name : .other
            }
            // The length of an empty slot is zero.
            if slot.length == 0 { return .other }
            index = (index &+ 1) & (Self.slotCount &- 1)
        }
    }

    /// Compares the middle of a name that is longer than sixteen bytes, which the words do not cover.
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
