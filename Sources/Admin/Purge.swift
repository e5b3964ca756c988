import Message
import Server
import Storage

/// Carries out a purge in one zone.
///
/// A response that is still arriving is taken out as well: those who read it get the rest of it, nobody else does, and what
/// its fetch stores at its end goes nowhere. What is asked for and not answered yet is not stored either. A soft purge does
/// the same with it, since its fetch knows the record by its identity.
///
/// Where there is a disk it waits until that is loaded, and until the purge can not be undone by a power cut, or says that it could not.
/// - Parameter key: the hash of a key.
func purge(
    _ request: PurgeRequest, _ matcher: SelectionMatcher, in tier: Tiers, key: ([UInt8]) -> StorageKey
) -> PurgeResult {
    if !request.dryRun { tier.memory.outdateTransfers() }
    // What waits to be written is in the book from here on; where the book is being made anew, what was stored before.
    let isLoaded = tier.backStore?.waitUntilLoaded() ?? true
    _ = tier.backStore?.flush()
    var result = inMemory(request, matcher, in: tier)
    // Then the disk, whatever of it is in memory: what went from there can not come back into memory.
    let isListed = forEachOnDisk(matcher, in: tier) { entry in
        let key = key(entry.keyBytes)
        // What went with its record in memory is counted, and stands in the book for a while yet.
        if tier.isOnBackStoreAlone(entry, key) {
            result.records += 1
            result.bytes += entry.bytes
        }
        guard !request.dryRun else { return }
        switch request.kind {
        case .hard: tier.remove(entry, key)
        case .soft: outdate(entry, key, in: tier)
        }
    }
    guard !request.dryRun, let backStore = tier.backStore else { return result }
    // And what came into memory before it went from the disk.
    let late = inMemory(request, matcher, in: tier)
    if request.kind == .hard {
        result.records += late.records
        result.bytes += late.bytes
    }
    result.isDurable = isLoaded && backStore.flush() && isListed
    return result
}

private func inMemory(_ request: PurgeRequest, _ matcher: SelectionMatcher, in tier: Tiers) -> PurgeResult {
    switch request.kind {
    case .hard: hardPurge(matcher, in: tier, dryRun: request.dryRun)
    case .soft: softPurge(matcher, in: tier, dryRun: request.dryRun)
    }
}

private func hardPurge(_ matcher: SelectionMatcher, in tier: Tiers, dryRun: Bool) -> PurgeResult {
    let (records, bytes) = tier.purgeMemory(dryRun: dryRun) { record in
        (record as? StoredResponse).map { matcher.matches($0) } ?? matcher.matches(uri: record.keyBytes)
    }
    return PurgeResult(records: records, bytes: bytes)
}

private func softPurge(_ matcher: SelectionMatcher, in tier: Tiers, dryRun: Bool) -> PurgeResult {
    // Counted and weighed as a hard purge would: the store alone knows what a record weighs.
    var result = PurgeResult(records: 0, bytes: 0)
    (result.records, result.bytes) = tier.purgeMemory(dryRun: true) { record in
        (record as? StoredResponse).map { matcher.matches($0) } ?? false
    }
    guard !dryRun else { return result }
    var cursor: RecordCursor?
    repeat {
        let (records, next) = tier.memory.page(after: cursor)
        for case let record as StoredResponse in records where matcher.matches(record) { outdate(record, in: tier) }
        cursor = next
    } while cursor != nil
    return result
}

private func outdate(_ record: StoredResponse, in tier: Tiers) {
    switch record.body.state {
    case .growing, .failed, .moved: tier.remove(record)
    // Where there is no room for the marked one the unmarked must not stay.
    case .complete, .partial: if !tier.replace(record, with: record.outdated) { tier.remove(record) }
    }
}

/// By way of memory: there a head is changed, and what is changed there is changed on the disk.
private func outdate(_ entry: ListedResponse, _ key: StorageKey, in tier: Tiers) {
    _ = tier.load(key, entry.keyBytes, waits: true)
    let records = unsafe entry.keyBytes.withUnsafeBytes { unsafe tier.lookup(key, $0) }
    guard let record = records.first(where: { $0.storedID == entry.id }) as? StoredResponse else {
        return tier.remove(entry, key)
    }
    outdate(record, in: tier)
}

/// False: the book can not be read.
private func forEachOnDisk(
    _ matcher: SelectionMatcher, in tier: Tiers, _ visit: (ListedResponse) -> Void
) -> Bool {
    var cursor: ListingCursor?
    repeat {
        guard
            let page = tier.page(after: cursor, in: matcher.listingRange, tag: matcher.tag, limit: 1024)
        else { return false }
        for entry in page.responses where matcher.matches(entry) { visit(entry) }
        cursor = page.next
    } while cursor != nil
    return true
}
