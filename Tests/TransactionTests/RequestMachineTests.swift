import Access
import Caching
import Message
import Testing
import Transaction

private func request(
    _ method: Method = .get, fields: Fields = Fields(), isTunnel: Bool = false, isUpgrade: Bool = false,
    hasBody: Bool = false, needsIdentity: Bool = false, asksForOriginState: Bool = false, collapses: Bool = true,
    use: CacheUse = [], storesParts: Bool = true, takesWhole: Bool = false
) -> RequestMachine.Request {
    var cache = CacheRequest(method: method, fields: fields)
    cache.hasBody = hasBody
    return RequestMachine.Request(
        cache: cache, isTunnel: isTunnel, isUpgrade: isUpgrade, hasBody: hasBody, needsIdentity: needsIdentity,
        asksForOriginState: asksForOriginState, collapses: collapses, use: use, storesParts: storesParts,
        takesWhole: takesWhole)
}

private let range = fields((.range, "bytes=0-9"))

private func fields(_ lines: (FieldName, String)...) -> Fields {
    var result = Fields()
    for (name, value) in lines { result.append(name, value) }
    return result
}

/// Feeds the events and gives the actions, one per event.
private func run(_ request: RequestMachine.Request, _ events: [RequestMachine.Event]) -> [RequestMachine.Action] {
    var machine = RequestMachine(request)
    return events.map { machine.on($0) }
}

private let allow = RequestMachine.Event.verdict(.allow(rule: nil))
private let denied = Denial(reason: .rule, text: "not on the list")

private func retrieve(
    _ reason: CacheStatus.ForwardReason, conditional: Bool = false, leading: Bool = false, whole: Bool = false
) -> RequestMachine.Action {
    .retrieve(RetrievalPlan(reason: reason, isConditional: conditional, isLeading: leading, asksForWhole: whole))
}

@Suite("A request asks who, whether, what is stored and the origin in this order")
struct RequestMachineTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let request: RequestMachine.Request
        let events: [RequestMachine.Event]
        let actions: [RequestMachine.Action]

        init(
            _ name: String, _ request: RequestMachine.Request, _ events: [RequestMachine.Event],
            expect actions: [RequestMachine.Action]
        ) {
            testDescription = name
            self.request = request
            self.events = events
            self.actions = actions
        }
    }

    static let decide = RequestMachine.Action.decide(resolved: false)

    static let rows = [
        Row(
            "a hit asks the rules, then the store", request(),
            [.head, allow, .stored(.serve(age: Seconds(3), ttl: Seconds(7)))],
            expect: [decide, .lookUp, .serve(age: Seconds(3), ttl: Seconds(7))]),
        Row(
            "credentials come before the rules", request(needsIdentity: true), [.head, .identified, allow],
            expect: [.identify, decide, .lookUp]),
        Row(
            "wrong credentials end it", request(needsIdentity: true), [.head, .refused(.authenticationRequired)],
            expect: [.identify, .refuse(.authenticationRequired)]),
        Row(
            "a denied request never reaches the store", request(), [.head, .verdict(.deny(denied))],
            expect: [decide, .refuse(.accessDenied)]),
        Row(
            "rules that hang on the address are asked again with it", request(),
            [.head, .verdict(.needsAddress), allow], expect: [decide, .decide(resolved: true), .lookUp]),
        Row(
            "a private address is refused as such", request(),
            [.head, .verdict(.deny(Denial(reason: .privateDestination, text: "no")))],
            expect: [decide, .refuse(.destinationForbidden)]),
        Row(
            "CONNECT never sees the store", request(.connect, isTunnel: true), [.head, allow],
            expect: [decide, .tunnel]),
        Row(
            "a miss leads where others may follow", request(), [.head, allow, .stored(nil), .leading],
            expect: [decide, .lookUp, .lead, retrieve(.uriMiss, leading: true)]),
        Row(
            "a miss fetches at once where collapsing is off", request(collapses: false), [.head, allow, .stored(nil)],
            expect: [decide, .lookUp, retrieve(.uriMiss)]),
        Row(
            "stored in other variants only", request(),
            [.head, allow, .variantMissing(hasValidators: false), .leading],
            expect: [decide, .lookUp, .lead, retrieve(.varyMiss, leading: true)]),
        Row(
            "the store may have changed before the lead was taken", request(),
            [.head, allow, .stored(nil), .lookAgain, .stored(.serve(age: .zero, ttl: Seconds(9)))],
            expect: [decide, .lookUp, .lead, .lookUp, .serve(age: .zero, ttl: Seconds(9))]),
        Row(
            "a follower is served when the leader publishes", request(),
            [.head, allow, .stored(nil), .following, .leaderPublished(.serve)],
            expect: [decide, .lookUp, .lead, .follow, .servePublished]),
        Row(
            "a follower whom the variant does not suit fetches alone", request(),
            [.head, allow, .stored(nil), .following, .leaderPublished(.unsuitable)],
            expect: [decide, .lookUp, .lead, .follow, retrieve(.uriMiss)]),
        Row(
            "a follower of what must not be reused without asking asks on its own, and leads nobody", request(),
            [.head, allow, .stored(nil), .following, .leaderPublished(.validate)],
            expect: [decide, .lookUp, .lead, .follow, retrieve(.uriMiss, conditional: true)]),
        Row(
            "where responses are for one client each, nobody waits for another's", request(),
            [.head, allow, .stored(.validate(.responseNoCache)), .keptApart],
            expect: [decide, .lookUp, .lead, retrieve(.stale, conditional: true)]),
        Row(
            "where the whole alone is stored, a part joins its fetch", request(fields: range, storesParts: false),
            [.head, allow, .stored(nil), .following, .leaderPublished(.serve)],
            expect: [decide, .lookUp, .join, .follow, .servePublished]),
        Row(
            "if that fails, it asks for the part itself", request(fields: range, storesParts: false),
            [.head, allow, .stored(nil), .following, .leaderFailed(.responseInvalid, staleMayServe: false)],
            expect: [decide, .lookUp, .join, .follow, retrieve(.uriMiss)]),
        Row(
            "but not for a part of a body that was wrong", request(fields: range, storesParts: false),
            [.head, allow, .stored(nil), .following, .leaderFailed(.digestMismatch, staleMayServe: false)],
            expect: [decide, .lookUp, .join, .follow, .refuse(.digestMismatch)]),
        Row(
            "and leads none", request(fields: range, storesParts: false), [.head, allow, .stored(nil), .nobodyLeads],
            expect: [decide, .lookUp, .join, retrieve(.uriMiss)]),
        Row(
            "a part of a body that was wrong leads the fetch of the whole",
            request(fields: range, storesParts: false, takesWhole: true), [.head, allow, .stored(nil), .leading],
            expect: [decide, .lookUp, .lead, retrieve(.uriMiss, leading: true, whole: true)]),
        Row(
            "and asks for it alone where it cannot be led",
            request(fields: range, collapses: false, storesParts: false, takesWhole: true),
            [.head, allow, .stored(nil)], expect: [decide, .lookUp, retrieve(.uriMiss, whole: true)]),
        Row(
            "with no-cache it joins none either",
            request(fields: fields((.range, "bytes=0-9"), (.cacheControl, "no-cache")), storesParts: false),
            [.head, allow, .stored(nil)], expect: [decide, .lookUp, retrieve(.uriMiss)]),
        Row(
            "no-cache joins no fetch that began before it", request(fields: fields((.cacheControl, "no-cache"))),
            [.head, allow, .stored(.validate(.requestNoCache)), .following],
            expect: [decide, .lookUp, .lead, retrieve(.request, conditional: true)]),
        Row(
            "nor does max-age=0", request(fields: fields((.cacheControl, "max-age=0"))),
            [.head, allow, .stored(nil), .following], expect: [decide, .lookUp, .lead, retrieve(.uriMiss)]),
        Row(
            "no-cache may lead", request(fields: fields((.cacheControl, "no-cache"))),
            [.head, allow, .stored(nil), .leading],
            expect: [decide, .lookUp, .lead, retrieve(.uriMiss, leading: true)]),
        Row(
            "with cache-first anything will do, whatever the client says",
            request(fields: fields((.cacheControl, "no-cache")), use: .cacheFirst),
            [.head, allow, .stored(nil), .following], expect: [decide, .lookUp, .lead, .follow]),
        Row(
            "a response that may not be shared lets everybody go", request(),
            [.head, allow, .stored(nil), .following, .leaderNotShared],
            expect: [decide, .lookUp, .lead, .follow, retrieve(.uriMiss)]),
        Row(
            "the leader's failure is everybody's", request(),
            [.head, allow, .stored(nil), .following, .leaderFailed(.connectionRefused, staleMayServe: false)],
            expect: [decide, .lookUp, .lead, .follow, .refuse(.connectionRefused)]),
        Row(
            "stale is validated, and one does it for all", request(),
            [.head, allow, .stored(.validate(.stale)), .leading],
            expect: [decide, .lookUp, .lead, retrieve(.stale, conditional: true, leading: true)]),
        Row(
            "HEAD validates nothing", request(.head), [.head, allow, .stored(.validate(.stale))],
            expect: [decide, .lookUp, retrieve(.stale)]),
        Row(
            "only-if-cached and nothing stored: 504", request(fields: fields((.cacheControl, "only-if-cached"))),
            [.head, allow, .stored(nil)], expect: [decide, .lookUp, .refuse(.onlyIfCached)]),
        Row(
            "stale-while-revalidate serves and validates behind", request(),
            [.head, allow, .stored(.serveStaleAndRevalidate(age: Seconds(9), ttl: Seconds(-1)))],
            expect: [decide, .lookUp, .serveAndRevalidate(age: Seconds(9), ttl: Seconds(-1))]),
        Row(
            "If-Match is for the origin alone", request(asksForOriginState: true), [.head, allow],
            expect: [decide, retrieve(.bypass)]),
        Row(
            "an upgrade is for the origin alone", request(isUpgrade: true), [.head, allow],
            expect: [decide, retrieve(.bypass)]),
        Row(
            "a range that is not stored is fetched for others, too", request(fields: fields((.range, "bytes=0-1"))),
            [.head, allow, .stored(nil), .leading],
            expect: [decide, .lookUp, .lead, retrieve(.uriMiss, leading: true)]),
        Row(
            "no-store leads nobody", request(fields: fields((.cacheControl, "no-store"))),
            [.head, allow, .stored(nil)], expect: [decide, .lookUp, retrieve(.uriMiss)]),
        Row(
            "anything may end in a refusal of ours", request(), [.head, allow, .stored(nil), .refused(.internalError)],
            expect: [decide, .lookUp, .lead, .refuse(.internalError)]),
        Row(
            "POST goes to the origin", request(.post, hasBody: true), [.head, allow],
            expect: [decide, retrieve(.method)]),
        Row(
            "an unknown method counts as unsafe", request(.other), [.head, allow],
            expect: [decide, retrieve(.method)]),
        Row(
            "where the leader failed, what is stored may serve", request(),
            [
                .head, allow, .stored(.validate(.stale)), .following,
                .leaderFailed(.connectionRefused, staleMayServe: true),
            ],
            expect: [decide, .lookUp, .lead, .follow, .serveStale]),
        Row(
            "a stored body that cannot be read is retrieved after all", request(),
            [.head, allow, .stored(.serve(age: .zero, ttl: Seconds(9))), .bodyUnavailable(.uriMiss)],
            expect: [decide, .lookUp, .serve(age: .zero, ttl: Seconds(9)), retrieve(.uriMiss)]),
        Row(
            "a stored body that cannot be read, and the origin may not be asked: 504",
            request(fields: fields((.cacheControl, "only-if-cached"))),
            [.head, allow, .stored(.serve(age: .zero, ttl: Seconds(9))), .bodyUnavailable(.uriMiss)],
            expect: [decide, .lookUp, .serve(age: .zero, ttl: Seconds(9)), .refuse(.onlyIfCached)]),
        Row(
            "a hole is filled, one after the other", request(),
            [.head, allow, .stored(.serve(age: .zero, ttl: Seconds(9))), .holeFound, .holeFound],
            expect: [decide, .lookUp, .serve(age: .zero, ttl: Seconds(9)), .fillHole, .fillHole]),
        Row(
            "a part that cannot be kept is retrieved for this client alone", request(),
            [.head, allow, .stored(.serve(age: .zero, ttl: Seconds(9))), .partNotKept],
            expect: [decide, .lookUp, .serve(age: .zero, ttl: Seconds(9)), retrieve(.partial)]),
    ]

    @Test(arguments: rows) func `each event leads to the action that follows it`(_ row: Row) {
        #expect(run(row.request, row.events) == row.actions)
    }

    /// Any order of events that the driver can produce: the machine asks, somebody answers at random.
    @Test(arguments: 0..<200) func `no order of events traps, and every request ends`(_ seed: UInt64) {
        var random = SplitMix(seed)
        let methods: [Method] = [.get, .get, .head, .post, .connect, .other]
        let method = methods[Int(random.next() % 6)]
        let made = request(
            method, isTunnel: method == .connect, hasBody: method == .post, needsIdentity: random.next() % 3 == 0,
            collapses: random.next() % 4 != 0)
        var machine = RequestMachine(made)
        var action = machine.on(.head)
        for _ in 0..<50 {
            guard let answer = answer(to: action, &random) else { return }
            action = machine.on(answer)
        }
        Issue.record("seed \(seed): no end after 50 events, last \(action)")
    }

    /// What may come after an action; nil where it was the last.
    private func answer(to action: RequestMachine.Action, _ random: inout SplitMix) -> RequestMachine.Event? {
        let options: [RequestMachine.Event]
        switch action {
        case .identify: options = [.identified, .refused(.authenticationRequired)]
        case .decide(resolved: false): options = [allow, .verdict(.deny(denied)), .verdict(.needsAddress)]
        case .decide(resolved: true): options = [allow, .verdict(.deny(denied)), .refused(.nameNotFound)]
        case .lookUp:
            options = [
                .stored(nil), .variantMissing(hasValidators: false), .stored(.serve(age: .zero, ttl: Seconds(1))),
                .stored(.validate(.requestNoCache)),
                .stored(.fetch(.authorization)), .stored(.refuse),
                .stored(.serveStaleAndRevalidate(age: Seconds(2), ttl: Seconds(-1))),
            ]
        case .lead: options = [.leading, .following, .keptApart, .lookAgain]
        case .join: options = [.nobodyLeads, .following, .keptApart, .lookAgain]
        case .follow:
            options = [
                .leaderPublished(.serve), .leaderPublished(.validate), .leaderPublished(.unsuitable), .leaderNotShared,
                .leaderFailed(.responseTimeout, staleMayServe: random.next() % 2 == 0), .collapseTimedOut,
            ]
        case .serve, .serveAndRevalidate, .servePublished, .serveStale, .retrieve, .fillHole:
            if random.next() % 3 == 0 { return nil }
            options = [.bodyUnavailable(.varyMiss), .holeFound, .partNotKept]
        case .tunnel, .refuse: return nil
        }
        return options[Int(random.next() % UInt64(options.count))]
    }
}

struct SplitMix {
    private var state: UInt64
    init(_ seed: UInt64) { state = seed }
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}

@Suite("RFC 9209 §2.3 Refusals")
struct RefusalTests {
    /// The error types that RFC 9209 §2.3 registers and we use, with the status it recommends where it does.
    static let registered: Set<String> = [
        "dns_timeout", "dns_error", "destination_not_found", "destination_unavailable", "destination_ip_prohibited",
        "destination_ip_unroutable", "connection_refused", "connection_terminated", "connection_timeout",
        "connection_read_timeout", "connection_write_timeout", "connection_limit_reached", "tls_protocol_error",
        "tls_certificate_error", "tls_alert_received", "http_request_error", "http_request_denied",
        "http_response_incomplete", "http_response_header_section_size", "http_response_header_size",
        "http_response_body_size", "http_response_trailer_section_size", "http_response_trailer_size",
        "http_response_transfer_coding", "http_response_content_coding", "http_response_timeout",
        "http_upgrade_failed", "http_protocol_error", "proxy_internal_response", "proxy_internal_error",
        "proxy_configuration_error", "proxy_loop_detected",
    ]

    @Test(arguments: Refusal.allCases) func `each refusal has a registered error type, a status and an explanation`(
        _ refusal: Refusal
    ) {
        #expect(RefusalTests.registered.contains("\(refusal.proxyStatusError)"))
        #expect((400...511).contains(refusal.status))
        #expect("\(refusal.explanation)".hasSuffix("."))
        #expect(refusal.name.allSatisfy { $0.isLowercase || $0 == "-" || $0.isNumber })
    }

    @Test func `each refusal has its own name`() {
        #expect(Set(Refusal.allCases.map(\.name)).count == Refusal.allCases.count)
    }
}
