// Purges and listings of both tiers.
extension Tiers {
    /// Removes the responses in memory for which `condition` holds, and their copies on the back store. Returns how many there were,
    /// and how many bytes they had. Blocks. See `MemoryTier.purge`.
    package func purgeMemory(
        dryRun: Bool, free: (consuming [[StoredRecord]]) -> Void = { _ in }, where condition: (StoredRecord) -> Bool
    ) -> (records: Int, bytes: Int) {
        var copies: [StoredRecord] = []
        let purged = memory.purge(dryRun: dryRun, free: free) { record in
            guard condition(record) else { return false }
            if !dryRun, backStore != nil { copies.append(record) }
            return true
        }
        // Freed and written in portions, as memory is purged. What `free` gets has no other owner: whoever it leaves the responses to frees them.
        var count = 0
        while !copies.isEmpty {
            let portion = Array(copies.suffix(MemoryTier.purgedAtOnce))
            copies.removeLast(portion.count)
            for record in portion { removeFromBackStore(record) }
            count += portion.count
            free((consume portion).map { [$0] })
            if count % Tiers.changesAtOnce == 0 { _ = backStore?.flush() }
            if !copies.isEmpty { Shelves.letOthersGoOn() }
        }
        return purged
    }

    /// So many removals of a purge are written to the back store at once. Those of a million responses would take their memory, and when that is freed,
    /// a worker that needs memory would sort it all.
    package static let changesAtOnce = 4096

    /// A page of the listing of the back store (`BackStore.page`). Empty if there is no back store.
    package func page(
        after cursor: ListingCursor?, in range: ListingRange, tag: [UInt8]? = nil, limit: Int
    ) -> ListingPage? {
        guard let backStore else { return ListingPage([], next: nil) }
        return backStore.page(after: cursor, in: range, tag: tag, limit: limit)
    }

    /// - Parameter key: the hash of the key of the response.
    package func isInMemory(_ response: ListedResponse, _ key: StorageKey) -> Bool {
        unsafe response.keyBytes.withUnsafeBytes { unsafe memory.lookup(key, $0) }.contains {
            $0.storedID == response.id
        }
    }

    /// Whether the back store has the response and memory does not.
    package func isOnBackStoreAlone(_ response: ListedResponse, _ key: StorageKey) -> Bool {
        backStore?.contains(response.id, key) == true && !isInMemory(response, key)
    }

    /// Removes what the back store has under keys that begin so. It stays in memory. Returns at once; the work is done later, on other threads, and
    /// left out if too much waits for them.
    ///
    /// - Parameter hash: hashes the bytes of a key.
    package func removeFromBackStore(
        keysBeginningWith prefix: [UInt8], hash: @escaping @Sendable ([UInt8]) -> StorageKey
    ) {
        guard let backStore else { return }
        backStore.whenLoaded { [self] in
            _ = backStore.perform { [self] in
                var cursor: ListingCursor?
                repeat {
                    guard let page = page(after: cursor, in: .keyPrefix(prefix), limit: 1024) else { return }
                    for response in page.responses { remove(response, hash(response.keyBytes)) }
                    cursor = page.next
                } while cursor != nil
            }
        }
    }

    /// Removes a response from the back store. It stays in memory.
    package func remove(_ response: ListedResponse, _ key: StorageKey) {
        backStore?.remove(response.id, key, response.keyBytes)
    }
}
