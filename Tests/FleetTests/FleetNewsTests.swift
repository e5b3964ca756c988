import Fleet
import Testing

@Suite("Fleet: what nodes tell each other") struct FleetNewsTests {
    private static func news(_ number: UInt64 = 1, run: UInt64 = 7) -> FleetNews {
        var news = FleetNews(run: run, number: number, issuedAt: 1_700_000_000_000)
        news.buckets = [
            FleetNews.Bucket(
                name: BucketName(high: 1, low: 2), requests: 10_000_000, bytes: 5, underWay: 3, connections: .max)
        ]
        news.failures = [FleetNews.Failure(high: .max, low: 4, count: 9, isOfUser: true)]
        news.nonces = [FleetNews.Nonce(issued: 5, number: 6, highest: 200, used: 1 << 127 | 1)]
        return news
    }

    @Test func `news are read as they were written`() {
        #expect(FleetNews(Self.news().encoded(hash: hash), hash: hash) == Self.news())
        var empty = FleetNews(run: 0, number: 0, issuedAt: 0)
        #expect(empty.isEmpty && FleetNews(empty.encoded(hash: hash), hash: hash) == empty)
        empty.buckets = (0..<FleetNews.itemsMax).map { .init(name: BucketName(high: 0, low: UInt64($0))) }
        #expect(FleetNews(empty.encoded(hash: hash), hash: hash) == empty)
    }

    @Test(arguments: [0, 1, FleetNews.debtMax, FleetNews.debtMax + 1, 1 << 53, 1 << 63 - 1, 1 << 63, .max] as [UInt64])
    func `no time in news is longer than two days`(_ time: UInt64) throws {
        var news = FleetNews(run: .max, number: .max, issuedAt: .max)
        news.buckets = [
            FleetNews.Bucket(name: Self.name, requests: time, bytes: time, underWay: .max, connections: .max)
        ]
        let read = try #require(FleetNews(news.encoded(hash: hash), hash: hash))
        #expect(read.buckets[0].requests == min(time, FleetNews.debtMax))
        #expect(read.buckets[0].bytes == min(time, FleetNews.debtMax))
    }

    @Test func `news that somebody changed, cut or wrote without the secret are not`() {
        let bytes = Self.news().encoded(hash: hash)
        #expect(FleetNews(bytes, hash: otherHash) == nil)
        for index in bytes.indices {
            var changed = bytes
            changed[index] ^= 0x10
            #expect(FleetNews(changed, hash: hash) == nil)
            #expect(FleetNews(Array(bytes[..<index]), hash: hash) == nil)
        }
        #expect(FleetNews(bytes + [0], hash: hash) == nil)
    }

    private static let second: UInt64 = 1_000_000_000
    private static let name = BucketName(high: 1, low: 2)

    @Test func `news count once`() {
        var others = OthersUse()
        let rows = [(1, true), (1, false), (3, true), (2, false), (4, true)] as [(UInt64, Bool)]
        for (number, expected) in rows {
            let isNew = others.isNew(Self.news(number), now: 0)
            #expect(isNew == expected, "\(number)")
        }
        let ofAnother = others.isNew(Self.news(1, run: 8), now: 0)
        #expect(ofAnother)
        // Runs are forgotten after ten minutes. Entries that are older than a minute are not read.
        _ = others.sweep(now: 601 * Self.second)
        let isNew = others.isNew(Self.news(1), now: 601 * Self.second)
        #expect(isNew)
    }

    @Test func `what others have let through is paid off with time, and added up`() {
        var others = OthersUse()
        for run in [1, 2] as [UInt64] {
            others.note(.init(name: Self.name, requests: 3 * Self.second, bytes: Self.second), of: run, now: 0)
        }
        #expect(others.sums(of: Self.name, now: 0) == .init(requests: 6 * Self.second, bytes: 2 * Self.second))
        #expect(others.sums(of: Self.name, now: 2 * Self.second) == .init(requests: 4 * Self.second, bytes: 0))
        _ = others.sweep(now: 5 * Self.second)
        #expect(others.count == 1)
        _ = others.sweep(now: 6 * Self.second)
        #expect(others.count == 0)
    }

    @Test func `no news makes anybody wait for longer than two days`() {
        var others = OthersUse()
        for _ in 0..<3 { others.note(.init(name: Self.name, requests: .max, bytes: .max), of: 1, now: 5) }
        #expect(others.sums(of: Self.name, now: 5).requests == 2 * 86_400 * Self.second)
    }

    @Test func `what is under way is what each node said last, for fifteen seconds`() {
        var others = OthersUse()
        others.note(.init(name: Self.name, underWay: 3, connections: 5), of: 1, now: 0)
        others.note(.init(name: Self.name, underWay: 4), of: 2, now: 10 * Self.second)
        #expect(others.sums(of: Self.name, now: 14 * Self.second) == .init(underWay: 7, connections: 5))
        #expect(others.sums(of: Self.name, now: 15 * Self.second) == .init(underWay: 4))
        let changed = others.sweep(now: 15 * Self.second)
        #expect(changed == [Self.name])
        others.note(.init(name: Self.name, underWay: 0), of: 2, now: 16 * Self.second)
        #expect(others.sums(of: Self.name, now: 16 * Self.second) == .init())
        _ = others.sweep(now: 16 * Self.second)
        #expect(others.count == 0)
    }

    @Test func `there is a bound on buckets`() {
        var others = OthersUse(countMax: 2)
        for low in 0..<5 as Range<UInt64> {
            others.note(.init(name: BucketName(high: 0, low: low), underWay: 1), of: 1, now: 0)
        }
        #expect(others.count == 2)
    }
}
