internal import CLarder
internal import Glibc
internal import Synchronization

/// Bodies that are only passed on (`MemoryTier.makeWindow`): a window between what the origin has sent and what the one
/// reader has taken. Such a body is never stored, and belongs to one thread.
///
/// The writer takes what it read from the origin and
///
///     body.append(lending: bytes) { flush the reader }      // in place: copies only what the reader leaves
///     body.append(bytes)                                    // copies: for pieces that are gathered, such as chunks
///     if body.writerShouldPause { stop reading from the origin; body.awaitRoom(wake) }
///     body.finish() or body.fail()
///
/// The reader, on the same thread,
///
///     let reader = body.attach(at: 0)
///     body.vectors(from: offset, limit: …, into: vectors)   // valid until the next call of the writer or `advance`
///     body.advance(reader, to: offset)                      // frees; wakes the writer where there is room again
///     body.await(beyond: offset, wake)                      // where there is nothing more yet
///     body.detach(reader)
///
/// A body whose bytes have all come by the time the reader looks needs no `attach`. None of these calls takes a lock, and
/// a body whose reader takes all that is lent needs no block.
///
///     block   │ taken │ kept: published, not yet taken │ room │        then the lent bytes, elsewhere
///                     head                             head + kept
///
/// The block grows when the reader falls behind, at most to what the writer was allowed to be ahead and one append more.
/// It is freed when the reader has caught up, so a slow origin with a fast client holds next to nothing.
@safe struct PassingWindow {
    enum Reader { case expected, attached, gone }

    /// Bytes the writer may be ahead of the reader before it pauses.
    let bytesMax: Int
    /// Memory for bytes that are kept. Nil as long as the reader has taken all there was.
    private(set) var block: UnsafeMutableRawPointer?
    /// The block's bytes. Zero if there is none.
    private(set) var capacity = 0
    /// Offset in the body of the first byte that is kept or lent: how far the reader is.
    private(set) var base = 0
    /// Where that byte stands in the block.
    private(set) var head = 0
    /// Bytes in the block, from `head` on.
    private(set) var kept = 0
    /// Bytes that follow the kept ones in the body, and lie in memory of the writer's for the moment.
    private(set) var lent = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    private(set) var reader = Reader.expected
    /// Called once when the writer may go on.
    private var roomWake: Wake?
    private var wait: (ticket: WaitTicket, offset: Int, wake: Wake)?

    init(bytesMax: Int) {
        self.bytesMax = bytesMax
        unsafe block = nil
    }

    /// The reader has taken all there is.
    var isIdle: Bool { unsafe kept == 0 && lent.isEmpty }

    /// One past the last byte published.
    var end: Int { unsafe base + kept + lent.count }

    var hasRoom: Bool { reader == .gone || end - base < bytesMax }

    // MARK: the writer's side

    /// `count` bytes were put behind the kept ones. Where nobody will read them they are taken already.
    mutating func keep(_ count: Int) {
        unsafe precondition(lent.isEmpty, "what is lent comes first")
        if reader == .gone {
            base += count
        } else {
            precondition(count >= 0 && head + kept + count <= capacity, "more bytes than there was room for")
            kept += count
        }
    }

    mutating func lend(_ bytes: UnsafeRawBufferPointer) {
        unsafe precondition(lent.isEmpty, "one loan at a time")
        if reader == .gone { base += bytes.count } else { unsafe lent = unsafe bytes }
    }

    /// The lent bytes that the reader has left: the caller keeps them.
    mutating func takeLent() -> UnsafeRawBufferPointer {
        defer { unsafe lent = UnsafeRawBufferPointer(start: nil, count: 0) }
        return unsafe lent
    }

    /// The kept bytes were moved to the beginning of a block, of this one or of another.
    mutating func moved(to block: UnsafeMutableRawPointer?, capacity: Int) {
        precondition(kept <= capacity, "what is kept has its room")
        unsafe self.block = unsafe block
        head = 0
        self.capacity = capacity
    }

    mutating func waitForRoom(_ wake: Wake) { roomWake = wake }

    mutating func takeRoomWake() -> Wake? {
        guard hasRoom else { return nil }
        defer { roomWake = nil }
        return roomWake
    }

    // MARK: the reader's side

    /// False: somebody reads already, or did.
    mutating func attach() -> Bool {
        guard reader == .expected else { return false }
        reader = .attached
        return true
    }

    mutating func take(upTo offset: Int) {
        precondition(offset <= end, "a reader takes what is published")
        guard offset > base else { return }
        let ofKept = min(offset - base, kept)
        unsafe lent = UnsafeRawBufferPointer(rebasing: lent.dropFirst(offset - base - ofKept))
        base = offset
        kept -= ofKept
        head = kept == 0 ? 0 : head + ofKept
    }

    mutating func detach() {
        take(upTo: end)
        reader = .gone
    }

    mutating func addWait(_ ticket: WaitTicket, beyond offset: Int, _ wake: Wake) {
        precondition(wait == nil, "a window has one reader, who waits once")
        wait = (ticket, offset, wake)
    }

    mutating func removeWait(_ ticket: WaitTicket) {
        if wait?.ticket == ticket { wait = nil }
    }

    mutating func takeWait(isEnded: Bool) -> Wake? {
        guard let wait, isEnded || wait.offset < end else { return nil }
        self.wait = nil
        return wait.wake
    }
}

typealias PassingBlock = UnsafeMutablePointer<PassingWindow>

extension Body {
    /// The least room for bytes that are kept, unless the body is shorter.
    private static let passingBytesFirst = 4 << 10
    /// A block that has room for more is freed when the reader has caught up.
    private static let passingBytesIdle = 16 << 10

    /// Makes this body a window. By `MemoryTier.makeWindow`.
    func beginPassing(bytesMax: Int) {
        // By malloc(3), as all memory here: `allocate` may ask for an alignment, which takes longer.
        guard let memory = unsafe malloc(MemoryLayout<PassingWindow>.stride) else {
            fatalError("no memory for a window")
        }
        let window = unsafe memory.bindMemory(to: PassingWindow.self, capacity: 1)
        unsafe window.initialize(to: PassingWindow(bytesMax: bytesMax))
        residence = unsafe .window(window)
        windowed.store(true, ordering: .relaxed)
    }

    func endPassing(_ window: PassingBlock) {
        unsafe freeBlock(of: window)
        unsafe window.deinitialize(count: 1)
        unsafe free(window)
    }

    private func freeBlock(of window: PassingBlock) {
        guard let block = unsafe window.pointee.block else { return }
        let size = unsafe Shelves.size(of: block)
        unsafe free(block)
        chargePassing(-size)
    }

    /// Takes bytes from the budget, or gives them back: nothing is evicted for them, and nothing refused.
    private func chargePassing(_ bytes: Int) {
        shelves.take(bytes)
        held.add(bytes, ordering: .relaxed)
    }

    /// It is a window from the start.
    var hasWindow: Bool { unsafe passing != nil }

    // MARK: writing

    /// Publishes all of the bytes or none, without a copy: they may be read where they are until `turn` returns, and must
    /// stay as they are until then. What the reader has not taken by then is copied.
    /// - Parameter turn: lets the reader send. It may append as well, once the reader has taken what is lent.
    package func append(lending bytes: UnsafeRawBufferPointer, while turn: () -> Void) -> AppendResult {
        guard let window = unsafe passing else { preconditionFailure("a body that is stored has pages of its own") }
        precondition(state == .growing, "a body that ended does not grow")
        guard bytes.count <= room(from: published.load(ordering: .relaxed)) else { return .tooLarge }
        keepLent()
        unsafe window.pointee.lend(bytes)
        publishPassing()
        turn()
        keepLent()
        return .appended
    }

    func appendPassing(_ bytes: UnsafeRawBufferPointer) -> AppendResult {
        guard bytes.count <= room(from: published.load(ordering: .relaxed)) else { return .tooLarge }
        keepLent()
        unsafe keepPassing(bytes)
        publishPassing()
        return .appended
    }

    /// Room behind what is kept; of a body whose length is not known, about as much as has come so far.
    func writablePassing(_ hint: Int) -> UnsafeMutableRawBufferPointer? {
        let start = published.load(ordering: .relaxed)
        let wanted = min(hint, room(from: start), max(start, Self.passingBytesFirst))
        guard wanted > 0 else { return nil }
        keepLent()
        return unsafe UnsafeMutableRawBufferPointer(start: makeRoom(wanted), count: wanted)
    }

    func commitPassing(_ count: Int) {
        precondition(count <= room(from: published.load(ordering: .relaxed)), "more bytes than there was room for")
        unsafe passing!.pointee.keep(count)
        publishPassing()
    }

    /// Relaxed, because the reader is on this thread.
    private func publishPassing() {
        unsafe published.store(passing!.pointee.end, ordering: .relaxed)
        unsafe passing!.pointee.takeWait(isEnded: false)?()
    }

    /// The end is published; whoever waits is told.
    func wakePassing() { unsafe passing!.pointee.takeWait(isEnded: true)?() }

    private func keepLent() {
        let lent = unsafe passing!.pointee.takeLent()
        if unsafe !lent.isEmpty { unsafe keepPassing(lent) }
    }

    private func keepPassing(_ bytes: UnsafeRawBufferPointer) {
        if unsafe passing!.pointee.reader != .gone, let source = bytes.baseAddress {
            unsafe makeRoom(bytes.count).copyMemory(from: source, byteCount: bytes.count)
        }
        unsafe passing!.pointee.keep(bytes.count)
    }

    /// Sees to it that `wanted` bytes go behind those that are kept: moves them to the front where at least half of the
    /// room is free then, so that a byte is moved once on average, or takes a larger block.
    ///
    /// - Returns: the place behind the kept bytes.
    private func makeRoom(_ wanted: Int) -> UnsafeMutableRawPointer {
        let window = unsafe passing!
        let (head, kept, capacity) = unsafe (window.pointee.head, window.pointee.kept, window.pointee.capacity)
        if let block = unsafe window.pointee.block {
            if head + kept + wanted <= capacity { return unsafe block + head + kept }
            if kept + wanted <= capacity, kept <= capacity / 2 {
                unsafe memmove(block, block + head, kept)
                unsafe window.pointee.moved(to: block, capacity: capacity)
                return unsafe block + kept
            }
        }
        let first = min(expectedLength ?? Self.passingBytesFirst, Self.passingBytesFirst)
        let grown = unsafe min(2 * capacity, window.pointee.bytesMax)
        return unsafe moveToBlock(of: max(kept + wanted, first, grown), window) + kept
    }

    /// Moves what is kept to another block, and returns it.
    private func moveToBlock(of wanted: Int, _ window: PassingBlock) -> UnsafeMutableRawPointer {
        guard let made = unsafe malloc(wanted) else { fatalError("no memory for \(wanted) bytes in passing") }
        let size = unsafe Shelves.size(of: made)
        chargePassing(size)
        if let block = unsafe window.pointee.block {
            unsafe made.copyMemory(from: block + window.pointee.head, byteCount: window.pointee.kept)
        }
        unsafe freeBlock(of: window)
        unsafe window.pointee.moved(to: made, capacity: size - clarder_malloc_header())
        return unsafe made
    }

    // MARK: reading

    /// As `vectors`: what is kept, then what is lent.
    func passingVectors(
        from offset: Int, limit: Int, into vectors: UnsafeMutableBufferPointer<iovec>
    ) -> Int {
        guard let window = unsafe passing else { return 0 }
        let skipped = unsafe offset - window.pointee.base
        guard skipped >= 0, limit > 0 else { return 0 }
        let (head, kept) = unsafe (window.pointee.head, window.pointee.kept)
        var used = 0
        var left = limit
        if skipped < kept, used < vectors.count, let block = unsafe window.pointee.block {
            let count = min(left, kept - skipped)
            unsafe vectors[used] = iovec(iov_base: block + head + skipped, iov_len: count)
            left -= count
            used += 1
        }
        let lent = unsafe window.pointee.lent.dropFirst(max(0, skipped - kept)).prefix(left)
        if unsafe !lent.isEmpty, used < vectors.count {
            let bytes = unsafe UnsafeRawBufferPointer(rebasing: lent)
            unsafe vectors[used] = unsafe iovec(iov_base: .init(mutating: bytes.baseAddress), iov_len: bytes.count)
            used += 1
        }
        return used
    }

    func attachToPassing(_ window: PassingBlock, at offset: Int) -> ReaderID? {
        guard unsafe offset >= window.pointee.base, unsafe window.pointee.attach() else { return nil }
        return .ofWindow
    }

    func advancePassing(_ window: PassingBlock, to offset: Int) {
        unsafe window.pointee.take(upTo: offset)
        let wake = unsafe window.pointee.takeRoomWake()
        if unsafe window.pointee.isIdle, unsafe window.pointee.capacity > Self.passingBytesIdle {
            unsafe freeBlock(of: window)
            unsafe window.pointee.moved(to: nil, capacity: 0)
        }
        wake?()
    }

    func detachFromPassing(_ window: PassingBlock) {
        unsafe window.pointee.detach()
        unsafe window.pointee.takeRoomWake()?()
    }

    func awaitPassing(_ window: PassingBlock, beyond offset: Int, _ wake: Wake) -> WaitTicket? {
        guard state == .growing, unsafe offset >= window.pointee.end else { return nil }
        let ticket = WaitTicket(id: shelves.nextID())
        unsafe window.pointee.addWait(ticket, beyond: offset, wake)
        return ticket
    }

    func awaitRoomPassing(_ window: PassingBlock, _ wake: Wake) {
        if unsafe window.pointee.hasRoom { return wake() }
        unsafe window.pointee.waitForRoom(wake)
    }
}

extension ReaderID {
    /// The one reader of a window: no other reader has this number (`Shelves.nextID`).
    static let ofWindow = ReaderID(id: 0)
}
