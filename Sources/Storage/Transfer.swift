internal import Synchronization

/// One origin fetch that others may join before its head is known: the leader fetches, the followers wait for the
/// outcome. The leader's handle resolves it. If that handle goes away first, all of them fetch alone.
package final class Transfer: @unchecked Sendable {
    package enum Outcome: Sendable {
        /// The response is stored or being stored; after a 304, the freshened one.
        case published(StoredRecord)
        /// The response may not be shared: each follower fetches alone.
        case notShared
        /// The origin could not be reached or broke off; the code is the leader's to define.
        case failed(code: Int32)
    }

    private let shelves: Shelves
    let shared: TransferState
    package let isLeader: Bool
    /// The outcome is known. The leader's own.
    private var isResolved = false

    init(_ shared: TransferState, _ shelves: Shelves, isLeader: Bool) {
        self.shared = shared
        self.shelves = shelves
        self.isLeader = isLeader
    }

    deinit { if isLeader && !isResolved { abandon() } }

    /// nil: not known yet.
    package var outcome: Outcome? { locked { shared.outcome } }

    /// Wakes once when the outcome is known; from within this call where it is known already. Returns nil where `limit`
    /// others wait already: fetch alone.
    package func follow(_ wake: Wake, limit: Int) -> FollowTicket? {
        var isKnown = false
        let ticket: FollowTicket? = locked {
            isKnown = shared.outcome != nil
            return isKnown ? FollowTicket(id: 0) : shared.add(wake, limit: limit)
        }
        if isKnown { wake() }
        return ticket
    }

    /// Forgets a follower; one that is being woken at this moment may still be called.
    package func cancel(_ ticket: FollowTicket) {
        let forgotten = locked { shared.remove(ticket) }
        withExtendedLifetime(forgotten) {}
    }

    /// How many wait.
    package var followerCount: Int { locked { shared.followerCount } }

    /// What was stored under the key was invalidated or purged after the transfer began. Its response may be older than
    /// that, and must not be stored.
    package var isOutdated: Bool { shared.isOutdated.load(ordering: .acquiring) }

    /// Makes the outcome known and wakes all followers. By the leader, and for `published` after the response is inserted:
    /// later requests look at the cache or lead a transfer of their own. The first outcome stays.
    package func resolve(_ outcome: Outcome) {
        precondition(isLeader, "only the leader knows the outcome")
        if isResolved { return }
        isResolved = true
        shelves.forget(shared)
        for wake in locked({ shared.settle(outcome) }) { wake() }
    }

    /// Ends the transfer without a response to share: each follower fetches alone. No effect where the outcome is known.
    package func abandon() { resolve(.notShared) }

    private func locked<Result>(_ body: () -> Result) -> Result {
        shelves.waiting.withLock(shelves.waiting.index(for: shared), body)
    }
}

/// What a request that found nothing to serve does (RFC 9111 §4, collapsed requests).
package enum Leadership: Sendable {
    /// Fetch, and tell the others.
    case lead(Transfer)
    /// Another request fetches already.
    case follow(Transfer)
    /// The newest response changed since the look-up: look again.
    case lookAgain
}

/// What leader and followers of one transfer share. Under its lock among `Shelves.waiting`.
final class TransferState: @unchecked Sendable {
    let key: StorageKey
    let keyBytes: [UInt8]
    let isOutdated = Atomic<Bool>(false)
    private(set) var outcome: Transfer.Outcome?
    private var followers: [(ticket: FollowTicket, wake: Wake)] = []
    private var lastID: UInt64 = 0

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

    /// Returns the wake, to be released after the lock; nil where it was called already.
    func remove(_ ticket: FollowTicket) -> Wake? {
        guard let index = followers.firstIndex(where: { $0.ticket == ticket }) else { return nil }
        return followers.remove(at: index).wake
    }

    /// Returns the wakes to call; none where it was settled before.
    func settle(_ outcome: Transfer.Outcome) -> [Wake] {
        guard self.outcome == nil else { return [] }
        self.outcome = outcome
        defer { followers = [] }
        return followers.map(\.wake)
    }
}
