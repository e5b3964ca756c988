internal import Synchronization

/// The storage of one zone: the memory tier and, if there is one, the back store behind it.
///
/// The memory tier is a cache of the back store (docs/decisions/0013). A response is written to the back store when it is complete. A
/// response that only the back store has comes into memory without its body, which is read when it is needed. Removals go to the
/// back store first; otherwise another thread could read a removed response from there again.
package final class Tiers: Sendable {
    package let memory: MemoryTier
    package let backStore: (any BackStore)?
    let format: ResponseFormat?
    /// The large bodies in use: requests for the same response share one body.
    let largeBodies = LargeBodies()
    private let refusedOnce = SeenKeys()
    /// The number of the last response on the back store that is doubted. Zero: none is.
    private let doubtedThrough = Atomic<UInt64>(0)

    package init(memory: MemoryTier, backStore: (any BackStore)? = nil, format: ResponseFormat? = nil) {
        precondition(backStore == nil || format != nil, "a back store needs the format of responses")
        self.memory = memory
        self.backStore = backStore
        self.format = format
        boundQueue()
    }

    /// Sets the budget of memory in bytes, and evicts until it is kept.
    package func setBudget(_ budget: Int) {
        memory.setBudget(budget)
        boundQueue()
    }

    /// What waits to be written holds memory, even if it has been evicted. If the disk falls behind, the rest of memory stays what it is for: what
    /// is asked for.
    private func boundQueue() {
        let share = memory.budget / Tiers.queueShare
        backStore?.setQueue(bytesMax: min(max(share, Tiers.queueBytes.lowerBound), Tiers.queueBytes.upperBound))
    }

    private static let queueShare = 4
    /// The longest body that is written in one piece has to fit, and a disk needs no longer queue to be busy.
    private static let queueBytes = 4 << 20...64 << 20

    /// The length in bytes of the longest body that is stored in one piece. Longer bodies are stored in blocks.
    package static let wholeBytesMax = 1 << 20

    // MARK: doubts

    /// From now on, what the back store has until now comes into memory as doubted (`ResponseFormat.doubted`): it may not be what it was when it was stored. What is in memory stays
    /// as it is.
    package func doubtStored() {
        guard let backStore else { return }
        doubtedThrough.store(backStore.newestID.rawValue, ordering: .releasing)
    }

    /// Ends that. What is in memory stays doubted.
    package func trustStored() { doubtedThrough.store(0, ordering: .releasing) }

    package var doubtsStored: Bool { doubtedThrough.load(ordering: .acquiring) > 0 }

    func isDoubted(_ id: StoredID) -> Bool { id.rawValue <= doubtedThrough.load(ordering: .acquiring) }

    // MARK: as the memory tier

    package func lookup(_ key: StorageKey, _ keyBytes: UnsafeRawBufferPointer) -> [StoredRecord] {
        unsafe memory.lookup(key, keyBytes)
    }

    package func newest(_ key: StorageKey, _ keyBytes: UnsafeRawBufferPointer) -> StoredRecord? {
        unsafe memory.newest(key, keyBytes)
    }

    /// Counts one use of a stored response. A response that is not on the back store is offered to it: it was refused when it was complete,
    /// or the admission policy kept it off until this use.
    package func touch(_ record: StoredRecord) {
        // This is on the way of a hit. If a response is on the back store and is used often, nothing but its number and its own count is read.
        if let id = record.storedID {
            if record.frequency < StoredRecord.usesMax { backStore?.countUse(of: id, record.key) }
        } else if let backStore {
            offer(record, to: backStore)
        }
        memory.touch(record)
    }

    /// New responses come first: what is in memory already waits until the back store has caught up. A response that memory evicted meanwhile is
    /// not offered: a newer one may be on the back store, which would take this one, written later, for the newest.
    @inline(never)
    private func offer(_ record: StoredRecord, to backStore: any BackStore) {
        guard !record.isUnstorable, !backStore.isBehind, variants(of: record).contains(where: { $0 === record }) else {
            return
        }
        persist(record, isPromised: false)
    }

    /// Does the same as `MemoryTier.insert`, and also removes the responses that it replaces from the back store.
    /// - Parameter isOutdated: whether something was removed that the response may be older than. It is asked after the insertion: a removal on
    ///   another thread either finds the response or is known by then. If so, the response is removed, and its `tenure` says so.
    package func insert(_ record: StoredRecord, isOutdated: () -> Bool = { false }) -> Bool {
        guard let displaced = memory.shelves.insert(record) else { return false }
        for other in displaced { removeFromBackStore(other) }
        removeOlder(than: record)
        if isOutdated() {
            record.tenure = .outdated
            remove(record)
        }
        return true
    }

    /// Does the same as `MemoryTier.replace`, and also renews the head on the back store.
    package func replace(_ old: StoredRecord, with new: StoredRecord) -> Bool {
        guard replaceInMemory(old, with: new) else { return false }
        if let backStore, let id = new.storedID, let form = format?.form(new) {
            backStore.renew(ResponseToStore(id: id, key: new.key, keyBytes: new.keyBytes, form: form))
        }
        return true
    }

    /// Does the same as `replace`, but the back store keeps the head that it has: the new one says the same in another form.
    package func replaceInMemory(_ old: StoredRecord, with new: StoredRecord) -> Bool {
        let known = old.storedID
        new.storedID = known
        new.tenure = old.tenure
        guard memory.replace(old, with: new) else { return false }
        keepNumber(known, of: old, for: new)
        return true
    }

    /// Decides which of the two responses has the number on the back store, if another thread is writing the old one at this moment (`persist`). That thread
    /// may have set the number after `known` was read, and takes it back if the back store refuses the response.
    private func keepNumber(_ known: StoredID?, of old: StoredRecord, for new: StoredRecord) {
        guard let backStore, let id = known ?? old.storedID else { return }
        // False: the new one is being written under a number of its own.
        let isTaken = known != nil || new.takeStoredID(id)
        // Asked last. The other thread takes the number from the old response first, and then looks who else has it.
        if isTaken, old.storedID == id { return }
        if !isTaken { return backStore.remove(id, old.key, old.keyBytes) }
        guard new.giveUpStoredID(id) else { return }
        backStore.remove(id, old.key, old.keyBytes)
        persist(new, isPromised: !new.isMemoryOnly)
    }

    package func remove(_ record: StoredRecord) {
        // The back store comes first, so that nobody reads the response into memory again.
        removeFromBackStore(record)
        memory.remove(record)
        // Another thread may have written the response before it left memory.
        removeFromBackStore(record)
        // The same response may be in memory again: with a new head, or because it was evicted and read from the back store.
        for other in variants(of: record) where other !== record && isSame(other, record) {
            removeFromBackStore(other)
            memory.remove(other)
        }
    }

    func variants(of record: StoredRecord) -> [StoredRecord] {
        unsafe record.keyBytes.withUnsafeBytes { unsafe memory.lookup(record.key, $0) }
    }

    private func isSame(_ one: StoredRecord, _ other: StoredRecord) -> Bool {
        one.body === other.body || one.storedID != nil && one.storedID == other.storedID
    }

    func removeFromBackStore(_ record: StoredRecord) {
        guard let backStore, let id = record.storedID else { return }
        backStore.remove(id, record.key, record.keyBytes)
    }

    /// Removes all variants of a key. Returns how many there were.
    package func invalidate(_ key: StorageKey, _ keyBytes: [UInt8]) -> Int {
        let onBackStore = backStore?.removeAll(key, keyBytes) ?? 0
        let inMemory = unsafe keyBytes.withUnsafeBytes { unsafe memory.invalidate(key, $0) }
        // A response that another thread wrote in between was not removed by the first call.
        let late = backStore?.removeAll(key, keyBytes) ?? 0
        return max(onBackStore + late, inMemory)
    }

    package func makeBody(expectedLength: Int?, lengthMax: Int? = nil) -> Body? {
        memory.makeBody(expectedLength: expectedLength, lengthMax: lengthMax)
    }

    package func makeSparseBody(length: Int, heldMax: Int? = nil) -> Body? {
        memory.makeSparseBody(length: length, heldMax: heldMax)
    }

    /// See `MemoryTier.makeWindow`.
    package func makeWindow(expectedLength: Int?, window: Int) -> Body {
        memory.makeWindow(expectedLength: expectedLength, window: window)
    }

    package func lead(
        _ key: StorageKey, _ keyBytes: [UInt8], knownNewest: StoredRecord?, askedAt now: Duration? = nil,
        mayLead: Bool = true
    ) -> Leadership {
        memory.lead(key, keyBytes, knownNewest: knownNewest, askedAt: now, mayLead: mayLead)
    }

    package var invalidations: Int { memory.invalidations }

    /// Removes everything from memory and nothing from the back store.
    package func clearMemory() { memory.removeAll() }
}

// MARK: To the back store

extension Tiers {
    /// Queues a complete response for the back store, unless it is there already or must not outlive this process. If a response with a renewed head
    /// has replaced it, that one is queued. The `tenure` of a response that the back store refuses says so, and it is offered again when it
    /// is used (`touch`). The back store counts its refusals.
    /// - Parameter isPromised: whether clients were told that the response is stored. The back store then takes it however much waits.
    package func persist(_ record: StoredRecord, isPromised: Bool = false) {
        guard let backStore, let record = current(record), record.storedID == nil, record.body.state == .complete,
            record.body.isResident
        else { return }
        guard var form = format?.form(record) else { return record.markUnstorable() }
        guard backStore.isOn else { return record.tenure = .memoryOnly }
        let id = backStore.nextID()
        // Two threads may serve the response at once. The one that sets the number writes it.
        guard record.takeStoredID(id) else { return }
        var tenure = Tenure.asMeant
        var outcome = write(record, id, form, isPromised, to: backStore)
        if outcome == .pinnedQuotaFull {
            // Store it as one that may be evicted. The back store has counted the refusal and told the operator.
            form.attributes.retention = .permanent
            tenure = .unpinned
            outcome = write(record, id, form, isPromised, to: backStore)
        }
        if outcome == .tooLarge { record.markUnstorable() }
        record.tenure = outcome == .accepted ? tenure : .memoryOnly
        guard outcome != .accepted || record.isRevoked else { return }
        // Another response may have taken its place, and its number with it (`keepNumber`).
        record.giveUpStoredID(id)
        let holders = variants(of: record).filter { $0.storedID == id }
        if outcome != .accepted {
            for holder in holders { holder.giveUpStoredID(id) }
        } else if !holders.contains(where: { $0.body === record.body }) {
            // It was removed or replaced meanwhile, by a thread that may not have seen the number. Another one may have read it from the back store.
            backStore.remove(id, record.key, record.keyBytes)
            for holder in holders { memory.remove(holder) }
            persist(record, isPromised: isPromised)
        }
    }

    /// The response, or the one that took its place with the same body. Nil if it was removed, or kept out.
    private func current(_ record: StoredRecord) -> StoredRecord? {
        record.isRevoked ? variants(of: record).first { $0.body === record.body } : record
    }

    /// Sets the `tenure` of a response that belongs on the back store, and whose body is still coming or has just come, to what is known by now.
    /// Clients are told at the beginning of the body, and `persist` keeps the word at its end.
    /// - Parameters:
    ///   - bytes: the length of the body, as far as it is known.
    package func foresee(_ record: StoredRecord, bytes: Int, _ retention: Retention) {
        guard let backStore else { return }
        switch backStore.prospect(bytes: bytes, retention, isNow: record.body.isComplete) {
        case .accepted: break
        case .busy, .off, .tooLarge: record.tenure = .memoryOnly
        case .pinnedQuotaFull: record.tenure = .unpinned
        }
    }

    /// Whether the writers of bodies that go to the back store have to pause: so much waits to be written, and some of it is written every
    /// few seconds. `whenCaughtUp` tells when they go on.
    package var writersShouldPause: Bool { backStore.map { $0.isBehind && !$0.isStuck } ?? false }

    /// Wakes once when the back store has caught up: within this call if it has by now.
    package func whenCaughtUp(_ wake: Wake) {
        guard let backStore else { return wake() }
        backStore.whenCaughtUp { wake() }
    }

    /// The response was not inserted and is for those who read it alone: it is not written either when its body is complete.
    package func keepOut(_ record: StoredRecord) { record.revoke() }

    /// False if the response was removed or kept out, and none with the same body has taken its place.
    package func mayPersist(_ record: StoredRecord) -> Bool { current(record) != nil }

    /// Whether this was called for the key before, among the latest keys. With `admission: second-hit`, a body that is too large to
    /// stay in memory until its second request is stored if this returns true.
    package func wasSeenBefore(_ key: StorageKey) -> Bool { refusedOnce.hasSeen(key) }

    private func write(
        _ record: StoredRecord, _ id: StoredID, _ form: ResponseForm, _ isPromised: Bool, to backStore: any BackStore
    ) -> StoringOutcome {
        let response = ResponseToStore(id: id, key: record.key, keyBytes: record.keyBytes, form: form)
        let length = record.body.length
        guard length > Self.wholeBytesMax else {
            return backStore.store(response, body: record.body, isPromised: isPromised)
        }
        // The length was unknown when the body began, and the back store did not accept the body when it became large.
        switch backStore.makeBlocks(for: response, length: length) {
        case .failure(let refusal): return refusal.outcome
        case .success(let blocks):
            for block in 0..<(length + Body.blockBytes - 1) / Body.blockBytes {
                blocks.write(block: block, of: record.body) { _ in }
            }
            return .accepted
        }
    }

    /// Makes a stored response with a large, empty body. Each block goes to the back store when it is complete.
    /// - Parameters:
    ///   - length: the length of the body, more than zero.
    ///   - make: makes the response from the body.
    /// - Returns: nil if the back store does not accept the response.
    package func makeLargeRecord(length: Int, _ make: (Body) -> StoredRecord) -> StoredRecord? {
        guard let backStore, length > 0,
            let body = memory.makeSparseBody(length: length, heldMax: length)
        else { return nil }
        let record = make(body)
        guard let made = makeBlocks(for: record, length: length, on: backStore) else { return nil }
        body.attach(LargeCopy(made.blocks))
        largeBodies.add(body, made.id)
        record.storedID = made.id
        record.tenure = made.tenure
        return record
    }

    /// Moves a body of unknown length that outgrows memory to the back store. A response with a large body replaces the stored one.
    /// Readers of the old body continue with the large body (Body+Moving.swift). The writer of the old body calls this, and
    /// writes the large body from then on.
    /// - Parameters:
    ///   - record: the stored response. If a response with a renewed head has replaced it, that one moves.
    ///   - lengthMax: how many bytes the large body may have.
    ///   - make: makes the same response from another body.
    /// - Returns: nil if the back store does not accept the response, or if the response is no longer stored. Nothing has changed
    ///   then.
    package func moveToBackStore(
        _ record: StoredRecord, lengthMax: Int, _ make: (StoredRecord, Body) -> StoredRecord
    ) -> StoredRecord? {
        let old = record.body
        precondition(old.state == .growing && old.announcedLength == nil, "the length of the body is not known")
        guard let backStore, backStore.isOn, old.large == nil, !old.isWindowed, old.length <= lengthMax,
            let current = variants(of: record).first(where: { $0.body === old }),
            let made = makeBlocks(for: current, length: nil, on: backStore)
        else { return nil }
        let (id, blocks) = (made.id, made.blocks)
        let copy = LargeCopy(blocks)
        copy.predecessor = old
        guard let body = memory.makeLargeBody(copy, lengthMax: lengthMax), body.append(contentsOf: old) else {
            blocks.abandon()
            return nil
        }
        body.home = record.key
        largeBodies.add(body, id)
        let moved = make(current, body)
        moved.storedID = id
        moved.tenure = made.tenure
        guard memory.replace(current, with: moved) else {
            blocks.abandon()
            return nil
        }
        old.moveOn(to: moved)
        return moved
    }

    /// - Returns: nil if the response is for this process alone, or if the back store does not accept it.
    private func makeBlocks(
        for record: StoredRecord, length: Int?, on backStore: any BackStore
    ) -> (id: StoredID, blocks: any BodyBlocks, tenure: Tenure)? {
        guard var form = format?.form(record) else { return nil }
        var tenure = Tenure.asMeant
        let id = backStore.nextID()
        func make() -> Result<any BodyBlocks, StoringRefusal> {
            backStore.makeBlocks(
                for: ResponseToStore(id: id, key: record.key, keyBytes: record.keyBytes, form: form), length: length)
        }
        var made = make()
        if case .failure(let refusal) = made, refusal.outcome == .pinnedQuotaFull {
            form.attributes.retention = .permanent
            tenure = .unpinned
            made = make()
        }
        guard case .success(let blocks) = made else { return nil }
        return (id, blocks, tenure)
    }
}
