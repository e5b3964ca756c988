import Accounts
import EventLoop
import Fleet
import Message
import Routing

/// The other nodes as this one sees them: who owns what, who is asked, and who is left alone for a while. May be used by every thread.
///
/// Everything fails open: whatever is wrong with a node, the origin is asked.
final class PeerDesk: Sendable {
    let terms: PeerTerms
    let node: String
    private let hash: FleetSecret
    private let purgesUnderWay: Locked<PurgesUnderWay<PurgeMatcher>>
    private let state: Locked<State>

    private struct State {
        var membership: Membership
        /// When this node became a member. Nil: it is none.
        var joinedAt: MonotonicTime?
        var progress = PurgeProgress.none
        var circuits: [FleetPeer: Fleet.Circuit] = [:]
        var figures = PeerFigures()
        var memory = PeerMemory()
    }

    /// Who is in the fleet. It does not change; another one takes its place.
    struct Membership {
        let ownership: Ownership
        /// For each member of `ownership` where it is asked. Nil: that is this node.
        let places: [FleetPeer?]

        var own: Int? { places.firstIndex { $0 == nil } }
        /// 0 if this node is no member.
        var ownWeight: Int { own.map { ownership.members[$0].weight } ?? 0 }
    }

    /// How long the owner of before is asked by a node that has become a member.
    private static let newFor = Duration.seconds(600)

    init(
        _ terms: PeerTerms, node: String, hash: FleetSecret, _ purgesUnderWay: Locked<PurgesUnderWay<PurgeMatcher>>
    ) {
        self.purgesUnderWay = purgesUnderWay
        self.terms = terms
        self.node = node
        self.hash = hash
        state = Locked(State(membership: Membership(ownership: Ownership([], hash: hash), places: [])))
    }

    // MARK: what the fleet's thread says

    /// - Parameter members: those that are known, in any order, and where each is asked; nil for this node.
    /// - Returns: whether they are others than before.
    func setMembers(_ members: [(member: Ownership.Member, place: FleetPeer?)], now: MonotonicTime) -> Bool {
        let sorted = members.sorted { $0.member.name < $1.member.name }
        return state.withLock { state in
            guard
                state.membership.ownership.members != sorted.map(\.member)
                    || state.membership.places != sorted.map(\.place)
            else { return false }
            let weightBefore = state.membership.ownWeight
            state.membership = Membership(
                ownership: Ownership(sorted.map(\.member), hash: hash), places: sorted.map(\.place))
            let weight = state.membership.ownWeight
            if weight == 0 {
                state.joinedAt = nil
            } else if weight > weightBefore {
                // What it owns from now on, others have owned before.
                state.joinedAt = now
            }
            let places = Set(sorted.compactMap(\.place))
            // A probe that is under way is settled with its own circuit, also if the node leaves and joins meanwhile.
            state.circuits = state.circuits.filter { places.contains($0.key) || $0.value.isProbing }
            return true
        }
    }

    /// Up to which purge this node has got. Called before a purge is applied, too: what is asked for while it is applied must be as new as the purge, because the
    /// answer may be stored behind it.
    func setProgress(_ progress: PurgeProgress) { state.withLock { $0.progress = progress } }

    // MARK: asking

    /// Whom to ask for a response, and whether it is this node's own.
    struct Plan {
        let asks: [(peer: FleetPeer, isForStoreOnly: Bool)]
        let keeping: PeerPlan.Keeping
        /// Something unsafe was sent to the URL from here, of which the others do not know.
        let asksForNews: Bool
    }

    /// - Parameters:
    ///   - isForPeer: another node asks.
    ///   - looksIntoStores: what another node happens to have is good enough, if it is fresh.
    func plan(
        zone: String, key: [UInt8], isForPeer: Bool, looksIntoStores: Bool, now: MonotonicTime
    ) -> Plan {
        let word = PeerDesk.word(zone, key)
        let (membership, joinedAt, note, progress) = state.withLock { state in
            (state.membership, state.joinedAt, state.memory.note(of: word, now: now.nanoseconds), state.progress)
        }
        guard note != .passed else { return Plan(asks: [], keeping: .always, asksForNews: false) }
        // What the others have may be from before a purge of which they do not know: one that began here, or one that an earlier run of this node has applied.
        let isAhead = !progress.asks(hasOwnUnderWay: purgesUnderWay.withLock { !$0.isEmpty })
        let ranking = membership.ownership.ranking(zone: zone, key: key, count: 3, hash: hash)
        let isNew = joinedAt.map { now.duration(since: $0) < PeerDesk.newFor } ?? false
        let plan = PeerPlan(ranking: ranking, own: membership.own, isNew: isNew, isForPeer: isForPeer)
        return Plan(
            asks: isAhead
                ? []
                : plan.asks.compactMap { ask in
                    guard !ask.isForStoreOnly || (looksIntoStores && note != .changed) else { return nil }
                    return membership.places[ask.member].map { ($0, ask.isForStoreOnly) }
                }, keeping: plan.keeping, asksForNews: note == .changed)
    }

    /// What a response says forbids to store it: asking the owner for it is of no use.
    func notePassing(zone: String, key: [UInt8], now: MonotonicTime) {
        let word = PeerDesk.word(zone, key)
        state.withLock { $0.memory.set(.passed, for: word, now: now.nanoseconds) }
    }

    /// Something unsafe was sent to a URL (RFC 9111 §4.4), or its response turned out to be wrong. What others have of it must not be used here without asking the origin.
    func noteChange(zone: String, key: [UInt8], now: MonotonicTime) {
        let word = PeerDesk.word(zone, key)
        state.withLock { $0.memory.set(.changed, for: word, now: now.nanoseconds) }
    }

    /// Whether something unsafe was sent to the URL lately. Then what Redis has of it is not used either: a node that was slow may have written it after this one removed it.
    func hasChanged(zone: String, key: [UInt8], now: MonotonicTime) -> Bool {
        let word = PeerDesk.word(zone, key)
        return state.withLock { $0.memory.note(of: word, now: now.nanoseconds) == .changed }
    }

    /// Tells keys of this process apart, and nobody can provoke that two are taken for one.
    private static func word(_ zone: String, _ key: [UInt8]) -> UInt64 {
        var hasher = Hasher()
        hasher.combine(zone)
        hasher.combine(key)
        return UInt64(bitPattern: Int64(hasher.finalize()))
    }

    /// The owner of a key and its stand-in, for people. Empty as long as no members are known.
    func owners(zone: String, key: [UInt8]) -> [String] {
        let ownership = state.withLock { $0.membership.ownership }
        return ownership.ranking(zone: zone, key: key, count: 2, hash: hash).map { ownership.members[$0].name }
    }

    /// What `fleet.peers` calls this node. Nil: it is no member.
    var ownMember: String? {
        state.withLock { state in state.membership.own.map { state.membership.ownership.members[$0].name } }
    }

    /// What `fleet.peers` calls the others.
    var otherMembers: [String] {
        state.withLock { state in
            zip(state.membership.ownership.members, state.membership.places).compactMap { member, place in
                place == nil ? nil : member.name
            }
        }
    }

    /// The value of `Larder-Peer` in a request. Nil: there is too much to say.
    func question(_ ask: (inout PeerQuestion) -> Void) -> [UInt8]? {
        var question = PeerQuestion(node: node)
        question.position = state.withLock { $0.progress.known }
        ask(&question)
        return question.encoded(hash: hash)
    }

    /// - Returns: nil if the node has failed lately, and is not asked.
    func permit(to peer: FleetPeer, now: MonotonicTime) -> Fleet.Circuit.Permit? {
        state.withLock { state in
            let permit = state.circuits[peer, default: PeerDesk.circuit].permit(now: now.nanoseconds)
            if permit == nil {
                state.figures.passedOver += 1
            } else {
                state.figures.asked += 1
            }
            return permit
        }
    }

    /// Three failures within ten seconds.
    private static var circuit: Fleet.Circuit { Fleet.Circuit(failuresToOpen: 3, windowNanoseconds: 10_000_000_000) }

    func settle(_ permit: Fleet.Circuit.Permit, of peer: FleetPeer, _ result: PeerResult, now: MonotonicTime) {
        let outcome: Fleet.Circuit.Outcome = result.isFailure ? .failure(jitter: .random(in: 0...UInt64.max)) : .success
        let hasOpened = state.withLock { state in
            state.figures.count(result)
            let wasOpen = state.circuits[peer]?.isOpen ?? false
            state.circuits[peer, default: PeerDesk.circuit].settle(permit, outcome, now: now.nanoseconds)
            return !wasOpen && state.circuits[peer]?.isOpen == true
        }
        if hasOpened {
            Diagnostics.warning("fleet: the node \(peer) is not asked for a while: \(result)")
        }
    }

    /// The body that a node was sending has broken off.
    ///
    /// - Parameter wasStored: the node had the response. Otherwise the origin may have broken off, and an origin must not be able to have nodes given up.
    func noteBreakOff(of peer: FleetPeer, wasStored: Bool, now: MonotonicTime) {
        if wasStored { return settle(.ordinary, of: peer, .brokenOff, now: now) }
        state.withLock { $0.figures.count(.brokenOff) }
    }

    // MARK: being asked

    /// What another node says in its request.
    func read(_ value: [UInt8]) -> Result<PeerQuestion, PeerObjection> {
        do throws(PeerObjection) {
            let question = try PeerQuestion.decode(value, hash: hash)
            guard state.withLock({ $0.progress.answers(question.position) }) else { throw .behind }
            state.withLock { $0.figures.served += 1 }
            return .success(question)
        } catch {
            noteRefusal(error)
            return .failure(error)
        }
    }

    func noteRefusal(_ objection: PeerObjection) {
        state.withLock { $0.figures.refusals[objection.rawValue, default: 0] += 1 }
    }

    func noteBytes(_ count: Int) { state.withLock { $0.figures.bytes += UInt64(count) } }
    func noteHedge() { state.withLock { $0.figures.hedges += 1 } }

    // MARK: figures

    var figures: PeerFigures {
        state.withLock { state in
            var figures = state.figures
            figures.members = zip(state.membership.ownership.members, state.membership.places).map { member, place in
                PeerFigures.Member(
                    name: member.name, weight: member.weight, isOwn: place == nil,
                    isAsked: place.flatMap { state.circuits[$0] }.map { !$0.isOpen } ?? true)
            }
            return figures
        }
    }
}

/// What came of asking another node.
enum PeerResult: Equatable, CustomStringConvertible {
    case hit, fetched, passed
    /// It has a stale response, which is of no use here.
    case stale
    /// It answered, and has no answer.
    case refused(PeerObjection)
    /// No connection could be opened.
    case unreachable(String)
    /// It did not answer in time. Something else was tried.
    case late
    /// Its connection ended before an answer, or its answer is none of this protocol.
    case broken
    /// It had the response stored, and its body broke off.
    case brokenOff
    /// Nobody waits for an answer any more, or this node has too many connections to it already.
    case abandoned

    /// Whether the node itself failed.
    var isFailure: Bool {
        switch self {
        case .hit, .fetched, .passed, .stale, .abandoned: false
        case .refused(let objection):
            switch objection {
            case .version, .secret, .malformed: true
            case .behind, .personal, .absent, .unanswered: false
            }
        case .unreachable, .late, .broken, .brokenOff: true
        }
    }

    init(_ verdict: PeerVerdict) {
        switch verdict {
        case .hit, .stale: self = .hit
        case .fetched, .working: self = .fetched
        case .passed: self = .passed
        case .refused(let objection): self = .refused(objection)
        }
    }

    var description: String {
        switch self {
        case .hit, .fetched, .passed: "it answers"
        case .stale: "it has a stale response, which validates nothing"
        case .refused(.version): "it speaks another version of the protocol between nodes"
        case .refused(.secret): "it has another fleet.secret_file"
        case .refused(let objection): "it refuses: \(objection.rawValue)"
        case .unreachable(let reason): "no connection: \(reason)"
        case .late: "it does not answer in time"
        case .broken: "its answer breaks off, or makes no sense"
        case .brokenOff: "the bodies that it has stored break off"
        case .abandoned: "nobody waits for it"
        }
    }
}

/// What this node and the others have done for each other.
package struct PeerFigures: Sendable {
    /// Requests to other nodes, and what came of them.
    package var asked: UInt64 = 0
    package var hits: UInt64 = 0
    package var fetched: UInt64 = 0
    /// Not asked, because the node had failed.
    package var passedOver: UInt64 = 0
    package var hedges: UInt64 = 0
    /// By reason: those of `PeerObjection`, and `stale`, `unreachable`, `late`, `broken`, `broken_off`.
    package var failures: [String: UInt64] = [:]
    /// Body bytes that came from other nodes.
    package var bytes: UInt64 = 0
    /// Requests of other nodes that were taken.
    package var served: UInt64 = 0
    /// Requests of other nodes that were refused, by `PeerObjection`.
    package var refusals: [String: UInt64] = [:]
    package var members: [Member] = []

    package struct Member: Sendable, Equatable {
        package var name: String
        package var weight: Int
        package var isOwn: Bool
        package var isAsked: Bool
    }

    fileprivate mutating func count(_ result: PeerResult) {
        switch result {
        case .hit: hits += 1
        case .fetched, .passed: fetched += 1
        case .stale: failures["stale", default: 0] += 1
        case .refused(let objection): failures[objection.rawValue, default: 0] += 1
        case .unreachable: failures["unreachable", default: 0] += 1
        case .late: failures["late", default: 0] += 1
        case .broken: failures["broken", default: 0] += 1
        case .brokenOff: failures["broken_off", default: 0] += 1
        case .abandoned: break
        }
    }
}
