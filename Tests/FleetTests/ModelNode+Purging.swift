import Fleet

/// A purge on its way to the others (Announcement).
struct ModelAnnouncement {
    let purge: ModelPurge
    let ticket: UInt64
}

// What FleetNode+Purging does, and the purge itself.
extension ModelNode {
    private static let wait: UInt64 = 2_000_000_000

    var isTrustworthy: Bool { feedIsComplete && !isMarking && log.start != nil }

    // MARK: following

    func feedOpened() {
        askForState { [unowned self] state, isTrimmed, _ in
            log.begin(state, isTrimmed: isTrimmed)
            fillLog(after: nil)
        }
    }

    func feedFailed() {
        feedIsComplete = false
        follower.disconnected()
        waitingActions.removeAll(where: \.isOfConnection)
    }

    private func askForState(
        _ then: @escaping (StreamState, Bool, (purge: ModelFloors, change: [Int: Int])) -> Void
    ) {
        let world = world
        feed.send(within: ModelNode.wait) { redis in
            // What the judge may expect of who begins at the end, or marks everything: the purges that are in the stream by now, or have been.
            redis.state().map {
                ($0.state, $0.isTrimmed, (world.judge.sentFloors, world.judge.sentChangeFloors))
            }
        } then: { [unowned self] reply, failure in
            if failure == .disconnected { return }
            guard let reply = reply ?? nil else { return feed.fail() }
            then(reply.0, reply.1, reply.2)
        }
    }

    private func fillLog(after id: StreamID?) {
        feed.send(within: ModelNode.wait) {
            $0.range(after: id)
        } then: { [unowned self] entries, failure in
            if failure == .disconnected { return }
            guard let entries else { return feed.fail() }
            let read = entries.map(entry)
            remember(read)
            if let last = entries.last, entries.count == ModelRedis.entriesPerRead { return fillLog(after: last.id) }
            feedIsComplete = true
            settlePurges()
            examine()
        }
    }

    private func entry(_ found: (id: StreamID, fields: [[UInt8]])) -> StreamEntry {
        do throws(PurgeEntryError) {
            return StreamEntry(id: found.id, purge: .success(try PurgeEntry(fields: found.fields, hash: secret)))
        } catch { return StreamEntry(id: found.id, purge: .failure(error)) }
    }

    private func purge(in entry: PurgeEntry) -> ModelPurge {
        world.judge.purge(Int(String(decoding: entry.purge, as: UTF8.self))!)
    }

    private func remember(_ entries: [StreamEntry]) {
        for entry in entries {
            switch entry.purge {
            case .success(let purge):
                if let invalidated = InvalidatedKeys(purge: purge.purge) {
                    log.add(entry.id, keys: world.breaks(.skipsChangesInLog) ? [] : invalidated.keys)
                } else {
                    log.add(entry.id, self.purge(in: purge))
                }
            case .failure(let error): if error.isAuthentic { log.add(entry.id, nil) } else { log.pass(entry.id) }
            }
        }
    }

    private func perform(_ actions: [StreamFollower.Action]) {
        waitingActions += actions
        while !isMarking, !waitingActions.isEmpty { perform(waitingActions.removeFirst()) }
        // FleetNode.trustDisks
        if follower.hasCaughtUp, !isMarking { doubted = [] }
    }

    private func perform(_ action: StreamFollower.Action) {
        switch action {
        case .ask: examine()
        case .readAfter(let id):
            if let position = follower.position { log.resume(at: position) }
            readFeed(after: id)
        case .apply(let id, let entry):
            if let invalidated = InvalidatedKeys(purge: entry.purge) {
                return applyChange(invalidated, entry.number) { [unowned self] in perform(follower.applied(id)) }
            }
            let purge = purge(in: entry)
            applyHere(purge) { [unowned self] in
                world.trace("\(name): purge \(purge.number) of the stream is applied")
                purgeFloors.raise(purge.floors)
                perform(follower.applied(id))
            }
        case .skip: break
        case .markEverythingStale(let reason):
            world.trace("\(name): everything is marked as stale: \(reason)")
            world.marks[reason, default: 0] += 1
            isMarking = true
            if !world.breaks(.neverMarks) { doubted = Set(disk?.stored.values.map { ObjectIdentifier($0) } ?? []) }
            let floors = markFloors
            guard !world.breaks(.neverMarks) else {
                raise(floors)
                isMarking = false
                return
            }
            applyHere(ModelPurge(number: -1, what: .everythingStale, floors: ModelFloors())) { [unowned self] in
                raise(floors)
                isMarking = false
                perform([])
            }
        case .remember(let position):
            donePosition = position
            register()
            disk?.position = position
            disk?.floors = purgeFloors
            disk?.changeFloors = changeFloors
        }
    }

    private func readFeed(after id: StreamID) {
        guard feed.isOpen else { return }
        let world = world
        feed.sendBlocking(within: ModelNode.wait) {
            $0.read(after: id, world, $1)
        } then: {
            [unowned self] entries, failure in
            if failure == .disconnected { return }
            guard let entries else { return feed.fail() }
            let read = entries.map(entry)
            remember(read)
            if world.breaks(.saysWhatIsNotDone) { register() }
            settlePurges()
            perform(follower.read(read))
        }
    }

    private func examine() {
        askForState { [unowned self] state, _, floors in
            log.examined(state)
            markFloors = floors
            let isFirst = follower.position == nil
            if isFirst, !world.breaks(.beginsWithWhatItHas) { markIfStored() }
            let actions = follower.examined(state)
            // Who begins at the end has nothing from before.
            if isFirst, !actions.contains(where: { if case .markEverythingStale = $0 { true } else { false } }) {
                raise(floors)
            }
            perform(actions)
        }
    }

    func raise(_ floors: (purge: ModelFloors, change: [Int: Int])) {
        // One with another secret never learns what the others purge: what it wrote itself stays good enough for it.
        guard world.stranger != index else { return }
        purgeFloors.raise(floors.purge)
        changeFloors.merge(floors.change) { max($0, $1) }
    }

    func settlePurges() {
        guard feedIsComplete else { return }
        underWay.settle(log)
        changes.settle(log)
    }

    /// Clients were served before the first answer of the Redis.
    private func markIfStored() {
        outdateTransfers()
        if !memory.isEmpty || disk?.stored.isEmpty == false { follower.disconnected() }
    }

    // MARK: purges of this node

    /// RunningProxy.purge: first here, then for all.
    func purge(_ purge: ModelPurge) {
        let ticket = underWay.begin(purge)
        applyHere(purge) { [unowned self] in
            world.trace("\(name): purge \(purge.number) is applied where it began")
            ownPurgeFloors.raise(purge.floors)
            world.after(world.microseconds(1...300), on: self) { [unowned self] in
                announcements.append(ModelAnnouncement(purge: purge, ticket: ticket))
                sendAnnouncements()
            }
        }
    }

    func sendAnnouncements() {
        guard !isAnnouncing, link.isOpen, let first = announcements.first else { return }
        lastNumber += 1
        let entry = PurgeEntry(
            node: name, number: lastNumber, issuedAt: seconds, purge: first.purge.bytes)!
        isAnnouncing = true
        let world = world
        link.send(within: ModelNode.wait) { [secret, index] redis -> StreamID? in
            let id = redis.add(entry.fields(hash: secret), world)
            // Those with another secret do not hear of it.
            if id != nil, world.stranger != index { world.judge.isSent(first.purge) }
            return id
        } then: { [unowned self] reply, _ in
            isAnnouncing = false
            guard let id = reply ?? nil else { return }
            announcements.removeFirst()
            underWay.sent(first.ticket, as: id, log)
            settlePurges()
            awaitSpread(of: id, first.purge, until: world.now + 1_000_000_000)
            sendAnnouncements()
        }
    }

    // MARK: what is said of it

    /// FleetNode.register
    func register() {
        guard link.isOpen,
            let position = world.breaks(.saysWhatIsNotDone) ? log.latest(follower.position) : donePosition
        else { return }
        let said = RegisterEntry(
            seenAt: seconds, position: position, run: run, release: "1", peer: nil, hash: secret)
        let value = said.value(of: name, hash: secret)
        link.send(within: ModelNode.wait) { [name] in
            $0.enter(value, of: name)
        } then: { _, _ in
        }
    }

    /// FleetNode.awaitSpread
    private func awaitSpread(of id: StreamID, _ purge: ModelPurge, until deadline: UInt64) {
        link.send(within: ModelNode.wait) {
            $0.register
        } then: { [unowned self] register, _ in
            let entries = (register ?? [:]).sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) }
            if !entries.isEmpty { _ = known.read(entries, hash: secret, now: world.now) }
            let position = log.latest(follower.position).map { StreamPosition(epoch: $0.epoch, id: id) }
            let isWorthWaiting =
                position.map { known.isWorthWaiting(for: $0, ownName: name, hash: secret, now: world.now) } ?? true
            guard isWorthWaiting, world.now < deadline, link.isOpen else { return say(position, purge) }
            world.after(20_000_000, on: self) { [unowned self] in awaitSpread(of: id, purge, until: deadline) }
        }
    }

    private func say(_ position: StreamPosition?, _ purge: ModelPurge) {
        let others = known.standings(
            of: position, own: (name, run), members: [], hash: secret, now: world.now)
        let applied = others.filter { standing in
            if case .refused = standing.state, world.breaks(.countsWhoRefuses) { return true }
            return standing.state == .applied
        }
        world.trace(
            "\(name): purge \(purge.number) is said to be applied on \(applied.map(\.name)) of \(others.map(\.name))")
        world.isSaid(
            purge, [index] + applied.map { Int($0.name.dropFirst())! }, of: others.count + 1)
    }

    // MARK: the purge (Admin/objects/Purge.swift)

    /// On the thread for purges: transfers under way are outdated first, then the store is searched.
    private func applyHere(_ purge: ModelPurge, _ then: @escaping () -> Void) {
        onPurgeThread({ [unowned self] in outdateTransfers() }, { [unowned self] in remove(purge) }, then)
        world.isBeingApplied(purge, on: self, until: purgesDoneAt)
    }

    func onPurgeThread(_ first: @escaping () -> Void, _ second: @escaping () -> Void, _ then: @escaping () -> Void) {
        let start = max(world.now, purgesDoneAt)
        let searched = start + searchTime
        purgesDoneAt = searched + searchTime
        world.after(start - world.now, on: self, first)
        world.after(searched - world.now, on: self, second)
        world.after(purgesDoneAt - world.now, on: self, then)
    }

    private var searchTime: UInt64 {
        if world.searchesSlowly, world.percent(30) { return world.microseconds(20_000...400_000) }
        return world.microseconds(world.percent(10) ? 1000...80_000 : 10...2000)
    }

    private func remove(_ purge: ModelPurge) {
        func left(_ stored: ModelStored) -> ModelStored? {
            guard purge.concerns(stored.response.url) else { return stored }
            switch purge.what {
            case .everythingStale: return ModelStored(stored.response, isDoubted: true)
            case .softly:
                // What comes from the disk as doubted is written back so.
                let isDoubted = stored.isDoubted || doubted.contains(ObjectIdentifier(stored))
                return ModelStored(stored.response, isOutdated: true, isDoubted: isDoubted)
            case .url, .everything: return nil
            }
        }
        memory = memory.compactMapValues(left)
        if let disk { disk.stored = disk.stored.compactMapValues(left) }
    }

    // MARK: records and purges

    func isPurged(_ record: SharedRecord, _ key: ModelKey) -> Bool {
        if world.breaks(.skipsPurgeLog) { return false }
        if !world.breaks(.readsBehindOwnPurges), underWay.concerns({ $0.concerns(key.url) }) { return true }
        return log.concerns(recordAt: record.position, of: record.key) { $0.concerns(key.url) }
    }
}
