package import Access
package import Rules

/// Requests that share a limit of the rate.
package struct BandwidthClass: Equatable, Sendable {
    package var name: String
    package var conditions: RuleConditions
    /// In bytes per second.
    package var rate: UInt64
    /// The line in the configuration file; 0 if it does not come from a file.
    package var line: Int

    package init(name: String, _ conditions: RuleConditions, rate: UInt64, line: Int = 0) {
        self.name = name
        self.conditions = conditions
        self.rate = rate
        self.line = line
    }
}

/// How fast bytes may come from origins. Rates are in bytes per second; nil is without limit.
package struct BandwidthPlan: Equatable, Sendable {
    /// For everything together.
    package var total: UInt64?
    /// For each client address.
    package var client: UInt64?
    /// A request belongs to the first that matches, or to none.
    package var classes: [BandwidthClass] = []

    package init() {}

    package var isUnlimited: Bool { total == nil && client == nil && classes.isEmpty }

    /// The limits that a request is under. All of them hold. Empty for most proxies.
    ///
    /// - Parameter request: evaluated only if there are limits.
    package func shares(for request: @autoclosure () -> AccessRequest, _ terms: OriginTerms) -> [BandwidthShare] {
        var shares: [BandwidthShare] = []
        if let rate = terms.bandwidth, let rule = terms.rule {
            shares.append(BandwidthShare(.origin(rule), rate: rate))
        }
        guard !isUnlimited else { return shares }
        let request = request()
        if let total { shares.append(BandwidthShare(.total, rate: total)) }
        if let client, let address = request.client { shares.append(BandwidthShare(.client(address), rate: client)) }
        if let one = classes.first(where: {
            $0.conditions.holdForRequest(request, paths: .anySpelling, unreadDetails: false)
        }) {
            shares.append(BandwidthShare(.named(one.name), rate: one.rate))
        }
        return shares
    }

    /// The rate of a limit. Nil if the limit is there no more.
    package func rate(of bound: BandwidthBound, _ origins: OriginTable) -> UInt64? {
        switch bound {
        case .total: total
        case .client: client
        case .named(let name): classes.first { $0.name == name }?.rate
        case .origin(let rule): origins.terms(ofRule: rule)?.bandwidth
        }
    }
}
