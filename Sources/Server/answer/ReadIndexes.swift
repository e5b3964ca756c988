import EventLoop
import Storage

/// Which stored indexes have been read for the digests that they promise, and when: 4,096 at most. If there are more, all are forgotten, and read again.
struct ReadIndexes {
    /// How long what an index promises is remembered.
    static let lifetime = Duration.seconds(86_400)

    private struct Reading {
        weak var body: Body?
        var time: Duration
    }
    private static let countMax = 4096
    private var readings: [StorageKey: Reading] = [:]

    /// Whether the body is to be read. It counts as read from then on, until half of the lifetime has passed: an index that stays the same for days,
    /// and is only validated, is read again before anything of it is forgotten.
    mutating func begins(_ key: StorageKey, _ body: Body, now: Duration) -> Bool {
        if let last = readings[key], last.body === body, now - last.time < Self.lifetime / 2 { return false }
        if readings.count >= Self.countMax { readings = readings.filter { $0.value.body != nil } }
        if readings.count >= Self.countMax { readings = [:] }
        readings[key] = Reading(body: body, time: now)
        return true
    }

    /// Nobody reads it after all.
    mutating func forget(_ key: StorageKey) { readings[key] = nil }
}
