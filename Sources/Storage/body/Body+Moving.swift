internal import Glibc
internal import Synchronization

/// Bodies of unknown length that outgrow memory and move to the back store (`Tiers.moveToBackStore`).
///
///     in memory   growing ──moveOn──▶ moved        its pages stay as long as somebody reads them
///                             │
///     large                   └──▶ growing ──finish──▶ complete
///                                     ├──fail───────────▶ failed: nothing of it is stored
///                                     └──abandonStorage─▶ a window: nothing of it is stored
///
/// The large body is another body, and not the same one in another place: readers use pages without a lock, so no page may
/// disappear while they read. The large body begins with a copy of the bytes in memory, and the writer writes the large body
/// alone. A reader reads the first body to its end, finds that it has `moved`, and continues with `continuation` at the same
/// offset.
///
/// A large body that grows has no holes. Its response is stored when all of it is written. If the back store cannot store it,
/// the response leaves memory as well.
extension Body {
    /// Ends this body. The body of `record` begins with the same bytes and continues to grow. The writer calls this.
    func moveOn(to record: StoredRecord) {
        precondition(large == nil && !hasWindow, "only a body in memory moves")
        precondition(record.body.length == length, "the body that continues has the bytes of this one")
        home = nil
        continuation = record
        end(.moved)
    }

    /// Appends all bytes of a body in memory. Returns false if the budget has no room.
    func append(contentsOf other: Body) -> Bool {
        let length = other.length
        while self.length < length {
            var vector = unsafe iovec()
            let used = unsafe withUnsafeMutablePointer(to: &vector) {
                unsafe other.vectors(
                    from: self.length, limit: length - self.length,
                    into: UnsafeMutableBufferPointer(start: $0, count: 1))
            }
            precondition(used == 1, "a body in memory has the bytes that are published")
            let piece = unsafe UnsafeRawBufferPointer(start: vector.iov_base, count: vector.iov_len)
            guard case .appended = unsafe append(piece) else { return false }
        }
        return true
    }

    /// Tells the back store that a large body has ended.
    func endBlocks(_ large: LargeCopy) {
        guard !windowed.load(ordering: .relaxed) else { return }
        guard state == .complete, let length = large.length, length > 0 else { return large.blocks.abandon() }
        // The last block may be shorter than the others: it is whole only now.
        writeBlocks((length - 1) / Body.blockBytes * Body.blockBytes..<length)
        let home = home
        large.isEnding.store(true, ordering: .releasing)
        large.blocks.finish(length: length) { [self] isStored in
            large.isEnding.store(false, ordering: .releasing)
            if !isStored, let home { shelves.removeRecord(carrying: self, home) }
        }
    }
}
