/// The keys of one shard whose transfers have proven a moment ago to bring a response for one client alone (RFC 9111 §4). Requests for
/// them do not wait for each other, which would only serialise them.
///
/// A table of fixed size without chains: a key takes the slot of an older one, whose requests may then wait for each other once more. It is
/// allocated when the first key enters it.
struct KeptApart {
    private static let slotCount = 64

    private struct Slot {
        var key: StorageKey
        /// Since the start of the process.
        var end: Duration
    }
    private var slots: [Slot?] = []

    private static func slot(of key: StorageKey) -> Int { Int(truncatingIfNeeded: key.low >> 32) & (slotCount - 1) }

    /// Whether requests for the key do not wait for each other at this time.
    func contains(_ key: StorageKey, now: Duration) -> Bool {
        guard !slots.isEmpty, let slot = slots[Self.slot(of: key)] else { return false }
        return slot.key == key && now < slot.end
    }

    mutating func insert(_ key: StorageKey, until end: Duration) {
        if slots.isEmpty { slots = Array(repeating: nil, count: Self.slotCount) }
        slots[Self.slot(of: key)] = Slot(key: key, end: end)
    }

    /// A response for the key has proven to be for all.
    mutating func remove(_ key: StorageKey) {
        guard !slots.isEmpty, slots[Self.slot(of: key)]?.key == key else { return }
        slots[Self.slot(of: key)] = nil
    }
}
