import Access
import Caching
import EventLoop
import Fleet
import Forwarding
import Framing
import Message
import Storage
import Transaction
import Transport

/// Begins the answer: from the store, passed on from the origin, or made by Larder.
extension Exchange {
    /// Serves a stored response, whole or in part.
    func serveRecord(_ record: StoredResponse, as service: Service) {
        record.body.state == .partial ? servePart(record, as: service) : serve(record, as: service)
    }

    /// Serves a stored response.
    ///
    /// - Parameter ownFields: all end-to-end fields of the response, if it was sent to this very client and not all are stored.
    func serve(_ record: StoredResponse, as service: Service, ownFields: Fields? = nil) {
        var released = record
        // A closure is allocated where it is made, so each is made only where it may be called.
        if request.releaseRule != nil {
            let again = { [unowned self] in serve(record, as: service, ownFields: ownFields) }
            guard let other = self.released(record, else: again) else { return }
            released = other
        }
        if snapshot.followsRedirects, hasFollowed(released.cached.status, ownFields ?? released.fields) { return }
        if needsLoading(released),
            !isReady(released, else: { [unowned self] in serve(record, as: service, ownFields: ownFields) })
        {
            return
        }
        // Set before anything is written: if the body breaks at once, `replaceAnswer` asks how the answer came about.
        isAnswered = true
        self.service = service
        if request.peer != nil {
            let isFresh = request.terms(of: released).isFresh(worker.wallTime)
            stream.peerVerdict = PeerVerdict(service.authority(isFresh: isFresh))
        }
        let answer = StoredAnswer(
            released, to: request, service: service, worker: worker,
            ownFields: fields(of: released, released === record ? ownFields : nil), inOnePiece: stream.limits == nil)
        if hasRefused(answer.delivery) { return }
        stream.account.status = answer.status
        stream.account.outcome = service.outcome
        stream.account.bodyBytes = answer.contentBytes
        if service.outcome.isFromCache { worker.counters.add(.bytesFromCache, answer.contentBytes) }
        count(service)
        if snapshot.cacheRulesDependOnIndexes {
            worker.shared.indexDigests.read(record, of: request, by: snapshot, on: worker)
        }
        announceUnreadBody()
        stream.begin(delivery: answer.delivery) {
            unsafe answer.append(
                minorVersion: request.head.minorVersion, persists: stream.persists, using: worker.vectors, to: &$0)
        }
        // RFC 9112 §6.3 rule 8: only the end of the connection ends this body.
        if answer.endsWithConnection { stream.closeAfterwards(.endOfBody) }
        switch service {
        // The response is just arriving: wait for the first bytes of the body, so that they go out together with the head.
        case .miss, .peer, .part: worker.readers.add(stream.address.connection)
        case .hit, .shared, .stale, .revalidated, .collapsed, .staleOnError: stream.flush()
        }
    }

    private func count(_ service: Service) {
        // Another node counts what it serves to its client.
        guard request.peer == nil else { return }
        switch service {
        case .hit: worker.counters.add(.hits)
        case .shared:
            worker.counters.add(.hits)
            worker.counters.add(.hitsShared)
        case .stale, .staleOnError: worker.counters.add(.staleHits)
        case .revalidated: worker.counters.add(.revalidated)
        case .collapsed: worker.counters.add(.collapsed)
        case .miss, .peer, .part: worker.counters.add(.misses)
        }
    }

    // MARK: calls from the fetch

    func fetchSentInterim(_ response: ReceivedResponse) {
        precondition(response.status < 200, "a final head is not passed on as an interim one")
        guard request.head.minorVersion >= 1 else { return }
        if response.status == 100 {
            awaitsContinue = false
            stream.restartIdleLimit()
        }
        stream.interim { ForwardedHead.appendInterim(response, to: &$0) }
    }

    func fetchStored(_ record: StoredResponse, as service: Service, ownFields: Fields?) {
        precondition(stream.isAwaiting, "a fetch answers a client that has no final head")
        switch service {
        case .miss, .peer, .part: serve(record, as: service, ownFields: ownFields)
        case .hit, .shared, .stale, .collapsed, .revalidated, .staleOnError:
            // This fetch is done. If bytes of the response are missing, another fetch retrieves them.
            waiting = .nothing
            record.body.state == .partial
                ? servePart(record, as: service) : serve(record, as: service, ownFields: ownFields)
        }
    }

    func fetchPassed(
        _ head: RelayedHead, _ response: ReceivedResponse, _ content: UnsafeRawBufferPointer, _ body: Body?,
        _ trailers: TransientTrailers?
    ) {
        precondition(stream.isAwaiting, "a fetch answers a client that has no final head")
        guard mayPass(response) else { return }
        if snapshot.followsRedirects, hasFollowed(response.status, response.fields) { return }
        let delivery = body.map { Delivery(passing: $0, isChunked: head.isChunked, trailers: trailers) }
        if hasRefused(delivery) { return }
        guard let detour else { return unsafe begin(response, head, content, delivery) }
        unsafe begin(response.with(detour.fields(response.fields)), head, content, delivery)
    }

    /// Begins an answer that is passed on. It is sent with `content`, or with the first bytes of its body.
    private func begin(
        _ response: ReceivedResponse, _ head: RelayedHead, _ content: UnsafeRawBufferPointer, _ delivery: Delivery?
    ) {
        precondition(stream.isAwaiting, "a request gets one answer")
        isAnswered = true
        if request.peer != nil { stream.peerVerdict = .passed }
        worker.counters.add(.passed)
        stream.account.status = response.status
        stream.account.outcome = .passed
        if head.endsWithConnection { stream.closeAfterwards(.endOfBody) }
        announceUnreadBody()
        stream.begin(delivery: delivery) {
            head.append(response, persists: stream.persists, now: worker.wallTime, to: &$0)
            unsafe $0.append(contentsOf: content)
        }
        stream.account.bodyBytes = content.count
        worker.readers.add(stream.address.connection)
    }

    func fetchFailed(_ refusal: Refusal, denial: Denial?) {
        // The fetch has ended, or ends when this returns: there is nothing to detach.
        waiting = .nothing
        if let denial { note(denial) }
        // A cache on the way may have a copy that is damaged or forged: ask once more, past all of them.
        if refusal == .digestMismatch, !request.hasMismatched, stream.takeBack() {
            request.hasMismatched = true
            return refetch(.miss)
        }
        refuse(refusal)
    }

    func fetchSwitched(_ response: ReceivedResponse, origin: consuming Transport, early: [UInt8]) {
        waiting = .nothing
        guard takeTunnelPlace() else { return refuse(.tooManyTunnels) }
        precondition(!isAnswered, "a tunnel begins in place of an answer")
        worker.counters.add(.upgrades)
        stream.account.status = 101
        stream.account.outcome = .tunnel
        var greeting: [UInt8] = []
        ForwardedHead.appendSwitch(response, to: &greeting)
        stream.authenticationReply?.insert(intoHeadAt: 0, of: &greeting)
        TunnelOpener.open(
            stream: stream, worker: worker, origin: origin, greeting: greeting, early: early, place: tunnelPlace,
            request: request)
    }

    // MARK: bodies that cannot be sent

    /// Marks a stored response whose body could not be inflated. From now on it is served only to clients that accept its coding.
    func markUndecodable(_ record: StoredResponse) {
        record.markUndecodable()
        // A response on the disk gets the mark with a renewed head. One that is stored there later has the mark already.
        guard record.storedID != nil, record.body.isComplete else { return }
        _ = request.tier.replace(record, with: record.renewed(times: record.cached, fields: record.fields))
    }

    /// Replaces an answer whose body cannot be read to its end. Nothing of the answer has been sent.
    ///
    /// The origin is asked, unless it has just failed this client: because the body is its answer to this very request, or because
    /// the transfer of the body broke off.
    func replaceAnswer(of record: StoredResponse?, because breakage: Delivery.Breakage) {
        let isOwn =
            switch service {
            case .miss, .peer, .part: true
            case .hit, .shared, .stale, .revalidated, .collapsed, .staleOnError: false
            }
        switch (breakage, record) {
        case (.undecodable, let record?) where isOwn: serve(record, as: service)
        case (.undecodable, .some): refetch(.varyMiss)
        case (.gone, .some) where !isOwn: refetch()
        case (.gone, _), (.transferFailed, _), (.undecodable, nil): refuse(.responseIncomplete)
        }
    }

    /// Asks the origin, because the stored response that was to be served is gone or cannot be decoded for this client.
    func refetch(_ reason: CacheStatus.ForwardReason = .uriMiss) {
        precondition(stream.isAwaiting, "the origin is asked again only before an answer is sent")
        if request.takesWhole(worker.shared, now: worker.uptime) {
            // What has failed is the whole of which this request wants a part. It is tried once more.
            request.hasMismatched = true
            machine.takeWhole()
        }
        detachFetch()
        isAnswered = false
        stored.selected = nil
        stored.candidates = []
        feed(.bodyUnavailable(reason))
    }

    // MARK: answers of Larder's own

    func answer(_ local: LocalAnswer) {
        precondition(!isAnswered, "a request gets one answer")
        switch local {
        case .refusal(let refusal): refuse(refusal)
        case .response(let status, let fields, let body):
            isAnswered = true
            stream.account.status = status
            stream.account.outcome = .local
            announceUnreadBody()
            stream.begin {
                LocalAnswer.appendResponse(
                    status: status, fields: fields, body: body, persists: stream.persists,
                    minorVersion: request.head.minorVersion, date: worker.wallTime, to: &$0)
            }
            stream.flush()
        case .page(let page): answer(page)
        }
    }

    private func answer(_ page: PageResponse) {
        isAnswered = true
        stream.account.status = page.status
        stream.account.outcome = .local
        announceUnreadBody()
        let body = page.sendsBody ? worker.pageBodies.body(of: page, tier: worker.zones[0].tier) : nil
        stream.begin(delivery: body.map { Delivery(passing: $0, isChunked: false, trailers: nil) }) {
            LocalAnswer.appendHead(
                status: page.status, fields: page.fields, length: page.announcedLength, persists: stream.persists,
                minorVersion: request.head.minorVersion, date: worker.wallTime, to: &$0)
            if page.sendsBody, body == nil { $0 += page.body }
        }
        stream.flush()
    }

    /// Answers with an error. If the client has bytes of another answer already, resets the connection instead, so that the client sees
    /// that its answer is incomplete (RFC 9112 §8).
    func refuse(_ refusal: Refusal) {
        // The request was forwarded if the origin failed, or if it has the head and was being sent the body.
        let wasForwarded = refusal.isOfOrigin || isUploading
        detachFetch()
        if request.peer != nil { notePeerRefusal(refusal) }
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
        // A denial of one route is no reason if the next one failed in another way.
        let denial = denial.flatMap { Refusal($0) == refusal ? $0 : nil }
        if let denial { worker.counters.count(denial, in: &stream.account) }
        // Bytes behind a refused CONNECT were meant for the tunnel. They must not be read as requests.
        let isRefusedTunnel =
            request.method == .connect && (refusal != .authenticationRequired || stream.hasUnreadBytes)
        if request.hasBody { leaveBody(becauseOf: refusal) }
        if isRefusedTunnel { stream.closeAfterwards(.tunnelRefused) }
        if stream.isSocks {
            stream.closeAfterwards(.tunnelRefused)
            stream.begin { $0 += SocksReply(refusal).bytes }
            return stream.flush()
        }
        let response = ErrorResponse(
            refusal, to: request, requestID: worker.shared.requestIDs.text(of: stream.account.id),
            uri: (detour?.first ?? request).uri, redirectedTo: detour.map { _ in "\(request.origin)" }, denial: denial,
            withheld: withheld,
            violation: stream.account.violation,
            outage: worker.outage(of: request, for: refusal, snapshot),
            excess: excess, challenges: refusal == .authenticationRequired ? challenges : [],
            forwardReason: wasForwarded ? machine.forwardReason : nil)
        stream.account.status = response.status
        stream.program?.refused(.init(refusal, details: response.details))
        stream.begin {
            response.append(
                isHead: request.method == .head, persists: stream.persists, minorVersion: request.head.minorVersion,
                date: worker.wallTime, to: &$0)
        }
        stream.flush()
        if discardsBody { stream.uploadSoon() }
    }

    /// What a 407 asks for.
    private var challenges: [[UInt8]] {
        request.challenges ?? snapshot.authenticator?.challenges(at: worker.uptime) ?? []
    }

    /// The client's socket accepted some bytes of the answer.
    func clientAcceptedBytes() { fetch?.clientAcceptedBytes() }

    /// The offset in `body` up to which the client has been sent bytes. Returns nil if the client is not being sent that body.
    func offsetTaken(of body: Body) -> Int? { stream.offsetTaken(of: body) }
}
