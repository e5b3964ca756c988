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
/// a short body costs two allocations: the `Body`, and one block that holds this bookkeeping and the bytes.
///
///     block   │ bookkeeping │ taken │ kept: published, not yet taken │ room │        then the lent bytes, elsewhere
///                                   head                             head + kept
///
/// The block grows when the reader falls behind, at most to what the writer was allowed to be ahead and one append more;
/// it shrinks again when the reader has caught up, so a slow origin with a fast client holds next to nothing.
@safe struct PassingWindow {
    enum Reader { case expected, attached, gone }

    /// Bytes the writer may be ahead of the reader before it pauses.
    let bytesMax: Int
    /// Bytes for which the block has room behind this bookkeeping.
    private(set) var capacity: Int
    /// Offset in the body of the first byte that is kept or lent: how far the reader is.
    private(set) var base = 0
    /// Where that byte stands in the room.
    private(set) var head = 0
    /// Bytes in the room, from `head` on.
    private(set) var kept = 0
    /// Bytes that follow the kept ones in the body, and lie in memory of the writer's for the moment.
    private(set) var lent = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    private(set) var reader = Reader.expected
    /// Called once when the writer may go on.
    private var roomWake: Wake?
    private var wait: (ticket: WaitTicket, offset: Int, wake: Wake)?

    init(bytesMax: Int, capacity: Int) {
        self.bytesMax = bytesMax
        self.capacity = capacity
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

    /// The kept bytes were moved to the beginning of a room, of this block or of another.
    mutating func moved(toRoomOf capacity: Int) {
        precondition(kept <= capacity, "what is kept has its room")
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

/// A window's bookkeeping, in front of its room.
typealias PassingBlock = UnsafeMutablePointer<PassingWindow>

extension Body {
    /// Bytes the first block has room for where the length is not known.
    private static let passingBytesFirst = 4 << 10
    /// A block that has room for more is given back when the reader has caught up.
    private static let passingBytesIdle = 16 << 10

    /// Makes this body a window. By `MemoryTier.makeWindow`.
    func beginPassing(bytesMax: Int) {
        let wanted = min(expectedLength ?? Self.passingBytesFirst, Self.passingBytesFirst)
        let (block, capacity) = unsafe makePassingBlock(wanted)
        unsafe block.initialize(to: PassingWindow(bytesMax: bytesMax, capacity: capacity))
        residence = unsafe .window(block)
        windowed.store(true, ordering: .relaxed)
    }

    /// - Returns: memory for a window, not initialised, and the bytes behind its bookkeeping: all that malloc(3) gave.
    private func makePassingBlock(_ wanted: Int) -> (PassingBlock, capacity: Int) {
        let header = MemoryLayout<PassingWindow>.stride
        guard let block = unsafe malloc(header + wanted) else { fatalError("no memory for \(wanted) bytes in passing") }
        let size = unsafe Shelves.size(of: block)
        chargePassing(size)
        let usable = size - Shelves.blockHeaderBytes
        return unsafe (block.bindMemory(to: PassingWindow.self, capacity: 1), usable - header)
    }

    func endPassing(_ window: PassingBlock) {
        unsafe window.deinitialize(count: 1)
        unsafe freePassingBlock(window)
    }

    private func freePassingBlock(_ window: PassingBlock) {
        let size = unsafe Shelves.size(of: window)
        unsafe free(window)
        chargePassing(-size)
    }

    /// Takes bytes from the budget, or gives them back: nothing is evicted for them, and nothing refused.
    private func chargePassing(_ bytes: Int) {
        shelves.take(bytes)
        held.add(bytes, ordering: .relaxed)
    }

    private static func room(of window: PassingBlock) -> UnsafeMutableRawPointer {
        unsafe UnsafeMutableRawPointer(window) + MemoryLayout<PassingWindow>.stride
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
        let window = unsafe makeRoom(wanted)
        let (head, kept) = unsafe (window.pointee.head, window.pointee.kept)
        return unsafe UnsafeMutableRawBufferPointer(start: Self.room(of: window) + head + kept, count: wanted)
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
            let window = unsafe makeRoom(bytes.count)
            let (head, kept) = unsafe (window.pointee.head, window.pointee.kept)
            unsafe (Self.room(of: window) + head + kept).copyMemory(from: source, byteCount: bytes.count)
        }
        unsafe passing!.pointee.keep(bytes.count)
    }

    /// Sees to it that `wanted` bytes go behind those that are kept: moves them to the front where at least half of the
    /// room is free then, so that a byte is moved once on average, or takes a larger block.
    private func makeRoom(_ wanted: Int) -> PassingBlock {
        let window = unsafe passing!
        let (head, kept, capacity) = unsafe (window.pointee.head, window.pointee.kept, window.pointee.capacity)
        if head + kept + wanted <= capacity { return unsafe window }
        if kept + wanted <= capacity, kept <= capacity / 2 {
            unsafe memmove(Self.room(of: window), Self.room(of: window) + head, kept)
            unsafe window.pointee.moved(toRoomOf: capacity)
            return unsafe window
        }
        return unsafe movePassing(toRoomFor: max(kept + wanted, min(2 * capacity, window.pointee.bytesMax)))
    }

    /// Moves the window to another block.
    @discardableResult
    private func movePassing(toRoomFor wanted: Int) -> PassingBlock {
        let old = unsafe passing!
        let (made, capacity) = unsafe makePassingBlock(wanted)
        let (head, kept) = unsafe (old.pointee.head, old.pointee.kept)
        unsafe Self.room(of: made).copyMemory(from: Self.room(of: old) + head, byteCount: kept)
        unsafe made.moveInitialize(from: old, count: 1)
        unsafe made.pointee.moved(toRoomOf: capacity)
        unsafe freePassingBlock(old)
        residence = unsafe .window(made)
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
        if skipped < kept, used < vectors.count {
            let count = min(left, kept - skipped)
            unsafe vectors[used] = iovec(iov_base: Self.room(of: window) + head + skipped, iov_len: count)
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
            unsafe movePassing(toRoomFor: 0)
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
