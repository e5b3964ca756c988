import Caching
import Forwarding
import Message
import Storage
import Transaction

/// Answers from stored responses of which parts are missing: what is there is served, what is not is fetched on the way.
extension Exchange {
    /// Where the first byte is missing, the origin is asked before the head goes out: it may have another representation
    /// by now, or none.
    func servePart(_ record: StoredResponse, as service: Service) {
        guard let delivery = StoredAnswer(record, to: request, service: service, worker: worker).delivery,
            let end = delivery.endNeeded
        else { return serve(record, as: service) }
        // What is missing would be more than the store keeps.
        guard record.body.mayKeep(delivery.missing, lengthMax: request.objectSizeMax) else { return feed(.partNotKept) }
        switch record.body.claim(at: delivery.offset, limit: end) {
        case .available:
            serve(record, as: service == .hit || service == .stale ? kind(of: delivery, service) : service)
        case .awaited: serve(record, as: .collapsed)
        case .missing(let fill):
            guard case .fillHole = machine.on(.holeFound) else {
                fill.abandon()
                return refuse(.onlyIfCached)
            }
            retrieve(fill, of: record)
        case .unavailable: feed(.partNotKept)
        }
    }

    /// A hit, if all is there; otherwise the rest is on its way because of others, or will be because of this request.
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

    enum HoleFilling { case progressed, awaited, fetching, broken }

    /// The delivery stands before bytes that nobody has fetched.
    func fillHole(before delivery: Delivery) -> HoleFilling {
        guard let record = delivery.record, let end = delivery.endNeeded else { return .broken }
        switch delivery.body.claim(at: delivery.offset, limit: end) {
        case .available: return .progressed
        case .awaited: return .awaited
        case .missing(let fill):
            guard request.mayForward, case .fillHole = machine.on(.holeFound) else {
                fill.abandon()
                return .broken
            }
            retrieve(fill, of: record)
            return .fetching
        case .unavailable: return .broken
        }
    }

    /// What the request wants of a response that is still arriving lies so far ahead that asking for it is quicker.
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

    /// A transfer of some megabytes takes about as long as a connection.
    private static let waitedForBytesMax = 4 << 20
}

extension OwnedRequest {
    /// Everything this request wants of the stored response is there, or on its way.
    func isCovered(by record: StoredResponse, _ worker: Worker) -> Bool {
        guard record.body.state == .partial else { return true }
        let answer = StoredAnswer(record, to: self, service: .hit, worker: worker)
        return answer.delivery?.isAllThere ?? true
    }
}
