package import Limiting
import Settings

extension Proxy {
    /// Why a budget cannot be reset.
    package enum BudgetRefusal: Error, Equatable {
        case unknownRule(withBudget: [String])
        /// The rule has the budgets of another one.
        case shares(String)
        /// The rule has its budgets for others.
        case otherScope(LimitScope)
    }

    /// Lets a budget begin anew. Blocks while the file of budgets is written.
    ///
    /// - Parameter subject: whose. Nil: all that the rule has a budget for.
    /// - Returns: how many budgets were in use, and why the file of budgets could not be written, nil if it was.
    package func resetBudgets(
        of rule: String, _ subject: LimitSubject?
    ) throws(BudgetRefusal) -> (count: Int, complaint: String?) {
        let rules = snapshot.configuration.limitPlan.rules
        guard let found = rules.first(where: { $0.name == rule }), found.terms.budget != nil || found.shares != nil
        else {
            throw .unknownRule(withBudget: rules.filter { $0.terms.budget != nil }.map(\.name))
        }
        if let other = found.shares { throw .shares(other) }
        let fits =
            switch (found.scope, subject) {
            // A request without a user counts for its address.
            case (_, nil), (.client, .client), (.user, .user), (.user, .client), (.group, .group): true
            default: false
            }
        guard fits else { throw .otherScope(found.scope) }
        let result = shared.budgets.reset(rule, subject)
        if let budget = found.terms.budget { shared.fleet?.reset(budget, of: rule, subject) }
        return result
    }
}
