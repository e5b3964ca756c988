import Limiting
import Message
@testable import Server
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
