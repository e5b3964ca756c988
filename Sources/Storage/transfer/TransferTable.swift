/// The transfers under way in one shard, by key.
///
/// A fixed number of chains, linked through the transfers themselves: each request that the store does not answer enters and leaves the
/// table, and neither allocates. A chain has more than one member only when thousands of transfers are under way at once.
struct TransferTable {
    private static let chainCount = 64
    private var chains = [TransferState?](repeating: nil, count: chainCount)
    private(set) var count = 0

    private static func chain(of key: StorageKey) -> Int { Int(truncatingIfNeeded: key.low) & (chainCount - 1) }

    subscript(_ key: StorageKey) -> TransferState? {
        var next = chains[Self.chain(of: key)]
        while let transfer = next {
            if transfer.key == key { return transfer }
            next = transfer.next
        }
        return nil
    }

    /// Adds a transfer whose key is not in the table.
    mutating func insert(_ transfer: TransferState) {
        precondition(transfer.next == nil, "a transfer enters the table once")
        let chain = Self.chain(of: transfer.key)
        transfer.next = chains[chain]
        chains[chain] = transfer
        count += 1
    }

    /// Removes the transfer with that key and returns it. Returns nil if there is none.
    mutating func remove(_ key: StorageKey) -> TransferState? {
        guard let transfer = self[key] else { return nil }
        remove(transfer)
        return transfer
    }

    /// Removes a transfer. Does nothing if it is not in the table: another one with the same key may be.
    mutating func remove(_ transfer: TransferState) {
        let chain = Self.chain(of: transfer.key)
        if chains[chain] === transfer {
            chains[chain] = transfer.next
        } else {
            var previous = chains[chain]
            while let before = previous, before.next !== transfer { previous = before.next }
            guard let previous else { return }
            previous.next = transfer.next
        }
        transfer.next = nil
        count -= 1
    }

    /// Removes all transfers, and calls `visit` with each.
    mutating func removeAll(_ visit: (TransferState) -> Void) {
        for chain in chains.indices {
            while let transfer = chains[chain] {
                remove(transfer)
                visit(transfer)
            }
        }
    }
}
