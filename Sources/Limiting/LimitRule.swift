package import Rules

/// One rule of `limits.rules`: what some requests may have of this proxy.
package struct LimitRule: Equatable, Sendable {
    /// In refusals, the log and the statistics.
    package var name: String
    package var conditions: RuleConditions
    package var scope: LimitScope
    package var terms: LimitTerms
    /// The rule whose buckets this one uses. Nil: it has its own.
    package var shares: String?
    /// Whether each node of a fleet counts alone. Otherwise the figures hold for all nodes together.
    package var isOfNode: Bool
    /// The line in the configuration file; 0 if it does not come from a file.
    package var line: Int

    package init(
        name: String, _ conditions: RuleConditions = RuleConditions(), per scope: LimitScope = .client,
        _ terms: LimitTerms = LimitTerms(), shares: String? = nil, isOfNode: Bool = false, line: Int = 0
    ) {
        self.name = name
        self.conditions = conditions
        self.scope = scope
        self.terms = terms
        self.shares = shares
        self.isOfNode = isOfNode
        self.line = line
    }

    /// The name of the rule whose buckets it uses.
    package var bucket: String { shares ?? name }
}

/// The figures of a rule. Each is nil if the rule does not say it.
package struct LimitTerms: Equatable, Sendable {
    package var requests: TokenRate?
    /// Requests and tunnels under way.
    package var concurrent: Int?
    /// Connections that are open.
    package var connections: Int?
    /// Towards clients, in bytes per second.
    package var bandwidth: UInt64?
    package var budget: ByteBudget?
    /// The longest body of a request, in bytes.
    package var requestBody: UInt64?
    /// The longest request, head and body, in bytes.
    package var requestSize: UInt64?
    /// The longest body of a response, in bytes.
    package var responseBody: UInt64?

    package init(
        requests: TokenRate? = nil, concurrent: Int? = nil, connections: Int? = nil, bandwidth: UInt64? = nil,
        budget: ByteBudget? = nil, requestBody: UInt64? = nil, requestSize: UInt64? = nil, responseBody: UInt64? = nil
    ) {
        self.requests = requests
        self.concurrent = concurrent
        self.connections = connections
        self.bandwidth = bandwidth
        self.budget = budget
        self.requestBody = requestBody
        self.requestSize = requestSize
        self.responseBody = responseBody
    }

    package var isEmpty: Bool { self == LimitTerms() }

    /// Whether a request has to look at them. Connections are counted when they are accepted.
    var concernRequests: Bool {
        var others = self
        others.connections = nil
        return !others.isEmpty
    }
}
