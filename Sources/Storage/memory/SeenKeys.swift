/// Remembers the keys that were seen last, some thousands of them.
@safe final class SeenKeys: @unchecked Sendable {
    private static let countMax = 16_384
    private let lock = LockBank(count: 1)
    private var keys = GhostQueue()

    deinit { keys.free() }

    /// Returns true and forgets the key if it is remembered. Otherwise returns false and remembers it.
    func hasSeen(_ key: StorageKey) -> Bool {
        var doomed = Doomed()
        let isKnown = lock.withLock(0) {
            if keys.take(key) { return true }
            keys.note(key, limit: Self.countMax, into: &doomed)
            return false
        }
        doomed.destroy()
        return isKnown
    }
}
