import Message
import Storage

extension Tiers {
    /// Has the variants of a key that came, or were validated, until a time validated before they are served again.
    ///
    /// - Parameter loads: whether those that are on the disk alone count. Blocks then.
    func outdate(_ key: StorageKey, _ keyBytes: [UInt8], until time: WallTime, loads: Bool) {
        if loads { _ = load(key, keyBytes, waits: true) }
        let records = unsafe keyBytes.withUnsafeBytes { unsafe lookup(key, $0) }
        for case let record as StoredResponse in records
        where record.body.isComplete && record.cached.responseTime <= time && !record.terms.isOutdated {
            _ = replace(record, with: record.outdated)
        }
    }
}
