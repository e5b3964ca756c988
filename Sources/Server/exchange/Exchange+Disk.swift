import Caching
import EventLoop
import Storage
import Transaction

/// Carries out the decisions of a `LookUp`: searches memory, the back store and the fleet for a stored response.
///
/// Nothing here blocks the worker. Work that would block runs on a thread of the back store, which holds no reference to the exchange;
/// its job in the worker's inbox calls `storeHasAnswered`, if the exchange still exists.
extension Exchange {
    /// Looks for a stored response that matches the request. Returns nil if the exchange now waits for the back store or the fleet.
    func lookUpStored() -> RequestMachine.Action? {
        look(
            lookUp.on(
                .begin(
                    for: request.peer == nil ? .client : .node, backStore: request.tier.backStore != nil,
                    fleet: worker.shared.fleet != nil && FleetDesk.isShareable(request.keyBytes))))
    }

    /// Performs actions of the look-up until it has ended, or the exchange waits: then returns nil.
    private func look(_ first: LookUp.Action) -> RequestMachine.Action? {
        var action = first
        var records: [StoredRecord]?
        while true {
            let event: LookUp.Event?
            switch action {
            case .searchMemory:
                records = searchMemory()
                event = eventOfSearch()
            case .loadHeads: event = loadHeads()
            case .awaitIndex: event = awaitIndex()
            case .askFleet: event = askFleet()
            case .loadBody: event = loadBody()
            case .report: return reportSelected()
            case .reportNone: return reportNoneSelected(among: records)
            case .reportBusy:
                stored.selected = nil
                return machine.on(.stored(nil))
            }
            guard let event else { return nil }
            action = lookUp.on(event)
        }
    }

    /// Selects the newest response in memory that suits the request. If none does, returns all variants, or nil if there are none.
    private func searchMemory() -> [StoredRecord]? {
        (stored.newest, stored.selected) = (nil, nil)
        if let known = stored.known.take(), known.isUnder(request.key), request.zone === worker.zones[0] {
            guard let response = known.response else { return nil }
            if suits(response) {
                (stored.newest, stored.selected) = (response, response)
                return nil
            }
        }
        let records = request.zone.lookup(request.key, request.keyBytes)
        guard !records.isEmpty else { return nil }
        stored.newest = records.first
        stored.selected = records.lazy.compactMap { $0 as? StoredResponse }.first(where: suits)
        return records
    }

    private func eventOfSearch() -> LookUp.Event {
        guard let selected = stored.selected else { return .missing }
        return isContradicted(selected) ? .contradicted : .found(place(of: selected))
    }

    // In this section and the next two, nil means that the exchange waits, and that the event comes later.

    // MARK: heads

    private func loadHeads() -> LookUp.Event? {
        switch request.tier.load(request.key, request.keyBytes, waits: false) {
        case .nothing: return .noHeads
        case .loaded: return .headsLoaded
        case .notReady: return .indexLoading
        case .wouldBlock:
            let (tier, key, keyBytes) = (request.tier, request.key, request.keyBytes)
            return waitForThread(.store(.heads)) { _ = tier.load(key, keyBytes, waits: true) } ? nil : .busy
        }
    }

    private func awaitIndex() -> LookUp.Event? {
        let wake = wakeForStore()
        waiting = .store(.index)
        request.tier.backStore?.whenLoaded { wake() }
        return nil
    }

    // MARK: the fleet

    /// Asks the fleet for the response. It answers within about 20 ms.
    private func askFleet() -> LookUp.Event? {
        guard let fleet = worker.shared.fleet,
            fleet.read(request.key, request.keyBytes, of: request.zone, asked: worker.loop.now, wake: wakeForStore())
        else { return .fleetUnavailable }
        waiting = .store(.fleet)
        return nil
    }

    // MARK: the body

    private func place(of record: StoredResponse) -> LookUp.BodyPlace {
        if request.method == .head { return .unneeded }
        if record.body.isLarge { return .blocks }
        return record.body.isResident || record === stored.readDirectly ? .atHand : .whole
    }

    func needsLoading(_ record: StoredResponse) -> Bool {
        if case .whole = place(of: record) { true } else { false }
    }

    /// Reads the body of the selected response: into memory, or its beginning into the worker's disk buffer if the body is not worth the memory and
    /// cannot be sent from its file. The code that follows relies on one of them, but for bytes that leave the page cache in between: those
    /// are read when they are sent, and so is what does not fit the buffer.
    private func loadBody() -> LookUp.Event? {
        guard let record = stored.selected else {
            preconditionFailure("the body is that of the response that was found")
        }
        if let range = rangeToReadDirectly(of: record) {
            if stream.canSend(range, of: record.body) {
                stored.readDirectly = record
                return .bodyAtHand
            }
            let result = worker.readFromDisk(record.body, beginning(of: range, record.body))
            if result == .done { stored.readDirectly = record }
            if result != .wouldBlock { return event(of: result, record) }
        }
        let result = record.body.load(waits: false)
        guard result == .wouldBlock else { return event(of: result, record) }
        let tier = request.tier
        return waitForThread(.store(.body)) { tier.removeUnreadable(record, after: record.body.load(waits: true)) }
            ? nil : .busy
    }

    private func event(of result: BackStoreRead, _ record: StoredResponse) -> LookUp.Event {
        guard result != .done else { return .bodyAtHand }
        // The reclaimer may have moved the response: the back store knows its new place.
        request.tier.removeUnreadable(record, after: result)
        return .bodyUnreadable
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
        let isAccepted = waitForThread(.bodyToServe { [unowned self] in needsLoading(record) ? refetch() : serve() }) {
            tier.removeUnreadable(record, after: record.body.load(waits: true))
        }
        if !isAccepted { refetch() }
        return false
    }

    // MARK: waiting

    /// Waits until a thread of the back store has run `work`, which captures nothing of the exchange. Returns false, and does not wait, if
    /// the queue of the back store is full.
    private func waitForThread(_ left: Waiting, _ work: @escaping @Sendable () -> Void) -> Bool {
        let wake = wakeForStore()
        let isAccepted = request.tier.backStore?.perform {
            work()
            wake()
        }
        guard isAccepted == true else { return false }
        waiting = left
        return true
    }

    /// A wake for other threads. It finds the exchange by its address and does nothing if the exchange has ended.
    private func wakeForStore() -> Wake {
        let inbox = worker.loop.inbox
        let worker = WorkerReference(worker)
        let address = stream.address
        return Wake { inbox.post { worker.value.exchange(at: address)?.storeHasAnswered() } }
    }

    private func storeHasAnswered() {
        let left = waiting
        switch left {
        case .store(let question):
            waiting = .nothing
            guard let next = look(lookUp.on(question.answer)) else { return }
            perform(next)
        case .bodyToServe(let then):
            waiting = .nothing
            then()
        case .nothing, .coveredBody, .identity, .addresses, .leading, .leader, .fetch, .index, .tunnel: break
        }
    }
}

extension Exchange.StoreQuestion {
    fileprivate var answer: LookUp.Event {
        switch self {
        case .heads: .headsLoaded
        case .index: .indexLoaded
        case .fleet: .fleetAnswered
        case .body: .bodyRead
        }
    }
}
