package import Message
import Rules

/// Decides who may use the proxy and what they may reach. Immutable; a reload makes a new one.
///
/// It is asked three times: `admits` when a client connects, `decide` when its request has been read, and `mayDial` before each
/// connection to an origin. The last answer is the one that protects: a host name resolves to whatever its owner chooses, and to
/// something else a moment later.
package struct AccessPolicy: Sendable, Equatable {
    private let settings: AccessSettings
    private let clients: [AddressRange]?
    /// There are no rules and no authentication, and the default is to allow: `decide` need not be called. `mayDial` still must.
    package let isOpen: Bool
    /// Some rule has paths.
    let hasPaths: Bool

    package init(from settings: AccessSettings) {
        self.settings = settings
        clients = settings.clients
        isOpen = settings.rules.isEmpty && settings.authentication == nil && settings.defaultEffect == .allow
        hasPaths = settings.rules.contains { !$0.conditions.paths.isEmpty }
    }

    package var authentication: BasicAuthentication? { settings.authentication }

    var rules: [AccessRule] { settings.rules }

    /// - Parameter client: nil for a client of a Unix socket; the permissions of the socket file decide about it.
    package func admits(client: IPAddress?) -> Bool {
        guard let client, let clients else { return true }
        return clients.contains { $0.contains(client) }
    }

    /// What the first rule that matches says, or the default. The port of a CONNECT is checked here as well, and so is the address if
    /// the host is one, so that the refusal comes before any connection is opened.
    ///
    /// - Parameter address: what the host resolved to; nil if it is not known yet.
    package func decide(_ request: AccessRequest, address: IPAddress?) -> Verdict {
        if let address = request.destination.address ?? address {
            if let denial = mayDial(request, address: address) { return .deny(denial) }
            return .allow(rule: matchingRule(request, address: address)?.number)
        }
        return decideByName(request)
    }

    /// Whether Larder may connect to this address for this request, whatever its method. Nil: it may.
    ///
    /// An allow rule that names an address opens it even if it is private, and one that names a port opens that port to
    /// CONNECT, unless a deny rule before it matches. The position among allow rules does not matter.
    package func mayDial(_ request: AccessRequest, address: IPAddress) -> Denial? {
        if let rule = matchingRule(request, address: address) {
            if let denial = denial(by: rule, request, address: address) { return denial }
        } else if settings.defaultEffect == .deny {
            return noRuleDenial(request, address: address)
        }
        let addressClass = addressClass(address)
        if !isOpenByDefault(addressClass), !opens(address, to: request) {
            return privateDenial(request, address, addressClass)
        }
        if !mayTunnelByDefault(request, addressClass),
            !isOpened(for: request, address, by: { $0.name(port: request.port) })
        {
            return portDenial(request)
        }
        return nil
    }

    /// Whether an allow rule names the address, and matches before any deny rule does.
    package func opens(_ address: IPAddress, to request: AccessRequest) -> Bool {
        isOpened(for: request, address) { $0.name(address) }
    }

    // MARK: - The rules

    private func matchingRule(_ request: AccessRequest, address: IPAddress) -> AccessRule? {
        settings.rules.first { $0.holds(request, address: address) == true }
    }

    /// Whether an allow rule names what has to be opened, and matches before any deny rule does.
    private func isOpened(
        for request: AccessRequest, _ address: IPAddress?, by names: (RuleConditions) -> Bool
    ) -> Bool {
        for rule in settings.rules {
            let holds = rule.holds(request, address: address)
            if rule.isAllow && holds != false && names(rule.conditions) { return true }
            if !rule.isAllow && holds == true { return false }
        }
        return false
    }

    /// The verdict without an address. If some rules depend on the address, but all of them would lead to the same verdict as the
    /// others, the address is not needed.
    private func decideByName(_ request: AccessRequest) -> Verdict {
        var mayAllow = false
        var mayDeny = false
        var final: AccessRule?
        for rule in settings.rules {
            let holds = rule.holds(request, address: nil)
            if holds == false { continue }
            if rule.isAllow { mayAllow = true } else { mayDeny = true }
            if holds == true {
                final = rule
                break
            }
        }
        if final == nil, settings.defaultEffect == .allow { mayAllow = true }
        if final == nil, settings.defaultEffect == .deny { mayDeny = true }
        if mayAllow && mayDeny { return .needsAddress }
        if mayDeny {
            return .deny(
                final.flatMap { denial(by: $0, request, address: nil) } ?? noRuleDenial(request, address: nil))
        }
        let opensPort =
            mayTunnelByDefault(request, .public) || isOpened(for: request, nil, by: { $0.name(port: request.port) })
        if opensPort { return .allow(rule: final?.number) }
        return settings.privateDestinations == .allow ? .needsAddress : .deny(portDenial(request))
    }

    private func isOpenByDefault(_ addressClass: AddressClass) -> Bool {
        switch addressClass {
        case .public: true
        case .metadata: false  // it gives credentials to anyone who asks: only a rule that names the address opens it
        default: settings.privateDestinations == .allow
        }
    }

    /// The list of ports protects the outside from our clients. If private destinations are open as a whole, so are all of their
    /// ports.
    func mayTunnelByDefault(_ request: AccessRequest, _ addressClass: AddressClass) -> Bool {
        if !request.isTunnel || settings.connectPorts.contains(where: { $0.contains(request.port) }) { return true }
        return addressClass != .public && isOpenByDefault(addressClass)
    }

    // MARK: - Denials

    private func denial(by rule: AccessRule, _ request: AccessRequest, address: IPAddress?) -> Denial? {
        guard case .deny(let reason) = rule.effect else { return nil }
        return Denial(
            rule: rule.number, reason: .rule,
            text: reason ?? "rule \(rule.number) denies \(request.methodText) to \(request.host):\(request.port)",
            shortfall: shortfall(of: request, address: address, deniedBy: rule.number, toldTo: .client))
    }

    private func noRuleDenial(_ request: AccessRequest, address: IPAddress?) -> Denial {
        Denial(
            reason: .noRule,
            text: "no rule allows \(request.methodText) to \(request.host):\(request.port)",
            shortfall: shortfall(of: request, address: address, deniedBy: nil, toldTo: .client))
    }

    private func privateDenial(_ request: AccessRequest, _ address: IPAddress, _ kind: AddressClass) -> Denial {
        let host = request.host
        let subject = host == "\(address)" ? "\(address) is" : "\(host) resolves to \(address), which is"
        return Denial(
            reason: .privateDestination, text: "\(subject) not a public address (\(kind.rawValue)) and no rule opens it"
        )
    }

    private func portDenial(_ request: AccessRequest) -> Denial {
        Denial(reason: .connectPort, text: "CONNECT to port \(request.port) is not allowed")
    }
}
