@testable import Storage
import Testing

@Suite("Partial body: records, budget, eviction")
struct PartialRecordTests {
    let tier = MemoryTier(budget: 8 << 20, shards: 1, objectMax: 4 << 20, variantsPerKeyMax: 4)

    private func sparse(_ name: String, length: Int, in tier: MemoryTier) throws -> TestRecord {
        let body = try #require(tier.makeSparseBody(length: length))
        let record = TestRecord(name, body: body)
        #expect(tier.insert(record))
        return record
    }

    @Test func `a partial record is found like others, and counts what it holds`() throws {
        let record = try sparse("a", length: 1 << 30, in: tier)
        #expect(tier.lookup("a").first === record)
        let before = tier.statistics
        #expect(record.body.fill(500 << 20..<500 << 20 + 1000))
        let now = tier.statistics
        // One page, the row of segments, one segment; and the record's weight has followed.
        let taken = now.usedBytes - before.usedBytes
        #expect(taken < 64 << 10 + 6 << 10)
        #expect(now.smallBytes - before.smallBytes == taken)
        #expect(record.body.bytes(from: 500 << 20) == pattern(500 << 20..<500 << 20 + 1000))
    }

    @Test func `a completed partial body weighs what it holds, like any other`() throws {
        let record = try sparse("a", length: 200_000, in: tier)
        #expect(record.body.fill(0..<200_000))
        let now = tier.statistics
        #expect(now.smallBytes == now.usedBytes)
        #expect(tier.lookup("a").first?.body.state == .complete)
        tier.removeAll()
    }

    @Test func `a body that broke off weighs what it holds, not what was promised`() throws {
        let body = try #require(tier.makeBody(expectedLength: 2 << 20))
        #expect(tier.insert(TestRecord("a", body: body)))
        #expect(tier.statistics.smallBytes > 2 << 20)
        #expect(body.append(pattern(0..<10)) == .appended)
        #expect(body.makePartial())
        #expect(tier.statistics.smallBytes < 300_000)
        #expect(tier.statistics.smallBytes <= tier.statistics.usedBytes)
    }

    @Test(arguments: [false, true]) func `a freshened record shares the body`(_ isSparse: Bool) throws {
        let body = try #require(isSparse ? tier.makeSparseBody(length: 100) : tier.makeBody(expectedLength: 100))
        let old = TestRecord("a", body: body)
        #expect(tier.insert(old))
        if isSparse { #expect(body.fill(0..<10)) } else { #expect(body.append(pattern(0..<10)) == .appended) }
        let fill = isSparse ? try body.hole(at: 10, limit: 50) : nil
        let new = TestRecord("a", body: body)
        #expect(tier.replace(old, with: new))
        #expect(tier.lookup("a").map(ObjectIdentifier.init) == [ObjectIdentifier(new)])
        if let fill {
            #expect(fill.complete())
            #expect(old.body.fill(50..<100))
        } else {
            #expect(body.append(pattern(10..<60)) == .appended)
            #expect(body.makePartial())
            #expect(new.body.fill(60..<100))
        }
        #expect(new.body.state == .complete)
        #expect(new.body.bytes() == pattern(0..<100))
        #expect(new.weight == new.currentWeight)
        #expect(tier.statistics.smallBytes == new.weight)
    }

    @Test func `a partial record is evicted like others, even while a fill continues`() throws {
        let tier = MemoryTier(budget: 1 << 20, shards: 1, objectMax: 1 << 20, variantsPerKeyMax: 1)
        var record: TestRecord? = try sparse("a", length: 150_000, in: tier)
        let body = try #require(record?.body)
        record = nil
        let fill = try body.hole(at: 0)
        #expect(fill.append(pattern(0..<10_000)) == .appended)
        for index in 0..<100 { tier.store("k\(index)", bytes: 20_000) }
        #expect(tier.lookup("a").isEmpty)
        #expect(fill.complete())
        #expect(body.bytes() == pattern(0..<150_000))
    }

    @Test func `if two fills add the same page at once, one of them does`() throws {
        let tier = MemoryTier(budget: 200_000, shards: 1, objectMax: 1 << 20, variantsPerKeyMax: 1)
        let body = try #require(tier.makeSparseBody(length: 70_000))
        let first = try body.hole(at: 0, limit: 100)
        let second = try body.hole(at: 100, limit: 200)
        do {
            let holder = try #require(tier.makeBody(expectedLength: 60_000))
            #expect(holder.append(pattern(0..<60_000)) == .appended && holder.finish())
            let record = LastWords(body: holder) { #expect(second.complete()) }
            #expect(tier.insert(record))
        }
        #expect(tier.store("b", bytes: 80_000) != nil)
        // Its page takes room, by evicting the one whose end lets the second fill add the same page.
        #expect(first.complete())
        #expect(tier.statistics.recordCount == 0)
        #expect(body.bytes() == pattern(0..<200))
        #expect(tier.statistics.usedBytes < 70_000)
    }

    /// A record that does something when it goes.
    private final class LastWords: StoredRecord, @unchecked Sendable {
        private let say: () -> Void

        init(body: Body, _ say: @escaping () -> Void) {
            self.say = say
            super.init(key: storageKey("last words"), keyBytes: [], head: [], body: body)
        }

        deinit { say() }
    }

    @Test func `if others use the whole budget, a fill takes a little more and then stops`() throws {
        let tier = MemoryTier(budget: 100_000, shards: 1, objectMax: 8 << 20, variantsPerKeyMax: 1)
        let holder = try #require(tier.makeBody(expectedLength: 90_000))
        #expect(holder.append([1]) == .appended)
        let body = try #require(tier.makeSparseBody(length: 4 << 20))
        let fill = try body.hole(at: 0)
        #expect(fill.append(pattern(0..<1 << 20)) == .appended)
        #expect(fill.append([1]) == .full)
        #expect(fill.read([1], hint: 1) == nil)
        #expect(body.extents == [0..<1 << 20])
        #expect(tier.statistics.overdrawn == 18)
        #expect(!fill.finish())
    }

    @Test func `a partial body holds no more bytes than the longest stored body`() throws {
        let record = try sparse("a", length: 64 << 20, in: tier)
        let fill = try record.body.hole(at: 10 << 20)
        var filled = 0
        while fill.append(pattern(0..<65_536)) == .appended { filled += 65_536 }
        #expect(fill.append([1]) == .full)
        #expect((4 << 20) - filled < 100_000)
        #expect(tier.statistics.usedBytes < 4 << 20)
    }

    @Test func `every byte charged is released`() throws {
        var generator = SeededGenerator(seed: 3)
        for round in 0..<300 {
            let name = "k\(Int.random(in: 0..<40, using: &generator))"
            let stored = tier.lookup(name).first
            let length = [1000, 70_000, 700_000, 1 << 33][round % 4]
            let record = try stored ?? sparse(name, length: length, in: tier)
            let end = record.body.expectedLength ?? 0
            let offset = Int.random(in: 0..<end, using: &generator)
            guard case .missing(let fill) = record.body.claim(at: offset, limit: offset + 100_000) else { continue }
            if round % 3 == 0 { fill.shrink(to: offset + 10) }
            #expect(fill.complete())
            if round % 5 == 0 { #expect(tier.replace(record, with: TestRecord(name, body: record.body))) }
            if round % 11 == 0 { tier.remove(record) }
            let now = tier.statistics
            #expect(now.usedBytes + now.spareBytes <= 8 << 20)
        }
        #expect(tier.statistics.usedBytes > 1 << 20)
        tier.removeAll()
        let now = tier.statistics
        #expect(now.smallBytes == 0 && now.mainBytes == 0 && now.recordCount == 0)
        #expect(now.usedBytes == 0)
    }

    @Test func `complete, broken and fragmented bodies release all their memory`() throws {
        do {
            let body = try #require(tier.makeBody(expectedLength: 500_000))
            #expect(body.append(pattern(0..<300_000)) == .appended)
            #expect(tier.insert(TestRecord("broken", body: body)))
            #expect(body.makePartial())
            #expect(try sparse("whole", length: 300_000, in: tier).body.fill(0..<300_000))
            let many = try sparse("many", length: 300_000, in: tier)
            for offset in 0..<100 { #expect(many.body.fill(offset * 3..<offset * 3 + 1)) }
            tier.removeAll()
            #expect(tier.statistics.usedBytes > 500_000)
        }
        tier.removeAll()
        #expect(tier.statistics.usedBytes == 0)
    }

    @Test func `nothing is charged after the last reference is gone`() throws {
        do {
            var fills: [Fill] = []
            for index in 0..<6 {
                let record = try sparse("k\(index)", length: 1 << 20, in: tier)
                #expect(record.body.fill(index * 50_000..<index * 50_000 + 20_000))
                for offset in 0..<30 { #expect(record.body.fill(offset * 1000..<offset * 1000 + 1)) }
                fills.append(try record.body.hole(at: 900_001, limit: 900_100))
                if index % 2 == 0 { #expect(record.body.fill(0..<900_001)) }
            }
            tier.removeAll()
            #expect(tier.statistics.usedBytes > 0)
        }
        tier.removeAll()
        #expect(tier.statistics.usedBytes == 0)
    }
}
