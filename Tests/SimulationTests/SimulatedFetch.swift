import Caching
import Message
import Transaction

/// Carries out what a real `Retrieval` decides, one event at a time: the part that `Fetch` plays in the server, without a socket.
final class SimulatedFetch {
    enum Sink {
        case none, pass, discard
        case store(Record)
        case fill(Fill, of: Record)
    }

    unowned let world: World
    let request: ClientRequest
    /// The client whose request is sent. Nil if nobody asked.
    let asker: Int?
    var exchange: SimulatedExchange?
    var transfer: ModelTransfer?
    var machine: Retrieval
    var stored: Record?
    var candidates: [Record] = []
    var hole: (record: Record, fill: Fill)?
    var sink: Sink = .none

    /// The answer that is under way, how many of its interim heads have come, and how much of its body.
    var answer: OriginAnswer!
    private var interimHeads = 0
    private var sent = 0

    /// - Parameter hole: bytes that are missing of what is stored, to be fetched in place of what the client asked for.
    init(
        _ world: World, _ request: ClientRequest, _ exchange: SimulatedExchange?, _ plan: RetrievalPlan,
        stored: Record?,
        candidates: [Record] = [], hole: (record: Record, fill: Fill)? = nil
    ) {
        self.world = world
        self.request = request
        asker = exchange?.client
        self.exchange = exchange
        self.stored = stored
        self.candidates = candidates
        self.hole = hole
        let asked = Retrieval.Request(
            cache: request.cache, isUpgrade: false,
            postTarget: request.method == .post ? World.target(request.uri) : nil, policy: world.policy,
            interimResponsesMax: Limits().interimResponsesMax,
            deadConnectionRetriesMax: Limits().deadConnectionRetriesMax, retriesMax: 1)
        let client: Retrieval.Client = exchange.map { $0.answer.status == nil ? .waiting : .answered } ?? .none
        if let hole {
            let part = PartAsked(
                stored: hole.record.cached, start: hole.fill.start, end: hole.fill.end,
                wholeLength: hole.record.body.expected)
            machine = Retrieval(
                asked, hole: part, client: client, now: world.cacheClock, resumptionsInVainMax: world.resumptionsMax)
        } else {
            let known = Retrieval.Stored(selected: stored?.cached, candidates: candidates.map(\.cached))
            machine = Retrieval(
                asked, plan, stored: known, client: client, now: world.cacheClock,
                resumptionsInVainMax: world.resumptionsMax)
        }
        world.fetches.append(self)
        feed(.start)
    }

    var isFinished: Bool { machine.phase == .finished }
    private var now: WallTime { world.cacheClock }

    // MARK: facts

    /// One event of its life.
    func advance() {
        if machine.phase == .opening {
            connect()
        } else if machine.phase == .asked {
            receiveHead()
        } else if machine.phase == .receiving {
            receivePiece()
        } else if machine.phase == .pausing || machine.phase == .retrying {
            feed(.timedOut)
        }
    }

    private func feed(_ event: Retrieval.Event) {
        perform(machine.on(event, now: now, staleMayServe: staleMayServe))
    }

    private func connect() {
        if world.chance.percent(world.failures) {
            world.trace("fetch of /\(request.uri): no connection")
            world.oracle.originFailed(request.uri, step: world.step)
            let refusals: [Refusal] = [.connectionRefused, .nameTimeout, .originQueueFull]
            return feed(world.chance.oneIn(4) ? .timedOut : .notOpened(world.chance.pick(refusals)))
        }
        feed(.opened(isReused: machine.mayReuseConnection && world.chance.oneIn(2)))
    }

    private func ask() {
        let conditions = machine.conditions
        answer = world.origin.answer(
            request, conditions, step: world.step, now: world.originClock,
            failures: world.failures, cuts: world.cuts, isForbidden: isForbidden, &world.chance)
        interimHeads = 0
        world.oracle.judgeQuestion(of: self, in: world)
        let sent = (conditions ?? []).map { "\($0.0.text): \(String(decoding: $0.1, as: UTF8.self))" }
        let text = sent.joined(separator: " | ")
        world.trace("origin, asked with \(text.isEmpty ? "the client's fields" : text): \(answer.summary)")
    }

    /// Nobody signs what changes something here.
    private var isForbidden: Bool {
        guard let signature = request.signature, request.isSafe else { return false }
        return !world.signatures.accepts(signature, originClock: world.originClock)
    }

    private func receiveHead() {
        if world.chance.percent(world.failures / 3) {
            world.trace("answer \(answer.id): lost")
            world.oracle.originFailed(request.uri, step: world.step)
            let losses: [Retrieval.Event] = [
                .closed(headBegan: false), .closed(headBegan: true), .timedOut, .invalidHead,
                .notAnswered(.clientCertificateRequired),
            ]
            return feed(world.chance.pick(losses))
        }
        if interimHeads < answer.interimCount {
            interimHeads += 1
            world.note(.interim)
            return feed(.interim)
        }
        answer.receivedStep = world.step
        answer.requestTime = machine.requestTime
        answer.responseTime = now
        world.oracle.received(answer)
        let isTooMany = answer.status == 429 && !world.handlings[request.uri].failureStatuses.isEmpty
        if answer.status >= 500 || isTooMany { world.oracle.originFailed(request.uri, step: world.step) }
        if promisedPart(status: answer.status, fields: answer.fields) == .contradictory {
            world.oracle.originFailed(request.uri, step: world.step)
        }
        sent = 0
        let hasContent = request.method != .head && answer.status != 304 && answer.status != 204
        let length = hasContent ? (answer.tellsLength ? UInt64(answer.body.count) : nil) : 0
        let head = Retrieval.Head(
            status: answer.status, fields: answer.fields, endToEnd: withDate(answer.fields), length: length,
            handling: request.handling, receivedAt: now)
        if answer.status == 403 { world.note(.forbidden) }
        noteAccess(answer.status)
        let action = machine.on(head: head, staleMayServe: staleMayServe)
        if case .finish(.failed) = action, machine.invalidates(refusing: head) { invalidate() }
        perform(action)
    }

    private func receivePiece() {
        let limit = answer.cut ?? answer.body.count
        var count = min(limit - sent, 1 + world.chance.below(16))
        while count > 0, machine.phase == .receiving {
            world.ledger.fromOrigin += 1
            let action = machine.on(.received(1), now: now)
            if case .deliver = action { deliver(answer.body[sent]) } else { world.ledger.dropped += 1 }
            perform(action)
            sent += 1
            count -= 1
        }
        guard machine.phase == .receiving, sent == limit else { return }
        feed(answer.cut == nil ? .ended(byClosing: false) : .brokeOff)
    }

    private func deliver(_ byte: UInt8) {
        switch sink {
        case .pass:
            world.ledger.relayed += 1
            exchange?.relay(byte)
        case .store(let record):
            record.body.append(byte)
            world.ledger.stored += 1
        case .fill(let fill, _):
            if !fill.append(byte) { world.violated("a byte beyond the hole", exchange) }
            world.ledger.stored += 1
        case .discard: world.ledger.dropped += 1
        case .none: world.violated("a body without a sink", exchange)
        }
    }

    func clientLeft() {
        exchange = nil
        let isStillNeeded =
            switch sink {
            case .store: true
            case .fill: true
            case .none: transfer.map { !$0.followers.isEmpty } ?? false
            case .pass, .discard: false
            }
        feed(.clientLeft(isStillNeeded: isStillNeeded))
    }

    // MARK: actions

    private func perform(_ action: Retrieval.Action) {
        switch action {
        case .none, .open, .pause, .reopen, .askAgain, .deliver: break
        case .retry: if world.chance.oneIn(4) { feed(.retryRefused) }
        case .send: ask()
        case .passInterim: exchange?.interim()
        case .switchProtocols: world.violated("a switch of protocols that nobody asked for", exchange)
        case .store(let invalidates):
            let cached = machine.responseToStore
            if invalidates { invalidate() }
            store(cached)
        case .storePart(let part): feed(place(part) ? .stored : .notStored(.partNotMissing))
        case .freshen(let which): freshen(which)
        case .serveStale: serveStale()
        case .pass(let passing): pass(passing)
        case .fill(let isFirst): fill(isFirst: isFirst)
        case .goOn: world.note(.resumed)
        case .outdateSelected: outdateSelected()
        case .abandonHole(let removesStored, let then):
            hole?.fill.close()
            if removesStored, let hole { world.store.remove(hole.record) }
            hole = nil
            stored = nil
            perform(then)
        case .finish(let ending): finish(ending)
        }
        if case .serveStale = action, machine.phase == .finished { leaveExchange() }
    }

    private var staleMayServe: Bool {
        guard let stored, hole == nil, stored.body.state != .failed else { return false }
        let isForClient = exchange.map { $0.isCovered(by: stored) } ?? true
        return isForClient
            && mayServeStaleOnError(
                stored.cached.terms(under: request.handling), for: request.cache, use: request.handling.use, now: now)
    }

    /// What is on its way when the target is invalidated was asked for before: it is passed on and not kept.
    private var isOvertaken: Bool { world.oracle.wasInvalidated(request.uri, since: answer.step) }

    private func store(_ cached: CachedResponse) {
        let hasContent = answer.status != 204
        let expected = hasContent ? (answer.tellsLength ? answer.body.count : nil) : 0
        let record = Record(
            request, cached, storedFields(of: withDate(answer.fields), as: cached), .growing(expected), answer)
        if !isOvertaken { world.store.insert(record) }
        sink = .store(record)
        world.note(.stored)
        feed(.stored)
        resolve(isOvertaken ? .notShared : .published(record))
        if !isOvertaken { noteSharing(of: record) }
        exchange?.serve(record)
        if let exchange, exchange.answer.end != nil { self.exchange = nil }
    }

    func withDate(_ fields: Fields) -> Fields {
        guard !fields.contains(.date) else { return fields }
        var result = fields
        result.append(.date, httpDate(now.secondsSinceEpoch))
        return result
    }

    private func freshen(_ which: Retrieval.Confirmed) {
        switch which {
        case .selected: break
        case .candidate(let index): stored = candidates[index]
        }
        guard let stored else { return world.violated("a 304 to a question nobody asked", exchange) }
        let (suiting, isThere) = keep(renewed(stored), for: stored)
        world.note(.freshened)
        sink = .discard
        resolve(isThere ? .published(suiting) : .notShared)
        if isThere { noteSharing(of: suiting) }
        let exchange = self.exchange
        leaveExchange()
        exchange?.serve(suiting)
    }

    /// Where the update says that nobody else may have it, it goes. Returns what answers the request, and whether it is stored.
    private func keep(_ renewed: Record, for stored: Record) -> (Record, isThere: Bool) {
        let objection = objectionToKeeping(
            renewed.cached, renewed.fields, insteadOf: stored.cached, handling: request.handling, limits: Limits())
        guard objection == nil else {
            world.store.remove(stored)
            return (renewed, false)
        }
        if renewed.cached.vary != stored.cached.vary {
            let answer = renewed.reselected(for: request)
            let wasThere = world.store.remove(stored)
            world.note(.reselected)
            guard wasThere, answer.body.state == .complete else { return (answer, false) }
            world.store.insert(answer)
            return (answer, true)
        }
        let isThere = world.store.replace(stored, with: renewed)
        if renewed.suits(request) { return (renewed, isThere) }
        let alias = renewed.renewed(for: request)
        if isThere { world.store.insert(alias) }
        world.note(.aliased)
        return (alias, isThere)
    }

    /// What is for one client alone, the next ones do not wait for.
    private func noteSharing(of record: Record) {
        guard transfer != nil, !request.handling.use.contains(.cacheFirst) else { return }
        let isForAll = record.cached.terms(under: request.handling).isForAll
        world.store.keepApart(request.uri, until: isForAll ? 0 : world.trueTime + 30)
    }

    private func renewed(_ stored: Record) -> Record {
        let fields = freshened(stored.fields, by: answer.fields, received: now)
        let cached = CachedResponse(
            status: stored.cached.status, fields: fields, requestTime: machine.requestTime, responseTime: now,
            policy: world.policy, handling: request.handling)
        return stored.renewed(cached, fields, by: answer)
    }

    /// RFC 9111 §4.3.5: what the answer to a HEAD tells of the stored response to GET.
    private func updateStored() {
        guard let stored, stored.body.state == .complete || stored.body.state == .partial, let length = stored.length
        else { return }
        switch headUpdate(
            status: answer.status, fields: answer.fields, stored: stored.cached, length: UInt64(length), received: now)
        {
        case .freshen:
            world.note(.freshenedByHead)
            _ = keep(renewed(stored), for: stored)
        case .markStale:
            world.note(.outdatedByHead)
            _ = world.store.replace(stored, with: stored.outdated)
        case .ignore: break
        }
    }

    private func outdateSelected() {
        world.note(.confirmedSomethingElse)
        candidates = []
        guard let stored else { return }
        let outdated = stored.outdated
        _ = world.store.replace(stored, with: outdated)
        self.stored = outdated
    }

    private func serveStale() {
        guard let stored else { return world.violated("nothing stale is at hand", exchange) }
        world.oracle.originFailed(request.uri, step: world.step)
        resolve(.fallback(stored, failure: Refusal.connectionTerminated.rawValue))
        sink = .discard
        let exchange = self.exchange
        leaveExchange()
        world.note(.staleOnError)
        exchange?.serve(stored)
    }

    private func pass(_ passing: Retrieval.Passing) {
        if passing.invalidates { invalidate() }
        if passing.updatesStored { updateStored() }
        resolve(.notShared)
        if transfer != nil, passing.refutesSharing {
            world.store.keepApart(request.uri, until: world.trueTime + 30)
        }
        sink = .pass
        guard let exchange else { return feed(.clientLeft(isStillNeeded: false)) }
        exchange.relayHead(answer)
    }

    private func invalidate() {
        for uri in invalidatedURIs(target: World.target(request.uri), status: answer.status, fields: answer.fields) {
            guard let index = World.index(of: uri) else { continue }
            world.store.invalidate(index)
            world.note(.invalidated)
        }
    }

    private func resolve(_ outcome: ModelTransfer.Outcome) {
        guard let transfer, transfer.outcome == nil else { return }
        transfer.resolve(outcome, in: &world.store)
        world.resolved.append(transfer)
    }

    // MARK: parts

    private func fill(isFirst: Bool) {
        guard let hole else { return world.violated("a part of nothing", exchange) }
        sink = .fill(hole.fill, of: hole.record)
        world.note(.partFetched)
        if isFirst { exchange?.begin(hole.record, SimulatedDelivery.choose(hole.record, exchange!)) }
    }

    /// False: it is to be passed on only.
    private func place(_ part: StorablePart) -> Bool {
        guard !isOvertaken, let record = partialRecord(part) else { return false }
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
        world.note(.partStored)
        resolve(.published(record))
        exchange?.serve(record)
        return true
    }

    /// What is stored of the same representation, or a new record without a byte.
    private func partialRecord(_ part: StorablePart) -> Record? {
        let length = Int(part.total)
        if let known = world.store.records[request.uri].first(where: { $0.suits(request) }) {
            let isSame =
                known.body.expected == length && known.cached.vary == part.whole.vary
                && combines(part: part, with: known.cached)
            if known.body.state == .partial, isSame {
                let renewed = known.renewed(part.whole, part.fields, by: answer, isWhole: true)
                world.note(.combined)
                return world.store.replace(known, with: renewed) ? renewed : nil
            }
            // What it was selected by is not what selects it now.
            if known.body.state == .partial, known.cached.vary != part.whole.vary { world.store.remove(known) }
            if isSame || known.body.state == .growing { return nil }
        }
        let record = Record(request, part.whole, part.fields, .sparse(length), answer)
        world.store.insert(record)
        return record
    }

    // MARK: ends

    private func finish(_ ending: Retrieval.Ending) {
        let exchange = self.exchange
        switch ending {
        case .whole:
            switch sink {
            case .pass: exchange?.relayEnd()
            case .store(let record): if !record.body.finish() { drop(record) }
            case .fill(let fill, _): fill.close()
            case .discard, .none: break
            }
            leaveExchange()
        case .failed(let refusal):
            world.oracle.originFailed(request.uri, step: world.step)
            leaveExchange()
            resolve(.failed(refusal.rawValue))
            exchange?.refuse(refusal)
        case .brokenOff(let keepsPart):
            leaveExchange()
            brokeOff(exchange, keepsPart: keepsPart)
        case .abandoned:
            hole?.fill.close()
            resolve(.notShared)
            leaveExchange()
        }
    }

    /// What came so far cannot be completed.
    private func brokeOff(_ exchange: SimulatedExchange?, keepsPart: Bool) {
        if !keepsPart { world.note(.partLied) }
        switch sink {
        case .pass, .none, .discard: exchange?.end(.broken, "it broke off")
        case .store(let record):
            if keepsPart, partConditions(for: record.cached, from: 0, to: nil) != nil, record.body.makePartial() {
                world.note(.keptPartial)
                exchange?.end(.broken, "it broke off; the part is kept")
            } else {
                drop(record)
            }
        case .fill(let fill, let record):
            fill.close()
            if !keepsPart { world.store.remove(record) }
            exchange?.end(.broken, "a part is missing")
        }
    }

    private func drop(_ record: Record) {
        record.body.fail()
        world.store.remove(record)
    }

    /// The exchange goes on by itself, with what is there.
    private func leaveExchange() {
        if let exchange, exchange.fetch === self { exchange.fetch = nil }
        exchange = nil
    }
}
