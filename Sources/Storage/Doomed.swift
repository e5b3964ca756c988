/// What a locked section removes. The caller destroys it after releasing the lock, because freeing memory takes time, and because
/// the deinitialisers of responses and bodies take other locks.
@safe struct Doomed {
    /// Lists of variants that were removed from the table. Usually there is only one, which needs no array.
    private var list: [StoredRecord]?
    private var lists: [[StoredRecord]] = []
    /// Raw memory with nothing in it that has to be deinitialised.
    var blocks: [UnsafeMutableRawPointer] = unsafe []

    mutating func add(_ variants: [StoredRecord]) {
        if list == nil { list = variants } else { lists.append(variants) }
    }

    consuming func destroy() {
        unsafe blocks.forEach { unsafe $0.deallocate() }
    }
}
