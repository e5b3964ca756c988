import Message
package import Rules

/// One rule of `access.rules`. All of its conditions must hold; of the values of a condition, any one.
package struct AccessRule: Sendable, Equatable {
    package var effect: Effect
    package var conditions: Conditions
    /// Whether the tunnels that this rule allows are opened (TLS interception). Nil: `intercept.hosts` decides.
    package var intercept: Bool?
    /// The profile that the rule is made from, or stands for until the configuration has been loaded.
    package var profile: AccessProfile?
    /// The position in the list, from 1. Logs and refusals name the rule by it.
    package var number: Int
    /// The line in the configuration file; 0 if it does not come from a file.
    package var line: Int

    package enum Effect: Sendable, Equatable {
        case allow
        /// - Parameter reason: what the client is told. Nil: a general sentence.
        case deny(reason: String?)
    }

    package typealias Conditions = RuleConditions

    package init(
        effect: Effect, conditions: Conditions = .init(), intercept: Bool? = nil, profile: AccessProfile? = nil,
        number: Int, line: Int = 0
    ) {
        self.effect = effect
        self.conditions = conditions
        self.intercept = intercept
        self.profile = profile
        self.number = number
        self.line = line
    }

    package var isAllow: Bool { effect == .allow }
}

extension AccessRule {
    /// The same path can be spelled in several ways. An allow rule holds only if it matches however an origin may read the path; a deny
    /// rule holds if it matches any reading.
    ///
    /// - Parameter address: the address to connect to; nil if it is not known yet.
    /// - Returns: nil if the answer depends on an address that is not known yet.
    func holds(_ request: AccessRequest, address: IPAddress?) -> Bool? {
        conditions.hold(request, address: address, paths: isAllow ? .everySpelling : .anySpelling)
    }
}
