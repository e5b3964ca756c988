/// The purges that are in the stream, so that a shared record can be compared with those that came after it was written.
///
/// A record says up to which entry its writer had applied purges. Each later one concerns the record if it concerns the response. If the log does not reach back so
/// far, the record is not used.
///
/// What unsafe requests have invalidated is found by its key, because it may be much, and each record is compared with all that came after it.
package struct PurgeLog<Matcher> {
    private var epoch: StreamEpoch?
    private var entries: [(id: StreamID, matcher: Matcher?)] = []
    /// The last entry that has invalidated a key, by a hash of it. Two keys that have one hash are invalidated together.
    private var invalidations: [Int: StreamID] = [:]
    /// Every entry of the stream behind this id is in the log, up to `end`. Nil: nothing is known.
    package private(set) var start: StreamID?
    package private(set) var end = StreamID.zero
    /// How often the log has begun anew.
    package private(set) var beginnings = 0
    private let countMax: Int
    private let keysMax: Int

    /// - Parameters:
    ///   - reached: up to where an earlier run of this node had applied purges. Nil: that is not known.
    ///   - countMax: so many entries are kept. The stream itself is trimmed to fewer.
    ///   - keysMax: so many keys are kept that unsafe requests have invalidated, 32 bytes for each.
    package init(reached: StreamPosition? = nil, countMax: Int = 20_000, keysMax: Int = 200_000) {
        precondition(countMax > 0 && keysMax > 0, "a log has entries")
        epoch = reached?.epoch
        end = reached?.id ?? .zero
        self.countMax = countMax
        self.keysMax = keysMax
    }

    package var count: Int { entries.count }
    package var keyCount: Int { invalidations.count }

    /// The later one of a position and what the log has read: no purge beyond it is known. Of two positions in other data that of the log is the later one, because it has
    /// heard all that the server said of the stream (`begin`, `examined`). In the same data it never goes back.
    package func latest(_ position: StreamPosition?) -> StreamPosition? {
        guard start != nil, let epoch else { return position }
        if let position, position.epoch == epoch, position.id > end { return position }
        return StreamPosition(epoch: epoch, id: end)
    }

    // MARK: the stream

    /// Begins anew, before the whole stream is read.
    ///
    /// - Parameter isTrimmed: entries may have been removed from the beginning of the stream.
    package mutating func begin(_ stream: StreamState, isTrimmed: Bool) {
        guard !hasLost(stream) else { return begin(stream.epoch, after: end) }
        let start = isTrimmed ? stream.first ?? stream.last : .zero
        begin(stream.epoch, after: max(start, stream.maxDeleted))
    }

    /// The server says how the stream is, before it is read on.
    package mutating func examined(_ stream: StreamState) {
        if stream.epoch != epoch {
            // The server was emptied. Who follows goes on behind the end, and marks what was stored before.
            begin(stream.epoch, after: stream.last)
        } else if hasLost(stream) {
            begin(stream.epoch, after: end)
        }
    }

    /// The stream was deleted, and perhaps with it entries that are not in the log. Records that are written from now on, until the next purge, name an entry of the new
    /// stream, which is before the old ones. They are not used. Nor are other nodes that have not come as far as this one had (`latest`): they may have missed what was lost.
    private func hasLost(_ stream: StreamState) -> Bool { stream.epoch == epoch && stream.last < end }

    /// What is read from now on follows this position. If that leaves a hole, the log begins there.
    package mutating func resume(at position: StreamPosition) {
        if position.epoch != epoch || position.id > end { begin(position.epoch, after: position.id) }
    }

    private mutating func begin(_ epoch: StreamEpoch, after start: StreamID) {
        entries = []
        invalidations = [:]
        beginnings += 1
        self.epoch = epoch
        self.start = start
        end = start
    }

    /// - Parameter matcher: nil if the purge cannot be read. It concerns everything.
    package mutating func add(_ id: StreamID, _ matcher: Matcher?) {
        guard start != nil, id > end else { return }
        entries.append((id, matcher))
        end = id
        if entries.count > countMax { forget(through: entries[entries.count - countMax / 2 - 1].id) }
    }

    /// - Parameter keys: what an unsafe request has invalidated, in all zones.
    package mutating func add(_ id: StreamID, keys: [[UInt8]]) {
        guard start != nil, id > end else { return }
        for key in keys { invalidations[key.hashValue] = id }
        end = id
        guard invalidations.count > keysMax else { return }
        let ids = invalidations.values.sorted()
        forget(through: ids[ids.count - keysMax / 2 - 1])
    }

    /// The log begins behind this entry.
    private mutating func forget(through id: StreamID) {
        start = id
        entries.removeAll { $0.id <= id }
        invalidations = invalidations.filter { $0.value > id }
    }

    /// An entry that concerns nothing.
    package mutating func pass(_ id: StreamID) {
        if start != nil, id > end { end = id }
    }

    /// Whether a purge that was issued after `position` concerns a record, or may do so.
    ///
    /// - Parameter key: the cache key of the record.
    package func concerns(
        recordAt position: StreamPosition, of key: [UInt8], _ isConcerned: (Matcher) -> Bool
    ) -> Bool {
        guard let start, position.epoch == epoch, position.id >= start else { return true }
        if let id = invalidations[key.hashValue], id > position.id { return true }
        var low = 0
        var high = entries.count
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].id > position.id { high = middle } else { low = middle + 1 }
        }
        return entries[low...].contains { $0.matcher.map(isConcerned) ?? true }
    }
}

extension PurgeLog: Sendable where Matcher: Sendable {}
