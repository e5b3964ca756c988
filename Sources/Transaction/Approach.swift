/// The machine of the way to an answer: who is asked, what the request needs before, and which of two streams is heard.
///
/// ```
/// atRest ─wanted─▶ node ──no node answers──▶ origin: framing, credential, body, permission, connection ─▶ open
///                   └─────late─────▶ race: the same, while the node is still listened to
/// ```
///
/// It stands between a `Retrieval`, which wants a stream, and the driver, which has streams to lend. Other nodes of a fleet are asked before the
/// origin. A node that is late is not given up: the origin is asked as well, and the first of the two to send a final head is heard.
///
/// It refers to no object outside. Whatever is told too late, because something else has happened meanwhile, changes nothing.
package struct Approach: ~Copyable {
    /// What a request needs before a connection to its origin is asked for, in this order.
    package enum Need: Sendable {
        /// A protocol version in which its content can be framed.
        case framing
        /// What proves Larder to the origin. Another request may be trying it.
        case credential
        /// The whole body, where what goes out depends on all of it.
        case body
        /// The word of the access rules on what the body has shown.
        case permission
    }

    /// Which of the needs a request has.
    package struct Needs: Equatable, Sendable {
        package var framing: Bool
        package var credential: Bool
        /// The body and the permission that a credential may make necessary.
        package var body: Bool

        package init(framing: Bool = false, credential: Bool = false, body: Bool = false) {
            self.framing = framing
            self.credential = credential
            self.body = body
        }

        /// The first need behind `need`. Nil: a connection is all that is missing.
        fileprivate func next(after need: Need?) -> Need? {
            switch need {
            case nil: framing ? .framing : credential ? .credential : body ? .body : nil
            case .framing?: credential ? .credential : body ? .body : nil
            case .credential?: body ? .body : nil
            case .body?: .permission
            case .permission?: nil
            }
        }
    }

    /// What becomes of a node that was asked.
    package enum NodeFailure: Equatable, Sendable {
        /// Its pooled connection had ended before the request came.
        case wasDead
        /// It gives no answer.
        case noAnswer
    }

    package enum Event: Equatable, Sendable {
        /// A stream is wanted. The one before has been released.
        case wanted
        /// The attempt is over: nothing is wanted any more.
        case over

        /// The need is met.
        case met(Need)
        /// What was waited for has happened: the need is looked at again.
        case decided(Need)
        /// The body has come. What was decided without it is decided anew.
        case bodyCame
        case refused(Need, Refusal)

        /// A PAC file is asked for the routes.
        case awaitsRoutes
        /// The routes are known.
        case routed
        case opened(isReused: Bool)
        case notOpened(Refusal)
        /// The origin has sent a final head.
        case originAnswered

        /// There is no node to ask.
        case noNode
        case nodeOpened(isReused: Bool)
        case nodeNotOpened
        /// The node fetches the response itself.
        case nodeWorks
        /// The node has sent a final head that is an answer.
        case nodeAnswered
        /// A node that is late has sent a final head.
        ///
        /// - Parameter originBegan: the origin has sent a part of one before.
        case lateNodeHeard(originBegan: Bool)
        case nodeFailed(NodeFailure)
        /// The time that a node has is over.
        case nodeLate(headBegan: Bool)

        /// What is waited for takes too long.
        case timedOut
    }

    package enum Action: Equatable, Sendable {
        case none
        /// Asks for a stream to a node: to the next one, or on a new connection to the one that was asked last.
        case askNode(anew: Bool)
        /// Sees to what the request needs.
        case meet(Need)
        /// Asks for a stream over the routes to the origin, or for the routes first: `awaitsRoutes`.
        case borrow
        /// Tells the retrieval that a stream is lent.
        case give(isReused: Bool)
        /// Tells the retrieval that there is none.
        case fail(Refusal)
        /// Tells the retrieval that the wait for one was too long.
        case timeOut
        /// Tells the retrieval that the node gives no answer, so that it asks for another stream.
        case changeWay
        /// Ends the wait for a connection to the node, which gives no answer. The next node follows.
        case leaveNode
        /// Goes on listening to the node, whose stream is kept beside the next one.
        case keepNode
        /// Ends the kept stream.
        case dropNode
        /// Gives up whatever leads to the origin. The kept stream takes its place.
        case returnToNode
    }

    enum Node: Equatable, Sendable { case connecting, asked, working, answered }

    /// The way to the origin.
    enum Lane: Equatable, Sendable {
        case meeting(Need)
        case connecting
        /// The routes are asked for.
        case routing
        case open
        /// The stream has been released. Another one is wanted, or the end follows.
        case released
    }

    enum State: Equatable, Sendable {
        case atRest
        case node(Node, isSecondAttempt: Bool)
        /// Its pooled connection was dead: it is asked on a new one.
        case nodeAgain
        case origin(Lane)
        /// The origin is asked as well as a node that is late.
        case race(Lane)
    }

    var state = State.atRest
    private let needs: Needs
    private let asksNodes: Bool

    /// - Parameters:
    ///   - needs: what has to be seen to before a connection to the origin is asked for.
    ///   - asksNodes: nodes are asked before the origin.
    package init(needs: Needs, asksNodes: Bool = false) {
        self.needs = needs
        self.asksNodes = asksNodes
    }

    // MARK: what the driver asks

    /// Whether the stream that is lent leads to a node.
    package var isWithNode: Bool { if case .node = state { true } else { false } }
    /// Whether a node is waited for that has not answered.
    package var awaitsNode: Bool {
        switch state {
        case .node(.connecting, _), .node(.asked, _), .node(.working, _): true
        case .node(.answered, _), .nodeAgain, .atRest, .origin, .race: false
        }
    }
    /// Whether the node that was asked is asked once more.
    package var asksAgain: Bool { if case .nodeAgain = state { true } else { false } }
    /// Whether the node that is asked has said that it fetches the response.
    package var nodeIsWorking: Bool { if case .node(.working, _) = state { true } else { false } }
    /// Whether a late node is still listened to.
    package var isRace: Bool { if case .race = state { true } else { false } }
    /// Whether the routes are asked for.
    package var isRouting: Bool {
        switch state {
        case .origin(.routing), .race(.routing): true
        case .atRest, .node, .nodeAgain, .origin, .race: false
        }
    }
    /// What is waited for before a connection is asked for. Nil: nothing.
    package var need: Need? {
        switch state {
        case .origin(.meeting(let need)), .race(.meeting(let need)): need
        case .atRest, .node, .nodeAgain, .origin, .race: nil
        }
    }

    // MARK: events

    /// Takes an event and returns what the driver does next. The driver tells what came of it by the next event.
    package mutating func on(_ event: Event) -> Action {
        switch event {
        case .wanted: wanted()
        case .over: over()
        case .met(let need): met(need)
        case .decided(let need): self.need == need ? .meet(need) : .none
        case .bodyCame: need == .body ? startOver() : .none
        case .refused(let need, let refusal): self.need == need ? noWay(refusal) : .none
        case .awaitsRoutes: awaitsRoutes()
        case .routed: routed()
        case .opened(let isReused): opened(isReused)
        case .notOpened(let refusal): isConnecting || isRouting ? noWay(refusal) : .none
        case .originAnswered: originAnswered()
        case .noNode: noNode()
        case .nodeOpened(let isReused): nodeOpened(isReused)
        case .nodeNotOpened: nodeNotOpened()
        case .nodeWorks: nodeWorks()
        case .nodeAnswered: nodeAnswered()
        case .lateNodeHeard(let originBegan): lateNodeHeard(originBegan)
        case .nodeFailed(let failure): nodeFailed(failure)
        case .nodeLate(let headBegan): nodeLate(headBegan)
        case .timedOut: timedOut()
        }
    }

    private var isConnecting: Bool {
        switch state {
        case .origin(.connecting), .race(.connecting): true
        case .atRest, .node, .nodeAgain, .origin, .race: false
        }
    }

    private mutating func awaitsRoutes() -> Action {
        guard isConnecting else { preconditionFailure("no stream to the origin was asked for") }
        move(to: .routing)
        return .none
    }

    private mutating func routed() -> Action {
        guard isRouting else { return .none }
        move(to: .connecting)
        return .borrow
    }

    private mutating func wanted() -> Action {
        switch state {
        case .atRest:
            guard asksNodes else { return approachOrigin() }
            state = .node(.connecting, isSecondAttempt: false)
            return .askNode(anew: false)
        case .nodeAgain:
            state = .node(.connecting, isSecondAttempt: true)
            return .askNode(anew: true)
        // The answer is of no use, or has broken off. What follows is asked of the origin, or of the next node.
        case .node:
            state = .node(.connecting, isSecondAttempt: false)
            return .askNode(anew: false)
        case .origin: return approachOrigin()
        case .race: return meetNeed(after: nil)
        }
    }

    private mutating func approachOrigin() -> Action {
        state = .origin(.released)
        return meetNeed(after: nil)
    }

    private mutating func meetNeed(after last: Need?) -> Action {
        guard let need = needs.next(after: last) else {
            move(to: .connecting)
            return .borrow
        }
        move(to: .meeting(need))
        return .meet(need)
    }

    private mutating func startOver() -> Action { meetNeed(after: .framing) }

    private mutating func move(to lane: Lane) {
        switch state {
        case .origin: state = .origin(lane)
        case .race: state = .race(lane)
        case .atRest, .node, .nodeAgain: preconditionFailure("nothing leads to the origin")
        }
    }

    private mutating func met(_ need: Need) -> Action {
        self.need == need ? meetNeed(after: need) : .none
    }

    private mutating func opened(_ isReused: Bool) -> Action {
        guard isConnecting else { preconditionFailure("no stream to the origin was asked for") }
        move(to: .open)
        return .give(isReused: isReused)
    }

    /// Nothing leads to the origin. A node that is late is waited for as long as it takes then.
    private mutating func noWay(_ refusal: Refusal) -> Action {
        switch state {
        case .origin:
            state = .origin(.released)
            return .fail(refusal)
        case .race:
            state = .node(.working, isSecondAttempt: true)
            return .returnToNode
        case .atRest, .node, .nodeAgain: preconditionFailure("nothing leads to the origin")
        }
    }

    private mutating func originAnswered() -> Action {
        guard case .race(let lane) = state else { return .none }
        precondition(lane == .open, "an answer comes on an open stream")
        state = .origin(.open)
        return .dropNode
    }

    private mutating func over() -> Action {
        defer { state = .atRest }
        return isRace ? .dropNode : .none
    }

    private mutating func timedOut() -> Action {
        if isRouting { return noWay(.routeUnknown) }
        guard need != nil else { return .none }
        return isRace ? noWay(.connectionTimeout) : .timeOut
    }

    // MARK: nodes

    private mutating func noNode() -> Action {
        guard case .node(.connecting, _) = state else { preconditionFailure("no node was to be asked") }
        return approachOrigin()
    }

    private mutating func nodeOpened(_ isReused: Bool) -> Action {
        guard case .node(.connecting, let isSecondAttempt) = state else {
            preconditionFailure("no node was to be asked")
        }
        state = .node(.asked, isSecondAttempt: isSecondAttempt)
        return .give(isReused: isReused)
    }

    private mutating func nodeNotOpened() -> Action {
        guard case .node(.connecting, _) = state else { return .none }
        state = .node(.connecting, isSecondAttempt: false)
        return .askNode(anew: false)
    }

    private mutating func nodeWorks() -> Action {
        if case .node(.asked, let isSecondAttempt) = state { state = .node(.working, isSecondAttempt: isSecondAttempt) }
        return .none
    }

    private mutating func nodeAnswered() -> Action {
        guard case .node(_, let isSecondAttempt) = state else { preconditionFailure("no node was asked") }
        state = .node(.answered, isSecondAttempt: isSecondAttempt)
        return .none
    }

    private mutating func lateNodeHeard(_ originBegan: Bool) -> Action {
        guard case .race(let lane) = state else { preconditionFailure("no node is late") }
        guard !originBegan else {
            state = .origin(lane)
            return .dropNode
        }
        state = .node(.working, isSecondAttempt: true)
        return .returnToNode
    }

    private mutating func nodeFailed(_ failure: NodeFailure) -> Action {
        switch state {
        case .node(.asked, isSecondAttempt: false) where failure == .wasDead:
            state = .nodeAgain
            return .changeWay
        case .node: return .changeWay
        case .race(let lane):
            state = .origin(lane)
            return .dropNode
        case .atRest, .nodeAgain, .origin: preconditionFailure("no node is listened to")
        }
    }

    private mutating func nodeLate(_ headBegan: Bool) -> Action {
        switch state {
        case .node(.connecting, _):
            state = .node(.connecting, isSecondAttempt: false)
            return .leaveNode
        case .node(.asked, _) where !headBegan:
            state = .race(.released)
            return .keepNode
        case .node, .atRest, .nodeAgain, .origin, .race: return .none
        }
    }
}
