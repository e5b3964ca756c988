import Caching
import EventLoop
import Forwarding
import Framing
import Message
import Routing
import Storage
import Transaction

/// A final head, and how its content is framed. Valid within the call that brought it: the conversation may have content in memory behind it.
@safe struct Arrived {
    let response: ReceivedResponse
    let length: BodyLength
    /// How much content follows, in bytes. Nil if the framing does not tell.
    let missing: UInt64?
    let rest: UnsafeRawBufferPointer
    /// See `ArrivedHead.content`.
    let content: UnsafeRawBufferPointer?

    init(_ response: ReceivedResponse, _ head: ArrivedHead) {
        self.response = response
        length = head.length
        missing = head.missing
        unsafe rest = unsafe head.rest
        unsafe content = unsafe head.content
    }
}

/// Performs the actions of the machine.
extension Fetch {
    func feed(_ event: Retrieval.Event, _ arrived: Arrived) {
        perform(retrieval.on(event, now: worker.wallTime, staleMayServe: staleMayServe), arrived)
    }

    /// Performs an action that a head caused.
    func perform(_ action: Retrieval.Action, _ arrived: Arrived) {
        switch action {
        case .passInterim: passInterim(arrived)
        case .switchProtocols: switchProtocols(arrived)
        case .store(let invalidates): store(retrieval.responseToStore, invalidates: invalidates, arrived)
        case .storePart(let part): storePart(part, arrived)
        case .freshen(let confirmed): freshen(confirmed, arrived)
        case .pass(let passing): pass(passing, arrived)
        case .abandonHole(let removesStored, let then):
            abandonHole(removesStored: removesStored)
            perform(then, arrived)
        case .none, .open, .reopen, .pause, .retry, .send, .serveStale, .fill, .goOn, .deliver, .outdateSelected,
            .askAgain, .finish:
            perform(action)
        }
    }

    /// Performs an action that needs no head.
    func perform(_ action: Retrieval.Action) {
        switch action {
        case .none: break
        case .open: wantStream()
        case .reopen: reopen()
        case .askAgain: askAgain()
        case .pause(let milliseconds): pauseBeforeResuming(milliseconds)
        case .retry(let attempt): pauseBeforeRetry(attempt)
        case .send: send()
        case .serveStale(let status): serveStale(status: status)
        case .fill(let isFirst): fillHole(isFirst: isFirst)
        case .goOn: break
        case .deliver: preconditionFailure("bytes are delivered where they are")
        case .outdateSelected: outdateSelected()
        case .abandonHole(let removesStored, let then):
            abandonHole(removesStored: removesStored)
            perform(then)
        case .finish(let ending): finish(ending)
        case .passInterim, .switchProtocols, .store, .storePart, .freshen, .pass:
            preconditionFailure("the machine asks for this only when a head has come")
        }
    }

    /// Asks again on a new connection: the pooled one was dead, and others may be as well, or its answer was of no use.
    private func reopen() {
        worker.counters.add(.originRetries)
        worker.debug(.requests, request.id, "\(subject): its connection had been closed, sent again on another one")
        releaseStream(isComplete: false)
        wantStream()
    }

    /// Asks again with credentials. The connection has carried a whole message if the answer was short, as challenges are.
    private func askAgain() {
        releaseStream(isComplete: true)
        wantStream()
    }

    private func pauseBeforeResuming(_ milliseconds: Int) {
        releaseStream(isComplete: false)
        approach(.over)
        worker.counters.add(.resumed)
        worker.debug(
            .transfers, request.id,
            "\(subject): broke off after \(retrieval.progress.received) bytes, asks for the rest in \(milliseconds) ms")
        guard milliseconds > 0 else { return feed(.timedOut) }
        wait(.milliseconds(milliseconds))
    }

    private func pauseBeforeRetry(_ attempt: Int) {
        releaseStream(isComplete: false)
        approach(.over)
        guard worker.retryBudget.take() else {
            worker.counters.add(.retriesRefused)
            worker.debug(.requests, request.id, "\(subject): not repeated, the budget for that is used up")
            return feed(.retryRefused)
        }
        worker.counters.add(.retries)
        worker.debug(.requests, request.id, "\(subject): repeated, attempt \(attempt)")
        wait(retryPause(snapshot.configuration.retries.pause, attempt: attempt, random: .random(in: 0 ... .max)))
    }

    /// The client may fail while the head is written, and that may end this fetch. `parseHead` looks at the machine's phase afterwards.
    private func passInterim(_ arrived: Arrived) { notify { $0.fetchSentInterim(arrived.response) } }

    /// Gives both connections to a tunnel (RFC 9110 §7.8). Nothing is given away before it is certain that both ends are there: a fetch whose
    /// client has left fails instead. The fetch ends before the exchange is told, because the exchange ends
    /// within that call.
    private func switchProtocols(_ arrived: Arrived) {
        precondition(arrived.response.status == 101, "only a 101 switches protocols")
        guard case .lent(let stream) = link, let client, let exchange = worker.exchange(at: client)
        else { return feed(.invalidHead) }
        let origin = stream.surrender()
        link = .none
        // The stream ended with its socket, and there is nothing left to do for the machine.
        _ = retrieval.on(.cancelled, now: worker.wallTime)
        end()
        unsafe exchange.fetchSwitched(arrived.response, origin: origin, early: Array(arrived.rest))
    }

    // MARK: answers

    /// Passes the response through a window to the client, and to nobody else.
    private func pass(_ passing: Retrieval.Passing, _ arrived: Arrived) {
        let response = arrived.response
        precondition(hole == nil && hasNoSink, "a response that is passed on has no other sink")
        if passing.invalidates { invalidate(response.fields, status: response.status) }
        if passing.updatesStored { updateStored(by: response, worker.wallTime) }
        // Followers ask the origin themselves from here on: this response is for one client. They are woken through their inboxes, so none
        // of them runs within this call.
        transfer?.resolve(.notShared, passing.refutesSharing ? refutedSharing : .unknown)
        guard client != nil else { return feed(.clientLeft(isStillNeeded: false)) }
        let head = RelayedHead(
            status: response.status, length: arrived.length, to: request.method,
            minorVersion: request.head.minorVersion, reason: reason, detail: passing.notStored)
        provePassed(response)
        var body: Body?
        var trailers: TransientTrailers?
        let whole = unsafe shortContent(arrived)
        if unsafe arrived.missing == 0 || !whole.isEmpty {
            // What is read counts the content, and has no other use for it.
            sink = .discard
        } else {
            let window = request.tier.makeWindow(
                expectedLength: arrived.missing.flatMap { Int(exactly: $0) },
                window: snapshot.limits.relayBufferBytesMax)
            if case .chunked = arrived.length { trailers = TransientTrailers() }
            sink = .pass(window, trailers)
            body = window
        }
        // Before the client has its part: what it asks for next joins the fetch of the whole.
        if let length = passing.wantedWhole { fetchWhole(length, like: response) }
        notify { unsafe $0.fetchPassed(head, response, whole, body, trailers) }
    }

    /// The content of a short response that came whole, together with its head: it goes to the client in one piece, without a window in
    /// between. Empty if the content is longer, is not all here, or if a limit counts its bytes while they are sent.
    private func shortContent(_ arrived: Arrived) -> UnsafeRawBufferPointer {
        guard let content = unsafe arrived.content, content.count <= ClientConnection.copiedBodyMax,
            !filtersContent, snapshot.limitPlan.isEmpty
        else { return unsafe UnsafeRawBufferPointer(start: nil, count: 0) }
        return unsafe content
    }

    private func serveStale(status: UInt16) {
        precondition(hole == nil && hasNoSink, "a stale response replaces an answer that has not begun")
        guard let stored else { preconditionFailure("no stored response can be served stale") }
        // Followers decide for themselves whether a stale response will do (`Exchange.use(ofPublished:)`).
        transfer?.resolve(.published(stored))
        // Set before the client is told: a client that leaves in that call asks the sink who still needs the response.
        sink = .discard
        notify { $0.fetchStored(stored, as: .staleOnError(reason, status: status), ownFields: nil) }
        client = nil
        guard isIn(.finished) else { return }
        releaseStream(isComplete: false)
        end()
    }

    private func fillHole(isFirst: Bool) {
        guard let hole else { preconditionFailure("no hole was claimed") }
        precondition(hasNoSink, "a hole is filled from its first byte")
        sink = .fill(hole.fill, of: hole.record)
        precondition(hole.fill.body === hole.record.body, "a hole is filled in its own body")
        // Otherwise the client has its head. Its delivery is a reader of the body, and is woken by the first bytes.
        guard isFirst else { return }
        notify { $0.fetchStored(hole.record, as: .part(status: 206), ownFields: nil) }
    }

    var hasNoSink: Bool { if case .none = sink { true } else { false } }

    private func abandonHole(removesStored: Bool) {
        guard let hole else { preconditionFailure("no hole was claimed") }
        // What follows is an ordinary request: the stored response must not be validated or served stale in its place.
        precondition(hasNoSink, "a hole that is being filled is not given up here")
        self.hole = nil
        stored = nil
        hole.fill.abandon()
        if removesStored { request.tier.remove(hole.record) }
    }

    // MARK: ends

    /// Ends the retrieval. The stream is released first, because a listener that is notified may ask for another one at once.
    private func finish(_ ending: Retrieval.Ending) {
        precondition(isIn(.finished), "the machine decides when a retrieval ends")
        // Returning the stream may lend it to the next fetch at once, which reads into the same buffers: take what is needed before.
        // Those of a request with a secret are left out: nothing looks for it there.
        var trailers: Fields?
        if substitution?.secrets == nil, case .lent(let stream) = link { trailers = stream.conversation.trailers }
        if case .whole = ending {
            releaseStream(isComplete: true)
        } else {
            releaseStream(isComplete: false)
        }
        switch ending {
        case .whole:
            if let refusal = filters.flatMap({ finish($0) }) {
                breakOffSink(keepsPart: false)
                notify { $0.fetchFailed(refusal, denial: nil) }
            } else {
                finishSink(ForwardedHead.trailers(trailers))
            }
        case .failed(let refusal):
            worker.debug(.requests, request.id, "\(subject): failed: \(refusal.name)")
            precondition(hasNoSink, "a refusal takes the place of an answer that has not begun")
            // With time limits or a route of their own, others may get an answer where this request got none.
            let isOfClient = snapshot.routesDependOnClient || snapshot.origins.dependsOnClient
            let isForFollowers = refusal == .transferCancelled || (refusal.isOfOrigin && !isOfClient)
            transfer?.resolve(isForFollowers ? .failed(code: Int32(refusal.rawValue)) : .notShared)
            notify { $0.fetchFailed(refusal, denial: nil) }
        case .brokenOff(let keepsPart):
            // The body ends before the exchange is told. Whichever of the two the client meets first, its answer breaks off once: with a
            // reset if it has bytes of the answer (RFC 9112 §8), and with an error response if it has none.
            let isKept = breakOffSink(keepsPart: keepsPart && !filtersContent)
            worker.debug(
                .transfers, request.id,
                "\(subject): ended after \(retrieval.progress.received) bytes\(isKept ? ", which are kept" : "")")
            let refusal: Refusal = hasMalformedBody ? .responseInvalid : .responseIncomplete
            notify { $0.fetchFailed(refusal, denial: nil) }
        case .abandoned:
            transfer?.resolve(.notShared)
            abandonSink()
        }
        end()
    }

    /// Puts what the filters have withheld into the sink. Returns why the body must not be completed; nil if it may be.
    private func finish(_ filters: ContentFilters) -> Refusal? {
        let refusal = unsafe filters.finish { piece in
            unsafe fillSink(piece, isAll: false)
            return true
        }
        if refusal == .digestMismatch, let proof { noteMismatch(proof) }
        // The disk may have stopped accepting blocks at the very end.
        if refusal == nil, proof != nil, case .fill(let fill, _) = sink, fill.position != fill.range.upperBound {
            return .digestMismatch
        }
        return refusal
    }

    private func finishSink(_ trailers: Fields?) {
        switch sink {
        case .none, .discard: break
        case .pass(let body, let transient):
            // The trailers first: once the body is complete, the client's connection may write its last chunk.
            transient?.set(trailers)
            let isWhole = body.finish()
            precondition(isWhole, "the machine counts the same bytes as the window")
        case .store(let record): finishStored(record, trailers)
        case .fill(let fill, let record): finishPart(fill, of: record)
        }
    }

    /// Ends a body that cannot be completed. A stored response keeps what was received if `keepsPart` and the rest can be asked for.
    ///
    /// - Returns: whether it keeps that.
    @discardableResult private func breakOffSink(keepsPart: Bool) -> Bool {
        switch sink {
        case .none, .discard: return false
        case .pass(let body, _):
            body.fail()
            return false
        case .store(let record):
            guard keepsPart, partConditions(for: record.cached, from: 0, to: nil) != nil, record.body.makePartial()
            else {
                dropStored(record)
                return false
            }
            // A later request fetches the rest.
            worker.counters.add(.keptPartial)
            return true
        case .fill(let fill, let record):
            fill.abandon()
            guard keepsPart, partConditions(for: record.cached, from: 0, to: nil) != nil else {
                request.tier.remove(record)
                return false
            }
            return true
        }
    }

    /// Ends a body whose rest nobody needs.
    private func abandonSink() {
        switch sink {
        case .none: hole?.fill.abandon()
        case .discard: break
        case .pass(let body, _): body.fail()
        case .store(let record): dropStored(record)
        case .fill(let fill, _): fill.abandon()
        }
    }
}
