import Message
import Server
import Storage

/// Carries out a purge in one zone.
///
/// A response that is still arriving is taken out as well: those who read it get the rest of it, nobody else does, and what
/// its fetch stores at its end goes nowhere. What is asked for and not answered yet is not stored either. A soft purge does
/// the same with it, since its fetch knows the record by its identity.
func purge(_ request: PurgeRequest, _ matcher: SelectionMatcher, in tier: MemoryTier) -> PurgeResult {
    if !request.dryRun { tier.outdateTransfers() }
    switch request.kind {
    case .hard:
        let (records, bytes) = tier.purge(dryRun: request.dryRun) { record in
            (record as? StoredResponse).map { matcher.matches($0) } ?? matcher.matches(uri: record.keyBytes)
        }
        return PurgeResult(records: records, bytes: bytes)
    case .soft: return softPurge(matcher, in: tier, dryRun: request.dryRun)
    }
}

private func softPurge(_ matcher: SelectionMatcher, in tier: MemoryTier, dryRun: Bool) -> PurgeResult {
    // Counted and weighed as a hard purge would: the store alone knows what a record weighs.
    var result = PurgeResult(records: 0, bytes: 0)
    (result.records, result.bytes) = tier.purge(dryRun: true) { record in
        (record as? StoredResponse).map { matcher.matches($0) } ?? false
    }
    guard !dryRun else { return result }
    var cursor: RecordCursor?
    repeat {
        let (records, next) = tier.page(after: cursor)
        for case let record as StoredResponse in records where matcher.matches(record) { outdate(record, in: tier) }
        cursor = next
    } while cursor != nil
    return result
}

private func outdate(_ record: StoredResponse, in tier: MemoryTier) {
    switch record.body.state {
    case .growing, .failed: tier.remove(record)
    // Where there is no room for the marked one the unmarked must not stay.
    case .complete, .partial: if !tier.replace(record, with: record.outdated) { tier.remove(record) }
    }
}
