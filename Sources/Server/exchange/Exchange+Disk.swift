import Caching
import EventLoop
import Storage
import Transaction

/// Looks for a stored response, in memory and then in the back store.
///
/// Nothing here blocks the worker. Work that would block runs on a thread of the back store, which holds no reference to the exchange;
/// its job in the worker's inbox calls `diskHasRead`, if the exchange still exists.
extension Exchange {
    /// How often a response that the back store found may turn out to be gone before the origin is asked.
    private static let diskAttemptsMax = 4

    /// Looks for a stored response that matches the request. Returns nil if the exchange now waits for the back store.
    func lookUpStored() -> RequestMachine.Action? {
        while true {
            let records = searchMemory()
            lookUp.isShared = lookUp.hasAskedFleet && lookUp.selected != nil
            guard let selected = lookUp.selected else {
                // Either no variant from the disk suits, or the one that does was evicted before this look-up.
                if lookUp.isFromDisk { askDiskAgain() }
                let step = loadHeads()
                lookUp.isFromDisk = step == .loaded || step == .waiting
                switch step {
                case .nothing, .busy: return askFleet() ? nil : reportNoneSelected(among: records)
                case .loaded: continue
                case .waiting: return nil
                }
            }
            if isContradicted(selected) { continue }
            if needsLoading(selected) || selected.body.isLarge { lookUp.isFromDisk = true }
            switch loadBody(of: selected) {
            case .nothing: return reportSelected(selected)
            case .loaded: continue
            case .waiting: return nil
            case .busy:
                lookUp.selected = nil
                return machine.on(.stored(nil))
            }
        }
    }

    /// Selects the newest response in memory that suits the request. If none does, returns all variants there are.
    private func searchMemory() -> [StoredRecord] {
        (lookUp.newest, lookUp.selected) = (nil, nil)
        if let known = lookUp.known.take(), known.key == request.key, request.zone === worker.zones[0] {
            guard let response = known.response else { return [] }
            if suits(response) {
                (lookUp.newest, lookUp.selected) = (response, response)
                return []
            }
        }
        let records = request.zone.lookup(request.key, request.keyBytes)
        guard !records.isEmpty else { return [] }
        lookUp.newest = records.first
        lookUp.selected = records.lazy.compactMap { $0 as? StoredResponse }.first(where: suits)
        return records
    }

    private enum DiskStep {
        /// The back store has nothing to add.
        case nothing
        /// The responses in memory have changed: look again.
        case loaded
        case waiting
        /// The back store's queue is full: ask the origin.
        case busy
    }

    // MARK: heads

    private func loadHeads() -> DiskStep {
        guard request.tier.backStore != nil, !lookUp.hasAskedDisk else { return .nothing }
        lookUp.hasAskedDisk = true
        switch request.tier.load(request.key, request.keyBytes, waits: false) {
        case .nothing: return .nothing
        case .loaded: return .loaded
        case .wouldBlock:
            let (tier, key, keyBytes) = (request.tier, request.key, request.keyBytes)
            return waitForDisk { _ = tier.load(key, keyBytes, waits: true) }
        case .notReady:
            lookUp.hasAskedDisk = false
            return waitForLoading()
        }
    }

    private func waitForLoading() -> DiskStep {
        let wake = wakeForDisk()
        waiting = .disk(then: nil)
        request.tier.backStore?.whenLoaded { wake() }
        return .waiting
    }

    // MARK: the fleet

    /// Asks the fleet for the response. Returns whether the exchange now waits for the answer, which takes about 20 ms at most.
    private func askFleet() -> Bool {
        guard let fleet = worker.shared.fleet, !lookUp.hasAskedFleet, request.peer == nil,
            FleetDesk.isShareable(request.keyBytes)
        else {
            return false
        }
        lookUp.hasAskedFleet = true
        guard fleet.read(request.key, request.keyBytes, of: request.zone, asked: worker.loop.now, wake: wakeForDisk())
        else { return false }
        waiting = .disk(then: nil)
        return true
    }

    // MARK: the body

    /// Reads the body if the request needs it: into memory, or its beginning into the worker's disk buffer if the body is not worth the memory and
    /// cannot be sent from its file. The code that follows relies on one of them, but for bytes that leave the page cache in between: those
    /// are read when they are sent, and so is what does not fit the buffer.
    private func loadBody(of record: StoredResponse) -> DiskStep {
        guard needsLoading(record) else { return .nothing }
        if let range = rangeToReadDirectly(of: record) {
            if stream.canSend(range, of: record.body) {
                lookUp.readDirectly = record
                return .nothing
            }
            let result = worker.readFromDisk(record.body, beginning(of: range, record.body))
            if result == .done { lookUp.readDirectly = record }
            if result != .wouldBlock { return bodyIsRead(record, result) }
        }
        let result = record.body.load(waits: false)
        guard result == .wouldBlock else { return bodyIsRead(record, result) }
        let tier = request.tier
        return waitForDisk { tier.removeUnreadable(record, after: record.body.load(waits: true)) }
    }

    func needsLoading(_ record: StoredResponse) -> Bool {
        !record.body.isResident && !record.body.isLarge && request.method != .head && record !== lookUp.readDirectly
    }

    /// The range of the body to send without bringing it into memory. Returns nil if it is sent in another coding, or if the body is worth the
    /// memory.
    private func rangeToReadDirectly(of record: StoredResponse) -> Range<Int>? {
        guard record.coding.isFixed(request.compression(of: record)), !request.tier.isWorthMemory(record) else {
            return nil
        }
        let range = rangeWanted(of: record) ?? 0..<record.body.length
        precondition(range.upperBound <= record.body.length, "a selected range lies within the body")
        return range
    }

    /// As much of a range as the worker's disk buffer holds. What follows is read when it is sent.
    private func beginning(of range: Range<Int>, _ body: Body) -> Range<Int> {
        let end = body.blocks(around: range).lowerBound + Worker.diskBufferBytes
        return range.lowerBound..<min(range.upperBound, end)
    }

    /// The single range that the request asks for. Returns nil if it asks for the whole body or for several ranges.
    private func rangeWanted(of record: StoredResponse) -> Range<Int>? {
        guard request.cache.hasRange,
            case .single(let range) = selectRange(
                request.fields, method: request.method, stored: record.cached, length: UInt64(record.body.length),
                now: worker.wallTime)
        else { return nil }
        return Int(range.lowerBound)..<Int(range.upperBound)
    }

    private func bodyIsRead(_ record: StoredResponse, _ result: BackStoreRead) -> DiskStep {
        guard result != .done else { return .nothing }
        request.tier.removeUnreadable(record, after: result)
        // The reclaimer may have moved the response: the back store knows its new place.
        askDiskAgain()
        return .loaded
    }

    /// Has the back store searched again: what it found has left memory before it could be used.
    private func askDiskAgain() {
        lookUp.diskAttempts += 1
        lookUp.hasAskedDisk = lookUp.diskAttempts > Exchange.diskAttemptsMax
    }

    /// Whether the body of a stored response is at hand. For a response that `lookUpStored` did not load: one that was validated, or
    /// that a leader published.
    ///
    /// - Parameter serve: called later if this returns false and the body can be read. If it cannot, the origin is asked.
    func isReady(_ record: StoredResponse, else serve: @escaping () -> Void) -> Bool {
        guard needsLoading(record) else { return true }
        let read = record.body.load(waits: false)
        if read == .done { return true }
        let tier = request.tier
        guard read == .wouldBlock else {
            tier.removeUnreadable(record, after: read)
            refetch()
            return false
        }
        // This exchange's own fetch may have stored the response a moment ago. It is detached before something else is waited for:
        // otherwise it would still report to an exchange that has another fetch by then.
        detachFetch()
        let work: @Sendable () -> Void = { tier.removeUnreadable(record, after: record.body.load(waits: true)) }
        let step = waitForDisk(work) { [unowned self] in needsLoading(record) ? refetch() : serve() }
        if step == .busy { refetch() }
        return false
    }

    // MARK: waiting

    /// Runs `work` on a thread of the back store and waits for it.
    ///
    /// - Parameters:
    ///   - work: runs on another thread, so it captures nothing of the exchange.
    ///   - then: runs afterwards on the worker; nil: look up again.
    private func waitForDisk(_ work: @escaping @Sendable () -> Void, then: (() -> Void)? = nil) -> DiskStep {
        let wake = wakeForDisk()
        let isAccepted = request.tier.backStore?.perform {
            work()
            wake()
        }
        guard isAccepted == true else { return .busy }
        waiting = .disk(then: then)
        return .waiting
    }

    /// A wake for threads of the back store. It finds the exchange by its address and does nothing if the exchange has ended.
    private func wakeForDisk() -> Wake {
        let inbox = worker.loop.inbox
        let worker = WorkerReference(worker)
        let address = stream.address
        return Wake { inbox.post { worker.value.exchange(at: address)?.diskHasRead() } }
    }

    private func diskHasRead() {
        guard case .disk(let then) = waiting else { return }
        waiting = .nothing
        if let then { return then() }
        lookUp.diskAttempts += 1
        guard let next = lookUpStored() else { return }
        perform(next)
    }
}
