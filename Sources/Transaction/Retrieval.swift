package import Caching
package import Message

/// One retrieval from an origin: from the question to the last byte of the answer, over as many connections as that takes.
///
/// ```
/// ready ─start─▶ opening ─opened─▶ asked ─head─▶ storing ─stored─▶ receiving ─ended─▶ finished
///                  ▲  ▲              │  │           └──notStored──▶    │
///                  │  └─retry────────┘  └─────────head────────────▶    │ brokeOff
///                  └──────────────── pausing ◀─────────────────────────┘
/// ```
///
/// It refers to nothing outside: the driver tells it facts (`Event`) and carries out what it returns (`Action`). The driver owns
/// the connection, the body and the clock; the machine owns the order of things, and all counts that decide about it. A class, so that
/// a driver that asks it something does not copy it.
///
/// What is asked is one of three questions (`Question`), and the client is in one of three situations (`Client`). An interim response is
/// the client's as long as it waits for its final head, and nobody's from then on: no head can stand inside a body.
package final class Retrieval {
    /// What stays the same from the first question to the last.
    package struct Request: Sendable {
        package let cache: CacheRequest
        package let isUpgrade: Bool
        /// The target, for the answer to a POST that may stand for it (RFC 9110 §9.3.3); nil for every other method.
        package let postTarget: TargetURI?
        package let policy: CachePolicy
        package let limits: Limits

        package init(
            cache: CacheRequest, isUpgrade: Bool, postTarget: TargetURI?, policy: CachePolicy, limits: Limits
        ) {
            self.cache = cache
            self.isUpgrade = isUpgrade
            self.postTarget = postTarget
            self.policy = policy
            self.limits = limits
        }

        /// The request may go out again when its connection turns out dead (RFC 9110 §9.2.2).
        package var isReplayable: Bool { cache.method.isIdempotent && !cache.hasBody && !cache.overridesMethod }
    }

    /// The stored responses whose validators may go along (RFC 9111 §4.3.1).
    package struct Stored: Sendable {
        /// The one that was selected: to be validated, and to fall back on.
        package var selected: CachedResponse?
        /// Other variants of which the origin may say that one suits.
        package var candidates: [CachedResponse]

        package init(selected: CachedResponse? = nil, candidates: [CachedResponse] = []) {
            self.selected = selected
            self.candidates = candidates
        }
    }

    /// Where the client stands for whom this is retrieved.
    package enum Client: Sendable {
        /// Nothing of a final answer has gone to it.
        case waiting
        /// Its final head has gone out, or is decided on: nothing but that head's body may follow.
        case answered
        /// It left, or there never was one.
        case none
    }

    // The cases that carry a stored response or a head are indirect: a state is copied with each step, and stays small.

    enum Question: Sendable {
        /// The client's own, as it came or with the validators of what is stored.
        case first(RetrievalPlan)
        /// Bytes that are missing in a stored response.
        indirect case hole(PartAsked, RetrievalPlan)
        /// The rest of a body whose beginning has gone to its sink.
        indirect case rest(PartAsked, Receiving)
    }

    /// Where the bytes of the body go, and what they belong to.
    enum Sink: Sendable {
        /// To the client alone. `passed` is what is needed to ask for the rest.
        case pass
        indirect case store(CachedResponse)
        /// Into a stored response of that length, from `start` up to `end`.
        indirect case fill(CachedResponse, start: Int, end: Int, wholeLength: Int)
        /// Nobody wants them: they end the message, so that its connection can be used again.
        case discard
    }

    /// A body on its way to its sink.
    struct Receiving: Sendable {
        let sink: Sink
        /// Bytes that have gone to the sink, over all connections.
        var received: UInt64 = 0
        /// Bytes the sink gets in all; nil: not known.
        var total: UInt64?
        /// What `received` will be when the message under way has kept its promise; nil: it promised nothing.
        var promised: UInt64?
        var resumptions: Resumptions
    }

    /// A question that is out.
    struct Attempt: Sendable {
        let isReused: Bool
        var interimResponses = 0
    }

    enum State: Sendable {
        case ready(Question)
        case opening(Question)
        case asked(Question, Attempt)
        /// A final head came. The driver tries to store it and says whether it could.
        indirect case storing(Head, Receiving)
        case receiving(Receiving)
        /// The body broke off; the rest is asked for in a moment.
        indirect case pausing(PartAsked, Receiving)
        case finished
    }

    package enum Phase: Sendable { case ready, opening, asked, storing, receiving, pausing, finished }

    package let request: Request
    package internal(set) var stored: Stored
    /// The head of the response that is passed on; nil as long as there is none.
    var passed: (status: UInt16, fields: Fields)?
    package internal(set) var client: Client
    var state: State
    /// What is waited for.
    package var phase: Phase { state.phase }
    var deadConnections = 0
    /// When the question went out to which the last final head is the answer.
    package internal(set) var requestTime: WallTime
    private let resumptionsInVainMax: Int

    /// - Parameters:
    ///   - client: `.none` where no client waits: a validation behind the client's back, a hole filled for later.
    ///   - resumptionsInVainMax: attempts to resume that bring nothing before the transfer is given up.
    package convenience init(
        _ request: Request, _ plan: RetrievalPlan, stored: Stored = Stored(), client: Client, now: WallTime,
        resumptionsInVainMax: Int = 4
    ) {
        self.init(request, .first(plan), stored, client, now, resumptionsInVainMax)
    }

    /// Of the bytes that are missing in a stored response.
    ///
    /// - Parameter client: `.answered` where the beginning has gone out already.
    package convenience init(
        _ request: Request, hole: PartAsked, client: Client, now: WallTime, resumptionsInVainMax: Int = 4
    ) {
        let plan = RetrievalPlan(reason: .partial)
        self.init(request, .hole(hole, plan), Stored(), client, now, resumptionsInVainMax)
    }

    private init(
        _ request: Request, _ question: Question, _ stored: Stored, _ client: Client, _ now: WallTime, _ inVainMax: Int
    ) {
        self.request = request
        self.stored = stored
        self.client = client
        state = .ready(question)
        requestTime = now
        resumptionsInVainMax = inVainMax
    }

    func receiving(_ sink: Sink, total: UInt64?) -> Receiving {
        Receiving(
            sink: sink, total: total, promised: total,
            resumptions: Resumptions(attemptsInVainMax: resumptionsInVainMax))
    }
}

// MARK: what the driver asks

extension Retrieval {
    /// Bytes of the body that came so far, and how many it will have.
    package var progress: (received: UInt64, total: UInt64?) {
        switch state {
        case .storing(_, let receiving), .receiving(let receiving), .pausing(_, let receiving),
            .opening(.rest(_, let receiving)), .asked(.rest(_, let receiving), _), .ready(.rest(_, let receiving)):
            (receiving.received, receiving.total)
        case .ready(.first), .ready(.hole), .opening(.first), .opening(.hole), .asked(.first, _), .asked(.hole, _),
            .finished:
            (0, nil)
        }
    }

    /// Bytes that may still come: more than that is a violation of what the origin said.
    package var roomLeft: UInt64 {
        guard case .receiving(let receiving) = state else { return 0 }
        let end = min(receiving.total ?? .max, receiving.promised ?? .max)
        precondition(receiving.received <= end, "bytes beyond the end are never received")
        return end - receiving.received
    }

    /// What the action `store` speaks of.
    package var responseToStore: CachedResponse {
        guard case .storing(_, let receiving) = state, case .store(let cached) = receiving.sink else {
            preconditionFailure("no response is to be stored")
        }
        return cached
    }

    /// Only what can be sent again goes out on a pooled connection: it may be dead without anybody knowing.
    package var mayReuseConnection: Bool { request.isReplayable && deadConnections == 0 && !request.isUpgrade }

    /// The fields that take the place of the client's own conditions and ranges; empty: the client's own go out.
    package var conditions: [(FieldName, [UInt8])] {
        guard let question else { return [] }
        switch question {
        case .hole(let part, _): return part.conditions(asStored: true)
        case .rest(let part, let receiving):
            if case .fill = receiving.sink { return part.conditions(asStored: true) }
            return part.conditions(asStored: false)
        case .first(let plan):
            guard plan.isConditional else { return [] }
            if let selected = stored.selected { return conditionalFields(for: selected) }
            return conditionalFields(forOneOf: stored.candidates)
        }
    }

    private var question: Question? {
        switch state {
        case .ready(let question), .opening(let question), .asked(let question, _): question
        case .storing, .receiving, .pausing, .finished: nil
        }
    }
}

extension Retrieval.State {
    fileprivate var phase: Retrieval.Phase {
        switch self {
        case .ready: .ready
        case .opening: .opening
        case .asked: .asked
        case .storing: .storing
        case .receiving: .receiving
        case .pausing: .pausing
        case .finished: .finished
        }
    }
}
