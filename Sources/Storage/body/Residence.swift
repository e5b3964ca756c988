internal import Synchronization

/// Where the bytes of a body are, and what is needed to read them.
///
/// It is decided before a second thread knows the body, and never changes. So it is read without a lock, and the values of the cases
/// protect themselves. What changes is in atomics of `Body`, and a hit reads only those:
///
/// | a body is                              | residence | state    | resident | windowed |
/// |----------------------------------------|-----------|----------|----------|----------|
/// | growing in memory                      | memory    | growing  | yes      | no       |
/// | complete in memory                     | memory    | complete | yes      | no       |
/// | partial in memory                      | memory    | partial  | yes      | no       |
/// | too large to be stored, passed on      | memory    | growing  | yes      | yes      |
/// | whole on the back store, not read yet  | whole     | complete | no       | no       |
/// | whole on the back store and in memory  | whole     | complete | yes      | no       |
/// | partial, its blocks on the back store  | blocks    | partial  | no       | no       |
/// | growing, its blocks on the back store  | blocks    | growing  | no       | no       |
/// | the same, and left by the back store   | blocks    | growing  | no       | yes      |
/// | complete in blocks on the back store   | blocks    | complete | no       | no       |
/// | passed on only                         | window    | growing  | yes      | yes      |
///
/// In each row `growing` may become `failed`, and in the first row also `moved`: another body continues on the back store with the
/// bytes of this one (`Tiers.moveToBackStore`), so a body that outgrows memory does not change its residence. `resident` changes
/// from no to yes once (`Body.load`), and so does `windowed` (`Body.abandonStorage`).
@safe enum Residence {
    /// In pages of memory only.
    case memory
    /// On the back store in one piece, and also in pages if `resident` is set.
    case whole(WholeCopy)
    /// On the back store in blocks. A block is in pages only until it is written.
    case blocks(LargeCopy)
    /// In the window of a body that is only passed on. One thread alone reads and changes it.
    case window(PassingBlock)
}

extension Body {
    /// The copy in one piece. Nil if the body has none.
    var whole: WholeCopy? {
        if case .whole(let copy) = residence { return copy }
        return nil
    }

    /// The blocks of a large body. Nil for every other body.
    var large: LargeCopy? {
        if case .blocks(let copy) = residence { return copy }
        return nil
    }

    /// The window of a body that is only passed on. Nil for every other body.
    var passing: PassingBlock? {
        if case .window(let block) = residence { return unsafe block }
        return nil
    }
}
