import Settings
package import Storage

/// A separate cache with a budget of its own, to which rules send requests.
package final class Zone: Sendable {
    /// The name of the zone that is always there.
    package static let defaultName = "default"

    package let name: String
    package let tier: Tiers
    /// Bytes of the longest body stored, where no rule says otherwise.
    let objectSizeMax: Int
    /// Bytes of the longest body that memory takes, where a back store takes longer ones; nil where there is none.
    let memoryObjectSizeMax: Int?
    /// What `Cache-Status` says of the zone: nothing of the default one.
    let label: [UInt8]

    init(name: String, tier: Tiers, objectSizeMax: Int, memoryObjectSizeMax: Int?) {
        self.name = name
        self.tier = tier
        precondition(objectSizeMax >= 0 && memoryObjectSizeMax ?? 0 >= 0, "sizes are not negative")
        self.objectSizeMax = objectSizeMax
        self.memoryObjectSizeMax = memoryObjectSizeMax
        label = name == Zone.defaultName ? [] : Array("; zone=\(name)".utf8)
    }

    func lookup(_ key: StorageKey, _ uri: [UInt8]) -> [StoredRecord] {
        unsafe uri.withUnsafeBytes { unsafe tier.lookup(key, $0) }
    }

    func lead(_ key: StorageKey, _ uri: [UInt8], knownNewest: StoredRecord?) -> Leadership {
        unsafe uri.withUnsafeBytes { unsafe tier.lead(key, $0, knownNewest: knownNewest) }
    }

    func invalidate(_ key: StorageKey, _ uri: [UInt8]) -> Int {
        tier.invalidate(key, uri)
    }
}
