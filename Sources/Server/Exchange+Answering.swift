import Access
import Caching
import EventLoop
import Forwarding
import Framing
import Glibc
import Message
import Storage
import Transaction

/// The answers: from the store, passed on from the origin, or made here.
extension Exchange {
    /// - Parameter ownFields: of the response that just came for this client, where they are more than what is stored.
    func serve(_ record: StoredResponse, as service: Service, ownFields: Fields? = nil) {
        guard isReady(record, else: { [unowned self] in serve(record, as: service, ownFields: ownFields) }) else {
            return
        }
        isAnswered = true
        self.service = service
        switch service {
        case .miss, .part: break
        case .hit, .stale, .revalidated, .collapsed, .staleOnError: fetch = nil
        }
        let answer = StoredAnswer(record, to: request, service: service, worker: worker, ownFields: ownFields)
        stream.account.status = answer.status
        stream.account.outcome = service.outcome
        count(service)
        let delivery = answer.delivery
        stream.begin(delivery: delivery) {
            answer.appendHead(
                minorVersion: request.head.minorVersion, persists: stream.persists, to: &$0)
        }
        if answer.endsWithConnection { stream.persists = false }
        guard delivery != nil else { return stream.flush() }
        // Of a response that is just being stored, the first bytes follow at once: head and body go out together.
        if fetch != nil { return }
        stream.flush()
    }

    // MARK: content that cannot be decoded

    /// Inflating the body of a stored response failed. From now on it is served only to those who take it as it is.
    func markUndecodable(_ record: StoredResponse) {
        record.markUndecodable()
        // What the disk has already gets the mark with a renewed head; what goes there later takes it along.
        guard record.diskID != nil, record.body.state == .complete else { return }
        _ = request.tier.replace(record, with: record.renewed(times: record.cached, fields: record.fields))
    }

    /// This client does not accept the stored coding, the body could not be inflated, and nothing of the answer is out: the origin is
    /// asked what it has for this client. Where it has just been asked, and this is its answer, the client gets it as it came.
    func answerInPlace(of undecodable: StoredResponse) {
        if case .miss = service { return serve(undecodable, as: service) }
        isAnswered = false
        letFetchGo()
        fetchAfterAll(.varyMiss)
    }

    func count(_ service: Service) {
        switch service {
        case .hit: worker.counters.add(.hits)
        case .stale, .staleOnError: worker.counters.add(.staleHits)
        case .revalidated: worker.counters.add(.revalidated)
        case .collapsed: worker.counters.add(.collapsed)
        case .miss, .part: worker.counters.add(.misses)
        }
    }

    /// The fetch tells of every piece that arrives; no wake-up is needed.
    var isToldOfProgress: Bool { fetch != nil }

    func bodyAdvanced() { if isAnswered { stream.flush() } }

    // MARK: passing a response on

    func relayInterim(_ response: ReceivedResponse) {
        guard request.head.minorVersion >= 1 else { return }
        if response.status == 100 { awaitsContinue = false }
        stream.interim { ForwardedHead.appendInterim(response, to: &$0) }
    }

    func relayHead(
        _ response: ReceivedResponse, length: BodyLength, reason why: CacheStatus.ForwardReason,
        notStored: NotStoredReason?
    ) {
        worker.counters.add(.passed)
        stream.account.status = response.status
        stream.account.outcome = .passed
        let head = RelayedHead(
            status: response.status, length: length, to: request.method, minorVersion: request.head.minorVersion,
            reason: why, detail: notStored)
        if head.endsWithConnection { stream.persists = false }
        stream.begin(framing: head.framing) {
            head.append(response, persists: stream.persists, now: worker.wallTime, to: &$0)
        }
    }

    func relay(_ bytes: UnsafeRawBufferPointer) { unsafe stream.send(bytes) }

    func relayTurnEnded() { stream.flush() }

    var isBehind: Bool { stream.unsentBytes >= snapshot.limits.relayBufferBytesMax }

    func relayEnd(trailers: Fields?) {
        fetch = nil
        stream.end(trailers: ForwardedHead.trailers(trailers))
        isAnswered = true
        stream.flush()
    }

    /// The body that is passed on cannot be completed.
    func relayFailed(_ refusal: Refusal) { refuse(refusal) }

    /// Everything queued is out.
    /// - Returns: that was the whole answer.
    func outputDrained() -> Bool {
        if !isAnswered { fetch?.resume() }
        return isAnswered
    }

    // MARK: other ways

    func answer(_ local: LocalAnswer) {
        switch local {
        case .refusal(let refusal):
            refuse(refusal)
        case .response(let status, let fields, let body):
            isAnswered = true
            stream.account.status = status
            stream.account.outcome = .local
            stream.begin {
                LocalAnswer.appendResponse(
                    status: status, fields: fields, body: body, persists: stream.persists,
                    minorVersion: request.head.minorVersion, date: worker.wallTime, to: &$0)
            }
            stream.flush()
        }
    }

    /// Answers with an error. Where the client has begun to get another answer, it must see that this one is not whole (RFC 9112 §8).
    func refuse(_ refusal: Refusal) {
        // Either the origin failed, or it has the head of the request already.
        let wasForwarded = refusal.isOfOrigin || upload != nil
        fetch = nil
        guard stream.takeBack() else {
            stream.account.refusal = refusal
            return stream.reset()
        }
        isAnswered = true
        worker.counters.add(refusal.isOfOrigin ? .failed : .refused)
        worker.counters.refusals.add(Int(refusal.rawValue), 1)
        stream.account.status = refusal.status
        stream.account.outcome = refusal.isOfOrigin ? .failed : .refused
        stream.account.refusal = refusal
        // After a refused CONNECT come bytes that were meant for the tunnel, or none: they are no requests.
        let isRefusedTunnel =
            request.method == .connect && (refusal != .authenticationRequired || stream.hasUnreadBytes)
        if request.hasBody || isRefusedTunnel { stream.persists = false }
        let response = ErrorResponse(
            refusal, to: request.received, uri: request.uri, denial: denial,
            challenge: request.challenge ?? snapshot.authenticator?.challenge,
            forwardReason: wasForwarded ? transaction.forwardReason : nil)
        stream.begin {
            response.append(
                isHead: request.method == .head, persists: stream.persists, minorVersion: request.head.minorVersion,
                date: worker.wallTime, to: &$0)
        }
        stream.flush()
    }

    func note(_ denial: Denial) { self.denial = denial }

    func note(violation: FramingError) { stream.account.violation = violation }

    func tunnel() {
        let dial = Dial(worker: worker, request: request.access, snapshot: snapshot) { [weak self] outcome in
            guard let self else { return }
            self.dial = nil
            switch outcome {
            case .failed(let refusal): refuse(refusal)
            case .denied(let denial):
                note(denial)
                refuse(Refusal(denial))
            case .connected(let fd, _): openTunnel(fd)
            }
        }
        self.dial = dial
        dial.start()
    }

    func openTunnel(_ fd: CInt) {
        let socket = Descriptor(adopting: fd)
        Sockets.setNoDelay(socket.rawValue)
        worker.counters.add(.tunnels)
        stream.account.status = 200
        stream.account.outcome = .tunnel
        TunnelOpener.open(
            stream: stream, worker: worker, origin: socket,
            greeting: Array("HTTP/1.1 200 Connection established\r\nCache-Status: larder; fwd=method\r\n\r\n".utf8),
            early: [],
            request: request)
    }

    func switchProtocols(_ response: ReceivedResponse, origin: consuming Descriptor, early: [UInt8]) {
        fetch = nil
        worker.counters.add(.upgrades)
        stream.account.status = 101
        stream.account.outcome = .tunnel
        var greeting: [UInt8] = []
        ForwardedHead.appendSwitch(response, to: &greeting)
        TunnelOpener.open(
            stream: stream, worker: worker, origin: origin, greeting: greeting, early: early, request: request)
    }
}
