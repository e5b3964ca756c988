import Fleet
import Limiting
import Message
@testable import LimitTables
import Testing

@Suite("limits.rules: the table of buckets is bounded") struct LimitTableTests {
    private static let second: UInt64 = 1_000_000_000

    private func bucket(_ number: UInt32) -> LimitBucket {
        LimitBucket(rule: "each", LimitSubject(client: IPAddress(v4: number)))
    }

    @Test func `a bucket that nobody holds and that is full makes room`() {
        let table = LimitTable(countMax: 2)
        let rate = TokenRate(1, per: .second)
        _ = table.account(of: bucket(1), now: Self.second)
        let used = table.account(of: bucket(2), now: Self.second)
        #expect(used.take(rate, now: Self.second))
        let third = table.account(of: bucket(3), now: Self.second)
        #expect(third.bucket == bucket(3))
        #expect(table.known(bucket(1)) == nil && table.known(bucket(2)) === used)
    }

    @Test func `one that is over its limit is never forgotten`() {
        let table = LimitTable(countMax: 1)
        let rate = TokenRate(1, per: .minute)
        #expect(table.account(of: bucket(1), now: Self.second).take(rate, now: Self.second))
        for number: UInt32 in 2...9 {
            let newcomer = table.account(of: bucket(number), now: Self.second * UInt64(number))
            #expect(newcomer.bucket.subject == .others)
        }
        #expect(table.known(bucket(1))?.take(rate, now: 60 * Self.second) == false)
    }

    @Test func `where all are in use, newcomers of a rule share one bucket`() {
        let table = LimitTable(countMax: 1)
        let first = table.account(of: bucket(1), now: Self.second)
        let second = table.account(of: bucket(2), now: Self.second)
        #expect(second === table.account(of: bucket(3), now: Self.second) && second !== first)
        #expect(table.accounts.count == 2)
    }

    @Test func `a bucket that somebody holds stays, so that nobody has two`() {
        let table = LimitTable(countMax: 1)
        let held = table.account(of: bucket(1), now: Self.second)
        _ = table.account(of: bucket(2), now: 100 * Self.second)
        #expect(table.account(of: bucket(1), now: 200 * Self.second) === held)
    }
}

@Suite("limits.rules: a budget when the clock is set") struct BudgetClockTests {
    /// 2026-11-24T16:30:00Z.
    private static let now: Int64 = 1_795_537_800
    private static let day: Int64 = 86_400
    private let budget = ByteBudget(100, every: .day)
    private let bucket = LimitBucket(rule: "each", .user("ann"))

    private func account() -> LimitAccount { LimitTable().account(of: bucket, now: 0) }

    @Test func `set back by a day, it is not given once more, and is refilled at the next midnight`() {
        let account = account()
        account.spend(budget, 100, wall: Self.now)
        #expect(account.isSpent(budget, wall: Self.now - Self.day))
        #expect(account.windowLeft(wall: Self.now - Self.day) == 27_000_000_000_000)
        #expect(account.isSpent(budget, wall: Self.now - Self.day + 26_999))
        #expect(!account.isSpent(budget, wall: Self.now - Self.day + 27_000))
    }

    @Test func `set forward by a day, the next window begins; set back again, what it has used counts`() {
        let account = account()
        account.spend(budget, 40, wall: Self.now)
        #expect(!account.isSpent(budget, wall: Self.now + Self.day))
        account.spend(budget, 100, wall: Self.now + Self.day)
        #expect(account.isSpent(budget, wall: Self.now))
        #expect(!account.isSpent(budget, wall: Self.now + 27_000))
    }

    @Test func `set back over a restart, what was saved counts in the present window`() {
        let table = LimitTable()
        table.restore([BudgetUse(bucket, windowEnd: Self.now + 27_000, spent: 100)], wall: Self.now - 3 * Self.day)
        let account = table.account(of: bucket, now: 0)
        #expect(account.isSpent(budget, wall: Self.now - 3 * Self.day))
        #expect(!account.isSpent(budget, wall: Self.now - 3 * Self.day + 27_000))
    }

    @Test func `a thread whose clock is a moment behind does not take the window back`() {
        let account = account()
        let midnight = Self.now + 27_000
        account.spend(budget, 100, wall: midnight - 1)
        account.spend(budget, 60, wall: midnight)
        #expect(!account.isSpent(budget, wall: midnight - 1) && !account.isSpent(budget, wall: midnight))
        account.spend(budget, 40, wall: midnight - 5)
        #expect(account.isSpent(budget, wall: midnight))
    }
}

@Suite("limits.rules: numbers of peers at their bounds") struct LimitExtremesTests {
    private static let extremes: [UInt64] = [0, 1, 1 << 53 - 1, 1 << 53, 1 << 63 - 1, 1 << 63, .max - 1, .max]
    private static let times: [Int64] = [.min, .min + 1, -(1 << 53), -1, 0, 1, 1 << 53, .max - 1, .max]
    private let bucket = LimitBucket(rule: "each", .user("ann"))

    private func account() -> LimitAccount { LimitAccount(bucket, LimitTally(), LimitShare(LimitNews())) }

    @Test(arguments: extremes) func `what other nodes owe adds up to two days`(_ debt: UInt64) {
        let (account, now): (_, UInt64) = (account(), 1_000_000_000)
        let rate = TokenRate(1, per: .second)
        for other in Self.extremes {
            account.owe(requests: debt, bytes: other, now: now)
            account.owe(requests: other, bytes: debt, now: now)
        }
        #expect(account.wait(rate, now: now) <= FleetNews.debtMax + 1_000_000_000)
        #expect(account.pay(PacedRate(1), count: 1, now: now) <= now + FleetNews.debtMax)
        // Before the system has run for as long as a bucket may catch up on.
        let early = self.account()
        early.owe(requests: debt, bytes: debt, now: 0)
        #expect(early.isAtRest(now: 0, wall: 0) == (debt == 0))
    }

    @Test(arguments: times) func `a window may end at any time`(_ end: Int64) {
        let account = account()
        account.restore(BudgetUse(bucket, windowEnd: end, spent: .max))
        for time in Self.times {
            let left = account.windowLeft(wall: time)
            #expect((left == nil) == (end == ByteBudget.never))
            #expect(left.map { (1_000_000_000...(1 << 33) * 1_000_000_000).contains($0) } ?? true)
            _ = (account.ownUse(wall: time), account.budgetUse(wall: time), account.isAtRest(now: 0, wall: time))
        }
    }

    @Test(arguments: extremes) func `what a node had used before counts, and never less`(_ carried: UInt64) {
        let budget = ByteBudget(1, every: .total)
        for restored in Self.extremes {
            let account = account()
            account.restore(BudgetUse(bucket, windowEnd: ByteBudget.never, spent: restored))
            account.correct(forgets: 0, carries: carried, others: carried, of: ByteBudget.never, wall: 0)
            account.spend(budget, .max / 4, wall: 0)
            #expect(account.isSpent(budget, wall: 0), "\(restored) and \(carried)")
            account.correct(forgets: .max, carries: 0, others: 0, of: ByteBudget.never, wall: 0)
            #expect(account.ownUse(wall: 0)?.bytes == 0)
        }
    }
}
