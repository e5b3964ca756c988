package import Storage

/// The disk tier of a zone, as its figures are read from it.
package struct DiskUse: Sendable, Equatable {
    package var statistics: BackStoreStatistics
    package var state: BackStoreHealth
    /// The index has been read. Until then, stored responses that it has not come to are not found, and are fetched again.
    package var isLoaded: Bool

    package init(statistics: BackStoreStatistics, state: BackStoreHealth = .on, isLoaded: Bool = true) {
        self.statistics = statistics
        self.state = state
        self.isLoaded = isLoaded
    }

    package init(_ store: any BackStore) {
        self.init(statistics: store.statistics, state: store.health, isLoaded: store.isLoaded)
    }

    /// Why the disk tier is off; nil if it is on.
    package var offReason: String? {
        switch state {
        case .on: nil
        case .off(let reason): reason
        }
    }
}

/// A disk tier that is off, and why.
package struct DiskOff: Sendable, Equatable {
    package var zone: String
    package var reason: String

    package init(zone: String, reason: String) {
        self.zone = zone
        self.reason = reason
    }
}
