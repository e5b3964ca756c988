import EventLoop
import Glibc
import Testing

@testable import Disk

@Suite("Reclaiming: what is kept, what is copied forward, when the file goes")
struct ReclaimerTests {
    private static let limits = Ledger.Limits(size: 16 << 20, pinned: 8 << 20, segment: 1 << 20)

    /// The store is over its limit: whatever can be reclaimed is.
    private static func press(_ house: FakeHouse) {
        house.ledger.withLock {
            var limits = $0.limits
            limits.size = $0.usedBytes + 64
            $0.setLimits(limits)
        }
    }

    private static func reclaimer(_ house: FakeHouse) -> Reclaimer { Reclaimer(ledger: house.ledger, house: house) }

    private static func live(_ house: FakeHouse) -> Set<ObjectID> { Set(house.state.withLock { $0.index.keys }) }

    private static func number(of id: ObjectID, _ house: FakeHouse) -> UInt32? {
        house.state.withLock { $0.index[id]?.place.segment }
    }

    /// Six objects that have to be copied; something that need not be stands beside them.
    private static func pinnedAndUnused(_ house: FakeHouse) throws -> [ObjectID] {
        let ids = try (0..<6).map { _ in try #require(house.store(100_000, .pinned)) }
        _ = try #require(house.store(300_000))
        return ids
    }

    @Test func `what was not used is forgotten, what was used and what is pinned stays`() throws {
        let house = FakeHouse(Self.limits)
        let unused = try (0..<4).map { _ in try #require(house.store(100_000)) }
        let used = try #require(house.store(100_000, useMark: 1))
        let pinned = try #require(house.store(100_000, .pinned))
        let removed = try #require(house.store(100_000, .pinned))
        house.remove(removed)
        house.closeActive()
        let old = Self.number(of: used, house)
        Self.press(house)
        #expect(Self.reclaimer(house).turn() == .worked)
        #expect(Self.live(house) == [used, pinned])
        #expect(house.state.withLock { $0.evicted } == unused)
        #expect(Self.number(of: used, house) != old)
        #expect(Self.number(of: pinned, house) != old)
        #expect(house.state.withLock { $0.index[used]?.useMark } == 0)
    }

    @Test func `the file goes when the book was committed, and not before`() throws {
        let house = FakeHouse(Self.limits)
        let id = try #require(house.store(900_000))
        house.closeActive()
        let number = try #require(Self.number(of: id, house))
        Self.press(house)
        #expect(Self.reclaimer(house).turn() == .worked)
        #expect(house.state.withLock { $0.files[number] } != nil)
        #expect(house.ledger.withLock { $0.units[number]?.isVictim } == true)
        house.commit()
        #expect(house.state.withLock { $0.files[number] } == nil)
        #expect(house.ledger.withLock { $0.units[number] } == nil)
    }

    @Test func `of what was used half a file is kept: the most used first, of these the youngest`() throws {
        let house = FakeHouse(Self.limits)
        let marks: [UInt8] = [1, 3, 2, 1, 3, 2, 1, 2, 3, 1]
        let ids = try marks.map { try #require(house.store(100_000, useMark: $0)) }
        house.closeActive()
        Self.press(house)
        #expect(Self.reclaimer(house).turn() == .worked)
        let kept = ids.indices.filter { Self.live(house).contains(ids[$0]) }
        // Half of the ten: the three with mark 3, and the last two with mark 2.
        #expect(kept == [1, 4, 5, 7, 8])
    }

    @Test func `no more is kept than was planned, also where uses come in between`() {
        var plan = KeepPlan(usedBytesMax: 250)
        for _ in 0..<10 { plan.count(100, 0) }
        plan.decide()
        let kept = (0..<10).filter { _ in plan.keeps(100, 3) }
        #expect(kept == [0, 1])
    }

    @Test func `of a sparse file all is kept, used or not`() throws {
        let house = FakeHouse(Self.limits)
        let ids = try (0..<10).map { _ in try #require(house.store(100_000)) }
        for id in ids.dropFirst() { house.remove(id) }
        house.closeActive()
        Self.press(house)
        #expect(Self.reclaimer(house).turn() == .worked)
        #expect(Self.live(house) == [ids[0]])
        #expect(house.state.withLock { $0.evicted }.isEmpty)
    }

    @Test func `a drop record goes on as long as the file it speaks of is there`() throws {
        let house = FakeHouse(Self.limits)
        let kept = try #require(house.store(800_000, .pinned))
        let removed = try #require(house.store(100_000))
        house.closeActive()
        let first = try #require(Self.number(of: kept, house))
        let filler = try #require(house.store(1000))
        house.remove(removed)
        house.remove(filler)
        house.closeActive()
        // The second file is empty but for drop records; the first stays.
        let reclaimer = Self.reclaimer(house)
        #expect(reclaimer.turn() == .worked)
        house.commit()
        #expect(house.state.withLock { $0.files[first] } != nil)
        #expect(house.rebuilt() == [kept])
        // Then the first goes as well, and the drop record with it.
        house.remove(kept)
        house.closeActive()
        while reclaimer.turn() == .worked { house.commit() }
        #expect(house.rebuilt().isEmpty)
        house.closeActive()
        while reclaimer.turn() == .worked { house.commit() }
        #expect(house.ledger.withLock { $0.fileBytes } == 0)
    }

    @Test func `what is removed while it is copied does not come back, not even from the files alone`() throws {
        let house = FakeHouse(Self.limits)
        let ids = try Self.pinnedAndUnused(house)
        house.closeActive()
        house.state.withLock {
            $0.duringMove = { [unowned house] state, records in
                house.remove(records[2].id, &state, notesDrop: true)
            }
        }
        house.ledger.withLock { $0.setLimits(.init(size: 3 << 20, pinned: 1 << 20, segment: 1 << 20)) }
        #expect(Self.reclaimer(house).turn() == .worked)
        house.commit()
        #expect(Self.live(house) == Set(ids).subtracting([ids[2]]))
        #expect(house.rebuilt() == Self.live(house))
    }

    @Test
    func `what was evicted does not come back from the files alone, not even where the victim could not be emptied`()
        throws
    {
        let house = FakeHouse(Self.limits)
        let unused = try (0..<5).map { _ in try #require(house.store(100_000)) }
        let used = try #require(house.store(400_000, useMark: 1))
        house.closeActive()
        house.state.withLock { $0.movesLeft = 0 }
        Self.press(house)
        #expect(Self.reclaimer(house).turn() == .failed)
        #expect(Self.live(house) == [used])
        #expect(house.state.withLock { $0.evicted } == unused)
        #expect(house.rebuilt() == [used])
    }

    @Test func `a damaged record is dropped, and the others are copied`() throws {
        let house = FakeHouse(Self.limits)
        let ids = try Self.pinnedAndUnused(house)
        house.closeActive()
        house.state.withLock { $0.unreadable[ids[3]] = .damaged }
        Self.press(house)
        #expect(Self.reclaimer(house).turn() == .worked)
        #expect(house.state.withLock { $0.damaged } == [ids[3]])
        #expect(Self.live(house) == Set(ids).subtracting([ids[3]]))
    }

    @Test(arguments: [0, 1, 2]) func `where reading or writing fails nothing is lost, and the file stays`(_ what: Int)
        throws
    {
        let house = FakeHouse(Self.limits)
        let ids = try Self.pinnedAndUnused(house)
        house.closeActive()
        let number = try #require(Self.number(of: ids[0], house))
        house.state.withLock {
            switch what {
            case 0: $0.unreadable[ids[3]] = .failed(errno: 5)
            case 1: $0.movesLeft = 0
            default: $0.scanFails = true
            }
        }
        Self.press(house)
        let reclaimer = Self.reclaimer(house)
        #expect(reclaimer.turn() == .failed)
        house.commit()
        #expect(Self.live(house).isSuperset(of: ids))
        #expect(house.state.withLock { $0.files[number] } != nil)
        #expect(house.ledger.withLock { $0.leavingBytes } == 0)
        #expect(house.ledger.withLock { $0.claimedBytes } == 0)
        // It is tried again, and then it goes.
        house.state.withLock {
            $0.unreadable = [:]
            $0.movesLeft = .max
            $0.scanFails = false
        }
        while reclaimer.turn() == .worked {}
        house.commit()
        #expect(house.state.withLock { $0.files[number] } == nil)
        #expect(Self.live(house) == Set(ids))
    }

    @Test func `a large object that was used becomes young, and goes when it was not used again`() throws {
        let house = FakeHouse(Self.limits)
        let used = try #require(house.storeLarge(2 << 20, useMark: 1))
        let unused = try #require(house.storeLarge(2 << 20))
        let reclaimer = Self.reclaimer(house)
        house.ledger.withLock { $0.setLimits(.init(size: 1 << 20, pinned: 0, segment: 1 << 20)) }
        #expect(reclaimer.turn() == .worked)
        #expect(house.ledger.withLock { $0.leavingBytes } == 0)
        #expect(reclaimer.turn() == .worked)
        #expect(house.state.withLock { $0.waitingForCommit } == [unused])
        #expect(reclaimer.turn() == .worked)
        #expect(house.state.withLock { $0.waitingForCommit } == [unused, used])
        house.commit()
        #expect(house.ledger.withLock { $0.fileBytes } == 160, "two drop records")
        #expect(house.ledger.withLock { $0.largeCount } == 0)
    }

    @Test func `full of what is pinned: that is said, and nothing is touched`() throws {
        let house = FakeHouse(Self.limits)
        var pinned: Set<ObjectID> = []
        while let id = house.store(64_000, .pinned) { pinned.insert(id) }
        house.closeActive()
        Self.press(house)
        let reclaimer = Self.reclaimer(house)
        var turn = reclaimer.turn()
        while turn == .worked {
            house.commit()
            turn = reclaimer.turn()
        }
        #expect(turn == .allPinned)
        #expect(Self.live(house) == pinned)
    }

    @Test func `the thread works when it is woken, and ends when it is told to`() throws {
        let house = FakeHouse(Self.limits)
        let reclaimer = Self.reclaimer(house)
        let thread = OwnedThread(try startThread(name: "reclaim") { reclaimer.run() })
        let id = try #require(house.store(900_000))
        house.closeActive()
        Self.press(house)
        reclaimer.wake()
        while Self.live(house).contains(id) { sched_yield() }
        reclaimer.stop()
        thread.join()
    }

    @Test(arguments: 1...8) func `whatever is stored, used and removed, the limits hold and no pinned object is lost`(
        _ seed: Int
    ) {
        var random = LedgerGenerator(seed: UInt64(seed))
        let house = FakeHouse(.init(size: 8 << 20, pinned: 3 << 20, segment: 256 << 10))
        let reclaimer = Self.reclaimer(house)
        var pinned: Set<ObjectID> = []
        var all: [ObjectID] = []
        for step in 0..<20_000 {
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<70:
                let storageClass: StorageClass = Int.random(in: 0..<8, using: &random) == 0 ? .pinned : .permanent
                guard let id = house.store(UInt64.random(in: 0..<20_000, using: &random), storageClass) else { break }
                all.append(id)
                if storageClass == .pinned { pinned.insert(id) }
            case 70..<90:
                if let id = all.randomElement(using: &random) { house.touch(id) }
            case 90..<98:
                guard !all.isEmpty else { break }
                let id = all.remove(at: Int.random(in: 0..<all.count, using: &random))
                house.remove(id)
                pinned.remove(id)
            default:
                _ = house.storeLarge(UInt64.random(in: 1..<4, using: &random) << 18)
            }
            // The reclaimer runs beside; the book's commits come now and then.
            if step % 4 == 0 { _ = reclaimer.turn() }
            if step % 128 == 0 { house.commit() }
        }
        #expect(house.state.withLock { $0.usedMax } <= 8 << 20)
        #expect(pinned.isSubset(of: Self.live(house)))
        #expect(house.ledger.withLock { $0.pinnedBytes } <= 3 << 20)
        #expect(house.state.withLock { $0.evicted }.count > 1000)
        house.closeActive()
        while reclaimer.turn() == .worked { house.commit() }
        house.commit()
        // From the files alone nothing comes back that was removed; evicted objects may, where their file is still there.
        let removed = house.state.withLock { $0.removed.subtracting($0.evicted) }
        #expect(house.rebuilt().isDisjoint(with: removed))
        #expect(
            Self.live(house).subtracting(Set(house.state.withLock { $0.large.values })).isSubset(of: house.rebuilt()))
        // What is free is the reserve, what was last wanted in one piece, and at most one file more.
        let (used, reserve) = house.ledger.withLock { ($0.usedBytes, $0.reserveBytes) }
        #expect(used + reserve <= 8 << 20)
        #expect(used + reserve + (2 << 20) > 8 << 20)
    }
}
