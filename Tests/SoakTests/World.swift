import EventLoop
import Foundation

/// What all threads of a soak share: which versions there are, what the origins did, and what clients found.
final class World: Sendable {
    let seed: UInt64
    /// Resources in play: 0..<this.
    let resourceCount: Int
    /// Seconds after which a client that hears nothing calls the proxy stuck.
    let patience: Int
    /// Origins may fall silent for longer than the proxy waits.
    let hasLongSilence: Bool
    private let begin = ContinuousClock.now
    private let state: Locked<State>
    /// All resources of which it is known beforehand what they are.
    let promised: [Resource]

    private struct State {
        var versions: [Int]
        /// Requests that origins were asked for each resource.
        var asks: [Int]
        var claims: [Int: Claims] = [:]
        var journals: [Int: [String]] = [:]
        var tally = Tally()
        var faultCounts: [Fault: Int] = [:]
        var wrongs: [String] = []
        var wrongKinds: [String: Int] = [:]
        var slowest: (time: Duration, what: String) = (.zero, "")
        var seen: [Int: Seen] = [:]
        var statements: [Int: Statement] = [:]
        var lastStatement = 0
        var isWell = false
    }

    /// What a client was given last, to make conditions of.
    struct Seen {
        var tag: String?
        var date: String?
    }

    /// What the origin said of a resource that is not so, and nobody can see from one message.
    struct Claims {
        /// Complete lengths that were announced, by a length or by an end of the connection that came too early.
        var lengths: Set<Int> = []
        /// Complete lengths that were announced for bodies that are not as long, so that no complete body has them.
        var totals: Set<Int> = []
        /// It answered with ranges that nobody had asked for.
        var hasOddRanges = false
        /// When it last did something that may cost an answer.
        var faultAt: ContinuousClock.Instant?
        /// When it last had other bytes than those that are promised.
        var forgedAt: ContinuousClock.Instant?
        /// When such bytes last were the rest of an answer that had begun before.
        var forgedRestAt: ContinuousClock.Instant?

        /// What either of two origins said.
        fileprivate func merged(_ other: Claims) -> Claims {
            Claims(
                lengths: lengths.union(other.lengths), totals: totals.union(other.totals),
                hasOddRanges: hasOddRanges || other.hasOddRanges,
                faultAt: [faultAt, other.faultAt].compactMap(\.self).max(),
                forgedAt: [forgedAt, other.forgedAt].compactMap(\.self).max(),
                forgedRestAt: [forgedRestAt, other.forgedRestAt].compactMap(\.self).max())
        }
    }

    /// What happened: a soak that provokes nothing proves nothing.
    struct Tally: Sendable {
        var requests = 0
        var whole = 0
        var bytes = 0
        var hits = 0
        var parts = 0
        var multiparts = 0
        var notModified = 0
        var interims = 0
        var brokenOff = 0
        var refused = 0
        var decoded = 0
        var tunnels = 0
        var left = 0
        var originRequests = 0
        var resumptions = 0
        /// Answers to which redirects led.
        var detours = 0
        var wrong = 0
        /// Answers from the cache whose origin's words were looked up.
        var vouched = 0
        /// Pages that belong to one cookie.
        var owned = 0
        /// Origins that were asked by a name in some spelling.
        var named = 0
        /// Requests of users for what is theirs, what is another's, and what is nobody's.
        var admitted = 0
        var denied = 0
        var challenged = 0
        /// Whole bodies of which it was known what they are: of those, hits, what waited for another's fetch, and what is longer than 1 MiB.
        var promised = 0
        var promisedHits = 0
        var promisedJoined = 0
        var promisedLarge = 0
        /// Those that waited for another's fetch, which broke off.
        var promisedJoinedBroken = 0
        var purges = 0
        /// Promises that were kept when the origins were well again, and those of them that were said to be stored and were.
        var healed = 0
        var kept = 0
    }

    init(seed: UInt64, resourceCount: Int, patience: Int, hasLongSilence: Bool) {
        self.seed = seed
        self.resourceCount = resourceCount
        self.patience = patience
        self.hasLongSilence = hasLongSilence
        promised = (0..<resourceCount).map { Resource(seed: seed, number: $0) }.filter(\.isPromised)
        state = Locked(
            State(
                versions: [Int](repeating: 1, count: resourceCount), asks: [Int](repeating: 0, count: resourceCount)))
    }

    func resource(_ number: Int) -> Resource { Resource(seed: seed, number: number) }

    var now: ContinuousClock.Instant { ContinuousClock.now }
    /// Milliseconds since the beginning, for journals.
    private var stamp: String {
        let time = (ContinuousClock.now - begin).components
        return "\(time.seconds * 1000 + time.attoseconds / 1_000_000_000_000_000) ms"
    }

    // MARK: the origin's

    func version(_ resource: Resource) -> Int { state.withLock { $0.versions[resource.number] } }

    /// The origin has another representation from now on. What is under way may not be completed.
    func change(_ resource: Resource) {
        let now = now
        state.withLock {
            $0.versions[resource.number] += 1
            $0.claims[resource.number, default: Claims()].faultAt = now
        }
    }

    /// - Returns: how many requests for this resource came before this one.
    func ask(_ resource: Resource) -> Int {
        state.withLock {
            $0.asks[resource.number] += 1
            $0.tally.originRequests += 1
            return $0.asks[resource.number] - 1
        }
    }

    func claim(_ resource: Resource, _ claim: (inout Claims) -> Void) {
        state.withLock { claim(&$0.claims[resource.number, default: Claims()]) }
    }

    func claims(_ resource: Resource) -> Claims {
        state.withLock { state in
            let own = state.claims[resource.number] ?? Claims()
            return resource.twin.flatMap { state.claims[$0.number] }.map(own.merged) ?? own
        }
    }

    /// The origin does something now that may cost an answer.
    func excuse(_ resource: Resource) {
        let now = now
        state.withLock { $0.claims[resource.number, default: Claims()].faultAt = now }
    }

    /// The origin is at fault now.
    func blame(_ resource: Resource, for faults: [Fault]) {
        let now = now
        state.withLock {
            for fault in faults { $0.faultCounts[fault, default: 0] += 1 }
            if faults.contains(where: \.mayCostAnAnswer) {
                $0.claims[resource.number, default: Claims()].faultAt = now
            }
            if faults.contains(where: \.isForgery) { $0.claims[resource.number, default: Claims()].forgedAt = now }
        }
    }

    /// The origin has other bytes for the rest of an answer.
    func forgeRest(_ resource: Resource) {
        let now = now
        state.withLock { $0.claims[resource.number, default: Claims()].forgedRestAt = now }
    }

    /// From now on no origin does anything wrong.
    func heal() { state.withLock { $0.isWell = true } }
    var isWell: Bool { state.withLock { $0.isWell } }

    /// How often each fault was injected.
    var faultCounts: [Fault: Int] { state.withLock { $0.faultCounts } }

    /// True if an answer that began at `start` may have failed because of the origin. A transfer that another request began
    /// may have been broken off a while ago and be waiting for another try.
    func isExcused(_ resource: Resource, since start: ContinuousClock.Instant) -> Bool {
        guard let faultAt = claims(resource).faultAt else { return false }
        return faultAt > start - .seconds(60)
    }

    /// True if bytes that came after `start` may be others than those that are promised, because an origin has sent such.
    /// - Parameter answer: the number of the answer that the store has the head of. Nil: it does not come from there.
    func isForged(_ resource: Resource, since start: ContinuousClock.Instant, from answer: Int? = nil) -> Bool {
        let claims = claims(resource)
        if let answer, statement(answer)?.isForged == true { return true }
        guard let forgedAt = answer == nil ? claims.forgedAt : claims.forgedRestAt else { return false }
        return forgedAt > start - .seconds(60)
    }

    /// An origin has answered.
    /// - Returns: the number of the answer.
    func state(_ statement: Statement) -> Int {
        state.withLock {
            $0.lastStatement += 1
            $0.statements[$0.lastStatement] = statement
            // An hour's worth: a soak is bounded.
            $0.statements[$0.lastStatement - 1_000_000] = nil
            return $0.lastStatement
        }
    }

    func statement(_ number: Int) -> Statement? { state.withLock { $0.statements[number] } }

    // MARK: journals

    /// Of each resource the last lines are kept.
    func note(_ resource: Resource, _ line: @autoclosure () -> String) {
        let line = "\(stamp) \(line())"
        state.withLock {
            $0.journals[resource.number, default: []].append(line)
            if $0.journals[resource.number]!.count > 80 { $0.journals[resource.number]!.removeFirst(30) }
        }
    }

    // MARK: what clients found

    func see(_ resource: Resource, _ seen: Seen) { state.withLock { $0.seen[resource.number] = seen } }
    func seen(_ resource: Resource) -> Seen { state.withLock { $0.seen[resource.number] ?? Seen() } }

    /// The request that took longest: in a short run none waits for a limit of the proxy's.
    var slowest: String { state.withLock { "\($0.slowest.time): \($0.slowest.what)" } }

    func took(_ time: Duration, _ what: @autoclosure () -> String) {
        state.withLock { if time > $0.slowest.time { $0.slowest = (time, what()) } }
    }

    func count(_ count: (inout Tally) -> Void) { state.withLock { count(&$0.tally) } }
    var tally: Tally { state.withLock { $0.tally } }

    /// Of each kind the first few are kept, with what the origins did.
    /// - Parameter kind: what it has in common with others of its kind.
    func wrong(_ resource: Resource?, kind: String? = nil, _ text: String) {
        let stamp = stamp
        let kind = (kind ?? text).split(separator: "\n").first?.filter { !$0.isNumber }.prefix(80) ?? ""
        state.withLock {
            $0.tally.wrong += 1
            $0.wrongKinds[String(kind), default: 0] += 1
            guard $0.wrongKinds[String(kind)]! <= 3, $0.wrongs.count < 24 else { return }
            var text = "\(stamp) \(text)"
            if let resource {
                text += "\n  origin \(resource.origin) about \(resource.path) (\(resource.summary)):"
                for line in $0.journals[resource.number, default: []].suffix(40) { text += "\n    \(line)" }
            }
            $0.wrongs.append(text)
        }
    }

    var wrongs: [String] { state.withLock { $0.wrongs } }
    /// All of them, by what they begin with, the most frequent first.
    var wrongKinds: [String] {
        state.withLock { $0.wrongKinds }.sorted { $0.value > $1.value }.map { "\($0.value) × \($0.key)" }
    }
}

extension Resource {
    var summary: String {
        "number \(number), \(health), validator \(validator), coding \(coding), \(cacheControl ?? "no Cache-Control")"
            + (isVaried ? ", varied" : "") + (isLarge ? ", large" : "") + (isPersonal ? ", personal" : "")
    }
}
