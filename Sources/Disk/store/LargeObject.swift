import EventLoop

/// A large object in a segment of its own: header, head, a table with a checksum per block, then the blocks at fixed
/// places, each there or not. Used by any thread at once.
///
/// What runs; the file is `LargeFile`. A new one has no file until the writer made it: nothing of it is there till
/// then, and blocks that are given to it wait. Where the file can not be made, all blocks end in false.
package final class LargeObject: @unchecked Sendable {
    package let id: ObjectID
    package let place: Place
    package let length: Int

    let hash: UInt64
    let key: [UInt8]
    let attributes: ObjectAttributes
    /// Of its whole file.
    let fileBytes: UInt64
    /// They are claimed from the ledger already.
    let isClaimed: Bool

    private struct State {
        var file: LargeFile?
        /// Until the file is made.
        var head: [UInt8]
        var hasFailed = false
        var waitingBytes = 0
        /// What the book was told last.
        var isComplete: Bool
    }
    private let state: Locked<State>
    private let parts: DiskStoreParts
    private let queue: WriterQueue

    /// One that is to be made.
    init(
        new id: ObjectID, hash: UInt64, key: [UInt8], attributes: ObjectAttributes, head: [UInt8], place: Place,
        fileBytes: UInt64, isClaimed: Bool, parts: DiskStoreParts, queue: WriterQueue
    ) {
        self.id = id
        self.hash = hash
        self.key = key
        self.attributes = attributes
        self.place = place
        length = Int(place.bodyLength)
        self.fileBytes = fileBytes
        self.isClaimed = isClaimed
        state = Locked(State(file: nil, head: head, isComplete: length == 0))
        self.parts = parts
        self.queue = queue
    }

    /// One that is there.
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

    /// The blocks that can be read, as ranges of bytes: in order, never adjacent.
    package var extents: [Range<Int>] { file?.extents ?? [] }

    /// Takes a whole block (the last may be shorter) to be written soon; `source` is held until then. `then` is
    /// called on the writer's thread when it can be read, or could not be written, or too much waits to be written;
    /// where the store is closed at once, on this thread.
    package func write(block: Int, from source: any BodyBytes, at offset: Int, then: @escaping @Sendable (Bool) -> Void)
    {
        precondition(block >= 0 && block < blockCount, "a block of the object")
        let bytes = byteCount(ofBlock: block)
        precondition(offset >= 0 && offset + bytes <= source.length, "the source has the whole block")
        let isWanted = state.withLock { state in
            if !state.hasFailed { state.waitingBytes += bytes }
            return !state.hasFailed
        }
        if isWanted {
            let job = WriterJob.block(self, block, source, offset: offset, then: then)
            // Those who write large objects hold themselves back (`waitingBytes`).
            if queue.put(job, bytes: bytes) { return }
            written(bytes)
        }
        parts.counters.refusedBusy.count()
        if !queue.put(.call { then(false) }) { then(false) }
    }

    /// Bytes taken and not yet written, of this object.
    package var waitingBytes: Int { state.withLock { $0.waitingBytes } }

    /// Reads blocks that are there, from the beginning of a block on: fills `room` (a multiple of `blockBytes`, or up
    /// to the end). A block that is damaged is no longer there afterwards; it is counted and logged.
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

    /// Tells the kernel that the bytes from `offset` will be wanted soon.
    package func readAhead(from offset: Int, length: Int) { file?.readAhead(from: offset, length: length) }

    private func lostBlock(near offset: Int) {
        parts.counters.damagedObjects.count()
        parts.log(
            .warning, "a block near byte \(offset) of \(DiskStoreParts.text(key)) is damaged: it is to be fetched anew")
        _ = queue.put(.lostBlock(self))
    }

    // MARK: the writer's side

    var file: LargeFile? { state.withLock { $0.file } }

    func byteCount(ofBlock block: Int) -> Int { min(blockBytes, length - block * blockBytes) }

    /// The head, once: the file has it then.
    func takeHead() -> [UInt8] {
        state.withLock { state in
            defer { state.head = [] }
            return state.head
        }
    }

    func begin(_ file: LargeFile) { state.withLock { $0.file = file } }

    func fail() { state.withLock { $0.hasFailed = true } }

    func written(_ bytes: Int) { state.withLock { $0.waitingBytes -= bytes } }

    /// Whether the book is to be told that all of it is there, or no longer.
    func completenessChanged() -> Bool {
        state.withLock { state in
            guard let file = state.file, file.isComplete != state.isComplete else { return false }
            state.isComplete.toggle()
            return true
        }
    }
}

extension LargeFile {
    /// All of these bytes are there, as far as the table says.
    fileprivate func has(bytes: Range<Int>) -> Bool {
        (bytes.lowerBound / blockBytes...(bytes.upperBound - 1) / blockBytes).allSatisfy { has(block: $0) }
    }
}
