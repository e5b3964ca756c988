import Storage
import Testing

@Suite("Listings: what is stored, how often it was used")
struct ListingTests {
    let tier = MemoryTier(budget: 4 << 20, shards: 8, objectMax: 1 << 20, variantsPerKeyMax: 3)

    @Test func `uses are counted, and the freshened record keeps the count`() throws {
        let record = try #require(tier.store("a", bytes: 10))
        #expect(record.hits == 0)
        for _ in 0..<1000 { tier.touch(record) }
        #expect(record.hits == 1000)
        let fresh = TestRecord("a", body: record.body)
        #expect(tier.replace(record, with: fresh))
        tier.touch(fresh)
        #expect(fresh.hits == 1001)
        let other = try #require(tier.store("a", bytes: 10))
        #expect(other.hits == 0)
    }

    @Test func `a record says when it was stored`() throws {
        let body = try #require(tier.makeBody(expectedLength: 0))
        let record = StoredRecord(
            key: storageKey("a"), keyBytes: [], head: [], body: body, insertedAt: 1_700_000_000)
        #expect(record.insertedAt == 1_700_000_000)
        #expect(TestRecord("a", body: body).insertedAt == 0)
    }

    @Test func `the parts of a listing give every record once`() {
        for index in 0..<200 { tier.store("k\(index % 150)", variant: "\(index / 150)", bytes: 10) }
        var names: [String] = []
        var cursor: RecordCursor?
        var parts = 0
        repeat {
            let part = tier.page(after: cursor)
            names += part.records.compactMap { ($0 as? TestRecord).map { "\($0.name) \($0.variant)" } }
            #expect(part.records.count < 80)
            cursor = part.next
            parts += 1
        } while cursor != nil
        #expect(names.sorted() == (0..<200).map { "k\($0 % 150) \($0 / 150)" }.sorted())
        #expect(parts == 8)
    }

    @Test func `records may be inserted and removed between the parts of a listing`() {
        for index in 0..<100 { tier.store("k\(index)", bytes: 10) }
        var seen: Set<String> = []
        var cursor: RecordCursor?
        repeat {
            let part = tier.page(after: cursor)
            for case let record as TestRecord in part.records {
                #expect(seen.insert(record.name).inserted)
                tier.remove(record)
                tier.store(record.name, variant: "again", bytes: 10)
            }
            cursor = part.next
        } while cursor != nil
        #expect(seen.count == 100)
    }
}
