import Caching
import Message
import Transaction

/// Says what a client must never see. It knows what the origin meant, and nothing of how the cache came to its answer.
struct Oracle {
    /// Successful unsafe requests: when the origin carried them out, and when the cache heard of it.
    private var changes: [[(made: Int, known: Int)]]
    private var lastFailure: [Int]

    init(resourceCount: Int) {
        changes = Array(repeating: [], count: resourceCount)
        lastFailure = Array(repeating: -1, count: resourceCount)
    }

    mutating func originFailed(_ uri: Int, step: Int) { lastFailure[uri] = step }

    /// RFC 9111 §4.4: whatever was there of these before is not to be used any more.
    mutating func received(_ answer: OriginAnswer) {
        let request = answer.request
        guard !request.method.isSafe || request.override != nil, (200...399).contains(answer.status) else { return }
        var uris = [answer.request.uri]
        for name in [FieldName.location, .contentLocation] {
            uris += answer.fields.all(name).compactMap { Int(String(decoding: $0.dropFirst(), as: UTF8.self)) }
        }
        for uri in uris { changes[uri].append((answer.step, answer.receivedStep!)) }
    }

    /// Something that the origin said in that step was overtaken since.
    func wasInvalidated(_ uri: Int, since step: Int) -> Bool { changes[uri].contains { step < $0.made } }

    /// The origin is about to be asked.
    func judgeQuestion(of fetch: SimulatedFetch, in world: World) {
        guard let exchange = fetch.exchange, !exchange.request.hasBody else { return }
        guard exchange.request.method == .get || exchange.request.method == .head else { return }
        guard !exchange.mayForward else { return }
        world.violated("the origin is asked, though it may not be", exchange)
    }

    // MARK: answers from the store

    func judgeHead(of exchange: SimulatedExchange, _ record: Record, in world: World) {
        if exchange.request.ifMatch != nil, record.lineage.last!.request !== exchange.request {
            world.note(.matchedStored)
        }
        let standing = Standing(
            record, handling: exchange.handling, policy: world.policy, now: world.cacheClock)
        let objection =
            exchange.objectionToAccess ?? objectionToIdentity(exchange, record, in: world)
            ?? objectionToAudience(exchange, record, standing)
            ?? objectionToHead(record, standing, in: world)
            ?? (exchange.isConfirmed(record) ? nil : objectionToTime(exchange, record, standing))
            ?? objectionToStatus(exchange, standing)
        world.trace(
            "exchange \(exchange.id) gets \(exchange.answer.status!) from \(record.lineage.map(\.id)), age "
                + "\(standing.age) of \(standing.lifetime)\(standing.isOutdated ? ", outdated" : "")")
        if let objection { world.violated(objection, exchange) }
    }

    /// What is missing of it is to be fetched first. Whether it may be served is decided now: the part vouches for the rest.
    func judgeBeforePart(of exchange: SimulatedExchange, _ record: Record, in world: World) {
        let now = world.cacheClock
        let standing = Standing(record, handling: exchange.handling, policy: world.policy, now: now)
        if let objection = objectionToTime(exchange, record, standing) { world.violated(objection, exchange) }
    }

    /// Another resource, or another variant.
    private func objectionToIdentity(
        _ exchange: SimulatedExchange, _ record: Record, in world: World
    ) -> String? {
        let (request, base) = (exchange.request, record.lineage[0])
        guard let representation = base.representation else { return "it is no representation" }
        if request.override != nil || record.lineage.contains(where: { $0.request.override != nil }) {
            return "a request overrides its method"
        }
        guard representation.uri == request.uri else { return "it is of another URI" }
        guard request.method == .get || request.method == .head || base.request === request else { return "method" }
        if request.hasBody, base.request !== request { return "a GET with content is not answered from the store" }
        guard record.askers.contains(where: { meansTheSame(request, $0, record.fields) }) else {
            return "it was selected by other request fields"
        }
        if let objection = objectionToCookie(exchange, representation, in: world) { return objection }
        let vary = record.fields.first(.vary).map { String(decoding: $0, as: UTF8.self).lowercased() } ?? ""
        let isSteady = !world.origin.resources[request.uri].hasOtherVary
        if isSteady, vary.contains("language"), representation.language != Resource.language(request) {
            return "language"
        }
        let weight = request.encodings?.weight(exchange.answer.isGzip ? "gzip" : "identity")
        let isNegotiated = vary.contains("encoding") || exchange.answer.isTransformed
        let isAccepted = weight.map { $0 > 0 } ?? !exchange.answer.isGzip
        let isAsGiven = base.request === request || record.askers.contains { $0 === request }
        if isNegotiated, !isAccepted, !isAsGiven, !isOnlyForm(request, record) { return "coding is not acceptable" }
        return nil
    }

    /// Made for the client with another cookie. Only the lifetime says so, and an operator can say otherwise.
    private func objectionToCookie(
        _ exchange: SimulatedExchange, _ representation: Representation, in world: World
    ) -> String? {
        let (request, handling) = (exchange.request, exchange.handling)
        guard world.origin.resources[request.uri].isByCookie, representation.user != request.cookie else { return nil }
        let isByRule =
            handling.ttl != nil || handling.negativeTTL > .zero || !handling.respectsCacheControl
            || !handling.use.isDisjoint(with: [.cacheFirst, .cacheOnly, .staleOnError])
        return isByRule ? nil : "it was made for the client with another cookie"
    }

    /// Neither form is acceptable to the client: it was selected by the same fields, and gets what the others got.
    private func isOnlyForm(_ request: ClientRequest, _ record: Record) -> Bool {
        record.askers.contains {
            ($0.encodings ?? .init(members: [])).meansTheSame(
                request.encodings ?? .init(members: []), orderCounts: false)
        }
    }

    /// The fields that `Vary` names, but for the coding, which is judged by what the client accepts.
    private func meansTheSame(_ a: ClientRequest, _ b: ClientRequest, _ fields: Fields) -> Bool {
        if a === b { return true }
        let vary = fields.first(.vary).map { String(decoding: $0, as: UTF8.self).lowercased() } ?? ""
        if vary.contains("*") { return false }
        guard vary.contains("language") else { return true }
        guard let a = a.languages, let b = b.languages else { return a.languages == nil && b.languages == nil }
        return a.meansTheSame(b, orderCounts: true)
    }

    /// For one client alone (RFC 9111 §3, §3.5), or for nobody.
    private func objectionToAudience(_ exchange: SimulatedExchange, _ record: Record, _ standing: Standing) -> String? {
        if record.lineage.last!.request === exchange.request { return nil }
        if standing.directives.noStore { return "no-store, and it was to another request" }
        if standing.directives.isPrivate { return "private, and it was to another request" }
        let base = record.lineage[0]
        let isShared =
            (base.description.directives ?? OriginDirectives()).sharesAuthorized
            || (!exchange.handling.respectsCacheControl && exchange.handling.ttl != nil)
        if base.request.user != nil, !isShared { return "it was to a request with credentials" }
        if base.request.wishes.noStore { return "the request that it was to says no-store" }
        return nil
    }

    /// The head that goes out is the stored one with all that renewed it, and nothing else.
    private func objectionToHead(_ record: Record, _ standing: Standing, in world: World) -> String? {
        func text(_ name: FieldName) -> String? {
            record.fields.first(name).map { String(decoding: $0, as: UTF8.self) }
        }
        let tag = record.lineage[0].description.eTag.map(opaque)
        if record.lineage.contains(where: { $0.description.eTag != nil && $0.description.eTag.map(opaque) != tag }) {
            return "it was renewed by an answer about something else"
        }
        let now = world.cacheClock
        if record.cached.currentAge(now).count != standing.age { return "its age is \(standing.age) s" }
        if record.cached.remainingLifetime(now).count != standing.left { return "\(standing.left) s are left" }
        if text(.eTag) != standing.description.eTag { return "the ETag is another" }
        if text(.lastModified) != standing.description.lastModified.map(httpDate) { return "Last-Modified is another" }
        if text(.cacheControl) != standing.description.directives?.text { return "Cache-Control is another" }
        return nil
    }

    /// As weak comparison sees it (RFC 9110 §8.8.3.2).
    private func opaque(_ tag: String) -> Substring { tag.drop { $0 != "\"" } }

    /// Too old, or from before a change that its client may know of.
    private func objectionToTime(_ exchange: SimulatedExchange, _ record: Record, _ standing: Standing) -> String? {
        let (base, last) = (record.lineage[0], record.lineage.last!)
        let isOvertaken = changes[record.uri].contains { $0.known < exchange.arrivalStep && base.step < $0.made }
        if isOvertaken { return "it is from before an unsafe request that was answered before this one came" }
        if exchange.request.ifMatch != nil, standing.isOf(another: exchange.request), !standing.isFresh {
            return "If-Match, and it is stale"
        }
        if last.request === exchange.request { return nil }
        // It came while the client waited for another's answer: as for any stored response, its client may be the only one.
        let cameMeanwhile = last.receivedStep! >= exchange.arrivalStep
        let use = exchange.handling.use
        return standing.objection(
            exchange.request.wishes, use: cameMeanwhile ? .ofPublished(use) : use,
            originFailed: lastFailure[record.uri] >= exchange.arrivalStep)
    }

    /// 304 and 206 are for those who have what they say they have (RFC 9110 §13).
    private func objectionToStatus(_ exchange: SimulatedExchange, _ standing: Standing) -> String? {
        let (request, description) = (exchange.request, standing.description)
        if let ifMatch = request.ifMatch, standing.isOf(another: request) {
            if ifMatch != description.eTag || ifMatch.hasPrefix("W/") { return "the client wants another tag" }
        }
        switch exchange.answer.status {
        case 304:
            let opaque = description.eTag.map { $0.drop { $0 != "\"" } }
            let hasTag = request.ifNoneMatch.contains { $0.drop { $0 != "\"" } == opaque }
            let since = request.ifNoneMatch.isEmpty ? request.ifModifiedSince : nil
            let isUnchanged = since.map { (description.lastModified ?? description.date!) <= $0 } ?? false
            return hasTag || isUnchanged ? nil : "304, and what the client has is another"
        case 206:
            if request.spans.isEmpty { return "206, and no range was asked for" }
            guard let ifRange = request.ifRange else { return nil }
            let isTag = ifRange == description.eTag && !ifRange.hasPrefix("W/")
            let isDate =
                description.lastModified.map { ifRange == httpDate($0) && description.date! - $0 >= 1 } ?? false
            return isTag || isDate ? nil : "206, and the part the client has is of something else"
        default: return nil
        }
    }
}
