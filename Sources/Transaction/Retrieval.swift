package import Caching
package import Message

/// The machine of one retrieval from an origin: from the request to the last byte of the answer, over as many connections as that
/// takes.
///
/// ```
/// ready ─start─▶ opening ─opened─▶ asked ─head─▶ storing ─stored─▶ receiving ─ended─▶ finished
///                  ▲  ▲              │  │           └──notStored──▶    │
///                  │  └─retry────────┘  └─────────head────────────▶    │ brokeOff
///                  └──────────────── pausing ◀─────────────────────────┘
/// ```
///
/// If the origin did not answer, `retrying` leads from `opening` and `asked` back to `opening`.
///
/// It refers to no object outside. The driver reports facts (`Event`) and performs what is returned (`Action`). The driver owns the
/// connection, the body and the clock; the machine owns the order of events and every count that a decision depends on. It cannot be
/// copied: a retrieval has one state.
///
/// A retrieval asks one of three questions (`Question`), and its client is in one of three situations (`Client`). An interim response
/// goes to the client only while the client waits for its final head, so no head can end up inside a body.
package struct Retrieval: ~Copyable {
    /// Which requests may go out on a pooled connection. It may be dead already.
    package enum Reuse: Sendable {
        /// Those that can be sent again.
        case repeatable
        /// Those with content as well: a rule accepts that they fail.
        case withContent
        /// All of them, and those for another protocol: a new connection would not be authenticated, as the pooled one is.
        case always
    }

    /// What does not change during a retrieval, however often the origin is asked.
    package struct Request: Sendable {
        package let cache: CacheRequest
        package let isUpgrade: Bool
        /// The target URI of a POST, whose response may be stored for a later GET (RFC 9110 §9.3.3). Nil for other methods.
        package let postTarget: TargetURI?
        package let policy: CachePolicy
        let interimResponsesMax: Int
        let deadConnectionRetriesMax: Int
        let retriesMax: Int
        let reuse: Reuse

        /// - Parameters:
        ///   - deadConnectionRetriesMax: how often it is sent again because a pooled connection was dead.
        ///   - retriesMax: how often it is sent again because the origin did not answer.
        package init(
            cache: CacheRequest, isUpgrade: Bool, postTarget: TargetURI?, policy: CachePolicy,
            interimResponsesMax: Int, deadConnectionRetriesMax: Int, retriesMax: Int,
            reuse: Reuse = .repeatable
        ) {
            self.cache = cache
            self.isUpgrade = isUpgrade
            self.postTarget = postTarget
            self.policy = policy
            self.interimResponsesMax = interimResponsesMax
            self.deadConnectionRetriesMax = deadConnectionRetriesMax
            self.retriesMax = retriesMax
            self.reuse = reuse
        }

        /// Whether the request may be sent again after its connection turned out to be dead (RFC 9110 §9.2.2).
        package var isReplayable: Bool { cache.method.isIdempotent && !cache.hasBody && !cache.overridesMethod }
    }

    /// The stored responses whose validators may be sent (RFC 9111 §4.3.1). A class: most retrievals have none and spare the room.
    package final class Stored: Sendable {
        /// The selected response. It is validated, and is served stale if the origin fails.
        package let selected: CachedResponse?
        /// Other variants, one of which a 304 may select.
        package let candidates: [CachedResponse]

        package init(selected: CachedResponse? = nil, candidates: [CachedResponse] = []) {
            self.selected = selected
            self.candidates = candidates
        }
    }

    /// How much the client that asked has been sent.
    package enum Client: Sendable {
        /// No final head has been passed to the driver.
        case waiting
        /// Its final head has been sent, or is decided. Only the body of that head may follow.
        case answered
        /// The client left, or there never was one.
        case none
    }

    // Cases with a stored response are indirect, and what does not change while a body comes is kept beside the state. Each step copies the
    // state, which stays small this way.

    enum Question: Sendable {
        /// The client's own request, as received or with the validators of stored responses.
        case first(RetrievalPlan)
        /// A request for bytes that a stored response lacks.
        indirect case hole(PartAsked, RetrievalPlan)
        /// A request for the rest of a body whose beginning is in its sink.
        indirect case rest(PartAsked, Receiving)
    }

    /// Where the bytes of the body go.
    enum Sink: Sendable {
        /// To the client alone. `Retrieval.passed` has what a request for the rest needs.
        case pass
        case store(CachedResponse)
        /// Into the stored response, from offset `start` up to `end`. `wholeLength`: the length of its body.
        indirect case fill(CachedResponse, start: Int, end: Int, wholeLength: Int)
        /// Nowhere. The bytes are read only to reach the end of the message, after which its connection can be reused.
        case discard
    }

    /// What is needed of the head of a response that is passed on.
    struct Passed: Sendable {
        let status: UInt16
        let fields: Fields
        /// The length of the body in bytes, if the framing announces it.
        let length: UInt64?

        init(_ head: Head) {
            status = head.status
            fields = head.fields
            length = head.length
        }
    }

    /// The counts of a body that is being received, in bytes.
    struct Receiving: Sendable {
        /// Bytes passed to the sink so far, over all connections. Never more than `total` or `promised`.
        var received: UInt64 = 0
        /// Bytes that the sink gets in all; nil if unknown.
        var total: UInt64?
        /// The value that `received` has at the end of the present message, by its `Content-Range` or framing. Nil if unknown.
        var promised: UInt64?
        var resumptions: Resumptions
    }

    /// A question that has been sent.
    struct Attempt: Sendable {
        let isReused: Bool
        var interimResponses = 0
    }

    enum State: Sendable {
        case ready(Question)
        case opening(Question)
        case asked(Question, Attempt)
        /// A final head was received, and is kept in `passed`. The driver tries to store the response and reports whether it could.
        case storing(Receiving)
        case receiving(Receiving)
        /// The body broke off. The rest is requested after a pause.
        indirect case pausing(PartAsked, Receiving)
        /// The origin did not answer, for this reason. It is asked again after a pause.
        case retrying(Question, Refusal)
        /// - Parameter received: the bytes of the body that had come.
        case finished(received: UInt64)
    }

    package enum Phase: Sendable { case ready, opening, asked, storing, receiving, pausing, retrying, finished }

    package let request: Request
    /// Nil where nothing that is stored matters.
    var stored: Stored?
    /// The response that is passed on, or that will be if it cannot be stored. Nil if there is none.
    var passed: Passed?
    /// Where the body goes, from the final head on. The rest of a body goes where its beginning went.
    var sink = Sink.discard
    var listener: Client
    var state: State { didSet { phase = state.phase } }
    /// The state without its data. Stored, because the driver asks for it all the time.
    package private(set) var phase = Phase.ready
    var deadConnections = 0
    /// How often the request was sent again because the origin had not answered.
    var retries = 0
    /// How often the request was sent again because the origin, or a next proxy, had asked for credentials.
    var logIns = 0
    /// A challenge, one that has expired in the meantime, and as many for a second part of the origin.
    static let logInsMax = 4
    /// Whether Larder may ask for a 100 itself. Not again once the origin has refused that.
    package internal(set) var mayExpect = true
    /// The fields that replace the client's own conditions and ranges. Nil if the client's own are sent. Set when `send` is returned.
    package internal(set) var conditions: [(FieldName, [UInt8])]?
    /// When the request was sent that the last final head answers (request_time of RFC 9111 §4.2.3).
    var askedAt: WallTime
    private let resumptionsInVainMax: Int

    /// - Parameters:
    ///   - client: `.none` if no client waits, as for a validation after a stale answer.
    ///   - resumptionsInVainMax: successive resumptions without a single byte after which the retrieval gives up.
    package init(
        _ request: Request, _ plan: RetrievalPlan, stored: Stored? = nil, client: Client, now: WallTime,
        resumptionsInVainMax: Int = 4
    ) {
        self.init(request, .first(plan), stored, client, now, resumptionsInVainMax)
    }

    /// A retrieval of bytes that a stored response lacks.
    ///
    /// - Parameter client: `.answered` if the client has its final head already.
    package init(
        _ request: Request, hole: PartAsked, client: Client, now: WallTime, resumptionsInVainMax: Int = 4
    ) {
        let plan = RetrievalPlan(reason: .partial)
        self.init(request, .hole(hole, plan), nil, client, now, resumptionsInVainMax)
    }

    private init(
        _ request: Request, _ question: Question, _ stored: Stored?, _ client: Client, _ now: WallTime, _ inVainMax: Int
    ) {
        self.request = request
        self.stored = stored
        listener = client
        state = .ready(question)
        askedAt = now
        resumptionsInVainMax = inVainMax
    }

    func receiving(total: UInt64?) -> Receiving {
        Receiving(
            total: total, promised: total, resumptions: Resumptions(attemptsInVainMax: resumptionsInVainMax))
    }
}

// MARK: what the driver asks

extension Retrieval {
    // Computed: a stored property that other modules see would be checked for exclusive access wherever this module uses it.

    package var client: Client { listener }
    package var requestTime: WallTime { askedAt }

    /// The bytes of the body received so far, and the number in all if it is known.
    package var progress: (received: UInt64, total: UInt64?) {
        switch state {
        case .storing(let receiving), .receiving(let receiving), .pausing(_, let receiving),
            .opening(.rest(_, let receiving)), .asked(.rest(_, let receiving), _), .ready(.rest(_, let receiving)):
            (receiving.received, receiving.total)
        case .ready(.first), .ready(.hole), .opening(.first), .opening(.hole), .asked(.first, _), .asked(.hole, _),
            .retrying:
            (0, nil)
        case .finished(let received): (received, nil)
        }
    }

    /// How many bytes may still be received. More would contradict what the origin announced.
    package var roomLeft: UInt64 {
        guard case .receiving(let receiving) = state else { return 0 }
        let end = min(receiving.total ?? .max, receiving.promised ?? .max)
        precondition(receiving.received <= end, "bytes beyond the end are never received")
        return end - receiving.received
    }

    /// The response that the action `store` asks the driver to store.
    package var responseToStore: CachedResponse {
        guard phase == .storing, case .store(let cached) = sink else {
            preconditionFailure("no response is to be stored")
        }
        return cached
    }

    /// Whether the request may go out on a pooled connection.
    package var mayReuseConnection: Bool {
        guard deadConnections == 0 else { return false }
        return switch request.reuse {
        case .repeatable: request.isReplayable && !request.isUpgrade
        case .withContent: !request.isUpgrade
        case .always: true
        }
    }

    /// Whether an answer is of use that another node calls stale. It cannot validate what is stored here; without that, it is better than none.
    package var takesStale: Bool {
        switch state {
        case .asked(.first(let plan), _): !plan.isConditional
        case .asked(.hole, _), .asked(.rest, _): true
        case .ready, .opening, .storing, .receiving, .pausing, .retrying, .finished: false
        }
    }

    func conditions(of question: Question) -> [(FieldName, [UInt8])]? {
        switch question {
        case .hole(let part, _): return part.conditions(asStored: true)
        case .rest(let part, _):
            if case .fill = sink { return part.conditions(asStored: true) }
            return part.conditions(asStored: false)
        case .first(let plan):
            guard plan.isConditional, let stored else { return plan.asksForWhole ? [] : nil }
            if let selected = stored.selected { return conditionalFields(for: selected) }
            return conditionalFields(forOneOf: stored.candidates)
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
        case .retrying: .retrying
        case .finished: .finished
        }
    }
}
