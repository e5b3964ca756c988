import Fleet
import Testing

@Suite("Fleet: who owns a key") struct OwnershipTests {
    private func ownership(_ names: [String], weights: [String: Int] = [:]) -> Ownership {
        Ownership(names.map { .init($0, weight: weights[$0] ?? 1) }, hash: hash)
    }

    private func ranking(_ ownership: Ownership, _ key: Int, zone: String = "default") -> [String] {
        let key = Array("http://a.example/\(key)".utf8)
        return ownership.ranking(zone: zone, key: key, count: 3, hash: hash).map { ownership.members[$0].name }
    }

    private let names = (1...5).map { "10.0.0.\($0):3130" }

    @Test func `all nodes agree, in whatever order the members are written`() {
        let one = ownership(names)
        let other = ownership(names.reversed())
        for key in 0..<1000 { #expect(ranking(one, key) == ranking(other, key)) }
    }

    @Test func `each owns its share, by its weight`() {
        let weighted = ownership(names, weights: [names[0]: 3, names[4]: 2])
        var counts: [String: Int] = [:]
        for key in 0..<8000 { counts[ranking(weighted, key)[0], default: 0] += 1 }
        // 8 units of weight for 8,000 keys. The standard deviation of a share is 30 to 44.
        for (name, weight) in zip(names, [3, 1, 1, 1, 2]) {
            #expect(abs((counts[name] ?? 0) - weight * 1000) < 220, "\(name): \(counts)")
        }
    }

    @Test func `a node that leaves hands its keys to their stand-ins, and no other key moves`() {
        let all = ownership(names)
        let fewer = ownership(Array(names.dropLast()))
        for key in 0..<2000 {
            let before = ranking(all, key)
            #expect(ranking(fewer, key)[0] == (before[0] == names[4] ? before[1] : before[0]))
        }
    }

    @Test func `a node that joins takes keys from their owners, which are second then`() {
        let fewer = ownership(Array(names.dropLast()))
        let all = ownership(names)
        var taken = 0
        for key in 0..<2000 {
            let (before, after) = (ranking(fewer, key), ranking(all, key))
            guard after[0] != before[0] else { continue }
            taken += 1
            #expect(after[0] == names[4] && after[1] == before[0])
        }
        #expect((300...500).contains(taken), "\(taken)")
    }

    @Test func `the secret and the zone decide as well`() {
        let all = ownership(names)
        let other = Ownership(names.map { .init($0) }, hash: otherHash)
        let keys = (0..<500).map { Array("\($0)".utf8) }
        let differing = keys.count { key in
            all.ranking(zone: "z", key: key, count: 1, hash: hash)
                != other.ranking(zone: "z", key: key, count: 1, hash: otherHash)
        }
        #expect(differing > 350, "\(differing)")
        #expect((0..<500).count { ranking(all, $0) != ranking(all, $0, zone: "other") } > 350)
    }

    @Test func `few members`() {
        #expect(ranking(ownership([]), 1).isEmpty)
        #expect(ranking(ownership(["a:1"]), 1) == ["a:1"])
        #expect(ranking(ownership(["a:1", "b:1"]), 1).count == 2)
    }
}

@Suite("Fleet: whom a node asks") struct PeerPlanTests {
    private static func asks(_ members: Int...) -> [PeerPlan.Ask] { members.map { PeerPlan.Ask($0) } }

    /// The ranking is 0, 1, 2 in all rows.
    static let rows:
        [(name: String, own: Int?, isNew: Bool, isForPeer: Bool, asks: [PeerPlan.Ask], keeping: PeerPlan.Keeping)] = [
            ("the owner asks nobody", 0, false, false, [], .always),
            (
                "the stand-in asks the owner, and keeps what it had to fetch itself", 1, false, false, asks(0),
                .ifUnanswered
            ),
            ("another node asks the owner, then its stand-in", 2, false, false, asks(0, 1), .never),
            ("a node that is no member asks, too", nil, false, false, asks(0, 1), .never),
            (
                "a new owner looks into the store of the owner before", 0, true, false,
                [PeerPlan.Ask(1, isForStoreOnly: true)], .always
            ),
            ("a new node that does not own the key asks as others do", 2, true, false, asks(0, 1), .never),
            ("who is asked goes no further", 1, false, true, [], .always),
            ("who is asked goes no further, although another one owns the key", 2, true, true, [], .always),
            (
                "a new owner that is asked looks there as well", 0, true, true, [PeerPlan.Ask(1, isForStoreOnly: true)],
                .always
            ),
        ]
    @Test(arguments: rows.indices) func `the plan`(_ index: Int) {
        let row = Self.rows[index]
        let plan = PeerPlan(ranking: [0, 1, 2], own: row.own, isNew: row.isNew, isForPeer: row.isForPeer)
        #expect(plan.asks == row.asks && plan.keeping == row.keeping, "\(row.name): \(plan)")
    }

    @Test func `alone, and without members`() {
        let alone = PeerPlan(ranking: [0], own: 0, isNew: true, isForPeer: false)
        #expect(alone.asks.isEmpty && alone.keeping == .always)
        let none = PeerPlan(ranking: [], own: nil, isNew: false, isForPeer: false)
        #expect(none.asks.isEmpty && none.keeping == .never)
    }

    @Test func `a request goes through two nodes at most, whatever each of them takes for the members`() {
        // A plan for a peer never has an ask that may go on.
        for own in [nil, 0, 1, 2] {
            for isNew in [false, true] {
                let plan = PeerPlan(ranking: [0, 1, 2], own: own, isNew: isNew, isForPeer: true)
                #expect(!plan.asks.contains { !$0.isForStoreOnly })
            }
        }
    }
}

@Suite("Fleet: what a node remembers of keys") struct PeerMemoryTests {
    @Test func `a note holds for ten minutes`() {
        var memory = PeerMemory()
        #expect(memory.note(of: 7, now: 0) == nil)
        memory.set(.passed, for: 7, now: 5)
        #expect(memory.note(of: 7, now: 4 + PeerMemory.nanoseconds) == .passed)
        #expect(memory.note(of: 7, now: 5 + PeerMemory.nanoseconds) == nil)
    }

    @Test func `a note is of one key, and the latest one holds`() {
        var memory = PeerMemory()
        memory.set(.passed, for: 7, now: 0)
        memory.set(.changed, for: 7, now: 0)
        #expect(memory.note(of: 7, now: 1) == .changed)
        // It has the same place in the table.
        let other = 7 + UInt64(PeerMemory.countMax)
        #expect(memory.note(of: other, now: 1) == nil)
        memory.set(.passed, for: other, now: 1)
        #expect(memory.note(of: 7, now: 1) == nil && memory.note(of: other, now: 1) == .passed)
    }
}
