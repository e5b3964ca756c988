import Settings
package import Storage

/// A cache with a budget of its own. The rules choose the zone of a request.
package final class Zone: Sendable {
    /// The name of the zone that always exists.
    package static let defaultName = "default"

    package let name: String
    package let tier: Tiers
    /// The largest body in bytes that is stored, unless a rule says otherwise.
    let objectSizeMax: Int
    /// The largest body in bytes that is stored in memory, if there is a back store for larger ones. Nil if there is none.
    let memoryObjectSizeMax: Int?
    /// The parameter of `Cache-Status` that names the zone. Empty for the default zone.
    let label: [UInt8]

    init(name: String, tier: Tiers, objectSizeMax: Int, memoryObjectSizeMax: Int?) {
        self.name = name
        self.tier = tier
        precondition(objectSizeMax >= 0 && memoryObjectSizeMax ?? 0 >= 0, "sizes are not negative")
        self.objectSizeMax = objectSizeMax
        self.memoryObjectSizeMax = memoryObjectSizeMax
        label = name == Zone.defaultName ? [] : Array("; zone=\(name)".utf8)
    }

    func lookup(_ key: StorageKey, _ uri: [UInt8]) -> [StoredRecord] { lookup(key, uri.span) }

    func lookup(_ key: StorageKey, _ uri: borrowing Span<UInt8>) -> [StoredRecord] {
        unsafe uri.bytes.withUnsafeBytes { unsafe tier.lookup(key, $0) }
    }

    /// The newest variant, in memory, of all that are stored under the key.
    func newest(_ key: StorageKey, _ uri: borrowing Span<UInt8>) -> StoredResponse? {
        let record = unsafe uri.bytes.withUnsafeBytes { unsafe tier.newest(key, $0) }
        return record.map { unsafe unsafeDowncast($0, to: StoredResponse.self) }
    }

    /// See `MemoryTier.lead`.
    func lead(
        _ key: StorageKey, _ uri: [UInt8], knownNewest: StoredRecord?, askedAt now: Duration? = nil,
        mayLead: Bool = true
    ) -> Leadership {
        tier.lead(key, uri, knownNewest: knownNewest, askedAt: now, mayLead: mayLead)
    }

    func invalidate(_ key: StorageKey, _ uri: [UInt8]) -> Int {
        tier.invalidate(key, uri)
    }
}
