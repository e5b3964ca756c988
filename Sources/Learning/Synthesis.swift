package import Access
import Message
package import Rules

/// A rule that allows what a job requested, and nothing that it can leave out.
package struct LearntRule: Sendable, Equatable {
    package var conditions: RuleConditions
    /// For CONNECT: the tunnels were opened, so the rules for what is inside need that.
    package var intercept: Bool?
    package var evidence: Evidence

    /// What the rule rests on.
    package struct Evidence: Sendable, Equatable {
        /// Of `runsMax` runs that are kept, in so many.
        package var runs: Int
        package var runsMax: Int
        package var requests: Int
        /// Of those, what the rules denied and learning let through.
        package var permitted: Int
        package var requestBytesMax: UInt64
        package var responseBytesMax: UInt64
        package var credentials: [String]
        package var recipes: [String]
        /// Why such requests were denied the last time. Nil if they were allowed.
        package var reason: DenialReason?
        package var rule: Int?
    }

    /// One request for each path of the rule, as the access rules see it.
    package var samples: [AccessRequest]
    /// A bit for each run.
    fileprivate var runs: UInt64 = 0
}

extension Journal {
    /// The smallest rules that allow what was allowed, in the order of hosts, ports and methods.
    package var neededRules: [LearntRule] { rules(of: needed) }

    /// The smallest rules that would allow what was denied.
    package var deniedRules: [LearntRule] { rules(of: denied) }

    private func rules(of table: Table) -> [LearntRule] {
        var rules: [LearntRule] = []
        for (place, shapes) in table.places.sorted(by: { $0.key < $1.key }) {
            let rule = rule(for: place, shapes)
            // Methods with the same paths share a rule.
            if let last = rules.indices.last, rules[last].isJoinable(with: rule) {
                rules[last].join(rule)
            } else {
                rules.append(rule)
            }
        }
        return rules.map { $0.counted(of: runs.count) }
    }

    private func rule(for place: Place, _ shapes: [PathShape?: Row]) -> LearntRule {
        let sorted = shapes.sorted { ($0.key?.pattern ?? "") < ($1.key?.pattern ?? "") }
        var conditions = RuleConditions()
        conditions.hosts = [place.host.pattern]
        conditions.addresses = place.addresses
        conditions.ports = [place.port...place.port]
        conditions.methods = [place.method]
        // A recipe and a path can be spelled alike.
        var spelled: Set<String> = []
        conditions.paths = sorted.compactMap { shape, _ in
            shape.flatMap { spelled.insert($0.pattern).inserted ? PathPattern($0.pattern) : nil }
        }
        conditions.users = scope.user.map { [$0] } ?? []
        conditions.clients = scope.client.map { [$0] } ?? []
        conditions.listeners = scope.listener.map { [$0] } ?? []
        var row = sorted[0].value
        for (_, other) in sorted.dropFirst() { row.add(other) }
        var recipes: Set<String> = []
        for case .recipe(let name, _)? in shapes.keys { recipes.insert(name) }
        let evidence = LearntRule.Evidence(
            runs: 0, runsMax: 0, requests: row.requests, permitted: row.permitted,
            requestBytesMax: row.requestBytesMax, responseBytesMax: row.responseBytesMax,
            credentials: row.credentials, recipes: recipes.sorted(), reason: row.reason, rule: row.rule)
        var rule = LearntRule(
            conditions: conditions, evidence: evidence, samples: sorted.map { place.request(like: $0.value.sample) })
        rule.runs = row.runs
        rule.intercept = row.opened > 0 && row.opened == row.requests ? true : nil
        return rule
    }
}

extension LearntRule {
    fileprivate func isJoinable(with other: LearntRule) -> Bool {
        guard !conditions.methods.contains("CONNECT"), !other.conditions.methods.contains("CONNECT") else {
            return false
        }
        var same = other.conditions
        same.methods = conditions.methods
        return same == conditions
    }

    fileprivate mutating func join(_ other: LearntRule) {
        conditions.methods += other.conditions.methods
        runs |= other.runs
        evidence.requests += other.evidence.requests
        evidence.permitted += other.evidence.permitted
        evidence.requestBytesMax = max(evidence.requestBytesMax, other.evidence.requestBytesMax)
        evidence.responseBytesMax = max(evidence.responseBytesMax, other.evidence.responseBytesMax)
        evidence.credentials = Set(evidence.credentials + other.evidence.credentials).sorted()
        evidence.recipes = Set(evidence.recipes + other.evidence.recipes).sorted()
        evidence.reason = evidence.reason ?? other.evidence.reason
        evidence.rule = evidence.rule ?? other.evidence.rule
        samples += other.samples
    }

    fileprivate func counted(of count: Int) -> LearntRule {
        var rule = self
        rule.evidence.runs = runs.nonzeroBitCount
        rule.evidence.runsMax = count
        return rule
    }
}

extension DestinationHost {
    fileprivate var pattern: HostPattern {
        switch self {
        case .name(let name): .exact(name)
        case .address(let address): .address(address)
        }
    }
}

extension Place {
    /// A request that was observed, as the access rules see it.
    fileprivate func request(like sample: Row.Sample) -> AccessRequest {
        let known = Method.allCases.first { "\($0.text)" == method } ?? .other
        return AccessRequest(
            client: sample.client, identity: sample.user.map { Identity(name: $0, scheme: .basic) }, method: known,
            methodText: method, scheme: sample.scheme, destination: host, port: port, isTunnel: known == .connect,
            pathAndQuery: sample.path?[...])
    }
}
