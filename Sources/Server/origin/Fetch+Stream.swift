import Access
import Caching
import EventLoop
import Forwarding
import Framing
import Glibc
import Message
import Routing
import Origins
import Storage
import Transaction

/// The stream to the origin: requests one, sends the request on it, and takes the response from it.
///
/// The pools call `opened` and `openingFailed`, and the conversation tells of the rest. Each call may end the fetch, and with it the loan of the
/// stream: code that goes on after a call that can do so checks the link and the machine's phase.
extension Fetch {
    /// Sends the request's head with the conditions that the machine sets, then lets the client's body follow.
    func send() {
        if way.isWithNode, let asked = quest?.asked, case .lent(let stream) = link {
            return sendToPeer(asked, on: stream)
        }
        var mayLogIn = credentialUse != nil
        if snapshot.routesHaveCredentials, case .lent(let stream) = link, let proxy = forwardingProxy(of: stream) {
            guard beginProxyLogIn(at: proxy) else { return }
            mayLogIn = true
        }
        if mayLogIn, !isLoggedIn() { return }
        sendRequest()
    }

    /// Sends the request on a connection where it has what it needs.
    func sendRequest() {
        worker.counters.add(.originRequests)
        expectation = .none
        guard sendHead(.own) else { return }
        // Last: the exchange may send its whole body within this call, which needs `outgoingBody` and the time limit.
        if request.hasBody {
            if holdsBody { return wait(Fetch.continueTimeout) }
            sendBodyBehindHead()
        }
    }

    /// What follows the head of a request.
    enum Content {
        /// That of the request.
        case own
        /// None, because the head is a probe (`TokenCarrier.probe`).
        case probe
    }

    /// Sends the head. Returns false if the connection failed: the machine has been told.
    func sendHead(_ content: Content) -> Bool {
        guard case .lent(let stream) = link else { preconditionFailure("a request goes out on a stream") }
        // What an earlier connection left behind belongs to another message.
        hasMalformedBody = false
        var outgoing = OutgoingRequest(
            request, conditions: retrieval.conditions, instance: worker.shared.instance)
        if terms.isHTTP10 {
            outgoing.useHTTP10()
        } else if !terms.mayPersist {
            outgoing.closeAfterwards()
        }
        let cookieCount = request.change(
            &outgoing, by: terms.fields, hasConditions: retrieval.conditions != nil, asksForPart: hole != nil,
            now: worker.wallTime)
        if cookieCount > 0, let cookies = request.cookies {
            worker.debug(.requests, request.id, "\(subject): \(cookieCount) cookies of the jar \(cookies.use.jar)")
        }
        encoder = nil
        if terms.encodesRequests, mayEncodeBody {
            outgoing.encodeContent("gzip")
            encoder = ContentEncoder(isPrompt: request.isLengthUnknown)
            worker.counters.add(.requestsEncoded)
        }
        if asksPastCaches {
            outgoing.set(.cacheControl, Array("no-cache".utf8))
            outgoing.set(.pragma, Array("no-cache".utf8))
        }
        if credentialUse != nil { addCredentials(to: &outgoing) }
        if substitution != nil { substitute(in: &outgoing) }
        switch content {
        case .own:
            if let keptBody, keptBody.isWhole {
                outgoing.announce(
                    contentLength: keptBody.content.count, inChunks: encoder != nil || keptBody.trailers != nil)
            }
        case .probe: outgoing.becomeProbe()
        }
        if let proxy = forwardingProxy(of: stream) {
            address(&outgoing, to: proxy)
        }
        if case .failed = send(outgoing, on: stream, content) {
            closedBeforeHead(headBegan: false)
            return false
        }
        let isConditional = retrieval.conditions?.isEmpty == false
        worker.debug(.requests, request.id, "\(subject): sent\(isConditional ? ", with conditions" : "")")
        wait(terms.firstByte)
        return true
    }

    /// The next proxy that reads this request itself. Nil if there is none, or if it has opened a tunnel.
    func forwardingProxy(of stream: OriginStream) -> NextProxy? {
        guard case .proxy(let proxy) = stream.route, request.origin.scheme == .http, !proxy.tunnelsEverything else {
            return nil
        }
        return proxy
    }

    /// Writes a head into the worker's output buffer, or into memory of its own if it is longer, and sends it.
    func send(_ outgoing: borrowing OutgoingRequest, on stream: OriginStream, _ content: Content) -> WriteOutcome {
        guard outgoing.lengthMax <= Worker.outBufferBytes else {
            var bytes: [UInt8] = []
            outgoing.serialize(into: &bytes)
            return unsafe bytes.withUnsafeBytes { unsafe ask($0, framing: outgoing.framing, on: stream, content) }
        }
        let buffer = unsafe worker.outBuffer.bindMemory(to: UInt8.self)
        var span = unsafe OutputSpan(buffer: buffer, initializedCount: 0)
        outgoing.serialize(into: &span)
        let count = unsafe span.finalize(for: buffer)
        let bytes = unsafe UnsafeRawBufferPointer(rebasing: worker.outBuffer[..<count])
        return unsafe ask(bytes, framing: outgoing.framing, on: stream, content)
    }

    private func ask(
        _ head: UnsafeRawBufferPointer, framing: BodyLength, on stream: OriginStream, _ content: Content
    ) -> WriteOutcome {
        let isOwn = content == .own
        return unsafe stream.conversation.ask(
            head, framing: framing, hasContent: isOwn && request.hasBody, method: isOwn ? request.method : .head)
    }

    // MARK: the request's body

    /// Sends a piece of the request's body. Returns false if the client is to be paused until `Exchange.mayUploadMore`.
    func sendBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if let keptBody { return unsafe keep(bytes, in: keptBody) }
        if substitution != nil {
            guard unsafe examineBody(bytes) else { return false }
        }
        return unsafe sendContent(bytes)
    }

    func sendContent(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard case .lent(let stream) = link else { return true }
        sentBytes += UInt64(bytes.count)
        if let encoder {
            sendEncoded(unsafe encoder.encode(bytes), on: stream)
        } else {
            unsafe stream.conversation.send(content: bytes)
        }
        wait(terms.firstByte)
        return stream.conversation.unsentBytes < snapshot.limits.relayBufferBytesMax
    }

    private func sendEncoded(_ bytes: [UInt8], on stream: OriginStream) {
        guard !bytes.isEmpty else { return }
        unsafe bytes.withUnsafeBytes { unsafe stream.conversation.send(content: $0) }
    }

    /// What Larder itself proves covers the request as it is.
    private var mayEncodeBody: Bool {
        guard request.hasBody, !terms.isHTTP10 else { return false }
        if keptBody?.isCovered == true { return false }
        if case .sigv4? = request.credential?.rule.means { return false }
        return mayEncodeContent(of: request, request.cache.directives)
    }

    /// Ends the request's body.
    func endBody(trailers: Fields?) {
        if let keptBody { return endKept(keptBody, trailers: trailers) }
        if bodyIsRefused { return }
        endContent(trailers: trailers)
    }

    func endContent(trailers: Fields?) {
        guard case .lent(let stream) = link else { return }
        if let encoder { sendEncoded(encoder.finish(), on: stream) }
        stream.conversation.endRequest(trailers: trailers, without: ownFieldNames)
    }

    /// The fields that are decided about in the head: what rules set and remove there, and where a credential may stand. In lower case.
    private var ownFieldNames: Set<String> {
        let ofRule = terms.fields.map { String(decoding: $0.spelling.map(asciiLowercased), as: UTF8.self) }
        return snapshot.credentials.fieldNames(forHostOf: request.access).union(ofRule)
    }

    func drained() { notify { $0.mayUploadMore() } }

    // MARK: heads

    func headBegan() {
        // The first byte has come. The rest of the head has a limit of its own, which its bytes do not move.
        if isIn(.asked), !holdsBody, !way.awaitsNode { wait(terms.idle) }
    }

    func receivedUnasked() {
        if legs != nil, logInIsDisturbed() { return }
        // Nothing has been asked, so this answers nothing.
        if isIn(.asked) { feed(.closed(headBegan: false)) }
    }

    /// The connection ended or failed before a final head.
    func closedBeforeHead(headBegan: Bool) {
        if legs != nil, logInBroke() { return }
        if way.awaitsNode, case .lent(let stream) = link {
            return peerEnded(isReused: stream.isReused && !headBegan)
        }
        guard !headBegan, case .lent(let stream) = link, !stream.isReused else {
            return feed(.closed(headBegan: headBegan))
        }
        let conversation = stream.conversation
        if conversation.isCertificateRefused { return feed(.notAnswered(.clientCertificateRefused)) }
        guard conversation.isAskedForCertificate else { return feed(.closed(headBegan: false)) }
        // With TLS 1.3 the handshake has ended for the client before the server judges its certificate. The alert may be lost behind a reset.
        worker.noteCertificateRefusal(by: request.host)
        feed(.notAnswered(.clientCertificateRequired))
    }

    func violated(_ error: FramingError) {
        if way.awaitsNode { return peerFailed(.broken) }
        worker.counters.count(error)
        notify { $0.note(violation: error) }
        guard isIn(.receiving) else { return feed(.invalidHead) }
        worker.debug(.transfers, request.id, "\(subject): the body is malformed: \(error.reason)")
        hasMalformedBody = true
        brokeOff()
    }

    private func response(_ head: ArrivedHead) -> ReceivedResponse {
        let bytes = unsafe Array(head.bytes)
        return ReceivedResponse(
            status: head.status, minorVersion: head.minorVersion, reasonRange: head.reasonRange, head.fields,
            bytes: substitution == nil ? bytes : maskedHead(bytes), scheme: request.head.target.scheme,
            isFromNode: way.awaitsNode)
    }

    func received(interim head: ArrivedHead) {
        var response = response(head)
        if way.awaitsNode {
            switch takeFromPeer(response) {
            case .response(let cleaned): response = cleaned
            case .working: return wait(terms.firstByte)
            case .none(let result): return peerFailed(result)
            }
        }
        if let cookies = request.cookies { response = takeCookies(cookies, from: response) }
        if response.status == 100, holdsBody {
            releaseBody()
            // Larder asked for it, not the client (RFC 9110 §15.2).
            if !request.fields.contains(.expect) { return }
        }
        // A body that waits for a 100 does not wait longer because of another interim response.
        if response.status != 101, !holdsBody { wait(terms.firstByte) }
        feed(response.status == 101 ? .switched : .interim, Arrived(response, head))
    }

    func received(final head: ArrivedHead, of conversation: HTTP1Conversation) -> ContentUse {
        var response = response(head)
        conversation.keep(for: idleTime(after: response))
        if quest != nil {
            if way.awaitsNode {
                switch takeFromPeer(response) {
                case .response(let cleaned): response = cleaned
                case .working: preconditionFailure("a node says with an interim head that it is working")
                case .none(let result):
                    conversation.skipArrivedContent()
                    peerFailed(result)
                    return .leave
                }
            } else {
                approach(.originAnswered)
            }
        }
        if let legs {
            if let use = takeForLogIn(response, head) { return use }
            if legs.use === credentialUse, response.status != 401 { response = response.withoutLogIn }
        }
        if let cookies = request.cookies { response = takeCookies(cookies, from: response) }
        if response.status == 401, request.credential == nil, terms.mayPersist, offersBinding(response) {
            response = response.supportingSessionAuthentication
        }
        if let event = judge(response, head) {
            conversation.skipArrivedContent()
            feed(event)
            return .leave
        }
        return receive(Arrived(response, head))
    }

    /// Returns the event to report in place of the head. Nil if the head is what the client gets.
    private func judge(_ response: ReceivedResponse, _ head: ArrivedHead) -> Retrieval.Event? {
        if response.status == 417, let event = judgeExpectation() { return event }
        if response.status == 407 {
            // A client would answer with what it proves itself with to this proxy (RFC 9110 §15.5.8).
            guard case .lent(let stream) = link, let proxy = forwardingProxy(of: stream) else {
                return .notAnswered(.originAsksForProxyLogIn)
            }
            return judgeProxyLogIn(by: response, of: proxy)
        }
        if snapshot.routesHaveCredentials { noteProxyAcceptance(response) }
        if credentialUse != nil, let event = judgeCredentials(by: response) { return event }
        guard substitution == nil || request.method == .head || !hidesSecret(response, head.missing) else {
            return .notAnswered(.credentialHidden)
        }
        return nil
    }

    /// Takes the head of the answer.
    private func receive(_ arrived: Arrived) -> ContentUse {
        let response = arrived.response
        // Nothing is sent again.
        if keptBody != nil { keptBody = nil }
        worker.debug(.requests, request.id, "\(subject): answered with \(response.status)")
        noteAccess(response)
        let now = worker.wallTime
        let isRange = response.status == 206 && request.cache.hasRange
        var handling = request.handling(of: response.fields, by: snapshot)
        if OriginPauses.concerns(status: response.status) || handling.failureStatuses.contains(status: response.status)
        {
            notePause(response, now)
        }
        // What takes the place of a new secret is for one client.
        if substitution != nil, renewsSecrets(response) { handling.use.insert(.noWrite) }
        let judged = Retrieval.Head(
            status: response.status, fields: response.fields, endToEnd: isRange ? endToEndFields(response, now) : nil,
            length: arrived.missing, handling: handling,
            particulars: snapshot.particulars(of: handling), isStale: quest?.answer == .stale, receivedAt: now)
        let action = retrieval.on(head: judged, staleMayServe: staleMayServe)
        if case .finish(.failed) = action, retrieval.invalidates(refusing: judged) {
            invalidate(response.fields, status: response.status)
        }
        perform(action, arrived)
        // The action may have ended the fetch, asked for another connection, or closed the client's connection.
        guard isIn(.receiving) else { return .leave }
        precondition(holdsStream, "a body is read from the stream on which its head came")
        if substitution != nil { maskBody(of: response, arrived.missing) }
        return .take
    }

    /// The origin asks not to be asked for a while (RFC 9110 §10.2.3).
    private func notePause(_ response: ReceivedResponse, _ now: WallTime) {
        guard let value = response.fields.first(.retryAfter), let pause = parseRetryAfter(value, now: now) else {
            return
        }
        worker.debug(.requests, request.id, "\(request.origin) wants no requests for \(pause.components.seconds) s")
        let time = worker.loop.now.sinceStart
        worker.shared.originPauses.withLock {
            $0.pause(request.origin.endpoint, for: pause, status: response.status, now: time)
        }
    }

    /// Whether the response asks for a log-in that authenticates the connection.
    private func offersBinding(_ response: ReceivedResponse) -> Bool {
        response.fields.contains(.wwwAuthenticate)
            && response.fields.all(.wwwAuthenticate).contains(where: OwnedRequest.isBinding)
    }

    /// For how long the connection may be idle behind the response. Nil if it carries no other request.
    private func idleTime(after response: ReceivedResponse) -> Duration? {
        guard Framing.persists(minorVersion: response.minorVersion, response.options), terms.mayPersist,
            boundIdentity != nil || !(request.bindsConnection || offersBinding(response))
        else { return nil }
        // One second less: a request that is sent just before the limit is still on its way when the origin closes.
        guard let announced = keepAliveTimeout(response.fields) else { return terms.keptFor }
        return min(terms.keptFor, .seconds(max(0, announced.count - 1)))
    }

    // MARK: the body

    func allowance(for count: Int) -> Int { brake.map { min(count, $0.room()) } ?? count }

    func hasRead(_ count: Int) {
        brake?.note(count)
        quest?.received(count)
    }

    func brokeOff() {
        quest?.brokeOff()
        feed(.brokeOff)
    }

    func ended(byClosing: Bool) { feed(.ended(byClosing: byClosing)) }

    /// The rate allows to go on.
    func released() {
        guard case .lent(let stream) = link, !isPaused else { return }
        wait(isIn(.asked) ? limitForHead : terms.idle)
        stream.conversation.resume()
    }

    /// Room in the sink. Empty if it has no pages of its own, or no room, and if the bytes have to be looked at.
    func room(forContent limit: UInt64) -> UnsafeMutableRawBufferPointer {
        let limit = Int(clamping: min(limit, retrieval.roomLeft))
        guard limit > 0, filters == nil else {
            return unsafe UnsafeMutableRawBufferPointer(start: nil, count: 0)
        }
        let hint = min(Worker.readBufferBytes, limit)
        let page =
            switch sink {
            case .store(let record): unsafe record.body.writable(hint)
            case .fill(let fill, _): unsafe fill.writable(hint)
            case .none, .pass, .discard: unsafe UnsafeMutableRawBufferPointer?.none
            }
        guard let page = unsafe page else { return unsafe UnsafeMutableRawBufferPointer(start: nil, count: 0) }
        return unsafe UnsafeMutableRawBufferPointer(rebasing: page.prefix(limit))
    }

    func filled(_ count: Int) {
        // The bytes are in the page, but no reader sees them before `commit`. The machine counts them first, so that nobody is sent bytes
        // beyond the announced end.
        guard case .deliver = retrieval.on(.received(count), now: worker.wallTime) else {
            preconditionFailure("the room was no larger than what may come")
        }
        switch sink {
        case .store(let record): record.body.commit(count)
        case .fill(let fill, _): fill.commit(count)
        case .none, .pass, .discard: preconditionFailure("this sink has no pages")
        }
    }

    /// Passes content to the sink, once the machine has counted it.
    func received(content bytes: UnsafeRawBufferPointer, isAll: Bool) {
        let action = retrieval.on(.received(bytes.count), now: worker.wallTime)
        guard case .deliver = action else { return perform(action) }
        guard let filters else { return unsafe fillSink(bytes, isAll: isAll) }
        let mayGoOn = unsafe filters.take(bytes) { piece in
            // The piece before may have ended the fetch: its client failed, or the store has no room.
            guard isIn(.receiving) else { return false }
            unsafe fillSink(piece, isAll: false)
            return true
        }
        if !mayGoOn, isIn(.receiving) { brokeOff() }
    }

    func fillSink(_ bytes: UnsafeRawBufferPointer, isAll: Bool) {
        switch sink {
        case .pass(let body, _): unsafe pass(bytes, through: body, isAll: isAll)
        case .store(let record):
            switch unsafe record.body.append(bytes) {
            case .appended: break
            case .full, .tooLarge: unsafe outgrow(record, bytes)
            }
        case .fill(let fill, _):
            switch unsafe fill.append(bytes) {
            case .appended: break
            case .full, .tooLarge: feed(.sinkFull)
            }
        case .discard: break
        case .none: preconditionFailure("a body has a sink")
        }
    }

    private func pass(_ bytes: UnsafeRawBufferPointer, through body: Body, isAll: Bool) {
        // The client is sent the bytes straight from the read buffer, and the window copies those that the client's socket does not
        // accept. If more pieces follow in this read, the window gathers them first. The client may fail while it is written to,
        // and that ends this fetch: hence the second condition below.
        let result =
            unsafe isAll ? body.append(lending: bytes) { worker.readers.flush() } : body.append(bytes)
        precondition(
            isAppended(result) || !isIn(.receiving), "a window has room for what the machine lets through")
    }

    private func isAppended(_ result: Body.AppendResult) -> Bool { if case .appended = result { true } else { false } }

    /// Lets the readers on this worker send, and pauses the origin if one of them is too far behind.
    ///
    /// The readers send in here, and a reader that fails may end this fetch. So each step after the flush asks for the phase again.
    func endOfRead() {
        // Until here the time limit for the head applies. Most short bodies arrive together with their head.
        if isIn(.receiving) { wait(terms.idle) }
        worker.readers.flush()
        guard isIn(.receiving) else { return }
        switch sink {
        case .pass(let body, _): holdBack(body)
        case .store(let record):
            if record.body.isLeftByDisk { passOn(record) }
            if isIn(.receiving), isUnneeded(record) { return feed(.cancelled) }
            holdBack(record.body)
            holdBackForDisk(record)
        case .fill(let fill, let record):
            if fill.body.isLeftByDisk { return streamThroughMemory(fill) }
            holdBack(fill.body)
            holdBackForDisk(record)
        case .none, .discard: break
        }
    }

    // MARK: back-pressure

    /// Pauses the origin until the body's readers have caught up. The reader that makes room may be on another worker, so the wake
    /// finds this fetch by its number.
    private func holdBack(_ body: Body) {
        guard isIn(.receiving), body.writerShouldPause, let id else { return }
        // The wake may be called at once, and by another thread. It posts a job, which finds a fetch that is paused.
        pause()
        body.awaitRoom(worker.wake { $0.fetches[id]?.resume() })
    }

    /// Pauses the origin while the disk has more to write than it should, for a bounded time: what is called stored gets there.
    private func holdBackForDisk(_ record: StoredResponse) {
        guard request.tier.writersShouldPause, isIn(.receiving), !isPaused, waitsForDisk(record), let id,
            let limit = diskWait.begin(worker.loop.now)
        else { return }
        pause()
        wait(limit)
        request.tier.whenCaughtUp(worker.wake { $0.fetches[id]?.resume() })
    }

    /// The disk stopped accepting blocks. Stream through memory: free what the client has read; pause the origin while it is
    /// behind.
    private func streamThroughMemory(_ fill: Fill) {
        guard isIn(.receiving) else { return }
        guard let client, let taken = worker.exchange(at: client)?.offsetTaken(of: fill.body) else {
            return feed(.sinkFull)
        }
        fill.discard(before: taken)
        if fill.position - taken > Fetch.aheadOfClientBytesMax { pause() }
    }

    /// How many bytes the origin may be ahead of the client in `streamThroughMemory`.
    private static let aheadOfClientBytesMax = 1 << 20

    /// The client's socket accepted some bytes of the body.
    func clientAcceptedBytes() {
        guard isPaused, let id, case .fill(let fill, _) = sink, fill.body.isLeftByDisk else { return }
        guard let client, let taken = worker.exchange(at: client)?.offsetTaken(of: fill.body),
            fill.position - taken <= Fetch.aheadOfClientBytesMax / 2
        else { return }
        // Resume from the inbox: this is called while the client's connection is writing.
        worker.wake { $0.fetches[id]?.resume() }()
    }

    private func pause() {
        guard !isPaused, case .lent(let stream) = link else { return }
        isPaused = true
        stream.conversation.pause()
    }

    func resume() {
        guard isPaused, isIn(.receiving), case .lent(let stream) = link else { return }
        isPaused = false
        if diskWait.end(worker.loop.now) { wait(terms.idle) }
        guard brake?.isHolding != true else { return }
        stream.conversation.resume()
    }

    var holdsStream: Bool { if case .lent = link { true } else { false } }

    // MARK: giving it back

    /// Returns the stream to its pool. The connection is reused only if both messages are complete and both sides agreed to it.
    func releaseStream(isComplete: Bool) {
        // Detached first: the pool may lend the connection to another fetch within `finish`, and this fetch must not touch it then.
        let held = link
        link = .none
        isPaused = false
        switch held {
        case .none: break
        case .waiting(let streamRequest): streamRequest.cancel()
        case .lent(let stream):
            let mayKeep = isComplete && (legs == nil || stream.logIn?.isOver != false)
            stream.finish(cutsRequest ? .reset : mayKeep ? .keep : .close)
        }
    }
}
