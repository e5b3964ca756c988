import Caching
package import Message

extension Retrieval {
    /// Takes an event and returns what the driver does next. Traps if the event cannot occur in the present state.
    ///
    /// - Parameters:
    ///   - now: the time of the event. Few events need it.
    ///   - staleMayServe: whether the selected stored response may be served if the origin fails. Evaluated only if it failed.
    package mutating func on(
        _ event: Event, now: @autoclosure () -> WallTime, staleMayServe: @autoclosure () -> Bool = false
    ) -> Action {
        switch event {
        case .start: return start()
        case .opened(let isReused): return opened(isReused, now())
        case .notOpened(let refusal): return notOpened(refusal, now(), staleMayServe)
        case .interim: return interim(now(), staleMayServe)
        case .switched: return switched(now(), staleMayServe)
        case .invalidHead: return headFailed(.responseInvalid, now(), staleMayServe)
        case .stored: return storingDecided(nil)
        case .notStored(let reason): return storingDecided(reason)
        case .received(let count): return received(count)
        case .ended(let byClosing): return ended(byClosing, now())
        case .brokeOff: return brokeOff(now())
        case .sinkFull: return sinkFull()
        case .closed(let headBegan): return closed(headBegan, now(), staleMayServe)
        case .notAnswered(let refusal): return headFailed(refusal, now(), staleMayServe)
        case .challenged(let refusal): return challenged(refusal, now(), staleMayServe)
        case .routeFailed: return routeFailed()
        case .expectationFailed: return expectationFailed()
        case .timedOut: return timedOut(now(), staleMayServe)
        case .outOfTime: return outOfTime(now(), staleMayServe)
        case .retryRefused: return retryRefused(now(), staleMayServe)
        case .stopped(let isShared): return stopped(keepsPart: !isShared)
        case .clientLeft(let isStillNeeded): return clientLeft(isStillNeeded)
        case .cancelled: return finish(.abandoned)
        }
    }

    /// Takes a final head and returns what the driver does next. Traps if no head can come in the present state.
    ///
    /// Heads have an entrance of their own because they are large: every event would reserve room for one.
    ///
    /// - Parameter staleMayServe: as for the other events.
    package mutating func on(head: Head, staleMayServe: @autoclosure () -> Bool = false) -> Action {
        switch state {
        case .asked(.first(let plan), _): return decide(head, plan, staleMayServe)
        case .asked(.hole(let part, let plan), _): return decide(head, hole: part, plan, staleMayServe)
        case .asked(.rest(let part, let receiving), _): return decide(head, rest: part, receiving)
        case .finished: return .none
        case .ready, .opening, .storing, .receiving, .pausing, .retrying:
            preconditionFailure("a head came that nobody asked for")
        }
    }

    // MARK: a connection

    private mutating func start() -> Action {
        switch state {
        case .ready(let question):
            state = .opening(question)
            return .open(mayReuse: mayReuseConnection)
        case .opening, .asked, .storing, .receiving, .pausing, .retrying, .finished:
            preconditionFailure("a retrieval starts once")
        }
    }

    private mutating func opened(_ isReused: Bool, _ now: WallTime) -> Action {
        switch state {
        case .opening(let question):
            precondition(!isReused || mayReuseConnection, "a request that cannot be repeated is on a used connection")
            // The rest of a body keeps the times of its beginning.
            if case .rest = question {} else { askedAt = now }
            conditions = conditions(of: question)
            state = .asked(question, Attempt(isReused: isReused))
            return .send
        // Whoever was asked first is late, and is still listened to. Its answer is not younger than the question.
        case .asked(let question, _):
            state = .asked(question, Attempt(isReused: isReused))
            return .send
        case .ready, .storing, .receiving, .pausing, .retrying, .finished:
            preconditionFailure("nobody asked for a connection")
        }
    }

    private mutating func notOpened(_ refusal: Refusal, _ now: WallTime, _ staleMayServe: () -> Bool) -> Action {
        switch state {
        // Nothing was sent, so any request can be sent again.
        case .opening(let question): return failUnlessRetried(question, refusal, now, staleMayServe)
        case .ready, .asked, .storing, .receiving, .pausing, .retrying, .finished:
            preconditionFailure("nobody asked for a connection")
        }
    }

    // MARK: the head

    private mutating func interim(_ now: WallTime, _ staleMayServe: () -> Bool) -> Action {
        switch state {
        case .asked(let question, var attempt):
            attempt.interimResponses += 1
            guard attempt.interimResponses <= request.interimResponsesMax else {
                return fail(question, .responseInvalid, now, staleMayServe)
            }
            state = .asked(question, attempt)
            switch listener {
            case .waiting: return .passInterim
            case .answered, .none: return .none
            }
        case .finished: return .none
        case .ready, .opening, .storing, .receiving, .pausing, .retrying:
            preconditionFailure("a head came that nobody asked for")
        }
    }

    private mutating func switched(_ now: WallTime, _ staleMayServe: () -> Bool) -> Action {
        switch state {
        case .asked(.first, _) where request.isUpgrade && isClientWaiting:
            listener = .answered
            return .switchProtocols
        case .asked(let question, _): return fail(question, .responseInvalid, now, staleMayServe)
        case .finished: return .none
        case .ready, .opening, .storing, .receiving, .pausing, .retrying:
            preconditionFailure("a head came that nobody asked for")
        }
    }

    private mutating func headFailed(
        _ refusal: Refusal, _ now: WallTime, _ staleMayServe: () -> Bool
    ) -> Action {
        switch state {
        case .asked(let question, _): return fail(question, refusal, now, staleMayServe)
        case .finished: return .none
        case .ready, .opening, .storing, .receiving, .pausing, .retrying:
            preconditionFailure("a head came that nobody asked for")
        }
    }

    private mutating func challenged(_ refusal: Refusal, _ now: WallTime, _ staleMayServe: () -> Bool) -> Action {
        switch state {
        case .asked(let question, _):
            logIns += 1
            guard logIns <= Retrieval.logInsMax else { return fail(question, refusal, now, staleMayServe) }
            state = .opening(question)
            return .askAgain
        case .finished: return .none
        case .ready, .opening, .storing, .receiving, .pausing, .retrying:
            preconditionFailure("a head came that nobody asked for")
        }
    }

    /// Not bounded here: each route fails once.
    private mutating func routeFailed() -> Action {
        switch state {
        case .asked(let question, _):
            state = .opening(question)
            return .askAgain
        case .finished: return .none
        case .ready, .opening, .storing, .receiving, .pausing, .retrying:
            preconditionFailure("a head came that nobody asked for")
        }
    }

    private mutating func expectationFailed() -> Action {
        switch state {
        case .asked(let question, _):
            precondition(mayExpect, "what was not asked for again cannot fail again")
            mayExpect = false
            state = .opening(question)
            return .askAgain
        case .finished: return .none
        case .ready, .opening, .storing, .receiving, .pausing, .retrying:
            preconditionFailure("a head came that nobody asked for")
        }
    }

    private mutating func closed(_ headBegan: Bool, _ now: WallTime, _ staleMayServe: () -> Bool) -> Action {
        switch state {
        case .asked(let question, let attempt):
            // A pooled connection that ends before any byte of an answer was probably closed while it was idle (RFC 9112 §9.3.1).
            let wasIdleTooLong = attempt.isReused && !headBegan && attempt.interimResponses == 0
            if wasIdleTooLong, request.isReplayable, deadConnections < request.deadConnectionRetriesMax {
                deadConnections += 1
                state = .opening(question)
                return .reopen
            }
            return fail(question, headBegan ? .responseIncomplete : .connectionTerminated, now, staleMayServe)
        case .finished: return .none
        case .ready, .opening, .storing, .receiving, .pausing, .retrying: preconditionFailure("no head is awaited")
        }
    }

    private mutating func timedOut(_ now: WallTime, _ staleMayServe: () -> Bool) -> Action {
        switch state {
        case .opening(let question): return fail(question, .connectionTimeout, now, staleMayServe)
        case .asked(let question, _):
            guard request.isReplayable, !request.isUpgrade else {
                return fail(question, .responseTimeout, now, staleMayServe)
            }
            return failUnlessRetried(question, .responseTimeout, now, staleMayServe)
        case .receiving: return brokeOff(now)
        case .pausing(let part, let receiving):
            state = .opening(.rest(part, receiving))
            return .open(mayReuse: mayReuseConnection)
        case .retrying(let question, _):
            state = .opening(question)
            return .open(mayReuse: mayReuseConnection)
        case .finished: return .none
        case .ready, .storing: preconditionFailure("nothing is waited for")
        }
    }

    private mutating func outOfTime(_ now: WallTime, _ staleMayServe: () -> Bool) -> Action {
        switch state {
        case .opening(let question): return fail(question, .connectionTimeout, now, staleMayServe, isLast: true)
        case .asked(let question, _): return fail(question, .responseTimeout, now, staleMayServe, isLast: true)
        case .retrying(let question, let refusal): return fail(question, refusal, now, staleMayServe, isLast: true)
        case .receiving, .pausing: return finish(.brokenOff(keepsPart: true))
        case .finished: return .none
        case .ready, .storing: preconditionFailure("nothing is waited for")
        }
    }

    private mutating func stopped(keepsPart: Bool) -> Action {
        switch state {
        case .opening(let question), .asked(let question, _), .retrying(let question, _):
            return stopped(question, keepsPart)
        case .receiving, .pausing: return finish(.brokenOff(keepsPart: keepsPart))
        case .finished: return .none
        case .ready, .storing: preconditionFailure("nothing is waited for")
        }
    }

    /// Nothing stale stands in: whoever ends a transfer wants its client to see that.
    private mutating func stopped(_ question: Question, _ keepsPart: Bool) -> Action {
        switch question {
        case .first: return finish(.failed(.transferCancelled))
        case .hole:
            let ending: Ending = isClientWaiting ? .failed(.transferCancelled) : .brokenOff(keepsPart: true)
            return .abandonHole(removesStored: false, then: finish(ending))
        case .rest: return finish(.brokenOff(keepsPart: keepsPart))
        }
    }

    private mutating func retryRefused(_ now: WallTime, _ staleMayServe: () -> Bool) -> Action {
        switch state {
        case .retrying(let question, let refusal): return fail(question, refusal, now, staleMayServe)
        case .ready, .opening, .asked, .storing, .receiving, .pausing, .finished:
            preconditionFailure("no other attempt was asked for")
        }
    }

    // MARK: the body

    /// - Parameter reason: why the response is not stored. Nil if it is.
    private mutating func storingDecided(_ reason: NotStoredReason?) -> Action {
        switch state {
        case .storing(let receiving):
            guard let response = passed.take() else { preconditionFailure("what is to be stored has a head") }
            guard let reason else {
                listener = listener.whenAnswered
                state = .receiving(receiving)
                return .none
            }
            return pass(response, notStored: reason, invalidates: false)
        case .ready, .opening, .asked, .receiving, .pausing, .retrying, .finished:
            preconditionFailure("nothing is being stored")
        }
    }

    private mutating func received(_ count: Int) -> Action {
        precondition(count >= 0, "bytes are not taken back")
        switch state {
        case .receiving(var receiving):
            receiving.received += UInt64(count)
            // Bytes beyond the end, if they were passed on, would be read as the answer to the client's next request.
            if let total = receiving.total, receiving.received > total { return finish(.brokenOff(keepsPart: false)) }
            if let promised = receiving.promised, receiving.received > promised {
                return finish(.brokenOff(keepsPart: false))
            }
            state = .receiving(receiving)
            return .deliver
        case .finished: return .none
        case .ready, .opening, .asked, .storing, .pausing, .retrying: preconditionFailure("no body is awaited")
        }
    }

    private mutating func ended(_ byClosing: Bool, _ now: WallTime) -> Action {
        switch state {
        case .receiving(let receiving):
            if let promised = receiving.promised, receiving.received < promised {
                // If the end of the connection ends the body, the body may have broken off. Otherwise the message is complete by its
                // framing, but shorter than its `Content-Range`: such a response is not kept.
                return byClosing ? resume(receiving, now) : finish(.brokenOff(keepsPart: false))
            }
            if let total = receiving.total, receiving.received < total { return brokeOff(now) }
            return finish(.whole)
        case .finished: return .none
        case .ready, .opening, .asked, .storing, .pausing, .retrying: preconditionFailure("no body is awaited")
        }
    }

    private mutating func brokeOff(_ now: WallTime) -> Action {
        switch state {
        case .receiving(let receiving): return resume(receiving, now)
        case .finished: return .none
        case .ready, .opening, .asked, .storing, .pausing, .retrying: preconditionFailure("no body is awaited")
        }
    }

    private mutating func sinkFull() -> Action {
        switch state {
        case .receiving: return finish(.brokenOff(keepsPart: true))
        case .finished: return .none
        case .ready, .opening, .asked, .storing, .pausing, .retrying: preconditionFailure("no body is awaited")
        }
    }

    // MARK: ends

    private mutating func clientLeft(_ isStillNeeded: Bool) -> Action {
        switch state {
        case .finished: return .none
        case .ready, .opening, .asked, .storing, .receiving, .pausing, .retrying:
            listener = .none
            return isStillNeeded ? .none : finish(.abandoned)
        }
    }

    mutating func finish(_ ending: Ending) -> Action {
        switch state {
        case .finished: return .none
        case .ready, .opening, .asked, .storing, .receiving, .pausing, .retrying:
            state = .finished(received: progress.received)
            return .finish(ending)
        }
    }

    /// The head that answers the first question contradicts itself.
    mutating func failHead(_ refusal: Refusal, _ plan: RetrievalPlan, _ staleMayServe: () -> Bool) -> Action {
        fail(.first(plan), refusal, askedAt, staleMayServe)
    }

    /// The origin did not answer the question, which can be put again. A stored response that may be served is better than another attempt.
    private mutating func failUnlessRetried(
        _ question: Question, _ refusal: Refusal, _ now: WallTime, _ staleMayServe: () -> Bool
    ) -> Action {
        // A body that broke off has attempts of its own.
        if case .rest = question { return fail(question, refusal, now, staleMayServe) }
        guard refusal.mayPass, retries < request.retriesMax, !staleMayServe() else {
            return fail(question, refusal, now, staleMayServe)
        }
        retries += 1
        state = .retrying(question, refusal)
        return .retry(attempt: retries)
    }

    /// The origin did not answer the question.
    ///
    /// - Parameter isLast: there is no time for another attempt.
    private mutating func fail(
        _ question: Question, _ refusal: Refusal, _ now: WallTime, _ staleMayServe: () -> Bool, isLast: Bool = false
    ) -> Action {
        switch question {
        case .first:
            guard staleMayServe() else { return finish(.failed(refusal)) }
            listener = listener.whenAnswered
            state = .finished(received: 0)
            return .serveStale(status: 0)
        case .hole:
            let ending: Ending = isClientWaiting ? .failed(refusal) : .brokenOff(keepsPart: true)
            return .abandonHole(removesStored: false, then: finish(ending))
        case .rest(_, let receiving):
            return isLast ? finish(.brokenOff(keepsPart: true)) : resume(receiving, now)
        }
    }

    var isClientWaiting: Bool { if case .waiting = listener { true } else { false } }

    /// Pauses before it asks for the missing rest. Gives up if the rest cannot be asked for, or if too many attempts brought nothing.
    mutating func resume(_ receiving: Receiving, _ now: WallTime) -> Action {
        var receiving = receiving
        guard let rest = rest(of: receiving, now),
            let pause = receiving.resumptions.nextPause(received: receiving.received)
        else { return finish(.brokenOff(keepsPart: true)) }
        state = .pausing(rest, receiving)
        return .pause(milliseconds: pause)
    }

    /// The range request that completes the body (RFC 9110 §14.2, with `If-Range`). Returns nil if the request is not a GET that can be
    /// sent again, or if the response has no strong validator or its origin accepts no ranges.
    private func rest(of receiving: Receiving, _ now: WallTime) -> PartAsked? {
        guard request.cache.method == .get, request.isReplayable, !request.isUpgrade else { return nil }
        let received = Int(clamping: receiving.received)
        let total = receiving.total.map { Int(clamping: $0) }
        if let total, received >= total { return nil }
        let rest: PartAsked
        switch sink {
        case .discard: return nil
        case .store(let cached): rest = PartAsked(stored: cached, start: received, end: nil, wholeLength: total)
        case .fill(let cached, let start, let end, let whole):
            rest = PartAsked(stored: cached, start: start + received, end: end, wholeLength: whole)
        case .pass:
            guard let passed, passed.status == 200, case .answered = listener else { return nil }
            let described = CachedResponse(
                status: passed.status, fields: passed.fields, requestTime: askedAt, responseTime: now,
                policy: request.policy)
            rest = PartAsked(stored: described, start: received, end: nil, wholeLength: total)
        }
        return rest.canBeAsked ? rest : nil
    }
}

extension Retrieval.Client {
    /// The client's situation once its final head is decided.
    var whenAnswered: Self {
        switch self {
        case .waiting, .answered: .answered
        case .none: .none
        }
    }
}
