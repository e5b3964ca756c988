import Settings
package import Storage

/// A separate cache with a budget of its own, to which rules send requests.
package final class Zone: Sendable {
    /// The zone that is always there.
    package static let defaultName = "default"

    package let name: String
    package let tier: Tiers
    /// Bytes of the largest body stored, where no rule says otherwise.
    let objectSizeMax: Int
    /// Bytes of the largest that memory takes, where a disk takes what is larger; nil: there is none.
    let memoryObjectSizeMax: Int?
    /// What `Cache-Status` says of it: nothing of the default one.
    let label: [UInt8]

    init(name: String, tier: Tiers, objectSizeMax: Int, memoryObjectSizeMax: Int?) {
        self.name = name
        self.tier = tier
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
