import Access
import Caching
import EventLoop
import Forwarding
import Framing
import Glibc
import Message
import Storage
import Transaction

/// What becomes of a response: stored, passed on, or a sign that what is stored is good (RFC 9111 §3, §4.3).
extension Fetch {
    /// - Parameter rest: what came behind the head.
    func decide(_ response: ReceivedResponse, _ rest: UnsafeRawBufferPointer) {
        let now = worker.wallTime
        if response.status == 304, plan.isConditional {
            guard let confirmed = confirmed(by: response, now) else { return askForTheWhole() }
            stored = confirmed
        }
        if response.status == 206, request.method == .get, request.cache.hasRange {
            return decideAnswerToRange(response, now)
        }
        let storing = storing(response, now)
        var isStorable = false
        if case .store = storing { isStorable = true }
        let action = transaction.on(
            .originHead(status: response.status, isStorable: isStorable, staleMayServe: staleMayServe))
        switch action {
        case .store:
            // The answer to a POST can stand for its target (RFC 9110 §9.3.3); what was stored before can not any more.
            if invalidates(request.cache, status: response.status) {
                invalidate(response.fields, status: response.status)
                invalidationsBefore = request.tier.invalidations
            }
            guard case .store(let cached) = storing, unsafe !store(response, cached, now, rest) else { return }
            relay(response, notStored: nil)
        case .freshen:
            freshen(response, now)
        case .serveStale:
            serveStale(status: response.status)
        case .relay(let invalidates):
            if invalidates { invalidate(response.fields, status: response.status) }
            if request.method == .head { updateStored(by: response, now) }
            guard case .doNotStore(let reason) = storing else { return relay(response, notStored: nil) }
            relay(response, notStored: reason)
        case .identify, .decide, .tunnel, .lookUp, .serve, .serveAndRevalidate, .lead, .follow, .fetch, .refuse:
            preconditionFailure("a response can not lead back to \(action)")
        }
    }

    /// Which of the stored responses whose validators went out a 304 speaks of (RFC 9111 §4.3.4).
    private func confirmed(by response: ReceivedResponse, _ now: WallTime) -> StoredResponse? {
        if let stored { return confirms(response.fields, stored.cached, received: now) ? stored : nil }
        return selected(by: response.fields, among: candidates.map(\.cached), received: now).first.map {
            candidates[$0]
        }
    }

    /// The origin confirmed something that is not what is stored (RFC 9111 §4.3.4): the 304 updates nothing, and the origin is asked for
    /// the whole. What is stored is stale now, whatever its lifetime says, since another representation is current. It stays, to
    /// stand in where the origin fails and stale responses are allowed (§4.2.4), until a new response takes its place.
    private func askForTheWhole() {
        if let stored {
            let outdated = stored.outdated
            _ = request.tier.replace(stored, with: outdated)
            self.stored = outdated
        }
        candidates = []
        plan = transaction.askForTheWhole(plan)
        if let connection { worker.origins.discard(connection) }
        connection = nil
        askAgain()
    }

    func storing(_ response: ReceivedResponse, _ now: WallTime) -> StoringDecision {
        decideStoring(
            of: request.cache, status: response.status, fields: response.fields, policy: snapshot.cachePolicy,
            treatment: treatment(of: response), requestTime: requestTime, responseTime: now,
            target: request.method == .post ? TargetURI(request.uri) : nil)
    }

    var staleMayServe: Bool {
        // What misses parts that the client wants can not stand in for an origin that fails.
        guard let stored, stored.body.state != .failed, hole == nil, exchange?.isCovered(by: stored) != false else {
            return false
        }
        let use = request.treatment(of: stored, by: snapshot).use
        return mayServeStaleOnError(stored.terms, for: request.cache, use: use, now: worker.wallTime)
    }

    /// - Returns: false where the store has no room for it; then it is passed on like any other.
    func store(
        _ response: ReceivedResponse, _ cached: CachedResponse, _ now: WallTime, _ rest: UnsafeRawBufferPointer
    ) -> Bool {
        var expected: Int?
        switch length {
        case .none: expected = 0
        case .length(let count): expected = Int(clamping: count)
        case .chunked, .untilClose, .tunnel: break
        }
        let treatment = treatment(of: response)
        if let expected, storeLarge(response, cached, expected, treatment, now) { return true }
        guard !isOutdated,
            let body = request.tier.makeBody(
                expectedLength: expected, lengthMax: request.memoryObjectSizeMax(treatment))
        else {
            worker.counters.add(.storingRefused)
            return false
        }
        let whole = unsafe wholeBody(in: rest)
        if let whole = unsafe whole, case .appended = unsafe body.append(whole) { _ = body.finish() }
        let fields = endToEndFields(response, now)
        let kept = storedFields(of: fields, as: cached)
        let record = StoredResponse(
            request: request, cached: cached, fields: kept, body: body, contentLength: expected,
            treatment: treatment,
            trailers: decoder == nil ? nil : TransientTrailers())
        guard insert(record) else {
            worker.counters.add(.storingRefused)
            return false
        }
        sink = .store(record)
        if body.state == .complete { take(body.length) }
        transfer?.resolve(.published(record))
        exchange?.serve(
            record, as: .miss(plan.reason, status: response.status),
            ownFields: kept.lines.count == fields.lines.count ? nil : fields)
        return true
    }

    /// What is large goes to the disk as it comes: a partial response whose first hole is all of it. It does not take memory, others read it
    /// while it comes, and what has come outlives the process.
    /// - Returns: false: it does not go there.
    private func storeLarge(
        _ response: ReceivedResponse, _ cached: CachedResponse, _ length: Int, _ treatment: CacheTreatment,
        _ now: WallTime
    ) -> Bool {
        guard !isOutdated, length <= request.objectSizeMax(treatment) else { return false }
        let fields = endToEndFields(response, now)
        let kept = storedFields(of: fields, as: cached)
        guard let record = largeRecord(length, treatment, cached, kept) else { return false }
        // Claimed before others know it: one of them would fetch the same.
        guard case .missing(let fill) = record.body.claim(at: 0, limit: length), insert(record) else {
            request.tier.remove(record)
            return false
        }
        sink = .fill(fill, of: record)
        transfer?.resolve(.published(record))
        exchange?.serve(
            record, as: .miss(plan.reason, status: response.status),
            ownFields: kept.lines.count == fields.lines.count ? nil : fields)
        return true
    }

    /// A record without a byte whose blocks go to the disk; nil: it does not belong there, or the disk does not take it.
    func largeRecord(
        _ length: Int, _ treatment: CacheTreatment, _ cached: CachedResponse, _ fields: Fields
    ) -> StoredResponse? {
        guard length > Tiers.packedLengthMax, treatment.storage != .session,
            treatment.admission == .all || request.tier.hasSeen(request.key)
        else { return nil }
        let record = request.tier.makeLargeRecord(length: length) { body in
            StoredResponse(
                request: request, cached: cached, fields: fields, body: body, contentLength: length,
                treatment: treatment)
        }
        return record.map { unsafe unsafeDowncast($0, to: StoredResponse.self) }
    }

    /// Makes it visible, unless it has become outdated at this moment: then it is for those who wait for it already.
    func insert(_ record: StoredResponse) -> Bool {
        guard request.tier.insert(record) else { return false }
        if isOutdated { request.tier.remove(record) }
        return true
    }

    /// What the origin says now may be from before an unsafe request or a purge.
    var isOutdated: Bool { transfer?.isOutdated ?? (request.tier.invalidations != invalidationsBefore) }

    /// A body that came whole together with its head, as most small ones do: it is stored before anybody reads it, so nobody
    /// has to wait for it nor be told how far it is.
    private func wholeBody(in rest: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        guard case .length(let count) = length, count > 0, count <= UInt64(rest.count) else { return nil }
        return unsafe UnsafeRawBufferPointer(rebasing: rest[..<Int(count)])
    }

    private func take(_ count: Int) {
        taken = count
        received += UInt64(count)
        remaining -= UInt64(count)
    }

    /// The fields that go on, with what a proxy adds.
    func endToEndFields(_ response: ReceivedResponse, _ now: WallTime) -> Fields {
        ForwardedHead.responseFields(
            response.fields, response.options, minorVersion: response.minorVersion, now: now)
    }

    /// What the rules say of the response, now that its type is known.
    func treatment(of response: ReceivedResponse) -> CacheTreatment {
        request.treatment(of: response.fields, by: snapshot)
    }

    func freshen(_ response: ReceivedResponse, _ now: WallTime) {
        guard let stored else { preconditionFailure("a 304 to a question nobody asked") }
        let renewed = renewed(stored, by: response, now)
        var answer = renewed
        if mayStay(renewed) {
            _ = request.tier.replace(stored, with: renewed)
            worker.counters.add(.freshened)
            answer = suiting(renewed)
            transfer?.resolve(.published(answer))
        } else {
            request.tier.remove(stored)
            transfer?.resolve(.notShared)
        }
        sink = .discard
        exchange?.serveRenewed(
            answer, as: .revalidated(plan.reason), ownFields: fieldsOfOne(response, beside: renewed))
        exchange = nil
    }

    /// Whether the fields that came now let it be stored still.
    private func mayStay(_ renewed: StoredResponse) -> Bool {
        objectionToKeeping(renewed.fields, treatment: request.treatment(of: renewed, by: snapshot)) == nil
    }

    /// Cookies that came with a 304 are of the client whose request it answers; nil: there are none, or they are for all.
    private func fieldsOfOne(_ response: ReceivedResponse, beside renewed: StoredResponse) -> Fields? {
        guard response.fields.contains(.setCookie), !renewed.fields.contains(.setCookie) else { return nil }
        var fields = renewed.fields
        for value in response.fields.all(.setCookie) { fields.append(.setCookie, Array(value)) }
        return fields
    }

    private func renewed(_ stored: StoredResponse, by response: ReceivedResponse, _ now: WallTime) -> StoredResponse {
        renewed(stored, by: ForwardedHead.endToEnd(response.fields, response.options), now)
    }

    /// - Parameter update: end-to-end fields.
    func renewed(_ stored: StoredResponse, by update: Fields, _ now: WallTime) -> StoredResponse {
        let treatment = request.treatment(of: stored, by: snapshot)
        var freshened = freshening(stored.fields, of: stored.cached, by: update, received: now)
        let times = stored.cached.renewed(
            freshened, requestTime: requestTime, responseTime: now, policy: snapshot.cachePolicy, treatment: treatment)
        if let times { return stored.renewed(times: times, fields: freshened.fields) }
        var cached = cachedAnew(stored, freshened.fields, treatment, now)
        if update.contains(.setCookie), !maySetCookie(cached, treatment) {
            let others = update.dropping { $0.name == .setCookie }
            freshened = freshening(stored.fields, of: stored.cached, by: others, received: now)
            cached = cachedAnew(stored, freshened.fields, treatment, now)
        }
        return stored.renewed(cached: cached, fields: freshened.fields)
    }

    private func cachedAnew(
        _ stored: StoredResponse, _ fields: Fields, _ treatment: CacheTreatment, _ now: WallTime
    ) -> CachedResponse {
        CachedResponse(
            status: stored.cached.status, fields: fields, requestTime: requestTime, responseTime: now,
            policy: snapshot.cachePolicy, treatment: treatment)
    }

    /// Of another variant's response that the origin says suits this request too, a record under this request's values.
    private func suiting(_ renewed: StoredResponse) -> StoredResponse {
        guard !renewed.suits(request), !isOutdated else { return renewed }
        let alias = renewed.renewed(for: request)
        _ = request.tier.insert(alias)
        return alias
    }

    /// RFC 9111 §4.3.5: what the answer to a HEAD tells of the stored response to GET.
    private func updateStored(by response: ReceivedResponse, _ now: WallTime) {
        guard let stored, isEligible(stored.terms, for: request.cache),
            stored.body.state == .complete || stored.body.state == .partial,
            let length = stored.body.expectedLength ?? (stored.body.state == .complete ? stored.body.length : nil)
        else { return }
        switch headUpdate(
            status: response.status, fields: response.fields, stored: stored.cached, length: UInt64(length),
            received: now)
        {
        case .freshen:
            let renewed = renewed(stored, by: response, now)
            if mayStay(renewed) {
                if request.tier.replace(stored, with: renewed) { worker.counters.add(.freshened) }
            } else {
                request.tier.remove(stored)
            }
        case .markStale:
            if request.tier.replace(stored, with: stored.outdated) { worker.counters.add(.invalidated) }
        case .ignore:
            break
        }
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

    /// RFC 9111 §4.4: a successful unsafe request makes what is stored for its target invalid, in whatever zone a GET
    /// would look for it and under whatever key.
    func invalidate(_ fields: Fields, status: UInt16) {
        guard let target = TargetURI(request.uri) else { return }
        for uri in invalidatedURIs(target: target, status: status, fields: fields) {
            let bytes = snapshot.keyBytes(toGet: uri, asker: request.access)
            let key = worker.shared.key(of: bytes)
            for zone in worker.zones { worker.counters.add(.invalidated, zone.invalidate(key, bytes)) }
        }
    }

    func switchProtocols(_ response: ReceivedResponse, rest: UnsafeRawBufferPointer) {
        guard transaction.request.isUpgrade, let exchange, let connection, let socket = connection.surrender() else {
            return failBeforeHead(.responseInvalid)
        }
        _ = finish()
        worker.origins.discard(connection)
        unsafe exchange.switchProtocols(response, origin: socket, early: Array(rest))
        self.exchange = nil
    }
}
