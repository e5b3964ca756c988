import Access
import Caching
import EventLoop
import Forwarding
import Framing
import Message
import Storage
import Transaction

/// Responses on their way into the store, and stored responses that an answer renews or invalidates (RFC 9111 §3, §4.3, §4.4).
extension Fetch {
    // MARK: a whole response

    func store(_ cached: CachedResponse, invalidates: Bool, _ arrived: Arrived) {
        precondition(hole == nil && hasNoSink, "a response that is stored has no other sink")
        // The answer to a POST can stand for its target (RFC 9110 §9.3.3). What was stored before cannot any more.
        if invalidates {
            invalidate(arrived.response.fields, status: arrived.response.status)
            noteInvalidations()
        }
        let now = worker.wallTime
        let handling = request.handling(of: arrived.response.fields, by: snapshot)
        let fields = ForwardedHead.responseFields(arrived.response.fields, arrived.response.options, now: now)
        let via = ForwardedHead.via(minorVersion: arrived.response.minorVersion)
        let particulars = snapshot.particulars(of: handling)
        let kept = storedFields(of: fields, as: cached, without: particulars)
        let ownFields = kept.lines.count == fields.lines.count ? nil : fields.appending(.via, literal: via)
        let expected = arrived.missing.map { Int(clamping: $0) }
        guard mayProve(arrived.response, handling, particulars) else {
            return refuseStoring(.unproven, arrived)
        }
        if let expected, let record = storeLarge(cached, kept, via, expected, handling) {
            return publish(record, status: arrived.response.status, ownFields)
        }
        guard let record = storeInMemory(cached, kept, via, expected, handling, arrived) else {
            withdrawProof()
            return refuseStoring(reasonNotStored(expected, handling), arrived)
        }
        publish(record, status: arrived.response.status, ownFields)
        let taken = record.body.isComplete ? record.body.length : 0
        guard taken > 0, case .lent(let stream) = link else { return }
        // The body came whole with its head, and was stored before anybody reads it.
        stream.conversation.takeContent()
        let action = retrieval.on(.received(taken), now: now)
        if case .deliver = action {} else { perform(action) }
    }

    private func refuseStoring(_ reason: NotStoredReason, _ arrived: Arrived) {
        worker.counters.add(.storingRefused)
        feed(.notStored(reason), arrived)
    }

    /// Why neither memory nor the disk took a response that may be stored.
    private func reasonNotStored(_ length: Int?, _ handling: CacheHandling) -> NotStoredReason {
        if isOutdated { return .outdated }
        guard let length, length > request.memoryObjectSizeMax(handling) else { return .memoryFull }
        if length > request.objectSizeMax(handling) { return .tooLarge }
        guard let backStore = request.tier.backStore, request.storage(handling) != .session else { return .tooLarge }
        guard isForDisk(handling) else { return .secondHit }
        switch backStore.prospect(bytes: length, .permanent, isNow: false) {
        case .off: return .diskOff
        case .busy: return .diskBusy
        case .tooLarge: return .tooLarge
        case .accepted, .pinnedQuotaFull: return .memoryFull
        }
    }

    /// Tells the machine that the sink is there, followers that they can read, and the client that its answer begins.
    private func publish(_ record: StoredResponse, status: UInt16, _ ownFields: Fields?) {
        // The order matters: the machine counts the client as answered before its answer can fail; followers may read before the client is
        // written to, because that may end this fetch.
        precondition(!hasNoSink, "the client would wait for a body that nobody writes")
        feed(.stored)
        resolve(by: record)
        let service: Service =
            quest?.answer.map { .peer(reason, status: status, isHit: $0 == .hit) } ?? .miss(reason, status: status)
        notify { $0.fetchStored(record, as: service, ownFields: ownFields) }
    }

    /// Gives followers the response, and says whether those who come next may wait for such a response.
    private func resolve(by record: StoredResponse) {
        guard let transfer else { return }
        let isForAll =
            request.handling.use.contains(.cacheFirst) || request.terms(of: record).isForAll
        transfer.resolve(.published(record), isForAll ? .proven : refutedSharing)
    }

    /// The response is for this request alone, and the next ones for its key probably are so, too.
    var refutedSharing: Transfer.Sharing { .refuted(until: worker.loop.now.sinceStart + Fetch.keptApartTime) }

    /// For how long requests for a key do not wait for each other after a response has proven to be for one alone. It is short, because
    /// the origin may give everybody the same by then.
    private static let keptApartTime = Duration.seconds(30)

    /// Returns nil where the store has no room, or the response is outdated by now.
    private func storeInMemory(
        _ cached: CachedResponse, _ fields: Fields, _ via: StaticString, _ expected: Int?, _ handling: CacheHandling,
        _ arrived: Arrived
    ) -> StoredResponse? {
        let inMemoryMax = request.memoryObjectSizeMax(handling)
        // Without a length, a body that comes to be large moves to the disk (`moveToDisk`).
        let mayMove = expected == nil && request.tier.backStore != nil
        guard !isOutdated,
            let body = request.tier.makeBody(
                expectedLength: expected, lengthMax: mayMove ? min(inMemoryMax, Tiers.wholeBytesMax) : inMemoryMax)
        else { return nil }
        // A body that came whole together with its head, as most small ones do: nobody has to wait for it.
        if !filtersContent, let whole = unsafe arrived.content, case .appended = unsafe body.append(whole) {
            _ = body.finish()
        }
        let record = StoredResponse(
            request: request, cached: cached, fields: fields, via: via, body: body, contentLength: expected,
            handling: handling, trailers: arrived.length == .chunked ? TransientTrailers() : nil)
        if isPersistedAtEnd(handling) {
            request.tier.foresee(record, bytes: expected ?? 0, record.storage == .pinned ? .pinned : .permanent)
        }
        guard insert(record) else { return nil }
        sink = .store(record)
        return record
    }

    /// Whether a response that comes into memory goes to the disk when it is whole.
    private func isPersistedAtEnd(_ handling: CacheHandling) -> Bool {
        request.tier.backStore != nil && handling.admission == .all && request.storage(handling) != .session
    }

    /// Whether the fetch of a response has to pause while the disk is behind.
    func waitsForDisk(_ record: StoredResponse) -> Bool {
        !record.isMemoryOnly && !record.body.isWindowed
            && (record.body.isLarge || isPersistedAtEnd(request.handling(of: record, by: snapshot)))
    }

    /// A large response goes to the disk as it comes: a partial response whose first hole is all of it. It takes no memory, others
    /// read it while it comes, and what has come outlives the process. Returns nil where it does not go there.
    private func storeLarge(
        _ cached: CachedResponse, _ fields: Fields, _ via: StaticString, _ length: Int, _ handling: CacheHandling
    ) -> StoredResponse? {
        guard !isOutdated, length <= request.objectSizeMax(handling),
            let record = largeRecord(length, handling, cached, fields, via)
        else { return nil }
        // Claimed before others know it: one of them would fetch the same.
        guard case .missing(let fill) = record.body.claim(at: 0, limit: length), insert(record) else {
            request.tier.remove(record)
            return nil
        }
        fill.isIndivisible = proof != nil
        sink = .fill(fill, of: record)
        return record
    }

    /// A stored response without a byte whose blocks go to the disk. Returns nil where it does not belong there, or the disk does
    /// not take it.
    private func largeRecord(
        _ length: Int, _ handling: CacheHandling, _ cached: CachedResponse, _ fields: Fields, _ via: StaticString? = nil
    ) -> StoredResponse? {
        // What memory cannot take goes there too, however short.
        let heldMax = min(Tiers.wholeBytesMax, request.zone.memoryObjectSizeMax ?? .max)
        guard length > heldMax, isForDisk(handling) else { return nil }
        let record = request.tier.makeLargeRecord(length: length) { body in
            StoredResponse(
                request: request, cached: cached, fields: fields, via: via, body: body, contentLength: length,
                handling: handling)
        }
        return record.map { unsafe unsafeDowncast($0, to: StoredResponse.self) }
    }

    /// Whether a large response goes to the disk while it arrives.
    private func isForDisk(_ handling: CacheHandling) -> Bool {
        request.storage(handling) != .session && (handling.admission == .all || request.tier.wasSeenBefore(request.key))
    }

    // MARK: a body of unknown length that becomes large

    /// Takes bytes for which the body has no room in memory. The body moves to the disk. If it cannot, it stays in memory as
    /// long as the rules allow, and after that it leaves the store.
    func outgrow(_ record: StoredResponse, _ bytes: UnsafeRawBufferPointer) {
        if let moved = moveToDisk(record) {
            // Readers follow from the old body to the new one (`Delivery.followBody`). This fetch writes to the new one from here on.
            sink = .store(moved)
            transfer?.republish(moved)
            return unsafe append(bytes, orPassOn: moved)
        }
        if !record.body.isLarge, !record.body.isWindowed {
            record.body.raiseLengthMax(
                to: request.memoryObjectSizeMax(request.handling(of: record, by: snapshot)))
        }
        unsafe append(bytes, orPassOn: record)
    }

    private func append(_ bytes: UnsafeRawBufferPointer, orPassOn record: StoredResponse) {
        if case .appended = unsafe record.body.append(bytes) { return }
        passOn(record)
        if case .appended = unsafe record.body.append(bytes) { return }
        feed(.sinkFull)
    }

    /// Returns nil if the length of the body is known, if the response does not belong on the disk, or if the disk does not
    /// accept it.
    private func moveToDisk(_ record: StoredResponse) -> StoredResponse? {
        let handling = request.handling(of: record, by: snapshot)
        guard record.body.expectedLength == nil, !record.body.isLarge, request.tier.backStore != nil,
            isForDisk(handling)
        else { return nil }
        let moved = request.tier.moveToBackStore(record, lengthMax: request.objectSizeMax(handling)) { current, body in
            unsafe unsafeDowncast(current, to: StoredResponse.self).moved(to: body)
        }
        return moved.map { unsafe unsafeDowncast($0, to: StoredResponse.self) }
    }

    /// The body is larger than the store takes, or the disk stopped accepting its blocks: it leaves the store and streams
    /// through a window to those who read it.
    func passOn(_ record: StoredResponse) {
        guard !record.body.isWindowed else { return }
        worker.counters.add(.storingRefused)
        record.body.abandonStorage(window: snapshot.limits.relayBufferBytesMax)
        request.tier.remove(record)
    }

    // MARK: visible

    /// Makes it visible, unless it became outdated at this moment: then it is for those who wait for it already, and `Cache-Status` says so.
    private func insert(_ record: StoredResponse) -> Bool { request.tier.insert(record) { isOutdated } }

    /// What the origin says now may be from before an unsafe request or a purge.
    private var isOutdated: Bool { transfer?.isOutdated ?? (request.tier.invalidations != invalidationsBefore) }

    /// The fields that go on, with what a proxy adds.
    func endToEndFields(_ response: ReceivedResponse, _ now: WallTime) -> Fields {
        ForwardedHead.responseFields(response.fields, response.options, now: now)
            .appending(.via, literal: ForwardedHead.via(minorVersion: response.minorVersion))
    }

    func finishStored(_ record: StoredResponse, _ trailers: Fields?) {
        // The trailers first: a reader on another thread may write its last chunk as soon as the body is complete.
        record.trailers?.set(trailers)
        if record.body.isLeftByDisk { passOn(record) }
        guard record.body.isComplete || record.body.finish() else { return dropStored(record) }
        // What outgrew the store went to those who read it, and is gone.
        guard !record.body.isWindowed else { return }
        worker.counters.add(.stored)
        var kept = record
        if !record.headHasLength {
            // Now that the length is known, hits are served with it and by the short way.
            let renewed = record.renewed(cached: record.cached, fields: record.fields)
            if request.tier.replaceInMemory(record, with: renewed) { kept = renewed }
        }
        persist(kept)
        outdateCompanions(of: kept)
        if snapshot.cacheRulesDependOnIndexes {
            worker.shared.indexDigests.read(kept, of: request, by: snapshot, on: worker)
        }
    }

    /// The document has other content than before: its signatures and checksums, or what it is one of, are validated before they are served
    /// again.
    private func outdateCompanions(of record: StoredResponse) {
        let others = CompanionDocuments.others(of: record.keyBytes)
        guard !others.isEmpty, record.cached.status == 200, !(stored.map { record.body.hasBytes(of: $0.body) } ?? false)
        else { return }
        let tier = request.tier
        let named = others.map { (key: worker.shared.key(of: $0), keyBytes: $0) }
        // What a client fetches for the first time comes together. Only what was there before may be of another time.
        let time = stored == nil ? worker.wallTime + Seconds(-60) : worker.wallTime
        for (key, keyBytes) in named { tier.outdate(key, keyBytes, until: time, loads: false) }
        guard tier.backStore != nil else { return }
        // Those that are on the disk alone come into memory for it. If the pool has too much to do, the lifetime of the recipe bounds how long they stay.
        _ = worker.shared.pool.submit(
            { for (key, keyBytes) in named { tier.outdate(key, keyBytes, until: time, loads: true) } }, then: { _ in },
            on: worker.loop.inbox)
    }

    /// A whole response goes to the disk, at once or when it is asked for again.
    private func persist(_ record: StoredResponse) {
        share(record)
        defer { if snapshot.cacheRulesDependOnIndexes { noteDigest(of: record) } }
        guard record.storage != .session, request.tier.backStore != nil else { return }
        switch request.handling(of: record, by: snapshot).admission {
        case .all: request.tier.persist(record, isPromised: !record.isMemoryOnly)
        case .secondHit: break
        }
    }

    /// Remembers the digest of a file of which indexes speak, so that an index that promises another one later is noticed.
    private func noteDigest(of record: StoredResponse) {
        let indexes = worker.shared.indexDigests
        guard let promise = IndexPromise(of: record, for: request, by: snapshot) else { return }
        if let proof {
            indexes.note(proof.expected, of: record, now: worker.uptime)
        } else {
            indexes.noteUnproven(
                record, in: request.zone, of: request.uri, promise.scope, for: request.audience, promise.algorithm,
                now: worker.uptime)
        }
    }

    /// A whole response is offered to the other nodes of the fleet.
    private func share(_ record: StoredResponse) {
        // The node that it came from has offered it already.
        guard quest?.answer == nil else { return }
        worker.shared.fleet?.write(record, of: request.zone)
    }

    func dropStored(_ record: StoredResponse) {
        record.body.fail()
        request.tier.remove(record)
        worker.counters.add(.storingFailed)
    }

    // MARK: parts

    /// Stores the part that came in answer to the client's range, as a part of the whole (RFC 9111 §3.3).
    func storePart(_ part: StorablePart, _ arrived: Arrived) {
        precondition(hole == nil && hasNoSink, "a part that is stored has no other sink")
        guard !isOutdated, let (record, fill) = place(part, arrived.response) else {
            return refuseStoring(isOutdated ? .outdated : .partNotMissing, arrived)
        }
        hole = Hole(record: record, fill: fill)
        sink = .fill(fill, of: record)
        publish(record, status: 206, nil)
    }

    /// The stored response the part belongs to, and the hole that it fills to the byte. Returns nil where there is no such hole,
    /// or no room.
    private func place(_ part: StorablePart, _ response: ReceivedResponse) -> (StoredResponse, Fill)? {
        let handling = request.handling(of: response.fields, by: snapshot)
        let memoryMax = request.memoryObjectSizeMax(handling)
        guard let length = Int(exactly: part.total),
            let (record, isKnown) = partialRecord(part, length, heldMax: memoryMax, handling)
        else { return nil }
        let lengthMax = record.body.isLarge ? request.objectSizeMax(handling) : memoryMax
        guard let fill = hole(for: part, in: record, lengthMax: lengthMax) else {
            // A stored response without a byte is of no use.
            if record.body.extents.isEmpty { request.tier.remove(record) }
            return nil
        }
        guard isKnown else { return (record, fill) }
        guard let renewed = renewed(record, by: part) else {
            fill.abandon()
            return nil
        }
        return (renewed, fill)
    }

    /// A stored part with the fields of another one, which hold for the whole (RFC 9111 §3.4). Nil if they do not let it be stored still.
    private func renewed(_ known: StoredResponse, by part: StorablePart) -> StoredResponse? {
        // An answer to If-Range may leave out some fields (RFC 9110 §15.3.7).
        let renewed = renewed(known, by: part.fields, worker.wallTime)
        guard objection(to: renewed, insteadOf: known) == nil else {
            request.tier.remove(known)
            return nil
        }
        return request.tier.replace(known, with: renewed) ? renewed : nil
    }

    private func hole(for part: StorablePart, in record: StoredResponse, lengthMax: Int) -> Fill? {
        let range = Int(part.range.lowerBound)..<Int(part.range.upperBound)
        // Where the origin gives less than was asked for, the client is promised all of it, and the rest is fetched.
        let promised =
            StoredAnswer(record, to: request, service: .part(status: 206), worker: worker).delivery?.missing ?? []
        let beyond = promised.filter { $0.clamped(to: range) != $0 }
        guard record.body.mayKeep([range] + beyond, lengthMax: lengthMax),
            case .missing(let fill) = record.body.claim(at: range.lowerBound, limit: range.upperBound)
        else { return nil }
        guard fill.range == range else {
            fill.abandon()
            return nil
        }
        return fill
    }

    /// What is stored of the same representation, or a new stored response without a byte.
    private func partialRecord(
        _ part: StorablePart, _ length: Int, heldMax: Int, _ handling: CacheHandling
    ) -> (StoredResponse, isKnown: Bool)? {
        let records = request.zone.lookup(request.key, request.keyBytes).compactMap { $0 as? StoredResponse }
        if let known = records.first(where: { $0.suits(request) }) {
            let isSelectedAlike = known.cached.vary == part.whole.vary
            let isSame =
                isSelectedAlike && known.body.expectedLength == length && combines(part: part, with: known.cached)
            if known.body.state == .partial, isSame { return (known, isKnown: true) }
            // The origin selects by other fields now, so nobody knows for whom the other parts are.
            if known.body.state == .partial, !isSelectedAlike { request.tier.remove(known) }
            // What is whole, or will be, is worth more than a part.
            if isSame || known.body.state == .growing { return nil }
        }
        if let large = largeRecord(length, handling, part.whole, part.fields) {
            if insert(large) { return (large, isKnown: false) }
            request.tier.remove(large)
            return nil
        }
        guard let body = request.tier.makeSparseBody(length: length, heldMax: heldMax) else { return nil }
        let record = StoredResponse(
            request: request, cached: part.whole, fields: part.fields, body: body, contentLength: length,
            handling: handling)
        // It is written when it is whole.
        if isPersistedAtEnd(handling) { record.tenure = .memoryOnly }
        return insert(record) ? (record, isKnown: false) : nil
    }

    func finishPart(_ fill: Fill, of record: StoredResponse) {
        _ = fill.finish()
        if fill.range.count != record.body.expectedLength { worker.counters.add(.partsStored) }
        // What a 304 has taken out of the store is filled for those who read it, and no further.
        guard request.tier.mayPersist(record) else { return }
        if record.body.isComplete {
            worker.counters.add(.stored)
            persist(record)
        }
        fetchRest(of: record)
    }

    /// Where the rules want the whole response, the next hole is fetched without a client.
    private func fetchRest(of record: StoredResponse) {
        let handling = request.handling(of: record, by: snapshot)
        guard handling.ranges == .whole, record.body.state == .partial, let length = record.body.expectedLength,
            length <= request.objectSizeMax(handling), !record.body.isLeftByDisk
        else { return }
        Fetch.fetchFirstHole(of: record, worker: worker, snapshot: snapshot, request: request)
    }

    /// Fetches the first hole of a stored response without a client.
    static func fetchFirstHole(
        of record: StoredResponse, worker: Worker, snapshot: Snapshot, request: OwnedRequest
    ) {
        var offset = 0
        while let length = record.body.expectedLength, offset < length {
            switch record.body.claim(at: offset, limit: length) {
            case .available(let end):
                precondition(end > offset, "a search for holes moves forward")
                offset = end
            case .awaited, .unavailable: return
            case .missing(let fill):
                let fetch = Fetch(
                    worker: worker, snapshot: snapshot, request: request, client: nil,
                    plan: RetrievalPlan(reason: .partial), stored: record, hole: Hole(record: record, fill: fill))
                fetch.enrol()
                return fetch.begin()
            }
        }
    }

    // MARK: renewing (RFC 9111 §4.3.4, §4.3.5)

    func freshen(_ confirmed: Retrieval.Confirmed, _ arrived: Arrived) {
        switch confirmed {
        case .selected: break
        case .candidate(let index): stored = candidates[index]
        }
        guard let stored else { preconditionFailure("a 304 confirms a stored response that was asked about") }
        let now = worker.wallTime
        let renewed = renewed(stored, by: arrived.response, now)
        let (answer, objection) = keep(renewed, insteadOf: stored)
        precondition(hole == nil && hasNoSink, "the body of a 304 has no sink")
        sink = .discard
        let ownFields = fieldsOfOne(arrived.response, beside: answer)
        notify { $0.fetchStored(answer, as: .revalidated(reason, notStored: objection), ownFields: ownFields) }
        client = nil
    }

    /// Puts the renewed response in the place of the stored one, if the fields that came let it be stored still. Returns what answers the
    /// request, and why the renewed response is not stored.
    private func keep(
        _ renewed: StoredResponse, insteadOf stored: StoredResponse
    ) -> (StoredResponse, NotStoredReason?) {
        // What is stored stays as it is; the fields that came are for this request alone.
        let handling = request.handling(of: stored, by: snapshot)
        if let objection = objectionToAnswers(to: request.cache, handling: handling) {
            request.tier.keepOut(renewed)
            transfer?.resolve(.notShared)
            return (renewed, objection)
        }
        if let objection = objection(to: renewed, insteadOf: stored) {
            request.tier.remove(stored)
            request.tier.keepOut(renewed)
            transfer?.resolve(.notShared, refutedSharing)
            // A head that is too large is not passed on either.
            return (objection == .headTooLarge ? stored : renewed, objection)
        }
        worker.counters.add(.freshened)
        if renewed.cached.vary == stored.cached.vary {
            // What is not in the store any more was removed there, perhaps because it is outdated.
            let isKept = request.tier.replace(stored, with: renewed)
            if isKept { share(renewed) } else { request.tier.keepOut(renewed) }
            let answer = suiting(renewed)
            resolve(by: answer)
            // What nobody has removed was evicted meanwhile.
            return (answer, isKept ? nil : stored.isRevoked ? .outdated : .memoryFull)
        }
        return reselect(renewed, insteadOf: stored)
    }

    /// The origin selects by other fields now. The response is known to be for requests that have the values of this one; for which others,
    /// nobody knows any more.
    private func reselect(
        _ renewed: StoredResponse, insteadOf stored: StoredResponse
    ) -> (StoredResponse, NotStoredReason?) {
        let answer = renewed.renewed(cached: renewed.cached, fields: renewed.fields, for: request)
        request.tier.remove(stored)
        // Bytes that are on the disk alone are gone with what is removed there, and the fetch of a growing body stores the old head.
        if isWritable(answer.body), !isOutdated, insert(answer) {
            persist(answer)
            resolve(by: answer)
            return (answer, nil)
        }
        request.tier.keepOut(answer)
        transfer?.resolve(.notShared)
        return (answer, .outdated)
    }

    /// Why the fields that came now do not let it be stored still.
    private func objection(to renewed: StoredResponse, insteadOf stored: StoredResponse) -> NotStoredReason? {
        objectionToKeeping(
            renewed.cached, renewed.fields, insteadOf: stored.cached,
            handling: request.handling(of: renewed, by: snapshot), limits: snapshot.limits)
    }

    /// Cookies that came with a 304 are of the client whose request it answers. Returns nil where there are none, or they are for all.
    private func fieldsOfOne(_ response: ReceivedResponse, beside renewed: StoredResponse) -> Fields? {
        guard response.fields.contains(.setCookie),
            renewed.fields.all(.setCookie).map(Array.init) != response.fields.all(.setCookie).map(Array.init)
        else { return nil }
        var fields = renewed.fields.dropping { $0.name == .setCookie }
        for value in response.fields.all(.setCookie) { fields.append(.setCookie, Array(value)) }
        return fields
    }

    private func renewed(_ stored: StoredResponse, by response: ReceivedResponse, _ now: WallTime) -> StoredResponse {
        var update = ForwardedHead.endToEnd(response.fields, response.options)
        // It takes the place of the stored field, in which Larder is the last one.
        if update.contains(.via) {
            update.append(.via, literal: ForwardedHead.via(minorVersion: response.minorVersion))
        }
        return renewed(stored, by: update, now)
    }

    /// - Parameter update: end-to-end fields.
    private func renewed(_ stored: StoredResponse, by update: Fields, _ now: WallTime) -> StoredResponse {
        let handling = request.handling(of: stored, by: snapshot)
        var update = update.withoutCookies(of: snapshot.particulars(of: handling))
        // Whether a cookie is for all is what the fields say that came with it, and not what others said before.
        if update.contains(.setCookie), !maySetCookie(cachedAnew(stored, update, handling, now), handling) {
            update = update.dropping { $0.name == .setCookie }
        }
        let freshened = freshening(stored.fields, of: stored.cached, by: update, received: now)
        let times = stored.cached.renewed(
            freshened, requestTime: retrieval.requestTime, responseTime: now, policy: snapshot.cachePolicy,
            handling: handling)
        let result =
            times.map { stored.renewed(times: $0, fields: freshened.fields) }
            ?? stored.renewed(cached: cachedAnew(stored, freshened.fields, handling, now), fields: freshened.fields)
        result.sentAfterInvalidation = request.sentAfterInvalidation
        return result.noting(addressOf: request) ?? result
    }

    private func cachedAnew(
        _ stored: StoredResponse, _ fields: Fields, _ handling: CacheHandling, _ now: WallTime
    ) -> CachedResponse {
        var cached = CachedResponse(
            status: stored.cached.status, fields: fields, requestTime: retrieval.requestTime, responseTime: now,
            policy: snapshot.cachePolicy, handling: handling)
        cached.needs(as: stored.cached, fields, handling)
        return cached
    }

    /// Whether the body can be written to the disk for one more response: all of it is in memory.
    private func isWritable(_ body: Body) -> Bool { body.isComplete && body.isResident && !body.isLarge }

    /// Of another variant's response that the origin says suits this request too, a stored response under this request's values.
    private func suiting(_ renewed: StoredResponse) -> StoredResponse {
        guard !renewed.suits(request), !isOutdated else { return renewed }
        let alias = renewed.renewed(for: request)
        guard insert(alias) else { return alias }
        if isWritable(alias.body) {
            persist(alias)
        } else if isPersistedAtEnd(request.handling(of: alias, by: snapshot)) {
            alias.tenure = .memoryOnly
        }
        return alias
    }

    /// RFC 9111 §4.3.5: what the answer to a HEAD tells of the stored response to GET.
    func updateStored(by response: ReceivedResponse, _ now: WallTime) {
        guard let stored, isEligible(request.terms(of: stored), for: request.cache),
            stored.body.isComplete || stored.body.state == .partial,
            let length = stored.body.expectedLength ?? (stored.body.isComplete ? stored.body.length : nil)
        else { return }
        switch headUpdate(
            status: response.status, fields: response.fields, stored: stored.cached, length: UInt64(length),
            received: now)
        {
        case .freshen:
            _ = keep(renewed(stored, by: response, now), insteadOf: stored)
        case .markStale:
            if request.tier.replace(stored, with: stored.outdated) { worker.counters.add(.invalidated) }
            worker.shared.fleet?.remove(request.keyBytes, of: request.zone, now: worker.loop.now)
        case .ignore:
            break
        }
    }

    /// The origin confirmed something that is not what is stored (RFC 9111 §4.3.4). What is stored is stale now, whatever its lifetime
    /// says, since another representation is current. It stays, to stand in where the origin fails and stale responses are
    /// allowed (§4.2.4), until a new response takes its place.
    func outdateSelected() {
        if let stored {
            let outdated = stored.outdated
            _ = request.tier.replace(stored, with: outdated)
            worker.shared.fleet?.remove(request.keyBytes, of: request.zone, now: worker.loop.now)
            self.stored = outdated
        }
        releaseStream(isComplete: false)
        wantStream()
    }

    /// RFC 9111 §4.4: a successful unsafe request makes what is stored for its target invalid, in whatever zone a GET
    /// would look for it and under whatever key.
    func invalidate(_ fields: Fields, status: UInt16) {
        guard let target = TargetURI(request.uri) else { return }
        for uri in invalidatedURIs(target: target, status: status, fields: fields) {
            // Only URIs of the same origin come here: another origin's responses are not for this one to invalidate (RFC 9111 §4.4).
            let keys = snapshot.keys(toGet: uri)
            for bytes in keys { worker.shared.invalidateSeparate(under: bytes, snapshot, worker.zones) }
            let (credential, jar) = (request.credentialTag, snapshot.cookieTag(toGet: uri, asker: request.access))
            // In the order in which a key has them. What came by other routes was fetched for the same clients.
            var tagged = keys
            for tag in [credential, jar].compactMap(\.self) { tagged += tagged.map { $0 + tag } }
            let routes = snapshot.routes.keyTags
            tagged += tagged.flatMap { key in routes.map { key + $0 } }
            for bytes in tagged {
                let key = worker.shared.key(of: bytes)
                // The fleet first: a worker that misses from now on must not ask the owner for what is old.
                worker.shared.fleet?.beginInvalidating(bytes, in: worker.zones, now: worker.loop.now)
                let count = worker.zones.reduce(0) { $0 + $1.invalidate(key, bytes) }
                worker.counters.add(.invalidated, count)
                worker.shared.fleet?.invalidate(bytes, in: worker.zones, wasStored: count > 0)
            }
        }
    }
}
