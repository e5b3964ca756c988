import Access
import Caching
import EventLoop
import Forwarding
import Framing
import Glibc
import Message
import Storage
import Transaction

/// One request to an origin and its response: what happens between a decision to ask and the last byte.
///
/// ```
/// acquiring ─connection─▶ awaitingHead ─head─▶ streaming ─last byte─▶ finished
///     ▲                        │ dead pooled        │ broke off (Fetch+Resume)
///     ├────────────────────────┘                    │
///     └───────────────── pausing ◀──────────────────┘
/// ```
///
/// It belongs to nobody but itself: when the client leaves, the transfer goes on for the store and for those who
/// follow it. What it receives goes to one sink: the store, or the client's exchange.
final class Fetch: TimedObject {
    let worker: Worker
    let snapshot: Snapshot
    let request: OwnedRequest
    var dial: Dial?
    var handshake: Handshake?
    /// The exchange of the client that asked; nil when it left.
    var exchange: Exchange?
    /// The transfer that others follow; nil where this fetch does not lead.
    let transfer: Transfer?
    var transaction: Transaction
    var plan: Transaction.Fetch
    /// What is stored for the request: to be validated, and to fall back on.
    var stored: StoredResponse?
    /// Other variants whose validators go along: the origin may say that one of them suits (RFC 9111 §4.3.1).
    var candidates: [StoredResponse] = []

    enum State { case acquiring, awaitingHead, streaming, pausing, finished }
    enum Sink {
        case undecided, relay, discard
        case store(StoredResponse)
        /// A hole of a partial response.
        case fill(Fill, of: StoredResponse)
    }
    /// Its place among the worker's; nil before it starts and when it is over.
    private(set) var id: ConnectionID?
    var state: State = .acquiring
    var sink: Sink = .undecided
    var connection: OriginConnection?
    var retries = 0
    var inbound: [UInt8] = []
    var progress = HeadProgress()
    var interimResponses = 0
    var length: BodyLength = .none
    var remaining: UInt64 = 0
    var decoder: ChunkedDecoder?
    var persists = false
    var keepAlive: Duration = .zero
    var requestIsSent = false
    var isPaused = false
    let requestTime: WallTime
    /// Of the tier, when the fetch began.
    var invalidationsBefore: Int
    var startedAt = MonotonicTime(nanoseconds: 0)
    /// Bytes of the body that went to the sink.
    var received: UInt64 = 0
    /// Those behind the head that the store took when it was decided upon.
    var taken = 0
    /// All that the body will have; nil: not known.
    var total: UInt64?
    /// Bytes that the part under way still owes by its `Content-Range`. Nil where the response is no such part.
    var owed: UInt64?
    /// The head of the response that is under way.
    var response: ReceivedResponse?
    /// What is asked for in place of what the client asked for.
    var part: PartAsked?
    var hole: Hole?
    var resumptions = Resumptions()

    init(
        worker: Worker, snapshot: Snapshot, request: OwnedRequest, exchange: Exchange?, transaction: Transaction,
        plan: Transaction.Fetch, stored: StoredResponse?, transfer: Transfer?, hole: Hole? = nil
    ) {
        self.hole = hole
        part = hole?.asked
        self.worker = worker
        self.snapshot = snapshot
        self.request = request
        self.exchange = exchange
        self.transaction = transaction
        self.plan = plan
        self.stored = stored
        self.transfer = transfer
        requestTime = worker.wallTime
        invalidationsBefore = request.tier.invalidations
    }

    func start() {
        startedAt = worker.loop.now
        _ = worker.fetches.insert { id in
            self.id = id
            return self
        }
        worker.origins.acquire(for: self)
    }

    /// A pooled connection may be dead without our knowing; only what can be sent again goes out on one.
    var mayUsePooledConnection: Bool {
        request.isReplayable && retries == 0 && !transaction.request.isUpgrade && !bindsConnection
    }

    /// The request proves who it is from for its whole connection, against the rules of HTTP (NTLM, Negotiate: RFC 4559
    /// §6): nobody else's request may go out on it.
    var bindsConnection: Bool {
        request.head.fields.present.contains(.authorization)
            && request.fields.all(.authorization).contains(where: Fetch.isBinding)
    }

    static func isBinding(_ credentials: ArraySlice<UInt8>) -> Bool {
        ["ntlm", "negotiate", "nego2", "kerberos"].contains { scheme in
            credentials.starts(with: scheme.utf8) { $0 | 0x20 == $1 }
        }
    }

    /// What the admin endpoint tells of it.
    var description: FetchDescription {
        var readers = exchange == nil ? 0 : 1
        if let transfer { readers += transfer.followerCount }
        var result = FetchDescription(
            uri: request.uri, age: worker.loop.now.duration(since: startedAt), received: received, expected: nil,
            readers: readers, isStored: false)
        result.expected = total
        switch sink {
        case .store, .fill: result.isStored = true
        case .undecided, .relay, .discard: break
        }
        return result
    }

    // MARK: the client leaves

    /// The client is gone. The transfer goes on where somebody gains by it, and is cancelled where nobody does.
    func clientLeft() {
        exchange = nil
        switch sink {
        case .store(let record): if isForNobody(record) { abortStored(record) }
        case .fill(let fill, _): if fill.body.isLeftByDisk { giveUp() }
        case .undecided where transfer.map { $0.followerCount > 0 } == true: return
        case .undecided, .relay, .discard: abort()
        }
    }

    // MARK: connection

    func connected(_ connection: OriginConnection) {
        guard state == .acquiring else { return worker.origins.discard(connection) }
        self.connection = connection
        state = .awaitingHead
        worker.counters.add(.originRequests)
        unsafe worker.scratch.pointee.out.removeAll(keepingCapacity: true)
        let outgoing = OutgoingRequest(request.received, conditions: conditions, instance: worker.shared.instance)
        unsafe outgoing.serialize(into: &worker.scratch.pointee.out)
        let outcome = unsafe worker.scratch.pointee.out.withUnsafeBytes { unsafe connection.send($0) }
        guard outcome != .failed else { return connectionDied() }
        requestIsSent = !request.hasBody
        worker.loop.timers.schedule(self, after: snapshot.configuration.timeouts.firstByte)
        if request.hasBody { exchange?.upload(to: self) }
    }

    /// What goes along in place of the client's own conditions and ranges.
    private var conditions: [(FieldName, [UInt8])] {
        if let part {
            var fields = partConditions(for: part.stored, from: part.start, to: part.end) ?? []
            if hole != nil, let coding = codingOfParts(of: part.stored) { fields.append(coding) }
            return fields
        }
        guard plan.isConditional else { return [] }
        if let stored { return conditionalFields(for: stored.cached) }
        return conditionalFields(forOneOf: candidates.map(\.cached))
    }

    func connectionFailed(_ refusal: Refusal) {
        guard state == .acquiring else { return }
        failBeforeHead(refusal)
    }

    func connectionDenied(_ denial: Denial) {
        exchange?.note(denial)
        connectionFailed(Refusal(denial))
    }

    // MARK: the request's body

    /// Sends a piece of the request's body; false: hold back until `Exchange.mayUploadMore`.
    func sendBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let connection else { return true }
        if case .chunked = request.bodyLength {
            var framed: [UInt8] = []
            framed.reserveCapacity(bytes.count + 20)
            appendChunkHeader(bytes.count, to: &framed)
            unsafe framed.append(contentsOf: bytes)
            framed.append(contentsOf: [0x0D, 0x0A])
            _ = unsafe framed.withUnsafeBytes { unsafe connection.send($0) }
        } else {
            _ = unsafe connection.send(bytes)
        }
        worker.loop.timers.schedule(self, after: snapshot.configuration.timeouts.firstByte)
        return connection.unsentBytes < snapshot.limits.relayBufferBytesMax
    }

    func endBody(trailers: Fields?) {
        requestIsSent = true
        guard case .chunked = request.bodyLength, let connection else { return }
        var last: [UInt8] = []
        appendLastChunk(trailers: ForwardedHead.trailers(trailers), to: &last)
        _ = unsafe last.withUnsafeBytes { unsafe connection.send($0) }
    }

    func originDrained() { exchange?.mayUploadMore() }

    /// The origin may have answered before it closed: what it sent is still read.
    func originWriteFailed() { persists = false }

    // MARK: reading

    func originReadable() {
        guard let connection else { return }
        repeat {
            switch state {
            case .awaitingHead: if !readHead(connection) { return }
            case .streaming: if !readBody(connection) { return }
            case .acquiring, .pausing, .finished: return
            }
        } while connection.mustBeDrained && !isPaused
    }

    /// - Returns: there may be more to read.
    func readHead(_ connection: OriginConnection) -> Bool {
        switch unsafe connection.read(into: worker.readBuffer) {
        case .bytes(let count):
            worker.counters.add(.bytesFromOrigins, count)
            let received = unsafe UnsafeRawBufferPointer(rebasing: worker.readBuffer[..<count])
            if inbound.isEmpty {
                unsafe parseHead(received)
            } else {
                unsafe inbound.append(contentsOf: received)
                let all = inbound
                inbound = []
                unsafe all.withUnsafeBytes { unsafe parseHead($0) }
            }
            return true
        case .wouldBlock:
            return false
        case .closed, .failed:
            connectionDied()
            return false
        }
    }

    func parseHead(_ received: UnsafeRawBufferPointer) {
        var rest = unsafe received
        while state == .awaitingHead {
            let bytes = unsafe rest.bindMemory(to: UInt8.self)
            do throws(FramingError) {
                let isComplete = unsafe try parseResponseHead(
                    bytes.span, into: &worker.scratch.pointee.responseHead, progress: &progress, limits: snapshot.limits
                )
                guard isComplete else {
                    unsafe inbound.append(contentsOf: rest)
                    return
                }
            } catch {
                return receivedNonsense(error)
            }
            progress = HeadProgress()
            let head = unsafe worker.scratch.pointee.responseHead
            let headBytes = unsafe UnsafeRawBufferPointer(rebasing: rest[..<head.byteCount])
            unsafe rest = unsafe UnsafeRawBufferPointer(rebasing: rest[head.byteCount...])
            unsafe receive(head, headBytes, rest: rest)
            guard unsafe (100...199).contains(head.status) && !rest.isEmpty else { return }
        }
    }

    func receive(_ head: ResponseHead, _ headBytes: UnsafeRawBufferPointer, rest: UnsafeRawBufferPointer) {
        let response = unsafe ReceivedResponse(head, bytes: Array(headBytes))
        if head.status == 101 { return unsafe switchProtocols(response, rest: rest) }
        if head.status < 200 { return receiveInterim(response) }
        do throws(FramingError) {
            length = unsafe try responseBodyLength(
                head, to: request.method, bytes: headBytes.bindMemory(to: UInt8.self).span)
        } catch {
            return receivedNonsense(error)
        }
        state = .streaming
        taken = 0
        worker.loop.timers.schedule(self, after: snapshot.configuration.timeouts.idle)
        decoder = nil
        if case .chunked = length { decoder = ChunkedDecoder(limits: snapshot.limits) }
        if case .length(let count) = length { remaining = count }
        persists =
            Framing.persists(minorVersion: head.minorVersion, response.options) && !bindsConnection
            && !(response.fields.contains(.wwwAuthenticate)
                && response.fields.all(.wwwAuthenticate).contains(where: Fetch.isBinding))
        keepAlive = snapshot.configuration.timeouts.originKeepAlive
        // A second less, for the way.
        if let announced = keepAliveTimeout(response.fields) {
            keepAlive = min(keepAlive, .seconds(max(0, announced.count - 1)))
        }
        owed = nil
        switch length == .none ? .none : promisedPart(status: response.status, fields: response.fields) {
        case .none: break
        case .bytes(let count): owed = count
        // Where a part was asked for in place of the client's request, it does not answer that question: `answerForPart`.
        case .contradictory: if part == nil { return failBeforeHead(.responseInvalid) }
        }
        if isResuming {
            switch answerForPart(response) {
            case .goesOn: break
            case .changed: return giveUp(keepsPart: false)
            // An origin that is overloaded or just starting may do better in a moment.
            case .refused: return response.status >= 500 ? breakOff() : giveUp()
            }
        } else {
            self.response = response
            total = if case .length(let count) = length { count } else { nil }
            if part != nil { decidePart(response) } else { unsafe decide(response, rest) }
        }
        guard state == .streaming else { return }
        unsafe consume(UnsafeRawBufferPointer(rebasing: rest[taken...]))
        endOfTurn()
    }

    func receivedNonsense(_ violation: FramingError) {
        worker.counters.count(violation)
        exchange?.note(violation: violation)
        failBeforeHead(.responseInvalid)
    }

    func receiveInterim(_ response: ReceivedResponse) {
        interimResponses += 1
        guard interimResponses <= snapshot.limits.interimResponsesMax else { return failBeforeHead(.responseInvalid) }
        worker.loop.timers.schedule(self, after: snapshot.configuration.timeouts.firstByte)
        exchange?.relayInterim(response)
    }

    // MARK: ends

    func complete(leftover: Int) {
        if let owed, owed > 0 {
            // Where the end of the connection ends the body, it may just have broken off.
            if case .untilClose = length { return breakOff() }
            return giveUp(keepsPart: false)
        }
        // Less than was announced: the part that came was one of several.
        if let total, received < total, restAsked != nil { return breakOff() }
        let trailers = decoder?.trailers
        let connection = finish()
        if let connection {
            if persists && leftover == 0 && requestIsSent && connection.unsentBytes == 0 {
                worker.origins.release(connection, keepAlive: keepAlive)
            } else {
                worker.origins.discard(connection)
            }
        }
        switch sink {
        case .relay:
            exchange?.relayEnd(trailers: trailers)
        case .store(let record):
            completeStored(record, trailers)
        case .fill(let fill, let record):
            completePart(fill, of: record)
        case .discard, .undecided:
            break
        }
        exchange = nil
    }

    func completeStored(_ record: StoredResponse, _ trailers: Fields?) {
        record.trailers?.set(ForwardedHead.trailers(trailers))
        guard record.body.state == .complete || record.body.finish() else { return dropStored(record) }
        // What outgrew the store went to those who read it, and is gone.
        guard !record.body.isWindowed else {
            exchange?.bodyAdvanced()
            return
        }
        worker.counters.add(.stored)
        var kept = record
        if !record.headHasLength {
            // Now that the length is known, hits are served with it and by the short way.
            let renewed = record.renewed(cached: record.cached, fields: record.fields)
            if request.tier.replace(record, with: renewed) { kept = renewed }
        }
        persist(kept)
        exchange?.bodyAdvanced()
    }

    /// What is whole goes to the disk, at once or when it is asked for again.
    func persist(_ record: StoredResponse) {
        guard record.storage != .session, request.tier.disk != nil else { return }
        switch request.treatment(of: record, by: snapshot).admission {
        case .all: request.tier.persist(record)
        case .secondHit: break
        }
    }

    func dropStored(_ record: StoredResponse) {
        record.body.fail()
        request.tier.remove(record)
        worker.counters.add(.storingFailed)
        exchange?.bodyAdvanced()
    }

    /// The origin closed: the end of a body that lasts until then, a truncation for every other (RFC 9112 §8).
    func bodyClosed() {
        guard case .untilClose = length else { return breakOff() }
        persists = false
        complete(leftover: 0)
        endOfTurn()
    }

    /// A pooled connection that dies before it answers was probably closed while idle: the request goes out again
    /// (RFC 9112 §9.3.1).
    func connectionDied() {
        guard let connection, state == .awaitingHead else { return }
        self.connection = nil
        let mayRetry =
            connection.isReused && request.isReplayable && inbound.isEmpty && interimResponses == 0
            && retries < snapshot.limits.deadConnectionRetriesMax
        worker.origins.discard(connection)
        guard mayRetry else {
            return failBeforeHead(inbound.isEmpty ? .connectionTerminated : .responseIncomplete)
        }
        retries += 1
        worker.counters.add(.originRetries)
        state = .acquiring
        worker.origins.acquire(for: self)
    }

    func failBeforeHead(_ refusal: Refusal) {
        if isResuming { return breakOff() }
        if let connection = finish() { worker.origins.discard(connection) }
        if let hole, exchange?.isAnswered != false {
            hole.fill.abandon()
            exchange?.partFailed()
            exchange = nil
            return
        }
        switch transaction.on(.originFailed(refusal, staleMayServe: staleMayServe)) {
        case .serveStale: serveStale(status: 0)
        default:
            transfer?.resolve(refusal.isOfOrigin ? .failed(code: Int32(refusal.rawValue)) : .notShared)
            exchange?.refuse(refusal)
        }
        exchange = nil
    }

    func abort() {
        guard state != .finished else { return }
        if let connection = finish() { worker.origins.discard(connection) }
        transfer?.resolve(.notShared)
        exchange = nil
    }

    /// Ends the fetch.
    /// - Returns: the connection it used, which the caller gives back or closes.
    func finish() -> OriginConnection? {
        if state == .acquiring { leaveQueue() }
        state = .finished
        worker.loop.timers.cancel(self)
        if let id { _ = worker.fetches.remove(id) }
        id = nil
        defer { connection = nil }
        return connection
    }

    /// No connection is wanted any more.
    func leaveQueue() {
        worker.origins.forget(self)
        if let dial {
            dial.cancel()
            self.dial = nil
            worker.origins.discountOpen(request.originKey)
        }
        handshake?.fetch = nil
        handshake = nil
    }

    override func timerFired() {
        if case .streaming = state, isPaused {
            return worker.loop.timers.schedule(self, after: snapshot.configuration.timeouts.idle)
        }
        if state == .pausing { return askAgain() }
        worker.counters.add(.timeouts)
        switch state {
        case .acquiring: failBeforeHead(.connectionTimeout)
        case .awaitingHead: failBeforeHead(.responseTimeout)
        case .streaming: breakOff()
        case .pausing, .finished: break
        }
    }

}
