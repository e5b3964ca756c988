import Message
package import Rules

/// One line of `access.rules`. All its conditions must hold, within a condition any of its values.
package struct AccessRule: Sendable, Equatable {
    package var effect: Effect
    package var conditions: Conditions
    /// Position in the list, from 1: what logs and refusals call the rule.
    package var number: Int
    /// Line in the configuration file; 0 where it came from none.
    package var line: Int

    package enum Effect: Sendable, Equatable {
        case allow
        /// - Parameter reason: what the client is told; nil for a general sentence.
        case deny(reason: String?)
    }

    package typealias Conditions = RuleConditions

    package init(effect: Effect, conditions: Conditions = .init(), number: Int, line: Int = 0) {
        self.effect = effect
        self.conditions = conditions
        self.number = number
        self.line = line
    }

    package var isAllow: Bool { effect == .allow }
}

extension AccessRule {
    /// A path counts in the spelling that is safer: what an allow rule opens must be that however an origin reads it, and what
    /// a deny rule closes is closed in any spelling.
    ///
    /// - Parameter address: the one that is dialled. Nil: not known.
    /// - Returns: nil where that depends on the address and it is not known.
    func holds(_ request: AccessRequest, address: IPAddress?) -> Bool? {
        conditions.hold(request, address: address, paths: isAllow ? .everySpelling : .anySpelling)
    }
}
