import Caching
import Forwarding
import Message
import Storage
import Transaction

/// Answers from responses of which parts are missing: what is there is served, what is not is fetched on the way.
extension Exchange {
    /// Where the first byte is missing, the origin is asked before the head goes out: it may have another representation
    /// by now, or be gone.
    func servePart(_ record: StoredResponse, as service: Service) {
        guard let delivery = StoredAnswer(record, to: request, service: service, worker: worker).delivery,
            let end = delivery.endNeeded
        else { return serve(record, as: service) }
        // What is missing would be more than the store keeps.
        guard record.body.mayKeep(delivery.missing, lengthMax: request.objectSizeMax) else { return forwardAlone() }
        switch record.body.claim(at: delivery.offset, limit: end) {
        case .available:
            serve(record, as: service == .hit || service == .stale ? kind(of: delivery, service) : service)
        case .awaited: serve(record, as: .collapsed)
        case .missing(let fill): fetch(fill, of: record)
        case .unavailable: forwardAlone()
        }
    }

    /// A hit, if all is there; otherwise the rest is on its way because of others, or will be because of this request.
    private func kind(of delivery: Delivery, _ service: Service) -> Service {
        guard let missing = delivery.missing.first else { return service }
        return delivery.body.bytesBefore(missing.lowerBound) == nil ? .part(status: 0) : .collapsed
    }

    /// The store can not help any more: the request goes to the origin as it is.
    func forwardAlone(_ reason: CacheStatus.ForwardReason = .partial) {
        let (transaction, plan) = Transaction.alone(self.transaction.request, reason)
        let fetch = Fetch(
            worker: worker, snapshot: snapshot, request: request, exchange: self, transaction: transaction, plan: plan,
            stored: nil, transfer: nil)
        self.fetch = fetch
        fetch.start()
    }

    /// Just validated: as it is, or with its holes filled.
    func serveRenewed(_ record: StoredResponse, as service: Service, ownFields: Fields? = nil) {
        fetch = nil
        record.body.state == .partial
            ? servePart(record, as: service) : serve(record, as: service, ownFields: ownFields)
    }

    private func fetch(_ fill: Fill, of record: StoredResponse) {
        let (transaction, plan) = Transaction.alone(self.transaction.request, .partial)
        let fetch = Fetch(
            worker: worker, snapshot: snapshot, request: request, exchange: self, transaction: transaction, plan: plan,
            stored: record, transfer: nil, hole: Hole(record: record, fill: fill))
        self.fetch = fetch
        fetch.start()
    }

    /// The origin gives what was missing; the answer begins, if it has not.
    func partBegan(_ record: StoredResponse) {
        guard !isAnswered else { return }
        serve(record, as: .part(status: 206))
    }

    /// All that the fetch had to bring is there, or will not come; what is missing beyond is somebody else's.
    func fetchEnded() {
        fetch = nil
        stream.flush()
    }

    /// How far the client is in a body that is being fetched for it; nil: it gets another, or none.
    func offsetTaken(of body: Body) -> Int? { stream.offsetTaken(of: body) }

    /// What the answer waits for is not what is being fetched for it, for it was lost meanwhile: the fetch goes on without it.
    func letFetchGo() {
        let fetch = self.fetch
        self.fetch = nil
        fetch?.clientLeft()
    }

    /// What is missing cannot be fetched. Where nothing of the answer is out, an error takes its place; otherwise the client must see
    /// by the end of the connection that its answer is not whole (RFC 9112 §8).
    func partFailed() {
        fetch = nil
        guard isAnswered else { return stream.reset() }
        refuse(.responseIncomplete)
    }

    /// The delivery stands before a hole.
    /// - Returns: bytes are there after all.
    func fillHole(before delivery: Delivery) -> HoleFilling {
        guard let end = delivery.endNeeded else { return .broken }
        switch delivery.body.claim(at: delivery.offset, limit: end) {
        case .available: return .progressed
        case .awaited: return .awaited
        case .missing(let fill):
            guard request.mayForward else {
                fill.abandon()
                return .broken
            }
            fetch(fill, of: delivery.record)
            return .fetching
        case .unavailable: return .broken
        }
    }

    enum HoleFilling { case progressed, awaited, fetching, broken }

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

    /// Everything this request wants of the record is there, or on its way.
    func isCovered(by record: StoredResponse) -> Bool {
        guard record.body.state == .partial else { return true }
        let answer = StoredAnswer(record, to: request, service: .hit, worker: worker)
        return answer.delivery?.isAllThere ?? true
    }
}
