import Fleet

// What PeerDesk does.
extension ModelNode {
    private static let newFor: UInt64 = 600_000_000_000

    func setMembers(_ members: Set<Int>, joinedAt first: UInt64? = nil) {
        let sorted = members.sorted()
        var named = sorted.map { Ownership.Member("n\($0)") }
        if world.breaks(.ownersDifferByNode) { named = sorted.map { Ownership.Member("\(name) n\($0)") } }
        ownership = Ownership(named, hash: secret)
        places = sorted
        if !members.contains(index) { joinedAt = nil } else { joinedAt = joinedAt ?? first ?? world.now }
        circuits = circuits.filter { members.contains($0.key) || $0.value.isProbing }
        world.judge.forgetBreakOffs(of: self)
    }

    func ranking(of key: ModelKey) -> [Int] {
        ownership.ranking(zone: "default", key: key.bytes, count: 3, hash: secret).map { places[$0] }
    }

    struct Plan {
        var asks: [(node: Int, isForStoreOnly: Bool)] = []
        var keeping = PeerPlan.Keeping.always
        var asksForNews = false
    }

    private func word(_ key: ModelKey) -> UInt64 { UInt64(key.url * 10 + (key.user ?? 9)) }

    /// PeerDesk.plan
    func plan(_ key: ModelKey, isForPeer: Bool, looksIntoStores: Bool) -> Plan {
        guard world.hasOwners else { return Plan() }
        let note = notes.note(of: word(key), now: world.now)
        if world.breaks(.forgetsChangeWithFirstQuestion), note == .changed, !isForPeer { notes = PeerMemory() }
        let ranking = ownership.ranking(zone: "default", key: key.bytes, count: 3, hash: secret)
        let plan = PeerPlan(
            ranking: ranking, own: places.firstIndex(of: index),
            isNew: joinedAt.map { world.now - $0 < ModelNode.newFor } ?? false,
            isForPeer: isForPeer && !world.breaks(.askedNodeAsksOn))
        // What others have may be from before a purge that only this node knows, or an earlier run of it.
        let isAhead = !progress.asks(hasOwnUnderWay: !underWay.isEmpty && !world.breaks(.asksBehindOwnPurges))
        return Plan(
            asks: isAhead
                ? []
                : plan.asks.compactMap { ask in
                    guard !ask.isForStoreOnly || (looksIntoStores && note != .changed), places[ask.member] != index
                    else { return nil }
                    return (places[ask.member], ask.isForStoreOnly)
                },
            keeping: plan.keeping, asksForNews: note == .changed)
    }

    func noteChange(_ key: ModelKey) {
        guard world.hasOwners, !world.breaks(.forgetsChanges) else { return }
        notes.set(.changed, for: word(key), now: world.now)
    }

    func hasChanged(_ key: ModelKey) -> Bool {
        notes.note(of: word(key), now: world.now) == .changed && !world.breaks(.readsRedisAfterChange)
    }

    /// PeerDesk.question
    func question(isForStoreOnly: Bool) -> [UInt8] {
        var question = PeerQuestion(node: name)
        question.position = world.breaks(.saysPositionLate) ? follower.position : progress.known
        question.isForStoreOnly = isForStoreOnly
        return question.encoded(hash: secret)!
    }

    /// PeerDesk.read
    func read(_ value: [UInt8]) -> Result<PeerQuestion, PeerObjection> {
        do throws(PeerObjection) {
            let question = try PeerQuestion.decode(value, hash: secret)
            guard progress.answers(question.position) || world.breaks(.ignoresPositions) else { throw .behind }
            return .success(question)
        } catch { return .failure(error) }
    }

    private var progress: PurgeProgress {
        let said = PurgeProgress(follower, log, isMarking: isMarking)
        guard world.breaks(.asksBeforeItHasCaughtUp) else { return said }
        return PurgeProgress(applied: said.applied, known: said.known, isMarking: isMarking, hasCaughtUp: true)
    }

    private static var circuit: Circuit { Circuit(failuresToOpen: 3, windowNanoseconds: 10_000_000_000) }

    func permit(to node: Int) -> Circuit.Permit? {
        circuits[node, default: ModelNode.circuit].permit(now: world.now)
    }

    func settle(_ permit: Circuit.Permit, of node: Int, isFailure: Bool) {
        let outcome: Circuit.Outcome = isFailure ? .failure(jitter: world.random()) : .success
        circuits[node, default: ModelNode.circuit].settle(permit, outcome, now: world.now)
    }

    /// PeerDesk.noteBreakOff, where the other node had the response stored
    func noteBreakOff(of node: Int) {
        world.judge.brokeOff(for: self, at: node, world)
        if !world.breaks(.forgivesBreakOffs) { settle(.ordinary, of: node, isFailure: true) }
    }
}
