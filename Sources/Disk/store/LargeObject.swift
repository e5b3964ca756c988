import EventLoop

/// A large object of a running store: an object with a file of its own, whose blocks are written and read one by one. Any thread
/// may use it.
///
/// A new object has no file until the writer created it. Until then none of its blocks can be read, and blocks that are written
/// wait in the queue. If the file cannot be created, writing every block ends in false.
///
///     length known      waiting ──the file is created──▶ stored
///     length not known  waiting ──the file is created──▶ growing ──finish──▶ stored
///                                                           └─abandon, or a block cannot be written─▶ gone
///
/// A stored object is in index and book, and its file is a `LargeFile`. While an object waits or grows nobody finds it, and a crash
/// leaves nothing of it (`GrowingFile`). Whoever holds a growing object, or one that is gone, can read the blocks that were written.
///
/// After a crash, the blocks of a stored object whose entries reached the table are there; all others are fetched again. No block is
/// ever served without comparing its checksum, so it does not matter which of them a power cut took.
package final class LargeObject: WaitingObject, @unchecked Sendable {
    package let id: ObjectID
    /// The number of its file.
    let number: UInt32
    /// Bytes of its head part.
    let headLength: UInt32
    let hash: UInt64
    let key: [UInt8]
    /// The object was made without a length.
    let grows: Bool

    private enum Stage {
        case waiting
        case growing(GrowingFile)
        case stored(LargeFile)
    }
    private struct State {
        var stage: Stage
        /// Nil: not known yet.
        var length: Int?
        /// Kept until it is written.
        var head: [UInt8]
        var attributes: ObjectAttributes
        var hasFailed = false
        var waitingBytes = 0
        /// What the book was told last.
        var isComplete: Bool
    }
    private let state: Locked<State>
    private let parts: DiskStoreParts
    private let queue: WriterQueue

    // The writer's own, once the object is in its queue.
    /// Space that is claimed from the ledger for a file that is not in it yet.
    var claimedBytes: UInt64
    /// The share of the quota that the ledger keeps for the object.
    var promisedBytes: UInt64
    /// Whether `claimedBytes` are granted.
    var isClaimed: Bool

    /// An object that is to be created.
    /// - Parameters:
    ///   - place: its `bodyLength` means nothing if the object grows.
    ///   - fileBytes: what the file takes; of an object that grows, at first.
    init(
        new id: ObjectID, hash: UInt64, key: [UInt8], attributes: ObjectAttributes, head: [UInt8], place: Place,
        grows: Bool, fileBytes: UInt64, promisedBytes: UInt64, isClaimed: Bool, parts: DiskStoreParts,
        queue: WriterQueue
    ) {
        precondition(place.kind == .large, "only a large object has a file of its own")
        self.id = id
        self.hash = hash
        self.key = key
        precondition(grows || fileBytes >= place.recordLength, "the file holds the head part and all blocks")
        number = place.segment
        headLength = place.headLength
        self.grows = grows
        claimedBytes = fileBytes
        self.promisedBytes = promisedBytes
        self.isClaimed = isClaimed
        let length = grows ? nil : Int(place.bodyLength)
        state = Locked(
            State(stage: .waiting, length: length, head: head, attributes: attributes, isComplete: length == 0))
        self.parts = parts
        self.queue = queue
    }

    /// An object that exists.
    init(file: LargeFile, hash: UInt64, parts: DiskStoreParts, queue: WriterQueue) {
        id = file.id
        self.hash = hash
        key = file.head.key
        number = file.place.segment
        headLength = file.place.headLength
        grows = false
        claimedBytes = 0
        promisedBytes = 0
        isClaimed = true
        state = Locked(
            State(
                stage: .stored(file), length: file.length, head: [], attributes: file.head.attributes,
                isComplete: file.isComplete))
        self.parts = parts
        self.queue = queue
    }

    /// Bytes of the body; nil while that is not known.
    package var length: Int? { state.withLock { $0.length } }

    package var blockCount: Int { ((length ?? 0) + blockBytes - 1) / blockBytes }

    /// Where it is, once its length is known.
    package var place: Place {
        guard let length else { preconditionFailure("an object that grows has no place") }
        return Place(kind: .large, segment: number, offset: 0, headLength: headLength, bodyLength: UInt64(length))
    }

    /// The blocks that can be read, as ranges of bytes: in order, adjacent ones joined.
    package var extents: [Range<Int>] {
        switch stage {
        case .waiting: []
        case .growing(let file): file.blocks.extents
        case .stored(let file): file.extents
        }
    }

    /// Has a whole block written soon; the last block may be shorter. Holds `source` until then. `then` is called on the writer's
    /// thread, with true when the block can be read, and with false if it cannot be written or too much waits. If the store is
    /// closed, `then` is called at once on this thread.
    package func write(block: Int, from source: any BodyBytes, at offset: Int, then: @escaping @Sendable (Bool) -> Void)
    {
        let bytes = byteCount(ofBlock: block, from: source, at: offset)
        precondition(offset >= 0 && offset + bytes <= source.byteCount, "the source has the whole block")
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

    /// Says how long an object is that was made without a length, after all its blocks were given to `write`. `then` is called on the
    /// writer's thread: with true when the object is stored; with false if it cannot be, because a block or the rest could not be
    /// written or because it was removed: then nothing of it is left. If the store is closed, `then` is called at once.
    package func finish(length: Int, then: @escaping @Sendable (Bool) -> Void) {
        precondition(grows && length > 0, "the length of an object that grows is known at its end")
        if !queue.put(.finishLarge(self, length: length, then: then), isUrgent: true) { then(false) }
    }

    /// Gives up an object that was made without a length and is not finished: nothing of it is kept.
    package func abandon() {
        precondition(grows, "an object whose length is known is removed")
        // First: a `finish` that waits in the queue before this job then stores nothing.
        if parts.pending.cancel(hash, id) { parts.renewals.forget(id) }
        // If the store is closed, the next start deletes the file.
        _ = queue.put(.abandonLarge(self))
    }

    /// Bytes of this object that wait to be written.
    package var waitingBytes: Int { state.withLock { $0.waitingBytes } }

    /// Reads blocks. `offset` is the beginning of a block; `room` is a multiple of `blockBytes` long, or ends with the object. A
    /// block that turns out damaged is counted and logged, and is absent afterwards.
    package func read(from offset: Int, into room: UnsafeMutableRawBufferPointer, waits: Bool) -> DiskRead {
        let (outcome, wasThere): (DiskRead, Bool)
        switch stage {
        case .waiting: return .damaged
        case .growing(let file):
            wasThere = has(bytes: offset..<offset + room.count) { file.blocks.has(block: $0) }
            outcome = unsafe file.blocks.read(from: offset, into: room, waits: waits)
        case .stored(let file):
            wasThere = has(bytes: offset..<offset + room.count) { file.has(block: $0) }
            outcome = unsafe file.read(from: offset, into: room, waits: waits)
        }
        switch outcome {
        case .damaged where wasThere: lostBlock(near: offset)
        case .failed: parts.counters.readErrors.count()
        case .done, .wouldBlock, .damaged: break
        }
        return outcome
    }

    /// Whether all blocks of this range are there.
    private func has(bytes: Range<Int>, _ isThere: (Int) -> Bool) -> Bool {
        bytes.isEmpty || (bytes.lowerBound / blockBytes...(bytes.upperBound - 1) / blockBytes).allSatisfy(isThere)
    }

    /// The bytes from `offset` on that were read and found right before, and can be sent from the file without blocking; at most `limit`.
    package func cached(from offset: Int, limit: Int) -> OpenFileRange? {
        switch stage {
        case .waiting, .growing: nil
        case .stored(let file): file.cached(from: offset, limit: limit)
        }
    }

    /// Tells the kernel that bytes from `offset` on will be wanted soon.
    package func readAhead(from offset: Int, length: Int) {
        switch stage {
        case .waiting: break
        case .growing(let file): file.blocks.readAhead(from: offset, length: length)
        case .stored(let file): file.readAhead(from: offset, length: length)
        }
    }

    private func lostBlock(near offset: Int) {
        parts.counters.damagedObjects.count()
        parts.log(
            .warning, "a block near byte \(offset) of \(DiskStoreParts.text(key)) is damaged and will be fetched again")
        _ = queue.put(.lostBlock(self))
    }

    // MARK: for the writer

    private var stage: Stage { state.withLock { $0.stage } }

    /// Nil while it waits or grows.
    var file: LargeFile? {
        if case .stored(let file) = stage { return file }
        return nil
    }

    /// Nil unless it grows.
    var growing: GrowingFile? {
        if case .growing(let file) = stage { return file }
        return nil
    }

    var attributes: ObjectAttributes { state.withLock { $0.attributes } }
    var head: [UInt8] { state.withLock { $0.head } }

    /// The quota of pinned objects has no room for it: it is kept as long as there is room for it.
    func becomePermanent() { state.withLock { $0.attributes.storageClass = .permanent } }

    /// Of an object that grows, the last block ends with its source.
    func byteCount(ofBlock block: Int, from source: any BodyBytes, at offset: Int) -> Int {
        let end = length ?? block * blockBytes + source.byteCount - offset
        precondition(block >= 0 && block * blockBytes < end, "the object has this block")
        return min(blockBytes, end - block * blockBytes)
    }

    /// The head, which the writer puts into the file. Empty after the first call.
    func takeHead() -> [UInt8] {
        state.withLock { state in
            defer { state.head = [] }
            return state.head
        }
    }

    func begin(_ file: GrowingFile) {
        state.withLock { state in
            guard case .waiting = state.stage else { preconditionFailure("the file of an object is created once") }
            state.stage = .growing(file)
        }
    }

    /// The object is stored; all of it is there if it grew.
    func begin(_ file: LargeFile) {
        state.withLock { state in
            if case .stored = state.stage { preconditionFailure("an object is stored once") }
            precondition(state.length ?? file.length == file.length, "the file has the blocks of the object")
            state.stage = .stored(file)
            if state.length == nil { state.isComplete = true }
            state.length = file.length
        }
    }

    var hasFailed: Bool { state.withLock { $0.hasFailed } }

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
            guard case .stored(let file) = state.stage, file.isComplete != state.isComplete else { return false }
            state.isComplete.toggle()
            return true
        }
    }
}
