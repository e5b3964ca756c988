import EventLoop
import Fleet
import LimitTables
import Limiting
package import Message
import Settings
import Storage

/// What this process shares with the other nodes of its fleet. May be used by every thread; the work is done by a `FleetNode` on a thread of its own.
///
/// Everything fails open: without Redis there are fewer hits, and nothing else.
package final class FleetDesk: Sendable {
    private let terms: FleetTerms
    private let zones: Zones
    private let figures = Locked(FleetFigures())
    private let readGate = ReadGate()
    private let state = Locked(State())
    /// The nodes that are asked for what they own. Nil: the nodes do not ask each other.
    let peers: PeerDesk?
    /// Which buckets of limits are used here.
    let limitNews = LimitNews()
    private let purgesUnderWay = Locked(PurgesUnderWay<PurgeMatcher>())

    private struct State {
        var inbox: Inbox?
        var effects: FleetEffects?
        var node: FleetNodeReference?
        var thread: OwnedThread?
    }

    init(_ terms: FleetTerms, zones: Zones) {
        self.terms = terms
        self.zones = zones
        zones.doubtDisks()
        peers = terms.peers.map { [purgesUnderWay] in
            PeerDesk($0, node: terms.node, hash: terms.hash, purgesUnderWay)
        }
    }

    /// Nil: the nodes do not ask each other.
    package var peerStatistics: PeerFigures? { peers?.figures }

    package var statistics: FleetFigures { figures.withLock { $0 } }

    // MARK: life

    /// Begins to share, and to follow the purges of the fleet. Called once. Before, every read is a miss.
    ///
    /// - Parameter isOwn: whether a server at this address is this process.
    func begin(
        _ effects: FleetEffects, _ counted: CountedTogether, dns: Resolver.Options,
        isOwn: @escaping @Sendable (IPAddress, UInt16) -> Bool
    ) throws {
        let started = Locked<Result<(Inbox, FleetNodeReference), StartFailure>?>(nil)
        let signal = CountingSemaphore()
        let (terms, zones, figures, peers, purgesUnderWay) = (terms, zones, figures, peers, purgesUnderWay)
        let readGate = readGate
        let kept = zones.rememberedPosition
        let thread = OwnedThread(
            try startThread(name: "larder-fleet") {
                do {
                    let node = try FleetNode(
                        terms, zones: zones, effects: effects, counted: counted, position: kept.position,
                        figures: figures, readGate: readGate, dns: dns, peers: peers, purgesUnderWay, isOwn: isOwn)
                    // What was stored by an earlier run may have been purged since.
                    if kept.position == nil, kept.hasResponses { node.follower.disconnected() }
                    started.withLock { $0 = .success((node.loop.inbox, FleetNodeReference(node))) }
                    signal.signal()
                    node.run()
                } catch {
                    started.withLock { $0 = .failure(StartFailure(text: "\(error)")) }
                    signal.signal()
                }
            })
        signal.wait()
        switch started.withLock({ $0 }) {
        case .success(let parts):
            state.withLock { $0 = State(inbox: parts.0, effects: effects, node: parts.1, thread: thread) }
            limitNews.heed { [weak self] in _ = self?.post { $0.counting.countSoon() } }
        case .failure(let failure):
            thread.join()
            throw failure
        case nil: preconditionFailure("the thread reports before it signals")
        }
    }

    package struct StartFailure: Error, CustomStringConvertible, Sendable {
        let text: String
        package var description: String { text }
    }

    /// Ends the thread. Purges that wait are lost.
    func stop() {
        limitNews.heed(nil)
        let ended = state.withLock { state in
            defer { state = State() }
            return state
        }
        guard let inbox = ended.inbox, let node = ended.node else { return }
        inbox.post { node.value.stop() }
        ended.thread?.join()
    }

    /// Uses a new list of the nodes for requests that begin from now on. Does nothing if the nodes do not ask each other, or are no longer to: that takes a restart.
    func adopt(_ peers: FleetPeersSetting?) {
        _ = post { $0.trustDisks() }
        guard let peers else { return }
        _ = post { $0.adopt(peers) }
    }

    private func post(_ job: @escaping @Sendable (FleetNode) -> Void) -> Bool {
        let (inbox, node) = state.withLock { ($0.inbox, $0.node) }
        guard let inbox, let node else { return false }
        inbox.post { job(node.value) }
        return true
    }

    // MARK: for workers

    /// Looks for the responses of a key, and brings them into memory. `wake` is called within about 20 ms, on any thread.
    ///
    /// - Returns: false if nothing is looked for. `wake` is not called then.
    func read(
        _ key: StorageKey, _ keyBytes: [UInt8], of zone: Zone, asked: MonotonicTime, wake: Wake
    ) -> Bool {
        guard readGate.isOpen(asked) else {
            figures.withLock { $0.unasked += 1 }
            return false
        }
        let question = SharedQuestion(
            zone: zone.name, tier: zone.tier, key: key, keyBytes: keyBytes, asked: asked,
            invalidations: zone.tier.invalidations, wake: wake)
        return post { $0.read(question) }
    }

    /// Offers a response to the other nodes.
    func write(_ record: StoredResponse, of zone: Zone) {
        guard FleetDesk.isShareable(record.keyBytes), record.storage == .permanent || record.isCopy,
            record.body.isComplete,
            record.body.isResident, record.body.length <= SharedRecord.bodyBytesMax
        else { return }
        let write = SharedWrite(
            zone: zone.name, tier: zone.tier, record: record, variant: record.variantName(terms.hash),
            grace: record.cached.hasValidator ? FleetDesk.grace : 0)
        _ = post { $0.write(write) }
    }

    /// Removes what the fleet has of a key, because it must not be served any more.
    func remove(_ keyBytes: [UInt8], of zone: Zone, now: MonotonicTime) {
        guard FleetDesk.isShareable(keyBytes) else { return }
        let name = zone.name
        peers?.noteChange(zone: name, key: keyBytes, now: now)
        _ = post { $0.remove(zone: name, keyBytes) }
    }

    /// An unsafe request is about to invalidate a key here. From now on nothing from before is taken from the fleet.
    func beginInvalidating(_ keyBytes: [UInt8], in zones: [Zone], now: MonotonicTime) {
        guard FleetDesk.isShareable(keyBytes) else { return }
        let names = zones.map(\.name)
        for name in names { peers?.noteChange(zone: name, key: keyBytes, now: now) }
        _ = post { node in for name in names { node.hide(zone: name, keyBytes) } }
    }

    /// An unsafe request has invalidated a key here. The other nodes are told of it soon, unless there is too much to tell.
    ///
    /// - Parameter wasStored: there was a response under the key.
    func invalidate(_ keyBytes: [UInt8], in zones: [Zone], wasStored: Bool) {
        guard FleetDesk.isShareable(keyBytes) else { return }
        let names = zones.map(\.name)
        _ = post { $0.invalidate(keyBytes, in: names, wasStored: wasStored) }
    }

    /// In seconds: what can be validated is kept for a day after it has become stale.
    private static let grace: Int64 = 86_400

    /// What is stored for one credential, one identity or one signature alone stays on its node. Its key says so behind the URL.
    static func isShareable(_ keyBytes: [UInt8]) -> Bool { !keyBytes.contains(UInt8(ascii: "#")) }

    // MARK: for purges

    /// A purge is about to be applied here. From now on nothing from before is taken from the fleet, which does not know of the purge.
    ///
    /// - Returns: what `announce` is called with.
    package func begin(_ purge: [UInt8], at time: WallTime) -> PurgeTicket {
        let entry = PurgeEntry(node: terms.node, number: 0, issuedAt: time.secondsSinceEpoch, purge: purge)
        let matcher = entry.flatMap { entry in state.withLock { $0.effects }?.matcher(entry, time) }
        return PurgeTicket(number: purgesUnderWay.withLock { $0.begin(matcher) })
    }

    /// Tells the fleet of a purge that this node has applied. Blocks for about a second at most.
    package func announce(_ purge: [UInt8], _ ticket: PurgeTicket, at time: WallTime) -> PurgeSpread {
        let spread = Locked<PurgeSpread?>(nil)
        let signal = CountingSemaphore()
        let isPosted = post { node in
            node.announce(
                Announcement(purge: purge, ticket: ticket.number, issuedAt: time.secondsSinceEpoch) { result in
                    spread.withLock { $0 = result }
                    signal.signal()
                })
        }
        // Without a thread nothing is taken from the fleet, and the purge is not on its way.
        if !isPosted { purgesUnderWay.withLock { $0.forget(ticket.number) } }
        guard isPosted, signal.wait(timeout: .seconds(4)), let result = spread.withLock({ $0 }) else {
            let others = figures.withLock {
                $0.known.standings(
                    of: nil, own: (terms.node, $0.run), members: peers?.otherMembers ?? [], hash: terms.hash,
                    now: MonotonicTime.read().nanoseconds)
            }
            return PurgeSpread(terms.node, others: others, waitsBecause: "the fleet's thread does not answer")
        }
        return result
    }

    // MARK: for limits and log-ins

    /// A key that all nodes of the fleet have, of 16 bytes.
    func key(for use: FleetKeyUse) -> [UInt8] { terms.hash.key(for: use) }

    /// Lets budgets begin anew on the other nodes. On this one they have.
    ///
    /// - Parameter subject: nil: all that the rule has a budget for.
    func reset(_ budget: ByteBudget, of rule: String, _ subject: LimitSubject?) {
        _ = post { $0.counting.reset(budget, of: rule, subject) }
    }
}
