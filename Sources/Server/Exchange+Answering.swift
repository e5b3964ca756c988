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
        switch service {
        case .miss, .part: break
        case .hit, .stale, .revalidated, .collapsed, .staleOnError: fetch = nil
        }
        let answer = StoredAnswer(record, to: request, service: service, worker: worker, ownFields: ownFields)
        client.account.status = answer.status
        client.account.outcome = service.outcome
        count(service)
        client.queue {
            answer.appendHead(
                minorVersion: request.head.minorVersion, persists: client.persists, to: &$0)
        }
        if answer.endsWithConnection { client.persists = false }
        guard let delivery = answer.delivery else { return client.flush() }
        client.delivery = delivery
        // Of a response that is just being stored, the first bytes follow at once: head and body go out together.
        if fetch != nil { return }
        client.flush()
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

    func bodyAdvanced() { if isAnswered { client.flush() } }

    // MARK: passing a response on

    func relayInterim(_ response: ReceivedResponse) {
        guard request.head.minorVersion >= 1 else { return }
        if response.status == 100 { awaitsContinue = false }
        client.queue {
            ForwardedHead.appendResponse(response, to: &$0)
            HeadWriter.append("\r\n", to: &$0)
        }
        client.flush()
    }

    func relayHead(
        _ response: ReceivedResponse, length: BodyLength, reason why: CacheStatus.ForwardReason,
        notStored: NotStoredReason?
    ) {
        worker.counters.add(.passed)
        client.account.status = response.status
        client.account.outcome = .passed
        framing = ForwardedHead.framing(of: length, minorVersion: request.head.minorVersion)
        let tellsLength = request.method == .head || response.status == 304
        if tellsLength { framing = .none }
        if framing == .untilClose { client.persists = false }
        var cacheStatus = CacheStatus(.forwarded(why))
        cacheStatus.forwardStatus = response.status
        cacheStatus.detail = notStored?.rawValue
        client.queue {
            ForwardedHead.appendResponse(response, to: &$0)
            ForwardedHead.appendProxyFields(response, now: worker.wallTime, to: &$0)
            HeadWriter.append("Cache-Status: ", to: &$0)
            cacheStatus.append(to: &$0)
            HeadWriter.append("\r\n", to: &$0)
            ForwardedHead.appendFraming(framing, to: &$0)
            // A response without content may still say how long it would be (HEAD, 304; RFC 9110 §8.6).
            if tellsLength, let told = response.fields.first(.contentLength) {
                appendFieldLine(.contentLength, told, to: &$0)
            }
            HeadWriter.appendConnection(persists: client.persists, minorVersion: request.head.minorVersion, to: &$0)
        }
    }

    func relay(_ bytes: UnsafeRawBufferPointer) {
        client.account.bodyBytes += bytes.count
        guard framing == .chunked else { return unsafe client.send(bytes) }
        client.queue { appendChunkHeader(bytes.count, to: &$0) }
        unsafe client.queue(bytes)
        client.queue { HeadWriter.append("\r\n", to: &$0) }
    }

    func relayTurnEnded() { client.flush() }

    var isBehind: Bool { client.unsentBytes >= snapshot.limits.relayBufferBytesMax }

    func relayEnd(trailers: Fields?) {
        fetch = nil
        if framing == .chunked { client.queue { appendLastChunk(trailers: ForwardedHead.trailers(trailers), to: &$0) } }
        isAnswered = true
        client.flush()
    }

    /// What was passed on so far can not be completed: the client must see that (RFC 9112 §8).
    func relayFailed(_ refusal: Refusal) {
        fetch = nil
        guard client.answerBytesSent > 0 else {
            client.takeBackQueued()
            client.account.bodyBytes = 0
            return refuse(refusal)
        }
        client.account.refusal = refusal
        client.abort()
    }

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
            client.account.status = status
            client.account.outcome = .local
            var date: [UInt8] = []
            appendHTTPDate(worker.wallTime, to: &date)
            client.queue {
                appendStatusLine(status, reason: nil, to: &$0)
                appendFieldLine(.date, date, to: &$0)
                HeadWriter.append("Cache-Status: larder; detail=local\r\n", to: &$0)
                for line in fields.lines { appendFieldLine(fields.name(of: line), fields.value(of: line), to: &$0) }
                HeadWriter.append(.contentLength, body.count, to: &$0)
                HeadWriter.appendConnection(persists: client.persists, minorVersion: request.head.minorVersion, to: &$0)
                $0.append(contentsOf: body)
            }
            client.flush()
        }
    }

    func refuse(_ refusal: Refusal) {
        fetch = nil
        isAnswered = true
        worker.counters.add(refusal.isOfOrigin ? .failed : .refused)
        worker.counters.refusals.add(Int(refusal.rawValue), 1)
        client.account.status = refusal.status
        client.account.outcome = refusal.isOfOrigin ? .failed : .refused
        client.account.refusal = refusal
        // After a refused CONNECT come bytes that were meant for the tunnel, or none: they are no requests.
        let isRefusedTunnel =
            request.method == .connect && (refusal != .authenticationRequired || client.hasUnreadBytes)
        if request.hasBody || isRefusedTunnel { client.persists = false }
        let response = ErrorResponse(
            refusal, request: request.received, uri: request.uri, denial: denial,
            challenge: snapshot.users == nil ? nil : snapshot.challenge)
        client.queue {
            response.append(
                isHead: request.method == .head, persists: client.persists, minorVersion: request.head.minorVersion,
                date: worker.wallTime, to: &$0)
        }
        client.flush()
    }

    func note(_ denial: Denial) { self.denial = denial }

    func note(violation: FramingError) { client.account.violation = violation }

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
        client.account.status = 200
        client.account.outcome = .tunnel
        TunnelOpener.open(
            client: client, worker: worker, origin: socket,
            greeting: Array("HTTP/1.1 200 Connection established\r\nCache-Status: larder; fwd=method\r\n\r\n".utf8),
            early: [],
            request: request)
    }

    func switchProtocols(_ response: ReceivedResponse, origin: consuming Descriptor, early: [UInt8]) {
        fetch = nil
        worker.counters.add(.upgrades)
        client.account.status = 101
        client.account.outcome = .tunnel
        var greeting: [UInt8] = []
        ForwardedHead.appendResponse(response, to: &greeting)
        HeadWriter.append("Connection: Upgrade\r\n", to: &greeting)
        appendFieldLine(.upgrade, response.fields.first(.upgrade) ?? ArraySlice("websocket".utf8), to: &greeting)
        HeadWriter.append("Via: 1.1 larder\r\n\r\n", to: &greeting)
        TunnelOpener.open(
            client: client, worker: worker, origin: origin, greeting: greeting, early: early, request: request)
    }
}
