/// What a locked section no longer wants. It is destroyed after the lock is released, because giving memory back takes
/// time and the deinitialiser of a record or body takes other locks.
@safe struct Doomed {
    /// Lists of variants taken out of the table, with the records in them.
    var lists: [[StoredRecord]] = []
    /// Raw memory without anything to destroy in it.
    var blocks: [UnsafeMutableRawPointer] = unsafe []

    consuming func destroy() {
        unsafe blocks.forEach { unsafe $0.deallocate() }
    }
}
