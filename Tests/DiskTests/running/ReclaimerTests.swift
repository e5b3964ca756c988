import EventLoop
import Glibc
import Testing

@testable import Disk

@Suite("Reclaiming: what is kept, what is copied forward, when the file goes")
struct ReclaimerTests {
    private static let limits = Ledger.Limits(size: 16 << 20, pinned: 8 << 20, segment: 1 << 20)

    /// The store is over its limit: whatever can be reclaimed is.
    private static func press(_ store: ReclaimerStoreFake) {
        store.ledger.withLock {
            var limits = $0.limits
            limits.size = $0.usedBytes + 64
            $0.setLimits(limits)
        }
    }

    private static func reclaimer(_ store: ReclaimerStoreFake) -> Reclaimer {
        Reclaimer(ledger: store.ledger, store: store)
    }

    private static func live(_ store: ReclaimerStoreFake) -> Set<ObjectID> {
        Set(store.state.withLock { $0.index.keys })
    }

    private static func number(of id: ObjectID, _ store: ReclaimerStoreFake) -> UInt32? {
        store.state.withLock { $0.index[id]?.place.segment }
    }

    /// Six objects that have to be copied; something that need not be stands beside them.
    private static func pinnedAndUnused(_ store: ReclaimerStoreFake) throws -> [ObjectID] {
        let ids = try (0..<6).map { _ in try #require(store.store(100_000, .pinned)) }
        _ = try #require(store.store(300_000))
        return ids
    }

    @Test func `unused records are evicted; used and pinned ones stay`() throws {
        let store = ReclaimerStoreFake(Self.limits)
        let unused = try (0..<4).map { _ in try #require(store.store(100_000)) }
        let used = try #require(store.store(100_000, useMark: 1))
        let pinned = try #require(store.store(100_000, .pinned))
        let removed = try #require(store.store(100_000, .pinned))
        store.remove(removed)
        store.closeActive()
        let old = Self.number(of: used, store)
        Self.press(store)
        #expect(Self.reclaimer(store).turn() == .worked)
        #expect(Self.live(store) == [used, pinned])
        #expect(store.state.withLock { $0.evicted } == unused)
        #expect(Self.number(of: used, store) != old)
        #expect(Self.number(of: pinned, store) != old)
        #expect(store.state.withLock { $0.index[used]?.useMark } == 0)
    }

    @Test func `the file is deleted after the commit of the book, and not before`() throws {
        let store = ReclaimerStoreFake(Self.limits)
        let id = try #require(store.store(900_000))
        store.closeActive()
        let number = try #require(Self.number(of: id, store))
        Self.press(store)
        #expect(Self.reclaimer(store).turn() == .worked)
        #expect(store.state.withLock { $0.files[number] } != nil)
        #expect(store.ledger.withLock { $0.units[number]?.isVictim } == true)
        store.commit()
        #expect(store.state.withLock { $0.files[number] } == nil)
        #expect(store.ledger.withLock { $0.units[number] } == nil)
    }

    @Test func `at most half a file of used records is kept: the most used, and of those the youngest`() throws {
        let store = ReclaimerStoreFake(Self.limits)
        let marks: [UInt8] = [1, 3, 2, 1, 3, 2, 1, 2, 3, 1]
        let ids = try marks.map { try #require(store.store(100_000, useMark: $0)) }
        store.closeActive()
        Self.press(store)
        #expect(Self.reclaimer(store).turn() == .worked)
        let kept = ids.indices.filter { Self.live(store).contains(ids[$0]) }
        // Half of the ten: the three with mark 3, and the last two with mark 2.
        #expect(kept == [1, 4, 5, 7, 8])
    }

    @Test func `no more is kept than was planned, even if records are used in between`() {
        var plan = KeepPlan(usedBytesMax: 250)
        for _ in 0..<10 { plan.count(100, 0) }
        plan.decide()
        let kept = (0..<10).filter { _ in plan.keeps(100, 3) }
        #expect(kept == [0, 1])
    }

    @Test func `everything live in a sparse file is kept, used or not`() throws {
        let store = ReclaimerStoreFake(Self.limits)
        let ids = try (0..<10).map { _ in try #require(store.store(100_000)) }
        for id in ids.dropFirst() { store.remove(id) }
        store.closeActive()
        Self.press(store)
        #expect(Self.reclaimer(store).turn() == .worked)
        #expect(Self.live(store) == [ids[0]])
        #expect(store.state.withLock { $0.evicted }.isEmpty)
    }

    @Test func `a drop record is carried forward while the file that it names exists`() throws {
        let store = ReclaimerStoreFake(Self.limits)
        let kept = try #require(store.store(800_000, .pinned))
        let removed = try #require(store.store(100_000))
        store.closeActive()
        let first = try #require(Self.number(of: kept, store))
        let filler = try #require(store.store(1000))
        store.remove(removed)
        store.remove(filler)
        store.closeActive()
        // The second file is empty but for drop records; the first stays.
        let reclaimer = Self.reclaimer(store)
        #expect(reclaimer.turn() == .worked)
        store.commit()
        #expect(store.state.withLock { $0.files[first] } != nil)
        #expect(store.rebuilt() == [kept])
        // Then the first goes as well, and the drop record with it.
        store.remove(kept)
        store.closeActive()
        while reclaimer.turn() == .worked { store.commit() }
        #expect(store.rebuilt().isEmpty)
        store.closeActive()
        while reclaimer.turn() == .worked { store.commit() }
        #expect(store.ledger.withLock { $0.fileBytes } == 0)
    }

    @Test func `an object that is removed while it is copied does not return, not even from the files alone`() throws {
        let store = ReclaimerStoreFake(Self.limits)
        let ids = try Self.pinnedAndUnused(store)
        store.closeActive()
        store.state.withLock {
            $0.duringMove = { [unowned store] state, records in
                store.remove(records[2].id, &state, notesDrop: true)
            }
        }
        store.ledger.withLock { $0.setLimits(.init(size: 3 << 20, pinned: 1 << 20, segment: 1 << 20)) }
        #expect(Self.reclaimer(store).turn() == .worked)
        store.commit()
        #expect(Self.live(store) == Set(ids).subtracting([ids[2]]))
        #expect(store.rebuilt() == Self.live(store))
    }

    @Test
    func `an evicted object does not return from the files alone, even if its victim was not emptied`()
        throws
    {
        let store = ReclaimerStoreFake(Self.limits)
        let unused = try (0..<5).map { _ in try #require(store.store(100_000)) }
        let used = try #require(store.store(400_000, useMark: 1))
        store.closeActive()
        store.state.withLock { $0.movesLeft = 0 }
        Self.press(store)
        #expect(Self.reclaimer(store).turn() == .failed)
        #expect(Self.live(store) == [used])
        #expect(store.state.withLock { $0.evicted } == unused)
        #expect(store.rebuilt() == [used])
    }

    @Test
    func
        `an object that was copied out of a half-emptied file and then removed does not come back from the files alone`()
        throws
    {
        let store = ReclaimerStoreFake(.init(size: 64 << 20, pinned: 48 << 20, segment: 4 << 20))
        let reclaimer = Self.reclaimer(store)
        let ids = try (0..<30).map { _ in try #require(store.store(100_000, .pinned)) }
        _ = try #require(store.store(600_000))
        store.closeActive()
        let victim = try #require(Self.number(of: ids[0], store))
        Self.press(store)
        store.state.withLock { $0.movesLeft = 1 }
        #expect(reclaimer.turn() == .failed)
        store.state.withLock { $0.movesLeft = .max }
        // Some are copied, the others are where they were: the file of the copies is emptied by removing them.
        let copied = ids.filter { Self.number(of: $0, store) != victim }
        #expect(copied.contains(ids[0]) && copied.count < ids.count)
        let later = try #require(Self.number(of: ids[0], store))
        store.closeActive()
        for id in copied { store.remove(id) }
        // The file of the copies goes, then the file with their drop records.
        #expect(reclaimer.turn() == .worked)
        store.commit()
        #expect(store.state.withLock { $0.files[later] } == nil)
        store.closeActive()
        #expect(reclaimer.turn() == .worked)
        store.commit()
        #expect(store.state.withLock { $0.files[victim] } != nil)
        #expect(store.rebuilt().isDisjoint(with: copied))
    }

    @Test func `a damaged record is dropped, and the others are copied`() throws {
        let store = ReclaimerStoreFake(Self.limits)
        let ids = try Self.pinnedAndUnused(store)
        store.closeActive()
        store.state.withLock { $0.unreadable[ids[3]] = .damaged }
        Self.press(store)
        #expect(Self.reclaimer(store).turn() == .worked)
        #expect(store.state.withLock { $0.damaged } == [ids[3]])
        #expect(Self.live(store) == Set(ids).subtracting([ids[3]]))
    }

    @Test(arguments: [0, 1, 2]) func `if reading or writing fails, nothing is lost and the file stays`(_ what: Int)
        throws
    {
        let store = ReclaimerStoreFake(Self.limits)
        let ids = try Self.pinnedAndUnused(store)
        store.closeActive()
        let number = try #require(Self.number(of: ids[0], store))
        store.state.withLock {
            switch what {
            case 0: $0.unreadable[ids[3]] = .failed(errno: 5)
            case 1: $0.movesLeft = 0
            default: $0.scanFails = true
            }
        }
        Self.press(store)
        let reclaimer = Self.reclaimer(store)
        #expect(reclaimer.turn() == .failed)
        store.commit()
        #expect(Self.live(store).isSuperset(of: ids))
        #expect(store.state.withLock { $0.files[number] } != nil)
        #expect(store.ledger.withLock { $0.leavingBytes } == 0)
        #expect(store.ledger.withLock { $0.claimedBytes } == 0)
        // It is tried again, and then it goes.
        store.state.withLock {
            $0.unreadable = [:]
            $0.movesLeft = .max
            $0.scanFails = false
        }
        while reclaimer.turn() == .worked {}
        store.commit()
        #expect(store.state.withLock { $0.files[number] } == nil)
        #expect(Self.live(store) == Set(ids))
    }

    @Test func `if a file cannot be emptied to the end, drop records for what was evicted from it are written later`()
        throws
    {
        let store = ReclaimerStoreFake(Self.limits)
        let evicted = try (0..<3).map { _ in try #require(store.store(100_000)) }
        let pinned = try #require(store.store(100_000, .pinned))
        store.closeActive()
        let number = try #require(Self.number(of: pinned, store))
        store.state.withLock { $0.movesLeft = 0 }
        Self.press(store)
        #expect(Self.reclaimer(store).turn() == .failed)
        #expect(store.state.withLock { $0.evicted } == evicted)
        #expect(store.state.withLock { $0.owed } == evicted.map { DroppedObject(id: $0, segment: number) })
    }

    @Test func `a large object that was used becomes young, and is evicted if it is not used again`() throws {
        let store = ReclaimerStoreFake(Self.limits)
        let used = try #require(store.storeLarge(2 << 20, useMark: 1))
        let unused = try #require(store.storeLarge(2 << 20))
        let reclaimer = Self.reclaimer(store)
        store.ledger.withLock { $0.setLimits(.init(size: 1 << 20, pinned: 0, segment: 1 << 20)) }
        #expect(reclaimer.turn() == .worked)
        #expect(store.ledger.withLock { $0.leavingBytes } == 0)
        #expect(reclaimer.turn() == .worked)
        #expect(store.state.withLock { $0.waitingForCommit } == [unused])
        #expect(reclaimer.turn() == .worked)
        #expect(store.state.withLock { $0.waitingForCommit } == [unused, used])
        store.commit()
        #expect(store.ledger.withLock { $0.fileBytes } == 160, "two drop records")
        #expect(store.ledger.withLock { $0.largeCount } == 0)
    }

    @Test func `a store full of pinned objects says so and changes nothing`() throws {
        let store = ReclaimerStoreFake(Self.limits)
        var pinned: Set<ObjectID> = []
        while let id = store.store(64_000, .pinned) { pinned.insert(id) }
        store.closeActive()
        Self.press(store)
        let reclaimer = Self.reclaimer(store)
        var turn = reclaimer.turn()
        while turn == .worked {
            store.commit()
            turn = reclaimer.turn()
        }
        #expect(turn == .allPinned)
        #expect(Self.live(store) == pinned)
    }

    @Test func `the thread works when woken and ends when told to`() throws {
        let store = ReclaimerStoreFake(Self.limits)
        let reclaimer = Self.reclaimer(store)
        let thread = OwnedThread(try startThread(name: "reclaim") { reclaimer.run() })
        let id = try #require(store.store(900_000))
        store.closeActive()
        Self.press(store)
        reclaimer.wake()
        while Self.live(store).contains(id) { sched_yield() }
        reclaimer.stop()
        thread.join()
    }

    @Test(arguments: 1...8) func `whatever is stored, used and removed, the limits hold and no pinned object is lost`(
        _ seed: Int
    ) {
        var random = LedgerGenerator(seed: UInt64(seed))
        let store = ReclaimerStoreFake(.init(size: 8 << 20, pinned: 3 << 20, segment: 256 << 10))
        let reclaimer = Self.reclaimer(store)
        var pinned: Set<ObjectID> = []
        var all: [ObjectID] = []
        for step in 0..<20_000 {
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<70:
                let storageClass: StorageClass = Int.random(in: 0..<8, using: &random) == 0 ? .pinned : .permanent
                guard let id = store.store(UInt64.random(in: 0..<20_000, using: &random), storageClass) else { break }
                all.append(id)
                if storageClass == .pinned { pinned.insert(id) }
            case 70..<90:
                if let id = all.randomElement(using: &random) { store.touch(id) }
            case 90..<98:
                guard !all.isEmpty else { break }
                let id = all.remove(at: Int.random(in: 0..<all.count, using: &random))
                store.remove(id)
                pinned.remove(id)
            default:
                _ = store.storeLarge(UInt64.random(in: 1..<4, using: &random) << 18)
            }
            // The reclaimer runs beside; the book's commits come now and then.
            if step % 4 == 0 { _ = reclaimer.turn() }
            if step % 128 == 0 { store.commit() }
        }
        #expect(store.state.withLock { $0.usedMax } <= 8 << 20)
        #expect(pinned.isSubset(of: Self.live(store)))
        #expect(store.ledger.withLock { $0.pinnedBytes } <= 3 << 20)
        #expect(store.state.withLock { $0.evicted }.count > 1000)
        store.closeActive()
        while reclaimer.turn() == .worked { store.commit() }
        store.commit()
        // From the files alone nothing comes back that was removed; evicted objects may, where their file is still there.
        let removed = store.state.withLock { $0.removed.subtracting($0.evicted) }
        #expect(store.rebuilt().isDisjoint(with: removed))
        #expect(
            Self.live(store).subtracting(Set(store.state.withLock { $0.large.values })).isSubset(of: store.rebuilt()))
        // What is free is the reserve, what was last wanted in one piece, and at most one file more.
        let (used, reserve) = store.ledger.withLock { ($0.usedBytes, $0.reserveBytes) }
        #expect(used + reserve <= 8 << 20)
        #expect(used + reserve + (2 << 20) > 8 << 20)
    }
}
