package import Message
package import Rules

/// The rules of `limits.rules`. All that match a request hold.
package struct LimitPlan: Equatable, Sendable {
    package var rules: [LimitRule]

    package init(_ rules: [LimitRule] = []) { self.rules = rules }

    package var isEmpty: Bool { rules.isEmpty }

    /// Whether connections are counted.
    package var countsConnections: Bool { rules.contains { $0.terms.connections != nil } }

    /// The buckets of a request, each once. A limit by path counts every spelling that an origin may take for that path.
    package func uses(for request: RuleRequest) -> [LimitUse] {
        uses(of: request.identity, request.client) {
            $0.terms.concernRequests && $0.conditions.holdForRequest(request, paths: .anySpelling, unreadDetails: false)
        }
    }

    /// The buckets of every request that differs from this one in path and query alone and matches none of `pathsOfConcern`.
    package func usesOfOtherPaths(like request: RuleRequest) -> [LimitUse] {
        uses(of: request.identity, request.client) {
            $0.terms.concernRequests && $0.conditions.paths.isEmpty && $0.conditions.holdBesidesDetails(request)
        }
    }

    /// The patterns of rules that may concern a request with another path than this one. Each has its own answer.
    package func pathsOfConcern(like request: RuleRequest) -> [PathPattern] {
        rules.filter { !$0.conditions.paths.isEmpty && $0.conditions.holdBesidesDetails(request) }
            .flatMap(\.conditions.paths)
    }

    /// The buckets that count a connection. The rules look at nothing but the client's address.
    package func uses(forConnectionOf client: IPAddress?) -> [LimitUse] {
        uses(of: nil, client) { rule in
            guard rule.terms.connections != nil else { return false }
            return rule.conditions.clients.isEmpty
                || client.map { address in rule.conditions.clients.contains { $0.contains(address) } } ?? false
        }
    }

    private func uses(
        of identity: Identity?, _ client: IPAddress?, where matches: (LimitRule) -> Bool
    ) -> [LimitUse] {
        var uses: [LimitUse] = []
        for rule in rules where matches(rule) {
            for subject in rule.scope.subjects(of: identity, client) {
                let bucket = LimitBucket(rule: rule.bucket, subject)
                // Rules that share a bucket do not make a request count twice.
                if !uses.contains(where: { $0.bucket == bucket }) {
                    uses.append(LimitUse(bucket: bucket, terms: rule.terms))
                }
            }
        }
        return uses
    }
}

/// Names a bucket.
package struct LimitBucket: Hashable, Sendable {
    /// The name of the rule whose bucket it is.
    package let rule: String
    package let subject: LimitSubject

    package init(rule: String, _ subject: LimitSubject) {
        self.rule = rule
        self.subject = subject
    }
}

/// A bucket that a request or a connection uses, and the figures that hold for it.
package struct LimitUse: Equatable, Sendable {
    package let bucket: LimitBucket
    package let terms: LimitTerms
}
