package import Access
package import Caching
package import Message

/// The machine of one request, from its head to the choice of an answer: identifies the user, asks Access, looks in the store, and
/// decides whether this request or another one asks the origin.
///
/// ```
/// started ─head─▶ identifying ─▶ deciding ─▶ lookingUp ─▶ serving ◀────────────┐
///                                   │            ├──▶ choosingLeader ─▶ following
///                                   │            │            ▼             │
///                                   │            └──────▶ retrieving ◀──────┘
///                                   └──▶ tunnelling
/// every state but settled ─▶ settled (refused)
/// ```
///
/// A value without references. The driver holds the objects that events and actions refer to (the head, the selected stored
/// response, the retrieval), reports what it found, and performs the action that is returned. `Proxy.explain` drives the same machine
/// with the same questions.
///
/// Each event is decided for each state. An event that the driver cannot meet in a state is a fault of the driver and traps.
package struct RequestMachine: Sendable {
    /// What the machine knows of the request: its head, and what the rules say about it.
    package struct Request: Sendable {
        package var cache: CacheRequest
        package var isTunnel: Bool
        package var isUpgrade: Bool
        package var hasBody: Bool
        package var needsIdentity: Bool
        /// The request has `If-Match` or `If-Unmodified-Since`, which only the origin can evaluate (RFC 9110 §13.1.1), and no rule says that
        /// a stored response answers it.
        package var asksForOriginState: Bool
        /// The setting `cache.collapse` is on: requests for the same key share one retrieval.
        package var collapses: Bool
        /// How the zone, the rules and the client's `Larder-Policy` say that the cache is used.
        package var use: CacheUse
        /// Responses to range requests are stored, and can answer other requests.
        package var storesParts: Bool
        /// The request is for a part of a body that did not have its digest the last time: it gets bytes of a whole that is proven, and none else.
        package var takesWhole: Bool

        package init(
            cache: CacheRequest, isTunnel: Bool, isUpgrade: Bool, hasBody: Bool, needsIdentity: Bool,
            asksForOriginState: Bool, collapses: Bool, use: CacheUse = [], storesParts: Bool = true,
            takesWhole: Bool = false
        ) {
            self.use = use
            self.storesParts = storesParts
            self.takesWhole = takesWhole
            self.cache = cache
            self.isTunnel = isTunnel
            self.isUpgrade = isUpgrade
            self.hasBody = hasBody
            self.needsIdentity = needsIdentity
            self.asksForOriginState = asksForOriginState
            self.collapses = collapses
        }

        /// Whether a stored response may answer this request (RFC 9111 §4): a GET or HEAD without a body.
        var mayUseStore: Bool {
            (cache.method == .get || cache.method == .head) && !hasBody && !isUpgrade && !asksForOriginState
                && !cache.overridesMethod && !use.contains(.noRead)
        }

        /// Whether other requests may wait for the answer to this one. Its answer must be one that can serve them.
        var mayLead: Bool {
            collapses && isStored && cache.method == .get && (!cache.hasRange || storesParts || takesWhole)
                && !cache.hasPreconditions
        }

        /// Whether the request takes a transfer that is under way, and leads none: a part of a response that is stored as a whole alone.
        var mayJoin: Bool {
            collapses && isStored && cache.method == .get && cache.hasRange && !storesParts && !cache.hasPreconditions
                && mayFollow
        }

        /// Whether the request may have the answer to a question that the origin was asked before it came. Not with `no-cache` or
        /// `max-age=0` (RFC 9111 §5.2.1.1, §5.2.1.4), unless the policy says that anything stored will do.
        var mayFollow: Bool {
            use.contains(.cacheFirst) || !(cache.directives.noCache || cache.directives.maxAge == .zero)
        }

        /// Whether the request allows that its response is stored.
        var isStored: Bool {
            !cache.directives.noStore && !cache.overridesMethod && !use.contains(.noWrite)
        }

        /// Whether the origin must not be asked (`only-if-cached`, RFC 9111 §5.2.1.7; the policy `cache-only`).
        package var isForStoreOnly: Bool { cache.directives.onlyIfCached || use.contains(.cacheOnly) }
    }

    /// What the driver found.
    package enum Event: Sendable {
        /// The head is complete. The first event.
        case head
        /// The user is known. Follows `identify`.
        case identified
        /// The verdict of Access. Follows `decide`.
        case verdict(Verdict)
        /// The result of `lookUp`: how the selected stored response may be reused. Nil if none is stored.
        case stored(Reuse?)
        /// The selected stored response must be validated, but has no validator.
        case outdated(ValidateReason)
        /// Responses are stored under the key, but no variant matches the request (RFC 9111 §4.1). `hasValidators`: some of them
        /// have validators, so the origin can select one with a 304 (§4.3.1).
        case variantMissing(hasValidators: Bool)
        /// The selected response is still arriving, and the requested bytes are so far ahead that asking for them is faster.
        case farAhead
        /// This request leads a transfer. One of three results of `lead`.
        case leading
        /// The store changed since the look-up.
        case lookAgain
        /// Another request leads a transfer for the key.
        case following
        /// A response for the key has proven a moment ago to be for one client alone: nobody waits for another's.
        case keptApart
        /// No transfer for the key is under way.
        case nobodyLeads
        /// The transfer that this request follows published a response.
        case leaderPublished(PublishedUse)
        /// The transfer ended with a response that only its leader may have.
        case leaderNotShared
        /// The transfer took longer than this request waits for a leader.
        case collapseTimedOut
        /// The transfer failed. `staleMayServe`: the selected stored response may be served instead.
        case leaderFailed(Refusal, staleMayServe: Bool)
        /// The body that was to be served is gone, or cannot be decoded for this client. The reason is reported when the origin is
        /// asked.
        case bodyUnavailable(CacheStatus.ForwardReason)
        /// The answer needs bytes that the stored response lacks and that nobody is fetching.
        case holeFound
        /// The store cannot keep the bytes that are missing.
        case partNotKept
        case refused(Refusal)
    }

    /// How a follower can use the response that its leader published.
    package enum PublishedUse: Equatable, Sendable {
        /// It may answer the follower as it is.
        case serve
        /// It may answer the follower if the origin confirms it, asked with the follower's own fields (RFC 9111 §4, §5.2.2.4).
        case validate
        case unsuitable

        /// - Parameter reuse: the decision about the response as a stored one, for the follower.
        package init(_ reuse: Reuse, hasValidator: Bool) {
            switch reuse {
            case .serve, .serveStale, .serveStaleAndRevalidate: self = .serve
            case .validate: self = hasValidator ? .validate : .unsuitable
            case .fetch, .refuse: self = .unsuitable
            }
        }
    }

    /// What the driver does next.
    package enum Action: Equatable, Sendable {
        /// Find out who the user is: `identified` or `refused` follows.
        case identify
        /// Ask Access: `verdict` follows. `resolved`: with the addresses of the destination.
        case decide(resolved: Bool)
        case tunnel
        /// Look in the store: `stored`, `outdated`, `variantMissing` or `farAhead` follows.
        case lookUp
        /// Serve the selected stored response.
        case serve(age: Seconds, ttl: Seconds)
        /// Serve the selected response although it is stale, and validate it without the client (RFC 5861 §3).
        case serveAndRevalidate(age: Seconds, ttl: Seconds)
        /// Serve the response that the leader published.
        case servePublished
        /// Serve the selected response although it is stale, because the leader failed (RFC 9111 §4.2.4).
        case serveStale
        /// Join the transfer for this key, as its leader if there is none: `leading`, `following`, `keptApart` or `lookAgain` follows.
        case lead
        /// Join the transfer for this key if there is one: `following`, `nobodyLeads`, `keptApart` or `lookAgain` follows.
        case join
        /// Wait for the leader: `leaderPublished`, `leaderNotShared`, `leaderFailed` or `collapseTimedOut` follows.
        case follow
        /// Ask the origin.
        case retrieve(RetrievalPlan)
        /// Ask the origin for the bytes that the stored response lacks.
        case fillHole
        case refuse(Refusal)
    }

    private enum State: Sendable {
        case started
        case identifying
        case deciding
        case lookingUp
        case choosingLeader(RetrievalPlan)
        case following(CacheStatus.ForwardReason)
        case retrieving
        case serving
        case tunnelling
        case settled
    }

    private var state: State = .started
    /// Why the request is forwarded (RFC 9211 §2.2), or would have been. Nil if it ended before that was decided.
    package private(set) var forwardReason: CacheStatus.ForwardReason?
    package private(set) var request: Request

    package init(_ request: Request) { self.request = request }

    /// Replaces what the rules say about the use of the cache. For rules that depend on the user, once the user is known.
    package mutating func apply(
        use: CacheUse, storesParts: Bool, takesWhole: Bool, collapses: Bool, asksForOriginState: Bool
    ) {
        request.use = use
        request.storesParts = storesParts
        request.takesWhole = takesWhole
        request.collapses = collapses
        request.asksForOriginState = asksForOriginState
    }

    /// From now on, the part that is wanted comes from a whole that is proven (`Request.takesWhole`).
    package mutating func takeWhole() { request.takesWhole = true }

    /// Takes an event and returns what the driver does next. Traps if the event cannot occur in the present state.
    ///
    /// Each state decides every event by name, so that a new event does not compile until each state has an answer to it.
    package mutating func on(_ event: Event) -> Action {
        switch state {
        case .started: return started(event)
        case .identifying: return identifying(event)
        case .deciding: return deciding(event)
        case .lookingUp: return lookingUp(event)
        case .choosingLeader(let plan): return choosingLeader(event, plan)
        case .following(let reason): return following(event, reason)
        case .retrieving, .serving: return answering(event)
        case .tunnelling: return tunnelling(event)
        case .settled: return settled(event)
        }
    }

    private mutating func started(_ event: Event) -> Action {
        switch event {
        case .head:
            state = request.needsIdentity ? .identifying : .deciding
            return request.needsIdentity ? .identify : .decide(resolved: false)
        case .refused(let refusal): return refuse(refusal)
        case .identified, .verdict, .stored, .outdated, .variantMissing, .farAhead, .leading, .lookAgain, .following,
            .keptApart, .nobodyLeads,
            .leaderPublished, .leaderNotShared, .collapseTimedOut, .leaderFailed, .bodyUnavailable, .holeFound,
            .partNotKept:
            outOfOrder()
        }
    }

    private mutating func identifying(_ event: Event) -> Action {
        switch event {
        case .identified:
            state = .deciding
            return .decide(resolved: false)
        case .refused(let refusal): return refuse(refusal)
        case .head, .verdict, .stored, .outdated, .variantMissing, .farAhead, .leading, .lookAgain, .following,
            .keptApart, .nobodyLeads,
            .leaderPublished, .leaderNotShared, .collapseTimedOut, .leaderFailed, .bodyUnavailable, .holeFound,
            .partNotKept:
            outOfOrder()
        }
    }

    private mutating func deciding(_ event: Event) -> Action {
        switch event {
        case .verdict(.deny(let denial)): return refuse(Refusal(denial))
        case .verdict(.needsAddress): return .decide(resolved: true)
        case .verdict(.allow): return allowed()
        case .verdict(.needsServerName):
            precondition(request.isTunnel, "only a tunnel has a server name to come")
            return allowed()
        case .refused(let refusal): return refuse(refusal)
        case .head, .identified, .stored, .outdated, .variantMissing, .farAhead, .leading, .lookAgain, .following,
            .keptApart, .nobodyLeads,
            .leaderPublished, .leaderNotShared, .collapseTimedOut, .leaderFailed, .bodyUnavailable, .holeFound,
            .partNotKept:
            outOfOrder()
        }
    }

    private mutating func allowed() -> Action {
        if request.isTunnel {
            state = .tunnelling
            forwardReason = .method
            return .tunnel
        }
        guard request.mayUseStore else {
            if request.isForStoreOnly { return refuse(.onlyIfCached) }
            return retrieveAlone(request.hasBody || !request.cache.isSafe ? .method : .bypass)
        }
        state = .lookingUp
        return .lookUp
    }

    private mutating func lookingUp(_ event: Event) -> Action {
        switch event {
        case .stored(let reuse): return decided(reuse)
        case .outdated(let why): return leadOrRetrieve(RetrievalPlan(reason: why.forwardReason))
        case .variantMissing(let hasValidators):
            return missed(.varyMiss, isConditional: hasValidators && request.cache.method == .get)
        case .farAhead: return retrieveAlone(.partial)
        case .refused(let refusal): return refuse(refusal)
        case .head, .identified, .verdict, .leading, .lookAgain, .following, .keptApart, .nobodyLeads, .leaderPublished,
            .leaderNotShared,
            .collapseTimedOut, .leaderFailed, .bodyUnavailable, .holeFound, .partNotKept:
            outOfOrder()
        }
    }

    private mutating func decided(_ reuse: Reuse?) -> Action {
        switch reuse {
        case .serve(let age, let ttl), .serveStale(let age, let ttl):
            state = .serving
            return .serve(age: age, ttl: ttl)
        case .validate(let why):
            return leadOrRetrieve(
                RetrievalPlan(reason: why.forwardReason, isConditional: request.cache.method == .get))
        case .serveStaleAndRevalidate(let age, let ttl):
            state = .serving
            return .serveAndRevalidate(age: age, ttl: ttl)
        case .fetch(let reason): return retrieveAlone(reason.forwardReason)
        case .refuse: return refuse(.onlyIfCached)
        case nil: return missed(.uriMiss)
        }
    }

    private mutating func choosingLeader(_ event: Event, _ plan: RetrievalPlan) -> Action {
        switch event {
        case .leading:
            var plan = plan
            plan.isLeading = true
            return retrieve(plan)
        case .lookAgain:
            state = .lookingUp
            return .lookUp
        case .following:
            // The transfer began before this request came.
            guard request.mayFollow else { return retrieve(plan) }
            state = .following(plan.reason)
            return .follow
        case .keptApart, .nobodyLeads: return retrieve(plan)
        case .refused(let refusal): return refuse(refusal)
        case .head, .identified, .verdict, .stored, .outdated, .variantMissing, .farAhead, .leaderPublished,
            .leaderNotShared, .collapseTimedOut, .leaderFailed, .bodyUnavailable, .holeFound, .partNotKept:
            outOfOrder()
        }
    }

    private mutating func following(_ event: Event, _ reason: CacheStatus.ForwardReason) -> Action {
        switch event {
        case .leaderPublished(.serve):
            state = .serving
            return .servePublished
        case .leaderPublished(.validate): return retrieve(RetrievalPlan(reason: reason, isConditional: true))
        case .leaderPublished(.unsuitable), .leaderNotShared, .collapseTimedOut:
            return retrieveAlone(reason)
        // What the leader wanted was the whole; the part that this request wants may be had all the same.
        case .leaderFailed(let refusal, staleMayServe: false)
        where request.mayJoin && !request.takesWhole && refusal != .digestMismatch:
            return retrieveAlone(reason)
        case .leaderFailed(let refusal, let staleMayServe):
            guard staleMayServe else { return refuse(refusal) }
            state = .serving
            return .serveStale
        case .refused(let refusal): return refuse(refusal)
        case .head, .identified, .verdict, .stored, .outdated, .variantMissing, .farAhead, .leading, .lookAgain,
            .following, .keptApart, .nobodyLeads, .bodyUnavailable, .holeFound, .partNotKept:
            outOfOrder()
        }
    }

    /// A stored response is served, as the result of the look-up or of a retrieval, until it turns out that it cannot be as it is.
    private mutating func answering(_ event: Event) -> Action {
        switch event {
        case .bodyUnavailable(let reason): return request.isForStoreOnly ? refuse(.onlyIfCached) : retrieveAlone(reason)
        case .partNotKept: return request.isForStoreOnly ? refuse(.onlyIfCached) : retrieveAlone(.partial)
        case .holeFound:
            if request.isForStoreOnly { return refuse(.onlyIfCached) }
            state = .retrieving
            return .fillHole
        case .refused(let refusal): return refuse(refusal)
        case .head, .identified, .verdict, .stored, .outdated, .variantMissing, .farAhead, .leading, .lookAgain,
            .following, .keptApart, .nobodyLeads, .leaderPublished, .leaderNotShared, .collapseTimedOut, .leaderFailed:
            outOfOrder()
        }
    }

    private mutating func tunnelling(_ event: Event) -> Action {
        switch event {
        case .refused(let refusal): return refuse(refusal)
        case .head, .identified, .verdict, .stored, .outdated, .variantMissing, .farAhead, .leading, .lookAgain,
            .following, .keptApart, .nobodyLeads, .leaderPublished, .leaderNotShared, .collapseTimedOut, .leaderFailed,
            .bodyUnavailable,
            .holeFound, .partNotKept:
            outOfOrder()
        }
    }

    private mutating func settled(_ event: Event) -> Action {
        switch event {
        // The reason that was found last is the one that the client gets, if it has not been sent the other.
        case .refused(let refusal): return refuse(refusal)
        case .head, .identified, .verdict, .stored, .outdated, .variantMissing, .farAhead, .leading, .lookAgain,
            .following, .keptApart, .nobodyLeads, .leaderPublished, .leaderNotShared, .collapseTimedOut, .leaderFailed,
            .bodyUnavailable,
            .holeFound, .partNotKept:
            outOfOrder()
        }
    }

    private mutating func missed(_ reason: CacheStatus.ForwardReason, isConditional: Bool = false) -> Action {
        if request.isForStoreOnly { return refuse(.onlyIfCached) }
        return leadOrRetrieve(RetrievalPlan(reason: reason, isConditional: isConditional))
    }

    private mutating func leadOrRetrieve(_ plan: RetrievalPlan) -> Action {
        forwardReason = plan.reason
        // The validators replace the client's own conditions, so the result of a validation can serve other requests as well.
        let mayLead = request.mayLead || (request.collapses && plan.isConditional && request.isStored)
        guard mayLead || request.mayJoin else { return retrieve(plan) }
        state = .choosingLeader(plan)
        return mayLead ? .lead : .join
    }

    private mutating func retrieveAlone(_ reason: CacheStatus.ForwardReason) -> Action {
        retrieve(RetrievalPlan(reason: reason))
    }

    private mutating func retrieve(_ plan: RetrievalPlan) -> Action {
        var plan = plan
        plan.asksForWhole = request.takesWhole && !plan.isConditional
        state = .retrieving
        forwardReason = plan.reason
        return .retrieve(plan)
    }

    private mutating func refuse(_ refusal: Refusal) -> Action {
        state = .settled
        return .refuse(refusal)
    }

    private func outOfOrder() -> Never {
        preconditionFailure("the driver delivered an event that this state cannot meet")
    }
}
