package import Access
import Rules

/// What separates the rules in force from those that a job needs.
package struct Difference: Sendable, Equatable {
    /// The learnt rules for requests that the rules in force deny now.
    package var missing: [LearntRule] = []
    /// The numbers of the allow rules in force that the job did not need.
    package var superfluous: [Int] = []
    /// What was denied, and would be denied again.
    package var denied: [LearntRule] = []

    package var isEmpty: Bool { missing.isEmpty && superfluous.isEmpty && denied.isEmpty }

    /// - Parameters:
    ///   - policy: the one in force.
    ///   - rules: those of `policy`.
    package init(of journal: Journal, from policy: AccessPolicy, rules: [AccessRule]) {
        var used: Set<Int> = []
        for rule in journal.neededRules {
            let verdicts = rule.samples.map { Verdict(of: $0, policy, rules) }
            for verdict in verdicts { used.formUnion(verdict.rules) }
            if verdicts.contains(where: { !$0.mayPass }) { missing.append(rule) }
        }
        superfluous = rules.filter { $0.isAllow && !used.contains($0.number) }.map(\.number)
        denied = journal.deniedRules.filter { rule in
            rule.samples.contains { !Verdict(of: $0, policy, rules).mayPass }
        }
    }

    private struct Verdict {
        /// False if the rules deny the request, whatever its host resolves to.
        var mayPass: Bool
        /// The rules that allow it, or that may.
        var rules: Set<Int>

        init(of request: AccessRequest, _ policy: AccessPolicy, _ rules: [AccessRule]) {
            switch policy.decide(request, address: nil) {
            case .allow(let rule): (mayPass, self.rules) = (true, Set([rule].compactMap(\.self)))
            case .deny: (mayPass, self.rules) = (false, [])
            case .needsAddress, .needsServerName:
                mayPass = true
                self.rules = Set(
                    rules.filter { rule in
                        rule.isAllow
                            && (!rule.conditions.serverNames.isEmpty
                                || rule.conditions.hold(request, address: nil, paths: .everySpelling) != false)
                    }.map(\.number))
            }
        }
    }
}
