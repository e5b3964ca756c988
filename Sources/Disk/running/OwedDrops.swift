/// Drop records that are still to be written: there was no space for them, a write failed, or the store was off.
///
/// The book has forgotten these objects already. A drop record matters if the book is lost later: an index that is then rebuilt from the
/// segments would find an object again whose record is still there and which no drop record names.
struct OwedDrops: Sendable {
    /// How many are kept, 1 MiB of them. A purge of more than that in a store that is off leaves the rest to the book alone.
    static let countMax = 65_536

    private var drops: [DroppedObject] = []

    var isEmpty: Bool { drops.isEmpty }

    /// Adds records that could not be written. If there are too many, the oldest are given up.
    mutating func add(_ late: some Collection<DroppedObject>) {
        drops += late
        if drops.count > Self.countMax { drops.removeFirst(drops.count - Self.countMax) }
    }

    /// Takes all of them, to be written now.
    mutating func take() -> [DroppedObject] {
        defer { drops = [] }
        return drops
    }
}
