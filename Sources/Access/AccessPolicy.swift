import Authentication
package import Message
import Rules

/// Decides who may use the proxy and what they may reach. Immutable; a reload makes a new one.
///
/// It is asked three times: `admits` when a client connects, `decide` when its request has been read, and `mayDial` before each
/// connection to an origin. The last answer is the one that protects: a host name resolves to whatever its owner chooses, and to
/// something else a moment later.
///
/// An object, because a copy of the compiled rules would count a dozen references with every question.
package final class AccessPolicy: Sendable, Equatable {
    private let settings: AccessSettings
    private let clients: [AddressRange]?
    /// The rules that decide.
    let index: CompiledRules
    /// Rules that only report; nil if there are none.
    private let reporting: RuleIndex?
    /// There are no rules and no authentication, and the default is to allow: `decide` need not be called. `mayDial` still must.
    package let isOpen: Bool
    /// Some rule only reports.
    package let hasReports: Bool
    /// Some rule looks at more of a request than its path and query, client, host and method.
    package let looksAtDetails: Bool

    package init(from settings: AccessSettings) {
        self.settings = settings
        clients = settings.clients
        isOpen = settings.rules.isEmpty && !settings.authentication.isConfigured && settings.defaultEffect == .allow
        looksAtDetails = settings.rules.contains { !$0.conditions.details.isEmpty }
        index = CompiledRules(settings.rules)
        hasReports = settings.rules.contains(where: \.isReport)
        let reports = settings.rules.enumerated().filter(\.element.isReport)
        reporting =
            reports.isEmpty ? nil : RuleIndex(reports.map { (position: $0.offset, conditions: $0.element.conditions) })
    }

    package static func == (one: AccessPolicy, other: AccessPolicy) -> Bool { one.settings == other.settings }

    package var rules: [AccessRule] { settings.rules }

    /// The numbers are the positions from 1, except where a program makes rules by itself.
    package func rule(numbered number: Int) -> AccessRule? { position(ofRule: number).map { rules[$0] } }

    func position(ofRule number: Int) -> Int? {
        let position = number - 1
        if rules.indices.contains(position), rules[position].number == number { return position }
        return rules.firstIndex { $0.number == number }
    }

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
        if awaitsServerName(request, address: request.destination.address ?? address) { return .needsServerName }
        if let address = request.destination.address ?? address {
            let position = matchingRule(request, address: address)
            if let denial = denial(by: position, request, address: address) { return .deny(denial) }
            return .allow(rule: position.map { rules[$0].number })
        }
        return decideByName(request)
    }

    /// Whether Larder may connect to this address for this request, whatever its method. Nil: it may.
    ///
    /// An allow rule that names an address opens it even if it is private, and one that names a port opens that port to
    /// CONNECT, unless a deny rule before it matches. The position among allow rules does not matter.
    package func mayDial(_ request: AccessRequest, address: IPAddress) -> Denial? {
        denial(by: matchingRule(request, address: address), request, address: address)
    }

    /// - Parameter position: of the rule that matches. Nil: none does.
    private func denial(by position: Int?, _ request: AccessRequest, address: IPAddress) -> Denial? {
        if let position {
            // Usually the rule allows, and is not copied.
            if !rules[position].isAllow, let denial = denial(by: rules[position], request, address: address) {
                return denial
            }
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

    private func matchingRule(_ request: AccessRequest, address: IPAddress) -> Int? {
        firstRule(for: request, address: address) { $0.holds(request, address: address) == true }
    }

    /// The position of the first rule that decides and passes the test, among those that may concern the request.
    func firstRule(
        for request: AccessRequest, address: IPAddress?, below bound: Int = .max, where test: (AccessRule) -> Bool
    ) -> Int? {
        index.byHost.first(for: request, address: address, below: bound) { test(rules[$0]) }
    }

    /// Whether an allow rule names what has to be opened, and matches before any deny rule does.
    private func isOpened(
        for request: AccessRequest, _ address: IPAddress?, by names: (RuleConditions) -> Bool
    ) -> Bool {
        let opening = firstRule(for: request, address: address) {
            $0.isAllow && names($0.conditions) && $0.holds(request, address: address) != false
        }
        guard let opening else { return false }
        let closing = firstRule(for: request, address: address, below: opening) {
            !$0.isAllow && $0.holds(request, address: address) == true
        }
        return closing == nil
    }

    /// The verdict without an address. If some rules depend on the address, but all of them would lead to the same verdict as the
    /// others, the address is not needed.
    private func decideByName(_ request: AccessRequest) -> Verdict {
        let position = firstRule(for: request, address: nil) { $0.holds(request, address: nil) == true }
        let isAllowed = position.map { rules[$0].isAllow } ?? isAllowedByDefault
        func mayDecide(_ isAllow: Bool) -> Bool {
            guard isAllowed != isAllow else { return true }
            guard index.dependsOnAddress else { return false }
            return firstRule(for: request, address: nil, below: position ?? .max) {
                $0.isAllow == isAllow && $0.holds(request, address: nil) == nil
            } != nil
        }
        let (mayAllow, mayDeny) = (mayDecide(true), mayDecide(false))
        if mayAllow && mayDeny { return .needsAddress }
        if mayDeny {
            return .deny(
                position.flatMap { denial(by: rules[$0], request, address: nil) }
                    ?? noRuleDenial(request, address: nil))
        }
        let opensPort =
            mayTunnelByDefault(request, .public) || isOpened(for: request, nil, by: { $0.name(port: request.port) })
        if opensPort { return .allow(rule: position.map { rules[$0].number }) }
        return settings.privateDestinations == .allow ? .needsAddress : .deny(portDenial(request))
    }

    var isAllowedByDefault: Bool { settings.defaultEffect == .allow }

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

    // MARK: - Reports

    /// The numbers of the report-only rules that match, at most `reportsMax`.
    ///
    /// - Parameter address: what the host resolved to. If it is not known, rules that ask for it are left out.
    package func reports(for request: AccessRequest, address: IPAddress?) -> [Int] {
        guard let reporting else { return [] }
        var found: [Int] = []
        let address = request.destination.address ?? address
        _ = reporting.first(for: request, address: address) { position in
            if rules[position].holds(request, address: address) == true { found.append(position) }
            return false
        }
        return found.sorted().prefix(AccessPolicy.reportsMax).map { rules[$0].number }
    }

    package static let reportsMax = 4

    func mayBeReported(_ request: AccessRequest) -> Bool {
        reporting?.first(for: request, address: nil) { rules[$0].conditions.holdBesidesDetails(request) } != nil
    }

    // MARK: - Denials

    private func denial(by rule: AccessRule, _ request: AccessRequest, address: IPAddress?) -> Denial? {
        var what: String { "\(request.methodText) to \(request.host):\(request.port)" }
        switch rule.effect {
        case .allow: return nil
        case .authenticate:
            return Denial(
                rule: rule.number, reason: .notAuthenticated, text: "rule \(rule.number) asks who sends \(what)",
                asksForCredentials: true)
        case .deny(let reason): return denial(reason ?? "rule \(rule.number) denies \(what)", page: nil)
        case .redirect(let url): return denial("rule \(rule.number) denies \(what); see \(url)", page: url)
        }
        func denial(_ text: String, page: String?) -> Denial {
            Denial(
                rule: rule.number, reason: .rule, text: text, page: page,
                shortfall: shortfall(of: request, address: address, deniedBy: rule.number, toldTo: .client))
        }
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
