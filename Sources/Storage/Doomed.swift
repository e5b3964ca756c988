/// What a locked section gives up. It is destroyed after the lock is released, because freeing memory takes time, and the
/// deinitialiser of a response or body takes other locks.
@safe struct Doomed {
    /// Lists of variants taken out of the table, with the responses in them. Most often there is one: it stands alone.
    private var list: [StoredRecord]?
    private var lists: [[StoredRecord]] = []
    /// Raw memory without anything to destroy in it.
    var blocks: [UnsafeMutableRawPointer] = unsafe []

    mutating func add(_ variants: [StoredRecord]) {
        if list == nil { list = variants } else { lists.append(variants) }
    }

    consuming func destroy() {
        unsafe blocks.forEach { unsafe $0.deallocate() }
    }
}
