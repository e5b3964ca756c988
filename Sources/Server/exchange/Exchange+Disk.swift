import Caching
import EventLoop
import Storage
import Transaction

/// What is stored for the request, in memory or on the back store.
///
/// Nothing here blocks the worker. What would block runs on a thread of the back store, and the exchange goes on
/// (`diskHasRead`) when that is done.
extension Exchange {
    /// How often a response that was found on the back store may turn out to be gone before the origin is asked.
    private static let diskAttemptsMax = 4

    /// Looks for a stored response that suits the request. Returns nil where the exchange waits for the back store.
    func lookUpStored() -> RequestMachine.Action? {
        while true {
            let records = request.zone.lookup(request.key, request.keyBytes)
            lookUp.newest = records.first
            lookUp.selected = records.lazy.compactMap { $0 as? StoredResponse }.first(where: suits)
            guard let selected = lookUp.selected else {
                switch loadHeads() {
                case .nothing, .busy: return reportNoneSelected(among: records)
                case .loaded: continue
                case .waiting: return nil
                }
            }
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

    private enum DiskStep {
        /// The back store has nothing to add.
        case nothing
        /// Responses came into memory, or left: look again.
        case loaded
        case waiting
        /// Too many wait for the back store already: the origin is quicker.
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

    // MARK: the body

    /// Brings the body to hand where the request wants it, so that all that follows can rely on it: into memory, or into the
    /// worker's buffer where it is not worth the memory.
    private func loadBody(of record: StoredResponse) -> DiskStep {
        guard needsLoading(record) else { return .nothing }
        if let range = rangeToReadDirectly(of: record) {
            let result = worker.readFromDisk(record.body, range)
            if result == .done { lookUp.readDirectly = record }
            if result != .wouldBlock { return bodyIsRead(record, result) }
        }
        let result = record.body.load(waits: false)
        guard result == .wouldBlock else { return bodyIsRead(record, result) }
        let tier = request.tier
        return waitForDisk { tier.removeUnreadable(record, after: record.body.load(waits: true)) }
    }

    private func needsLoading(_ record: StoredResponse) -> Bool {
        !record.body.isResident && !record.body.isLarge && request.method != .head && record !== lookUp.readDirectly
    }

    /// The range of the body that the request wants. Returns nil where it is longer than the buffer, goes out in another
    /// coding, or the body is worth the memory.
    private func rangeToReadDirectly(of record: StoredResponse) -> Range<Int>? {
        guard record.coding.isFixed(request.compression(of: record)), !request.tier.isWorthMemory(record) else {
            return nil
        }
        let range = rangeWanted(of: record) ?? 0..<record.body.length
        return record.body.blocks(around: range).count <= Worker.diskBufferBytes ? range : nil
    }

    /// Returns nil where the request wants all of the body, or several ranges.
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
        lookUp.diskAttempts += 1
        // It may have been moved: then the back store finds it in its new place.
        lookUp.hasAskedDisk = lookUp.diskAttempts > Exchange.diskAttemptsMax
        return .loaded
    }

    /// Whether a stored response can be served now that came another way than by `lookUp`: one that was validated, or that a
    /// leader published.
    /// - Returns: false: `serve` is called when its body is there; where that is gone, the origin is asked.
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
        let work: @Sendable () -> Void = { tier.removeUnreadable(record, after: record.body.load(waits: true)) }
        let step = waitForDisk(work) { [unowned self] in needsLoading(record) ? refetch() : serve() }
        if step == .busy { refetch() }
        return false
    }

    // MARK: waiting

    /// - Parameter then: what is done afterwards; nil: the store is asked again.
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
