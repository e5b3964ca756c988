import Access
import Caching
import EventLoop
import Forwarding
import Framing
import Message
import Storage
import Transaction

/// The answers: from the store, passed on from the origin, or made here.
extension Exchange {
    /// Serves a stored response, whole or in part.
    func serveRecord(_ record: StoredResponse, as service: Service) {
        record.body.state == .partial ? servePart(record, as: service) : serve(record, as: service)
    }

    /// - Parameter ownFields: of the response that just came for this client, where they are more than what is stored.
    func serve(_ record: StoredResponse, as service: Service, ownFields: Fields? = nil) {
        guard isReady(record, else: { [unowned self] in serve(record, as: service, ownFields: ownFields) }) else {
            return
        }
        isAnswered = true
        self.service = service
        let answer = StoredAnswer(record, to: request, service: service, worker: worker, ownFields: ownFields)
        stream.account.status = answer.status
        stream.account.outcome = service.outcome
        count(service)
        stream.begin(delivery: answer.delivery) {
            answer.appendHead(minorVersion: request.head.minorVersion, persists: stream.persists, to: &$0)
        }
        if answer.endsWithConnection { stream.closeAfterwards(.endOfBody) }
        switch service {
        // Of a response that is just arriving, the first bytes follow at once: head and body go out together.
        case .miss, .part: worker.readers.add(stream.address.connection)
        case .hit, .stale, .revalidated, .collapsed, .staleOnError: stream.flush()
        }
    }

    private func count(_ service: Service) {
        switch service {
        case .hit: worker.counters.add(.hits)
        case .stale, .staleOnError: worker.counters.add(.staleHits)
        case .revalidated: worker.counters.add(.revalidated)
        case .collapsed: worker.counters.add(.collapsed)
        case .miss, .part: worker.counters.add(.misses)
        }
    }

    // MARK: what the fetch says

    func fetchSentInterim(_ response: ReceivedResponse) {
        guard request.head.minorVersion >= 1 else { return }
        if response.status == 100 { awaitsContinue = false }
        stream.interim {
            ForwardedHead.appendResponse(response, to: &$0)
            $0.append("\r\n")
        }
    }

    func fetchAnswered(_ answer: FetchedAnswer) {
        switch answer {
        case .stored(let record, let service, let ownFields):
            switch service {
            case .miss, .part: serve(record, as: service, ownFields: ownFields)
            case .hit, .stale, .collapsed, .revalidated, .staleOnError:
                // The fetch has no more to say: what is missing of it is somebody else's to fetch.
                waiting = .nothing
                record.body.state == .partial
                    ? servePart(record, as: service) : serve(record, as: service, ownFields: ownFields)
            }
        case .passed(let head, let response, let body, let trailers):
            pass(response, head, body, trailers)
        }
    }

    private func pass(
        _ response: ReceivedResponse, _ head: RelayedHead, _ body: Body?, _ trailers: TransientTrailers?
    ) {
        isAnswered = true
        worker.counters.add(.passed)
        stream.account.status = response.status
        stream.account.outcome = .passed
        if head.endsWithConnection { stream.closeAfterwards(.endOfBody) }
        let delivery = body.map { Delivery(passing: $0, isChunked: head.framing == .chunked, trailers: trailers) }
        stream.begin(delivery: delivery) {
            head.append(response, persists: stream.persists, now: worker.wallTime, to: &$0)
        }
        worker.readers.add(stream.address.connection)
    }

    func fetchFailed(_ refusal: Refusal, denial: Denial?) {
        waiting = .nothing
        if let denial { note(denial) }
        refuse(refusal)
    }

    func fetchSwitched(_ response: ReceivedResponse, origin: consuming Descriptor, early: [UInt8]) {
        waiting = .nothing
        guard takeTunnelPlace() else { return refuse(.tooManyTunnels) }
        worker.counters.add(.upgrades)
        stream.account.status = 101
        stream.account.outcome = .tunnel
        var greeting: [UInt8] = []
        ForwardedHead.appendResponse(response, to: &greeting)
        greeting.append("Connection: Upgrade\r\n")
        appendFieldLine(.upgrade, response.fields.first(.upgrade) ?? ArraySlice("websocket".utf8), to: &greeting)
        greeting.append("Via: 1.1 larder\r\n\r\n")
        TunnelOpener.open(
            stream: stream, worker: worker, origin: origin, greeting: greeting, early: early, place: tunnelPlace,
            request: request)
    }

    // MARK: content that cannot be decoded

    /// Inflating the body of a stored response failed. From now on it is served only to those who take it as it is.
    func markUndecodable(_ record: StoredResponse) {
        record.markUndecodable()
        // What the disk has already gets the mark with a renewed head; what goes there later takes it along.
        guard record.storedID != nil, record.body.state == .complete else { return }
        _ = request.tier.replace(record, with: record.renewed(times: record.cached, fields: record.fields))
    }

    /// The body of the answer cannot be read to its end, and nothing of the answer is out.
    ///
    /// The origin is asked for this client, unless that has just been tried: where the body is the origin's answer to this very request,
    /// or the transfer that it arrived with broke off, the origin is what failed.
    func replaceAnswer(of record: StoredResponse?, because breakage: Delivery.Breakage) {
        let isOwn =
            switch service {
            case .miss, .part: true
            case .hit, .stale, .revalidated, .collapsed, .staleOnError: false
            }
        switch (breakage, record) {
        case (.undecodable, let record?) where isOwn: serve(record, as: service)
        case (.undecodable, .some): refetch(.varyMiss)
        case (.gone, .some) where !isOwn: refetch()
        case (.gone, _), (.transferFailed, _), (.undecodable, nil): refuse(.responseIncomplete)
        }
    }

    /// What was to be served is gone, or cannot be served to this client: the origin is asked after all.
    func refetch(_ reason: CacheStatus.ForwardReason = .uriMiss) {
        detachFetch()
        isAnswered = false
        lookUp.selected = nil
        lookUp.candidates = []
        feed(.bodyUnavailable(reason))
    }

    // MARK: made here

    func answer(_ local: LocalAnswer) {
        switch local {
        case .refusal(let refusal): refuse(refusal)
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
        let wasForwarded = refusal.isOfOrigin || isUploading
        detachFetch()
        guard stream.takeBack() else {
            stream.account.refusal = refusal
            return stream.reset(.answerIncomplete)
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
        if request.hasBody { stream.closeAfterwards(.requestUnread) }
        if isRefusedTunnel { stream.closeAfterwards(.tunnelRefused) }
        let response = ErrorResponse(
            refusal, to: request.received, uri: request.uri, denial: denial,
            challenge: request.challenge ?? snapshot.authenticator?.challenge,
            forwardReason: wasForwarded ? machine.forwardReason : nil)
        stream.begin {
            response.append(
                isHead: request.method == .head, persists: stream.persists, minorVersion: request.head.minorVersion,
                date: worker.wallTime, to: &$0)
        }
        stream.flush()
    }

    /// The client took some of its answer.
    func clientAcceptedBytes() { fetch?.clientAcceptedBytes() }

    /// How far the client is in a body that is being fetched for it; nil where it gets another, or none.
    func offsetTaken(of body: Body) -> Int? { stream.offsetTaken(of: body) }
}
