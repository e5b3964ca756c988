import Accounts
import Caching
import Forwarding
import Message
import Transaction

/// Bodies whose digest is known before they arrive (`digest` of a rule).
extension Fetch {
    /// Prepares the proof of the body, if a rule asks for one. Returns false if the body cannot be proven. Then the response is passed on and
    /// not stored.
    func mayProve(
        _ response: ReceivedResponse, _ handling: CacheHandling, _ particulars: HandlingParticulars?
    ) -> Bool {
        if let digest = request.sharedDigest {
            guard response.status == 200, !response.fields.contains(.contentEncoding) else { return false }
            prove(BodyProof(digest))
            return true
        }
        guard handling.provesBodies else { return true }
        // A proxy that changes content says so with a 203 (RFC 9110 §15.3.4).
        guard response.status != 203 else { return false }
        guard response.status == 200 else { return true }
        let expected = expectedDigests(particulars, handling, response.fields)
        guard let one = expected.first else { return particulars?.digest?.source != .redirect }
        // No body has two, and which of them is meant depends on what the origin takes the path for.
        guard expected.count == 1 else { return false }
        guard let proof = BodyProof(one, of: response.fields, at: request.uri) else { return false }
        prove(proof)
        return true
    }

    private func prove(_ proof: BodyProof) {
        self.proof = proof
        filters = (filters ?? ContentFilters()).appending(proof)
    }

    /// The body that would be stored is passed on, so another digest may be of interest.
    func withdrawProof() {
        proof = nil
        filters = nil
    }

    /// Prepares the proof of a body that is passed on, where it is the whole of what the digest is about: it may be asked for as a range, or not be
    /// stored.
    func provePassed(_ response: ReceivedResponse) {
        let handling = request.handling(of: response.fields, by: snapshot)
        guard proof == nil, request.method == .get, handling.provesBodies, response.isWhole else { return }
        let expected = expectedDigests(snapshot.particulars(of: handling), handling, response.fields)
        guard expected.count == 1, let one = expected.first else { return }
        if let proof = BodyProof(one, of: response.fields, at: request.uri) { prove(proof) }
    }

    /// Fetches the whole for the store, of which a client has asked for a part: a digest proves the whole alone. At most once a minute for each key.
    ///
    /// - Parameter length: of the whole, in bytes.
    func fetchWhole(_ length: UInt64, like part: ReceivedResponse) {
        let (key, now) = (request.key, worker.uptime)
        let handling = request.handling(of: part.fields, by: snapshot)
        guard length <= request.objectSizeMax(handling),
            expectedDigests(snapshot.particulars(of: handling), handling, part.fields).count == 1,
            worker.shared.askedWhole.withLock({ $0.insert(key, now: now) })
        else { return }
        let newest = request.zone.lookup(key, request.keyBytes).first
        guard case .lead(let transfer) = request.zone.lead(key, request.keyBytes, knownNewest: newest) else { return }
        worker.debug(.transfers, request.id, "\(subject): asks for the whole as well, which a digest proves")
        let plan = RetrievalPlan(reason: reason, isLeading: true, asksForWhole: true)
        let fetch = Fetch(
            worker: worker, snapshot: snapshot, request: request, client: nil, plan: plan, transfer: transfer)
        fetch.enrol()
        fetch.begin()
    }

    /// The digest that the body must have, from the redirect that led here or from the rule. Empty if neither tells. There are several if the path
    /// can be read in several ways.
    func expectedDigests(
        _ particulars: HandlingParticulars?, _ handling: CacheHandling, _ fields: Fields
    ) -> Set<ExpectedDigest> {
        if let digest = request.folded?.standsFor?.digest ?? request.sharedDigest { return [digest] }
        guard let rule = particulars?.digest, let number = handling.rule, let path = request.access.path else {
            return []
        }
        if rule.source == .index {
            guard let scope = snapshot.cacheRules.indexScope(of: handling) else { return [] }
            return worker.shared.indexDigests.digests(
                of: request.uri, scope, for: request.audience, rule.algorithm, now: worker.uptime)
        }
        let readings = request.access.pathReadings?.paths.map { $0[...] } ?? []
        let conditions = snapshot.cacheRules.rules[number - 1].conditions
        return Set(([path] + readings).compactMap { rule.expected(path: $0, conditions: conditions, response: fields) })
    }

    /// Logs a body that was not the one that it should be. The next request goes past the caches between Larder and the origin.
    func noteMismatch(_ proof: BodyProof) {
        let wanted = String(decoding: proof.expected.digits, as: UTF8.self)
        let found = proof.found.map { String(decoding: $0.digits, as: UTF8.self) }.joined(separator: ", or decoded ")
        let uri = Diagnostics.masked(request.uri)
        Diagnostics.error("digest mismatch: \(uri) should have \(wanted), and the origin sent \(found)")
        worker.counters.add(.digestMismatches)
        let (key, now) = (request.key, worker.uptime)
        worker.shared.mismatches.withLock { $0.set(key, (), now: now) }
    }

    /// Whether the request is to go past the caches between Larder and the origin: the last body was not the right one.
    var asksPastCaches: Bool {
        !snapshot.cacheRulesAreTrivial && worker.shared.hasMismatched(request, now: worker.uptime)
    }
}

extension Shared {
    /// Whether the last body for this request, within a minute, did not have its digest.
    func hasMismatched(_ request: OwnedRequest, now: Duration) -> Bool {
        guard request.handling.provesBodies else { return false }
        let key = request.key
        return mismatches.withLock { $0.value(key, now: now) != nil }
    }
}

extension ReceivedResponse {
    /// The content is all of a representation.
    fileprivate var isWhole: Bool {
        guard status == 206 else { return status == 200 }
        let values = fields.all(.contentRange)
        guard values.count == 1, let range = ContentRange(parsing: values[0]) else { return false }
        return range.range?.lowerBound == 0 && range.range?.upperBound == range.completeLength
    }
}

extension Set {
    /// The element, if there is exactly one.
    var only: Element? { count == 1 ? first : nil }
}
