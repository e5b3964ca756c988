import Caching
import Message
import Testing
import Transaction

private let now = WallTime(secondsSinceEpoch: 1_800_000_000)

private func fields(_ lines: (FieldName, String)...) -> Fields {
    var result = Fields()
    for (name, value) in lines { result.append(name, value) }
    return result
}

private func request(
    _ method: Method = .get, _ lines: Fields = Fields(), hasBody: Bool = false, isUpgrade: Bool = false,
    retries: Int = 0, reuse: Retrieval.Reuse = .repeatable
)
    -> Retrieval.Request
{
    var cache = CacheRequest(method: method, fields: lines)
    cache.hasBody = hasBody
    return Retrieval.Request(
        cache: cache, isUpgrade: isUpgrade, postTarget: nil, policy: CachePolicy(),
        interimResponsesMax: Limits().interimResponsesMax,
        deadConnectionRetriesMax: Limits().deadConnectionRetriesMax, retriesMax: retries, reuse: reuse)
}

private func cached(_ lines: Fields, status: UInt16 = 200) -> CachedResponse {
    CachedResponse(status: status, fields: lines, requestTime: now, responseTime: now, policy: CachePolicy())
}

private let tagged = fields((.eTag, "\"a\""), (.cacheControl, "max-age=60"))
private let stale = cached(tagged)

/// What a retrieval learns: an event, or a final head.
enum Fact: Sendable {
    case event(Retrieval.Event)
    case head(Retrieval.Head)

    static let start = Fact.event(.start)
    static let interim = Fact.event(.interim)
    static let switched = Fact.event(.switched)
    static let invalidHead = Fact.event(.invalidHead)
    static let stored = Fact.event(.stored)
    static let notStored = Fact.event(.notStored(.memoryFull))
    static let brokeOff = Fact.event(.brokeOff)
    static let sinkFull = Fact.event(.sinkFull)
    static let timedOut = Fact.event(.timedOut)
    static let outOfTime = Fact.event(.outOfTime)
    static let stopped = Fact.event(.stopped(isShared: false))
    static let retryRefused = Fact.event(.retryRefused)
    static let cancelled = Fact.event(.cancelled)
    static func opened(isReused: Bool) -> Fact { .event(.opened(isReused: isReused)) }
    static func notOpened(_ refusal: Refusal) -> Fact { .event(.notOpened(refusal)) }
    static func received(_ count: Int) -> Fact { .event(.received(count)) }
    static func ended(byClosing: Bool) -> Fact { .event(.ended(byClosing: byClosing)) }
    static func closed(headBegan: Bool) -> Fact { .event(.closed(headBegan: headBegan)) }
    static func clientLeft(isStillNeeded: Bool) -> Fact { .event(.clientLeft(isStillNeeded: isStillNeeded)) }
}

extension Retrieval {
    fileprivate mutating func learn(_ fact: Fact, now: WallTime, staleMayServe: Bool = false) -> Action {
        switch fact {
        case .event(let event): on(event, now: now, staleMayServe: staleMayServe)
        case .head(let head): on(head: head, staleMayServe: staleMayServe)
        }
    }
}

private func head(
    _ status: UInt16, _ lines: Fields = Fields(), length: UInt64? = 0, failures: FailureStatuses = [],
    isStale: Bool = false, proves: Bool = false
) -> Fact {
    var handling = CacheHandling()
    handling.failureStatuses = failures
    handling.provesBodies = proves
    return .head(
        Retrieval.Head(
            status: status, fields: lines, endToEnd: nil, length: length, handling: handling, isStale: isStale,
            receivedAt: now))
}

private let hundred = fields((.eTag, "\"a\""), (.cacheControl, "max-age=60"), (.contentLength, "100"))
private let unstorable = fields((.eTag, "\"a\""), (.cacheControl, "no-store"))
private func part(_ range: String, _ tag: String = "\"a\"") -> Fields {
    fields((.eTag, tag), (.cacheControl, "max-age=60"), (.contentRange, "bytes \(range)"))
}

private let passNoStore = Retrieval.Action.pass(
    .init(notStored: .noStore, invalidates: false, updatesStored: false))
private func passAsIs(_ reason: NotStoredReason, _ invalidates: Bool) -> Retrieval.Action {
    .pass(.init(notStored: reason, invalidates: invalidates, updatesStored: false))
}

/// What an action is, without what it carries.
private func name(_ action: Retrieval.Action) -> String {
    switch action {
    case .open: "open"
    case .store: "store"
    case .storePart: "storePart"
    case .abandonHole(let removes, let then): "abandonHole\(removes ? "AndStored" : ""), \(name(then))"
    default: "\(action)"
    }
}

@Suite("Retrieval: one answer of an origin, over as many connections as it takes")
struct RetrievalTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let start: @Sendable () -> Retrieval
        let events: [Fact]
        let actions: [String]
        let staleMayServe: Bool

        init(
            _ name: String, _ start: @autoclosure @escaping @Sendable () -> Retrieval, _ events: [Fact],
            staleMayServe: Bool = false,
            expect actions: [String]
        ) {
            testDescription = name
            self.start = start
            self.events = events
            self.staleMayServe = staleMayServe
            self.actions = actions
        }
    }

    static func miss(_ made: Retrieval.Request = request(), client: Retrieval.Client = .waiting) -> Retrieval {
        Retrieval(made, RetrievalPlan(reason: .uriMiss), client: client, now: now)
    }

    static func validation(client: Retrieval.Client = .waiting, candidates: [CachedResponse]? = nil) -> Retrieval {
        let stored = candidates.map { Retrieval.Stored(candidates: $0) } ?? Retrieval.Stored(selected: stale)
        return Retrieval(
            request(), RetrievalPlan(reason: .stale, isConditional: true), stored: stored, client: client, now: now)
    }

    static func ranged(_ plan: RetrievalPlan) -> Retrieval {
        let asked = request(.get, fields((.range, "bytes=0-9")))
        return Retrieval(asked, plan, client: .waiting, now: now)
    }

    static func hole(client: Retrieval.Client = .waiting) -> Retrieval {
        let asked = PartAsked(stored: stale, start: 40, end: 60, wholeLength: 100)
        return Retrieval(request(), hole: asked, client: client, now: now)
    }

    static let open: [Fact] = [.start, .opened(isReused: false)]
    static let reused: [Fact] = [.start, .opened(isReused: true)]
    static let opened = ["open", "send"]
    static let whole = "finish(Transaction.Retrieval.Ending.whole)"
    static let lost = "finish(Transaction.Retrieval.Ending.brokenOff(keepsPart: false))"
    static let kept = "finish(Transaction.Retrieval.Ending.brokenOff(keepsPart: true))"
    static let abandoned = "finish(Transaction.Retrieval.Ending.abandoned)"
    static func failed(_ refusal: Refusal) -> String {
        "finish(Transaction.Retrieval.Ending.failed(Transaction.Refusal.\(refusal)))"
    }
    static func pause(_ milliseconds: Int) -> String { "pause(milliseconds: \(milliseconds))" }

    // MARK: connections

    static let connections = [
        Row(
            "no connection, no answer", miss(), [.start, .notOpened(.nameNotFound)],
            expect: ["open", failed(.nameNotFound)]),
        Row(
            "no connection: the stale response, where allowed", validation(), [.start, .notOpened(.connectionRefused)],
            staleMayServe: true, expect: ["open", "serveStale(status: 0)"]),
        Row(
            "a pooled connection that was dead is replaced", miss(), reused + [.closed(headBegan: false)],
            expect: opened + ["reopen"]),
        Row(
            "a new connection that closes is not", miss(), open + [.closed(headBegan: false)],
            expect: opened + [failed(.connectionTerminated)]),
        Row(
            "a head that began and stopped is an incomplete response", miss(), reused + [.closed(headBegan: true)],
            expect: opened + [failed(.responseIncomplete)]),
        Row(
            "after an interim response the connection was alive", miss(),
            reused + [.interim, .closed(headBegan: false)],
            expect: opened + ["passInterim", failed(.connectionTerminated)]),
        Row(
            "a POST is never sent twice", miss(request(.post, hasBody: true)), open + [.closed(headBegan: false)],
            expect: opened + [failed(.connectionTerminated)]),
        Row("no connection in time", miss(), [.start, .timedOut], expect: ["open", failed(.connectionTimeout)]),
        Row("no head in time", miss(), open + [.timedOut], expect: opened + [failed(.responseTimeout)]),
        Row(
            "an expectation that failed is withdrawn, and the request goes out again",
            miss(request(.post, hasBody: true)),
            open + [.event(.expectationFailed), .opened(isReused: false), .timedOut],
            expect: opened + ["askAgain", "send", failed(.responseTimeout)]),
        Row(
            "a route that failed gives way to the next one, whatever the method", miss(request(.post, hasBody: true)),
            open + [
                .event(.routeFailed), .opened(isReused: false), .event(.routeFailed), .opened(isReused: false),
                .timedOut,
            ], expect: opened + ["askAgain", "send", "askAgain", "send", failed(.responseTimeout)]),
        Row(
            "a route that failed when all is over changes nothing", miss(),
            open + [.clientLeft(isStillNeeded: false), .event(.routeFailed)], expect: opened + [abandoned, "none"]),
        Row(
            "nothing is sent again when nobody waits", miss(request(.post, hasBody: true)),
            open + [.clientLeft(isStillNeeded: false), .event(.expectationFailed)],
            expect: opened + [abandoned, "none"]),
        Row("a head that is no HTTP", miss(), open + [.invalidHead], expect: opened + [failed(.responseInvalid)]),
        Row(
            "a second connection gets the request as well, and is replaced if it was dead", miss(),
            open + [.opened(isReused: true), .closed(headBegan: false)], expect: opened + ["send", "reopen"]),
        Row(
            "the connection that was opened last decides whether the request may have been lost with it", miss(),
            reused + [.opened(isReused: false), .closed(headBegan: false)],
            expect: opened + ["send", failed(.connectionTerminated)]),
    ]

    // MARK: other attempts

    static func validation(retries: Int) -> Retrieval {
        Retrieval(
            request(retries: retries), RetrievalPlan(reason: .stale, isConditional: true),
            stored: Retrieval.Stored(selected: stale), client: .waiting, now: now)
    }
    static func retry(_ attempt: Int) -> String { "retry(attempt: \(attempt))" }
    static let refused = Fact.notOpened(.connectionRefused)

    static let attempts = [
        Row(
            "a refused connection is tried again, so often and no more", miss(request(retries: 2)),
            [.start, refused, .timedOut, refused, .timedOut, refused],
            expect: ["open", retry(1), "open", retry(2), "open", failed(.connectionRefused)]),
        Row(
            "the second attempt succeeds", miss(request(retries: 1)),
            [
                .start, refused, .timedOut, .opened(isReused: false), head(200, unstorable, length: 0),
                .ended(byClosing: false),
            ],
            expect: ["open", retry(1), "open", "send", "\(passNoStore)", whole]),
        Row(
            "a connection that does not come in time", miss(request(retries: 1)),
            [.start, .notOpened(.connectionTimeout)],
            expect: ["open", retry(1)]),
        Row(
            "nothing was sent: a request with a body as well", miss(request(.post, hasBody: true, retries: 1)),
            [.start, refused, .timedOut], expect: ["open", retry(1), "open"]),
        Row(
            "a head that does not come in time", miss(request(retries: 1)), open + [.timedOut, .timedOut],
            expect: opened + [retry(1), "open"]),
        Row(
            "but not for a POST, which may have been done", miss(request(.post, retries: 1)), open + [.timedOut],
            expect: opened + [failed(.responseTimeout)]),
        Row(
            "nor for a body that is gone", miss(request(.put, hasBody: true, retries: 1)), open + [.timedOut],
            expect: opened + [failed(.responseTimeout)]),
        Row(
            "nor for an upgrade", miss(request(isUpgrade: true, retries: 1)), open + [.timedOut],
            expect: opened + [failed(.responseTimeout)]),
        Row(
            "what does not pass is not tried again", miss(request(retries: 1)), [.start, .notOpened(.nameNotFound)],
            expect: ["open", failed(.nameNotFound)]),
        Row(
            "what the rules forbid is not tried again", miss(request(retries: 1)), [.start, .notOpened(.accessDenied)],
            expect: ["open", failed(.accessDenied)]),
        Row(
            "without a budget it fails as it would have", miss(request(retries: 1)), [.start, refused, .retryRefused],
            expect: ["open", retry(1), failed(.connectionRefused)]),
        Row(
            "a stale response is better than another attempt", validation(retries: 1), [.start, refused],
            staleMayServe: true, expect: ["open", "serveStale(status: 0)"]),
        Row(
            "a client that leaves ends it", miss(request(retries: 1)),
            [.start, refused, .clientLeft(isStillNeeded: false)], expect: ["open", retry(1), abandoned]),
        Row(
            "a stop ends it", miss(request(retries: 1)), [.start, refused, .cancelled],
            expect: ["open", retry(1), abandoned]),
    ]

    /// The time for the whole response is over.
    static let times = [
        Row(
            "while a connection is opened", miss(request(retries: 1)), [.start, .outOfTime],
            expect: ["open", failed(.connectionTimeout)]),
        Row(
            "while the head is awaited", miss(request(retries: 1)), open + [.outOfTime],
            expect: opened + [failed(.responseTimeout)]),
        Row(
            "before the next attempt", miss(request(retries: 1)), [.start, refused, .outOfTime],
            expect: ["open", retry(1), failed(.connectionRefused)]),
        Row(
            "in the body: no other attempt, and the part is kept", miss(),
            open + [head(200, hundred, length: 100), .stored, .received(10), .outOfTime],
            expect: opened + ["store", "none", "deliver", kept]),
        Row(
            "before the rest of a body is asked for", miss(),
            open + [head(200, hundred, length: 100), .stored, .received(10), .brokeOff, .outOfTime],
            expect: opened + ["store", "none", "deliver", pause(0), kept]),
        Row(
            "while the rest of a body is asked for", miss(),
            open + [head(200, hundred, length: 100), .stored, .received(10), .brokeOff, .timedOut, .outOfTime],
            expect: opened + ["store", "none", "deliver", pause(0), "open", kept]),
        Row(
            "an administrator ends it while a connection is opened", miss(request(retries: 1)), [.start, .stopped],
            expect: ["open", failed(.transferCancelled)]),
        Row(
            "an administrator ends it while the head is awaited: nothing stale", validation(retries: 1),
            open + [.stopped], staleMayServe: true, expect: opened + [failed(.transferCancelled)]),
        Row(
            "an administrator ends it in the body: the part is kept", miss(),
            open + [head(200, hundred, length: 100), .stored, .received(10), .stopped],
            expect: opened + ["store", "none", "deliver", kept]),
        Row(
            "an administrator ends a body that others read: they do not ask for its rest", miss(),
            open + [head(200, hundred, length: 100), .stored, .received(10), .event(.stopped(isShared: true))],
            expect: opened + ["store", "none", "deliver", lost]),
        Row(
            "an administrator ends it before the rest is asked for", miss(),
            open + [head(200, hundred, length: 100), .stored, .received(10), .brokeOff, .stopped],
            expect: opened + ["store", "none", "deliver", pause(0), kept]),
        Row(
            "an administrator ends it before the next attempt", miss(request(retries: 1)), [.start, refused, .stopped],
            expect: ["open", retry(1), failed(.transferCancelled)]),
        Row(
            "a stale response takes the place of the error", validation(retries: 1), open + [.outOfTime],
            staleMayServe: true, expect: opened + ["serveStale(status: 0)"]),
    ]

    // MARK: interim responses

    static let interim = [
        Row(
            "goes to the client that waits", miss(), open + [.interim, .interim],
            expect: opened + ["passInterim", "passInterim"]),
        Row("goes to nobody where nobody waits", miss(client: .none), open + [.interim], expect: opened + ["none"]),
        Row(
            "before the rest of a body that broke off it goes to nobody", miss(),
            open + [
                head(200, unstorable, length: 100), .received(10), .brokeOff, .timedOut, .opened(isReused: false),
                .interim,
            ],
            expect: opened + ["\(passNoStore)", "deliver", pause(0), "open", "send", "none"]),
        Row(
            "before the bytes of a hole in an answer that has begun it goes to nobody", hole(client: .answered),
            open + [.interim], expect: opened + ["none"]),
        Row(
            "before the bytes with which an answer begins it goes to the client that waits", hole(),
            open + [.interim], expect: opened + ["passInterim"]),
        Row(
            "101 to a request that asked for no upgrade", miss(), open + [.switched],
            expect: opened + [failed(.responseInvalid)]),
        Row(
            "101 to an upgrade", miss(request(isUpgrade: true)), open + [.switched],
            expect: opened + ["switchProtocols"]),
        Row(
            "101 in place of the rest of a body is another attempt in vain", miss(),
            open + [head(200, unstorable, length: 100), .brokeOff, .timedOut, .opened(isReused: false), .switched],
            expect: opened + ["\(passNoStore)", pause(0), "open", "send", pause(400)]),
    ]

    // MARK: what becomes of a head

    static let heads = [
        Row(
            "a fresh response is stored", miss(), open + [head(200, hundred, length: 100), .stored],
            expect: opened + ["store", "none"]),
        Row(
            "a response that the store has no room for is passed on, with that reason", miss(),
            open + [head(200, hundred, length: 100), .notStored],
            expect: opened + ["store", "\(passAsIs(.memoryFull, false))"]),
        Row("no-store is passed on", miss(), open + [head(200, unstorable)], expect: opened + ["\(passNoStore)"]),
        Row(
            "what another node has stale is passed on, and not stored", miss(),
            open + [head(200, hundred, length: 100, isStale: true)],
            expect: opened + ["\(passAsIs(.staleElsewhere, false))"]),
        Row(
            "a part of it, too", miss(request(.get, fields((.range, "bytes=0-49")))),
            open + [head(206, part("0-49/100"), length: 50, isStale: true)],
            expect: opened + ["\(passAsIs(.staleElsewhere, false))"]),
        Row(
            "304 confirms what was selected", validation(), open + [head(304, tagged)],
            expect: opened + ["\(Retrieval.Action.freshen(.selected))"]),
        Row(
            "304 confirms one of several variants", validation(candidates: [cached(fields((.eTag, "\"b\""))), stale]),
            open + [head(304, tagged)], expect: opened + ["\(Retrieval.Action.freshen(.candidate(1)))"]),
        Row(
            "304 about something else: the whole is asked for, without condition", validation(),
            open + [head(304, fields((.eTag, "\"b\""))), .opened(isReused: false), head(200, hundred)],
            expect: opened + ["outdateSelected", "send", "store"]),
        Row(
            "304 to the client's own condition is passed on", miss(request(.get, fields((.ifNoneMatch, "\"a\"")))),
            open + [head(304, tagged)], expect: opened + ["\(passAsIs(.notModified, false))"]),
        Row(
            "5xx to a validation: the stale response, where allowed", validation(), open + [head(503, length: 9)],
            staleMayServe: true, expect: opened + ["serveStale(status: 503)"]),
        Row(
            "a status above 599 counts as 5xx (RFC 9110 §15)", validation(), open + [head(600, length: 9)],
            staleMayServe: true, expect: opened + ["serveStale(status: 600)"]),
        Row(
            "so does the highest one", validation(), open + [head(999, length: 9)], staleMayServe: true,
            expect: opened + ["serveStale(status: 999)"]),
        Row(
            "429 to a validation: the stale response, where a rule takes it for a failure", validation(),
            open + [head(429, length: 9, failures: .tooManyRequests)], staleMayServe: true,
            expect: opened + ["serveStale(status: 429)"]),
        Row(
            "429 to a validation: passed on, where none does", validation(),
            open + [head(429, length: 9, failures: .forbidden)], staleMayServe: true,
            expect: opened + ["\(passAsIs(.aboutRequest, false))"]),
        Row(
            "5xx to a validation: passed on, where not", validation(), open + [head(503, length: 9)],
            expect: opened + ["\(passAsIs(.notCacheable, false))"]),
        Row(
            "POST invalidates when it succeeded", miss(request(.post, hasBody: true)), open + [head(201)],
            expect: opened + ["\(passAsIs(.method, true))"]),
        Row(
            "POST that failed invalidates nothing", miss(request(.post, hasBody: true)), open + [head(500)],
            expect: opened + ["\(passAsIs(.method, false))"]),
    ]

    // MARK: bodies

    static let bodies = [
        Row(
            "a whole body ends it", miss(),
            open + [head(200, hundred, length: 100), .stored, .received(100), .ended(byClosing: false)],
            expect: opened + ["store", "none", "deliver", whole]),
        Row(
            "bytes beyond the announced length are never delivered", miss(),
            open + [head(200, hundred, length: 100), .stored, .received(60), .received(41)],
            expect: opened + ["store", "none", "deliver", lost]),
        Row(
            "a body that breaks off is resumed where it stopped", miss(),
            open + [
                head(200, hundred, length: 100), .stored, .received(40), .brokeOff, .timedOut, .opened(isReused: false),
                head(206, part("40-99/100"), length: 60), .received(60), .ended(byClosing: false),
            ], expect: opened + ["store", "none", "deliver", pause(0), "open", "send", "goOn", "deliver", whole]),
        Row(
            "the rest may come in several parts", miss(),
            open + [
                head(200, hundred, length: 100), .stored, .received(40), .brokeOff, .timedOut, .opened(isReused: false),
                head(206, part("40-59/100"), length: 20), .received(20), .ended(byClosing: false),
            ], expect: opened + ["store", "none", "deliver", pause(0), "open", "send", "goOn", "deliver", pause(0)]),
        Row(
            "the origin has another representation by now", miss(),
            open + [
                head(200, hundred, length: 100), .stored, .received(40), .brokeOff, .timedOut, .opened(isReused: false),
                head(206, part("40-99/100", "\"b\""), length: 60),
            ], expect: opened + ["store", "none", "deliver", pause(0), "open", "send", lost]),
        Row(
            "a part that says more than its message has is not trusted", miss(),
            open + [
                head(200, hundred, length: 100), .stored, .received(40), .brokeOff, .timedOut, .opened(isReused: false),
                head(206, part("40-99/100"), length: nil), .received(5), .ended(byClosing: false),
            ], expect: opened + ["store", "none", "deliver", pause(0), "open", "send", "goOn", "deliver", lost]),
        Row(
            "a part that has more than it says is not trusted", miss(),
            open + [
                head(200, hundred, length: 100), .stored, .received(40), .brokeOff, .timedOut, .opened(isReused: false),
                head(206, part("40-49/100"), length: nil), .received(11),
            ], expect: opened + ["store", "none", "deliver", pause(0), "open", "send", "goOn", lost]),
        Row(
            "503 to the question for the rest: another try in a moment", miss(),
            open + [
                head(200, hundred, length: 100), .stored, .received(40), .brokeOff, .timedOut, .opened(isReused: false),
                head(503),
            ], expect: opened + ["store", "none", "deliver", pause(0), "open", "send", pause(400)]),
        Row(
            "429 to the question for the rest, where a rule takes it for a failure: another try in a moment", miss(),
            open + [
                head(200, hundred, length: 100), .stored, .received(40), .brokeOff, .timedOut, .opened(isReused: false),
                head(429, failures: .tooManyRequests),
            ], expect: opened + ["store", "none", "deliver", pause(0), "open", "send", pause(400)]),
        Row(
            "403 to the question for the rest: what came is kept", miss(),
            open + [
                head(200, hundred, length: 100), .stored, .received(40), .brokeOff, .timedOut, .opened(isReused: false),
                head(403),
            ], expect: opened + ["store", "none", "deliver", pause(0), "open", "send", kept]),
        Row(
            "without a strong validator nothing can be resumed", miss(),
            open + [head(200, fields((.cacheControl, "max-age=9")), length: 100), .stored, .received(9), .brokeOff],
            expect: opened + ["store", "none", "deliver", kept]),
        Row(
            "the sink is full", miss(), open + [head(200, hundred, length: 100), .stored, .received(9), .sinkFull],
            expect: opened + ["store", "none", "deliver", kept]),
    ]

    // MARK: parts

    static let ranged = request(.get, fields((.range, "bytes=0-49")))
    static let parts = [
        Row(
            "the answer to a range is stored as a part", miss(ranged),
            open + [head(206, part("0-49/100"), length: 50), .stored, .received(50), .ended(byClosing: false)],
            expect: opened + ["storePart", "none", "deliver", whole]),
        Row(
            "a part without a place is passed on", miss(ranged),
            open + [head(206, part("0-49/*"), length: 50), .received(50), .ended(byClosing: false)],
            expect: opened + ["\(passAsIs(.partUnplaced, false))", "deliver", whole]),
        Row(
            "a part whose range and length disagree is an error", miss(ranged),
            open + [
                head(206, fields((.eTag, "\"a\""), (.contentRange, "bytes 0-49/100"), (.contentLength, "5")), length: 5)
            ],
            expect: opened + [failed(.responseInvalid)]),
        Row(
            "a part that ends with the connection, too early, broke off", miss(ranged),
            open + [head(206, part("0-49/100"), length: nil), .stored, .received(5), .ended(byClosing: true)],
            expect: opened + ["storePart", "none", "deliver", pause(0)]),
        Row(
            "a part that breaks its promise is not kept", miss(ranged),
            open + [head(206, part("0-49/100"), length: nil), .stored, .received(5), .ended(byClosing: false)],
            expect: opened + ["storePart", "none", "deliver", lost]),
        Row(
            "a hole is filled, and the answer begins", hole(),
            open + [head(206, part("40-59/100"), length: 20), .received(20), .ended(byClosing: false)],
            expect: opened + ["fill(isFirst: true)", "deliver", whole]),
        Row(
            "a hole in an answer that has begun", hole(client: .answered),
            open + [head(206, part("40-59/100"), length: 20)], expect: opened + ["fill(isFirst: false)"]),
        Row(
            "another representation before the answer began: that one is the answer", hole(),
            open + [head(200, fields((.eTag, "\"b\""), (.cacheControl, "max-age=9")), length: 9)],
            expect: opened + ["abandonHoleAndStored, store"]),
        Row(
            "another representation after the answer began: the answer breaks off", hole(client: .answered),
            open + [head(200, fields((.eTag, "\"b\"")), length: 9)], expect: opened + ["abandonHoleAndStored, \(kept)"]),
        Row(
            "416 to a hole: the client's own question goes out", hole(),
            open + [head(416), .opened(isReused: false), head(200, unstorable)],
            expect: opened + ["abandonHoleAndStored, reopen", "send", "\(passNoStore)"]),
        Row(
            "no answer to a hole", hole(), open + [.timedOut],
            expect: opened + ["abandonHole, \(failed(.responseTimeout))"]),
        Row(
            "no answer to a hole in an answer that has begun", hole(client: .answered), open + [.timedOut],
            expect: opened + ["abandonHole, \(kept)"]),
    ]

    // MARK: the client leaves

    static let leaving = [
        Row("nobody gains", miss(), open + [.clientLeft(isStillNeeded: false)], expect: opened + [abandoned]),
        Row(
            "others gain", miss(),
            open + [.clientLeft(isStillNeeded: true), .interim, head(200, hundred, length: 100), .stored],
            expect: opened + ["none", "none", "store", "none"]),
        Row(
            "what was passed on to one who left is not resumed", miss(),
            open + [head(200, unstorable, length: 100), .received(9), .clientLeft(isStillNeeded: true), .brokeOff],
            expect: opened + ["\(passNoStore)", "deliver", "none", kept]),
        Row(
            "after the end nothing is done", miss(),
            open + [
                .clientLeft(isStillNeeded: false), .interim, .ended(byClosing: false), .brokeOff, .timedOut, .cancelled,
            ],
            expect: opened + [abandoned, "none", "none", "none", "none", "none"]),
    ]

    @Test(arguments: connections + attempts + times + interim + heads + bodies + parts + leaving)
    func `each event leads to the action that follows it`(_ row: Row) {
        var retrieval = row.start()
        let actions = row.events.map { name(retrieval.learn($0, now: now, staleMayServe: row.staleMayServe)) }
        #expect(actions == row.actions)
    }

    @Test func `a retrieval gives up after four resumptions without a byte, with growing pauses`() {
        var retrieval = Self.miss()
        for event in Self.open + [head(200, hundred, length: 100), .stored] { _ = retrieval.learn(event, now: now) }
        var action = retrieval.learn(.brokeOff, now: now)
        for pause in [0, 400, 800, 1600] {
            #expect(action == .pause(milliseconds: pause))
            _ = retrieval.learn(.timedOut, now: now)
            _ = retrieval.learn(.opened(isReused: false), now: now)
            action = retrieval.learn(.closed(headBegan: false), now: now)
        }
        #expect(action == .finish(.brokenOff(keepsPart: true)))
    }

    @Test func `the request carries the validators of the stored response or of the part`() {
        var retrieval = Self.validation()
        for event in Self.open { _ = retrieval.learn(event, now: now) }
        #expect(retrieval.conditions?.map(\.0) == [.ifNoneMatch])
        var hole = Self.hole()
        for event in Self.open { _ = hole.learn(event, now: now) }
        #expect(hole.conditions?.map(\.0) == [.range, .ifRange])
        #expect(hole.conditions?.map(\.1) == [Array("bytes=40-59".utf8), Array("\"a\"".utf8)])
    }

    @Test func `a part of what a digest proves has the whole asked for, and no part of the whole does`() {
        let part = fields((.cacheControl, "max-age=60"), (.contentRange, "bytes 0-9/100"), (.contentType, "a/b"))
        var retrieval = Self.ranged(RetrievalPlan(reason: .uriMiss))
        for event in Self.open { _ = retrieval.learn(event, now: now) }
        #expect(retrieval.conditions == nil, "the client's own range is sent")
        let passed = retrieval.learn(head(206, part, length: 10, proves: true), now: now)
        #expect(
            passed
                == .pass(
                    .init(notStored: .unproven, invalidates: false, updatesStored: false, wantedWhole: 100)))
        var whole = Self.ranged(RetrievalPlan(reason: .uriMiss, isLeading: true, asksForWhole: true))
        for event in Self.open { _ = whole.learn(event, now: now) }
        #expect(whole.conditions?.isEmpty == true, "no range is sent")
        // No range was sent: in parts, a client could get all of a wrong body.
        let again = whole.learn(head(206, part, length: 10, proves: true), now: now)
        #expect(again == .finish(.failed(.responseInvalid)))
    }

    /// Whatever an origin does: the machine ends, and the client's wire has interim heads, one final head, its body.
    @Test(arguments: 0..<500) func `no order of events traps, puts a head into a body, or answers twice`(_ seed: UInt64)
    {
        var random = SplitMix(seed)
        var retrieval =
            switch random.next() % 5 {
            case 0: Self.miss()
            case 1: Self.validation()
            case 2: Self.hole()
            case 3: Self.hole(client: .answered)
            default: Self.miss(Self.ranged)
            }
        var hasAnswer = false
        if case .answered = retrieval.client { hasAnswer = true }
        var hasLeft = false
        var event: Fact? = .start
        for _ in 0..<400 {
            guard let next = event else { return }
            if case .event(.clientLeft) = next { hasLeft = true }
            var action = retrieval.learn(next, now: now, staleMayServe: random.next() % 4 == 0)
            while case .abandonHole(_, let then) = action { action = then }
            switch action {
            case .passInterim: #expect(!hasAnswer, "an interim head behind a final one")
            case .pass, .freshen, .serveStale, .switchProtocols:
                #expect(!hasAnswer, "a second answer")
                hasAnswer = true
            case .fill(let isFirst):
                #expect(isFirst == (!hasAnswer && !hasLeft), "who waits for a head gets one")
                hasAnswer = true
            case .finish(.failed): #expect(!hasAnswer, "a refusal behind an answer")
            default: break
            }
            if case .event(.stored) = next { hasAnswer = true }
            event = fact(after: action, retrieval, &random)
        }
        Issue.record("seed \(seed): no end after 400 facts")
    }

    static let reuse: [(reuse: Retrieval.Reuse, request: Retrieval.Request, mayReuse: Bool)] = [
        (.repeatable, request(), true), (.repeatable, request(.put), true), (.repeatable, request(.post), false),
        (.repeatable, request(.put, hasBody: true), false), (.repeatable, request(isUpgrade: true), false),
        (.withContent, request(.post, reuse: .withContent), true),
        (.withContent, request(.put, hasBody: true, reuse: .withContent), true),
        (.withContent, request(isUpgrade: true, reuse: .withContent), false),
        (.always, request(.post, hasBody: true, reuse: .always), true),
        (.always, request(isUpgrade: true, reuse: .always), true),
    ]
    @Test(arguments: reuse) func `which requests may go out on a pooled connection`(
        _ row: (reuse: Retrieval.Reuse, request: Retrieval.Request, mayReuse: Bool)
    ) {
        var retrieval = Retrieval(row.request, RetrievalPlan(reason: .uriMiss), client: .waiting, now: now)
        guard case .open(let mayReuse) = retrieval.on(.start, now: now) else {
            Issue.record("no connection is asked for")
            return
        }
        #expect(mayReuse == row.mayReuse)
    }

    @Test func `after a dead connection it must be a new one, whatever the request`() {
        var retrieval = Retrieval(
            request(reuse: .always), RetrievalPlan(reason: .uriMiss), client: .waiting, now: now)
        _ = retrieval.on(.start, now: now)
        _ = retrieval.on(.opened(isReused: true), now: now)
        guard case .reopen = retrieval.on(.closed(headBegan: false), now: now) else {
            Issue.record("the request is not sent again")
            return
        }
        let mayReuse = retrieval.mayReuseConnection
        #expect(!mayReuse)
    }

    /// What may come after an action; nil: the retrieval is over.
    private func fact(
        after action: Retrieval.Action, _ retrieval: borrowing Retrieval, _ random: inout SplitMix
    ) -> Fact? {
        func pick(_ events: [Fact]) -> Fact { events[Int(random.next() % UInt64(events.count))] }
        if case .switchProtocols = action { return nil }
        if retrieval.phase == .finished { return nil }
        switch action {
        case .store, .storePart: return pick([.stored, .stored, .notStored])
        case .pause: return .timedOut
        case .retry: return pick([.timedOut, .timedOut, .retryRefused])
        default: break
        }
        if random.next() % 40 == 0 { return .clientLeft(isStillNeeded: random.next() % 2 == 0) }
        if retrieval.phase == .opening {
            return pick([.opened(isReused: retrieval.mayReuseConnection), .notOpened(.connectionRefused), .timedOut])
        }
        if retrieval.phase == .asked {
            return pick([
                .interim, .interim, .closed(headBegan: false), .closed(headBegan: true), .switched, .timedOut,
                head(200, hundred, length: 100), head(206, part("40-59/100"), length: 20),
                head(206, part("0-49/100"), length: nil), head(304, tagged), head(304, fields((.eTag, "\"x\""))),
                head(503),
                head(416), head(200, unstorable, length: nil),
            ])
        }
        if retrieval.phase == .receiving {
            return pick([.received(7), .received(20), .ended(byClosing: false), .brokeOff, .sinkFull, .timedOut])
        }
        return .timedOut
    }
}
