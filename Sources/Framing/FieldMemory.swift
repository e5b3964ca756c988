internal import Message

/// Remembers the field lines of requests, so that a request with the same lines as the one before it on its connection is not parsed
/// again. Clients repeat them: nearly always only the request line differs.
///
@safe struct FieldMemory: ~Copyable {
    /// Longer and more lines are parsed each time.
    static let byteCountMax = 1024
    static let lineCountMax = 32

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

    init() {
        unsafe entries = .allocate(capacity: HeadMemory.entryCount)
        unsafe entries.initialize(
            repeating: Entry(owner: 0, present: 0, start: 0, byteCount: 0, lineCount: 0, changes: 0),
            count: HeadMemory.entryCount)
        // Not initialized: what no connection uses takes no memory.
        unsafe bytes = .allocate(byteCount: HeadMemory.entryCount * Self.byteCountMax, alignment: 16)
        unsafe lines = .allocate(capacity: HeadMemory.entryCount * Self.lineCountMax)
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
        let index = HeadMemory.index(of: owner)
        let entry = unsafe entries + index
        let count = head.byteCount &- start
        guard unsafe entry.pointee.owner == owner, unsafe Int(entry.pointee.byteCount) == count,
            unsafe hasBytes(head, at: start, bytes + index &* Self.byteCountMax, count),
            unsafe head.byteCount <= limits.headBytesMax && Int(entry.pointee.lineCount) <= limits.fieldCountMax
        else { return false }
        unsafe entry.pointee.changes = 0
        let lineCount = unsafe Int(entry.pointee.lineCount)
        // Wraps where the lines begin before those that are remembered, which adds as it should.
        let shift = unsafe UInt32(truncatingIfNeeded: start) &- entry.pointee.start
        let keptLines = unsafe lines + index &* Self.lineCountMax
        // Where the head before had as many lines, they are written over.
        if fields.lines.count != lineCount { fields.resize(to: lineCount) }
        var lines = fields.lines.mutableSpan
        for number in 0..<lineCount {
            let line = unsafe keptLines[number]
            lines[number] = FieldLine(
                name: line.name, nameStart: line.nameStart &+ shift, nameEnd: line.nameEnd &+ shift,
                valueStart: line.valueStart &+ shift, valueEnd: line.valueEnd &+ shift)
        }
        fields.present = unsafe FieldNameSet(bits: entry.pointee.present)
        return true
    }

    /// Remembers the lines of a head that was parsed whole.
    ///
    /// - Parameter end: the offset behind the empty line.
    func keep(_ head: RawSpan, from start: Int, to end: Int, of owner: UInt64, _ fields: borrowing FieldSection) {
        precondition(owner != 0 && start >= 0 && start <= end && end <= head.byteCount, "the lines lie within the head")
        let index = HeadMemory.index(of: owner)
        let entry = unsafe entries + index
        let isSame = unsafe entry.pointee.owner == owner
        if isSame, unsafe entry.pointee.changes >= HeadMemory.changesMax { return }
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

extension FieldSection {
    /// Gives the section another number of lines, all of which are to be written.
    fileprivate mutating func resize(to count: Int) {
        lines.removeAll(keepingCapacity: true)
        let none = FieldLine(name: .other, nameStart: 0, nameEnd: 0, valueStart: 0, valueEnd: 0)
        lines.append(contentsOf: repeatElement(none, count: count))
    }
}
