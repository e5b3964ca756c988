import Storage
import Synchronization
import Testing

/// Real threads against one tier; what they end up with does not depend on how they interleave. Meant to be run under
/// ThreadSanitizer as well.
@Suite("Storage: many threads", .serialized)
struct ConcurrencyTests {
    @Test(arguments: [nil, 700_000]) func `every reader gets every byte while it is written`(_ length: Int?) throws {
        let tier = MemoryTier(budget: 8 << 20, shards: 4, objectMax: 4 << 20, variantsPerKeyMax: 1)
        let body = try #require(tier.makeBody(expectedLength: length))
        let total = 700_000
        let wrong = DoneCount()
        inThreads(5) { index in
            if index == 0 {
                Self.write(body, total)
            } else if Self.readAll(body, from: index * 1000) != pattern(index * 1000..<total) {
                wrong.add()
            }
        }
        #expect(wrong.count == 0)
        #expect(body.state == .complete)
    }

    @Test func `a window keeps the writer near its slowest reader`() throws {
        let page = 256 << 10
        let tier = MemoryTier(budget: 4 << 20, shards: 1, objectMax: 1 << 20, variantsPerKeyMax: 1)
        let body = try #require(tier.makeBody(expectedLength: nil))
        let readers = (0..<2).compactMap { _ in body.attach(at: 0) }
        body.abandonStorage(window: 2 * page)
        let total = 6 << 20
        let wrong = DoneCount()
        let farAhead = DoneCount()
        inThreads(3) { index in
            if index == 0 {
                let gate = Gate()
                var offset = 0
                while offset < total {
                    while body.writerShouldPause {
                        body.awaitRoom(gate.wake)
                        gate.wait()
                    }
                    let count = min(50_000, total - offset)
                    if body.append(pattern(offset..<offset + count)) != .appended { farAhead.add() }
                    if tier.statistics.usedBytes > 6 * page { farAhead.add() }
                    offset += count
                }
                _ = body.finish()
            } else {
                let reader = readers[index - 1]
                Self.follow(body, from: 0) { offset, bytes in
                    if bytes != pattern(offset..<offset + bytes.count) { wrong.add() }
                    body.advance(reader, to: offset + bytes.count)
                }
                body.detach(reader)
            }
        }
        #expect(wrong.count == 0)
        #expect(farAhead.count == 0)
        #expect(body.length == total)
    }

    @Test func `storing, reading and purging at once leak nothing`() {
        let tier = MemoryTier(budget: 2 << 20, shards: 4, objectMax: 300_000, variantsPerKeyMax: 2)
        let wrong = DoneCount()
        inThreads(6) { index in
            var generator = SeededGenerator(seed: UInt64(index))
            for round in 0..<400 {
                let name = "k\(Int.random(in: 0..<60, using: &generator))"
                switch index {
                case 0, 1:
                    let length = Int.random(in: 0...20_000, using: &generator)
                    tier.store(name, variant: "\(round % 3)", bytes: round % 40 == 0 ? 290_000 : length)
                case 2, 3:
                    for record in tier.lookup(name) {
                        tier.touch(record)
                        let bytes = record.body.bytes()
                        if record.name != name || bytes != pattern(0..<bytes.count) { wrong.add() }
                    }
                case 4:
                    if let old = tier.lookup(name).first {
                        _ = tier.replace(old, with: TestRecord(name, variant: old.variant, body: old.body))
                    }
                    if round % 20 == 0 { _ = tier.purge(dryRun: false) { $0.body.length % 2 == 0 } }
                default:
                    if round % 3 == 0 { _ = tier.invalidate(name) }
                    let now = tier.statistics
                    if now.usedBytes > now.budgetBytes + 2 * now.spareBytes { wrong.add() }
                }
            }
        }
        #expect(wrong.count == 0)
        tier.removeAll()
        #expect(tier.statistics.usedBytes == 0)
        #expect(tier.statistics.recordCount == 0)
    }

    @Test func `of many requests at once one leads, and all get its record`() throws {
        let tier = MemoryTier(budget: 4 << 20, shards: 2, objectMax: 1 << 20, variantsPerKeyMax: 1)
        let leaders = DoneCount()
        let served = DoneCount()
        inThreads(6) { _ in
            for round in 0..<50 {
                let name = "k\(round)"
                if Self.fetch(name, tier, leaders) == pattern(0..<5000) { served.add() }
            }
        }
        #expect(leaders.count == 50)
        #expect(served.count == 300)
        #expect(tier.statistics.transferCount == 0)
    }

    /// What a request does: look up, lead or follow, read while it grows.
    private static func fetch(_ name: String, _ tier: MemoryTier, _ leaders: DoneCount) -> [UInt8] {
        while true {
            let stored = tier.lookup(name).first
            if let stored { return readAll(stored.body, from: 0) }
            switch tier.lead(name, knownNewest: stored) {
            case .lookAgain, .keptApart, .nobodyLeads: continue
            case .follow(let transfer):
                let gate = Gate()
                guard transfer.follow(gate.wake, limit: 100) != nil else { return [] }
                gate.wait()
                guard case .published(let record)? = transfer.outcome else { return [] }
                return readAll(record.body, from: 0)
            case .lead(let transfer):
                leaders.add()
                guard let body = tier.makeBody(expectedLength: 5000) else { return [] }
                let record = TestRecord(name, body: body)
                guard tier.insert(record) else { return [] }
                transfer.resolve(.published(record))
                write(body, 5000)
                return body.bytes()
            }
        }
    }

    private static func write(_ body: Body, _ total: Int) {
        var offset = 0
        while offset < total {
            let count = min(3001, total - offset)
            if offset % 2 == 0 {
                offset += min(count, body.read(pattern(offset..<offset + count), hint: count) ?? 0)
            } else {
                _ = body.append(pattern(offset..<offset + count))
                offset += count
            }
        }
        _ = body.finish()
    }

    private static func readAll(_ body: Body, from start: Int) -> [UInt8] {
        var all: [UInt8] = []
        follow(body, from: start) { all += $1 }
        return all
    }

    /// Reads as a connection does: what is there, then wait, until the body has ended.
    private static func follow(_ body: Body, from start: Int, _ deliver: (Int, [UInt8]) -> Void) {
        let gate = Gate()
        var offset = start
        while true {
            let state = body.state
            let bytes = body.bytes(from: offset)
            if !bytes.isEmpty {
                deliver(offset, bytes)
                offset += bytes.count
            } else if state != .growing {
                return
            } else if body.await(beyond: offset, gate.wake) != nil {
                gate.wait()
            }
        }
    }
}

/// A count that threads add to.
final class DoneCount: Sendable {
    private let value = Atomic<Int>(0)
    var count: Int { value.load(ordering: .relaxed) }
    func add() { value.add(1, ordering: .relaxed) }
}
