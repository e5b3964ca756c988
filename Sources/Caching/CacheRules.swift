package import Message
package import Rules

/// The rules of the cache, ready to be asked. Immutable; a reload makes a new one.
///
/// The default handling, the zone, the rule and a trusted client's `Larder-Policy` apply in this order. Each overrides those
/// before it, setting by setting.
///
/// Asked twice: when a request is read, and when there is a response, stored or from the origin, whose type is known then.
/// The zone and the key are those of the first time: the store was looked at with them.
package struct CacheRules: Sendable, Equatable {
    package let rules: [CacheRule]
    /// Names, by index; the first is the default one.
    package let zoneNames: [String]
    /// What holds in each zone without a rule.
    private let zoneHandlings: [CacheHandling]
    private let zoneOfRule: [Int]
    private let policyClients: [AddressRange]

    /// True if every request gets the default handling and its URI is its key. Then nothing else here has to be asked.
    package let isTrivial: Bool
    /// Any of them has a `type` condition: what is found in the store has a type, so ask again with it.
    package let dependOnType: Bool
    /// Any of them has a `user` condition: the user must be known before they are asked.
    package let dependOnUser: Bool

    /// - Parameter zones: without the default one. Rules may name these and `default` only.
    package init(
        defaultHandling: CacheHandling = .init(), zones: [CacheZone] = [], rules: [CacheRule] = [],
        policyClients: [AddressRange] = []
    ) {
        self.rules = rules
        self.policyClients = policyClients
        let names = [CacheZone.defaultName] + zones.map(\.name)
        zoneNames = names
        zoneHandlings =
            [defaultHandling] + zones.enumerated().map { $1.handling(index: $0 + 1, defaultHandling: defaultHandling) }
        zoneOfRule = rules.map { rule in
            guard let name = rule.zone else { return 0 }
            guard let index = names.firstIndex(of: name) else { preconditionFailure("no zone is called \(name)") }
            return index
        }
        isTrivial = rules.isEmpty && policyClients.isEmpty
        dependOnType = rules.contains { !$0.conditions.types.isEmpty }
        dependOnUser = rules.contains { !$0.conditions.users.isEmpty }
    }

    /// The handling of a request to which no rule applies.
    package var defaultHandling: CacheHandling { zoneHandlings[0] }

    /// The first rule that holds, among those without a `type` condition.
    ///
    /// - Parameter clientPolicy: what the client's `Larder-Policy` says, where it is heeded.
    package func handling(of request: RuleRequest, clientPolicy: HandlingChanges? = nil) -> CacheHandling {
        guard
            let index = rules.firstIndex(where: {
                $0.conditions.types.isEmpty && $0.conditions.hold(request, type: nil)
            })
        else { return applying(clientPolicy, to: defaultHandling) }
        var handling = handling(by: index, zone: zoneOfRule[index])
        handling.keyRule = rules[index].key == nil ? nil : rules[index].number
        return applying(clientPolicy, to: handling)
    }

    /// The first rule that holds, now that there is a response.
    ///
    /// - Parameters:
    ///   - responseType: the value of its `Content-Type`; nil where it has none.
    ///   - requested: the handling of the request: its zone and its key stay.
    package func handling(
        of request: RuleRequest, responseType: ArraySlice<UInt8>?, keeping requested: CacheHandling,
        clientPolicy: HandlingChanges? = nil
    ) -> CacheHandling {
        guard dependOnType else { return requested }
        var result = zoneHandlings[requested.zone]
        if let index = rules.firstIndex(where: { $0.conditions.hold(request, type: responseType) }) {
            result = handling(by: index, zone: requested.zone)
        }
        result.keyRule = requested.keyRule
        return applying(clientPolicy, to: result)
    }

    /// How the key of such a request is made; nil: it is the URI.
    package func keyRules(for handling: CacheHandling) -> KeyRules? {
        handling.keyRule.flatMap { rules[$0 - 1].key }
    }

    /// - Parameter client: nil for a client of a Unix socket, who is never heeded.
    package func heedsPolicy(of client: IPAddress?) -> Bool {
        client.map { client in policyClients.contains { $0.contains(client) } } ?? false
    }

    private func handling(by index: Int, zone: Int) -> CacheHandling {
        var handling = zoneHandlings[zone]
        rules[index].changes.apply(to: &handling)
        handling.rule = rules[index].number
        return handling
    }
}

extension CacheZone {
    /// What holds in it without a rule.
    fileprivate func handling(index: Int, defaultHandling: CacheHandling) -> CacheHandling {
        var handling = defaultHandling
        changes.apply(to: &handling)
        handling.objectSizeMax = objectSizeMax
        handling.zone = index
        return handling
    }
}

private func applying(_ changes: HandlingChanges?, to handling: CacheHandling) -> CacheHandling {
    guard let changes else { return handling }
    var handling = handling
    changes.apply(to: &handling)
    return handling
}
