/// Reads the records of a segment in order. Blocks.
package struct RecordScan {
    package enum Depth: Sendable {
        /// Decode head parts only; bodies must merely fit into the file.
        case heads
        /// Compare all checksums.
        case everything
    }
    package enum Mode: Sendable {
        /// Stop at the first record that is not whole: a crash left it.
        case tail
        /// Look for the next record behind damaged bytes.
        case search
    }
    package enum Found: Sendable {
        case object(StoredHead)
        case drops([DroppedObject], at: UInt64, length: UInt64)
        /// The head is intact, the body or its padding is not. In mode `search` only.
        case damagedObject(StoredHead, RecordError)
        /// These bytes are no record. In mode `search` only.
        case damaged(Range<UInt64>, RecordError)
    }

    /// Where the next record is looked for. In mode `tail`: where the whole records end.
    package private(set) var end: UInt64
    /// In mode `tail`: why the scan stopped before the end of the file. Nil if it did not.
    package private(set) var stop: RecordError?

    private let file: SegmentFile
    private let depth: Depth
    private let mode: Mode
    private var fileEnd: UInt64?
    private var window: Window
    /// The bytes that were skipped in search of a record, and why.
    private var gap: (start: UInt64, why: RecordError)?

    /// - Parameter from: where the first record should begin.
    package init(
        _ file: SegmentFile, from: UInt64 = UInt64(SegmentFile.headerBytes), depth: Depth, mode: Mode = .tail
    ) {
        precondition(from % 16 == 0, "a record begins at a multiple of 16")
        self.file = file
        self.depth = depth
        self.mode = mode
        end = from
        window = Window(byteCounts: depth == .heads ? 4096...64 << 10 : 1 << 20...1 << 20)
    }

    /// The next record. Returns nil at the end.
    package mutating func next() throws(DiskReadError) -> Found? {
        let fileEnd = try length()
        guard stop == nil else { return nil }
        while end < fileEnd {
            switch try examine(end, fileEnd) {
            case .success(let (found, length)):
                if let gap = takeGap() { return gap }  // the next call finds this record again
                precondition(length > 0 && length % 16 == 0 && length <= fileEnd - end, "a record lies within its file")
                end += length
                return found
            case .failure(let error):
                guard mode == .search else {
                    stop = error
                    return nil
                }
                if gap == nil { gap = (end, error) }
                try skipToMagic(fileEnd)
            }
        }
        return takeGap()
    }

    /// The length of the file when the scan began. The scan ignores what is appended later.
    private mutating func length() throws(DiskReadError) -> UInt64 {
        if let fileEnd { return fileEnd }
        do throws(DiskFileError) {
            let length = try file.length()
            fileEnd = length
            return length
        } catch { throw DiskReadError(error) }
    }

    private mutating func takeGap() -> Found? {
        guard let (start, why) = gap else { return nil }
        gap = nil
        precondition(start < end, "a search skips bytes")
        return .damaged(start..<end, why)
    }

    /// Decodes the record at a place. Returns it with its length.
    private mutating func examine(
        _ at: UInt64, _ fileEnd: UInt64
    ) throws(DiskReadError) -> Result<(Found, UInt64), RecordError> {
        let left = fileEnd - at
        try window.fill(file, at, RecordHeader.byteCount)
        let header: RecordHeader
        switch window.header(at) {
        case .failure(let error): return .failure(error)
        case .success(let found): header = found
        }
        // A large object stands at the beginning of a file of its own.
        guard header.kind != .large else { return .failure(.unknownKind(header.kind.rawValue)) }
        guard header.recordLength <= left else { return .failure(.incomplete(needs: Int(header.recordLength))) }
        try window.fill(file, at, header.headPartLength)
        switch window.content(at, file.identity) {
        case .failure(let error): return .failure(error)
        case .success(.drops(let drops)):
            return .success((.drops(drops, at: at, length: header.recordLength), header.recordLength))
        case .success(.object(let head)):
            guard depth == .everything, let error = try damage(head, at) else {
                return .success((.object(head), header.recordLength))
            }
            return mode == .tail ? .failure(error) : .success((.damagedObject(head, error), header.recordLength))
        }
    }

    /// Compares the body of a record and the padding behind it. Returns nil if they are intact.
    private mutating func damage(_ head: StoredHead, _ at: UInt64) throws(DiskReadError) -> RecordError? {
        let start = at + UInt64(head.place.headLength)
        var left = Int(head.place.bodyLength)
        for (block, checksum) in head.checksums.enumerated() {
            let place = start + UInt64(block * blockBytes)
            try window.fill(file, place, min(left, blockBytes))
            guard window.checksum(place, min(left, blockBytes)) == checksum else { return .body(block: block) }
            left -= blockBytes
        }
        let padding = Int(head.place.recordLength) - Int(head.place.headLength) - Int(head.place.bodyLength)
        precondition((0..<16).contains(padding), "a record is padded to a multiple of 16")
        try window.fill(file, start + head.place.bodyLength, padding)
        return window.isZero(start + head.place.bodyLength, padding) ? nil : .padding
    }

    /// Moves on to the next place where a record may begin.
    private mutating func skipToMagic(_ fileEnd: UInt64) throws(DiskReadError) {
        // A body may contain bytes that look like a record, on purpose as well. `RecordCodec.decode` accepts a head part only if
        // its checksum covers this store, this file and this place, and origins do not know the id of the store.
        end += 16
        while end < fileEnd {
            try window.fill(file, end, 16)
            if let place = window.firstMagic(from: end) {
                precondition(place >= end && place % 16 == 0, "a search moves forward, to a multiple of 16")
                end = place
                return
            }
            // A magic that crosses the end of the window is looked for again in the next one.
            end = max(end + 16, padded(window.end - 3, to: 16))
        }
        end = fileEnd
    }
}

/// A part of a file in memory.
///
/// A scan of heads passes over the bodies. Where these are long, most of what is read with a head is never looked at. So less is
/// read at once after a read that had few records, and more after one that had many.
private struct Window {
    /// Bytes for each record in a read. Above this, the next read is half as long; at half of it and below, twice as long.
    private static let spacingMax = 4096

    /// How much is read at once.
    private var byteCount: Int
    private let byteCounts: ClosedRange<Int>
    private var start: UInt64 = 0
    private var bytes: [UInt8] = []
    /// How many records were looked for in `bytes`.
    private var placeCount = 0
    /// Where the last of them was looked for.
    private var place: UInt64 = 0

    /// - Parameter byteCounts: how much may be read at once. The first read has the most.
    init(byteCounts: ClosedRange<Int>) {
        self.byteCounts = byteCounts
        byteCount = byteCounts.upperBound
    }

    var end: UInt64 { start + UInt64(bytes.count) }

    /// Makes sure that the range is in memory, as far as the file has it.
    mutating func fill(_ file: SegmentFile, _ at: UInt64, _ count: Int) throws(DiskReadError) {
        precondition(count >= 0, "no negative number of bytes is read")
        defer {
            if place != at { placeCount += 1 }
            place = at
        }
        if at >= start, at + UInt64(count) <= end { return }
        if placeCount > 0 {
            let spacing = bytes.count / placeCount
            if spacing > Window.spacingMax {
                byteCount = max(byteCount / 2, byteCounts.lowerBound)
            } else if spacing <= Window.spacingMax / 2 {
                byteCount = min(byteCount * 2, byteCounts.upperBound)
            }
        }
        bytes = try file.bytes(max(count, byteCount), at: at)
        placeCount = 0
        start = at
    }

    func header(_ at: UInt64) -> Result<RecordHeader, RecordError> {
        Result { () throws(RecordError) in try RecordHeader(unsafe bytes.span.bytes.extracting(rest(at))) }
    }

    func content(_ at: UInt64, _ segment: SegmentIdentity) -> Result<RecordCodec.Content, RecordError> {
        Result { () throws(RecordError) in
            try RecordCodec.decode(unsafe bytes.span.bytes.extracting(rest(at)), in: segment, at: at).content
        }
    }

    /// Returns nil if the range is not completely in memory.
    func checksum(_ at: UInt64, _ count: Int) -> UInt32? {
        let range = rest(at)
        guard range.count >= count else { return nil }
        return unsafe bytes.withUnsafeBytes { unsafe Checksum.crc32c(.init(rebasing: $0[range.prefix(count)])) }
    }

    func isZero(_ at: UInt64, _ count: Int) -> Bool {
        let range = rest(at)
        return range.count >= count && (unsafe bytes.span.bytes.isZero(range.lowerBound..<range.lowerBound + count))
    }

    /// The first place, at a multiple of 16 in the file, where a record may begin.
    func firstMagic(from at: UInt64) -> UInt64? {
        let bytes = unsafe bytes.span.bytes
        var place = at
        while place + 4 <= end {
            if bytes.number(at: Int(place - start), as: UInt32.self) == RecordHeader.magic { return place }
            place += 16
        }
        return nil
    }

    private func rest(_ at: UInt64) -> Range<Int> {
        precondition(at >= start, "a scan only moves forward")
        return min(Int(at - start), bytes.count)..<bytes.count
    }
}
