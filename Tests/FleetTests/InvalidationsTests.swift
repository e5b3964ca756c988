import Testing

@testable import Fleet

@Suite("Fleet: what unsafe requests have invalidated, on its way to the others") struct InvalidationsTests {
    private typealias Log = PurgeLog<String>

    /// Has a reference, so that expectations can call what changes it.
    private final class Keys {
        var value: Invalidations

        init(_ value: Invalidations = Invalidations()) { self.value = value }

        var waitingCount: Int { value.waitingCount }
        func add(_ key: [UInt8], wasStored: Bool) -> Bool { value.add(key, wasStored: wasStored) }
        func wasStored(_ key: [UInt8]) { value.wasStored(key) }
        func nextAt(now: UInt64) -> UInt64? { value.nextAt(now: now) }
        func take(now: UInt64) -> [[UInt8]] { value.take(now: now) }
        func sent(as id: StreamID, _ log: Log) { value.sent(as: id, log) }
        func refused() { value.refused() }
        func settle(_ log: Log) { value.settle(log) }
        func areUnderWay(for key: [UInt8]) -> Bool { value.areUnderWay(for: key) }
    }

    private static let second: UInt64 = 1_000_000_000
    private static let epoch = StreamEpoch([1])!

    private static func key(_ number: Int, length: Int = 0) -> [UInt8] {
        Array("http://a.test/\(number)".utf8) + [UInt8](repeating: 0x78, count: length)
    }

    private static func id(_ number: UInt64) -> StreamID { StreamID(milliseconds: number, sequence: 0) }

    private static func log(through number: UInt64) -> Log {
        var log = Log()
        log.begin(StreamState(epoch: epoch, first: nil, last: .zero, maxDeleted: .zero), isTrimmed: false)
        log.pass(id(number))
        return log
    }

    @Test func `the first goes at once, those of a second go together`() {
        let keys = Keys()
        #expect(keys.nextAt(now: 5) == nil && keys.take(now: 5).isEmpty)
        #expect(keys.add(Self.key(1), wasStored: true))
        #expect(keys.nextAt(now: 5) == 5 && keys.take(now: 5) == [Self.key(1)])
        for number in 2...3 { #expect(keys.add(Self.key(number), wasStored: true)) }
        #expect(keys.nextAt(now: 6) == nil, "one is going")
        keys.sent(as: Self.id(1), Self.log(through: 0))
        #expect(keys.nextAt(now: 6) == 5 + Self.second && keys.take(now: 4 + Self.second).isEmpty)
        #expect(keys.take(now: 5 + Self.second) == [Self.key(2), Self.key(3)])
    }

    @Test func `where nothing was stored, alone every ten seconds, or with others`() {
        let keys = Keys()
        #expect(keys.add(Self.key(1), wasStored: false))
        #expect(keys.take(now: 0) == [Self.key(1)])
        keys.sent(as: Self.id(1), Self.log(through: 0))
        #expect(keys.add(Self.key(2), wasStored: false) && keys.add(Self.key(3), wasStored: false))
        #expect(keys.nextAt(now: 1) == 10 * Self.second && keys.take(now: 9 * Self.second).isEmpty)
        #expect(keys.add(Self.key(4), wasStored: true))
        #expect(keys.take(now: 9 * Self.second) == [Self.key(4), Self.key(2), Self.key(3)])
    }

    @Test func `what turns out to have been stored goes sooner`() {
        for isFoundInRedis in [true, false] {
            let keys = Keys()
            #expect(keys.add(Self.key(0), wasStored: true) && !keys.take(now: 0).isEmpty)
            keys.sent(as: Self.id(1), Self.log(through: 0))
            #expect(keys.add(Self.key(1), wasStored: false))
            if isFoundInRedis { keys.wasStored(Self.key(1)) } else { _ = keys.add(Self.key(1), wasStored: true) }
            keys.wasStored(Self.key(7))
            #expect(keys.waitingCount == 1 && keys.take(now: Self.second) == [Self.key(1)])
        }
    }

    @Test func `a key that waits goes once, one that is going goes again`() {
        let keys = Keys()
        for _ in 0..<3 { #expect(keys.add(Self.key(1), wasStored: true)) }
        #expect(keys.waitingCount == 1 && keys.take(now: 0) == [Self.key(1)])
        #expect(keys.add(Self.key(1), wasStored: true) && keys.waitingCount == 1)
        keys.refused()
        #expect(keys.waitingCount == 1 && keys.take(now: Self.second) == [Self.key(1)])
        keys.refused()
        #expect(keys.take(now: 2 * Self.second) == [Self.key(1)], "what was refused goes with the next entry")
    }

    @Test func `an entry is short, and a long key goes alone`() {
        let keys = Keys()
        for number in 0..<100 { #expect(keys.add(Self.key(number, length: 100), wasStored: true)) }
        let first = keys.take(now: 0)
        #expect((2...40).contains(first.count) && first.reduce(0) { $0 + $1.count + 1 } <= Invalidations.bytesPerEntry)
        #expect(keys.waitingCount == 100 - first.count)
        let long = Keys()
        #expect(long.add(Self.key(1, length: 10_000), wasStored: true) && long.add(Self.key(2), wasStored: true))
        #expect(long.take(now: 0) == [Self.key(1, length: 10_000)])
        #expect(!long.add(Self.key(1, length: 12 << 10), wasStored: true) && !long.add([], wasStored: true))
        #expect(!long.add(Array("a\nb".utf8), wasStored: true))
    }

    @Test func `too many are dropped, and those of which nothing was stored are the first`() {
        let keys = Keys()
        for number in 0..<Invalidations.keysMax { #expect(keys.add(Self.key(number), wasStored: false)) }
        #expect(!keys.add(Self.key(-1), wasStored: false) && keys.waitingCount == Invalidations.keysMax)
        for number in 1...Invalidations.keysMax {
            #expect(!keys.add(Self.key(-number), wasStored: true), "it takes the place of another one")
            #expect(keys.areUnderWay(for: Self.key(-number)))
        }
        #expect(!keys.areUnderWay(for: Self.key(0)) && keys.waitingCount == Invalidations.keysMax)
        #expect(!keys.add(Self.key(-5000), wasStored: true) && !keys.areUnderWay(for: Self.key(-5000)))
    }

    @Test func `a key is under way until the log has it, or has begun anew`() {
        let keys = Keys()
        #expect(keys.add(Self.key(1), wasStored: true) && keys.areUnderWay(for: Self.key(1)))
        _ = keys.take(now: 0)
        #expect(keys.areUnderWay(for: Self.key(1)))
        let log = Self.log(through: 9)
        keys.sent(as: Self.id(10), log)
        keys.settle(log)
        #expect(keys.areUnderWay(for: Self.key(1)) && !keys.areUnderWay(for: Self.key(2)))
        let anew = Keys(keys.value)
        keys.settle(Self.log(through: 10))
        #expect(!keys.areUnderWay(for: Self.key(1)))
        var begun = log
        begun.begin(StreamState(epoch: Self.epoch, first: nil, last: .zero, maxDeleted: .zero), isTrimmed: false)
        anew.settle(begun)
        #expect(!anew.areUnderWay(for: Self.key(1)))
    }

    // MARK: the entry

    @Test func `an entry says the keys, and whose they are`() {
        let all = InvalidatedKeys(run: "5d3ac01f", keys: [Self.key(1), [0xFF, 0x20]])
        #expect(InvalidatedKeys(purge: all.bytes) == all)
        #expect(all.bytes.starts(with: "invalidates 5d3ac01f\nhttp://a.test/1\n".utf8))
        let long = InvalidatedKeys(run: "5d3ac01f", keys: [Self.key(1, length: 12_000)])
        #expect(PurgeEntry(node: "n", number: 1, issuedAt: 0, purge: long.bytes) != nil, "it fits")
    }

    @Test(arguments: [
        "", "{\"all\":true,\"soft\":true}", "invalidates", "invalidates ", "invalidates 1f", "invalidates 1f\n",
        "invalidates 1f\na\n", "invalidates 1f\n\na", "invalidates 1f\n" + String(repeating: "x", count: 12_289),
    ])
    func `a purge of another kind names no keys`(_ text: String) {
        #expect(InvalidatedKeys(purge: Array(text.utf8)) == nil)
    }
}
