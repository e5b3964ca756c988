import EventLoop
package import Synchronization

/// What a fleet has to do with one bucket: what this node has let through since it told the others, and what they have. All workers use it at once.
package final class LimitShare: Sendable {
    private let news: LimitNews
    /// Whether the node is going to look at the bucket.
    private let isNoted = Atomic(false)
    private let isKnown = Atomic(false)
    /// How long what was let through takes to come back, in nanoseconds.
    private let taken = Atomic<Int64>(0)
    private let paid = Atomic<Int64>(0)
    private let othersUnderWay = Atomic<Int>(0)
    private let othersConnections = Atomic<Int>(0)
    /// Of a budget, in the present window.
    private let othersSpent = Atomic<UInt64>(0)
    /// What comes from the file of budgets, of what this node has used.
    private let restored = Atomic<UInt64>(0)

    init(_ news: LimitNews) { self.news = news }

    // MARK: for workers

    /// Has the node look at the bucket. Called when it has been changed: the node may look at once.
    @inline(__always)
    func touch(_ account: LimitAccount) {
        if !isNoted.load(ordering: .relaxed) { note(account) }
    }

    @inline(never)
    private func note(_ account: LimitAccount) {
        guard news.isHeeded, !isNoted.exchange(true, ordering: .relaxed) else { return }
        news.add(account, isUrgent: !isKnown.exchange(true, ordering: .relaxed))
    }

    /// Into how many shares the bucket is divided: 1 while the others are heard of.
    var shares: UInt64 { news.shares.load(ordering: .relaxed) }

    func noteTaken(_ time: Int64) { taken.wrappingAdd(time, ordering: .relaxed) }

    func notePaid(_ time: Int64, by account: LimitAccount) {
        paid.wrappingAdd(time, ordering: .relaxed)
        touch(account)
    }

    func requestsMax(of limit: Int) -> Int { placesMax(limit, others: othersUnderWay.load(ordering: .relaxed)) }
    func connectionsMax(of limit: Int) -> Int { placesMax(limit, others: othersConnections.load(ordering: .relaxed)) }

    private func placesMax(_ limit: Int, others: Int) -> Int {
        let shares = Int(clamping: self.shares)
        return shares == 1 ? limit - others : max(1, limit / shares)
    }

    package var spentByOthers: UInt64 { othersSpent.load(ordering: .relaxed) }

    func beginWindow() {
        othersSpent.store(0, ordering: .relaxed)
        restored.store(0, ordering: .relaxed)
    }

    func noteRestored(_ bytes: UInt64) { restored.store(bytes, ordering: .relaxed) }

    // MARK: for the node

    /// From here on the next use of the bucket is noted again.
    package func forgetNote(isKnown: Bool = true) {
        // Before the node reads what has changed. Who changes it afterwards notes it again.
        _ = isNoted.exchange(false, ordering: .sequentiallyConsistent)
        if !isKnown { self.isKnown.store(false, ordering: .relaxed) }
    }

    /// What was let through since the last time. A sum below zero, because something was given back, waits for the next time.
    package func takeDebts() -> (requests: UInt64, bytes: UInt64) {
        (LimitShare.take(taken), LimitShare.take(paid))
    }

    /// Whether there is something to tell, though nobody has noted it.
    package var hasDebts: Bool { taken.load(ordering: .relaxed) > 0 || paid.load(ordering: .relaxed) > 0 }

    private static func take(_ sum: borrowing Atomic<Int64>) -> UInt64 {
        let value = sum.load(ordering: .relaxed)
        guard value > 0 else { return 0 }
        sum.wrappingSubtract(value, ordering: .relaxed)
        return UInt64(value)
    }

    package func noteOthers(underWay: Int, connections: Int) {
        othersUnderWay.store(underWay, ordering: .relaxed)
        othersConnections.store(connections, ordering: .relaxed)
    }

    func noteOthers(spent: UInt64) { othersSpent.store(spent, ordering: .relaxed) }

    package var restoredBytes: UInt64 { restored.load(ordering: .relaxed) }
}

/// The buckets that were used since a node told the others. May be used by every thread.
package final class LimitNews: Sendable {
    /// Into how many shares every bucket is divided. More than 1 while the other nodes are not heard of.
    package let shares = Atomic<UInt64>(1)
    private let heeded = Atomic(false)
    private let state = Locked(State())

    private struct State {
        var accounts: [LimitAccount] = []
        var wake: (@Sendable () -> Void)?
        /// Whether the node was woken since it took them.
        var isWoken = false
    }

    package init() {}

    /// Whether a node looks at them.
    var isHeeded: Bool { heeded.load(ordering: .relaxed) }

    /// - Parameter wake: has the node look soon, because a bucket is used that it does not know. Nil: nobody looks any more.
    package func heed(_ wake: (@Sendable () -> Void)?) {
        heeded.store(wake != nil, ordering: .relaxed)
        state.withLock { state in
            state.wake = wake
            if wake == nil { state.accounts = [] }
        }
    }

    func add(_ account: LimitAccount, isUrgent: Bool) {
        let wake = state.withLock { state -> (@Sendable () -> Void)? in
            state.accounts.append(account)
            guard isUrgent, !state.isWoken else { return nil }
            state.isWoken = true
            return state.wake
        }
        wake?()
    }

    package func take() -> [LimitAccount] {
        state.withLock { state in
            defer {
                state.accounts = []
                state.isWoken = false
            }
            return state.accounts
        }
    }
}
