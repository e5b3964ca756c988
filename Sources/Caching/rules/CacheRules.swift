package import Message
package import Releases
package import Rules

/// The rules of the cache, prepared for look-ups. Immutable; a reload makes a new value.
///
/// The default handling, the zone, the rule and a trusted client's `Larder-Policy` apply in this order. Each overrides those
/// before it, setting by setting.
///
/// The rules are consulted twice: when a request is read, and when a response is known, stored or from the origin, because only then
/// the type is known. Zone and key stay those of the first time, because the look-up has already used them.
package struct CacheRules: Sendable, Equatable {
    /// The rules of `cache.rules`, then those of the recipes. A rule with the number n is at n − 1.
    package let rules: [CacheRule]
    /// How many of them are from `cache.rules`.
    let ownCount: Int
    /// Which rules of recipes are for which host.
    let recipeHosts: HostIndex
    /// The names of the zones by index. The first is the default zone.
    package let zoneNames: [String]
    /// The handling in each zone if no rule matches.
    let zoneHandlings: [CacheHandling]
    let zoneOfRule: [Int]
    let zoneChanges: [HandlingChanges]
    private let policyClients: [AddressRange]

    /// True if every request gets the default handling and its URI is its key. Then no other member has to be consulted.
    package let isTrivial: Bool
    /// A rule has a `type` condition: consult the rules again when the type of a stored response is known.
    package let dependOnType: Bool
    /// A rule has a `user` condition: find out the user before the rules are consulted.
    package let dependOnUser: Bool
    /// A rule has digests from indexes: read the indexes that are stored.
    package let dependOnIndexes: Bool
    /// A rule has a `path` condition.
    let dependOnPath: Bool

    /// - Parameters:
    ///   - zones: all zones except the default one. Rules may name only these and `default`.
    ///   - rules: the rules of `cache.rules`, which are consulted first.
    ///   - recipeRules: rules that each name their hosts. They are found by host, so that requests to other hosts cost one look-up, however
    ///     many recipes there are.
    package init(
        defaultHandling: CacheHandling = .init(), zones: [CacheZone] = [], rules own: [CacheRule] = [],
        recipeRules: [CacheRule] = [], policyClients: [AddressRange] = []
    ) {
        let rules = own + recipeRules
        precondition(recipeRules.allSatisfy { !$0.conditions.hosts.contains(.any) }, "a recipe is for named hosts")
        self.rules = rules
        ownCount = own.count
        recipeHosts = HostIndex(recipeRules.map(\.conditions.hosts))
        self.policyClients = policyClients
        let names = [CacheZone.defaultName] + zones.map(\.name)
        zoneNames = names
        zoneHandlings =
            [defaultHandling] + zones.enumerated().map { $1.handling(index: $0 + 1, defaultHandling: defaultHandling) }
        zoneChanges = [HandlingChanges()] + zones.map(\.changes)
        zoneOfRule = rules.map { rule in
            guard let name = rule.zone else { return 0 }
            guard let index = names.firstIndex(of: name) else { preconditionFailure("no zone is called \(name)") }
            return index
        }
        isTrivial = rules.isEmpty && policyClients.isEmpty
        dependOnType = rules.contains { !$0.conditions.types.isEmpty }
        dependOnUser = rules.contains(where: \.conditions.dependOnUser)
        dependOnIndexes = rules.contains { $0.changes.digest?.source == .index }
        dependOnPath = rules.contains { !$0.conditions.paths.isEmpty }
    }

    /// The handling of a request to which no rule applies.
    package var defaultHandling: CacheHandling { zoneHandlings[0] }

    /// Applies the first rule that matches, among those without a `type` condition.
    ///
    /// - Parameter clientPolicy: the client's `Larder-Policy`, if the client is trusted with it.
    package func handling(of request: RuleRequest, clientPolicy: HandlingChanges? = nil) -> CacheHandling {
        switch decision(on: request, { $0.types.isEmpty }) {
        case .rule(let index):
            guard let index else { return applying(clientPolicy, to: defaultHandling) }
            var handling = handlingWithKey(by: index)
            handling.isForFile =
                rules[index].recipe != nil && (handling.isImmutable || handling.ttl != nil)
                && (request.path.map(namesPackage) ?? false)
            return applying(clientPolicy, to: handling)
        case .disputed(let indices):
            return applying(clientPolicy, to: strictestHandling(byOneOf: indices, zone: nil))
        }
    }

    /// The handlings that a request may get, depending on who sends it.
    ///
    /// - Parameter request: of no particular client.
    package func handlings(whoeverSends request: RuleRequest) -> [CacheHandling] {
        var found: [CacheHandling] = []
        let decides = first(for: request) { index in
            let conditions = rules[index].conditions
            guard conditions.types.isEmpty, conditions.holdForRequest(request, paths: .asSent, whoeverSends: true)
            else { return false }
            found.append(handlingWithKey(by: index))
            return !conditions.dependOnClient
        }
        return decides == nil ? found + [defaultHandling] : found
    }

    private func handlingWithKey(by index: Int) -> CacheHandling {
        var handling = handling(by: index, zone: zoneOfRule[index])
        handling.keyRule = rules[index].key == nil ? nil : rules[index].number
        return handling
    }

    /// Whether a rule may have responses stored for each credential.
    package var storeSeparately: Bool {
        zoneHandlings.contains { $0.authorization == .separate }
            || rules.contains { $0.changes.authorization == .separate }
    }

    /// Applies the first rule that matches, now that the response is known.
    ///
    /// - Parameters:
    ///   - responseType: the value of its `Content-Type`. Nil if it has none.
    ///   - requested: the handling of the request. Its zone and its key stay.
    package func handling(
        of request: RuleRequest, responseType: ArraySlice<UInt8>?, keeping requested: CacheHandling,
        clientPolicy: HandlingChanges? = nil
    ) -> CacheHandling {
        guard dependOnType else { return requested }
        var result: CacheHandling
        switch decision(on: request, { $0.holdForType(responseType) }) {
        case .rule(let index): result = handling(by: index, zone: requested.zone)
        case .disputed(let indices): result = strictestHandling(byOneOf: indices, zone: requested.zone)
        }
        result.keyRule = requested.keyRule
        result.isForFile = requested.isForFile
        if requested.folding != .none {
            result.fold(
                isProven: requested.folding == .proven, standsForImmutable: requested.isImmutable,
                provesBodies: requested.provesBodies)
        }
        return applying(clientPolicy, to: result)
    }

    /// What the rules say about the paths of a host, for requests that differ in path and query alone.
    ///
    /// Only for paths that every origin reads as they are sent (`isAmbiguousPath`). Some rules count that stand behind the one that decides.
    ///
    /// - Returns: nil if a rule looks at the type of the response, if the key is not the URI, or if more than `exceptionsMax` paths have
    ///   rules of their own.
    package func handlingOfPaths(like request: RuleRequest) -> HandlingOfPaths? {
        var exceptions: [PathPattern] = []
        var looksAtType = false
        func decides(_ rule: CacheRule) -> Bool {
            let conditions = rule.conditions
            guard conditions.holdBesidesDetails(request) else { return false }
            if !conditions.types.isEmpty { looksAtType = true }
            exceptions += conditions.paths
            return conditions.paths.isEmpty
        }
        let index =
            rules[..<ownCount].firstIndex(where: decides)
            ?? recipeHosts.first(for: request.destination) { decides(rules[ownCount + $0]) }.map { ownCount + $0 }
        guard !looksAtType, exceptions.count <= CacheRules.exceptionsMax else { return nil }
        guard let index else { return HandlingOfPaths(handling: defaultHandling, exceptions: exceptions) }
        guard rules[index].key == nil else { return nil }
        return HandlingOfPaths(handling: handling(by: index, zone: zoneOfRule[index]), exceptions: exceptions)
    }

    /// The most patterns that `HandlingOfPaths` has: each is compared with the path of every request.
    package static let exceptionsMax = 8

    /// How the key of such a request is made. Returns nil if it is the URI.
    package func keyRules(for handling: CacheHandling) -> KeyRules? {
        handling.keyRule.flatMap { rules[$0 - 1].key }
    }

    /// What the rule and the zone of such a handling say beyond it. Returns nil if they say nothing.
    package func particulars(of handling: CacheHandling) -> HandlingParticulars? {
        guard handling.hasParticulars else { return nil }
        let zone = zoneChanges[handling.zone]
        let rule = handling.rule.map { rules[$0 - 1].changes }
        return HandlingParticulars(
            droppedCookies: handling.isDisputed ? [] : rule?.droppedCookies ?? zone.droppedCookies ?? [],
            digest: rule?.digest ?? zone.digest,
            release: releaseKind(of: handling), minimumAge: rule?.minimumAge ?? zone.minimumAge)
    }

    /// What the rule and the zone of such a handling say that its responses offer.
    package func releaseKind(of handling: CacheHandling) -> ReleaseKind? {
        handling.rule.flatMap { rules[$0 - 1].changes.release } ?? zoneChanges[handling.zone].release
    }

    /// Which indexes and files belong together: those of one use of a recipe, and those of all rules of `cache.rules`. An index promises digests for
    /// these files alone, so that no other index can make them fail. Returns nil if no rule matched.
    package func indexScope(of handling: CacheHandling) -> String? {
        handling.rule.map { number in
            let rule = rules[number - 1]
            return rule.recipe.map { "\($0) \(rule.line)" } ?? ""
        }
    }

    /// Whether the `Larder-Policy` of this client is obeyed.
    /// - Parameter client: nil for a client of a Unix socket, which is never trusted.
    package func heedsPolicy(of client: IPAddress?) -> Bool {
        client.map { client in policyClients.contains { $0.contains(client) } } ?? false
    }

    /// - Parameter index: nil if no rule matches.
    func handling(by index: Int?, zone: Int) -> CacheHandling {
        var handling = zoneHandlings[zone]
        guard let index else { return handling }
        rules[index].changes.apply(to: &handling)
        handling.rule = rules[index].number
        handling.hasDigestInAddress =
            (rules[index].changes.digest ?? zoneChanges[zone].digest)?.source == .path
        handling.protectAccess()
        return handling
    }
}

extension CacheZone {
    /// The handling in the zone if no rule matches.
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
    handling.hasLifetimeOfClient = changes.concernsLifetime
    handling.protectAccess()
    return handling
}

/// The handling of all requests that differ in path and query alone, but for the paths that have rules of their own.
package struct HandlingOfPaths: Sendable, Equatable {
    package let handling: CacheHandling
    /// A path that matches one of these may have another handling.
    package let exceptions: [PathPattern]
}
