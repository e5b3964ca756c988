internal import Synchronization

/// Remembers which URLs were invalidated, for responses whose keys nobody can list: a URL has one key for each credential, cookie jar and route
/// with which it was fetched, and an unsafe request by one client invalidates them all (RFC 9111 §4.4).
///
/// Each invalidation has a number. Under the hash of a URL's common key stands the number of the last one; a response from before it must be
/// validated. Keys whose hashes meet share a place, so some other response is validated needlessly, and none is missed. The memory is bounded.
package final class InvalidationMarks: @unchecked Sendable {
    /// 64 KiB. With a thousand invalidated URLs, one response in eight is validated once more than it has to be.
    private static let placeCount = 8192

    private let lock = LockBank(count: 1)
    /// Protected by the lock.
    private var places = [UInt64](repeating: 0, count: placeCount)
    private let latest = Atomic<UInt64>(0)

    package init() {}

    /// The number of the last invalidation. A fetch reads it before it sends its request: what the origin answers may be from before any
    /// later one.
    package var last: UInt64 { latest.load(ordering: .sequentiallyConsistent) }

    /// - Parameter key: the hash of the key that all requests for the URL have in common.
    package func mark(_ key: StorageKey) {
        lock.withLock(0) {
            places[place(key)] = latest.add(1, ordering: .sequentiallyConsistent).newValue
        }
    }

    /// Whether the URL may have been invalidated after the invalidation with this number.
    package func isMarked(_ key: StorageKey, after number: UInt64) -> Bool {
        // Most processes never invalidate anything.
        guard number < last else { return false }
        return lock.withLock(0) { places[place(key)] > number }
    }

    private func place(_ key: StorageKey) -> Int { Int(key.low % UInt64(InvalidationMarks.placeCount)) }
}
