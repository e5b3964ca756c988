import Message
package import Rules

/// One rule of `access.rules`. All of its conditions must hold; of the values of a condition, any one.
package struct AccessRule: Sendable, Equatable {
    package var effect: Effect
    package var conditions: Conditions
    /// Whether the tunnels that this rule allows are opened (TLS interception). Nil: `intercept.hosts` decides.
    package var intercept: Bool?
    /// What the tunnels that this rule allows may carry. Nil: the port and the rules for hosts decide (`AccessPolicy.tunnelTerms`).
    package var tunnel: TunnelProtocols?
    /// The profile that the rule is made from, or stands for until the configuration has been loaded.
    package var profile: AccessProfile?
    /// `shared`: a wildcard below a suffix whose names belong to strangers is meant.
    package var isForSharedNames = false
    /// Report-only: the rule decides nothing, but that it matches is told.
    package var isReport: Bool
    /// The position in the list, from 1. Logs and refusals name the rule by it.
    package var number: Int
    /// The line in the configuration file; 0 if it does not come from a file.
    package var line: Int

    package enum Effect: Sendable, Equatable {
        case allow
        /// - Parameter reason: what the client is told. Nil: a general sentence.
        case deny(reason: String?)
        /// Like `deny`, but the client is sent to a page where that is possible.
        case redirect(to: String)
        /// Denies requests without an identity, and asks for credentials. It does not hold for a request with one.
        case authenticate
    }

    package typealias Conditions = RuleConditions

    package init(
        effect: Effect, conditions: Conditions = .init(), intercept: Bool? = nil, tunnel: TunnelProtocols? = nil,
        profile: AccessProfile? = nil, isReport: Bool = false, number: Int, line: Int = 0
    ) {
        self.effect = effect
        self.conditions = conditions
        self.intercept = intercept
        self.tunnel = tunnel
        self.profile = profile
        self.isReport = isReport
        self.number = number
        self.line = line
    }

    // Patterns, because comparing two effects compares their texts.
    package var isAllow: Bool { if case .allow = effect { true } else { false } }
    private var asksForCredentials: Bool { if case .authenticate = effect { true } else { false } }

    /// Whether the rule may hold for requests with this identity.
    func concerns(_ identity: Identity?) -> Bool { !asksForCredentials || identity == nil }
}

extension AccessRule {
    /// The same path can be spelled in several ways. An allow rule holds only if it matches however an origin may read the path; a deny
    /// rule holds if it matches any reading.
    ///
    /// An IPv6 address that stands for IPv4 addresses is denied if one of these is.
    ///
    /// An `authenticate` rule holds for a request without an identity alone. For CONNECT it holds whatever it says about what is inside: a client
    /// can log in to the proxy with the CONNECT, and not in the tunnel.
    ///
    /// - Parameter address: the address to connect to; nil if it is not known yet.
    /// - Returns: nil if the answer depends on an address that is not known yet.
    func holds(_ request: AccessRequest, address: IPAddress?) -> Bool? {
        guard concerns(request.identity) else { return false }
        guard asksForCredentials, request.isTunnel else { return holds(conditions, request, address: address) }
        var conditions = outside
        conditions.serverNames = []
        return holds(conditions, request, address: address)
    }

    private func holds(_ conditions: Conditions, _ request: AccessRequest, address: IPAddress?) -> Bool? {
        let holds = conditions.hold(request, address: address, paths: isAllow ? .everySpelling : .anySpelling)
        guard !isAllow, holds == false, conditions.concernAddresses, let embedded = address?.embedded else {
            return holds
        }
        return embedded.addresses.contains { address in
            var other = request
            if request.destination.address != nil { other.destination = .address(address) }
            return conditions.hold(other, address: address, paths: .anySpelling) == true
        }
    }
}
