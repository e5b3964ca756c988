internal import Glibc
internal import Synchronization

/// The copy on the back store of a body that was stored in one piece.
final class WholeCopy: Sendable {
    let backStore: any BackStore
    let id: StoredID
    let key: StorageKey
    let place: StoredPlace
    /// As `StoredCopy.checksums`.
    let checksums: [UInt32]
    /// Tells this copy from all others of this process; from 1.
    let number = WholeCopy.lastNumber.add(1, ordering: .relaxed).newValue

    /// A bit for each block that was read and found right. What leaves the page cache is read again first.
    private let verified = Atomic<UInt64>(0)

    private static let lastNumber = Atomic<UInt64>(0)

    init(_ copy: StoredCopy, _ key: StorageKey, on backStore: any BackStore) {
        self.backStore = backStore
        id = copy.id
        self.key = key
        place = copy.place
        checksums = copy.checksums
    }

    /// As `BackStore.readBody`.
    func read(from offset: Int, into room: UnsafeMutableRawBufferPointer, waits: Bool) -> BackStoreRead {
        precondition(place.form == .whole, "a body in blocks is read by its blocks")
        precondition(offset >= 0 && offset + room.count <= place.bodyBytes, "within the body")
        let result = unsafe backStore.readBody(
            at: place, checksums: checksums, from: offset, into: room, waits: waits)
        if result == .done { verified.bitwiseOr(bits(of: offset..<offset + room.count), ordering: .relaxed) }
        return result
    }

    /// As `BackStore.fileRange`, of bytes that were verified since this copy was found.
    func fileRange(from offset: Int, count: Int) -> FileRange? {
        let bits = bits(of: offset..<offset + count)
        guard bits != 0, verified.load(ordering: .relaxed) & bits == bits else { return nil }
        if let range = backStore.fileRange(of: place, from: offset, count: count) { return range }
        verified.bitwiseAnd(~bits, ordering: .relaxed)
        return nil
    }

    /// The bits of the blocks in which the range lies. Zero if there is no bit for one of them.
    private func bits(of range: Range<Int>) -> UInt64 {
        guard !range.isEmpty else { return 0 }
        let (first, last) = (range.lowerBound / Body.blockBytes, (range.upperBound - 1) / Body.blockBytes)
        guard last < 64 else { return 0 }
        return UInt64.max << UInt64(first) & UInt64.max >> UInt64(63 - last)
    }

    /// The response still stands where it was found.
    var isCurrent: Bool { backStore.contains(id, key, at: place) }
}

/// Bodies that came from the back store in one piece: complete, with their bytes read when they are wanted. Until `load`
/// has read them into pages, `vectors` gives nothing.
extension Body {
    /// Tells a body that the back store has in one piece from all others of this process; nil for every other body.
    package var copyNumber: UInt64? { whole?.number }

    /// Its bytes are in pages, and `vectors` gives them. Once they are, they stay.
    ///
    /// Acquiring: whoever sees true also sees the pages, which were set before (`take`).
    package var isResident: Bool { resident.load(ordering: .acquiring) }

    /// Reads all bytes into pages and checks them. From then on the body is like any other in memory, and counts as such.
    /// Any thread, also several at once: the first to be done provides the pages.
    /// - Parameter waits: whether it may block.
    package func load(waits: Bool) -> BackStoreRead {
        guard let whole, !isResident, let length = expectedLength else { return .done }
        let fresh = Body(expectedLength: length, lengthMax: length, shelves: shelves)
        while fresh.capacity < length {
            let next = layout.page(at: fresh.capacity)
            guard fresh.addPage(next, overdraft: true) else { return .failed(errno: ENOMEM) }
            fresh.capacity = next.end
        }
        var offset = 0
        while offset < length {
            let room = unsafe fresh.gap(from: offset, limit: length - offset)
            let result = unsafe whole.read(from: offset, into: room, waits: waits)
            guard result == .done else { return result }
            offset += room.count
        }
        take(fresh)
        return .done
    }

    /// Reads bytes from the beginning of a block on into `room` (whole blocks, or up to the end) and checks them, without
    /// keeping them. Does not block.
    package func read(from offset: Int, into room: UnsafeMutableRawBufferPointer) -> BackStoreRead {
        guard let whole else { preconditionFailure("a body without a copy on the back store is in memory") }
        return unsafe whole.read(from: offset, into: room, waits: false)
    }

    /// The blocks in which a range of the body lies: what has to be read to check it.
    package func blocks(around range: Range<Int>) -> Range<Int> {
        precondition(range.lowerBound >= 0 && range.upperBound <= length, "a range of the body")
        let start = range.lowerBound / Body.blockBytes * Body.blockBytes
        return start..<min(length, (range.upperBound + Body.blockBytes - 1) / Body.blockBytes * Body.blockBytes)
    }

    /// Fills an empty partial body with the blocks of a copy that can be read without blocking and are right.
    func fill(from whole: WholeCopy) {
        let length = whole.place.bodyBytes
        for start in stride(from: 0, to: length, by: Body.blockBytes) {
            let end = min(start + Body.blockBytes, length)
            guard case .missing(let block) = claim(at: start, limit: end) else { return }
            // A partial body has a page for each block.
            if let room = unsafe block.writable(end - start), room.count == end - start,
                unsafe whole.read(from: start, into: room, waits: false) == .done
            {
                block.commit(end - start)
            }
            block.abandon()
        }
    }

    /// The pages of `fresh` become those of this body, unless another thread has provided some already.
    ///
    /// Under the lock, so that one of several wins. `resident` is set last and releasing: lock-free readers that see it
    /// find the pages.
    private func take(_ fresh: Body) {
        locked {
            guard !resident.load(ordering: .relaxed) else { return }
            unsafe firstPage = fresh.firstPage
            unsafe segments = fresh.segments
            unsafe fresh.firstPage = nil
            unsafe fresh.segments = nil
            held.add(fresh.held.load(ordering: .relaxed), ordering: .relaxed)
            resident.store(true, ordering: .releasing)
        }
        reweigh()
    }
}

extension Body {
    /// Whether the back store has removed or moved the whole body that it had, so that it can no longer be read at the place that is known here.
    package var hasLeftItsPlace: Bool { whole.map { !$0.isCurrent } ?? false }
}
