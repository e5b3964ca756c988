import Testing

@testable import Disk

@Suite("The ledger: what may be written, and what goes next")
struct LedgerTests {
    static let mebibyte: UInt64 = 1 << 20
    static let limits = Ledger.Limits(size: 64 << 20, pinned: 32 << 20, segment: 4 << 20)

    /// A closed segment of 4 MiB with so much live.
    private static func add(
        _ number: UInt32, to ledger: inout Ledger, permanent: UInt64 = 0, pinned: UInt64 = 0
    ) {
        ledger.load(number, .shared, fileBytes: 4 << 20)
        if permanent > 0 { ledger.add(permanent, .permanent, to: number, wasPromised: false) }
        if pinned > 0 { ledger.add(pinned, .pinned, to: number, wasPromised: false) }
    }

    /// The limit lies between what the files take and the reserve: reclaiming is due.
    private static func full(_ fill: (inout Ledger) -> Void) -> Ledger {
        var ledger = Ledger(limits: limits)
        fill(&ledger)
        ledger.setLimits(.init(size: ledger.usedBytes + 1, pinned: 32 << 20, segment: 4 << 20))
        return ledger
    }

    @Test func `storing stops at the floor, moving at the size`() {
        var ledger = Ledger(limits: Self.limits)
        let storable = Self.limits.size - ledger.floorBytes
        #expect(ledger.claim(storable + 1, for: .storing) == .never)
        #expect(ledger.claim(storable, for: .storing) == .granted)
        #expect(ledger.claim(1, for: .storing) == .wait)
        #expect(ledger.claim(ledger.floorBytes + 1, for: .moving) == .wait)
        #expect(ledger.claim(ledger.floorBytes, for: .moving) == .granted)
        #expect(ledger.usedBytes == Self.limits.size)
        #expect(ledger.claim(1, for: .moving) == .wait)
    }

    @Test func `a claim that is given back is available to others`() {
        var ledger = Ledger(limits: Self.limits)
        let storable = Self.limits.size - ledger.floorBytes
        #expect(ledger.claim(storable, for: .storing) == .granted)
        ledger.unclaim(storable)
        #expect(ledger.claim(storable, for: .storing) == .granted)
        ledger.begin(1, .large)
        ledger.grew(1, by: storable)
        #expect(ledger.claimedBytes == 0)
        #expect(ledger.fileBytes == storable)
        ledger.delete(1)
        #expect(ledger.usedBytes == 0)
        #expect(ledger.largeCount == 0)
    }

    @Test func `the book counts, and space is reserved for it while it grows`() {
        var ledger = Ledger(limits: Self.limits)
        let before = ledger.floorBytes
        ledger.setBook(bytes: 1 << 20)
        ledger.setBook(bytes: 8 << 20)
        #expect(ledger.usedBytes == 8 << 20)
        #expect(ledger.floorBytes == before + (1 << 20), "a quarter of its length, where it grew by more")
        #expect(ledger.claim(Self.limits.size - before, for: .storing) == .never)
        for _ in 0..<50 { ledger.setBook(bytes: 8 << 20) }
        #expect(ledger.floorBytes == before, "it does not grow any more")
    }

    @Test func `pinned objects get exactly their quota, whether waiting or written`() {
        var ledger = Ledger(limits: Self.limits)
        #expect(ledger.promise(20 << 20, .pinned) == true)
        #expect(ledger.promise((12 << 20) + 1, .pinned) == false)
        #expect(ledger.promise(12 << 20, .pinned) == true)
        #expect(ledger.promise(1, .pinned) == false)
        #expect(ledger.promise(1 << 30, .permanent) == true)
        ledger.load(1, .shared, fileBytes: 20 << 20)
        ledger.add(20 << 20, .pinned, to: 1, wasPromised: true)
        #expect(ledger.pinnedBytes == 20 << 20)
        #expect(ledger.promisedPinnedBytes == 12 << 20)
        #expect(ledger.promise(1, .pinned) == false)
        ledger.withdraw(12 << 20, .pinned)
        ledger.remove(20 << 20, .pinned, from: 1)
        #expect(ledger.promise(32 << 20, .pinned) == true)
    }

    @Test func `a quota as large as the store leaves room to reclaim with`() {
        var ledger = Ledger(limits: .init(size: 64 << 20, pinned: 64 << 20, segment: 4 << 20))
        #expect(ledger.pinnedMax < (64 << 20) - ledger.reserveBytes)
        #expect(ledger.promise(ledger.pinnedMax + 1, .pinned) == false)
        #expect(ledger.promise(ledger.pinnedMax, .pinned) == true)
    }

    @Test func `new limits take effect at once`() {
        var ledger = Ledger(limits: Self.limits)
        Self.add(1, to: &ledger, pinned: 4 << 20)
        ledger.setLimits(.init(size: 64 << 20, pinned: 3 << 20, segment: 4 << 20))
        #expect(ledger.promise(1, .pinned) == false, "what is pinned stays, but nothing comes to it")
        ledger.setLimits(.init(size: 64 << 20, pinned: 5 << 20, segment: 4 << 20))
        #expect(ledger.promise(1 << 20, .pinned) == true)
    }

    @Test func `above a lowered size, copying continues and storing does not`() {
        var ledger = Ledger(limits: Self.limits)
        for number in 1...12 { Self.add(UInt32(number), to: &ledger, permanent: 3 << 20) }
        ledger.setLimits(.init(size: 32 << 20, pinned: 0, segment: 4 << 20))
        #expect(ledger.claim(1, for: .storing) == .wait)
        #expect(ledger.claim(ledger.floorBytes, for: .moving) == .granted)
        #expect(ledger.claim(1, for: .moving) == .wait)
        ledger.unclaim(ledger.floorBytes)
        // With each file that goes, the line that may be reached is lower.
        ledger.delete(1)
        #expect(ledger.claim(ledger.floorBytes + 1, for: .moving) == .wait)
        for number in 2...6 { ledger.delete(UInt32(number)) }
        #expect(ledger.claim((32 << 20) - ledger.usedBytes + 1, for: .moving) == .wait)
        #expect(ledger.claim((32 << 20) - ledger.usedBytes, for: .moving) == .granted)
    }

    @Test func `while there is space, only empty units are victims`() {
        var ledger = Ledger(limits: Self.limits)
        Self.add(1, to: &ledger, permanent: 1000)
        Self.add(2, to: &ledger)
        #expect(ledger.nextVictim() == .segment(2, usedBytesMax: 0, isSparse: true))
        #expect(ledger.nextVictim() == .notNeeded)
    }

    @Test func `the sparsest unit is the first victim, then the oldest`() {
        var ledger = Self.full {
            Self.add(1, to: &$0, permanent: 3 << 20)
            Self.add(2, to: &$0, permanent: 4 << 20)
            Self.add(3, to: &$0, permanent: (1 << 20) - 16)
            Self.add(4, to: &$0, permanent: 1 << 20)
            Self.add(5, to: &$0, permanent: 64)
        }
        #expect(ledger.nextVictim() == .segment(5, usedBytesMax: .max, isSparse: true))
        #expect(ledger.nextVictim() == .segment(3, usedBytesMax: .max, isSparse: true))
        #expect(ledger.nextVictim() == .segment(1, usedBytesMax: 2 << 20, isSparse: false))
        #expect(ledger.leavingBytes == 12 << 20)
    }

    @Test func `a segment is no victim before it is closed`() {
        var ledger = Self.full {
            $0.load(1, .shared, fileBytes: 4 << 20, isClosed: false)
            $0.add(100, .permanent, to: 1, wasPromised: false)
        }
        while ledger.nextVictim() == .askAgain {}
        #expect(ledger.nextVictim() != .segment(1, usedBytesMax: .max, isSparse: true))
        ledger.close(1)
        #expect(ledger.nextVictim() == .segment(1, usedBytesMax: .max, isSparse: true))
    }

    @Test func `half of a victim is copied at most, pinned first`() {
        var ledger = Self.full {
            Self.add(1, to: &$0, permanent: 2 << 20, pinned: 1 << 20)
            Self.add(2, to: &$0, permanent: 1 << 20, pinned: 3 << 20)
        }
        #expect(ledger.nextVictim() == .segment(1, usedBytesMax: 1 << 20, isSparse: false))
        #expect(ledger.nextVictim() == .segment(2, usedBytesMax: 0, isSparse: false))
    }

    @Test func `large files are chosen by age, and a kept one becomes young`() {
        var ledger = Self.full {
            for number in 1...20 {
                $0.load(UInt32(number), .large, fileBytes: 4 << 20)
                $0.add(4 << 20, number == 2 ? .pinned : .permanent, to: UInt32(number), wasPromised: false)
            }
        }
        #expect(ledger.nextVictim() == .large(1))
        ledger.keep(1)
        #expect(ledger.leavingBytes == 0)
        #expect(ledger.nextVictim() == .large(3), "2 is pinned")
        ledger.delete(3)
        ledger.setLimits(.init(size: 8 << 20, pinned: 32 << 20, segment: 4 << 20))
        for number in 4...20 {
            #expect(ledger.nextVictim() == .large(UInt32(number)))
            ledger.delete(UInt32(number))
        }
        #expect(ledger.nextVictim() == .large(1), "it was the oldest, and is now the youngest")
    }

    @Test func `a victim is not chosen twice`() {
        var ledger = Ledger(limits: Self.limits)
        for number in 1...14 { Self.add(UInt32(number), to: &ledger, permanent: 4 << 20) }
        var count = 0
        while case .segment = ledger.nextVictim() { count += 1 }
        #expect(count > 0 && count < 14)
        #expect(ledger.shortfall == 0)
        #expect(ledger.nextVictim() == .notNeeded)
    }

    @Test func `space that a large object asked for is reclaimed once`() {
        var ledger = Ledger(limits: Self.limits)
        for number in 1...8 { Self.add(UInt32(number), to: &ledger, permanent: 4 << 20) }
        #expect(ledger.shortfall == 0)
        #expect(ledger.claim(40 << 20, for: .storing) == .wait)
        while case .segment(let number, _, _) = ledger.nextVictim() { ledger.delete(number) }
        #expect(ledger.shortfall == 0)
        #expect(ledger.claim(40 << 20, for: .storing) == .granted)
    }

    @Test func `a granted request is forgotten`() {
        var ledger = Ledger(limits: Self.limits)
        for number in 1...8 { Self.add(UInt32(number), to: &ledger, permanent: 4 << 20) }
        #expect(ledger.claim(40 << 20, for: .storing) == .wait)
        #expect(ledger.shortfall > 0)
        for number in 1...6 { ledger.delete(UInt32(number)) }
        #expect(ledger.claim(40 << 20, for: .storing) == .granted)
        #expect(ledger.shortfall == 0)
    }

    @Test func `if everything is pinned the ledger says so, and continues when something is removed`() {
        var ledger = Self.full {
            for number in 1...10 { Self.add(UInt32(number), to: &$0, pinned: (4 << 20) - 64) }
        }
        var answers: [Ledger.Victim] = []
        repeat { answers.append(ledger.nextVictim()) } while answers.last == .askAgain
        #expect(answers.last == .allPinned)
        #expect(ledger.claim(4096, for: .storing) == .never)
        ledger.remove((4 << 20) - 64, .pinned, from: 4)
        #expect(ledger.claim(4096, for: .storing) == .wait)
        #expect(ledger.nextVictim() == .segment(4, usedBytesMax: 0, isSparse: true))
    }

    @Test func `mostly pinned units are victims only if there is nothing better`() {
        var ledger = Self.full {
            for number in 1...10 { Self.add(UInt32(number), to: &$0, pinned: (4 << 20) - (256 << 10)) }
        }
        var answer = ledger.nextVictim()
        while answer == .askAgain { answer = ledger.nextVictim() }
        #expect(answer == .segment(1, usedBytesMax: 0, isSparse: false))
    }

    @Test func `no search for a victim holds the lock for long, however many units there are`() {
        var ledger = Self.full {
            for number in 1...10_000 {
                $0.load(UInt32(number), .large, fileBytes: 4 << 20)
                $0.add(4 << 20, number == 9_000 ? .permanent : .pinned, to: UInt32(number), wasPromised: false)
            }
        }
        var asked = 0
        while ledger.nextVictim() == .askAgain { asked += 1 }
        #expect(asked >= 9_000 / 64)
        #expect(ledger.units[9_000]?.isVictim == true)
    }

    @Test func `a live record may change its class, within the quota`() {
        var ledger = Ledger(limits: .init(size: 64 << 20, pinned: 1 << 20, segment: 4 << 20))
        Self.add(1, to: &ledger, permanent: 1 << 20)
        #expect(ledger.reclassify(1 << 20, in: 1, to: .pinned) == true)
        #expect(ledger.pinnedBytes == 1 << 20)
        #expect(ledger.permanentBytes == 0)
        Self.add(2, to: &ledger, permanent: 16)
        #expect(ledger.reclassify(16, in: 2, to: .pinned) == false)
        #expect(ledger.reclassify(1 << 20, in: 1, to: .permanent) == true)
        #expect(ledger.objectCount == 2)
    }

    @Test(arguments: 1...20) func `in any order of events the sums are right and the limits hold`(_ seed: Int) {
        var model = LedgerModel(seed: UInt64(seed))
        for _ in 0..<4_000 { model.step() }
        #expect(model.victims > 0)
        #expect(model.stored > 0)
    }
}

/// Drives a ledger as a store would, and keeps the same sums the slow way.
private struct LedgerModel {
    private struct Record {
        var unit: UInt32
        var bytes: UInt64
        var storageClass: StorageClass
    }
    private var random: LedgerGenerator
    private var ledger: Ledger
    private var records: [Record] = []
    private var promised: [(bytes: UInt64, storageClass: StorageClass)] = []
    private var active: UInt32 = 1
    private var files: [UInt32: UInt64] = [1: 0]
    private var nextNumber: UInt32 = 2
    private(set) var victims = 0
    private(set) var stored = 0

    init(seed: UInt64) {
        random = LedgerGenerator(seed: seed)
        ledger = Ledger(limits: .init(size: 32 << 20, pinned: 12 << 20, segment: 1 << 20))
        ledger.begin(1, .shared)
    }

    mutating func step() {
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<60: store()
        case 60..<70: remove()
        case 70..<90: reclaim()
        case 90..<93: ledger.setBook(bytes: UInt64.random(in: 0..<(1 << 20), using: &random))
        default: large()
        }
        check()
    }

    private var randomClass: StorageClass {
        mutating get { Int.random(in: 0..<4, using: &random) == 0 ? .pinned : .permanent }
    }

    private mutating func store() {
        let bytes = UInt64.random(in: 1..<16_000, using: &random) * 16
        let storageClass = randomClass
        guard ledger.promise(bytes, storageClass) else { return }
        guard Int.random(in: 0..<10, using: &random) > 0, ledger.claim(bytes, for: .storing) == .granted else {
            return ledger.withdraw(bytes, storageClass)
        }
        stored += 1
        append(bytes)
        ledger.add(bytes, storageClass, to: active, wasPromised: true)
        records.append(Record(unit: active, bytes: bytes, storageClass: storageClass))
    }

    private mutating func append(_ bytes: UInt64) {
        if files[active, default: 0] + bytes > 1 << 20 {
            ledger.close(active)
            active = nextNumber
            nextNumber += 1
            ledger.begin(active, .shared)
        }
        ledger.grew(active, by: bytes)
        files[active, default: 0] += bytes
    }

    private mutating func large() {
        let bytes = UInt64.random(in: 1..<4, using: &random) << 20
        let storageClass = randomClass
        guard ledger.promise(bytes, storageClass) else { return }
        guard ledger.claim(bytes, for: .storing) == .granted else { return ledger.withdraw(bytes, storageClass) }
        let number = nextNumber
        nextNumber += 1
        ledger.begin(number, .large)
        ledger.grew(number, by: bytes)
        files[number] = bytes
        ledger.add(bytes, storageClass, to: number, wasPromised: true)
        ledger.close(number)
        records.append(Record(unit: number, bytes: bytes, storageClass: storageClass))
    }

    private mutating func remove() {
        guard let index = records.indices.randomElement(using: &random) else { return }
        let record = records.remove(at: index)
        ledger.remove(record.bytes, record.storageClass, from: record.unit)
        if ledger.units[record.unit]?.kind == .large { delete(record.unit) }
    }

    private mutating func reclaim() {
        var victim = ledger.nextVictim()
        while victim == .askAgain { victim = ledger.nextVictim() }
        switch victim {
        case .large(let number):
            victims += 1
            if Bool.random(using: &random) { return ledger.keep(number) }
            records.removeAll { $0.unit == number }
            delete(number)
        case .segment(let number, let usedBytesMax, _):
            victims += 1
            empty(number, usedBytesMax: usedBytesMax)
        case .askAgain, .allPinned, .notNeeded: break
        }
    }

    private mutating func empty(_ number: UInt32, usedBytesMax: UInt64) {
        var used: UInt64 = 0
        for index in records.indices where records[index].unit == number {
            let record = records[index]
            let isWanted = record.storageClass == .pinned || used + record.bytes <= usedBytesMax
            if !isWanted { continue }
            if record.storageClass == .permanent { used += record.bytes }
            // The floor sees to it that what is pinned can always be copied.
            let claim = ledger.claim(record.bytes, for: .moving)
            #expect(claim == .granted)
            guard claim == .granted else { return ledger.keep(number) }
            append(record.bytes)
            ledger.move(record.bytes, from: number, to: active, record.bytes, record.storageClass)
            records[index].unit = active
        }
        records.removeAll { $0.unit == number }
        delete(number)
    }

    private mutating func delete(_ number: UInt32) {
        ledger.delete(number)
        files[number] = nil
    }

    private func check() {
        #expect(ledger.usedBytes <= ledger.limits.size)
        #expect(ledger.pinnedBytes + ledger.promisedPinnedBytes <= ledger.limits.pinned)
        #expect(ledger.fileBytes == files.values.reduce(0, +))
        #expect(ledger.claimedBytes == 0)
        #expect(ledger.liveBytes == records.reduce(0) { $0 + $1.bytes })
        #expect(ledger.pinnedBytes == records.reduce(0) { $0 + ($1.storageClass == .pinned ? $1.bytes : 0) })
        #expect(ledger.objectCount == records.count)
        #expect(ledger.units.count == files.count)
        #expect(ledger.leavingBytes == 0)
    }
}

/// SplitMix64: the same numbers for the same seed, everywhere.
struct LedgerGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ z >> 30) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ z >> 27) &* 0x94d0_49bb_1331_11eb
        return z ^ z >> 31
    }
}
