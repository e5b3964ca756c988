import EventLoop
import Synchronization

/// Frees units, one after the other, on a thread of its own: decides which records are copied forward, has the writer
/// write them, and lets the file go when the book no longer needs it.
///
///     victim ──scan──▶ wanted: copied forward, then found at the new place    ──book's commit──▶ file deleted
///                      not wanted: out of the index and out of the book
///
/// A crash at any moment finds the old file whole, or a book that no longer points into it. It knows nothing of queues, index
/// or book: `ReclaimerStore` is what it needs of the running store.
final class Reclaimer: Sendable {
    private let ledger: Locked<Ledger>
    private let store: any ReclaimerStore
    private let work = CountingSemaphore()
    private let isAsleep = Atomic(false)
    private let isStopped = Atomic(false)

    /// Bytes of records that are read and given to the writer at a time: what is stored meanwhile waits behind no more.
    static let batchBytes = 1 << 20
    /// Objects of drop records that are carried forward at a time.
    static let dropsMax = 4096

    init(ledger: Locked<Ledger>, store: any ReclaimerStore) {
        self.ledger = ledger
        self.store = store
    }

    // MARK: the thread

    /// Reclaims until `stop`. The body of a thread.
    func run() {
        while !isStopped.load(ordering: .acquiring) {
            while !isStopped.load(ordering: .acquiring), turn() == .worked {}
            isAsleep.store(true, ordering: .sequentiallyConsistent)
            // Between the last look and this line something may have been asked for: a second is the longest it waits.
            _ = work.wait(timeout: .seconds(1))
            isAsleep.store(false, ordering: .sequentiallyConsistent)
        }
    }

    /// There may be something to reclaim. Costs a system call only where the thread sleeps.
    func wake() {
        if isAsleep.exchange(false, ordering: .sequentiallyConsistent) { work.signal() }
    }

    /// Ends `run` after the batch it is at; a victim that is half empty stays as it is.
    func stop() {
        isStopped.store(true, ordering: .releasing)
        work.signal()
    }

    // MARK: one victim

    enum Turn: Sendable, Equatable {
        /// There may be more to do.
        case worked
        case idle
        /// All that is there is pinned, and it is full.
        case allPinned
        /// Reading or writing failed, or it was stopped: the victim stays. Not at once again.
        case failed
    }

    /// Reclaims one unit, where it is needed. For one thread at a time.
    func turn() -> Turn {
        switch ledger.withLock({ $0.nextVictim() }) {
        case .notNeeded: return .idle
        case .allPinned: return .allPinned
        case .askAgain: return .worked
        case .large(let number):
            reclaim(large: number)
            return .worked
        case .segment(let number, let usedBytesMax, let isSparse):
            do throws(Interruption) {
                let plan = try plan(number, usedBytesMax: usedBytesMax, isSparse: isSparse)
                try empty(number, plan)
            } catch {
                ledger.withLock { $0.keep(number) }
                return .failed
            }
            release(number)
            return .worked
        }
    }

    private struct Interruption: Error {}

    private func reclaim(large number: UInt32) {
        if let status = store.status(ofLarge: number), status.useMark > 0 {
            store.decrementUses(large: number)
            return ledger.withLock { $0.keep(number) }
        }
        if let id = store.evict(large: number) {
            var drops = [DroppedObject(id: id, segment: number)]
            // Where it can not be written, the file goes all the same: it would only be missed where the book is lost before that.
            do throws(Interruption) { try carry(&drops) } catch {}
        }
        release(number)
    }

    private func release(_ number: UInt32) {
        store.deleteAfterCommit(number)
        if ledger.withLock({ $0.isNearlyFull }) { store.commitSoon() }
    }

    // MARK: what is kept

    private func plan(
        _ number: UInt32, usedBytesMax: UInt64, isSparse: Bool
    ) throws(Interruption) -> KeepPlan {
        if isSparse { return .all }
        var plan = KeepPlan(usedBytesMax: usedBytesMax)
        guard usedBytesMax > 0 else { return plan }
        try scan(number) { record throws(Interruption) in
            guard case .object(let head) = record, head.attributes.storageClass != .pinned,
                let status = store.status(of: head)
            else { return }
            plan.count(head.place.recordLength, status.useMark)
        }
        plan.decide()
        return plan
    }

    private func empty(_ number: UInt32, _ plan: KeepPlan) throws(Interruption) {
        var plan = plan
        var heads: [StoredHead] = []
        var bytes = 0
        var drops: [DroppedObject] = []
        do throws(Interruption) {
            try scan(number) { record throws(Interruption) in
                switch record {
                case .object(let head):
                    guard let status = store.status(of: head) else { break }
                    let length = head.place.recordLength
                    // The class of a renewed object is what the index says: the record's may be older.
                    if status.isPinned || plan.keeps(length, status.useMark) {
                        heads.append(head)
                        bytes += Int(length)
                    } else {
                        evict(head, &drops)
                    }
                case .drops(let list): drops += needed(list, in: number)
                }
                if bytes >= Self.batchBytes {
                    try move(heads, &drops)
                    heads.removeAll(keepingCapacity: true)
                    bytes = 0
                }
                if drops.count >= Self.dropsMax { try carry(&drops) }
            }
            try move(heads, &drops)
            try carry(&drops)
        } catch {
            // The file stays, and with it the records of what was evicted: as far as it can be written, that is written.
            try carry(&drops)
            throw error
        }
    }

    /// Takes a record out. Until its file is gone a drop record says so: rebuilding the book must not bring back what somebody may
    /// have purged in the meantime, when the index knew nothing of it any more.
    private func evict(_ head: StoredHead, _ drops: inout [DroppedObject]) {
        store.evict(head)
        drops.append(DroppedObject(id: head.id, segment: head.place.segment))
    }

    private func scan(
        _ number: UInt32, _ visit: (VictimRecord) throws(Interruption) -> Void
    ) throws(Interruption) {
        var interruption: Interruption?
        do throws(DiskReadError) {
            try store.scan(number) { record in
                if isStopped.load(ordering: .relaxed) { interruption = Interruption() }
                if interruption != nil { return false }
                do throws(Interruption) { try visit(record) } catch { interruption = error }
                return interruption == nil
            }
        } catch { throw Interruption() }
        if let interruption { throw interruption }
    }

    // MARK: copying forward

    private func move(_ heads: [StoredHead], _ drops: inout [DroppedObject]) throws(Interruption) {
        var records: [MovedRecord] = []
        var bytes: UInt64 = 0
        for head in heads {
            do throws(DiskReadError) {
                guard let record = try store.read(head) else { continue }
                records.append(record)
                bytes += record.recordLength
            } catch {
                if error != .damaged { throw Interruption() }
                store.dropDamaged(head)
            }
        }
        guard !records.isEmpty else { return }
        // What is removed while it is copied needs a drop record at the new place.
        let room = bytes + Self.dropsBytes(records.count)
        if claim(room) {
            guard store.move(records, room: room) else { throw Interruption() }
        } else if records.contains(where: { $0.attributes.storageClass == .pinned }) {
            throw Interruption()
        } else {
            for head in heads { evict(head, &drops) }
        }
    }

    /// Those that still mean something: with the file their record stands in they can go.
    private func needed(_ drops: [DroppedObject], in number: UInt32) -> [DroppedObject] {
        ledger.withLock { ledger in
            drops.filter { $0.segment != number && ledger.units[$0.segment] != nil }
        }
    }

    private func carry(_ drops: inout [DroppedObject]) throws(Interruption) {
        guard !drops.isEmpty else { return }
        let room = Self.dropsBytes(drops.count)
        guard claim(room), store.carry(drops, room: room) else { throw Interruption() }
        drops.removeAll(keepingCapacity: true)
    }

    /// Where other victims still wait for the book, room comes with its commit.
    private func claim(_ bytes: UInt64) -> Bool {
        if ledger.withLock({ $0.claim(bytes, for: .moving) }) == .granted { return true }
        store.commitAndDelete()
        return ledger.withLock { $0.claim(bytes, for: .moving) } == .granted
    }

    private static func dropsBytes(_ count: Int) -> UInt64 {
        UInt64(RecordHeader.byteCount + count * DroppedObject.byteCount)
    }
}
