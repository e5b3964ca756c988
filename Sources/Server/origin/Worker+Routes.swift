import Accounts
import Learning
import Access
import Caching
import EventLoop
import Forwarding
import Message
import Routing
import Transaction

extension Snapshot {
    /// Whether a request is for the origin inside this process. Asked for every request: the port comes first, because the name of an origin and
    /// the table are copied for a call.
    func isBuiltIn(_ request: OwnedRequest) -> Bool {
        let port = request.head.target.port
        return (port == 443 || port == 80) && routes.isBuiltIn(request.origin)
    }

    /// Which way a request goes, as the rules say it.
    func choice(for request: OwnedRequest) -> RouteChoice {
        routes.choice(
            for: request.access, to: request.origin,
            uri: request.head.method == .connect ? Array(request.origin.endpoint.description.utf8) : request.uri)
    }
}

/// Which way requests go, as far as it depends on what other requests have met.
extension Worker {
    /// The routes for a request, if they are known at once. Proxies that failed a moment ago come last.
    func way(for request: OwnedRequest, _ snapshot: Snapshot) -> RouteWay {
        guard snapshot.hasRoutes else {
            return .plan(snapshot.isBuiltIn(request) ? RoutePlan(.builtIn) : .direct)
        }
        switch snapshot.choice(for: request) {
        case .plan(let plan):
            guard plan.rule != nil else { return .plan(plan) }
            return .plan(inOrderOfHealth(plan, to: request.origin, request.id))
        case .script(let choice):
            guard let verdict = snapshot.script(from: choice.source).knownVerdict(on: choice.origin) else {
                return .unknown(choice)
            }
            return plan(choice, verdict, request.id).map { .plan($0) } ?? .refused
        }
    }

    /// The routes of a rule, those that failed a moment ago last.
    func inOrderOfHealth(_ plan: RoutePlan, to origin: Origin, _ id: RequestID?) -> RoutePlan {
        debug(.routes, id, "\(origin): routes[\(plan.rule ?? 0)], \(plan.current)")
        guard plan.hasChoice else { return plan }
        let now = loop.now.sinceStart
        return plan.deferring { route in
            guard case .proxy(let proxy) = route else { return false }
            return shared.nextProxies.isDown(proxy, now: now, .nextProxy)
        }
    }

    /// A next proxy did what it was asked.
    func noteSuccess(of proxy: NextProxy) {
        guard shared.nextProxies.succeeded(proxy, .nextProxy) else { return }
        Diagnostics.info("the next proxy \(proxy) works again")
    }

    /// A next proxy failed. Requests with another route take that one for a while.
    func noteFailure(of proxy: NextProxy, _ failure: NextProxyFailure) {
        counters.add(.nextProxyFailures)
        let (now, wallTime) = (loop.now.sinceStart, wallTime)
        guard shared.nextProxies.failed(proxy, failure, now: now, wallTime: wallTime, .nextProxy) else { return }
        Diagnostics.warning("the next proxy \(proxy) does not work: \(failure)")
    }

    // MARK: origins

    /// Whether nothing should be tried, because the origin has not accepted connections lately.
    func isUnavailable(_ goal: OpeningGoal, _ snapshot: Snapshot) -> Bool {
        guard case .direct = goal.route, let terms = snapshot.originCircuit else { return false }
        let now = loop.now.sinceStart
        return shared.originHealth.isDown(goal.destination, now: now, terms)
    }

    func noteSuccess(of goal: OpeningGoal, _ snapshot: Snapshot) {
        guard case .direct = goal.route, let terms = snapshot.originCircuit,
            shared.originHealth.succeeded(goal.destination, terms)
        else { return }
        Diagnostics.info("\(goal.destination) accepts connections again")
    }

    /// A connection that is refused costs no time, so nothing is gained if it is not tried. One that does not come in time does.
    func noteFailure(of goal: OpeningGoal, _ failure: ConnectFailure, _ snapshot: Snapshot) {
        guard case .direct = goal.route, failure == .timedOut, let terms = snapshot.originCircuit else { return }
        let (now, wallTime) = (loop.now.sinceStart, wallTime)
        guard shared.originHealth.failed(goal.destination, failure, now: now, wallTime: wallTime, terms) else { return }
        Diagnostics.warning(
            "\(goal.destination) does not accept connections in time: requests to it fail at once for a while")
    }

    /// Since when what the refusal is about has failed. Nil if the refusal is about something else, or it works by now.
    func outage(of request: OwnedRequest, for refusal: Refusal, _ snapshot: Snapshot) -> Outage? {
        switch refusal {
        case .originUnavailable: shared.outage(of: request.origin, now: loop.now.sinceStart, snapshot)
        case .nameServersSilent: shared.silence(about: request.host, now: loop.now)
        default: nil
        }
    }
}

extension Shared {
    func outage(of origin: Origin, now: Duration, _ snapshot: Snapshot) -> Outage? {
        guard let terms = snapshot.originCircuit,
            let entry = originHealth.snapshot.entry(of: origin.endpoint, now: now, terms), entry.isDown
        else { return nil }
        return Outage(since: entry.since, pauseLeft: entry.pauseLeft)
    }

    /// Whether an origin wants no requests for a while because of what `handling` takes for a failure, so that what is stored stands in.
    func letsStandIn(for origin: Endpoint, _ handling: CacheHandling, now: Duration) -> Bool {
        originPauses.withLock { $0.letStandIn(for: origin, now: now, countsAsFailure: handling.countsAsFailure) }
    }

    /// Since when the name servers have been silent about a name. Nil if they have not, as far as known.
    func silence(about host: String, now: MonotonicTime) -> Outage? {
        nameServers.entry(of: host, at: now).map { Outage(.nameServer, since: $0.since, pauseLeft: $0.pauseLeft) }
    }

    /// Why a request must not get a connection to the address; nil if it may. The configuration itself names next proxies, so the rules for
    /// destinations do not apply to them.
    ///
    /// - Parameter route: the one that the request takes. Through a next proxy, that proxy knows what it is itself.
    func objection(
        to request: AccessRequest, address: IPAddress, port: UInt16, of addressee: Opening.Addressee, over route: Route,
        _ snapshot: Snapshot, learning: ActiveJobs?, now: Moment
    ) -> Denial? {
        if addressee == .destination,
            let denial = snapshot.denial(of: address, for: request, learning: learning, now: now)
        {
            return denial
        }
        if isAdmin(address, port: port) {
            return Denial(reason: .adminServer, text: "the admin server cannot be reached through the proxy")
        }
        if isOwnListener(address, port: port) {
            return Denial(reason: .ownListener, text: "\(address):\(port) is an address of the proxy itself")
        }
        guard route == .direct, snapshot.isNextProxy(request.destination, address, port: port),
            !snapshot.access.opens(address, to: request)
        else { return nil }
        return Denial(
            reason: .nextProxy, text: "\(request.host):\(port) is a next proxy, and no rule names its address")
    }
}
