import Caching
import Forwarding
import Message
import Storage
import Transaction

/// Answers from stored responses that lack some of their bytes. Stored bytes are served; missing ones are fetched when the answer
/// reaches them.
extension Exchange {
    /// Serves a partial stored response. If the first requested byte is missing, the origin is asked before the head is sent, because
    /// it may have another representation by now, or none.
    func servePart(_ record: StoredResponse, as service: Service) {
        // Of an index all bytes are needed, and of a release that is too young none.
        if isFilteredIndex(record.fields, status: record.cached.status) { return serve(record, as: service) }
        guard isReleased(record.fields, status: record.cached.status) else { return }
        if snapshot.followsRedirects, hasFollowed(record.cached.status, record.fields) { return }
        guard let delivery = StoredAnswer(record, to: request, service: service, worker: worker).delivery,
            let end = delivery.endNeeded
        else { return serve(record, as: service) }
        // The store cannot keep the missing bytes beside those it has, or must not.
        guard record.body.mayKeep(delivery.missing, lengthMax: request.objectSizeMax),
            delivery.missing.isEmpty
                || objectionToAnswers(to: request.cache, handling: request.handling(of: record, by: snapshot)) == nil
        else { return feed(.partNotKept) }
        switch record.body.claim(at: delivery.offset, limit: end) {
        case .available:
            serve(record, as: service == .hit || service == .stale ? kind(of: delivery, service) : service)
        case .awaited: serve(record, as: .collapsed)
        case .missing(let fill):
            guard mayFillHoles(of: record) else {
                fill.abandon()
                request.tier.remove(record)
                return feed(.partNotKept)
            }
            guard case .fillHole = machine.on(.holeFound) else {
                fill.abandon()
                return refuse(.onlyIfCached)
            }
            retrieve(fill, of: record)
        case .unavailable: feed(.partNotKept)
        }
    }

    /// Whether missing bytes may be fetched by themselves. Not where a digest proves the body: it says nothing about a part.
    private func mayFillHoles(of record: StoredResponse) -> Bool {
        !request.handling(of: record, by: snapshot).provesBodies
    }

    /// How the response is served: as `service` says if no byte is missing; as collapsed if others are fetching the first missing
    /// byte; otherwise as a part that this request fetches.
    private func kind(of delivery: Delivery, _ service: Service) -> Service {
        guard let missing = delivery.missing.first else { return service }
        return delivery.body.bytesBefore(missing.lowerBound) == nil ? .part(status: 0) : .collapsed
    }

    private func retrieve(_ fill: Fill, of record: StoredResponse) {
        listen(
            to: Fetch(
                worker: worker, snapshot: snapshot, request: request, client: stream.address,
                plan: RetrievalPlan(reason: .partial), stored: record, hole: Hole(record: record, fill: fill),
                isAnswered: isAnswered))
    }

    enum HoleFilling {
        /// The bytes have arrived in the meantime.
        case progressed
        /// Another fetch is retrieving them.
        case awaited
        /// This exchange has started a fetch for them.
        case fetching
        /// They are unavailable: the answer must break off.
        case broken
    }

    /// Starts a fetch for the missing bytes at the delivery's offset, unless another one is retrieving them.
    ///
    /// The fetch may fail at once. Then this exchange has replaced its answer or reset the connection by the time this returns, and
    /// `delivery` may have ended.
    func fillHole(before delivery: Delivery) -> HoleFilling {
        precondition(isAnswered, "a delivery meets a hole behind the head of its answer")
        guard let record = delivery.record, let end = delivery.endNeeded else { return .broken }
        switch delivery.body.claim(at: delivery.offset, limit: end) {
        case .available: return .progressed
        case .awaited: return .awaited
        case .missing(let fill):
            guard request.mayForward, mayFillHoles(of: record), case .fillHole = machine.on(.holeFound) else {
                fill.abandon()
                return .broken
            }
            retrieve(fill, of: record)
            return .fetching
        case .unavailable: return .broken
        }
    }

    /// Puts a response that lacks some bytes in the place of one whose body turned out to be damaged while it was being sent. Nil if the missing
    /// bytes could not be fetched: without a strong validator the origin cannot tell that it still has the same representation.
    func rescue(_ delivery: Delivery) -> StoredResponse? {
        guard let record = delivery.record, delivery.body === record.body, record.cached.strongValidator != nil,
            request.mayForward, mayFillHoles(of: record)
        else { return nil }
        let rescued = request.tier.rescue(record) { current, body in
            guard let current = current as? StoredResponse else {
                preconditionFailure("responses are stored, and nothing else")
            }
            return current.moved(to: body)
        }
        return rescued as? StoredResponse
    }

    /// Whether the requested range of a response that is still arriving begins so far ahead that a request for it is faster than
    /// waiting.
    func isFarAhead(of record: StoredResponse) -> Bool {
        let state = record.body.state
        guard request.cache.hasRange, state == .growing || state == .partial, request.mayForward,
            let length = record.body.expectedLength
        else { return false }
        let ranges = selectRange(
            request.fields, method: request.method, stored: record.cached, length: UInt64(length),
            now: worker.wallTime)
        guard case .single(let range) = ranges else { return false }
        let offset = Int(range.lowerBound)
        let before = state == .growing ? offset - record.body.length : record.body.bytesBefore(offset) ?? 0
        return before > Exchange.waitedForBytesMax
    }

    /// The most bytes ahead that are worth waiting for: a transfer of some megabytes takes about as long as opening a connection.
    private static let waitedForBytesMax = 4 << 20
}

extension OwnedRequest {
    /// Whether the stored response has every byte that this request asks for, or is complete or growing.
    func isCovered(by record: StoredResponse, _ worker: Worker) -> Bool {
        guard record.body.state == .partial else { return true }
        let answer = StoredAnswer(record, to: self, service: .hit, worker: worker)
        return answer.delivery?.isComplete ?? true
    }
}
