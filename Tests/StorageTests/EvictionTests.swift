@testable import Storage
import Testing

@Suite("S3-FIFO")
struct EvictionTests {
    /// Bytes one record of 1000 bytes of body takes, about.
    private static let each = 2048

    private func tier(records: Int) -> MemoryTier {
        MemoryTier(budget: records * Self.each, shards: 1, objectMax: 1 << 20, variantsPerKeyMax: 4)
    }

    struct Row: CustomTestStringConvertible, Sendable {
        let testDescription: String
        /// Names to store; "+a" uses `a`, "*" stores 60 others, and "~" 52: a few more than there is room for.
        let steps: [String]
        let kept: [String]
        let gone: [String]
    }

    static let rows = [
        Row(testDescription: "a one-hit wonder goes", steps: ["a", "*"], kept: [], gone: ["a"]),
        Row(testDescription: "what was used once stays", steps: ["a", "+a", "*"], kept: ["a"], gone: []),
        Row(
            testDescription: "a scan does not hurt what is used", steps: ["a", "+a", "b", "*", "*", "*"], kept: ["a"],
            gone: ["b"]),
        Row(testDescription: "what comes back soon enters main", steps: ["a", "~", "a", "*"], kept: ["a"], gone: []),
        Row(testDescription: "a removed record is no ghost", steps: ["a", "-a", "a", "*"], kept: [], gone: ["a"]),
    ]

    @Test(arguments: rows) func `used records stay, and unused ones are evicted`(_ row: Row) {
        let tier = tier(records: 40)
        var others = 0
        for step in row.steps {
            switch step.first {
            case "+": for record in tier.lookup(String(step.dropFirst())) { tier.touch(record) }
            case "-": for record in tier.lookup(String(step.dropFirst())) { tier.remove(record) }
            case "*", "~":
                for _ in 0..<(step == "*" ? 60 : 52) {
                    others += 1
                    tier.store("other\(others)", bytes: 1000)
                }
            default: tier.store(step, bytes: 1000)
            }
        }
        for name in row.kept { #expect(!tier.lookup(name).isEmpty, "\(name) should have stayed") }
        for name in row.gone { #expect(tier.lookup(name).isEmpty, "\(name) should have gone") }
    }

    @Test func `copies of what other nodes keep take a twentieth of a full memory, however much they are used`() {
        let tier = tier(records: 400)
        for number in 0..<1000 {
            tier.store("own\(number)", bytes: 1000)
            // The owned ones are used as well: otherwise those of them that are new would go first.
            for record in tier.lookup("own\(number)") { tier.touch(record) }
        }
        func count(_ name: String) -> Int { (0..<1000).count { !tier.lookup("\(name)\($0)").isEmpty } }
        let full = count("own")
        for round in 0..<3 {
            for number in 0..<300 {
                if tier.lookup("copy\(number)").isEmpty { tier.store("copy\(number)", bytes: 1000, isCopy: true) }
                for record in tier.lookup("copy\(number)") { for _ in 0...round { tier.touch(record) } }
            }
        }
        let (own, copies) = (count("own"), count("copy"))
        #expect(full > 300 && own >= full * 94 / 100, "\(own) of \(full) are left, and there are \(copies) copies")
        #expect((full / 40...full / 15).contains(copies), "\(copies) beside \(own)")
    }

    @Test func `copies fill a memory that nothing else needs, and a used copy outlives others`() {
        let tier = tier(records: 40)
        tier.store("used", bytes: 1000, isCopy: true)
        for number in 0..<200 {
            for record in tier.lookup("used") { tier.touch(record) }
            tier.store("copy\(number)", bytes: 1000, isCopy: true)
        }
        #expect(!tier.lookup("used").isEmpty)
        #expect((0..<200).count { !tier.lookup("copy\($0)").isEmpty } > 30)
        // What was evicted leaves no ghost: it would displace what this node keeps.
        tier.store("copy0", bytes: 1000, isCopy: true)
        #expect(tier.lookup("copy0").first?.place == .copies)
    }

    @Test func `uses saturate at three`() throws {
        let tier = tier(records: 10)
        let record = try #require(tier.store("a", bytes: 10))
        for expected in [1, 2, 3, 3, 3] as [UInt8] {
            tier.touch(record)
            #expect(record.frequency == expected)
        }
    }

    @Test func `the budget is never exceeded, whatever is stored`() {
        let tier = MemoryTier(budget: 1 << 20, shards: 8, objectMax: 400_000, variantsPerKeyMax: 4)
        var generator = SeededGenerator(seed: 5)
        var stored = 0
        for index in 0..<2000 {
            let length = 1 << Int.random(in: 0...18, using: &generator)
            if tier.store("k\(index)", bytes: length + index % 7) != nil { stored += 1 }
            let now = tier.statistics
            #expect(now.usedBytes + now.spareBytes <= 1 << 20)
        }
        #expect(stored == 2000)
        #expect(tier.statistics.evictions > 1000)
        #expect(tier.statistics.usedBytes > 400_000)
    }

    @Test func `an evicted body counts until its last reader releases it`() throws {
        let tier = MemoryTier(budget: 300_000, shards: 1, objectMax: 200_000, variantsPerKeyMax: 1)
        var reading = tier.store("a", bytes: 100_000)
        #expect(reading != nil)
        tier.store("b", bytes: 150_000)
        tier.store("c", bytes: 150_000)
        #expect(tier.lookup("a").isEmpty)
        #expect(tier.statistics.usedBytes > 250_000)
        #expect(reading?.body.bytes() == pattern(0..<100_000))
        #expect(tier.makeBody(expectedLength: 200_000)?.append(pattern(0..<200_000)) == .full)
        reading = nil
        #expect(tier.store("d", bytes: 200_000) != nil)
    }

    @Test func `eviction skips growing bodies`() throws {
        let tier = tier(records: 20)
        let body = try #require(tier.makeBody(expectedLength: 2000))
        #expect(body.append(pattern(0..<1000)) == .appended)
        #expect(tier.insert(TestRecord("growing", body: body)))
        for index in 0..<100 { #expect(tier.store("k\(index)", bytes: 1000) != nil) }
        #expect(tier.lookup("growing").count == 1)
        #expect(body.append(pattern(1000..<2000)) == .appended)
        #expect(body.finish())
        for index in 100..<200 { tier.store("k\(index)", bytes: 1000) }
        #expect(tier.lookup("growing").isEmpty)
    }

    @Test(arguments: [0, 1, 1000, 262_144, 262_145, 1_000_000], [true, false])
    func `a record that was stored while its body grew gets its final weight at the end`(_ length: Int, isKnown: Bool)
        throws
    {
        let tier = MemoryTier(budget: 8 << 20, shards: 1, objectMax: 4 << 20, variantsPerKeyMax: 1)
        let body = try #require(tier.makeBody(expectedLength: isKnown ? length : nil))
        #expect(tier.insert(TestRecord("a", body: body)))
        if isKnown { #expect(tier.statistics.smallBytes >= length) }
        #expect(body.append(pattern(0..<length)) == .appended)
        #expect(body.finish())
        let record = try #require(tier.lookup("a").first)
        #expect(record.weight == record.currentWeight)
        #expect(tier.statistics.smallBytes == record.weight)
        #expect(abs(tier.statistics.usedBytes - record.weight) < 600)
    }

    @Test func `a large object does not evict used records of its shard`() {
        let tier = MemoryTier(budget: 8 << 20, shards: 8, objectMax: 2 << 20, variantsPerKeyMax: 1)
        for index in 0..<100 { tier.store("hot\(index)", bytes: 10_000).map { tier.touch($0) } }
        for index in 0..<40 { tier.store("large\(index)", bytes: 1 << 20) }
        let kept = (0..<100).count { !tier.lookup("hot\($0)").isEmpty }
        #expect(kept == 100)
    }

    @Test func `lowering the budget evicts records`() {
        let tier = MemoryTier(budget: 1 << 20, shards: 4, objectMax: 100_000, variantsPerKeyMax: 1)
        for index in 0..<300 { tier.store("k\(index)", bytes: 2000) }
        let before = tier.statistics
        #expect(before.recordCount == 300)
        tier.setBudget(200_000)
        #expect(tier.statistics.usedBytes <= 200_000)
        #expect(tier.statistics.recordCount > 20)
        #expect(tier.statistics.budgetBytes == 200_000)
    }

    @Test func `every byte charged is released`() throws {
        let tier = MemoryTier(budget: 4 << 20, shards: 4, objectMax: 2 << 20, variantsPerKeyMax: 3)
        #expect(tier.statistics.usedBytes == 0)
        var generator = SeededGenerator(seed: 11)
        for index in 0..<500 {
            let name = "k\(Int.random(in: 0..<100, using: &generator))"
            if index % 5 == 0, let body = tier.makeBody(expectedLength: nil) {
                _ = body.append(pattern(0..<Int.random(in: 0...400_000, using: &generator)))
                _ = tier.insert(TestRecord(name, variant: "growing", body: body))
                if index % 10 == 0 { body.fail() } else { #expect(body.finish()) }
            } else {
                tier.store(name, variant: "\(index % 4)", bytes: Int.random(in: 0...300_000, using: &generator))
            }
            if index % 7 == 0, let old = tier.lookup(name).first {
                _ = tier.replace(old, with: TestRecord(name, variant: old.variant, body: old.body))
            }
        }
        #expect(tier.statistics.usedBytes > 1 << 20)
        tier.removeAll()
        let now = tier.statistics
        #expect(now.usedBytes == 0)
        #expect(now.recordCount == 0)
        #expect(now.smallBytes == 0)
        #expect(now.mainBytes == 0)
        tier.removeAll()
        #expect(tier.statistics.spareBytes == 0)
    }

    /// Names whose responses are in one shard.
    private static func names(_ prefix: String, inShard index: Int, of tier: MemoryTier) -> some Sequence<String> {
        (0...).lazy.map { "\(prefix)\($0)" }.filter { tier.shelves.shardIndex(storageKey($0)) == index }
    }

    @Test func `what is used makes no room beside a growing body while another shard has what is not used`() throws {
        let tier = MemoryTier(budget: 1 << 20, shards: 2, objectMax: 1 << 20, variantsPerKeyMax: 1)
        let used = Array(Self.names("used", inShard: 0, of: tier).prefix(20))
        for name in used {
            // It comes back after it was evicted, and is in the main queue.
            tier.shelves.forget(try #require(tier.store(name, bytes: 1000)))
            #expect(tier.store(name, bytes: 1000)?.place == .main)
        }
        let body = try #require(tier.makeBody(expectedLength: 600_000))
        #expect(body.append(pattern(0..<500_000)) == .appended)
        let name = try #require(Self.names("growing", inShard: 0, of: tier).first { _ in true })
        #expect(tier.insert(TestRecord(name, body: body)))
        for other in Self.names("other", inShard: 1, of: tier).prefix(1000) {
            #expect(tier.store(other, bytes: 1000) != nil)
        }
        #expect(used.allSatisfy { !tier.lookup($0).isEmpty }, "all that is used is there")
        #expect(tier.statistics.evictions > 500)
        #expect(body.append(pattern(500_000..<600_000)) == .appended && body.finish())
    }

    @Test func `what is used makes room where nothing else can, even in another shard than the fullest`() throws {
        let tier = MemoryTier(budget: 1_150_000, shards: 2, objectMax: 1 << 20, variantsPerKeyMax: 1)
        for name in Self.names("used", inShard: 1, of: tier).prefix(100) {
            tier.shelves.forget(try #require(tier.store(name, bytes: 1000)))
            tier.store(name, bytes: 1000)
        }
        // It takes four pages of 256 KiB, and the last one has no room beside what is used.
        let body = try #require(tier.makeBody(expectedLength: 1_000_000))
        #expect(body.append(pattern(0..<500_000)) == .appended)
        let name = try #require(Self.names("growing", inShard: 0, of: tier).first { _ in true })
        #expect(tier.insert(TestRecord(name, body: body)))
        #expect(body.append(pattern(500_000..<1_000_000)) == .appended)
        #expect(body.finish())
        #expect(tier.statistics.evictions > 0)
    }

    @Test func `what is used makes room where nothing else can`() throws {
        let tier = MemoryTier(budget: 1 << 20, shards: 2, objectMax: 1 << 20, variantsPerKeyMax: 1)
        for index in 0..<200 {
            tier.shelves.forget(try #require(tier.store("used\(index)", bytes: 1000)))
            tier.store("used\(index)", bytes: 1000)
        }
        let body = try #require(tier.makeBody(expectedLength: 700_000))
        #expect(tier.insert(TestRecord("growing", body: body)))
        #expect(body.append(pattern(0..<700_000)) == .appended && body.finish())
    }

    @Test func `keys are remembered for a while even if the main queue is empty`() {
        var ghost = GhostQueue()
        defer { ghost.free() }
        var doomed = Doomed()
        for index in 0..<GhostQueue.countMin { ghost.note(storageKey("\(index)"), limit: 0, into: &doomed) }
        #expect(GhostQueue.countMin >= 100 && (0..<100).count { ghost.take(storageKey("\($0)")) } >= 90)
        doomed.destroy()
    }

    @Test func `the ghost queue remembers as many as it is told, the latest`() {
        var ghost = GhostQueue()
        defer { ghost.free() }
        var doomed = Doomed()
        for index in 0..<1000 { ghost.note(storageKey("\(index)"), limit: 200, into: &doomed) }
        #expect((160...200).contains(ghost.count))
        let tooOld = (0..<800).count { ghost.take(storageKey("\($0)")) }
        #expect(tooOld == 0)
        let taken = [ghost.take(storageKey("999")), ghost.take(storageKey("999"))]
        #expect(taken == [true, false])
        for index in 1000..<1500 { ghost.note(storageKey("\(index)"), limit: 1000, into: &doomed) }
        let remembered = (1000..<1500).count { ghost.take(storageKey("\($0)")) }
        #expect(remembered >= 490)
        doomed.destroy()
    }
}
