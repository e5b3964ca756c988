import EventLoop
import Fleet
import Limiting
import Message
import Redis

/// A budget of a bucket in its present window.
struct BudgetState {
    let windowEnd: Int64
    /// In Redis.
    let key: [UInt8]
    var shared: SharedBudget
    /// When Redis last had all that this node knows.
    var settledAt: MonotonicTime?
    /// When the node began to wait for that.
    var since: MonotonicTime
    /// Whether it was reset by a command on this node, and Redis does not know it yet.
    var hasUntoldReset = false
    /// Whether the node is held to its share.
    var isHeldToShare = false

    /// Redis has all that this node knows.
    mutating func settle(_ now: MonotonicTime) {
        settledAt = now
        hasUntoldReset = false
    }
}

/// Budgets: what each node has used stands in Redis, a hash for each budget and window. `SharedBudget` decides; this does what it says.
extension FleetCounting {
    /// How many are compared with Redis in one turn, and of those that nobody uses at the moment.
    private static let exchangesPerTick = 1_024
    private static let idlePerTick = 64
    private static let exchangesUnderWayMax = 2_048

    func enqueueExchange(_ entry: Entry) {
        guard !entry.isWaitingForExchange, rules[entry.account.bucket.rule]?.budget != nil else { return }
        entry.isWaitingForExchange = true
        waitingExchanges.append(entry)
    }

    func tendBudgets(_ now: MonotonicTime) {
        askResets()
        if round.isEmpty { round = entries.values.filter { $0.budget != nil } }
        for entry in round.suffix(FleetCounting.idlePerTick) { enqueueExchange(entry) }
        round.removeLast(min(round.count, FleetCounting.idlePerTick))
        let due = waitingExchanges.prefix(FleetCounting.exchangesPerTick)
        for entry in due {
            entry.isWaitingForExchange = false
            exchange(entry, now)
        }
        waitingExchanges.removeFirst(due.count)
        if budgetsAreAlone { for entry in entries.values { holdToShare(entry, now) } }
    }

    /// Compares a budget with Redis.
    private func exchange(_ entry: Entry, _ now: MonotonicTime) {
        let wall = loop.wallSeconds
        guard let own = entry.account.ownUse(wall: wall) else {
            entry.budget = nil
            return
        }
        guard entry.budget?.windowEnd == own.windowEnd else {
            let isFirst = entry.budget == nil
            begin(entry, own.windowEnd, now)
            // A worker that has just begun the window may not have set its count to zero yet.
            return isFirst ? exchange(entry, now) : enqueueExchange(entry)
        }
        // The reply to the last question, or its failure, is on its way.
        guard let state = entry.budget, !entry.isExchanging else { return }
        guard link.isOpen, exchangesUnderWay < FleetCounting.exchangesUnderWayMax else {
            return holdToShare(entry, now)
        }
        exchangesUnderWay += 1
        entry.isExchanging = true
        link.send([redisWord("HGETALL"), state.key], within: FleetCounting.wait) { [unowned self] result in
            exchangesUnderWay -= 1
            entry.isExchanging = false
            guard let fields = (try? result.get())?.array else { return holdToShare(entry, loop.now) }
            merge(fields, entry, state.key)
        }
    }

    private func begin(_ entry: Entry, _ windowEnd: Int64, _ now: MonotonicTime) {
        entry.budget = BudgetState(
            windowEnd: windowEnd, key: SharedKeys.budget(entry.name, windowEnd: windowEnd, hash: terms.hash),
            shared: SharedBudget(node: terms.node, beganAt: wallMilliseconds), since: now)
    }

    private func merge(_ fields: [RedisReply], _ entry: Entry, _ key: [UInt8]) {
        let wall = loop.wallSeconds
        guard var state = entry.budget, state.key == key, let own = entry.account.ownUse(wall: wall),
            own.windowEnd == state.windowEnd
        else { return }
        let outcome = state.shared.merge(
            reading(fields, entry, key), own: own.bytes, restored: entry.share.restoredBytes)
        // Where Redis takes no writes, the others do not hear of this node, so it goes on within the share that it had at first.
        if !budgetsAreAlone { state.isHeldToShare = false }
        entry.account.correct(
            forgets: outcome.forgets, carries: outcome.carries,
            others: state.isHeldToShare ? entry.share.spentByOthers : state.shared.usedByOthers, of: state.windowEnd,
            wall: wall)
        if outcome.writes.isEmpty, !outcome.writesReset { state.settle(loop.now) }
        entry.budget = state
        write(outcome, entry, state)
    }

    private func reading(_ fields: [RedisReply], _ entry: Entry, _ key: [UInt8]) -> SharedBudget.Reading {
        var reading = SharedBudget.Reading(resetAt: resets[entry.account.bucket.rule] ?? 0)
        for index in stride(from: 0, to: fields.count - 1, by: 2).prefix(SharedBudget.partsMax + 1) {
            guard let field = fields[index].data, let value = fields[index + 1].data,
                let part = UsePart(value, key: key, field: field, hash: terms.hash)
            else {
                figures.withLock { $0.newsRefused += 1 }
                continue
            }
            if field == UsePart.resetField {
                reading.resetAt = max(reading.resetAt, part.generation)
            } else {
                reading.parts[String(decoding: field, as: UTF8.self)] = part
            }
        }
        return reading
    }

    private func write(_ outcome: SharedBudget.Outcome, _ entry: Entry, _ state: BudgetState) {
        var words: [[UInt8]] = []
        for (name, part) in outcome.writes {
            let field = Array(name.utf8)
            words += [field, part.encoded(key: state.key, field: field, hash: terms.hash)]
        }
        if outcome.writesReset {
            let part = UsePart(generation: state.shared.generation, bytes: 0)
            words += [UsePart.resetField, part.encoded(key: state.key, field: UsePart.resetField, hash: terms.hash)]
        }
        guard !words.isEmpty else { return }
        // One command has at most 1,024 words. What is left is written with the next one.
        link.send(
            [redisWord("HSET"), state.key] + words.prefix(1_000), within: FleetCounting.wait
        ) { [unowned self] result in
            guard isTaken(result, .budgets), entry.budget?.key == state.key else { return }
            entry.budget?.settle(loop.now)
        }
        let seconds = SharedBudget.expiry(windowEnd: state.windowEnd, now: loop.wallSeconds)
        link.send([redisWord("EXPIRE"), state.key, Array("\(seconds)".utf8)], within: FleetCounting.wait) { _ in }
    }

    // MARK: alone

    /// Holds a budget to the share of this node, if nothing has been heard of it for too long.
    private func holdToShare(_ entry: Entry, _ now: MonotonicTime) {
        let wall = loop.wallSeconds
        guard let terms = rules[entry.account.bucket.rule]?.budget,
            let own = entry.account.ownUse(wall: wall)
        else { return }
        if entry.budget?.windowEnd != own.windowEnd { begin(entry, own.windowEnd, now) }
        guard let state = entry.budget, !state.isHeldToShare,
            budgetsAreAlone || now.duration(since: state.settledAt ?? state.since) >= FleetCounting.silenceMax
        else { return }
        let others = state.shared.usedByOthers
        let (used, overflow) = own.bytes.addingReportingOverflow(others)
        let share = SharedBudget.share(of: terms.bytes, used: overflow ? .max : used, nodes: nodeCount)
        // As if the others had used all that is not this node's share.
        let rest = terms.bytes - min(terms.bytes, own.bytes)
        entry.budget?.isHeldToShare = true
        entry.account.correct(
            forgets: 0, carries: 0, others: max(others, rest - min(rest, share)), of: own.windowEnd, wall: wall)
    }

    // MARK: resets

    /// A command on this node lets budgets begin anew. On this node they have.
    func reset(_ budget: ByteBudget, of rule: String, _ subject: LimitSubject?) {
        let at = wallMilliseconds
        guard let subject else {
            resets[rule] = max(at, (resets[rule] ?? 0) + 1)
            for entry in entries.values where entry.account.bucket.rule == rule { begin(entry, at: at) }
            return writeReset(of: rule)
        }
        let account = counted.limits.account(of: LimitBucket(rule: rule, subject), now: loop.now.nanoseconds)
        account.begin(budget.window, wall: loop.wallSeconds)
        guard let share = account.share, let entry = entry(of: account, share, loop.now),
            let own = account.ownUse(wall: loop.wallSeconds)
        else { return }
        if entry.budget?.windowEnd != own.windowEnd { begin(entry, own.windowEnd, loop.now) }
        entry.usedAt = loop.now
        begin(entry, at: at)
    }

    private func begin(_ entry: Entry, at time: UInt64) {
        entry.budget?.shared.reset(at: max(time, resets[entry.account.bucket.rule] ?? 0))
        entry.budget?.settledAt = nil
        entry.budget?.hasUntoldReset = true
        entry.budget?.since = loop.now
        entry.budget?.isHeldToShare = false
        entry.account.resetBudget()
        enqueueExchange(entry)
        countSoon()
    }

    private func writeReset(of rule: String) {
        let key = SharedKeys.resets(of: rule, hash: terms.hash)
        let value = UsePart(generation: resets[rule] ?? 0, bytes: 0).encoded(key: key, field: [], hash: terms.hash)
        let seconds = SharedBudget.expiry(windowEnd: .max, now: 0)
        link.send(
            [redisWord("SET"), key, value, redisWord("EX"), Array("\(seconds)".utf8)], within: FleetCounting.wait
        ) { [unowned self] in _ = isTaken($0, .budgets) }
    }

    /// Finds out whether other nodes have reset all budgets of a rule.
    private func askResets() {
        guard link.isOpen, !isAskingResets else { return }
        let rules = rules.filter { $0.value.budget != nil }.keys.prefix(500).sorted()
        guard !rules.isEmpty else { return }
        isAskingResets = true
        let keys = rules.map { SharedKeys.resets(of: $0, hash: terms.hash) }
        link.send([redisWord("MGET")] + keys, within: FleetCounting.wait) { [unowned self] result in
            isAskingResets = false
            guard let values = (try? result.get())?.array, values.count == rules.count else { return }
            for (index, rule) in rules.enumerated() {
                let known = resets[rule] ?? 0
                let said = values[index].data.flatMap {
                    UsePart($0, key: keys[index], field: [], hash: terms.hash)?.generation
                }
                if let said, said > known {
                    resets[rule] = said
                    for entry in entries.values where entry.account.bucket.rule == rule { enqueueExchange(entry) }
                } else if said ?? 0 < known {
                    writeReset(of: rule)
                }
            }
        }
    }
}

extension FleetCounting.Entry {
    /// Whether nothing is known of the budget that would be missed without Redis, or by it.
    func mayBeForgotten(_ wall: Int64) -> Bool {
        guard let budget else { return true }
        guard let own = account.ownUse(wall: wall), own.windowEnd == budget.windowEnd else { return true }
        return budget.shared.isUnused(own: own.bytes) && !budget.hasUntoldReset
    }
}
