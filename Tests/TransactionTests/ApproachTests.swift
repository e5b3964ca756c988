import Testing

@testable import Transaction

private typealias Event = Approach.Event
private typealias Action = Approach.Action

/// Tells a machine of events, and returns what it wants after each.
private func actions(
    _ events: [Event], needs: Approach.Needs = Approach.Needs(), asksNodes: Bool = false
) -> [Action] {
    var way = Approach(needs: needs, asksNodes: asksNodes)
    return events.map { way.on($0) }
}

private let dead = Event.nodeFailed(.wasDead)
private let silent = Event.nodeFailed(.noAnswer)

@Suite("The way to an answer: the origin") struct OriginApproachTests {
    @Test func `without anything else, a connection is needed`() {
        #expect(actions([.wanted, .opened(isReused: true)]) == [.borrow, .give(isReused: true)])
    }

    @Test func `a connection is asked for once more when the routes are known`() {
        #expect(actions([.wanted, .awaitsRoutes, .routed]) == [.borrow, .none, .borrow])
        #expect(actions([.wanted, .awaitsRoutes, .notOpened(.routeUnknown)]).last == .fail(.routeUnknown))
        #expect(actions([.wanted, .awaitsRoutes, .timedOut]).last == .fail(.routeUnknown))
        #expect(actions([.wanted, .awaitsRoutes, .over, .routed]).last == Action.none)
    }

    @Test func `all needs are met in their order`() {
        let all = Approach.Needs(framing: true, credential: true, body: true)
        #expect(
            actions(
                [
                    .wanted, .met(.framing), .met(.credential), .met(.body), .met(.permission),
                    .opened(isReused: false),
                ], needs: all) == [
                    .meet(.framing), .meet(.credential), .meet(.body), .meet(.permission), .borrow,
                    .give(isReused: false),
                ])
    }

    @Test func `a need that is decided later is looked at again`() {
        #expect(
            actions([.wanted, .decided(.credential), .met(.credential)], needs: Approach.Needs(credential: true)) == [
                .meet(.credential), .meet(.credential), .borrow,
            ])
    }

    @Test func `what was decided without the body is decided anew when it has come`() {
        #expect(
            actions(
                [.wanted, .met(.credential), .bodyCame, .met(.credential), .met(.body)],
                needs: Approach.Needs(credential: true, body: true))
                == [.meet(.credential), .meet(.body), .meet(.credential), .meet(.body), .meet(.permission)])
    }

    @Test func `a refusal ends the attempt, and another one begins anew`() {
        #expect(
            actions(
                [.wanted, .refused(.credential, .credentialUnavailable), .wanted],
                needs: Approach.Needs(credential: true)) == [
                    .meet(.credential), .fail(.credentialUnavailable), .meet(.credential),
                ])
        #expect(
            actions([.wanted, .notOpened(.connectionRefused), .wanted]) == [
                .borrow, .fail(.connectionRefused), .borrow,
            ])
    }

    @Test func `a stream that has been released is asked for anew`() {
        #expect(
            actions([.wanted, .opened(isReused: true), .wanted]) == [.borrow, .give(isReused: true), .borrow])
    }

    private static let late: [(before: [Event], late: Event)] = [
        ([.wanted], .met(.credential)), ([.wanted], .decided(.permission)), ([.wanted], .bodyCame),
        ([.wanted], .routed), ([.wanted, .over], .routed), ([], .bodyCame),
        ([.wanted, .over], .refused(.credential, .credentialUnavailable)),
        ([.wanted, .opened(isReused: true)], .notOpened(.connectionRefused)),
        ([.wanted], .nodeLate(headBegan: false)), ([.wanted, .over], .nodeNotOpened), ([.wanted], .originAnswered),
        ([.wanted], .timedOut),
    ]
    @Test(arguments: late)
    fileprivate func `what is told too late changes nothing`(_ row: (before: [Event], late: Event)) {
        #expect(actions(row.before + [row.late]).last == Action.none)
        #expect(actions(row.before + [row.late, .wanted]).last == .borrow)
    }

    private static let timeouts: [(before: [Event], action: Action)] = [
        ([], .timeOut), ([.met(.credential)], .timeOut), ([.met(.credential), .met(.body)], .timeOut),
        ([.met(.credential), .met(.body), .met(.permission)], .none),
    ]
    @Test(arguments: timeouts)
    fileprivate func `a need that is not met in time ends the attempt`(_ row: (before: [Event], action: Action)) {
        #expect(
            actions([.wanted] + row.before + [.timedOut], needs: Approach.Needs(credential: true, body: true)).last
                == row.action)
    }
}

@Suite("The way to an answer: nodes of a fleet") struct NodeApproachTests {
    private static let toNode: [Event] = [.wanted, .nodeOpened(isReused: true)]
    private static let racing: [Event] = toNode + [.nodeLate(headBegan: false), .wanted]

    private static let rows: [(what: String, events: [Event], action: Action)] = [
        ("a node is asked first", [.wanted], .askNode(anew: false)),
        ("there is none", [.wanted, .noNode], .borrow),
        ("it has a stream", toNode, .give(isReused: true)),
        ("it cannot be connected to", [.wanted, .nodeNotOpened], .askNode(anew: false)),
        ("its connection was dead", toNode + [dead], .changeWay),
        ("it is asked on a new one then", toNode + [dead, .wanted], .askNode(anew: true)),
        ("and not a third time", toNode + [dead, .wanted, .nodeOpened(isReused: false), dead], .changeWay),
        (
            "but the next one is",
            toNode + [dead, .wanted, .nodeOpened(isReused: false), dead, .wanted], .askNode(anew: false)
        ),
        ("one that works is not asked again", toNode + [.nodeWorks, dead, .wanted], .askNode(anew: false)),
        ("it gives no answer", toNode + [silent], .changeWay),
        ("the next one is asked then", toNode + [silent, .wanted], .askNode(anew: false)),
        ("its answer breaks off", toNode + [.nodeAnswered, .wanted], .askNode(anew: false)),
        ("it cannot be connected to in time", [.wanted, .nodeLate(headBegan: false)], .leaveNode),
        ("the next one is asked then", [.wanted, .nodeLate(headBegan: false), .nodeNotOpened], .askNode(anew: false)),
        ("it is late", toNode + [.nodeLate(headBegan: false)], .keepNode),
        ("the origin is asked as well", racing, .borrow),
        ("it has begun its head", toNode + [.nodeLate(headBegan: true)], .none),
        ("it is working", toNode + [.nodeWorks, .nodeLate(headBegan: false)], .none),
        ("it has answered", toNode + [.nodeAnswered, .nodeLate(headBegan: false)], .none),
    ]
    @Test(arguments: rows)
    fileprivate func `nodes are asked before the origin`(_ row: (what: String, events: [Event], action: Action)) {
        #expect(actions(row.events, asksNodes: true).last == row.action, "\(row.what)")
    }

    private static let open: [Event] = racing + [.opened(isReused: true)]
    private static let races: [(what: String, events: [Event], action: Action)] = [
        ("the origin gets the request", open, .give(isReused: true)),
        ("the origin answers first", open + [.originAnswered], .dropNode),
        ("the node answers first", open + [.lateNodeHeard(originBegan: false)], .returnToNode),
        ("the node answers while a connection is opened", racing + [.lateNodeHeard(originBegan: false)], .returnToNode),
        ("the origin has begun", open + [.lateNodeHeard(originBegan: true)], .dropNode),
        ("the node's connection ends", open + [silent], .dropNode),
        ("no route leads to the origin", racing + [.notOpened(.routeUnknown)], .returnToNode),
        ("the origin cannot be connected to", racing + [.notOpened(.connectionRefused)], .returnToNode),
        ("the routes take too long", racing + [.awaitsRoutes, .timedOut], .returnToNode),
        ("the origin's connection was dead", open + [.wanted], .borrow),
        ("the attempt is over", open + [.over], .dropNode),
    ]
    @Test(arguments: races)
    fileprivate func `a late node and the origin are heard, whoever is first`(
        _ row: (what: String, events: [Event], action: Action)
    ) {
        #expect(actions(row.events, asksNodes: true).last == row.action, "\(row.what)")
    }

    @Test func `a late node that fails after all leaves the way to the origin`() {
        let returned = Self.racing + [.notOpened(.routeUnknown)]
        #expect(
            actions(returned + [silent, .wanted, .noNode], asksNodes: true).suffix(3) == [
                .changeWay, .askNode(anew: false), .borrow,
            ])
        // It has been late once.
        #expect(actions(returned + [.nodeLate(headBegan: false)], asksNodes: true).last == Action.none)
    }

    @Test func `who is waited for can be asked`() {
        var way = Approach(needs: Approach.Needs(), asksNodes: true)
        #expect(!way.isWithNode && !way.awaitsNode && way.need == nil)
        _ = way.on(.wanted)
        #expect(way.isWithNode && way.awaitsNode && !way.nodeIsWorking)
        _ = way.on(.nodeOpened(isReused: false))
        _ = way.on(.nodeWorks)
        #expect(way.awaitsNode && way.nodeIsWorking)
        _ = way.on(.nodeAnswered)
        #expect(way.isWithNode && !way.awaitsNode)

        var race = Approach(needs: Approach.Needs(), asksNodes: true)
        for event in Self.racing { _ = race.on(event) }
        #expect(race.isRace && race.need == nil && !race.isWithNode && !race.awaitsNode)
    }
}
