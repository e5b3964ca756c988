import Storage
import Testing

@Suite("Memory: responses that other proxies have stored")
struct SharedTests {
    private func with(memory: Int = 64 << 20, _ body: (TiersRoom) throws -> Void) throws {
        let room = try TiersRoom(.memory, memory: memory)
        defer { room.remove() }
        try body(room)
    }

    private func adopt(
        _ name: String, _ head: String, _ parts: [[UInt8]], into room: TiersRoom, since invalidations: Int? = nil,
        movedBy seconds: Int64 = 0
    ) -> Bool {
        let form = ResponseForm(
            attributes: StoredAttributes(retention: .permanent, status: 200, storedAt: 1, expiresAt: 2),
            head: Array(head.utf8))
        return room.tiers.adopt(
            shared: form, movedBy: seconds, storageKey(name), Array(name.utf8), body: parts.map { $0[...] },
            since: invalidations ?? room.tiers.invalidations)
    }

    private func found(_ name: String, in room: TiersRoom) -> [Versioned] {
        room.tiers.memory.find(name, under: storageKey(name)).compactMap { $0 as? Versioned }
    }

    static let lengths = [[], [0], [1], [100, 0, 7], [65_536], [65_537, 1], [262_144, 262_144, 262_144, 262_144]]

    @Test(arguments: lengths) func `the body is made of its parts, to the byte`(_ lengths: [Int]) throws {
        try with { room in
            var start = 0
            let parts = lengths.map { length in
                defer { start += length }
                return pattern(start..<start + length)
            }
            #expect(adopt("a", "v|1", parts, into: room))
            let record = try #require(found("a", in: room).first)
            #expect(record.text == "v|1" && record.body.isComplete && record.body.length == start)
            #expect(record.body.copyOfBytes == pattern(0..<start))
        }
    }

    @Test func `its times become those of the clock here`() throws {
        try with { room in
            #expect(adopt("a", "v|1", [[1]], into: room, movedBy: -3600))
            #expect(found("a", in: room).map(\.text) == ["v|1|-3600"])
        }
    }

    @Test func `what memory has stays, and another variant comes beside it`() throws {
        try with { room in
            try room.store("a", "en|2|session")
            #expect(!adopt("a", "en|1", [pattern(0..<10)], into: room))
            #expect(adopt("a", "de|1", [pattern(0..<10)], into: room))
            #expect(found("a", in: room).map(\.text) == ["en|2|session", "de|1"])
        }
    }

    @Test func `memory that has no room takes nothing, and loses nothing`() throws {
        try with(memory: 1 << 20) { room in
            #expect(!adopt("a", "v|1", [pattern(0..<(2 << 20))], into: room))
            #expect(!adopt("a", "v|1", [[UInt8](repeating: 0, count: 5 << 20)], into: room), "longer than any object")
            #expect(found("a", in: room).isEmpty)
            #expect(room.tiers.memory.statistics.usedBytes == 0)
        }
    }

    @Test func `what was looked for before an invalidation is not taken`() throws {
        try with { room in
            let before = room.tiers.invalidations
            _ = room.tiers.invalidate(storageKey("a"), Array("a".utf8))
            #expect(!adopt("a", "v|1", [[1]], into: room, since: before))
            #expect(found("a", in: room).isEmpty)
            #expect(adopt("a", "v|1", [[1]], into: room))
        }
    }

    // MARK: giving

    @Test func `a response can be shared while it is whole in memory`() throws {
        try with { room in
            let record = try room.store("a", "v|1")
            #expect(room.tiers.form(ofShared: record)?.head == Array("v|1".utf8))
            let second = try room.store("a", "v|2")
            #expect(room.tiers.form(ofShared: record) == nil, "it was replaced")
            room.tiers.remove(second)
            #expect(room.tiers.form(ofShared: second) == nil, "it was removed")
            #expect(room.tiers.form(ofShared: try room.store("a", "v|3|session")) == nil, "it is not for others")
        }
    }
}
