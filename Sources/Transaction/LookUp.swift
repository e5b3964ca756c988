/// The machine of one request's look-up: where a stored response is looked for, in which order, and how often.
///
/// ```
/// ready ─begin─▶ searching ─missing─▶ loadingHeads ─nothing─▶ askingFleet ─nothing─▶ ended (none)
///                 │ ▲ ▲ ▲ ▲            │  └─▶ awaitingIndex     │
///                 │ │ │ │ └── loaded ──┘         │              │
///                 │ │ │ └─────── loaded ─────────┘              │
///                 │ │ └──────────────── answered ───────────────┘
///                 │ └─── read, or lost ────┐
///                 └──found──▶ [loadingBody] ─▶ ended (with a source)
/// ```
///
/// Memory is searched first. The back store and the fleet answer by bringing responses into memory, which is searched again then. Each of them
/// is asked if all before it had nothing that suits: the back store for heads, then the fleet. The body of the response that is found is
/// read last, if the answer needs it.
///
/// A response can leave memory while something is waited for, and the back store can move it while it is read. Then the back store is
/// asked again, `repeatsMax` times in all. The fleet is asked once, whatever follows.
///
/// It refers to no object outside. The driver keeps the response that it found last, reports facts (`Event`) and performs what is
/// returned (`Action`). It may block, as `Proxy.explain` does, or report a fact when it is known. If the store has changed since a look-up
/// ended, the driver begins again, and places that were asked are not asked a second time.
package struct LookUp: ~Copyable {
    package enum Asker: Sendable {
        case client
        /// Another node of the fleet, which has asked the fleet itself.
        case node
    }

    /// Where the selected response comes from.
    package enum Source: Equatable, Sendable {
        case memory
        /// Its head or its body has been read from the back store, or its body will be.
        case disk
        /// Another node has shared it.
        case fleet
    }

    /// Where the body of a response is.
    package enum BodyPlace: CaseIterable, Sendable {
        /// The answer sends nothing of it, as to HEAD.
        case unneeded
        /// Where it can be sent from at once.
        case atHand
        /// In blocks on the back store, which are read when they are sent.
        case blocks
        /// In one piece on the back store, to be read before the answer begins.
        case whole
    }

    /// What the driver found.
    package enum Event: Sendable {
        /// The first event, and the one after the end, to look once more. `backStore`: the zone has one. `fleet`: this node is in one, and the
        /// key is one that is shared.
        case begin(for: Asker, backStore: Bool, fleet: Bool)
        /// A response in memory suits the request. One of three results of `searchMemory`.
        case found(BodyPlace)
        /// The response that suits is not the one that an index promises. It has left the store.
        case contradicted
        /// No response in memory suits the request.
        case missing
        /// The back store has brought heads into memory, or a thread has tried to.
        case headsLoaded
        /// The back store has no head that memory lacks.
        case noHeads
        /// The index of the back store is not complete.
        case indexLoading
        /// The index of the back store is complete, or the store has ended.
        case indexLoaded
        /// The queue of the back store is full. It answers `loadHeads` or `loadBody`.
        case busy
        /// The fleet has answered, or it has taken too long. What it had is in memory.
        case fleetAnswered
        /// The fleet cannot be asked now.
        case fleetUnavailable
        /// The body of the response can be sent.
        case bodyAtHand
        /// A thread has read the body, if it could. The response may have left memory meanwhile.
        case bodyRead
        /// The body cannot be read. The response has left memory.
        case bodyUnreadable
    }

    /// What the driver does next.
    package enum Action: Equatable, Sendable {
        /// Select a response in memory: `found`, `contradicted` or `missing` follows.
        case searchMemory
        /// Bring the heads of the key from the back store into memory: `headsLoaded`, `noHeads`, `indexLoading` or `busy` follows.
        case loadHeads
        /// Wait until the back store knows what it has: `indexLoaded` follows.
        case awaitIndex
        /// Ask the fleet: `fleetAnswered` or `fleetUnavailable` follows.
        case askFleet
        /// Read the body of the response that was found: `bodyAtHand`, `bodyRead`, `bodyUnreadable` or `busy` follows.
        case loadBody
        /// The response that was found is selected. `source` says where it comes from.
        case report
        /// No stored response suits. What the last search has seen are other variants.
        case reportNone
        /// A response suits, but its body cannot be read soon. The origin is asked as if nothing were stored.
        case reportBusy
    }

    /// What has changed memory just before it is searched.
    private enum Change: Sendable {
        /// Nothing that this look-up has caused.
        case none
        /// Heads came from the back store.
        case heads
        /// A thread has read the body of the response that was found.
        case body
        /// The response that was found has left memory, because its body cannot be read.
        case loss
        /// Responses came from the fleet.
        case fleet
    }

    private enum State: Sendable {
        case ready
        case searching(after: Change)
        case loadingHeads
        case awaitingIndex
        case askingFleet
        case loadingBody
        case ended(Source?)
    }

    /// How often the back store is asked once more, for heads, for a body or when its index is complete, before the look-up goes on without it.
    package static var repeatsMax: UInt8 { 4 }

    private var state = State.ready
    private var mayAskBackStore = true
    private var mayAskFleet = true
    private var repeats: UInt8 = 0

    package init() {}

    /// Where the selected response comes from. Nil if the look-up is under way, or has selected none.
    package var source: Source? { if case .ended(let source) = state { source } else { nil } }

    package var hasBegun: Bool { if case .ready = state { false } else { true } }

    /// Takes an event and returns what the driver does next. Traps if the event cannot occur in the present state.
    package mutating func on(_ event: Event) -> Action {
        switch state {
        case .ready, .ended: atRest(event)
        case .searching(let change): searching(event, after: change)
        case .loadingHeads: loadingHeads(event)
        case .awaitingIndex: awaitingIndex(event)
        case .askingFleet: askingFleet(event)
        case .loadingBody: loadingBody(event)
        }
    }

    private mutating func atRest(_ event: Event) -> Action {
        switch event {
        case .begin(let asker, let backStore, let fleet):
            mayAskBackStore = mayAskBackStore && backStore
            mayAskFleet = mayAskFleet && fleet && asker == .client
            return search(after: .none)
        case .found, .contradicted, .missing, .headsLoaded, .noHeads, .indexLoading, .indexLoaded, .busy,
            .fleetAnswered, .fleetUnavailable, .bodyAtHand, .bodyRead, .bodyUnreadable:
            preconditionFailure("\(event) while nothing is looked for")
        }
    }

    private mutating func searching(_ event: Event, after change: Change) -> Action {
        switch event {
        case .found(let body): return found(body, after: change)
        case .contradicted: return search(after: change)
        case .missing: return missed(after: change)
        case .begin, .headsLoaded, .noHeads, .indexLoading, .indexLoaded, .busy, .fleetAnswered, .fleetUnavailable,
            .bodyAtHand, .bodyRead, .bodyUnreadable:
            preconditionFailure("\(event) while memory is searched")
        }
    }

    private mutating func found(_ body: BodyPlace, after change: Change) -> Action {
        switch body {
        case .unneeded, .atHand: end(.report, from: source(after: change))
        case .blocks: end(.report, from: .disk)
        case .whole: loadBody(after: change)
        }
    }

    private func source(after change: Change) -> Source {
        switch change {
        case .none, .loss: .memory
        case .heads, .body: .disk
        case .fleet: .fleet
        }
    }

    private mutating func loadBody(after change: Change) -> Action {
        switch change {
        case .none, .heads, .fleet: break
        // Another request has brought the response in anew, or another response suits as well.
        case .body, .loss: guard mayRepeat() else { return end(.reportBusy) }
        }
        state = .loadingBody
        return .loadBody
    }

    private mutating func missed(after change: Change) -> Action {
        switch change {
        case .none, .fleet: goOn()
        // Either nothing that was loaded suits, and the back store says so next. Or what suits has left memory already.
        case .heads, .body, .loss: mayAskBackStore || !mayRepeat() ? goOn() : loadHeads()
        }
    }

    private mutating func loadingHeads(_ event: Event) -> Action {
        switch event {
        case .headsLoaded: return search(after: .heads)
        case .noHeads, .busy: return goOn()
        case .indexLoading:
            guard mayRepeat() else { return goOn() }
            mayAskBackStore = true
            state = .awaitingIndex
            return .awaitIndex
        case .begin, .found, .contradicted, .missing, .indexLoaded, .fleetAnswered, .fleetUnavailable, .bodyAtHand,
            .bodyRead, .bodyUnreadable:
            preconditionFailure("\(event) while heads are loaded")
        }
    }

    private mutating func awaitingIndex(_ event: Event) -> Action {
        switch event {
        case .indexLoaded: return search(after: .none)
        case .begin, .found, .contradicted, .missing, .headsLoaded, .noHeads, .indexLoading, .busy, .fleetAnswered,
            .fleetUnavailable, .bodyAtHand, .bodyRead, .bodyUnreadable:
            preconditionFailure("\(event) while the index is awaited")
        }
    }

    private mutating func askingFleet(_ event: Event) -> Action {
        switch event {
        case .fleetAnswered: return search(after: .fleet)
        case .fleetUnavailable: return goOn()
        case .begin, .found, .contradicted, .missing, .headsLoaded, .noHeads, .indexLoading, .indexLoaded, .busy,
            .bodyAtHand, .bodyRead, .bodyUnreadable:
            preconditionFailure("\(event) while the fleet is asked")
        }
    }

    private mutating func loadingBody(_ event: Event) -> Action {
        switch event {
        case .bodyAtHand: return end(.report, from: .disk)
        case .bodyRead: return search(after: .body)
        case .bodyUnreadable: return search(after: .loss)
        case .busy: return end(.reportBusy)
        case .begin, .found, .contradicted, .missing, .headsLoaded, .noHeads, .indexLoading, .indexLoaded,
            .fleetAnswered, .fleetUnavailable:
            preconditionFailure("\(event) while a body is read")
        }
    }

    // MARK: steps

    private mutating func search(after change: Change) -> Action {
        state = .searching(after: change)
        return .searchMemory
    }

    /// Nothing that has been asked so far has a response that suits: asks the next place.
    private mutating func goOn() -> Action {
        if mayAskBackStore { return loadHeads() }
        guard mayAskFleet else { return end(.reportNone) }
        mayAskFleet = false
        state = .askingFleet
        return .askFleet
    }

    private mutating func loadHeads() -> Action {
        mayAskBackStore = false
        state = .loadingHeads
        return .loadHeads
    }

    private mutating func end(_ action: Action, from source: Source? = nil) -> Action {
        state = .ended(source)
        return action
    }

    private mutating func mayRepeat() -> Bool {
        guard repeats < LookUp.repeatsMax else { return false }
        repeats += 1
        return true
    }
}
