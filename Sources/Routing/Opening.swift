package import Access
package import Message

/// What a connection is opened for.
package struct OpeningGoal: Equatable, Sendable {
    package enum Use: Equatable, Sendable {
        /// Requests in plain text.
        case plain
        /// Requests inside TLS. The certificate must have the name, which is sent as SNI (RFC 6066 §3).
        case secured(serverName: String)
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

    /// The host and port that are dialled: the origin, or the next proxy.
    package var dialled: Endpoint {
        switch route {
        case .direct, .builtIn: destination
        case .proxy(let proxy): proxy.endpoint
        }
    }
}

/// The machine of opening a connection, for a fetch or a tunnel. Its driver reports events, and performs the actions that are returned.
///
/// ```
/// resolving ─▶ permitting ─▶ connecting ─▶ [securing the proxy] ─▶ [asking the proxy] ─▶ [securing the origin] ─▶ ready
///     └──────────────┴─────────────┴────────────────┴──────────────────────┴─────────────────────┴─▶ failed
/// ```
///
/// The origin inside this process is connected to at once. Permission cannot be skipped for any other: `connect` names only addresses that `permit` asked about and that the answer allows. So a name that
/// resolves to a private address opens nothing (DNS rebinding).
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
        /// The proxy's final answer to CONNECT.
        case proxyAnswered(status: UInt16)
        /// The proxy's answer is not HTTP.
        case proxyUnintelligible
        case closed
        case timedOut
        case cancelled
    }

    /// What the driver does next.
    package enum Action: Equatable, Sendable {
        /// Resolve the host: `resolved` or `unresolved` follows.
        case resolve(host: String)
        /// Ask the access rules about each address: `judged` follows.
        case permit([IPAddress], port: UInt16)
        /// Connect to one of the addresses: `connected` or `unreachable` follows.
        case connect([IPAddress], port: UInt16)
        /// Connect to the origin inside this process: `connected` or `unreachable` follows. It needs no address, and no permission.
        case connectBuiltIn
        /// Do a TLS handshake: `secured`, `insecure` or `closed` follows.
        case secure(serverName: String)
        /// Send CONNECT for this endpoint: `proxyAnswered`, `proxyUnintelligible` or `closed` follows.
        case askProxy(Endpoint)
        /// The connection is open.
        case ready
        /// The connection could not be opened.
        case fail(OpeningFailure)
        /// Nothing: the opening has ended.
        case nothing
    }

    private enum State {
        case idle
        case resolving
        case permitting([IPAddress])
        case connecting
        case securingProxy
        case askingProxy
        case securingOrigin
        case ready
        case failed
    }

    package let goal: OpeningGoal
    private var state = State.idle

    package init(_ goal: OpeningGoal) { self.goal = goal }

    /// Takes an event and returns what the driver does next. Traps if the event cannot occur in the present state.
    package mutating func on(_ event: Event) -> Action {
        switch state {
        case .idle: onIdle(event)
        case .resolving: onResolving(event)
        case .permitting(let addresses): onPermitting(addresses, event)
        case .connecting: onConnecting(event)
        case .securingProxy: onSecuring(event) { $0.afterProxySecured() }
        case .askingProxy: onAskingProxy(event)
        case .securingOrigin: onSecuring(event) { $0.becomeReady() }
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
            state = .resolving
            return .resolve(host: goal.dialled.host)
        case .cancelled:
            return end()
        case .resolved, .unresolved, .judged, .connected, .unreachable, .secured, .insecure, .proxyAnswered,
            .proxyUnintelligible, .closed, .timedOut:
            preconditionFailure("\(event) before the opening began")
        }
    }

    private mutating func onResolving(_ event: Event) -> Action {
        switch event {
        case .resolved(let addresses):
            guard !addresses.isEmpty else { return fail(.nameNotFound) }
            state = .permitting(addresses)
            return .permit(addresses, port: goal.dialled.port)
        case .unresolved(.notFound): return fail(.nameNotFound)
        case .unresolved(.timedOut), .timedOut: return fail(.nameTimeout)
        case .cancelled: return end()
        case .begin, .judged, .connected, .unreachable, .secured, .insecure, .proxyAnswered, .proxyUnintelligible,
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
            state = .connecting
            return .connect(permitted, port: goal.dialled.port)
        case .cancelled: return end()
        case .begin, .resolved, .unresolved, .connected, .unreachable, .secured, .insecure, .proxyAnswered,
            .proxyUnintelligible, .closed, .timedOut:
            preconditionFailure("\(event) while permission is asked")
        }
    }

    private mutating func onConnecting(_ event: Event) -> Action {
        switch event {
        case .connected: return afterConnect()
        case .unreachable(let failure): return fail(.unreachable(failure))
        case .timedOut: return fail(.unreachable(.timedOut))
        case .cancelled: return end()
        case .begin, .resolved, .unresolved, .judged, .secured, .insecure, .proxyAnswered, .proxyUnintelligible,
            .closed:
            preconditionFailure("\(event) while connecting")
        }
    }

    private mutating func onSecuring(_ event: Event, then next: (inout Opening) -> Action) -> Action {
        switch event {
        case .secured: return next(&self)
        case .insecure(let failure): return fail(.insecure(failure))
        case .closed: return fail(.unreachable(.terminated))
        case .timedOut: return fail(.unreachable(.timedOut))
        case .cancelled: return end()
        case .begin, .resolved, .unresolved, .judged, .connected, .unreachable, .proxyAnswered, .proxyUnintelligible:
            preconditionFailure("\(event) in a TLS handshake")
        }
    }

    private mutating func onAskingProxy(_ event: Event) -> Action {
        switch event {
        case .proxyAnswered(let status):
            // RFC 9110 §9.3.6: any 2xx means that the tunnel is open.
            guard (200...299).contains(status) else { return fail(.proxyRefused(status: status)) }
            return afterTunnel()
        case .proxyUnintelligible: return fail(.proxyUnintelligible)
        case .closed: return fail(.unreachable(.terminated))
        case .timedOut: return fail(.unreachable(.timedOut))
        case .cancelled: return end()
        case .begin, .resolved, .unresolved, .judged, .connected, .unreachable, .secured, .insecure:
            preconditionFailure("\(event) while the proxy is asked for a tunnel")
        }
    }

    /// The opening has ended. An event that the driver had under way is ignored.
    private func onEnded(_ event: Event) -> Action {
        switch event {
        case .begin: preconditionFailure("an opening begins once")
        case .resolved, .unresolved, .judged, .connected, .unreachable, .secured, .insecure, .proxyAnswered,
            .proxyUnintelligible, .closed, .timedOut, .cancelled:
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
            guard proxy.isSecured else { return afterProxySecured() }
            state = .securingProxy
            return .secure(serverName: proxy.endpoint.host)
        }
    }

    /// The connection to the proxy is ready. The proxy forwards requests in plain text; for everything else it must open a tunnel.
    private mutating func afterProxySecured() -> Action {
        if case .plain = goal.use { return becomeReady() }
        state = .askingProxy
        return .askProxy(goal.destination)
    }

    /// The connection leads to the origin.
    private mutating func afterTunnel() -> Action {
        guard case .secured(let serverName) = goal.use else { return becomeReady() }
        state = .securingOrigin
        return .secure(serverName: serverName)
    }

    private mutating func becomeReady() -> Action {
        state = .ready
        return .ready
    }

    private mutating func fail(_ failure: OpeningFailure) -> Action {
        state = .failed
        return .fail(failure)
    }

    private mutating func end() -> Action {
        state = .failed
        return .nothing
    }
}
