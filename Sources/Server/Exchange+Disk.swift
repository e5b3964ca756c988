import Caching
import Disk
import EventLoop
import Storage
import Transaction

/// What the store holds for the request, in memory or on the disk.
extension Exchange {
    /// How often what was found on the disk may turn out to be gone before the origin is asked.
    private static let lossesMax = 4

    /// - Returns: nil: it waits for the disk.
    func lookUp() -> Transaction.Action? {
        while true {
            let records = request.zone.lookup(request.key, request.keyBytes)
            newest = records.first
            selected = records.lazy.compactMap { $0 as? StoredResponse }.first(where: suits)
            guard let selected else {
                switch loadHeads() {
                case .nothing, .busy: return decide(among: records)
                case .loaded: continue
                case .waiting: return nil
                }
            }
            switch loadBody(of: selected) {
            case .nothing: return judge(selected)
            case .loaded: continue
            case .waiting: return nil
            case .busy:
                self.selected = nil
                return transaction.on(.stored(nil))
            }
        }
    }

    private enum DiskStep {
        /// All there is is in memory.
        case nothing
        /// Look again.
        case loaded
        case waiting
        /// Too many wait for it already: the origin is quicker.
        case busy
    }

    // MARK: heads

    private func loadHeads() -> DiskStep {
        guard request.tier.disk != nil, !hasAskedDisk else { return .nothing }
        hasAskedDisk = true
        switch request.tier.load(request.key, request.keyBytes, waits: false) {
        case .nothing: return .nothing
        case .loaded: return .loaded
        case .wouldBlock:
            let (tier, key, keyBytes) = (request.tier, request.key, request.keyBytes)
            return waitForDisk { _ = tier.load(key, keyBytes, waits: true) }
        case .notReady:
            hasAskedDisk = false
            return waitForLoading()
        }
    }

    private func waitForLoading() -> DiskStep {
        let wake = wakeForDisk()
        request.tier.disk?.whenLoaded { wake() }
        return .waiting
    }

    // MARK: the body

    /// Where the body is wanted it is at hand from here on, so that all that follows can rely on it: in memory, or, where it is not
    /// asked for so often, in the worker's buffer.
    private func loadBody(of record: StoredResponse) -> DiskStep {
        guard needsLoading(record) else { return .nothing }
        if let range = rangeToReadDirectly(of: record) {
            let result = worker.readFromDisk(record.body, range)
            if result == .done { readDirectly = record }
            if result != .wouldBlock { return bodyIsRead(record, result) }
        }
        let result = record.body.load(waits: false)
        guard result == .wouldBlock else { return bodyIsRead(record, result) }
        let tier = request.tier
        return waitForDisk { tier.giveUp(record, after: record.body.load(waits: true)) }
    }

    private func needsLoading(_ record: StoredResponse) -> Bool {
        !record.body.isResident && !record.body.isLarge && request.method != .head && record !== readDirectly
    }

    /// What the request wants of the body, where that is no longer than the buffer, and goes out as it stands on the disk; nil also where
    /// the body is worth the memory.
    private func rangeToReadDirectly(of record: StoredResponse) -> Range<Int>? {
        guard record.coding.isFixed(request.compression(of: record)), !request.tier.deservesMemory(record) else {
            return nil
        }
        let range = rangeWanted(of: record) ?? 0..<record.body.length
        return record.body.blocks(around: range).count <= Worker.diskBufferBytes ? range : nil
    }

    /// Nil: all of it, or several ranges.
    private func rangeWanted(of record: StoredResponse) -> Range<Int>? {
        guard request.cache.hasRange,
            case .single(let range) = selectRange(
                request.fields, method: request.method, stored: record.cached, length: UInt64(record.body.length),
                now: worker.wallTime)
        else { return nil }
        return Int(range.lowerBound)..<Int(range.upperBound)
    }

    private func bodyIsRead(_ record: StoredResponse, _ result: DiskRead) -> DiskStep {
        guard result != .done else { return .nothing }
        request.tier.giveUp(record, after: result)
        losses += 1
        // It may stand elsewhere by now.
        hasAskedDisk = losses > Exchange.lossesMax
        return .loaded
    }

    /// A record that came another way than by `lookUp`: one that was validated, or that a leader had.
    /// - Returns: false: it is served later, when its body is there; where that is gone, what the origin has.
    func isReady(_ record: StoredResponse, else serve: @escaping () -> Void) -> Bool {
        guard needsLoading(record) else { return true }
        let read = record.body.load(waits: false)
        if read == .done { return true }
        let tier = request.tier
        guard read == .wouldBlock else {
            tier.giveUp(record, after: read)
            fetchAfterAll()
            return false
        }
        afterDisk = { [unowned self] in needsLoading(record) ? fetchAfterAll() : serve() }
        if waitForDisk({ tier.giveUp(record, after: record.body.load(waits: true)) }) == .busy {
            afterDisk = nil
            fetchAfterAll()
        }
        return false
    }

    /// What was to be served is gone, or cannot be served to this client: the origin is asked after all.
    func fetchAfterAll(_ reason: CacheStatus.ForwardReason = .uriMiss) {
        selected = nil
        request.mayForward ? forwardAlone(reason) : refuse(.onlyIfCached)
    }

    // MARK: waiting

    private func waitForDisk(_ work: @escaping @Sendable () -> Void) -> DiskStep {
        let wake = wakeForDisk()
        let isAccepted = request.tier.disk?.perform {
            work()
            wake()
        }
        return isAccepted == true ? .waiting : .busy
    }

    private func wakeForDisk() -> Wake {
        let inbox = worker.loop.inbox
        let worker = WorkerReference(worker)
        let address = stream.address
        return Wake { inbox.post { worker.value.exchange(at: address)?.diskHasRead() } }
    }

    private func diskHasRead() {
        if let afterDisk {
            self.afterDisk = nil
            return afterDisk()
        }
        losses += 1
        guard let next = lookUp() else { return }
        perform(next)
    }
}
