package import Access
package import Caching
package import Message

/// One request from its head to the choice of an answer: who asks, may they, what is stored, who asks the origin.
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
/// A value without references. The driver carries what the machine speaks of (the head, the stored response that was selected,
/// the retrieval), tells the machine what it found, and carries out what the machine returns. `explain` leads the same
/// machine through the same questions.
package struct RequestMachine: Sendable {
    /// What the head of the request says that matters for the order of things.
    package struct Request: Sendable {
        package var cache: CacheRequest
        package var isTunnel: Bool
        package var isUpgrade: Bool
        package var hasBody: Bool
        package var needsIdentity: Bool
        /// `If-Match` or `If-Unmodified-Since`: about the state of the origin, which only the origin knows (RFC 9110 §13.1.1).
        package var asksForOriginState: Bool
        /// Collapsing is switched on.
        package var collapses: Bool
        /// What the zone, the rules and the client say about the use of the cache.
        package var use: CacheUse
        /// Answers to ranges are stored, and can serve others.
        package var storesParts: Bool

        package init(
            cache: CacheRequest, isTunnel: Bool, isUpgrade: Bool, hasBody: Bool, needsIdentity: Bool,
            asksForOriginState: Bool, collapses: Bool, use: CacheUse = [], storesParts: Bool = true
        ) {
            self.use = use
            self.storesParts = storesParts
            self.cache = cache
            self.isTunnel = isTunnel
            self.isUpgrade = isUpgrade
            self.hasBody = hasBody
            self.needsIdentity = needsIdentity
            self.asksForOriginState = asksForOriginState
            self.collapses = collapses
        }

        /// GET and HEAD without a body are answered from the store where it allows that (RFC 9111 §4).
        var mayUseStore: Bool {
            (cache.method == .get || cache.method == .head) && !hasBody && !isUpgrade && !asksForOriginState
                && !cache.overridesMethod && !use.contains(.noRead)
        }

        /// Others may wait for the answer to this request: it must be one that can serve them.
        var mayLead: Bool {
            collapses && isStored && cache.method == .get && (!cache.hasRange || storesParts) && !cache.hasPreconditions
        }

        /// The answer may go into the store, as far as the request has a say in it.
        var isStored: Bool {
            !cache.directives.noStore && !cache.overridesMethod && !use.contains(.noWrite)
        }

        /// The origin may not be asked (RFC 9111 §5.2.1.7; `cache-only`).
        package var isForStoreOnly: Bool { cache.directives.onlyIfCached || use.contains(.cacheOnly) }
    }

    package enum Event: Sendable {
        case head
        case identified
        case verdict(Verdict)
        /// What the store holds for the request; nil where nothing is selected.
        case stored(Reuse?)
        /// What is stored may not be served without asking, and has no validator to ask with.
        case outdated(ValidateReason)
        /// The store holds the key, but no variant that suits the request (RFC 9111 §4.1). `hasValidators`: the variants that are
        /// there have some, so that the origin can say that one of them suits (§4.3.1).
        case variantMissing(hasValidators: Bool)
        /// What is stored is on its way, but the bytes that the request wants are far ahead: not worth waiting for.
        case farAhead
        case leading
        case lookAgain
        case following
        /// The transfer that was followed published its response. `suits`: this request may have it.
        case leaderPublished(suits: Bool)
        case leaderNotShared
        /// The transfer that was followed takes too long.
        case waitedEnough
        /// The transfer that was followed failed. `staleMayServe`: this request takes what is stored instead.
        case leaderFailed(Refusal, staleMayServe: Bool)
        /// The body that was to be served cannot be read any more, or not be decoded for this client. The reason is the one to ask the
        /// origin with.
        case bodyLost(CacheStatus.ForwardReason)
        /// The answer stands before bytes that nobody has fetched.
        case holeFound
        /// What is missing of the stored response cannot be kept.
        case partNotKept
        case refused(Refusal)
    }

    package enum Action: Equatable, Sendable {
        case identify
        /// Ask Access; with the addresses of the host where `resolved`.
        case decide(resolved: Bool)
        case tunnel
        case lookUp
        case serve(age: Seconds, ttl: Seconds)
        /// Serve the stale response now and validate it behind the client's back (RFC 5861 §3).
        case serveAndRevalidate(age: Seconds, ttl: Seconds)
        /// Serve what the transfer that was followed published.
        case servePublished
        /// Serve what is stored, because the transfer that was followed failed (RFC 9111 §4.2.4).
        case serveStale
        /// Become the leader of a transfer for this key, or its follower.
        case lead
        case follow
        case retrieve(RetrievalPlan)
        /// Retrieve the bytes that are missing in the stored response.
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
    /// Why the request is forwarded, or would have been but for a failure; nil where it ended before that was a question.
    package private(set) var forwardReason: CacheStatus.ForwardReason?
    package private(set) var request: Request

    package init(_ request: Request) { self.request = request }

    /// The rules look at who asks: now that it is known, they say something else about the use of the cache.
    package mutating func apply(use: CacheUse, storesParts: Bool) {
        request.use = use
        request.storesParts = storesParts
    }

    package mutating func on(_ event: Event) -> Action {
        switch event {
        case .head: return head()
        case .identified: return identified()
        case .verdict(let verdict): return decided(verdict)
        case .stored, .outdated, .variantMissing, .farAhead: return lookedUp(event)
        case .leading, .lookAgain, .following: return leaderChosen(event)
        case .leaderPublished, .leaderNotShared, .waitedEnough, .leaderFailed: return leaderResolved(event)
        case .bodyLost, .holeFound, .partNotKept: return servingHindered(event)
        case .refused(let refusal): return refuse(refusal)
        }
    }

    private mutating func head() -> Action {
        guard case .started = state else { outOfOrder() }
        state = request.needsIdentity ? .identifying : .deciding
        return request.needsIdentity ? .identify : .decide(resolved: false)
    }

    private mutating func identified() -> Action {
        guard case .identifying = state else { outOfOrder() }
        state = .deciding
        return .decide(resolved: false)
    }

    private mutating func decided(_ verdict: Verdict) -> Action {
        guard case .deciding = state else { outOfOrder() }
        switch verdict {
        case .deny(let denial): return refuse(Refusal(denial))
        case .needsAddress: return .decide(resolved: true)
        case .allow: break
        }
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

    private mutating func lookedUp(_ event: Event) -> Action {
        guard case .lookingUp = state else { outOfOrder() }
        switch event {
        case .stored(let reuse): return decided(reuse)
        case .outdated(let why): return leadOrRetrieve(RetrievalPlan(reason: why.forwardReason))
        case .variantMissing(let hasValidators):
            return missed(.varyMiss, isConditional: hasValidators && request.cache.method == .get)
        case .farAhead: return retrieveAlone(.partial)
        case .head, .identified, .verdict, .leading, .lookAgain, .following, .leaderPublished, .leaderNotShared,
            .waitedEnough, .leaderFailed, .bodyLost, .holeFound, .partNotKept, .refused:
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

    private mutating func leaderChosen(_ event: Event) -> Action {
        guard case .choosingLeader(var plan) = state else { outOfOrder() }
        switch event {
        case .leading:
            plan.isLeading = true
            state = .retrieving
            return .retrieve(plan)
        case .lookAgain:
            state = .lookingUp
            return .lookUp
        case .following:
            state = .following(plan.reason)
            return .follow
        case .head, .identified, .verdict, .stored, .outdated, .variantMissing, .farAhead, .leaderPublished,
            .leaderNotShared, .waitedEnough, .leaderFailed, .bodyLost, .holeFound, .partNotKept, .refused:
            outOfOrder()
        }
    }

    private mutating func leaderResolved(_ event: Event) -> Action {
        guard case .following(let reason) = state else { outOfOrder() }
        switch event {
        case .leaderPublished(suits: true):
            state = .serving
            return .servePublished
        case .leaderPublished(suits: false), .leaderNotShared, .waitedEnough:
            return retrieveAlone(reason)
        case .leaderFailed(let refusal, let staleMayServe):
            guard staleMayServe else { return refuse(refusal) }
            state = .serving
            return .serveStale
        case .head, .identified, .verdict, .stored, .outdated, .variantMissing, .farAhead, .leading, .lookAgain,
            .following, .bodyLost, .holeFound, .partNotKept, .refused:
            outOfOrder()
        }
    }

    /// What is stored was to be served, by this request's own choice or as the outcome of its retrieval.
    private mutating func servingHindered(_ event: Event) -> Action {
        switch state {
        case .serving, .retrieving: break
        case .started, .identifying, .deciding, .lookingUp, .choosingLeader, .following, .tunnelling, .settled:
            outOfOrder()
        }
        if request.isForStoreOnly { return refuse(.onlyIfCached) }
        switch event {
        case .bodyLost(let reason): return retrieveAlone(reason)
        case .partNotKept: return retrieveAlone(.partial)
        case .holeFound:
            state = .retrieving
            return .fillHole
        case .head, .identified, .verdict, .stored, .outdated, .variantMissing, .farAhead, .leading, .lookAgain,
            .following, .leaderPublished, .leaderNotShared, .waitedEnough, .leaderFailed, .refused:
            outOfOrder()
        }
    }

    private mutating func missed(_ reason: CacheStatus.ForwardReason, isConditional: Bool = false) -> Action {
        if request.isForStoreOnly { return refuse(.onlyIfCached) }
        return leadOrRetrieve(RetrievalPlan(reason: reason, isConditional: isConditional))
    }

    private mutating func leadOrRetrieve(_ plan: RetrievalPlan) -> Action {
        forwardReason = plan.reason
        // A validation replaces the client's own conditions, so its outcome can serve others as well.
        guard request.mayLead || (request.collapses && plan.isConditional && request.isStored) else {
            state = .retrieving
            return .retrieve(plan)
        }
        state = .choosingLeader(plan)
        return .lead
    }

    private mutating func retrieveAlone(_ reason: CacheStatus.ForwardReason) -> Action {
        state = .retrieving
        forwardReason = reason
        return .retrieve(RetrievalPlan(reason: reason))
    }

    private mutating func refuse(_ refusal: Refusal) -> Action {
        state = .settled
        return .refuse(refusal)
    }

    private func outOfOrder() -> Never {
        preconditionFailure("the driver delivered an event that this state cannot meet")
    }
}
