internal import Message

/// Remembers the field lines of requests, so that a request with the same lines as the one before it on its connection is not parsed
/// again. Clients repeat them: nearly always only the request line differs.
///
/// A connection has the entry that its number selects, and shares it with others: whoever came last has it. The lines of one
/// connection are compared only with those of the same connection, so the time that it takes tells nobody what others sent.
/// The memory of the entries is used only by connections that send several requests.
///
/// Threads: one.
@safe package struct FieldMemory: ~Copyable {
    /// Longer and more lines are parsed each time.
    static let byteCountMax = 1024
    static let lineCountMax = 32
    private static let entryCount = 256
    /// So many different heads in a row, and the connection is left alone: it sends something new each time.
    private static let changesMax = 3

    private struct Entry {
        /// The connection. Zero: none.
        var owner: UInt64
        var present: UInt64
        /// The offset in its head at which the lines began. Those of `lines` count from the same byte.
        var start: UInt32
        var byteCount: UInt16
        var lineCount: UInt8
        /// How often in a row the connection sent other lines than before.
        var changes: UInt8
    }

    private let entries: UnsafeMutablePointer<Entry>
    private let bytes: UnsafeMutableRawPointer
    private let lines: UnsafeMutablePointer<FieldLine>

    package init() {
        unsafe entries = .allocate(capacity: Self.entryCount)
        unsafe entries.initialize(
            repeating: Entry(owner: 0, present: 0, start: 0, byteCount: 0, lineCount: 0, changes: 0),
            count: Self.entryCount)
        // Not initialized: what no connection uses takes no memory.
        unsafe bytes = .allocate(byteCount: Self.entryCount * Self.byteCountMax, alignment: 16)
        unsafe lines = .allocate(capacity: Self.entryCount * Self.lineCountMax)
    }

    deinit {
        unsafe entries.deallocate()
        unsafe bytes.deallocate()
        unsafe lines.deallocate()
    }

    /// Fills `fields` if the bytes from `start` to the end are the lines that `keep` was given last for this owner.
    ///
    /// - Parameter owner: the number of a connection; not zero.
    /// - Returns: whether it did. Otherwise `fields` is unchanged.
    func recall(
        _ head: RawSpan, from start: Int, of owner: UInt64, into fields: inout FieldSection, limits: Limits
    ) -> Bool {
        let index = Int(truncatingIfNeeded: owner & UInt64(Self.entryCount - 1))
        let entry = unsafe entries + index
        let count = head.byteCount &- start
        guard unsafe entry.pointee.owner == owner, unsafe Int(entry.pointee.byteCount) == count,
            unsafe isEqual(head, start, bytes + index &* Self.byteCountMax, count),
            unsafe head.byteCount <= limits.headBytesMax && Int(entry.pointee.lineCount) <= limits.fieldCountMax
        else { return false }
        unsafe entry.pointee.changes = 0
        let lineCount = unsafe Int(entry.pointee.lineCount)
        // Wraps where the lines begin before those that are remembered, which adds as it should.
        let shift = unsafe UInt32(truncatingIfNeeded: start) &- entry.pointee.start
        let keptLines = unsafe lines + index &* Self.lineCountMax
        fields.removeAll()
        fields.lines.append(addingCapacity: lineCount) { room in
            for number in 0..<lineCount {
                let line = unsafe keptLines[number]
                room.append(
                    FieldLine(
                        name: line.name, nameStart: line.nameStart &+ shift, nameEnd: line.nameEnd &+ shift,
                        valueStart: line.valueStart &+ shift, valueEnd: line.valueEnd &+ shift))
            }
        }
        fields.present = unsafe FieldNameSet(bits: entry.pointee.present)
        return true
    }

    /// Remembers the lines of a head that was parsed whole.
    ///
    /// - Parameter end: the offset behind the empty line.
    func keep(_ head: RawSpan, from start: Int, to end: Int, of owner: UInt64, _ fields: borrowing FieldSection) {
        precondition(owner != 0 && start >= 0 && start <= end && end <= head.byteCount, "the lines lie within the head")
        let index = Int(truncatingIfNeeded: owner & UInt64(Self.entryCount - 1))
        let entry = unsafe entries + index
        let isSame = unsafe entry.pointee.owner == owner
        if isSame, unsafe entry.pointee.changes >= Self.changesMax { return }
        let changes: UInt8 = unsafe isSame ? entry.pointee.changes + 1 : 0
        let (count, lineCount) = (end - start, fields.lines.count)
        guard count <= Self.byteCountMax, lineCount <= Self.lineCountMax else {
            if isSame { unsafe entry.pointee.owner = 0 }
            return
        }
        unsafe head.withUnsafeBytes { head in
            unsafe (bytes + index * Self.byteCountMax).copyMemory(from: head.baseAddress! + start, byteCount: count)
        }
        unsafe fields.lines.withUnsafeBufferPointer { source in
            guard let first = source.baseAddress else { return }
            unsafe (lines + index * Self.lineCountMax).initialize(from: first, count: lineCount)
        }
        unsafe entry.pointee = Entry(
            owner: owner, present: fields.present.bits, start: UInt32(truncatingIfNeeded: start),
            byteCount: UInt16(count), lineCount: UInt8(lineCount), changes: changes)
    }
}

/// Whether `kept` has the bytes from `start` to the end of the head.
@inline(__always)
private func isEqual(_ head: RawSpan, _ start: Int, _ kept: UnsafeMutableRawPointer, _ count: Int) -> Bool {
    unsafe head.withUnsafeBytes { head in
        unsafe haveSameBytes(head.baseAddress! + start, UnsafeRawPointer(kept), count)
    }
}

/// Sixteen bytes at a time. The last block overlaps the one before it.
@inline(__always)
private func haveSameBytes(_ one: UnsafeRawPointer, _ other: UnsafeRawPointer, _ count: Int) -> Bool {
    guard count >= 16 else {
        for index in 0..<count
        where unsafe one.load(fromByteOffset: index, as: UInt8.self)
            != other.load(fromByteOffset: index, as: UInt8.self)
        {
            return false
        }
        return true
    }
    var index = 0
    var differing = SIMD2<UInt64>()
    while index &+ 32 <= count {
        unsafe differing = block(one, index) ^ block(other, index)
        unsafe differing |= block(one, index &+ 16) ^ block(other, index &+ 16)
        if differing[0] | differing[1] != 0 { return false }
        index &+= 32
    }
    if index &+ 16 <= count { unsafe differing = block(one, index) ^ block(other, index) }
    unsafe differing |= block(one, count &- 16) ^ block(other, count &- 16)
    return differing[0] | differing[1] == 0
}

@inline(__always)
private func block(_ bytes: UnsafeRawPointer, _ offset: Int) -> SIMD2<UInt64> {
    unsafe bytes.loadUnaligned(fromByteOffset: offset, as: SIMD2<UInt64>.self)
}
