import Storage
import Testing

/// Real threads that fill and read one partial body. Meant to be run under ThreadSanitizer as well.
@Suite("Partial body: many threads", .serialized)
struct SparseConcurrencyTests {
    private static let length = 700_000

    @Test(arguments: [true, false])
    func `readers of any ranges get them, and every byte is fetched once`(_ isSparse: Bool) throws {
        let tier = MemoryTier(budget: 8 << 20, shards: 4, objectMax: 4 << 20, variantsPerKeyMax: 1)
        let body = try #require(
            isSparse ? tier.makeSparseBody(length: Self.length) : tier.makeBody(expectedLength: Self.length))
        #expect(tier.insert(TestRecord("a", body: body)))
        let wrong = DoneCount()
        let fetched = ByteCount()
        let readers = isSparse ? 6 : 5
        inThreads(6) { index in
            guard index < readers else {
                // The first transfer, which breaks off.
                for part in stride(from: 0, to: 200_000, by: 4000) {
                    if body.append(pattern(part..<part + 4000)) != .appended { wrong.add() }
                    fetched.add(4000)
                }
                if !body.makePartial() { wrong.add() }
                return
            }
            var generator = SeededGenerator(seed: UInt64(index))
            for _ in 0..<20 {
                let start = Int.random(in: 0..<Self.length, using: &generator)
                let end = min(Self.length, start + Int.random(in: 1...120_000, using: &generator))
                if Self.read(start..<end, of: body, fetched, &generator) != pattern(start..<end) { wrong.add() }
            }
            if Self.read(0..<Self.length, of: body, fetched, &generator) != pattern(0..<Self.length) { wrong.add() }
        }
        #expect(wrong.count == 0)
        #expect(body.state == .complete)
        #expect(fetched.count == Self.length)
        #expect(tier.statistics.smallBytes == tier.statistics.usedBytes)
    }

    @Test func `filling, storing, purging and freshening at once leak nothing`() {
        let tier = MemoryTier(budget: 3 << 20, shards: 2, objectMax: 300_000, variantsPerKeyMax: 2)
        let wrong = DoneCount()
        let fetched = ByteCount()
        inThreads(5) { index in
            var generator = SeededGenerator(seed: UInt64(index) + 10)
            for round in 0..<150 {
                let name = "k\(Int.random(in: 0..<12, using: &generator))"
                switch index {
                case 0...2:
                    let start = Int.random(in: 0..<200_000, using: &generator)
                    let end = min(200_000, start + Int.random(in: 1...30_000, using: &generator))
                    let stored = tier.lookup(name).first
                    if let stored { tier.touch(stored) }
                    guard let body = stored?.body ?? tier.makeSparseBody(length: 200_000) else { continue }
                    if stored == nil { _ = tier.insert(TestRecord(name, body: body)) }
                    if Self.read(start..<end, of: body, fetched, &generator) != pattern(start..<end) { wrong.add() }
                case 3:
                    if let old = tier.lookup(name).first {
                        _ = tier.replace(old, with: TestRecord(name, body: old.body))
                    }
                    tier.store("other \(round)", bytes: 100_000)
                default:
                    if round % 4 == 0 { _ = tier.invalidate(name) }
                    if round % 30 == 0 { _ = tier.purge(dryRun: false) { $0.body.extents.count > 2 } }
                }
            }
        }
        #expect(wrong.count == 0)
        tier.removeAll()
        #expect(tier.statistics.usedBytes == 0)
        #expect(tier.statistics.smallBytes == 0 && tier.statistics.mainBytes == 0)
    }

    /// What a request for a range does: takes what is there, waits for what is fetched, fetches what is missing, and now
    /// and then gives up in the middle.
    private static func read(
        _ range: Range<Int>, of body: Body, _ fetched: ByteCount, _ generator: inout SeededGenerator
    ) -> [UInt8] {
        var all: [UInt8] = []
        let gate = Gate()
        while all.count < range.count {
            let offset = range.lowerBound + all.count
            switch body.claim(at: offset, limit: range.upperBound) {
            case .available:
                all += body.bytes(from: offset).prefix(range.upperBound - offset)
            case .awaited:
                if body.await(beyond: offset, gate.wake) != nil { gate.wait() }
            case .missing(let fill):
                let end = Bool.random(using: &generator) ? fill.range.upperBound : (offset + fill.range.upperBound) / 2
                while fill.position < end {
                    let part = fill.position..<min(end, fill.position + 3001)
                    guard fill.append(pattern(part)) == .appended else { return [] }
                    fetched.add(part.count)
                }
            case .unavailable: return []
            }
        }
        return all
    }
}
