package import Disk

/// All that is stored, for purges and listings: what is in memory, and what is on the disk.
extension Tiers {
    /// Takes out the records in memory for which `condition` holds, their copies on the disk with them; returns how many and their
    /// bytes. As `MemoryTier.purge`.
    package func purgeMemory(dryRun: Bool, where condition: (StoredRecord) -> Bool) -> (records: Int, bytes: Int) {
        var onDisk: [StoredRecord] = []
        let purged = memory.purge(dryRun: dryRun) { record in
            guard condition(record) else { return false }
            if !dryRun, disk != nil { onDisk.append(record) }
            return true
        }
        for record in onDisk { removeFromDisk(record) }
        return purged
    }

    /// Objects that are on the disk, in the order of host and path. Blocks. What was stored before `disk.flush` is among
    /// them.
    /// - Parameters:
    ///   - cursor: where the page before ended; nil: the beginning.
    ///   - tag: those that have it, in place of a range.
    ///   - limit: objects of a page.
    /// - Returns: nil: the book can not be read.
    package func diskPage(
        after cursor: BookCursor?, in range: BookRange, tag: [UInt8]? = nil, limit: Int
    ) -> (entries: [BookEntry], next: BookCursor?)? {
        guard let disk else { return ([], nil) }
        if let tag { return disk.page(after: cursor, tag: tag, limit: limit) }
        return disk.page(after: cursor, in: range, limit: limit)
    }

    /// - Parameter key: the hash of the entry's key.
    package func isInMemory(_ entry: BookEntry, _ key: StorageKey) -> Bool {
        unsafe entry.key.withUnsafeBytes { unsafe memory.lookup(key, $0) }.contains { $0.diskID == entry.id }
    }

    /// It is on the disk, and memory has no record of it.
    package func isOnDiskAlone(_ entry: BookEntry, _ key: StorageKey) -> Bool {
        disk?.contains(entry.id, hash: key.folded) == true && !isInMemory(entry, key)
    }

    /// Takes an object off the disk; a record of it in memory stays.
    package func remove(_ entry: BookEntry, _ key: StorageKey) {
        disk?.remove(entry.id, hash: key.folded, key: entry.key)
    }
}
