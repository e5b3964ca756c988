import Message

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

    /// An empty list is no condition: it holds for every request.
    package struct Conditions: Sendable, Equatable {
        package var hosts: [HostPattern] = []
        /// Compared with the address that is dialled.
        package var addresses: [AddressRange] = []
        package var ports: [ClosedRange<UInt16>] = []
        /// Upper case.
        package var methods: [String] = []
        package var users: [String] = []
        package var clients: [AddressRange] = []
        package init() {}
    }

    package init(effect: Effect, conditions: Conditions = .init(), number: Int, line: Int = 0) {
        self.effect = effect
        self.conditions = conditions
        self.number = number
        self.line = line
    }

    package var isAllow: Bool { effect == .allow }
}

extension AccessRule.Conditions {
    /// All conditions but `address`.
    func holdWithoutAddress(_ request: AccessRequest) -> Bool {
        (ports.isEmpty || ports.contains { $0.contains(request.port) })
            && (methods.isEmpty || methods.contains(request.methodText))
            && (hosts.isEmpty || hosts.contains { $0.matches(request.destination) })
            && (users.isEmpty || request.user.map(users.contains) ?? false)
            && (clients.isEmpty || request.client.map { client in clients.contains { $0.contains(client) } } ?? false)
    }

    /// - Parameter address: the one that is dialled. Nil: not known.
    /// - Returns: nil where that depends on the address and it is not known.
    func hold(_ request: AccessRequest, address: IPAddress?) -> Bool? {
        guard holdWithoutAddress(request) else { return false }
        if addresses.isEmpty { return true }
        return address.map { address in addresses.contains { $0.contains(address) } }
    }

    /// Whether the rule names this very address: in `address`, or as a literal in `host`.
    func name(_ address: IPAddress) -> Bool {
        addresses.contains { $0.contains(address) } || hosts.contains(.address(address))
    }

    func name(port: UInt16) -> Bool { ports.contains { $0.contains(port) } }
}
