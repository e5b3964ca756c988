import EventLoop
import Routing
import Origins
import Transport

/// Opens the connection for a tunnel by one route after the other, until one works or none is left.
///
/// It calls its owner like a `LinkOpener`.
final class TunnelDialler: LinkOpenerOwner {
    private let worker: Worker
    private let snapshot: Snapshot
    private let request: OwnedRequest
    private let terms: OriginTerms
    private unowned let owner: any LinkOpenerOwner
    private enum Stage {
        case idle
        /// A PAC file is asked. The timer has the time limit.
        case waiting(RouteWait, Timer)
        case opening(LinkOpener)
    }
    private var stage = Stage.idle
    /// The routes that have not failed. `direct` before they are known.
    private var plan = RoutePlan.direct

    init(worker: Worker, snapshot: Snapshot, for request: OwnedRequest, owner: any LinkOpenerOwner) {
        self.worker = worker
        self.snapshot = snapshot
        self.request = request
        self.owner = owner
        terms = snapshot.origins.terms(for: request.access)
    }

    /// Whether the connection that was opened leads to the host itself, and not to a next proxy.
    var isDirect: Bool { plan.current == .direct }

    /// Starts. If all routes fail at once, returns the reason and does not call the owner.
    func begin() -> OpeningFailure? {
        switch worker.way(for: request, snapshot) {
        case .plan(let plan):
            self.plan = plan
            return dial()
        case .unknown(let choice):
            waitForRoutes(choice)
            return nil
        case .refused: return .routeUnknown
        }
    }

    private func waitForRoutes(_ choice: ScriptedChoice) {
        let wait = worker.ask(choice, snapshot, request.id) { [unowned self] plan in routesDecided(plan) }
        let timer = Timer { [unowned self] in
            worker.counters.add(.timeouts)
            cancel()
            owner.openingFailed(.routeUnknown)
        }
        stage = .waiting(wait, timer)
        worker.loop.timers.schedule(timer, after: terms.connect)
    }

    private func routesDecided(_ plan: RoutePlan?) {
        guard case .waiting(_, let timer) = stage else { preconditionFailure("a wait that was cancelled calls nobody") }
        worker.loop.timers.cancel(timer)
        stage = .idle
        guard let plan else { return owner.openingFailed(.routeUnknown) }
        self.plan = plan
        if let failure = dial() { owner.openingFailed(failure) }
    }

    private func dial() -> OpeningFailure? {
        while true {
            let goal = OpeningGoal(request.origin.endpoint, for: .tunnel, over: plan.current)
            let opener = LinkOpener(
                worker: worker, snapshot: snapshot, goal: goal, timeout: terms.connect,
                dialling: terms.dialling, for: request, owner: self
            )
            stage = .opening(opener)
            guard let failure = opener.begin() else { return nil }
            guard plan.failOver(after: failure) else { return failure }
            worker.counters.add(.routesFailedOver)
        }
    }

    /// Stops. The owner is not called afterwards.
    func cancel() {
        let was = stage
        stage = .idle
        switch was {
        case .idle: break
        case .waiting(let wait, let timer):
            worker.loop.timers.cancel(timer)
            worker.cancel(wait)
        case .opening(let opener): opener.cancel()
        }
    }

    func opened(_ transport: consuming Transport, at address: SocketAddress, early: [UInt8]) {
        worker.debug(.connections, request.id, "tunnel to \(request.origin.endpoint): opened to \(address)")
        owner.opened(transport, at: address, early: early)
    }

    func openingFailed(_ failure: OpeningFailure) {
        worker.debug(.connections, request.id, "tunnel to \(request.origin.endpoint): not opened: \(failure)")
        guard plan.failOver(after: failure) else { return owner.openingFailed(failure) }
        worker.counters.add(.routesFailedOver)
        worker.debug(.routes, request.id, "tunnel to \(request.origin.endpoint): \(failure), next \(plan.current)")
        if let failure = dial() { owner.openingFailed(failure) }
    }
}
