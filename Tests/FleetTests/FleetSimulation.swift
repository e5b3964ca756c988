import Fleet
import Glibc
import Testing

/// A whole fleet, and everything that can go wrong in it in any order: `FleetWorld` has the nodes, `FleetJudge` says what must not be.
@Suite("Fleet: a fleet in a simulation") struct FleetSimulation {
    /// From the environment: the first seed, and how many.
    private static let firstSeed = setting("LARDER_SIMULATE_SEED") ?? 1
    private static let seedCount = setting("LARDER_SIMULATE_FLEETS") ?? 60

    private static func setting(_ name: String) -> UInt64? {
        unsafe getenv(name).flatMap { unsafe UInt64(String(cString: $0)) }
    }

    @Test func `no client sees what it must not, whatever fails`() {
        var marks: [StaleReason: Int] = [:]
        var sources: Set<String> = []
        var answered = 0
        var brokenOff = 0
        var (standIns, failed, said) = (0, 0, (all: 0, fewer: 0))
        for seed in FleetSimulation.firstSeed..<(FleetSimulation.firstSeed + FleetSimulation.seedCount) {
            let world = FleetSimulation.play(seed)
            if let violation = world.judge.violation {
                Issue.record("\(violation.text)\n\(FleetSimulation.events(of: seed, nil))")
                return
            }
            marks.merge(world.marks) { $0 + $1 }
            sources.formUnion(world.judge.sources)
            answered += world.judge.answered
            brokenOff += world.judge.brokenOffCount
            standIns += world.judge.standInCount
            failed += world.judge.failedCount
            said.all += world.judge.saidCounts.all
            said.fewer += world.judge.saidCounts.fewer
        }
        guard FleetSimulation.seedCount >= 60 else { return }
        // Without this the test might pass because nothing happens in it.
        #expect(marks[.otherData] != nil && marks[.entriesTrimmed] != nil && marks[.startedAlone] != nil, "\(marks)")
        #expect(sources.count == 6, "\(sources)")
        #expect(standIns > 20 && failed > 20, "\(standIns) stale responses stood in, \(failed) requests failed")
        #expect(said.all > 100 && said.fewer > 100, "\(said)")
        #expect(answered > 10_000, "\(answered)")
        #expect(brokenOff > 100, "\(brokenOff)")
    }

    /// Otherwise the test above would say nothing of that rule.
    @Test(arguments: Breach.allCases) func `the simulation notices when a rule is broken`(_ breach: Breach) {
        let seeds = FleetSimulation.firstSeed..<(FleetSimulation.firstSeed + 600)
        let found = seeds.lazy.compactMap { FleetSimulation.play($0, breach).judge.violation }.first
        let isRight = found.map { breach.rules.contains($0.rule) } ?? false
        #expect(isRight, "\(breach): \(found?.text ?? "goes unnoticed")")
    }

    @Test func `a seed gives the same fleet again`() {
        #expect(FleetSimulation.events(of: 7, nil) == FleetSimulation.events(of: 7, nil))
        #expect(FleetSimulation.events(of: 7, nil) != FleetSimulation.events(of: 8, nil))
    }

    private static func play(_ seed: UInt64, _ breach: Breach? = nil, isTraced: Bool = false) -> FleetWorld {
        let world = FleetWorld(seed: seed, breach: breach, isTraced: isTraced)
        world.play()
        world.end()
        return world
    }

    /// The last ones, of a world that is played again.
    private static func events(of seed: UInt64, _ breach: Breach?) -> String {
        "the last events; to see it again: LARDER_SIMULATE_SEED=\(seed) LARDER_SIMULATE_FLEETS=1\n"
            + play(seed, breach, isTraced: true).events.suffix(120).joined(separator: "\n")
    }
}

/// A rule of the nodes that can be left out, to see that the judge notices.
enum Breach: CaseIterable {
    // Purges
    /// A node answers although it has not applied what the other one has.
    case ignoresPositions
    case skipsPurgeLog
    case storesOutdated
    case neverMarks
    /// A purge is applied here, and what Redis has from before it is used until the purge comes back by the stream.
    case readsBehindOwnPurges
    /// The same with what other nodes have.
    case asksBehindOwnPurges
    /// A question says a purge only when it has been applied, with all that were read with it.
    case saysPositionLate
    /// What was stored before the first answer of the Redis is taken to be as new as that.
    case beginsWithWhatItHas
    /// What the disk of a node has that starts is served before the node has caught up.
    case trustsDisks
    // Unsafe requests
    case forgetsChanges
    case forgetsChangeWithFirstQuestion
    case readsRedisAfterChange
    /// Who asks for news gets the answer to a request that was under way before.
    case followsForNews
    /// What another node tells of is passed over.
    case skipsChanges
    /// Shared records are not compared with what other nodes tell of.
    case skipsChangesInLog
    /// The other nodes are not told.
    case keepsChanges
    // Variants
    case ignoresVary
    case followsOtherVariants
    case adoptsForTheAsker
    // Bodies that break off
    case storesWhatBrokeOff
    case hidesBreakOffs
    case forgivesBreakOffs
    // Identities
    case asksForWhatIsPersonal
    case sharesWhatIsPersonal
    // Owners
    case askedNodeAsksOn
    case ownersDifferByNode
    // What is said of purges
    case asksBeforeItHasCaughtUp
    case countsWhoRefuses
    /// A node says of a purge that it is applied when it has read it.
    case saysWhatIsNotDone
    // Clocks
    /// What another node has dated is read by the own clock.
    case ignoresClocks
    // Origins that fail
    /// What another node has stale is taken for the word of the origin.
    case takesStaleForFresh
    case standsInForDoubted
    // Failures
    case waitsForever
    // Health
    case neverCollapses

    /// What the judge finds, whichever comes first.
    var rules: [FleetJudge.Rule] {
        switch self {
        case .storesOutdated: [.purge, .soft, .change]
        case .ignoresPositions, .skipsPurgeLog, .neverMarks, .beginsWithWhatItHas, .trustsDisks:
            [.purge, .soft, .said, .change]
        case .readsBehindOwnPurges, .asksBehindOwnPurges, .saysPositionLate: [.purge, .soft, .said]
        case .forgetsChanges, .forgetsChangeWithFirstQuestion, .readsRedisAfterChange, .followsForNews,
            .skipsChanges, .skipsChangesInLog:
            [.change]
        case .keepsChanges: [.spread]
        case .ignoresVary, .followsOtherVariants, .adoptsForTheAsker: [.variant]
        case .storesWhatBrokeOff, .hidesBreakOffs: [.whole]
        case .forgivesBreakOffs: [.circuit]
        case .asksForWhatIsPersonal, .sharesWhatIsPersonal: [.identity]
        case .askedNodeAsksOn: [.hops]
        case .ownersDifferByNode: [.owners]
        case .asksBeforeItHasCaughtUp: [.purge, .soft, .said, .change]
        case .countsWhoRefuses, .saysWhatIsNotDone: [.said]
        case .ignoresClocks: [.fresh]
        case .takesStaleForFresh: [.soft, .purge, .said, .change, .fresh]
        case .standsInForDoubted: [.purge, .said, .change]
        case .waitsForever: [.answer]
        case .neverCollapses: [.asksOnce]
        }
    }
}
