import EventLoop
import Synchronization

/// Frees one unit after the other, on a thread of its own. It decides which records are copied forward, has the writer write
/// them, and has the file deleted once the book no longer needs it.
///
///     victim ──scan──▶ wanted: copied forward, found at the new place from now on    ──commit of the book──▶ file deleted
///                      not wanted: removed from index and book, named in a drop record
///
/// What a crash leaves behind, at any line: the whole old file, with a book that still leads into it; or a book that no longer
/// does, with a file that is empty to it. In the first case a record may exist twice. Both copies have the same number, and
/// the later place counts.
///
/// The reclaimer does not know queue, index or book. `ReclaimerStore` is everything it needs of the running store.
final class Reclaimer: Sendable {
    private let ledger: Locked<Ledger>
    private let store: any ReclaimerStore
    private let work = CountingSemaphore()
    private let isAsleep = Atomic(false)
    private let isStopped = Atomic(false)

    /// How many bytes of records are read and given to the writer at a time. New objects wait behind one such batch at most.
    static let batchBytes = 1 << 20
    /// How many drop records are collected before they are written.
    static let dropsMax = 4096

    init(ledger: Locked<Ledger>, store: any ReclaimerStore) {
        self.ledger = ledger
        self.store = store
    }

    // MARK: the thread

    /// The body of the thread. Returns after `stop`.
    func run() {
        while !isStopped.load(ordering: .acquiring) {
            while !isStopped.load(ordering: .acquiring), turn() == .worked {}
            isAsleep.store(true, ordering: .sequentiallyConsistent)
            // A wake between the last look and this line is missed. The timeout bounds what that costs.
            _ = work.wait(timeout: .seconds(1))
            isAsleep.store(false, ordering: .sequentiallyConsistent)
        }
    }

    /// There may be something to reclaim. Makes a system call only if the thread sleeps.
    func wake() {
        if isAsleep.exchange(false, ordering: .sequentiallyConsistent) { work.signal() }
    }

    /// Ends `run` after the batch under way. A victim that is half empty stays as it is.
    func stop() {
        isStopped.store(true, ordering: .releasing)
        work.signal()
    }

    // MARK: one victim

    enum Turn: Sendable, Equatable {
        /// There may be more to do.
        case worked
        case idle
        /// Everything is pinned, and the store is full.
        case allPinned
        /// Reading or writing failed, or the reclaimer was stopped. The victim stays; do not try again at once.
        case failed
    }

    /// Reclaims one unit if space is needed. Only one thread may call this.
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
                // As the youngest: the next turn tries another file before it meets this one again.
                ledger.withLock { $0.keep(number) }
                return .failed
            }
            release(number)
            return .worked
        }
    }

    private struct Interruption: Error {}

    /// Evicts a large object, unless it was used since the last time: then it only loses one use and becomes young.
    private func reclaim(large number: UInt32) {
        if let status = store.status(ofLarge: number), status.useMark > 0 {
            store.decrementUses(large: number)
            return ledger.withLock { $0.keep(number) }
        }
        if let id = store.evict(large: number) {
            var drops = [DroppedObject(id: id, segment: number)]
            // Delete the file even if this fails: the drop record would only matter if the book were lost before the deletion.
            do throws(Interruption) { try carry(&drops) } catch {}
        }
        release(number)
    }

    /// Has the file deleted with the next commit. From here on the old places must not be needed any more.
    private func release(_ number: UInt32) {
        precondition(
            ledger.withLock { $0.units[number]?.isVictim ?? true }, "only a victim, or a file that is gone, is released"
        )
        store.deleteAfterCommit(number)
        // The file takes its space until the commit, and without a request that waits for the interval.
        if ledger.withLock({ $0.isNearlyFull }) { store.commitSoon() }
    }

    // MARK: choosing what to keep

    /// The first walk over a victim: counts what was used. Not needed if everything is kept, or nothing.
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

    /// The second walk over a victim: copies what is kept, evicts the rest, and carries its drop records forward.
    ///
    /// It works in batches, so an error leaves a victim that is half empty. That is consistent: copied records count at their new place,
    /// evicted ones are gone from index and book, and everything else is where it was.
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
                    // The index knows the class. The record may have an older one, if its head was renewed.
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
            precondition(drops.isEmpty, "a victim is emptied with its drop records written")
        } catch {
            // The file stays, and so do the records of the evicted objects: their drop records are written when there is space.
            if !drops.isEmpty { store.owe(drops) }
            throw error
        }
    }

    /// Evicts a record. A drop record names it for as long as its file exists: if the book were rebuilt, the record would come
    /// back, even if somebody purged the object meanwhile, when the index no longer knew it.
    private func evict(_ head: StoredHead, _ drops: inout [DroppedObject]) {
        store.evict(head)
        drops.append(DroppedObject(id: head.id, segment: head.place.segment))
    }

    /// Walks a victim. Ends with an interruption if reading fails, if the visitor throws, or when the reclaimer is stopped.
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

    /// Copies records forward. If there is no space even for that, evicts them, but never pinned ones.
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
        // An object that is removed during the copy needs a drop record at its new place.
        let room = bytes + Self.dropsBytes(records.count)
        precondition(
            records.allSatisfy { $0.from.segment == heads[0].place.segment }, "one victim is emptied at a time")
        if claim(room) {
            noteEmptied(records[0].from.segment)
            guard store.move(records, room: room) else { throw Interruption() }
        } else if records.contains(where: { $0.attributes.storageClass == .pinned }) {
            // A pinned record is never given up: the victim stays until there is space to copy it.
            throw Interruption()
        } else {
            for head in heads { evict(head, &drops) }
        }
    }

    /// Notes, before the first record is copied, that the victim will contain older copies. If it is not emptied to the end, drop
    /// records of those objects must outlive the segments of the newer copies: should the book be lost, the older ones would return.
    private func noteEmptied(_ number: UInt32) {
        guard !ledger.withLock({ $0.emptied.contains(number) }) else { return }
        ledger.withLock { $0.noteEmptied(number) }
        store.noteEmptied(number)
    }

    /// The drop records of a victim that still matter when it is gone.
    private func needed(_ drops: [DroppedObject], in number: UInt32) -> [DroppedObject] {
        ledger.withLock { ledger in drops.filter { ledger.needs($0, without: number) } }
    }

    /// Has drop records written. If that fails, `drops` keeps them.
    private func carry(_ drops: inout [DroppedObject]) throws(Interruption) {
        guard !drops.isEmpty else { return }
        let room = Self.dropsBytes(drops.count)
        guard claim(room), store.carry(drops, room: room) else { throw Interruption() }
        drops.removeAll(keepingCapacity: true)
    }

    /// Claims space for moving. Emptied victims that wait for a commit free theirs when it is done.
    private func claim(_ bytes: UInt64) -> Bool {
        precondition(bytes > 0, "a claim is for something")
        if ledger.withLock({ $0.claim(bytes, for: .moving) }) == .granted { return true }
        store.commitAndDelete()
        return ledger.withLock { $0.claim(bytes, for: .moving) } == .granted
    }

    private static func dropsBytes(_ count: Int) -> UInt64 {
        UInt64(RecordHeader.byteCount + count * DroppedObject.byteCount)
    }
}
