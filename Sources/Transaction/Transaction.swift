package import Access
package import Caching
package import Message

/// One request from its head to the choice of an answer: the order in which the rooms are asked.
///
/// ```
/// started ─head─▶ identifying ─▶ deciding ─▶ lookingUp ─▶ serving
///                                   │            ├──▶ waitingForLeader ─▶ serving | fetching
///                                   │            └──▶ fetching ─▶ serving | relaying
///                                   └──▶ tunnelling
/// any state ─▶ refused
/// ```
///
/// A value without references: a hit runs through it on the stack. The driver carries the things the machine speaks
/// of (the head, the stored response that was selected, the fetch) and performs what is returned.
package struct Transaction: Sendable {
    /// What the head of the request says that matters for the order of things.
    package struct Request: Sendable {
        package var cache: CacheRequest
        package var isTunnel: Bool
        package var isUpgrade: Bool
        package var hasBody: Bool
        package var needsIdentity: Bool
        /// `If-Match` or `If-Unmodified-Since`: about the state of the origin, which only it knows (RFC 9110 §13.1.1).
        package var asksForOriginState: Bool
        /// Collapsing is switched on.
        package var collapses: Bool
        /// What the zone, the rules and the client say of the use of the cache.
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

        /// GET and HEAD without a body are answered from the store where it allows (RFC 9111 §4).
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
        var isForStoreOnly: Bool { cache.directives.onlyIfCached || use.contains(.cacheOnly) }
    }

    package enum Event: Sendable {
        case head
        case identified
        case verdict(Verdict)
        /// What the store holds for the request; nil where nothing is selected.
        case stored(Reuse?)
        /// What is stored may not be served without asking, and has no validator to ask with.
        case outdated(ValidateReason)
        /// The store holds the key, but no variant that suits the request (RFC 9111 §4.1).
        /// - Parameter hasValidators: of the variants that are there: the origin can say that one of them suits (§4.3.1).
        case variantMissing(hasValidators: Bool)
        /// What is stored is on its way, but what the request wants of it is far ahead: not worth waiting for.
        case farAhead
        case leading
        case lookAgain
        case following
        /// The transfer that was followed: its response was published and suits this request, or not.
        case leaderPublished(suits: Bool)
        case leaderNotShared
        /// The transfer that was followed takes too long.
        case waitedEnough
        case leaderFailed(Refusal)
        /// The final response's head from the origin.
        case originHead(status: UInt16, isStorable: Bool, staleMayServe: Bool)
        case originFailed(Refusal, staleMayServe: Bool)
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
        /// Become the leader of a transfer for this key, or its follower.
        case lead
        case follow
        case fetch(Fetch)
        /// Store the response and serve it from the store while it arrives.
        case store
        /// The stored response is good again (304): renew its head, then serve it (RFC 9111 §4.3.4).
        case freshen
        /// Serve what is stored though it is stale, because the origin failed (RFC 9111 §4.2.4).
        case serveStale
        /// Pass the response on; nobody else gets it. `invalidates`: stored responses of the target go (§4.4).
        case relay(invalidates: Bool)
        case refuse(Refusal)
    }

    /// How the origin is asked.
    package struct Fetch: Equatable, Sendable {
        package var reason: CacheStatus.ForwardReason
        /// With the validators of the selected stored response (RFC 9111 §4.3.1).
        package var isConditional: Bool
        /// Others wait for the outcome.
        package var isLeading: Bool

        package init(reason: CacheStatus.ForwardReason, isConditional: Bool, isLeading: Bool) {
            self.reason = reason
            self.isConditional = isConditional
            self.isLeading = isLeading
        }
    }

    private enum State: Sendable {
        case started
        case identifying
        case deciding
        case lookingUp
        case choosingLeader(Fetch)
        case waitingForLeader(CacheStatus.ForwardReason)
        case fetching(Fetch)
        case settled
    }

    private var state: State = .started
    /// Why the request is forwarded, or would have been but for a failure; nil where it ended before that was a question.
    package private(set) var forwardReason: CacheStatus.ForwardReason?
    package private(set) var request: Request

    package init(_ request: Request) { self.request = request }

    /// The rules look at who asks: now that it is known, they say something else.
    package mutating func treat(use: CacheUse, storesParts: Bool) {
        request.use = use
        request.storesParts = storesParts
    }

    /// A validation that no client waits for (RFC 5861 §3): it begins where others end, at the question to the origin.
    package static func revalidation(_ request: Request, isConditional: Bool) -> (Transaction, Fetch) {
        var transaction = Transaction(request)
        let fetch = Fetch(reason: .stale, isConditional: isConditional, isLeading: true)
        transaction.state = .fetching(fetch)
        return (transaction, fetch)
    }

    /// A part that is missing of what is stored (RFC 9110 §14), or a stored response that is gone when it is to be served: it begins
    /// where others end, at the question to the origin.
    package static func alone(_ request: Request, _ reason: CacheStatus.ForwardReason) -> (Transaction, Fetch) {
        var transaction = Transaction(request)
        let fetch = Fetch(reason: reason, isConditional: false, isLeading: false)
        transaction.state = .fetching(fetch)
        return (transaction, fetch)
    }

    /// The 304 was about something else than what is stored (RFC 9111 §4.3.4): the origin is asked again, for the whole.
    package mutating func askForTheWhole(_ fetch: Fetch) -> Fetch {
        let plain = Fetch(reason: fetch.reason, isConditional: false, isLeading: fetch.isLeading)
        state = .fetching(plain)
        return plain
    }

    package mutating func on(_ event: Event) -> Action {
        switch (state, event) {
        case (.started, .head):
            state = request.needsIdentity ? .identifying : .deciding
            return request.needsIdentity ? .identify : .decide(resolved: false)
        case (.identifying, .identified):
            state = .deciding
            return .decide(resolved: false)
        case (.deciding, .verdict(let verdict)):
            return afterVerdict(verdict)
        case (.lookingUp, .stored(let reuse)):
            return afterLookUp(reuse)
        case (.lookingUp, .outdated(let why)):
            return leadOrFetch(Fetch(reason: why.forwardReason, isConditional: false, isLeading: false))
        case (.lookingUp, .variantMissing(let hasValidators)):
            return afterMiss(.varyMiss, isConditional: hasValidators && request.cache.method == .get)
        case (.lookingUp, .farAhead):
            return fetchAlone(.partial)
        case (.choosingLeader(var fetch), .leading):
            fetch.isLeading = true
            state = .fetching(fetch)
            return .fetch(fetch)
        case (.choosingLeader, .lookAgain):
            state = .lookingUp
            return .lookUp
        case (.choosingLeader(let fetch), .following):
            state = .waitingForLeader(fetch.reason)
            return .follow
        case (.waitingForLeader, .leaderPublished(suits: true)):
            state = .settled
            return .serve(age: .zero, ttl: .zero)
        case (.waitingForLeader(let reason), .leaderPublished(suits: false)),
            (.waitingForLeader(let reason), .leaderNotShared), (.waitingForLeader(let reason), .waitedEnough):
            return fetchAlone(reason)
        case (.waitingForLeader, .leaderFailed(let refusal)):
            return refuse(refusal)
        case (.fetching(let fetch), .originHead(let status, let isStorable, let staleMayServe)):
            return afterOriginHead(fetch, status: status, isStorable: isStorable, staleMayServe: staleMayServe)
        case (.fetching, .originFailed(let refusal, let staleMayServe)):
            guard staleMayServe else { return refuse(refusal) }
            state = .settled
            return .serveStale
        case (_, .refused(let refusal)):
            return refuse(refusal)
        case (.started, _), (.identifying, _), (.deciding, _), (.lookingUp, _), (.choosingLeader, _),
            (.waitingForLeader, _), (.fetching, _), (.settled, _):
            preconditionFailure("the driver delivered an event that this state can not meet")
        }
    }

    private mutating func afterVerdict(_ verdict: Verdict) -> Action {
        switch verdict {
        case .deny(let denial): return refuse(Refusal(denial))
        case .needsAddress: return .decide(resolved: true)
        case .allow: break
        }
        if request.isTunnel {
            state = .settled
            forwardReason = .method
            return .tunnel
        }
        guard request.mayUseStore else {
            if request.isForStoreOnly { return refuse(.onlyIfCached) }
            return fetchAlone(request.hasBody || !request.cache.isSafe ? .method : .bypass)
        }
        state = .lookingUp
        return .lookUp
    }

    private mutating func afterLookUp(_ reuse: Reuse?) -> Action {
        switch reuse {
        case .serve(let age, let ttl), .serveStale(let age, let ttl):
            state = .settled
            return .serve(age: age, ttl: ttl)
        case .validate(let why):
            return leadOrFetch(
                Fetch(reason: why.forwardReason, isConditional: request.cache.method == .get, isLeading: false))
        case .serveStaleAndRevalidate(let age, let ttl):
            state = .settled
            return .serveAndRevalidate(age: age, ttl: ttl)
        case .fetch(let reason):
            return fetchAlone(reason.forwardReason)
        case .refuse:
            return refuse(.onlyIfCached)
        case nil:
            return afterMiss(.uriMiss)
        }
    }

    private mutating func afterMiss(_ reason: CacheStatus.ForwardReason, isConditional: Bool = false) -> Action {
        if request.isForStoreOnly { return refuse(.onlyIfCached) }
        return leadOrFetch(Fetch(reason: reason, isConditional: isConditional, isLeading: false))
    }

    private mutating func leadOrFetch(_ fetch: Fetch) -> Action {
        forwardReason = fetch.reason
        // A validation replaces the client's own conditions, so its outcome can serve others as well.
        guard request.mayLead || (request.collapses && fetch.isConditional && request.isStored) else {
            state = .fetching(fetch)
            return .fetch(fetch)
        }
        state = .choosingLeader(fetch)
        return .lead
    }

    private mutating func fetchAlone(_ reason: CacheStatus.ForwardReason) -> Action {
        let fetch = Fetch(reason: reason, isConditional: false, isLeading: false)
        forwardReason = reason
        state = .fetching(fetch)
        return .fetch(fetch)
    }

    private mutating func afterOriginHead(
        _ fetch: Fetch, status: UInt16, isStorable: Bool, staleMayServe: Bool
    ) -> Action {
        state = .settled
        if fetch.isConditional && status == 304 { return .freshen }
        if staleMayServe && (500...599).contains(status) { return .serveStale }
        if isStorable { return .store }
        return .relay(invalidates: invalidates(request.cache, status: status))
    }

    private mutating func refuse(_ refusal: Refusal) -> Action {
        state = .settled
        return .refuse(refusal)
    }
}
