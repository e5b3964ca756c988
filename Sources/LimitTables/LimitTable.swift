import EventLoop
package import Limiting
import Message

/// The buckets of `limits.rules` that are in use, for all workers. May be used by every thread.
///
/// The table is bounded. A bucket that nobody holds and that is full is forgotten, because a new one would be the same; one that is over
/// its limit never is. Where all are in use, newcomers of a rule share one bucket, so that many addresses are no way round a limit.
package final class LimitTable: Sendable {
    private struct State {
        var accounts: [LimitBucket: LimitAccount] = [:]
        /// By the name of the rule. They stay, so that counters never fall.
        var tallies: [String: LimitTally] = [:]
        /// Looking for buckets that can be forgotten takes long, so it is done once a second at most.
        var nextSweep: UInt64 = 0
        /// The figures of the rules that have buckets, by their names.
        var terms: [String: LimitTerms] = [:]
        /// The rules that count on each node of a fleet alone.
        var rulesOfNode: Set<String> = []
    }
    private let state = Locked(State())
    private let countMax: Int
    /// Nil: this process counts alone.
    package let news: LimitNews?

    /// About 200 bytes each.
    static let countMax = 65_536
    private static let sweepInterval: UInt64 = 1_000_000_000

    /// - Parameter news: where a node of a fleet learns which buckets are used.
    package init(countMax: Int = LimitTable.countMax, news: LimitNews? = nil) {
        self.countMax = countMax
        self.news = news
    }

    /// Takes over the rules of a configuration. A bucket that is counted with the fleet from now on, or alone, begins anew but for its budget.
    package func adopt(_ plan: LimitPlan) {
        let rules = plan.rules.filter { $0.shares == nil }
        let wall = WallTime(ticks: readWallTicks()).secondsSinceEpoch
        state.withLock { state in
            state.terms = Dictionary(rules.map { ($0.name, $0.terms) }, uniquingKeysWith: { first, _ in first })
            let rulesOfNode = Set(rules.filter(\.isOfNode).map(\.name))
            let changed = rulesOfNode.symmetricDifference(state.rulesOfNode)
            state.rulesOfNode = rulesOfNode
            for (bucket, account) in state.accounts where changed.contains(bucket.rule) {
                let made = makeAccount(bucket, &state)
                if let use = account.budgetUse(wall: wall) { made.restore(use) }
                state.accounts[bucket] = made
            }
        }
    }

    /// The rules whose figures the nodes of a fleet count together.
    package var sharedRules: [String: LimitTerms] {
        state.withLock { state in state.terms.filter { !state.rulesOfNode.contains($0.key) } }
    }

    /// The account of a bucket. The caller holds it as long as it counts there.
    package func account(of bucket: LimitBucket, now: UInt64) -> LimitAccount {
        state.withLock { state in
            if let known = state.accounts[bucket] { return known }
            if state.accounts.count >= countMax { sweep(&state, now: now) }
            let bucket = state.accounts.count < countMax ? bucket : LimitBucket(rule: bucket.rule, .others)
            if let known = state.accounts[bucket] { return known }
            let account = makeAccount(bucket, &state)
            state.accounts[bucket] = account
            return account
        }
    }

    private func makeAccount(_ bucket: LimitBucket, _ state: inout State) -> LimitAccount {
        let isShared = bucket.subject.isOfFleet && !state.rulesOfNode.contains(bucket.rule)
        return LimitAccount(
            bucket, tally(of: bucket.rule, &state), isShared ? news.map { LimitShare($0) } : nil)
    }

    private func tally(of rule: String, _ state: inout State) -> LimitTally {
        if let known = state.tallies[rule] { return known }
        let tally = LimitTally()
        state.tallies[rule] = tally
        return tally
    }

    private func sweep(_ state: inout State, now: UInt64) {
        guard now >= state.nextSweep else { return }
        state.nextSweep = now + LimitTable.sweepInterval
        let wall = WallTime(ticks: readWallTicks()).secondsSinceEpoch
        let atRest = state.accounts.values.filter { $0.isAtRest(now: now, wall: wall) }.map(\.bucket)
        for bucket in atRest {
            // Taken out, so that the reference in the table does not count.
            guard var account = state.accounts.removeValue(forKey: bucket) else { continue }
            guard isKnownUniquelyReferenced(&account) else {
                state.accounts[bucket] = account
                continue
            }
            tally(of: bucket.rule, &state).keep(bytes: account.usage(nil, now: now).bytes)
        }
    }

    /// What is used of budgets, in windows that have not ended.
    ///
    /// - Parameter wall: seconds since 1970.
    func budgetUses(wall: Int64) -> [BudgetUse] { accounts.compactMap { $0.budgetUse(wall: wall) } }

    /// Takes what was used of budgets before a restart. Windows that have ended are left out.
    func restore(_ uses: [BudgetUse], wall: Int64) {
        for use in uses.prefix(countMax) where use.windowEnd > wall { account(of: use.bucket, now: 0).restore(use) }
    }

    /// What rules have refused and delayed, and what is used of their buckets.
    package func uses(of rules: [String]) -> [LimitRuleUse] {
        state.withLock { state in
            var uses: [String: LimitRuleUse] = [:]
            for rule in rules { uses[rule] = state.tallies[rule]?.use ?? LimitRuleUse() }
            for (bucket, account) in state.accounts { uses[bucket.rule]?.add(account.usage(nil, now: 0)) }
            return rules.map { uses[$0] ?? LimitRuleUse() }
        }
    }

    /// - Parameter subject: nil: all that the rule has a budget for.
    /// - Returns: how many budgets were in use.
    func resetBudgets(of rule: String, _ subject: LimitSubject?, wall: Int64) -> Int {
        let used = accounts.filter { account in
            account.bucket.rule == rule && subject.map { $0 == account.bucket.subject } ?? true
                && account.isBudgetUsed(wall: wall)
        }
        for account in used { account.resetBudget() }
        return used.count
    }

    package var accounts: [LimitAccount] { state.withLock { Array($0.accounts.values) } }

    /// The account of a bucket, if it is in use.
    package func known(_ bucket: LimitBucket) -> LimitAccount? { state.withLock { $0.accounts[bucket] } }
}
