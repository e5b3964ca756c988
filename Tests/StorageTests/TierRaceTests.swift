import DiskTier
import Foundation
import Glibc
import Storage
import Synchronization
import Testing

/// What is stored and taken out at the same moment on two threads: memory and disk agree afterwards.
@Suite("Memory and back store, used by several threads")
struct TierRaceTests {
    private static let rounds = 4000

    /// Records of which the disk keeps the name alone.
    private static let format = ResponseFormat(
        form: { record in
            ResponseForm(
                attributes: StoredAttributes(retention: .permanent, status: 200, storedAt: 1, expiresAt: 2),
                head: record.head)
        },
        record: { _, copy, body in TestRecord(String(decoding: copy.keyBytes, as: UTF8.self), body: body) })

    private func with(_ body: (Tiers, any BackStore) throws -> Void) throws {
        var template = Array("/tmp/larder-tiers-XXXXXX".utf8CString)
        try #require(unsafe mkdtemp(&template) != nil)
        let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let disk = try DiskBackStore.open(
            BackStoreSettings(
                path: "\(path)/store", size: 256 << 20, pinned: 0, syncInterval: .milliseconds(200),
                key: { storageKey(String(decoding: $0, as: UTF8.self)) }))
        defer { disk.close() }
        let memory = MemoryTier(budget: 64 << 20, objectMax: 1 << 20, variantsPerKeyMax: 4)
        try body(Tiers(memory: memory, backStore: disk, format: Self.format), disk)
    }

    private func record(_ name: String, _ tiers: Tiers) throws -> TestRecord {
        let body = try #require(tiers.makeBody(expectedLength: 100))
        #expect(body.append(pattern(0..<100)) == .appended && body.finish())
        return TestRecord(name, body: body)
    }

    @Test func `a response that is invalidated while it is written does not stay on the back store`() throws {
        try with { tiers, disk in
            let records = try (0..<Self.rounds).map { try record("invalidated-\($0)", tiers) }
            inStep(
                Self.rounds,
                { round in
                    if tiers.insert(records[round]) { tiers.persist(records[round]) }
                },
                { round in _ = tiers.invalidate(records[round].key, records[round].keyBytes) })
            #expect(disk.flush())
            let left = records.filter { record in
                let isInMemory = !tiers.memory.lookup(record.name).isEmpty
                return !isInMemory && disk.find(record.key) != .nothing
            }
            #expect(left.isEmpty, "\(left.count) of \(Self.rounds) came back from the disk")
        }
    }

    @Test func `a response that two threads persist at the same moment is written once`() throws {
        try with { tiers, disk in
            let records = try (0..<Self.rounds).map { try record("twice-\($0)", tiers) }
            for record in records { #expect(tiers.insert(record)) }
            inStep(
                Self.rounds, { round in tiers.persist(records[round]) }, { round in tiers.persist(records[round]) })
            #expect(disk.flush())
            let twice = records.filter { record in
                if case .found(let places) = disk.find(record.key) { return places.count > 1 }
                return false
            }
            #expect(twice.isEmpty, "\(twice.count) of \(Self.rounds) stand there twice")
        }
    }

    @Test(arguments: [false, true])
    func `a response that gets a new head while another thread writes it is on the back store afterwards, once`(
        isWrittenByBoth: Bool
    ) throws {
        try with { tiers, disk in
            let records = try (0..<Self.rounds).map { try record("renewed-\($0)", tiers) }
            let heirs = records.map { TestRecord($0.name, body: $0.body) }
            for record in records { #expect(tiers.insert(record)) }
            inStep(
                Self.rounds, { round in tiers.persist(records[round]) },
                { round in
                    let isReplaced = tiers.replaceInMemory(records[round], with: heirs[round])
                    if isReplaced && isWrittenByBoth { tiers.persist(heirs[round]) }
                })
            #expect(disk.flush())
            let places = heirs.map { heir in
                if case .found(let places) = disk.find(heir.key) { return places.count }
                return 0
            }
            #expect(places.count { $0 == 0 } == 0, "of \(Self.rounds) are lost")
            #expect(places.count { $0 > 1 } == 0, "of \(Self.rounds) stand there twice")
            let wrong = heirs.filter { heir in heir.storedID.map { !disk.contains($0, heir.key) } ?? true }
            #expect(wrong.isEmpty, "\(wrong.count) of \(Self.rounds) have a number that the disk does not know")
        }
    }

    /// Two threads that begin each round together.
    private func inStep(
        _ rounds: Int, _ first: @escaping @Sendable (Int) -> Void, _ second: @escaping @Sendable (Int) -> Void
    ) {
        let arrived = Atomic<Int>(0)
        inThreads(2) { number in
            for round in 0..<rounds {
                arrived.add(1, ordering: .sequentiallyConsistent)
                var spins = 0
                while arrived.load(ordering: .sequentiallyConsistent) < 2 * (round + 1) {
                    spins += 1
                    if spins > 1000 { sched_yield() }
                }
                // None is always the first.
                if number == 0 { for _ in 0..<(round % 64) { _ = arrived.load(ordering: .relaxed) } }
                if number == 0 { first(round) } else { second(round) }
            }
        }
    }
}
