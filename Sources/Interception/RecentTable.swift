import Message

/// An entry of a `RecentTable`.
protocol RecentEntry: Sendable {
    /// When it happened last.
    var lastAt: WallTime { get }
}

/// What happened within the last day, by key. Bounded: the oldest entries make room.
struct RecentTable<Key: Hashable & Sendable, Entry: RecentEntry>: Sendable {
    static var lifetime: Seconds { Seconds(86_400) }

    private var entries: [Key: Entry] = [:]
    private let countMax: Int

    init(countMax: Int) {
        precondition(countMax > 0)
        self.countMax = countMax
    }

    var count: Int { entries.count }

    func entry(_ key: Key, now: WallTime) -> Entry? { entries[key].flatMap { isAlive($0, now) ? $0 : nil } }

    mutating func set(_ key: Key, _ entry: Entry, now: WallTime) {
        if entries[key] == nil { makeRoom(now) }
        entries[key] = entry
    }

    mutating func remove(_ key: Key) { entries[key] = nil }

    /// The latest first.
    func list(now: WallTime) -> [(key: Key, entry: Entry)] {
        entries.filter { isAlive($0.value, now) }.map { ($0.key, $0.value) }.sorted {
            $0.entry.lastAt > $1.entry.lastAt
        }
    }

    private func isAlive(_ entry: Entry, _ now: WallTime) -> Bool { now - entry.lastAt < Self.lifetime }

    private mutating func makeRoom(_ now: WallTime) {
        guard entries.count >= countMax else { return }
        entries = entries.filter { isAlive($0.value, now) }
        // A quarter at once, so that a flood of new entries does not sort the table for each.
        guard entries.count >= countMax else { return }
        let oldest = entries.sorted { $0.value.lastAt < $1.value.lastAt }.prefix(max(1, countMax / 4))
        for (key, _) in oldest { entries[key] = nil }
    }
}
