import Caching
import Rules

/// That an index may promise the digest of a stored file.
struct IndexPromise {
    let scope: String
    let algorithm: DigestRule.Algorithm

    /// Returns nil if no rule says that indexes speak of the file, or if the digest may be that of its decoded bytes.
    init?(of record: StoredResponse, for request: OwnedRequest, by snapshot: Snapshot) {
        let handling = request.handling(of: record, by: snapshot)
        guard handling.provesBodies, record.cached.status == 200, record.body.isComplete,
            let rule = snapshot.particulars(of: handling)?.digest, rule.source == .index,
            let scope = snapshot.cacheRules.indexScope(of: handling), !record.fields.contains(.contentEncoding)
        else { return nil }
        self.scope = scope
        algorithm = rule.algorithm
    }
}

extension Exchange {
    /// Whether an index that has been read since the file was stored promises another one. The stored one has left the store then. A file whose
    /// digest is not known is compared in the background, as after a restart.
    func isContradicted(_ record: StoredResponse) -> Bool {
        guard snapshot.cacheRulesDependOnIndexes,
            let promise = IndexPromise(of: record, for: request, by: snapshot)
        else { return false }
        let indexes = worker.shared.indexDigests
        let promised = indexes.digests(
            of: request.uri, promise.scope, for: request.audience, promise.algorithm, now: worker.uptime)
        switch indexes.verdict(on: record, promised: promised, now: worker.uptime) {
        case .kept: return false
        case .unknown:
            indexes.compare(record, in: request.zone, with: promised, on: worker)
            return false
        case .broken:
            worker.removeBroken(record, from: request.zone)
            return true
        }
    }
}
