package import Disk
internal import Glibc
internal import Synchronization

/// The copy on the disk of a body that was stored in one piece.
final class PackedCopy: Sendable {
    let store: DiskStore
    let id: ObjectID
    let hash: UInt64
    let place: Place
    /// Of each block.
    let checksums: [UInt32]
    /// No other in this process has it; from 1.
    let number = PackedCopy.lastNumber.add(1, ordering: .relaxed).newValue

    private static let lastNumber = Atomic<UInt64>(0)

    init(store: DiskStore, id: ObjectID, hash: UInt64, place: Place, checksums: [UInt32]) {
        self.store = store
        self.id = id
        self.hash = hash
        self.place = place
        self.checksums = checksums
    }
}

/// Bodies that came from the disk: whole, with their bytes read when they are wanted. Until `load` has read them into pages,
/// `vectors` gives nothing.
extension Body {
    /// Of a body that is on the disk in one piece, what tells it from all others there ever were; nil: it is not there.
    package var copyNumber: UInt64? { packed?.number }

    /// Its bytes can be had by `vectors`. Once they can, they stay.
    package var isResident: Bool { resident.load(ordering: .acquiring) }

    /// Reads all bytes into pages, and checks them: then the body is as any other in memory, and counts so. Any thread, also
    /// several at once.
    /// - Parameter waits: it may block; otherwise the result is `wouldBlock` where it would.
    package func load(waits: Bool) -> DiskRead {
        guard let packed, !isResident, let length = expectedLength else { return .done }
        let fresh = Body(expectedLength: length, lengthMax: length, shelves: shelves)
        while fresh.capacity < length {
            let next = layout.page(at: fresh.capacity)
            guard fresh.addPage(next, overdraft: true) else { return .failed(errno: ENOMEM) }
            fresh.capacity = next.end
        }
        var offset = 0
        while offset < length {
            let room = unsafe fresh.gap(from: offset, limit: length - offset)
            let result = unsafe packed.store.readBody(
                of: packed.place, checksums: packed.checksums, offset: offset, into: room, waits: waits)
            guard result == .done else { return result }
            offset += room.count
        }
        take(fresh)
        return .done
    }

    /// Reads bytes from the beginning of a block on into `room` (whole blocks, or up to the end), and checks them, without keeping them.
    package func read(from offset: Int, into room: UnsafeMutableRawBufferPointer) -> DiskRead {
        guard let packed else { preconditionFailure("a body without a copy on the disk is in memory") }
        return unsafe packed.store.readBody(
            of: packed.place, checksums: packed.checksums, offset: offset, into: room, waits: false)
    }

    /// The blocks in which a range of the body lies: what has to be read to check it.
    package func blocks(around range: Range<Int>) -> Range<Int> {
        let start = range.lowerBound / blockBytes * blockBytes
        return start..<min(length, (range.upperBound + blockBytes - 1) / blockBytes * blockBytes)
    }

    /// The pages of `fresh` become those of this one, if nobody else was quicker.
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
