import Caching
import Message
import Transaction

/// Bytes that are asked for in place of what the client asked for.
struct PartAsked {
    let stored: CachedResponse
    let start: Int
    let end: Int?
}

/// One question to the origin and its answer: plays the part of the server's `Fetch`, one event at a time.
final class SimulatedFetch {
    enum State { case asking, waiting(OriginAnswer), streaming, finished }
    enum Sink {
        case undecided, relay, discard
        case store(Record)
        case fill(Fill, of: Record)
    }

    unowned let world: World
    let request: ClientRequest
    var exchange: SimulatedExchange?
    var transfer: ModelTransfer?
    var transaction: Transaction
    var plan: Transaction.Fetch
    var stored: Record?
    var candidates: [Record] = []
    var hole: (record: Record, fill: Fill)?
    var part: PartAsked?

    var state: State = .asking
    var sink: Sink = .undecided
    /// The answer that was decided on; later ones bring the rest of it.
    var response: OriginAnswer?
    /// The answer whose body comes, and how much of that has.
    var answer: OriginAnswer!
    var sent = 0
    /// Bytes of the content that went to the sink; all that it will have, where known.
    var received = 0
    var total: Int?
    /// Bytes that the part under way still owes by its `Content-Range`.
    var owed: Int?
    var inVain = 0
    let requestTime: WallTime

    init(
        _ world: World, _ request: ClientRequest, _ exchange: SimulatedExchange?, _ transaction: Transaction,
        _ plan: Transaction.Fetch, stored: Record?
    ) {
        self.world = world
        self.request = request
        self.exchange = exchange
        self.transaction = transaction
        self.plan = plan
        self.stored = stored
        requestTime = world.cacheClock
    }

    var isFinished: Bool { if case .finished = state { true } else { false } }

    /// One event of its life.
    func advance() {
        switch state {
        case .asking: ask()
        case .waiting(let answer): receive(answer)
        case .streaming: receivePiece()
        case .finished: break
        }
    }

    private func ask() {
        if world.chance.percent(world.failures) {
            world.trace("fetch of /\(request.uri): no connection")
            return failBeforeHead(world.chance.pick([.connectionRefused, .nameTimeout, .responseTimeout]))
        }
        let answer = world.origin.answer(
            request, conditions, step: world.step, now: world.originClock,
            failures: world.failures, cuts: world.cuts, &world.chance)
        world.oracle.judgeQuestion(of: self, in: world)
        world.trace("origin, asked with \(conditionText): \(answer.summary)")
        state = .waiting(answer)
    }

    /// What goes along in place of the client's own conditions; nil: nothing does.
    private var conditions: [(FieldName, [UInt8])]? {
        if let part { return partConditions(for: part.stored, from: part.start, to: part.end) ?? [] }
        guard plan.isConditional else { return nil }
        if let stored { return conditionalFields(for: stored.cached) }
        return conditionalFields(forOneOf: candidates.map(\.cached))
    }

    private var conditionText: String {
        conditions.map { $0.map { "\($0.0.text): \(String(decoding: $0.1, as: UTF8.self))" }.joined(separator: " | ") }
            ?? "the client's fields"
    }

    private func receive(_ answer: OriginAnswer) {
        if world.chance.percent(world.failures / 3) {
            world.trace("answer \(answer.id): lost")
            return failBeforeHead(.connectionTerminated)
        }
        answer.receivedStep = world.step
        answer.requestTime = requestTime.secondsSinceEpoch
        answer.responseTime = world.cacheClock.secondsSinceEpoch
        world.oracle.received(answer)
        state = .streaming
        sent = 0
        owed = nil
        switch promisedPart(status: answer.status, fields: answer.fields) {
        case .none: break
        case .bytes(let count): owed = Int(count)
        case .contradictory where part == nil:
            world.note(.partLied)
            return failBeforeHead(.responseInvalid)
        case .contradictory: break
        }
        if isResuming {
            guard goesOn(answer) else { return giveUp(keepsPart: false) }
            self.answer = answer
            world.note(.resumed)
        } else {
            self.answer = answer
            response = answer
            let hasContent = request.method != .head && answer.status != 304 && answer.status != 204
            total = hasContent && answer.tellsLength ? answer.body.count : nil
            if part != nil { decidePart(answer) } else { decide(answer) }
        }
    }

    private func receivePiece() {
        let limit = answer.cut ?? answer.body.count
        var count = min(limit - sent, 1 + world.chance.below(16))
        while count > 0, case .streaming = state {
            deliver(answer.body[sent])
            sent += 1
            count -= 1
        }
        guard case .streaming = state, sent == limit else { return }
        answer.cut == nil ? complete() : breakOff()
    }

    private func deliver(_ byte: UInt8) {
        world.ledger.fromOrigin += 1
        if let owed {
            guard owed > 0 else {
                world.ledger.dropped += 1
                return partLied()
            }
            self.owed = owed - 1
        }
        received += 1
        switch sink {
        case .relay:
            world.ledger.relayed += 1
            exchange?.relay(byte)
        case .store(let record):
            record.body.append(byte)
            world.ledger.stored += 1
        case .fill(let fill, _):
            if fill.append(byte) { world.ledger.stored += 1 } else { world.ledger.dropped += 1; giveUp() }
        case .discard, .undecided: world.ledger.dropped += 1
        }
    }
}
