import Testing

@testable import Storage

/// The table of a shard: extendible hashing, in segments of at most 511 slots.
@Suite struct RecordTableTests {
    let tier = MemoryTier(budget: 256 << 20, shards: 1, objectMax: 1 << 20, variantsPerKeyMax: 4)

    /// A table, its records by name, and what it should have.
    private struct Room {
        var table = RecordTable()
        var expected: [String: TestRecord] = [:]

        func find(_ record: TestRecord) -> StoredRecord? {
            unsafe record.keyBytes.withUnsafeBytes { unsafe table.newest(record.key, $0) }
        }

        mutating func set(_ variants: [TestRecord], of record: TestRecord) {
            var doomed = Doomed()
            table.set(variants, record.key, record.keyBytes, into: &doomed)
            doomed.destroy()
        }

        /// Every key is found, and is visited once.
        func check() {
            #expect(table.count == expected.count)
            for record in expected.values { #expect(find(record) === record) }
            var visited: Set<String> = []
            var count = 0
            table.forEach { variants in
                count += variants.count
                for case let record as TestRecord in variants { visited.insert(record.name) }
            }
            #expect(count == expected.count)
            #expect(visited == Set(expected.keys))
        }
    }

    private func record(_ name: String) throws -> TestRecord {
        TestRecord(name, body: try #require(tier.makeBody(expectedLength: 0)))
    }

    @Test(arguments: [1, 7, 8, 15, 16, 255, 256, 257, 600, 5000])
    func `all keys are found while it grows, and while it is emptied`(count: Int) throws {
        var room = Room()
        defer { room.table.free() }
        let records = try (0..<count).map { try record("http://a/\($0)") }
        for (index, record) in records.enumerated() {
            #expect(room.find(record) == nil)
            room.set([record], of: record)
            room.expected[record.name] = record
            if index.nonzeroBitCount <= 1 { room.check() }
        }
        room.check()
        for (index, record) in records.enumerated() where index % 3 != 0 {
            room.set([], of: record)
            room.expected[record.name] = nil
        }
        room.check()
        for record in records where room.expected[record.name] == nil { #expect(room.find(record) == nil) }
        for record in records { room.set([], of: record) }
        room.expected = [:]
        room.check()
    }

    /// What leaves a segment moves others forward, around its end as well.
    @Test func `a long history of additions and removals leaves what it should`() throws {
        var room = Room()
        defer { room.table.free() }
        var random = SeededGenerator(seed: 7)
        let records = try (0..<900).map { try record("http://b/\($0)") }
        for round in 0..<20_000 {
            let record = records[Int(random.next() % 900)]
            if room.expected[record.name] == nil {
                room.set([record], of: record)
                room.expected[record.name] = record
            } else {
                room.set([], of: record)
                room.expected[record.name] = nil
            }
            if round % 2000 == 0 { room.check() }
        }
        room.check()
    }

    @Test func `a list of variants replaces the one before, which is given away`() throws {
        var room = Room()
        defer { room.table.free() }
        let first = try record("http://c/"), second = try record("http://c/")
        room.set([first], of: first)
        var doomed = Doomed()
        room.table.set([second, first], second.key, second.keyBytes, into: &doomed)
        #expect(doomed.takeResponses().map(\.count) == [1])
        #expect(room.table.count == 1)
        #expect(room.find(first) === second)
    }

    /// Responses that leave the table are freed, also after they were moved between segments.
    @Test func `no response is kept or freed too often by a split`() throws {
        let before = tier.statistics.usedBytes
        do {
            var room = Room()
            for index in 0..<3000 {
                let record = try record("http://d/\(index)")
                room.set([record], of: record)
            }
            room.table.forEach { #expect($0.count == 1) }
            #expect(tier.statistics.usedBytes > before)
            room.table.free()
        }
        #expect(tier.statistics.usedBytes == before)
    }
}
