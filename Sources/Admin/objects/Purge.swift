import Message
import Server
import Storage

/// Carries out a purge in one zone.
///
/// A response that is still arriving is removed as well: clients that are reading it get the rest, and later requests do not. A soft
/// purge does the same, because the fetch knows its record by identity. A response whose head has not arrived is not selected.
///
/// If there is a disk tier, the purge waits until its index is loaded, and until a power cut cannot undo the purge. The result says if
/// that failed.
/// - Parameter key: hashes the bytes of a key.
func purge(
    _ request: PurgeRequest, _ matcher: SelectionMatcher, in tier: Tiers, _ homes: ResponseHomes,
    key: ([UInt8]) -> StorageKey
) -> PurgeResult {
    if !request.dryRun { tier.memory.outdateTransfers() }
    // After this, responses that waited to be written are in the index, as are older ones if the index is being rebuilt.
    let isLoaded = tier.backStore?.waitUntilLoaded() ?? true
    _ = tier.backStore?.flush()
    var result = inMemory(request, matcher, in: tier, homes)
    // Then the disk, whether or not a response is in memory as well. What is removed there cannot come back into memory.
    let isListed = forEachOnDisk(matcher, in: tier, writes: !request.dryRun) { entry in
        let key = key(entry.keyBytes)
        // A response that was removed together with its record in memory has been counted, but stays in the index for a while.
        if tier.isOnBackStoreAlone(entry, key) {
            result.records += 1
            result.bytes += entry.bytes
        }
        guard !request.dryRun else { return }
        switch request.kind {
        case .hard: tier.remove(entry, key)
        case .soft: mark(entry, key, in: tier) { $0.outdated }
        case .doubt: mark(entry, key, in: tier) { $0.doubted }
        }
    }
    guard !request.dryRun, let backStore = tier.backStore else { return result }
    // Finally, responses that came into memory before they were removed from the disk.
    let late = inMemory(request, matcher, in: tier, homes)
    if request.kind == .hard {
        result.records += late.records
        result.bytes += late.bytes
    }
    result.isDurable = isLoaded && backStore.flush() && isListed
    return result
}

private func inMemory(
    _ request: PurgeRequest, _ matcher: SelectionMatcher, in tier: Tiers, _ homes: ResponseHomes
) -> PurgeResult {
    switch request.kind {
    case .hard: hardPurge(matcher, in: tier, homes, dryRun: request.dryRun)
    case .soft: softPurge(matcher, in: tier, homes, dryRun: request.dryRun) { $0.outdated }
    case .doubt: softPurge(matcher, in: tier, homes, dryRun: request.dryRun) { $0.doubted }
    }
}

private func hardPurge(
    _ matcher: SelectionMatcher, in tier: Tiers, _ homes: ResponseHomes, dryRun: Bool
) -> PurgeResult {
    let (records, bytes) = tier.purgeMemory(dryRun: dryRun, free: homes.free) { record in
        (record as? StoredResponse).map { matcher.matches($0) } ?? matcher.matches(uri: record.keyBytes)
    }
    return PurgeResult(records: records, bytes: bytes)
}

private func softPurge(
    _ matcher: SelectionMatcher, in tier: Tiers, _ homes: ResponseHomes, dryRun: Bool,
    marked: @escaping @Sendable (StoredResponse) -> StoredResponse
) -> PurgeResult {
    // Count as a hard purge does: only the store knows how many bytes a record takes.
    var result = PurgeResult(records: 0, bytes: 0)
    (result.records, result.bytes) = tier.purgeMemory(dryRun: true) { record in
        (record as? StoredResponse).map { matcher.matches($0) } ?? false
    }
    guard !dryRun else { return result }
    var cursor: RecordCursor?
    repeat {
        var (records, next) = tier.memory.page(after: cursor)
        while !records.isEmpty {
            var portion: [[StoredRecord]] = []
            while portion.count < MemoryTier.purgedAtOnce, let record = records.popLast() {
                if let response = record as? StoredResponse, matcher.matches(response) { portion.append([response]) }
            }
            homes.visit(portion) { record in
                if let response = record as? StoredResponse { mark(response, in: tier, marked) }
            }
        }
        cursor = next
    } while cursor != nil
    return result
}

private func mark(_ record: StoredResponse, in tier: Tiers, _ marked: (StoredResponse) -> StoredResponse) {
    switch record.body.state {
    case .growing, .failed, .moved: tier.remove(record)
    // If there is no room for the marked response, the unmarked one must not stay.
    case .complete, .partial: if !tier.replace(record, with: marked(record)) { tier.remove(record) }
    }
}

/// Loads the response into memory, because a head is changed there, and the change is then written to the disk.
private func mark(
    _ entry: ListedResponse, _ key: StorageKey, in tier: Tiers, _ marked: (StoredResponse) -> StoredResponse
) {
    _ = tier.load(key, entry.keyBytes, waits: true)
    let records = unsafe entry.keyBytes.withUnsafeBytes { unsafe tier.lookup(key, $0) }
    guard let record = records.first(where: { $0.storedID == entry.id }) as? StoredResponse else {
        return tier.remove(entry, key)
    }
    mark(record, in: tier, marked)
}

/// Returns false if the index cannot be read.
///
/// - Parameter writes: whether `visit` changes the disk. Its changes are written in portions (`Tiers.changesAtOnce`).
private func forEachOnDisk(
    _ matcher: SelectionMatcher, in tier: Tiers, writes: Bool, _ visit: (ListedResponse) -> Void
) -> Bool {
    var cursor: ListingCursor?
    var changes = 0
    repeat {
        guard
            let page = tier.page(after: cursor, in: matcher.listingRange, tag: matcher.tag, limit: 1024)
        else { return false }
        for entry in page.responses where matcher.matches(entry) {
            visit(entry)
            changes += 1
        }
        if writes, changes >= Tiers.changesAtOnce {
            _ = tier.backStore?.flush()
            changes = 0
        }
        cursor = page.next
    } while cursor != nil
    return true
}
