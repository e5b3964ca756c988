internal import Synchronization

/// One fetch from an origin that other requests may join before its head is known (RFC 9111 §4, collapsed requests). The leader
/// fetches, and the followers wait for the outcome. Each has a handle, which is an object of this class. The leader's handle resolves
/// the transfer. If that handle is destroyed first, each follower fetches alone.
package final class Transfer: @unchecked Sendable {
    package enum Outcome: Sendable {
        /// The response is stored or being stored. After a 304 it is the freshened response.
        case published(StoredRecord)
        /// The response may not be shared: each follower fetches alone.
        case notShared
        /// The origin could not be reached, or broke off. The leader defines the meaning of the code.
        case failed(code: Int32)
    }

    /// What the outcome shows of other responses for the key.
    package enum Sharing: Sendable {
        case unknown
        /// The response may answer other requests as it is.
        case proven
        /// The response is for its leader alone. The next ones are likely to be so, too: until `end`, in time since the start of the process,
        /// requests for the key do not wait for each other.
        case refuted(until: Duration)
    }

    private let shelves: Shelves
    let shared: TransferState
    package let isLeader: Bool
    /// The outcome is known. Only the leader uses this.
    private var isResolved = false

    init(_ shared: TransferState, _ shelves: Shelves, isLeader: Bool) {
        self.shared = shared
        self.shelves = shelves
        self.isLeader = isLeader
    }

    deinit { if isLeader && !isResolved { abandon() } }

    /// Nil if the outcome is not known yet.
    package var outcome: Outcome? { locked { shared.outcome } }

    /// Calls `wake` once when the outcome is known: from within this call if it is known already. Returns nil if `limit` others are
    /// waiting: the caller fetches alone.
    package func follow(_ wake: Wake, limit: Int) -> FollowTicket? {
        var isKnown = false
        let ticket: FollowTicket? = locked {
            isKnown = shared.outcome != nil
            return isKnown ? FollowTicket(id: 0) : shared.add(wake, limit: limit)
        }
        if isKnown { wake() }
        return ticket
    }

    /// Forgets a follower. If the follower is being woken at this moment, its wake may still be called.
    package func cancel(_ ticket: FollowTicket) {
        let forgotten = locked { shared.remove(ticket) }
        withExtendedLifetime(forgotten) {}
    }

    /// How many followers are waiting.
    package var followerCount: Int { locked { shared.followerCount } }

    /// The key was invalidated or purged after the transfer began. The response may be older than that, and must not be stored.
    package var isOutdated: Bool { shared.isOutdated.load(ordering: .acquiring) }

    /// Sets the outcome and wakes all followers. Only the leader calls this; for `published`, after it has inserted the response, because
    /// later requests look into the cache or lead a transfer of their own. The first outcome stays.
    package func resolve(_ outcome: Outcome, _ sharing: Sharing = .unknown) {
        precondition(isLeader, "only the leader knows the outcome")
        if isResolved { return }
        isResolved = true
        let wakes = shelves.settle(shared, outcome, sharing)
        if !wakes.isEmpty { for wake in wakes { wake() } }
    }

    /// Another response has replaced the published one (`Tiers.moveToBackStore`). Followers that have not looked yet get that one.
    package func republish(_ record: StoredRecord) {
        precondition(isLeader && isResolved, "only a published response is replaced")
        let old = locked { shared.republish(record) }
        withExtendedLifetime(old) {}
    }

    /// Ends the transfer without a response to share: each follower fetches alone. Does nothing if the outcome is known.
    package func abandon() { resolve(.notShared) }

    private func locked<Result>(_ body: () -> Result) -> Result {
        shelves.read(shelves.shardIndex(shared.key)) { _ in body() }
    }
}

/// What a request does that found nothing to serve (RFC 9111 §4, collapsed requests).
package enum Leadership: Sendable {
    /// Fetch the response, and resolve the transfer.
    case lead(Transfer)
    /// Another request is fetching the response.
    case follow(Transfer)
    /// Fetch the response without leading: responses for the key are for one client each (`Transfer.Sharing.refuted`).
    case keptApart
    /// Nobody is fetching the response, and the caller does not lead.
    case nobodyLeads
    /// The newest response changed since the look-up: look it up again.
    case lookAgain
}

/// What the leader and the followers of one transfer share. Protected by the lock of the shard of its key, except `isOutdated`.
final class TransferState: @unchecked Sendable {
    let key: StorageKey
    let keyBytes: [UInt8]
    let isOutdated = Atomic<Bool>(false)
    /// Nil until `settle`. Each access is one step under the lock, so no two overlap: the unchecked access is exclusive.
    var outcome: Transfer.Outcome? { unsafe uncheckedOutcome }
    @exclusivity(unchecked) private var uncheckedOutcome: Transfer.Outcome?
    /// Changed under the lock, in one step as well.
    private var followers: [(ticket: FollowTicket, wake: Wake)] {
        _read { yield unsafe uncheckedFollowers }
        _modify { yield unsafe &uncheckedFollowers }
    }
    @exclusivity(unchecked) private var uncheckedFollowers: [(ticket: FollowTicket, wake: Wake)] = []
    private var lastID: UInt64 = 0
    /// The next one in its chain of the `TransferTable`.
    var next: TransferState?

    init(key: StorageKey, keyBytes: [UInt8]) {
        self.key = key
        self.keyBytes = keyBytes
    }

    var followerCount: Int { followers.count }

    func add(_ wake: Wake, limit: Int) -> FollowTicket? {
        precondition(outcome == nil, "nobody waits for an outcome that is known")
        guard followers.count < limit else { return nil }
        lastID += 1
        followers.append((FollowTicket(id: lastID), wake))
        return FollowTicket(id: lastID)
    }

    /// Returns the wake, which the caller releases without the lock. Returns nil if it was called already.
    func remove(_ ticket: FollowTicket) -> Wake? {
        guard let index = followers.firstIndex(where: { $0.ticket == ticket }) else { return nil }
        return followers.remove(at: index).wake
    }

    /// Returns the outcome that is replaced, to be released without the lock.
    func republish(_ record: StoredRecord) -> Transfer.Outcome? {
        guard case .published = outcome else { return nil }
        defer { unsafe uncheckedOutcome = .published(record) }
        return outcome
    }

    /// Returns the wakes to call, without the lock. Returns none if the outcome was set before.
    func settle(_ outcome: Transfer.Outcome) -> [Wake] {
        guard self.outcome == nil else { return [] }
        unsafe uncheckedOutcome = outcome
        if followers.isEmpty { return [] }
        defer { followers = [] }
        return followers.map(\.wake)
    }
}
