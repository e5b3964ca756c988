package import Access
package import Message

/// What a connection is opened for.
package struct OpeningGoal: Equatable, Sendable {
    package enum Use: Equatable, Sendable {
        /// Requests in plain text.
        case plain
        /// Requests inside TLS. The certificate must have the name, which is sent as SNI (RFC 6066 §3).
        case secured(serverName: String, TLSProfile = .general)
        /// Bytes that a client chooses (CONNECT).
        case tunnel
    }
    /// The host and port that the connection leads to in the end.
    package let destination: Endpoint
    package let use: Use
    package let route: Route

    package init(_ destination: Endpoint, for use: Use, over route: Route = .direct) {
        self.destination = destination
        self.use = use
        self.route = route
    }

    /// The next proxy, if one is dialled.
    package var proxy: NextProxy? {
        if case .proxy(let proxy) = route { return proxy }
        return nil
    }

    /// The addresses that the destination itself stands for, if a proxy would resolve it: an address, or the addresses of this machine.
    /// Names that a resolver looks up have none here.
    package var addressesBehindProxy: [IPAddress] {
        guard proxy != nil else { return [] }
        if let literal = IPAddress(strict: destination.host.utf8) { return [literal] }
        let name = destination.host
        guard name == "localhost" || name.hasSuffix(".localhost") else { return [] }
        return [IPAddress(v4: 0x7F00_0001), IPAddress(v6: 0, low: 1)]
    }

    /// The host and port that are dialled: the origin, or the next proxy.
    package var dialled: Endpoint {
        switch route {
        case .direct, .builtIn: destination
        case .proxy(let proxy): proxy.endpoint
        case .peer(let peer): peer.endpoint
        }
    }

    /// Whose addresses are judged. The configuration itself names next proxies and peers.
    var addressee: Opening.Addressee {
        switch route {
        case .direct, .builtIn: .destination
        case .proxy, .peer: .configured
        }
    }
}

/// The machine of opening a connection, for a fetch or a tunnel. Its driver reports events, and performs the actions that are returned.
///
/// ```
/// [judging] ─▶ resolving ─▶ permitting ─▶ connecting ─▶ [securing the proxy] ─▶ [asking the proxy] ─▶ [securing the origin] ─▶ ready
///                                              ▲                                    │      ▲  │
///                                              └──────── challenged, closed ────────┘      └──┘ challenged
///     └────────────┴────────────┴─────────────┴────────────────┴──────────────────────┴─────────────────────┴─▶ failed
/// ```
///
/// The origin inside this process is connected to at once. Permission cannot be skipped for any other: `connect` names only addresses
/// that `permit` asked about and that the answer allows. So a name that resolves to a private address opens nothing (DNS rebinding).
///
/// A next proxy resolves the names of origins, so their addresses are not known here. An address that a request names itself is judged before
/// the proxy is dialled, and a name that stands for this machine (RFC 6761 §6.3) like the address of this machine: otherwise a client
/// could reach the networks of the proxy by asking for 127.0.0.1.
package struct Opening {
    /// What the driver reports.
    package enum Event: Equatable, Sendable {
        /// The first event.
        case begin
        case resolved([IPAddress])
        case unresolved(NameFailure)
        /// The answer to `permit`: one for each address, in the same order. Nil: the address may be dialled.
        case judged([Denial?])
        case connected
        case unreachable(ConnectFailure)
        /// The TLS handshake succeeded.
        case secured
        case insecure(SecurityFailure)
        /// The proxy has opened a tunnel. `early`: bytes have come through it already.
        case tunnelOpened(early: Bool)
        case tunnelRefused(NextProxyFailure)
        /// The proxy asks for credentials, and there is an answer. `persists`: its connection can carry it. If not, the driver has closed it.
        case tunnelChallenged(persists: Bool)
        case closed
        case timedOut
        case cancelled
    }

    /// What the driver does next.
    package enum Action: Equatable, Sendable {
        /// Resolve the host: `resolved` or `unresolved` follows.
        case resolve(host: String)
        /// Ask the access rules about each address: `judged` follows.
        case permit([IPAddress], port: UInt16, of: Addressee)
        /// Connect to one of the addresses: `connected` or `unreachable` follows.
        case connect([IPAddress], port: UInt16)
        /// Connect to the origin inside this process: `connected` or `unreachable` follows. It needs no address, and no permission.
        case connectBuiltIn
        /// Do a TLS handshake with another node of the fleet: `secured`, `insecure` or `closed` follows.
        case securePeer(FleetPeer)
        /// Do a TLS handshake: `secured`, `insecure` or `closed` follows. The profiles of rules are for origins; a proxy gets the general one.
        case secure(serverName: String, TLSProfile = .general)
        /// Ask the proxy for a tunnel to this endpoint, with what proves Larder to it: `tunnelOpened`, `tunnelRefused`, `tunnelChallenged` or
        /// `closed` follows.
        case askProxy(NextProxy, Endpoint)
        /// The connection is open.
        case ready
        /// The connection could not be opened.
        case fail(OpeningFailure)
        /// Nothing: the opening has ended.
        case nothing
    }

    /// Whose addresses are judged. The configuration itself names next proxies and peers, so the rules for destinations do not apply to them.
    package enum Addressee: Equatable, Sendable { case destination, configured }

    private enum State {
        case idle
        case judging
        case resolving
        case permitting([IPAddress])
        case connecting
        case securingProxy(NextProxy)
        case askingProxy(NextProxy)
        case securingOrigin
        case securingPeer
        case ready
        case failed
    }

    package let goal: OpeningGoal
    private var state = State.idle
    /// Those that may be dialled.
    private var permitted: [IPAddress] = []
    private var challengeCount = 0
    /// How many challenges of a proxy are answered: one may only be the news that there is a log-in, and another that a nonce is too old.
    package static let challengesMax = 4

    package init(_ goal: OpeningGoal) { self.goal = goal }

    /// Takes an event and returns what the driver does next. Traps if the event cannot occur in the present state.
    package mutating func on(_ event: Event) -> Action {
        switch state {
        case .idle: onIdle(event)
        case .judging: onJudging(event)
        case .resolving: onResolving(event)
        case .permitting(let addresses): onPermitting(addresses, event)
        case .connecting: onConnecting(event)
        case .securingProxy(let proxy): onSecuring(event, with: proxy) { $0.askProxy(proxy) }
        case .askingProxy(let proxy): onAskingProxy(proxy, event)
        case .securingOrigin, .securingPeer: onSecuring(event) { $0.becomeReady() }
        case .ready, .failed: onEnded(event)
        }
    }

    // MARK: the legs

    private mutating func onIdle(_ event: Event) -> Action {
        switch event {
        case .begin:
            if case .builtIn = goal.route {
                state = .connecting
                return .connectBuiltIn
            }
            let addresses = goal.addressesBehindProxy
            guard addresses.isEmpty else {
                state = .judging
                return .permit(addresses, port: goal.destination.port, of: .destination)
            }
            return resolve()
        case .cancelled:
            return end()
        case .resolved, .unresolved, .judged, .connected, .unreachable, .secured, .insecure, .tunnelOpened,
            .tunnelRefused, .tunnelChallenged, .closed, .timedOut:
            preconditionFailure("\(event) before the opening began")
        }
    }

    private mutating func onJudging(_ event: Event) -> Action {
        switch event {
        case .judged(let verdicts):
            if let denial = verdicts.compactMap({ $0 }).first { return fail(.denied(denial)) }
            return resolve()
        case .cancelled: return end()
        case .begin, .resolved, .unresolved, .connected, .unreachable, .secured, .insecure, .tunnelOpened,
            .tunnelRefused, .tunnelChallenged, .closed, .timedOut:
            preconditionFailure("\(event) while the destination is judged")
        }
    }

    private mutating func resolve() -> Action {
        state = .resolving
        return .resolve(host: goal.dialled.host)
    }

    private mutating func onResolving(_ event: Event) -> Action {
        switch event {
        case .resolved(let addresses):
            guard !addresses.isEmpty else { return fail(NameFailure.notFound) }
            state = .permitting(addresses)
            return .permit(addresses, port: goal.dialled.port, of: goal.addressee)
        case .unresolved(let failure): return fail(failure)
        case .timedOut: return fail(NameFailure.timedOut)
        case .cancelled: return end()
        case .begin, .judged, .connected, .unreachable, .secured, .insecure, .tunnelOpened, .tunnelRefused,
            .tunnelChallenged,
            .closed:
            preconditionFailure("\(event) while the name is looked up")
        }
    }

    private mutating func onPermitting(_ addresses: [IPAddress], _ event: Event) -> Action {
        switch event {
        case .judged(let verdicts):
            precondition(verdicts.count == addresses.count, "each address has one verdict")
            let permitted = zip(addresses, verdicts).filter { $0.1 == nil }.map(\.0)
            guard !permitted.isEmpty else {
                guard let denial = verdicts.first ?? nil else { preconditionFailure("at least one address was judged") }
                return fail(.denied(denial))
            }
            self.permitted = permitted
            return connect()
        case .cancelled: return end()
        case .begin, .resolved, .unresolved, .connected, .unreachable, .secured, .insecure, .tunnelOpened,
            .tunnelRefused, .tunnelChallenged, .closed, .timedOut:
            preconditionFailure("\(event) while permission is asked")
        }
    }

    private mutating func connect() -> Action {
        state = .connecting
        return .connect(permitted, port: goal.dialled.port)
    }

    private mutating func onConnecting(_ event: Event) -> Action {
        switch event {
        case .connected: return afterConnect()
        case .unreachable(let failure): return fail(failure)
        case .timedOut: return fail(ConnectFailure.timedOut)
        case .cancelled: return end()
        case .begin, .resolved, .unresolved, .judged, .secured, .insecure, .tunnelOpened, .tunnelRefused,
            .tunnelChallenged,
            .closed:
            preconditionFailure("\(event) while connecting")
        }
    }

    /// - Parameter proxy: the proxy, if the handshake is with it.
    private mutating func onSecuring(
        _ event: Event, with proxy: NextProxy? = nil, then next: (inout Opening) -> Action
    ) -> Action {
        func failed(_ failure: ConnectFailure) -> OpeningFailure {
            proxy.map { .nextProxy($0, .unreachable(failure)) } ?? .unreachable(failure)
        }
        switch event {
        case .secured: return next(&self)
        case .insecure(let failure): return fail(proxy.map { .nextProxy($0, .insecure(failure)) } ?? .insecure(failure))
        case .closed: return fail(failed(.terminated))
        case .timedOut: return fail(failed(.timedOut))
        case .cancelled: return end()
        case .begin, .resolved, .unresolved, .judged, .connected, .unreachable, .tunnelOpened, .tunnelRefused,
            .tunnelChallenged:
            preconditionFailure("\(event) in a TLS handshake")
        }
    }

    private mutating func onAskingProxy(_ proxy: NextProxy, _ event: Event) -> Action {
        switch event {
        case .tunnelOpened(let early):
            // A server of HTTP or TLS speaks second.
            guard !early || goal.use == .tunnel else { return fail(.nextProxy(proxy, .unintelligible)) }
            return afterTunnel()
        case .tunnelRefused(let failure): return fail(.nextProxy(proxy, failure))
        case .tunnelChallenged(let persists):
            challengeCount += 1
            guard challengeCount <= Opening.challengesMax else { return fail(.nextProxy(proxy, .logIn)) }
            return persists ? askProxy(proxy) : connect()
        case .closed: return fail(.nextProxy(proxy, .unreachable(.terminated)))
        case .timedOut: return fail(.nextProxy(proxy, .unreachable(.timedOut)))
        case .cancelled: return end()
        case .begin, .resolved, .unresolved, .judged, .connected, .unreachable, .secured, .insecure:
            preconditionFailure("\(event) while the proxy is asked for a tunnel")
        }
    }

    /// The opening has ended. An event that the driver had under way is ignored.
    private func onEnded(_ event: Event) -> Action {
        switch event {
        case .begin: preconditionFailure("an opening begins once")
        case .resolved, .unresolved, .judged, .connected, .unreachable, .secured, .insecure, .tunnelOpened,
            .tunnelRefused, .tunnelChallenged, .closed, .timedOut, .cancelled:
            return .nothing
        }
    }

    // MARK: from one leg to the next

    private mutating func afterConnect() -> Action {
        switch goal.route {
        case .direct: return afterTunnel()
        // Nothing leaves the process, so requests for https need no TLS.
        case .builtIn: return becomeReady()
        case .proxy(let proxy):
            guard proxy.kind == .https else { return askProxy(proxy) }
            state = .securingProxy(proxy)
            return .secure(serverName: proxy.endpoint.host)
        case .peer(let peer):
            state = .securingPeer
            return .securePeer(peer)
        }
    }

    /// The connection to the proxy is ready. An HTTP proxy forwards requests in plain text; for everything else it must open a tunnel.
    private mutating func askProxy(_ proxy: NextProxy) -> Action {
        if case .plain = goal.use, !proxy.tunnelsEverything { return becomeReady() }
        state = .askingProxy(proxy)
        return .askProxy(proxy, goal.destination)
    }

    /// The connection leads to the origin.
    private mutating func afterTunnel() -> Action {
        guard case .secured(let serverName, let profile) = goal.use else { return becomeReady() }
        state = .securingOrigin
        return .secure(serverName: serverName, profile)
    }

    private mutating func becomeReady() -> Action {
        state = .ready
        return .ready
    }

    private mutating func fail(_ failure: OpeningFailure) -> Action {
        state = .failed
        return .fail(failure)
    }

    /// The host that is dialled, an origin or a proxy, has no address.
    private mutating func fail(_ failure: NameFailure) -> Action {
        if let proxy = goal.proxy, failure != .tooMany { return fail(.nextProxy(proxy, .unresolved(failure))) }
        switch failure {
        case .notFound: return fail(.nameNotFound)
        case .timedOut: return fail(.nameTimeout)
        case .unasked: return fail(.nameUnasked)
        case .tooMany: return fail(.tooManyNames)
        }
    }

    /// The host that is dialled, an origin or a proxy, cannot be connected to.
    private mutating func fail(_ failure: ConnectFailure) -> Action {
        fail(goal.proxy.map { .nextProxy($0, .unreachable(failure)) } ?? .unreachable(failure))
    }

    private mutating func end() -> Action {
        state = .failed
        return .nothing
    }
}
