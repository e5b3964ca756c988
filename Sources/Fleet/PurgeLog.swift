/// The purges that are in the stream, so that a shared record can be compared with those that came after it was written.
///
/// A record says up to which entry its writer had applied purges. Each later one concerns the record if it concerns the response. If the log does not reach back so
/// far, the record is not used.
package struct PurgeLog<Matcher> {
    private var entries: [(id: StreamID, matcher: Matcher?)] = []
    /// Every entry of the stream behind this id is in the log, up to `end`. Nil: nothing is known.
    package private(set) var start: StreamID?
    package private(set) var end = StreamID.zero
    private let countMax: Int

    /// - Parameter countMax: so many entries are kept. The stream itself is trimmed to fewer.
    package init(countMax: Int = 20_000) {
        precondition(countMax > 0, "a log has entries")
        self.countMax = countMax
    }

    package var count: Int { entries.count }

    /// Begins anew.
    ///
    /// - Parameter start: entries up to this id may have been trimmed or are not known. The first entry that is still in the stream, or the last one that was ever added if it is empty.
    package mutating func begin(after start: StreamID) {
        entries = []
        self.start = start
        end = start
    }

    /// Forgets everything: the stream is another one, or entries may have been missed.
    package mutating func forget() {
        entries = []
        start = nil
        end = .zero
    }

    /// - Parameter matcher: nil if the purge cannot be read. It concerns everything.
    package mutating func add(_ id: StreamID, _ matcher: Matcher?) {
        guard start != nil, id > end else { return }
        entries.append((id, matcher))
        end = id
        guard entries.count > countMax else { return }
        let dropped = entries.count - countMax / 2
        start = entries[dropped - 1].id
        entries.removeFirst(dropped)
    }

    /// Whether a purge that was issued after `position` concerns a record, or may do so.
    package func concerns(recordAt position: StreamID, _ isConcerned: (Matcher) -> Bool) -> Bool {
        guard let start, position >= start else { return true }
        var low = 0
        var high = entries.count
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].id > position { high = middle } else { low = middle + 1 }
        }
        return entries[low...].contains { $0.matcher.map(isConcerned) ?? true }
    }
}

extension PurgeLog: Sendable where Matcher: Sendable {}
