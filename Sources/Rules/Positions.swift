/// Numbered entries, each with the positions of the rules that name it. Most entries are named by one rule, which costs four bytes.
struct Positions: Sendable, Equatable {
    /// A position, or the complement of an index of `several`.
    private var heads: [Int32] = []
    private var several: [[Int]] = []

    /// Adds a position, which is not smaller than those that the entry has.
    ///
    /// - Parameter entry: the number of an entry, or the next number.
    mutating func add(_ position: Int, to entry: Int) {
        guard entry < heads.count else {
            precondition(entry == heads.count, "entries are added in order")
            return heads.append(Int32(position))
        }
        let head = heads[entry]
        if head < 0 {
            if several[Int(~head)].last != position { several[Int(~head)].append(position) }
            return
        }
        guard head != position else { return }
        several.append([Int(head), position])
        heads[entry] = ~Int32(several.count - 1)
    }

    /// The first position of the entry that is smaller than `bound` and for which the rule holds.
    func first(of entry: Int, below bound: Int, where holds: (Int) -> Bool) -> Int? {
        let head = heads[entry]
        if head >= 0 { return head < bound && holds(Int(head)) ? Int(head) : nil }
        return Rules.first(of: several[Int(~head)], below: bound, where: holds)
    }
}

/// - Parameter positions: in ascending order.
func first(of positions: [Int], below bound: Int, where holds: (Int) -> Bool) -> Int? {
    for position in positions {
        if position >= bound { return nil }
        if holds(position) { return position }
    }
    return nil
}
