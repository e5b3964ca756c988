import Access
import Caching
import EventLoop
import Framing
import Glibc
import Message
import Storage
import Transaction

/// What becomes of a response: stored, passed on, or a sign that what is stored is good (RFC 9111 §3, §4.3).
extension Fetch {
    func decide(_ response: ReceivedResponse) {
        let now = worker.wallTime
        if response.status == 304, plan.isConditional, let stored,
            !confirms(response.fields, stored.cached, received: now)
        {
            return askForTheWhole(stored)
        }
        let storing = storing(response, now)
        var isStorable = false
        if case .store = storing { isStorable = true }
        let action = transaction.on(
            .originHead(status: response.status, isStorable: isStorable, staleMayServe: staleMayServe))
        switch action {
        case .store:
            guard case .store(let cached) = storing, !store(response, cached, now) else { return }
            relay(response, notStored: nil)
        case .freshen:
            freshen(response, now)
        case .serveStale:
            serveStale(status: response.status)
        case .relay(let invalidates):
            if invalidates { invalidate(response.fields, status: response.status) }
            guard case .doNotStore(let reason) = storing else { return relay(response, notStored: nil) }
            relay(response, notStored: reason)
        case .identify, .decide, .tunnel, .lookUp, .serve, .serveAndRevalidate, .lead, .follow, .fetch, .refuse:
            preconditionFailure("a response can not lead back to \(action)")
        }
    }

    /// The origin confirmed something that is not what is stored: that goes, and the question is put anew.
    func askForTheWhole(_ stored: StoredResponse) {
        worker.shared.tier.remove(stored)
        plan = transaction.askForTheWhole(plan)
        if let connection { worker.origins.discard(connection) }
        connection = nil
        state = .acquiring
        worker.origins.acquire(for: self)
    }

    /// Responses with fields for one client alone (`private="…"`, `no-cache="…"`) are not stored: those whom the store
    /// serves would miss the fields, the first client among them.
    func storing(_ response: ReceivedResponse, _ now: WallTime) -> StoringDecision {
        guard request.method == .get, !request.hasBody else { return .doNotStore(.method) }
        let decision = decideStoring(
            of: request.cache, status: response.status, fields: response.fields, policy: snapshot.cachePolicy,
            requestTime: requestTime, responseTime: now)
        guard case .store(let cached) = decision, cached.directives.hasFieldLists else { return decision }
        return .doNotStore(.isPrivate)
    }

    var staleMayServe: Bool {
        guard let stored else { return false }
        return mayServeStaleOnError(stored.terms, for: request.cache, now: worker.wallTime)
    }

    /// - Returns: false where the store has no room for it; then it is passed on like any other.
    func store(_ response: ReceivedResponse, _ cached: CachedResponse, _ now: WallTime) -> Bool {
        var expected: Int?
        switch length {
        case .none: expected = 0
        case .length(let count): expected = Int(clamping: count)
        case .chunked, .untilClose, .tunnel: break
        }
        guard let body = worker.shared.tier.makeBody(expectedLength: expected) else {
            worker.counters.add(.storingRefused)
            return false
        }
        let fields = ForwardedHead.responseFields(
            response.fields, response.options, minorVersion: response.minorVersion, now: now)
        let record = StoredResponse(
            key: request.key, keyBytes: request.keyBytes, cached: cached, fields: fields,
            secondaryKey: cached.vary == .none ? nil : SecondaryKey(cached.vary, request: request.fields), body: body,
            contentLength: expected)
        guard worker.shared.tier.insert(record) else {
            worker.counters.add(.storingRefused)
            return false
        }
        sink = .store(record)
        transfer?.resolve(.published(record))
        exchange?.serve(record, as: .miss(plan.reason, status: response.status))
        return true
    }

    func freshen(_ response: ReceivedResponse, _ now: WallTime) {
        guard let stored else { preconditionFailure("a 304 to a question nobody asked") }
        let update = ForwardedHead.endToEnd(response.fields, response.options)
        let renewedFields = freshened(stored.fields, by: update, received: now)
        let renewed = stored.renewed(
            cached: CachedResponse(
                status: stored.cached.status, fields: renewedFields, requestTime: requestTime, responseTime: now,
                policy: snapshot.cachePolicy),
            fields: renewedFields)
        _ = worker.shared.tier.replace(stored, with: renewed)
        worker.counters.add(.freshened)
        transfer?.resolve(.published(renewed))
        sink = .discard
        exchange?.serve(renewed, as: .revalidated(plan.reason))
        exchange = nil
    }

    func serveStale(status: UInt16) {
        guard let stored else { preconditionFailure("nothing stale is at hand") }
        transfer?.resolve(.published(stored))
        sink = .discard
        exchange?.serve(stored, as: .staleOnError(plan.reason, status: status))
        exchange = nil
        if length != .none { abort() }
    }

    func relay(_ response: ReceivedResponse, notStored: NotStoredReason?) {
        transfer?.resolve(.notShared)
        guard let exchange else { return abort() }
        sink = .relay
        exchange.relayHead(response, length: length, reason: plan.reason, notStored: notStored)
    }

    /// RFC 9111 §4.4: a successful unsafe request makes what is stored for its target invalid.
    func invalidate(_ fields: Fields, status: UInt16) {
        guard let target = TargetURI(request.keyBytes) else { return }
        for uri in invalidatedURIs(target: target, status: status, fields: fields) {
            let bytes = uri.normalised
            let count = worker.shared.invalidate(bytes)
            worker.counters.add(.invalidated, count)
        }
    }

    func switchProtocols(_ response: ReceivedResponse, rest: UnsafeRawBufferPointer) {
        guard transaction.request.isUpgrade, let exchange, let connection, let fd = connection.surrender() else {
            return failBeforeHead(.responseInvalid)
        }
        finish()
        worker.origins.discard(connection)
        unsafe exchange.switchProtocols(response, origin: fd, early: Array(rest))
        self.exchange = nil
    }
}
