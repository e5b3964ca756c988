import Access
import EventLoop
import Message
import Routing

extension Snapshot {
    /// The routes for a request, as the rules name them.
    func routes(for request: OwnedRequest) -> RoutePlan {
        routes.routes(
            for: request.access, to: request.origin,
            uri: request.head.method == .connect ? Array(request.origin.endpoint.description.utf8) : request.uri)
    }
}

/// Which way requests go, as far as it depends on what other requests have met.
extension Worker {
    /// The routes for a request. Proxies that failed a moment ago come last.
    func routes(for request: OwnedRequest, _ snapshot: Snapshot) -> RoutePlan {
        let plan = snapshot.routes(for: request)
        guard plan.hasChoice else { return plan }
        let now = Duration.nanoseconds(Int64(clamping: loop.now.nanoseconds))
        return shared.nextProxies.withLock { health in
            plan.deferring { route in
                guard case .proxy(let proxy) = route else { return false }
                return health.isDown(proxy, now: now)
            }
        }
    }

    /// A next proxy did what it was asked.
    func noteSuccess(of proxy: NextProxy) {
        guard shared.nextProxies.withLock({ $0.succeeded(proxy) }) else { return }
        Diagnostics.info("the next proxy \(proxy) works again")
    }

    /// A next proxy failed. Requests with another route take that one for a while.
    func noteFailure(of proxy: NextProxy, _ failure: NextProxyFailure) {
        counters.add(.nextProxyFailures)
        let now = Duration.nanoseconds(Int64(clamping: loop.now.nanoseconds))
        guard shared.nextProxies.withLock({ $0.failed(proxy, failure, now: now, wallTime: wallTime) }) else { return }
        Diagnostics.warning("the next proxy \(proxy) does not work: \(failure)")
    }
}

extension Shared {
    /// Why a request must not get a connection to the address; nil if it may. The configuration itself names next proxies, so the rules for
    /// destinations do not apply to them.
    func objection(
        to request: AccessRequest, address: IPAddress, port: UInt16, of addressee: Opening.Addressee,
        _ snapshot: Snapshot
    ) -> Denial? {
        if addressee == .destination, let denial = snapshot.access.mayDial(request, address: address) { return denial }
        guard isAdmin(address, port: port) else { return nil }
        return Denial(reason: .privateDestination, text: "the admin server cannot be reached through the proxy")
    }
}
