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

    /// Gives the responses away. No reference to them stays here.
    mutating func takeResponses() -> [[StoredRecord]] {
        var taken: [[StoredRecord]] = []
        swap(&taken, &lists)
        if let list { taken.append(list) }
        list = nil
        return taken
    }

    consuming func destroy() {
        unsafe blocks.forEach { unsafe $0.deallocate() }
    }
}
