package import Access
package import Message

/// What a connection is opened for.
package struct OpeningGoal: Equatable, Sendable {
    package enum Use: Equatable, Sendable {
        /// Requests in plain text.
        case plain
        /// Requests inside TLS. The name is what the certificate must show and what SNI says (RFC 6066 §3).
        case secured(serverName: String)
        /// Bytes of a client's own choice (CONNECT).
        case tunnel
    }
    /// Where the connection has to lead.
    package let destination: Endpoint
    package let use: Use
    package let route: Route

    package init(_ destination: Endpoint, for use: Use, over route: Route = .direct) {
        self.destination = destination
        self.use = use
        self.route = route
    }

    /// What is dialled: the origin, or the proxy on the way to it.
    package var dialled: Endpoint {
        switch route {
        case .direct: destination
        case .proxy(let proxy): proxy.endpoint
        }
    }
}

/// Opening a connection, for a fetch or for a tunnel: a machine that its driver feeds events and whose actions it
/// carries out.
///
/// ```
/// resolving ─▶ permitting ─▶ connecting ─▶ [securing the proxy] ─▶ [asking the proxy] ─▶ [securing the origin] ─▶ ready
///     └──────────────┴─────────────┴────────────────┴──────────────────────┴─────────────────────┴─▶ failed
/// ```
///
/// Permission is a leg that nothing goes around: `connect` names only addresses that `permit` asked about and that the
/// answer allows. A name that leads to a private address therefore opens nothing (DNS rebinding).
package struct Opening {
    package enum Event: Equatable, Sendable {
        case begin
        case resolved([IPAddress])
        case unresolved(NameFailure)
        /// The answer to `permit`: one verdict for each address, in the same order; nil allows it.
        case judged([Denial?])
        case connected
        case unreachable(ConnectFailure)
        /// The TLS handshake is done.
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

    package enum Action: Equatable, Sendable {
        case resolve(host: String)
        case permit([IPAddress], port: UInt16)
        case connect([IPAddress], port: UInt16)
        case secure(serverName: String)
        /// Send CONNECT for this endpoint and read the answer's head.
        case askProxy(Endpoint)
        case ready
        case fail(OpeningFailure)
        /// The opening is over already; there is nothing to do.
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
            precondition(verdicts.count == addresses.count, "each address has its verdict")
            let permitted = zip(addresses, verdicts).filter { $0.1 == nil }.map(\.0)
            guard !permitted.isEmpty else {
                guard let denial = verdicts.first ?? nil else { preconditionFailure("there was an address to judge") }
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
            // RFC 9110 §9.3.6: any 2xx means that the tunnel is there.
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

    /// The driver may have had an event under way when the opening ended.
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
        case .proxy(let proxy):
            guard proxy.isSecured else { return afterProxySecured() }
            state = .securingProxy
            return .secure(serverName: proxy.endpoint.host)
        }
    }

    /// The proxy takes requests in plain text as they are; for everything else it has to open a tunnel.
    private mutating func afterProxySecured() -> Action {
        if case .plain = goal.use { return becomeReady() }
        state = .askingProxy
        return .askProxy(goal.destination)
    }

    /// Bytes that are sent now arrive at the origin.
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
