import Accounts
import EventLoop
import Fleet
import Message
import Redis
import Storage

/// A purge of this node on its way to the others.
struct Announcement {
    let purge: [UInt8]
    /// Of `PurgesUnderWay`.
    let ticket: UInt64
    let issuedAt: Int64
    /// Nil: nobody waits for it any more, or ever did.
    var then: (@Sendable (PurgeSpread) -> Void)?
}

/// Sends purges to the fleet, and applies those of the fleet. `StreamFollower` decides; this does what it says.
extension FleetNode {
    /// About so many entries stay in the stream.
    private static let streamEntriesMax = 10_000
    private static let entriesPerRead = 100
    private static let blockMilliseconds = 500
    private static let wait = Duration.seconds(2)
    private static let announcementsMax = 1_000
    private static let spreadMax = Duration.seconds(1)

    /// Whether this node knows all purges that a shared record may have missed.
    var isTrustworthy: Bool { feedIsComplete && !isMarking && log.start != nil }

    // MARK: following

    func feedOpened(_ info: String) {
        serverRun = FleetNode.value(of: "run_id", in: info) ?? ""
        askForState { [unowned self] state, trimmed in
            log.begin(state, isTrimmed: trimmed)
            fillLog(after: nil)
        }
    }

    func feedFailed(_ reason: String) {
        feedIsComplete = false
        let isNews = figures.withLock { figures in
            figures.isFollowing = false
            defer { figures.lastFeedFailure = reason }
            // Usually both connections fail for the same reason, and one line is enough.
            return figures.lastFeedFailure != reason && figures.lastFailure != reason
        }
        if isNews {
            Diagnostics.warning(
                "fleet: the purges of the other nodes cannot be followed: \(reason). Nothing is read until they can")
        }
        follower.disconnected()
        // What waits for a mark was meant for this connection. The next one begins with a question of its own.
        waitingActions.removeAll(where: \.isOfConnection)
    }

    /// - Parameter then: gets the state, and whether entries may have been removed from the beginning of the stream.
    private func askForState(_ then: @escaping (StreamState, Bool) -> Void) {
        let random = hexadecimal((0..<16).map { _ in UInt8.random(in: 0...255) })
        feed.send([redisWord("SET"), SharedKeys.epoch, random, redisWord("NX")], within: FleetNode.wait) { _ in }
        var epoch: [UInt8]?
        feed.send([redisWord("GET"), SharedKeys.epoch], within: FleetNode.wait) { epoch = (try? $0.get())?.data }
        feed.send([redisWord("XINFO"), redisWord("STREAM"), SharedKeys.purges], within: FleetNode.wait) {
            [unowned self] result in
            guard let reply = reply(result) else { return }
            guard let epoch, let name = StreamEpoch(Array("\(serverRun) ".utf8) + epoch) else {
                return feed.reset(because: "it does not keep \(String(decoding: SharedKeys.epoch, as: UTF8.self))")
            }
            guard let (state, trimmed) = FleetNode.state(in: reply, name) else {
                return feed.reset(because: "XINFO STREAM: \(FleetNode.text(of: reply))")
            }
            then(state, trimmed)
        }
    }

    /// Nil if the reply to a command of the feed did not come. If it came later, nobody would go on from there, so the connection ends.
    private func reply(_ result: Result<RedisReply, RedisFailure>) -> RedisReply? {
        switch result {
        case .success(let reply): return reply
        case .failure(.disconnected): return nil
        case .failure(.late), .failure(.full):
            feed.reset(because: "it does not answer")
            return nil
        }
    }

    private static func text(of reply: RedisReply) -> String {
        reply.text.map { String($0.prefix(200)) } ?? "not understood"
    }

    private static func state(in reply: RedisReply, _ epoch: StreamEpoch) -> (StreamState, Bool)? {
        guard let fields = reply.array else {
            // There is no stream before the first purge.
            guard reply.errorCode == "ERR", reply.text?.contains("no such key") == true else { return nil }
            return (StreamState(epoch: epoch, first: nil, last: .zero, maxDeleted: .zero), false)
        }
        var values: [String: RedisReply] = [:]
        for index in stride(from: 0, to: fields.count - 1, by: 2) {
            values[fields[index].text ?? ""] = fields[index + 1]
        }
        guard let last = values["last-generated-id"]?.data.flatMap({ StreamID($0) }) else { return nil }
        let first = values["first-entry"]?.array?.first?.data.flatMap { StreamID($0) }
        let isWhole = values["entries-added"]?.int != nil && values["entries-added"]?.int == values["length"]?.int
        return (
            StreamState(
                epoch: epoch, first: first, last: last,
                maxDeleted: values["max-deleted-entry-id"]?.data.flatMap { StreamID($0) } ?? .zero), !isWhole
        )
    }

    /// Reads the whole stream, so that shared records can be compared with it, and then follows it.
    private func fillLog(after id: StreamID?) {
        let start = id.map { Array("(".utf8) + $0.text } ?? redisWord("-")
        let count = Array("\(FleetNode.entriesPerRead)".utf8)
        feed.send(
            [redisWord("XRANGE"), SharedKeys.purges, start, redisWord("+"), redisWord("COUNT"), count],
            within: FleetNode.wait
        ) { [unowned self] result in
            guard let reply = reply(result) else { return }
            guard let entries = entries(in: reply) else {
                return feed.reset(because: "XRANGE: \(FleetNode.text(of: reply))")
            }
            remember(entries)
            if let last = entries.last, entries.count == FleetNode.entriesPerRead {
                return fillLog(after: last.id)
            }
            feedIsComplete = true
            readGate.open()
            settlePurges()
            examine()
        }
    }

    /// Puts entries into the log.
    private func remember(_ entries: [StreamEntry]) {
        for entry in entries {
            switch entry.purge {
            case .success(let purge):
                if let invalidated = InvalidatedKeys(purge: purge.purge) {
                    log.add(entry.id, keys: invalidated.keys)
                } else {
                    log.add(entry.id, effects.matcher(purge, time(of: entry.id)))
                }
            // Of a later release: it may concern anything. What nobody of the fleet has written concerns nothing.
            case .failure(let error): if error.isAuthentic { log.add(entry.id, nil) } else { log.pass(entry.id) }
            }
        }
    }

    /// Purges of this node that have come back are known by their position from here on.
    func settlePurges() {
        guard feedIsComplete else { return }
        publishPosition()
        purgesUnderWay.withLock { $0.settle(log) }
        invalidations.settle(log)
    }

    /// Entries as XRANGE returns them. Nil if the reply is something else.
    private func entries(in reply: RedisReply) -> [StreamEntry]? {
        if case .nothing = reply { return [] }
        guard let items = reply.array else { return nil }
        var entries: [StreamEntry] = []
        for item in items {
            guard let parts = item.array, parts.count == 2, let id = parts[0].data.flatMap({ StreamID($0) }) else {
                return nil
            }
            let fields = (parts[1].array ?? []).map { $0.data ?? [] }
            do throws(PurgeEntryError) {
                entries.append(StreamEntry(id: id, purge: .success(try PurgeEntry(fields: fields, hash: terms.hash))))
            } catch {
                entries.append(StreamEntry(id: id, purge: .failure(error)))
            }
        }
        return entries
    }

    private func perform(_ actions: [StreamFollower.Action]) {
        waitingActions += actions
        while !isMarking, !waitingActions.isEmpty { perform(waitingActions.removeFirst()) }
        publishPosition()
        trustDisks()
    }

    /// What the disks have from before is served as it is, once everything is applied or marked that may concern it.
    func trustDisks() {
        guard follower.hasCaughtUp, !isMarking else { return }
        let added = zones.unmarkedDisks
        let doubted = zones.current.filter { $0.tier.doubtsStored && !added.contains($0.name) }
        for zone in doubted { zone.tier.trustStored() }
        // Those that were doubted have not kept it.
        if !doubted.isEmpty, mayRemember, let donePosition { zones.remember(donePosition.bytes) }
        if !added.isEmpty { markStale(added, because: .diskAdded) }
    }

    /// - Parameter names: of zones. Nil: all.
    private func markStale(_ names: Set<String>?, because reason: StaleReason) {
        figures.withLock { $0.staleMarks[reason.rawValue, default: 0] += 1 }
        let what = names.map { "everything stored in \($0.sorted().joined(separator: ", "))" } ?? "everything stored"
        Diagnostics.warning(
            "fleet: \(what) is marked as stale, because purges may have been missed: \(reason.rawValue)")
        isMarking = true
        // What is not marked yet comes from the disks as if it were.
        for zone in zones.current where names?.contains(zone.name) ?? true { zone.tier.doubtStored() }
        let covered = names ?? zones.unmarkedDisks
        publishPosition()
        onPurgeThread({ [effects] in
            guard let names else { return effects.markEverythingStale(nil) }
            return names.reduce(true) { effects.markEverythingStale($1) && $0 }
        }) { node, isDurable in
            node.note(isDurable)
            node.zones.areMarked(covered)
            node.isMarking = false
            node.readGate.open()
            node.perform([])
        }
    }

    private func perform(_ action: StreamFollower.Action) {
        switch action {
        case .ask: examine()
        case .readAfter(let id):
            if let position = follower.position { log.resume(at: position) }
            readFeed(after: id)
        case .apply(let id, let purge):
            publishPosition()
            let invalidated = InvalidatedKeys(purge: purge.purge)
            if let invalidated, invalidated.run == thisRun { return perform(follower.applied(id)) }
            let issued = time(of: id)
            onPurgeThread({ [effects] in effects.apply(purge, issued) }) { node, isDurable in
                node.figures.withLock { figures in
                    if let invalidated {
                        figures.invalidationsApplied += UInt64(invalidated.keys.count)
                    } else {
                        figures.purgesApplied += 1
                    }
                }
                node.note(isDurable)
                node.perform(node.follower.applied(id))
            }
        case .skip(let id, let error):
            figures.withLock { $0.purgesSkipped += 1 }
            Diagnostics.warning(
                "fleet: an entry of the stream of purges is not applied (\(String(decoding: id.text, as: UTF8.self))): \(error.rawValue)"
            )
        case .markEverythingStale(let reason):
            markStale(nil, because: reason)
        case .remember(let position):
            if mayRemember { zones.remember(position.bytes) }
            donePosition = position
            register()
            if figures.withLock({ $0.nodes.isEmpty }) { lookForNodes() }
        }
    }

    /// Runs work that blocks on the thread for purges, and then `then` on this one.
    ///
    /// - Parameters:
    ///   - work: returns whether what it did will outlast a crash.
    private func onPurgeThread(
        _ work: @escaping @Sendable () -> Bool, _ then: @escaping @Sendable (FleetNode, Bool) -> Void
    ) {
        let inbox = loop.inbox
        let node = FleetNodeReference(self)
        let perform: @Sendable () -> Void = {
            let isDurable = work()
            inbox.post { then(node.value, isDurable) }
        }
        // There are never so many. If there is no thread, it is done here, because a purge must not be lost.
        if !applying.submit(key: "purge", perform) { perform() }
    }

    /// After a purge that a disk may forget, no position is remembered any more. So the next run begins at an earlier one, and applies the purge again.
    private func note(_ isDurable: Bool) {
        guard !isDurable, mayRemember else { return }
        mayRemember = false
        Diagnostics.warning("fleet: a purge could not be written to a disk; it is applied again at the next start")
    }

    private func readFeed(after id: StreamID) {
        guard feed.isOpen else { return }
        var words = [redisWord("XREAD"), redisWord("COUNT"), Array("\(FleetNode.entriesPerRead)".utf8)]
        // The first one shows whether the server lets this node follow, so it does not wait for an entry.
        if figures.withLock({ $0.isFollowing }) {
            words += [redisWord("BLOCK"), Array("\(FleetNode.blockMilliseconds)".utf8)]
        }
        words += [redisWord("STREAMS"), SharedKeys.purges, id.text]
        feed.send(words, within: FleetNode.wait) { [unowned self] result in
            guard let reply = reply(result) else { return }
            if case .nothing = reply {
                noteFollowing()
                return perform(follower.read([]))
            }
            guard let stream = reply.array?.first?.array, stream.count == 2, let entries = entries(in: stream[1]) else {
                return feed.reset(because: "XREAD: \(FleetNode.text(of: reply))")
            }
            noteFollowing()
            remember(entries)
            settlePurges()
            perform(follower.read(entries))
        }
    }

    /// The server has answered XREAD: until then it may let this node read the stream and not follow it.
    private func noteFollowing() {
        let isNews = figures.withLock { figures in
            defer {
                figures.isFollowing = true
                figures.lastFeedFailure = nil
            }
            return !figures.isFollowing
        }
        guard isNews else { return }
        feed.isOfUse()
        publishReport()
    }

    /// Asks how the stream is: a server that was flushed, or another one that took over, shows in nothing else.
    private func examine() {
        askForState { [unowned self] state, _ in
            log.examined(state)
            if follower.position == nil { noteEarlyResponses() }
            perform(follower.examined(state))
        }
    }

    /// This node begins with purges that come from now on. What clients have been served before may have been purged since, so it counts as stored alone.
    private func noteEarlyResponses() {
        for zone in zones.current { zone.tier.memory.outdateTransfers() }
        let hasStored = zones.current.contains { zone in
            zone.tier.memory.statistics.recordCount > 0 || (zone.tier.backStore?.statistics.objectCount ?? 0) > 0
        }
        if hasStored { follower.disconnected() }
    }

    // MARK: announcing

    /// Tells the fleet of a purge.
    func announce(_ announcement: Announcement) {
        announcements.append(announcement)
        if announcements.count > FleetNode.announcementsMax {
            hasForgottenRemovals = true
            // The first one may be under way.
            let dropped = announcements.remove(at: 1)
            ticketOfDropped = purgesUnderWay.withLock { purges in
                purges.forget(dropped.ticket)
                return ticketOfDropped ?? purges.begin(nil)
            }
            dropped.then?(spread(of: nil, because: "too many purges wait"))
        }
        guard link.isOpen else {
            return answerAnnouncements(because: figures.withLock { $0.lastFailure } ?? "there is no connection yet")
        }
        sendAnnouncements()
    }

    /// Purges were lost on their way to the fleet, so everything has to be validated.
    func announceEverythingStale() {
        let ticket = ticketOfDropped.take() ?? purgesUnderWay.withLock { $0.begin(nil) }
        announce(
            Announcement(purge: PurgeEntry.missed, ticket: ticket, issuedAt: loop.wallSeconds, then: nil))
    }

    /// Nobody waits any longer, but the purges are sent when there is a connection.
    func answerAnnouncements(because reason: String) {
        for index in announcements.indices {
            announcements[index].then?(spread(of: nil, because: reason))
            announcements[index].then = nil
        }
        figures.withLock { $0.purgesWaiting = announcements.count }
    }

    /// What is known of how far a purge has come.
    ///
    /// - Parameter purge: nil if no other node can have it.
    func spread(of purge: StreamPosition?, because reason: String? = nil) -> PurgeSpread {
        let others = figures.withLock {
            $0.known.standings(
                of: purge, own: (terms.node, thisRun), members: peers?.otherMembers ?? [], hash: terms.hash,
                now: loop.now.nanoseconds)
        }
        return PurgeSpread(terms.node, others: others, waitsBecause: reason)
    }

    /// Sends the purges that wait, in their order. One that the server does not take waits on.
    func sendAnnouncements() {
        guard !isAnnouncing, link.isOpen, let first = announcements.first else { return }
        lastNumber += 1
        guard
            let entry = PurgeEntry(
                node: terms.node, number: lastNumber, issuedAt: first.issuedAt, purge: first.purge)
        else {
            let tooLong = announcements.removeFirst()
            purgesUnderWay.withLock { $0.forget(tooLong.ticket) }
            tooLong.then?(spread(of: nil, because: "the purge is too long"))
            return sendAnnouncements()
        }
        isAnnouncing = true
        add(entry) { [unowned self] result in
            isAnnouncing = false
            let id: StreamID
            switch result {
            case .success(let taken): id = taken
            case .failure(let refusal):
                Diagnostics.warning("fleet: a purge waits on this node: \(refusal.reason)")
                return answerAnnouncements(because: refusal.reason)
            }
            let sent = announcements.removeFirst()
            purgesUnderWay.withLock { $0.sent(sent.ticket, as: id, log) }
            settlePurges()
            figures.withLock {
                $0.purgesSent += 1
                $0.purgesWaiting = announcements.count
            }
            if let then = sent.then {
                awaitSpread(of: id, until: loop.now.advanced(by: FleetNode.spreadMax), then)
            }
            sendAnnouncements()
        }
    }

    struct RefusedEntry: Error {
        let reason: String
    }

    /// Adds an entry to the stream. The failure says why the server does not take it.
    func add(_ entry: PurgeEntry, _ then: @escaping (Result<StreamID, RefusedEntry>) -> Void) {
        let words =
            [redisWord("XADD"), SharedKeys.purges, redisWord("MAXLEN"), redisWord("~")]
            + [Array("\(FleetNode.streamEntriesMax)".utf8), redisWord("*")] + entry.fields(hash: terms.hash)
        link.send(words, within: FleetNode.wait) { result in
            guard case .success(let reply) = result else {
                return then(.failure(RefusedEntry(reason: "it does not answer")))
            }
            guard let id = reply.data.flatMap({ StreamID($0) }) else {
                return then(.failure(RefusedEntry(reason: FleetNode.text(of: reply))))
            }
            then(.success(id))
        }
    }

    /// Waits until all nodes that are there have applied a purge, or the time is over.
    private func awaitSpread(
        of id: StreamID, until deadline: MonotonicTime, _ then: @escaping @Sendable (PurgeSpread) -> Void
    ) {
        lookForNodes { [unowned self] in
            let purge = log.latest(follower.position).map { StreamPosition(epoch: $0.epoch, id: id) }
            let isWorthWaiting = figures.withLock { figures in
                purge.map {
                    figures.known.isWorthWaiting(
                        for: $0, ownName: terms.node, hash: terms.hash, now: loop.now.nanoseconds)
                } ?? true
            }
            guard isWorthWaiting, loop.now < deadline, link.isOpen else { return then(spread(of: purge)) }
            let pause = SpreadPause(then)
            pause.timer = PreciseTimer(loop) { [unowned self, unowned pause] in
                guard let index = pauses.firstIndex(where: { $0 === pause }) else { return }
                let pause = pauses.remove(at: index)
                awaitSpread(of: id, until: deadline, pause.then)
            }
            pauses.append(pause)
            pause.timer?.start(at: loop.now.advanced(by: .milliseconds(20)))
        }
    }

    // MARK: the nodes

    /// Tells the others that this node is there, and how far it is.
    func register() {
        guard link.isOpen, let donePosition else { return }
        let said = RegisterEntry(
            seenAt: loop.wallSeconds, position: donePosition, run: thisRun, release: effects.version,
            peer: peers?.ownMember, hash: terms.hash)
        link.send(
            [
                redisWord("HSET"), SharedKeys.nodes, Array(terms.node.utf8),
                said.value(of: terms.node, hash: terms.hash),
            ], within: FleetNode.wait
        ) {
            [unowned self] in if case .success(.integer) = $0 { isRegistered = true }
        }
    }

    /// Finds out which nodes there are. One that has said nothing new for 15 seconds is silent, and stays known.
    func lookForNodes(_ then: @escaping () -> Void = {}) {
        link.send([redisWord("HGETALL"), SharedKeys.nodes], within: FleetNode.wait) { [unowned self] result in
            guard let values = (try? result.get())?.array else { return then() }
            let register = stride(from: 0, to: values.count - 1, by: 2).compactMap { index in
                values[index].text.flatMap { name in values[index + 1].data.map { (name: name, value: $0) } }
            }
            let (nodes, gone) = figures.withLock { figures in
                let now = loop.now.nanoseconds
                let gone = figures.known.read(register, hash: terms.hash, now: now)
                figures.nodes = figures.known.present(now: now).compactMap {
                    FleetFigures.Node($0.name, $0.node.reading)
                }
                return (figures.nodes, gone)
            }
            for name in gone {
                link.send([redisWord("HDEL"), SharedKeys.nodes, Array(name.utf8)], within: FleetNode.wait) { _ in }
            }
            lookForNamesake(among: nodes)
            then()
        }
    }

    /// A node that has this node's name hides it: a purge is then said to be applied before both have applied it.
    private func lookForNamesake(among nodes: [FleetFigures.Node]) {
        guard isRegistered, nodes.contains(where: { $0.name == terms.node && $0.run != thisRun }) else { return }
        namesakeSeenAt = loop.now
        guard !hasNamesake else { return }
        hasNamesake = true
        Diagnostics.warning(
            "fleet: another node has the name \(terms.node), too; give each its own with fleet.node.name")
    }

    // MARK: records and purges

    /// With times by the clock of this node.
    func attributes(of record: SharedRecord) -> StoredAttributes {
        let ahead = clockAhead(of: record) ?? 0
        return StoredAttributes(
            retention: .permanent, status: record.status, storedAt: record.storedAt.saturatingAdd(ahead),
            expiresAt: record.expiresAt.saturatingAdd(ahead), mediaType: record.mediaType, tags: record.tags)
    }

    /// Whether a purge that was issued after the record was written concerns it, or may do so.
    func isPurged(_ record: SharedRecord) -> Bool {
        let listed = ListedResponse(
            id: StoredID(rawValue: 0), keyBytes: record.key, attributes: attributes(of: record),
            bodyBytes: record.bodyLength,
            bytes: record.bodyLength, isComplete: true)
        if purgesUnderWay.withLock({ $0.concerns { $0(record.zone, listed) } }) { return true }
        return log.concerns(recordAt: record.position, of: record.key) { $0(record.zone, listed) }
    }
}

/// Waits a moment before it is asked again how far a purge has come.
final class SpreadPause {
    let then: @Sendable (PurgeSpread) -> Void
    var timer: PreciseTimer?

    init(_ then: @escaping @Sendable (PurgeSpread) -> Void) { self.then = then }
}

/// A reference for jobs in the node's own inbox. Such a job runs on that thread while the loop lives, or never.
@safe struct FleetNodeReference: @unchecked Sendable {
    private unowned(unsafe) let reference: FleetNode

    init(_ node: FleetNode) { unsafe reference = node }

    var value: FleetNode { unsafe reference }
}
