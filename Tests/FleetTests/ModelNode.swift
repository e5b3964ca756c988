import Fleet

/// One node of the simulated fleet: the real values of `Fleet`, and in small what the server does with them. Each function names what it stands for.
///
/// The files beside this one have its requests, its questions to other nodes, its use of the Redis, and its purges.
final class ModelNode {
    unowned let world: FleetWorld
    let index: Int
    let name: String
    /// The secret of the fleet, or another one.
    let secret: SecretHash
    private(set) var isDead = false

    // The store (Tiers)
    var memory: [ModelSlot: ModelStored] = [:]
    let disk: KeptDisk?
    /// What the disk had when the node was started, until the node has caught up (Tiers.doubtStored).
    var doubted: Set<ObjectIdentifier> = []
    /// Of purges and unsafe requests.
    var invalidations = 0
    var transfers: [ModelKey: ModelTransfer] = [:]
    /// What it sends of its store to other nodes breaks off until then.
    var breaksHitsUntil: UInt64 = 0

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

    // Unsafe requests (FleetNode+Invalidating)
    let run: String
    var changes = Invalidations()
    /// For the judge: what the keys are worth that wait.
    var changeVersions: [[UInt8]: Int] = [:]
    var changesAreTimed = false

    // Purges (FleetNode+Purging)
    var follower: StreamFollower
    var log: PurgeLog<ModelPurge>
    var underWay = PurgesUnderWay<ModelPurge>()
    var feedIsComplete = false
    var isMarking = false
    var waitingActions: [StreamFollower.Action] = []
    var announcements: [ModelAnnouncement] = []
    var isAnnouncing = false
    var known = KnownNodes()
    /// Up to where everything is applied or marked.
    var donePosition: StreamPosition?
    var lastNumber: UInt64 = 0
    /// When the thread for purges has done what it has.
    var purgesDoneAt: UInt64 = 0
    /// For the judge: what the purges were that a mark stands for.
    var markFloors: (purge: ModelFloors, change: [Int: Int]) = (ModelFloors(), [:])

    // What the judge may expect. Versions below these are not for requests that begin from now on.
    /// By purges of the stream.
    var purgeFloors = ModelFloors()
    /// By purges that began here, whether they are in the stream or not.
    var ownPurgeFloors = ModelFloors()
    /// By unsafe requests of the stream.
    var changeFloors: [Int: Int] = [:]
    /// By unsafe requests to this node. A node that dies has forgotten those of which it has not told: the others have what they had.
    var ownChangeFloors: [Int: Int] = [:]

    init(_ world: FleetWorld, _ index: Int, disk: KeptDisk?) {
        self.world = world
        self.index = index
        self.disk = disk
        name = "n\(index)"
        secret = world.stranger == index ? otherHash : hash
        run = String(world.random(), radix: 16)
        follower = StreamFollower(position: disk?.position)
        log = PurgeLog(reached: disk?.position, countMax: 40, keysMax: 3)
        purgeFloors = disk?.floors ?? ModelFloors()
        changeFloors = disk?.changeFloors ?? [:]
        if !world.breaks(.trustsDisks) { doubted = Set(disk?.stored.values.map { ObjectIdentifier($0) } ?? []) }
        // What the disk has is from before all that is in the stream by now, whether this node has heard of it or not.
        raise((world.judge.sentFloors, world.judge.sentChangeFloors))
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
        register()
        sendRemovals()
        sendAnnouncements()
        sendChanges()
    }

    var seconds: Int64 { world.seconds(of: index) }

    private func linkOpened() {
        known.listens(now: world.now)
        register()
        sendRemovals()
        sendAnnouncements()
        sendChanges()
    }

    private func linkFailed() { waitingWrites.dropAll() }

    // MARK: the store

    /// Memory first, then the disk, which brings the response into memory.
    func stored(for request: ModelRequest) -> ModelStored? {
        let variants =
            [nil, request.variant] + (world.breaks(.ignoresVary) ? (0..<FleetWorld.variants).map { $0 } : [])
        for variant in variants {
            let slot = ModelSlot(key: request.key, variant: variant)
            if let found = memory[slot] { return found }
            guard let kept = disk?.stored[slot] else { continue }
            let isDoubted = doubted.contains(ObjectIdentifier(kept))
            let found = isDoubted ? ModelStored(kept.response, isDoubted: true) : kept
            memory[slot] = found
            return found
        }
        return nil
    }

    func isUsable(_ stored: ModelStored) -> Bool { !stored.isOutdated && stored.response.expiresAt > seconds }

    /// Tiers.invalidate
    ///
    /// - Returns: whether there was something under the key.
    @discardableResult
    func invalidate(_ key: ModelKey) -> Bool {
        invalidations += 1
        transfers.removeValue(forKey: key)?.isOutdated = true
        let slots = ([nil] + (0..<FleetWorld.variants).map { $0 }).map { ModelSlot(key: key, variant: $0) }
        let removed = slots.filter { slot in
            let wasInMemory = memory.removeValue(forKey: slot) != nil
            return disk?.stored.removeValue(forKey: slot) != nil || wasInMemory
        }
        return !removed.isEmpty
    }

    /// MemoryTier.outdateTransfers
    func outdateTransfers() {
        invalidations += 1
        for transfer in transfers.values { transfer.isOutdated = true }
        transfers = [:]
    }

    /// Memory is short.
    func evict() {
        let slots = memory.keys.sorted()
        if !slots.isEmpty { memory[world.pick(slots)] = nil }
    }
}

/// A fetch that others may wait for (Transfer).
final class ModelTransfer {
    var isOutdated = false
    /// Called with the response, or with nil if it is not for others, and whether it breaks off.
    private var followers: [(ModelResponse?, Bool) -> Void] = []

    func follow(_ then: @escaping (ModelResponse?, Bool) -> Void) { followers.append(then) }

    func resolve(_ response: ModelResponse?, breaksOff: Bool) {
        let woken = followers
        followers = []
        for follower in woken { follower(response, breaksOff) }
    }
}
