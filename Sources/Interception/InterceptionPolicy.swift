package import Rules

/// Decides which tunnels are opened. Immutable; a reload makes a new one.
package struct InterceptionPolicy: Sendable, Equatable {
    private let settings: InterceptSettings

    package init(_ settings: InterceptSettings) { self.settings = settings }

    /// What is known of a CONNECT that the access rules have allowed.
    package struct Question: Sendable {
        package var host: DestinationHost
        /// `intercept` of the access rule that allowed the request. Nil if it says nothing, or if no rule matched.
        package var rule: Bool?
        /// No access rule asks for anything inside the tunnel (`AccessPolicy.mayRemainTunnel`).
        package var mayRemainTunnel: Bool
        /// What a tunnel that remains one must carry (`AccessPolicy.tunnelTerms`).
        package var terms: TunnelTerms
        /// The name constraints of the authority permit a certificate for the host (RFC 5280 §4.2.1.10).
        package var isCertifiable: Bool
        /// The client did not accept the certificate for this host (`LeafRefusals`).
        package var isRefused: Bool

        package init(
            host: DestinationHost, rule: Bool?, mayRemainTunnel: Bool, terms: TunnelTerms, isCertifiable: Bool,
            isRefused: Bool
        ) {
            self.host = host
            self.rule = rule
            self.mayRemainTunnel = mayRemainTunnel
            self.terms = terms
            self.isCertifiable = isCertifiable
            self.isRefused = isRefused
        }
    }

    package enum Decision: Equatable, Sendable {
        /// Connect to the origin and pass on bytes unread, if the first ones keep to the terms.
        case remain
        case open(TunnelTarget)
        /// The tunnel can neither be opened nor remain one.
        case deny
    }

    /// Whether the host is to be opened, as far as host and rule decide it. Ask this first: most tunnels are not opened.
    package func concerns(_ host: DestinationHost, rule: Bool?) -> Bool {
        rule ?? settings.hosts.contains { $0.matches(host) }
    }

    package func decide(_ question: Question) -> Decision {
        guard concerns(question.host, rule: question.rule) else { return .remain }
        guard question.isCertifiable else { return question.mayRemainTunnel ? .remain : .deny }
        if question.isRefused, settings.refused == .tunnel, question.mayRemainTunnel { return .remain }
        return .open(
            TunnelTarget(
                host: question.host, terms: question.terms, use: .open(mayRemain: question.mayRemainTunnel)))
    }
}
