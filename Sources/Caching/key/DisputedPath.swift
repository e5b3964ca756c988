import Message
import Releases
package import Rules

/// Paths that an origin may take for others (`PathReadings`), as far as the rules of the cache are concerned.
///
/// What a rule permits (to reuse for longer, to share, to leave something out of the key) counts where the same rule decides in every reading. What a rule
/// restricts (a minimum age, a proof, to store nothing) counts where it decides in one.
extension CacheRules {
    enum Decision {
        /// The rule at this position decides, whatever the origin takes the path for. Nil: none does.
        case rule(Int?)
        /// Each of these may decide.
        case disputed([Int?])
    }

    /// - Parameter mayHold: whether a rule with these conditions counts, as far as the type of the response is concerned.
    func decision(on request: RuleRequest, _ mayHold: (RuleConditions) -> Bool) -> Decision {
        guard dependOnPath, let readings = request.pathReadings else {
            return .rule(
                first(for: request) {
                    let conditions = rules[$0].conditions
                    return mayHold(conditions) && conditions.holdForRequest(request, paths: .asSent)
                })
        }
        let contenders = contenders(request, mayHold)
        let asSent = contenders.first { rules[$0].conditions.holdForPathAsSent(request) }
        let all =
            readings.isObscure
            ? candidates(request, mayHold) : deciding(contenders, in: readings.paths[...], asSent: asSent)
        let conditions = asSent.map { rules[$0].conditions }
        var isAgreed = all.count == 1
        if let conditions, !conditions.paths.isEmpty {
            if readings.climbs || readings.isObscure {
                isAgreed = false
            } else if !isAgreed, conditions.nameParameters {
                let agreed = deciding(contenders, in: readings.all(parametersCount: true), asSent: asSent)
                isAgreed = agreed.count == 1 && !all.contains { $0 != asSent && ($0.map(restricts) ?? false) }
            }
        }
        return isAgreed ? .rule(asSent) : .disputed(all)
    }

    /// The rules that hold but for their paths, up to the first that is for all paths. There may be hundreds of readings, and a client chooses them:
    /// all that does not differ between them is looked at once.
    private func contenders(_ request: RuleRequest, _ mayHold: (RuleConditions) -> Bool) -> [Int] {
        var found: [Int] = []
        _ = first(for: request) {
            let conditions = rules[$0].conditions
            guard mayHold(conditions), conditions.holdBesidesPath(request) else { return false }
            found.append($0)
            return conditions.paths.isEmpty
        }
        return found
    }

    /// The rules that decide in these readings, each once, that of the path as sent first.
    private func deciding(_ contenders: [Int], in paths: ArraySlice<[UInt8]>, asSent: Int?) -> [Int?] {
        var found: [Int?] = [asSent]
        for path in paths {
            let index = contenders.first { rules[$0].conditions.holdForPath(readAs: path) }
            if !found.contains(index) { found.append(index) }
        }
        return found
    }

    /// The rules that may decide if nobody knows what the origin makes of the path: all up to the first without `path`.
    private func candidates(_ request: RuleRequest, _ mayHold: (RuleConditions) -> Bool) -> [Int?] {
        var found: [Int?] = []
        for index in rules.indices {
            let conditions = rules[index].conditions
            guard mayHold(conditions), conditions.holdForRequest(request, paths: .anySpelling, unreadDetails: false)
            else { continue }
            found.append(index)
            if conditions.paths.isEmpty { return found }
        }
        return found + [nil]
    }

    /// The position of the first rule whose conditions hold.
    func first(for request: RuleRequest, _ holds: (Int) -> Bool) -> Int? {
        // By position: an iterator copies each rule, with all that it refers to.
        for index in 0..<ownCount where holds(index) { return index }
        guard !recipeHosts.isEmpty else { return nil }
        return recipeHosts.first(for: request.destination) { holds(ownCount + $0) }.map { ownCount + $0 }
    }

    /// Whether the rule and its zone ask for a proof or a minimum age.
    private func restricts(_ index: Int) -> Bool {
        let (rule, zone) = (rules[index].changes, zoneChanges[zoneOfRule[index]])
        return digest(of: index) != nil
            || ((rule.release ?? zone.release) != nil && (rule.minimumAge ?? zone.minimumAge) != nil)
    }

    private func digest(of index: Int) -> DigestRule? {
        rules[index].changes.digest ?? zoneChanges[zoneOfRule[index]].digest
    }

    /// - Parameter zone: that of the request. Nil: the zone of the first rule.
    func strictestHandling(byOneOf indices: [Int?], zone: Int?) -> CacheHandling {
        let zones = indices.map { index in zone ?? index.map { zoneOfRule[$0] } ?? 0 }
        var result = CacheHandling.strictest(of: zip(indices, zones).map { handling(by: $0, zone: $1) })
        let restricting = indices.compactMap(\.self).filter(restricts)
        let proving = restricting.filter { digest(of: $0) != nil }
        result.rule = restricting.count == 1 ? rules[restricting[0]].number : nil
        if restricting.count == 1, let only = proving.first {
            // What has its digest is right whatever the path means. It must be stored to be proven, and is validated each time.
            result.ttl = handling(by: only, zone: result.zone).ttl
        }
        // What proves the body is not known, or is not what the one rule says.
        let proof = proving.count == 1 ? digest(of: proving[0]) : nil
        if result.provesBodies, proof == nil || proof != particulars(of: result)?.digest { result.use.insert(.noWrite) }
        return result
    }
}

/// What the rules say of the age of what the response to a request offers.
package enum ReleaseClaim: Sendable, Equatable {
    case none
    case rule(ReleaseRule)
    /// It depends on what the origin takes the path for which package is meant, or which rule is.
    case unclear
}

extension CacheRules {
    /// - Parameter handling: that of the request.
    package func releaseClaim(on request: RuleRequest, _ handling: CacheHandling) -> ReleaseClaim {
        guard let path = request.path else { return .none }
        guard let readings = request.pathReadings else {
            return handling.rule.flatMap { releaseRule($0 - 1, path) }.map { .rule($0) } ?? .none
        }
        let mayDecide: (RuleConditions) -> Bool = { $0.types.isEmpty }
        guard !readings.isObscure else {
            return claim(
                candidates(request, mayDecide).compactMap { $0.flatMap { releaseRule($0, path) } }, isObscure: true)
        }
        let contenders = contenders(request, mayDecide)
        var found: [ReleaseRule] = []
        func note(_ path: ArraySlice<UInt8>, _ holds: (RuleConditions) -> Bool) {
            guard let index = contenders.first(where: { holds(rules[$0].conditions) }),
                let rule = releaseRule(index, path)
            else { return }
            if !found.contains(rule) { found.append(rule) }
        }
        note(path) { $0.holdForPathAsSent(request) }
        for reading in readings.paths { note(reading[...]) { $0.holdForPath(readAs: reading) } }
        return claim(found, isObscure: false)
    }

    /// - Parameters:
    ///   - rules: those that an origin may mean, that of the path as sent first.
    ///   - isObscure: there may be others.
    private func claim(_ rules: [ReleaseRule], isObscure: Bool) -> ReleaseClaim {
        guard let first = rules.first else { return .none }
        if !isObscure, let common = ReleaseRule.common(of: Set(rules)) { return .rule(common) }
        // What only reports refuses nothing.
        return rules.allSatisfy(\.minimumAge.isReportOnly) ? .rule(first) : .unclear
    }

    private func releaseRule(_ index: Int, _ path: ArraySlice<UInt8>) -> ReleaseRule? {
        let zone = zoneChanges[zoneOfRule[index]]
        let changes = rules[index].changes
        guard let kind = changes.release ?? zone.release, let age = changes.minimumAge ?? zone.minimumAge else {
            return nil
        }
        return ReleaseRule(kind, age, path: path, conditions: rules[index].conditions)
    }
}

extension CacheHandling {
    /// The handling that permits no more than each of these, and restricts as much. What is stored is validated each time, unless
    /// `cache-only` forbids to ask.
    ///
    /// - Parameter all: not empty. The zone is that of the first.
    fileprivate static func strictest(of all: [CacheHandling]) -> CacheHandling {
        precondition(!all.isEmpty, "somebody decides")
        var result = all[0]
        result.isDisputed = true
        result.keyRule = nil
        result.isImmutable = false
        result.respectsCacheControl = true
        (result.ttl, result.ttlDefault, result.negativeTTL) = (nil, nil, .zero)
        result.ttlMax = all.compactMap(\.ttlMax).min()
        result.objectSizeMax = all.compactMap(\.objectSizeMax).min()
        result.use = strictestUse(of: all.map(\.use))
        for other in all.dropFirst() {
            result.storage = min(result.storage, other.storage)
            if other.admission == .secondHit { result.admission = .secondHit }
            result.storesCookies = result.storesCookies && other.storesCookies
            result.dropsCookies = false
            result.authorization = max(result.authorization, other.authorization)
            result.ranges = max(result.ranges, other.ranges)
            if other.ifMatch == .origin { result.ifMatch = .origin }
            result.failureStatuses.formIntersection(other.failureStatuses)
            if other.compression != result.compression { result.compression = .no }
            result.hasParticulars = result.hasParticulars || other.hasParticulars
            result.provesBodies = result.provesBodies || other.provesBodies
        }
        result.protectAccess()
        return result
    }

    private static func strictestUse(of all: [CacheUse]) -> CacheUse {
        let union = all.reduce(CacheUse()) { $0.union($1) }
        var result = union.intersection([.noWrite, .noRead, .cacheOnly])
        if result.isDisjoint(with: [.noRead, .cacheOnly]) { result.insert(.revalidateAlways) }
        return result
    }
}

extension StoragePolicy: Comparable {
    /// In the order in which they store for longer.
    package static func < (a: StoragePolicy, b: StoragePolicy) -> Bool { a.rank < b.rank }

    private var rank: Int {
        switch self {
        case .session: 0
        case .permanent: 1
        case .pinned: 2
        }
    }
}

extension AuthorizationUse: Comparable {
    /// In the order in which they share less.
    package static func < (a: AuthorizationUse, b: AuthorizationUse) -> Bool { a.rank < b.rank }

    private var rank: Int {
        switch self {
        case .public: 0
        case .standard: 1
        case .validate: 2
        case .separate: 3
        }
    }
}

extension RangeUse: Comparable {
    /// In the order in which they store and fetch less.
    package static func < (a: RangeUse, b: RangeUse) -> Bool { a.rank < b.rank }

    private var rank: Int {
        switch self {
        case .whole: 0
        case .sparse: 1
        case .pass: 2
        }
    }
}
