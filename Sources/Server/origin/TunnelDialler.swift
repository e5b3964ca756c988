import EventLoop
import Routing

/// Opens the connection for a tunnel by one route after the other, until one works or none is left.
///
/// It calls its owner like a `LinkOpener`.
final class TunnelDialler: LinkOpenerOwner {
    private let worker: Worker
    private let snapshot: Snapshot
    private let request: OwnedRequest
    private let terms: OriginTerms
    private unowned let owner: any LinkOpenerOwner
    private var plan: RoutePlan
    private var opener: LinkOpener?

    init(worker: Worker, snapshot: Snapshot, for request: OwnedRequest, owner: any LinkOpenerOwner) {
        self.worker = worker
        self.snapshot = snapshot
        self.request = request
        self.owner = owner
        terms = snapshot.origins.terms(for: request.access)
        plan = worker.routes(for: request, snapshot)
    }

    /// Starts. If all routes fail at once, returns the reason and does not call the owner.
    func begin() -> OpeningFailure? {
        while true {
            let goal = OpeningGoal(request.origin.endpoint, for: .tunnel, over: plan.current)
            let opener = LinkOpener(
                worker: worker, snapshot: snapshot, goal: goal, timeout: terms.connect,
                dialling: terms.dialling, for: request.access, owner: self
            )
            self.opener = opener
            guard let failure = opener.begin() else { return nil }
            guard plan.failOver(after: failure) else { return failure }
            worker.counters.add(.routesFailedOver)
        }
    }

    /// Stops. The owner is not called afterwards.
    func cancel() {
        opener?.cancel()
        opener = nil
    }

    func opened(_ transport: consuming Transport, at address: SocketAddress, early: [UInt8]) {
        Diagnostics.debug(.connections, "tunnel to \(request.origin.endpoint): opened to \(address)")
        owner.opened(transport, at: address, early: early)
    }

    func openingFailed(_ failure: OpeningFailure) {
        Diagnostics.debug(.connections, "tunnel to \(request.origin.endpoint): not opened: \(failure)")
        guard plan.failOver(after: failure) else { return owner.openingFailed(failure) }
        worker.counters.add(.routesFailedOver)
        Diagnostics.debug(.routes, "tunnel to \(request.origin.endpoint): \(failure), next \(plan.current)")
        if let failure = begin() { owner.openingFailed(failure) }
    }
}
