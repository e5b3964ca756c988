import Caching
import Message
import Transaction

/// Parts of representations: answers to ranges, holes, and transfers that go on after they broke off.
extension SimulatedFetch {
    /// The answer to the question for a hole.
    func decidePart(_ response: OriginAnswer) {
        guard let (record, fill) = hole else { return world.violated("a part of nothing", exchange) }
        guard goesOn(response) else { return partIsGone(record, fill, response) }
        sink = .fill(fill, of: record)
        world.note(.partFetched)
        guard let exchange, exchange.answer.status == nil else { return }
        exchange.begin(record, SimulatedDelivery.choose(record, exchange))
    }

    private func partIsGone(_ record: Record, _ fill: Fill, _ response: OriginAnswer) {
        hole = nil
        part = nil
        fill.close()
        if [200, 404, 410, 416].contains(response.status) { world.store.remove(record) }
        guard let exchange, exchange.answer.status == nil else {
            let exchange = self.exchange
            abort()
            exchange?.end(.broken, "the origin has another representation by now")
            return
        }
        stored = nil
        guard response.status != 206, response.status != 416 else {
            state = .asking
            return
        }
        decide(response)
    }

    // MARK: an answer to the client's range

    /// False: it is to be passed on only.
    func storePart(_ response: OriginAnswer) -> Bool {
        let decision = decideStoringPart(
            of: request.cache, status: response.status, fields: withDate(response.fields), policy: world.policy,
            treatment: request.treatment, requestTime: requestTime, responseTime: world.cacheClock)
        guard case .store(let part) = decision, !world.oracle.wasInvalidated(request.uri, since: response.step),
            let record = partialRecord(part, response)
        else { return false }
        let range = Int(part.range.lowerBound)..<Int(part.range.upperBound)
        guard case .missing(let fill) = record.body.claim(at: range.lowerBound, limit: range.upperBound) else {
            return false
        }
        guard fill.start == range.lowerBound, fill.end == range.upperBound else {
            fill.close()
            return false
        }
        hole = (record, fill)
        sink = .fill(fill, of: record)
        total = range.count
        world.note(.partStored)
        resolve(.published(record))
        exchange?.serve(record)
        return true
    }

    /// What is stored of the same representation, or a new record without a byte.
    private func partialRecord(_ part: StorablePart, _ response: OriginAnswer) -> Record? {
        let length = Int(part.total)
        if let known = world.store.records[request.uri].first(where: { $0.suits(request) }) {
            let isSame = known.body.expected == length && combines(part: part, with: known.cached)
            if known.body.state == .partial, isSame {
                let renewed = known.renewed(part.whole, part.fields, by: response, isWhole: true)
                world.note(.combined)
                return world.store.replace(known, with: renewed) ? renewed : nil
            }
            if isSame || known.body.state == .growing { return nil }
        }
        let record = Record(request, part.whole, part.fields, .sparse(length), response)
        world.store.insert(record)
        return record
    }

    // MARK: going on

    /// The sink has begun to get the body: an answer that comes now is about the rest.
    var isResuming: Bool {
        if case .undecided = sink { return false }
        return part != nil
    }

    var restAsked: PartAsked? {
        guard request.method == .get, !request.hasBody, !request.cache.overridesMethod else { return nil }
        let rest: PartAsked
        switch sink {
        case .undecided, .discard: return nil
        case .store(let record): rest = PartAsked(stored: record.cached, start: received, end: nil)
        case .fill(let fill, let record): rest = PartAsked(stored: record.cached, start: fill.position, end: fill.end)
        case .relay:
            guard let response, response.status == 200, exchange != nil else { return nil }
            let described = CachedResponse(
                status: 200, fields: response.fields, requestTime: requestTime, responseTime: world.cacheClock,
                policy: world.policy)
            rest = PartAsked(stored: described, start: received, end: nil)
        }
        return partConditions(for: rest.stored, from: rest.start, to: rest.end) == nil ? nil : rest
    }

    /// The body ended before its end: the rest is asked for, or it is given up.
    func breakOff() {
        guard !isFinished else { return }
        guard let rest = restAsked, inVain < world.resumptionsMax else { return giveUp() }
        inVain += 1
        part = rest
        state = .asking
    }

    /// Whether the answer is the part that was asked for, of the same representation.
    func goesOn(_ response: OriginAnswer) -> Bool {
        guard let part else { return false }
        let length = hole.map { $0.record.body.expected } ?? total
        let judged = continues(
            status: response.status, fields: response.fields, stored: part.stored, from: part.start, to: part.end,
            total: length)
        guard case .goesOn(_, let whole) = judged else { return false }
        if total == nil { total = part.end.map { $0 - part.start } ?? whole }
        return true
    }

    func giveUp(keepsPart: Bool = true) {
        guard !isFinished else { return }
        state = .finished
        let exchange = self.exchange
        leaveExchange()
        switch sink {
        case .relay: exchange?.end(.broken, "it broke off")
        case .store(let record): keepsPart ? keepPart(record, exchange) : drop(record)
        case .fill(let fill, let record):
            fill.close()
            if !keepsPart { world.store.remove(record) }
            exchange?.end(.broken, "a part is missing")
        case .discard, .undecided: break
        }
    }

    private func keepPart(_ record: Record, _ exchange: SimulatedExchange?) {
        guard partConditions(for: record.cached, from: 0, to: nil) != nil, record.body.makePartial() else {
            return drop(record)
        }
        world.note(.keptPartial)
        exchange?.end(.broken, "it broke off; the part is kept")
    }
}
