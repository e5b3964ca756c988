import EventLoop

/// A large object of a running store: an object with a file of its own, whose blocks are written and read one by one. Any thread
/// may use it.
///
/// Its file is a `LargeFile`. A new object has no file until the writer created it. Until then none of its blocks can be read, and
/// blocks that are written wait in the queue. If the file cannot be created, writing every block ends in false.
///
/// After a crash, the blocks whose entries reached the table are there; all others are fetched again. No block is ever served without
/// comparing its checksum, so it does not matter which of them a power cut took.
package final class LargeObject: @unchecked Sendable {
    package let id: ObjectID
    package let place: Place
    package let length: Int

    let hash: UInt64
    let key: [UInt8]
    let attributes: ObjectAttributes
    /// The length of the whole file.
    let fileBytes: UInt64
    /// These bytes are claimed from the ledger already.
    let isClaimed: Bool

    private struct State {
        var file: LargeFile?
        /// Kept until the file is created.
        var head: [UInt8]
        var hasFailed = false
        var waitingBytes = 0
        /// What the book was told last.
        var isComplete: Bool
    }
    private let state: Locked<State>
    private let parts: DiskStoreParts
    private let queue: WriterQueue

    /// An object that is to be created.
    init(
        new id: ObjectID, hash: UInt64, key: [UInt8], attributes: ObjectAttributes, head: [UInt8], place: Place,
        fileBytes: UInt64, isClaimed: Bool, parts: DiskStoreParts, queue: WriterQueue
    ) {
        precondition(place.kind == .large, "only a large object has a file of its own")
        self.id = id
        self.hash = hash
        self.key = key
        self.attributes = attributes
        self.place = place
        length = Int(place.bodyLength)
        precondition(fileBytes >= place.recordLength, "the file holds the head part and all blocks")
        self.fileBytes = fileBytes
        self.isClaimed = isClaimed
        state = Locked(State(file: nil, head: head, isComplete: length == 0))
        self.parts = parts
        self.queue = queue
    }

    /// An object that exists.
    init(file: LargeFile, hash: UInt64, parts: DiskStoreParts, queue: WriterQueue) {
        id = file.id
        self.hash = hash
        key = file.head.key
        attributes = file.head.attributes
        place = file.place
        length = file.length
        fileBytes = file.fileBytes
        isClaimed = true
        state = Locked(State(file: file, head: [], isComplete: file.isComplete))
        self.parts = parts
        self.queue = queue
    }

    package var blockCount: Int { (length + blockBytes - 1) / blockBytes }

    /// The blocks that can be read, as ranges of bytes: in order, adjacent ones joined.
    package var extents: [Range<Int>] { file?.extents ?? [] }

    /// Has a whole block written soon; the last block may be shorter. Holds `source` until then. `then` is called on the writer's
    /// thread, with true when the block can be read, and with false if it cannot be written or too much waits. If the store is
    /// closed, `then` is called at once on this thread.
    package func write(block: Int, from source: any BodyBytes, at offset: Int, then: @escaping @Sendable (Bool) -> Void)
    {
        precondition(block >= 0 && block < blockCount, "the object has this block")
        let bytes = byteCount(ofBlock: block)
        precondition(offset >= 0 && offset + bytes <= source.length, "the source has the whole block")
        let isWanted = state.withLock { state in
            if !state.hasFailed { state.waitingBytes += bytes }
            return !state.hasFailed
        }
        if isWanted {
            let job = WriterJob.block(self, block, source, offset: offset, then: then)
            // Not bounded by the queue: whoever writes large objects holds back by `waitingBytes`.
            if queue.put(job, bytes: bytes) { return }
            written(bytes)
        }
        parts.counters.refusedBusy.count()
        if !queue.put(.call { then(false) }) { then(false) }
    }

    /// Bytes of this object that wait to be written.
    package var waitingBytes: Int { state.withLock { $0.waitingBytes } }

    /// Reads blocks. `offset` is the beginning of a block; `room` is a multiple of `blockBytes` long, or ends with the object. A
    /// block that turns out damaged is counted and logged, and is absent afterwards.
    package func read(from offset: Int, into room: UnsafeMutableRawBufferPointer, waits: Bool) -> DiskRead {
        guard let file else { return .damaged }
        let before = room.count > 0 ? file.has(bytes: offset..<offset + room.count) : true
        let outcome = unsafe file.read(from: offset, into: room, waits: waits)
        switch outcome {
        case .damaged where before: lostBlock(near: offset)
        case .failed: parts.counters.readErrors.count()
        case .done, .wouldBlock, .damaged: break
        }
        return outcome
    }

    /// Tells the kernel that bytes from `offset` on will be wanted soon.
    package func readAhead(from offset: Int, length: Int) { file?.readAhead(from: offset, length: length) }

    private func lostBlock(near offset: Int) {
        parts.counters.damagedObjects.count()
        parts.log(
            .warning, "a block near byte \(offset) of \(DiskStoreParts.text(key)) is damaged and will be fetched again")
        _ = queue.put(.lostBlock(self))
    }

    // MARK: for the writer

    var file: LargeFile? { state.withLock { $0.file } }

    func byteCount(ofBlock block: Int) -> Int {
        precondition(block >= 0 && block * blockBytes < length, "the object has this block")
        return min(blockBytes, length - block * blockBytes)
    }

    /// The head, which the writer puts into the file. Empty after the first call.
    func takeHead() -> [UInt8] {
        state.withLock { state in
            defer { state.head = [] }
            return state.head
        }
    }

    func begin(_ file: LargeFile) {
        state.withLock { state in
            precondition(state.file == nil, "the file of an object is created once")
            precondition(file.length == length, "the file has the blocks of the object")
            state.file = file
        }
    }

    func fail() { state.withLock { $0.hasFailed = true } }

    func written(_ bytes: Int) {
        state.withLock { state in
            precondition(state.waitingBytes >= bytes, "only bytes that wait are written")
            state.waitingBytes -= bytes
        }
    }

    /// Whether the object became complete, or incomplete, since the book was told last.
    func completenessChanged() -> Bool {
        state.withLock { state in
            guard let file = state.file, file.isComplete != state.isComplete else { return false }
            state.isComplete.toggle()
            return true
        }
    }
}

extension LargeFile {
    /// Whether the table has all blocks of this range.
    fileprivate func has(bytes: Range<Int>) -> Bool {
        (bytes.lowerBound / blockBytes...(bytes.upperBound - 1) / blockBytes).allSatisfy { has(block: $0) }
    }
}
