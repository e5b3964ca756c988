package import Message
package import Rules

/// The rules of the cache, ready to be asked. Immutable; a reload makes a new one.
///
/// What holds is said by the house, then the zone, then the rule, then a trusted client's `Larder-Policy`: each takes the
/// place of what was said before it, as far as it says anything.
///
/// Asked twice: when a request is read, and when there is a response, stored or from the origin, whose type is known then.
/// The zone and the key are those of the first time: the store was looked at with them.
package struct CacheRules: Sendable, Equatable {
    package let rules: [CacheRule]
    /// Names, by index; the first is the default one.
    package let zoneNames: [String]
    /// What holds in each zone without a rule.
    private let zoneTreatments: [CacheTreatment]
    private let zoneOfRule: [Int]
    private let policyClients: [AddressRange]

    /// Every request is treated as the house says, and its key is its URI: the rules need not be asked.
    package let isTrivial: Bool
    /// Any of them has a `type` condition: what is found in the store has a type, so ask again with it.
    package let dependOnType: Bool
    /// Any of them has a `user` condition: the user must be known before they are asked.
    package let dependOnUser: Bool

    /// - Parameter zones: without the default one. Rules may name these and `default` only.
    package init(
        house: CacheTreatment = .init(), zones: [CacheZone] = [], rules: [CacheRule] = [],
        policyClients: [AddressRange] = []
    ) {
        self.rules = rules
        self.policyClients = policyClients
        let names = [CacheZone.defaultName] + zones.map(\.name)
        zoneNames = names
        zoneTreatments = [house] + zones.enumerated().map { $1.treatment(index: $0 + 1, house: house) }
        zoneOfRule = rules.map { rule in
            guard let name = rule.zone else { return 0 }
            guard let index = names.firstIndex(of: name) else { preconditionFailure("no zone is called \(name)") }
            return index
        }
        isTrivial = rules.isEmpty && policyClients.isEmpty
        dependOnType = rules.contains { !$0.conditions.types.isEmpty }
        dependOnUser = rules.contains { !$0.conditions.users.isEmpty }
    }

    /// What holds where no rule does.
    package var house: CacheTreatment { zoneTreatments[0] }

    /// The first rule that holds, among those without a `type` condition.
    ///
    /// - Parameter clientPolicy: what the client's `Larder-Policy` says, where it is heeded.
    package func treatment(of request: RuleRequest, clientPolicy: TreatmentChanges? = nil) -> CacheTreatment {
        guard
            let index = rules.firstIndex(where: {
                $0.conditions.types.isEmpty && $0.conditions.hold(request, type: nil)
            })
        else { return applying(clientPolicy, to: house) }
        var treatment = treatment(by: index, zone: zoneOfRule[index])
        treatment.keyRule = rules[index].key == nil ? nil : rules[index].number
        return applying(clientPolicy, to: treatment)
    }

    /// The first rule that holds, now that there is a response.
    ///
    /// - Parameters:
    ///   - responseType: the value of its `Content-Type`; nil where it has none.
    ///   - requested: the treatment of the request: its zone and its key stay.
    package func treatment(
        of request: RuleRequest, responseType: ArraySlice<UInt8>?, keeping requested: CacheTreatment,
        clientPolicy: TreatmentChanges? = nil
    ) -> CacheTreatment {
        guard dependOnType else { return requested }
        var result = zoneTreatments[requested.zone]
        if let index = rules.firstIndex(where: { $0.conditions.hold(request, type: responseType) }) {
            result = treatment(by: index, zone: requested.zone)
        }
        result.keyRule = requested.keyRule
        return applying(clientPolicy, to: result)
    }

    /// How the key of such a request is made; nil: it is the URI.
    package func keyRules(for treatment: CacheTreatment) -> KeyRules? {
        treatment.keyRule.flatMap { rules[$0 - 1].key }
    }

    /// - Parameter client: nil for a client of a Unix socket, who is never heeded.
    package func heedsPolicy(of client: IPAddress?) -> Bool {
        client.map { client in policyClients.contains { $0.contains(client) } } ?? false
    }

    private func treatment(by index: Int, zone: Int) -> CacheTreatment {
        var treatment = zoneTreatments[zone]
        rules[index].changes.apply(to: &treatment)
        treatment.rule = rules[index].number
        return treatment
    }
}

extension CacheZone {
    /// What holds in it without a rule.
    fileprivate func treatment(index: Int, house: CacheTreatment) -> CacheTreatment {
        var treatment = house
        changes.apply(to: &treatment)
        treatment.objectSizeMax = objectSizeMax
        treatment.zone = index
        return treatment
    }
}

private func applying(_ changes: TreatmentChanges?, to treatment: CacheTreatment) -> CacheTreatment {
    guard let changes else { return treatment }
    var treatment = treatment
    changes.apply(to: &treatment)
    return treatment
}
