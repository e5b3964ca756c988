import Access
import Caching
import EventLoop
import Framing
import Glibc
import Message
import Storage
import Transaction

/// One request to an origin and its response: what happens between a decision to ask and the last byte.
///
/// ```
/// acquiring ─connection─▶ awaitingHead ─head─▶ streaming ─last byte─▶ finished
///     ▲                        │ dead pooled connection, replayable request
///     └────────────────────────┘
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
    private(set) var exchange: Exchange?
    /// The transfer that others follow; nil where this fetch does not lead.
    private let transfer: Transfer?
    private var transaction: Transaction
    private var plan: Transaction.Fetch
    /// What is stored for the request: to be validated, and to fall back on.
    private let stored: StoredResponse?

    private enum State { case acquiring, awaitingHead, streaming, finished }
    private enum Sink {
        case undecided, relay, discard
        case store(StoredResponse)
    }
    private var state: State = .acquiring
    private var sink: Sink = .undecided
    private var connection: OriginConnection?
    private var retries = 0
    private var inbound: [UInt8] = []
    private var progress = HeadProgress()
    private var interimResponses = 0
    private var length: BodyLength = .none
    private var remaining: UInt64 = 0
    private var decoder: ChunkedDecoder?
    private var persists = false
    private var keepAlive: Duration = .zero
    private var requestIsSent = false
    private var isPaused = false
    private let requestTime: WallTime
    private var startedAt = MonotonicTime(nanoseconds: 0)
    private var received: UInt64 = 0

    init(
        worker: Worker, snapshot: Snapshot, request: OwnedRequest, exchange: Exchange?, transaction: Transaction,
        plan: Transaction.Fetch, stored: StoredResponse?, transfer: Transfer?
    ) {
        self.worker = worker
        self.snapshot = snapshot
        self.request = request
        self.exchange = exchange
        self.transaction = transaction
        self.plan = plan
        self.stored = stored
        self.transfer = transfer
        requestTime = worker.wallTime
    }

    func start() {
        startedAt = worker.loop.now
        worker.fetches[ObjectIdentifier(self)] = self
        worker.origins.acquire(for: self)
    }

    /// A pooled connection may be dead without our knowing; only what can be sent again goes out on one.
    var mayUsePooledConnection: Bool {
        request.isReplayable && retries == 0 && !transaction.request.isUpgrade && !bindsConnection
    }

    /// The request proves who it is from for its whole connection, against the rules of HTTP (NTLM, Negotiate: RFC 4559
    /// §6): nobody else's request may go out on it.
    private var bindsConnection: Bool { request.fields.all(.authorization).contains(where: Fetch.isBinding) }

    private static func isBinding(_ credentials: ArraySlice<UInt8>) -> Bool {
        ["ntlm", "negotiate", "nego2", "kerberos"].contains { scheme in
            credentials.starts(with: scheme.utf8) { $0 | 0x20 == $1 }
        }
    }

    /// What the admin endpoint tells of it.
    var description: FetchDescription {
        var readers = exchange == nil ? 0 : 1
        if let transfer { readers += transfer.followerCount }
        var result = FetchDescription(
            uri: request.keyBytes, age: worker.loop.now.duration(since: startedAt), received: received, expected: nil,
            readers: readers, isStored: false)
        if case .length(let count) = length, state == .streaming { result.expected = count }
        if case .store(let record) = sink {
            result.isStored = true
            result.received = UInt64(record.body.length)
        }
        return result
    }

    // MARK: the client leaves

    /// The client is gone. The transfer goes on where somebody gains by it, and is cancelled where nobody does.
    func clientLeft() {
        exchange = nil
        switch sink {
        case .store(let record): if isForNobody(record) { abortStored(record) }
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
        let conditions = plan.isConditional ? stored.map { conditionalFields(for: $0.cached) } ?? [] : []
        unsafe worker.scratch.pointee.out.removeAll(keepingCapacity: true)
        unsafe ForwardedHead.appendRequest(
            request, conditions: conditions, instance: worker.shared.instance, to: &worker.scratch.pointee.out)
        let outcome = unsafe worker.scratch.pointee.out.withUnsafeBytes { unsafe connection.send($0) }
        guard outcome != .failed else { return connectionDied() }
        requestIsSent = !request.hasBody
        worker.loop.timers.schedule(self, after: snapshot.configuration.timeouts.firstByte)
        if request.hasBody { exchange?.upload(to: self) }
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
            case .acquiring, .finished: return
            }
        } while connection.mustBeDrained && !isPaused
    }

    /// - Returns: there may be more to read.
    private func readHead(_ connection: OriginConnection) -> Bool {
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

    private func parseHead(_ received: UnsafeRawBufferPointer) {
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

    private func receive(_ head: ResponseHead, _ headBytes: UnsafeRawBufferPointer, rest: UnsafeRawBufferPointer) {
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
        worker.loop.timers.schedule(self, after: snapshot.configuration.timeouts.idle)
        if case .chunked = length { decoder = ChunkedDecoder(limits: snapshot.limits) }
        if case .length(let count) = length { remaining = count }
        persists =
            Framing.persists(minorVersion: head.minorVersion, response.options) && !bindsConnection
            && !response.fields.all(.wwwAuthenticate).contains(where: Fetch.isBinding)
        keepAlive = snapshot.configuration.timeouts.originKeepAlive
        if let announced = Fetch.keepAlive(response.fields) { keepAlive = min(keepAlive, announced) }
        decide(response)
        guard state == .streaming else { return }
        unsafe consume(rest)
        endOfTurn()
    }

    private func receivedNonsense(_ violation: FramingError) {
        worker.counters.count(violation)
        exchange?.note(violation: violation)
        failBeforeHead(.responseInvalid)
    }

    /// `Keep-Alive: timeout=N` is heeded, less a second for the way (a convention since RFC 2068 §19.7.1).
    private static func keepAlive(_ fields: Fields) -> Duration? {
        guard let value = fields.first(.keepAlive) else { return nil }
        var seconds: Int?
        forEachListElement(value) { element in
            guard element.starts(with: "timeout=".utf8) else { return }
            seconds = ForwardedHead.decimal(element.dropFirst(8))
        }
        return seconds.map { .seconds(max(0, $0 - 1)) }
    }

    private func receiveInterim(_ response: ReceivedResponse) {
        interimResponses += 1
        guard interimResponses <= snapshot.limits.interimResponsesMax else { return failBeforeHead(.responseInvalid) }
        worker.loop.timers.schedule(self, after: snapshot.configuration.timeouts.firstByte)
        exchange?.relayInterim(response)
    }

    // MARK: the decision

    private func decide(_ response: ReceivedResponse) {
        let now = worker.wallTime
        if response.status == 304, plan.isConditional, let stored,
            !selects(response.fields, stored.cached, received: now)
        {
            return askForTheWhole(stored)
        }
        let storing = storing(response, now)
        var isStorable = false
        if case .store = storing { isStorable = true }
        let action = transaction.on(
            .originHead(status: response.status, isStorable: isStorable, staleMayServe: staleMayServe))
        switch action {
        case .store:
            guard case .store(let cached) = storing, !store(response, cached, now) else { return }
            relay(response, notStored: nil)
        case .freshen:
            freshen(response, now)
        case .serveStale:
            serveStale(status: response.status)
        case .relay(let invalidates):
            if invalidates { invalidate(response.fields, status: response.status) }
            guard case .doNotStore(let reason) = storing else { return relay(response, notStored: nil) }
            relay(response, notStored: reason)
        case .identify, .decide, .tunnel, .lookUp, .serve, .serveAndRevalidate, .lead, .follow, .fetch, .refuse:
            preconditionFailure("a response can not lead back to \(action)")
        }
    }

    /// The origin confirmed something that is not what is stored: that goes, and the question is put anew.
    private func askForTheWhole(_ stored: StoredResponse) {
        worker.shared.tier.remove(stored)
        plan = transaction.askForTheWhole(plan)
        if let connection { worker.origins.discard(connection) }
        connection = nil
        state = .acquiring
        worker.origins.acquire(for: self)
    }

    /// Responses with fields for one client alone (`private="…"`, `no-cache="…"`) are not stored: those whom the store
    /// serves would miss the fields, the first client among them.
    private func storing(_ response: ReceivedResponse, _ now: WallTime) -> StoringDecision {
        guard request.method == .get, !request.hasBody else { return .doNotStore(.method) }
        let decision = decideStoring(
            of: request.cache, status: response.status, fields: response.fields, policy: snapshot.cachePolicy,
            requestTime: requestTime, responseTime: now)
        guard case .store(let cached) = decision, cached.directives.hasFieldLists else { return decision }
        return .doNotStore(.isPrivate)
    }

    private var staleMayServe: Bool {
        guard let stored else { return false }
        return mayServeStaleOnError(stored.terms, for: request.cache, now: worker.wallTime)
    }

    /// - Returns: false where the store has no room for it; then it is passed on like any other.
    private func store(_ response: ReceivedResponse, _ cached: CachedResponse, _ now: WallTime) -> Bool {
        var expected: Int?
        switch length {
        case .none: expected = 0
        case .length(let count): expected = Int(clamping: count)
        case .chunked, .untilClose, .tunnel: break
        }
        guard let body = worker.shared.tier.makeBody(expectedLength: expected) else {
            worker.counters.add(.storingRefused)
            return false
        }
        let fields = ForwardedHead.responseFields(
            response.fields, response.options, minorVersion: response.minorVersion, now: now)
        let record = StoredResponse(
            key: request.key, keyBytes: request.keyBytes, cached: cached, fields: fields,
            secondaryKey: cached.vary == .none ? nil : SecondaryKey(cached.vary, request: request.fields), body: body,
            contentLength: expected)
        guard worker.shared.tier.insert(record) else {
            worker.counters.add(.storingRefused)
            return false
        }
        sink = .store(record)
        transfer?.resolve(.published(record))
        exchange?.serve(record, as: .miss(plan.reason, status: response.status))
        return true
    }

    private func freshen(_ response: ReceivedResponse, _ now: WallTime) {
        guard let stored else { preconditionFailure("a 304 to a question nobody asked") }
        let update = ForwardedHead.endToEnd(response.fields, response.options)
        let renewedFields = freshened(stored.fields, by: update, received: now)
        let renewed = stored.renewed(
            cached: CachedResponse(
                status: stored.cached.status, fields: renewedFields, requestTime: requestTime, responseTime: now,
                policy: snapshot.cachePolicy),
            fields: renewedFields)
        _ = worker.shared.tier.replace(stored, with: renewed)
        worker.counters.add(.freshened)
        transfer?.resolve(.published(renewed))
        sink = .discard
        exchange?.serve(renewed, as: .revalidated(plan.reason))
        exchange = nil
    }

    private func serveStale(status: UInt16) {
        guard let stored else { preconditionFailure("nothing stale is at hand") }
        transfer?.resolve(.published(stored))
        sink = .discard
        exchange?.serve(stored, as: .staleOnError(plan.reason, status: status))
        exchange = nil
        if length != .none { abort() }
    }

    private func relay(_ response: ReceivedResponse, notStored: NotStoredReason?) {
        transfer?.resolve(.notShared)
        guard let exchange else { return abort() }
        sink = .relay
        exchange.relayHead(response, length: length, reason: plan.reason, notStored: notStored)
    }

    /// RFC 9111 §4.4: a successful unsafe request makes what is stored for its target invalid.
    private func invalidate(_ fields: Fields, status: UInt16) {
        guard let target = TargetURI(request.keyBytes) else { return }
        for uri in invalidatedURIs(target: target, status: status, fields: fields) {
            let bytes = uri.normalised
            let count = worker.shared.invalidate(bytes)
            worker.counters.add(.invalidated, count)
        }
    }

    // MARK: the body

    private func readBody(_ connection: OriginConnection) -> Bool {
        if case .store(let record) = sink, decoder == nil,
            let page = unsafe record.body.writable(Worker.readBufferBytes)
        {
            return unsafe readIntoStore(connection, record.body, page)
        }
        switch unsafe connection.read(into: worker.readBuffer) {
        case .bytes(let count):
            worker.counters.add(.bytesFromOrigins, count)
            worker.loop.timers.schedule(self, after: snapshot.configuration.timeouts.idle)
            unsafe consume(UnsafeRawBufferPointer(rebasing: worker.readBuffer[..<count]))
            endOfTurn()
            return state == .streaming
        case .wouldBlock:
            return false
        case .closed:
            bodyClosed()
            return false
        case .failed:
            failBody()
            return false
        }
    }

    /// Straight into the page: the bytes are not copied again.
    private func readIntoStore(_ connection: OriginConnection, _ body: Body, _ page: UnsafeMutableRawBufferPointer)
        -> Bool
    {
        var room = unsafe page
        if case .length = length, UInt64(page.count) > remaining {
            unsafe room = unsafe UnsafeMutableRawBufferPointer(rebasing: page[..<Int(remaining)])
        }
        switch unsafe connection.read(into: room) {
        case .bytes(let count):
            worker.counters.add(.bytesFromOrigins, count)
            worker.loop.timers.schedule(self, after: snapshot.configuration.timeouts.idle)
            body.commit(count)
            if case .length = length {
                remaining -= UInt64(count)
                if remaining == 0 { complete(leftover: 0) }
            }
            endOfTurn()
            return state == .streaming
        case .wouldBlock:
            return false
        case .closed:
            bodyClosed()
            return false
        case .failed:
            failBody()
            return false
        }
    }

    private func consume(_ bytes: UnsafeRawBufferPointer) {
        switch length {
        case .none, .tunnel:
            complete(leftover: bytes.count)
        case .length:
            let count = Int(min(UInt64(bytes.count), remaining))
            remaining -= UInt64(count)
            if count > 0 { unsafe deliver(UnsafeRawBufferPointer(rebasing: bytes[..<count])) }
            if remaining == 0 && state == .streaming { complete(leftover: bytes.count - count) }
        case .untilClose:
            if unsafe !bytes.isEmpty { unsafe deliver(bytes) }
        case .chunked:
            unsafe consumeChunked(bytes)
        }
    }

    private func consumeChunked(_ bytes: UnsafeRawBufferPointer) {
        var rest = unsafe bytes.bindMemory(to: UInt8.self)
        while state == .streaming {
            do throws(FramingError) {
                switch unsafe try decoder!.step(rest.span) {
                case .needMore:
                    return
                case .data(let consumed, let range):
                    unsafe deliver(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: rest[range])))
                    unsafe rest = unsafe UnsafeBufferPointer(rebasing: rest[consumed...])
                case .end(let consumed):
                    complete(leftover: rest.count - consumed)
                }
            } catch {
                worker.counters.count(error)
                return failBody()
            }
        }
    }

    private func deliver(_ bytes: UnsafeRawBufferPointer) {
        received += UInt64(bytes.count)
        switch sink {
        case .relay:
            unsafe exchange?.relay(bytes)
        case .store(let record):
            switch unsafe record.body.append(bytes) {
            case .appended: break
            case .full, .tooLarge: unsafe outgrow(record, bytes)
            }
        case .discard, .undecided:
            break
        }
    }

    /// The body is larger than the store takes: it leaves the store and streams through a window to those who read it.
    private func outgrow(_ record: StoredResponse, _ bytes: UnsafeRawBufferPointer) {
        worker.counters.add(.storingRefused)
        record.body.abandonStorage(window: snapshot.limits.relayBufferBytesMax)
        worker.shared.tier.remove(record)
        if case .appended = unsafe record.body.append(bytes) { return }
        failBody()
    }

    /// After one read: whoever reads what arrived is told, and a reader that is too slow holds the origin back.
    private func endOfTurn() {
        switch sink {
        case .relay:
            guard let exchange else { return }
            exchange.relayTurnEnded()
            if state == .streaming && exchange.isBehind { pause() }
        case .store(let record):
            exchange?.bodyAdvanced()
            if state == .streaming && isForNobody(record) { return abortStored(record) }
            if state == .streaming && record.body.writerShouldPause {
                pause()
                let inbox = worker.loop.inbox
                let worker = WorkerReference(worker)
                let id = ObjectIdentifier(self)
                record.body.awaitRoom(Wake { inbox.post { worker.value.fetches[id]?.resume() } })
            }
        case .discard, .undecided:
            break
        }
    }

    /// It is no longer stored, and nobody reads it.
    private func isForNobody(_ record: StoredResponse) -> Bool { record.body.isWindowed && !record.body.hasReaders }

    private func abortStored(_ record: StoredResponse) {
        guard state == .streaming else { return }
        let connection = self.connection
        finish()
        if let connection { worker.origins.discard(connection) }
        record.body.fail()
        exchange = nil
    }

    private func pause() {
        guard !isPaused else { return }
        isPaused = true
        connection?.pauseReading()
    }

    func resume() {
        guard isPaused, state == .streaming else { return }
        isPaused = false
        connection?.resumeReading()
        if connection?.mustBeDrained == true { originReadable() }
    }

    // MARK: ends

    private func complete(leftover: Int) {
        let trailers = decoder?.trailers
        let connection = self.connection
        finish()
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
            completeStored(record)
        case .discard, .undecided:
            break
        }
        exchange = nil
    }

    private func completeStored(_ record: StoredResponse) {
        guard record.body.finish() else { return dropStored(record) }
        worker.counters.add(.stored)
        if !record.headHasLength {
            // Now that the length is known, hits are served with it and by the short way.
            _ = worker.shared.tier.replace(record, with: record.renewed(cached: record.cached, fields: record.fields))
        }
        exchange?.bodyAdvanced()
    }

    private func dropStored(_ record: StoredResponse) {
        record.body.fail()
        worker.shared.tier.remove(record)
        worker.counters.add(.storingFailed)
        exchange?.bodyAdvanced()
    }

    /// The origin closed: the end of a body that lasts until then, a truncation for every other (RFC 9112 §8).
    private func bodyClosed() {
        guard case .untilClose = length else { return failBody() }
        persists = false
        complete(leftover: 0)
        endOfTurn()
    }

    private func failBody() {
        guard state == .streaming else { return }
        let connection = self.connection
        finish()
        if let connection { worker.origins.discard(connection) }
        switch sink {
        case .relay: exchange?.relayFailed(.responseIncomplete)
        case .store(let record): dropStored(record)
        case .discard, .undecided: break
        }
        exchange = nil
    }

    /// A pooled connection that dies before it answers was probably closed while idle: the request goes out again
    /// (RFC 9112 §9.3.1).
    private func connectionDied() {
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

    private func failBeforeHead(_ refusal: Refusal) {
        let connection = self.connection
        finish()
        if let connection { worker.origins.discard(connection) }
        switch transaction.on(.originFailed(refusal, staleMayServe: staleMayServe)) {
        case .serveStale: serveStale(status: 0)
        default:
            transfer?.resolve(refusal.isOfOrigin ? .failed(code: Int32(refusal.rawValue)) : .notShared)
            exchange?.refuse(refusal)
        }
        exchange = nil
    }

    private func abort() {
        guard state != .finished else { return }
        let connection = self.connection
        finish()
        transfer?.resolve(.notShared)
        if let connection { worker.origins.discard(connection) }
        exchange = nil
    }

    private func finish() {
        if state == .acquiring {
            worker.origins.forget(self)
            if let dial {
                dial.cancel()
                self.dial = nil
                worker.origins.discountOpen(request.originKey)
            }
            handshake?.fetch = nil
            handshake = nil
        }
        state = .finished
        connection = nil
        worker.loop.timers.cancel(self)
        worker.fetches[ObjectIdentifier(self)] = nil
    }

    override func timerFired() {
        if case .streaming = state, isPaused {
            return worker.loop.timers.schedule(self, after: snapshot.configuration.timeouts.idle)
        }
        worker.counters.add(.timeouts)
        switch state {
        case .acquiring: failBeforeHead(.connectionTimeout)
        case .awaitingHead: failBeforeHead(.responseTimeout)
        case .streaming: failBody()
        case .finished: break
        }
    }

    // MARK: 101

    private func switchProtocols(_ response: ReceivedResponse, rest: UnsafeRawBufferPointer) {
        guard transaction.request.isUpgrade, let exchange, let connection, let fd = connection.surrender() else {
            return failBeforeHead(.responseInvalid)
        }
        finish()
        worker.origins.discard(connection)
        unsafe exchange.switchProtocols(response, origin: fd, early: Array(rest))
        self.exchange = nil
    }
}

/// One fetch as others see it.
package struct FetchDescription: Sendable {
    package var uri: [UInt8]
    package var age: Duration
    /// Body bytes that came so far.
    package var received: UInt64
    /// The length the origin announced; nil while unknown.
    package var expected: UInt64?
    /// Clients that wait for it or read it, as far as this fetch knows them.
    package var readers: Int
    package var isStored: Bool
}
