import Caching
import Message
import Transaction

/// What becomes of an answer: stored, passed on, or a sign that what is stored is good (RFC 9111 §3, §4.3).
extension SimulatedFetch {
    private var now: WallTime { world.cacheClock }
    private var target: TargetURI { World.target(request.uri) }

    func decide(_ response: OriginAnswer) {
        if response.status >= 500 { world.oracle.originFailed(request.uri, step: world.step) }
        if response.status == 304, plan.isConditional {
            guard let confirmed = confirmed(by: response) else { return askForTheWhole() }
            stored = confirmed
        }
        if response.status == 206, request.cache.hasRange, storePart(response) { return }
        let storing = decideStoring(
            of: request.cache, status: response.status, fields: response.fields, policy: world.policy,
            treatment: request.treatment, requestTime: requestTime, responseTime: now, target: target)
        var isStorable = false
        if case .store = storing { isStorable = true }
        let event = Transaction.Event.originHead(
            status: response.status, isStorable: isStorable, staleMayServe: staleMayServe)
        switch transaction.on(event) {
        case .store:
            if invalidates(request.cache, status: response.status) { invalidate(response) }
            guard case .store(let cached) = storing else {
                return world.violated("store what is not storable", exchange)
            }
            store(response, cached)
        case .freshen: freshen(response)
        case .serveStale: serveStale(response)
        case .relay(let invalidates):
            if invalidates { invalidate(response) }
            if request.method == .head { updateStored(by: response) }
            relay(response)
        case let action: world.violated("an answer led to \(action)", exchange)
        }
    }

    private func confirmed(by response: OriginAnswer) -> Record? {
        if let stored { return confirms(response.fields, stored.cached, received: now) ? stored : nil }
        return selected(by: response.fields, among: candidates.map(\.cached), received: now).first.map {
            candidates[$0]
        }
    }

    private func askForTheWhole() {
        world.note(.confirmedSomethingElse)
        if let stored {
            let outdated = stored.outdated
            _ = world.store.replace(stored, with: outdated)
            self.stored = outdated
        }
        candidates = []
        plan = transaction.askForTheWhole(plan)
        state = .asking
    }

    var staleMayServe: Bool {
        guard let stored, stored.body.state != .failed else { return false }
        let isForClient = exchange.map { $0.isCovered(by: stored) && $0.answer.status == nil } ?? true
        return isForClient
            && mayServeStaleOnError(stored.cached, for: request.cache, use: request.treatment.use, now: now)
    }

    /// What is on its way when the target is invalidated was asked for before: it is passed on and not kept.
    private var isOvertaken: Bool { world.oracle.wasInvalidated(request.uri, since: answer.step) }

    private func store(_ response: OriginAnswer, _ cached: CachedResponse) {
        let hasContent = response.status != 204
        let expected = hasContent ? (response.tellsLength ? response.body.count : nil) : 0
        let record = Record(request, cached, storedFields(of: withDate(response.fields)), .growing(expected), response)
        if !isOvertaken { world.store.insert(record) }
        sink = .store(record)
        world.note(.stored)
        resolve(isOvertaken ? .notShared : .published(record))
        exchange?.serve(record)
        if let exchange, exchange.answer.end != nil { self.exchange = nil }
    }

    func withDate(_ fields: Fields) -> Fields {
        guard !fields.contains(.date) else { return fields }
        var result = fields
        result.append(.date, httpDate(now.secondsSinceEpoch))
        return result
    }

    private func freshen(_ response: OriginAnswer) {
        guard let stored else { return world.violated("a 304 to a question nobody asked", exchange) }
        let renewed = renewed(stored, by: response)
        let isThere = keep(renewed, for: stored)
        world.note(.freshened)
        var suiting = renewed
        if !renewed.suits(request) {
            suiting = renewed.renewed(for: request)
            if isThere { world.store.insert(suiting) }
            world.note(.aliased)
        }
        sink = .discard
        resolve(isThere ? .published(suiting) : .notShared)
        let exchange = self.exchange
        leaveExchange()
        exchange?.serve(suiting)
    }

    /// Where the update says that nobody else may have it, it goes. False: it is not stored any more.
    private func keep(_ renewed: Record, for stored: Record) -> Bool {
        guard objectionToKeeping(renewed.fields, treatment: request.treatment) == nil else {
            world.store.remove(stored)
            return false
        }
        return world.store.replace(stored, with: renewed)
    }

    private func renewed(_ stored: Record, by response: OriginAnswer) -> Record {
        let fields = freshened(stored.fields, by: response.fields, received: now)
        let cached = CachedResponse(
            status: stored.cached.status, fields: fields, requestTime: requestTime, responseTime: now,
            policy: world.policy, treatment: request.treatment)
        return stored.renewed(cached, fields, by: response)
    }

    /// RFC 9111 §4.3.5: what the answer to a HEAD tells of the stored response to GET.
    private func updateStored(by response: OriginAnswer) {
        guard let stored, stored.body.state == .complete || stored.body.state == .partial, let length = stored.length
        else { return }
        switch headUpdate(
            status: response.status, fields: response.fields, stored: stored.cached, length: UInt64(length),
            received: now)
        {
        case .freshen:
            world.note(.freshenedByHead)
            _ = keep(renewed(stored, by: response), for: stored)
        case .markStale:
            world.note(.outdatedByHead)
            _ = world.store.replace(stored, with: stored.outdated)
        case .ignore: break
        }
    }

    private func serveStale(_ response: OriginAnswer) {
        guard let stored else { return world.violated("nothing stale is at hand", exchange) }
        resolve(.fallback(stored, failure: Refusal.connectionTerminated.rawValue))
        sink = .discard
        let exchange = self.exchange
        leaveExchange()
        exchange?.serveFallback(stored)
    }

    private func relay(_ response: OriginAnswer) {
        resolve(.notShared)
        guard let exchange else { return abort() }
        sink = .relay
        exchange.relayHead(response)
    }

    private func invalidate(_ response: OriginAnswer) {
        for uri in invalidatedURIs(target: target, status: response.status, fields: response.fields) {
            guard let index = World.index(of: uri) else { continue }
            world.store.invalidate(index)
            world.note(.invalidated)
        }
    }
}

extension SimulatedExchange {
    /// Something stale in place of a failure.
    func serveFallback(_ record: Record) {
        world.note(.staleOnError)
        serve(record)
    }
}
