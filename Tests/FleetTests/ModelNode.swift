import Fleet

/// One node of the simulated fleet: the real values of `Fleet`, and in small what the server does with them. Each function names what it stands for.
///
/// The files beside this one have its requests, its questions to other nodes, its use of the Redis, and its purges.
final class ModelNode {
    unowned let world: FleetWorld
    let index: Int
    let name: String
    private(set) var isDead = false

    // The store (Tiers)
    var memory: [ModelKey: ModelStored] = [:]
    let disk: KeptDisk?
    /// Of purges and unsafe requests.
    var invalidations = 0
    var transfers: [ModelKey: ModelTransfer] = [:]

    // Other nodes (PeerDesk)
    var ownership = Ownership([], hash: hash)
    var places: [Int] = []
    var joinedAt: UInt64?
    var circuits: [Int: Circuit] = [:]
    var notes = PeerMemory()

    // The Redis (FleetNode)
    var link: ModelLink!
    var feed: ModelLink!
    var circuit = Circuit()
    var reads: [[UInt8]: [() -> Void]] = [:]
    var waitingWrites = WaitingWrites<ModelStored>()
    var writesUnderWay = 0
    var writesPausedUntil: UInt64 = 0
    var removals: Set<[UInt8]> = []

    // Purges (FleetNode+Purging)
    var follower: StreamFollower
    var log = PurgeLog<ModelPurge>(countMax: 40)
    var underWay = PurgesUnderWay<ModelPurge>()
    var feedIsComplete = false
    var isMarking = false
    var waitingActions: [StreamFollower.Action] = []
    var announcements: [ModelAnnouncement] = []
    var isAnnouncing = false
    var lastNumber: UInt64 = 0
    /// When the thread for purges has done what it has.
    var purgesDoneAt: UInt64 = 0
    /// For the judge: what the purges were that a mark stands for.
    var markFloors: [Int: Int] = [:]

    // What the judge may expect. Versions below these are not for requests that begin from now on.
    /// By purges of the stream.
    var purgeFloors: [Int: Int] = [:]
    /// By purges that began here, whether they are in the stream or not.
    var ownPurgeFloors: [Int: Int] = [:]
    /// By unsafe requests.
    var changeFloors: [Int: Int] = [:]

    init(_ world: FleetWorld, _ index: Int, disk: KeptDisk?) {
        self.world = world
        self.index = index
        self.disk = disk
        name = "n\(index)"
        follower = StreamFollower(position: disk?.position)
        purgeFloors = disk?.floors ?? [:]
        // As FleetDesk.begin: what was stored by an earlier run may have been purged since.
        if let disk, disk.position == nil, !disk.stored.isEmpty { follower.disconnected() }
        link = ModelLink(
            self, opened: { [unowned self] in linkOpened() }, failed: { [unowned self] in linkFailed() })
        feed = ModelLink(
            self, opened: { [unowned self] in feedOpened() }, failed: { [unowned self] in feedFailed() })
        world.redis.links += [link, feed]
    }

    func begin() {
        link.connect()
        feed.connect()
        beat()
    }

    func die() { isDead = true }

    /// FleetNode.beat
    private func beat() {
        world.after(5_000_000_000, on: self) { [unowned self] in beat() }
        sendRemovals()
        sendAnnouncements()
    }

    private func linkOpened() {
        sendRemovals()
        sendAnnouncements()
    }

    private func linkFailed() { waitingWrites.dropAll() }

    // MARK: the store

    /// Memory first, then the disk, which brings the response into memory.
    func stored(_ key: ModelKey) -> ModelStored? {
        if let found = memory[key] { return found }
        guard let found = disk?.stored[key] else { return nil }
        memory[key] = found
        return found
    }

    func isUsable(_ stored: ModelStored) -> Bool { !stored.isOutdated && stored.response.expiresAt > world.seconds }

    /// Tiers.invalidate
    func invalidate(_ key: ModelKey) {
        invalidations += 1
        transfers.removeValue(forKey: key)?.isOutdated = true
        memory[key] = nil
        disk?.stored[key] = nil
    }

    /// MemoryTier.outdateTransfers
    func outdateTransfers() {
        invalidations += 1
        for transfer in transfers.values { transfer.isOutdated = true }
        transfers = [:]
    }

    /// Memory is short.
    func evict() {
        let keys = memory.keys.sorted()
        if !keys.isEmpty { memory[world.pick(keys)] = nil }
    }
}

/// A fetch that others may wait for (Transfer).
final class ModelTransfer {
    var isOutdated = false
    /// Called with the response, or with nil if it is not for others.
    private var followers: [(ModelResponse?) -> Void] = []

    func follow(_ then: @escaping (ModelResponse?) -> Void) { followers.append(then) }

    func resolve(_ response: ModelResponse?) {
        let woken = followers
        followers = []
        for follower in woken { follower(response) }
    }
}
