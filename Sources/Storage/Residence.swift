internal import Synchronization

/// Where the bytes of a body are, and what it takes to get at them.
///
/// Decided before any other thread knows the body, and the same for as long as it lives: so it is read without a lock,
/// and what a case holds guards itself. What does change is in atomics beside it, which a hit reads alone:
///
/// | a body is                              | residence | state    | resident | windowed |
/// |----------------------------------------|-----------|----------|----------|----------|
/// | growing in memory                      | memory    | growing  | yes      | no       |
/// | complete in memory                     | memory    | complete | yes      | no       |
/// | partial in memory                      | memory    | partial  | yes      | no       |
/// | too large for memory, on to its readers| memory    | growing  | yes      | yes      |
/// | whole on the back store, not read yet  | whole     | complete | no       | no       |
/// | whole on the back store and in memory  | whole     | complete | yes      | no       |
/// | partial, its blocks on the back store  | blocks    | partial  | no       | no       |
/// | complete in blocks on the back store   | blocks    | complete | no       | no       |
/// | passed on only                         | window    | growing  | yes      | yes      |
///
/// In each row `failed` may follow `growing`. `resident` turns from no to yes once (`Body.load`), and `windowed` as well
/// (`Body.abandonStorage`).
@safe enum Residence {
    /// In pages of memory and nowhere else.
    case memory
    /// On the back store in one piece; in pages as well where `resident` is set.
    case whole(WholeCopy)
    /// On the back store in blocks. Pages hold a block only until it is written.
    case blocks(LargeCopy)
    /// In the window of a body that is only passed on. Its thread alone reads and changes this.
    case window(PassingBlock)
}

extension Body {
    /// The copy in one piece; nil where the body has none.
    var whole: WholeCopy? {
        if case .whole(let copy) = residence { return copy }
        return nil
    }

    /// The blocks of a large body; nil for every other.
    var large: LargeCopy? {
        if case .blocks(let copy) = residence { return copy }
        return nil
    }

    /// The window of a body that is only passed on; nil for every other.
    var passing: PassingBlock? {
        if case .window(let block) = residence { return unsafe block }
        return nil
    }
}
