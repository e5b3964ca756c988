import Caching
import Forwarding
import Message
import Storage
import Transaction

/// A hole of a partial response that a fetch is to fill.
struct Hole {
    let record: StoredResponse
    let fill: Fill

    var asked: PartAsked {
        PartAsked(stored: record.cached, start: fill.range.lowerBound, end: fill.range.upperBound)
    }
}

/// Parts of representations: answers to ranges are stored, holes are filled (RFC 9110 §14, RFC 9111 §3.3, §3.4).
extension Fetch {
    // MARK: a hole

    /// The answer to the question for a hole.
    func decidePart(_ response: ReceivedResponse) {
        guard let hole else { preconditionFailure("a part was asked for, and nobody knows of what") }
        guard case .goesOn = answerForPart(response) else { return partIsGone(hole, response) }
        sink = .fill(hole.fill, of: hole.record)
        exchange?.partBegan(hole.record)
    }

    /// The origin has another representation by now, or gives no parts.
    private func partIsGone(_ hole: Hole, _ response: ReceivedResponse) {
        self.hole = nil
        part = nil
        stored = nil
        hole.fill.abandon()
        if response.status == 200 || response.status == 404 || response.status == 410 || response.status == 416 {
            request.tier.remove(hole.record)
        }
        guard let exchange, !exchange.isAnswered else {
            // What has gone out belongs to the old one and can not be completed.
            exchange?.partFailed()
            exchange = nil
            return abort()
        }
        guard response.status != 206, response.status != 416 else { return askForTheClients() }
        unsafe decide(response, UnsafeRawBufferPointer(start: nil, count: 0))
    }

    /// The answer fits neither what is stored nor what the client asked: the client's own question goes out.
    private func askForTheClients() {
        if let connection { worker.origins.discard(connection) }
        connection = nil
        askAgain()
    }

    func completePart(_ fill: Fill, of record: StoredResponse) {
        _ = fill.finish()
        if fill.range.count != record.body.expectedLength { worker.counters.add(.partsStored) }
        if record.body.state == .complete {
            worker.counters.add(.stored)
            persist(record)
        }
        exchange?.fetchEnded()
        fillRest(of: record)
    }

    /// Where the rules want the whole, the next hole is fetched behind everybody's back.
    private func fillRest(of record: StoredResponse) {
        let treatment = request.treatment(of: record, by: snapshot)
        guard treatment.ranges == .whole, record.body.state == .partial, let length = record.body.expectedLength,
            length <= request.objectSizeMax(treatment), !record.body.isLeftByDisk
        else { return }
        Fetch.fillHole(of: record, worker: worker, snapshot: snapshot, request: request, like: transaction.request)
    }

    /// Fetches the first hole behind everybody's back.
    static func fillHole(
        of record: StoredResponse, worker: Worker, snapshot: Snapshot, request: OwnedRequest,
        like original: Transaction.Request
    ) {
        var offset = 0
        while let length = record.body.expectedLength, offset < length {
            switch record.body.claim(at: offset, limit: length) {
            case .available(let end): offset = end
            case .awaited, .unavailable: return
            case .missing(let fill):
                let (transaction, plan) = Transaction.alone(original, .partial)
                Fetch(
                    worker: worker, snapshot: snapshot, request: request, exchange: nil, transaction: transaction,
                    plan: plan, stored: record, transfer: nil, hole: Hole(record: record, fill: fill)
                ).start()
                return
            }
        }
    }

    // MARK: an answer to the client's range

    func decideAnswerToRange(_ response: ReceivedResponse, _ now: WallTime) {
        let notStored = storePart(response, now)
        let action = transaction.on(
            .originHead(status: response.status, isStorable: notStored == nil, staleMayServe: false))
        guard let notStored else { return }
        guard case .relay = action else { preconditionFailure("a part that is not stored is passed on") }
        relay(response, notStored: notStored)
    }

    /// Stores the part that came, as a part of the whole.
    /// - Returns: why it is to be passed on only; nil where it is stored.
    private func storePart(_ response: ReceivedResponse, _ now: WallTime) -> NotStoredReason? {
        let decision = decideStoringPart(
            of: request.cache, status: response.status, fields: endToEndFields(response, now),
            policy: snapshot.cachePolicy, treatment: treatment(of: response), requestTime: requestTime,
            responseTime: now)
        switch decision {
        case .doNotStore(let reason): return reason
        case .store(let part):
            guard !isOutdated, let (record, fill) = place(part, response, now) else {
                worker.counters.add(.storingRefused)
                return .partialContent
            }
            hole = Hole(record: record, fill: fill)
            sink = .fill(fill, of: record)
            total = UInt64(fill.range.count)
            transfer?.resolve(.published(record))
            exchange?.serve(record, as: .miss(plan.reason, status: 206))
            return nil
        }
    }

    /// The record the part belongs to, and the hole that it fills to the byte; nil where there is no such hole, or no room.
    private func place(_ part: StorablePart, _ response: ReceivedResponse, _ now: WallTime) -> (StoredResponse, Fill)? {
        let treatment = treatment(of: response)
        let memoryMax = request.memoryObjectSizeMax(treatment)
        guard let length = Int(exactly: part.total),
            let record = partialRecord(part, length, heldMax: memoryMax, response, now)
        else { return nil }
        let lengthMax = record.body.isLarge ? request.objectSizeMax(treatment) : memoryMax
        guard let fill = hole(for: part, in: record, lengthMax: lengthMax) else {
            // A record without a byte is none.
            if record.body.extents.isEmpty { request.tier.remove(record) }
            return nil
        }
        return (record, fill)
    }

    private func hole(for part: StorablePart, in record: StoredResponse, lengthMax: Int) -> Fill? {
        let range = Int(part.range.lowerBound)..<Int(part.range.upperBound)
        // Where the origin gives less than was asked for, the client is promised all of it, and the rest is fetched.
        let promised =
            StoredAnswer(record, to: request, service: .part(status: 206), worker: worker).delivery?.missing ?? []
        let beyond = promised.filter { $0.clamped(to: range) != $0 }
        guard record.body.mayKeep([range] + beyond, lengthMax: lengthMax),
            case .missing(let fill) = record.body.claim(at: range.lowerBound, limit: range.upperBound)
        else { return nil }
        guard fill.range == range else {
            fill.abandon()
            return nil
        }
        return fill
    }

    /// What is stored of the same representation, or a new record without a byte.
    private func partialRecord(
        _ part: StorablePart, _ length: Int, heldMax: Int, _ response: ReceivedResponse, _ now: WallTime
    ) -> StoredResponse? {
        let records = request.zone.lookup(request.key, request.keyBytes).compactMap { $0 as? StoredResponse }
        if let known = records.first(where: { $0.suits(request) }) {
            let isSame = known.body.expectedLength == length && combines(part: part, with: known.cached)
            if known.body.state == .partial, isSame {
                // §3.4: the new fields hold for the whole; an answer to If-Range may leave out some (RFC 9110 §15.3.7).
                let renewed = renewed(known, by: part.fields, now)
                return request.tier.replace(known, with: renewed) ? renewed : nil
            }
            // What is whole, or will be, is worth more than a part.
            if isSame || known.body.state == .growing { return nil }
        }
        if let large = largeRecord(length, treatment(of: response), part.whole, part.fields) {
            if insert(large) { return large }
            request.tier.remove(large)
            return nil
        }
        guard let body = request.tier.makeSparseBody(length: length, heldMax: heldMax) else { return nil }
        let record = StoredResponse(
            request: request, cached: part.whole, fields: part.fields, body: body, contentLength: length,
            treatment: treatment(of: response))
        return insert(record) ? record : nil
    }
}
