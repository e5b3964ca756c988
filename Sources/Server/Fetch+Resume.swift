import Caching
import EventLoop
import Forwarding
import Framing
import Message
import Storage
import Transaction

/// Bytes that are asked for in place of what the client asked for: a hole of what is stored, or the rest of what broke off.
struct PartAsked {
    /// What the part is to belong to: its strong validator goes along (RFC 9110 §13.1.5).
    let stored: CachedResponse
    let start: Int
    /// One past the last byte; nil: all that follows.
    let end: Int?
}

/// How often a transfer was taken up again without a byte having come of it.
struct Resumptions {
    private var inVain = 0
    private var receivedBefore: UInt64 = 0

    static let inVainMax = 4

    /// Waits that grow: an origin that starts anew needs a moment. Nil: it was in vain too often.
    mutating func nextPause(received: UInt64) -> Duration? {
        if received > receivedBefore { inVain = 0 }
        receivedBefore = received
        guard inVain < Resumptions.inVainMax else { return nil }
        inVain += 1
        return inVain == 1 ? .zero : .milliseconds(100 << inVain)
    }
}

/// A transfer that broke off goes on where it stopped (RFC 9110 §14.2 with If-Range): nobody who reads it notices.
extension Fetch {
    /// The sink has begun to get the body: an answer that comes now is about the rest.
    var isResuming: Bool {
        if case .undecided = sink { return false }
        return part != nil
    }

    /// What to ask for to complete what has begun; nil: it was no GET, or its answer has no strong validator or takes no
    /// ranges.
    var restAsked: PartAsked? {
        guard request.method == .get, request.isReplayable, !transaction.request.isUpgrade else { return nil }
        let rest: PartAsked
        switch sink {
        case .undecided, .discard:
            return nil
        case .store(let record):
            rest = PartAsked(stored: record.cached, start: Int(clamping: received), end: nil)
        case .fill(let fill, let record):
            rest = PartAsked(stored: record.cached, start: fill.position, end: fill.range.upperBound)
        case .relay:
            guard let response, response.status == 200, exchange != nil else { return nil }
            let described = CachedResponse(
                status: 200, fields: response.fields, requestTime: requestTime, responseTime: worker.wallTime,
                policy: snapshot.cachePolicy)
            rest = PartAsked(stored: described, start: Int(clamping: received), end: nil)
        }
        return partConditions(for: rest.stored, from: rest.start, to: rest.end) == nil ? nil : rest
    }

    /// The body ended before its end: the rest is asked for; where that can not be or does not help, it is given up.
    func breakOff() {
        guard state != .finished, state != .pausing else { return }
        guard let rest = restAsked, let pause = resumptions.nextPause(received: received) else { return giveUp() }
        if state == .acquiring { leaveQueue() }
        if let connection { worker.origins.discard(connection) }
        connection = nil
        inbound = []
        progress = HeadProgress()
        isPaused = false
        part = rest
        worker.counters.add(.resumed)
        guard pause > .zero else { return askAgain() }
        state = .pausing
        worker.loop.timers.schedule(self, after: pause)
    }

    func askAgain() {
        state = .acquiring
        worker.origins.acquire(for: self)
    }

    /// Whether the answer is the part that was asked for, of the same representation.
    func answerForPart(_ response: ReceivedResponse) -> ResumeAnswer {
        guard let part else { preconditionFailure("no part was asked for") }
        let answer = continues(
            status: response.status, fields: response.fields, stored: part.stored, from: part.start, to: part.end,
            total: hole.map { $0.record.body.expectedLength } ?? total.map { Int(clamping: $0) })
        if case .goesOn(_, let whole) = answer, total == nil {
            total = UInt64(part.end.map { $0 - part.start } ?? whole)
        }
        return answer
    }

    /// What came so far can not be completed.
    /// - Parameter keepsPart: false: the origin has another representation by now, or gives no parts of this one.
    func giveUp(keepsPart: Bool = true) {
        guard state != .finished else { return }
        if let connection = finish() { worker.origins.discard(connection) }
        switch sink {
        case .relay: exchange?.relayFailed(.responseIncomplete)
        case .store(let record): keepsPart ? keepPart(record) : dropStored(record)
        case .fill(let fill, let record):
            fill.abandon()
            if !keepsPart || partConditions(for: record.cached, from: 0, to: nil) == nil { request.tier.remove(record) }
            exchange?.partFailed()
        case .discard, .undecided: break
        }
        exchange = nil
    }

    /// What is there of a response with a strong validator is kept: a later request fetches the rest.
    private func keepPart(_ record: StoredResponse) {
        guard partConditions(for: record.cached, from: 0, to: nil) != nil, record.body.makePartial() else {
            return dropStored(record)
        }
        worker.counters.add(.keptPartial)
        exchange?.partFailed()
    }
}
