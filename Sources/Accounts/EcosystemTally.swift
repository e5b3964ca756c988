package import EventLoop

/// What the cache did for the hosts of one recipe since the process started.
package struct EcosystemCounts: Sendable, Equatable {
    /// Requests that an origin or the store answered.
    package var requests: UInt64 = 0
    /// Those of them that the store answered, or a fetch for another request.
    package var fromCache: UInt64 = 0
    /// Bytes of bodies sent to clients.
    package var bytes: UInt64 = 0
    /// Those of them that came from the store, or from a fetch for another request.
    package var bytesSaved: UInt64 = 0

    package init() {}

    package mutating func add(_ account: Account) {
        guard account.outcome.countsForHitRatio else { return }
        let sent = UInt64(clamping: account.bodyBytes)
        requests &+= 1
        bytes &+= sent
        guard account.outcome.isFromCache else { return }
        fromCache &+= 1
        bytesSaved &+= sent
    }
}

/// The counts by the name of the recipe, of all workers. Requests without a recipe are not counted, and do not take the lock.
package typealias EcosystemTally = Locked<[String: EcosystemCounts]>
