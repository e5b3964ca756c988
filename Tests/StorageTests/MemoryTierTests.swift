import Storage
import Testing

@Suite("Memory tier: records by key")
struct MemoryTierTests {
    let tier = MemoryTier(budget: 4 << 20, shards: 4, objectMax: 1 << 20, variantsPerKeyMax: 3)

    @Test func `exactly the stored records are found`() throws {
        let record = try #require(tier.store("a", bytes: 100))
        #expect(tier.lookup("a").map(ObjectIdentifier.init) == [ObjectIdentifier(record)])
        #expect(tier.newest("a") === record)
        #expect(tier.lookup("b").isEmpty)
        #expect(tier.newest("b") == nil)
        #expect(record.body.bytes() == pattern(0..<100))
    }

    @Test func `a hash alone never finds a record: keys are compared`() throws {
        let record = try #require(tier.store("a", bytes: 1))
        #expect(tier.find("x", under: record.key).isEmpty)
        #expect(tier.find("ab", under: record.key).isEmpty)
        let body = try #require(tier.makeBody(expectedLength: 0))
        #expect(body.finish())
        let twin = StoredRecord(key: record.key, keyBytes: Array("x".utf8), head: [], body: body)
        #expect(tier.insert(twin))
        #expect(tier.find("x", under: record.key).first === twin)
        #expect(tier.lookup("a").first === record)
        #expect(tier.newest("ab", under: record.key) == nil)
        #expect(tier.newest("x", under: record.key) === twin)
        #expect(tier.invalidate("a") == 1)
        #expect(tier.newest("a") == nil)
        #expect(tier.find("x", under: record.key).first === twin)
    }

    @Test func `variants are listed newest first, and the oldest are removed`() {
        for variant in ["1", "2", "3", "4"] { tier.store("a", variant: variant, bytes: 10) }
        #expect(tier.lookup("a").map(\.variant) == ["4", "3", "2"])
        #expect(tier.newest("a") === tier.lookup("a").first)
        #expect(tier.statistics.recordCount == 3)
    }

    @Test func `the same variant is replaced`() throws {
        tier.store("a", variant: "1", bytes: 10)
        tier.store("a", variant: "2", bytes: 10)
        let newer = try #require(tier.store("a", variant: "1", bytes: 20))
        #expect(tier.lookup("a").map(\.variant) == ["1", "2"])
        #expect(tier.lookup("a").first === newer)
        #expect(tier.newest("a") === newer)
        #expect(tier.statistics.recordCount == 2)
    }

    @Test func `inserting a record twice stores it once`() throws {
        let record = try #require(tier.store("a", bytes: 10))
        let used = tier.statistics.usedBytes
        #expect(tier.insert(record))
        #expect(tier.lookup("a").count == 1)
        #expect(tier.statistics.usedBytes == used)
    }

    @Test func `a freshened record replaces the old one and keeps its body`() throws {
        let old = try #require(tier.store("a", variant: "1", bytes: 10))
        tier.store("a", variant: "2", bytes: 10)
        let new = TestRecord("a", variant: "1", body: old.body)
        #expect(tier.replace(old, with: new))
        #expect(tier.lookup("a").map(ObjectIdentifier.init).first == ObjectIdentifier(new))
        #expect(tier.lookup("a").count == 2)
        #expect(!tier.replace(old, with: TestRecord("a", variant: "1", body: old.body)))
        #expect(tier.statistics.recordCount == 2)
    }

    @Test func `a record is replaced while its body grows, and is counted whole at the end`() throws {
        let body = try #require(tier.makeBody(expectedLength: nil))
        #expect(body.append(pattern(0..<10)) == .appended)
        let old = TestRecord("a", body: body)
        #expect(tier.insert(old))
        let new = TestRecord("a", body: body)
        #expect(tier.replace(old, with: new))
        #expect(body.append(pattern(10..<100_000)) == .appended)
        #expect(body.finish())
        #expect(tier.lookup("a").first === new)
        #expect(new.body.bytes() == pattern(0..<100_000))
        #expect(tier.statistics.smallBytes > 100_000)
    }

    @Test func `remove takes one variant, invalidate takes all`() throws {
        let first = try #require(tier.store("a", variant: "1", bytes: 10))
        tier.store("a", variant: "2", bytes: 10)
        tier.remove(first)
        tier.remove(first)
        #expect(tier.lookup("a").map(\.variant) == ["2"])
        tier.store("a", variant: "1", bytes: 10)
        #expect(tier.invalidate("a") == 2)
        #expect(tier.invalidate("a") == 0)
        #expect(tier.lookup("a").isEmpty)
    }

    @Test func `a record is visible while its body grows, and gone when its transfer failed`() throws {
        let body = try #require(tier.makeBody(expectedLength: 100))
        let record = TestRecord("a", body: body)
        #expect(tier.insert(record))
        #expect(tier.lookup("a").first?.body.state == .growing)
        body.fail()
        tier.remove(record)
        #expect(tier.lookup("a").isEmpty)
        #expect(!tier.insert(record))
    }

    @Test func `a purge of many removes all of them, in portions`() {
        for index in 0..<3000 { tier.store("host\(index % 3)/\(index)", bytes: 10) }
        #expect(tier.purge(dryRun: true) { _ in true }.records == 3000)
        #expect(tier.purge(dryRun: false) { ($0 as? TestRecord)?.name.hasPrefix("host1/") == true }.records == 1000)
        #expect(tier.statistics.recordCount == 2000)
        #expect(tier.purge(dryRun: false) { _ in true }.records == 2000)
        #expect(tier.statistics.recordCount == 0)
    }

    @Test func `a purge gives away what it removed, in portions`() {
        for index in 0..<1000 { tier.store("host\(index)", bytes: 10) }
        var removed: [[[StoredRecord]]] = []
        let purged = tier.purge(dryRun: false, free: { removed.append($0) }, where: { _ in true })
        #expect(purged.records == 1000)
        #expect(tier.statistics.recordCount == 0)
        #expect(removed.map { $0.joined().count }.reduce(0, +) == 1000)
        #expect(removed.allSatisfy { $0.joined().count <= 256 })
        let held = tier.statistics.usedBytes
        removed = []
        #expect(tier.statistics.usedBytes < held)
    }

    @Test func `a purge removes what the condition selects, and a dry run only counts`() {
        for index in 0..<50 { tier.store("host\(index % 2)/\(index)", bytes: 1000) }
        let dry = tier.purge(dryRun: true) { ($0 as? TestRecord)?.name.hasPrefix("host1/") == true }
        #expect(dry.records == 25)
        #expect(dry.bytes > 25_000)
        #expect(tier.statistics.recordCount == 50)
        let wet = tier.purge(dryRun: false) { ($0 as? TestRecord)?.name.hasPrefix("host1/") == true }
        #expect(wet == dry)
        var names: [String] = []
        tier.forEach { names.append(($0 as? TestRecord)?.name ?? "?") }
        #expect(names.count == 25)
        #expect(names.allSatisfy { $0.hasPrefix("host0/") })
    }

    @Test(arguments: 0..<8) func `any order of operations agrees with a dictionary`(_ seed: Int) throws {
        let tier = MemoryTier(budget: 64 << 20, shards: 2, objectMax: 1 << 20, variantsPerKeyMax: 8)
        var model: [String: [TestRecord]] = [:]
        var generator = SeededGenerator(seed: UInt64(seed))
        for _ in 0..<3000 {
            let name = "k\(Int.random(in: 0..<150, using: &generator))"
            switch Int.random(in: 0..<10, using: &generator) {
            case 0...4:
                let variant = "\(Int.random(in: 0..<3, using: &generator))"
                let record = try #require(tier.store(name, variant: variant, bytes: 8))
                model[name] = [record] + (model[name] ?? []).filter { $0.variant != variant }
            case 5...6:
                guard let record = model[name]?.randomElement(using: &generator) else { break }
                tier.remove(record)
                model[name]?.removeAll { $0 === record }
            case 7:
                #expect(tier.invalidate(name) == (model[name] ?? []).count)
                model[name] = []
            case 8:
                guard let old = model[name]?.randomElement(using: &generator) else { break }
                let new = TestRecord(name, variant: old.variant, body: old.body)
                #expect(tier.replace(old, with: new))
                model[name] = [new] + (model[name] ?? []).filter { $0 !== old }
            default:
                #expect(tier.lookup(name).map(ObjectIdentifier.init) == (model[name] ?? []).map(ObjectIdentifier.init))
            }
        }
        for (name, records) in model {
            #expect(tier.lookup(name).map(ObjectIdentifier.init) == records.map(ObjectIdentifier.init))
        }
        #expect(tier.statistics.recordCount == model.values.map(\.count).reduce(0, +))
    }
}
