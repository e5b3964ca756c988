internal import Disk
internal import Glibc
internal import Synchronization

/// The segment of its own that a large body is written to, block by block.
final class LargeCopy: @unchecked Sendable {
    let object: LargeObject
    /// Blocks on their way to the disk. Under the body's lock.
    var queued: Set<Int> = []
    /// Who go on when the disk has caught up: each fill may be held back. Under the body's lock.
    var roomWakes: [Wake] = []
    /// A block could not be written: those that follow stay in memory. Under the body's lock.
    var hasFailed = false

    init(_ object: LargeObject) { self.object = object }

    /// Bytes that may wait for the disk before the origin is held back.
    private static let waitingMax = 4 << 20

    var isBehind: Bool { object.waitingBytes > Self.waitingMax }
}

/// Large bodies: partial ones whose whole blocks go to the disk, and leave memory when they are there. Their bytes are had by
/// `piece`, never by `vectors`; those of others that are not resident may be.
extension Body {
    package var isLarge: Bool { large != nil }

    /// Its pages go as soon as they are written: how much is in memory is bounded by how far the disk may be behind, not by the budget.
    var isLeavingMemory: Bool { large.map { large in locked { !large.hasFailed } } ?? false }

    /// A block could not be written: what comes from here on stays in memory, until `Fill.letGo`.
    package var isLeftByDisk: Bool { large.map { large in locked { large.hasFailed } } ?? false }

    /// By whoever makes the body, before others know it.
    func attach(_ copy: LargeCopy) {
        large = copy
        resident.store(false, ordering: .releasing)
    }

    /// Bytes of a body as `piece` gives them.
    @safe package enum Piece {
        /// Valid until the room is used for something else, or the body is let go.
        case bytes(UnsafeRawBufferPointer)
        /// They are on the disk and not in the page cache: ask again with `waits`.
        case wouldBlock
        /// Not there, or no longer: what was read from the disk was damaged, and is now a hole.
        case nothing
    }

    /// Bytes from `offset` on that are there, at most `limit`, at least one: in place where they lie in memory, otherwise read
    /// into `room`.
    /// - Parameters:
    ///   - room: at least `blockBytes`.
    ///   - waits: it may block.
    package func piece(from offset: Int, limit: Int, room: UnsafeMutableRawBufferPointer, waits: Bool) -> Piece {
        guard let large else {
            guard let packed, !isResident else { return pieceInMemory(from: offset, limit: limit) }
            return unsafe piece(of: packed, from: offset, limit: limit, room: room, waits: waits)
        }
        // What is copied under the lock is a block at most.
        let look: (copied: Int, onDisk: Int) = locked {
            let end = min(publishedEnd(from: offset), offset + limit)
            guard offset < end else { return (0, 0) }
            let place = layout.page(at: offset)
            if let base = unsafe page(place.index) {
                let count = min(end, place.end) - offset
                unsafe room.copyMemory(from: UnsafeRawBufferPointer(start: base + (offset - place.start), count: count))
                return (count, 0)
            }
            return (0, diskEnd(from: place, upTo: end))
        }
        if look.copied > 0 { return unsafe .bytes(UnsafeRawBufferPointer(rebasing: room[..<look.copied])) }
        guard look.onDisk > 0 else { return .nothing }
        let start = offset / blockBytes * blockBytes
        let count = min(look.onDisk - start, room.count / blockBytes * blockBytes)
        switch unsafe large.object.read(
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
        of packed: PackedCopy, from offset: Int, limit: Int, room: UnsafeMutableRawBufferPointer, waits: Bool
    ) -> Piece {
        guard offset < length else { return .nothing }
        let wanted = blocks(around: offset..<offset + min(limit, length - offset))
        let start = wanted.lowerBound
        let count = min(wanted.count, room.count / blockBytes * blockBytes)
        switch unsafe packed.store.readBody(
            of: packed.place, checksums: packed.checksums, offset: start,
            into: UnsafeMutableRawBufferPointer(rebasing: room[..<count]), waits: waits)
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

    /// Under the lock: end of the blocks from that of `first` on which have no page here.
    private func diskEnd(from first: BodyLayout.Page, upTo end: Int) -> Int {
        var place = first
        while place.end < end {
            let next = layout.page(at: place.end)
            guard unsafe page(next.index) == nil else { break }
            place = next
        }
        return min(place.end, expectedLength ?? place.end)
    }

    /// The kernel is told what will be wanted soon.
    package func readAhead(from offset: Int, length: Int) { large?.object.readAhead(from: offset, length: length) }

    /// Bytes that a fill will bring before the one at `offset`; nil: no fill will come there.
    package func bytesBefore(_ offset: Int) -> Int? {
        locked { blocks?.fillPosition(before: offset).map { offset - $0 } }
    }

    // MARK: Writing

    /// The blocks that have become whole go to the disk.
    func writeBlocks(_ range: Range<Int>) {
        guard let large, let length = expectedLength else { return }
        let first = range.lowerBound / blockBytes
        let last = (range.upperBound - 1) / blockBytes
        for block in first...last {
            let start = block * blockBytes
            let end = min(start + blockBytes, length)
            let isWhole = locked {
                guard !large.hasFailed, publishedEnd(from: start) >= end,
                    unsafe page(layout.page(at: start).index) != nil
                else { return false }
                return large.queued.insert(block).inserted
            }
            guard isWhole else { continue }
            large.object.write(block: block, from: BlockSource(self), at: start) { [self] in isWritten(block, $0, large)
            }
        }
    }

    /// On the writer's thread.
    private func isWritten(_ block: Int, _ isDone: Bool, _ large: LargeCopy) {
        let (freed, wakes): (UnsafeMutableRawPointer?, [Wake]) = unsafe locked {
            large.queued.remove(block)
            var freed: UnsafeMutableRawPointer?
            if isDone {
                unsafe freed = unsafe takePage(layout.page(at: block * blockBytes).index)
            } else {
                large.hasFailed = true
            }
            guard !large.roomWakes.isEmpty, !large.isBehind || large.queued.isEmpty else { return unsafe (freed, []) }
            defer { large.roomWakes = [] }
            return unsafe (freed, large.roomWakes)
        }
        if let freed = unsafe freed {
            unsafe held.subtract(Shelves.size(of: freed), ordering: .relaxed)
            unsafe shelves.free(freed)
        }
        for wake in wakes { wake() }
    }

    func awaitWriting(_ large: LargeCopy, _ wake: Wake) {
        let isDue = locked {
            if !large.isBehind || large.queued.isEmpty { return true }
            large.roomWakes.append(wake)
            return false
        }
        if isDue { wake() }
    }

    // MARK: Without the disk

    /// The blocks within `range` that are in memory alone are holes again.
    /// - Returns: bytes of pages that were freed.
    func letGo(_ range: Range<Int>) -> Int {
        guard let large, let length = expectedLength else { return 0 }
        var freed: [UnsafeMutableRawPointer] = unsafe []
        let growth = locked { () -> Int in
            guard let map = blocks else { return 0 }
            let footprint = map.footprint
            var start = (range.lowerBound + blockBytes - 1) / blockBytes * blockBytes
            while start < range.upperBound, case let end = min(start + blockBytes, length), end <= range.upperBound {
                // What is on its way to the disk is being read there.
                if !large.queued.contains(start / blockBytes), publishedEnd(from: start) >= end,
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

    /// Blocks that can not be read are holes from now on: whoever wants them fetches them anew.
    private func forgetDamaged(_ range: Range<Int>, _ large: LargeCopy) {
        let onDisk = large.object.extents
        var lost: [Range<Int>] = []
        var start = range.lowerBound
        while start < range.upperBound {
            let end = min(start + blockBytes, range.upperBound)
            if !onDisk.contains(where: { $0.contains(start) }) { lost.append(start..<end) }
            start = end
        }
        // What can not be read and is not known to be damaged is a hole as well: to ask for it again would go on for ever.
        if lost.isEmpty { lost = [range] }
        let made = BlockMap(published: expectedLength ?? 0)
        // What was complete has a map again, beyond the budget if need be.
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
    /// A large body as it is on the disk.
    convenience init?(_ object: LargeObject, shelves: Shelves) {
        self.init(expectedLength: object.length, isSparse: true, lengthMax: object.length, shelves: shelves)
        guard chargeObject() else { return nil }
        attach(LargeCopy(object))
        let map = BlockMap(extents: object.extents)
        if map.prefix == object.length {
            published.store(object.length, ordering: .relaxed)
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

extension Body: BodyBytes {}

/// A large body as the disk takes blocks of it: as long as it will be, whatever is there by now.
private final class BlockSource: BodyBytes {
    private let body: Body

    init(_ body: Body) { self.body = body }

    var length: Int { body.expectedLength ?? body.length }

    func vectors(from offset: Int, limit: Int, into vectors: UnsafeMutableBufferPointer<iovec>) -> Int {
        unsafe body.vectors(from: offset, limit: limit, into: vectors)
    }
}
