import Caching
import Message

/// Decides what happens with a final head: store the response, pass it on, or take it as the result of a validation
/// (RFC 9111 §3, §4.3).
extension Retrieval {
    /// Whether the stored responses for the target are invalid although the response is refused: what an unsafe request did, it has done, even
    /// if its answer contradicts itself (RFC 9111 §4.4).
    package func invalidates(refusing head: Head) -> Bool { Caching.invalidates(request.cache, status: head.status) }

    mutating func decide(_ head: Head, _ plan: RetrievalPlan, _ staleMayServe: () -> Bool) -> Action {
        precondition(!head.isStale || !plan.isConditional, "the driver takes no stale response where one is validated")
        if head.status == 304, plan.isConditional {
            guard let confirmed = confirmed(by: head) else { return askForTheWhole(plan) }
            return answer(.freshen(confirmed), .discard, receiving(total: nil))
        }
        if case .contradictory = promise(head.status, head.fields) {
            return failHead(.responseInvalid, plan, staleMayServe)
        }
        // No range was sent, and in parts that nothing proves a client could get all of a wrong body (RFC 9110 §15.3.7).
        if plan.asksForWhole, head.status == 206 { return failHead(.responseInvalid, plan, staleMayServe) }
        if head.isStale { return pass(Passed(head), notStored: .staleElsewhere, invalidates: false) }
        let invalidates = Caching.invalidates(request.cache, status: head.status)
        if head.status == 206, request.cache.method == .get, request.cache.hasRange {
            return decidePart(head, plan, invalidates: invalidates)
        }
        if head.handling.countsAsFailure(head.status), staleMayServe() {
            listener = listener.whenAnswered
            // Close the connection unless the body is empty: a new connection costs less than reading a body that nobody needs.
            sink = .discard
            state = head.length == 0 ? .receiving(receiving(total: 0)) : .finished(received: 0)
            return .serveStale(status: head.status)
        }
        let decision = decideStoring(
            of: request.cache, status: head.status, fields: head.fields, policy: request.policy,
            handling: head.handling, particulars: head.particulars, requestTime: askedAt,
            responseTime: head.receivedAt, target: request.postTarget)
        switch decision {
        case .store(let cached):
            toStore(Passed(head), .store(cached), total: head.length)
            return .store(invalidates: invalidates)
        case .doNotStore(let reason):
            return pass(Passed(head), notStored: reason, invalidates: invalidates)
        }
    }

    /// The stored response that a 304 selects, among those whose validators were sent (RFC 9111 §4.3.4). Nil if it selects none.
    private func confirmed(by head: Head) -> Confirmed? {
        guard let stored else { return nil }
        if let selected = stored.selected {
            return confirms(head.fields, selected, received: head.receivedAt) ? .selected : nil
        }
        return Caching.selected(by: head.fields, among: stored.candidates, received: head.receivedAt).first
            .map { .candidate($0) }
    }

    /// The 304 selects no stored response, so it updates nothing. Asks again without conditions (RFC 9111 §4.3.4).
    private mutating func askForTheWhole(_ plan: RetrievalPlan) -> Action {
        stored = stored?.selected.map { Stored(selected: $0) }
        var plan = plan
        plan.isConditional = false
        state = .opening(.first(plan))
        return .outdateSelected
    }

    private mutating func answer(_ action: Action, _ sink: Sink, _ receiving: Receiving) -> Action {
        listener = listener.whenAnswered
        self.sink = sink
        state = .receiving(receiving)
        return action
    }

    private mutating func toStore(_ response: Passed, _ sink: Sink, total: UInt64?) {
        passed = response
        self.sink = sink
        state = .storing(receiving(response.status, response.fields, total: total))
    }

    /// The bytes that a 206 announces in `Content-Range`. A response to HEAD has no bytes, whatever its fields say.
    private func promise(_ status: UInt16, _ fields: Fields) -> PartPromise {
        request.cache.method == .head ? .none : promisedPart(status: status, fields: fields)
    }

    private func receiving(_ status: UInt16, _ fields: Fields, total: UInt64?) -> Receiving {
        var receiving = receiving(total: total)
        if case .bytes(let count) = promise(status, fields) { receiving.promised = count }
        return receiving
    }

    mutating func pass(
        _ response: Passed, notStored: NotStoredReason?, invalidates: Bool, wantedWhole: UInt64? = nil
    ) -> Action {
        let passing = Passing(
            notStored: notStored, invalidates: invalidates, updatesStored: request.cache.method == .head,
            wantedWhole: wantedWhole)
        passed = response
        return answer(
            .pass(passing), .pass, receiving(response.status, response.fields, total: response.length))
    }

    // MARK: parts

    /// The response to the client's own range request (RFC 9111 §3.3).
    private mutating func decidePart(_ head: Head, _ plan: RetrievalPlan, invalidates: Bool) -> Action {
        let decision = decideStoringPart(
            of: request.cache, status: head.status, fields: head.endToEnd ?? head.fields, policy: request.policy,
            handling: head.handling, particulars: head.particulars, requestTime: askedAt,
            responseTime: head.receivedAt)
        switch decision {
        case .doNotStore(let reason): return pass(Passed(head), notStored: reason, invalidates: invalidates)
        case .storeWhole(let length):
            return pass(Passed(head), notStored: .unproven, invalidates: invalidates, wantedWhole: length)
        case .store(let part):
            guard let start = Int(exactly: part.range.lowerBound), let end = Int(exactly: part.range.upperBound),
                let whole = Int(exactly: part.total)
            else { return pass(Passed(head), notStored: .partUnplaced, invalidates: invalidates) }
            let sink = Sink.fill(part.whole, start: start, end: end, wholeLength: whole)
            toStore(Passed(head), sink, total: UInt64(end - start))
            return .storePart(part)
        }
    }

    /// The response to the request for a hole.
    mutating func decide(
        _ head: Head, hole part: PartAsked, _ plan: RetrievalPlan, _ staleMayServe: () -> Bool
    ) -> Action {
        guard case .goesOn(let range, let whole) = judge(head, part), let end = part.end else {
            let removesStored = !head.isStale && [200, 404, 410, 416].contains(head.status)
            return abandon(hole: part, removesStored: removesStored, head, plan, staleMayServe)
        }
        if let objection = objectionToBytes(of: request.cache, fields: head.fields, handling: head.handling) {
            // As after a 304 that says so, what is stored leaves the store.
            let isOfClient = objection == .requestNoStore || objection == .policy
            return abandon(hole: part, removesStored: !isOfClient, head, plan, staleMayServe)
        }
        let sink = Sink.fill(part.stored, start: part.start, end: end, wholeLength: whole)
        precondition(
            range.lowerBound == part.start && range.upperBound <= end, "the part is the one that was asked for")
        return answer(
            .fill(isFirst: isClientWaiting), sink,
            receiving(head.status, head.fields, total: UInt64(end - part.start)))
    }

    /// Gives the hole up: the origin has another representation by now, serves no parts, or does not let the bytes be stored.
    private mutating func abandon(
        hole part: PartAsked, removesStored: Bool, _ head: Head, _ plan: RetrievalPlan, _ staleMayServe: () -> Bool
    ) -> Action {
        stored = nil
        guard isClientWaiting else {
            // The client has bytes of the old representation. They cannot be completed.
            return .abandonHole(removesStored: removesStored, then: finish(.brokenOff(keepsPart: true)))
        }
        if head.status == 206 || head.status == 416 {
            // The response answers neither the hole nor the client's request. Send the client's own request.
            state = .opening(.first(plan))
            return .abandonHole(removesStored: removesStored, then: .reopen)
        }
        return .abandonHole(removesStored: removesStored, then: decide(head, plan, staleMayServe))
    }

    /// The response to the request for the rest of a body.
    mutating func decide(_ head: Head, rest part: PartAsked, _ receiving: Receiving) -> Action {
        var receiving = receiving
        switch judge(head, part) {
        case .goesOn
        where isStored && objectionToBytes(of: request.cache, fields: head.fields, handling: head.handling) != nil:
            return finish(.brokenOff(keepsPart: false))
        case .goesOn(let range, let length):
            if receiving.total == nil { receiving.total = UInt64(length) }
            receiving.promised = receiving.received + UInt64(range.count)
            state = .receiving(receiving)
            return .goOn
        case .changed:
            return finish(.brokenOff(keepsPart: false))
        case .refused:
            // An origin that is overloaded or starting may answer the next attempt.
            return head.handling.countsAsFailure(head.status)
                ? resume(receiving, head.receivedAt) : finish(.brokenOff(keepsPart: true))
        }
    }

    /// Whether what arrives goes into the store.
    private var isStored: Bool {
        switch sink {
        case .store, .fill: true
        case .pass, .discard: false
        }
    }

    private func judge(_ head: Head, _ part: PartAsked) -> ResumeAnswer {
        continues(
            status: head.status, fields: head.fields, stored: part.stored, from: part.start, to: part.end,
            total: part.wholeLength)
    }
}
