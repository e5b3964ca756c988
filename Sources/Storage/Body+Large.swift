internal import Glibc
internal import Synchronization

/// The blocks of a large body on the back store, and those on their way there.
final class LargeCopy: @unchecked Sendable {
    let blocks: any BodyBlocks
    /// The body that moved on to this one, as long as somebody holds it. Written before any other thread knows the body.
    weak var predecessor: Body?
    /// Negative: not known yet.
    private let lengthAtEnd = Atomic<Int>(-1)
    /// Blocks on their way to the back store. Under the body's lock.
    var queued: Set<Int> = []
    /// Called when the back store has caught up: each fill may be held back. Under the body's lock.
    var roomWakes: [Wake] = []
    /// A block could not be written: those that follow stay in memory. Under the body's lock.
    var hasFailed = false

    init(_ blocks: any BodyBlocks) { self.blocks = blocks }

    /// Bytes that may wait for the back store before the origin is held back.
    private static let waitingMax = 4 << 20

    var isBehind: Bool { blocks.waitingBytes > Self.waitingMax }

    /// Of a body whose length was not announced, from its end on.
    var length: Int? {
        let length = lengthAtEnd.load(ordering: .acquiring)
        return length < 0 ? nil : length
    }

    func setLength(_ length: Int) { lengthAtEnd.store(length, ordering: .releasing) }
}

/// Large bodies: those whose whole blocks go to the back store, and leave memory when they are written. `piece` gives their
/// bytes; `vectors` gives only those that are still in memory. A large body is partial, and its holes are filled, or it
/// grows without a length (Body+Moving.swift).
///
/// A block is in at most one of three states, and moves on under the body's lock: in a page; in a page and queued, so that
/// the back store's writer may read the page; written, without a page. A page is freed after the lock is released, and
/// only when its block is readable from the back store: a reader finds each published byte in one of the two places.
extension Body {
    package var isLarge: Bool { large != nil }

    /// Its pages go as soon as they are written: how far the back store may be behind bounds the memory it takes, not the
    /// budget.
    var isLeavingMemory: Bool { large.map { large in locked { !large.hasFailed } } ?? false }

    /// A block could not be written: what comes from here on stays in memory, until `Fill.discard`.
    package var isLeftByDisk: Bool { large.map { large in locked { large.hasFailed } } ?? false }

    /// Makes this a large body. By its maker, before any other thread knows it.
    func attach(_ copy: LargeCopy) {
        guard case .memory = residence else { preconditionFailure("a body goes to one place") }
        residence = .blocks(copy)
        resident.store(false, ordering: .releasing)
    }

    /// Bytes of a body as `piece` gives them.
    @safe package enum Piece {
        /// Valid until the room is used for something else, or the body is released.
        case bytes(UnsafeRawBufferPointer)
        /// They are on the back store, and reading them would block: ask again with `waits`.
        case wouldBlock
        /// Not there, or no longer: what was read was damaged, and is now a hole.
        case nothing
    }

    /// Bytes from `offset` on that are there, at most `limit`, at least one: in place where they lie in memory, otherwise
    /// read into `room`.
    /// - Parameters:
    ///   - room: at least `blockBytes`.
    ///   - waits: whether it may block.
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
        // A block at most is copied under the lock: its page may be freed as soon as the lock is released.
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

    /// Under the lock: end of the bytes that are there from `offset` on.
    private func publishedEnd(from offset: Int) -> Int {
        if case .published(let end)? = blocks?.spot(at: offset) { return end }
        return published.load(ordering: .relaxed)
    }

    /// Under the lock: end of the blocks from that of `first` on that have no page.
    private func endWithoutPages(from first: BodyLayout.Page, upTo end: Int) -> Int {
        var place = first
        while place.end < end {
            let next = layout.page(at: place.end)
            guard unsafe page(next.index) == nil else { break }
            place = next
        }
        return min(place.end, expectedLength ?? place.end)
    }

    /// Tells the back store what will be wanted soon.
    package func readAhead(from offset: Int, length: Int) { large?.blocks.readAhead(from: offset, length: length) }

    /// Bytes that a fill will bring before the one at `offset`; nil: no fill will come there.
    package func bytesBefore(_ offset: Int) -> Int? {
        locked { blocks?.fillPosition(before: offset).map { offset - $0 } }
    }

    // MARK: Writing

    /// Sends the blocks that have become whole to the back store. While the length is not known no block is the last.
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

    /// The back store says that a block can be read from it, or not be written. On a thread of the back store.
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

    /// Wakes once when the back store is no longer behind; from within this call where it is not.
    func awaitWriting(_ large: LargeCopy, _ wake: Wake) {
        let isDue = locked {
            if !large.isBehind || large.queued.isEmpty { return true }
            large.roomWakes.append(wake)
            return false
        }
        if isDue { wake() }
    }

    // MARK: When the back store takes no more

    /// Makes holes of the blocks within `range` that are in memory alone.
    /// - Returns: bytes of pages that were freed.
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
                // The back store's writer reads the page of a queued block.
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
        let bytes = unsafe freed.reduce(0) { unsafe $0 + Shelves.size(of: $1) }
        held.subtract(bytes, ordering: .relaxed)
        unsafe freed.forEach { unsafe shelves.free($0) }
        return bytes
    }

    // MARK: Damage

    /// Makes holes of blocks that cannot be read: whoever wants them fetches them again. Of a body that still grows, or is on
    /// its way through a window, nothing can be fetched again: whoever wants them gets an incomplete answer.
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
        // What cannot be read and is not known to be damaged is a hole as well: asking for it again would never end.
        if lost.isEmpty { lost = [range] }
        let made = BlockMap(published: expectedLength ?? 0)
        // A body that was complete has a map again, beyond the budget if need be.
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
    /// A large body as the back store has it. Returns nil where the budget has no room for the object.
    convenience init?(_ stored: any BodyBlocks, shelves: Shelves) {
        guard let length = stored.length else { preconditionFailure("a stored response has a length") }
        self.init(expectedLength: length, isSparse: true, lengthMax: length, shelves: shelves)
        guard chargeObject() else { return nil }
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
