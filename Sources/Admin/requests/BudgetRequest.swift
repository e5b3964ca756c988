import JSON
import Limiting
import Message
import Server

/// The body of `POST /budgets/reset`: `{"rule": NAME, "client": ADDRESS}`, or `"user"` or `"group"`, or the rule alone for all its budgets.
struct BudgetReset {
    let rule: String
    /// Nil: all that the rule has a budget for.
    let subject: LimitSubject?

    init(_ body: [UInt8]) throws(SelectionError) {
        let members = try textMembers(body, among: ["rule", "client", "user", "group"])
        guard let rule = members["rule"], !rule.isEmpty else { throw SelectionError(message: "\"rule\" is missing") }
        self.rule = rule
        guard members.count <= 2 else { throw SelectionError(message: "one of \"client\", \"user\" and \"group\"") }
        if let user = members["user"] {
            subject = .user(user)
        } else if let group = members["group"] {
            subject = .group(group)
        } else if let text = members["client"] {
            guard let address = IPAddress(strict: text.utf8) else {
                throw SelectionError(message: "\"client\" must be an address, such as 10.2.0.17")
            }
            subject = LimitSubject(client: address)
        } else {
            subject = nil
        }
    }
}

extension AdminRouter {
    func resetBudgets(_ request: AdminRequest) -> AdminResponse {
        if let refusal = authority.refusalOfChange(request) { return refusal }
        let asked: BudgetReset
        do throws(SelectionError) { asked = try BudgetReset(request.body) } catch {
            return .problem(400, error.message)
        }
        do throws(Proxy.BudgetRefusal) {
            let result = try proxy.resetBudgets(of: asked.rule, asked.subject)
            if let complaint = result.complaint {
                return .problem(500, "the budgets are reset until the next start: \(complaint)")
            }
            var writer = JSONWriter()
            writer.object {
                $0.member("rule", asked.rule)
                $0.member("reset", result.count)
            }
            return .json(writer.bytes)
        } catch {
            return .problem(error.status, error.text(of: asked.rule))
        }
    }
}

extension Proxy.BudgetRefusal {
    fileprivate var status: UInt16 {
        switch self {
        case .unknownRule: 404
        case .shares, .otherScope: 400
        }
    }

    fileprivate func text(of rule: String) -> String {
        switch self {
        case .unknownRule(let names):
            "no limit \(rule) has a budget"
                + (names.isEmpty ? "" : "; those with one: \(names.joined(separator: ", "))")
        case .shares(let other): "the limit \(rule) has the budgets of \(other)"
        case .otherScope(let scope):
            scope == .all
                ? "the limit \(rule) has one budget for all"
                : "the limit \(rule) has one budget for each \(scope.rawValue)"
        }
    }
}
