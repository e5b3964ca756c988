import Caching
import Message
import Transaction

/// The answers, and how they end. Every exchange ends exactly once.
extension SimulatedExchange {
    /// What is stored, once its first byte is there or on its way.
    func serve(_ record: Record) {
        let chosen = SimulatedDelivery.choose(record, self)
        if RedirectStep.concerns(status: record.cached.status), world.redirectsMax != nil {
            // What is followed has to be what the client could be given.
            answer.status = record.cached.status
            judge(record, chosen)
            answer.status = nil
            if hasFollowed(record.cached.status, record.fields, isStored: true) { return }
        }
        if let first = chosen.parts.first(where: { !$0.isEmpty }), record.body.state == .partial, fetch == nil {
            switch record.body.claim(at: first.lowerBound, limit: first.upperBound) {
            case .available, .awaited: break
            case .missing(let fill):
                guard mayForward else {
                    fill.close()
                    return world.violated("a hole of what was said to be covered", self)
                }
                return fetchPart(fill, of: record)
            case .unavailable: return fetchPart(nil, of: nil)
            }
        }
        begin(record, chosen)
    }

    func begin(_ record: Record, _ chosen: SimulatedDelivery.Choice) {
        guard delivery == nil, answer.status == nil else { return world.violated("answered twice", self) }
        answer.status = chosen.status
        answer.record = record
        judge(record, chosen)
        guard chosen.hasContent else { return end(.whole, "") }
        delivery = SimulatedDelivery(record, chosen)
    }

    private func judge(_ record: Record, _ chosen: SimulatedDelivery.Choice) {
        answer.isTransformed = chosen.form.isTransformed
        answer.isGzip =
            record.lineage[0].representation?.isGzip == true ? chosen.form == .asStored : chosen.form.isTransformed
        world.oracle.judgeHead(of: self, record, in: world)
    }

    /// The client takes a few bytes of what is there.
    func read(_ count: Int) {
        guard answer.end == nil, !diskAnswers(), let delivery else { return }
        for _ in 0..<count {
            switch delivery.next() {
            case .byte(let byte, let offset): answer.take(byte, at: offset)
            case .done: return end(.whole, "")
            case .broken: return end(.broken, "the body failed")
            case .waiting: return
            case .hole(let offset, let limit):
                guard fetch == nil else { return }
                return fillHole(delivery, offset, limit)
            }
        }
    }

    private func fillHole(_ delivery: SimulatedDelivery, _ offset: Int, _ limit: Int) {
        switch delivery.record.body.claim(at: offset, limit: limit) {
        case .available, .awaited: return
        case .missing(let fill):
            guard mayForward else {
                fill.close()
                return end(.broken, "a hole, and the origin may not be asked")
            }
            world.note(.holeOnTheWay)
            fetchPart(fill, of: delivery.record)
        case .unavailable: end(.broken, "a hole that can not be kept")
        }
    }

    // MARK: passed on

    /// An interim head: the wire of a client has any number of them, one final head, and that head's body.
    func interim() {
        guard answer.status == nil else { return world.violated("an interim head behind a final one", self) }
        answer.interimHeads += 1
    }

    func relayHead(_ response: OriginAnswer) {
        guard delivery == nil, answer.status == nil else { return world.violated("answered twice", self) }
        if hasFollowed(response.status, response.fields, isStored: false) { return }
        answer.status = response.status
        answer.relayed = response
        world.oracle.judgeRelay(to: self, response, in: world)
    }

    func relay(_ byte: UInt8) {
        guard answer.relayed != nil, answer.end == nil else { return world.violated("bytes outside a body", self) }
        answer.take(byte, at: nil)
    }

    func relayEnd() { end(.whole, "passed on") }

    // MARK: ends

    func refuse(_ refusal: Refusal) {
        guard answer.status == nil else { return world.violated("refused after an answer had begun", self) }
        answer.status = refusal.status
        world.oracle.judgeRefusal(of: self, refusal, in: world)
        end(.refused, refusal.name)
    }

    func end(_ end: ClientAnswer.End, _ why: String) {
        guard answer.end == nil else { return world.violated("ended twice", self) }
        answer.end = end
        fetch?.exchange = nil
        fetch = nil
        world.ended(self, why)
    }

    /// The client goes.
    func leave() {
        following?.followers.removeAll { $0 === self }
        following = nil
        let fetch = self.fetch
        self.fetch = nil
        end(.left, "")
        fetch?.clientLeft()
    }
}

/// What a client got.
struct ClientAnswer {
    enum End { case whole, broken, refused, left }
    var status: UInt16?
    var interimHeads = 0
    /// What it is from: the store, or an answer that was passed on.
    var record: Record?
    var relayed: OriginAnswer?
    var isTransformed = false
    var isGzip = false
    private(set) var bytes: [UInt8] = []
    /// Offset in the stored content of each byte.
    private(set) var offsets: [Int] = []
    var end: End?

    mutating func take(_ byte: UInt8, at offset: Int?) {
        bytes.append(byte)
        if let offset { offsets.append(offset) }
    }
}
