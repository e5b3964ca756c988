/// The keys that unsafe requests to this node have invalidated, on their way to the others: which of them go next, when, and which have not come back by the stream.
///
/// ```
/// add ──▶ waiting ──take──▶ going ──sent──▶ settle (the log has it, or has begun anew)
///            ▲─────refused────┘
/// ```
///
/// A client may send as many unsafe requests as it likes, and each entry of the stream is read by all nodes and takes the place of an earlier purge. So keys wait and go together, a key that waits
/// already goes once, and what is too much is dropped: other nodes then keep their responses until these are stale, as RFC 9111 §4.4 lets them.
///
/// Keys of which something was stored go first: at once, and once a second where there are more. Of a key of which neither this node nor Redis has had anything, another node may have a
/// long body. Those go along, or alone every ten seconds. So clients whose unsafe requests are to what nobody stores, as most are, cost the fleet one entry of each node in that time.
package struct Invalidations: Sendable {
    /// So many keys wait.
    package static let keysMax = 1024
    /// The keys of one entry, with a byte for each. A single key may be longer.
    package static let bytesPerEntry = 4 << 10
    /// From one entry to the next, in nanoseconds.
    package static let pauseNanoseconds: UInt64 = 1_000_000_000
    package static let longPauseNanoseconds: UInt64 = 10_000_000_000
    /// So many entries that have not come back are told apart. There are more only while the stream cannot be followed, and then nothing is read from Redis.
    private static let sentMax = 64

    /// Something was stored under these.
    private var stored = KeyQueue()
    private var others = KeyQueue()
    /// Taken, and the server has not answered.
    private var going = KeyQueue()
    private var sent: [(keys: Set<[UInt8]>, id: StreamID, beginnings: Int)] = []
    private var lastAt: UInt64?

    package init() {}

    package var waitingCount: Int { stored.count + others.count }

    /// - Parameters:
    ///   - wasStored: this node has had a response under the key.
    /// - Returns: false if a key was dropped: this one, or one of which nothing was stored.
    package mutating func add(_ key: [UInt8], wasStored: Bool) -> Bool {
        guard InvalidatedKeys.canSay(key) else { return false }
        if stored.contains(key) { return true }
        if others.contains(key) {
            if wasStored { self.wasStored(key) }
            return true
        }
        var hasRoom = true
        if waitingCount >= Invalidations.keysMax {
            guard wasStored, others.removeFirst() != nil else { return false }
            hasRoom = false
        }
        if wasStored { stored.append(key) } else { others.append(key) }
        return hasRoom
    }

    /// Redis has had a response under a key that may be waiting.
    package mutating func wasStored(_ key: [UInt8]) {
        if others.remove(key) { stored.append(key) }
    }

    /// When the next entry may go. Nil: nothing waits, or one is going.
    ///
    /// - Parameter now: nanoseconds of a clock that never goes back.
    package func nextAt(now: UInt64) -> UInt64? {
        guard going.isEmpty, waitingCount > 0 else { return nil }
        let pause = stored.isEmpty ? Invalidations.longPauseNanoseconds : Invalidations.pauseNanoseconds
        return lastAt.map { max($0 + pause, now) } ?? now
    }

    /// The keys of the next entry. Empty if it is too early. `sent` or `refused` is called afterwards.
    package mutating func take(now: UInt64) -> [[UInt8]] {
        guard let time = nextAt(now: now), time <= now else { return [] }
        lastAt = now
        var room = Invalidations.bytesPerEntry
        for key in stored.all + others.all {
            if key.count + 1 > room, !going.isEmpty { break }
            going.append(key)
            room -= key.count + 1
        }
        for key in going.all where !stored.remove(key) { others.remove(key) }
        return going.all
    }

    /// The server has taken the entry.
    package mutating func sent<Matcher>(as id: StreamID, _ log: PurgeLog<Matcher>) {
        sent.append((Set(going.all), id, log.beginnings))
        going = KeyQueue()
        if sent.count > Invalidations.sentMax { sent.removeFirst() }
    }

    /// The server has not taken the entry. Its keys go with the next one.
    package mutating func refused() {
        for key in going.all.reversed() where !stored.contains(key) && !others.contains(key) { stored.prepend(key) }
        going = KeyQueue()
    }

    /// Called when the log is complete up to its end: what it has, it compares with shared records itself.
    package mutating func settle<Matcher>(_ log: PurgeLog<Matcher>) {
        sent.removeAll { log.end >= $0.id || log.beginnings != $0.beginnings }
    }

    /// Whether the key has not come back: what Redis has of it may be from before.
    package func areUnderWay(for key: [UInt8]) -> Bool {
        stored.contains(key) || others.contains(key) || going.contains(key) || sent.contains { $0.keys.contains(key) }
    }
}

/// Keys in the order in which they came, each once.
private struct KeyQueue: Sendable {
    private(set) var all: [[UInt8]] = []
    private var present: Set<[UInt8]> = []

    var count: Int { all.count }
    var isEmpty: Bool { all.isEmpty }

    func contains(_ key: [UInt8]) -> Bool { present.contains(key) }

    mutating func append(_ key: [UInt8]) { if present.insert(key).inserted { all.append(key) } }
    mutating func prepend(_ key: [UInt8]) { if present.insert(key).inserted { all.insert(key, at: 0) } }

    @discardableResult
    mutating func remove(_ key: [UInt8]) -> Bool {
        guard present.remove(key) != nil else { return false }
        all.removeAll { $0 == key }
        return true
    }

    mutating func removeFirst() -> [UInt8]? {
        guard let first = all.first else { return nil }
        remove(first)
        return first
    }
}
