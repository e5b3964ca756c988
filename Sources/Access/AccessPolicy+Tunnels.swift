import Message
package import Rules

/// What the rules say about opening tunnels (TLS interception).
extension AccessPolicy {
    /// `intercept` of a rule.
    ///
    /// - Parameter number: the rule of `Verdict.allow`; nil if no rule matched.
    package func intercept(byRule number: Int?) -> Bool? {
        number.flatMap(rule(numbered:))?.intercept
    }

    /// Whether the rules say the same about every request that could be sent inside this tunnel as about the tunnel itself, so that
    /// nothing is lost if Larder does not see the requests.
    ///
    /// False if any rule up to the one that decides asks for a path, a method or another thing that is inside. The client of such a tunnel
    /// could do what the rule denies.
    package func mayRemainTunnel(_ request: AccessRequest) -> Bool {
        let address = request.destination.address
        // The address may be unknown: then a rule may decide, and so may those behind it.
        // A CONNECT that is allowed has met every `authenticate` rule.
        func holds(_ rule: AccessRule) -> Bool? {
            rule.effect == .authenticate ? false : rule.outside.hold(request, address: address, paths: .asSent)
        }
        let decides = firstRule(for: request, address: address) { holds($0) == true }
        let looksInside = firstRule(for: request, address: address, below: decides.map { $0 + 1 } ?? .max) {
            $0.looksInside && holds($0) != false
        }
        return looksInside == nil
    }
}

extension AccessRule {
    var looksInside: Bool {
        !conditions.paths.isEmpty || !conditions.methods.isEmpty || !conditions.schemes.isEmpty
            || conditions.details.lookInside || !conditions.details.userAgents.isEmpty
    }

    /// The conditions that a tunnel as a whole can be compared with.
    var outside: RuleConditions {
        guard looksInside else { return conditions }
        var outside = conditions
        outside.paths = []
        outside.methods = []
        outside.schemes = []
        let (times, zone) = (outside.details.times, outside.details.zone)
        outside.details = DetailConditions()
        outside.details.times = times
        outside.details.zone = zone
        return outside
    }
}

/// What the rules say about tunnels whose bytes are passed on unread.
extension AccessPolicy {
    /// The port on which nothing but TLS is spoken (RFC 9110 §4.2.2).
    private static let httpsPort: UInt16 = 443

    /// What the client must send first in the tunnel.
    ///
    /// `tunnel` of the rule that allows it decides. Where it says nothing, port 443 is for TLS. Where rules decide by the host, a tunnel to another
    /// port must show that it does not carry requests for other hosts, and a ClientHello must name the host.
    ///
    /// - Parameter number: the rule of `Verdict.allow`; nil if no rule matched.
    package func tunnelTerms(_ request: AccessRequest, allowedBy number: Int?) -> TunnelTerms {
        let isRuled = isRuledByHost(request, until: number)
        let rule = number.flatMap(rule(numbered:))
        // The rule has compared the name, and allows it for this host.
        if let rule, !rule.conditions.serverNames.isEmpty {
            return rule.tunnel == .any ? .anything : TunnelTerms(.tls, namesHost: false)
        }
        return switch rule?.tunnel {
        case .any: .anything
        case .tls: TunnelTerms(.tls, namesHost: isRuled)
        case nil where request.port == Self.httpsPort: TunnelTerms(.tls, namesHost: isRuled)
        case nil: isRuled ? TunnelTerms(.recognised, namesHost: true) : .anything
        }
    }

    /// Whether the verdict on a CONNECT depends on the server name, which the tunnel's first bytes have.
    ///
    /// Where the request is allowed, allow rules behind the one that decides matter as well: they may open a port or a private address (`mayDial`).
    ///
    /// - Parameter address: that of the host; nil if it is not known.
    func awaitsServerName(_ request: AccessRequest, address: IPAddress?) -> Bool {
        guard index.dependsOnServerName, request.isTunnel, request.serverName == .unread else { return false }
        let decides = firstRule(for: request, address: address) { $0.holds(request, address: address) == true }
        let isAllowed = decides.map { rules[$0].isAllow } ?? isAllowedByDefault
        let waits = firstRule(for: request, address: address, below: isAllowed ? .max : decides ?? .max) { rule in
            guard !rule.conditions.serverNames.isEmpty, isAllowed || rule.isAllow else { return false }
            var named = rule
            named.conditions.serverNames = []
            return named.holds(request, address: address) != false
        }
        return waits != nil
    }

    /// Whether a request of this client for another host might get another verdict: a rule up to the one that decides has a host, and its other
    /// conditions may hold. What is inside a tunnel may meet any condition on paths, methods and the like.
    private func isRuledByHost(_ request: AccessRequest, until number: Int?) -> Bool {
        guard let naming = index.namingHostsByWho else { return false }
        let address = request.destination.address
        let end = number.flatMap(position(ofRule:)).map { $0 + 1 } ?? rules.count
        // The first one that is found is enough: most often it is the first one of all.
        return naming.contains(for: request, below: end) {
            rules[$0].concerns(request.identity) && rules[$0].outside.mayHoldForOtherHosts(request, address: address)
        }
    }
}
