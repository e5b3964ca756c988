import Fleet
import Testing

@Suite("Fleet: a budget that all nodes use") struct SharedBudgetTests {
    private static func part(_ bytes: UInt64, _ generation: UInt64 = 0) -> UsePart {
        UsePart(generation: generation, bytes: bytes)
    }

    struct Row: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let reading: SharedBudget.Reading
        let own: UInt64
        var restored: UInt64 = 0
        let others: UInt64
        var forgets: UInt64 = 0
        var carries: UInt64 = 0
        var writes: [String: UsePart] = [:]
        var writesReset = false
        /// When the run began.
        var beganAt: UInt64 = 1_000
    }

    /// The first reading of a node that has the name `a`.
    static let firstReadings = [
        Row(
            testDescription: "nothing is known, and the own part is written", reading: .init(), own: 5, others: 0,
            writes: ["a": part(5)]),
        Row(testDescription: "nothing was used", reading: .init(), own: 0, others: 0),
        Row(
            testDescription: "the parts of the others are added up",
            reading: .init(parts: ["b": part(7), "c": part(8)]), own: 0, others: 15),
        Row(
            testDescription: "what an earlier run has used comes on top",
            reading: .init(parts: ["a": part(10)]), own: 3, others: 0, carries: 10, writes: ["a": part(13)]),
        Row(
            testDescription: "what an earlier run has left in a file counts once",
            reading: .init(parts: ["a": part(10)]), own: 13, restored: 10, others: 0, writes: ["a": part(13)]),
        Row(
            testDescription: "the file is older than what stands in Redis",
            reading: .init(parts: ["a": part(10)]), own: 9, restored: 6, others: 0, carries: 4,
            writes: ["a": part(13)]),
        Row(
            testDescription: "Redis was emptied, and the file has more", reading: .init(parts: ["b": part(1)]),
            own: 12, restored: 12, others: 1, writes: ["a": part(12)]),
        Row(
            testDescription: "a reset while the node was down: what the file has is over, what was used since is not",
            reading: .init(resetAt: 50, parts: ["a": part(10), "b": part(9)]), own: 13, restored: 10, others: 0,
            forgets: 10, writes: ["a": part(3, 50)]),
        Row(
            testDescription: "a reset since the node began, before it could read: all that it has used is over",
            reading: .init(resetAt: 50, parts: ["b": part(9)]), own: 13, restored: 10, others: 0, forgets: 13,
            beganAt: 40),
        Row(
            testDescription: "a reset that the earlier run knew of",
            reading: .init(resetAt: 50, parts: ["a": part(10, 50), "b": part(9, 50), "c": part(4)]), own: 11,
            restored: 10, others: 9, writes: ["a": part(11, 50)]),
        Row(
            testDescription: "a part of a later generation tells of the reset",
            reading: .init(parts: ["b": part(2, 60)]), own: 0, others: 2, writesReset: true),
    ]

    @Test(arguments: firstReadings) func `what a node makes of its first reading`(_ row: Row) {
        var budget = SharedBudget(node: "a", beganAt: row.beganAt)
        let outcome = budget.merge(row.reading, own: row.own, restored: row.restored)
        #expect(outcome.forgets == row.forgets && outcome.carries == row.carries)
        #expect(outcome.writes == row.writes && outcome.writesReset == row.writesReset)
        #expect(budget.usedByOthers == row.others)
    }

    @Test func `an emptied Redis gets back all that a node knows, also of nodes that are gone`() {
        var budget = SharedBudget(node: "a", beganAt: 0)
        _ = budget.merge(.init(parts: ["b": Self.part(7), "c": Self.part(8)]), own: 5, restored: 0)
        let outcome = budget.merge(.init(), own: 6, restored: 0)
        #expect(outcome.writes == ["a": Self.part(6), "b": Self.part(7), "c": Self.part(8)])
        #expect(budget.usedByOthers == 15)
        // Another node has less than this one remembers.
        let next = budget.merge(.init(parts: ["a": Self.part(6), "b": Self.part(3)]), own: 6, restored: 0)
        #expect(next.writes == ["b": Self.part(7), "c": Self.part(8)] && budget.usedByOthers == 15)
    }

    @Test func `an exchange that is repeated counts nothing twice`() {
        var budget = SharedBudget(node: "a", beganAt: 0)
        let reading = SharedBudget.Reading(parts: ["a": Self.part(5), "b": Self.part(7)])
        _ = budget.merge(reading, own: 5, restored: 5)
        for _ in 0..<3 {
            let outcome = budget.merge(reading, own: 5, restored: 5)
            #expect(outcome == .init() && budget.usedByOthers == 7)
        }
    }

    @Test func `a reset on this node begins a generation, which the others take over`() {
        var here = SharedBudget(node: "a", beganAt: 0)
        var there = SharedBudget(node: "b", beganAt: 0)
        _ = here.merge(.init(parts: ["b": Self.part(7)]), own: 5, restored: 0)
        _ = there.merge(.init(parts: ["a": Self.part(5)]), own: 7, restored: 0)
        here.reset(at: 100)
        #expect(here.usedByOthers == 0)
        let said = here.merge(.init(parts: ["a": Self.part(5), "b": Self.part(7)]), own: 0, restored: 0)
        #expect(said.writesReset && said.writes.isEmpty && here.usedByOthers == 0)
        let heard = there.merge(.init(resetAt: 100, parts: ["a": Self.part(5)]), own: 8, restored: 0)
        #expect(heard.forgets == 8 && heard.writes.isEmpty && there.usedByOthers == 0)
        let next = there.merge(.init(resetAt: 100, parts: ["a": Self.part(2, 100)]), own: 1, restored: 0)
        #expect(next.writes == ["b": Self.part(1, 100)] && there.usedByOthers == 2)
    }

    @Test func `a reset whose clock is behind is a reset nevertheless`() {
        var budget = SharedBudget(node: "a", beganAt: 0)
        _ = budget.merge(.init(resetAt: 100), own: 0, restored: 0)
        budget.reset(at: 40)
        #expect(budget.generation == 101)
    }

    @Test(
        arguments: [
            (UInt64(100), UInt64(40), 3, UInt64(20)), (100, 100, 3, 0), (100, 130, 3, 0), (100, 0, 1, 100),
            (100, 0, 0, 100), (2, 0, 3, 0), (.max, 0, 2, .max / 2),
        ] as [(UInt64, UInt64, Int, UInt64)])
    func `a node that is alone has an equal share of what is left`(
        _ budget: UInt64, _ used: UInt64, _ nodes: Int, _ share: UInt64
    ) { #expect(SharedBudget.share(of: budget, used: used, nodes: nodes) == share) }

    /// Who has forgotten what the others have used takes too much for its share.
    @Test(
        arguments: [(UInt64(0), [String: UInt64](), true), (1, [:], false), (0, ["b": 7], false), (1, ["b": 7], false)])
    func `a budget of which anybody has used something is not forgotten`(
        _ own: UInt64, _ others: [String: UInt64], _ isUnused: Bool
    ) {
        var budget = SharedBudget(node: "a", beganAt: 0)
        _ = budget.merge(.init(parts: others.mapValues { Self.part($0) }), own: own, restored: 0)
        #expect(budget.isUnused(own: own) == isUnused)
    }

    @Test(
        arguments: [
            (Int64(1_000), Int64(400), Int64(660)), (1_000, 2_000, 60), (.max, 0, 366 * 86_400),
        ] as [(Int64, Int64, Int64)])
    func `Redis keeps a budget to the end of its window`(_ end: Int64, _ now: Int64, _ seconds: Int64) {
        #expect(SharedBudget.expiry(windowEnd: end, now: now) == seconds)
    }

    // MARK: what stands in Redis

    @Test func `a part is read as it was written, and under no other name`() {
        let (key, field) = (Array("larder:1:u:00".utf8), Array("node-1".utf8))
        let value = Self.part(1 << 50, 1_700_000_000_000).encoded(key: key, field: field, hash: hash)
        #expect(UsePart(value, key: key, field: field, hash: hash) == Self.part(1 << 50, 1_700_000_000_000))
        #expect(UsePart(value, key: Array("larder:1:u:01".utf8), field: field, hash: hash) == nil)
        #expect(UsePart(value, key: key, field: Array("node-2".utf8), hash: hash) == nil)
        #expect(UsePart(value, key: key, field: field, hash: otherHash) == nil)
        for generation in [0, 1 << 31 + 1, 1 << 53 - 1] as [UInt64] {
            let value = Self.part(.max, generation).encoded(key: key, field: field, hash: hash)
            #expect(UsePart(value, key: key, field: field, hash: hash) == Self.part(.max, generation))
        }
        for generation in [1 << 53, 1 << 63 - 1, 1 << 63, .max] as [UInt64] {
            let value = Self.part(1, generation).encoded(key: key, field: field, hash: hash)
            #expect(UsePart(value, key: key, field: field, hash: hash) == nil, "no reset can follow it")
        }
        for index in value.indices {
            var changed = value
            changed[index] ^= 1
            #expect(UsePart(changed, key: key, field: field, hash: hash) == nil)
        }
        for text in ["", " ", "1", "1 2", "1 2 3", "1 2 3 4", String(repeating: "9", count: 200)] {
            #expect(UsePart(Array(text.utf8), key: key, field: field, hash: hash) == nil)
        }
    }

    @Test func `a name tells neither rule nor subject, and is another one for each`() {
        let rows = [("r", "user", "ann"), ("r", "group", "ann"), ("r", "user", "bob"), ("s", "user", "ann")]
        let names = rows.map { BucketName(rule: $0.0, kind: $0.1, name: $0.2, hash: hash) }
        #expect(Set(names).count == rows.count)
        let key = SharedKeys.budget(names[0], windowEnd: 1, hash: hash)
        #expect(key != SharedKeys.budget(names[0], windowEnd: 2, hash: hash))
        #expect(String(decoding: key, as: UTF8.self).wholeMatch(of: /larder:1:u:[0-9a-f]{32}/) != nil)
    }
}
