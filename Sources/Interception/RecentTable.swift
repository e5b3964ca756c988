import Message

/// What happened within the last day, by key. Bounded: the oldest entries make room.
struct RecentTable<Key: Hashable & Sendable, Entry: Sendable>: Sendable {
    /// How old an entry is does not follow from the wall clock: one that was set back would keep it for longer.
    private struct Record {
        let entry: Entry
        let at: Duration
    }

    static var lifetime: Duration { .seconds(86_400) }

    private var records: [Key: Record] = [:]
    private let countMax: Int

    init(countMax: Int) {
        precondition(countMax > 0)
        self.countMax = countMax
    }

    var count: Int { records.count }

    func entry(_ key: Key, now: Moment) -> Entry? { alive(key, now)?.entry }

    /// How long ago the entry was set. Nil if there is none.
    func age(_ key: Key, now: Moment) -> Duration? { alive(key, now).map { now.uptime - $0.at } }

    mutating func set(_ key: Key, _ entry: Entry, now: Moment) {
        if records[key] == nil { makeRoom(now) }
        records[key] = Record(entry: entry, at: now.uptime)
    }

    mutating func remove(_ key: Key) { records[key] = nil }

    /// The latest first.
    func list(now: Moment) -> [(key: Key, entry: Entry)] {
        records.filter { isAlive($0.value, now) }.sorted { $0.value.at > $1.value.at }.map { ($0.key, $0.value.entry) }
    }

    private func alive(_ key: Key, _ now: Moment) -> Record? { records[key].flatMap { isAlive($0, now) ? $0 : nil } }

    private func isAlive(_ record: Record, _ now: Moment) -> Bool { now.uptime - record.at < Self.lifetime }

    private mutating func makeRoom(_ now: Moment) {
        guard records.count >= countMax else { return }
        records = records.filter { isAlive($0.value, now) }
        // A quarter at once, so that a flood of new entries does not sort the table for each.
        guard records.count >= countMax else { return }
        let oldest = records.sorted { $0.value.at < $1.value.at }.prefix(max(1, countMax / 4))
        for (key, _) in oldest { records[key] = nil }
    }
}
