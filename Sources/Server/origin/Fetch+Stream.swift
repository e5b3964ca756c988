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

/// The stream to the origin: requests one, sends the request on it, and reads the response from it.
///
/// The pools and the stream call `opened`, `openingFailed`, `readable`, `drained` and `writeFailed`. Each may end the fetch, and with
/// it the loan of the stream; loops here check the link and the machine's phase after every call that can do so.
extension Fetch {
    // MARK: opening

    /// Asks the pools for a stream to the origin. `opened` or `openingFailed` follows, at once or later.
    ///
    /// - Parameter mayReuse: a pooled connection will do.
    func acquire(mayReuse: Bool) {
        precondition(isIn(.opening), "a stream is asked for once")
        precondition(hasNoLink, "the stream before has not been ended")
        if quest != nil, acquireFromPeer() { return }
        // Without chunks, only a length can say where the body of a request ends (RFC 1945 §7.2.2).
        if terms.isHTTP10, case .chunked = request.bodyLength { return openingFailed(.lengthRequired, nil) }
        if snapshot.usesPlaceholders || request.credential != nil {
            switch prepareCredentials() {
            case nil: break
            case .undecided: return wait(terms.firstByte)
            case .bodyIsMissing: return receiveBody()
            case .refusal(let refusal): return openingFailed(refusal, nil)
            }
        }
        switch worker.way(for: request, snapshot) {
        case .plan(let plan): acquire(over: plan, mayReuse: mayReuse)
        case .unknown(let choice): waitForRoutes(choice)
        case .refused: openingFailed(.routeUnknown, nil)
        }
    }

    private func acquire(over plan: RoutePlan, mayReuse: Bool) {
        let loan = worker.origins.borrow(
            over: snapshot.hasRoutes ? withoutRefused(plan) : plan, for: request, terms, boundIdentity,
            snapshot: snapshot,
            mayReuse: mayReuseConnection(mayReuse) && terms.mayPersist, owner: self)
        switch loan {
        case .lent(let stream): opened(stream, isReused: true)
        case .waiting(let request):
            link = .waiting(request)
            waitForConnection()
        case .refused(let refusal): openingFailed(refusal.refusal, refusal.denial)
        }
    }

    /// The routes whose proxies have not refused Larder's log-in. All of them if all have: a later attempt begins anew.
    private func withoutRefused(_ plan: RoutePlan) -> RoutePlan {
        if refusedRoutes.isEmpty { return plan }
        if let left = plan.without(refusedRoutes) { return left }
        refusedRoutes = []
        return plan
    }

    /// The connection of a pin is used again for every request of its client, with and without content.
    private func mayReuseConnection(_ mayReuse: Bool) -> Bool {
        mayReuse && (request.boundIdentity != nil || !request.bindsConnection)
    }

    /// Asks a PAC file. The connection is asked for when it has answered.
    private func waitForRoutes(_ choice: ScriptedChoice) {
        routeWait = worker.ask(choice, snapshot, request.id) { [unowned self] plan in
            routeWait = nil
            guard let plan else { return openingFailed(.routeUnknown, nil) }
            turn { acquire(over: plan, mayReuse: retrieval.mayReuseConnection) }
        }
        wait(terms.connect)
    }

    /// This fetch owns the stream from here on. `releaseStream` or `switchProtocols` ends the loan, and nothing else.
    func opened(_ stream: OriginStream, isReused: Bool) {
        precondition(!holdsStream, "a fetch has one stream at a time")
        turn {
            link = .lent(stream)
            feed(.opened(isReused: isReused))
        }
    }

    func openingFailed(_ refusal: Refusal, _ denial: Denial?) {
        precondition(!holdsStream, "a fetch has one stream at a time")
        if quest != nil {
            if peerIsUnreachable(refusal) { return }
            if quest?.standby != nil {
                link = .none
                return turn { returnToStandby() }
            }
        }
        turn {
            // The stream request has ended with this call. It must not be cancelled when the machine's next action releases the stream.
            link = .none
            if let denial { notify { $0.note(denial) } }
            feed(.notOpened(refusal))
        }
    }

    /// Sends the request's head with the conditions that the machine sets, then lets the client's body follow.
    func send() {
        if let quest, case .lent(let stream) = link {
            if quest.isSent {
                quest.isSent = false
                return
            }
            if isAskingPeer, let asked = quest.asked { return sendToPeer(asked, on: stream) }
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
        incoming.head = []
        incoming.progress = HeadProgress()
        incoming.persists = false
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
        if case .failed = send(outgoing, on: stream) {
            headEnded()
            return false
        }
        outgoingBody = OutgoingBody(outgoing.framing)
        let isConditional = retrieval.conditions?.isEmpty == false
        worker.debug(.requests, request.id, "\(subject): sent\(isConditional ? ", with conditions" : "")")
        requestIsSent = !request.hasBody
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
    func send(_ outgoing: borrowing OutgoingRequest, on stream: OriginStream) -> OriginStream.WriteOutcome {
        guard outgoing.lengthMax <= Worker.outBufferBytes else {
            var bytes: [UInt8] = []
            outgoing.serialize(into: &bytes)
            return unsafe bytes.withUnsafeBytes { unsafe stream.send($0) }
        }
        let buffer = unsafe worker.outBuffer.bindMemory(to: UInt8.self)
        var span = unsafe OutputSpan(buffer: buffer, initializedCount: 0)
        outgoing.serialize(into: &span)
        let count = unsafe span.finalize(for: buffer)
        return unsafe stream.send(UnsafeRawBufferPointer(rebasing: worker.outBuffer[..<count]))
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
        precondition(!requestIsSent, "bytes behind a request would be read as the next one")
        sentBytes += UInt64(bytes.count)
        if let encoder {
            sendEncoded(unsafe encoder.encode(bytes), on: stream)
        } else {
            _ = unsafe outgoingBody.append(bytes) { unsafe stream.send($0) }
        }
        wait(terms.firstByte)
        return stream.unsentBytes < snapshot.limits.relayBufferBytesMax
    }

    private func sendEncoded(_ bytes: [UInt8], on stream: OriginStream) {
        guard !bytes.isEmpty else { return }
        _ = unsafe bytes.withUnsafeBytes { unsafe outgoingBody.append($0) { unsafe stream.send($0) } }
    }

    /// What Larder itself proves covers the request as it is.
    private var mayEncodeBody: Bool {
        guard request.hasBody, !terms.isHTTP10 else { return false }
        if keptBody?.isCovered == true { return false }
        if case .sigv4? = request.credential?.rule.means { return false }
        return mayEncodeContent(of: request, request.cache.directives)
    }

    /// Ends the request's body. From here on the connection may be reused after the response; before, an answer that is complete leaves it
    /// in the middle of a request (RFC 9112 §9.3).
    func endBody(trailers: Fields?) {
        if let keptBody { return endKept(keptBody, trailers: trailers) }
        if bodyIsRefused { return }
        endContent(trailers: trailers)
    }

    func endContent(trailers: Fields?) {
        precondition(!requestIsSent, "a request ends once")
        requestIsSent = true
        guard case .lent(let stream) = link else { return }
        if let encoder { sendEncoded(encoder.finish(), on: stream) }
        let last = outgoingBody.end(trailers: trailers, without: trailers == nil ? [] : ownFieldNames)
        if !last.isEmpty { _ = unsafe last.withUnsafeBytes { unsafe stream.send($0) } }
    }

    /// The fields that are decided about in the head: what rules set and remove there, and where a credential may stand. In lower case.
    private var ownFieldNames: Set<String> {
        let ofRule = terms.fields.map { String(decoding: $0.spelling.map(asciiLowercased), as: UTF8.self) }
        return snapshot.credentials.fieldNames(forHostOf: request.access).union(ofRule)
    }

    func drained() { notify { $0.mayUploadMore() } }

    /// Writing failed. The origin may have answered before it closed the connection, so the fetch goes on reading.
    func writeFailed() { incoming.persists = false }

    // MARK: reading

    func readable() {
        turn {
            repeat {
                guard case .lent(let stream) = link else { return }
                if isIn(.asked) {
                    if !readHead(stream) { return }
                } else if isIn(.receiving) {
                    if !readBody(stream) { return }
                } else {
                    return
                }
                // The read may have returned the stream to its pool.
                guard case .lent(let held) = link, held.mustBeDrained else { return }
            } while !isPaused && brake?.isHolding != true
        }
    }

    /// Returns true if there may be more to read.
    ///
    /// The head is parsed where it was read, in the worker's read buffer. Nothing that runs while it is parsed reads from a socket of this
    /// worker, until the final head and what follows it have been used or copied.
    private func readHead(_ stream: OriginStream) -> Bool {
        let room = unsafe roomToRead(stream, worker.readBuffer)
        guard unsafe !room.isEmpty else { return false }
        switch unsafe stream.read(into: room) {
        case .bytes(let count):
            brake?.note(count)
            worker.counters.add(.bytesFromOrigins, count)
            if case .undecided = proxyLogIn {
                // Nothing has been asked, so this answers nothing.
                feed(.closed(headBegan: false))
                return false
            }
            precondition(count <= Worker.readBufferBytes, "more bytes were read than there is room for")
            let received = unsafe UnsafeRawBufferPointer(rebasing: worker.readBuffer[..<count])
            if legs != nil, unsafe takeForLogIn(received) { return true }
            if incoming.head.isEmpty {
                unsafe parseHead(received)
                // The first byte has come. The rest of the head has a limit of its own, which its bytes do not move.
                if isIn(.asked), !incoming.head.isEmpty, !holdsBody, !isAskingPeer { wait(terms.idle) }
            } else {
                unsafe incoming.head.append(contentsOf: received)
                parseKeptHead()
            }
            return true
        case .wouldBlock: return false
        case .closed, .failed:
            headEnded()
            return false
        }
    }

    /// Parses what is kept of a head.
    func parseKeptHead() {
        // Taken out while it is parsed: what is incomplete is appended anew.
        let all = incoming.head
        incoming.head = []
        unsafe all.withUnsafeBytes { unsafe parseHead($0) }
    }

    /// The connection ended or failed before a final head.
    private func headEnded() {
        if legs != nil, logInBroke() { return }
        if isAskingPeer, case .lent(let stream) = link {
            return peerEnded(isReused: stream.isReused && incoming.head.isEmpty)
        }
        guard incoming.head.isEmpty, case .lent(let stream) = link, !stream.isReused else {
            return feed(.closed(headBegan: !incoming.head.isEmpty))
        }
        if stream.isCertificateRefused { return feed(.notAnswered(.clientCertificateRefused)) }
        guard stream.isAskedForCertificate else { return feed(.closed(headBegan: false)) }
        // With TLS 1.3 the handshake has ended for the client before the server judges its certificate. The alert may be lost behind a reset.
        worker.noteCertificateRefusal(by: request.host)
        feed(.notAnswered(.clientCertificateRequired))
    }

    private func parseHead(_ received: UnsafeRawBufferPointer) {
        var rest = unsafe received
        while isIn(.asked) {
            let bytes = unsafe rest.bindMemory(to: UInt8.self)
            do throws(FramingError) {
                let isComplete = unsafe try parseResponseHead(
                    bytes.span, into: &worker.scratch.pointee.responseHead, progress: &incoming.progress,
                    limits: snapshot.limits)
                guard isComplete else {
                    unsafe incoming.head.append(contentsOf: rest)
                    return
                }
            } catch { return headIsInvalid(error) }
            incoming.progress = HeadProgress()
            let byteCount = unsafe worker.scratch.pointee.responseHead.byteCount
            precondition(byteCount > 0 && byteCount <= rest.count, "a head lies within the received bytes")
            let headBytes = unsafe UnsafeRawBufferPointer(rebasing: rest[..<byteCount])
            unsafe rest = unsafe UnsafeRawBufferPointer(rebasing: rest[byteCount...])
            let isInterim = unsafe receive(headBytes, rest: rest)
            guard unsafe isInterim && !rest.isEmpty else { return }
        }
    }

    func headIsInvalid(_ violation: FramingError) {
        if isAskingPeer { return peerFailed(.broken) }
        worker.counters.count(violation)
        notify { $0.note(violation: violation) }
        feed(.invalidHead)
    }

    /// Takes the head that was just parsed into the worker's scratch. Returns true if another head follows it.
    private func receive(_ headBytes: UnsafeRawBufferPointer, rest: UnsafeRawBufferPointer) -> Bool {
        let scratch = unsafe worker.scratch
        var response = unsafe ReceivedResponse(
            status: scratch.pointee.responseHead.status, minorVersion: scratch.pointee.responseHead.minorVersion,
            reasonRange: scratch.pointee.responseHead.reasonRange, scratch.pointee.responseHead.fields,
            bytes: substitution == nil ? Array(headBytes) : maskedHead(Array(headBytes)),
            scheme: request.head.target.scheme, isFromNode: isAskingPeer)
        if quest != nil {
            if isAskingPeer {
                switch takeFromPeer(response) {
                case .response(let cleaned): response = cleaned
                case .working:
                    wait(terms.firstByte)
                    return true
                case .none(let result):
                    unsafe skipAnswer(response, rest)
                    peerFailed(result)
                    return false
                }
            } else if response.status >= 200 {
                dropStandby()
            }
        }
        if let legs, response.status >= 200 {
            if unsafe takeForLogIn(response, headBytes, rest) { return false }
            if legs.use === credentialUse, response.status != 401 { response = response.withoutLogIn }
        }
        if let cookies = request.cookies, response.fields.contains(.setCookie), !cookies.bringsOwn {
            learnCookies(cookies, from: response)
            response = response.withoutCookies
        }
        if response.status == 401, request.credential == nil, terms.mayPersist, offersBinding(response) {
            response = response.supportingSessionAuthentication
        }
        guard response.status < 200 else {
            unsafe receiveFinal(response, rest: rest)
            return false
        }
        if response.status == 100, holdsBody {
            releaseBody()
            // Larder asked for it, not the client (RFC 9110 §15.2).
            if !request.fields.contains(.expect) { return true }
        }
        // A body that waits for a 100 does not wait longer because of another interim response.
        if response.status != 101, !holdsBody { wait(terms.firstByte) }
        unsafe feed(response.status == 101 ? .switched : .interim, Arrived(response, .none, rest))
        return true
    }

    private func receiveFinal(_ response: ReceivedResponse, rest: UnsafeRawBufferPointer) {
        let length: BodyLength
        do throws(FramingError) {
            length = try response.bodyLength(to: request.method)
        } catch { return headIsInvalid(error) }
        // Everything about the message is in place before the machine decides: its actions read the framing, and may end the fetch.
        incoming.body = BodyReader(length, limits: snapshot.limits)
        incoming.takenWithHead = 0
        notePersistence(of: response)
        if response.status == 417, let event = judgeExpectation() {
            unsafe skipBody(rest)
            return feed(event)
        }
        if response.status == 407, case .lent(let stream) = link, let proxy = forwardingProxy(of: stream) {
            unsafe skipBody(rest)
            return feed(judgeProxyLogIn(by: response, of: proxy))
        }
        if response.status == 407 {
            // A client would answer with what it proves itself with to this proxy (RFC 9110 §15.5.8).
            unsafe skipBody(rest)
            return feed(.notAnswered(.originAsksForProxyLogIn))
        }
        if snapshot.routesHaveCredentials { noteProxyAcceptance(response) }
        if credentialUse != nil, let event = judgeCredentials(by: response) {
            unsafe skipBody(rest)
            return feed(event)
        }
        if substitution != nil, hidesSecret(response), request.method != .head {
            return feed(.notAnswered(.credentialHidden))
        }
        // Nothing is sent again.
        if keptBody != nil { keptBody = nil }
        worker.debug(.requests, request.id, "\(subject): answered with \(response.status)")
        let arrived = unsafe Arrived(response, length, rest)
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
            length: incoming.body.missing, handling: handling,
            particulars: snapshot.particulars(of: handling), isStale: quest?.answer == .stale, receivedAt: now)
        let action = retrieval.on(head: judged, staleMayServe: staleMayServe)
        if case .finish(.failed) = action, retrieval.invalidates(refusing: judged) {
            invalidate(response.fields, status: response.status)
        }
        perform(action, arrived)
        // The action may have ended the fetch, asked for another connection, or closed the client's connection.
        guard isIn(.receiving) else { return }
        precondition(holdsStream, "a body is read from the stream on which its head came")
        precondition(
            incoming.takenWithHead >= 0 && incoming.takenWithHead <= rest.count, "a sink took more than was read")
        if substitution != nil { maskBody(of: response) }
        unsafe consume(UnsafeRawBufferPointer(rebasing: rest[incoming.takenWithHead...]))
        // Until here the time limit for the head applies. Most short bodies arrive together with their head.
        if isIn(.receiving) { wait(terms.idle) }
        endOfRead()
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

    /// Reads over an answer that is none. Its connection can be used again if that was all of it.
    private func skipAnswer(_ response: ReceivedResponse, _ rest: UnsafeRawBufferPointer) {
        incoming.persists = false
        guard response.status >= 200, let length = try? response.bodyLength(to: request.method) else { return }
        incoming.body = BodyReader(length, limits: snapshot.limits)
        notePersistence(of: response)
        unsafe skipBody(rest)
    }

    /// Reads over a body that nobody needs, as far as it has come. The connection can be reused if that is all of it.
    private func skipBody(_ bytes: UnsafeRawBufferPointer) {
        let span = unsafe bytes.bindMemory(to: UInt8.self)
        var offset = 0
        while true {
            do throws(FramingError) {
                switch unsafe try incoming.body.next(in: span.span, from: &offset) {
                case .data: break
                case .more: return
                case .end:
                    if offset < bytes.count { incoming.persists = false }
                    return
                }
            } catch {
                worker.counters.count(error)
                incoming.persists = false
                return
            }
        }
    }

    /// Whether the response asks for a log-in that authenticates the connection.
    private func offersBinding(_ response: ReceivedResponse) -> Bool {
        response.fields.contains(.wwwAuthenticate)
            && response.fields.all(.wwwAuthenticate).contains(where: OwnedRequest.isBinding)
    }

    func notePersistence(of response: ReceivedResponse) {
        incoming.persists =
            Framing.persists(minorVersion: response.minorVersion, response.options) && terms.mayPersist
            && (boundIdentity != nil || !(request.bindsConnection || offersBinding(response)))
        incoming.keepAlive = terms.keptFor
        // One second less: a request that is sent just before the limit is still on its way when the origin closes.
        if let announced = keepAliveTimeout(response.fields) {
            incoming.keepAlive = min(incoming.keepAlive, .seconds(max(0, announced.count - 1)))
        }
    }

    // MARK: the body

    private func readBody(_ stream: OriginStream) -> Bool {
        if let page = unsafe writablePage { return unsafe readIntoSink(stream, page) }
        guard let count = unsafe readPiece(stream, into: worker.readBuffer) else { return false }
        unsafe consume(UnsafeRawBufferPointer(rebasing: worker.readBuffer[..<count]))
        endOfRead()
        return isIn(.receiving)
    }

    /// Returns the number of bytes read. Returns nil if there were none; the end of the connection has been reported by then.
    private func readPiece(_ stream: OriginStream, into room: UnsafeMutableRawBufferPointer) -> Int? {
        let room = unsafe roomToRead(stream, room)
        guard unsafe !room.isEmpty else { return nil }
        switch unsafe stream.read(into: room) {
        case .bytes(let count):
            brake?.note(count)
            precondition(count <= room.count, "more bytes were read than there is room for")
            worker.counters.add(.bytesFromOrigins, count)
            quest?.received(count)
            wait(terms.idle)
            return count
        case .wouldBlock: return nil
        case .closed:
            // RFC 9112 §8: a body with a length or in chunks that ends with its connection is incomplete.
            let isComplete = incoming.body.closed() == .complete
            incoming.persists = false
            if isComplete { feed(.ended(byClosing: true)) } else { brokeOff() }
            return nil
        case .failed:
            brokeOff()
            return nil
        }
    }

    /// The body ends before its end, or is none.
    private func brokeOff() {
        quest?.brokeOff()
        feed(.brokeOff)
    }

    /// As much of `buffer` as the rate allows to fill now. If that is nothing, the stream is not read until the brake calls `released`.
    private func roomToRead(
        _ stream: OriginStream, _ buffer: UnsafeMutableRawBufferPointer
    ) -> UnsafeMutableRawBufferPointer {
        guard let brake else { return unsafe buffer }
        let room = brake.room()
        if room == 0 { stream.pause() }
        return unsafe UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(room))
    }

    /// The rate allows to go on.
    func released() {
        guard case .lent(let stream) = link, !isPaused else { return }
        wait(isIn(.asked) ? limitForHead : terms.idle)
        stream.resume()
        if stream.mustBeDrained { readable() }
    }

    /// Room in the sink that the next read may fill directly, no longer than the content that is certain to follow. Returns nil if
    /// framing comes next, if the sink has no pages of its own, or if it has no room.
    private var writablePage: UnsafeMutableRawBufferPointer? {
        let limit = Int(clamping: min(incoming.body.readableDirectly, retrieval.roomLeft))
        guard limit > 0, proof == nil, substitution?.mask == nil else { return nil }
        let hint = min(Worker.readBufferBytes, limit)
        let page =
            switch sink {
            case .store(let record): unsafe record.body.writable(hint)
            case .fill(let fill, _): unsafe fill.writable(hint)
            case .none, .pass, .discard: unsafe UnsafeMutableRawBufferPointer?.none
            }
        return unsafe page.map { unsafe UnsafeMutableRawBufferPointer(rebasing: $0.prefix(limit)) }
    }

    /// Reads into a page of the sink, which saves a copy.
    private func readIntoSink(_ stream: OriginStream, _ page: UnsafeMutableRawBufferPointer) -> Bool {
        guard let count = unsafe readPiece(stream, into: page) else { return false }
        // The bytes are in the page, but no reader sees them before `commit`. The machine counts them first, so that nobody is sent bytes
        // beyond the announced end.
        guard case .deliver = retrieval.on(.received(count), now: worker.wallTime) else {
            preconditionFailure("the room was no larger than what may come")
        }
        incoming.body.passed(count)
        switch sink {
        case .store(let record): record.body.commit(count)
        case .fill(let fill, _): fill.commit(count)
        case .none, .pass, .discard: preconditionFailure("this sink has no pages")
        }
        if incoming.body.isComplete {
            // The room ended with the message. Any byte behind it would be read as the answer to the next request.
            if incoming.persists, unsafe stream.read(into: worker.readBuffer) != .wouldBlock {
                incoming.persists = false
            }
            feed(.ended(byClosing: false))
        }
        endOfRead()
        return isIn(.receiving)
    }

    /// Takes the content out of the received bytes and passes it to the sink.
    private func consume(_ bytes: UnsafeRawBufferPointer) {
        let span = unsafe bytes.bindMemory(to: UInt8.self)
        var offset = 0
        // Each piece may end the fetch: a client fails, or the origin sends more than it announced.
        while isIn(.receiving) {
            do throws(FramingError) {
                switch unsafe try incoming.body.next(in: span.span, from: &offset) {
                case .data(let range):
                    precondition(
                        range.lowerBound >= 0 && range.upperBound <= offset && offset <= bytes.count,
                        "content lies within the received bytes")
                    unsafe deliver(UnsafeRawBufferPointer(rebasing: bytes[range]), isAll: offset == bytes.count)
                case .more: return
                case .end:
                    // Bytes behind the message belong to no request.
                    if offset < bytes.count { incoming.persists = false }
                    feed(.ended(byClosing: false))
                }
            } catch {
                worker.counters.count(error)
                notify { $0.note(violation: error) }
                worker.debug(.transfers, request.id, "\(subject): the body is malformed: \(error.reason)")
                hasMalformedBody = true
                return brokeOff()
            }
        }
    }

    /// Passes content to the sink, once the machine has counted it.
    ///
    /// - Parameter isAll: no more content follows in this read.
    private func deliver(_ bytes: UnsafeRawBufferPointer, isAll: Bool) {
        let action = retrieval.on(.received(bytes.count), now: worker.wallTime)
        guard case .deliver = action else { return perform(action) }
        guard let proof else {
            return unsafe substitution == nil ? fillSink(bytes, isAll: isAll) : fillMasked(bytes, isAll: isAll)
        }
        unsafe proof.take(bytes) { piece, isLast in
            // The piece before may have ended the fetch: its client failed, or the store has no room.
            guard isIn(.receiving) else { return }
            unsafe fillMasked(piece, isAll: isAll && isLast)
        }
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

    /// Ends one read: lets the readers on this worker send, and pauses the origin if one of them is too far behind.
    ///
    /// The readers send in here, and a reader that fails may end this fetch. So each step after the flush asks for the phase again.
    private func endOfRead() {
        if hasMoreToRead { return }
        readsUnsent = 0
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

    /// Whether the next read follows at once: TLS has received more records. What they bring goes out together. Bounded, so that the reader of a fast
    /// origin does not wait for the end of the body.
    private var hasMoreToRead: Bool {
        guard isIn(.receiving), case .lent(let stream) = link, stream.mustBeDrained, brake?.isHolding != true,
            readsUnsent < Fetch.readsUnsentMax
        else { return false }
        readsUnsent += 1
        return true
    }

    private static let readsUnsentMax = 16

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
        stream.pause()
    }

    func resume() {
        guard isPaused, isIn(.receiving), case .lent(let stream) = link else { return }
        isPaused = false
        if diskWait.end(worker.loop.now) { wait(terms.idle) }
        guard brake?.isHolding != true else { return }
        stream.resume()
        if stream.mustBeDrained { readable() }
    }

    private var holdsStream: Bool { if case .lent = link { true } else { false } }

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
            let isReusable =
                isComplete && incoming.persists && requestIsSent && stream.unsentBytes == 0
                && (legs == nil || stream.logIn?.isOver != false)
            stream.finish(isReusable ? .keep(for: incoming.keepAlive) : cutsRequest ? .reset : .close)
        }
    }
}
