import Testing
import Transaction

/// Feeds the events to a look-up that has not begun, and gives the actions, one for each event. Ends behind the first action that is not the
/// expected one, because a later event could trap then.
private func run(
    _ events: [LookUp.Event], expecting expected: [LookUp.Action]? = nil
) -> (actions: [LookUp.Action], source: LookUp.Source?) {
    var lookUp = LookUp()
    var actions: [LookUp.Action] = []
    for event in events {
        actions.append(lookUp.on(event))
        if let expected, !expected.starts(with: actions) { break }
    }
    return (actions, lookUp.source)
}

private func begin(
    for asker: LookUp.Asker = .client, backStore: Bool = false, fleet: Bool = false
) -> LookUp.Event {
    .begin(for: asker, backStore: backStore, fleet: fleet)
}

private let everywhere = begin(backStore: true, fleet: true)

@Suite("A look-up asks memory, the back store and the fleet in this order")
struct LookUpTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let events: [LookUp.Event]
        let actions: [LookUp.Action]
        let source: LookUp.Source?

        init(
            _ name: String, _ events: [LookUp.Event], expect actions: [LookUp.Action], from source: LookUp.Source? = nil
        ) {
            testDescription = name
            self.events = events
            self.actions = actions
            self.source = source
        }
    }

    /// Each pair of a state and an event that a driver can bring about. All others trap (next test).
    static let rows = order + bodies + repeats + askedOnce

    static let order = [
        Row(
            "what memory has is selected", [everywhere, .found(.atHand)], expect: [.searchMemory, .report],
            from: .memory),
        Row(
            "without other places, memory alone is searched", [begin(), .missing],
            expect: [.searchMemory, .reportNone]),
        Row(
            "the disk is asked if memory has nothing", [everywhere, .missing, .headsLoaded, .found(.atHand)],
            expect: [.searchMemory, .loadHeads, .searchMemory, .report], from: .disk),
        Row(
            "the fleet is asked if the disk has nothing",
            [everywhere, .missing, .noHeads, .fleetAnswered, .found(.atHand)],
            expect: [.searchMemory, .loadHeads, .askFleet, .searchMemory, .report], from: .fleet),
        Row(
            "or if the queue of the disk is full", [everywhere, .missing, .busy],
            expect: [.searchMemory, .loadHeads, .askFleet]),
        Row(
            "or if there is no disk", [begin(fleet: true), .missing], expect: [.searchMemory, .askFleet]),
        Row(
            "nothing is stored anywhere", [everywhere, .missing, .noHeads, .fleetAnswered, .missing],
            expect: [.searchMemory, .loadHeads, .askFleet, .searchMemory, .reportNone]),
        Row(
            "a fleet that cannot be asked has nothing", [begin(fleet: true), .missing, .fleetUnavailable],
            expect: [.searchMemory, .askFleet, .reportNone]),
        Row(
            "without a fleet, a full queue ends it", [begin(backStore: true), .missing, .busy],
            expect: [.searchMemory, .loadHeads, .reportNone]),
        Row(
            "a disk that is loading is awaited, and memory is searched again",
            [everywhere, .missing, .indexLoading, .indexLoaded, .missing, .headsLoaded],
            expect: [.searchMemory, .loadHeads, .awaitIndex, .searchMemory, .loadHeads, .searchMemory]),
        Row(
            "what came to memory while the disk was loading is not from the disk",
            [everywhere, .missing, .indexLoading, .indexLoaded, .found(.atHand)],
            expect: [.searchMemory, .loadHeads, .awaitIndex, .searchMemory, .report], from: .memory),
        Row(
            "what an index contradicts is passed over", [everywhere, .contradicted, .found(.atHand)],
            expect: [.searchMemory, .searchMemory, .report], from: .memory),
        Row(
            "what is found instead is still from the disk",
            [everywhere, .missing, .headsLoaded, .contradicted, .found(.atHand)],
            expect: [.searchMemory, .loadHeads, .searchMemory, .searchMemory, .report], from: .disk),
    ]

    static let bodies = [
        Row(
            "a body in one piece is read first", [everywhere, .found(.whole), .bodyAtHand],
            expect: [.searchMemory, .loadBody, .report], from: .disk),
        Row(
            "not for HEAD", [everywhere, .found(.unneeded)], expect: [.searchMemory, .report], from: .memory),
        Row(
            "a body in blocks is read when it is sent", [everywhere, .found(.blocks)],
            expect: [.searchMemory, .report], from: .disk),
        Row(
            "HEAD is answered from the disk if the head was there alone",
            [everywhere, .missing, .headsLoaded, .found(.unneeded)],
            expect: [.searchMemory, .loadHeads, .searchMemory, .report], from: .disk),
        Row(
            "a thread reads the body, and the response is looked for again",
            [everywhere, .found(.whole), .bodyRead, .found(.atHand)],
            expect: [.searchMemory, .loadBody, .searchMemory, .report], from: .disk),
        Row(
            "a body that came from the fleet and lies on the disk is from the disk",
            [begin(fleet: true), .missing, .fleetAnswered, .found(.blocks)],
            expect: [.searchMemory, .askFleet, .searchMemory, .report], from: .disk),
        Row(
            "if the queue is full, the origin is asked", [everywhere, .found(.whole), .busy],
            expect: [.searchMemory, .loadBody, .reportBusy]),
    ]

    static let repeats = [
        Row(
            "if the body cannot be read, another variant may suit",
            [everywhere, .found(.whole), .bodyUnreadable, .found(.atHand)],
            expect: [.searchMemory, .loadBody, .searchMemory, .report], from: .memory),
        Row(
            "and its body may lie on the disk as well",
            [everywhere, .found(.whole), .bodyUnreadable, .found(.whole), .bodyAtHand],
            expect: [.searchMemory, .loadBody, .searchMemory, .loadBody, .report], from: .disk),
        Row(
            "or the disk has the response elsewhere",
            [everywhere, .found(.whole), .bodyUnreadable, .missing, .headsLoaded, .found(.whole), .bodyAtHand],
            expect: [.searchMemory, .loadBody, .searchMemory, .loadHeads, .searchMemory, .loadBody, .report],
            from: .disk),
        Row(
            "or the fleet has it", [everywhere, .found(.whole), .bodyUnreadable, .missing, .noHeads],
            expect: [.searchMemory, .loadBody, .searchMemory, .loadHeads, .askFleet]),
        Row(
            "the disk is asked again if nothing of what it loaded is there",
            [everywhere, .missing, .headsLoaded, .missing, .noHeads],
            expect: [.searchMemory, .loadHeads, .searchMemory, .loadHeads, .askFleet]),
        Row(
            "four times at most",
            [begin(backStore: true), .missing] + Array(repeating: [.headsLoaded, .missing], count: 5).joined(),
            expect: [.searchMemory, .loadHeads] + Array(repeating: [.searchMemory, .loadHeads], count: 4).joined()
                + [.searchMemory, .reportNone]),
        Row(
            "a disk that is never loaded is left alone",
            [begin(backStore: true), .missing]
                + Array(repeating: [.indexLoading, .indexLoaded, .missing], count: 4).joined()
                + [.indexLoading],
            expect: [.searchMemory, .loadHeads]
                + Array(repeating: [.awaitIndex, .searchMemory, .loadHeads], count: 4).joined() + [.reportNone]),
        Row(
            "a body that is read and read and never there is left alone",
            [everywhere, .found(.whole)] + Array(repeating: [.bodyRead, .found(.whole)], count: 5).joined(),
            expect: [.searchMemory, .loadBody] + Array(repeating: [.searchMemory, .loadBody], count: 4).joined()
                + [.searchMemory, .reportBusy]),
    ]

    static let askedOnce = [
        Row(
            "a request of another node does not ask the fleet",
            [begin(for: .node, backStore: true, fleet: true), .missing, .noHeads],
            expect: [.searchMemory, .loadHeads, .reportNone]),
        Row(
            "the second time, memory alone is searched",
            [everywhere, .missing, .noHeads, .fleetAnswered, .missing, everywhere, .missing],
            expect: [.searchMemory, .loadHeads, .askFleet, .searchMemory, .reportNone, .searchMemory, .reportNone]),
        Row(
            "what it finds then is from neither",
            [everywhere, .missing, .noHeads, .fleetUnavailable, everywhere, .found(.atHand)],
            expect: [.searchMemory, .loadHeads, .askFleet, .reportNone, .searchMemory, .report], from: .memory),
        Row(
            "the second time, those are asked that were not asked the first time",
            [everywhere, .found(.atHand), everywhere, .missing, .noHeads],
            expect: [.searchMemory, .report, .searchMemory, .loadHeads, .askFleet]),
    ]

    @Test(arguments: rows) func `each event leads to the action that follows it`(_ row: Row) {
        let (actions, source) = run(row.events, expecting: row.actions)
        #expect(actions == row.actions)
        #expect(source == row.source)
    }

    // MARK: out of order

    /// The events that lead to each state.
    static let ways: [[LookUp.Event]] = [
        [], [everywhere], [everywhere, .missing], [everywhere, .missing, .indexLoading],
        [begin(fleet: true), .missing], [everywhere, .found(.whole)], [begin(), .missing],
    ]
    static let events: [LookUp.Event] = [
        everywhere, .found(.atHand), .contradicted, .missing, .headsLoaded, .noHeads, .indexLoading, .indexLoaded,
        .busy, .fleetAnswered, .fleetUnavailable, .bodyAtHand, .bodyRead, .bodyUnreadable,
    ]
    /// The numbers of the events that each state knows.
    static let known: [Set<Int>] = [[0], [1, 2, 3], [4, 5, 6, 8], [7], [9, 10], [8, 11, 12, 13], [0]]

    /// Each in a process of its own, so only one event for each state.
    @Test(arguments: ways.indices) func `an event that nothing was asked for ends the process`(_ state: Int) async {
        let event = (0..<LookUpTests.events.count).filter { !LookUpTests.known[state].contains($0) }[state]
        await #expect(processExitsWith: .failure) { [state = state as Int, event = event as Int] in
            _ = run(LookUpTests.ways[state] + [LookUpTests.events[event]])
        }
    }

    @Test(arguments: ways.indices) func `an event that something was asked for does not`(_ state: Int) {
        for event in LookUpTests.known[state] {
            #expect(run(LookUpTests.ways[state] + [LookUpTests.events[event]]).actions.count > 0)
        }
    }

    // MARK: any order

    /// Whatever is found and lost, a look-up ends, and asks nobody more often than it may.
    @Test(arguments: 0..<200) func `every look-up ends`(_ seed: UInt64) {
        var random = SplitMix(seed)
        let asker: LookUp.Asker = seed % 5 == 0 ? .node : .client
        var lookUp = LookUp()
        var counts: [LookUp.Action: Int] = [:]
        for _ in 0..<3 {
            var action = lookUp.on(begin(for: asker, backStore: true, fleet: true))
            var steps = 0
            while let event = answer(to: action, &random) {
                counts[action, default: 0] += 1
                action = lookUp.on(event)
                steps += 1
                guard steps < 100 else {
                    Issue.record("seed \(seed): no end after 100 events, last \(action)")
                    return
                }
            }
            #expect((lookUp.source != nil) == (action == .report), "seed \(seed)")
        }
        #expect(counts[.askFleet, default: 0] <= (asker == .node ? 0 : 1), "seed \(seed)")
        #expect(counts[.loadHeads, default: 0] <= 1 + Int(LookUp.repeatsMax), "seed \(seed)")
    }

    /// What may come after an action; nil where it was the last.
    private func answer(to action: LookUp.Action, _ random: inout SplitMix) -> LookUp.Event? {
        let options: [LookUp.Event]
        switch action {
        // What an index contradicts has left the store: that ends by itself.
        case .searchMemory:
            options = [.missing, .missing, .contradicted] + LookUp.BodyPlace.allCases.map { .found($0) }
        case .loadHeads: options = [.headsLoaded, .headsLoaded, .noHeads, .indexLoading, .busy]
        case .awaitIndex: options = [.indexLoaded]
        case .askFleet: options = [.fleetAnswered, .fleetUnavailable]
        case .loadBody: options = [.bodyAtHand, .bodyRead, .bodyRead, .bodyUnreadable, .busy]
        case .report, .reportNone, .reportBusy: return nil
        }
        return options[Int(random.next() % UInt64(options.count))]
    }
}
