import EventLoop
import Foundation
import Glibc
@testable import Storage
import Synchronization
import Testing

@Suite("Memory and back store together")
struct TiersTests {
    private func with(_ engine: Engine = .disk, _ body: (TiersRoom) throws -> Void) throws {
        let room = try TiersRoom(engine)
        defer { room.remove() }
        try body(room)
    }

    // MARK: what can not be read

    @Test(
        arguments: [BackStoreRead.failed(errno: EMFILE), .failed(errno: ENOMEM), .failed(errno: EIO), .damaged],
        Engine.allCases)
    func `a response whose body cannot be read is removed, from the back store only if the copy is bad`(
        _ read: BackStoreRead, _ engine: Engine
    ) throws {
        try with(engine) { room in
            try room.store("a", "en|1")
            room.leaveToBackStore()
            let record = try #require(room.records("a").first)
            room.tiers.removeUnreadable(record, after: read)
            let isItsOwn = read == .damaged || read == .failed(errno: EIO)
            #expect(room.heads("a") == (isItsOwn ? [] : ["en|1"]))
            #expect(room.backStore.statistics.damagedObjects == (isItsOwn ? 1 : 0))
        }
    }

    @Test(arguments: Engine.allCases) func `whoever frees what was purged is its last owner`(_ engine: Engine) throws {
        try with(engine) { room in
            for number in 0..<600 { try room.store("a\(number)", "en|1") }
            #expect(room.backStore.flush())
            var released = 0
            let purged = room.tiers.purgeMemory(
                dryRun: false,
                free: { lists in
                    let witness = Weak(lists.last?.last)
                    _ = consume lists
                    if witness.object == nil { released += 1 }
                }
            ) { _ in true }
            #expect(purged.records == 600)
            // First they leave memory, and then, 256 at once, the back store.
            #expect(released == 3)
        }
    }

    private struct Weak {
        weak var object: StoredRecord?
        init(_ object: StoredRecord?) { self.object = object }
    }

    // MARK: what is worth memory

    /// Stores "hot" on the back store, fills memory with what nobody asks for again, and looks "hot" up.
    private func withFullMemory(_ body: (TiersRoom, Versioned) throws -> Void) throws {
        let room = try TiersRoom(.memory, memory: 1 << 20)
        defer { room.remove() }
        try room.store("hot", "en|1")
        room.leaveToBackStore()
        for number in 0..<400 { try room.store("once\(number)", "en|1|session", bytes: 5000) }
        let hot = try #require(room.records("hot").first)
        #expect(!hot.body.isResident && hot.place == .small)
        try body(room, hot)
    }

    @Test func `a body that is used comes into memory in the place of one that nobody has asked for again`() throws {
        try withFullMemory { room, hot in
            #expect(!room.tiers.isWorthMemory(hot))
            room.tiers.touch(hot)
            #expect(!room.tiers.isWorthMemory(hot), "it was used once")
            room.tiers.touch(hot)
            #expect(room.tiers.isWorthMemory(hot))
        }
    }

    @Test func `a body comes into memory at once if its response comes back soon after it was evicted`() throws {
        try withFullMemory { room, hot in
            room.tiers.memory.forget(hot)
            let again = try #require(room.records("hot").first)
            #expect(again !== hot && again.place == .main && room.tiers.isWorthMemory(again))
        }
    }

    @Test(arguments: Engine.allCases) func `a response that the back store has lost is remembered`(_ engine: Engine)
        throws
    {
        try with(engine) { room in
            try room.store("a", "en|1")
            room.leaveToBackStore()
            room.tiers.removeUnreadable(try #require(room.records("a").first), after: .damaged)
            #expect(room.heads("a").isEmpty)
            #expect(try room.store("a", "en|2").place == .main)
        }
    }

    @Test(arguments: [(1, 4), (16, 4), (64, 16), (1024, 64)])
    func `what waits to be written takes a quarter of memory at most`(_ memory: Int, _ queue: Int) throws {
        let backStore = MemoryBackStore(Medium(), isShut: { false })
        let format = ResponseFormat(form: { _ in nil }, record: { _, _, _ in nil })
        func tier(_ budget: Int) -> MemoryTier {
            MemoryTier(budget: budget << 20, shards: 1, objectMax: 1 << 20, variantsPerKeyMax: 1)
        }
        let tiers = Tiers(memory: tier(memory), backStore: backStore, format: format)
        #expect(backStore.queueBytesMax.withLock { $0 } == queue << 20)
        tiers.setBudget(128 << 20)
        #expect(backStore.queueBytesMax.withLock { $0 } == 32 << 20)
        tiers.setBudget(memory << 20)
        #expect(backStore.queueBytesMax.withLock { $0 } == queue << 20)
    }

    @Test func `what a busy disk was to take says so until the disk takes it, and what was promised is taken`() throws {
        try with(.disk) { room in
            room.calls.shut()
            // 16 MiB may wait.
            let stored = try (0..<20).map { try room.store("\($0)", "en|1", bytes: 1 << 20) }
            let refused = try #require(stored.last)
            #expect(stored[0].tenure == .asMeant && refused.tenure == .memoryOnly)
            room.tiers.foresee(refused, bytes: 1 << 20, .permanent)
            #expect(refused.tenure == .memoryOnly)
            #expect(room.tiers.writersShouldPause)
            let renewed = Versioned("19", "en|2", refused.body)
            #expect(room.tiers.replace(refused, with: renewed))
            #expect(renewed.tenure == .memoryOnly, "a new head does not bring it to the disk")
            let promised = try room.record("promised", "en|1", bytes: 1 << 20)
            #expect(room.tiers.insert(promised))
            room.tiers.persist(promised, isPromised: true)
            #expect(promised.storedID != nil && promised.tenure == .asMeant)
            room.calls.open()
            #expect(room.backStore.flush())
            #expect(!room.tiers.writersShouldPause)
            room.tiers.touch(renewed)
            #expect(renewed.storedID != nil && renewed.tenure == .asMeant)
            try room.reopen()
            #expect(room.heads("19") == ["en|2"] && room.heads("promised") == ["en|1"])
        }
    }

    @Test func `a response that a busy disk refused is offered again when it is used`() throws {
        try with(.disk) { room in
            room.calls.shut()
            // 16 MiB may wait.
            let stored = try (0..<20).map { try room.store("\($0)", "en|1", bytes: 1 << 20) }
            let refused = try #require(stored.last)
            #expect(refused.storedID == nil && room.backStore.statistics.refusedBusy > 0)
            room.tiers.touch(refused)
            #expect(refused.storedID == nil, "the disk has not caught up")
            let count = room.backStore.statistics.refusedBusy
            room.calls.open()
            #expect(room.backStore.flush())
            room.tiers.touch(refused)
            #expect(refused.storedID != nil && room.backStore.statistics.refusedBusy == count)
            try room.reopen()
            #expect(room.heads("19") == ["en|1"])
        }
    }

    @Test(arguments: Engine.allCases) func `what the back store had before comes as doubted, until it is trusted`(
        _ engine: Engine
    ) throws {
        try with(engine) { room in
            try room.store("a", "en|1")
            try room.store("b", "en|1")
            room.leaveToBackStore()
            room.tiers.doubtStored()
            #expect(room.tiers.doubtsStored)
            #expect(room.heads("a") == ["en|1|doubted"])
            // What is stored from here on is as good as what memory has.
            try room.store("c", "en|1")
            room.leaveToBackStore()
            #expect(room.heads("c") == ["en|1"] && room.heads("a") == ["en|1|doubted"])
            room.tiers.trustStored()
            #expect(room.heads("b") == ["en|1"] && !room.tiers.doubtsStored)
            #expect(room.heads("a") == ["en|1|doubted"], "what is in memory stays so")
        }
    }

    @Test func `what must not outlive the process is not offered when it is used`() throws {
        try with(.disk) { room in
            let record = try room.store("a", "en|1|session")
            #expect(record.isUnstorable)
            room.tiers.touch(record)
            #expect(record.storedID == nil)
        }
    }

    @Test(arguments: Engine.allCases) func `what memory has evicted is not offered: a newer response may be stored`(
        _ engine: Engine
    ) throws {
        try with(engine) { room in
            let old = try room.record("a", "en|1")
            #expect(room.tiers.insert(old))
            room.tiers.setBudget(1)
            #expect(room.tiers.memory.find("a", under: storageKey("a")).isEmpty && !old.isRevoked)
            room.tiers.setBudget(64 << 20)
            try room.store("a", "en|2")
            room.tiers.touch(old)
            #expect(old.storedID == nil && room.backStore.flush())
            room.leaveToBackStore()
            #expect(room.heads("a") == ["en|2"])
        }
    }

    @Test(arguments: Engine.allCases)
    func `a variant that memory evicts before it is written stays, unless the next one replaces it`(
        _ engine: Engine
    ) throws {
        try with(engine) { room in
            room.calls.shut()
            try room.store("a", "en|1")
            try room.store("a", "fr|1")
            room.tiers.clearMemory()
            #expect(room.tiers.memory.find("a", under: storageKey("a")).isEmpty)
            try room.store("a", "de|1")
            try room.store("a", "fr|2")
            room.calls.open()
            room.leaveToBackStore()
            #expect(Set(room.heads("a")) == ["en|1", "de|1", "fr|2"])
        }
    }

    @Test(arguments: Engine.allCases)
    func `what the back store has is served while transfers under way take all memory`(_ engine: Engine) throws {
        try with(engine) { room in
            for language in ["en", "de", "fr"] { try room.store("small", "\(language)|1") }
            try room.store("large", "en|1", bytes: 3 << 20)
            room.leaveToBackStore()
            room.tiers.setBudget(1 << 20)
            let growing = try #require(room.tiers.makeBody(expectedLength: 900_000))
            #expect(growing.append(pattern(0..<800_000)) == .appended)
            var others: [Body] = []
            while let other = room.tiers.makeBody(expectedLength: nil) { others.append(other) }
            #expect(Set(room.heads("small")) == ["en|1", "de|1", "fr|1"], "none is evicted for another")
            #expect(room.heads("large") == ["en|1"])
            let record = try #require(room.records("small").first)
            #expect(record.body.load(waits: true) == .done && record.body.bytes() == pattern(0..<100))
            for body in others + [growing] { body.fail() }
        }
    }

    @Test func `what is too large for the disk is offered once`() throws {
        try with(.disk) { room in
            let long = String(repeating: "x", count: 3 << 20)
            let record = try room.store("a", "en|\(long)")
            #expect(record.storedID == nil && record.isUnstorable)
            let ids = room.backStore.newestID.rawValue
            room.tiers.touch(record)
            #expect(room.backStore.newestID.rawValue == ids)
        }
    }

    /// The store finds out by itself which response it was, and counts it. That may take a while.
    @Test func `a response whose head is damaged is left to the back store, even if another replaces it`() throws {
        try with(.memory) { room in
            try room.store("a", "v|1")
            room.leaveToBackStore()
            let damaged = try #require(room.medium.items(storageKey("a")).first)
            room.medium.change(damaged.id) { $0.isHeadDamaged = true }
            try room.store("a", "v|2")
            room.leaveToBackStore()
            #expect(room.heads("a") == ["v|2"])
            #expect(room.medium.items(storageKey("a")).contains { $0.id == damaged.id })
        }
    }

    /// Five blocks, of which the third is damaged.
    private func withDamaged(_ body: (TiersRoom, Versioned) throws -> Void) throws {
        try with(.disk) { room in
            try room.store("a", "en|1", bytes: 300_000)
            room.leaveToBackStore()
            let record = try #require(room.records("a").first)
            try room.changeByte(at: 140_000, ofBodyWith: pattern(0..<1000))
            try body(room, record)
        }
    }

    private func rescue(_ record: Versioned, _ room: TiersRoom) -> Versioned? {
        room.tiers.rescue(record) { current, body in
            Versioned("a", unsafe unsafeDowncast(current, to: Versioned.self).text, body)
        } as? Versioned
    }

    @Test func `a response with a damaged block is rescued, and stored again when it is whole`() throws {
        try withDamaged { room, record in
            let rescued = try #require(rescue(record, room))
            #expect(rescued.body.extents == [0..<131_072, 196_608..<300_000])
            #expect(room.records("a").map { $0 === rescued } == [true])
            #expect(room.backStore.statistics.damagedObjects == 1)
            #expect(rescue(record, room) === rescued, "all who read the damaged body go on with one response")
            guard case .missing(let fill) = rescued.body.claim(at: 150_000, limit: 300_000) else {
                return #expect(Bool(false), "the block is missing")
            }
            #expect(fill.range == 150_000..<196_608)
            fill.abandon()
            guard case .missing(let fill) = rescued.body.claim(at: 131_072, limit: 300_000) else {
                return #expect(Bool(false), "the block is missing")
            }
            #expect(fill.append(pattern(131_072..<196_608)) == .appended && fill.finish())
            #expect(rescued.body.isComplete)
            room.tiers.persist(rescued)
            room.leaveToBackStore()
            #expect(room.records("a").map { $0.body.pieces() } == [pattern(0..<300_000)])
        }
    }

    @Test func `what a renewal replaced meanwhile is rescued with its new head`() throws {
        try withDamaged { room, record in
            #expect(room.tiers.replace(record, with: Versioned("a", "en|1 renewed", record.body)))
            #expect(rescue(record, room)?.text == "en|1 renewed")
            #expect(room.heads("a") == ["en|1 renewed"])
        }
    }

    enum Loss: CaseIterable { case removed, evicted, movedInBackStore }
    @Test(arguments: Loss.allCases) func `what is not stored any more is rescued for its readers alone`(_ loss: Loss)
        throws
    {
        try withDamaged { room, record in
            switch loss {
            case .removed: room.tiers.remove(record)
            case .evicted: room.tiers.clearMemory()
            case .movedInBackStore:
                room.backStore.remove(try #require(record.storedID), record.key, record.keyBytes)
            }
            let rescued = try #require(rescue(record, room))
            #expect(room.heads("a") == [])
            if case .missing(let fill) = rescued.body.claim(at: 131_072, limit: 300_000) {
                #expect(fill.append(pattern(fill.range)) == .appended && fill.finish())
            }
            #expect(rescued.body.isComplete)
            room.tiers.persist(rescued)
            room.leaveToBackStore()
            #expect(room.heads("a") == [])
        }
    }

    @Test func `what is kept out is not written when its body is complete`() throws {
        try with(.memory) { room in
            let record = try room.record("a", "en|1")
            #expect(room.tiers.mayPersist(record))
            room.tiers.keepOut(record)
            #expect(!room.tiers.mayPersist(record))
            room.tiers.persist(record)
            room.leaveToBackStore()
            #expect(room.heads("a") == [])
        }
    }

    @Test(arguments: Engine.allCases)
    func `a response that is outdated when it has been stored is removed, and says so`(_ engine: Engine) throws {
        try with(engine) { room in
            let asMeant = try room.record("a", "en|1")
            #expect(room.tiers.insert(asMeant) { false } && asMeant.tenure == .asMeant)
            let outdated = try room.record("a", "en|2")
            // A client that found it in between is served from it.
            #expect(room.tiers.insert(outdated) { room.heads("a") == ["en|2"] })
            #expect(outdated.tenure == .outdated && outdated.isRevoked)
            room.tiers.persist(outdated, isPromised: true)
            room.leaveToBackStore()
            #expect(room.heads("a") == [])
        }
    }

    @Test func `what is in memory needs no rescue`() throws {
        try withDamaged { room, record in
            let other = try room.store("b", "en|1")
            #expect(rescue(other, room) == nil)
        }
    }

    // MARK: what is not to come back

    @Test(arguments: Engine.allCases)
    func `a record that replaces one that memory forgot replaces it on the back store, too`(
        _ engine: Engine
    ) throws {
        try with(engine) { room in
            try room.store("a", "v|1")
            room.leaveToBackStore()
            // As when it was evicted while the origin was asked; this one stays in memory.
            try room.store("a", "v|2|session")
            room.leaveToBackStore()
            #expect(room.heads("a") == [])
        }
    }

    @Test(arguments: Engine.allCases) func `when the newer record is removed, the older one does not come back`(
        _ engine: Engine
    ) throws {
        try with(engine) { room in
            try room.store("a", "v|1")
            try room.store("a", "other|1")
            room.leaveToBackStore()
            let second = try room.store("a", "v|2")
            room.leaveToBackStore()
            #expect(Set(room.heads("a")) == ["v|2", "other|1"])
            for record in room.records("a") where record.text == second.text { room.tiers.remove(record) }
            #expect(room.heads("a") == ["other|1"])
            try room.reopen()
            #expect(room.heads("a") == ["other|1"])
        }
    }

    @Test(arguments: Engine.allCases)
    func `a record that was evicted and read again is removed together with the one before it`(
        _ engine: Engine
    ) throws {
        try with(engine) { room in
            let first = try room.store("a", "v|1")
            room.leaveToBackStore()
            #expect(room.heads("a") == ["v|1"])
            // Whoever held it all the time finds out that it is not good.
            room.tiers.remove(first)
            #expect(room.heads("a") == [])
        }
    }

    @Test(arguments: Engine.allCases) func `a freshened record is removed together with the one before it`(
        _ engine: Engine
    ) throws {
        try with(engine) { room in
            let first = try room.store("a", "v|1")
            #expect(room.tiers.replace(first, with: Versioned("a", "v|1 renewed", first.body)))
            room.tiers.remove(first)
            #expect(room.heads("a") == [])
        }
    }

    @Test(arguments: Engine.allCases) func `a purge finds a record that is freshened meanwhile`(
        _ engine: Engine
    ) throws {
        try with(engine) { room in
            let first = try room.store("a", "v|1")
            let renewed = Versioned("a", "v|1 renewed", first.body)
            var isRenewed = false
            let purged = room.tiers.purgeMemory(dryRun: false) { record in
                if !isRenewed { isRenewed = room.tiers.replace(first, with: renewed) }
                return true
            }
            #expect(isRenewed && purged.records == 1)
            #expect(room.heads("a") == [])
        }
    }

    // MARK: large bodies

    @Test(arguments: Engine.allCases) func `two writers of one large body are both paused, and both continue`(
        _ engine: Engine
    ) throws {
        try with(engine) { room in
            room.calls.shut()
            let length = 24 << 20
            let record = try #require(room.tiers.makeLargeRecord(length: length) { Versioned("a", "v|1", $0) })
            #expect(room.tiers.insert(record))
            let wakes = (0..<2).map { _ in CountingSemaphore() }
            var fills: [Fill] = []
            for (number, start) in [0, length / 2].enumerated() {
                guard case .missing(let fill) = record.body.claim(at: start, limit: start + length / 2) else {
                    throw CancellationError()
                }
                fills.append(fill)
                #expect(fill.append(pattern(start..<start + 8 << 20)) == .appended)
                #expect(record.body.writerShouldPause)
                record.body.awaitRoom(Wake { wakes[number].signal() })
            }
            room.calls.open()
            for wake in wakes { #expect(wake.wait(timeout: .seconds(10))) }
            fills.forEach { $0.abandon() }
        }
    }

    @Test func `a large body that lost many blocks releases exactly what it was charged`() throws {
        try with { room in
            let length = 4 << 20
            let record = try #require(room.tiers.makeLargeRecord(length: length) { Versioned("a", "v|1", $0) })
            #expect(room.tiers.insert(record))
            guard case .missing(let fill) = record.body.claim(at: 0, limit: length) else { throw CancellationError() }
            #expect(fill.append(pattern(0..<length)) == .appended && fill.finish())
            room.leaveToBackStore()
            try room.reopen()
            let file = try #require(room.largeFiles().first)
            let handle = try FileHandle(forUpdating: file)
            let dataStart = Int(try handle.seekToEnd()) - length
            for block in stride(from: 0, to: length / Body.blockBytes, by: 2) {
                try handle.seek(toOffset: UInt64(dataStart + block * Body.blockBytes + 1000))
                try handle.write(contentsOf: Data([0x55, 0xAA, 0x55, 0xAA]))
            }
            try handle.close()
            do {
                let body = try #require(room.records("a").first).body
                var scratch = [UInt8](repeating: 0, count: Body.blockBytes)
                for block in 0..<length / Body.blockBytes {
                    let isThere = unsafe scratch.withUnsafeMutableBytes { scratch in
                        if case .bytes = unsafe body.piece(
                            from: block * Body.blockBytes, limit: Body.blockBytes, room: scratch, waits: true)
                        {
                            return true
                        }
                        return false
                    }
                    #expect(isThere == (block % 2 == 1))
                }
                #expect(body.state == .partial)
            }
            #expect(room.closeAndEmpty() == 0)
        }
    }

    @Test func `a large object is opened only by callers that may wait`() throws {
        try with { room in
            let length = 2 << 20
            let record = try #require(room.tiers.makeLargeRecord(length: length) { Versioned("a", "v|1", $0) })
            #expect(room.tiers.insert(record))
            guard case .missing(let fill) = record.body.claim(at: 0, limit: length) else { throw CancellationError() }
            #expect(fill.append(pattern(0..<length)) == .appended && fill.finish())
            room.leaveToBackStore()
            try room.reopen()
            let opened = room.calls.openCount
            guard case .wouldBlock = room.tiers.load(storageKey("a"), Array("a".utf8), waits: false) else {
                Issue.record("it was read at once")
                return
            }
            #expect(room.calls.openCount == opened)
            #expect(room.records("a").first?.body.pieces() == pattern(0..<length))
        }
    }
}

// MARK: the model

/// Random operations on both tiers and a real store, against a dictionary of what was put and not taken out.
@Suite("Memory and back store against a model")
struct TierModelTests {
    private static let names = (0..<6).map { "name\($0)" }
    private static let variants = ["x", "y", "z"]
    /// Around the bounds of what is stored in one piece.
    private static let lengths = [0, 1, 4096, 65_535, 65_536, 65_537, 262_145, 1 << 20, 1 << 20 + 1, 3 << 20]

    /// What may be served under a name: of each variant the version put last, with all heads it had, and its length.
    private struct Version {
        var text: String
        var seed: Int
        var length: Int
    }

    private struct Run {
        let room: TiersRoom
        var random: SeededGenerator
        var model: [String: [String: Version]] = [:]
        var versions = 0

        mutating func step() throws {
            let name = TierModelTests.names.randomElement(using: &random)!
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<30: try put(name)
            case 30..<36: remove(name)
            case 36..<42: renew(name)
            case 42..<46:
                _ = room.tiers.invalidate(storageKey(name), Array(name.utf8))
                model[name] = nil
            case 46..<49:
                let variant = TierModelTests.variants.randomElement(using: &random)!
                purge(variant)
            case 49..<57: _ = room.backStore.flush()
            case 57..<65: room.tiers.clearMemory()
            case 65..<70: press()
            case 70..<72: try reopen()
            default: try look(name)
            }
        }

        private mutating func put(_ name: String) throws {
            versions += 1
            let variant = TierModelTests.variants.randomElement(using: &random)!
            let isSession = Int.random(in: 0..<5, using: &random) == 0
            let length = TierModelTests.lengths.randomElement(using: &random)!
            let text = "\(variant)|\(versions)" + (isSession ? "|session" : "")
            let bytes = pattern(versions..<versions + length)
            let version = Version(text: text, seed: versions, length: length)
            if !isSession, length > 0, Bool.random(using: &random) {
                try grow(name, text, bytes, version, variant)
            } else if length > Tiers.wholeBytesMax, !isSession {
                guard let record = room.tiers.makeLargeRecord(length: length, { Versioned(name, text, $0) }) else {
                    return
                }
                guard room.tiers.insert(record) else { return room.tiers.remove(record) }
                model[name, default: [:]][variant] = version
                try fill(record as! Versioned, bytes)
            } else {
                guard let body = room.tiers.makeBody(expectedLength: length) else { return }
                let record = Versioned(name, text, body)
                guard room.tiers.insert(record) else { return }
                model[name, default: [:]][variant] = version
                // Something may happen while it comes.
                let half = length / 2
                guard body.append(Array(bytes[..<half])) == .appended, body.append(Array(bytes[half...])) == .appended
                else {
                    body.fail()
                    model[name]?[variant] = nil
                    return room.tiers.remove(record)
                }
                #expect(body.finish())
                room.tiers.persist(record)
            }
        }

        /// A body whose length nobody knows; it moves to the back store where it outgrows memory, and may break off.
        private mutating func grow(
            _ name: String, _ text: String, _ bytes: [UInt8], _ version: Version, _ variant: String
        ) throws {
            guard let body = room.tiers.makeBody(expectedLength: nil, lengthMax: 200_000) else { return }
            var record = Versioned(name, text, body)
            guard room.tiers.insert(record) else { return }
            model[name, default: [:]][variant] = version
            func drop() {
                record.body.fail()
                room.tiers.remove(record)
                model[name]?[variant] = nil
            }
            var start = 0
            while start < bytes.count {
                let end = min(bytes.count, start + Int.random(in: 1...300_000, using: &random))
                if Int.random(in: 0..<30, using: &random) == 0 { return drop() }
                if record.body.append(Array(bytes[start..<end])) != .appended {
                    let moved = room.tiers.moveToBackStore(record, lengthMax: 4 << 20) {
                        Versioned(name, ($0 as! Versioned).text, $1)
                    }
                    guard let moved = moved as? Versioned else { return drop() }
                    record = moved
                    guard record.body.append(Array(bytes[start..<end])) == .appended else { return drop() }
                }
                start = end
            }
            #expect(record.body.finish())
            room.tiers.persist(record)
        }

        /// In pieces, of which the last may never come.
        private mutating func fill(_ record: Versioned, _ bytes: [UInt8]) throws {
            var start = 0
            while start < bytes.count {
                let end = min(bytes.count, start + Int.random(in: 1...700_000, using: &random))
                if Int.random(in: 0..<12, using: &random) == 0 {
                    start = end
                    continue
                }
                guard case .missing(let fill) = record.body.claim(at: start, limit: end) else { return }
                _ = fill.append(Array(bytes[start..<end]))
                fill.abandon()
                start = end
            }
        }

        private mutating func remove(_ name: String) {
            guard let record = room.records(name).randomElement(using: &random) else { return }
            room.tiers.remove(record)
            model[name]?[String(record.variant)] = nil
        }

        private mutating func renew(_ name: String) {
            guard let record = room.records(name).randomElement(using: &random), !record.isSession,
                record.body.state != .failed
            else { return }
            versions += 1
            let text = "\(record.text) +\(versions)"
            if room.tiers.replace(record, with: Versioned(name, text, record.body)) {
                model[name]?[String(record.variant)]?.text = text
            }
        }

        private mutating func purge(_ variant: String) {
            _ = room.backStore.flush()
            for name in TierModelTests.names {
                let key = storageKey(name)
                _ = room.records(name)
                _ = room.tiers.purgeMemory(dryRun: false) {
                    $0.key == key && ($0 as? Versioned)?.variant == variant[...]
                }
                model[name]?[variant] = nil
            }
        }

        /// Others want the memory.
        private mutating func press() {
            for number in 0..<24 {
                guard let body = room.tiers.makeBody(expectedLength: 400_000) else { return }
                guard body.append(pattern(0..<400_000)) == .appended, body.finish() else { return }
                _ = room.tiers.insert(Versioned("other\(number)", "x|session", body))
            }
        }

        private mutating func reopen() throws {
            _ = room.backStore.flush()
            try room.reopen()
            for name in TierModelTests.names { try look(name) }
        }

        private func look(_ name: String) throws {
            for record in room.records(name) {
                let known = model[name]?[String(record.variant)]
                #expect(
                    known?.text == record.text, "\(name): \(record.text) is served, and not \(known?.text ?? "none")")
                guard let known, known.text == record.text else { continue }
                try check(record, known)
            }
        }

        private func check(_ record: Versioned, _ known: Version) throws {
            let whole = pattern(known.seed..<known.seed + known.length)
            #expect(record.body.expectedLength ?? record.body.length == known.length)
            if record.body.isLarge {
                for extent in record.body.extents {
                    var offset = extent.lowerBound
                    var room = [UInt8](repeating: 0, count: 256 << 10)
                    while offset < extent.upperBound {
                        let bytes: [UInt8]? = unsafe room.withUnsafeMutableBytes { room in
                            let limit = extent.upperBound - offset
                            guard
                                case .bytes(let bytes) = unsafe record.body.piece(
                                    from: offset, limit: limit, room: room, waits: true)
                            else { return nil }
                            return unsafe Array(bytes)
                        }
                        guard let bytes, !bytes.isEmpty else {
                            Issue.record("\(record.text): nothing at \(offset) of \(extent)")
                            return
                        }
                        let isRight = bytes.elementsEqual(whole[offset..<offset + bytes.count])
                        #expect(isRight, "\(record.text): wrong bytes at \(offset)")
                        offset += bytes.count
                    }
                }
                return
            }
            guard record.body.state == .complete else {
                Issue.record("\(record.text) is not whole")
                return
            }
            #expect(record.body.load(waits: true) == .done)
            let isRight = record.body.bytes() == whole
            #expect(isRight, "\(record.text): wrong bytes")
        }
    }

    @Test(arguments: 0..<8, Engine.allCases)
    func `a served response was inserted, and neither removed nor replaced since`(
        _ seed: Int, _ engine: Engine
    ) throws {
        let room = try TiersRoom(engine, memory: seed % 2 == 0 ? 6 << 20 : 64 << 20)
        defer { room.remove() }
        var run = Run(room: room, random: SeededGenerator(seed: UInt64(seed)))
        for _ in 0..<120 { try run.step() }
        run.model = [:]
        #expect(room.closeAndEmpty() == 0)
    }
}
