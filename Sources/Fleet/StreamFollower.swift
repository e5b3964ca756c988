/// Follows the stream of purges, so that each purge of the fleet is applied on this node, or everything that was stored before it is stale.
///
/// ```
/// offline ──examined──▶ reading ──read (entries)──▶ applying ──applied (the last)──▶ asking ──examined──▶ reading
///                          └──read (nothing came)─────────────────────────────────────▲
///
/// disconnected: reading, asking ──▶ offline      applying ──▶ draining ──applied (the last)──▶ offline
///                                                                └──examined──▶ applying
/// ```
///
/// The driver performs the actions in their order. It asks for the state of the stream after connecting and before each read, because a read passes over
/// what was removed, and nothing shows that afterwards. The command that asks and the read behind it should follow one another at once.
///
/// **What is a gap?** The server removes the oldest entries (XADD with MAXLEN), so a node that was away may have missed some. This node has reached the id L.
///
/// - The epoch is another one: entries may have been lost with the data of the server. A gap.
/// - The last id of the stream is lower than L: the stream was deleted, or it is another one. A gap.
/// - The last id is L: nothing was added after L. No gap, even if the stream is empty by now.
/// - `max-deleted-entry-id` is higher than L: somebody deleted an entry (XDEL) that this node has not read. A gap.
/// - The first entry that is there has an id up to L: trimming removes from the front, so no entry after L was trimmed. No gap.
/// - Otherwise L itself is gone, and what followed it may be gone too. A gap.
///
/// The last rule may be wrong in one case: trimming has removed everything up to L and nothing after it. Two fields of Redis 7 look as if they could tell,
/// and cannot. `max-deleted-entry-id` is set by XDEL alone, not by trimming (7.0.15). `entries-added` minus `length` is the number of entries that were
/// removed, which a node could compare with the number that it has read. But after the stream was deleted and made again the count begins anew, and the
/// numbers may agree by chance, so that a lost purge would go unnoticed. The rule is wrong only for a node that missed as many purges as the stream holds, to
/// within one node of the radix tree (100 entries), or that reached the end of an empty stream. The price is that stored responses are validated once.
///
/// One thing goes unnoticed: somebody deletes the stream alone by hand (DEL), and this node is away and has read no entry of it. FLUSHALL and FLUSHDB change the
/// epoch.
package struct StreamFollower: Sendable {
    package enum Action: Equatable, Sendable {
        /// Ask how the stream is (XINFO STREAM, and what the epoch is made of), and call `examined`.
        case ask
        /// Read the entries behind this id (XREAD), and call `read`.
        case readAfter(StreamID)
        /// Apply this purge here, and call `applied`.
        case apply(StreamID, PurgeEntry)
        /// Count an entry that is not applied.
        case skip(StreamID, PurgeEntryError)
        /// Everything that was stored until now, here and in the fleet's store, has to be validated before it is used.
        case markEverythingStale(StaleReason)
        /// Keep the position over a restart.
        case remember(StreamPosition)

        /// Whether it is a command for the connection on which it was decided. If that ends before a driver comes to perform it, it is dropped.
        package var isOfConnection: Bool {
            switch self {
            case .ask, .readAfter: true
            case .apply, .skip, .markEverythingStale, .remember: false
            }
        }
    }

    private enum State: Equatable {
        /// There is no connection, or the driver has not asked yet.
        case offline
        /// There is no connection, or the driver has not asked yet, and entries that were read before are still applied.
        case draining(Work)
        /// The driver asks how the stream is.
        case asking
        /// A read is under way.
        case reading
        /// One entry is being applied.
        case applying(Work)
    }

    private struct Work: Equatable {
        /// The entry that is being applied.
        let current: StreamID
        var rest: ArraySlice<StreamEntry>
        /// Where the node is when all is applied.
        var last: StreamID
    }

    private var state = State.offline
    /// Nil until the first connection of a node that has never had one.
    package private(set) var position: StreamPosition?
    /// Whether the position, which follows a gap, waits to be remembered until an entry is applied.
    private var isGapOpen = false
    /// Whether a node without a position had to do without the server, so that it has stored responses while it could not hear of purges.
    private var hasServedAlone = false

    /// - Parameter position: what was remembered before the node was started. Nil for a node that has never followed: it begins at the end of the
    ///   stream, and earlier purges do not concern it. If its first attempt to connect fails, it marks everything when it succeeds. The driver of a node
    ///   that has responses of an earlier run and no position calls `disconnected` before it connects, with the same effect.
    package init(position: StreamPosition?) { self.position = position }

    /// Whether everything was applied that was in the stream when the node connected, or everything that was stored is to be marked as stale. Once it is so it stays so: what
    /// comes later, the node hears of, or knows that it does not.
    package private(set) var hasCaughtUp = false
    /// The end of the stream when the node connected, until it has caught up.
    private var goal: StreamID?

    // MARK: events

    /// The server says how the stream is, after connecting or because of `ask`.
    package mutating func examined(_ stream: StreamState) -> [Action] {
        let end = StreamPosition(epoch: stream.epoch, id: stream.last)
        guard let position else { return begin(at: end) }
        switch state {
        case .offline, .asking:
            state = .reading
            guard let reason = gap(stream, after: position) else {
                approach(stream.last, from: position.id)
                return [.readAfter(position.id)]
            }
            hasCaughtUp = true
            self.position = end
            return [.markEverythingStale(reason), .remember(end), .readAfter(end.id)]
        case .draining(let work):
            state = .applying(work)
            let reached = StreamPosition(epoch: position.epoch, id: work.last)
            guard let reason = gap(stream, after: reached) else { return [] }
            // The entries that wait were added before, so they are covered. The one that is being applied is waited for.
            self.position = end
            hasCaughtUp = true
            isGapOpen = true
            state = .applying(Work(current: work.current, rest: [], last: end.id))
            return [.markEverythingStale(reason)]
        case .reading, .applying: preconditionFailure("the driver was not told to ask")
        }
    }

    /// A read returned.
    ///
    /// - Parameter entries: in the order of the stream. Empty if none came in time. Entries that were read before are passed over.
    package mutating func read(_ entries: [StreamEntry]) -> [Action] {
        switch state {
        case .reading: break
        // The connection ended meanwhile. What it brought is read again.
        case .offline, .draining: return []
        case .asking, .applying: preconditionFailure("no read is under way")
        }
        guard let position else { preconditionFailure("who reads has a position") }
        var last = position.id
        let news = entries.filter { entry in
            guard entry.id > last else { return false }
            last = entry.id
            return true
        }
        return proceed(news[...], until: last, isConnected: true)
    }

    /// The purge was applied.
    package mutating func applied(_ id: StreamID) -> [Action] {
        switch state {
        case .applying(let work):
            precondition(work.current == id, "entries are applied in their order")
            return proceed(work.rest, until: work.last, isConnected: true)
        case .draining(let work):
            precondition(work.current == id, "entries are applied in their order")
            return proceed(work.rest, until: work.last, isConnected: false)
        case .offline, .asking, .reading: preconditionFailure("no entry is being applied")
        }
    }

    /// The connection ended, or an attempt to connect failed.
    package mutating func disconnected() {
        if position == nil { hasServedAlone = true }
        goal = nil
        switch state {
        case .offline, .draining: break
        case .asking, .reading: state = .offline
        case .applying(let work): state = .draining(work)
        }
    }

    // MARK: transitions

    private mutating func begin(at end: StreamPosition) -> [Action] {
        position = end
        hasCaughtUp = true
        state = .reading
        let mark: [Action] = hasServedAlone ? [.markEverythingStale(.startedAlone)] : []
        return mark + [.remember(end), .readAfter(end.id)]
    }

    private mutating func approach(_ end: StreamID, from place: StreamID) {
        let goal = goal ?? end
        self.goal = goal
        if place >= goal { hasCaughtUp = true }
    }

    private func gap(_ stream: StreamState, after place: StreamPosition) -> StaleReason? {
        if stream.epoch != place.epoch { return .otherData }
        if stream.last < place.id { return .streamRestarted }
        if stream.last == place.id { return nil }
        if stream.maxDeleted > place.id { return .entriesDeleted }
        guard let first = stream.first, first <= place.id else { return .entriesTrimmed }
        return nil
    }

    /// Goes on to the next entry that can be applied.
    private mutating func proceed(
        _ entries: ArraySlice<StreamEntry>, until last: StreamID, isConnected: Bool
    ) -> [Action] {
        var actions: [Action] = []
        var rest = entries
        while let entry = rest.popFirst() {
            switch entry.purge {
            case .success(let purge):
                let work = Work(current: entry.id, rest: rest, last: last)
                state = isConnected ? .applying(work) : .draining(work)
                return actions + [.apply(entry.id, purge)]
            case .failure(let error):
                actions.append(.skip(entry.id, error))
                if error.isAuthentic { actions.append(.markEverythingStale(.unknownEntry)) }
            }
        }
        return actions + settle(at: last, isConnected: isConnected)
    }

    /// Everything that was read is applied.
    private mutating func settle(at last: StreamID, isConnected: Bool) -> [Action] {
        guard let epoch = position?.epoch else { preconditionFailure("who applies has a position") }
        let reached = StreamPosition(epoch: epoch, id: last)
        let isNew = reached != position || isGapOpen
        position = reached
        isGapOpen = false
        state = isConnected ? .asking : .offline
        return (isNew ? [.remember(reached)] : []) + (isConnected ? [.ask] : [])
    }
}

/// What XINFO STREAM says of the stream of purges.
package struct StreamState: Equatable, Sendable {
    package let epoch: StreamEpoch
    /// The id of the oldest entry that is there. Nil if the stream is empty, or does not exist.
    package let first: StreamID?
    /// `last-generated-id`: of the newest entry that was ever added. `StreamID.zero` if the stream does not exist.
    package let last: StreamID
    /// `max-deleted-entry-id`: the highest id that XDEL removed. `StreamID.zero` if it removed none.
    package let maxDeleted: StreamID

    package init(epoch: StreamEpoch, first: StreamID?, last: StreamID, maxDeleted: StreamID) {
        self.epoch = epoch
        self.first = first
        self.last = last
        self.maxDeleted = maxDeleted
    }
}

/// One entry that was read, with what its fields are.
package struct StreamEntry: Equatable, Sendable {
    package let id: StreamID
    package let purge: Result<PurgeEntry, PurgeEntryError>

    package init(id: StreamID, purge: Result<PurgeEntry, PurgeEntryError>) {
        self.id = id
        self.purge = purge
    }
}

/// Why purges may have been missed.
package enum StaleReason: String, CaseIterable, Sendable {
    /// The server was started again or flushed, or another one took over.
    case otherData = "other-data"
    /// The stream was deleted and made again.
    case streamRestarted = "stream-restarted"
    /// The node was away for longer than the stream reaches back.
    case entriesTrimmed = "entries-trimmed"
    /// Somebody deleted an entry that the node had not read.
    case entriesDeleted = "entries-deleted"
    /// A node of another release added a purge that this one does not understand.
    case unknownEntry = "unknown-entry"
    /// The node stored responses before its first connection.
    case startedAlone = "started-alone"
    /// A zone has got a disk with responses of an earlier time.
    case diskAdded = "disk-added"
}
