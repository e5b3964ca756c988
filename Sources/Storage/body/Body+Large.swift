internal import Glibc
internal import Synchronization

/// The blocks of a large body that are on the back store or on their way there.
final class LargeCopy: @unchecked Sendable {
    let blocks: any BodyBlocks
    /// The body in memory that moved to this one, as long as anybody retains it. Set before any other thread knows this body.
    weak var predecessor: Body?
    /// Negative until the length is known.
    private let lengthAtEnd = Atomic<Int>(-1)
    /// Blocks that the back store has accepted and not written yet. Protected by the body's lock.
    var queued: Set<Int> = []
    /// Wakes of the writers that wait until the back store has caught up. Protected by the body's lock.
    var roomWakes: [Wake] = []
    /// Whether the back store was told that a body without an announced length has ended, and has not answered yet.
    let isEnding = Atomic(false)
    /// Whether a block could not be written. Later blocks stay in memory. Protected by the body's lock.
    var hasFailed = false

    init(_ blocks: any BodyBlocks) { self.blocks = blocks }

    /// How many bytes may wait for the back store before the writer has to pause.
    private static let waitingMax = 4 << 20

    var isBehind: Bool { blocks.waitingBytes > Self.waitingMax }

    /// The length of a body that was not announced. Nil until the body has ended.
    var length: Int? {
        let length = lengthAtEnd.load(ordering: .acquiring)
        return length < 0 ? nil : length
    }

    func setLength(_ length: Int) { lengthAtEnd.store(length, ordering: .releasing) }
}

/// Large bodies. Their blocks go to the back store when they are whole, and leave memory when they are written. `piece` returns
/// their bytes; `vectors` returns only bytes that are still in memory. A large body is either partial, and its holes are filled, or
/// it grows without a length (Body+Moving.swift).
///
/// A block has one of three states, which change under the body's lock: in a page; in a page and queued, so that the writer of the
/// back store may read the page; written, without a page. A page is freed after the lock is released, and only when its block can be
/// read from the back store. So a reader finds each published byte in one of the two places.
extension Body {
    package var isLarge: Bool { large != nil }

    /// Whether pages are freed as soon as they are written. The memory that the body takes is then bounded by how far the back store
    /// may be behind, and not by the budget.
    var isLeavingMemory: Bool { large.map { large in locked { !large.hasFailed } } ?? false }

    /// Whether bytes are still on their way to this body, or from it to the back store. Until then, memory gets nothing back if the response is
    /// evicted, and the back store may not find it yet.
    var isOnItsWay: Bool {
        state == .growing || large.map { $0.isEnding.load(ordering: .acquiring) || $0.blocks.waitingBytes > 0 } ?? false
    }

    /// Whether a block could not be written. Bytes that arrive from then on stay in memory until `Fill.discard`, or until
    /// `abandonStorage` makes the body a window.
    package var isLeftByDisk: Bool { large.map { large in locked { large.hasFailed } } ?? false }

    /// Makes this a large body. Its maker calls this before any other thread knows the body.
    func attach(_ copy: LargeCopy) {
        guard case .memory = residence else { preconditionFailure("a body goes to one place") }
        residence = .blocks(copy)
        resident.store(false, ordering: .releasing)
    }

    /// The result of `piece`.
    @safe package enum Piece {
        /// Valid until the room is used again or the body is released.
        case bytes(UnsafeRawBufferPointer)
        /// The bytes are on the back store, and reading them would block. Call again with `waits`.
        case wouldBlock
        /// The bytes are not published, or their block turned out to be damaged and is a hole now.
        case nothing
    }

    /// Returns bytes from `offset` on: at least one and at most `limit`. They are in place if they are in memory, and otherwise copied
    /// or read into `room`.
    /// - Parameters:
    ///   - room: at least `blockBytes` long.
    ///   - waits: whether the call may block.
    package func piece(from offset: Int, limit: Int, room: UnsafeMutableRawBufferPointer, waits: Bool) -> Piece {
        precondition(offset >= 0 && limit > 0, "a piece has a first byte")
        switch residence {
        case .memory, .window: return pieceInMemory(from: offset, limit: limit)
        case .whole(let copy):
            if isResident { return pieceInMemory(from: offset, limit: limit) }
            return unsafe piece(of: copy, from: offset, limit: limit, room: room, waits: waits)
        case .blocks(let large):
            return unsafe piece(of: large, from: offset, limit: limit, room: room, waits: waits)
        }
    }

    private func piece(
        of large: LargeCopy, from offset: Int, limit: Int, room: UnsafeMutableRawBufferPointer, waits: Bool
    ) -> Piece {
        precondition(room.count >= Body.blockBytes, "a block has room")
        // Copy at most one block under the lock: its page may be freed as soon as the lock is released.
        let look: (copied: Int, onBackStore: Int) = locked {
            let end = min(publishedEnd(from: offset), offset + min(limit, room.count))
            guard offset < end else { return (0, 0) }
            let place = layout.page(at: offset)
            if let base = unsafe page(place.index) {
                let count = min(end, place.end) - offset
                unsafe room.copyMemory(from: UnsafeRawBufferPointer(start: base + (offset - place.start), count: count))
                return (count, 0)
            }
            return (0, endWithoutPages(from: place, upTo: end))
        }
        if look.copied > 0 { return unsafe .bytes(UnsafeRawBufferPointer(rebasing: room[..<look.copied])) }
        guard look.onBackStore > 0 else { return .nothing }
        let start = offset / Body.blockBytes * Body.blockBytes
        let count = min(look.onBackStore - start, room.count / Body.blockBytes * Body.blockBytes)
        switch unsafe large.blocks.read(
            from: start, into: UnsafeMutableRawBufferPointer(rebasing: room[..<count]), waits: waits)
        {
        case .done:
            let first = offset - start
            return unsafe .bytes(UnsafeRawBufferPointer(rebasing: room[first..<min(count, first + limit)]))
        case .wouldBlock:
            return .wouldBlock
        case .damaged, .failed:
            forgetDamaged(start..<start + count, large)
            return .nothing
        }
    }

    private func piece(
        of whole: WholeCopy, from offset: Int, limit: Int, room: UnsafeMutableRawBufferPointer, waits: Bool
    ) -> Piece {
        guard offset < length else { return .nothing }
        let wanted = blocks(around: offset..<offset + min(limit, length - offset))
        let start = wanted.lowerBound
        let count = min(wanted.count, room.count / Body.blockBytes * Body.blockBytes)
        switch unsafe whole.read(
            from: start, into: UnsafeMutableRawBufferPointer(rebasing: room[..<count]), waits: waits)
        {
        case .done:
            let first = offset - start
            return unsafe .bytes(UnsafeRawBufferPointer(rebasing: room[first..<min(count, first + limit)]))
        case .wouldBlock: return .wouldBlock
        case .damaged, .failed: return .nothing
        }
    }

    private func pieceInMemory(from offset: Int, limit: Int) -> Piece {
        var vector = unsafe iovec()
        let used = unsafe withUnsafeMutablePointer(to: &vector) {
            unsafe vectors(from: offset, limit: limit, into: UnsafeMutableBufferPointer(start: $0, count: 1))
        }
        return unsafe used == 0
            ? .nothing : .bytes(UnsafeRawBufferPointer(start: vector.iov_base, count: vector.iov_len))
    }

    /// The end of the published bytes from `offset` on. Called under the lock.
    private func publishedEnd(from offset: Int) -> Int {
        if case .published(let end)? = blocks?.spot(at: offset) { return end }
        return published.load(ordering: .relaxed)
    }

    /// The end of the run of blocks without pages that begins with `first`. Called under the lock.
    private func endWithoutPages(from first: BodyLayout.Page, upTo end: Int) -> Int {
        var place = first
        while place.end < end {
            let next = layout.page(at: place.end)
            guard unsafe page(next.index) == nil else { break }
            place = next
        }
        return min(place.end, expectedLength ?? place.end)
    }

    /// Tells the back store that these bytes will be needed soon.
    package func readAhead(from offset: Int, length: Int) { large?.blocks.readAhead(from: offset, length: length) }

    /// How many bytes a fill has to write before it reaches `offset`. Nil if no fill will reach it.
    package func bytesBefore(_ offset: Int) -> Int? {
        locked { blocks?.fillPosition(before: offset).map { offset - $0 } }
    }

    // MARK: Writing

    /// Gives the back store the blocks that have become whole. While the length is not known, no block counts as the last.
    func writeBlocks(_ range: Range<Int>) {
        guard let large, !range.isEmpty else { return }
        let length = expectedLength ?? range.upperBound / Body.blockBytes * Body.blockBytes
        precondition(range.lowerBound >= 0 && range.upperBound <= expectedLength ?? .max, "bytes of the body")
        for block in range.lowerBound / Body.blockBytes..<(range.upperBound + Body.blockBytes - 1) / Body.blockBytes {
            let start = block * Body.blockBytes
            let end = min(start + Body.blockBytes, length)
            guard start < end else { return }
            let isWhole = locked {
                guard !large.hasFailed, publishedEnd(from: start) >= end,
                    unsafe page(layout.page(at: start).index) != nil
                else { return false }
                return large.queued.insert(block).inserted
            }
            guard isWhole else { continue }
            large.blocks.write(block: block, of: self) { [self] in isWritten(block, $0, large) }
        }
    }

    /// Called on a thread of the back store when a block can be read from it, or cannot be written.
    private func isWritten(_ block: Int, _ isDone: Bool, _ large: LargeCopy) {
        let (freed, wakes): (UnsafeMutableRawPointer?, [Wake]) = unsafe locked {
            let wasQueued = large.queued.remove(block) != nil
            precondition(wasQueued, "a block is written once")
            var freed: UnsafeMutableRawPointer?
            if isDone {
                unsafe freed = unsafe takePage(layout.page(at: block * Body.blockBytes).index)
            } else {
                large.hasFailed = true
            }
            guard !large.roomWakes.isEmpty, !large.isBehind || large.queued.isEmpty else { return unsafe (freed, []) }
            defer { large.roomWakes = [] }
            return unsafe (freed, large.roomWakes)
        }
        if let freed = unsafe freed { unsafe freePages([freed]) }
        for wake in wakes { wake() }
    }

    /// Wakes once when the back store is no longer behind. If it is not behind now, the wake comes from within this call.
    func awaitWriting(_ large: LargeCopy, _ wake: Wake) {
        let isDue = locked {
            if !large.isBehind || large.queued.isEmpty { return true }
            large.roomWakes.append(wake)
            return false
        }
        if isDue { wake() }
    }

    // MARK: When the back store stops accepting blocks

    /// Makes holes of the blocks within `range` that are only in memory.
    /// - Returns: how many bytes of pages were freed.
    func discardBlocks(in range: Range<Int>) -> Int {
        guard let large, let length = expectedLength else { return 0 }
        precondition(range.lowerBound >= 0 && range.upperBound <= length, "bytes of the body")
        var freed: [UnsafeMutableRawPointer] = unsafe []
        let growth = locked { () -> Int in
            guard let map = blocks else { return 0 }
            let footprint = map.footprint
            var start = (range.lowerBound + Body.blockBytes - 1) / Body.blockBytes * Body.blockBytes
            while start < range.upperBound, case let end = min(start + Body.blockBytes, length),
                end <= range.upperBound
            {
                // The writer of the back store reads the page of a queued block.
                if !large.queued.contains(start / Body.blockBytes), publishedEnd(from: start) >= end,
                    let page = unsafe takePage(layout.page(at: start).index)
                {
                    map.unpublish(start..<end)
                    unsafe freed.append(page)
                }
                start = end
            }
            published.store(map.prefix, ordering: .sequentiallyConsistent)
            return map.footprint - footprint
        }
        precondition(growth >= 0, "a map with more holes is not smaller")
        if growth > 0 {
            shelves.overdraw(growth)
            held.add(growth, ordering: .relaxed)
        }
        let bytes = unsafe freed.reduce(0) { unsafe $0 + shelves.size(of: $1) }
        held.subtract(bytes, ordering: .relaxed)
        unsafe freed.forEach { unsafe shelves.free($0) }
        return bytes
    }

    // MARK: Damage

    /// Makes holes of blocks that cannot be read, so that they are fetched again. The blocks of a body that grows or is a window cannot
    /// be fetched again: their readers get an incomplete answer.
    private func forgetDamaged(_ range: Range<Int>, _ large: LargeCopy) {
        guard state != .growing, !windowed.load(ordering: .relaxed) else { return }
        let onBackStore = large.blocks.extents
        var lost: [Range<Int>] = []
        var start = range.lowerBound
        while start < range.upperBound {
            let end = min(start + Body.blockBytes, range.upperBound)
            if !onBackStore.contains(where: { $0.contains(start) }) { lost.append(start..<end) }
            start = end
        }
        // Blocks that cannot be read without being damaged become holes too. Reading them again and again would never end.
        if lost.isEmpty { lost = [range] }
        let made = BlockMap(published: expectedLength ?? 0)
        // A body that was complete needs a map again, even if the budget has no room.
        shelves.overdraw(made.footprint)
        let (isUsed, growth) = locked {
            let isReopened = blocks == nil
            let map = blocks ?? made
            let footprint = map.footprint
            for block in lost where unsafe page(layout.page(at: block.lowerBound).index) == nil { map.unpublish(block) }
            blocks = map
            published.store(map.prefix, ordering: .sequentiallyConsistent)
            phase.store(State.partial.rawValue, ordering: .sequentiallyConsistent)
            return (isReopened, map.footprint - footprint)
        }
        if growth > 0 {
            shelves.overdraw(growth)
            held.add(growth, ordering: .relaxed)
        }
        if isUsed { held.add(made.footprint, ordering: .relaxed) } else { shelves.release(made.footprint) }
    }
}

extension Body {
    /// Makes a large body from what the back store has of it.
    convenience init(_ stored: any BodyBlocks, shelves: Shelves) {
        guard let length = stored.length else { preconditionFailure("a stored response has a length") }
        self.init(expectedLength: length, isSparse: true, lengthMax: length, shelves: shelves)
        chargeObjectAnyway()
        attach(LargeCopy(stored))
        let map = BlockMap(extents: stored.extents)
        precondition(map.prefix <= length, "no block lies behind the end")
        if map.prefix == length {
            published.store(length, ordering: .relaxed)
            phase.store(State.complete.rawValue, ordering: .releasing)
            return
        }
        shelves.overdraw(map.footprint)
        held.add(map.footprint, ordering: .relaxed)
        blocks = map
        published.store(map.prefix, ordering: .relaxed)
        phase.store(State.partial.rawValue, ordering: .releasing)
    }
}
