/// What the other nodes do with the buckets of limits, from their news. Times are nanoseconds of a clock that never goes back.
///
/// It is bounded: a bucket that all others leave alone and that is full again is forgotten. Where there are too many, further ones are not noted.
package struct OthersUse: Sendable {
    private struct Place {
        var underWay: UInt32
        var connections: UInt32
        var saidAt: UInt64
    }

    private struct Use {
        /// When the requests and the bytes of the others are paid for, without those of this node.
        var requestsUntil: UInt64 = 0
        var bytesUntil: UInt64 = 0
        /// By the run of the node.
        var places: [UInt64: Place] = [:]
    }

    /// What the others have of one bucket.
    package struct Sums: Equatable, Sendable {
        package var underWay: Int = 0
        package var connections: Int = 0
        /// How long the requests and the bytes of the others take to be paid for, in nanoseconds.
        package var requests: UInt64 = 0
        package var bytes: UInt64 = 0

        package init(underWay: Int = 0, connections: Int = 0, requests: UInt64 = 0, bytes: UInt64 = 0) {
            self.underWay = underWay
            self.connections = connections
            self.requests = requests
            self.bytes = bytes
        }
    }

    private var uses: [BucketName: Use] = [:]
    /// The number of the last news of each run, and when it came.
    private var runs: [UInt64: (number: UInt64, at: UInt64)] = [:]
    private let countMax: Int

    /// A node says again within this time what it has under way. What was said before may be of a node that is gone.
    package static let placeLifetime: UInt64 = 15_000_000_000
    private static let runLifetime: UInt64 = 600_000_000_000
    private static let runsMax = 1_024

    package init(countMax: Int = 65_536) { self.countMax = countMax }

    package var count: Int { uses.count }

    /// Whether news were not read before. A stream may be read once more, and somebody may add an entry once more.
    package mutating func isNew(_ news: FleetNews, now: UInt64) -> Bool {
        if let last = runs[news.run], news.number <= last.number { return false }
        guard runs.count < OthersUse.runsMax || runs[news.run] != nil else { return false }
        runs[news.run] = (news.number, now)
        return true
    }

    /// Notes what a node says of a bucket.
    package mutating func note(_ bucket: FleetNews.Bucket, of run: UInt64, now: UInt64) {
        guard uses.count < countMax || uses[bucket.name] != nil else { return }
        var use = uses[bucket.name] ?? Use()
        use.requestsUntil = max(use.requestsUntil, now) + min(bucket.requests, FleetNews.debtMax)
        use.bytesUntil = max(use.bytesUntil, now) + min(bucket.bytes, FleetNews.debtMax)
        use.requestsUntil = min(use.requestsUntil, now + FleetNews.debtMax)
        use.bytesUntil = min(use.bytesUntil, now + FleetNews.debtMax)
        use.places[run] =
            bucket.underWay == 0 && bucket.connections == 0
            ? nil : Place(underWay: bucket.underWay, connections: bucket.connections, saidAt: now)
        uses[bucket.name] = use
    }

    package func sums(of name: BucketName, now: UInt64) -> Sums {
        guard let use = uses[name] else { return Sums() }
        var sums = Sums(
            requests: use.requestsUntil - min(use.requestsUntil, now), bytes: use.bytesUntil - min(use.bytesUntil, now))
        for place in use.places.values where now - min(now, place.saidAt) < OthersUse.placeLifetime {
            sums.underWay += Int(place.underWay)
            sums.connections += Int(place.connections)
        }
        return sums
    }

    /// Forgets what no longer matters.
    ///
    /// - Returns: the buckets in which nodes had places that have not been heard of for too long.
    package mutating func sweep(now: UInt64) -> [BucketName] {
        var changed: [BucketName] = []
        for (name, use) in uses {
            let places = use.places.filter { now - min(now, $0.value.saidAt) < OthersUse.placeLifetime }
            if places.count < use.places.count {
                changed.append(name)
                uses[name]?.places = places
            }
            if places.isEmpty, use.requestsUntil <= now, use.bytesUntil <= now { uses[name] = nil }
        }
        runs = runs.filter { now - min(now, $0.value.at) < OthersUse.runLifetime }
        return changed
    }
}
