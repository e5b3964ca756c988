import Rules

/// The rules that decide, by what a request must have for them: made once, when the settings are loaded.
///
/// With ten thousand rules a request is compared with the few that may concern it. LinearPolicy.swift (AccessTests) is the model that a test compares
/// the decisions with.
struct CompiledRules: Sendable, Equatable {
    /// By host, and by what else the other rules ask for.
    let byHost: RuleIndex
    /// The allow rules by client and user.
    let allowingByWho: RuleIndex
    /// The rules that name hosts, by client and user. Nil if there are none.
    let namingHostsByWho: RuleIndex?
    /// Some rule has an address.
    let dependsOnAddress: Bool
    /// Some rule has a server name.
    let dependsOnServerName: Bool
    /// The position of the first allow rule, and of the first one without an address.
    let firstAllowing: Int?
    let firstAllowingByName: Int?

    init(_ rules: [AccessRule]) {
        let deciding = rules.enumerated().filter { !$0.element.isReport }
        let allowing = deciding.filter(\.element.isAllow)
        byHost = RuleIndex(deciding.map { (position: $0.offset, conditions: $0.element.conditions) })
        allowingByWho = RuleIndex(
            allowing.map { (position: $0.offset, conditions: $0.element.conditions) }, by: .who)
        let naming = deciding.filter(\.element.conditions.namesHosts)
        namingHostsByWho =
            naming.isEmpty
            ? nil : RuleIndex(naming.map { (position: $0.offset, conditions: $0.element.conditions) }, by: .who)
        dependsOnAddress = deciding.contains { $0.element.conditions.namesAddresses }
        dependsOnServerName = deciding.contains { !$0.element.conditions.serverNames.isEmpty }
        firstAllowing = allowing.first?.offset
        firstAllowingByName = allowing.first { !$0.element.conditions.namesAddresses }?.offset
    }
}
