import Fleet
package import Limiting
import Message
import Synchronization

/// The state of one bucket, which all workers use at once. Taking a token is one exchange, and needs no lock.
///
/// Times are nanoseconds of the monotonic clock.
package final class LimitAccount: Sendable {
    package let bucket: LimitBucket
    /// That of the rule.
    private let tally: LimitTally
    /// When all tokens are back (`TokenRate`).
    private let full = Atomic<UInt64>(0)
    /// When the next byte is due (`PacedRate`).
    private let due = Atomic<UInt64>(0)
    private let flows = Atomic<Int>(0)
    private let underWay = Atomic<Int>(0)
    private let connections = Atomic<Int>(0)
    private let refused = Atomic<UInt64>(0)
    private let moved = Atomic<UInt64>(0)
    /// Of a budget, in the present window.
    private let spent = Atomic<UInt64>(0)
    /// In seconds since 1970.
    private let windowEnd = Atomic<Int64>(0)
    /// What a fleet has to do with the bucket. Nil: this process counts alone.
    package let share: LimitShare?

    package init(_ bucket: LimitBucket, _ tally: LimitTally, _ share: LimitShare? = nil) {
        self.bucket = bucket
        self.tally = tally
        self.share = share
    }

    /// Whether a new account would be the same.
    ///
    /// - Parameter wall: seconds since 1970.
    func isAtRest(now: UInt64, wall: Int64) -> Bool {
        (spent.load(ordering: .relaxed) == 0 || wall >= windowEnd.load(ordering: .relaxed))
            && full.load(ordering: .relaxed) <= now && due.load(ordering: .relaxed) <= now
            && flows.load(ordering: .relaxed) == 0 && underWay.load(ordering: .relaxed) == 0
            && connections.load(ordering: .relaxed) == 0
    }

    // MARK: requests

    /// Takes a token. Returns false if there is none.
    @inline(__always)
    func take(_ rate: TokenRate, now: UInt64) -> Bool {
        if let share { return take(rate, share, now: now) }
        var seen = full.load(ordering: .relaxed)
        while true {
            guard let next = rate.taking(from: seen, now: now) else { return false }
            let (exchanged, original) = full.compareExchange(expected: seen, desired: next, ordering: .relaxed)
            if exchanged { return true }
            seen = original
        }
    }

    /// Takes back a token that was taken for a request which another limit refuses, or which is decided about once more.
    func giveBack(_ rate: TokenRate) {
        if let share { return giveBack(rate, share) }
        full.wrappingSubtract(rate.step, ordering: .relaxed)
    }

    package func wait(_ rate: TokenRate, now: UInt64) -> UInt64 {
        rate.wait(full: full.load(ordering: .relaxed), now: now, shares: share?.shares ?? 1)
    }

    /// Takes a place among the requests under way. Returns false if `limit` are taken.
    func enter(limit: Int) -> Bool {
        guard let share else { return LimitAccount.enter(underWay, limit: limit) }
        defer { share.touch(self) }
        return LimitAccount.enter(underWay, limit: share.requestsMax(of: limit))
    }

    func leave() {
        underWay.wrappingSubtract(1, ordering: .relaxed)
        share?.touch(self)
    }

    @inline(__always)
    func hasRoom(limit: Int) -> Bool {
        underWay.load(ordering: .relaxed) < (share.map { $0.requestsMax(of: limit) } ?? limit)
    }

    func noteRefusal(by figure: LimitExcess.Figure) {
        refused.wrappingAdd(1, ordering: .relaxed)
        tally.countRefusal(by: figure)
    }

    // MARK: connections

    func connect(limit: Int) -> Bool {
        guard let share else { return LimitAccount.enter(connections, limit: limit) }
        defer { share.touch(self) }
        return LimitAccount.enter(connections, limit: share.connectionsMax(of: limit))
    }

    func noteRefusedConnection() {
        refused.wrappingAdd(1, ordering: .relaxed)
        tally.countRefusedConnection()
    }

    func disconnect() {
        connections.wrappingSubtract(1, ordering: .relaxed)
        share?.touch(self)
    }

    private static func enter(_ count: borrowing Atomic<Int>, limit: Int) -> Bool {
        guard count.wrappingAdd(1, ordering: .relaxed).oldValue < limit else {
            count.wrappingSubtract(1, ordering: .relaxed)
            return false
        }
        return true
    }

    // MARK: bytes

    func beginFlow() { flows.wrappingAdd(1, ordering: .relaxed) }
    func endFlow() { flows.wrappingSubtract(1, ordering: .relaxed) }
    func quantity(_ rate: PacedRate) -> Int { rate.quantity(flows: flows.load(ordering: .relaxed)) }

    /// Pays for bytes.
    ///
    /// - Parameter overdrawn: bytes that were moved without having been paid for. They are paid first.
    /// - Returns: from when on the bytes may be moved.
    @discardableResult
    func pay(_ rate: PacedRate, count: Int, overdrawn: Int = 0, now: UInt64) -> UInt64 {
        let shares = share?.shares ?? 1
        var seen = due.load(ordering: .relaxed)
        while true {
            let begin = rate.start(due: seen, now: now)
            let change = rate.time(of: abs(overdrawn)) &* shares
            let start = overdrawn >= 0 ? begin &+ change : begin - min(begin, change)
            let next = start &+ rate.time(of: count) &* shares
            let (exchanged, original) = due.compareExchange(expected: seen, desired: next, ordering: .relaxed)
            if exchanged {
                share?.notePaid(Int64(truncatingIfNeeded: next &- begin), by: self)
                return start
            }
            seen = original
        }
    }

    @inline(__always)
    func mayMove(_ rate: PacedRate, now: UInt64) -> Bool { rate.mayMove(due: due.load(ordering: .relaxed), now: now) }

    /// An answer or a tunnel has to wait for its rate.
    func noteDelay() { tally.countDelay() }

    func note(moved count: Int) { moved.wrappingAdd(UInt64(count), ordering: .relaxed) }

    // MARK: budgets

    /// Begins the window of a time, if it has not begun. Bytes that another thread counts at this very moment may belong to either.
    @inline(__always)
    private func turn(_ window: ByteBudget.Window, wall: Int64) {
        let end = windowEnd.load(ordering: .relaxed)
        switch window.turn(from: end, at: wall) {
        case .stays: return
        case .begins(let next):
            guard windowEnd.compareExchange(expected: end, desired: next, ordering: .relaxed).exchanged else { return }
            spent.store(0, ordering: .relaxed)
            share?.beginWindow()
        case .recedes(let next):
            _ = windowEnd.compareExchange(expected: end, desired: next, ordering: .relaxed)
        }
    }

    func spend(_ budget: ByteBudget, _ count: Int, wall: Int64) {
        turn(budget.window, wall: wall)
        spent.wrappingAdd(UInt64(count), ordering: .relaxed)
        share?.touch(self)
    }

    @inline(__always)
    package func isSpent(_ budget: ByteBudget, wall: Int64) -> Bool {
        turn(budget.window, wall: wall)
        guard let share else { return spent.load(ordering: .relaxed) >= budget.bytes }
        share.touch(self)
        return spentByAll >= budget.bytes
    }

    /// What all nodes have used of the present window, as far as this one knows.
    private var spentByAll: UInt64 {
        let (sum, overflow) = spent.load(ordering: .relaxed).addingReportingOverflow(share?.spentByOthers ?? 0)
        return overflow ? .max : sum
    }

    /// In nanoseconds. Nil: the window does not end.
    package func windowLeft(wall: Int64) -> UInt64? {
        let end = windowEnd.load(ordering: .relaxed)
        guard end != ByteBudget.never else { return nil }
        // A window that was restored may end at any time. 2³³ s are 272 years.
        return UInt64(min(max(1, end.saturatingSubtract(wall)), 1 << 33)) * 1_000_000_000
    }

    /// Nothing of the budget is used any more. What is under way goes on counting.
    package func resetBudget() {
        spent.store(0, ordering: .relaxed)
        share?.beginWindow()
    }

    /// Whether anything is used of the present window, on any node.
    func isBudgetUsed(wall: Int64) -> Bool { spentByAll > 0 && wall < windowEnd.load(ordering: .relaxed) }

    /// Nil if nothing is used of the present window.
    func budgetUse(wall: Int64) -> BudgetUse? {
        let (spent, end) = (spent.load(ordering: .relaxed), windowEnd.load(ordering: .relaxed))
        return spent == 0 || wall >= end ? nil : BudgetUse(bucket, windowEnd: end, spent: spent)
    }

    func restore(_ use: BudgetUse) {
        windowEnd.store(use.windowEnd, ordering: .relaxed)
        // Half of what it can count: what is spent from now on is added.
        let restored = min(use.spent, .max / 2)
        spent.store(restored, ordering: .relaxed)
        share?.noteRestored(restored)
    }

    // MARK: seen from outside

    package struct Usage: Sendable, Equatable {
        package let bucket: LimitBucket
        package var underWay = 0
        package var connections = 0
        /// Requests and connections, since the bucket is in use.
        package var refused: UInt64 = 0
        /// Bytes of bodies and tunnels towards clients, since the bucket is in use.
        package var bytes: UInt64 = 0
        /// Bytes of a budget that are used of the present window, by all nodes of a fleet.
        package var spent: UInt64 = 0
        /// Tokens that are left. Nil: not limited.
        package var tokens: UInt64?
    }

    /// - Parameter terms: those of the rule; nil if it is there no more.
    package func usage(_ terms: LimitTerms?, now: UInt64) -> Usage {
        Usage(
            bucket: bucket, underWay: underWay.load(ordering: .relaxed),
            connections: connections.load(ordering: .relaxed), refused: refused.load(ordering: .relaxed),
            bytes: moved.load(ordering: .relaxed), spent: spentByAll,
            tokens: terms?.requests?.left(
                full: full.load(ordering: .relaxed), now: now, shares: share?.shares ?? 1))
    }
}

// In a fleet. What the node does here, it does on its own thread.
extension LimitAccount {
    private func take(_ rate: TokenRate, _ share: LimitShare, now: UInt64) -> Bool {
        defer { share.touch(self) }
        let shares = share.shares
        var seen = full.load(ordering: .relaxed)
        while true {
            guard let next = rate.taking(from: seen, now: now, shares: shares) else { return false }
            let (exchanged, original) = full.compareExchange(expected: seen, desired: next, ordering: .relaxed)
            if exchanged {
                share.noteTaken(Int64(truncatingIfNeeded: rate.step))
                return true
            }
            seen = original
        }
    }

    private func giveBack(_ rate: TokenRate, _ share: LimitShare) {
        full.wrappingSubtract(rate.step(shares: share.shares), ordering: .relaxed)
        share.noteTaken(-Int64(truncatingIfNeeded: rate.step))
    }

    /// Other nodes have let requests and bytes through, which take so many nanoseconds to come back.
    package func owe(requests: UInt64, bytes: UInt64, now: UInt64) {
        if requests > 0 { LimitAccount.owe(full, requests, from: now) }
        if bytes > 0 { LimitAccount.owe(due, bytes, from: now - min(now, PacedRate.credit)) }
    }

    /// News add up to no more than `FleetNews.debtMax` from `least` on.
    private static func owe(_ time: borrowing Atomic<UInt64>, _ debt: UInt64, from least: UInt64) {
        let most = least &+ FleetNews.debtMax
        var seen = time.load(ordering: .relaxed)
        while true {
            let owed = min(max(seen, least) &+ min(debt, FleetNews.debtMax), most)
            let (exchanged, original) = time.compareExchange(
                expected: seen, desired: max(seen, owed), ordering: .relaxed)
            if exchanged { return }
            seen = original
        }
    }

    /// Requests and connections of this node.
    package var places: (underWay: Int, connections: Int) {
        (max(0, underWay.load(ordering: .relaxed)), max(0, connections.load(ordering: .relaxed)))
    }

    /// The window that has begun, and what this node has used of it. Nil: there is none now.
    package func ownUse(wall: Int64) -> (windowEnd: Int64, bytes: UInt64)? {
        let end = windowEnd.load(ordering: .relaxed)
        return wall < end ? (end, spent.load(ordering: .relaxed)) : nil
    }

    /// Begins the present window, if nobody has.
    package func begin(_ window: ByteBudget.Window, wall: Int64) { turn(window, wall: wall) }

    /// Corrects what this node has used, and says what the others have. Does nothing if the window has ended, or is about to.
    package func correct(forgets: UInt64, carries: UInt64, others: UInt64, of end: Int64, wall: Int64) {
        guard windowEnd.load(ordering: .relaxed) == end, wall < end.saturatingSubtract(1), let share else { return }
        if carries > 0 {
            // No more than half of what it can count, as in `restore`.
            let most: UInt64 = .max / 2
            spent.wrappingAdd(min(carries, most - min(most, spent.load(ordering: .relaxed))), ordering: .relaxed)
        }
        if forgets > 0 { spent.wrappingSubtract(min(forgets, spent.load(ordering: .relaxed)), ordering: .relaxed) }
        share.noteOthers(spent: others)
    }
}
